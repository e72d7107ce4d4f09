#include "net/direct.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/fault.h"

static struct seal_engine *engine;

static void setup(void)
{
	cr_assert_eq(seal_engine_create(&engine, SEAL_ENGINE_AUTO), 0);
}

static void teardown(void)
{
	seal_engine_destroy(engine);
}

TestSuite(direct, .init = setup, .fini = teardown, .timeout = 10);

enum { KNOWN_TYPE = 96, OTHER_TYPE = 97, NOW_US = 5000000 };

static struct net_path from(const char *text)
{
	struct net_path path = { .remote = { .port = 0 } };

	cr_assert_eq(net_addr_parse(&path.remote, text), 0);
	path.local.port = 20000;
	return path;
}

static struct transport *receiver(const char *source, bool mux)
{
	struct direct_config config = { .engine = engine, .leg_count = 2 };
	struct transport *t;

	for (unsigned i = 0; i < 2; i++) {
		if (source)
			cr_assert_eq(net_addr_parse_ip(&config.legs[i].source, source), 0);
		config.legs[i].types[KNOWN_TYPE / 8] = 1 << KNOWN_TYPE % 8;
		config.legs[i].rtcp_mux = mux;
	}
	cr_assert_eq(direct_create(&t, &config), 0);
	return t;
}

static enum transport_verdict rtp(struct transport *t, uint64_t now_us, unsigned leg,
				  const char *source, uint8_t type)
{
	uint8_t bytes[20] = { 0x80, type };
	struct net_path path = from(source);

	return direct_on_datagram(t, now_us, (struct direct_port){ (uint8_t)leg, false }, &path,
				  bytes, sizeof(bytes));
}

static enum transport_verdict rtcp(struct transport *t, const char *source, bool own_port)
{
	uint8_t bytes[8] = { 0x80, 200, 0, 1 };
	struct net_path path = from(source);

	return direct_on_datagram(t, NOW_US, (struct direct_port){ 0, own_port }, &path, bytes,
				  sizeof(bytes));
}

static enum transport_event event(struct transport *t)
{
	struct transport_output out;

	transport_poll(t, NOW_US, &out);
	return out.kind == TRANSPORT_NOTIFY ? out.event : (enum transport_event) - 1;
}

Test(direct, the_first_packet_of_the_source_connects)
{
	struct transport *t = receiver("192.0.2.7", false);
	struct transport_status status;

	cr_expect_eq((int)event(t), -1, "nothing came");
	cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.8:5000", KNOWN_TYPE), TRANSPORT_DROP_WRONG_SOURCE);
	cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.7:5000", OTHER_TYPE), TRANSPORT_DROP_WRONG_SOURCE);
	cr_expect_eq((int)event(t), -1);
	cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.7:5000", KNOWN_TYPE), TRANSPORT_RTP);
	cr_expect_eq(event(t), TRANSPORT_CONNECTED);
	cr_expect_eq((int)event(t), -1, "once");
	cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.7:5000", OTHER_TYPE), TRANSPORT_RTP,
		     "from the source any type counts");
	cr_expect_eq(rtp(t, NOW_US, 1, "192.0.2.7:6000", KNOWN_TYPE), TRANSPORT_RTP, "other leg");
	cr_expect_eq((int)event(t), -1, "one connection");
	cr_expect_eq(t->path.remote.port, 5000);
	transport_status(t, &status);
	cr_expect_eq(status.state, TRANSPORT_STATE_CONNECTED);
	lifetime_close(&t->life, TRANSPORT_CLOSED_BY_CLIENT);
	cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.7:5000", KNOWN_TYPE), TRANSPORT_DROP_CLOSED);
	cr_expect_eq(event(t), TRANSPORT_CLOSED);
	cr_expect_eq((int)event(t), -1, "once");
	transport_destroy(t);
}

