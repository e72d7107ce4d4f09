#include "tests/net/kit_transport.h"

#include <criterion/criterion.h>
#include <string.h>

#include "pool/bytes.h"
#include "tests/net/kit_wall_clock.h"

enum { SSRC = 0x11223344, RTP_HEADER_BYTES = 12 };

static const struct ice_credentials relay = { "relayUfrag01", "relay/password+of/32+characters0" };
static const struct ice_credentials client = { "cl+/", "client/password+of/24+ch" };

static void set_now(struct kit_net *n, uint64_t now_us)
{
	n->now_us = now_us;
	wall_clock_set_us(now_us);
}

static void fingerprint_of(struct dtls_fingerprint *out, const struct dtls_identity *id)
{
	cr_assert_eq(dtls_fingerprint_parse(out, "sha-256", dtls_identity_fingerprint(id)), 0);
}

static void init_config(struct kit_net *n, int end)
{
	struct transport_config *c = &n->config[end];

	c->ice_role = end == KIT_RELAY ? ICE_LITE : ICE_CONTROLLING;
	c->dtls_role = end == KIT_RELAY ? DTLS_SERVER : DTLS_CLIENT;
	c->local = end == KIT_RELAY ? relay : client;
	c->remote = end == KIT_RELAY ? client : relay;
	c->identity = n->identity[end];
	fingerprint_of(&c->fingerprint, n->identity[!end]);
	c->engine = n->engine;
	c->tie_breaker = 77;
	c->seed[0] = (uint8_t)(end + 1);
}

void kit_net_init(struct kit_net *n)
{
	memset(n, 0, sizeof(*n));
	set_now(n, KIT_START_US);
	n->random = 1;
	n->delay_us = 10000;
	cr_assert_eq(dtls_identity_create(&n->identity[0]), 0);
	cr_assert_eq(dtls_identity_create(&n->identity[1]), 0);
	cr_assert_eq(seal_engine_create(&n->engine, SEAL_ENGINE_EVP), 0);
	cr_assert_eq(net_addr_parse(&n->end[KIT_RELAY].addr, "192.0.2.1:8189"), 0);
	cr_assert_eq(net_addr_parse(&n->end[KIT_CLIENT].addr, "198.51.100.7:5000"), 0);
	init_config(n, KIT_RELAY);
	init_config(n, KIT_CLIENT);
}

void kit_net_open(struct kit_net *n)
{
	struct net_path path = { n->end[KIT_RELAY].addr, n->end[KIT_CLIENT].addr };
	int i;

	for (i = 0; i < 2; i++)
		cr_assert_eq(transport_create(&n->end[i].t, n->now_us, &n->config[i]), 0);
	cr_assert_eq(transport_add_remote(n->end[KIT_CLIENT].t, n->now_us, &path), 0);
}

void kit_net_fini(struct kit_net *n)
{
	struct transport_live transports;
	struct dtls_live dtls;
	int i;

	for (i = 0; i < 2; i++) {
		transport_destroy(n->end[i].t);
		if (n->end[i].is_working)
			cr_expect_not(kit_work_finish(n, i));
		dtls_identity_unref(n->identity[i]);
	}
	seal_engine_destroy(n->engine);
	transport_live(&transports);
	dtls_live(&dtls);
	cr_expect_eq(transports.transports, 0);
	cr_expect_eq(transports.zombies, 0);
	cr_expect_eq(dtls.handshakes, 0);
	cr_expect_eq(dtls.ssl_objects, 0);
	cr_expect_eq(dtls.identities, 0);
	wall_clock_set_us(0);
}

static int draw(struct kit_net *n)
{
	n->random = n->random * 1664525 + 1013904223;
	return (int)((n->random >> 16) % 100);
}

static void fly(struct kit_net *n, int from, const struct transport_output *o)
{
	struct kit_flying *f = &n->flying[n->flying_count];

	cr_assert_lt(n->flying_count, KIT_FLYING);
	cr_assert_leq(o->len, DTLS_MTU_BYTES);
	f->due_us = n->now_us + n->delay_us + (draw(n) < n->late_pct ? 50000 : 0);
	f->to = !from;
	f->path.remote = n->end[from].addr;
	f->path.local = n->end[!from].addr;
	f->len = o->len;
	memcpy(f->bytes, o->bytes, o->len);
	n->flying_count++;
}

static void send_out(struct kit_net *n, int from, const struct transport_output *o)
{
	struct kit_end *e = &n->end[from];

	e->sent++;
	e->sent_bytes += o->len;
	if (!net_addr_is_equal(&o->path.remote, &n->end[!from].addr)) {
		e->astray++;
		return;
	}
	if (draw(n) < n->loss_pct)
		return;
	fly(n, from, o);
	if (draw(n) < n->dup_pct)
		fly(n, from, o);
}

