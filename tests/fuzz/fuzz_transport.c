/* A relay's transport and a client's, a list of steps between them: datagrams delivered from this
 * or that address, lost, repeated, damaged or made up, helpers that take their time, closes, and
 * the clock. Whatever the order, the relay speaks only to addresses from which the client's own
 * STUN came, accepts no media that the client did not seal, ends once, and leaves nothing. */
#include <assert.h>
#include <stdlib.h>
#include <sys/time.h>

#include "net/transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	RELAY = 0,
	CLIENT = 1,
	ADDRESSES = 4, /* of the client */
	QUEUE = 64,
	MAX_OUTPUTS = 256,
	START_US = 1000000,
	STEP_US = 20000,
	DATAGRAM_BYTES = 1500,
};

struct input {
	const uint8_t *at, *end;
};

struct datagram {
	int from;
	size_t len;
	uint8_t bytes[DATAGRAM_BYTES];
};

struct end {
	struct transport *t;
	uint64_t idle_us;
	bool is_working, is_over;
};

struct world {
	struct end end[2];
	struct datagram queue[QUEUE];
	int queued;
	uint64_t now_us;
	unsigned client_address;
	bool is_known[ADDRESSES];
	bool is_work_held;
};

static struct dtls_identity *identity;
static struct dtls_fingerprint own;
static struct seal_engine *engine;
static uint64_t wall_us = START_US;

static const struct ice_credentials credentials[2] = {
	{ "relayUfrag01", "relay/password+of/32+characters0" },
	{ "cl+/", "client/password+of/24+ch" },
};

/* The library's clock follows ours. */
int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	(void)tz;
	tv->tv_sec = (time_t)(wall_us / 1000000);
	tv->tv_usec = (suseconds_t)(wall_us % 1000000);
	return 0;
}

static uint8_t next_byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static struct net_addr address_of(int end, unsigned index)
{
	struct net_addr a = { .port = (uint16_t)(1000 + index % 2) };

	a.ip[10] = a.ip[11] = 0xff;
	a.ip[12] = end == RELAY ? 192 : 198;
	a.ip[15] = (uint8_t)(1 + index / 2);
	return a;
}

static struct net_path path_to(int end, unsigned client_address)
{
	struct net_path p = { address_of(!end, end == RELAY ? client_address : 0),
			      address_of(end, end == RELAY ? 0 : client_address) };

	return p;
}

static void check_target(struct world *w, const struct net_path *path)
{
	struct net_addr a;
	unsigned i;

	for (i = 0; i < ADDRESSES; i++) {
		a = address_of(CLIENT, i);
		if (net_addr_is_equal(&a, &path->remote)) {
			assert(w->is_known[i]);
			return;
		}
	}
	assert(0 && "sent to an address that never spoke");
}

static void on_transmit(struct world *w, int from, const struct transport_output *o)
{
	struct datagram *d = &w->queue[w->queued];

	assert(o->len > 0 && o->len <= DTLS_MTU_BYTES);
	if (from == RELAY)
		check_target(w, &o->path);
	if (w->queued == QUEUE)
		return;
	d->from = from;
	d->len = o->len;
	memcpy(d->bytes, o->bytes, o->len);
	w->queued++;
}

static void finish_work(struct world *w, int i)
{
	struct end *e = &w->end[i];

	if (!e->is_working)
		return;
	e->is_working = false;
	transport_work_run(e->t);
	if (!transport_work_done(e->t, w->now_us))
		e->t = NULL;
}

static void on_notify(struct end *e, const struct transport_output *o)
{
	assert(!e->is_over);
	if (o->event == TRANSPORT_CLOSED) {
		assert(o->reason != TRANSPORT_OPEN && o->reason < TRANSPORT_REASONS);
		assert(lifetime_is_ended(&e->t->life));
		e->is_over = true;
	}
	if (o->event == TRANSPORT_CONNECTED)
		assert(e->t->tx && e->t->rx);
}

static void poll_end(struct world *w, int i)
{
	struct end *e = &w->end[i];
	struct transport_output o;
	int outputs;

	for (outputs = 0;; outputs++) {
		assert(outputs < MAX_OUTPUTS);
		transport_poll(e->t, w->now_us, &o);
		assert(!e->is_over || o.kind == TRANSPORT_IDLE);
		switch (o.kind) {
		case TRANSPORT_IDLE:
			e->idle_us = o.deadline_us;
			return;
		case TRANSPORT_TRANSMIT:
			on_transmit(w, i, &o);
			break;
		case TRANSPORT_NOTIFY:
			on_notify(e, &o);
			break;
		case TRANSPORT_WORK:
			assert(!e->is_working);
			e->is_working = true;
			if (!w->is_work_held)
				finish_work(w, i);
			break;
		}
	}
}

static enum transport_verdict feed(struct world *w, int to, const uint8_t *bytes, size_t len)
{
	struct net_path path = path_to(to, w->client_address);
	uint8_t *copy = malloc(len ? len : 1);
	enum transport_verdict v;
	uint64_t index;