Test(direct, another_port_is_followed_only_after_silence)
{
	struct transport *t = receiver("192.0.2.7", false);

	cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.7:5000", KNOWN_TYPE), TRANSPORT_RTP);
	cr_expect_eq(event(t), TRANSPORT_CONNECTED);
	cr_expect_eq(rtp(t, NOW_US + DIRECT_MOVE_US - 1, 0, "192.0.2.7:5002", KNOWN_TYPE),
		     TRANSPORT_DROP_WRONG_SOURCE);
	cr_expect_eq(rtp(t, NOW_US + DIRECT_MOVE_US, 0, "192.0.2.9:5002", KNOWN_TYPE),
		     TRANSPORT_DROP_WRONG_SOURCE, "another IP never");
	cr_expect_eq(rtp(t, NOW_US + DIRECT_MOVE_US, 0, "192.0.2.7:5002", KNOWN_TYPE),
		     TRANSPORT_RTP);
	cr_expect_eq(event(t), TRANSPORT_PATH_CHANGED);
	cr_expect_eq(t->path.remote.port, 5002);
	transport_destroy(t);
}

Test(direct, without_a_source_the_first_valid_sender_is_it_for_all_legs)
{
	struct transport *t = receiver(NULL, false);

	cr_expect_eq(rtcp(t, "192.0.2.7:5001", true), TRANSPORT_DROP_WRONG_SOURCE,
		     "a report decides nothing");
	cr_expect_eq(rtp(t, NOW_US, 1, "192.0.2.7:5000", OTHER_TYPE), TRANSPORT_DROP_WRONG_SOURCE);
	cr_expect_eq(rtp(t, NOW_US, 1, "192.0.2.7:5000", KNOWN_TYPE), TRANSPORT_RTP);
	cr_expect_eq(rtp(t, NOW_US + 2 * DIRECT_MOVE_US, 0, "192.0.2.8:5000", KNOWN_TYPE),
		     TRANSPORT_DROP_WRONG_SOURCE, "it stays who it is");
	cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.7:7000", KNOWN_TYPE), TRANSPORT_RTP);
	cr_expect_eq(rtcp(t, "192.0.2.7:5001", true), TRANSPORT_RTCP);
	transport_destroy(t);
}

Test(direct, reports_go_where_reports_come_from)
{
	static const struct {
		bool mux;
		uint16_t before; /* any report came */
	} rows[] = { { false, 0 }, { true, 5000 } };

	for (size_t i = 0; i < 2; i++) {
		struct transport *t = receiver("192.0.2.7", rows[i].mux);

		cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.7:5000", KNOWN_TYPE), TRANSPORT_RTP);
		cr_expect_eq(direct_leg(t, 0)->rtcp.remote.port, rows[i].before, "row %zu", i);
		cr_expect_eq(rtcp(t, "192.0.2.8:5001", true), TRANSPORT_DROP_WRONG_SOURCE);
		cr_expect_eq(rtcp(t, "192.0.2.7:5001", !rows[i].mux), TRANSPORT_RTCP);
		cr_expect_eq(direct_leg(t, 0)->rtcp.remote.port, 5001, "row %zu", i);
		cr_expect_eq(direct_leg(t, 1)->rtcp.remote.port, 0, "the other leg's is not known");
		transport_destroy(t);
	}
}

Test(direct, what_is_no_rtp_is_dropped)
{
	static const struct {
		uint8_t first;
		size_t len;
	} rows[] = { { 0x80, 0 },  { 0x80, 7 },  { 0x80, 11 },
		     { 0x00, 20 }, { 0x40, 20 }, { 0xc0, 20 } };
	struct transport *t = receiver("192.0.2.7", false);
	struct net_path path = from("192.0.2.7:5000");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[20] = { rows[i].first, KNOWN_TYPE };

		cr_expect_eq(direct_on_datagram(t, NOW_US, (struct direct_port){ 0, false }, &path,
						bytes, rows[i].len),
			     TRANSPORT_DROP_UNKNOWN_PROTOCOL, "row %zu", i);
	}
	transport_destroy(t);
}

