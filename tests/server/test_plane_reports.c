#include <criterion/criterion.h>

#include "media/clock.h"
#include "pool/bytes.h"
#include "server/plan.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_reports, .timeout = 120);

enum { RELAY_SSRC = 1, RTT_US = 40000 };

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };

static uint64_t rtt_us_of(struct kit_plane *p, const struct kit_peer *peer)
{
	return counter_read(&registry_plan_by_id(p->registry, peer->id)->stats.rtt_us);
}

static void send_answer(struct kit_peer *source, uint64_t ntp, uint64_t held_us)
{
	struct rtcp_dlrr items[] = {
		{ .ssrc = 77, .last_rr = 12345, .delay_q16_s = 0 }, /* somebody else's */
		{ .ssrc = RELAY_SSRC,
		  .last_rr = (uint32_t)(ntp >> 16),
		  .delay_q16_s = (uint32_t)(held_us * 65536 / 1000000) },
	};
	uint8_t bytes[200];
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_rr(&w, source->ssrc[MEDIA_VIDEO], NULL, 0);
	rtcp_write_xr_dlrr(&w, source->ssrc[MEDIA_VIDEO], items, 2);
	kit_peer_send_rtcp(source, bytes, w.len_bytes);
}

Test(plane_reports, a_publishers_answers_to_reference_times_tell_its_round_trip)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);

	kit_peer_send_frame(source, true, 1, 100, NULL);
	cr_expect_eq(rtt_us_of(p, source), 0);
	for (unsigned i = 0; i < 10; i++) {
		unsigned before = source->reference_times;

		while (source->reference_times == before)
			kit_plane_advance(p, 1000);
		kit_plane_advance(p, 300000 + RTT_US);
		send_answer(source, source->last_reference_ntp, 300000);
		kit_plane_settle(p);
	}
	cr_expect_leq(rtt_us_of(p, source), RTT_US + 1100);
	cr_expect_geq(rtt_us_of(p, source), RTT_US - 1100);
	kit_plane_close(p);
}

/* NACKs are answered after `took_us`. @return requests made for 20 lost packets */
static size_t repair(struct kit_plane *p, struct kit_peer *source, uint64_t took_us)
{
	kit_peer_send_frame(source, true, 1, 100, NULL);
	kit_plane_advance(p, 20000);
	source->nack_count = 0;
	for (unsigned i = 0; i < 20; i++) {
		struct kit_rtp lost = { .kind = MEDIA_VIDEO,
					.index = source->next_index[MEDIA_VIDEO]++,
					.timestamp = source->timestamp[MEDIA_VIDEO],
					.number = source->next_number++,
					.bytes = 100 };
		size_t before = source->nack_count;

		kit_peer_send_frame(source, false, 1, 100, NULL);
		while (source->nack_count == before)
			kit_plane_advance(p, 1000);
		kit_plane_advance(p, took_us);
		kit_peer_send(source, &lost, true);
		kit_plane_advance(p, 10000);
	}
	return source->nack_count;
}

Test(plane_reports, a_publisher_that_answers_none_is_measured_by_its_repairs)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	size_t asked = repair(p, source, 80000);

	cr_expect_leq(rtt_us_of(p, source), 82000);
	cr_expect_geq(rtt_us_of(p, source), 78000);
	cr_expect_eq(asked, 20, "patience learns how long a repair takes");
	kit_plane_close(p);
}

Test(plane_reports, a_near_publisher_is_asked_again_soon)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);

	(void)repair(p, source, 10000);
	cr_expect_leq(rtt_us_of(p, source), 12000);
	source->nack_count = 0;
	source->next_index[MEDIA_VIDEO]++; /* never repaired */
	kit_peer_send_frame(source, false, 1, 100, NULL);
	kit_plane_advance(p, 120000);
	cr_expect_geq(source->nack_count, 4, "%zu requests in 110 ms", source->nack_count);
	kit_plane_close(p);
}

