#include <criterion/criterion.h>

#include "media/bwe_loss.h"

TestSuite(bwe_loss, .timeout = 10);

enum { S = 1000000, RTT_US = 100000 };

static struct bwe_loss l;
static uint64_t now_us = S;

static double arrived_bps;

static void update(double rate_bps, double delay_bps)
{
	struct bwe_loss_input in = { rate_bps, delay_bps, arrived_bps, RTT_US, now_us };

	bwe_loss_update(&l, &in);
}

/* 50 packets every half second, of which `lost` do not arrive. */
static void run(int seconds, int lost, double delay_bps)
{
	for (int i = 0; i < 2 * seconds; i++) {
		double rate_bps =
		    l.bound_bps > 0 && l.bound_bps < delay_bps ? l.bound_bps : delay_bps;

		now_us += S / 2;
		bwe_loss_on_packets(&l, 50, lost);
		update(rate_bps, delay_bps);
	}
}

Test(bwe_loss, five_per_cent_are_no_bound)
{
	run(60, 2, 1e6);
	cr_expect_eq(l.bound_bps, 0);
	cr_expect_float_eq(l.share, 0.04, 0.001);
}

Test(bwe_loss, much_loss_lowers_by_half_of_it_and_none_lets_it_grow)
{
	double lowered;

	run(2, 10, 1e6);
	cr_expect(l.bound_bps > 0.5e6 && l.bound_bps < 0.8e6, "%f", l.bound_bps);
	lowered = l.bound_bps;
	run(3, 0, 1e6);
	cr_expect_gt(l.bound_bps, lowered * 1.05);
	run(10, 0, 1e6);
	cr_expect_eq(l.bound_bps, 0, "above what the delay allows it is none");
}

Test(bwe_loss, some_loss_keeps_the_bound_for_a_while_only)
{
	double lowered;

	run(1, 40, 1e6);
	lowered = l.bound_bps;
	cr_assert_gt(lowered, 0);
	while (l.share > 0.1)
		run(1, 0, 1e6);
	lowered = l.bound_bps;
	run(3, 3, 1e6);
	cr_expect_leq(l.bound_bps, lowered * 1.1);
	run(20, 3, 1e6);
	cr_expect_gt(l.bound_bps, lowered * 1.2);
}

Test(bwe_loss, few_packets_make_no_share_and_late_ones_are_given_back)
{
	bwe_loss_on_packets(&l, BWE_LOSS_MIN_PKTS - 1, BWE_LOSS_MIN_PKTS - 1);
	update(1e6, 1e6);
	cr_expect_eq(l.bound_bps, 0);
	for (int i = 0; i < BWE_LOSS_MIN_PKTS; i++)
		bwe_loss_on_packets(&l, 0, -1);
	bwe_loss_on_packets(&l, 1, 0);
	update(1e6, 1e6);
	cr_expect_eq(l.bound_bps, 0);
	cr_expect_eq(l.share, 0);
}

Test(bwe_loss, proof_raises_the_bound)
{
	bwe_loss_raise(&l, 2e6);
	cr_expect_eq(l.bound_bps, 0, "there is none");
	run(2, 10, 1e6);
	bwe_loss_raise(&l, 0.9e6);
	cr_expect_float_eq(l.bound_bps, 0.9e6, 1);
}

Test(bwe_loss, what_arrives_is_not_given_up)
{
	arrived_bps = 0.6e6;
	run(20, 30, 1e6);
	cr_expect_float_eq(l.bound_bps, 0.85 * 0.6e6, 1);
}