Test(direct, a_sender_is_connected_at_once_and_hears_reports_of_its_target_alone)
{
	struct direct_config config = { .engine = engine, .sends = true, .leg_count = 1 };
	struct transport *t;

	config.legs[0].rtp_to = from("192.0.2.7:5000").remote;
	config.legs[0].rtcp_to = from("192.0.2.7:5001").remote;
	config.legs[0].source = config.legs[0].rtp_to;
	cr_assert_eq(direct_create(&t, &config), 0);
	cr_expect_eq(event(t), TRANSPORT_CONNECTED);
	cr_expect_eq(rtp(t, NOW_US, 0, "192.0.2.7:5000", KNOWN_TYPE), TRANSPORT_DROP_WRONG_SOURCE);
	cr_expect_eq(rtcp(t, "192.0.2.8:5001", true), TRANSPORT_DROP_WRONG_SOURCE);
	cr_expect_eq(rtcp(t, "192.0.2.7:9999", true), TRANSPORT_RTCP);
	cr_expect_eq(direct_leg(t, 0)->rtcp.remote.port, 5001, "as it was told");
	transport_destroy(t);
}

Test(direct, plain_contexts_leave_packets_as_they_are_beside_sealed_ones)
{
	static const uint8_t header[12] = { 0x80, 96, 0, 5 }, payload[] = { 1, 2, 3, 4, 5 };
	static const uint8_t lead[] = { 9, 8 };
	struct seal_keys keys = { .profile = SEAL_AEAD_AES_128_GCM };
	struct seal_tx *plain, *sealed;
	uint8_t out[3][64];
	struct seal_job jobs[3];

	memset(out, 0xee, sizeof(out));
	cr_assert_eq(seal_tx_create_plain(&plain, engine), 0);
	cr_assert_eq(seal_tx_create(&sealed, engine, &keys), 0);
	for (unsigned i = 0; i < 3; i++)
		jobs[i] = (struct seal_job){ .tx = i == 1 ? sealed : plain,
					     .index = 5,
					     .header = header,
					     .lead = lead,
					     .payload = payload,
					     .header_bytes = sizeof(header),
					     .lead_bytes = i == 0 ? 0 : sizeof(lead),
					     .payload_bytes = sizeof(payload),
					     .out = out[i] };
	jobs[2].tx = NULL;
	cr_assert_eq(seal_tx_create_plain(&jobs[2].tx, engine), 0);
	seal_rtp(engine, jobs, 3);
	cr_expect_arr_eq(out[0], header, sizeof(header));
	cr_expect_arr_eq(out[0] + 12, payload, sizeof(payload));
	cr_expect_eq(out[0][17], 0xee, "not a byte more");
	cr_expect_neq(memcmp(out[1] + 14, payload, sizeof(payload)), 0);
	cr_expect_arr_eq(out[2] + 12, lead, sizeof(lead));
	cr_expect_arr_eq(out[2] + 14, payload, sizeof(payload));
	cr_expect_eq(seal_tag_bytes(seal_tx_profile(plain)), 0);
	cr_expect_eq(seal_rtcp(engine, plain, out[0], 8, sizeof(out[0])), 8);
	cr_expect(!seal_profile_is_known((unsigned)seal_tx_profile(plain)),
		  "no handshake may end with it");
	seal_tx_destroy(jobs[2].tx);
	seal_tx_destroy(plain);
	seal_tx_destroy(sealed);
}

Test(direct, memory_may_run_out_at_any_step)
{
	struct direct_config config = { .engine = engine, .sends = true, .leg_count = 2 };
	struct transport *t = NULL;
	int err = -ENOMEM;

	for (int faults = 0; err == -ENOMEM; faults++) {
		fault_after(faults);
		err = direct_create(&t, &config);
		fault_after(-1);
		cr_expect(err == 0 || !t, "fault %d", faults);
	}
	cr_assert_eq(err, 0);
	transport_destroy(t);
}
