#include <criterion/criterion.h>

#include "media/pacer.h"

TestSuite(pacer, .timeout = 10);

enum { S = 1000000, TARGET_BPS = 1000000, PACKET_BYTES = 1200 };

static struct pacer p;

static void setup(void)
{
	pacer_init(&p, TARGET_BPS);
}

/* Packets that may leave at once. */
static unsigned burst(uint64_t now_us)
{
	unsigned n = 0;

	for (; n < 1000 && pacer_may_send(&p, now_us); n++)
		pacer_on_sent(&p, PACKET_BYTES, now_us);
	return n;
}

Test(pacer, an_ordinary_frame_leaves_at_once, .init = setup)
{
	/* 33 ms of 1 Mbit/s. */
	for (uint64_t now_us = S; now_us < 10 * S; now_us += 33333)
		for (int i = 0; i < 4; i++) {
			cr_assert(pacer_may_send(&p, now_us));
			pacer_on_sent(&p, 1040, now_us);
		}
}

Test(pacer, a_large_frame_leaves_in_parts_at_the_pace, .init = setup)
{
	uint64_t now_us = S;
	unsigned sent = burst(now_us);

	cr_expect_leq(sent, 6, "20 ms of 2.5 Mbit/s are 6,250 bytes");
	while (sent < 100) {
		unsigned part;

		cr_assert_gt(pacer_due_us(&p), now_us);
		cr_assert_not(pacer_may_send(&p, pacer_due_us(&p) - 1));
		now_us = pacer_due_us(&p);
		part = burst(now_us);
		cr_assert(part >= 2 && part <= 4, "%u", part);
		sent += part;
	}
	/* 120,000 bytes at 2.5 Mbit/s. */
	cr_expect(now_us - S > 340000 && now_us - S < 400000, "%lu", now_us - S);
}

Test(pacer, a_fast_link_is_not_waited_for, .init = setup)
{
	pacer_set_rate(&p, 50 * TARGET_BPS, 0);
	cr_expect_geq(burst(S), 250);
}

Test(pacer, a_slow_link_still_gets_a_packet, .init = setup)
{
	pacer_set_rate(&p, 30000, 0);
	cr_expect_eq(burst(S), 1);
	cr_expect_lt(pacer_due_us(&p), S + 200000);
}

Test(pacer, a_backlog_is_gone_in_time_whatever_the_estimate, .init = setup)
{
	uint64_t backlog_bytes = 500000, now_us = S;

	while (backlog_bytes > 0) {
		pacer_set_rate(&p, 100000, backlog_bytes);
		if (pacer_may_send(&p, now_us)) {
			pacer_on_sent(&p, 1000, now_us);
			backlog_bytes -= 1000;
		} else {
			now_us = pacer_due_us(&p);
		}
	}
	cr_expect(now_us > S + PACER_MAX_DELAY_US / 2 && now_us <= S + PACER_MAX_DELAY_US, "%lu",
		  now_us);
	pacer_set_rate(&p, 100000, 0);
	now_us += S;
	cr_expect_eq(burst(now_us), 1, "the pace is that of the estimate again");
}

Test(pacer, what_did_not_wait_counts, .init = setup)
{
	for (int i = 0; i < 50; i++)
		pacer_on_sent(&p, 200, S);
	cr_expect_not(pacer_may_send(&p, S));
}
