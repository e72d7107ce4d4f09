#include <criterion/criterion.h>

#include "loadgen/latency.h"

/* A stream of frames, each a few packets of sizes of its own, seen by a viewer `delay_us` later with
 * timestamps moved by `offset` and sizes changed by `grown`. */
struct flow {
	uint32_t step_ticks, offset;
	uint64_t interval_us, delay_us;
	int grown;
	bool is_constant; /* all frames alike, as audio of a constant bitrate */
	uint32_t first;
};

enum { START_US = 5000000, FRAMES = 400 };

static struct latency *l;
static unsigned verdicts[LATENCY_UNKNOWN + 1];
static uint64_t last_us;

static void setup(void)
{
	cr_assert_eq(latency_create(&l), 0);
	memset(verdicts, 0, sizeof(verdicts));
}

static void teardown(void)
{
	latency_destroy(l);
}

TestSuite(latency, .init = setup, .fini = teardown, .timeout = 10);

static uint32_t pkts_of(const struct flow *f, uint32_t i)
{
	return f->is_constant ? 1 : 1 + i * 7 % 5;
}

static size_t size_of(const struct flow *f, uint32_t i)
{
	return f->is_constant ? 160 : 100 + i * 7919 % 1000;
}

static void send_frame(const struct flow *f, uint32_t i)
{
	uint32_t pkts = pkts_of(f, i), timestamp = f->first + i * f->step_ticks;
	uint64_t now_us = START_US + i * f->interval_us;

	for (uint32_t p = 1; p < pkts; p++)
		latency_on_sent(l, timestamp, 1200, false, now_us - 10);
	latency_on_sent(l, timestamp, size_of(f, i), true, now_us);
}

static enum latency_verdict view(const struct flow *f, uint32_t i, uint32_t viewer, uint32_t pkts)
{
	struct latency_unit unit = {
		.viewer = viewer,
		.timestamp = f->first + i * f->step_ticks + f->offset,
		.pkts = pkts,
		.end_bytes = (size_t)((int)size_of(f, i) + f->grown),
		.now_us = START_US + i * f->interval_us + f->delay_us,
	};
	enum latency_verdict verdict = latency_on_unit(l, &unit, &last_us);

	verdicts[verdict]++;
	return verdict;
}

/* Sent and viewed in order of time. */
static void play(const struct flow *f, uint32_t from, uint32_t to)
{
	uint32_t behind = (uint32_t)(f->delay_us / f->interval_us) + 1;

	for (uint32_t i = from; i < to + behind; i++) {
		if (i < to)
			send_frame(f, i);
		if (i >= from + behind)
			view(f, i - behind, 1, pkts_of(f, i - behind));
	}
}

Test(latency, of_a_frame_is_exact_whatever_the_offset_and_delay)
{
	static const uint32_t offsets[] = { 0, 1, 12345, 3000, 0x80000000u, 0xffffffffu };
	static const uint64_t delays[] = { 0, 150, 33000, 34000, 100000, 1000000 };

	for (unsigned o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++) {
		for (unsigned d = 0; d < sizeof(delays) / sizeof(delays[0]); d++) {
			struct flow f = {
				3000, offsets[o], 33333, delays[d], 8, false, 0xfffff000u
			};

			teardown();
			setup();
			play(&f, 0, FRAMES);
			cr_expect_eq(verdicts[LATENCY_LEARNING], LATENCY_LEARN_UNITS);
			cr_expect_eq(verdicts[LATENCY_MATCHED], FRAMES - LATENCY_LEARN_UNITS,
				     "offset %u, delay %lu: %u", offsets[o], delays[d],
				     verdicts[LATENCY_MATCHED]);
			cr_expect_eq(last_us, delays[d]);
		}
	}
}

Test(latency, is_learnt_from_units_that_all_look_alike)
{
	struct flow f = { 960, 777, 20000, 3000, 4, true, 5 };

	play(&f, 0, FRAMES);
	cr_expect_eq(verdicts[LATENCY_MATCHED], FRAMES - LATENCY_LEARN_UNITS);
	cr_expect_eq(last_us, 3000, "not an interval more: %lu", last_us);
}

Test(latency, allows_for_sizes_rounded_up)
{
	struct flow f = { 3000, 99, 33333, 50000, 0, false, 0 };

	for (uint32_t i = 0; i < 100; i++) {
		send_frame(&f, i);
		f.grown = (int)(63 - (size_of(&f, i) + 63) % 64);
		f.delay_us = i == 99 ? 20000 : 200;
		view(&f, i, 1, pkts_of(&f, i));
	}
	cr_expect_eq(verdicts[LATENCY_MATCHED], 100 - LATENCY_LEARN_UNITS);
	cr_expect_eq(last_us, 20000);
}

Test(latency, counts_from_the_packet_that_completed_the_frame)
{
	struct flow f = { 3000, 99, 33333, 500, 0, false, 0 };

	play(&f, 0, 50);
	send_frame(&f, 51); /* of 1 + 357 % 5 = 3 packets */
	cr_expect_eq(view(&f, 51, 1, 2), LATENCY_INCOMPLETE);
	f.delay_us = 70000;
	cr_expect_eq(view(&f, 51, 1, 3), LATENCY_MATCHED);
	cr_expect_eq(last_us, 70000);
}

Test(latency, of_what_was_never_sent_is_unknown)
{
	struct flow f = { 3000, 99, 33333, 500, 0, false, 0 };

	play(&f, 0, 50);
	cr_expect_eq(view(&f, 50, 1, 1), LATENCY_UNKNOWN);
	send_frame(&f, 50);
	cr_expect_eq(view(&f, 50, 1, pkts_of(&f, 50)), LATENCY_MATCHED);
}

Test(latency, learns_again_when_the_relay_changes_the_offset)
{
	struct flow f = { 3000, 99, 33333, 500, 0, false, 0 };

	play(&f, 0, 50);
	f.offset = 4711;
	play(&f, 50, FRAMES);
	cr_expect_eq(verdicts[LATENCY_UNKNOWN], LATENCY_FORGET_UNITS);
	cr_expect_eq(view(&f, FRAMES - 1, 1, pkts_of(&f, FRAMES - 1)), LATENCY_MATCHED);
	cr_expect_eq(last_us, 500);
}

Test(latency, is_learnt_from_one_viewer_and_holds_for_all)
{
	struct flow f = { 3000, 99, 33333, 500, 0, false, 0 };

	for (uint32_t i = 0; i < LATENCY_LEARN_UNITS; i++) {
		send_frame(&f, i);
		cr_expect_eq(view(&f, i, 1, pkts_of(&f, i)), LATENCY_LEARNING);
		if (i + 1 < LATENCY_LEARN_UNITS)
			cr_expect_eq(view(&f, i, 2, 1), LATENCY_LEARNING);
	}
	send_frame(&f, LATENCY_LEARN_UNITS);
	cr_expect_eq(view(&f, LATENCY_LEARN_UNITS, 2, pkts_of(&f, LATENCY_LEARN_UNITS)),
		     LATENCY_MATCHED);
	cr_expect_eq(last_us, 500);
}
