/* server/worker_house.c - what a worker does once a second, and what it tells of itself. */
#include "server/branch.h"
#include "server/plain.h"
#include "server/publisher.h"
#include "server/session.h"
#include "server/start.h"
#include "server/worker_inner.h"
#include "server/worker_tcp.h"

enum {
	HOUSEKEEPING_US = 1000000,
	QUIET_ROUNDS = 3,    /* of housekeeping without sessions, then none until the next one */
	RELIEF_US = 10000,   /* least time between two rounds of relief for the pool */
	RELIEF_HALVINGS = 6, /* of the time histories may look back */
};

/* --- old packets ------------------------------------------------------------------------- */

static void expire_histories(struct worker *w, uint64_t now_us)
{
	for (uint32_t i = 0; i < w->branch_cap; i++)
		if (w->branches[i].branch)
			branch_expire(w->branches[i].branch, now_us);
	for (uint32_t i = 0; i < w->session_cap; i++)
		if (w->sessions[i].session && w->sessions[i].session->publisher)
			publisher_expire(w->sessions[i].session->publisher, now_us);
}

static bool is_pool_short(const struct worker *w)
{
	struct slab_pool_stats pool;

	slab_pool_stats(w->pool, &pool);
	return pool.in_use > pool.capacity / 8 * 7;
}

/* A dry pool receives nothing, not even what would push old packets out of the histories: while
 * slabs run short, less is kept for repair. */
void worker_relieve_pool(struct worker *w)
{
	struct history_config video;
	uint64_t age_us, ahead_us = 0;

	if (w->now_us - w->relieved_us < RELIEF_US || !is_pool_short(w))
		return;
	w->relieved_us = w->now_us;
	counter_add(&w->counters.slabs_relieved, 1);
	start_bound_history(w->shared->config, MEDIA_VIDEO, &video);
	age_us = video.max_age_us;
	for (unsigned i = 0; i < RELIEF_HALVINGS && is_pool_short(w); i++) {
		age_us /= 2;
		ahead_us += age_us;
		expire_histories(w, w->now_us + ahead_us);
	}
}

/* --- numbers for control ------------------------------------------------------------------ */

void worker_add_sent(struct egress_stats *sum, const struct egress_stats *e)
{
	sum->datagrams += e->datagrams;
	sum->bytes += e->bytes;
	sum->messages += e->messages;
	sum->calls += e->calls;
	sum->blocked += e->blocked;
	sum->gso_refused += e->gso_refused;
	sum->failed += e->failed;
	for (unsigned k = 0; k < 8; k++)
		sum->segments_histogram[k] += e->segments_histogram[k];
}

void worker_add_received(struct udp_stats *sum, const struct udp_stats *u)
{
	sum->datagrams += u->datagrams;
	sum->kernel_drops += u->kernel_drops;
	sum->oversized += u->oversized;
	sum->pool_drops += u->pool_drops;
}

static void publish_sockets(struct worker *w)
{
	struct worker_counters *c = &w->counters;
	struct egress_stats sum = { 0 };
	struct udp_stats in = { .rcvbuf_bytes = UINT32_MAX, .sndbuf_bytes = UINT32_MAX };

	for (unsigned i = 0; i < w->socket_count; i++) {
		struct udp_stats u;

		worker_add_sent(&sum, egress_stats(w->sockets[i].egress));
		udp_stats(w->sockets[i].udp, &u);
		worker_add_received(&in, &u);
		in.rcvbuf_bytes =
		    u.rcvbuf_bytes < in.rcvbuf_bytes ? u.rcvbuf_bytes : in.rcvbuf_bytes;
		in.sndbuf_bytes =
		    u.sndbuf_bytes < in.sndbuf_bytes ? u.sndbuf_bytes : in.sndbuf_bytes;
	}
	if (w->tcp)
		worker_add_sent(&sum, egress_stats(worker_tcp_socket(w)->egress));
	plain_stats(w, &in, &sum);
	counter_set(&c->egress_datagrams, sum.datagrams);
	counter_set(&c->egress_bytes, sum.bytes);
	counter_set(&c->egress_messages, sum.messages);
	counter_set(&c->egress_calls, sum.calls);
	counter_set(&c->egress_blocked, sum.blocked);
	counter_set(&c->egress_gso_refused, sum.gso_refused);
	counter_set(&c->egress_failed, sum.failed);
	for (unsigned k = 0; k < 8; k++)
		counter_set(&c->egress_histogram[k], sum.segments_histogram[k]);
	counter_set(&c->socket_datagrams, in.datagrams);
	counter_set(&c->socket_kernel_drops, in.kernel_drops);
	counter_set(&c->socket_oversized, in.oversized);
	counter_set(&c->socket_pool_drops, in.pool_drops);
	counter_set(&c->rcvbuf_bytes, in.rcvbuf_bytes);
	counter_set(&c->sndbuf_bytes, in.sndbuf_bytes);
}

static size_t branches_bytes(const struct worker *w)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < w->branch_cap; i++)
		if (w->branches[i].branch)
			bytes += branch_bytes(w->branches[i].branch);
	return bytes;
}

void worker_publish(struct worker *w)
{
	struct worker_counters *c = &w->counters;
	struct slab_pool_stats pool;

	publish_sockets(w);
	slab_pool_stats(w->pool, &pool);
	counter_set(&c->slabs_in_use, pool.in_use);
	counter_set(&c->slabs_high, pool.in_use_high);
	counter_set(&c->slabs_capacity, pool.capacity);
	counter_set(&c->slabs_exhausted, pool.exhausted);
	counter_set(&c->slabs_trimmed_bytes, pool.trimmed_bytes);
	counter_set(&c->sessions, w->session_count);
	counter_set(&c->branch_bytes, branches_bytes(w));
}

/* --- once a second ------------------------------------------------------------------------ */

void worker_on_housekeeping(struct ticker_item *item, uint64_t now_us)
{
	struct worker *w = container_of(item, struct worker, housekeeping);

	if (now_us - w->trimmed_us >= w->shared->config->pool.trim_ms * UINT64_C(1000)) {
		w->trimmed_us = now_us;
		slab_pool_trim(w->pool);
	}
	expire_histories(w, now_us); /* of streams on which nothing arrives */
	worker_publish(w);
	w->quiet_rounds = w->session_count ? 0 : w->quiet_rounds + 1;
	if (w->quiet_rounds < QUIET_ROUNDS)
		ticker_arm(&w->ticker, item, now_us + HOUSEKEEPING_US);
}

void worker_keep_house(struct worker *w)
{
	w->quiet_rounds = 0;
	ticker_arm_sooner(&w->ticker, &w->housekeeping, w->now_us + HOUSEKEEPING_US);
}
