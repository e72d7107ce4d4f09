#include <criterion/criterion.h>

#include "loadgen/account.h"

/* Numbers wrap where bugs live: every test runs from each of these. */
static const uint16_t starts[] = { 0, 1, 32767, 32768, 65530, 65534, 65535 };

enum { STARTS = sizeof(starts) / sizeof(starts[0]) };

static struct account a;

static enum account_arrival arrive(uint16_t start, int offset, bool is_repair)
{
	return account_on_packet(&a, (uint16_t)(start + offset), is_repair);
}

TestSuite(account, .timeout = 10);

Test(account, every_number_in_order_is_expected_and_received)
{
	for (unsigned s = 0; s < STARTS; s++) {
		account_init(&a);
		for (int i = 0; i < 200000; i++)
			cr_assert_eq(arrive(starts[s], i, false), ACCOUNT_NEW, "%u+%d", starts[s],
				     i);
		cr_expect_eq(account_expected(&a), 200000);
		cr_expect_eq(a.received, 200000);
		cr_expect_eq(account_lost(&a), 0);
		cr_expect_eq(a.duplicated, 0);
	}
}

Test(account, nothing_is_expected_before_the_first)
{
	account_init(&a);
	cr_expect_eq(account_expected(&a), 0);
	cr_expect_eq(account_lost(&a), 0);
	account_freeze(&a);
	cr_expect_eq(account_expected(&a), 0);
}

Test(account, holes_are_lost_until_repaired_and_a_repeat_counts_once)
{
	for (unsigned s = 0; s < STARTS; s++) {
		account_init(&a);
		for (int i = 0; i < 100; i++)
			if (i % 10 != 5)
				arrive(starts[s], i, false);
		cr_expect_eq(account_expected(&a), 100);
		cr_expect_eq(account_lost(&a), 10);
		cr_expect_eq(arrive(starts[s], 5, true), ACCOUNT_NEW);
		cr_expect_eq(arrive(starts[s], 15, false), ACCOUNT_NEW, "late, by itself");
		cr_expect_eq(arrive(starts[s], 5, true), ACCOUNT_DUPLICATE);
		cr_expect_eq(arrive(starts[s], 50, false), ACCOUNT_DUPLICATE);
		cr_expect_eq(account_lost(&a), 8);
		cr_expect_eq(a.repaired, 1);
		cr_expect_eq(a.duplicated, 2);
		cr_expect_eq(a.received, 92);
	}
}

Test(account, what_comes_from_before_the_first_does_not_count)
{
	for (unsigned s = 0; s < STARTS; s++) {
		account_init(&a);
		arrive(starts[s], 0, false);
		cr_expect_eq(arrive(starts[s], -1, false), ACCOUNT_OUTSIDE);
		cr_expect_eq(account_expected(&a), 1);
		cr_expect_eq(a.received, 1);
	}
}

Test(account, after_the_end_only_missing_numbers_count)
{
	for (unsigned s = 0; s < STARTS; s++) {
		account_init(&a);
		arrive(starts[s], 0, false);
		arrive(starts[s], 2, false);
		account_freeze(&a);
		cr_expect_eq(arrive(starts[s], 3, false), ACCOUNT_OUTSIDE);
		cr_expect_eq(account_expected(&a), 3);
		cr_expect_eq(account_lost(&a), 1);
		cr_expect_eq(arrive(starts[s], 1, true), ACCOUNT_NEW);
		cr_expect_eq(account_lost(&a), 0);
	}
}

Test(account, a_jump_beyond_the_window_loses_what_lies_between)
{
	static const int jumps[] = { ACCOUNT_WINDOW_PKTS - 1, ACCOUNT_WINDOW_PKTS,
				     ACCOUNT_WINDOW_PKTS + 1, 30000 };

	for (unsigned s = 0; s < STARTS; s++) {
		for (unsigned j = 0; j < sizeof(jumps) / sizeof(jumps[0]); j++) {
			account_init(&a);
			arrive(starts[s], 0, false);
			cr_expect_eq(arrive(starts[s], jumps[j], false), ACCOUNT_NEW);
			cr_expect_eq(account_lost(&a), (uint64_t)jumps[j] - 1, "%d", jumps[j]);
			cr_expect_eq(arrive(starts[s], jumps[j] - 1, true), ACCOUNT_NEW);
			cr_expect_eq(arrive(starts[s], 0, false), jumps[j] < ACCOUNT_WINDOW_PKTS
								      ? ACCOUNT_DUPLICATE
								      : ACCOUNT_OUTSIDE);
		}
	}
}

Test(account, the_place_of_a_number_a_window_ago_is_free_again)
{
	account_init(&a);
	for (int i = 0; i < ACCOUNT_WINDOW_PKTS; i++)
		arrive(0, i, false);
	/* Its place was that of number 1, which came. */
	arrive(0, ACCOUNT_WINDOW_PKTS + 2, false);
	cr_expect_eq(account_lost(&a), 2);
	cr_expect_eq(arrive(0, ACCOUNT_WINDOW_PKTS + 1, true), ACCOUNT_NEW);
	cr_expect_eq(arrive(0, ACCOUNT_WINDOW_PKTS, true), ACCOUNT_NEW);
	cr_expect_eq(account_lost(&a), 0);
}
