#include "net/transport.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "net/direct.h"
#include "net/dtls_record.h"
#include "net/stun.h"
#include "pool/lines.h"

enum {
	LIVENESS_US = 500 * 1000, /* media is told to the ICE agent at most this often */
};

struct association {
	struct transport t; /* first: what callers hold */
	struct ice_agent *ice;
	struct dtls *dtls; /* NULL until the handshake begins */
	struct seal_engine *engine;
	struct dtls_identity *identity;
	struct dtls_fingerprint fingerprint;
	enum ice_role ice_role;
	enum dtls_role dtls_role;

	struct seal_tx *tx;         /* becomes t.tx once the path is proven */
	struct net_path dtls_path;  /* of the peer's last DTLS datagram that counted */
	struct net_path media_path; /* of the last media that opened */
	bool has_dtls_path, has_dtls_moved;
	bool is_step_running, is_zombie;
	bool has_keys, wants_release, wants_connected;
	bool has_notified_peer, has_told_closed;
	bool keep_keys;
	struct seal_keys kept; /* profile 0: none */

	uint64_t created_us, validated_us, connected_us; /* the last two 0: not yet */
	uint64_t authentic_us, told_ice_us;
	uint8_t close_notify[DTLS_CLOSE_NOTIFY_BYTES];
};

static _Atomic uint32_t live, zombies;

static struct association *of(struct transport *t)
{
	return (struct association *)t;
}

static const struct association *of_const(const struct transport *t)
{
	return (const struct association *)t;
}

