#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "media/twcc_arrivals.h"
#include "tests/fault.h"
#include "tests/media/flow.h"

enum { MTU_BYTES = 1200, NOW_US = 1000000 };

static struct twcc_arrivals *a;

static void setup(void)
{
	cr_assert_eq(twcc_arrivals_create(&a), 0);
}

static void teardown(void)
{
	twcc_arrivals_destroy(a);
}

TestSuite(twcc_arrivals, .init = setup, .fini = teardown, .timeout = 10);

/* What the sender reads: the time of each number, 0 = told as missing, -1 = not told. */
struct told {
	int64_t arrival_us[RTP_SEQ_CYCLE];
	uint8_t feedback_count;
	size_t feedbacks;
};

static struct told told;

static void forget(void)
{
	memset(&told, 0xff, sizeof(told));
	told.feedbacks = 0;
}

static int tell(size_t room_bytes)
{
	uint8_t bytes[MTU_BYTES];
	struct rtcp_twcc_status status;
	struct rtcp_twcc_cursor statuses;
	struct rtcp_cursor members;
	struct rtcp_feedback fb;
	struct rtcp_member m;
	struct rtcp_writer w;
	int covered, n = 0;

	rtcp_writer_init(&w, bytes, room_bytes);
	covered = twcc_arrivals_write(a, &w, 1, 2);
	if (covered <= 0) {
		cr_assert_eq(w.len_bytes, 0);
		return covered;
	}
	rtcp_cursor_init(&members, bytes, w.len_bytes);
	cr_assert_eq(rtcp_cursor_next(&members, &m), RTCP_NEXT_MEMBER);
	cr_assert(rtcp_parse_feedback(&m, &fb) && rtcp_twcc_init(&statuses, &fb));
	for (; rtcp_twcc_next(&statuses, &status); n++)
		told.arrival_us[status.seq] = status.is_received ? status.arrival_us : 0;
	cr_assert_eq(n, covered);
	told.feedback_count = statuses.feedback_count;
	told.feedbacks++;
	return covered;
}

static void tell_all(void)
{
	while (twcc_arrivals_deadline_us(a) != UINT64_MAX)
		cr_assert_gt(tell(MTU_BYTES), 0);
	cr_assert_eq(tell(MTU_BYTES), 0, "told twice");
}

Test(twcc_arrivals, memory_that_is_not_there_is_reported)
{
	struct twcc_arrivals *other;

	fault_after(0);
	cr_expect_eq(twcc_arrivals_create(&other), -ENOMEM);
	fault_after(-1);
	cr_expect_null(other);
}

Test(twcc_arrivals, feedback_is_due_a_little_after_the_first_arrival)
{
	cr_expect_eq(twcc_arrivals_deadline_us(a), UINT64_MAX);
	twcc_arrivals_on_packet(a, 7, NOW_US);
	twcc_arrivals_on_packet(a, 8, NOW_US + 30000);
	cr_expect_eq(twcc_arrivals_deadline_us(a), NOW_US + TWCC_ARRIVALS_INTERVAL_US);
	forget();
	tell_all();
	cr_expect_eq(twcc_arrivals_deadline_us(a), UINT64_MAX);
	twcc_arrivals_on_packet(a, 8, NOW_US + 60000);
	cr_expect_eq(twcc_arrivals_deadline_us(a), UINT64_MAX, "a duplicate is no news");
}

