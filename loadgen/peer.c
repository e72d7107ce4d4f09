#include "loadgen/peer.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "loadgen/connection.h"
#include "media/rtp.h"
#include "net/random.h"

struct early {
	struct early *next;
	uint64_t came_us;
	size_t len;
	uint8_t bytes[];
};

struct peer {
	struct peer_ground *ground;
	struct peer_config config;
	enum peer_state state;
	struct ticker_item item;
	uint64_t transport_due_us, role_due_us, retry_due_us;
	uint64_t asked_us, retry_us;
	struct net_addr local;
	struct transport *transport;
	struct sdp_address dialled;    /* what the answer names for TCP; family 0: nothing */
	struct connection *connection; /* over TCP */
	struct ice_credentials credentials;
	uint32_t ssrcs[NEGOTIATED_KINDS], rtx_ssrcs[NEGOTIATED_KINDS];
	struct negotiated negotiated;
	struct early *early, **early_end;
	unsigned early_count;
	bool is_unreachable;
	char error[PEER_ERROR_BYTES];
	char location[SIGNAL_URL_BYTES];
};

static void poll_transport(struct peer *p);
static void ask(struct peer *p);

/* --- failing, timers ------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void fail(struct peer *p, const char *format, ...)
{
	va_list args;

	if (p->state >= PEER_FAILED)
		return;
	va_start(args, format);
	vsnprintf(p->error, sizeof(p->error), format, args);
	va_end(args);
	p->state = PEER_FAILED;
	p->config.handlers->on_failed(p->config.arg);
}

void peer_fail(struct peer *p, const char *why)
{
	fail(p, "%s", why);
}

static uint64_t min_us(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void arm(struct peer *p)
{
	ticker_arm(&p->ground->ticker, &p->item,
		   min_us(p->transport_due_us, min_us(p->role_due_us, p->retry_due_us)));
}

void peer_arm(struct peer *p, uint64_t due_us)
{
	p->role_due_us = due_us;
	arm(p);
}

static void on_item_due(struct ticker_item *item, uint64_t now_us)
{
	struct peer *p = (struct peer *)((uint8_t *)item - offsetof(struct peer, item));

	if (now_us >= p->retry_due_us) {
		p->retry_due_us = UINT64_MAX;
		ask(p);
	}
	if (p->transport && now_us >= p->transport_due_us) {
		transport_on_timeout(p->transport, now_us);
		poll_transport(p);
	}
	if (now_us >= p->role_due_us) {
		p->role_due_us = UINT64_MAX;
		p->config.handlers->on_due(p->config.arg);
	}
	arm(p);
}

/* --- media ----------------------------------------------------------------------------- */

static void keep_early(struct peer *p, const uint8_t *bytes, size_t len)
{
	struct early *e;

	if (p->early_count >= PEER_EARLY_PKTS)
		return;
	e = malloc(sizeof(*e) + len);
	if (!e)
		return;
	e->next = NULL;
	e->came_us = p->ground->now_us;
	e->len = len;
	memcpy(e->bytes, bytes, len);
	*p->early_end = e;
	p->early_end = &e->next;
	p->early_count++;
}

static void drop_early(struct peer *p)
{
	struct early *e;

	while ((e = p->early)) {
		p->early = e->next;
		free(e);
	}
	p->early_end = &p->early;
}

static void on_rtcp(struct peer *p, const struct net_path *path, uint8_t *bytes, size_t len)
{
	uint64_t index;
	enum transport_verdict verdict =
	    transport_on_datagram(p->transport, p->ground->now_us, path, bytes, &len, &index);

	if (verdict == TRANSPORT_RTCP)
		p->config.handlers->on_rtcp(p->config.arg, bytes, len);
	else if (verdict == TRANSPORT_DROP_SRTP_AUTH)
		p->config.handlers->on_forged(p->config.arg);
}

