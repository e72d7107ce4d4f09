/* server/session.c - see session.h for the contract. */
#include "server/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/random.h"
#include "pool/lines.h"
#include "server/plain.h"
#include "server/publisher.h"
#include "server/viewer.h"
#include "server/worker_tcp.h"

enum { FIRST_SESSIONS = 64, SPARE_TIMERS = 8 };

static void poll(struct session *s);
static void arm(struct session *s);

/* --- places ------------------------------------------------------------------------------ */

static bool grow_sessions(struct worker *w)
{
	uint32_t cap = w->session_cap ? w->session_cap * 2 : FIRST_SESSIONS;
	struct session_slot *slots = realloc(w->sessions, cap * sizeof(*slots));

	if (!slots)
		return false;
	w->sessions = slots;
	for (uint32_t i = cap; i-- > w->session_cap;) {
		slots[i] = (struct session_slot){ .generation = 1, .next_free = w->session_free };
		w->session_free = i;
	}
	w->session_cap = cap;
	return true;
}

/* Timers of sessions, of branches (never more than sessions), of the worker itself. */
static bool reserve_timers(struct worker *w)
{
	return ticker_reserve(&w->ticker, w->session_cap * 2 + SPARE_TIMERS) == 0;
}

static struct session *take_place(struct worker *w)
{
	struct session *s;
	uint32_t slot;

	if (w->session_free == UINT32_MAX && !grow_sessions(w))
		return NULL;
	if (!reserve_timers(w))
		return NULL;
	s = lines_calloc(sizeof(*s));
	if (!s)
		return NULL;
	s->end_letter = calloc(1, sizeof(*s->end_letter));
	if (!s->end_letter) {
		free(s);
		return NULL;
	}
	slot = w->session_free;
	w->session_free = w->sessions[slot].next_free;
	w->sessions[slot].session = s;
	s->worker = w;
	s->slot = slot;
	s->generation = w->sessions[slot].generation;
	return s;
}

static void give_place(struct session *s)
{
	struct session_slot *slot = &s->worker->sessions[s->slot];

	slot->session = NULL;
	slot->generation++;
	slot->next_free = s->worker->session_free;
	s->worker->session_free = s->slot;
	free(s->end_letter);
	free(s);
}

/* --- claim ------------------------------------------------------------------------------- */

static void on_timer(struct ticker_item *item, uint64_t now_us)
{
	struct session *s = container_of(item, struct session, timer);

	s->worker->now_us = now_us;
	if (s->role_due_us <= now_us) {
		s->role_due_us = UINT64_MAX;
		if (s->publisher)
			publisher_on_due(s->publisher);
		else if (s->viewer)
			viewer_on_due(s->viewer);
	}
	if (s->transport_due_us <= now_us)
		transport_on_timeout(s->transport, now_us);
	poll(s);
}

static int open_transport(struct session *s)
{
	struct plan *p = s->plan;
	struct transport_config config = {
		.ice_role = ICE_LITE,
		.dtls_role = p->dtls_role,
		.fingerprint = p->fingerprint,
		.identity = p->identity,
		.engine = s->worker->engine,
	};
	int err;

	pthread_mutex_lock(&p->lock);
	config.local = p->local;
	config.remote = p->remote;
	pthread_mutex_unlock(&p->lock);
	random_bytes(config.seed, sizeof(config.seed));
	err =
	    p->plain ? plain_open(s) : transport_create(&s->transport, s->worker->now_us, &config);
	explicit_bzero(&config, sizeof(config));
	return err;
}

/* Control learns of the end; the reference on the plan goes with the letter, and so does the feed. */
static void tell_end(struct session *s, uint32_t reason, struct feed *feed)
{
	struct letter *letter = s->end_letter;
	struct plan *plan = s->plan;

	s->end_letter = NULL;
	atomic_store_explicit(&plan->reason, reason, memory_order_relaxed);
	atomic_store_explicit(&plan->state, PLAN_CLOSED, memory_order_release);
	letter->kind = LETTER_ENDED;
	letter->plan = plan;
	letter->feed = feed;
	worker_tell_control(s->worker, letter);
}

struct session *session_claim(struct worker *w, struct plan *plan)
{
	struct session *s;
	uint64_t unclaimed = 0;

