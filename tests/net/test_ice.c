/* The lite agent: what it answers, whom it follows, how long it lives. */
#include <criterion/criterion.h>
#include <errno.h>
#include <openssl/crypto.h>

#include "tests/fault.h"
#include "tests/net/ice_kit.h"

#define CLIENT_PWD "client/password+of/24+ch" /* kit_client's */
#define RELAY2_PWD "second/password+of/32+characters"

static struct ice_agent *agent;
static struct kit_log out;

static struct ice_config config(void)
{
	return (struct ice_config){ .role = ICE_LITE,
				    .local = kit_relay,
				    .remote = kit_client,
				    .tie_breaker = 5,
				    .seed = { 1, 2, 3 } };
}

static void setup(void)
{
	struct ice_config c = config();

	cr_assert_eq(ice_agent_create(&agent, 0, &c), 0);
}

static void teardown(void)
{
	ice_agent_destroy(agent);
}

TestSuite(ice_lite, .init = setup, .fini = teardown, .timeout = 10);

static const struct kit_request plain = { 0 };
static const struct kit_request nominating = { .use_candidate = true, .controlling = 9 };

/* Answers the agent's last Binding request as the client at `from`. */
static enum ice_verdict answer_probe(uint64_t now_us, const struct net_path *from, const char *pwd)
{
	const struct kit_datagram *probe = &out.out[out.sent - 1];
	uint8_t bytes[KIT_MESSAGE_BYTES];
	size_t len = kit_respond(bytes, probe->bytes, probe->len, &probe->path.local, pwd);
	enum ice_verdict verdict = ice_agent_on_stun(agent, now_us, from, bytes, len);

	out = kit_drain(agent);
	return verdict;
}

static void connect_from(const struct net_path *path)
{
	cr_assert_eq(kit_send(agent, 0, path, nominating, &out), ICE_ACCEPTED);
	cr_assert_eq(out.sent, 2, "an answer, and a question to the first selected IP");
	cr_assert_eq(answer_probe(0, path, kit_client.pwd), ICE_ACCEPTED);
	cr_assert(ice_agent_is_proven(agent));
}

static const char *selected_text(void)
{
	static char text[NET_ADDR_TEXT_BYTES];

	cr_assert(ice_agent_is_selected(agent));
	return net_addr_format(&ice_agent_path(agent)->remote, text);
}

Test(ice_lite, answers_a_valid_check_with_the_senders_address)
{
	static const char *const remotes[] = { "192.0.2.7:5000", "[2001:db8::7]:5000" };

	for (size_t i = 0; i < 2; i++) {
		struct net_path path = kit_path(remotes[i]);
		uint8_t bytes[KIT_MESSAGE_BYTES];
		size_t asked = kit_build(bytes, plain);
		struct stun_message m;

		cr_assert_eq(kit_send(agent, 0, &path, plain, &out), ICE_ACCEPTED);
		cr_assert_eq(out.sent, 1);
		cr_assert_eq(stun_parse(&m, out.out[0].bytes, out.out[0].len), STUN_OK);
		cr_expect_eq(m.class, STUN_SUCCESS);
		cr_expect(net_addr_is_equal(&m.mapped, &path.remote));
		cr_expect(m.has_fingerprint && stun_is_authentic(&m, kit_relay.pwd));
		cr_expect_arr_eq(m.transaction, bytes + 8, STUN_TRANSACTION_BYTES);
		cr_expect_arr_eq(&out.out[0].path, &path, sizeof(path), "back the way it came");
		cr_expect_leq(out.out[0].len, asked + ICE_MAX_RESPONSE_GROWTH_BYTES);
		cr_expect_eq(kit_count(&out, ICE_EVENT_VALIDATED), 1);
		cr_expect(ice_agent_is_validated(agent, &path.remote));
	}
	cr_expect_not(ice_agent_is_selected(agent));
}

