#include "media/align.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "media/rtp.h"
#include "tests/media/flow.h"

enum { HZ = 90000, FRAME_US = 33333, FRAME_TICKS = 3000, ENCODINGS = 3 };

static const uint64_t wall_us = 3900000000000000; /* publisher's wall clock at relay time 0 */

static struct align a;
static uint32_t base[ENCODINGS]; /* where each encoding's timestamps begin */
static uint64_t random_state;

static void setup(void)
{
	align_init(&a, HZ);
	random_state = 5;
	base[0] = 0x10000;
	base[1] = UINT32_MAX - 5 * FRAME_TICKS; /* wraps soon */
	base[2] = 0x7fffffff - 7 * FRAME_TICKS; /* its sign changes soon */
}

TestSuite(align, .init = setup, .timeout = 10);

static uint32_t source_at(unsigned e, uint64_t us)
{
	return base[e] + (uint32_t)(us * HZ / 1000000);
}

static uint32_t frame_rtp(unsigned e, unsigned frame)
{
	return base[e] + frame * FRAME_TICKS;
}

/* Reports are a little off, as those of senders are. */
static void report(unsigned e, uint64_t capture_us)
{
	uint32_t jitter = flow_random(&random_state) % 180;

	align_on_sr(&a, e, wall_us + capture_us, source_at(e, capture_us) + jitter - 90);
}

/* Frame `frame` of encoding e arrives that much after its capture. */
static uint32_t feed(unsigned e, unsigned frame, uint64_t delay_us)
{
	return align_on_packet(&a, e, frame_rtp(e, frame),
			       1000000 + frame * (uint64_t)FRAME_US + delay_us);
}

Test(align, the_first_encoding_is_never_moved)
{
	for (unsigned i = 0; i < 300; i++) {
		cr_assert_eq(feed(1, i, i % 7 * 3000), frame_rtp(1, i));
		feed(0, i, 20000);
		if (i % 30 == 0) {
			report(0, i * (uint64_t)FRAME_US);
			report(1, i * (uint64_t)FRAME_US);
		}
	}
	cr_expect_eq(align_offset(&a, 1), 0);
}

/* The others get there by steps too small to notice, and then stand on the very frames. */
Test(align, pictures_of_one_instant_get_one_timestamp)
{
	uint32_t before[ENCODINGS] = { 0 };

	for (unsigned i = 0; i < 900; i++) {
		for (unsigned e = 0; e < ENCODINGS; e++) {
			/* Larger pictures take longer, and the network adds its own. */
			uint32_t got = feed(e, i, e * 18000 + flow_random(&random_state) % 8000);
			int32_t step = rtp_timestamp_diff(got, before[e]);

			if (i > 0)
				cr_assert(abs(step - FRAME_TICKS) <= HZ * ALIGN_STEP_US / 1000000,
					  "%u %u: %d", e, i, step);
			if (i > 600)
				cr_assert_eq(got, frame_rtp(0, i), "%u %u: %d", e, i,
					     rtp_timestamp_diff(got, frame_rtp(0, i)));
			before[e] = got;
			if (i % 30 == 20)
				report(e, i * (uint64_t)FRAME_US);
		}
	}
}

Test(align, without_reports_arrival_places_an_encoding)
{
	for (unsigned i = 0; i < 300; i++) {
		uint32_t first = feed(0, i, 0);
		int32_t off = rtp_timestamp_diff(feed(1, i, 12000), first);

		cr_assert(abs(off) <= 12000 * HZ / 1000000, "%u: %d", i, off);
	}
	for (unsigned i = 300; i < 400; i++) {
		feed(0, i, 0);
		/* Four milliseconds are near enough to be the same picture. */
		cr_assert_lt(abs(rtp_timestamp_diff(feed(2, i, 4000), frame_rtp(0, i))), 1);
	}
}

Test(align, late_packets_get_the_timestamp_of_their_frame)
{
	uint32_t given[900];

	for (unsigned i = 0; i < 900; i++) {
		feed(0, i, 0);
		given[i] = feed(1, i, 25000);
		if (i % 30 == 10) {
			report(0, i * (uint64_t)FRAME_US);
			report(1, i * (uint64_t)FRAME_US);
		}
		for (unsigned back = 0; back < 30 && back <= i; back += 7) {
			uint64_t now_us = 1000000 + i * (uint64_t)FRAME_US + 30000;

			cr_assert_eq(align_on_packet(&a, 1, frame_rtp(1, i - back), now_us),
				     given[i - back], "%u, %u back", i, back);
		}
	}
	cr_expect_eq(given[899], frame_rtp(0, 899), "it did move meanwhile");
}

Test(align, a_report_out_of_all_proportion_is_not_believed)
{
	for (unsigned i = 0; i < 300; i++) {
		feed(0, i, 0);
		if (i % 30 == 0) {
			report(0, i * (uint64_t)FRAME_US);
			align_on_sr(&a, 1, wall_us + 5000000 + i * (uint64_t)FRAME_US,
				    frame_rtp(1, i));
		}
		cr_assert_eq(feed(1, i, 0), frame_rtp(0, i), "%u", i);
	}
}

Test(align, the_next_publisher_continues_behind_the_last)
{
	uint64_t now_us = 1000000 + 99 * FRAME_US + 500000;
	uint32_t first, second;

	for (unsigned i = 0; i < 100; i++)
		for (unsigned e = 0; e < ENCODINGS; e++)
			feed(e, i, 0);
	align_start(&a);
	first = align_on_packet(&a, 2, 77, now_us);
	cr_expect_eq(first, frame_rtp(0, 99) + HZ / 2, "half a second later");
	second = align_on_packet(&a, 0, 123456, now_us);
	cr_expect_eq(second, first);
	cr_expect_eq(align_on_packet(&a, 2, 77 + FRAME_TICKS, now_us + FRAME_US),
		     first + FRAME_TICKS);
	align_start(&a);
	cr_expect_gt(
	    rtp_timestamp_diff(align_on_packet(&a, 0, 5, now_us + FRAME_US), first + FRAME_TICKS),
	    0, "not even in the same instant the same one");
}

Test(align, a_source_that_counts_anew_is_placed_anew)
{
	uint32_t moved;

	for (unsigned i = 0; i < 100; i++)
		for (unsigned e = 0; e < ENCODINGS; e++)
			feed(e, i, 0);
	base[1] += 12345678;
	for (unsigned i = 100; i < 200; i++) {
		cr_assert_eq(feed(0, i, 0), frame_rtp(0, i));
		cr_assert_eq(feed(1, i, 0), frame_rtp(0, i));
	}
	base[0] -= 50000000;
	moved = feed(0, 200, 0);
	cr_assert_leq(abs(rtp_timestamp_diff(moved, frame_rtp(0, 200) + 50000000)), 1,
		      "the reference too");
	cr_assert_eq(feed(1, 200, 0), moved);
}

Test(align, a_pause_is_no_jump)
{
	feed(0, 0, 0);
	feed(1, 0, 0);
	for (unsigned i = 1; i < 9000; i++)
		feed(0, i, 0);
	cr_expect_eq(feed(1, 9000, 0), frame_rtp(0, 9000));
}