	if (w->is_stopping)
		return NULL; /* nobody would end it any more */
	s = take_place(w);
	if (!s)
		return NULL;
	s->plan = plan;
	s->role_due_us = UINT64_MAX;
	ticker_item_init(&s->timer, on_timer);
	if (!atomic_compare_exchange_strong_explicit(&plan->claim, &unclaimed,
						     session_ref_pack(session_ref_of(s)),
						     memory_order_acq_rel, memory_order_acquire)) {
		give_place(s);
		return NULL;
	}
	plan_ref(plan);
	if (open_transport(s)) {
		tell_end(s, TRANSPORT_CLOSED_NO_MEMORY, NULL);
		give_place(s);
		return NULL;
	}
	atomic_store_explicit(&plan->state, PLAN_CONNECTING, memory_order_relaxed);
	w->session_count++;
	counter_set(&w->counters.sessions, w->session_count);
	counter_add(&w->counters.sessions_opened, 1);
	worker_keep_house(w);
	poll(s);
	return s;
}

/* --- addresses --------------------------------------------------------------------------- */

static void drop_addr(struct session *s, unsigned i)
{
	struct session_addr gone = s->addrs[i];

	s->addr_count--;
	memmove(s->addrs + i, s->addrs + i + 1, (s->addr_count - i) * sizeof(gone));
	if (gone.addr.connection)
		worker_tcp_release(s->worker, gone.addr.connection, session_ref_of(s));
	else if (gone.worker == s->worker->index)
		worker_drop_address(s->worker, &gone.addr, session_ref_of(s));
	else
		worker_forget(s->worker, gone.worker, &gone.addr, session_ref_of(s));
}

/* The selected address stays; of the others the longest known goes. */
static void make_addr_room(struct session *s)
{
	unsigned oldest = 0;

	if (s->addr_count < SESSION_MAX_ADDRS)
		return;
	if (net_addr_is_equal(&s->addrs[0].addr, &s->transport->path.remote))
		oldest = 1;
	drop_addr(s, oldest);
}

static void note_addr(struct session *s, const struct net_addr *addr, unsigned worker)
{
	for (unsigned i = 0; i < s->addr_count; i++) {
		if (!net_addr_is_equal(&s->addrs[i].addr, addr))
			continue;
		if (s->addrs[i].worker == worker)
			return;
		drop_addr(s, i);
		break;
	}
	make_addr_room(s);
	s->addrs[s->addr_count++] = (struct session_addr){ *addr, (uint8_t)worker };
}

static void on_validated(struct session *s, const struct net_addr *addr)
{
	struct worker *w = s->worker;

	if (addr->connection) {
		note_addr(s, addr, w->index);
		return;
	}
	/* Known through another worker: its datagrams come from there. */
	for (unsigned i = 0; i < s->addr_count; i++)
		if (s->addrs[i].worker != w->index && net_addr_is_equal(&s->addrs[i].addr, addr))
			return;
	if (worker_know_address(w, addr, session_ref_of(s)))
		note_addr(s, addr, w->index);
}

static void on_invalidated(struct session *s, const struct net_addr *addr)
{
	for (unsigned i = 0; i < s->addr_count; i++) {
		if (net_addr_is_equal(&s->addrs[i].addr, addr)) {
			drop_addr(s, i);
			return;
		}
	}
}

/* --- what people are shown ------------------------------------------------------------- */

static bool has_udp_address(const struct session *s)
{
	for (unsigned i = 0; i < s->addr_count; i++)
		if (!s->addrs[i].addr.connection)
			return true;
	return false;
}

/* What there is to say should it not connect. */
static void show_progress(struct session *s)
{
	struct transport_status status;
	struct diagnosis_seen seen;

	transport_status(s->transport, &status);
	seen = (struct diagnosis_seen){
		.peer = status.peer,
		.checks = status.checks,
		.bad_checks = status.bad_credentials,
		.mismatches = status.dtls.fingerprint_mismatches,
		.progress = status.dtls.progress,
		.error = status.dtls.error,
		.has_handshake = status.dtls.bytes > 0,
		.is_proven = status.is_peer_proven,
		.is_over_tcp = s->addr_count && !has_udp_address(s),
		.has_alert = status.dtls.has_alert,
		.is_alert_authentic = status.dtls.is_alert_authentic,
		.alert = status.dtls.alert,
	};
	pthread_mutex_lock(&s->plan->lock);
	s->plan->seen = seen;
	pthread_mutex_unlock(&s->plan->lock);
}

/* For people: the API shows where a session's media goes, and how it is protected. */
static void show_path(struct session *s)
{
	struct transport_status status;

	transport_status(s->transport, &status);
	pthread_mutex_lock(&s->plan->lock);
	s->plan->path = s->transport->path;
	s->plan->profile = status.profile;
	pthread_mutex_unlock(&s->plan->lock);
}

/* --- end --------------------------------------------------------------------------------- */

