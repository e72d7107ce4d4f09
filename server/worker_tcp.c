/* server/worker_tcp.c - see worker_tcp.h for the contract. */
#include "server/worker_tcp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/random.h"
#include "server/session.h"

enum {
	FIRST_LINKS = 64,
	MAX_LINKS = UINT16_MAX + 1,
	IP_BUCKETS = 1024,
	PREFIX_BYTES = 8, /* an IPv6 /64 is one address */
	ACCEPTS = 64,     /* a turn and listener, then the others' turn */
	PACKETS = 64,     /* a turn and connection */
	TICK_US = 1000000,
};

struct listener {
	struct worker *worker;
	struct tcp_listener *tcp;
	struct loop_watch *watch;
};

/* A connection and whose it is. Once doomed it is buried at the end of the turn. */
struct link {
	struct worker *worker;
	struct tcp_connection *connection;
	struct loop_watch *watch;
	struct link *older, *newer; /* of those half open */
	struct link *next_doomed;
	struct session_ref session; /* generation 0: half open */
	uint64_t heard_us;          /* when it was accepted, later: when it last sent a packet */
	uint64_t stuck_us;          /* since when it took nothing of what waits */
	uint16_t number, bucket;
	bool is_doomed, is_counted;
	enum worker_tcp_cause cause;
};

struct worker_tcp {
	struct worker_socket socket; /* its egress leads to sink() */
	struct listener listeners[WORKER_MAX_SOCKETS];
	unsigned listener_count;
	struct link **links; /* by number, a power of two of them; [0] is none */
	uint32_t cap, count, last;
	struct link *oldest, *newest; /* half open */
	uint32_t half_open;
	struct link *doomed;
	uint64_t seed;
	uint16_t half_open_of[IP_BUCKETS]; /* by address; those that collide share a limit */
	struct ticker_item tick;
	bool is_paused; /* no descriptors or memory for more connections: accepted later */
};

static const char *const cause_texts[WORKER_TCP_CAUSES] = {
	[WORKER_TCP_PEER] = "peer",
	[WORKER_TCP_ERROR] = "error",
	[WORKER_TCP_SESSION] = "session_ended",
	[WORKER_TCP_STRANGER] = "stranger",
	[WORKER_TCP_REFUSED] = "refused",
	[WORKER_TCP_OVERSIZED] = "oversized_frame",
	[WORKER_TCP_LATE] = "no_binding_request",
	[WORKER_TCP_CROWDED] = "too_many_half_open",
	[WORKER_TCP_LIMITED] = "too_many_of_address",
	[WORKER_TCP_FULL] = "too_many",
	[WORKER_TCP_IDLE] = "idle",
	[WORKER_TCP_STUCK] = "not_reading",
};

const char *worker_tcp_cause_text(enum worker_tcp_cause cause)
{
	return cause_texts[cause];
}

static struct link *find(struct worker_tcp *tcp, uint16_t number)
{
	return number < tcp->cap ? tcp->links[number] : NULL;
}

static const struct net_path *path_of(const struct link *l)
{
	return tcp_connection_path(l->connection);
}

/* --- half open --------------------------------------------------------------------------- */

static uint16_t bucket_of(const struct worker_tcp *tcp, const struct net_addr *addr)
{
	struct net_addr key = { .port = 0 };

	memcpy(key.ip, addr->ip, net_addr_is_v4(addr) ? sizeof(key.ip) : PREFIX_BYTES);
	return (uint16_t)(net_addr_hash(&key, tcp->seed) % IP_BUCKETS);
}

static bool is_limited(const struct worker *w, const struct net_addr *addr)
{
	const struct config *c = w->shared->config;

	return !net_addr_is_loopback(addr) && !config_networks_have(&c->limits.trusted, addr->ip) &&
	       w->tcp->half_open_of[bucket_of(w->tcp, addr)] >= c->limits.tcp_half_open_per_ip;
}

