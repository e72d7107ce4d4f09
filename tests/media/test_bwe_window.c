#include <criterion/criterion.h>

#include "media/bwe_window.h"

TestSuite(bwe_window, .timeout = 10);

enum { S = 1000000, SPAN_US = 500000 };

/* 1,000 bytes every 10 ms: 800 kbit/s. */
static void fill(struct bwe_window *w, int64_t from_us, int64_t to_us)
{
	for (int64_t at_us = from_us; at_us < to_us; at_us += 10000)
		bwe_window_add(w, at_us, 1000);
}

static void expect_near(uint64_t got_bps, uint64_t want_bps, const char *what)
{
	cr_expect(got_bps * 10 >= want_bps * 9 && got_bps * 10 <= want_bps * 11, "%s: %lu, not %lu",
		  what, got_bps, want_bps);
}

Test(bwe_window, says_nothing_before_it_has_seen_enough)
{
	struct bwe_window w = { 0 };

	cr_expect_eq(bwe_window_bps(&w, SPAN_US), 0);
	fill(&w, 5 * S, 5 * S + 50000);
	cr_expect_eq(bwe_window_bps(&w, SPAN_US), 0);
	fill(&w, 5 * S + 50000, 5 * S + 200000);
	expect_near(bwe_window_bps(&w, SPAN_US), 800000, "after 200 ms");
}

Test(bwe_window, follows_the_rate_of_its_span_from_any_start)
{
	static const int64_t starts_us[] = { 0, 1, 999999, 123456789012, INT64_C(1) << 50 };

	for (size_t i = 0; i < sizeof(starts_us) / sizeof(starts_us[0]); i++) {
		struct bwe_window w = { 0 };

		fill(&w, starts_us[i], starts_us[i] + 3 * S);
		expect_near(bwe_window_bps(&w, SPAN_US), 800000, "steady");
		for (int64_t at_us = 0; at_us < SPAN_US; at_us += 10000)
			bwe_window_add(&w, starts_us[i] + 3 * S + at_us, 250);
		expect_near(bwe_window_bps(&w, 200000), 200000, "the last 200 ms");
		expect_near(bwe_window_bps(&w, 1000000), 500000, "half of the last second");
	}
}

Test(bwe_window, silence_counts_once_it_is_asked_for)
{
	struct bwe_window w = { 0 };

	fill(&w, 0, S);
	expect_near(bwe_window_bps(&w, SPAN_US), 800000, "to the newest");
	expect_near(bwe_window_bps_at(&w, S + 250000, SPAN_US), 400000, "a quarter later");
	cr_expect_eq(bwe_window_bps_at(&w, 3 * S, SPAN_US), 0);
}

Test(bwe_window, late_bytes_count_where_they_belong_and_very_late_ones_do_not)
{
	struct bwe_window w = { 0 };
	uint64_t before;

	fill(&w, 0, 2 * S);
	before = bwe_window_bps(&w, SPAN_US);
	bwe_window_add(&w, S + 10000, 100000);
	cr_expect_eq(bwe_window_bps(&w, SPAN_US), before);
	bwe_window_add(&w, 2 * S - 100000, 100000);
	cr_expect_gt(bwe_window_bps(&w, SPAN_US), 2 * before);
	fill(&w, 2 * S, 4 * S);
	expect_near(bwe_window_bps(&w, SPAN_US), 800000, "forgotten");
	bwe_window_add(&w, 4 * S - 1100000, 1000000);
	expect_near(bwe_window_bps(&w, 1000000), 800000, "older than the window");
}

Test(bwe_window, a_clock_that_is_set_back_begins_anew)
{
	struct bwe_window w = { 0 };

	fill(&w, 100 * S, 101 * S);
	fill(&w, 5 * S, 6 * S);
	expect_near(bwe_window_bps(&w, SPAN_US), 800000, "after the jump");
}
