#include "net/transport.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "net/stun.h"
#include "tests/fault.h"
#include "tests/net/kit_transport.h"

enum { S = 1000000 };

static struct kit_net *net;
static struct kit_end *relay, *client;
static struct net_addr stranger;

static void setup(void)
{
	net = malloc(sizeof(*net));
	cr_assert_not_null(net);
	kit_net_init(net);
	relay = &net->end[KIT_RELAY];
	client = &net->end[KIT_CLIENT];
	cr_assert_eq(net_addr_parse(&stranger, "203.0.113.9:666"), 0);
}

static void teardown(void)
{
	kit_net_fini(net);
	free(net);
}

TestSuite(transport, .init = setup, .fini = teardown, .timeout = 60);

static void connect_both(void)
{
	kit_net_open(net);
	cr_assert(kit_net_connect(net, net->now_us + 5 * S));
	kit_net_run(net, net->now_us + S);
}

static enum transport_state state(const struct kit_end *e)
{
	struct transport_status status;

	transport_status(e->t, &status);
	return status.state;
}

/* --- the way up ------------------------------------------------------------------------ */

Test(transport, both_ends_connect_and_media_flows_both_ways)
{
	struct transport_status status;
	struct dtls_live dtls;

	connect_both();
	cr_expect_eq(relay->events[TRANSPORT_VALIDATED], 1);
	cr_expect_eq(relay->events[TRANSPORT_CONNECTED], 1);
	cr_expect_eq(client->events[TRANSPORT_CONNECTED], 1);
	cr_expect(net_addr_is_equal(&relay->t->path.remote, &client->addr));
	cr_expect(net_addr_is_equal(&client->t->path.remote, &relay->addr));
	cr_expect_eq(relay->works, 2, "the ClientHello, and the client's second flight");
	cr_expect_eq(kit_send_media(net, KIT_CLIENT, 65530), TRANSPORT_RTP);
	cr_expect_eq(relay->last_index, 65530);
	cr_expect_eq(relay->last_len, 112);
	cr_expect_eq(relay->last[12], 65530 & 0xff);
	cr_expect_eq(kit_send_media(net, KIT_RELAY, 7), TRANSPORT_RTP);
	cr_expect_eq(kit_send_media(net, KIT_RELAY, 7), TRANSPORT_DROP_SRTP_REPLAYED);
	kit_net_run(net, net->now_us + S);
	dtls_live(&dtls);
	cr_expect_eq(dtls.ssl_objects, 0, "both handshakes are freed");
	cr_expect_eq(dtls.handshakes, 2);
	transport_status(relay->t, &status);
	cr_expect_eq(status.state, TRANSPORT_STATE_CONNECTED);
	cr_expect_eq(status.profile, SEAL_AEAD_AES_128_GCM);
	cr_expect(status.dtls.is_released);
	cr_expect_str_eq(status.dtls.cipher, "ECDHE-ECDSA-AES128-GCM-SHA256");
	cr_expect_gt(status.checks, 0);
	cr_expect_lt(status.bytes, 16 * 1024);
}

Test(transport, rtcp_is_told_from_rtp_by_its_packet_type)
{
	uint8_t report[64] = { 0x80, 201, 0, 1, 1, 2, 3, 4 };
	int len;

	connect_both();
	len = seal_rtcp(net->engine, client->t->tx, report, 8, sizeof(report));
	cr_assert_gt(len, 0);
	cr_expect_eq(kit_deliver(net, KIT_RELAY, NULL, report, (size_t)len), TRANSPORT_RTCP);
	cr_expect_eq(relay->last_len, 8);
	memcpy(report, (uint8_t[]){ 0x80, 201, 0, 1, 1, 2, 3, 4 }, 8);
	len = seal_rtcp(net->engine, client->t->tx, report, 8, sizeof(report));
	report[9] ^= 1;
	cr_expect_eq(kit_deliver(net, KIT_RELAY, NULL, report, (size_t)len),
		     TRANSPORT_DROP_SRTP_AUTH);
}

