#include <criterion/criterion.h>
#include <errno.h>

#include "net/trigger.h"

enum { INTERVAL_US = 1000 };

static struct trigger t;
static struct trigger_run run;

static void setup(void)
{
	trigger_init(&t, INTERVAL_US);
}

TestSuite(trigger, .init = setup, .timeout = 10);

Test(trigger, the_first_request_runs_at_once)
{
	cr_assert_eq(trigger_request(&t, 50, 1, 1), 0);
	cr_expect_eq(trigger_due_us(&t), 50);
	cr_assert(trigger_begin(&t, 50, &run));
	cr_expect_eq(run.folds, 1);
	cr_expect_eq(run.latency_us, 0);
}

Test(trigger, requests_of_the_interval_fold_into_one_run_at_its_end)
{
	trigger_request(&t, 0, 1, 1);
	trigger_begin(&t, 0, &run);
	trigger_end(&t);
	trigger_request(&t, 100, 2, 1);
	trigger_request(&t, 200, 4, 3);
	cr_expect_not(trigger_begin(&t, INTERVAL_US - 1, &run));
	cr_assert(trigger_begin(&t, INTERVAL_US, &run));
	cr_expect_eq(run.folds, 4);
	cr_expect_eq(run.reasons, 6);
	cr_expect_eq(run.latency_us, INTERVAL_US - 100, "since the first of them");
}

Test(trigger, nothing_asked_means_no_run)
{
	cr_expect_eq(trigger_due_us(&t), UINT64_MAX);
	cr_expect_not(trigger_begin(&t, UINT64_MAX - 1, &run));
	cr_expect_eq(t.runs, 0);
}

Test(trigger, a_run_does_not_overlap_the_next)
{
	trigger_request(&t, 0, 1, 1);
	cr_assert(trigger_begin(&t, 0, &run));
	trigger_request(&t, 10, 1, 1);
	cr_expect_eq(trigger_due_us(&t), UINT64_MAX, "not while one is on");
	cr_expect_not(trigger_begin(&t, INTERVAL_US * 5, &run));
	trigger_end(&t);
	cr_expect(trigger_begin(&t, INTERVAL_US * 5, &run));
}

Test(trigger, what_is_withdrawn_does_not_run_and_counts_as_dropped)
{
	trigger_request(&t, 0, 1, 1);
	cr_assert(trigger_begin(&t, 0, &run));
	trigger_end(&t);
	trigger_request(&t, 10, 2, 4);
	cr_expect_eq(trigger_withdraw(&t), 4);
	cr_expect_eq(trigger_withdraw(&t), 0);
	cr_expect_eq(trigger_due_us(&t), UINT64_MAX);
	cr_expect_eq(t.dropped, 4);
	trigger_request(&t, 20, 8, 1);
	cr_expect_eq(trigger_due_us(&t), INTERVAL_US, "the spacing holds");
	cr_assert(trigger_begin(&t, INTERVAL_US, &run));
	cr_expect_eq(run.reasons, 8);
	cr_expect_eq(run.folds, 1);
}

Test(trigger, a_slow_run_does_not_queue_further_ones)
{
	trigger_request(&t, 0, 1, 1);
	trigger_begin(&t, 0, &run);
	for (uint64_t now = 1; now < 10 * INTERVAL_US; now += 100)
		trigger_request(&t, now, 1, 1);
	trigger_end(&t);
	cr_assert(trigger_begin(&t, 10 * INTERVAL_US, &run));
	cr_expect_eq(run.folds, 100);
	trigger_end(&t);
	cr_expect_not(trigger_begin(&t, 100 * INTERVAL_US, &run));
}

Test(trigger, stopping_drains_at_once_or_drops_with_a_count)
{
	for (int drain = 0; drain < 2; drain++) {
		setup();
		trigger_request(&t, 0, 1, 1);
		trigger_begin(&t, 0, &run);
		trigger_end(&t);
		trigger_request(&t, 1, 1, 5);
		trigger_stop(&t, drain ? TRIGGER_DRAIN : TRIGGER_DROP);
		trigger_stop(&t, drain ? TRIGGER_DROP : TRIGGER_DRAIN); /* the first decides */
		cr_expect_eq(trigger_request(&t, 2, 1, 1), -ESHUTDOWN);
		cr_expect_eq(trigger_begin(&t, 2, &run), drain == 1, "the wait is cut short");
		cr_expect_eq(t.dropped, drain ? 0 : 5);
	}
}

/* Any history: folds of all runs and drops are the requests; starts keep their distance. */
Test(trigger, every_request_is_answered_once_whatever_the_history)
{
	uint32_t random = 1;

	for (unsigned round = 0; round < 200; round++) {
		uint64_t now = 0, folds = 0, asked = 0, last_start = 0;
		bool running = false;

		setup();
		for (unsigned step = 0; step < 300; step++) {
			random = random * 1664525 + 1013904223;
			now += random >> 20 & 0x3ff;
			if (random >> 8 & 1) {
				uint32_t n = 1 + (random >> 10 & 3);

				cr_assert_eq(trigger_request(&t, now, 1, n), 0);
				asked += n;
			} else if (running) {
				trigger_end(&t);
				running = false;
			} else if (trigger_begin(&t, now, &run)) {
				cr_assert_gt(run.folds, 0);
				cr_assert(t.runs == 1 || now - last_start >= INTERVAL_US);
				last_start = now;
				folds += run.folds;
				running = true;
			}
		}
		trigger_stop(&t, TRIGGER_DROP);
		cr_assert_eq(folds + t.dropped, asked);
		cr_assert_eq(t.requests, asked);
	}
}
