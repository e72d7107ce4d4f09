#include <criterion/criterion.h>

#include "media/clock.h"
#include "media/round_trip.h"

TestSuite(round_trip, .timeout = 10);

/* Our reference time of then_us, which the peer held for held_us. */
static struct rtcp_dlrr answer(uint64_t then_us, uint64_t held_us)
{
	return (struct rtcp_dlrr){
		.ssrc = 1,
		.last_rr = (uint32_t)(clock_ntp_of_us(then_us) >> 16),
		.delay_q16_s = (uint32_t)(held_us * 65536 / 1000000),
	};
}

Test(round_trip, an_answer_to_a_reference_time_tells_it)
{
	static const uint64_t starts_us[] = { 1000000, UINT64_C(65536000000) - 20000, 100 };

	for (size_t row = 0; row < sizeof(starts_us) / sizeof(starts_us[0]); row++) {
		struct round_trip r = { 0 };
		uint64_t then_us = starts_us[row], now_us = then_us + 500000 + 40000;
		struct rtcp_dlrr dlrr = answer(then_us, 500000);

		cr_expect_eq(round_trip_patience_us(&r), 0, "row %zu: unknown", row);
		cr_assert(round_trip_on_dlrr(&r, &dlrr, clock_ntp_of_us(now_us), now_us));
		cr_expect_leq(r.smoothed_us, 40000 + 32, "row %zu", row);
		cr_expect_geq(r.smoothed_us, 40000 - 32, "row %zu", row);
	}
}

Test(round_trip, an_answer_that_makes_no_sense_changes_nothing)
{
	struct round_trip r = { 0 };
	struct rtcp_dlrr none = { .ssrc = 1 };
	struct rtcp_dlrr early = answer(1000000, 200000); /* held longer than it took */
	struct rtcp_dlrr old = answer(1000000, 0);

	cr_expect_not(round_trip_on_dlrr(&r, &none, clock_ntp_of_us(2000000), 2000000));
	cr_expect_not(round_trip_on_dlrr(&r, &early, clock_ntp_of_us(1100000), 1100000));
	cr_expect_not(round_trip_on_dlrr(&r, &old, clock_ntp_of_us(12000000), 12000000));
	cr_expect_eq(round_trip_patience_us(&r), 0);
}

Test(round_trip, patience_covers_what_varies)
{
	struct round_trip steady = { 0 }, varying = { 0 };

	for (unsigned i = 0; i < 100; i++) {
		round_trip_on_repair(&steady, 50000, i);
		round_trip_on_repair(&varying, i % 2 ? 40000 : 60000, i);
	}
	cr_expect_eq(round_trip_patience_us(&steady), 50000 + ROUND_TRIP_SLACK_US);
	cr_expect_geq(round_trip_patience_us(&varying), 60000);
	cr_expect_leq(round_trip_patience_us(&varying), 100000);
}

Test(round_trip, repairs_count_only_where_nothing_exact_is_known)
{
	struct round_trip r = { 0 };
	struct rtcp_dlrr dlrr = answer(1000000, 0);

	round_trip_on_repair(&r, 90000, 900000);
	cr_expect_eq(r.smoothed_us, 90000);
	cr_assert(round_trip_on_dlrr(&r, &dlrr, clock_ntp_of_us(1030000), 1030000));
	cr_expect_leq(r.smoothed_us, 30032, "what was guessed before is forgotten");
	round_trip_on_repair(&r, 200000, 1030000 + ROUND_TRIP_EXACT_US - 1);
	cr_expect_leq(r.smoothed_us, 30032);
	round_trip_on_repair(&r, 200000, 1030000 + ROUND_TRIP_EXACT_US);
	cr_expect_gt(r.smoothed_us, 40000, "the peer has fallen silent");
	round_trip_on_repair(&r, ROUND_TRIP_MAX_US + 1, 99000000);
	cr_expect_lt(r.smoothed_us, 100000, "an error");
}

Test(round_trip, reference_times_are_answered_once_with_their_age)
{
	struct reference_times t = { 0 };
	struct rtcp_dlrr out[REFERENCE_TIMES];

	cr_expect_eq(reference_times_take(&t, 5, out), 0);
	reference_times_note(&t, 7, UINT64_C(0x1234567890abcdef), 1000000);
	reference_times_note(&t, 8, 0, 1000000);
	reference_times_note(&t, 7, UINT64_C(0x1234667890abcdef), 2000000); /* the newest counts */
	cr_assert_eq(reference_times_take(&t, 3500000, out), 2);
	cr_expect_eq(out[0].ssrc, 7);
	cr_expect_eq(out[0].last_rr, 0x667890ab);
	cr_expect_eq(out[0].delay_q16_s, 3 << 15);
	cr_expect_eq(out[1].ssrc, 8);
	cr_expect_eq(out[1].delay_q16_s, 5 << 15);
	cr_expect_eq(reference_times_take(&t, 3500000, out), 0);
}

Test(round_trip, the_oldest_of_too_many_reference_times_gives_way)
{
	struct reference_times t = { 0 };
	struct rtcp_dlrr out[REFERENCE_TIMES];

	for (uint32_t ssrc = 1; ssrc <= REFERENCE_TIMES + 2; ssrc++)
		reference_times_note(&t, ssrc, UINT64_C(1) << 32, 0);
	cr_assert_eq(reference_times_take(&t, 0, out), REFERENCE_TIMES);
	for (size_t i = 0; i < REFERENCE_TIMES; i++)
		cr_expect_gt(out[i].ssrc, 2, "%zu", i);
}