Test(plane_reports, a_viewers_reference_times_are_answered_with_the_next_report)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer_config far = viewer;
	struct kit_peer *v;
	uint8_t bytes[100];
	struct rtcp_writer w;
	uint64_t asked_us;

	far.worker = 1;
	v = kit_peer_join(p, "live", &far);
	kit_peer_send_frame(source, true, 1, 100, NULL);
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_rr(&w, 4711, NULL, 0);
	rtcp_write_xr_rrtr(&w, 4711, UINT64_C(0x0102030405060708));
	kit_peer_send_rtcp(v, bytes, w.len_bytes);
	asked_us = p->now_us;
	for (unsigned i = 0; i < 6000 && v->answers == 0; i++)
		kit_plane_advance(p, 1000);
	cr_assert_eq(v->answers, 1);
	cr_expect_eq(v->last_answer.ssrc, 4711);
	cr_expect_eq(v->last_answer.last_rr, 0x03040506);
	cr_expect_float_eq(v->last_answer.delay_q16_s / 65536.0,
			   (double)(p->now_us - asked_us) / 1e6, 0.002);
	kit_plane_advance(p, 10000000);
	cr_expect_eq(v->answers, 1, "once");
	kit_plane_close(p);
}

/* --- transport-wide feedback -------------------------------------------------------------- */

static const struct kit_peer_config numbering = {
	.publishes = true, .audio = true, .video = true, .rtx = true, .transport_cc = true
};

/* A packet that carries a transport-wide number; of a payload type that nobody agreed to, if so. */
static void send_numbered(struct kit_peer *source, enum media_kind kind, uint16_t number,
			  bool is_agreed)
{
	uint8_t bytes[100] = { 0 };
	uint8_t value[2];
	struct ext_element element = { value, 2, OFFER_ID_TRANSPORT_CC };
	uint64_t index = source->next_index[kind]++;
	uint8_t pt = source->terms.media[kind].codecs[0].pt;
	struct rtp_header header = {
		.timestamp = source->timestamp[kind],
		.ssrc = source->ssrc[kind],
		.payload_type = is_agreed ? pt : 77,
		.has_extension = true,
	};

	rtp_header_write(bytes, &header);
	be16_write(value, number);
	cr_assert_eq(ext_block_write(bytes + RTP_HEADER_BYTES, 8, &element, 1), 0);
	cr_assert(kit_peer_send_plain(source, bytes, sizeof(bytes), index));
}

Test(plane_reports, every_numbered_packet_is_told_of_within_a_tenth_of_a_second)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &numbering);
	uint16_t number = 65400;
	uint64_t came_us[200];
	size_t received = 0;

	cr_expect_neq(source->terms.media[MEDIA_AUDIO].extensions.id_of[EXT_TRANSPORT_CC], 0);
	cr_expect_neq(source->terms.media[MEDIA_VIDEO].extensions.id_of[EXT_TRANSPORT_CC], 0);
	kit_plane_advance(p, 500000);
	cr_expect_eq(source->feedbacks, 0, "nothing came, nothing is told");
	for (unsigned i = 0; i < 200; i++, number++) {
		came_us[i] = 0;
		if (i % 10 != 3) {
			send_numbered(source, i % 4 ? MEDIA_VIDEO : MEDIA_AUDIO, number,
				      i == 0 || i % 7);
			kit_plane_settle(p);
			came_us[i] = p->now_us;
			received++;
		}
		kit_plane_advance(p, 5000);
	}
	kit_plane_advance(p, 100000);
	cr_expect_geq(source->feedbacks, 10);
	cr_expect_leq(source->feedbacks, 25);
	cr_assert_geq(source->told_count, 199);
	for (size_t i = 0; i < source->told_count; i++) {
		const struct rtcp_twcc_status *s = &source->told[i];
		uint16_t at = (uint16_t)(s->seq - 65400);

		cr_assert_lt(at, 200);
		cr_expect_eq(s->is_received, came_us[at] != 0, "packet %u", at);
		received -= s->is_received;
		if (s->is_received && i > 0 && source->told[i - 1].is_received)
			cr_expect_leq(
			    llabs((long long)(s->arrival_us - source->told[i - 1].arrival_us) -
				  (long long)(came_us[at] - came_us[at - 1])),
			    250, "packet %u", at);
	}
	cr_expect_eq(received, 0, "each once");
	received = source->feedbacks;
	kit_plane_advance(p, 2000000);
	cr_expect_eq(source->feedbacks, received, "a quiet publisher is left alone");
	kit_plane_close(p);
}

Test(plane_reports, remb_is_for_those_who_do_not_number_their_packets)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &numbering);

	kit_peer_send_frame(source, true, 1, 100, NULL);
	kit_plane_advance(p, 3000000);
	cr_expect_eq(source->rembs, 0);
	cr_expect_eq(KIT_SUM(p, publisher_feedbacks), 0, "its packets carry no number");
	kit_plane_close(p);
}