static void on_media(struct peer *p, const struct net_path *path, uint8_t *bytes, size_t len)
{
	bool is_rtcp = rtp_is_rtcp(bytes, len);

	if (p->state == PEER_CONNECTING && !is_rtcp)
		keep_early(p, bytes, len);
	if (p->state != PEER_CONNECTED)
		return;
	if (is_rtcp)
		on_rtcp(p, path, bytes, len);
	else if (net_addr_is_equal(&path->remote, &p->transport->path.remote))
		p->config.handlers->on_rtp(p->config.arg, p->ground->now_us, bytes, len);
}

static void take_packet(struct peer *p, const struct net_path *path, uint8_t *bytes, size_t len)
{
	uint64_t index;

	if (bytes[0] >= 128 && bytes[0] <= 191) { /* RFC 7983 */
		on_media(p, path, bytes, len);
		return;
	}
	transport_on_datagram(p->transport, p->ground->now_us, path, bytes, &len, &index);
	poll_transport(p);
	arm(p);
}

static void on_datagram(void *arg, uint32_t number, const struct net_path *path, uint8_t *bytes,
			size_t len)
{
	struct peer_ground *g = arg;
	struct peer *p = g->peers[number];

	if (p && p->transport && len > 0)
		take_packet(p, path, bytes, len);
}

static bool send_packet(struct peer *p, const struct net_path *path, const uint8_t *bytes,
			size_t len)
{
	if (p->connection)
		return connection_send(p->connection, bytes, len);
	return sockets_send(p->ground->sockets, p->config.number, path, bytes, len);
}

bool peer_send(struct peer *p, const uint8_t *bytes, size_t len)
{
	return send_packet(p, &p->transport->path, bytes, len);
}

void peer_send_rtcp(struct peer *p, uint8_t *bytes, size_t len, size_t cap)
{
	int sealed;

	if (p->state != PEER_CONNECTED || !p->transport->tx)
		return;
	sealed = seal_rtcp(p->ground->engine, p->transport->tx, bytes, len, cap);
	if (sealed > 0)
		peer_send(p, bytes, (size_t)sealed);
}

enum seal_verdict peer_open_rtp(struct peer *p, uint8_t *bytes, size_t *len)
{
	uint64_t index;

	return seal_open_rtp(p->ground->engine, p->transport->rx, bytes, len, &index);
}

/* --- the transport --------------------------------------------------------------------- */

struct work {
	struct peer_ground *ground;
	struct transport *transport; /* lives until the step is done, whatever its peer does */
	uint32_t number;
};

static void run_work(void *arg)
{
	struct work *work = arg;

	transport_work_run(work->transport);
}

static void on_work_done(void *arg)
{
	struct work *work = arg;
	struct peer_ground *g = work->ground;

	g->now_us = clock_now_us();
	g->works--;
	if (transport_work_done(work->transport, g->now_us)) {
		struct peer *p = g->peers[work->number];

		assert(p && p->transport == work->transport);
		poll_transport(p);
		arm(p);
	}
	free(work);
}

static void start_work(struct peer *p)
{
	struct work *work = malloc(sizeof(*work));

	if (work) {
		*work = (struct work){ p->ground, p->transport, p->config.number };
		p->ground->works++;
		if (loop_submit(p->ground->loop, run_work, on_work_done, work) == 0)
			return;
		p->ground->works--;
		free(work);
	}
	/* Slower, but as good. */
	transport_work_run(p->transport);
	transport_work_done(p->transport, p->ground->now_us);
}

static void on_connected(struct peer *p)
{
	struct early *e;

	p->state = PEER_CONNECTED;
	p->config.handlers->on_connected(p->config.arg);
	for (e = p->early; e && p->state == PEER_CONNECTED; e = e->next)
		p->config.handlers->on_rtp(p->config.arg, e->came_us, e->bytes, e->len);
	drop_early(p);
}

