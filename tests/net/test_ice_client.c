/* The controlling agent, alone and against the lite one over a network that loses packets. */
#include <criterion/criterion.h>
#include <errno.h>

#include "tests/net/ice_kit.h"

TestSuite(ice_client, .timeout = 10);

static struct kit_log out;

static struct ice_config client_config(uint8_t seed)
{
	return (struct ice_config){ .role = ICE_CONTROLLING,
				    .local = kit_client,
				    .remote = kit_relay,
				    .tie_breaker = 7,
				    .seed = { seed } };
}

static struct ice_agent *create(uint8_t seed)
{
	struct ice_config c = client_config(seed);
	struct ice_agent *a;

	cr_assert_eq(ice_agent_create(&a, 0, &c), 0);
	return a;
}

static struct net_path path_to(const char *remote, const char *local)
{
	struct net_path path = kit_path(remote);

	cr_assert_eq(net_addr_parse(&path.local, local), 0);
	return path;
}

static struct stun_message message(const struct kit_datagram *d)
{
	struct stun_message m;

	cr_assert_eq(stun_parse(&m, d->bytes, d->len), STUN_OK);
	return m;
}

static enum ice_verdict reply_from(struct ice_agent *a, uint64_t now_us,
				   const struct kit_datagram *asked, const struct net_path *from)
{
	uint8_t bytes[KIT_MESSAGE_BYTES];
	size_t len =
	    kit_respond(bytes, asked->bytes, asked->len, &asked->path.local, kit_relay.pwd);

	return ice_agent_on_stun(a, now_us, from, bytes, len);
}

static enum ice_verdict reply(struct ice_agent *a, uint64_t now_us,
			      const struct kit_datagram *asked)
{
	return reply_from(a, now_us, asked, &asked->path);
}

Test(ice_client, checks_first_and_nominates_what_answered)
{
	struct net_path path = path_to("192.0.2.1:8189", "10.0.0.2:4000");
	struct ice_agent *a = create(1);
	struct kit_datagram asked;
	struct stun_message m;

	cr_assert_eq(ice_agent_add_remote(a, 0, &path), 0);
	out = kit_drain(a);
	cr_assert_eq(out.sent, 1);
	asked = out.out[0];
	m = message(&asked);
	cr_expect(m.has_controlling && m.has_priority && m.has_fingerprint && !m.has_use_candidate);
	cr_expect_eq(m.tie_breaker, 7);
	cr_expect_arr_eq(m.username, "relayUfrag01:cl+/", m.username_bytes);
	cr_expect(stun_is_authentic(&m, kit_relay.pwd));
	cr_expect_eq(reply(a, 60000, &asked), ICE_ACCEPTED);
	out = kit_drain(a);
	cr_expect_eq(kit_count(&out, ICE_EVENT_VALIDATED), 1);
	cr_assert_eq(out.sent, 1);
	cr_expect(message(&out.out[0]).has_use_candidate);
	asked = out.out[0];
	cr_expect_eq(reply(a, 70000, &asked), ICE_ACCEPTED);
	cr_expect_eq(reply(a, 70000, &asked), ICE_UNMATCHED, "a second copy");
	out = kit_drain(a);
	cr_expect_eq(kit_count(&out, ICE_EVENT_SELECTED), 1);
	cr_expect(ice_agent_is_proven(a));
	cr_expect_arr_eq(ice_agent_path(a), &path, sizeof(path));
	ice_agent_destroy(a);
}

Test(ice_client, sends_seven_copies_of_a_check_and_then_starts_over)
{
	static const uint64_t at_ms[] = { 0, 500, 1500, 2500, 3500, 4500, 5500, 6500 };
	struct net_path path = path_to("192.0.2.1:8189", "10.0.0.2:4000");
	struct ice_agent *a = create(1);
	uint8_t first[STUN_TRANSACTION_BYTES];

	cr_assert_eq(ice_agent_add_remote(a, 0, &path), 0);
	for (size_t i = 0; i < sizeof(at_ms) / sizeof(at_ms[0]); i++) {
		bool is_last = i + 1 == sizeof(at_ms) / sizeof(at_ms[0]);

		ice_agent_on_timeout(a, at_ms[i] * 1000);
		out = kit_drain(a);
		cr_assert_eq(out.sent, 1, "at %lu ms", (unsigned long)at_ms[i]);
		if (i == 0)
			memcpy(first, out.out[0].bytes + 8, sizeof(first));
		cr_expect_eq(memcmp(first, out.out[0].bytes + 8, sizeof(first)) == 0, !is_last);
		if (!is_last)
			cr_expect_eq(out.deadline_us, at_ms[i + 1] * 1000);
	}
	ice_agent_destroy(a);
}

