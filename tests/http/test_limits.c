#include <criterion/criterion.h>

#include "server/limits.h"

enum { SECOND_US = 1000000 };

static struct config *config;
static struct limits *l;

static void limits_of(const char *yaml)
{
	char error[CONFIG_ERROR_BYTES];

	cr_assert_eq(config_parse(&config, yaml, strlen(yaml), "test", error), 0, "%s", error);
	cr_assert_eq(limits_create(&l, config, 42), 0);
}

static void teardown(void)
{
	limits_destroy(l);
	config_destroy(config);
}

TestSuite(limits, .fini = teardown, .timeout = 10);

static void v4(uint8_t ip[16], unsigned last)
{
	memset(ip, 0, 16);
	ip[10] = ip[11] = 0xff;
	ip[12] = 192;
	ip[13] = (uint8_t)(last >> 16);
	ip[14] = (uint8_t)(last >> 8);
	ip[15] = (uint8_t)last;
}

static unsigned posts_taken(unsigned client, unsigned asked, uint64_t now_us)
{
	unsigned retry_after_s;
	unsigned taken = 0;
	uint8_t ip[16];

	v4(ip, client);
	for (unsigned i = 0; i < asked; i++)
		taken += limits_on_post(l, ip, now_us, &retry_after_s) == LIMITS_OK;
	return taken;
}

Test(limits, a_client_has_its_burst_then_its_rate)
{
	limits_of("limits: {posts_per_s: 10, posts_burst: 20}");
	cr_expect_eq(posts_taken(1, 30, 0), 20);
	cr_expect_eq(posts_taken(1, 5, SECOND_US / 10 - 1), 0, "one microsecond early");
	cr_expect_eq(posts_taken(1, 5, SECOND_US / 10), 1);
	cr_expect_eq(posts_taken(1, 30, 2 * SECOND_US), 19);
	cr_expect_eq(posts_taken(1, 30, 3600ull * SECOND_US), 20, "never more than the burst");
}

Test(limits, clients_do_not_share)
{
	limits_of("limits: {posts_per_s: 1, posts_burst: 3}");
	cr_expect_eq(posts_taken(1, 9, 0), 3);
	cr_expect_eq(posts_taken(2, 9, 0), 3);
}

Test(limits, the_wait_named_is_long_enough)
{
	unsigned retry_after_s = 0;
	uint8_t ip[16];

	limits_of("limits: {posts_per_s: 1, posts_burst: 1}");
	v4(ip, 1);
	cr_expect_eq(limits_on_post(l, ip, 0, &retry_after_s), LIMITS_OK);
	cr_expect_eq(limits_on_post(l, ip, 1, &retry_after_s), LIMITS_CLIENT);
	cr_expect_geq(retry_after_s, 1);
	cr_expect_eq(limits_on_post(l, ip, (uint64_t)retry_after_s * SECOND_US + 1, &retry_after_s),
		     LIMITS_OK);
}

Test(limits, the_node_refuses_with_another_word_than_the_client)
{
	unsigned retry_after_s = 0;
	uint8_t ip[16];

	limits_of("limits: {node_posts_per_s: 1, node_posts_burst: 4}");
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(posts_taken(i, 1, 0), 1);
	v4(ip, 9);
	cr_expect_eq(limits_on_post(l, ip, 0, &retry_after_s), LIMITS_NODE);
	cr_expect_geq(retry_after_s, 1);
	cr_expect_leq(retry_after_s, 5);
}

Test(limits, loopback_and_trusted_networks_have_none_of_their_own)
{
	uint8_t loopback[2][16] = { { [10] = 0xff, [11] = 0xff, 127, 0, 0, 5 }, { [15] = 1 } };
	unsigned retry_after_s;

	limits_of("limits: {trusted: [192.0.0.0/16], posts_per_s: 1, posts_burst: 1,"
		  " connections_per_ip: 1, node_posts_burst: 1000}");
	cr_expect_eq(posts_taken(7, 100, 0), 100);
	for (int i = 0; i < 100; i++) {
		cr_expect_eq(limits_on_post(l, loopback[i % 2], 0, &retry_after_s), LIMITS_OK);
		cr_expect(limits_connection_open(l, loopback[i % 2], 0));
	}
	cr_expect_eq(limits_clients(l, 0), 0, "and take no entry");
}

