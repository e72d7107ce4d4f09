/* server/worker.c - see worker.h and worker_inner.h for the contract. */
#include "server/worker.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/random.h"
#include "net/stun.h"
#include "server/branch.h"
#include "server/pass.h"
#include "server/plain.h"
#include "server/publisher.h"
#include "server/session.h"
#include "server/worker_inner.h"
#include "server/worker_tcp.h"

enum {
	MEDIA_RING_SLOTS = 8192,
	DATAGRAM_RING_SLOTS = 1024,
	RECEIVE_BATCHES = 8,     /* of UDP_BATCH_PKTS a socket and turn, then the others' turn */
	RING_BUDGET_PKTS = 1024, /* taken from one ring a turn */
	STARVED_RETRY_US = 1000,
};

/* --- sending ---------------------------------------------------------------------------- */

static void note_failures(struct worker *w, struct worker_socket *s)
{
	struct egress_failure failure;

	while (egress_take_failure(s->egress, &failure)) {
		struct session *session = NULL;

		if (failure.owner < w->session_cap)
			session = w->sessions[failure.owner].session;
		if (session)
			counter_add(&session->plan->stats.send_failures, 1);
	}
}

bool worker_flush(struct worker *w, struct worker_socket *s)
{
	enum egress_status status;

	pass_finish(w); /* what lies in the arena must be sealed before it leaves */
	if (egress_is_empty(s->egress))
		return true;
	status = egress_flush(s->egress, w->now_us);
	note_failures(w, s);
	if (!s->udp)
		return true; /* connections keep what does not leave */
	s->is_blocked = status != EGRESS_DONE;
	loop_watch_set(s->watch,
		       LOOP_READABLE | (status == EGRESS_BLOCKED ? (unsigned)LOOP_WRITABLE : 0));
	if (status == EGRESS_STARVED)
		ticker_arm_sooner(&w->ticker, &w->starved, w->now_us + STARVED_RETRY_US);
	return status == EGRESS_DONE;
}

struct worker_socket *worker_socket_for(struct worker *w, const struct net_path *path)
{
	bool v4 = net_addr_is_v4(&path->remote);
	struct worker_socket *wildcard = NULL;

	if (path->remote.connection)
		return worker_tcp_socket(w);
	if (path->remote.port == 0)
		return NULL; /* the connection that it was is lost */
	for (unsigned i = 0; i < w->socket_count; i++) {
		struct worker_socket *s = &w->sockets[i];
		const struct net_addr *bound = udp_local(s->udp);

		if (udp_is_v4(s->udp) != v4)
			continue;
		if (path->local.port && bound->port != path->local.port)
			continue;
		if (net_addr_is_same_ip(bound, &path->local))
			return s;
		if (net_addr_is_any(bound))
			wildcard = s;
	}
	return wildcard;
}

void worker_send(struct worker *w, const struct net_path *path, const uint8_t *bytes, size_t len,
		 uint32_t owner)
{
	worker_send_over(w, worker_socket_for(w, path), path, bytes, len, owner);
}

void worker_send_over(struct worker *w, struct worker_socket *s, const struct net_path *path,
		      const uint8_t *bytes, size_t len, uint32_t owner)
{
	uint8_t *place = NULL;

	if (s && !s->is_blocked) {
		egress_cut(s->egress); /* not a segment of whatever came before */
		place = egress_append(s->egress, path, len, owner);
		if (!place && worker_flush(w, s))
			place = egress_append(s->egress, path, len, owner);
	}
	if (!place) {
		counter_add(&w->counters.egress_control_drops, 1);
		return;
	}
	memcpy(place, bytes, len);
	egress_cut(s->egress);
}

static void on_starved_due(struct ticker_item *item, uint64_t now_us)
{
	struct worker *w = container_of(item, struct worker, starved);

	w->now_us = now_us;
	for (unsigned i = 0; i < w->socket_count; i++)
		if (w->sockets[i].is_blocked)
			worker_flush(w, &w->sockets[i]);
}

/* --- sessions ---------------------------------------------------------------------------- */

