#include <criterion/criterion.h>

#include "media/resend.h"
#include "tests/media/flow.h"

enum { FIRST_INDEX = 70000, RTT_US = 80000, PACKET_BYTES = 1000 };

static struct resend r;
static struct resend_share share;

static void setup(void)
{
	resend_init(&r, FIRST_INDEX, 1000, 5);
	resend_share_init(&share);
}

TestSuite(resend, .init = setup, .timeout = 10);

static enum resend_verdict allow(uint16_t seq, uint64_t now_us)
{
	return resend_allow(&r, &share, seq, PACKET_BYTES, now_us, RTT_US);
}

Test(resend, the_same_number_waits_for_one_round_trip)
{
	cr_expect_eq(allow(7, 0), RESEND_SEND, "also at time zero");
	cr_expect_eq(allow(7, 0), RESEND_TOO_SOON);
	cr_expect_eq(allow(7, RTT_US - 1), RESEND_TOO_SOON);
	cr_expect_eq(allow(8, RTT_US - 1), RESEND_SEND, "another number may go");
	cr_expect_eq(allow(7, RTT_US), RESEND_SEND);
	cr_expect_eq(allow(7, 2 * RTT_US - 1), RESEND_TOO_SOON);
}

Test(resend, a_short_round_trip_still_waits_25_ms)
{
	resend_allow(&r, &share, 7, 1, 0, 0);
	cr_expect_eq(resend_allow(&r, &share, 7, 1, RESEND_MIN_SPACING_US - 1, 100),
		     RESEND_TOO_SOON);
	cr_expect_eq(resend_allow(&r, &share, 7, 1, RESEND_MIN_SPACING_US, 100), RESEND_SEND);
}

Test(resend, a_refusal_costs_nothing)
{
	share.credit_fifths = PACKET_BYTES * RESEND_SHARE_DIVISOR;
	cr_expect_eq(resend_allow(&r, &share, 7, PACKET_BYTES + 1, 0, 0), RESEND_OVER_SHARE);
	cr_expect_eq(allow(7, 0), RESEND_SEND, "the refused number was not noted");
	cr_expect_eq(share.credit_fifths, 0);
	cr_expect_eq(allow(7, 1), RESEND_TOO_SOON);
	cr_expect_eq(allow(8, 1), RESEND_OVER_SHARE);
}

Test(resend, a_burst_in_a_row_fits_the_table_and_no_more)
{
	enum { TABLE = RESEND_SETS * RESEND_WAYS };

	for (uint16_t i = 0; i < TABLE; i++)
		cr_expect_eq(resend_allow(&r, &share, (uint16_t)(65500 + i), 1, 0, RTT_US),
			     RESEND_SEND, "%u", i);
	cr_expect_eq(resend_allow(&r, &share, (uint16_t)(65500 + TABLE), 1, 0, RTT_US),
		     RESEND_BUSY);
	cr_expect_eq(resend_allow(&r, &share, 65500, 1, 0, RTT_US), RESEND_TOO_SOON);
	cr_expect_eq(resend_allow(&r, &share, (uint16_t)(65500 + TABLE), 1, RTT_US, RTT_US),
		     RESEND_SEND);
}

Test(resend, repeats_take_a_fifth_of_the_media)
{
	uint64_t media_bytes = 0, repeat_bytes = 0, now_us = 0, random = 1;

	for (uint32_t i = 0; i < 100000; i++, now_us += 500) {
		uint32_t bytes = flow_random(&random) % 1200 + 1;

		if (i % 3 == 0) {
			resend_share_earn(&share, bytes);
			media_bytes += bytes;
		}
		if (resend_allow(&r, &share, (uint16_t)i, bytes, now_us, 0) == RESEND_SEND)
			repeat_bytes += bytes;
		cr_assert_leq(repeat_bytes,
			      RESEND_START_CREDIT_BYTES + media_bytes / RESEND_SHARE_DIVISOR + 1);
	}
	cr_expect_gt(repeat_bytes, media_bytes / RESEND_SHARE_DIVISOR - 2000, "and they do get it");
}

Test(resend, credit_does_not_pile_up)
{
	for (int i = 0; i < 10000; i++)
		resend_share_earn(&share, UINT32_MAX / 2);
	cr_expect_eq(share.credit_fifths, RESEND_MAX_CREDIT_BYTES * RESEND_SHARE_DIVISOR);
}

Test(resend, rtx_numbers_are_used_once)
{
	cr_expect_eq(resend_next_rtx(&r), 5);
	cr_expect_eq(resend_next_rtx(&r), 6);
}

Test(resend, a_viewers_number_names_the_index_it_was_sent_for)
{
	static const uint16_t firsts[] = { 0, 1, 1000, RESEND_FIRST_NUMBER_MAX };

	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		resend_init(&r, FIRST_INDEX, firsts[i], 0);
		cr_expect_eq(resend_number(&r, FIRST_INDEX), firsts[i]);
		for (uint64_t newest = FIRST_INDEX; newest < FIRST_INDEX + 200000; newest += 997) {
			uint64_t back = newest - FIRST_INDEX < 500 ? newest - FIRST_INDEX : 500;
			uint64_t index = 0;
			uint16_t seq = (uint16_t)resend_number(&r, newest - back);

			cr_assert(resend_index(&r, newest, seq, &index));
			cr_assert_eq(index, newest - back);
		}
	}
}

Test(resend, numbers_never_sent_name_nothing)
{
	uint64_t index;

	cr_expect_not(resend_index(&r, FIRST_INDEX + 10, 999, &index), "before the first");
	cr_expect_not(resend_index(&r, FIRST_INDEX + 10, 1011, &index), "not sent yet");
	cr_expect(resend_index(&r, FIRST_INDEX + 10, 1010, &index));
	resend_init(&r, 5, 0, 0);
	cr_expect_not(resend_index(&r, 5, 65535, &index));
}

Test(resend, what_was_just_sent_for_the_first_time_is_not_sent_again)
{
	resend_note(&r, 7, 1000, RTT_US);
	cr_expect_eq(allow(7, 1000 + RTT_US - 1), RESEND_TOO_SOON);
	cr_expect_eq(allow(7, 1000 + RTT_US), RESEND_SEND);
	/* Nor does a full table make room by forgetting what was sent again. */
	for (uint16_t i = 0; i < RESEND_WAYS; i++)
		cr_expect_eq(allow((uint16_t)(3 + i * RESEND_SETS), 0), RESEND_SEND);
	resend_note(&r, 3 + RESEND_WAYS * RESEND_SETS, 1, RTT_US);
	for (uint16_t i = 0; i < RESEND_WAYS; i++)
		cr_expect_eq(allow((uint16_t)(3 + i * RESEND_SETS), 1), RESEND_TOO_SOON);
}
