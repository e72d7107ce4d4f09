#include <criterion/criterion.h>
#include <errno.h>

#include "media/history.h"
#include "media/start.h"
#include "media/stretch.h"
#include "tests/fault.h"
#include "tests/media/flow.h"

enum {
	BASE = 1 << 16,
	FRAME_TICKS = 3000,
	FRAME_US = 33333,
	LAST_FRAME = 40,
	MAX_AGE_US = 2000000,
	MAX_PKTS = 100,
};

static struct slab_pool *pool;
static struct history *h;
static struct stretch *st;
static const struct start_limits limits = { MAX_AGE_US, MAX_PKTS };
static struct start start;

static void setup(void)
{
	struct history_config config = { 256, 0, 0 };
	struct stretch_config kept = { MAX_AGE_US, 64 };

	pool = flow_pool(4096);
	cr_assert_eq(history_create(&h, &config, pool), 0);
	cr_assert_eq(stretch_create(&st, &kept, pool), 0);
}

static void teardown(void)
{
	history_destroy(h);
	stretch_destroy(st);
	slab_pool_destroy(pool); /* asserts that every reference came back */
}

TestSuite(start, .init = setup, .fini = teardown, .timeout = 10);
TestSuite(stretch, .init = setup, .fini = teardown, .timeout = 10);

static uint64_t time_of(unsigned frame)
{
	return (uint64_t)frame * FRAME_US;
}

/* Frames of one packet: index, timestamp and arrival follow from their number. */
static struct slab *frame(unsigned i, unsigned flags)
{
	struct slab *s = slab_get(pool);

	cr_assert(s);
	*packet_of(s) = (struct media_packet){
		.index = BASE + i,
		.timestamp = 0xffffffff - 10 * FRAME_TICKS + i * FRAME_TICKS,
		.arrival_us = time_of(i),
		.flags = (uint16_t)(PACKET_VIDEO | flags),
	};
	return s;
}

static void put(unsigned i, unsigned flags)
{
	history_put(h, frame(i, flags), time_of(i));
}

/* Key frames at 0 and 5; `hole` is missing. */
static void fill(unsigned hole)
{
	for (unsigned i = 0; i <= LAST_FRAME; i++)
		if (i != hole)
			put(i, i == 0 || i == 5 ? PACKET_KEYFRAME : 0);
}

Test(start, begins_at_the_newest_key_frame)
{
	cr_expect_eq(start_find(h, &limits, 0, &start), START_NO_KEYFRAME);
	fill(UINT32_MAX);
	cr_assert_eq(start_find(h, &limits, time_of(LAST_FRAME), &start), START_HIT);
	cr_expect_eq(start.first_index, BASE + 5);
}

Test(start, begins_with_the_parameter_sets_ahead_of_the_picture)
{
	struct slab *sets = frame(1, 0);

	put(0, 0);
	packet_of(sets)->timestamp += FRAME_TICKS;
	history_put(h, sets, time_of(1));
	put(2, PACKET_KEYFRAME);
	put(3, 0);
	cr_assert_eq(start_find(h, &limits, time_of(3), &start), START_HIT);
	cr_expect_eq(start.first_index, BASE + 1);
}

