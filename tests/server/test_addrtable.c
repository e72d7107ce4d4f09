#include <criterion/criterion.h>

#include "server/addrtable.h"

enum { ADDRS = 3000 };

static struct addrtable *t;
static struct net_addr addrs[ADDRS];

static void setup(void)
{
	cr_assert_eq(addrtable_create(&t, 42), 0);
	for (unsigned i = 0; i < ADDRS; i++) {
		cr_assert_eq(net_addr_parse_ip(&addrs[i], i % 2 ? "10.0.0.1" : "2001:db8::1"), 0);
		addrs[i].port = (uint16_t)(i / 2 + 1);
	}
}

static void teardown(void)
{
	addrtable_destroy(t);
}

TestSuite(addrtable, .init = setup, .fini = teardown, .timeout = 20);

static struct session_ref ref_of(unsigned i)
{
	return (struct session_ref){ (uint8_t)(i % 3), i, i + 1 };
}

Test(addrtable, a_reference_packs_into_one_word_and_back)
{
	static const struct session_ref refs[] = { { 0, 0, 0 }, { 63, 0xfffffe, UINT32_MAX } };

	for (size_t i = 0; i < 2; i++) {
		struct session_ref back = session_ref_unpack(session_ref_pack(refs[i]));

		cr_expect_neq(session_ref_pack(refs[i]), 0, "0 is nobody");
		cr_expect_eq(back.worker, refs[i].worker);
		cr_expect_eq(back.slot, refs[i].slot);
		cr_expect_eq(back.generation, refs[i].generation);
	}
}

Test(addrtable, only_the_owner_of_an_entry_can_remove_it)
{
	struct session_ref found;

	addrtable_set(t, &addrs[0], ref_of(1));
	addrtable_remove(t, &addrs[0], ref_of(2));
	cr_assert(addrtable_find(t, &addrs[0], &found));
	cr_expect_eq(found.slot, 1);
	addrtable_set(t, &addrs[0], ref_of(2));
	cr_expect_eq(addrtable_count(t), 1, "overwritten, not added");
	addrtable_remove(t, &addrs[0], ref_of(2));
	cr_expect_not(addrtable_find(t, &addrs[0], &found));
}

/* Against the obvious model: an array of owners. */
Test(addrtable, any_history_of_sets_and_removals_finds_what_a_list_would)
{
	static bool present[ADDRS];
	uint32_t random = 1;
	unsigned count = 0;

	memset(present, 0, sizeof(present));
	for (unsigned step = 0; step < 60000; step++) {
		unsigned i;

		random = random * 1664525 + 1013904223;
		i = (random >> 8) % ADDRS;
		if (random >> 31) {
			addrtable_remove(t, &addrs[i], ref_of(i));
			count -= present[i];
			present[i] = false;
		} else {
			cr_assert_eq(addrtable_set(t, &addrs[i], ref_of(i)), 0);
			count += !present[i];
			present[i] = true;
		}
	}
	cr_expect_eq(addrtable_count(t), count);
	for (unsigned i = 0; i < ADDRS; i++) {
		struct session_ref found;

		cr_assert_eq(addrtable_find(t, &addrs[i], &found), present[i], "%u", i);
		cr_assert(!present[i] || found.slot == i);
	}
}