Test(twcc_arrivals, gaps_are_told_from_every_start)
{
	for (size_t i = 0; i < FLOW_STARTS; i++) {
		uint16_t first = flow_starts[i];

		teardown();
		setup();
		forget();
		twcc_arrivals_on_packet(a, first, NOW_US);
		twcc_arrivals_on_packet(a, (uint16_t)(first + 3), NOW_US + 2000);
		tell_all();
		cr_expect_eq(told.arrival_us[first], NOW_US, "start %u", first);
		cr_expect_eq(told.arrival_us[(uint16_t)(first + 1)], 0, "start %u", first);
		cr_expect_eq(told.arrival_us[(uint16_t)(first + 2)], 0, "start %u", first);
		cr_expect_eq(told.arrival_us[(uint16_t)(first + 3)], NOW_US + 2000);
		/* The gap between two feedbacks belongs to the second. */
		forget();
		twcc_arrivals_on_packet(a, (uint16_t)(first + 6), NOW_US + 4000);
		tell_all();
		cr_expect_eq(told.arrival_us[(uint16_t)(first + 3)], -1, "start %u", first);
		cr_expect_eq(told.arrival_us[(uint16_t)(first + 4)], 0, "start %u", first);
		cr_expect_eq(told.arrival_us[(uint16_t)(first + 6)], NOW_US + 4000);
	}
}

Test(twcc_arrivals, what_a_move_swallowed_is_not_told_as_missing)
{
	forget();
	(void)twcc_arrivals_on_packet(a, 100, NOW_US);
	cr_assert_gt(tell(MTU_BYTES), 0);
	twcc_arrivals_on_moved(a);
	cr_expect_eq(twcc_arrivals_on_packet(a, 99, NOW_US), TWCC_ARRIVALS_LATE);
	cr_expect_eq(twcc_arrivals_on_packet(a, 400, NOW_US + 2000000), TWCC_ARRIVALS_RESTART);
	cr_expect_eq(twcc_arrivals_on_packet(a, 402, NOW_US + 2000000), TWCC_ARRIVALS_NEW);
	cr_assert_gt(tell(MTU_BYTES), 0);
	cr_expect_eq(told.arrival_us[101], -1);
	cr_expect_eq(told.arrival_us[399], -1);
	cr_expect_gt(told.arrival_us[400], 0);
	cr_expect_eq(told.arrival_us[401], 0, "what is lost after it is");
	/* One that lost nothing changes nothing. */
	twcc_arrivals_on_moved(a);
	cr_expect_eq(twcc_arrivals_on_packet(a, 403, NOW_US + 2000000), TWCC_ARRIVALS_NEW);
	cr_expect_eq(twcc_arrivals_on_packet(a, 405, NOW_US + 2000000), TWCC_ARRIVALS_NEW);
}

Test(twcc_arrivals, what_comes_after_all_is_told_again)
{
	twcc_arrivals_on_packet(a, 10, NOW_US);
	twcc_arrivals_on_packet(a, 12, NOW_US + 1000);
	tell_all();
	forget();
	cr_expect_eq(twcc_arrivals_on_packet(a, 11, NOW_US + 9000), TWCC_ARRIVALS_NEW);
	cr_expect_eq(twcc_arrivals_deadline_us(a), NOW_US + 9000 + TWCC_ARRIVALS_INTERVAL_US);
	tell_all();
	cr_expect_eq(told.arrival_us[10], -1);
	cr_expect_eq(told.arrival_us[11], NOW_US + 9000);
	cr_expect_eq(told.arrival_us[12], NOW_US + 1000);
}

Test(twcc_arrivals, each_kind_of_arrival_is_known)
{
	enum { BACK = TWCC_ARRIVALS_BACK_PKTS, JUMP = TWCC_ARRIVALS_JUMP_PKTS };
	static const struct {
		const char *name;
		uint16_t seq;
		enum twcc_arrivals_verdict want;
	} rows[] = {
		{ "next", 5001, TWCC_ARRIVALS_NEW },
		{ "gap", 5010, TWCC_ARRIVALS_NEW },
		{ "in the gap", 5005, TWCC_ARRIVALS_NEW },
		{ "again", 5005, TWCC_ARRIVALS_DUPLICATE },
		{ "before the first", 4999, TWCC_ARRIVALS_LATE },
		{ "largest gap", 5010 + JUMP, TWCC_ARRIVALS_NEW },
		{ "jump ahead", 5010 + 2 * JUMP + 1, TWCC_ARRIVALS_RESTART },
		{ "jump back", 5010 + JUMP, TWCC_ARRIVALS_RESTART },
	};

	twcc_arrivals_on_packet(a, 5000, NOW_US);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(twcc_arrivals_on_packet(a, rows[i].seq, NOW_US), rows[i].want, "%s",
			     rows[i].name);
	for (uint16_t seq = 20001; seq < 20001 + BACK + 10; seq++)
		twcc_arrivals_on_packet(a, seq == 20002 ? 20001 : seq, NOW_US);
	tell_all();
	cr_expect_eq(twcc_arrivals_on_packet(a, 20002, NOW_US), TWCC_ARRIVALS_LATE);
}