struct session *worker_session(struct worker *w, struct session_ref ref)
{
	if (ref.slot >= w->session_cap || w->sessions[ref.slot].generation != ref.generation)
		return NULL;
	return w->sessions[ref.slot].session;
}

struct branch *worker_branch(struct worker *w, uint32_t slot, uint32_t generation)
{
	if (slot >= w->branch_cap || w->branches[slot].generation != generation)
		return NULL;
	return w->branches[slot].branch;
}

void worker_branch_ready(struct worker *w, struct branch *b)
{
	if (b->is_ready)
		return;
	b->is_ready = true;
	b->next_ready = NULL;
	*w->ready_tail = b;
	w->ready_tail = &b->next_ready;
}

/* --- receiving --------------------------------------------------------------------------- */

/* A session of another worker: hand the datagram over. @return false: no room, it is dropped */
static bool forward(struct worker *w, struct session_ref owner, const struct net_path *path,
		    struct slab *slab)
{
	struct worker *other = w->shared->team[owner.worker];
	struct forwarded *f = (struct forwarded *)(void *)slab->meta;

	*f = (struct forwarded){
		.path = *path,
		.slot = owner.slot,
		.generation = owner.generation,
		.from = (uint8_t)w->index,
	};
	if (!ring_put(other->datagrams_in[w->index], slab)) {
		counter_add(&w->counters.forwarded_drops, 1);
		slab_put(w->pool, slab);
		return false;
	}
	counter_add(&w->counters.forwarded, 1);
	worker_wake_later(w, owner.worker);
	return true;
}

bool worker_know_address(struct worker *w, const struct net_addr *addr, struct session_ref owner)
{
	struct session_ref before;
	bool was_forward = addrtable_find(w->addrs, addr, &before) && before.worker != w->index;

	if (addrtable_set(w->addrs, addr, owner))
		return false;
	w->forward_count += owner.worker != w->index;
	w->forward_count -= was_forward;
	counter_set(&w->counters.forwards, w->forward_count);
	return true;
}

void worker_drop_address(struct worker *w, const struct net_addr *addr, struct session_ref owner)
{
	uint32_t before = addrtable_count(w->addrs);

	addrtable_remove(w->addrs, addr, owner);
	if (owner.worker == w->index)
		return;
	w->forward_count -= before - addrtable_count(w->addrs);
	counter_set(&w->counters.forwards, w->forward_count);
}

/* Authentic STUN from an address this worker does not know, for a session that has an owner. */
static void meet_again(struct worker *w, struct session_ref owner, const struct net_path *path,
		       struct slab *slab)
{
	if (owner.worker == w->index) {
		struct session *s = worker_session(w, owner);

		if (s)
			session_meet_again(s, path, slab);
		else
			slab_put(w->pool, slab);
		return;
	}
	/* The owner has the entry removed one day, so it must learn of it: only if this arrives. */
	(void)worker_know_address(w, &path->remote, owner);
	if (!forward(w, owner, path, slab))
		worker_drop_address(w, &path->remote, owner);
}

static void on_authentic_stranger(struct worker *w, struct plan *plan, const struct net_path *path,
				  struct slab *slab)
{
	uint64_t claim = atomic_load_explicit(&plan->claim, memory_order_acquire);
	struct session *s;

	if (claim == 0) {
		s = session_claim(w, plan);
		if (s) {
			session_on_datagram(s, path, slab);
			return;
		}
		claim = atomic_load_explicit(&plan->claim, memory_order_acquire);
	}
	if (claim == 0 || claim == PLAN_GONE)
		slab_put(w->pool, slab);
	else
		meet_again(w, session_ref_unpack(claim), path, slab);
}

