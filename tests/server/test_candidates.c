#include <criterion/criterion.h>

#include "server/candidates.h"

static struct config *config;
static struct candidates c;
static struct net_addr bound[2];

static void load(const char *yaml)
{
	char error[CONFIG_ERROR_BYTES];

	config_destroy(config);
	cr_assert_eq(config_parse(&config, yaml, strlen(yaml), "test", error), 0, "%s", error);
}

static void setup(void)
{
	load("");
	net_addr_parse(&bound[0], "0.0.0.0:8189");
	net_addr_parse(&bound[1], "[::]:8189");
}

static void teardown(void)
{
	config_destroy(config);
}

TestSuite(candidates, .init = setup, .fini = teardown, .timeout = 10);

Test(candidates, a_specific_address_is_itself_loopback_included)
{
	net_addr_parse(&bound[0], "127.0.0.1:5000");
	cr_assert_eq(candidates_collect(&c, config, bound, 1), 0);
	cr_assert_eq(c.count, 1);
	cr_expect_eq(c.items[0].family, 4);
	cr_expect_eq(c.items[0].port, 5000);
	cr_expect_arr_eq(c.items[0].ip, ((uint8_t[]){ 127, 0, 0, 1 }), 4);
	cr_expect(c.is_private_only);
}

Test(candidates, a_wildcard_stands_for_interfaces_and_never_only_for_itself)
{
	cr_assert_eq(candidates_collect(&c, config, bound, 2), 0);
	cr_expect_gt(c.count, 0, "loopback at the very least");
	for (size_t i = 0; i < c.count; i++) {
		cr_expect_eq(c.items[i].port, 8189);
		cr_expect(c.items[i].ip[0] != 0 || c.items[i].family == 6);
	}
}

Test(candidates, advertised_addresses_replace_all_and_take_the_bound_port_unless_they_name_one)
{
	load("advertise: [198.51.100.7, \"198.51.100.8:9999\", \"2001:db8::7\"]\n");
	cr_assert_eq(candidates_collect(&c, config, bound, 2), 0);
	cr_assert_eq(c.count, 3);
	cr_expect_eq(c.items[0].port, 8189);
	cr_expect_eq(c.items[1].port, 9999);
	cr_expect_eq(c.items[2].family, 6);
	cr_expect_not(c.is_private_only);
}

Test(candidates, only_private_ones_are_noticed)
{
	load("advertise: [10.1.2.3]\n");
	cr_assert_eq(candidates_collect(&c, config, bound, 2), 0);
	cr_expect(c.is_private_only);
}

Test(candidates, those_of_the_tcp_port_stand_behind_and_are_their_own)
{
	net_addr_parse(&bound[0], "127.0.0.1:5000");
	cr_assert_eq(candidates_collect(&c, config, bound, 1), 0);
	cr_assert_eq(candidates_add_tcp(&c, config, bound, 1), 0);
	cr_assert_eq(c.count, 2, "the same address and port, by another protocol");
	cr_expect_eq(c.items[0].transport, SDP_UDP);
	cr_expect_eq(c.items[1].transport, SDP_TCP);
	cr_expect_eq(c.items[1].port, 5000);
	cr_assert_eq(candidates_add_tcp(&c, config, bound, 0), 0);
	cr_expect_eq(c.count, 2, "without a TCP port there are none");
}

Test(candidates, advertised_addresses_stand_for_both_protocols)
{
	struct net_addr tcp;

	load("advertise: [198.51.100.7, \"198.51.100.8:9999\"]\n");
	net_addr_parse(&tcp, "0.0.0.0:443");
	cr_assert_eq(candidates_collect(&c, config, bound, 2), 0);
	cr_assert_eq(candidates_add_tcp(&c, config, &tcp, 1), 0);
	cr_assert_eq(c.count, 4);
	cr_expect(c.items[2].transport == SDP_TCP && c.items[2].port == 443);
	cr_expect(c.items[3].transport == SDP_TCP && c.items[3].port == 9999);
}