Test(start, refuses_what_a_decoder_could_not_follow)
{
	static const struct {
		const char *name;
		unsigned hole, restart;
		uint64_t max_pkts, late_us;
		enum start_verdict verdict;
	} rows[] = {
		{ "whole", 99, 99, MAX_PKTS, 0, START_HIT },
		{ "just young enough", 99, 99, MAX_PKTS, MAX_AGE_US - 35 * FRAME_US, START_HIT },
		{ "too old", 99, 99, MAX_PKTS, MAX_AGE_US - 35 * FRAME_US + 1, START_STALE },
		{ "just small enough", 99, 99, 36, 0, START_HIT },
		{ "too much", 99, 99, 35, 0, START_LARGE },
		{ "hole before the key frame", 3, 99, MAX_PKTS, 0, START_HIT },
		{ "hole behind it", 7, 99, MAX_PKTS, 0, START_BROKEN },
		{ "hole under repair", 39, 99, MAX_PKTS, 0, START_HIT },
		{ "hole just under repair", 39, 99, MAX_PKTS, START_REPAIR_US, START_HIT },
		{ "hole given up", 39, 99, MAX_PKTS, START_REPAIR_US + 1, START_BROKEN },
		{ "begun by the publisher", 99, 5, MAX_PKTS, 0, START_HIT },
		{ "another publisher since", 99, 20, MAX_PKTS, 0, START_BROKEN },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct start_limits l = { MAX_AGE_US, rows[r].max_pkts };

		fill(rows[r].hole);
		if (rows[r].restart != 99)
			packet_of(history_get(h, BASE + rows[r].restart))->flags |= PACKET_RESTART;
		cr_expect_eq(start_find(h, &l, time_of(LAST_FRAME) + rows[r].late_us, &start),
			     rows[r].verdict, "%s", rows[r].name);
		history_destroy(h);
		cr_assert_eq(history_create(&h, &(struct history_config){ 256, 0, 0 }, pool), 0);
	}
}

/* Over the timestamps' wrap, which is at frame 10. */
Test(start, timestamps_move_close_to_the_moment_of_joining)
{
	uint32_t newest, last = 0;

	fill(UINT32_MAX);
	cr_assert_eq(start_find(h, &limits, time_of(LAST_FRAME), &start), START_HIT);
	newest = packet_of(history_get(h, BASE + LAST_FRAME))->timestamp;
	cr_expect_eq(start.squeeze.divisor, SQUEEZE_DIVISOR);
	for (unsigned i = 5; i <= LAST_FRAME; i++) {
		const struct media_packet *p = packet_of(history_get(h, BASE + i));
		uint32_t ts = squeeze_timestamp(&start.squeeze, p->index, p->timestamp);

		cr_expect(i == 5 || rtp_timestamp_diff(ts, last) > 0, "frame %u", i);
		cr_expect_leq(newest - ts, (LAST_FRAME - 5) * FRAME_TICKS / SQUEEZE_DIVISOR);
		last = ts;
	}
	cr_expect_eq(last, newest);
	cr_expect_eq(squeeze_timestamp(&start.squeeze, BASE + LAST_FRAME + 1, newest + 5),
		     newest + 5);
	/* A day later, when the newest timestamp seems to lie ahead. */
	cr_expect_eq(squeeze_timestamp(&start.squeeze, BASE + 1000000, newest - 5), newest - 5);
}

Test(start, frames_close_together_stay_apart)
{
	static const uint32_t gaps[] = { 1, 2, 63, 64, 65, 3000 };

	for (size_t g = 0; g < sizeof(gaps) / sizeof(gaps[0]); g++) {
		uint32_t last = 0;

		history_destroy(h);
		cr_assert_eq(history_create(&h, &(struct history_config){ 256, 0, 0 }, pool), 0);
		for (unsigned i = 0; i < 30; i++) {
			struct slab *s = frame(i, i == 0 ? PACKET_KEYFRAME : 0);

			packet_of(s)->timestamp = 1000 + i * gaps[g];
			history_put(h, s, time_of(i));
		}
		cr_assert_eq(start_find(h, &limits, time_of(30), &start), START_HIT);
		for (unsigned i = 0; i < 30; i++) {
			uint32_t ts =
			    squeeze_timestamp(&start.squeeze, BASE + i, 1000 + i * gaps[g]);

			cr_expect(i == 0 || ts > last, "gap %u, frame %u", gaps[g], i);
			last = ts;
		}
	}
}

/* Pictures in decoding order: some of those behind the newest are to be shown before it. */
Test(start, pictures_in_decoding_order_keep_their_places)
{
	static const uint32_t shown[] = { 0, 4, 2, 1, 3, 8, 6, 5, 7 };
	uint32_t at[9];

	for (unsigned i = 0; i < 6; i++) {
		struct slab *s = frame(i, i == 0 ? PACKET_KEYFRAME : 0);

		packet_of(s)->timestamp = shown[i] * FRAME_TICKS;
		history_put(h, s, time_of(i));
	}
	cr_assert_eq(start_find(h, &limits, time_of(6), &start), START_HIT);
	for (unsigned i = 0; i < 9; i++)
		at[shown[i]] = squeeze_timestamp(&start.squeeze, BASE + i, shown[i] * FRAME_TICKS);
	for (unsigned i = 1; i < 9; i++)
		cr_expect_gt(at[i], at[i - 1], "picture %u", i);
}

