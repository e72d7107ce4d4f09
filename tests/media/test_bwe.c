#include <criterion/criterion.h>
#include <errno.h>

#include "media/bwe.h"
#include "media/twcc_arrivals.h"
#include "tests/fault.h"
#include "tests/hex.h"
#include "tests/media/flow.h"

enum { S = 1000000, FRAME_US = 33000, PACKET_BYTES = 1000, DELAY_US = 30000 };
enum { START_BPS = 500000, TICK_US = 5000 };

static struct bwe *b;
static struct twcc_arrivals *arrivals;
static uint64_t now_us;

static void setup(void)
{
	struct bwe_config config = { START_BPS, 50000, 5000000, S };

	now_us = S;
	cr_assert_eq(bwe_create(&b, &config), 0);
	cr_assert_eq(twcc_arrivals_create(&arrivals), 0);
}

static void teardown(void)
{
	twcc_arrivals_destroy(arrivals);
	bwe_destroy(b);
}

TestSuite(bwe, .init = setup, .fini = teardown, .timeout = 10);

static enum bwe_verdict feed(const uint8_t *bytes, size_t len)
{
	struct rtcp_cursor cursor;
	struct rtcp_feedback fb;
	struct rtcp_member m;

	rtcp_cursor_init(&cursor, bytes, len);
	cr_assert_eq(rtcp_cursor_next(&cursor, &m), RTCP_NEXT_MEMBER);
	cr_assert(rtcp_parse_feedback(&m, &fb));
	return bwe_on_feedback(b, &fb, now_us);
}

static enum bwe_verdict answer(void)
{
	uint8_t bytes[1200];
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_gt(twcc_arrivals_write(arrivals, &w, 1, 2), 0);
	return feed(bytes, w.len_bytes);
}

/* Frames of two packets over a link without limit, each answered after a frame's time. */
static void run(uint64_t us, bool is_answered)
{
	for (uint64_t end_us = now_us + us; now_us < end_us; now_us += FRAME_US) {
		for (int i = 0; i < 2; i++) {
			uint16_t seq = bwe_on_sent(b, PACKET_BYTES, now_us);

			if (is_answered)
				twcc_arrivals_on_packet(arrivals, seq, now_us + DELAY_US);
		}
		if (is_answered) {
			now_us += 2 * DELAY_US;
			cr_assert_eq(answer(), BWE_OK);
			now_us -= 2 * DELAY_US;
		}
		if (bwe_deadline_us(b) <= now_us)
			bwe_on_timeout(b, now_us);
	}
}

static struct bwe_stats stats(void)
{
	struct bwe_stats s;

	bwe_stats(b, &s);
	return s;
}

Test(bwe, refuses_a_configuration_out_of_range)
{
	static const struct bwe_config bad[] = { { 100, 0, 1000, 0 },
						 { 100, 200, 1000, 0 },
						 { 2000, 100, 1000, 0 } };
	struct bwe *other;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(bwe_create(&other, &bad[i]), -EINVAL, "row %zu", i);
	fault_after(0);
	cr_expect_eq(bwe_create(&other, &(struct bwe_config){ 100, 100, 100, 0 }), -ENOMEM);
	fault_after(-1);
	cr_expect_null(other);
}

Test(bwe, numbers_packets_one_after_the_other)
{
	for (uint32_t i = 0; i < 70000; i++)
		cr_assert_eq(bwe_on_sent(b, 100, now_us), (uint16_t)i);
}

Test(bwe, feedback_about_other_packets_is_known_as_such)
{
	static const struct {
		const char *name, *hex;
		enum bwe_verdict want;
	} rows[] = {
		{ "not yet sent", "8fcd0005 00000001 00000002 00640001 00000000 20010400",
		  BWE_UNKNOWN },
		{ "sent", "8fcd0005 00000001 00000002 00000001 00000000 20010400", BWE_OK },
		{ "no status", "8fcd0004 00000001 00000002 00000000 00000000", BWE_MALFORMED },
		{ "cut off", "8fcd0003 00000001 00000002 00000001", BWE_MALFORMED },
	};

	bwe_on_sent(b, 100, now_us);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[64];
		size_t len = hex_bytes(rows[i].hex, bytes, sizeof(bytes));

		cr_expect_eq(feed(bytes, len), rows[i].want, "%s", rows[i].name);
	}
	cr_expect_eq(stats().feedbacks, 1);
	cr_expect_eq(stats().packets_acked, 1);
}

Test(bwe, feedback_older_than_the_history_is_unknown)
{
	twcc_arrivals_on_packet(arrivals, bwe_on_sent(b, 100, now_us), now_us);
	for (int i = 0; i < BWE_HISTORY_PKTS; i++)
		bwe_on_sent(b, 100, now_us);
	cr_expect_eq(answer(), BWE_UNKNOWN);
}

Test(bwe, counts_each_packet_once_and_takes_late_ones_back)
{
	uint16_t first = bwe_on_sent(b, 100, now_us);
	uint16_t second = bwe_on_sent(b, 100, now_us);
	uint16_t third = bwe_on_sent(b, 100, now_us);

	twcc_arrivals_on_packet(arrivals, first, now_us);
	twcc_arrivals_on_packet(arrivals, third, now_us);
	now_us += 50000;
	cr_expect_eq(answer(), BWE_OK);
	cr_expect_eq(stats().packets_acked, 2);
	cr_expect_eq(stats().packets_lost, 1);
	twcc_arrivals_on_packet(arrivals, second, now_us);
	cr_expect_eq(answer(), BWE_OK);
	cr_expect_eq(stats().packets_acked, 3);
	cr_expect_eq(stats().packets_lost, 0);
}