static void enter_half_open(struct link *l)
{
	struct worker_tcp *tcp = l->worker->tcp;

	l->bucket = bucket_of(tcp, &path_of(l)->remote);
	l->is_counted = true;
	l->older = tcp->newest;
	l->newer = NULL;
	*(tcp->newest ? &tcp->newest->newer : &tcp->oldest) = l;
	tcp->newest = l;
	tcp->half_open++;
	counter_set(&l->worker->counters.tcp_half_open, tcp->half_open);
	tcp->half_open_of[l->bucket]++;
}

static void leave_half_open(struct link *l)
{
	struct worker_tcp *tcp = l->worker->tcp;

	if (!l->is_counted)
		return;
	l->is_counted = false;
	*(l->older ? &l->older->newer : &tcp->oldest) = l->newer;
	*(l->newer ? &l->newer->older : &tcp->newest) = l->older;
	tcp->half_open--;
	counter_set(&l->worker->counters.tcp_half_open, tcp->half_open);
	tcp->half_open_of[l->bucket]--;
}

/* --- the end of a connection ------------------------------------------------------------- */

static void doom(struct link *l, enum worker_tcp_cause cause)
{
	struct worker_tcp *tcp = l->worker->tcp;

	if (l->is_doomed)
		return;
	l->is_doomed = true;
	l->cause = cause;
	l->next_doomed = tcp->doomed;
	tcp->doomed = l;
	loop_watch_set(l->watch, 0);
	leave_half_open(l);
}

static void doom_for(struct link *l, enum tcp_status status)
{
	doom(l, status == TCP_ENDED       ? WORKER_TCP_PEER
		: status == TCP_OVERSIZED ? WORKER_TCP_OVERSIZED
					  : WORKER_TCP_ERROR);
}

/* The link goes, the connection stays the caller's. */
static void unlink_connection(struct link *l)
{
	struct worker_tcp *tcp = l->worker->tcp;

	leave_half_open(l);
	loop_watch_close(l->watch);
	tcp->links[l->number] = NULL;
	tcp->count--;
	counter_set(&l->worker->counters.tcp_connections, tcp->count);
	free(l);
}

static void bury(struct link *l)
{
	struct tcp_connection *c = l->connection;

	counter_add(&l->worker->counters.tcp_closed[l->cause], 1);
	unlink_connection(l);
	tcp_connection_destroy(c);
}

/* @return whether there was a session to tell */
static bool tell_session(struct link *l)
{
	struct session *s = worker_session(l->worker, l->session);

	if (!s || l->cause == WORKER_TCP_SESSION)
		return false;
	if (l->cause == WORKER_TCP_STUCK)
		session_on_stuck(s, &path_of(l)->remote);
	else
		session_on_lost(s, &path_of(l)->remote);
	return true;
}

bool worker_tcp_bury(struct worker *w)
{
	struct worker_tcp *tcp = w->tcp;
	bool any = false;

	while (tcp && tcp->doomed) {
		struct link *l = tcp->doomed;

		/* Sessions that end now doom connections of theirs, this one not again. */
		tcp->doomed = l->next_doomed;
		any |= tell_session(l);
		bury(l);
	}
	return any;
}

void worker_tcp_release(struct worker *w, uint16_t connection, struct session_ref owner)
{
	struct link *l = w->tcp ? find(w->tcp, connection) : NULL;

	if (l && session_ref_pack(l->session) == session_ref_pack(owner))
		doom(l, WORKER_TCP_SESSION);
}

/* --- sending ----------------------------------------------------------------------------- */

static void watch_for(struct link *l, enum tcp_status status)
{
	if (!l->is_doomed)
		loop_watch_set(l->watch,
			       status == TCP_AGAIN ? LOOP_READABLE | LOOP_WRITABLE : LOOP_READABLE);
}

static void count_drops(struct worker *w, uint32_t owner, unsigned packets)
{
	struct session *s = owner < w->session_cap ? w->sessions[owner].session : NULL;

	counter_add(&w->counters.tcp_queue_drops, packets);
	if (s)
		counter_add(&s->plan->stats.send_failures, packets);
}