static void keep(unsigned i, unsigned flags)
{
	stretch_on_packet(st, frame(i, flags), time_of(i));
}

static uint64_t first_kept(void)
{
	const struct slab *s = stretch_next(st, 0);

	return s ? packet_of_const(s)->index - BASE : UINT64_MAX;
}

static unsigned kept(void)
{
	unsigned n = 0;

	for (struct slab *s = stretch_next(st, 0); s; s = stretch_next(st, packet_of(s)->index))
		n++;
	return n;
}

static uint32_t slabs_out(void)
{
	struct slab_pool_stats stats;

	slab_pool_stats(pool, &stats);
	return stats.in_use;
}

Test(stretch, reaches_from_the_last_key_frame_to_the_newest_packet)
{
	keep(0, 0);
	keep(1, 0);
	cr_expect_eq(kept(), 0, "there was no key frame");
	cr_expect_eq(slabs_out(), 1, "the newest frame: it might be one");
	keep(2, PACKET_KEYFRAME);
	keep(3, 0);
	keep(5, 0);
	keep(4, 0);
	cr_expect_eq(first_kept(), 2);
	cr_expect_eq(kept(), 4);
	keep(6, PACKET_KEYFRAME);
	cr_expect_eq(first_kept(), 6);
	cr_expect_eq(kept(), 1);
	cr_expect_eq(slabs_out(), 1);
}

Test(stretch, keeps_the_parameter_sets_ahead_of_the_picture)
{
	struct slab *s;

	for (unsigned round = 0; round < 2; round++) {
		unsigned i = 10 * round;

		keep(i, 0);
		for (unsigned part = 1; part <= 3; part++) {
			s = frame(i + part, part == 2 ? PACKET_KEYFRAME : 0);
			packet_of(s)->timestamp = 12345 + round;
			stretch_on_packet(st, s, time_of(i + part));
		}
		keep(i + 4, 0);
		cr_expect_eq(first_kept(), i + 1);
		cr_expect_eq(kept(), 4);
	}
}

Test(stretch, lets_go_of_what_is_too_old_or_too_much)
{
	keep(0, PACKET_KEYFRAME);
	keep(1, 0);
	stretch_expire(st, MAX_AGE_US);
	cr_expect_eq(kept(), 2);
	stretch_expire(st, MAX_AGE_US + 1);
	cr_expect_eq(kept(), 0);
	cr_expect_eq(slabs_out(), 0);
	keep(2, PACKET_KEYFRAME);
	for (unsigned i = 3; i < 2 + 64; i++)
		stretch_on_packet(st, frame(i, 0), time_of(3));
	cr_expect_eq(kept(), 64);
	stretch_on_packet(st, frame(2 + 64, 0), time_of(3));
	cr_expect_eq(kept(), 0, "the key frame would have to go");
	cr_expect_eq(slabs_out(), 0);
	keep(67, PACKET_KEYFRAME);
	cr_expect_eq(kept(), 1);
	stretch_on_packet(st, frame(66, 0), time_of(67));
	cr_expect_eq(kept(), 1, "from before it");
}

Test(stretch, survives_a_want_of_memory)
{
	struct stretch_config config = { MAX_AGE_US, 64 };
	struct stretch *other;
	int err = -ENOMEM;

	for (int faults = 0; err == -ENOMEM; faults++) {
		fault_after(faults);
		err = stretch_create(&other, &config, pool);
		fault_after(-1);
		cr_expect(err == 0 || other == NULL, "fault %d", faults);
	}
	cr_assert_eq(err, 0);
	cr_expect_gt(stretch_bytes(other), 64 * sizeof(void *));
	stretch_destroy(other);
	config.max_pkts = 63;
	cr_expect_eq(stretch_create(&other, &config, pool), -EINVAL);
	stretch_destroy(NULL);
}
