#include <criterion/criterion.h>

#include "server/strangers.h"

enum { PER_S = 20, BURST = 50, SECOND_US = 1000000 };

static struct strangers *s;
static struct net_addr a, b;

static void setup(void)
{
	cr_assert_eq(strangers_create(&s, PER_S, BURST, 7), 0);
	net_addr_parse(&a, "192.0.2.1:1000");
	net_addr_parse(&b, "192.0.2.77:1000");
}

static void teardown(void)
{
	strangers_destroy(s);
}

TestSuite(strangers, .init = setup, .fini = teardown, .timeout = 10);

static unsigned fail_until_refused(const struct net_addr *addr, uint64_t now_us)
{
	unsigned n = 0;

	for (; n < 1000 && strangers_may_try(s, addr, now_us); n++)
		strangers_charge(s, addr, now_us);
	return n;
}

Test(strangers, success_costs_nothing)
{
	for (unsigned i = 0; i < 1000; i++)
		cr_assert(strangers_may_try(s, &a, SECOND_US));
}

Test(strangers, failures_are_bounded_and_come_back_with_time)
{
	cr_expect_eq(fail_until_refused(&a, SECOND_US), BURST);
	cr_expect_eq(fail_until_refused(&a, SECOND_US), 0);
	cr_expect_eq(fail_until_refused(&a, 2 * SECOND_US), PER_S);
	cr_expect_eq(fail_until_refused(&a, 3600ull * SECOND_US), BURST);
}

Test(strangers, another_address_has_a_budget_of_its_own_and_another_port_has_not)
{
	struct net_addr other_port = a;

	other_port.port++;
	fail_until_refused(&a, SECOND_US);
	cr_expect_not(strangers_may_try(s, &other_port, SECOND_US));
	cr_expect(strangers_may_try(s, &b, SECOND_US));
}

Test(strangers, a_v6_network_of_64_bits_is_one_address)
{
	struct net_addr one, same, other;

	net_addr_parse(&one, "[2001:db8:1:2::1]:9");
	net_addr_parse(&same, "[2001:db8:1:2:ffff::9]:9");
	net_addr_parse(&other, "[2001:db8:1:3::1]:9");
	fail_until_refused(&one, SECOND_US);
	cr_expect_not(strangers_may_try(s, &same, SECOND_US));
	cr_expect(strangers_may_try(s, &other, SECOND_US));
}