struct plan *worker_vouch(struct worker *w, const struct net_addr *from, const uint8_t *bytes,
			  size_t len)
{
	char pwd[ICE_PWD_MAX_BYTES + 1];
	struct plan *plan;
	const char *ufrag;
	size_t ufrag_bytes;

	if (!stun_is_message(bytes, len) || !stun_peek_username(bytes, len, &ufrag, &ufrag_bytes)) {
		counter_add(&w->counters.strangers_not_stun, 1);
		return NULL;
	}
	if (!strangers_may_try(w->strangers, from, w->now_us)) {
		counter_add(&w->counters.strangers_limited, 1);
		return NULL;
	}
	plan = directory_find(w->shared->directory, ufrag, ufrag_bytes, pwd);
	if (!plan || !stun_check_integrity(bytes, len, pwd)) {
		if (plan)
			atomic_fetch_add_explicit(&plan->bad_checks, 1, memory_order_relaxed);
		counter_add(plan ? &w->counters.strangers_bad_integrity
				 : &w->counters.strangers_unknown,
			    1);
		strangers_charge(w->strangers, from, w->now_us);
		plan_unref(plan);
		plan = NULL;
	}
	explicit_bzero(pwd, sizeof(pwd));
	return plan;
}

/* STUN alone may come from an address nobody knows, and only if its integrity holds. */
void worker_on_stranger(struct worker *w, const struct net_path *path, struct slab *slab,
			uint64_t refused_by)
{
	struct plan *plan = worker_vouch(w, &path->remote, slab->data, slab->len);

	if (!plan || (refused_by && atomic_load(&plan->claim) == refused_by))
		slab_put(w->pool,
			 slab); /* the latter: former credentials of the very same session */
	else
		on_authentic_stranger(w, plan, path, slab);
	plan_unref(plan);
}

/* Does a Binding request name the session its address stands for? A client may use its port for
 * a new session while the table still holds the old one. */
static bool names_another(struct worker *w, struct session_ref owner, const struct slab *slab)
{
	char pwd[ICE_PWD_MAX_BYTES + 1];
	struct plan *plan;
	const char *ufrag;
	size_t ufrag_bytes;
	bool another;

	if (!stun_is_first_byte(slab->data[0]) ||
	    !stun_peek_username(slab->data, slab->len, &ufrag, &ufrag_bytes))
		return false;
	plan = directory_find(w->shared->directory, ufrag, ufrag_bytes, pwd);
	explicit_bzero(pwd, sizeof(pwd));
	another = plan && atomic_load_explicit(&plan->claim, memory_order_acquire) !=
			      session_ref_pack(owner);
	plan_unref(plan);
	return another;
}

static void on_datagram(struct worker *w, struct udp_packet *packet)
{
	struct session_ref owner;
	struct session *s;

	if (!addrtable_find(w->addrs, &packet->path.remote, &owner)) {
		worker_on_stranger(w, &packet->path, packet->slab, 0);
		return;
	}
	if (owner.worker != w->index) {
		if (names_another(w, owner, packet->slab))
			worker_on_stranger(w, &packet->path, packet->slab, 0);
		else
			(void)forward(w, owner, &packet->path, packet->slab);
		return;
	}
	s = worker_session(w, owner);
	assert(s);
	session_on_datagram(s, &packet->path, packet->slab);
}

static void on_socket(void *arg, unsigned events)
{
	struct worker_socket *s = arg;
	struct worker *w = s->worker;
	struct udp_packet packets[UDP_BATCH_PKTS];
	bool drained = false;

	worker_begin(w);
	if (events & LOOP_WRITABLE)
		worker_flush(w, s);
	for (unsigned i = 0; i < RECEIVE_BATCHES && !drained; i++) {
		unsigned n = udp_receive(s->udp, w->pool, packets, &drained);

		counter_add(&w->counters.receive_batches, n > 0);
		for (unsigned k = 0; k < n; k++)
			on_datagram(w, &packets[k]);
	}
}

/* --- rings ------------------------------------------------------------------------------- */

static void drain_media(struct worker *w, struct ring *ring)
{
	struct slab *slab;

	for (unsigned i = 0; i < RING_BUDGET_PKTS && (slab = ring_take(ring)) != NULL; i++) {
		const struct media_packet *p = packet_of_const(slab);
		struct branch *b = worker_branch(w, p->stream, p->stream_generation);

		if (b)
			branch_on_packet(b, slab);
		else
			slab_put(w->pool, slab);
	}
}

