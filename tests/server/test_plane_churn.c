/* Eight hours of publishers and viewers that come, go, vanish and move. */
#include <criterion/criterion.h>
#include <malloc.h>

#include "net/random.h"
#include "server/branch.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_churn, .timeout = 290);

enum {
	HOURS = 8,
	TICK_US = 250000,
	TICKS_AN_HOUR = 3600 * 4,
	MOST_PEERS = 24,
	SILENCE_S = 30, /* without a word, a session ends */
	/* Who vanished stays a while. */
	MOST_SESSIONS = 3 * MOST_PEERS,
	MOST_SLABS = 2000,
	SESSION_BYTES = 120 * 1024,
	SLACK_BYTES = 256 * 1024,
};

static const char *const names[] = { "a", "b", "c" };

static struct {
	unsigned joins, leaves, vanished, moves, restarts, pictures;
} done;

static bool draw(unsigned one_in)
{
	return random_u64() % one_in == 0;
}

static unsigned count(const struct kit_plane *p)
{
	unsigned n = 0;

	for (const struct kit_peer *peer = p->peers; peer; peer = peer->next)
		n++;
	return n;
}

static void join(struct kit_plane *p, bool publishes)
{
	struct kit_peer_config config = {
		.publishes = publishes,
		.audio = true,
		.video = true,
		.rtx = draw(2),
		.transport_cc = publishes && draw(2),
		.worker = (unsigned)(random_u64() % 2),
	};

	if (count(p) < MOST_PEERS) {
		(void)kit_peer_open(p, names[random_u64() % 3], &config);
		done.joins++;
	}
}

static void ask(struct kit_peer *v)
{
	const struct kit_packet *last = &v->packets[v->packet_count - 1];
	uint16_t seqs[5];

	for (uint16_t i = 0; i < 5; i++)
		seqs[i] = (uint16_t)(last->seq - 9 + i * 2);
	if (!last->is_rtx)
		kit_peer_nack(v, last->kind, seqs, 5);
}

/* What one peer does within a tick. @return false: it is gone */
static bool live(struct kit_peer *peer)
{
	if (peer->is_closed || draw(peer->config.publishes ? 350 : 700)) {
		if (!peer->is_closed && draw(4)) {
			done.vanished++;
		} else if (!peer->is_closed) {
			kit_peer_leave(peer);
			done.leaves++;
		}
		return false;
	}
	if (!peer->is_connected)
		return true;
	if (peer->config.publishes) {
		kit_peer_send_frame(peer, draw(40) || peer->plis > 0,
				    1 + (unsigned)(random_u64() % 2), 300, NULL);
		if (draw(2))
			kit_peer_send_audio(peer);
		if (draw(20))
			peer->next_index[MEDIA_VIDEO]++; /* lost, for good */
		peer->plis = 0;
		peer->nack_count = peer->told_count = 0;
	} else {
		if (draw(20))
			kit_peer_pli(peer);
		if (peer->packet_count > 0 && draw(10))
			ask(peer);
		done.pictures += peer->packet_count > 0;
		kit_peer_forget(peer);
	}
	if (draw(400)) {
		peer->addr.port++;
		peer->worker ^= 1;
		done.moves++;
	}
	if (draw(3000))
		done.restarts += kit_peer_restart(peer) == REGISTRY_OK;
	return true;
}

static void tick(struct kit_plane *p)
{
	struct kit_peer *next;

	if (draw(20))
		join(p, false);
	if (draw(80))
		join(p, true);
	for (struct kit_peer *peer = p->peers; peer; peer = next) {
		next = peer->next;
		if (!live(peer))
			kit_peer_drop(peer);
	}
	kit_plane_advance(p, TICK_US);
}

static void check(struct kit_plane *p)
{
	uint64_t sessions = KIT_SUM(p, sessions);

	cr_assert_leq(sessions, MOST_SESSIONS);
	cr_assert_leq(KIT_SUM(p, viewers), sessions);
	cr_assert_leq(KIT_SUM(p, branches), 2 * sizeof(names) / sizeof(names[0]));
	cr_assert_leq(KIT_SUM(p, session_bytes), sessions * SESSION_BYTES);
	cr_assert_leq(p->registry->stream_count, sizeof(names) / sizeof(names[0]));
	cr_assert_leq(directory_count(p->shared.directory), 2 * p->registry->plan_count);
	for (unsigned i = 0; i < p->shared.workers; i++) {
		struct worker *w = kit_plane_worker(p, i);
		struct slab_pool_stats slabs;

		slab_pool_stats(w->pool, &slabs);
		cr_assert_leq(slabs.in_use, MOST_SLABS);
		cr_assert_leq(addrtable_count(w->addrs), 8 * sessions);
		cr_assert_leq(w->ticker.count, 2 * w->session_count + 8);
		cr_assert_eq(w->session_count, counter_read(&w->counters.sessions));
	}
}

/* Everybody leaves: nothing may be left. */
static void empty(struct kit_plane *p)
{
	while (p->peers) {
		kit_peer_leave(p->peers);
		kit_peer_drop(p->peers);
	}
	kit_plane_advance(p, (SILENCE_S + 30) * UINT64_C(1000000));
	cr_assert_eq(KIT_SUM(p, sessions), 0);
	cr_assert_eq(KIT_SUM(p, branches), 0);
	cr_assert_eq(KIT_SUM(p, forwards), 0);
	cr_assert_eq(KIT_SUM(p, session_bytes), 0);
	cr_assert_eq(KIT_SUM(p, branch_bytes), 0);
	cr_assert_eq(p->registry->plan_count, 0);
	cr_assert_eq(p->registry->stream_count, 0);
	cr_assert_eq(directory_count(p->shared.directory), 0);
	for (unsigned i = 0; i < p->shared.workers; i++) {
		struct worker *w = kit_plane_worker(p, i);
		struct slab_pool_stats slabs;

		slab_pool_drain(w->pool);
		slab_pool_stats(w->pool, &slabs);
		cr_assert_eq(slabs.in_use, 0);
		cr_assert_eq(addrtable_count(w->addrs), 0);
		cr_assert_eq(kit_loop_due_us(w->loop), UINT64_MAX, "an idle worker sleeps");
	}
}

Test(plane_churn, eight_hours_of_coming_and_going_leave_nothing_and_grow_nothing)
{
	struct kit_plane *p = kit_plane_open("streams:\n  wait_for_publisher: true\n", 2);
	size_t first_bytes = 0;

	for (unsigned hour = 0; hour < HOURS; hour++) {
		size_t bytes;

		for (unsigned i = 0; i < TICKS_AN_HOUR; i++) {
			tick(p);
			if (i % 240 == 0)
				check(p);
		}
		empty(p);
		bytes = mallinfo2().uordblks;
		if (hour == 0)
			first_bytes = bytes;
		cr_assert_leq(bytes, first_bytes + SLACK_BYTES, "hour %u", hour);
	}
	printf("%u h: %u joined, %u left, %u vanished, %u moved, %u restarted; %u ticks with media "
	       "at a viewer\n",
	       (unsigned)HOURS, done.joins, done.leaves, done.vanished, done.moves, done.restarts,
	       done.pictures);
	cr_expect_gt(done.joins, 200 * HOURS);
	cr_expect_gt(done.vanished, 20 * HOURS);
	cr_expect_gt(done.moves, 50 * HOURS);
	cr_expect_gt(done.pictures, 10000 * HOURS);
	kit_plane_close(p);
}