Test(transport, relay_can_be_the_dtls_client)
{
	net->config[KIT_RELAY].dtls_role = DTLS_CLIENT;
	net->config[KIT_CLIENT].dtls_role = DTLS_SERVER;
	connect_both();
	cr_expect_eq(kit_send_media(net, KIT_CLIENT, 1), TRANSPORT_RTP);
	cr_expect_eq(kit_send_media(net, KIT_RELAY, 1), TRANSPORT_RTP);
}

Test(transport, bad_networks_only_delay_the_connection)
{
	static const struct {
		const char *name;
		int loss, dup, late;
	} rows[] = {
		{ "loss", 15, 0, 0 },
		{ "duplication", 0, 50, 0 },
		{ "reorder", 0, 0, 40 },
		{ "all", 10, 20, 30 },
	};
	uint32_t seed, row;

	for (row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		for (seed = 1; seed <= 25; seed++) {
			kit_net_fini(net);
			kit_net_init(net);
			net->random = seed;
			net->loss_pct = rows[row].loss;
			net->dup_pct = rows[row].dup;
			net->late_pct = rows[row].late;
			kit_net_open(net);
			cr_expect(kit_net_connect(net, KIT_START_US + 10 * S), "%s, seed %u",
				  rows[row].name, seed);
			if (!relay->t->tx || !client->t->tx)
				continue;
			cr_expect_eq(kit_send_media(net, KIT_CLIENT, 1), TRANSPORT_RTP);
			cr_expect_eq(kit_send_media(net, KIT_RELAY, 1), TRANSPORT_RTP);
		}
	}
}

/* --- order of trust -------------------------------------------------------------------- */

/* A ClientHello as the client's transport sends it. */
static size_t make_hello(uint8_t *out)
{
	struct dtls *d;
	const uint8_t *bytes;
	size_t len;

	cr_assert_eq(dtls_create(&d, net->identity[KIT_CLIENT], DTLS_CLIENT,
				 &net->config[KIT_CLIENT].fingerprint),
		     0);
	dtls_step(d, net->now_us);
	bytes = dtls_next_datagram(d, &len);
	cr_assert_not_null(bytes);
	memcpy(out, bytes, len);
	dtls_destroy(d);
	return len;
}

Test(transport, client_hello_from_an_unknown_address_costs_and_sends_nothing)
{
	uint8_t hello[KIT_DATAGRAM_BYTES];
	size_t len = make_hello(hello);
	struct dtls_live before, after;

	kit_net_open(net);
	dtls_live(&before);
	cr_expect_eq(kit_deliver(net, KIT_RELAY, &stranger, hello, len),
		     TRANSPORT_DROP_UNVALIDATED);
	kit_net_poll(net, KIT_RELAY);
	cr_expect_eq(relay->sent, 0);
	kit_net_connect(net, net->now_us + 5 * S);
	relay->sent = 0;
	cr_expect_eq(kit_deliver(net, KIT_RELAY, &stranger, hello, len),
		     TRANSPORT_DROP_UNVALIDATED);
	kit_net_poll(net, KIT_RELAY);
	cr_expect_eq(relay->sent, 0);
	dtls_live(&after);
	cr_expect_eq(before.handshakes, 0);
	cr_expect_eq(after.handshakes, 2, "those of the two ends");
}

Test(transport, media_counts_only_from_a_validated_address)
{
	uint8_t sealed[KIT_DATAGRAM_BYTES];
	size_t len;

	kit_net_open(net);
	memset(sealed, 0x80, sizeof(sealed));
	cr_expect_eq(kit_deliver(net, KIT_RELAY, NULL, sealed, 100), TRANSPORT_DROP_UNVALIDATED);
	while (!relay->events[TRANSPORT_VALIDATED])
		kit_net_run(net, net->now_us + 1000);
	cr_expect_eq(kit_deliver(net, KIT_RELAY, NULL, sealed, 100), TRANSPORT_DROP_SRTP_EARLY);
	cr_assert(kit_net_connect(net, net->now_us + 5 * S));
	len = kit_seal(net, KIT_CLIENT, 1, 100, sealed);
	cr_expect_eq(kit_deliver(net, KIT_RELAY, &stranger, sealed, len),
		     TRANSPORT_DROP_UNVALIDATED);
	cr_expect(net_addr_is_equal(&relay->t->path.remote, &client->addr));
	cr_expect_eq(kit_deliver(net, KIT_RELAY, NULL, sealed, len), TRANSPORT_RTP);
}