static void on_event(struct peer *p, const struct transport_output *out)
{
	if (out->event == TRANSPORT_CONNECTED && p->state == PEER_CONNECTING)
		on_connected(p);
	else if (out->event == TRANSPORT_CLOSED)
		fail(p, "connection ended: %s", transport_reason_text(out->reason));
}

static void poll_transport(struct peer *p)
{
	struct transport_output out;

	for (;;) {
		transport_poll(p->transport, p->ground->now_us, &out);
		switch (out.kind) {
		case TRANSPORT_TRANSMIT:
			send_packet(p, &out.path, out.bytes, out.len);
			break;
		case TRANSPORT_NOTIFY:
			on_event(p, &out);
			break;
		case TRANSPORT_WORK:
			start_work(p);
			break;
		case TRANSPORT_IDLE:
			p->transport_due_us = out.deadline_us;
			return;
		}
	}
}

/* --- the answer ------------------------------------------------------------------------ */

static void random_text(char *out, size_t chars)
{
	static const char alphabet[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t bytes[64];

	assert(chars <= sizeof(bytes));
	random_bytes(bytes, chars);
	for (size_t i = 0; i < chars; i++)
		out[i] = alphabet[bytes[i] % 64];
	out[chars] = '\0';
}

static void to_sdp_address(const struct net_addr *addr, struct sdp_address *out)
{
	bool v4 = net_addr_is_v4(addr);

	memset(out, 0, sizeof(*out));
	out->family = v4 ? 4 : 6;
	out->port = addr->port;
	memcpy(out->ip, addr->ip + (v4 ? 12 : 0), v4 ? 4 : 16);
}

static struct net_addr from_sdp_address(const struct sdp_address *addr)
{
	struct net_addr out = { .port = addr->port };

	if (addr->family == 4) {
		out.ip[10] = out.ip[11] = 0xff;
		memcpy(out.ip + 12, addr->ip, 4);
	} else {
		memcpy(out.ip, addr->ip, 16);
	}
	return out;
}

static struct offer_config offer_of(const struct peer *p, const struct sdp_address *candidate)
{
	return (struct offer_config){
		.role = p->config.role,
		.audio = true,
		.video = true,
		.rtx = true,
		.transport_cc = p->config.transport_cc,
		.ufrag = p->credentials.ufrag,
		.pwd = p->credentials.pwd,
		.fingerprint = dtls_identity_fingerprint(p->ground->identity),
		.session_id = p->config.number + 1,
		.cname = "sluice-load",
		.msid = "sluice-load",
		.ssrc = { p->ssrcs[0], p->ssrcs[1] },
		.rtx_ssrc = { p->rtx_ssrcs[0], p->rtx_ssrcs[1] },
		.candidates = candidate,
		.candidate_count = p->ground->is_tcp ? 0 : 1, /* nobody can dial us */
	};
}

static int open_transport(struct peer *p)
{
	const struct negotiated *n = &p->negotiated;
	struct transport_config config = {
		.ice_role = ICE_CONTROLLING,
		.dtls_role = n->dtls_role == NEGOTIATED_DTLS_CLIENT ? DTLS_CLIENT : DTLS_SERVER,
		.local = p->credentials,
		.identity = p->ground->identity,
		.engine = p->ground->engine,
		.tie_breaker = random_u64(),
		.keep_keys = p->config.keep_keys,
	};

	if (strlen(n->remote_ufrag) > ICE_UFRAG_MAX_BYTES ||
	    strlen(n->remote_pwd) > ICE_PWD_MAX_BYTES)
		return -EINVAL;
	memcpy(config.remote.ufrag, n->remote_ufrag, strlen(n->remote_ufrag) + 1);
	memcpy(config.remote.pwd, n->remote_pwd, strlen(n->remote_pwd) + 1);
	if (dtls_fingerprint_parse(&config.fingerprint, n->fingerprints[0].hash,
				   n->fingerprints[0].digest) != 0)
		return -EINVAL;
	random_bytes(config.seed, sizeof(config.seed));
	return transport_create(&p->transport, p->ground->now_us, &config);
}

/* A server that is no relay may learn our address from our checks: ours is the offered one. */
static unsigned add_candidates(struct peer *p)
{
	unsigned added = 0;

	for (unsigned i = 0; i < p->negotiated.candidate_count; i++) {
		struct net_path path = { from_sdp_address(&p->negotiated.candidates[i]), p->local };

		if (net_addr_is_v4(&path.remote) == net_addr_is_v4(&p->local) &&
		    transport_add_remote(p->transport, p->ground->now_us, &path) == 0)
			added++;
	}
	return added;
}

static struct sdp_address find_dialled(const struct peer *p, const struct sdp *answer)
{
	for (unsigned i = 0; i < answer->candidate_count; i++) {
		const struct sdp_candidate *c = &answer->candidates[i];

		if (sdp_candidate_can_be_dialled(c) &&
		    (c->address.family == 4) == net_addr_is_v4(&p->local))
			return c->address;
	}
	return (struct sdp_address){ 0 };
}

static bool read_answer(struct peer *p, const struct signal_result *result)
{
	char reason[ANSWER_REASON_BYTES] = "";
	struct offer_config offer;
	struct sdp_address candidate;
	struct sdp_error error;
	struct sdp *sdp = malloc(sizeof(*sdp));
	bool ok = false;

	to_sdp_address(&p->local, &candidate);
	offer = offer_of(p, &candidate);
	if (!sdp)
		fail(p, "out of memory");
	else if (sdp_parse(sdp, result->body, result->body_bytes, &error) != SDP_OK)
		fail(p, "the answer is no session description: %s", error.text);
	else if (offer_read_answer(&offer, sdp, &p->negotiated, reason) != OFFER_OK)
		fail(p, "%s", reason);
	else
		ok = true;
	if (ok)
		p->dialled = find_dialled(p, sdp);
	free(sdp);
	return ok;
}

/* --- over TCP -------------------------------------------------------------------------- */

static void on_connection_batch(void *arg)
{
	struct peer *p = arg;

	p->ground->now_us = clock_now_us();
}

static void on_connection_open(void *arg, const struct net_path *path)
{
	struct peer *p = arg;

	if (p->state != PEER_CONNECTING)
		return;
	(void)transport_add_remote(p->transport, p->ground->now_us, path); /* its only one */
	poll_transport(p);
	arm(p);
}

static void on_connection_packet(void *arg, const struct net_path *path, uint8_t *bytes, size_t len)
{
	take_packet(arg, path, bytes, len);
}

static void on_connection_end(void *arg, int error)
{
	struct peer *p = arg;

	fail(p, "the TCP connection ended: %s", error ? strerror(error) : "closed by the server");
}

static const struct connection_handlers connection_handlers = {
	on_connection_open,
	on_connection_batch,
	on_connection_packet,
	on_connection_end,
};

static void dial(struct peer *p)
{
	struct net_addr remote = from_sdp_address(&p->dialled);
	int err;

	if (!p->dialled.family) {
		fail(p, "the answer has no TCP candidate that can be reached from here");
		return;
	}
	err = connection_open(&p->connection, p->ground->loop, &remote, &connection_handlers, p);
	if (err)
		fail(p, "TCP: %s", strerror(-err));
}

static void on_answer(struct peer *p, const struct signal_result *result)
{
	int err;

	p->error[0] = '\0'; /* of answers that had it ask again */
	snprintf(p->location, sizeof(p->location), "%s", result->location);
	if (!read_answer(p, result))
		return;
	err = open_transport(p);
	if (err) {
		fail(p, "the answer cannot be used: %s", strerror(-err));
		return;
	}
	p->state = PEER_CONNECTING;
	if (p->ground->is_tcp) {
		dial(p);
	} else if (add_candidates(p) == 0) {
		fail(p, "the answer has no candidate that can be reached from here");
		return;
	}
	poll_transport(p);
	arm(p);
}

/* --- asking ---------------------------------------------------------------------------- */

static void retry(struct peer *p, const struct signal_result *result)
{
	uint64_t wait_us =
	    result->retry_after_s ? result->retry_after_s * UINT64_C(1000000) : p->retry_us;
	/* Some before, some after: those refused together do not come back together. */
	uint64_t due_us = p->ground->now_us + wait_us + random_u64() % (wait_us / 4 + 1);

	if (due_us > p->config.give_up_us) {
		fail(p, "HTTP %ld until the time to join was over", result->status);
		return;
	}
	snprintf(p->error, sizeof(p->error), "waiting, HTTP %ld: %.*s", result->status,
		 (int)strcspn(result->body, "\r\n"), result->body);
	p->retry_us = min_us(p->retry_us * 2, PEER_MAX_RETRY_US);
	p->retry_due_us = due_us;
	arm(p);
}

static void on_result(void *arg, const struct signal_result *result)
{
	struct peer *p = arg;

	p->ground->now_us = clock_now_us();
	if (result->status == 201) {
		on_answer(p, result);
	} else if (result->status == 409 || result->status == 429 || result->status == 503) {
		retry(p, result);
	} else if (result->status == 0) {
		p->is_unreachable = result->is_unreachable;
		fail(p, "%s: %s", p->config.url, result->error);
	} else {
		fail(p, "HTTP %ld: %.*s", result->status, (int)strcspn(result->body, "\r\n"),
		     result->body);
	}
}

static void ask(struct peer *p)
{
	char *text = malloc(OFFER_MAX_BYTES);
	struct sdp_address candidate;
	struct offer_config offer;
	int len = -ENOMEM;

	to_sdp_address(&p->local, &candidate);
	offer = offer_of(p, &candidate);
	if (text)
		len = offer_write(&offer, text, OFFER_MAX_BYTES);
	p->asked_us = clock_now_us();
	if (len < 0 ||
	    signal_post(p->ground->signal, p->config.url, p->config.token, text, on_result, p) != 0)
		fail(p, "out of memory");
	free(text);
}

void peer_start(struct peer *p)
{
	assert(p->state == PEER_NEW);
	p->state = PEER_ASKING;
	ask(p);
}

static void on_deleted(void *arg, const struct signal_result *result)
{
	struct peer *p = arg;

	(void)result;
	p->state = PEER_GONE;
}

void peer_leave(struct peer *p)
{
	signal_forget(p->ground->signal, p);
	p->retry_due_us = p->role_due_us = UINT64_MAX;
	p->state = PEER_GONE;
	if (p->transport) {
		lifetime_close(&p->transport->life, TRANSPORT_CLOSED_BY_CLIENT);
		poll_transport(p);
	}
	if (p->location[0] &&
	    signal_delete(p->ground->signal, p->location, p->config.token, on_deleted, p) == 0)
		p->state = PEER_LEAVING;
	arm(p);
}

int peer_rebind(struct peer *p)
{
	int err;

	assert(!p->ground->is_tcp);
	err = sockets_rebind(p->ground->sockets, p->config.number);
	if (err || !p->transport)
		return err;
	err = transport_recheck(p->transport, p->ground->now_us);
	assert(err == 0);
	poll_transport(p);
	arm(p);
	return 0;
}

/* --- life ------------------------------------------------------------------------------ */

int peer_create(struct peer **out, struct peer_ground *g, const struct peer_config *config)
{
	struct peer *p = calloc(1, sizeof(*p));
	int err;

	*out = NULL;
	if (!p)
		return -ENOMEM;
	p->ground = g;
	p->config = *config;
	p->early_end = &p->early;
	p->transport_due_us = p->role_due_us = p->retry_due_us = UINT64_MAX;
	p->retry_us = PEER_RETRY_US;
	ticker_item_init(&p->item, on_item_due);
	random_text(p->credentials.ufrag, 8);
	random_text(p->credentials.pwd, 24);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS && config->role == OFFER_PUBLISH; kind++) {
		p->ssrcs[kind] = (uint32_t)random_u64() | 1;
		p->rtx_ssrcs[kind] = p->ssrcs[kind] + 1;
	}
	p->local = g->local;
	err = g->is_tcp ? 0 : sockets_add(g->sockets, config->number, &p->local);
	if (err) {
		free(p);
		return err;
	}
	assert(config->number < g->peer_count && !g->peers[config->number]);
	g->peers[config->number] = p;
	*out = p;
	return 0;
}