static void forget_waiting_work(struct session *s)
{
	struct worker *w = s->worker;

	for (struct session **at = &w->want_work; *at; at = &(*at)->next_work) {
		if (*at != s)
			continue;
		*at = s->next_work;
		if (!*at)
			w->want_work_tail = at;
		counter_add(&w->counters.handshakes_waiting, (uint64_t)-1);
		return;
	}
}

static struct feed *end_role(struct session *s)
{
	struct feed *feed = NULL;

	if (s->viewer) {
		viewer_destroy(s->viewer);
		counter_add(&s->worker->counters.viewers, (uint64_t)-1);
	}
	if (s->publisher)
		feed = publisher_destroy(s->publisher);
	s->viewer = NULL;
	s->publisher = NULL;
	return feed;
}

/* The transport is closed and has said what it had to say: everything of the session goes. */
static void take_down(struct session *s)
{
	struct worker *w = s->worker;
	uint32_t reason = lifetime_reason(&s->transport->life);
	struct feed *feed;

	if (!s->publisher && !s->viewer)
		show_progress(s);
	feed = end_role(s);
	while (s->addr_count)
		drop_addr(s, s->addr_count - 1u);
	if (s->is_work_wanted) {
		forget_waiting_work(s);
		transport_work_cancel(s->transport);
	}
	ticker_arm(&w->ticker, &s->timer, UINT64_MAX);
	plain_close(s);
	lifetime_acknowledge(&s->transport->life);
	transport_destroy(s->transport);
	w->session_count--;
	counter_set(&w->counters.sessions, w->session_count);
	counter_add(&w->counters.session_bytes, (uint64_t)0 - s->bytes);
	tell_end(s, reason, feed);
	give_place(s);
}

void session_end(struct session *s, enum transport_reason reason)
{
	struct transport_output out;

	if (s->viewer && !lifetime_is_closed(&s->transport->life))
		viewer_say_bye(s->viewer);
	lifetime_close(&s->transport->life, reason);
	for (;;) {
		transport_poll(s->transport, s->worker->now_us, &out);
		if (out.kind == TRANSPORT_TRANSMIT)
			worker_send(s->worker, &out.path, out.bytes, out.len, s->slot);
		else
			break; /* closed, or waiting for a step that nobody waits for any more */
	}
	take_down(s);
}

/* --- handshake steps --------------------------------------------------------------------- */

struct work {
	struct worker *worker;
	struct transport *transport; /* kept alive by itself until the step is done */
	struct session_ref session;
};

static void run_work(void *arg)
{
	struct work *work = arg;

	transport_work_run(work->transport);
}

static void on_work_done(void *arg)
{
	struct work *work = arg;
	struct worker *w = work->worker;
	bool is_alive;

	worker_begin(w);
	w->works_running--;
	is_alive = transport_work_done(work->transport, w->now_us);
	if (is_alive) {
		struct session *s = worker_session(w, work->session);

		assert(s);
		s->is_work_running = false;
		poll(s);
	}
	free(work);
	session_start_waiting_work(w);
	counter_set(&w->counters.handshakes, w->works_running);
}

static void start_work(struct session *s)
{
	struct worker *w = s->worker;
	struct work *work = calloc(1, sizeof(*work));

	s->is_work_running = true;
	w->works_running++;
	counter_set(&w->counters.handshakes, w->works_running);
	if (work) {
		*work = (struct work){ w, s->transport, session_ref_of(s) };
		if (loop_submit(w->loop, run_work, on_work_done, work) == 0)
			return;
	}
	/* No memory for helping: do the step here, late rather than never. */
	free(work);
	transport_work_run(s->transport);
	w->works_running--;
	counter_set(&w->counters.handshakes, w->works_running);
	s->is_work_running = false;
	transport_work_done(s->transport, w->now_us);
	/* Nobody may be polling it just now. */
	s->transport_due_us = w->now_us;
	arm(s);
}

void session_start_waiting_work(struct worker *w)
{
	uint32_t limit = w->shared->config->limits.handshakes_per_worker;

	while (w->want_work && w->works_running < limit) {
		struct session *s = w->want_work;

		w->want_work = s->next_work;
		if (!w->want_work)
			w->want_work_tail = &w->want_work;
		counter_add(&w->counters.handshakes_waiting, (uint64_t)-1);
		s->is_work_wanted = false;
		start_work(s);
	}
}

static void want_work(struct session *s)
{
	struct worker *w = s->worker;

	s->is_work_wanted = true;
	s->next_work = NULL;
	*w->want_work_tail = s;
	w->want_work_tail = &s->next_work;
	counter_add(&w->counters.handshakes_waiting, 1);
	session_start_waiting_work(w);
}

