#include <criterion/criterion.h>
#include <errno.h>

#include "media/history.h"
#include "tests/fault.h"
#include "tests/media/flow.h"

enum { CAPACITY_PKTS = 8, MAX_AGE_US = 1000, BASE = 1 << 16 };

static struct slab_pool *pool;
static struct history *h;

static void create(uint32_t capacity_pkts, uint32_t max_age_us, uint32_t max_bytes)
{
	struct history_config config = { capacity_pkts, max_age_us, max_bytes };

	cr_assert_eq(history_create(&h, &config, pool), 0);
}

static void setup(void)
{
	pool = flow_pool(4096);
	create(CAPACITY_PKTS, MAX_AGE_US, 0);
}

static void teardown(void)
{
	history_destroy(h);
	slab_pool_destroy(pool); /* asserts that every reference came back */
}

TestSuite(history, .init = setup, .fini = teardown, .timeout = 10);

static enum history_verdict put_flags(uint64_t index, uint64_t now_us, uint16_t flags)
{
	struct slab *s = slab_get(pool);

	cr_assert(s);
	packet_of(s)->index = index;
	packet_of(s)->arrival_us = now_us;
	packet_of(s)->flags = flags;
	return history_put(h, s, now_us);
}

static enum history_verdict put(uint64_t index, uint64_t now_us)
{
	return put_flags(index, now_us, 0);
}

static uint64_t index_of(const struct slab *s)
{
	return s ? packet_of_const(s)->index : 0;
}

Test(history, refuses_a_capacity_that_is_no_power_of_two)
{
	static const uint32_t bad[] = { 0, 1, 3, 6, HISTORY_MAX_PKTS * 2 };
	struct history *other;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct history_config config = { .capacity_pkts = bad[i] };

		cr_expect_eq(history_create(&other, &config, pool), -EINVAL, "%u", bad[i]);
	}
	cr_expect_eq(history_create(&other, &(struct history_config){ 8, 0, SLAB_BYTES - 1 }, pool),
		     -EINVAL);
	fault_after(0);
	cr_expect_eq(history_create(&other, &(struct history_config){ 8, 0, 0 }, pool), -ENOMEM);
	fault_after(-1);
	cr_expect_null(other);
}

Test(history, an_empty_one_has_nothing)
{
	uint32_t seen = 0;

	cr_expect_null(history_get(h, 0));
	cr_expect_null(history_next(h, 0));
	cr_expect_null(history_next_late(h, &seen, BASE));
	cr_expect_null(history_keyframe(h));
	cr_expect_not(history_is_missing(h, 0));
	history_expire(h, 1);
	history_clear(h);
}

Test(history, the_oldest_goes_when_the_ring_is_full)
{
	for (uint64_t i = 0; i < 3 * CAPACITY_PKTS; i++)
		cr_assert_eq(put(BASE + i, 0), HISTORY_NEWEST);
	cr_expect_eq(history_oldest_index(h), BASE + 2 * CAPACITY_PKTS);
	cr_expect_eq(history_newest_index(h), BASE + 3 * CAPACITY_PKTS - 1);
	cr_expect_null(history_get(h, BASE + 2 * CAPACITY_PKTS - 1));
	for (uint64_t i = 2 * CAPACITY_PKTS; i < 3 * CAPACITY_PKTS; i++)
		cr_expect_eq(index_of(history_get(h, BASE + i)), BASE + i);
	cr_expect_null(history_get(h, BASE + 3 * CAPACITY_PKTS));
	cr_expect_eq(put(BASE + CAPACITY_PKTS, 0), HISTORY_TOO_OLD);
	cr_expect_eq(put(BASE + 2 * CAPACITY_PKTS, 0), HISTORY_DUPLICATE);
}

Test(history, a_jump_beyond_the_capacity_empties_it)
{
	struct history_stats stats;

	for (uint64_t i = 0; i < 4; i++)
		put(BASE + i, 0);
	cr_expect_eq(put(BASE + 3 + CAPACITY_PKTS, 0), HISTORY_NEWEST);
	history_stats(h, &stats);
	cr_expect_eq(stats.pkts, 1);
	cr_expect_eq(stats.evicted, 4);
	cr_expect_eq(history_oldest_index(h), BASE + 3 + CAPACITY_PKTS);
}

Test(history, age_counts_from_when_a_packet_is_put_and_not_from_its_arrival)
{
	/* A worker that was held up for long takes all that waited for it in one go. */
	for (uint64_t i = 0; i < 4; i++) {
		struct slab *s = slab_get(pool);

		cr_assert(s);
		packet_of(s)->index = BASE + i;
		packet_of(s)->arrival_us = i;
		cr_expect_eq(history_put(h, s, 50 * MAX_AGE_US), HISTORY_NEWEST);
	}
	cr_expect_eq(history_oldest_index(h), BASE);
	history_expire(h, 51 * MAX_AGE_US);
	cr_expect_eq(history_oldest_index(h), BASE);
	history_expire(h, 51 * MAX_AGE_US + 1);
	cr_expect_null(history_next(h, 0));
}

Test(history, a_wrapped_clock_does_not_age_packets)
{
	cr_expect_eq(put(BASE, UINT32_MAX), HISTORY_NEWEST);
	history_expire(h, (uint64_t)UINT32_MAX + MAX_AGE_US);
	cr_expect_eq(index_of(history_next(h, 0)), BASE);
	history_expire(h, (uint64_t)UINT32_MAX + MAX_AGE_US + 1);
	cr_expect_null(history_next(h, 0));
}

