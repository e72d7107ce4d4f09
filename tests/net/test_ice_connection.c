#include "tests/net/ice_kit.h"

static struct ice_agent *a;
static struct kit_log said;

static void setup(void)
{
	struct ice_config config = { .role = ICE_LITE, .local = kit_relay, .remote = kit_client };

	cr_assert_eq(ice_agent_create(&a, 0, &config), 0);
}

static void teardown(void)
{
	ice_agent_destroy(a);
}

TestSuite(ice_connection, .init = setup, .fini = teardown, .timeout = 10);

static struct net_path over(uint16_t connection, const char *remote)
{
	struct net_path path = kit_path(remote);

	path.remote.connection = connection;
	return path;
}

static void check(const struct net_path *path, bool nominates)
{
	cr_assert_eq(
	    kit_send(a, 1, path, (struct kit_request){ .use_candidate = nominates }, &said),
	    ICE_ACCEPTED);
}

Test(ice_connection, a_validated_connection_is_proven_and_asked_nothing)
{
	struct net_path path = over(1, "192.0.2.1:1");

	check(&path, true);
	cr_expect_eq(said.sent, 1, "the answer alone");
	cr_expect_eq(said.out[0].path.remote.connection, 1);
	cr_expect(ice_agent_is_selected(a));
	cr_expect(ice_agent_is_proven(a));
}

Test(ice_connection, one_from_another_ip_is_followed_at_once)
{
	struct net_path udp = kit_path("192.0.2.1:1"), tcp = over(1, "198.51.100.1:1");

	check(&udp, true);
	check(&tcp, true);
	cr_expect(net_addr_is_equal(&ice_agent_path(a)->remote, &tcp.remote));
	cr_expect(ice_agent_is_proven(a));
}

static void check_at(uint64_t now_us, const struct net_path *path)
{
	cr_assert_eq(
	    kit_send(a, now_us, path, (struct kit_request){ .use_candidate = true }, &said),
	    ICE_ACCEPTED);
}

static const struct net_addr *selected(void)
{
	return &ice_agent_path(a)->remote;
}

Test(ice_connection, datagrams_that_go_both_ways_are_not_left_for_one)
{
	struct net_path udp = kit_path("192.0.2.1:1"), tcp = over(1, "192.0.2.1:9");

	check_at(0, &udp);
	ice_agent_on_proven(a, &udp.remote);
	check_at(ICE_FRESH_US - 1, &tcp);
	cr_expect(net_addr_is_equal(selected(), &udp.remote));
	cr_expect(ice_agent_is_validated(a, &tcp.remote), "it may be used once it is needed");
	ice_agent_on_authenticated(a, ICE_FRESH_US, &udp);
	check_at(2 * ICE_FRESH_US - 1, &tcp);
	cr_expect(net_addr_is_equal(selected(), &udp.remote), "media count as well");
	check_at(2 * ICE_FRESH_US, &tcp);
	cr_expect(net_addr_is_equal(selected(), &tcp.remote), "silence is a reason");
	check_at(2 * ICE_FRESH_US, &udp);
	cr_expect(net_addr_is_equal(selected(), &udp.remote), "and back at once");
}

Test(ice_connection, datagrams_left_for_one_are_returned_to_when_they_answer)
{
	struct net_path udp = kit_path("192.0.2.1:1"), tcp = over(1, "192.0.2.1:9");
	uint8_t bytes[KIT_MESSAGE_BYTES];
	struct kit_datagram asked;
	size_t len;

	check_at(0, &udp);
	cr_assert_eq(said.sent, 2, "its answer, and a question");
	asked = said.out[1];
	check_at(1, &tcp);
	cr_expect(net_addr_is_equal(selected(), &tcp.remote),
		  "it works, which is more than one knows");
	len = kit_respond(bytes, asked.bytes, asked.len, &asked.path.local, kit_client.pwd);
	cr_assert_eq(ice_agent_on_stun(a, 2, &udp, bytes, len), ICE_ACCEPTED);
	said = kit_drain(a);
	cr_expect(net_addr_is_equal(selected(), &udp.remote));
	cr_expect_eq(kit_count(&said, ICE_EVENT_SELECTED), 1);
	cr_expect(ice_agent_is_proven(a));
}

Test(ice_connection, datagrams_that_never_answer_are_left_for_one)
{
	struct net_path udp = kit_path("192.0.2.1:1"), tcp = over(1, "192.0.2.1:9");

	check_at(0, &udp);
	check_at(1, &tcp);
	for (uint64_t now_us = 1; now_us < 20 * KIT_S; now_us = said.deadline_us) {
		ice_agent_on_timeout(a, now_us);
		said = kit_drain(a);
	}
	cr_expect(net_addr_is_equal(selected(), &tcp.remote));
}

Test(ice_connection, datagrams_from_its_address_and_port_are_somebody_elses)
{
	struct net_path tcp = over(1, "192.0.2.1:1"), udp = kit_path("192.0.2.1:1");

	check(&tcp, true);
	cr_expect(ice_agent_is_validated(a, &tcp.remote));
	cr_expect_not(ice_agent_is_validated(a, &udp.remote));
}

Test(ice_connection, a_lost_one_leaves_the_path_to_what_is_left)
{
	struct net_path tcp = over(1, "192.0.2.1:1"), udp = kit_path("192.0.2.1:2");

	check(&udp, true);
	ice_agent_on_proven(a, &udp.remote);
	check_at(1 + ICE_FRESH_US, &tcp);
	cr_expect_eq(ice_agent_path(a)->remote.connection, 1);
	ice_agent_on_lost(a, 2 + ICE_FRESH_US, &tcp.remote);
	cr_expect_not(ice_agent_is_validated(a, &tcp.remote));
	cr_expect_not(ice_agent_is_selected(a));
	cr_assert(ice_agent_path(a));
	cr_expect(net_addr_is_equal(&ice_agent_path(a)->remote, &udp.remote));
	cr_expect(ice_agent_is_proven(a));
	kit_drain(a);
}

Test(ice_connection, the_only_one_lost_leaves_no_path_until_the_next)
{
	struct net_path first = over(1, "192.0.2.1:1"), second = over(2, "192.0.2.1:1");
	uint8_t request[KIT_MESSAGE_BYTES];
	size_t len = kit_build(request, (struct kit_request){ .use_candidate = true });

	/* Lost before anybody polled: nothing may be announced of it any more. */
	cr_assert_eq(ice_agent_on_stun(a, 1, &first, request, len), ICE_ACCEPTED);
	ice_agent_on_lost(a, 2, &first.remote);
	said = kit_drain(a);
	cr_expect_eq(said.events, 0);
	cr_expect_null(ice_agent_path(a));
	cr_expect_not(ice_agent_is_proven(a));
	check(&second, true);
	cr_expect_eq(kit_count(&said, ICE_EVENT_SELECTED), 1);
	cr_expect_eq(ice_agent_path(a)->remote.connection, 2);
}

Test(ice_connection, losing_one_that_is_not_known_changes_nothing)
{
	struct net_path tcp = over(1, "192.0.2.1:1"), other = over(2, "192.0.2.1:1");

	check(&tcp, true);
	ice_agent_on_lost(a, 2, &other.remote);
	cr_expect_eq(ice_agent_path(a)->remote.connection, 1);
	cr_expect(ice_agent_is_selected(a));
}