/* --- events ------------------------------------------------------------------------------ */

static void on_connected(struct session *s)
{
	struct worker *w = s->worker;
	struct plan *plan = s->plan;
	struct letter *letter;

	atomic_store_explicit(&plan->state, PLAN_CONNECTED, memory_order_relaxed);
	atomic_store_explicit(&plan->has_connected, true, memory_order_relaxed);
	if (plan->role == PLAN_VIEWER) {
		if (viewer_create(&s->viewer, s))
			lifetime_close(&s->transport->life, TRANSPORT_CLOSED_NO_MEMORY);
		else
			counter_add(&w->counters.viewers, 1);
		return;
	}
	letter = calloc(1, sizeof(*letter));
	if (!letter || publisher_create(&s->publisher, s)) {
		free(letter);
		lifetime_close(&s->transport->life, TRANSPORT_CLOSED_NO_MEMORY);
		return;
	}
	letter->kind = LETTER_CONNECTED;
	letter->plan = plan_ref(plan);
	letter->to = session_ref_of(s);
	worker_tell_control(w, letter);
}

/* @return false: the session is gone */
static bool on_event(struct session *s, const struct transport_output *out)
{
	switch (out->event) {
	case TRANSPORT_VALIDATED:
		on_validated(s, &out->path.remote);
		return true;
	case TRANSPORT_INVALIDATED:
		on_invalidated(s, &out->path.remote);
		return true;
	case TRANSPORT_CONNECTED:
		show_progress(s);
		show_path(s);
		on_connected(s);
		return true;
	case TRANSPORT_PATH_CHANGED:
		show_progress(s);
		show_path(s); /* session_socket() follows by itself */
		if (s->publisher)
			publisher_on_moved(s->publisher);
		else if (s->viewer)
			viewer_on_moved(s->viewer);
		return true;
	case TRANSPORT_CLOSED:
		take_down(s);
		return false;
	}
	return true;
}

static void arm(struct session *s)
{
	uint64_t due_us =
	    s->transport_due_us < s->role_due_us ? s->transport_due_us : s->role_due_us;

	if (due_us != s->timer.due_us)
		ticker_arm(&s->worker->ticker, &s->timer, due_us);
}

/* Everything that the transport wants now. The session may be gone after. */
static void poll(struct session *s)
{
	struct transport_output out;

	for (;;) {
		transport_poll(s->transport, s->worker->now_us, &out);
		switch (out.kind) {
		case TRANSPORT_TRANSMIT:
			worker_send(s->worker, &out.path, out.bytes, out.len, s->slot);
			break;
		case TRANSPORT_NOTIFY:
			if (!on_event(s, &out))
				return;
			break;
		case TRANSPORT_WORK:
			want_work(s);
			break;
		case TRANSPORT_IDLE:
			s->transport_due_us = out.deadline_us;
			if (!s->publisher && !s->viewer)
				show_progress(s);
			arm(s);
			return;
		}
	}
}

void session_measure(struct session *s)
{
	struct transport_status status;
	size_t bytes = sizeof(*s);

	transport_status(s->transport, &status);
	bytes += status.bytes;
	if (s->viewer)
		bytes += viewer_bytes(s->viewer);
	if (s->publisher)
		bytes += publisher_bytes(s->publisher);
	counter_add(&s->worker->counters.session_bytes, bytes - s->bytes);
	s->bytes = bytes;
}

void session_arm_role(struct session *s, uint64_t due_us)
{
	s->role_due_us = due_us;
	arm(s);
}

struct worker_socket *session_socket(struct session *s)
{
	if (!s->socket || s->path_serial != s->transport->path_serial) {
		s->path_serial = s->transport->path_serial;
		s->socket = worker_socket_for(s->worker, &s->transport->path);
	}
	return s->socket;
}

/* RTCP over the path in use, thousands a second, gives the transport nothing to do: what it waits for
 * is only put off. */
static bool may_have_news(struct session *s, const struct net_path *path)
{
	return !net_addr_is_equal(&path->remote, &s->transport->path.remote) ||
	       lifetime_is_closed(&s->transport->life);
}