/* Of the egress: one session's packets for its connection. */
static void sink(void *arg, const struct egress_message *m)
{
	struct worker *w = arg;
	struct link *l = find(w->tcp, m->connection);
	unsigned dropped = 0;
	bool was_waiting;
	enum tcp_status status;

	if (!l || (l->is_doomed && l->cause != WORKER_TCP_SESSION)) {
		counter_add(&w->counters.tcp_gone_drops, 1);
		return;
	}
	was_waiting = tcp_connection_is_waiting(l->connection);
	status = tcp_connection_send(l->connection, m->bytes, m->len, m->segment_bytes, &dropped);
	if (status == TCP_FAILED) {
		doom(l, WORKER_TCP_ERROR);
		return;
	}
	if (dropped)
		count_drops(w, m->owner, dropped);
	if (status == TCP_AGAIN && !was_waiting)
		l->stuck_us = w->now_us;
	watch_for(l, status);
}

static void flush(struct link *l)
{
	size_t progress;
	enum tcp_status status = tcp_connection_flush(l->connection, &progress);

	if (status == TCP_FAILED) {
		doom(l, WORKER_TCP_ERROR);
		return;
	}
	if (progress)
		l->stuck_us = l->worker->now_us;
	watch_for(l, status);
}

struct worker_socket *worker_tcp_socket(struct worker *w)
{
	return w->tcp ? &w->tcp->socket : NULL;
}

/* --- receiving --------------------------------------------------------------------------- */

static void read_packets(struct link *l)
{
	struct worker *w = l->worker;
	enum tcp_status status = TCP_READY;
	struct slab *slab;

	/* What was read ahead makes no event of its own: it is taken now. */
	for (unsigned n = 0; n < PACKETS || tcp_connection_is_ahead(l->connection); n++) {
		struct session *s;

		status = tcp_connection_receive(l->connection, w->pool, &slab);
		if (status == TCP_DRY) {
			counter_add(&w->counters.tcp_pool_drops, 1);
			continue;
		}
		if (status != TCP_READY)
			break;
		l->heard_us = w->now_us;
		counter_add(&w->counters.tcp_packets_in, 1);
		s = worker_session(w, l->session);
		if (!s) {
			slab_put(w->pool, slab);
			doom(l, WORKER_TCP_SESSION);
			return;
		}
		session_on_datagram(s, path_of(l), slab);
		if (l->is_doomed)
			return;
	}
	if (status != TCP_READY && status != TCP_AGAIN && status != TCP_DRY)
		doom_for(l, status);
}

static void adopt(struct link *l, struct session_ref owner)
{
	leave_half_open(l);
	l->session = owner;
	l->heard_us = l->worker->now_us;
	read_packets(l);
}

/* Without memory for the letter the connection ends; its peer comes again. */
static void move(struct link *l, struct session_ref owner)
{
	struct worker *w = l->worker;
	struct letter *letter = calloc(1, sizeof(*letter));

	if (!letter) {
		doom(l, WORKER_TCP_REFUSED);
		return;
	}
	letter->kind = LETTER_CONNECTION;
	letter->to = owner;
	letter->connection = l->connection;
	counter_add(&w->counters.tcp_moved, 1);
	unlink_connection(l); /* before another thread may watch it */
	worker_post(w->shared->team[owner.worker], letter);
}

/* The plan vouches for whoever sent this: to the session that serves it, or begins to. */
static void lead_to_session(struct link *l, struct plan *plan)
{
	struct worker *w = l->worker;
	uint64_t claim = atomic_load_explicit(&plan->claim, memory_order_acquire);
	struct session_ref owner;

	if (claim == 0) {
		(void)session_claim(w, plan); /* or somebody was quicker: see below */
		claim = atomic_load_explicit(&plan->claim, memory_order_acquire);
	}
	owner = session_ref_unpack(claim);
	if (claim == 0 || claim == PLAN_GONE)
		doom(l, WORKER_TCP_REFUSED);
	else if (owner.worker == w->index)
		adopt(l, owner);
	else
		move(l, owner);
}