Test(transport, another_certificate_ends_it_without_keys)
{
	int victim;

	for (victim = 0; victim < 2; victim++) {
		net->config[victim].fingerprint.digest[5] ^= 0x40;
		kit_net_open(net);
		kit_net_connect(net, net->now_us + 5 * S);
		cr_expect_eq(net->end[victim].reason, TRANSPORT_CLOSED_FINGERPRINT);
		cr_expect_null(net->end[victim].t->tx);
		cr_expect_null(net->end[victim].t->rx);
		cr_expect_eq(net->end[victim].events[TRANSPORT_CONNECTED], 0);
		kit_net_fini(net);
		kit_net_init(net);
	}
}

static void fill_junk(uint8_t *bytes, size_t len, uint32_t *x)
{
	size_t i;

	for (i = 0; i < len; i++) {
		*x = *x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(*x >> 24);
	}
}

Test(transport, junk_only_moves_counters)
{
	uint8_t junk[200];
	uint32_t x = 5, total = 0, v;
	int i;

	connect_both();
	relay->sent = 0;
	memset(relay->verdicts, 0, sizeof(relay->verdicts));
	for (i = 0; i < 100000; i++) {
		size_t len = (size_t)(i % 200);

		fill_junk(junk, len, &x);
		if (i % 3 == 0 && len > 0)
			junk[0] = (uint8_t)(20 + i % 44);
		kit_deliver(net, KIT_RELAY, i % 2 ? &stranger : NULL, junk, len);
		kit_net_poll(net, KIT_RELAY);
	}
	for (v = TRANSPORT_DROP_UNKNOWN_PROTOCOL; v < TRANSPORT_VERDICTS; v++)
		total += relay->verdicts[v];
	cr_expect_eq(total + relay->verdicts[TRANSPORT_CONSUMED], 100000);
	cr_expect_eq(relay->verdicts[TRANSPORT_RTP] + relay->verdicts[TRANSPORT_RTCP], 0);
	cr_expect_eq(relay->sent, 0);
	cr_expect_eq(state(relay), TRANSPORT_STATE_CONNECTED);
	cr_expect_eq(kit_send_media(net, KIT_CLIENT, 1), TRANSPORT_RTP);
}

Test(transport, forged_media_never_ends_a_session)
{
	uint8_t sealed[KIT_DATAGRAM_BYTES];
	size_t len;
	int i;

	connect_both();
	len = kit_seal(net, KIT_CLIENT, 1, 100, sealed);
	sealed[len - 1] ^= 1;
	for (i = 0; i < 20000; i++) {
		sealed[11] = (uint8_t)i;
		sealed[10] = (uint8_t)(i >> 8);
		cr_assert_eq(kit_deliver(net, KIT_RELAY, NULL, sealed, len),
			     TRANSPORT_DROP_SRTP_AUTH);
	}
	cr_expect_eq(kit_send_media(net, KIT_CLIENT, 1), TRANSPORT_RTP);
}

/* --- the way down ---------------------------------------------------------------------- */

Test(transport, close_says_goodbye_once_then_nothing)
{
	struct transport_output o;
	int with_release;

	for (with_release = 0; with_release < 2; with_release++) {
		connect_both();
		if (with_release) {
			kit_send_media(net, KIT_CLIENT, 1);
			kit_net_run(net, net->now_us + S);
		}
		cr_expect(lifetime_close(&relay->t->life, TRANSPORT_CLOSED_BY_ADMIN));
		cr_expect_not(lifetime_close(&relay->t->life, TRANSPORT_CLOSED_SHUTDOWN));
		transport_poll(relay->t, net->now_us, &o);
		cr_expect_eq(o.kind, TRANSPORT_TRANSMIT);
		cr_expect(net_addr_is_equal(&o.path.remote, &client->addr));
		kit_deliver(net, KIT_CLIENT, NULL, o.bytes, o.len);
		transport_poll(relay->t, net->now_us, &o);
		cr_expect_eq(o.kind, TRANSPORT_NOTIFY);
		cr_expect_eq(o.event, TRANSPORT_CLOSED);
		cr_expect_eq(o.reason, TRANSPORT_CLOSED_BY_ADMIN);
		cr_expect(lifetime_is_ended(&relay->t->life));
		transport_poll(relay->t, net->now_us, &o);
		cr_expect_eq(o.kind, TRANSPORT_IDLE);
		cr_expect_eq(o.deadline_us, UINT64_MAX);
		kit_net_poll(net, KIT_CLIENT);
		cr_expect_eq(client->reason, TRANSPORT_CLOSED_BY_PEER, "release %d", with_release);
		cr_expect_eq(kit_send_media(net, KIT_CLIENT, 9), TRANSPORT_DROP_CLOSED);
		kit_net_fini(net);
		kit_net_init(net);
	}
}