static void drain_datagrams(struct worker *w, struct ring *ring)
{
	struct slab *slab;

	for (unsigned i = 0; i < RING_BUDGET_PKTS && (slab = ring_take(ring)) != NULL; i++) {
		struct forwarded f = *(struct forwarded *)(void *)slab->meta;
		struct session_ref ref = { (uint8_t)w->index, f.slot, f.generation };
		struct session *s = worker_session(w, ref);

		if (s) {
			session_on_forwarded(s, &f.path, slab, f.from);
			continue;
		}
		/* It ended meanwhile: the sender's entry must go too. */
		slab_put(w->pool, slab);
		worker_forget(w, f.from, &f.path.remote, ref);
	}
}

/* @return true when something is left */
static bool drain_rings(struct worker *w)
{
	bool more = false;

	for (unsigned i = 0; i < w->shared->workers; i++) {
		if (!w->media_in[i])
			continue;
		drain_media(w, w->media_in[i]);
		drain_datagrams(w, w->datagrams_in[i]);
		more |= !ring_is_empty(w->media_in[i]) || !ring_is_empty(w->datagrams_in[i]);
	}
	return more;
}

/* --- the turn ---------------------------------------------------------------------------- */

void worker_begin(struct worker *w)
{
	w->now_us = clock_now_us();
	if (w->turn_began_us == 0)
		w->turn_began_us = w->now_us;
}

static bool is_blocked(const struct worker *w)
{
	for (unsigned i = 0; i < w->socket_count; i++)
		if (w->sockets[i].is_blocked)
			return true;
	return false;
}

static struct branch *pop_ready(struct worker *w)
{
	struct branch *b = w->ready;

	w->ready = b->next_ready;
	if (!w->ready)
		w->ready_tail = &w->ready;
	b->is_ready = false;
	return b;
}

/* @return true when passes are left and can go on at once */
static bool run_passes(struct worker *w)
{
	uint64_t until_us = w->now_us + w->shared->config->media.slice_us;

	while (w->ready && !is_blocked(w)) {
		struct branch *b = w->ready;
		enum pass_status status = pass_run(b, until_us);

		if (status == PASS_BLOCKED)
			return false;
		pop_ready(w);
		if (status == PASS_SLICED || b->wants_pass)
			worker_branch_ready(w, b); /* behind the others */
		if (status == PASS_SLICED) {
			counter_add(&w->counters.slices, 1);
			return true;
		}
		counter_add(&w->counters.passes, 1);
		branch_arm(b);
	}
	return false;
}

static void count_lag(struct worker *w)
{
	worker_count_log2(w->counters.lag_slots, WORKER_LAG_SLOTS,
			  clock_now_us() - w->turn_began_us);
	w->turn_began_us = 0;
}

static void arm_timer(struct worker *w)
{
	uint64_t due_us = ticker_due_us(&w->ticker);

	if (due_us == w->timer_due_us)
		return;
	w->timer_due_us = due_us;
	loop_timer_arm(w->timer, due_us);
}

static void wake_others(struct worker *w)
{
	for (unsigned i = 0; w->to_wake; i++, w->to_wake >>= 1) {
		if (!(w->to_wake & 1))
			continue;
		loop_wake(w->shared->team[i]->waker);
		counter_add(&w->counters.wakeups_sent, 1);
	}
}

static void flush_sockets(struct worker *w)
{
	for (unsigned i = 0; i < w->socket_count; i++)
		if (!w->sockets[i].is_blocked)
			worker_flush(w, &w->sockets[i]);
	if (w->tcp)
		worker_flush(w, worker_tcp_socket(w));
	plain_flush(w);
}

static bool on_turn(void *arg)
{
	struct worker *w = arg;
	bool more;

	if (w->turn_began_us == 0)
		return false; /* nothing happened */
	w->now_us = clock_now_us();
	more = drain_rings(w);
	wake_others(w); /* they need not wait for our passes */
	more |= run_passes(w);
	flush_sockets(w);
	while (worker_tcp_bury(w))
		flush_sockets(w);
	slab_pool_flush(w->pool);
	slab_pool_drain(w->pool);
	worker_relieve_pool(w);
	if (w->is_stopping && w->works_running == 0 && !w->is_stopped) {
		w->is_stopped = true;
		worker_tell_stopped(w);
		loop_stop(w->loop);
	}
	arm_timer(w);
	count_lag(w);
	if (more)
		w->turn_began_us = clock_now_us();
	return more;
}

