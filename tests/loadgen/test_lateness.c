#include <criterion/criterion.h>
#include <string.h>

#include "loadgen/lateness.h"

enum { VIEWERS = 4 };

static struct lateness viewers[VIEWERS], all;

static void setup(void)
{
	memset(viewers, 0, sizeof(viewers));
	memset(&all, 0, sizeof(all));
}

TestSuite(lateness, .init = setup, .timeout = 10);

static void add(struct lateness *l, unsigned units, uint64_t latency_us)
{
	for (unsigned i = 0; i < units; i++)
		lateness_add(l, latency_us);
}

static unsigned bound_of_all(void)
{
	for (unsigned i = 0; i < VIEWERS; i++)
		lateness_merge(&all, &viewers[i]);
	return lateness_bound(&all);
}

Test(lateness, of_nothing_is_nothing)
{
	cr_expect_eq(lateness_share(&viewers[0], bound_of_all()), 0);
}

Test(lateness, is_shared_evenly_when_all_viewers_are_alike)
{
	unsigned bound;

	for (unsigned i = 0; i < VIEWERS; i++) {
		add(&viewers[i], 990, 1000);
		add(&viewers[i], 10, 50000);
	}
	bound = bound_of_all();
	cr_expect_float_eq(lateness_share(&all, bound), 0.01, 1e-9);
	for (unsigned i = 0; i < VIEWERS; i++)
		cr_expect_float_eq(lateness_share(&viewers[i], bound), 0.01, 1e-9);
}

Test(lateness, shows_the_viewer_that_has_all_of_it)
{
	unsigned bound;

	for (unsigned i = 0; i < VIEWERS; i++)
		add(&viewers[i], i == 2 ? 960 : 1000, 1000);
	add(&viewers[2], 40, 50000);
	bound = bound_of_all();
	cr_expect_float_eq(lateness_share(&all, bound), 0.01, 1e-9);
	cr_expect_float_eq(lateness_share(&viewers[2], bound), 0.04, 1e-9);
	cr_expect_eq(lateness_share(&viewers[1], bound), 0);
}

/* Of values evenly spread, wherever the scale. */
Test(lateness, begins_at_the_99th_of_100_or_up_to_a_step_before)
{
	for (uint64_t scale = 1; scale <= 100; scale *= 10) {
		unsigned bound;
		uint64_t us;

		setup();
		for (uint64_t v = 1; v <= 10000; v++)
			lateness_add(&viewers[0], v * scale);
		bound = bound_of_all();
		us = lateness_bound_us(bound);
		cr_expect(us <= 9900 * scale && us >= 9900 * scale * 15 / 16, "%lu: %lu", scale,
			  us);
		cr_expect_float_eq(lateness_share(&all, bound),
				   1 - (double)us / (10000.0 * (double)scale), 1e-3);
	}
}

Test(lateness, counts_what_is_off_the_scale_as_the_latest)
{
	add(&viewers[0], 99, 10);
	lateness_add(&viewers[0], UINT64_MAX);
	cr_expect_float_eq(lateness_share(&viewers[0], bound_of_all()), 0.01, 1e-9);
}
