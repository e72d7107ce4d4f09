#include <criterion/criterion.h>

#include "loadgen/histogram.h"

static struct histogram h;

static void setup(void)
{
	histogram_init(&h);
}

TestSuite(histogram, .init = setup, .timeout = 10);

Test(histogram, is_zero_while_empty)
{
	cr_expect_eq(histogram_quantile(&h, 500), 0);
	cr_expect_eq(h.max, 0);
}

Test(histogram, one_value_is_every_quantile)
{
	static const uint64_t values[] = { 0,   1,   63,      64,         65,
					   127, 128, 1000000, 4294967295, UINT64_MAX };
	static const unsigned permilles[] = { 1, 500, 990, 999, 1000 };

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		histogram_init(&h);
		histogram_add(&h, values[i]);
		for (unsigned q = 0; q < sizeof(permilles) / sizeof(permilles[0]); q++)
			cr_expect_eq(histogram_quantile(&h, permilles[q]), values[i]);
	}
}

Test(histogram, quantiles_are_right_to_one_part_in_64)
{
	static const unsigned permilles[] = { 1, 10, 500, 900, 990, 999, 1000 };

	for (uint64_t scale = 1; scale < 1000000000; scale *= 10) {
		histogram_init(&h);
		for (uint64_t v = 1; v <= 1000; v++)
			histogram_add(&h, v * scale);
		for (unsigned i = 0; i < sizeof(permilles) / sizeof(permilles[0]); i++) {
			uint64_t exact = permilles[i] * scale;
			uint64_t got = histogram_quantile(&h, permilles[i]);

			cr_expect(got >= exact && got <= exact + exact / 64, "%u of %lu: %lu",
				  permilles[i], exact, got);
		}
	}
}

Test(histogram, a_rare_outlier_shows_in_the_tail_alone)
{
	for (unsigned i = 0; i < 999; i++)
		histogram_add(&h, 10);
	histogram_add(&h, 50000);
	cr_expect_eq(histogram_quantile(&h, 500), 10);
	cr_expect_eq(histogram_quantile(&h, 999), 10);
	cr_expect_eq(histogram_quantile(&h, 1000), 50000);
	cr_expect_eq(h.max, 50000);
}