Test(transport, each_phase_has_its_deadline)
{
	/* Nothing ever comes. */
	kit_net_open(net);
	net->loss_pct = 100;
	kit_net_run(net, KIT_START_US + 10 * S - 1);
	cr_expect_eq(state(relay), TRANSPORT_STATE_NEW);
	kit_net_run(net, KIT_START_US + 10 * S);
	cr_expect_eq(relay->reason, TRANSPORT_CLOSED_NO_ICE);
	kit_net_fini(net);
	kit_net_init(net);

	/* A check comes, then nothing. */
	kit_net_open(net);
	while (!relay->events[TRANSPORT_VALIDATED])
		kit_net_run(net, net->now_us + 1000);
	net->loss_pct = 100;
	net->flying_count = 0;
	kit_net_run(net, net->now_us + 10 * S);
	cr_expect_eq(relay->reason, TRANSPORT_CLOSED_NO_DTLS);
	kit_net_fini(net);
	kit_net_init(net);

	/* Connected, then nothing. */
	connect_both();
	net->loss_pct = 100;
	kit_net_run(net, net->now_us + 25 * S);
	cr_expect_eq(state(relay), TRANSPORT_STATE_CONNECTED);
	kit_net_run(net, net->now_us + 10 * S);
	cr_expect_eq(relay->reason, TRANSPORT_CLOSED_SILENT);
}

Test(transport, media_alone_keeps_a_relay_session_alive)
{
	uint64_t i;

	connect_both();
	net->loss_pct = 100;
	for (i = 1; i <= 60; i++) {
		kit_net_run(net, net->now_us + S);
		cr_assert_eq(kit_send_media(net, KIT_CLIENT, i), TRANSPORT_RTP);
	}
	cr_expect_eq(state(relay), TRANSPORT_STATE_CONNECTED);
}

Test(transport, can_be_destroyed_at_every_moment)
{
	uint64_t us;
	int held;

	/* Every 2 ms of the way up, with helpers that answer at once or never. */
	for (held = 0; held < 2; held++) {
		for (us = 0; us < 150000; us += 2000) {
			kit_net_open(net);
			net->is_work_held = held;
			kit_net_run(net, net->now_us + us);
			kit_net_fini(net);
			kit_net_init(net);
		}
	}
}

Test(transport, closed_while_a_helper_works_is_a_zombie_until_then)
{
	struct transport_live live;
	struct transport_output o;

	kit_net_open(net);
	net->is_work_held = true;
	kit_net_run(net, net->now_us + 2 * S);
	cr_assert(relay->is_working);
	lifetime_close(&relay->t->life, TRANSPORT_CLOSED_BY_CLIENT);
	transport_poll(relay->t, net->now_us, &o);
	cr_expect_eq(o.kind, TRANSPORT_IDLE, "the end waits for the helper");
	transport_destroy(relay->t);
	transport_live(&live);
	cr_expect_eq(live.transports, 2);
	cr_expect_eq(live.zombies, 1);
	cr_expect_not(kit_work_finish(net, KIT_RELAY));
	transport_live(&live);
	cr_expect_eq(live.transports, 1);
	cr_expect_eq(live.zombies, 0);
}

