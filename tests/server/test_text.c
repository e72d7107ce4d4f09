#include <criterion/criterion.h>
#include <stdlib.h>

#include "server/text.h"
#include "tests/fault.h"

TestSuite(text, .timeout = 10);

Test(text, grows_and_hands_over_what_was_written)
{
	struct text t = { 0 };
	size_t len;
	char *all;

	for (unsigned i = 0; i < 5000; i++)
		text_printf(&t, "%u,", i % 10);
	text_append(&t, "end", 3);
	all = text_take(&t, &len);
	cr_assert(all);
	cr_expect_eq(len, 10003);
	cr_expect_eq(strlen(all), len);
	cr_expect_str_eq(all + 10000, "end");
	free(all);
}

Test(text, an_empty_text_is_an_empty_string)
{
	struct text t = { 0 };
	size_t len = 9;
	char *all = text_take(&t, &len);

	cr_assert(all);
	cr_expect_eq(len, 0);
	cr_expect_str_eq(all, "");
	free(all);
}

Test(text, a_failed_allocation_is_told_once_at_the_end)
{
	struct text t = { 0 };
	size_t len = 9;

	text_printf(&t, "first");
	fault_after(0);
	for (unsigned i = 0; i < 1000; i++)
		text_append(&t, "0123456789", 10);
	fault_after(-1);
	text_append(&t, "late", 4);
	cr_expect_null(text_take(&t, &len));
	cr_expect_eq(len, 0);
	text_free(&t);
}