static void introduce(struct link *l)
{
	struct plan *plan;
	uint8_t *bytes;
	size_t len;
	enum tcp_status status = tcp_connection_peek(l->connection, &bytes, &len);

	if (status == TCP_AGAIN)
		return;
	if (status != TCP_READY) {
		doom_for(l, status);
		return;
	}
	plan = worker_vouch(l->worker, &path_of(l)->remote, bytes, len);
	if (plan)
		lead_to_session(l, plan);
	else
		doom(l, WORKER_TCP_STRANGER);
	plan_unref(plan);
}

static void on_link(void *arg, unsigned events)
{
	struct link *l = arg;

	worker_begin(l->worker);
	if (events & LOOP_WRITABLE)
		flush(l);
	if (l->is_doomed || !(events & LOOP_READABLE))
		return;
	if (l->session.generation)
		read_packets(l);
	else
		introduce(l);
}

/* --- a new connection -------------------------------------------------------------------- */

static bool grow(struct worker_tcp *tcp)
{
	uint32_t cap = tcp->cap ? tcp->cap * 2 : FIRST_LINKS;
	struct link **links;

	if (tcp->count < WORKER_TCP_MAX && tcp->count * 2 + 2 <= tcp->cap)
		return true;
	if (cap > MAX_LINKS)
		return false;
	links = realloc(tcp->links, cap * sizeof(struct link *));
	if (!links)
		return false;
	memset(links + tcp->cap, 0, (cap - tcp->cap) * sizeof(struct link *));
	tcp->links = links;
	tcp->cap = cap;
	return true;
}

/* Numbers go round, so that one is not used again soon. At most half of them are in use. */
static uint16_t draw_number(struct worker_tcp *tcp)
{
	do
		tcp->last = (tcp->last + 1) % tcp->cap;
	while (tcp->last == 0 || tcp->links[tcp->last]);
	return (uint16_t)tcp->last;
}

static struct link *make_link(struct worker *w, struct tcp_connection *c)
{
	struct worker_tcp *tcp = w->tcp;
	struct link *l;

	if (tcp->count >= w->shared->tcp_connections || !grow(tcp))
		return NULL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	if (loop_watch_open(w->loop, &l->watch, tcp_connection_fd(c), on_link, l)) {
		free(l);
		return NULL;
	}
	l->worker = w;
	l->connection = c;
	l->number = draw_number(tcp);
	l->heard_us = w->now_us;
	tcp->links[l->number] = l;
	tcp->count++;
	counter_set(&w->counters.tcp_connections, tcp->count);
	tcp_connection_name(c, l->number);
	ticker_arm_sooner(&w->ticker, &tcp->tick, w->now_us + TICK_US);
	loop_watch_set(l->watch, LOOP_READABLE);
	return l;
}

static void refuse(struct worker *w, struct tcp_connection *c, enum worker_tcp_cause cause)
{
	counter_add(&w->counters.tcp_closed[cause], 1);
	tcp_connection_destroy(c);
}

void worker_tcp_on_accepted(struct worker *w, struct tcp_connection *c)
{
	struct link *l;

	counter_add(&w->counters.tcp_accepted, 1);
	if (w->is_stopping || is_limited(w, &tcp_connection_path(c)->remote)) {
		refuse(w, c, w->is_stopping ? WORKER_TCP_REFUSED : WORKER_TCP_LIMITED);
		return;
	}
	l = make_link(w, c);
	if (!l) {
		refuse(w, c, WORKER_TCP_FULL);
		return;
	}
	if (w->tcp->half_open == WORKER_TCP_HALF_OPEN)
		doom(w->tcp->oldest, WORKER_TCP_CROWDED);
	enter_half_open(l);
}

void worker_tcp_on_moved(struct worker *w, struct tcp_connection *c, struct session_ref owner)
{
	struct link *l = worker_session(w, owner) ? make_link(w, c) : NULL;

	if (l)
		adopt(l, owner);
	else
		refuse(w, c, WORKER_TCP_REFUSED);
}