Test(ice_lite, meets_everything_it_cannot_trust_with_silence)
{
	static const struct {
		const char *name;
		struct kit_request r;
		enum ice_verdict want;
	} rows[] = {
		{ "no integrity", { .no_integrity = true }, ICE_NO_INTEGRITY },
		{ "wrong password", { .pwd = "0123456789012345678901" }, ICE_BAD_INTEGRITY },
		{ "the other side's password", { .pwd = CLIENT_PWD }, ICE_BAD_INTEGRITY },
		{ "unknown first half", { .ours = "relayUfrag02" }, ICE_UNKNOWN_USER },
		{ "prefix of the first half", { .ours = "relayUfrag0" }, ICE_UNKNOWN_USER },
		{ "unknown second half", { .theirs = "cl+x" }, ICE_UNKNOWN_USER },
		{ "longer second half", { .theirs = "cl+/x" }, ICE_UNKNOWN_USER },
		{ "empty second half", { .theirs = "" }, ICE_UNKNOWN_USER },
		{ "unknown attribute, no integrity",
		  { .unknown = 0x7fff, .no_integrity = true },
		  ICE_NO_INTEGRITY },
		{ "role conflict, wrong password",
		  { .controlled = 1, .pwd = "0123456789012345678901" },
		  ICE_BAD_INTEGRITY },
	};
	struct net_path path = kit_path("192.0.2.7:5000");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kit_request r = rows[i].r;
		uint32_t before = ice_agent_count(agent, rows[i].want);

		r.use_candidate = true;
		cr_expect_eq(kit_send(agent, 0, &path, r, &out), rows[i].want, "%s", rows[i].name);
		cr_expect_eq(out.sent + out.events, 0, "%s", rows[i].name);
		cr_expect_eq(ice_agent_count(agent, rows[i].want), before + 1);
		cr_expect_not(ice_agent_is_validated(agent, &path.remote), "%s", rows[i].name);
	}
	cr_expect_null(ice_agent_path(agent));
}

Test(ice_lite, a_username_behind_integrity_is_no_username)
{
	struct net_path path = kit_path("192.0.2.7:5000");
	uint8_t bytes[KIT_MESSAGE_BYTES];
	struct stun_writer w;
	size_t len;

	stun_write_begin(&w, bytes, sizeof(bytes), STUN_REQUEST, (uint8_t[12]){ 1 });
	cr_assert(stun_write_end(&w, kit_relay.pwd, false));
	stun_write_username(&w, kit_relay.ufrag, kit_client.ufrag);
	len = stun_write_end(&w, NULL, true);
	cr_expect_eq(ice_agent_on_stun(agent, 0, &path, bytes, len), ICE_UNKNOWN_USER);
	out = kit_drain(agent);
	cr_expect_eq(out.sent, 0);
}

Test(ice_lite, a_nomination_behind_integrity_is_not_obeyed)
{
	struct net_path path = kit_path("192.0.2.7:5000");
	uint8_t bytes[KIT_MESSAGE_BYTES];
	struct stun_writer w;
	size_t len;

	stun_write_begin(&w, bytes, sizeof(bytes), STUN_REQUEST, (uint8_t[12]){ 1 });
	stun_write_username(&w, kit_relay.ufrag, kit_client.ufrag);
	cr_assert(stun_write_end(&w, kit_relay.pwd, false));
	stun_write(&w, STUN_USE_CANDIDATE, NULL, 0);
	len = stun_write_end(&w, NULL, true);
	cr_expect_eq(ice_agent_on_stun(agent, 0, &path, bytes, len), ICE_ACCEPTED);
	cr_expect_not(ice_agent_is_selected(agent));
}

Test(ice_lite, malformed_and_foreign_messages_are_counted_alone)
{
	struct net_path path = kit_path("192.0.2.7:5000");
	uint8_t bytes[KIT_MESSAGE_BYTES];
	size_t len = kit_build(bytes, nominating);

	bytes[len - 1] ^= 1;
	cr_expect_eq(ice_agent_on_stun(agent, 0, &path, bytes, len), ICE_BAD_FINGERPRINT);
	cr_expect_eq(ice_agent_on_stun(agent, 0, &path, bytes, len - 4), ICE_MALFORMED);
	cr_expect_eq(ice_agent_on_stun(agent, 0, &path, bytes, 0), ICE_MALFORMED);
	len = kit_build(bytes, (struct kit_request){ .no_fingerprint = true });
	bytes[1] = 3; /* Allocate */
	cr_expect_eq(ice_agent_on_stun(agent, 0, &path, bytes, len), ICE_UNEXPECTED_METHOD);
	bytes[0] = 1;
	bytes[1] = 1; /* Binding success nobody asked for */
	cr_expect_eq(ice_agent_on_stun(agent, 0, &path, bytes, len), ICE_UNMATCHED);
	bytes[0] = 0;
	bytes[1] = 0x11; /* Binding indication */
	cr_expect_eq(ice_agent_on_stun(agent, 0, &path, bytes, len), ICE_INDICATION);
	out = kit_drain(agent);
	cr_expect_eq(out.sent + out.events, 0);
	cr_expect_eq(out.deadline_us, UINT64_MAX, "nothing of it started a clock");
}