bool kit_work_finish(struct kit_net *n, int end)
{
	struct kit_end *e = &n->end[end];

	cr_assert(e->is_working);
	e->is_working = false;
	transport_work_run(e->t);
	if (transport_work_done(e->t, n->now_us))
		return true;
	e->t = NULL;
	return false;
}

void kit_net_poll(struct kit_net *n, int end)
{
	struct kit_end *e = &n->end[end];
	struct transport_output o;

	for (;;) {
		transport_poll(e->t, n->now_us, &o);
		switch (o.kind) {
		case TRANSPORT_IDLE:
			e->idle_us = o.deadline_us;
			return;
		case TRANSPORT_TRANSMIT:
			send_out(n, end, &o);
			break;
		case TRANSPORT_NOTIFY:
			e->events[o.event]++;
			e->reason = o.event == TRANSPORT_CLOSED ? o.reason : e->reason;
			break;
		case TRANSPORT_WORK:
			cr_assert_not(e->is_working, "asked again before it was done");
			e->works++;
			e->is_working = true;
			if (!n->is_work_held)
				kit_work_finish(n, end);
			break;
		}
	}
}

static enum transport_verdict receive(struct kit_net *n, int end, const struct net_path *path,
				      const uint8_t *bytes, size_t len)
{
	struct kit_end *e = &n->end[end];
	enum transport_verdict v;

	memcpy(e->last, bytes, len);
	e->last_len = len;
	v = transport_on_datagram(e->t, n->now_us, path, e->last, &e->last_len, &e->last_index);
	e->verdicts[v]++;
	return v;
}

enum transport_verdict kit_deliver(struct kit_net *n, int end, const struct net_addr *from,
				   const uint8_t *bytes, size_t len)
{
	struct net_path path = { from ? *from : n->end[!end].addr, n->end[end].addr };

	return receive(n, end, &path, bytes, len);
}

static uint64_t next_event_us(const struct kit_net *n)
{
	uint64_t next = UINT64_MAX;
	int i;

	for (i = 0; i < 2; i++) {
		if (n->end[i].t && n->end[i].idle_us < next)
			next = n->end[i].idle_us;
	}
	for (i = 0; i < n->flying_count; i++) {
		if (n->flying[i].due_us < next)
			next = n->flying[i].due_us;
	}
	return next;
}

static void land(struct kit_net *n)
{
	struct kit_flying f;
	int i = 0;

	while (i < n->flying_count) {
		if (n->flying[i].due_us > n->now_us) {
			i++;
			continue;
		}
		f = n->flying[i];
		memmove(&n->flying[i], &n->flying[i + 1],
			(size_t)(n->flying_count - i - 1) * sizeof(f));
		n->flying_count--;
		if (n->end[f.to].t)
			receive(n, f.to, &f.path, f.bytes, f.len);
	}
}

static void turn(struct kit_net *n)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!n->end[i].t)
			continue;
		if (n->end[i].idle_us <= n->now_us)
			transport_on_timeout(n->end[i].t, n->now_us);
		kit_net_poll(n, i);
	}
}

/* One event, or the end of the time given. @return false: that was it */
static bool advance(struct kit_net *n, uint64_t until_us)
{
	uint64_t next;

	turn(n);
	next = next_event_us(n);
	cr_assert(next > n->now_us, "a deadline in the past would spin the loop");
	if (next > until_us) {
		set_now(n, until_us);
		return false;
	}
	set_now(n, next);
	land(n);
	return true;
}

void kit_net_run(struct kit_net *n, uint64_t until_us)
{
	while (advance(n, until_us))
		;
	turn(n);
}

bool kit_net_connect(struct kit_net *n, uint64_t until_us)
{
	while ((!n->end[0].t->tx || !n->end[1].t->tx) && advance(n, until_us))
		;
	return n->end[0].t->tx && n->end[1].t->tx;
}

size_t kit_seal(struct kit_net *n, int end, uint64_t index, size_t payload_bytes, uint8_t *out)
{
	uint8_t header[RTP_HEADER_BYTES] = { 0x80, 96 }, payload[1200];
	struct seal_job job = {
		.tx = n->end[end].t->tx,
		.index = index,
		.header = header,
		.payload = payload,
		.header_bytes = sizeof(header),
		.payload_bytes = (uint16_t)payload_bytes,
		.out = out,
	};

	be16_write(header + 2, (uint16_t)index);
	be32_write(header + 8, SSRC + (uint32_t)end);
	memset(payload, (int)(index & 0xff), sizeof(payload));
	seal_rtp(n->engine, &job, 1);
	return sizeof(header) + payload_bytes + seal_tag_bytes(seal_tx_profile(job.tx));
}

enum transport_verdict kit_send_media(struct kit_net *n, int end, uint64_t index)
{
	uint8_t sealed[KIT_DATAGRAM_BYTES];
	size_t len = kit_seal(n, end, index, 100, sealed);

	return kit_deliver(n, !end, NULL, sealed, len);
}
