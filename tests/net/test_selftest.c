#include <criterion/criterion.h>
#include <errno.h>
#include <sys/resource.h>

#include "net/selftest.h"

TestSuite(selftest, .timeout = 20);

static int (*const tests[4])(void) = { selftest_gso, selftest_gro, selftest_batches,
				       selftest_reuseport };

Test(selftest, this_kernel_does_what_sockets_count_on)
{
	for (size_t i = 0; i < 4; i++)
		for (int n = 0; n < 3; n++)
			cr_expect_eq(tests[i](), 0, "test %zu", i);
}

Test(selftest, a_call_that_fails_is_told)
{
	struct rlimit before, none;
	int got[4];

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	/* The test's own framework needs files to say anything. */
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (size_t i = 0; i < 4; i++)
		got[i] = tests[i]();
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(got[i], -EMFILE, "test %zu", i);
}