Test(ice_lite, unknown_required_attributes_are_answered_420_with_integrity)
{
	struct net_path path = kit_path("192.0.2.7:5000");
	struct kit_request r = nominating;
	struct stun_message m;

	r.unknown = 0x7ffe;
	cr_assert_eq(kit_send(agent, 0, &path, r, &out), ICE_UNKNOWN_ATTRIBUTE);
	cr_assert_eq(out.sent, 1);
	cr_assert_eq(stun_parse(&m, out.out[0].bytes, out.out[0].len), STUN_OK);
	cr_expect_eq(m.class, STUN_ERROR);
	cr_expect_eq(m.error_code, 420);
	cr_expect(stun_is_authentic(&m, kit_relay.pwd));
	cr_expect_arr_eq(out.out[0].bytes + 28, "\x00\x0a\x00\x02\x7f\xfe\x00\x00", 8);
	cr_expect_eq(out.events, 0);
	cr_expect_not(ice_agent_is_validated(agent, &path.remote));
}

Test(ice_lite, a_controlled_peer_is_told_to_switch)
{
	struct net_path path = kit_path("192.0.2.7:5000");
	struct stun_message m;

	for (uint64_t tie = 1; tie < 10; tie += 4) {
		cr_assert_eq(
		    kit_send(agent, 0, &path, (struct kit_request){ .controlled = tie }, &out),
		    ICE_ROLE_CONFLICT);
		cr_assert_eq(out.sent, 1);
		cr_assert_eq(stun_parse(&m, out.out[0].bytes, out.out[0].len), STUN_OK);
		cr_expect_eq(m.error_code, 487);
		cr_expect(stun_is_authentic(&m, kit_relay.pwd));
	}
	cr_expect_not(ice_agent_is_validated(agent, &path.remote));
}

Test(ice_lite, the_first_nomination_is_followed_at_once_and_proven_by_an_answer)
{
	struct net_path path = kit_path("192.0.2.7:5000");
	struct stun_message m;

	/* USE-CANDIDATE without PRIORITY or ICE-CONTROLLING, once, is all some clients send. */
	cr_assert_eq(kit_send(agent, 0, &path, (struct kit_request){ .use_candidate = true }, &out),
		     ICE_ACCEPTED);
	cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 1);
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000");
	cr_expect_not(ice_agent_is_proven(agent));
	cr_assert_eq(out.sent, 2);
	cr_assert_eq(stun_parse(&m, out.out[1].bytes, out.out[1].len), STUN_OK);
	cr_expect_eq(m.class, STUN_REQUEST);
	cr_expect(m.has_controlled && m.has_priority && m.has_fingerprint && !m.has_use_candidate);
	cr_expect_arr_eq(m.username, "cl+/:relayUfrag01", m.username_bytes);
	cr_expect(stun_is_authentic(&m, kit_client.pwd));
	cr_expect_eq(answer_probe(1000, &path, kit_client.pwd), ICE_ACCEPTED);
	cr_expect(ice_agent_is_proven(agent));
	cr_expect_eq(out.sent, 0);
}

Test(ice_lite, the_owner_may_prove_a_selected_address_itself)
{
	struct net_path path = kit_path("192.0.2.7:5000"), other = kit_path("192.0.2.8:5000");

	cr_assert_eq(kit_send(agent, 0, &path, nominating, &out), ICE_ACCEPTED);
	ice_agent_on_proven(agent, &other.remote);
	cr_expect_not(ice_agent_is_proven(agent));
	ice_agent_on_proven(agent, &path.remote);
	cr_expect(ice_agent_is_proven(agent));
	ice_agent_on_timeout(agent, ICE_RTO_US);
	out = kit_drain(agent);
	cr_expect_eq(out.sent, 0, "no need to ask any more");
}