static void on_listener(void *arg, unsigned events)
{
	struct listener *listener = arg;
	struct worker *w = listener->worker;

	(void)events;
	worker_begin(w);
	for (unsigned i = 0; i < ACCEPTS; i++) {
		struct tcp_connection *c;
		int err = tcp_accept(listener->tcp, &c);

		if (err == 0) {
			worker_tcp_on_accepted(w, c);
			continue;
		}
		if (err == -ECONNABORTED)
			continue;
		if (err == -EAGAIN)
			return;
		/* It keeps waiting, and would wake this loop for nothing until there is room. */
		counter_add(&w->counters.tcp_accept_failed, 1);
		w->tcp->is_paused = true;
		loop_watch_set(listener->watch, 0);
		ticker_arm_sooner(&w->ticker, &w->tcp->tick, w->now_us + TICK_US);
		return;
	}
}

/* --- once a second ----------------------------------------------------------------------- */

/* @return the memory it holds */
static size_t check(struct link *l, uint64_t now_us)
{
	bool is_half_open = l->session.generation == 0;

	if (now_us - l->heard_us >= (is_half_open ? WORKER_TCP_HALF_OPEN_US : WORKER_TCP_IDLE_US))
		doom(l, is_half_open ? WORKER_TCP_LATE : WORKER_TCP_IDLE);
	else if (tcp_connection_is_waiting(l->connection) &&
		 now_us - l->stuck_us >= WORKER_TCP_STUCK_US)
		doom(l, WORKER_TCP_STUCK);
	tcp_connection_trim(l->connection);
	return sizeof(*l) + tcp_connection_bytes(l->connection);
}

static void on_tick(struct ticker_item *item, uint64_t now_us)
{
	struct worker_tcp *tcp = container_of(item, struct worker_tcp, tick);
	struct worker *w = tcp->socket.worker;
	size_t bytes = 0;

	w->now_us = now_us;
	for (uint32_t i = 0; i < tcp->cap; i++)
		if (tcp->links[i])
			bytes += check(tcp->links[i], now_us);
	for (unsigned i = 0; i < tcp->listener_count && tcp->is_paused; i++)
		loop_watch_set(tcp->listeners[i].watch, LOOP_READABLE);
	tcp->is_paused = false;
	if (tcp->count)
		ticker_arm(&w->ticker, item, now_us + TICK_US);
	counter_set(&w->counters.tcp_bytes, bytes);
}

/* --- life -------------------------------------------------------------------------------- */

static int open_listener(struct worker *w, const struct net_addr *addr)
{
	struct listener *listener = &w->tcp->listeners[w->tcp->listener_count];
	int err = tcp_listen(&listener->tcp, addr, true);

	if (err)
		return err;
	listener->worker = w;
	w->tcp->listener_count++;
	err = loop_watch_open(w->loop, &listener->watch, tcp_listener_fd(listener->tcp),
			      on_listener, listener);
	if (!err)
		loop_watch_set(listener->watch, LOOP_READABLE);
	return err;
}

int worker_tcp_create(struct worker *w)
{
	int err;

	if (!w->shared->has_tcp)
		return 0;
	w->tcp = calloc(1, sizeof(*w->tcp));
	if (!w->tcp)
		return -ENOMEM;
	w->tcp->socket.worker = w;
	w->tcp->seed = random_u64();
	ticker_item_init(&w->tcp->tick, on_tick);
	err = egress_create_sink(&w->tcp->socket.egress, sink, w);
	for (unsigned i = 0; i < w->shared->tcp_count && !err; i++)
		err = open_listener(w, &w->shared->tcp[i]);
	return err;
}

void worker_tcp_destroy(struct worker *w)
{
	struct worker_tcp *tcp = w->tcp;

	if (!tcp)
		return;
	for (uint32_t i = 0; i < tcp->cap; i++) {
		struct tcp_connection *c = tcp->links[i] ? tcp->links[i]->connection : NULL;

		if (c)
			unlink_connection(tcp->links[i]);
		tcp_connection_destroy(c);
	}
	for (unsigned i = 0; i < tcp->listener_count; i++) {
		loop_watch_close(tcp->listeners[i].watch);
		tcp_unlisten(tcp->listeners[i].tcp);
	}
	ticker_arm(&w->ticker, &tcp->tick, UINT64_MAX);
	egress_destroy(tcp->socket.egress);
	free(tcp->links);
	free(tcp);
	w->tcp = NULL;
}