Test(limits, an_ipv6_client_is_a_64)
{
	uint8_t a[16] = { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1, [15] = 1 };
	uint8_t b[16] = { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1, [8] = 0xfe, [15] = 9 };
	uint8_t other[16] = { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 2, [15] = 1 };
	unsigned retry_after_s;

	limits_of("limits: {posts_per_s: 1, posts_burst: 1}");
	cr_expect_eq(limits_on_post(l, a, 0, &retry_after_s), LIMITS_OK);
	cr_expect_eq(limits_on_post(l, b, 0, &retry_after_s), LIMITS_CLIENT);
	cr_expect_eq(limits_on_post(l, other, 0, &retry_after_s), LIMITS_OK);
}

Test(limits, connections_and_half_open_sessions_are_counted_to_the_cap_and_given_back)
{
	uint8_t ip[16];

	limits_of("limits: {connections_per_ip: 2, half_open_per_ip: 3}");
	v4(ip, 1);
	cr_expect(limits_connection_open(l, ip, 0));
	cr_expect(limits_connection_open(l, ip, 0));
	cr_expect_not(limits_connection_open(l, ip, 0));
	limits_connection_close(l, ip);
	cr_expect(limits_connection_open(l, ip, 0));
	for (int i = 0; i < 3; i++)
		cr_expect(limits_half_open_take(l, ip, 0));
	cr_expect_not(limits_half_open_take(l, ip, 0));
	for (int i = 0; i < 3; i++)
		limits_half_open_release(l, ip);
	limits_connection_close(l, ip);
	limits_connection_close(l, ip);
	cr_expect_eq(limits_clients(l, 0), 0, "no entry is left behind");
}

Test(limits, giving_back_what_was_never_taken_changes_nothing)
{
	uint8_t ip[16];

	limits_of("limits: {posts_per_s: 1, posts_burst: 1}");
	v4(ip, 1);
	cr_expect_eq(posts_taken(1, 2, 0), 1);
	for (unsigned i = 0; i < 3 * LIMITS_CLIENTS; i++) {
		uint8_t other[16];

		v4(other, 1000 + i);
		limits_connection_close(l, other);
		limits_half_open_release(l, other);
	}
	cr_expect_eq(posts_taken(1, 1, 1), 0, "the client's bucket is still empty");
}

Test(limits, a_flood_of_addresses_is_refused_when_the_table_is_full_and_forgotten_later)
{
	unsigned taken = 0;

	limits_of("limits: {posts_per_s: 1, posts_burst: 1, node_posts_per_s: 1000000,"
		  " node_posts_burst: 1000000}");
	for (unsigned i = 0; i < 4 * LIMITS_CLIENTS; i++)
		taken += posts_taken(i, 1, 0);
	cr_expect_leq(taken, LIMITS_CLIENTS);
	cr_expect_geq(taken, LIMITS_CLIENTS / 2);
	cr_expect_eq(limits_clients(l, 0), taken);
	cr_expect_eq(limits_clients(l, SECOND_US), 0);
	cr_expect_eq(posts_taken(4 * LIMITS_CLIENTS + 1, 1, SECOND_US), 1);
}

Test(limits, patches_of_a_session_have_a_rate)
{
	unsigned taken = 0;

	limits_of("limits: {patches_per_s: 5}");
	for (int i = 0; i < 100; i++)
		taken += limits_on_patch(l, "session-a", 0);
	cr_expect_eq(taken, 20, "four seconds' worth at once");
	cr_expect(limits_on_patch(l, "session-b", 0));
	cr_expect_not(limits_on_patch(l, "session-a", SECOND_US / 5 - 1));
	cr_expect(limits_on_patch(l, "session-a", SECOND_US / 5));
}

Test(limits, another_configuration_counts_on_from_what_was_counted)
{
	struct config *wider;
	char error[CONFIG_ERROR_BYTES];
	const char *yaml = "limits: {posts_per_s: 1, posts_burst: 5}";

	limits_of("limits: {posts_per_s: 1, posts_burst: 2}");
	cr_expect_eq(posts_taken(1, 9, 0), 2);
	cr_assert_eq(config_parse(&wider, yaml, strlen(yaml), "test", error), 0);
	limits_configure(l, wider);
	cr_expect_eq(posts_taken(1, 9, 0), 3);
	limits_configure(l, config);
	config_destroy(wider);
}