void peer_destroy(struct peer *p)
{
	if (!p)
		return;
	signal_forget(p->ground->signal, p);
	ticker_arm(&p->ground->ticker, &p->item, UINT64_MAX);
	connection_close(p->connection);
	p->ground->peers[p->config.number] = NULL;
	transport_destroy(p->transport);
	drop_early(p);
	free(p);
}

enum peer_state peer_state(const struct peer *p)
{
	return p->state;
}

const char *peer_error(const struct peer *p)
{
	return p->error;
}

bool peer_is_unreachable(const struct peer *p)
{
	return p->is_unreachable;
}

struct transport *peer_transport(const struct peer *p)
{
	return p->transport;
}

const struct negotiated *peer_negotiated(const struct peer *p)
{
	return &p->negotiated;
}

struct peer_ground *peer_ground(const struct peer *p)
{
	return p->ground;
}

uint64_t peer_asked_us(const struct peer *p)
{
	return p->asked_us;
}

/* --- what they share ------------------------------------------------------------------- */

static void on_batch(void *arg)
{
	struct peer_ground *g = arg;

	g->now_us = clock_now_us();
}

static void on_timer(void *arg)
{
	struct peer_ground *g = arg;

	g->now_us = clock_now_us();
	ticker_run(&g->ticker, g->now_us);
}