Test(ice_lite, a_question_is_repeated_a_few_times_and_then_given_up)
{
	static const uint64_t at_us[] = { 500000, 1500000, 2500000, 3500000 };
	struct net_path path = kit_path("192.0.2.7:5000");
	uint8_t first[KIT_MESSAGE_BYTES];

	cr_assert_eq(kit_send(agent, 0, &path, nominating, &out), ICE_ACCEPTED);
	memcpy(first, out.out[1].bytes, out.out[1].len);
	for (size_t i = 0; i < sizeof(at_us) / sizeof(at_us[0]); i++) {
		cr_assert_eq(out.deadline_us, at_us[i]);
		ice_agent_on_timeout(agent, at_us[i] - 1);
		out = kit_drain(agent);
		cr_expect_eq(out.sent, 0, "one microsecond early");
		ice_agent_on_timeout(agent, at_us[i]);
		out = kit_drain(agent);
		cr_assert_eq(out.sent, 1);
		cr_expect_arr_eq(out.out[0].bytes, first, out.out[0].len, "the same transaction");
	}
	ice_agent_on_timeout(agent, out.deadline_us);
	out = kit_drain(agent);
	cr_expect_eq(out.sent, 0);
	cr_expect_eq(out.deadline_us, ICE_EXPIRY_US, "only the end is left");
	cr_assert_eq(kit_send(agent, 20 * KIT_S, &path, plain, &out), ICE_ACCEPTED);
	cr_expect_eq(out.sent, 1, "no nomination, no question");
	cr_assert_eq(kit_send(agent, 21 * KIT_S, &path, nominating, &out), ICE_ACCEPTED);
	cr_expect_eq(out.sent, 2, "a nomination asks anew");
}

Test(ice_lite, a_new_port_on_the_selected_ip_is_followed_at_once)
{
	struct net_path path = kit_path("192.0.2.7:5000"), moved = kit_path("192.0.2.7:6000");

	connect_from(&path);
	cr_assert_eq(kit_send(agent, KIT_S, &moved, nominating, &out), ICE_ACCEPTED);
	cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 1);
	cr_expect_str_eq(selected_text(), "192.0.2.7:6000");
	cr_expect(ice_agent_is_proven(agent), "the IP answered before");
	cr_expect_eq(out.sent, 1);
	cr_expect(ice_agent_is_validated(agent, &path.remote));
}

Test(ice_lite, a_new_ip_is_followed_only_when_it_answers)
{
	struct net_path path = kit_path("192.0.2.7:5000"), moved = kit_path("198.51.100.9:5000");

	connect_from(&path);
	cr_assert_eq(kit_send(agent, KIT_S, &moved, nominating, &out), ICE_ACCEPTED);
	cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 0);
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000");
	cr_assert_eq(out.sent, 2);
	cr_expect_arr_eq(&out.out[1].path, &moved, sizeof(moved));
	cr_assert_eq(answer_probe(KIT_S, &moved, kit_client.pwd), ICE_ACCEPTED);
	cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 1);
	cr_expect_str_eq(selected_text(), "198.51.100.9:5000");
	cr_expect(ice_agent_is_proven(agent));
}

Test(ice_lite, nobody_can_aim_the_stream_at_a_stranger)
{
	struct net_path path = kit_path("192.0.2.7:5000"), victim = kit_path("198.51.100.9:53");
	struct kit_log asked;

	connect_from(&path);
	cr_assert_eq(kit_send(agent, KIT_S, &victim, nominating, &asked), ICE_ACCEPTED);
	out = asked;
	cr_expect_eq(answer_probe(KIT_S, &path, kit_client.pwd), ICE_WRONG_SOURCE);
	out = asked;
	cr_expect_eq(answer_probe(KIT_S, &victim, kit_relay.pwd), ICE_BAD_INTEGRITY);
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000");
	for (uint64_t now_us = KIT_S; now_us < 25 * KIT_S; now_us += 100000) {
		ice_agent_on_timeout(agent, now_us);
		out = kit_drain(agent);
		cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 0);
	}
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000");
}

Test(ice_lite, responses_with_a_guessed_transaction_match_nothing)
{
	struct net_path path = kit_path("192.0.2.7:5000"), victim = kit_path("198.51.100.9:53");
	uint8_t bytes[KIT_MESSAGE_BYTES];
	struct stun_writer w;

	connect_from(&path);
	cr_assert_eq(kit_send(agent, KIT_S, &victim, nominating, &out), ICE_ACCEPTED);
	stun_write_begin(&w, bytes, sizeof(bytes), STUN_SUCCESS, (uint8_t[12]){ 7 });
	stun_write_mapped(&w, &victim.local);
	cr_expect_eq(ice_agent_on_stun(agent, KIT_S, &victim, bytes,
				       stun_write_end(&w, kit_client.pwd, true)),
		     ICE_UNMATCHED);
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000");
}

