#include <criterion/criterion.h>

#include "net/ticker.h"

enum { ITEMS = 500 };

static struct ticker t;
static struct ticker_item items[ITEMS];
static unsigned fired[ITEMS];
static uint64_t last_due_us;
static uint64_t due_of[ITEMS];

static void on_due(struct ticker_item *item, uint64_t now_us)
{
	size_t i = (size_t)(item - items);

	cr_assert_leq(due_of[i], now_us + TICKER_GRAIN_US);
	cr_assert_geq(due_of[i], last_due_us, "in order of their deadlines");
	last_due_us = due_of[i];
	fired[i]++;
	cr_assert_eq(item->at, 0);
}

static void setup(void)
{
	ticker_init(&t);
	cr_assert_eq(ticker_reserve(&t, ITEMS), 0);
	for (unsigned i = 0; i < ITEMS; i++)
		ticker_item_init(&items[i], on_due);
	memset(fired, 0, sizeof(fired));
	last_due_us = 0;
}

static void arm(unsigned i, uint64_t due_us)
{
	due_of[i] = due_us;
	ticker_arm(&t, &items[i], due_us);
}

static void teardown(void)
{
	for (unsigned i = 0; i < ITEMS; i++)
		ticker_arm(&t, &items[i], UINT64_MAX);
	ticker_fini(&t);
}

TestSuite(ticker, .init = setup, .fini = teardown, .timeout = 20);

Test(ticker, nothing_armed_has_no_deadline)
{
	cr_expect_eq(ticker_due_us(&t), UINT64_MAX);
	arm(0, 5000);
	cr_expect_eq(ticker_due_us(&t), 5000);
	ticker_arm(&t, &items[0], UINT64_MAX);
	cr_expect_eq(ticker_due_us(&t), UINT64_MAX);
}

Test(ticker, sooner_never_means_later)
{
	arm(0, 5000);
	ticker_arm_sooner(&t, &items[0], 9000);
	cr_expect_eq(items[0].due_us, 5000);
	ticker_arm_sooner(&t, &items[0], 3000);
	cr_expect_eq(items[0].due_us, 3000);
}

/* Against the obvious model: an array of deadlines. */
Test(ticker, each_deadline_fires_once_in_order_whatever_was_armed_and_moved)
{
	uint32_t random = 7;

	for (unsigned round = 0; round < 50; round++) {
		uint64_t now_us = 1000000;
		unsigned armed = 0, count = 0;

		teardown();
		setup();
		for (unsigned step = 0; step < 2000; step++) {
			unsigned i;

			random = random * 1664525 + 1013904223;
			i = random >> 8 & 0xffff;
			i %= ITEMS;
			if (random >> 30 == 0)
				ticker_arm(&t, &items[i], UINT64_MAX);
			else
				arm(i, now_us + (random >> 4 & 0xffff));
		}
		for (unsigned i = 0; i < ITEMS; i++)
			armed += items[i].at != 0;
		cr_assert_eq(armed, t.count);
		for (; ticker_due_us(&t) != UINT64_MAX; now_us += 3000)
			ticker_run(&t, now_us);
		for (unsigned i = 0; i < ITEMS; i++)
			count += fired[i];
		cr_assert_eq(count, armed);
	}
}

static unsigned again;

static void on_due_again(struct ticker_item *item, uint64_t now_us)
{
	again++;
	ticker_arm(&t, item, now_us - 10);
}

Test(ticker, an_item_that_arms_itself_for_the_past_cannot_hold_up_the_turn)
{
	struct ticker_item greedy;

	ticker_item_init(&greedy, on_due_again);
	ticker_arm(&t, &greedy, 100);
	arm(1, 200);
	again = 0;
	ticker_run(&t, 1000);
	cr_expect_eq(again, 1);
	cr_expect_eq(fired[1], 1);
	ticker_run(&t, 2000);
	cr_expect_eq(again, 2, "and its next run comes");
	ticker_arm(&t, &greedy, UINT64_MAX);
}
