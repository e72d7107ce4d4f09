#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>

#include "net/addr.h"

TestSuite(addr, .timeout = 10);

Test(addr, text_goes_there_and_back)
{
	static const char *const texts[] = {
		"1.2.3.4:80", "0.0.0.0:0",           "255.255.255.255:65535",
		"[::1]:1",    "[2001:db8::a:b]:443",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct net_addr a;
		char text[NET_ADDR_TEXT_BYTES];

		cr_assert_eq(net_addr_parse(&a, texts[i]), 0, "%s", texts[i]);
		cr_expect_str_eq(net_addr_format(&a, text), texts[i]);
	}
}

Test(addr, a_bare_port_means_every_address)
{
	struct net_addr a;

	cr_assert_eq(net_addr_parse(&a, ":8189"), 0);
	cr_expect(net_addr_is_any(&a) && !net_addr_is_v4(&a));
	cr_expect_eq(a.port, 8189);
}

Test(addr, text_that_is_no_address_is_refused_and_changes_nothing)
{
	static const char *const texts[] = {
		"",
		":",
		"1.2.3.4",
		"1.2.3.4:",
		"1.2.3.4:65536",
		"1.2.3.4:-1",
		"1.2.3:80",
		"::1:80",
		"[::1]",
		"[1.2.3.4]:80",
		"[]:80",
		"[:80",
		"]:80",
		"1.2.3.4:8 0",
		"1.2.3.4:000080",
		"[::1:80",
		"::1]:80",
		"host:80",
		"[::1]x:80",
		"1.2.3.4:+80",
		"[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb]:80",
	};
	struct net_addr a, before;

	memset(&a, 0x5a, sizeof(a));
	before = a;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cr_expect_eq(net_addr_parse(&a, texts[i]), -EINVAL, "%s", texts[i]);
		cr_expect_arr_eq(&a, &before, sizeof(a), "%s", texts[i]);
	}
	cr_expect_eq(net_addr_parse_ip(&a, "1.2.3.4:80"), -EINVAL);
	cr_expect_eq(net_addr_parse_ip(&a, "[::1]"), -EINVAL);
}

Test(addr, classes_of_addresses_are_told_apart)
{
	static const struct {
		const char *ip;
		bool is_v4, is_private, is_loopback, is_any;
	} rows[] = {
		{ "8.8.8.8", true, false, false, false },
		{ "10.255.0.1", true, true, false, false },
		{ "172.15.0.1", true, false, false, false },
		{ "172.16.0.1", true, true, false, false },
		{ "172.31.0.1", true, true, false, false },
		{ "172.32.0.1", true, false, false, false },
		{ "192.168.1.1", true, true, false, false },
		{ "192.169.1.1", true, false, false, false },
		{ "169.254.1.1", true, true, false, false },
		{ "100.64.0.1", true, true, false, false },
		{ "100.128.0.1", true, false, false, false },
		{ "127.9.9.9", true, true, true, false },
		{ "0.0.0.0", true, false, false, true },
		{ "::", false, false, false, true },
		{ "::1", false, true, true, false },
		{ "::2", false, false, false, false },
		{ "2001:db8::1", false, false, false, false },
		{ "fe80::1", false, true, false, false },
		{ "febf::1", false, true, false, false },
		{ "fec0::1", false, false, false, false },
		{ "fc00::1", false, true, false, false },
		{ "fdff::1", false, true, false, false },
		{ "::ffff:10.0.0.1", true, true, false, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct net_addr a;

		cr_assert_eq(net_addr_parse_ip(&a, rows[i].ip), 0, "%s", rows[i].ip);
		cr_expect_eq(net_addr_is_v4(&a), rows[i].is_v4, "%s", rows[i].ip);
		cr_expect_eq(net_addr_is_private(&a), rows[i].is_private, "%s", rows[i].ip);
		cr_expect_eq(net_addr_is_loopback(&a), rows[i].is_loopback, "%s", rows[i].ip);
		cr_expect_eq(net_addr_is_any(&a), rows[i].is_any, "%s", rows[i].ip);
	}
}

Test(addr, socket_addresses_go_there_and_back)
{
	static const struct {
		const char *text;
		int family;
	} rows[] = { { "1.2.3.4:80", AF_INET },
		     { "1.2.3.4:80", AF_INET6 },
		     { "[2001:db8::1]:65535", AF_INET6 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sockaddr_storage ss = { 0 };
		struct net_addr a, back;

		cr_assert_eq(net_addr_parse(&a, rows[i].text), 0);
		cr_expect_gt(net_addr_to_sockaddr(&a, rows[i].family, &ss), 0);
		cr_expect_eq(ss.ss_family, rows[i].family);
		cr_assert_eq(net_addr_from_sockaddr(&back, (struct sockaddr *)&ss), 0);
		cr_expect(net_addr_is_equal(&a, &back), "%s", rows[i].text);
	}
	cr_expect_eq(net_addr_from_sockaddr(&(struct net_addr){ 0 },
					    &(struct sockaddr){ .sa_family = AF_UNIX }),
		     -EAFNOSUPPORT);
}

Test(addr, the_hash_depends_on_every_byte_and_on_the_seed)
{
	struct net_addr a;
	uint32_t base;

	cr_assert_eq(net_addr_parse(&a, "[2001:db8::1]:443"), 0);
	base = net_addr_hash(&a, 1);
	cr_expect_eq(net_addr_hash(&a, 1), base);
	cr_expect_neq(net_addr_hash(&a, 2), base);
	for (size_t bit = 0; bit < 128; bit++) {
		struct net_addr b = a;

		b.ip[bit / 8] ^= (uint8_t)(1U << bit % 8);
		cr_expect_neq(net_addr_hash(&b, 1), base, "bit %zu", bit);
	}
	a.port++;
	cr_expect_neq(net_addr_hash(&a, 1), base);
}