Test(ice_lite, the_latest_nomination_wins_over_one_still_being_asked)
{
	struct net_path path = kit_path("192.0.2.7:5000"), moved = kit_path("198.51.100.9:5000");
	struct kit_log asked;

	connect_from(&path);
	cr_assert_eq(kit_send(agent, KIT_S, &moved, nominating, &asked), ICE_ACCEPTED);
	cr_assert_eq(kit_send(agent, KIT_S + 1, &path, nominating, &out), ICE_ACCEPTED);
	out = asked;
	cr_expect_eq(answer_probe(KIT_S + 2, &moved, kit_client.pwd), ICE_UNMATCHED);
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000");
}

Test(ice_lite, of_several_new_ips_the_latest_nominated_alone_is_asked)
{
	struct net_path path = kit_path("192.0.2.7:5000"), first = kit_path("198.51.100.9:5000");
	struct net_path second = kit_path("198.51.100.10:5000");
	size_t asked = 0;

	connect_from(&path);
	cr_assert_eq(kit_send(agent, KIT_S, &first, nominating, &out), ICE_ACCEPTED);
	cr_assert_eq(kit_send(agent, 2 * KIT_S, &second, nominating, &out), ICE_ACCEPTED);
	for (uint64_t now_us = 2 * KIT_S; now_us < 20 * KIT_S; now_us = out.deadline_us) {
		ice_agent_on_timeout(agent, now_us);
		out = kit_drain(agent);
		for (size_t i = 0; i < out.sent; i++, asked++)
			cr_expect(net_addr_is_equal(&out.out[i].path.remote, &second.remote));
	}
	cr_expect_eq(asked, 4, "the copies that follow the first");
}

Test(ice_lite, a_peer_that_never_nominates_again_is_followed_once_its_old_address_is_silent)
{
	struct net_path path = kit_path("192.0.2.7:5000"), moved = kit_path("192.0.2.7:6000");

	connect_from(&path);
	cr_assert_eq(kit_send(agent, ICE_STALE_US - 1, &moved, plain, &out), ICE_ACCEPTED);
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000");
	ice_agent_on_authenticated(agent, ICE_STALE_US, &path);
	cr_assert_eq(kit_send(agent, 2 * ICE_STALE_US - 1, &moved, plain, &out), ICE_ACCEPTED);
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000", "media keeps a path fresh");
	cr_assert_eq(kit_send(agent, 2 * ICE_STALE_US, &moved, plain, &out), ICE_ACCEPTED);
	cr_expect_str_eq(selected_text(), "192.0.2.7:6000");
}

Test(ice_lite, the_local_end_of_a_nomination_is_followed_too)
{
	struct net_path path = kit_path("192.0.2.7:5000"), other = path;

	connect_from(&path);
	other.local.ip[15]++;
	cr_assert_eq(kit_send(agent, KIT_S, &other, plain, &out), ICE_ACCEPTED);
	cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 0);
	cr_assert_eq(kit_send(agent, KIT_S, &other, nominating, &out), ICE_ACCEPTED);
	cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 1);
	cr_expect_arr_eq(ice_agent_path(agent), &other, sizeof(other));
}

Test(ice_lite, keeps_eight_addresses_and_replaces_the_one_unheard_for_longest)
{
	struct net_path selected = kit_path("192.0.2.7:5000"), path = selected;
	uint64_t now_us = KIT_S;

	connect_from(&selected);
	for (uint16_t port = 6001; port < 6001 + ICE_MAX_PAIRS - 1; port++, now_us += 1000) {
		path.remote.port = port;
		cr_assert_eq(kit_send(agent, now_us, &path, plain, &out), ICE_ACCEPTED);
		cr_expect_eq(kit_count(&out, ICE_EVENT_DROPPED), 0);
	}
	path.remote.port = 6001; /* heard again, so that 6002 is the oldest */
	cr_assert_eq(kit_send(agent, now_us, &path, plain, &out), ICE_ACCEPTED);
	path.remote.port = 7000;
	cr_assert_eq(kit_send(agent, now_us + 1, &path, plain, &out), ICE_ACCEPTED);
	cr_assert_eq(kit_count(&out, ICE_EVENT_DROPPED), 1);
	cr_expect_eq(out.event[0].path.remote.port, 6002);
	path.remote.port = 6002;
	cr_expect_not(ice_agent_is_validated(agent, &path.remote));
	cr_expect(ice_agent_is_validated(agent, &selected.remote), "the selected one stays");
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000");
}