/* Every change of a deadline happens within a turn of the loop, so that one timer, set before the
 * loop sleeps, serves all. */
static bool on_turn(void *arg)
{
	struct peer_ground *g = arg;

	loop_timer_arm(g->timer, ticker_due_us(&g->ticker));
	return false;
}

int peer_ground_open(struct peer_ground *g, const struct net_addr *local, uint32_t peers, bool gro)
{
	struct sockets_config sockets = {
		.local = *local,
		.gro = gro,
		.peers = peers,
		.on_datagram = on_datagram,
		.on_batch = on_batch,
		.arg = g,
	};
	int err;

	memset(g, 0, sizeof(*g));
	ticker_init(&g->ticker);
	g->now_us = clock_now_us();
	g->local = *local;
	g->peer_count = peers;
	g->peers = calloc(peers, sizeof(struct peer *));
	err = g->peers ? ticker_reserve(&g->ticker, peers) : -ENOMEM;
	if (!err)
		err = loop_create(&g->loop);
	sockets.loop = g->loop;
	if (!err)
		err = loop_timer_open(g->loop, &g->timer, on_timer, g);
	if (!err)
		err = sockets_create(&g->sockets, &sockets);
	if (!err)
		err = signal_create(&g->signal, g->loop);
	if (!err)
		err = seal_engine_create(&g->engine, SEAL_ENGINE_AUTO);
	if (!err)
		err = dtls_identity_create(&g->identity);
	if (err)
		peer_ground_close(g);
	else
		loop_on_turn(g->loop, on_turn, g);
	return err;
}

void peer_ground_close(struct peer_ground *g)
{
	assert(g->works == 0);
	signal_destroy(g->signal);
	sockets_destroy(g->sockets);
	if (g->timer)
		loop_timer_close(g->timer);
	if (g->loop)
		loop_destroy(g->loop);
	seal_engine_destroy(g->engine);
	dtls_identity_unref(g->identity);
	ticker_fini(&g->ticker);
	free(g->peers);
	memset(g, 0, sizeof(*g));
}