static void on_timer(void *arg)
{
	struct worker *w = arg;

	worker_begin(w);
	w->timer_due_us = UINT64_MAX; /* it fired: arm anew at the end of the turn */
	ticker_run(&w->ticker, w->now_us);
}

static void on_wake(void *arg)
{
	struct worker *w = arg;

	worker_begin(w);
	worker_read_letters(w);
	/* Rings are drained at the end of every turn. */
}

/* --- life -------------------------------------------------------------------------------- */

static enum seal_engine_kind engine_kind(enum config_srtp_engine engine)
{
	switch (engine) {
	case CONFIG_SRTP_IPSECMB:
		return SEAL_ENGINE_IPSECMB;
	case CONFIG_SRTP_EVP:
		return SEAL_ENGINE_EVP;
	case CONFIG_SRTP_LIBSRTP2:
		return SEAL_ENGINE_LIBSRTP;
	case CONFIG_SRTP_AUTO:
		break;
	}
	return SEAL_ENGINE_AUTO;
}

static int open_socket(struct worker *w, const struct net_addr *listen)
{
	const struct config *c = w->shared->config;
	struct worker_socket *s = &w->sockets[w->socket_count];
	struct udp_options options = {
		.bind = *listen,
		.shared = true,
		.rcvbuf_bytes = c->udp.receive_buffer_bytes,
		.sndbuf_bytes = c->udp.send_buffer_bytes,
	};
	int err = udp_open(&s->udp, &options);

	if (err)
		return err;
	s->worker = w;
	w->socket_count++;
	err = egress_create(&s->egress, udp_fd(s->udp), udp_is_v4(s->udp),
			    w->shared->config->udp.gso && udp_has_gso(s->udp));
	if (err)
		return err;
	err = loop_watch_open(w->loop, &s->watch, udp_fd(s->udp), on_socket, s);
	if (err)
		return err;
	loop_watch_set(s->watch, LOOP_READABLE);
	return 0;
}

static int open_rings(struct worker *w)
{
	int err = 0;

	for (unsigned i = 0; i < w->shared->workers && !err; i++) {
		if (i == w->index)
			continue;
		err = ring_create(&w->media_in[i], MEDIA_RING_SLOTS);
		if (!err)
			err = ring_create(&w->datagrams_in[i], DATAGRAM_RING_SLOTS);
	}
	return err;
}

static int open_loop(struct worker *w)
{
	int err = loop_create(&w->loop);

	if (!err)
		err = loop_timer_open(w->loop, &w->timer, on_timer, w);
	if (!err)
		err = loop_waker_open(w->loop, &w->waker, on_wake, w);
	if (!err)
		err = ticker_reserve(&w->ticker, 3); /* housekeeping, starved sockets, TCP */
	if (!err)
		loop_on_turn(w->loop, on_turn, w);
	return err;
}

static int open_memory(struct worker *w)
{
	const struct config *c = w->shared->config;
	struct slab_pool_config pool = {
		.capacity_slabs = c->pool.packets,
		.high_water_slabs = c->pool.packets / 16,
		.index = w->index,
	};
	int err = slab_pool_create(&w->pool, &pool);

	if (!err)
		err = addrtable_create(&w->addrs, random_u64());
	if (!err)
		err = strangers_create(&w->strangers, c->limits.stun_failures_per_s,
				       c->limits.stun_failures_burst, random_u64());
	if (!err)
		err = pass_batch_create(&w->batch);
	return err;
}