Test(twcc_arrivals, feedbacks_are_counted_and_split_where_space_ends)
{
	uint64_t now_us = NOW_US;

	forget();
	for (uint16_t seq = 0; seq < 600; seq++)
		twcc_arrivals_on_packet(a, seq, now_us += 1000);
	cr_expect_eq(tell(20), -ENOSPC);
	cr_expect_eq(told.feedbacks, 0);
	while (twcc_arrivals_deadline_us(a) != UINT64_MAX) {
		cr_assert_gt(tell(200), 0);
		cr_assert_eq(told.feedback_count, told.feedbacks - 1);
	}
	cr_expect_gt(told.feedbacks, 3);
	for (uint16_t seq = 0; seq < 600; seq++)
		cr_assert_lt(llabs(told.arrival_us[seq] - (NOW_US + 1000 * (seq + 1))), 250);
}

Test(twcc_arrivals, forgets_the_oldest_when_nobody_writes)
{
	for (uint32_t i = 0; i < 5 * TWCC_ARRIVALS_CAP_PKTS; i++)
		twcc_arrivals_on_packet(a, (uint16_t)i, NOW_US + i);
	forget();
	tell_all();
	cr_expect_eq(told.arrival_us[0], -1);
	cr_expect_geq(told.arrival_us[5 * TWCC_ARRIVALS_CAP_PKTS - 1], NOW_US);
	cr_expect_gt(twcc_arrivals_untold(a), 3 * TWCC_ARRIVALS_CAP_PKTS);
	cr_expect_lt(twcc_arrivals_untold(a), 5 * TWCC_ARRIVALS_CAP_PKTS);
}

/* Loss, reordering and duplicates over three wraps: every arrival is told with its time. */
Test(twcc_arrivals, tells_all_arrivals_and_allocates_nothing)
{
	static int64_t arrived_us[RTP_SEQ_CYCLE];
	uint64_t random = 1, now_us = NOW_US, wrong = 0;
	unsigned calls = fault_calls();
	uint16_t seq = 65000;

	memset(arrived_us, 0, sizeof(arrived_us));
	forget();
	for (uint32_t i = 0; i < 200000; i++) {
		uint16_t late = (uint16_t)(seq - 1 - flow_random(&random) % 20);
		uint16_t next = flow_random(&random) % 10 == 0 ? late : ++seq;

		if (next == seq) {
			arrived_us[next] = 0;
			told.arrival_us[next] = 0;
			if (flow_random(&random) % 20 == 0)
				continue; /* lost */
		}
		now_us += flow_random(&random) % 3000;
		if (twcc_arrivals_on_packet(a, next, now_us) == TWCC_ARRIVALS_NEW)
			arrived_us[next] = (int64_t)now_us;
		if (twcc_arrivals_deadline_us(a) > now_us)
			continue;
		tell_all();
		for (uint16_t back = 0; back < 200; back++) {
			uint16_t at = (uint16_t)(seq - back);

			wrong += llabs(told.arrival_us[at] - arrived_us[at]) >= 250;
		}
	}
	cr_expect_eq(wrong, 0);
	cr_expect_eq(twcc_arrivals_untold(a), 0);
	cr_expect_eq(fault_calls(), calls);
}
