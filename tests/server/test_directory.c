#include <criterion/criterion.h>
#include <errno.h>

#include "server/directory.h"

static struct directory *d;
static struct ice_credentials creds;

static void setup(void)
{
	cr_assert_eq(directory_create(&d), 0);
	snprintf(creds.ufrag, sizeof(creds.ufrag), "%s", "abcdefgh");
	snprintf(creds.pwd, sizeof(creds.pwd), "%s", "0123456789012345678901");
}

static void teardown(void)
{
	directory_destroy(d);
	cr_expect_eq(plan_live(), 0, "every reference went");
}

TestSuite(directory, .init = setup, .fini = teardown, .timeout = 10);

Test(directory, finds_a_plan_and_its_password_by_ufrag)
{
	struct plan *plan = plan_create(PLAN_VIEWER);
	char pwd[ICE_PWD_MAX_BYTES + 1];
	struct plan *found;

	cr_assert_eq(directory_add(d, &creds, plan), 0);
	cr_expect_eq(directory_add(d, &creds, plan), -EEXIST);
	found = directory_find(d, "abcdefghTRAILING", 8, pwd);
	cr_expect_eq(found, plan);
	cr_expect_str_eq(pwd, creds.pwd);
	plan_unref(found);
	cr_expect_null(directory_find(d, "abcdefg", 7, pwd), "a prefix is another name");
	directory_remove(d, "abcdefgh");
	cr_expect_null(directory_find(d, "abcdefgh", 8, pwd));
	directory_remove(d, "abcdefgh"); /* twice does no harm */
	cr_expect_eq(directory_count(d), 0);
	plan_unref(plan);
}

Test(directory, a_ufrag_from_the_wire_of_any_length_is_only_not_found)
{
	char pwd[ICE_PWD_MAX_BYTES + 1];
	char text[600];

	memset(text, 'a', sizeof(text));
	for (size_t n = 0; n < sizeof(text); n++)
		cr_assert_null(directory_find(d, text, n, pwd));
}

Test(directory, what_is_left_goes_with_it)
{
	struct plan *plan = plan_create(PLAN_PUBLISHER);

	for (unsigned i = 0; i < 300; i++) {
		snprintf(creds.ufrag, sizeof(creds.ufrag), "ufrag%u", i);
		cr_assert_eq(directory_add(d, &creds, plan), 0);
	}
	cr_expect_eq(directory_count(d), 300);
	plan_unref(plan);
}