Test(history, old_packets_go_by_their_age)
{
	put(BASE, 0);
	put(BASE + 1, 500);
	put(BASE + 2, MAX_AGE_US);
	cr_expect_eq(history_oldest_index(h), BASE, "exactly the age is still kept");
	history_expire(h, MAX_AGE_US + 1);
	cr_expect_eq(history_oldest_index(h), BASE + 1);
	history_expire(h, 1000000);
	cr_expect_null(history_next(h, 0));
	cr_expect_eq(put(BASE + 2, 1000000), HISTORY_TOO_OLD);
	cr_expect_eq(put(BASE + 3, 1000000), HISTORY_NEWEST);
}

Test(history, what_is_missing_behind_a_pause_may_still_be_repaired)
{
	put(BASE, 0);
	put(BASE + 3, 1000000);
	cr_expect(history_is_missing(h, BASE + 1));
	cr_expect_eq(put(BASE + 1, 1000100), HISTORY_LATE);
	cr_expect_eq(put(BASE + 2, 1000100), HISTORY_LATE);
}

Test(history, bytes_bound_what_is_held)
{
	struct history_stats stats;

	history_destroy(h);
	create(CAPACITY_PKTS, 0, 3 * SLAB_BYTES);
	for (uint64_t i = 0; i < 5; i++)
		put(BASE + i, 0);
	history_stats(h, &stats);
	cr_expect_eq(stats.pkts, 3);
	cr_expect_eq(stats.bytes, 3 * SLAB_BYTES);
	cr_expect_eq(history_oldest_index(h), BASE + 2);
}

Test(history, a_walk_skips_holes)
{
	uint64_t cursor = BASE - 1, want[] = { BASE, BASE + 2, BASE + 5 };

	for (size_t i = 0; i < 3; i++)
		put(want[i], 0);
	for (size_t i = 0; i < 3; i++) {
		cursor = index_of(history_next(h, cursor));
		cr_expect_eq(cursor, want[i]);
	}
	cr_expect_null(history_next(h, cursor));
	cr_expect(history_is_missing(h, BASE + 3));
	cr_expect_not(history_is_missing(h, BASE + 2));
	cr_expect_not(history_is_missing(h, BASE - 1));
	cr_expect_not(history_is_missing(h, BASE + 6));
}

Test(history, late_packets_reach_the_cursors_that_passed_them)
{
	uint32_t behind = history_late_count(h), ahead = behind;

	put(BASE, 0);
	put(BASE + 4, 0);
	put(BASE + 2, 0);
	put(BASE + 1, 0);
	cr_expect_eq(index_of(history_next_late(h, &ahead, BASE + 4)), BASE + 2);
	cr_expect_eq(index_of(history_next_late(h, &ahead, BASE + 4)), BASE + 1);
	cr_expect_null(history_next_late(h, &ahead, BASE + 4));
	cr_expect_null(history_next_late(h, &behind, BASE), "it meets both in order");
	cr_expect_eq(index_of(history_next(h, BASE)), BASE + 1);
	cr_expect_eq(behind, ahead);
}

Test(history, a_viewer_far_behind_gets_only_the_late_packets_remembered)
{
	uint32_t seen = history_late_count(h), got = 0;

	history_destroy(h);
	create(1024, 0, 0);
	put(BASE, 0);
	put(BASE + 200, 0);
	for (uint64_t i = 1; i <= HISTORY_LATE_PKTS + 10; i++)
		put(BASE + i, 0);
	while (history_next_late(h, &seen, BASE + 200))
		got++;
	cr_expect_eq(got, HISTORY_LATE_PKTS);
}

Test(history, a_key_frame_begins_at_its_first_marked_packet)
{
	cr_expect_null(history_keyframe(h));
	put_flags(BASE, 0, PACKET_KEYFRAME);
	put_flags(BASE + 1, 0, PACKET_KEYFRAME);
	cr_expect_eq(index_of(history_keyframe(h)), BASE, "parameter sets, then the picture");
	for (uint64_t i = 2; i < CAPACITY_PKTS + 1; i++)
		put(BASE + i, 0);
	cr_expect_null(history_keyframe(h), "its beginning is gone");
}

/* The same puts on a plain array that forgets nothing; the ring must agree within its span. */
Test(history, random_puts_agree_with_a_plain_array, .timeout = 30)
{
	enum { STEPS = 100000, SPAN = 64 };
	static bool has[STEPS * 3];
	uint64_t random = 1, newest = 0;

	history_destroy(h);
	create(SPAN, 0, 0);
	for (size_t step = 0; step < STEPS; step++) {
		uint64_t jump = flow_random(&random) % 1000 == 0 ? SPAN : 0;
		uint64_t at = newest + jump + flow_random(&random) % 5;
		uint64_t probe;
		bool want;

		at = flow_random(&random) % 2 && at > 40 ? at - flow_random(&random) % 40 : at;
		if (at >= STEPS * 3)
			break;
		if (at + SPAN > newest)
			has[at] = put(BASE + at, 0) != HISTORY_TOO_OLD || has[at];
		newest = at > newest ? at : newest;
		probe = newest - flow_random(&random) % (newest < SPAN ? newest + 1 : SPAN);
		want = has[probe] && BASE + probe >= history_oldest_index(h);
		cr_assert_eq(history_get(h, BASE + probe) != NULL, want, "step %zu", step);
		cr_assert_leq(newest - (history_oldest_index(h) - BASE), SPAN - 1);
	}
}
