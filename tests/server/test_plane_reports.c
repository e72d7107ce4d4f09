#include <criterion/criterion.h>

#include "media/clock.h"
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