static void release(struct association *a)
{
	dtls_destroy(a->dtls);
	dtls_identity_unref(a->identity);
	ice_agent_destroy(a->ice);
	seal_tx_destroy(a->tx);
	seal_rx_destroy(a->t.rx);
	memset(a, 0, sizeof(*a));
	free(a);
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

int transport_create(struct transport **out, uint64_t now_us, const struct transport_config *config)
{
	struct ice_config ice = {
		.role = config->ice_role,
		.local = config->local,
		.remote = config->remote,
		.tie_breaker = config->tie_breaker,
	};
	struct association *a;
	int err;

	*out = NULL;
	a = lines_calloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	memcpy(ice.seed, config->seed, sizeof(ice.seed));
	err = ice_agent_create(&a->ice, now_us, &ice);
	if (err) {
		free(a);
		return err;
	}
	lifetime_init(&a->t.life);
	a->engine = config->engine;
	a->identity = dtls_identity_ref(config->identity);
	a->fingerprint = config->fingerprint;
	a->ice_role = config->ice_role;
	a->dtls_role = config->dtls_role;
	a->created_us = now_us;
	a->keep_keys = config->keep_keys;
	atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	*out = &a->t;
	return 0;
}

void transport_destroy(struct transport *t)
{
	if (!t)
		return;
	if (t->is_direct) {
		direct_destroy(t);
		return;
	}
	assert(!of(t)->is_zombie);
	if (of(t)->is_step_running) {
		of(t)->is_zombie = true;
		atomic_fetch_add_explicit(&zombies, 1, memory_order_relaxed);
		return;
	}
	release(of(t));
}

/* --- the handshake --------------------------------------------------------------------- */

static void close_for(struct association *a, enum transport_reason reason)
{
	lifetime_close(&a->t.life, reason);
}

static const enum transport_reason failure_reasons[] = {
	[DTLS_FAILURE_NONE] = TRANSPORT_CLOSED_NO_DTLS,
	[DTLS_FAILURE_FINGERPRINT] = TRANSPORT_CLOSED_FINGERPRINT,
	[DTLS_FAILURE_PROFILE] = TRANSPORT_CLOSED_NO_PROFILE,
	[DTLS_FAILURE_ALERT] = TRANSPORT_CLOSED_ALERT,
};

static int make_seals(struct association *a)
{
	struct seal_keys tx, rx;
	int err = dtls_keys(a->dtls, &tx, &rx);

	assert(err == 0);
	err = seal_tx_create(&a->tx, a->engine, &tx);
	if (!err)
		err = seal_rx_create(&a->t.rx, a->engine, &rx);
	if (a->keep_keys)
		a->kept = rx;
	memset(&tx, 0, sizeof(tx));
	memset(&rx, 0, sizeof(rx));
	return err;
}

static void on_keys(struct association *a)
{
	a->has_keys = true;
	if (make_seals(a) != 0) {
		close_for(a, TRANSPORT_CLOSED_NO_MEMORY);
		return;
	}
	a->wants_connected = true;
	/* The whole handshake went over one path, so somebody reads there. */
	if (a->has_dtls_path && !a->has_dtls_moved)
		ice_agent_on_proven(a->ice, &a->dtls_path.remote);
	/* The server's Finished, which ends a client's handshake, says that it has all of ours. */
	if (a->dtls_role == DTLS_CLIENT)
		a->wants_release = true;
}

static void after_step(struct association *a)
{
	switch (dtls_state(a->dtls)) {
	case DTLS_HANDSHAKE:
		break;
	case DTLS_CONNECTED:
		if (!a->has_keys)
			on_keys(a);
		break;
	case DTLS_CLOSED:
		close_for(a, TRANSPORT_CLOSED_BY_PEER);
		break;
	case DTLS_FAILED:
		close_for(a, failure_reasons[dtls_failure(a->dtls)]);
		break;
	}
}

static bool has_hello(const uint8_t *bytes, size_t len)
{
	struct dtls_record r;

	while (dtls_record_next(&r, &bytes, &len)) {
		if (r.epoch == 0 && r.content == DTLS_HANDSHAKE_MESSAGE &&
		    dtls_record_messages(&r) == 1u << DTLS_CLIENT_HELLO)
			return true;
	}
	return false;
}

static const enum transport_verdict dtls_verdicts[DTLS_VERDICTS] = {
	[DTLS_QUEUED] = TRANSPORT_CONSUMED,
	[DTLS_MALFORMED] = TRANSPORT_DROP_DTLS_MALFORMED,
	[DTLS_PLAIN_ALERT] = TRANSPORT_DROP_DTLS_PLAIN_ALERT,
	[DTLS_STRAY] = TRANSPORT_DROP_DTLS_STRAY,
	[DTLS_QUEUE_FULL] = TRANSPORT_DROP_DTLS_QUEUE_FULL,
};

static enum transport_verdict on_dtls(struct association *a, const struct net_path *path,
				      const uint8_t *bytes, size_t len)
{
	enum dtls_verdict v;

	if (!a->dtls) {
		if (a->dtls_role == DTLS_CLIENT || !has_hello(bytes, len))
			return TRANSPORT_DROP_DTLS_STRAY;
		if (dtls_create(&a->dtls, a->identity, a->dtls_role, &a->fingerprint) != 0)
			return TRANSPORT_DROP_DTLS_QUEUE_FULL;
	}
	v = dtls_on_datagram(a->dtls, bytes, len);
	if (v != DTLS_QUEUED)
		return dtls_verdicts[v];
	if (a->has_dtls_path && !net_addr_is_equal(&a->dtls_path.remote, &path->remote))
		a->has_dtls_moved = true;
	a->dtls_path = *path;
	a->has_dtls_path = true;
	/* Without a handshake object the datagram was judged at once. */
	if (!a->is_step_running)
		after_step(a);
	return TRANSPORT_CONSUMED;
}

/* A server waits for a ClientHello. A client begins when the peer has nominated, or seems not to
 * be going to; a controlling one knows the peer as soon as a check of its own was answered. */
static uint64_t client_begin_us(const struct association *a)
{
	if (a->dtls || a->dtls_role != DTLS_CLIENT || a->validated_us == 0)
		return UINT64_MAX;
	if (a->ice_role == ICE_CONTROLLING || ice_agent_is_selected(a->ice))
		return 0;
	return a->validated_us + TRANSPORT_NOMINATION_US;
}

static void begin_client(struct association *a, uint64_t now_us)
{
	if (client_begin_us(a) > now_us)
		return;
	if (dtls_create(&a->dtls, a->identity, a->dtls_role, &a->fingerprint) != 0)
		close_for(a, TRANSPORT_CLOSED_NO_MEMORY);
}

void transport_work_run(struct transport *t)
{
	dtls_work(of(t)->dtls);
}

bool transport_work_done(struct transport *t, uint64_t now_us)
{
	struct association *a = of(t);

	(void)now_us;
	assert(a->is_step_running);
	a->is_step_running = false;
	dtls_complete(a->dtls);
	if (a->is_zombie) {
		atomic_fetch_sub_explicit(&zombies, 1, memory_order_relaxed);
		release(a);
		return false;
	}
	if (!lifetime_is_closed(&t->life))
		after_step(a);
	return true;
}

void transport_work_cancel(struct transport *t)
{
	struct association *a = of(t);

	assert(a->is_step_running && !a->is_zombie);
	a->is_step_running = false;
	dtls_cancel(a->dtls);
}

/* --- input ----------------------------------------------------------------------------- */

static const enum transport_verdict stun_verdicts[ICE_VERDICTS] = {
	[ICE_ACCEPTED] = TRANSPORT_CONSUMED,
	[ICE_INDICATION] = TRANSPORT_CONSUMED,
	[ICE_MALFORMED] = TRANSPORT_DROP_STUN_MALFORMED,
	[ICE_BAD_FINGERPRINT] = TRANSPORT_DROP_STUN_MALFORMED,
	[ICE_UNEXPECTED_METHOD] = TRANSPORT_DROP_STUN_OTHER,
	[ICE_UNKNOWN_USER] = TRANSPORT_DROP_STUN_CREDENTIALS,
	[ICE_NO_INTEGRITY] = TRANSPORT_DROP_STUN_CREDENTIALS,
	[ICE_BAD_INTEGRITY] = TRANSPORT_DROP_STUN_CREDENTIALS,
	[ICE_UNKNOWN_ATTRIBUTE] = TRANSPORT_CONSUMED,
	[ICE_ROLE_CONFLICT] = TRANSPORT_CONSUMED,
	[ICE_UNMATCHED] = TRANSPORT_DROP_STUN_OTHER,
	[ICE_WRONG_SOURCE] = TRANSPORT_DROP_STUN_OTHER,
	[ICE_ERROR_RESPONSE] = TRANSPORT_DROP_STUN_OTHER,
	[ICE_OVER] = TRANSPORT_DROP_CLOSED,
};

static const enum transport_verdict seal_verdicts[SEAL_VERDICTS] = {
	[SEAL_OK] = TRANSPORT_RTP,
	[SEAL_MALFORMED] = TRANSPORT_DROP_SRTP_MALFORMED,
	[SEAL_AUTH_FAILED] = TRANSPORT_DROP_SRTP_AUTH,
	[SEAL_REPLAYED] = TRANSPORT_DROP_SRTP_REPLAYED,
	[SEAL_TOO_MANY_SSRCS] = TRANSPORT_DROP_SRTP_SSRCS,
};

/* The address is validated, and what came from it opened: the session lives. */
static void on_authentic(struct association *a, uint64_t now_us, const struct net_path *path)
{
	bool is_same = net_addr_is_equal(&path->remote, &a->media_path.remote);

	a->authentic_us = now_us;
	if (is_same && now_us - a->told_ice_us < LIVENESS_US)
		return;
	a->told_ice_us = now_us;
	a->media_path = *path;
	a->wants_release = true;
	ice_agent_on_authenticated(a->ice, now_us, path);
}

static bool is_validated(const struct association *a, const struct net_path *path)
{
	return ice_agent_is_validated(a->ice, &path->remote);
}

/* RFC 5761 section 4: RTCP's packet types read as RTP payload types 64 to 95. */
static bool is_rtcp(const uint8_t *bytes, size_t len)
{
	return len > 1 && bytes[1] >= 192 && bytes[1] <= 223;
}

static enum transport_verdict on_media(struct association *a, uint64_t now_us,
				       const struct net_path *path, uint8_t *bytes, size_t *len,
				       uint64_t *index)
{
	enum transport_verdict success = is_rtcp(bytes, *len) ? TRANSPORT_RTCP : TRANSPORT_RTP;
	enum seal_verdict v;

	if (!a->t.rx)
		return TRANSPORT_DROP_SRTP_EARLY;
	if (success == TRANSPORT_RTCP)
		v = seal_open_rtcp(a->engine, a->t.rx, bytes, len);
	else
		v = seal_open_rtp(a->engine, a->t.rx, bytes, len, index);
	if (v != SEAL_OK)
		return seal_verdicts[v];
	on_authentic(a, now_us, path);
	return success;
}

static enum transport_verdict on_stun(struct association *a, uint64_t now_us,
				      const struct net_path *path, const uint8_t *bytes, size_t len)
{
	if (!stun_is_message(bytes, len))
		return TRANSPORT_DROP_STUN_MALFORMED;
	return stun_verdicts[ice_agent_on_stun(a->ice, now_us, path, bytes, len)];
}

/* RFC 7983 section 7: who owns which first byte. */
enum protocol { PROTOCOL_NONE, PROTOCOL_STUN, PROTOCOL_DTLS, PROTOCOL_MEDIA };

static enum protocol protocol_of(uint8_t first)
{
	if (first >= 128 && first <= 191)
		return PROTOCOL_MEDIA;
	if (first >= 20 && first <= 63)
		return PROTOCOL_DTLS;
	return first <= 3 ? PROTOCOL_STUN : PROTOCOL_NONE;
}

enum transport_verdict transport_on_datagram(struct transport *t, uint64_t now_us,
					     const struct net_path *path, uint8_t *bytes,
					     size_t *len, uint64_t *index)
{
	struct association *a = of(t);
	enum protocol protocol;

	if (lifetime_is_closed(&t->life))
		return TRANSPORT_DROP_CLOSED;
	protocol = *len > 0 ? protocol_of(bytes[0]) : PROTOCOL_NONE;
	if (protocol == PROTOCOL_NONE)
		return TRANSPORT_DROP_UNKNOWN_PROTOCOL;
	if (protocol == PROTOCOL_STUN)
		return on_stun(a, now_us, path, bytes, *len);
	if (!is_validated(a, path))
		return TRANSPORT_DROP_UNVALIDATED;
	if (protocol == PROTOCOL_DTLS)
		return on_dtls(a, path, bytes, *len);
	return on_media(a, now_us, path, bytes, len, index);
}

static uint64_t setup_deadline_us(const struct association *a)
{
	if (a->validated_us == 0)
		return a->created_us + TRANSPORT_ICE_TIMEOUT_US;
	return a->connected_us == 0 ? a->validated_us + TRANSPORT_DTLS_TIMEOUT_US : UINT64_MAX;
}

void transport_on_timeout(struct transport *t, uint64_t now_us)
{
	struct association *a = of(t);

	if (t->is_direct || lifetime_is_closed(&t->life))
		return;
	ice_agent_on_timeout(a->ice, now_us);
	if (now_us >= setup_deadline_us(a))
		close_for(a, a->validated_us == 0 ? TRANSPORT_CLOSED_NO_ICE
						  : TRANSPORT_CLOSED_NO_DTLS);
}

void transport_on_lost(struct transport *t, uint64_t now_us, const struct net_addr *remote)
{
	struct association *a = of(t);

	ice_agent_on_lost(a->ice, now_us, remote);
	if (a->has_dtls_path && net_addr_is_equal(&a->dtls_path.remote, remote)) {
		a->has_dtls_path = false;
		a->has_dtls_moved = true;
	}
	if (t->path_serial > 0 && net_addr_is_equal(&t->path.remote, remote)) {
		t->path = (struct net_path){ 0 };
		t->path_serial++;
	}
}

int transport_add_remote(struct transport *t, uint64_t now_us, const struct net_path *path)
{
	return ice_agent_add_remote(of(t)->ice, now_us, path);
}

int transport_recheck(struct transport *t, uint64_t now_us)
{
	return ice_agent_recheck(of(t)->ice, now_us);
}

int transport_ice_restart(struct transport *t, uint64_t now_us, const struct ice_credentials *local,
			  const struct ice_credentials *remote)
{
	return ice_agent_restart(of(t)->ice, now_us, local, remote);
}

int transport_kept_keys(const struct transport *t, struct seal_keys *rx)
{
	if (!of_const(t)->keep_keys)
		return -ENOTSUP;
	*rx = of_const(t)->kept;
	return rx->profile ? 0 : -EAGAIN;
}

/* --- output ---------------------------------------------------------------------------- */

static void transmit(struct transport_output *out, const struct net_path *path,
		     const uint8_t *bytes, size_t len)
{
	out->kind = TRANSPORT_TRANSMIT;
	out->path = *path;
	out->bytes = bytes;
	out->len = len;
}

static void notify(struct transport_output *out, enum transport_event event,
		   const struct net_path *path)
{
	out->kind = TRANSPORT_NOTIFY;
	out->event = event;
	out->path = *path;
}

static void idle(struct transport_output *out, uint64_t deadline_us)
{
	out->kind = TRANSPORT_IDLE;
	out->deadline_us = deadline_us;
}

/* DTLS goes back to where it comes from; before anything came, to where ICE points. */
static const struct net_path *dtls_target(const struct association *a)
{
	if (a->has_dtls_path && is_validated(a, &a->dtls_path))
		return &a->dtls_path;
	return ice_agent_path(a->ice);
}

static void poll_closed(struct association *a, struct transport_output *out)
{
	const struct net_path *path = a->t.path.remote.port ? &a->t.path : dtls_target(a);
	size_t n;

	if (a->is_step_running || a->has_told_closed) {
		idle(out, UINT64_MAX);
		return;
	}
	n = path ? transport_close_notify(&a->t, a->close_notify, sizeof(a->close_notify)) : 0;
	if (n > 0) {
		transmit(out, path, a->close_notify, n);
		return;
	}
	a->has_told_closed = true;
	lifetime_acknowledge(&a->t.life);
	notify(out, TRANSPORT_CLOSED, &a->t.path);
	out->reason = (enum transport_reason)lifetime_reason(&a->t.life);
}

/* @return true when `out` was filled; false: DTLS has nothing to do now */
static bool poll_dtls(struct association *a, uint64_t now_us, struct transport_output *out)
{
	const struct net_path *path;
	const uint8_t *bytes;
	size_t len;

	while (a->dtls && !a->is_step_running && !lifetime_is_closed(&a->t.life)) {
		bytes = dtls_next_datagram(a->dtls, &len);
		path = bytes ? dtls_target(a) : NULL;
		if (path) {
			transmit(out, path, bytes, len);
			return true;
		}
		if (bytes)
			continue;
		if (!dtls_wants_step(a->dtls, now_us))
			return false;
		if (dtls_is_step_heavy(a->dtls)) {
			a->is_step_running = true;
			dtls_submit(a->dtls, now_us);
			out->kind = TRANSPORT_WORK;
			return true;
		}
		dtls_step(a->dtls, now_us);
		after_step(a);
	}
	return false;
}

static bool on_ice_event(struct association *a, uint64_t now_us, const struct ice_output *o,
			 struct transport_output *out)
{
	switch (o->notify.event) {
	case ICE_EVENT_VALIDATED:
		if (a->validated_us == 0)
			a->validated_us = now_us;
		notify(out, TRANSPORT_VALIDATED, &o->notify.path);
		return true;
	case ICE_EVENT_DROPPED:
		notify(out, TRANSPORT_INVALIDATED, &o->notify.path);
		return true;
	case ICE_EVENT_EXPIRED:
		close_for(a, TRANSPORT_CLOSED_SILENT);
		return false;
	case ICE_EVENT_SELECTED:
		return false; /* follow_path() sees it */
	}
	return false;
}

/* @return true when `out` was filled; false: *deadline_us is the agent's, or the transport is
 *         closed now */
static bool poll_ice(struct association *a, uint64_t now_us, struct transport_output *out,
		     uint64_t *deadline_us)
{
	struct ice_output o;

	for (;;) {
		o = ice_agent_poll(a->ice);
		if (o.kind == ICE_IDLE) {
			*deadline_us = o.deadline_us;
			return false;
		}
		if (o.kind == ICE_TRANSMIT) {
			transmit(out, &o.transmit.path, o.transmit.bytes, o.transmit.len);
			return true;
		}
		if (on_ice_event(a, now_us, &o, out))
			return true;
	}
}

/* Media starts, or moves. @return true when `out` was filled */
static bool follow_path(struct association *a, uint64_t now_us, struct transport_output *out)
{
	const struct net_path *path = ice_agent_path(a->ice);
	struct transport *t = &a->t;
	bool is_new;

	if (!a->has_keys || !path || !ice_agent_is_proven(a->ice))
		return false;
	is_new = memcmp(path, &t->path, sizeof(*path)) != 0;
	if (is_new) {
		t->path = *path;
		t->path_serial++;
	}
	if (a->wants_connected) {
		a->wants_connected = false;
		a->connected_us = now_us;
		t->tx = a->tx;
		notify(out, TRANSPORT_CONNECTED, path);
		return true;
	}
	if (is_new)
		notify(out, TRANSPORT_PATH_CHANGED, path);
	return is_new;
}

static uint64_t min_us(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void release_handshake(struct association *a)
{
	if (!a->wants_release || !a->dtls || a->is_step_running)
		return;
	a->wants_release = false;
	dtls_release(a->dtls);
}

/* @return false: the transport is closed */
static bool poll_open(struct association *a, uint64_t now_us, struct transport_output *out)
{
	uint64_t deadline_us = UINT64_MAX;

	if (poll_ice(a, now_us, out, &deadline_us))
		return true;
	begin_client(a, now_us);
	if (poll_dtls(a, now_us, out) || follow_path(a, now_us, out))
		return true;
	if (lifetime_is_closed(&a->t.life))
		return false;
	release_handshake(a);
	deadline_us = min_us(deadline_us, min_us(setup_deadline_us(a), client_begin_us(a)));
	if (a->dtls && !a->is_step_running)
		deadline_us = min_us(deadline_us, dtls_deadline_us(a->dtls));
	idle(out, deadline_us);
	return true;
}

void transport_poll(struct transport *t, uint64_t now_us, struct transport_output *out)
{
	struct association *a = of(t);

	memset(out, 0, sizeof(*out));
	if (t->is_direct)
		direct_poll(t, out);
	else if (lifetime_is_closed(&t->life) || !poll_open(a, now_us, out))
		poll_closed(a, out);
}

size_t transport_close_notify(struct transport *t, uint8_t *out, size_t cap)
{
	struct association *a = of(t);

	if (!a->dtls || a->is_step_running || a->has_notified_peer ||
	    (dtls_state(a->dtls) != DTLS_CONNECTED && dtls_state(a->dtls) != DTLS_CLOSED))
		return 0;
	a->has_notified_peer = true;
	return dtls_close_notify(a->dtls, out, cap);
}

/* --- diagnosis ------------------------------------------------------------------------- */

static enum transport_state state_of(const struct association *a)
{
	if (lifetime_is_closed(&a->t.life))
		return TRANSPORT_STATE_CLOSED;
	if (a->connected_us != 0)
		return TRANSPORT_STATE_CONNECTED;
	if (a->dtls)
		return TRANSPORT_STATE_HANDSHAKE;
	return a->validated_us != 0 ? TRANSPORT_STATE_CHECKED : TRANSPORT_STATE_NEW;
}

void transport_status(const struct transport *t, struct transport_status *out)
{
	const struct association *a = of_const(t);
	const struct net_path *path;

	memset(out, 0, sizeof(*out));
	out->state = state_of(a);
	out->reason = (enum transport_reason)lifetime_reason(&t->life);
	out->dtls.cipher = "";
	out->dtls.error = "";
	if (t->is_direct) {
		direct_status(t, out);
		return;
	}
	path = ice_agent_path(a->ice);
	if (path)
		out->peer = path->remote;
	out->is_peer_proven = path && ice_agent_is_proven(a->ice);
	out->checks = ice_agent_count(a->ice, ICE_ACCEPTED);
	out->bad_credentials = (uint64_t)ice_agent_count(a->ice, ICE_UNKNOWN_USER) +
			       ice_agent_count(a->ice, ICE_NO_INTEGRITY) +
			       ice_agent_count(a->ice, ICE_BAD_INTEGRITY);
	out->last_authentic_us = a->authentic_us;
	out->connected_us = a->connected_us;
	out->is_step_running = a->is_step_running;
	out->bytes = sizeof(*a) + ice_agent_bytes();
	if (a->dtls) {
		dtls_status(a->dtls, &out->dtls);
		out->bytes += out->dtls.bytes;
	}
	if (a->has_keys && a->tx && a->t.rx) {
		out->profile = seal_tx_profile(a->tx);
		out->bytes += seal_tx_bytes(a->tx) + seal_rx_bytes(a->t.rx);
	}
}

void transport_count_direct(int change)
{
	atomic_fetch_add_explicit(&live, (uint32_t)change, memory_order_relaxed);
}

void transport_live(struct transport_live *out)
{
	out->transports = atomic_load_explicit(&live, memory_order_relaxed);
	out->zombies = atomic_load_explicit(&zombies, memory_order_relaxed);
}