Test(ice_client, checks_of_several_pairs_are_paced)
{
	struct ice_agent *a = create(1);
	struct net_path path = path_to("192.0.2.1:8189", "10.0.0.2:4000");

	for (uint16_t i = 0; i < ICE_MAX_PAIRS; i++, path.remote.port++)
		cr_assert_eq(ice_agent_add_remote(a, 0, &path), 0);
	cr_expect_eq(ice_agent_add_remote(a, 0, &path), -ENOSPC);
	path.remote.port--;
	cr_expect_eq(ice_agent_add_remote(a, 0, &path), 0, "a known pair is no news");
	for (uint16_t i = 0; i < ICE_MAX_PAIRS; i++) {
		out = kit_drain(a);
		cr_assert_eq(out.sent, 1);
		cr_expect_eq(out.out[0].path.remote.port, 8189 + i, "in order of preference");
		if (i + 1 < ICE_MAX_PAIRS)
			cr_assert_eq(out.deadline_us, (i + 1U) * ICE_PACING_US);
		ice_agent_on_timeout(a, out.deadline_us);
	}
	ice_agent_destroy(a);
}

Test(ice_client, a_preferred_pair_may_still_win_for_a_moment)
{
	static const bool cases[] = { true, false };

	for (size_t i = 0; i < 2; i++) {
		struct ice_agent *a = create(1);
		struct net_path good = path_to("192.0.2.1:8189", "10.0.0.2:4000");
		struct net_path spare = path_to("192.0.2.2:8189", "10.0.0.2:4000");
		struct kit_log first, second;

		cr_assert_eq(ice_agent_add_remote(a, 0, &good), 0);
		cr_assert_eq(ice_agent_add_remote(a, 0, &spare), 0);
		first = kit_drain(a);
		ice_agent_on_timeout(a, ICE_PACING_US);
		second = kit_drain(a);
		cr_assert_eq(reply(a, 100000, &second.out[0]), ICE_ACCEPTED);
		out = kit_drain(a);
		cr_expect_eq(out.sent, 0, "not nominated yet");
		cr_expect_eq(out.deadline_us, 300000);
		if (cases[i])
			cr_assert_eq(reply(a, 299999, &first.out[0]), ICE_ACCEPTED);
		else
			ice_agent_on_timeout(a, 300000);
		out = kit_drain(a);
		cr_assert_eq(out.sent, 1);
		cr_expect(message(&out.out[0]).has_use_candidate);
		cr_expect(net_addr_is_equal(&out.out[0].path.remote,
					    cases[i] ? &good.remote : &spare.remote));
		ice_agent_destroy(a);
	}
}