Test(ice_lite, ends_after_30_s_without_an_authentic_packet)
{
	struct net_path path = kit_path("192.0.2.7:5000"), stranger = kit_path("192.0.2.7:5001");
	struct kit_request forged = { .pwd = "0123456789012345678901" };

	connect_from(&path);
	cr_assert_eq(kit_send(agent, 10 * KIT_S, &path, plain, &out), ICE_ACCEPTED);
	cr_assert_eq(out.deadline_us, 10 * KIT_S + ICE_EXPIRY_US);
	cr_expect_eq(kit_send(agent, 20 * KIT_S, &path, forged, &out), ICE_BAD_INTEGRITY);
	ice_agent_on_authenticated(agent, 30 * KIT_S, &stranger);
	ice_agent_on_timeout(agent, 10 * KIT_S + ICE_EXPIRY_US - 1);
	out = kit_drain(agent);
	cr_expect_eq(out.events, 0, "one microsecond early");
	ice_agent_on_timeout(agent, 10 * KIT_S + ICE_EXPIRY_US);
	out = kit_drain(agent);
	cr_expect_eq(kit_count(&out, ICE_EVENT_EXPIRED), 1);
	cr_expect_eq(out.deadline_us, UINT64_MAX);
	cr_expect_eq(kit_send(agent, 41 * KIT_S, &path, nominating, &out), ICE_OVER);
	ice_agent_on_timeout(agent, 80 * KIT_S);
	out = kit_drain(agent);
	cr_expect_eq(out.sent + out.events, 0, "said once, then silence");
}

Test(ice_lite, media_keeps_a_peer_alive_that_sends_indications_alone)
{
	static const uint8_t indication[] = "\x00\x11\x00\x00\x21\x12\xa4\x42"
					    "transactions";
	struct net_path path = kit_path("192.0.2.7:5000");
	uint64_t now_us = 0;

	connect_from(&path);
	for (; now_us <= 600 * KIT_S; now_us += 25 * KIT_S) {
		cr_expect_eq(
		    ice_agent_on_stun(agent, now_us, &path, indication, sizeof(indication) - 1),
		    ICE_INDICATION);
		ice_agent_on_authenticated(agent, now_us, &path);
		ice_agent_on_timeout(agent, now_us + 24 * KIT_S);
		out = kit_drain(agent);
		cr_assert_eq(kit_count(&out, ICE_EVENT_EXPIRED), 0);
	}
	now_us -= 25 * KIT_S;
	ice_agent_on_stun(agent, now_us + 25 * KIT_S, &path, indication, sizeof(indication) - 1);
	ice_agent_on_timeout(agent, now_us + ICE_EXPIRY_US);
	out = kit_drain(agent);
	cr_expect_eq(kit_count(&out, ICE_EVENT_EXPIRED), 1, "indications alone do not");
}

Test(ice_lite, the_wait_for_a_first_check_is_the_owners_choice)
{
	struct ice_config c = config();
	struct ice_agent *limited;

	out = kit_drain(agent);
	cr_expect_eq(out.deadline_us, UINT64_MAX, "no limit was asked for");
	c.connect_limit_us = 10 * KIT_S;
	cr_assert_eq(ice_agent_create(&limited, 5 * KIT_S, &c), 0);
	out = kit_drain(limited);
	cr_expect_eq(out.deadline_us, 15 * KIT_S);
	ice_agent_on_timeout(limited, 15 * KIT_S);
	out = kit_drain(limited);
	cr_expect_eq(kit_count(&out, ICE_EVENT_EXPIRED), 1);
	ice_agent_destroy(limited);
}

static const struct ice_credentials relay2 = { "relayUfrag02", RELAY2_PWD };
static const struct ice_credentials client2 = { "cl22", "second/password+of/24+ch" };
static const struct kit_request renewed = {
	.ours = "relayUfrag02", .theirs = "cl22", .pwd = RELAY2_PWD, .use_candidate = true
};