int worker_create(struct worker **out, struct worker_shared *shared, unsigned index,
		  const struct net_addr *listen, unsigned count, char error[128])
{
	struct worker *w = calloc(1, sizeof(*w));
	const char *step = "memory";
	int err = -ENOMEM;

	*out = NULL;
	if (!w)
		goto fail;
	w->shared = shared;
	w->index = index;
	w->session_free = UINT32_MAX;
	w->ready_tail = &w->ready;
	w->want_work_tail = &w->want_work;
	w->timer_due_us = UINT64_MAX;
	mailbox_init(&w->mailbox);
	ticker_init(&w->ticker);
	ticker_item_init(&w->housekeeping, worker_on_housekeeping);
	ticker_item_init(&w->starved, on_starved_due);
	step = "event loop";
	err = open_loop(w);
	if (err)
		goto fail;
	step = "packet pool";
	err = open_memory(w);
	if (err)
		goto fail;
	step = "rings";
	err = open_rings(w);
	if (err)
		goto fail;
	step = "SRTP engine";
	err = seal_engine_create(&w->engine, engine_kind(shared->config->srtp.engine));
	if (err)
		goto fail;
	for (unsigned i = 0; i < count; i++) {
		step = "UDP socket";
		err = open_socket(w, &listen[i]);
		if (err)
			goto fail;
	}
	step = "TCP port";
	err = worker_tcp_create(w);
	if (err)
		goto fail;
	shared->team[index] = w;
	*out = w;
	return 0;

fail:
	snprintf(error, 128, "%s: %s", step, strerror(-err));
	worker_destroy(w);
	return err;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	char name[16];

	snprintf(name, sizeof(name), "sluice-w%u", w->index);
	pthread_setname_np(pthread_self(), name);
	worker_publish(w);
	loop_run(w->loop);
	return NULL;
}

int worker_start(struct worker *w)
{
	int err = pthread_create(&w->thread, NULL, run, w);

	w->is_started = err == 0;
	if (err == 0 && w->shared->config->pin) {
		cpu_set_t cpus;

		CPU_ZERO(&cpus);
		CPU_SET(w->index % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &cpus);
		/* A preference: where it is refused the worker runs anywhere. */
		(void)pthread_setaffinity_np(w->thread, sizeof(cpus), &cpus);
	}
	return -err;
}

void worker_join(struct worker *w)
{
	if (w->is_started)
		pthread_join(w->thread, NULL);
	w->is_started = false;
}

void worker_drain_rings(struct worker *w)
{
	struct slab *slab;

	if (!w)
		return;
	for (unsigned i = 0; i < w->shared->workers; i++) {
		if (!w->media_in[i])
			continue;
		while ((slab = ring_take(w->media_in[i])) != NULL)
			slab_put(w->pool, slab);
		while ((slab = ring_take(w->datagrams_in[i])) != NULL)
			slab_put(w->pool, slab);
	}
	for (unsigned i = 0; i < w->socket_count; i++) {
		udp_close(w->sockets[i].udp, w->pool);
		w->sockets[i].udp = NULL;
	}
	slab_pool_flush(w->pool);
}

void worker_destroy(struct worker *w)
{
	if (!w)
		return;
	worker_discard_letters(w);
	worker_tcp_destroy(w);
	if (w->pool)
		slab_pool_drain(w->pool);
	for (unsigned i = 0; i < WORKER_MAX_SOCKETS; i++) {
		loop_watch_close(w->sockets[i].watch);
		egress_destroy(w->sockets[i].egress);
		if (w->sockets[i].udp)
			udp_close(w->sockets[i].udp, w->pool);
	}
	for (unsigned i = 0; i < STREAM_MAX_WORKERS; i++) {
		ring_destroy(w->media_in[i]);
		ring_destroy(w->datagrams_in[i]);
	}
	loop_timer_close(w->timer);
	loop_waker_close(w->waker);
	loop_destroy(w->loop);
	ticker_arm(&w->ticker, &w->housekeeping, UINT64_MAX);
	ticker_arm(&w->ticker, &w->starved, UINT64_MAX);
	ticker_fini(&w->ticker);
	seal_engine_destroy(w->engine);
	pass_batch_destroy(w->batch);
	addrtable_destroy(w->addrs);
	strangers_destroy(w->strangers);
	slab_pool_destroy(w->pool);
	free(w->sessions);
	free(w->branches);
	free(w);
}

const struct worker_counters *worker_counters(const struct worker *w)
{
	return &w->counters;
}

const char *worker_engine_name(const struct worker *w)
{
	return seal_engine_name(w->engine);
}