Test(ice_client, responses_that_prove_nothing_are_not_believed)
{
	struct net_path path = path_to("192.0.2.1:8189", "10.0.0.2:4000");
	struct net_path elsewhere = path_to("192.0.2.1:8190", "10.0.0.2:4000");
	struct net_path other_way = path_to("192.0.2.1:8189", "10.0.0.3:4000");
	struct ice_agent *a = create(1);
	uint8_t bytes[KIT_MESSAGE_BYTES];
	struct kit_datagram asked;
	struct stun_writer w;
	size_t len;

	cr_assert_eq(ice_agent_add_remote(a, 0, &path), 0);
	asked = kit_drain(a).out[0];
	cr_expect_eq(reply_from(a, 1, &asked, &elsewhere), ICE_WRONG_SOURCE);
	cr_expect_eq(reply_from(a, 1, &asked, &other_way), ICE_WRONG_SOURCE);
	len = kit_respond(bytes, asked.bytes, asked.len, &path.local, kit_client.pwd);
	cr_expect_eq(ice_agent_on_stun(a, 1, &path, bytes, len), ICE_BAD_INTEGRITY);
	len = kit_respond(bytes, asked.bytes, asked.len, &path.local, NULL);
	cr_expect_eq(ice_agent_on_stun(a, 1, &path, bytes, len), ICE_NO_INTEGRITY);
	stun_write_begin(&w, bytes, sizeof(bytes), STUN_SUCCESS, asked.bytes + 8);
	len = stun_write_end(&w, kit_relay.pwd, true);
	cr_expect_eq(ice_agent_on_stun(a, 1, &path, bytes, len), ICE_MALFORMED, "no address in it");
	stun_write_begin(&w, bytes, sizeof(bytes), STUN_SUCCESS, asked.bytes + 8);
	stun_write_mapped(&w, &path.local);
	stun_write(&w, 0x7fff, NULL, 0);
	len = stun_write_end(&w, kit_relay.pwd, true);
	cr_expect_eq(ice_agent_on_stun(a, 1, &path, bytes, len), ICE_UNKNOWN_ATTRIBUTE);
	stun_write_begin(&w, bytes, sizeof(bytes), STUN_ERROR, asked.bytes + 8);
	stun_write_error(&w, 500);
	len = stun_write_end(&w, kit_relay.pwd, true);
	cr_expect_eq(ice_agent_on_stun(a, 1, &path, bytes, len), ICE_ERROR_RESPONSE);
	out = kit_drain(a);
	cr_expect_eq(out.sent + out.events, 0);
	cr_expect_eq(reply(a, 2, &asked), ICE_ACCEPTED, "and the right one still counts");
	ice_agent_destroy(a);
}

Test(ice_client, a_role_conflict_switches_the_role)
{
	struct net_path path = path_to("192.0.2.1:8189", "10.0.0.2:4000");
	struct ice_agent *a = create(1);
	uint8_t bytes[KIT_MESSAGE_BYTES];
	struct kit_datagram asked;
	struct stun_writer w;
	size_t len;

	cr_assert_eq(ice_agent_add_remote(a, 0, &path), 0);
	asked = kit_drain(a).out[0];
	stun_write_begin(&w, bytes, sizeof(bytes), STUN_ERROR, asked.bytes + 8);
	stun_write_error(&w, STUN_CODE_ROLE_CONFLICT);
	len = stun_write_end(&w, kit_relay.pwd, true);
	cr_expect_eq(ice_agent_on_stun(a, 60000, &path, bytes, len), ICE_ROLE_CONFLICT);
	out = kit_drain(a);
	cr_assert_eq(out.sent, 1);
	cr_expect(message(&out.out[0]).has_controlled);
	cr_expect_eq(ice_agent_on_stun(a, 60000, &path, bytes, len), ICE_UNMATCHED, "an old one");
	ice_agent_destroy(a);
}

/* --- Two agents and a network between them ---------------------------------------------------- */

enum { MAX_FLIGHT = 64, DELAY_US = 20000 };

struct side {
	struct ice_agent *agent;
	uint64_t deadline_us;
	unsigned validated, selected, expired;
};

struct link {
	struct side side[2];
	uint64_t now_us, random;
	unsigned loss_percent;
	size_t in_flight;
	struct {
		uint64_t at_us;
		unsigned to;
		struct kit_datagram d;
	} flight[MAX_FLIGHT];
};

static unsigned next_random(struct link *l, unsigned below)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return (unsigned)(l->random >> 33) % below;
}

static void link_send(struct link *l, unsigned from, const struct kit_datagram *d)
{
	if (next_random(l, 100) < l->loss_percent)
		return;
	cr_assert_lt(l->in_flight, MAX_FLIGHT);
	l->flight[l->in_flight].at_us = l->now_us + DELAY_US + next_random(l, 10000);
	l->flight[l->in_flight].to = 1 - from;
	l->flight[l->in_flight].d = *d;
	l->flight[l->in_flight++].d.path = (struct net_path){ d->path.local, d->path.remote };
}

static void link_drain(struct link *l, unsigned i)
{
	struct side *s = &l->side[i];
	struct kit_log log = kit_drain(s->agent);

	for (size_t k = 0; k < log.sent; k++)
		link_send(l, i, &log.out[k]);
	s->validated += (unsigned)kit_count(&log, ICE_EVENT_VALIDATED);
	s->selected += (unsigned)kit_count(&log, ICE_EVENT_SELECTED);
	s->expired += (unsigned)kit_count(&log, ICE_EVENT_EXPIRED);
	s->deadline_us = log.deadline_us;
}