Test(ice_lite, a_restart_keeps_the_old_credentials_until_the_new_ones_are_used)
{
	struct net_path path = kit_path("192.0.2.7:5000"), port = kit_path("192.0.2.7:6000");

	connect_from(&path);
	cr_assert_eq(ice_agent_restart(agent, KIT_S, &relay2, &client2), 0);
	cr_expect_str_eq(selected_text(), "192.0.2.7:5000", "media goes on");
	cr_expect_eq(kit_send(agent, 2 * KIT_S, &path, nominating, &out), ICE_ACCEPTED);
	cr_expect_eq(kit_send(agent, 3 * KIT_S, &port, renewed, &out), ICE_ACCEPTED);
	cr_expect_str_eq(selected_text(), "192.0.2.7:6000");
	cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 1);
	cr_expect(stun_check_integrity(out.out[0].bytes, out.out[0].len, relay2.pwd));
	cr_expect_eq(kit_send(agent, 4 * KIT_S, &path, nominating, &out), ICE_UNKNOWN_USER);
	cr_expect_eq(out.sent, 0);
	cr_expect(ice_agent_is_validated(agent, &path.remote), "its media may still arrive");
}

Test(ice_lite, a_restart_on_the_same_path_is_announced_once)
{
	struct net_path path = kit_path("192.0.2.7:5000");

	connect_from(&path);
	cr_assert_eq(ice_agent_restart(agent, KIT_S, &relay2, &client2), 0);
	cr_expect_eq(kit_send(agent, KIT_S, &path, nominating, &out), ICE_ACCEPTED);
	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(kit_send(agent, 2 * KIT_S, &path, renewed, &out), ICE_ACCEPTED);
		cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), i == 0, "check %zu", i);
	}
}

Test(ice_lite, of_two_restarts_in_a_row_the_used_credentials_stay)
{
	static const struct ice_credentials relay3 = { "relayUfrag03",
						       "third/password+of/32+characters1" };
	struct net_path path = kit_path("192.0.2.7:5000");

	connect_from(&path);
	cr_assert_eq(ice_agent_restart(agent, KIT_S, &relay3, &client2), 0);
	cr_assert_eq(ice_agent_restart(agent, KIT_S, &relay2, &client2), 0);
	cr_expect_eq(kit_send(agent, 2 * KIT_S, &path, plain, &out), ICE_ACCEPTED);
	cr_expect_eq(kit_send(agent, 3 * KIT_S, &path, renewed, &out), ICE_ACCEPTED);
}

Test(ice_lite, questions_during_a_restart_are_signed_as_the_peer_knows_us)
{
	struct net_path path = kit_path("192.0.2.7:5000"), moved = kit_path("198.51.100.9:5000");

	connect_from(&path);
	cr_assert_eq(ice_agent_restart(agent, KIT_S, &relay2, &client2), 0);
	cr_assert_eq(kit_send(agent, KIT_S, &moved, nominating, &out), ICE_ACCEPTED);
	cr_assert_eq(out.sent, 2);
	cr_expect(stun_check_integrity(out.out[1].bytes, out.out[1].len, kit_client.pwd));
	cr_expect_eq(answer_probe(KIT_S, &moved, kit_client.pwd), ICE_ACCEPTED);
	cr_expect_str_eq(selected_text(), "198.51.100.9:5000");
	moved = kit_path("198.51.100.10:5000");
	cr_assert_eq(kit_send(agent, KIT_S + ICE_PACING_US, &moved, nominating, &out),
		     ICE_ACCEPTED);
	cr_assert_eq(out.sent, 2);
	cr_assert_eq(kit_send(agent, 2 * KIT_S, &moved, renewed, &out), ICE_ACCEPTED);
	cr_assert_eq(out.sent, 2);
	cr_expect(stun_check_integrity(out.out[1].bytes, out.out[1].len, client2.pwd));
	cr_expect_eq(answer_probe(2 * KIT_S, &moved, client2.pwd), ICE_ACCEPTED);
	cr_expect_str_eq(selected_text(), "198.51.100.10:5000");
}