	assert(copy);
	if (len)
		memcpy(copy, bytes, len);
	v = transport_on_datagram(w->end[to].t, w->now_us, &path, copy, &len, &index);
	free(copy);
	assert(v < TRANSPORT_VERDICTS && v != TRANSPORT_RTP && v != TRANSPORT_RTCP);
	poll_end(w, to);
	return v;
}

static void damage(struct datagram *d, struct input *in)
{
	size_t at = ((size_t)next_byte(in) << 2 | 1) % d->len;

	/* STUN's integrity does not cover FINGERPRINT, the last eight bytes: damaged there, a
	 * message may still be the client's. */
	if (d->bytes[0] <= 3 && at + 8 >= d->len)
		at = 0;
	d->bytes[at] ^= next_byte(in) | 1;
}

static void deliver(struct world *w, struct input *in)
{
	struct datagram d;
	uint8_t how = next_byte(in);

	if (w->queued == 0)
		return;
	d = w->queue[0];
	w->queued--;
	memmove(&w->queue[0], &w->queue[1], (size_t)w->queued * sizeof(d));
	if (how % 4 == 1)
		return; /* lost */
	if (how % 4 == 2)
		damage(&d, in);
	else if (d.from == CLIENT && d.bytes[0] <= 3)
		w->is_known[w->client_address] = true;
	feed(w, !d.from, d.bytes, d.len);
	if (how % 4 == 3)
		feed(w, !d.from, d.bytes, d.len);
}

static void make_up(struct world *w, struct input *in, int to)
{
	size_t len = (size_t)(next_byte(in) << 2 | 3), left = (size_t)(in->end - in->at);

	len = len < left ? len : left;
	feed(w, to, in->at, len);
	in->at += len;
}

static void pass_time(struct world *w, unsigned steps)
{
	int i;

	w->now_us += (uint64_t)steps * steps * STEP_US;
	wall_us = w->now_us;
	for (i = 0; i < 2; i++) {
		if (w->end[i].idle_us <= w->now_us)
			transport_on_timeout(w->end[i].t, w->now_us);
		poll_end(w, i);
	}
}

static void help(struct world *w, unsigned op)
{
	int i;

	w->is_work_held = op & 1;
	for (i = 0; i < 2 && op & 2; i++) {
		if (w->end[i].is_working)
			transport_work_cancel(w->end[i].t);
		w->end[i].is_working = false;
		poll_end(w, i);
	}
	for (i = 0; i < 2 && !w->is_work_held; i++) {
		finish_work(w, i);
		poll_end(w, i);
	}
}

static void run(struct world *w, struct input *in)
{
	uint8_t op;

	while (in->at < in->end) {
		op = next_byte(in);
		switch (op % 8) {
		case 0:
		case 1:
		case 2:
			deliver(w, in);
			break;
		case 3:
			make_up(w, in, op >> 7);
			break;
		case 4:
			w->client_address = (op >> 3) % ADDRESSES;
			break;
		case 5:
			help(w, op >> 3);
			break;
		case 6:
			pass_time(w, op >> 3);
			break;
		case 7:
			if (op >> 3 == 1)
				return; /* destroyed in the middle */
			lifetime_close(&w->end[op >> 7].t->life, TRANSPORT_CLOSED_BY_CLIENT);
			poll_end(w, op >> 7);
			break;
		}
	}
}

static void open_both(struct world *w, bool is_relay_client)
{
	struct transport_config c = { .identity = identity, .engine = engine, .fingerprint = own };
	struct net_path path = path_to(CLIENT, 0);
	int i, err;

	for (i = 0; i < 2; i++) {
		c.ice_role = i == RELAY ? ICE_LITE : ICE_CONTROLLING;
		c.dtls_role = (i == RELAY) == is_relay_client ? DTLS_CLIENT : DTLS_SERVER;
		c.local = credentials[i];
		c.remote = credentials[!i];
		c.seed[0] = (uint8_t)i;
		err = transport_create(&w->end[i].t, w->now_us, &c);
		assert(err == 0);
	}
	err = transport_add_remote(w->end[CLIENT].t, w->now_us, &path);
	assert(err == 0);
	poll_end(w, CLIENT);
}

static void close_both(struct world *w)
{
	struct transport_live live;
	struct dtls_live dtls;
	int i;

	for (i = 0; i < 2; i++) {
		transport_destroy(w->end[i].t);
		finish_work(w, i);
	}
	transport_live(&live);
	dtls_live(&dtls);
	assert(live.transports == 0 && live.zombies == 0);
	assert(dtls.handshakes == 0 && dtls.ssl_objects == 0);
}

static void prepare(void)
{
	int err;

	if (identity)
		return;
	err = dtls_identity_create(&identity);
	assert(err == 0);
	err = dtls_fingerprint_parse(&own, "sha-256", dtls_identity_fingerprint(identity));
	assert(err == 0);
	err = seal_engine_create(&engine, SEAL_ENGINE_EVP);
	assert(err == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	struct world *w = calloc(1, sizeof(*w));

	assert(w);
	w->now_us = wall_us = START_US;
	prepare();
	open_both(w, next_byte(&in) & 1);
	run(w, &in);
	close_both(w);
	free(w);
	return 0;
}