static void deliver(struct link *l, size_t k)
{
	struct kit_datagram d = l->flight[k].d;
	unsigned to = l->flight[k].to;

	l->flight[k] = l->flight[--l->in_flight];
	ice_agent_on_stun(l->side[to].agent, l->now_us, &d.path, d.bytes, d.len);
	link_drain(l, to);
}

/* Runs the earliest thing: a datagram's arrival, or a side's timer. @return false: past end_us */
static bool link_step(struct link *l, uint64_t end_us)
{
	unsigned side = l->side[1].deadline_us < l->side[0].deadline_us;
	uint64_t at_us = l->side[side].deadline_us;
	size_t next = l->in_flight;

	for (size_t k = 0; k < l->in_flight; k++) {
		if (l->flight[k].at_us <= at_us) {
			at_us = l->flight[k].at_us;
			next = k;
		}
	}
	if (at_us > end_us) {
		l->now_us = end_us;
		return false;
	}
	l->now_us = at_us;
	if (next < l->in_flight) {
		deliver(l, next);
		return true;
	}
	ice_agent_on_timeout(l->side[side].agent, l->now_us);
	link_drain(l, side);
	cr_assert_gt(l->side[side].deadline_us, l->now_us, "a timer that fires for ever");
	return true;
}

static void link_run(struct link *l, uint64_t end_us)
{
	while (link_step(l, end_us))
		;
}

static bool is_connected(const struct link *l)
{
	return ice_agent_is_selected(l->side[0].agent) && ice_agent_is_selected(l->side[1].agent);
}

/* Side 0 is the client at 10.0.0.2, side 1 the server at 192.0.2.1. */
static void link_open(struct link *l, uint64_t seed, enum ice_role server_role, uint64_t tie)
{
	struct net_path way = path_to("192.0.2.1:8189", "10.0.0.2:4000");
	struct net_path back = { way.local, way.remote };
	struct ice_config c = client_config((uint8_t)seed);

	*l = (struct link){ .random = seed * 0x9e3779b97f4a7c15 + 1 };
	cr_assert_eq(ice_agent_create(&l->side[0].agent, 0, &c), 0);
	c = (struct ice_config){ .role = server_role,
				 .local = kit_relay,
				 .remote = kit_client,
				 .tie_breaker = tie,
				 .seed = { (uint8_t)seed, 1 } };
	cr_assert_eq(ice_agent_create(&l->side[1].agent, 0, &c), 0);
	cr_assert_eq(ice_agent_add_remote(l->side[0].agent, 0, &way), 0);
	if (server_role == ICE_CONTROLLING)
		cr_assert_eq(ice_agent_add_remote(l->side[1].agent, 0, &back), 0);
	l->side[0].deadline_us = l->side[1].deadline_us = 0;
}

static void link_close(struct link *l)
{
	ice_agent_destroy(l->side[0].agent);
	ice_agent_destroy(l->side[1].agent);
}

Test(ice_client, lite_and_controlling_connect_in_two_round_trips)
{
	static struct link l;

	link_open(&l, 1, ICE_LITE, 3);
	link_run(&l, 4 * (DELAY_US + 10000));
	cr_expect(is_connected(&l));
	cr_expect(ice_agent_is_proven(l.side[0].agent));
	link_run(&l, 10 * DELAY_US);
	cr_expect(ice_agent_is_proven(l.side[1].agent));
	cr_expect(l.side[0].validated == 1 && l.side[1].validated == 1);
	cr_expect(l.side[0].selected == 1 && l.side[1].selected == 1);
	link_close(&l);
}

Test(ice_client, half_of_all_packets_lost_still_connects_in_the_end)
{
	static struct link l;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		link_open(&l, seed, ICE_LITE, 3);
		l.loss_percent = 50;
		while (!is_connected(&l) && link_step(&l, 600 * (uint64_t)KIT_S))
			;
		cr_expect(is_connected(&l), "seed %lu", (unsigned long)seed);
		cr_expect_eq(l.side[0].selected, 1, "seed %lu", (unsigned long)seed);
		link_close(&l);
	}
}