Test(transport, step_that_is_never_begun_can_be_taken_back)
{
	struct transport_live live;
	int again;

	for (again = 0; again < 2; again++) {
		kit_net_open(net);
		net->is_work_held = true;
		kit_net_run(net, net->now_us + S);
		cr_assert(relay->is_working);
		transport_work_cancel(relay->t);
		relay->is_working = false;
		net->is_work_held = false;
		if (again) {
			/* The hello was not lost with it. */
			kit_net_poll(net, KIT_RELAY);
			cr_expect_eq(relay->works, 2);
			cr_expect(kit_net_connect(net, net->now_us + 5 * S));
		}
		transport_destroy(relay->t);
		relay->t = NULL;
		transport_live(&live);
		cr_expect_eq(live.transports, 1);
		cr_expect_eq(live.zombies, 0);
		kit_net_fini(net);
		kit_net_init(net);
	}
}

Test(transport, datagrams_wait_for_the_helper_up_to_a_limit)
{
	uint8_t hello[KIT_DATAGRAM_BYTES];
	size_t len = make_hello(hello);
	int i;

	kit_net_open(net);
	net->is_work_held = true;
	while (!relay->is_working)
		kit_net_run(net, net->now_us + 1000);
	for (i = 0; i < DTLS_QUEUE_PKTS; i++)
		cr_expect_eq(kit_deliver(net, KIT_RELAY, NULL, hello, len), TRANSPORT_CONSUMED);
	cr_expect_eq(kit_deliver(net, KIT_RELAY, NULL, hello, len), TRANSPORT_DROP_DTLS_QUEUE_FULL);
	cr_expect(kit_work_finish(net, KIT_RELAY));
	net->is_work_held = false;
	cr_expect(kit_net_connect(net, net->now_us + 9 * S));
}

Test(transport, creation_survives_each_failing_allocation)
{
	struct transport *t;
	int err = -ENOMEM, faults;

	for (faults = 0; err == -ENOMEM; faults++) {
		fault_after(faults);
		err = transport_create(&t, net->now_us, &net->config[KIT_RELAY]);
		fault_after(-1);
		cr_expect(err == 0 || t == NULL, "fault %d", faults);
	}
	cr_expect_eq(faults, 3, "two allocations");
	transport_destroy(t);
	net->config[KIT_RELAY].local.pwd[3] = '\0';
	cr_expect_eq(transport_create(&t, net->now_us, &net->config[KIT_RELAY]), -EINVAL);
}

Test(transport, failing_allocations_on_the_way_up_end_in_a_clean_refusal)
{
	int faults;

	for (faults = 0; faults < 12; faults++) {
		kit_net_open(net);
		fault_after(faults);
		kit_net_run(net, net->now_us + 300000);
		fault_after(-1);
		kit_net_run(net, net->now_us + 20 * S);
		kit_net_fini(net);
		kit_net_init(net);
	}
}

/* --- moving ---------------------------------------------------------------------------- */

Test(transport, media_follows_a_client_whose_port_changes)
{
	uint32_t serial;

	connect_both();
	serial = relay->t->path_serial;
	client->addr.port++;
	kit_net_run(net, net->now_us + 8 * S);
	cr_expect_eq(relay->events[TRANSPORT_PATH_CHANGED], 1);
	cr_expect_eq(relay->t->path.remote.port, client->addr.port);
	cr_expect_gt(relay->t->path_serial, serial);
	cr_expect_eq(kit_send_media(net, KIT_CLIENT, 1), TRANSPORT_RTP);
	cr_expect_eq(relay->events[TRANSPORT_CONNECTED], 1);
}

/* --- text ------------------------------------------------------------------------------ */

Test(transport, every_enumerator_has_its_own_text)
{
	uint32_t i, j;

	for (i = 0; i < TRANSPORT_REASONS; i++) {
		for (j = 0; j < i; j++)
			cr_expect_str_neq(transport_reason_text(i), transport_reason_text(j));
	}
	for (i = 0; i < TRANSPORT_VERDICTS; i++) {
		for (j = 0; j < i; j++)
			cr_expect_str_neq(transport_verdict_text(i), transport_verdict_text(j));
	}
	cr_expect_str_eq(transport_reason_text(12345), "unknown");
	cr_expect_str_eq(transport_state_text(TRANSPORT_STATE_HANDSHAKE), "handshake");
}