Test(bwe, media_that_arrives_lets_it_grow_a_little_and_no_goal_means_no_probes)
{
	run(20 * S, true);
	/* 2,000 bytes a frame are 485 kbit/s. */
	cr_expect(bwe_target_bps(b) > 650000 && bwe_target_bps(b) < 800000, "%lu",
		  bwe_target_bps(b));
	cr_expect_eq(stats().source, BWE_FROM_FEEDBACK);
	cr_expect_eq(stats().probes, 0);
	cr_expect_eq(bwe_probe_bytes(b, now_us), 0);
	cr_expect_eq(stats().rtt_us, 2 * DELAY_US);
	bwe_set_rtt(b, 7000);
	bwe_set_rtt(b, 0);
	cr_expect_eq(stats().rtt_us, 7000);
}

Test(bwe, a_goal_is_probed_for_and_reached)
{
	uint64_t begun_us, end_us;
	uint32_t bytes;

	run(S, true);
	bwe_set_goal(b, 1500000);
	begun_us = now_us;
	for (end_us = now_us + 5 * S; now_us < end_us; now_us += TICK_US) {
		while ((bytes = bwe_probe_bytes(b, now_us)) > 0)
			twcc_arrivals_on_packet(arrivals, bwe_on_sent(b, bytes, now_us),
						now_us + DELAY_US);
		if (twcc_arrivals_deadline_us(arrivals) <= now_us)
			cr_assert_eq(answer(), BWE_OK);
		bwe_on_timeout(b, now_us);
		if (bwe_target_bps(b) >= 1400000)
			break;
	}
	cr_expect_lt(now_us - begun_us, S);
	cr_expect_leq(bwe_target_bps(b), 1600000);
	cr_expect_gt(stats().probes_measured, 0);
}

Test(bwe, a_peer_that_never_answers_is_known_after_two_seconds)
{
	cr_expect_eq(bwe_deadline_us(b), UINT64_MAX);
	run(S, false);
	cr_expect_eq(stats().source, BWE_FROM_FEEDBACK);
	run(2 * S, false);
	cr_expect_eq(stats().source, BWE_FROM_REPORTS);
	cr_expect_eq(bwe_target_bps(b), START_BPS);
	run(4 * S, false);
	cr_expect_eq(stats().source, BWE_FROM_NOTHING);
	cr_expect_eq(bwe_target_bps(b), 5000000, "no limit is known");
	bwe_on_remb(b, 300000, now_us);
	cr_expect_eq(stats().source, BWE_FROM_REMB);
	bwe_on_report(b, 0, now_us);
	bwe_on_timeout(b, now_us + 20 * S);
	cr_expect_eq(stats().source, BWE_FROM_REPORTS, "that estimate is old");
	run(S, true);
	cr_expect_eq(stats().source, BWE_FROM_FEEDBACK, "it answers after all");
}

Test(bwe, reports_of_loss_lower_and_good_ones_raise_to_the_goal)
{
	uint64_t lowered_bps;

	bwe_on_report(b, 128, now_us);
	cr_expect_eq(bwe_target_bps(b), START_BPS, "feedback may come yet");
	run(3 * S, false);
	bwe_on_report(b, 128, now_us);
	lowered_bps = bwe_target_bps(b);
	cr_expect_lt(lowered_bps, START_BPS * 8 / 10);
	bwe_on_report(b, 12, now_us += S);
	cr_expect_eq(bwe_target_bps(b), lowered_bps, "5 %% are neither good nor bad");
	bwe_set_goal(b, 1000000);
	for (int i = 0; i < 60; i++)
		bwe_on_report(b, 0, now_us += S);
	cr_expect(bwe_target_bps(b) >= 1000000 && bwe_target_bps(b) < 1200000);
}

Test(bwe, remb_bounds_where_it_is_near_what_is_sent)
{
	run(10 * S, false);
	bwe_on_remb(b, 400000, now_us);
	run(S, false);
	bwe_on_remb(b, 400000, now_us);
	run(S, false);
	bwe_on_remb(b, 400000, now_us);
	run(S, false);
	bwe_on_remb(b, 400000, now_us);
	cr_expect_eq(bwe_target_bps(b), 400000);
	bwe_on_remb(b, 900000, now_us);
	cr_expect_eq(bwe_target_bps(b), 900000);
}

Test(bwe, feedback_that_stops_means_a_blocked_way)
{
	uint64_t before_bps;

	run(5 * S, true);
	before_bps = bwe_target_bps(b);
	/* Without packets silence says nothing. */
	cr_expect_eq(bwe_deadline_us(b), UINT64_MAX);
	bwe_on_timeout(b, now_us += 60 * S);
	cr_expect_eq(bwe_target_bps(b), before_bps);
	run(4 * S, false);
	cr_expect_lt(bwe_target_bps(b), before_bps / 2);
	cr_expect_eq(stats().source, BWE_FROM_FEEDBACK);
}

/* The reference time of 24 bits wraps every twelve days. */
Test(bwe, the_peers_clock_may_wrap)
{
	now_us = (UINT64_C(1) << 24) * 64000 - 5 * S;
	run(10 * S, true);
	cr_expect(bwe_target_bps(b) > 600000 && bwe_target_bps(b) < 800000, "%lu",
		  bwe_target_bps(b));
	cr_expect_eq(stats().decreases, 0);
}

Test(bwe, allocates_nothing_after_its_creation)
{
	unsigned calls = fault_calls();

	bwe_set_goal(b, 1000000);
	run(10 * S, true);
	cr_expect_eq(fault_calls(), calls);
}