Test(ice_client, consent_keeps_both_alive_for_an_hour_and_its_end_ends_both)
{
	static struct link l;
	uint64_t end_us = 3600 * (uint64_t)KIT_S;

	link_open(&l, 1, ICE_LITE, 3);
	link_run(&l, end_us);
	cr_expect_eq(l.side[0].expired + l.side[1].expired, 0);
	l.loss_percent = 100;
	link_run(&l, end_us + 23 * (uint64_t)KIT_S);
	cr_expect_eq(l.side[0].expired + l.side[1].expired, 0);
	link_run(&l, end_us + 31 * (uint64_t)KIT_S);
	cr_expect_eq(l.side[0].expired, 1);
	cr_expect_eq(l.side[1].expired, 1);
	link_close(&l);
}

Test(ice_client, media_alone_is_no_consent)
{
	static struct link l;
	uint64_t at_us;

	link_open(&l, 1, ICE_LITE, 3);
	link_run(&l, KIT_S);
	l.loss_percent = 100;
	for (at_us = KIT_S; at_us < 40 * (uint64_t)KIT_S; at_us += KIT_S) {
		struct net_path path = *ice_agent_path(l.side[0].agent);
		struct net_path back = { path.local, path.remote };

		ice_agent_on_authenticated(l.side[0].agent, at_us, &path);
		ice_agent_on_authenticated(l.side[1].agent, at_us, &back);
		link_drain(&l, 0);
		link_drain(&l, 1);
		link_run(&l, at_us);
	}
	cr_expect_eq(l.side[0].expired, 1, "a full agent needs answers");
	cr_expect_eq(l.side[1].expired, 0, "a lite one lives by any authentic packet");
	link_close(&l);
}

Test(ice_client, consent_checks_come_every_4_to_6_s_as_the_seed_says)
{
	struct net_path path = path_to("192.0.2.1:8189", "10.0.0.2:4000");
	uint64_t gaps[2][20], shortest = UINT64_MAX, longest = 0;

	for (uint8_t seed = 0; seed < 2; seed++) {
		struct ice_agent *a = create(seed);
		uint64_t now_us = 0, last_us = 0;

		cr_assert_eq(ice_agent_add_remote(a, 0, &path), 0);
		out = kit_drain(a);
		for (size_t i = 0; i < 22; i++) {
			struct kit_datagram asked = out.out[0];

			cr_assert_eq(out.sent, 1);
			cr_assert_eq(reply(a, now_us, &asked), ICE_ACCEPTED);
			cr_expect_eq(reply(a, now_us, &asked), ICE_UNMATCHED, "a second copy");
			out = kit_drain(a);
			if (i >= 2)
				gaps[seed][i - 2] = out.deadline_us - last_us;
			last_us = now_us = out.deadline_us;
			ice_agent_on_timeout(a, now_us);
			out = kit_drain(a);
			cr_expect(i == 0 || message(&out.out[0]).has_use_candidate);
		}
		for (size_t i = 0; i < 20; i++) {
			shortest = gaps[seed][i] < shortest ? gaps[seed][i] : shortest;
			longest = gaps[seed][i] > longest ? gaps[seed][i] : longest;
		}
		ice_agent_destroy(a);
	}
	cr_expect_geq(shortest, ICE_CONSENT_MIN_US);
	cr_expect_leq(longest, ICE_CONSENT_MAX_US);
	cr_expect_gt(longest - shortest, 500000, "spread over the range");
	cr_expect_arr_neq(gaps[0], gaps[1], sizeof(gaps[0]));
}

Test(ice_client, a_client_that_moved_may_ask_before_consent_is_due)
{
	struct net_path path = path_to("192.0.2.1:8189", "10.0.0.2:4000");
	struct ice_agent *a = create(1);
	uint64_t now_us = 0;

	cr_assert_eq(ice_agent_add_remote(a, 0, &path), 0);
	out = kit_drain(a);
	cr_assert_eq(ice_agent_recheck(a, 0), 0, "nothing is selected");
	cr_expect_eq(kit_drain(a).sent, 0);
	for (int i = 0; i < 2; i++) { /* the check, the nomination */
		struct kit_datagram asked = out.out[0];

		cr_assert_eq(reply(a, now_us, &asked), ICE_ACCEPTED);
		out = kit_drain(a);
		now_us = out.deadline_us;
		if (i == 0) {
			ice_agent_on_timeout(a, now_us);
			out = kit_drain(a);
		}
	}
	now_us -= KIT_S;
	ice_agent_on_timeout(a, now_us);
	cr_expect_eq(kit_drain(a).sent, 0);
	for (int i = 0; i < 3; i++, now_us += ICE_PACING_US / 10) {
		cr_assert_eq(ice_agent_recheck(a, now_us), 0);
		out = kit_drain(a);
		cr_expect_eq(out.sent, 1);
		cr_expect(message(&out.out[0]).has_use_candidate);
		cr_expect_geq(out.deadline_us, now_us + ICE_CONSENT_MIN_US, "round %d", i);
	}
	ice_agent_destroy(a);
}

