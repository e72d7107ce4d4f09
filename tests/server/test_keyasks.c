#include <criterion/criterion.h>

#include "server/keyasks.h"

enum { INTERVAL_US = 500000, VIEWER = 1, JOIN = 2, PERCENT = 25, START_US = 1000000 };

static struct keyasks k;
static struct trigger_run run;
static uint32_t answered, timestamp;

static void setup(void)
{
	keyasks_init(&k, INTERVAL_US, PERCENT);
	timestamp = 0;
}

TestSuite(keyasks, .init = setup, .timeout = 10);

static bool send_keyframe(uint32_t bytes, uint64_t now_us)
{
	return keyasks_on_packet(&k, timestamp += 3000, bytes, true, now_us, &answered);
}

/* As many key frames as empty the account, and a rate of 100 KB/s. */
static uint64_t spend_share(void)
{
	uint64_t now_us = START_US;

	for (unsigned i = 0; i < 4; i++)
		send_keyframe(100000, now_us);
	for (unsigned i = 0; i < 10; i++) {
		now_us += 100000;
		keyasks_on_packet(&k, timestamp += 3000, 10000, false, now_us, &answered);
	}
	return now_us;
}

Test(keyasks, the_first_request_goes_at_once_and_the_rest_folds)
{
	cr_expect_eq(keyasks_poll(&k, START_US, &run), KEYASKS_IDLE);
	cr_expect_eq(keyasks_due_us(&k), UINT64_MAX);
	keyasks_want(&k, START_US, VIEWER, 1, false);
	cr_assert_eq(keyasks_poll(&k, START_US, &run), KEYASKS_ASK);
	cr_expect_eq(run.folds, 1);
	for (unsigned i = 0; i < 100; i++) {
		keyasks_want(&k, START_US + i, VIEWER, 30, false);
		cr_expect_eq(keyasks_poll(&k, START_US + i, &run), KEYASKS_IDLE);
	}
	cr_expect_eq(keyasks_due_us(&k), START_US + INTERVAL_US);
	cr_assert_eq(keyasks_poll(&k, START_US + INTERVAL_US, &run), KEYASKS_ASK);
	cr_expect_eq(run.folds, 3000);
}

Test(keyasks, a_key_frame_answers_what_was_asked_before_it)
{
	keyasks_want(&k, START_US, VIEWER, 1, false);
	cr_assert_eq(keyasks_poll(&k, START_US, &run), KEYASKS_ASK);
	keyasks_want(&k, START_US + 50000, VIEWER, 7, true);
	cr_expect(send_keyframe(1000, START_US + 60000));
	cr_expect_eq(answered, 7);
	cr_expect_eq(keyasks_due_us(&k), UINT64_MAX);
	keyasks_want(&k, START_US + 70000, VIEWER, 1, false);
	cr_expect_eq(keyasks_due_us(&k), START_US + INTERVAL_US, "but not what comes after");
}

Test(keyasks, a_request_without_answer_is_repeated_a_few_times)
{
	unsigned asked = 0;

	keyasks_want(&k, START_US, VIEWER, 1, false);
	for (uint64_t now_us = START_US; now_us < START_US + 60000000; now_us += 10000)
		asked += keyasks_poll(&k, now_us, &run) == KEYASKS_ASK;
	cr_expect_eq(asked, KEYASKS_TRIES);
	cr_expect_eq(keyasks_due_us(&k), UINT64_MAX);
}

Test(keyasks, what_would_exceed_the_share_is_held_back_and_told_once)
{
	uint64_t now_us = spend_share();
	uint64_t asked_us = now_us;
	unsigned held = 0, asked = 0;

	keyasks_want(&k, now_us, VIEWER, 1, false);
	while (!asked && now_us < asked_us + 2 * KEYASKS_WAIT_US) {
		enum keyasks_verdict verdict = keyasks_poll(&k, now_us, &run);

		held += verdict == KEYASKS_HELD;
		asked += verdict == KEYASKS_ASK;
		if (!asked)
			cr_assert_gt(keyasks_due_us(&k), now_us);
		now_us += 10000;
		keyasks_on_packet(&k, timestamp += 3000, 1000, false, now_us, &answered);
	}
	cr_expect_eq(held, 1);
	cr_expect_eq(asked, 1);
	/* 75 KB short, less 25 KB earned since, at 25 KB/s. */
	cr_expect_geq(now_us - asked_us, 1900000);
	cr_expect_leq(now_us - asked_us, 3200000);
}

Test(keyasks, nobody_waits_for_ever)
{
	uint64_t now_us = spend_share();

	/* Nothing is sent any more, so nothing is earned. */
	keyasks_want(&k, now_us, VIEWER, 1, false);
	cr_expect_eq(keyasks_poll(&k, now_us, &run), KEYASKS_HELD);
	cr_expect_eq(keyasks_poll(&k, now_us + KEYASKS_WAIT_US - 1, &run), KEYASKS_IDLE);
	cr_expect_eq(keyasks_poll(&k, now_us + KEYASKS_WAIT_US, &run), KEYASKS_ASK);
}

Test(keyasks, who_has_no_picture_waits_less)
{
	uint64_t now_us = spend_share();

	keyasks_want(&k, now_us, VIEWER, 1, false);
	cr_expect_eq(keyasks_poll(&k, now_us, &run), KEYASKS_HELD);
	keyasks_want(&k, now_us + 100000, JOIN, 1, true);
	keyasks_want(&k, now_us + 200000, JOIN, 1, true);
	cr_expect_eq(keyasks_poll(&k, now_us + 200000, &run), KEYASKS_IDLE);
	cr_expect_leq(keyasks_due_us(&k), now_us + 100000 + KEYASKS_URGENT_US);
	cr_assert_eq(keyasks_poll(&k, now_us + 100000 + KEYASKS_URGENT_US, &run), KEYASKS_ASK);
	cr_expect_eq(run.folds, 3);
	cr_expect_eq(run.reasons, VIEWER | JOIN);
}

Test(keyasks, nothing_is_asked_after_the_end)
{
	keyasks_want(&k, START_US, VIEWER, 1, false);
	cr_assert_eq(keyasks_poll(&k, START_US, &run), KEYASKS_ASK);
	keyasks_want(&k, START_US, VIEWER, 1, false);
	keyasks_stop(&k);
	keyasks_want(&k, START_US, VIEWER, 1, true);
	cr_expect_eq(keyasks_due_us(&k), UINT64_MAX);
	cr_expect_eq(keyasks_poll(&k, START_US + 10 * INTERVAL_US, &run), KEYASKS_IDLE);
}
