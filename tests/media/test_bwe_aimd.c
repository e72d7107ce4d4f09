#include <criterion/criterion.h>

#include "media/bwe_aimd.h"

TestSuite(bwe_aimd, .timeout = 10);

enum { S = 1000000, START_US = 5 * S, STEP_US = 50000, RTT_US = 100000 };

static struct bwe_aimd a;
static struct bwe_aimd_input in;

static void setup(void)
{
	bwe_aimd_init(&a, 1e6, START_US);
	in = (struct bwe_aimd_input){ .rtt_us = RTT_US, .now_us = START_US };
}

/* What arrives is share of the rate. */
static void run(enum bwe_usage usage, double share, uint64_t us)
{
	for (uint64_t end_us = in.now_us + us; in.now_us < end_us; in.now_us += STEP_US) {
		in.usage = usage;
		in.acked_bps = in.recent_bps = (uint64_t)(share * a.bps);
		bwe_aimd_update(&a, &in);
	}
}

Test(bwe_aimd, grows_by_eight_per_cent_a_second, .init = setup)
{
	run(BWE_NORMAL, 1, 5 * S);
	cr_expect(a.bps > 1.4e6 && a.bps < 1.5e6, "%f", a.bps);
}

Test(bwe_aimd, grows_no_further_than_half_above_what_arrives, .init = setup)
{
	in.usage = BWE_NORMAL;
	in.acked_bps = in.recent_bps = 800000;
	for (int i = 0; i < 1000; i++) {
		in.now_us += STEP_US;
		bwe_aimd_update(&a, &in);
	}
	cr_expect_float_eq(a.bps, 1.21e6, 1);
}

Test(bwe_aimd, overuse_sets_it_below_what_arrives_once_a_round_trip, .init = setup)
{
	run(BWE_OVERUSE, 1, STEP_US);
	cr_expect_float_eq(a.bps, 0.85e6, 1);
	cr_expect_eq(a.lowered_us, START_US);
	run(BWE_OVERUSE, 1, STEP_US);
	cr_expect_float_eq(a.bps, 0.85e6, 1, "50 ms later");
	run(BWE_OVERUSE, 1, STEP_US);
	cr_expect_float_eq(a.bps, 0.85 * 0.85e6, 1, "a round trip later");
}

Test(bwe_aimd, waits_while_a_queue_drains, .init = setup)
{
	run(BWE_UNDERUSE, 1, 5 * S);
	cr_expect_float_eq(a.bps, 1e6, 1);
	run(BWE_NORMAL, 1, STEP_US);
	cr_expect_float_eq(a.bps, 1e6, 1, "the wait was not growth put off");
}

Test(bwe_aimd, near_the_capacity_it_grows_by_steps, .init = setup)
{
	double before;

	run(BWE_OVERUSE, 1, STEP_US);
	before = a.bps;
	run(BWE_NORMAL, 1, 2 * S);
	/* A packet of about 7 kbit per 200 ms. */
	cr_expect(a.bps > before + 40000 && a.bps < before + 100000, "%f", a.bps - before);
	bwe_aimd_raise(&a, 3e6, in.now_us);
	run(BWE_NORMAL, 1, S);
	cr_expect_gt(a.bps, 3.2e6, "the capacity is forgotten");
}

Test(bwe_aimd, a_burst_of_little_media_costs_no_more_than_one_factor, .init = setup)
{
	in.queue_ms = 20;
	run(BWE_OVERUSE, 0.2, STEP_US);
	cr_expect_float_eq(a.bps, 0.85e6, 1);
	in.queue_ms = 200;
	in.now_us += S;
	run(BWE_OVERUSE, 0.2, STEP_US);
	cr_expect_float_eq(a.bps, 0.85 * 0.2 * 0.85e6, 1, "the queue is real");
}

Test(bwe_aimd, is_raised_but_not_lowered_by_proof, .init = setup)
{
	bwe_aimd_raise(&a, 2e6, START_US);
	cr_expect_float_eq(a.bps, 2e6, 1);
	bwe_aimd_raise(&a, 1e6, START_US);
	cr_expect_float_eq(a.bps, 2e6, 1);
}
