#include <criterion/criterion.h>

#include "media/reports.h"
#include "tests/media/flow.h"

enum { SSRC = 42, CLOCK_HZ = 90000, TICK_US = 1000000 / 50 };

static struct reports_rx r;

static void setup(void)
{
	reports_rx_init(&r, SSRC, CLOCK_HZ);
}

TestSuite(reports, .init = setup, .timeout = 10);

/* Packet i of a steady stream that started with `first`. */
static void arrive(uint16_t first, uint32_t i)
{
	reports_rx_on_packet(&r, (uint16_t)(first + i), i * (CLOCK_HZ / 50), 100, i * TICK_US);
}

static struct rtcp_report block_at(uint64_t now_us)
{
	struct rtcp_report block;

	cr_assert(reports_rx_block(&r, now_us, &block));
	return block;
}

Test(reports, there_is_no_block_before_the_first_packet)
{
	struct rtcp_report block;

	reports_rx_on_sr(&r, 1, 0);
	cr_expect_not(reports_rx_block(&r, 0, &block));
	cr_expect_eq(reports_rx_lost(&r), 0);
}

Test(reports, loss_is_counted_in_all_and_since_the_last_block)
{
	for (size_t s = 0; s < FLOW_STARTS; s++) {
		struct rtcp_report block;

		setup();
		for (uint32_t i = 0; i < 100; i++)
			if (i % 4 != 3 || i == 99)
				arrive(flow_starts[s], i);
		block = block_at(0);
		cr_expect_eq(block.ssrc, SSRC);
		cr_expect_eq(block.lost_pkts, 24, "from %u: %d", flow_starts[s], block.lost_pkts);
		cr_expect_eq(block.fraction_lost, 24 * 256 / 100);
		cr_expect_eq(block.highest_seq, flow_starts[s] + 99u, "cycles counted");
		cr_expect_eq(block.jitter_ticks, 0);
		for (uint32_t i = 100; i < 110; i++)
			arrive(flow_starts[s], i);
		block = block_at(0);
		cr_expect_eq(block.lost_pkts, 24);
		cr_expect_eq(block.fraction_lost, 0);
	}
}

Test(reports, nearly_all_lost_is_still_a_fraction)
{
	arrive(7, 0);
	arrive(7, 999);
	cr_expect_eq(block_at(0).fraction_lost, 255);
	cr_expect_eq(block_at(0).lost_pkts, 998);
	cr_expect_eq(block_at(0).fraction_lost, 0, "nothing came since: nothing is known lost");
}

Test(reports, duplicates_may_make_the_loss_negative)
{
	arrive(10, 0);
	arrive(10, 0);
	arrive(10, 0);
	cr_expect_eq(reports_rx_lost(&r), -2);
	cr_expect_eq(block_at(0).lost_pkts, -2);
	cr_expect_eq(block_at(0).fraction_lost, 0);
}

Test(reports, reordering_is_no_loss)
{
	arrive(65534, 0);
	arrive(65534, 2);
	arrive(65534, 1);
	cr_expect_eq(reports_rx_lost(&r), 0);
	cr_expect_eq(block_at(0).highest_seq, 65536);
}

Test(reports, a_jump_is_believed_when_the_next_packet_follows_it)
{
	arrive(100, 0);
	arrive(30000, 0);
	cr_expect_eq(block_at(0).highest_seq, 100);
	arrive(100, 1);
	arrive(30000, 1);
	cr_expect_eq(block_at(0).highest_seq, 101, "not two in a row");
	arrive(30000, 2);
	cr_expect_eq(block_at(0).highest_seq, 30002);
	cr_expect_eq(reports_rx_lost(&r), 0);
}

/* Every second packet comes 5 ms late: |D| is 450 ticks each time, to which J converges. */
Test(reports, jitter_converges_to_the_mean_deviation)
{
	for (uint32_t i = 0; i < 1000; i++)
		reports_rx_on_packet(&r, (uint16_t)i, i * (CLOCK_HZ / 50), 100,
				     i * TICK_US + i % 2 * 5000);
	cr_expect(block_at(0).jitter_ticks >= 449 && block_at(0).jitter_ticks <= 450, "%u",
		  block_at(0).jitter_ticks);
	cr_expect(reports_rx_jitter_us(&r) >= 4980 && reports_rx_jitter_us(&r) <= 5000);
}

Test(reports, the_first_packet_makes_no_jitter)
{
	reports_rx_on_packet(&r, 1, 123456789, 100, 999999999);
	cr_expect_eq(block_at(0).jitter_ticks, 0);
	reports_rx_on_packet(&r, 2, 123456789 + 1800, 100, 999999999 + TICK_US);
	cr_expect_leq(block_at(0).jitter_ticks, 1);
}

Test(reports, a_block_answers_the_last_sender_report)
{
	arrive(10, 0);
	cr_expect_eq(block_at(5).last_sr, 0);
	cr_expect_eq(block_at(5).delay_q16_s, 0);
	reports_rx_on_sr(&r, 0x1122334455667788, 1000000);
	cr_expect_eq(block_at(3500000).last_sr, 0x33445566);
	cr_expect_eq(block_at(3500000).delay_q16_s, 2 << 16 | 1 << 15);
	cr_expect_eq(block_at(999999).delay_q16_s, 0, "a clock never counts back");
}

static const struct {
	const char *name;
	uint32_t last_sr, delay_q16_s;
	uint64_t now_ntp;
	bool want;
	uint32_t want_us;
} trips[] = {
	{ "the example of RFC 3550 section 6.4.1", 0xb7052000, 0x00054000, 0xb44db71080000000, true,
	  6125000 },
	{ "half a second", 0x00010000, 0x00008000, 0x0000000200000000, true, 500000 },
	{ "over the wrap of the middle bits", 0xffff0000, 0x00008000, 0x0001000000000000, true,
	  500000 },
	{ "none of our reports is answered", 0, 0, 0x0000000200000000, false, 0 },
	{ "negative", 0x00010000, 0x00010001, 0x0000000200000000, false, 0 },
	{ "above ten seconds", 0x00010000, 0, 0x0000000c00000000, false, 0 },
	{ "at once", 0x00010000, 0x00010000, 0x0000000200000000, true, 0 },
};

Test(reports, the_round_trip_is_what_the_peer_did_not_spend)
{
	for (size_t i = 0; i < sizeof(trips) / sizeof(trips[0]); i++) {
		struct rtcp_report block = { .last_sr = trips[i].last_sr,
					     .delay_q16_s = trips[i].delay_q16_s };
		uint32_t rtt_us = 0;

		cr_expect_eq(reports_rtt(&block, trips[i].now_ntp, &rtt_us), trips[i].want, "%s",
			     trips[i].name);
		cr_expect_eq(rtt_us, trips[i].want_us, "%s: %u", trips[i].name, rtt_us);
	}
}

Test(reports, what_was_sent_goes_into_the_sender_report)
{
	struct reports_tx tx = { 0 };
	struct rtcp_sender_info info;

	reports_tx_on_packet(&tx, UINT32_MAX);
	reports_tx_on_packet(&tx, 11);
	reports_tx_sender_info(&tx, 0x123456789abcdef0, 77, &info);
	cr_expect_eq(info.packets, 2);
	cr_expect_eq(info.bytes, 10, "modulo 2^32");
	cr_expect_eq(info.ntp, 0x123456789abcdef0);
	cr_expect_eq(info.rtp_timestamp, 77);
}