Test(ice_client, a_rebound_client_takes_the_server_with_it)
{
	static struct link l;

	link_open(&l, 1, ICE_LITE, 3);
	link_run(&l, KIT_S);
	for (uint16_t port = 5000; port < 5020; port++) {
		struct kit_log log;

		do {
			ice_agent_on_timeout(l.side[0].agent, l.now_us = l.side[0].deadline_us);
			log = kit_drain(l.side[0].agent);
			l.side[0].deadline_us = log.deadline_us;
		} while (!log.sent);
		log.out[0].path.local.port = port;
		link_send(&l, 0, &log.out[0]);
		link_run(&l, l.now_us + KIT_S);
		cr_expect_eq(ice_agent_path(l.side[1].agent)->remote.port, port);
		cr_expect(ice_agent_is_proven(l.side[1].agent));
	}
	cr_expect_eq(l.side[0].expired + l.side[1].expired, 0);
	link_close(&l);
}

Test(ice_client, two_full_agents_agree_on_who_controls)
{
	static const struct {
		uint64_t tie;
		bool client_controls;
	} rows[] = { { 3, true }, { 9, false } };
	static struct link l;

	for (size_t i = 0; i < 2; i++) {
		for (uint64_t seed = 1; seed <= 20; seed++) {
			struct kit_log log;
			unsigned controlling = rows[i].client_controls ? 0 : 1;

			link_open(&l, seed, ICE_CONTROLLING, rows[i].tie);
			l.loss_percent = seed > 10 ? 20 : 0;
			while (!is_connected(&l) && link_step(&l, 600 * (uint64_t)KIT_S))
				;
			cr_expect(is_connected(&l), "row %zu seed %lu", i, (unsigned long)seed);
			l.loss_percent = 0;
			link_run(&l, l.now_us + 20 * (uint64_t)KIT_S);
			cr_expect_eq(l.side[0].expired + l.side[1].expired, 0);
			l.now_us = l.side[controlling].deadline_us;
			ice_agent_on_timeout(l.side[controlling].agent, l.now_us);
			log = kit_drain(l.side[controlling].agent);
			cr_assert_eq(log.sent, 1);
			cr_expect(message(&log.out[0]).has_controlling, "row %zu", i);
			link_close(&l);
		}
	}
}

Test(ice_client, a_restart_moves_both_to_new_credentials_while_media_goes_on)
{
	static const struct ice_credentials client2 = { "cl22", "second/password+of/24+ch" };
	static const struct ice_credentials relay2 = { "relayUfrag02",
						       "second/password+of/32+characters" };
	static struct link l;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		unsigned selected;

		link_open(&l, seed, ICE_LITE, 3);
		link_run(&l, KIT_S);
		cr_assert(is_connected(&l));
		l.loss_percent = 30;
		selected = l.side[0].selected;
		cr_assert_eq(ice_agent_restart(l.side[1].agent, KIT_S, &relay2, &client2), 0);
		link_drain(&l, 1);
		cr_assert_eq(ice_agent_restart(l.side[0].agent, KIT_S, &client2, &relay2), 0);
		cr_expect(is_connected(&l));
		link_drain(&l, 0);
		while (l.side[0].selected == selected && link_step(&l, 600 * (uint64_t)KIT_S))
			cr_assert(is_connected(&l));
		cr_expect_eq(l.side[0].selected, selected + 1);
		cr_expect_eq(l.side[1].selected, 2, "announced once more");
		cr_expect_eq(l.side[0].expired + l.side[1].expired, 0, "seed %lu",
			     (unsigned long)seed);
		link_close(&l);
	}
}