Test(ice_lite, unusable_credentials_are_refused_and_change_nothing)
{
	static const struct ice_credentials bad[] = {
		{ "abc", "0123456789012345678901" },
		{ "abcd", "012345678901234567890" },
		{ "", "" },
	};
	struct net_path path = kit_path("192.0.2.7:5000");
	struct ice_agent *none = agent;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ice_config c = config();

		c.remote = bad[i];
		cr_expect_eq(ice_agent_create(&none, 0, &c), -EINVAL, "row %zu", i);
		cr_expect_null(none);
		cr_expect_eq(ice_agent_restart(agent, 0, &bad[i], &client2), -EINVAL);
		cr_expect_eq(ice_agent_restart(agent, 0, &relay2, &bad[i]), -EINVAL);
	}
	cr_expect_eq(kit_send(agent, 0, &path, plain, &out), ICE_ACCEPTED);
	cr_expect_eq(ice_agent_add_remote(agent, 0, &path), -ENOTSUP);
}

Test(ice_lite, running_out_of_memory_refuses_the_agent)
{
	struct ice_config c = config();
	struct ice_agent *none = agent;

	fault_after(0);
	cr_expect_eq(ice_agent_create(&none, 0, &c), -ENOMEM);
	fault_after(-1);
	cr_expect_null(none);
	ice_agent_destroy(NULL);
}

static unsigned allocations;

static void *count_malloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	allocations++;
	return malloc(n);
}

static void *count_realloc(void *old, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	allocations++;
	return realloc(old, n);
}

static void count_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

Test(ice_lite, no_check_allocates)
{
	struct net_path path = kit_path("192.0.2.7:5000");

	/* Refused once anything in the process made OpenSSL allocate. */
	if (!CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free))
		cr_log_warn("only our own allocations are watched");
	connect_from(&path);
	fault_after(0); /* one of ours would fail */
	for (uint64_t now_us = KIT_S; now_us < 100 * (uint64_t)KIT_S; now_us += KIT_S) {
		path.remote.port++;
		cr_expect_eq(kit_send(agent, now_us, &path, nominating, &out), ICE_ACCEPTED);
	}
	fault_after(-1);
	cr_expect_eq(allocations, 0);
}

Test(ice_lite, one_seed_gives_one_history_and_another_gives_other_transactions)
{
	struct net_path path = kit_path("192.0.2.7:5000");
	uint8_t id[3][STUN_TRANSACTION_BYTES];

	for (size_t i = 0; i < 3; i++) {
		struct ice_config c = config();
		struct ice_agent *a;

		c.seed[31] = i == 2;
		cr_assert_eq(ice_agent_create(&a, 0, &c), 0);
		cr_assert_eq(kit_send(a, 0, &path, nominating, &out), ICE_ACCEPTED);
		memcpy(id[i], out.out[1].bytes + 8, sizeof(id[i]));
		ice_agent_destroy(a);
	}
	cr_expect_arr_eq(id[0], id[1], sizeof(id[0]));
	cr_expect_arr_neq(id[0], id[2], sizeof(id[0]));
}

Test(ice_lite, a_clock_that_jumps_or_nears_its_end_breaks_nothing)
{
	static const uint64_t starts_us[] = { 0, UINT32_MAX, (uint64_t)1 << 63,
					      UINT64_MAX - 100 * (uint64_t)KIT_S };
	struct net_path path = kit_path("192.0.2.7:5000");

	for (size_t i = 0; i < sizeof(starts_us) / sizeof(starts_us[0]); i++) {
		struct ice_config c = config();
		struct ice_agent *a;

		cr_assert_eq(ice_agent_create(&a, starts_us[i], &c), 0);
		cr_assert_eq(kit_send(a, starts_us[i], &path, nominating, &out), ICE_ACCEPTED);
		cr_expect_eq(out.deadline_us, starts_us[i] + ICE_RTO_US);
		cr_assert_eq(kit_send(a, starts_us[i] / 2, &path, plain, &out), ICE_ACCEPTED,
			     "a clock that steps back");
		cr_expect_eq(ice_agent_heard_us(a), starts_us[i]);
		ice_agent_on_timeout(a, starts_us[i] + ICE_EXPIRY_US);
		out = kit_drain(a);
		cr_expect_eq(kit_count(&out, ICE_EVENT_EXPIRED), 1);
		ice_agent_destroy(a);
	}
}

Test(ice_lite, an_agent_is_small_and_verdicts_have_names)
{
	cr_expect_leq(ice_agent_bytes(), 1536);
	for (int v = 0; v < ICE_VERDICTS; v++)
		cr_expect_not_null(ice_verdict_name((enum ice_verdict)v), "verdict %d", v);
}