void session_on_datagram(struct session *s, const struct net_path *path, struct slab *slab)
{
	struct worker *w = s->worker;
	size_t len = slab->len;
	uint64_t index;
	enum transport_verdict verdict =
	    transport_on_datagram(s->transport, w->now_us, path, slab->data, &len, &index);

	slab->len = (uint16_t)len;
	counter_add(&w->counters.verdicts[verdict], 1);
	switch (verdict) {
	case TRANSPORT_RTP:
		if (s->publisher)
			publisher_on_rtp(s->publisher, slab);
		else
			slab_put(w->pool, slab);
		return;
	case TRANSPORT_RTCP:
		if (s->publisher)
			publisher_on_rtcp(s->publisher, slab->data, len);
		else if (s->viewer)
			viewer_on_rtcp(s->viewer, slab->data, len);
		break;
	case TRANSPORT_DROP_STUN_CREDENTIALS:
		if (path->remote.connection)
			break; /* it is this session's or nobody's */
		/* Its address may serve another session of the same client by now. */
		worker_on_stranger(w, path, slab, session_ref_pack(session_ref_of(s)));
		return;
	case TRANSPORT_DROP_SRTP_AUTH:
		counter_add(&s->plan->stats.srtp_failures, 1);
		break;
	default:
		break;
	}
	slab_put(w->pool, slab);
	if (verdict == TRANSPORT_CONSUMED || (verdict == TRANSPORT_RTCP && may_have_news(s, path)))
		poll(s);
}

void session_on_plain(struct session *s, struct direct_port port, const struct net_path *path,
		      struct slab *slab)
{
	struct worker *w = s->worker;
	struct session_ref ref = session_ref_of(s);
	enum transport_verdict verdict =
	    direct_on_datagram(s->transport, w->now_us, port, path, slab->data, slab->len);

	counter_add(&w->counters.verdicts[verdict], 1);
	if (verdict == TRANSPORT_RTP || verdict == TRANSPORT_RTCP)
		poll(s); /* the first packet makes the publisher */
	s = worker_session(w, ref);
	if (s && verdict == TRANSPORT_RTP && s->publisher) {
		if (publisher_is_fed(s->publisher))
			publisher_on_rtp(s->publisher, slab);
		else
			plain_hold(s, slab);
		return;
	}
	if (s && verdict == TRANSPORT_RTCP && s->publisher)
		publisher_on_rtcp(s->publisher, slab->data, slab->len);
	else if (s && verdict == TRANSPORT_RTCP && s->viewer)
		viewer_on_rtcp(s->viewer, slab->data, slab->len);
	slab_put(w->pool, slab);
}

void session_on_feed(struct session *s)
{
	struct slab *slab;

	while ((slab = plain_release(s)) != NULL)
		publisher_on_rtp(s->publisher, slab);
}

void session_send_rtcp(struct session *s, unsigned kinds, uint8_t *bytes, size_t len, size_t cap)
{
	int sealed;

	if (s->plain) {
		plain_send_rtcp(s, kinds, bytes, len);
		return;
	}
	sealed = seal_rtcp(s->worker->engine, s->transport->tx, bytes, len, cap);
	if (sealed > 0)
		worker_send(s->worker, &s->transport->path, bytes, (size_t)sealed, s->slot);
}

static bool has_addr(const struct session *s, const struct net_addr *addr)
{
	for (unsigned i = 0; i < s->addr_count; i++)
		if (net_addr_is_equal(&s->addrs[i].addr, addr))
			return true;
	return false;
}

void session_meet_again(struct session *s, const struct net_path *path, struct slab *slab)
{
	struct worker *w = s->worker;
	struct session_ref ref = session_ref_of(s);

	session_on_datagram(s, path, slab);
	s = worker_session(w, ref);
	/* An address that was validated long ago makes no event: somebody who wrote it on his own
	 * checks would keep it. */
	if (s && has_addr(s, &path->remote) && worker_know_address(w, &path->remote, ref))
		note_addr(s, &path->remote, w->index);
}

void session_on_forwarded(struct session *s, const struct net_path *path, struct slab *slab,
			  unsigned from)
{
	note_addr(s, &path->remote, from);
	memset(slab->meta, 0, sizeof(slab->meta));
	session_on_datagram(s, path, slab);
}

void session_on_lost(struct session *s, const struct net_addr *addr)
{
	on_invalidated(s, addr);
	transport_on_lost(s->transport, s->worker->now_us, addr);
	poll(s);
}

void session_on_stuck(struct session *s, const struct net_addr *addr)
{
	if (net_addr_is_equal(&s->transport->path.remote, addr))
		session_end(s, TRANSPORT_CLOSED_STUCK);
	else
		session_on_lost(s, addr);
}

void session_restart(struct session *s, const struct ice_credentials *local,
		     const struct ice_credentials *remote)
{
	transport_ice_restart(s->transport, s->worker->now_us, local, remote);
	poll(s);
}
