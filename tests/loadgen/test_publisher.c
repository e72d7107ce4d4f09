#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "media/clock.h"
#include "media/resend.h"
#include "media/rtcp.h"
#include "pool/bytes.h"
#include "tests/fault.h"
#include "tests/loadgen/kit_wire.h"

TestSuite(publisher, .timeout = 60);

enum {
	LOOP_FRAMES = 10,
	FRAME_US = 100000,
	FRAME_TICKS = 9000,
	PEER_SSRC = 0x44444444,
	REPEATS = 12, /* fewer than what the share of repeats allows */
};

static struct kit_wire w;

static void setup(enum seal_profile profile)
{
	kit_wire_init(&w, profile);
}

static struct publisher_stats stats(void)
{
	struct publisher_stats out;

	publisher_stats(w.publisher, &out);
	return out;
}

static void feed(const struct rtcp_writer *rtcp)
{
	publisher_on_rtcp(w.publisher, w.now_us, rtcp->out, rtcp->len_bytes);
}

static void feed_nack(uint32_t ssrc, uint16_t seq)
{
	uint8_t bytes[64];
	struct rtcp_writer rtcp;

	rtcp_writer_init(&rtcp, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_nack(&rtcp, PEER_SSRC, ssrc, &seq, 1), 1);
	feed(&rtcp);
}

static void feed_pli(uint32_t ssrc)
{
	uint8_t bytes[64];
	struct rtcp_writer rtcp;

	rtcp_writer_init(&rtcp, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_pli(&rtcp, PEER_SSRC, ssrc), 0);
	feed(&rtcp);
}

static void feed_fir(uint8_t command)
{
	uint8_t bytes[64];
	struct rtcp_writer rtcp;

	rtcp_writer_init(&rtcp, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_fir(&rtcp, PEER_SSRC, KIT_VIDEO_SSRC, command), 0);
	feed(&rtcp);
}

Test(publisher, libsrtp_opens_and_decoders_follow_through_several_loops)
{
	static const enum seal_profile profiles[] = { SEAL_AES_CM_128_HMAC_SHA1_80,
						      SEAL_AEAD_AES_128_GCM };

	for (size_t i = 0; i < 4; i++) {
		setup(profiles[i % 2]);
		w.pacing = i < 2 ? PUBLISHER_PACING_FRAME : PUBLISHER_PACING_BROWSER;
		kit_wire_start(&w, 7 + i);
		for (uint64_t frame = 0; frame < 3 * LOOP_FRAMES + 5; frame++) {
			kit_wire_run_frames(&w, frame + 1);
			cr_assert_eq(w.number, (int)(frame % LOOP_FRAMES));
			cr_assert_eq(w.was_keyframe, frame % LOOP_FRAMES == 0);
			cr_assert_eq(
			    w.timestamp[MEDIA_VIDEO],
			    (uint32_t)(w.first_timestamp[MEDIA_VIDEO] + frame * FRAME_TICKS));
		}
		cr_expect_eq(w.timestamp[MEDIA_AUDIO],
			     (uint32_t)(w.first_timestamp[MEDIA_AUDIO] +
					(w.audio_pkts - 1) * SOURCE_AUDIO_PACKET_TICKS));
		cr_expect_geq(w.audio_pkts, (3 * LOOP_FRAMES + 4) * 5);
		cr_expect_eq(stats().unsent, 0);
		kit_wire_fini(&w);
	}
}

Test(publisher, numbers_run_over_their_ends)
{
	bool is_seq_over = false, is_id_over = false;
	uint16_t seq = 0, id = 0;

	setup(SEAL_AEAD_AES_128_GCM);
	w.decodes = false; /* the checks of each packet are what matters here */
	kit_wire_start(&w, 3);
	for (uint64_t frame = 1; frame <= 33000; frame++) {
		kit_wire_run_frames(&w, frame);
		is_seq_over |= frame > 1 && w.next_seq[MEDIA_VIDEO] < seq;
		is_id_over |= frame > 1 && w.picture_id < id;
		seq = w.next_seq[MEDIA_VIDEO];
		id = w.picture_id;
	}
	cr_expect(is_seq_over);
	cr_expect(is_id_over);
	kit_wire_fini(&w);
}

Test(publisher, says_of_each_frame_in_which_temporal_layer_it_is)
{
	static const struct {
		uint32_t layers;
		uint8_t ids[4];
		bool is_sync[4];
	} rows[] = {
		{ 1, { 0, 0, 0, 0 }, { true, true, true, true } },
		{ 2, { 0, 1, 0, 1 }, { true, true, true, true } },
		{ 3, { 0, 2, 1, 2 }, { true, true, true, false } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t at = 0;

		setup(SEAL_AEAD_AES_128_GCM);
		kit_wire_set_layers(&w, rows[i].layers);
		kit_wire_start(&w, 5 + i);
		for (uint64_t frame = 0; frame < 2 * LOOP_FRAMES + 3; frame++) {
			/* In the middle of a pattern: it begins anew with the key frame. */
			if (frame == LOOP_FRAMES + 3) {
				feed_pli(KIT_VIDEO_SSRC);
				at = 0;
			}
			kit_wire_run_frames(&w, frame + 1);
			cr_assert_eq(w.number, (int)at);
			cr_expect_eq(w.temporal_id, rows[i].ids[at % 4], "%u layers, frame %u",
				     rows[i].layers, at);
			cr_expect_eq(w.is_sync, rows[i].is_sync[at % 4]);
			at = (at + 1) % LOOP_FRAMES;
		}
		kit_wire_fini(&w);
	}
}

Test(publisher, a_request_for_a_key_frame_starts_the_loop_over_at_the_next_frame)
{
	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	kit_wire_start(&w, 1);
	kit_wire_run_frames(&w, 4);
	cr_assert_eq(w.number, 3);
	feed_pli(KIT_AUDIO_SSRC);
	feed_pli(PEER_SSRC);
	kit_wire_run_frames(&w, 5);
	cr_expect_eq(w.number, 4, "not our video");
	feed_pli(KIT_VIDEO_SSRC);
	feed_pli(KIT_VIDEO_SSRC);
	cr_expect_eq(w.frames, 5, "not before the next frame's time");
	kit_wire_run_frames(&w, 6);
	cr_expect_eq(w.number, 0);
	cr_expect_eq(w.frame_us, KIT_START_US + 5 * FRAME_US);
	kit_wire_run_frames(&w, 7);
	cr_expect_eq(w.number, 1, "two requests, one key frame");
	feed_fir(9);
	kit_wire_run_frames(&w, 8);
	cr_expect_eq(w.number, 0);
	feed_fir(9);
	kit_wire_run_frames(&w, 9);
	cr_expect_eq(w.number, 1, "the same command, heard before");
	feed_fir(10);
	kit_wire_run_frames(&w, 10);
	cr_expect_eq(w.number, 0);
	cr_expect_eq(stats().plis, 2);
	cr_expect_eq(stats().firs, 2);
	cr_expect_eq(stats().keyframes, 4);
	kit_wire_fini(&w);
}

Test(publisher, a_lost_packet_comes_again_by_rtx)
{
	struct rtp_packet rtp, first;
	const struct kit_sealed *lost;

	setup(SEAL_AEAD_AES_128_GCM);
	kit_wire_start(&w, 2);
	kit_wire_run_frames(&w, 5);
	for (uint16_t back = 1; back <= REPEATS; back++) {
		uint16_t seq = (uint16_t)(w.next_seq[MEDIA_VIDEO] - back);

		lost = &w.kept[seq % KIT_KEPT];
		cr_assert_eq(rtp_parse(lost->plain, lost->plain_len, &first), RTP_OK);
		feed_nack(KIT_VIDEO_SSRC, seq);
		cr_assert_eq(w.repeats, back);
		cr_assert_eq(rtp_parse(w.repeat.plain, w.repeat.plain_len, &rtp), RTP_OK);
		cr_expect_eq(rtp.ssrc, KIT_RTX_SSRC);
		cr_expect_eq(rtp.payload_type, KIT_RTX_PT);
		cr_expect_eq(rtp.marker, first.marker);
		cr_expect_eq(rtp.timestamp, first.timestamp);
		cr_expect(back == 1 || rtp.seq == w.next_rtx_seq);
		w.next_rtx_seq = (uint16_t)(rtp.seq + 1);
		cr_expect_eq(be16_read(w.repeat.plain + rtp.payload_offset), seq);
		cr_assert_eq(rtp.payload_bytes, first.payload_bytes + 2);
		cr_expect_eq(memcmp(w.repeat.plain + rtp.payload_offset + 2,
				    lost->plain + first.payload_offset, first.payload_bytes),
			     0, "the same payload");
	}
	cr_expect_eq(stats().repeated_pkts, REPEATS);
	kit_wire_fini(&w);
}

Test(publisher, without_rtx_a_packet_comes_again_bit_by_bit)
{
	const struct kit_sealed *lost;

	setup(SEAL_AEAD_AES_128_GCM);
	w.negotiated.media[MEDIA_VIDEO].codecs[0].rtx_pt = NEGOTIATED_NO_PT;
	kit_wire_start(&w, 2);
	kit_wire_run_frames(&w, 13);
	for (uint16_t back = 1; back <= REPEATS; back++) {
		uint16_t seq = (uint16_t)(w.next_seq[MEDIA_VIDEO] - back);

		lost = &w.kept[seq % KIT_KEPT];
		feed_nack(KIT_VIDEO_SSRC, seq);
		cr_assert_eq(w.repeats, back);
		cr_assert_eq(w.repeat.len, lost->len);
		cr_expect_eq(memcmp(w.repeat.bytes, lost->bytes, lost->len), 0);
	}
	kit_wire_fini(&w);
}

Test(publisher, what_was_never_sent_is_gone_or_was_just_repeated_is_not_repeated)
{
	uint16_t first;

	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	w.decodes = false;
	kit_wire_start(&w, 5);
	kit_wire_run_frames(&w, 1);
	first = (uint16_t)(w.next_seq[MEDIA_VIDEO] - w.video_pkts);
	feed_nack(KIT_VIDEO_SSRC, w.next_seq[MEDIA_VIDEO]);
	feed_nack(KIT_VIDEO_SSRC, (uint16_t)(first - 1));
	cr_expect_eq(stats().unknown_pkts, 2);
	feed_nack(PEER_SSRC, first);
	cr_expect_eq(stats().nacked_pkts, 2, "another's stream");
	feed_nack(KIT_VIDEO_SSRC, first);
	feed_nack(KIT_VIDEO_SSRC, first);
	cr_expect_eq(stats().repeated_pkts, 1);
	cr_expect_eq(stats().refused_pkts, 1, "asked again at once");
	while (w.video_pkts < PUBLISHER_KEPT_PKTS)
		kit_wire_run_frames(&w, w.frames + 1);
	feed_nack(KIT_VIDEO_SSRC, (uint16_t)(w.next_seq[MEDIA_VIDEO] - PUBLISHER_KEPT_PKTS));
	cr_expect_eq(stats().repeated_pkts, 2, "the oldest one kept");
	feed_nack(KIT_VIDEO_SSRC, (uint16_t)(w.next_seq[MEDIA_VIDEO] - PUBLISHER_KEPT_PKTS - 1));
	cr_expect_eq(stats().unknown_pkts, 3, "one older");
	feed_nack(KIT_AUDIO_SSRC, (uint16_t)(w.next_seq[MEDIA_AUDIO] - 1));
	cr_expect_eq(stats().repeated_pkts, 3, "audio, too");
	kit_wire_fini(&w);
}

Test(publisher, a_flood_of_requests_costs_a_fifth_of_the_media)
{
	uint64_t media_bytes = 0, repeat_bytes = 0;

	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	w.decodes = false;
	kit_wire_start(&w, 5);
	for (uint64_t frame = 1; frame <= 20 * LOOP_FRAMES; frame++) {
		uint64_t before = stats().datagram_bytes;

		kit_wire_run_frames(&w, frame);
		media_bytes += stats().datagram_bytes - before;
		before = stats().datagram_bytes;
		for (uint16_t back = 1; back <= 20; back++)
			feed_nack(KIT_VIDEO_SSRC, (uint16_t)(w.next_seq[MEDIA_VIDEO] - back));
		repeat_bytes += stats().datagram_bytes - before;
	}
	cr_expect_leq(repeat_bytes, RESEND_START_CREDIT_BYTES + media_bytes / 5);
	cr_expect_geq(repeat_bytes, media_bytes / 6, "what it has earned may be spent");
	cr_expect_gt(stats().refused_pkts, 1000);
	kit_wire_fini(&w);
}

Test(publisher, sender_reports_tell_what_was_sent_and_match_the_clocks)
{
	static const uint32_t clock_hz[] = { 48000, 90000 };

	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	kit_wire_start(&w, 6);
	kit_wire_run(&w, KIT_START_US + 3 * PUBLISHER_REPORT_US);
	cr_expect_eq(w.reports, 2 * 4, "at the start and each second");
	for (int kind = 0; kind < 2; kind++) {
		uint64_t sent = kind == MEDIA_AUDIO ? w.audio_pkts : w.video_pkts;
		struct rtcp_cursor cursor;
		struct rtcp_member m;
		struct rtcp_sender_info info;
		struct rtcp_sdes_cursor sdes;
		struct rtcp_sdes_item item;
		uint32_t ssrc;

		rtcp_cursor_init(&cursor, w.report[kind], w.report_bytes[kind]);
		cr_assert_eq(rtcp_cursor_next(&cursor, &m), RTCP_NEXT_MEMBER);
		cr_assert(m.kind == RTCP_SR && rtcp_parse_sr(&m, &ssrc, &info));
		cr_expect_eq(info.packets, sent);
		cr_expect_eq(info.bytes, w.payload_bytes[kind]);
		cr_expect_eq(info.ntp, clock_ntp_of_unix_us(w.now_us + KIT_UNIX_MINUS_US));
		cr_expect_eq(info.rtp_timestamp, w.first_timestamp[kind] + 3 * clock_hz[kind]);
		cr_assert_eq(rtcp_cursor_next(&cursor, &m), RTCP_NEXT_MEMBER);
		cr_assert_eq(m.kind, RTCP_SDES);
		rtcp_sdes_init(&sdes, &m);
		cr_assert(rtcp_sdes_next(&sdes, &item));
		cr_expect_eq(item.ssrc, ssrc);
		cr_expect_eq(item.bytes, strlen("publisher@loop"));
		cr_expect_eq(memcmp(item.text, "publisher@loop", item.bytes), 0);
		cr_expect_eq(rtcp_cursor_next(&cursor, &m), RTCP_NEXT_END);
	}
	kit_wire_fini(&w);
}

Test(publisher, the_round_trip_follows_from_receiver_reports)
{
	uint8_t bytes[64];
	struct rtcp_writer rtcp;
	struct rtcp_report block = { .ssrc = KIT_VIDEO_SSRC };

	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	kit_wire_start(&w, 6);
	kit_wire_run(&w, KIT_START_US);
	/* The report of the start, held for a quarter of a second by the peer. */
	block.last_sr = (uint32_t)(clock_ntp_of_unix_us(KIT_START_US + KIT_UNIX_MINUS_US) >> 16);
	block.delay_q16_s = 65536 / 4;
	rtcp_writer_init(&rtcp, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_rr(&rtcp, PEER_SSRC, &block, 1), 0);
	w.now_us = KIT_START_US + 330000;
	feed(&rtcp);
	cr_expect(stats().rtt_us > 79900 && stats().rtt_us < 80100, "%u", stats().rtt_us);
	kit_wire_fini(&w);
}

Test(publisher, frames_leave_at_once_or_in_bursts_of_a_bounded_size)
{
	int64_t burst = 300000 / 8 * PUBLISHER_BURST_PERCENT / 100 * PUBLISHER_TICK_US / 1000000;

	for (int pacing = PUBLISHER_PACING_FRAME; pacing <= PUBLISHER_PACING_BROWSER; pacing++) {
		uint64_t longest_us = 0;

		setup(SEAL_AES_CM_128_HMAC_SHA1_80);
		w.pacing = (enum publisher_pacing)pacing;
		kit_wire_start(&w, 8);
		while (w.frames < 2 * LOOP_FRAMES) {
			kit_wire_run(&w, w.due_us);
			if (w.is_in_frame || w.last_us != w.now_us)
				continue;
			if (w.now_us - w.frame_us > longest_us)
				longest_us = w.now_us - w.frame_us;
			if (pacing == PUBLISHER_PACING_BROWSER)
				cr_expect_leq((int64_t)w.last_bytes,
					      burst + PUBLISHER_DATAGRAM_BYTES);
		}
		if (pacing == PUBLISHER_PACING_FRAME)
			cr_expect_eq(longest_us, 0);
		else
			cr_expect(longest_us >= 4 * PUBLISHER_TICK_US && longest_us < FRAME_US,
				  "%lu", (unsigned long)longest_us);
		cr_expect_eq(stats().skipped_frames, 0);
		kit_wire_fini(&w);
	}
}

Test(publisher, after_a_standstill_media_goes_on_in_the_present)
{
	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	kit_wire_start(&w, 9);
	kit_wire_run_frames(&w, 3);
	w.due_us = KIT_START_US + 50 * FRAME_US;
	kit_wire_run(&w, w.due_us);
	cr_expect_eq(w.frames, 4, "one, not fifty");
	cr_expect_eq(w.number, 3, "the loop goes on where it was");
	cr_expect_eq(w.timestamp[MEDIA_VIDEO], w.first_timestamp[MEDIA_VIDEO] + 50 * FRAME_TICKS);
	cr_expect_eq(stats().skipped_frames, 47);
	cr_expect_eq(w.timestamp[MEDIA_AUDIO],
		     w.first_timestamp[MEDIA_AUDIO] + 250 * SOURCE_AUDIO_PACKET_TICKS);
	/* A shorter one is made up for. */
	w.due_us += PUBLISHER_MAX_LATE_US - FRAME_US;
	kit_wire_run(&w, w.due_us);
	cr_expect_eq(w.frames, 8);
	cr_expect_eq(stats().skipped_frames, 47);
	kit_wire_fini(&w);
}

Test(publisher, packets_allocate_nothing)
{
	unsigned before;

	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	kit_wire_start(&w, 4);
	before = fault_calls();
	kit_wire_run_frames(&w, 3 * LOOP_FRAMES);
	feed_nack(KIT_VIDEO_SSRC, (uint16_t)(w.next_seq[MEDIA_VIDEO] - 1));
	feed_pli(KIT_VIDEO_SSRC);
	kit_wire_run_frames(&w, 3 * LOOP_FRAMES + 2);
	cr_expect_eq(w.repeats, 1);
	cr_expect_eq(fault_calls(), before);
	kit_wire_fini(&w);
}

Test(publisher, only_what_the_answer_accepted_is_sent)
{
	for (int kind = 0; kind < 2; kind++) {
		setup(SEAL_AES_CM_128_HMAC_SHA1_80);
		w.negotiated.media[kind].is_accepted = false;
		memset(&w.negotiated.media[1 - kind].extensions, 0, sizeof(struct ext_map));
		kit_wire_start(&w, 4);
		kit_wire_run(&w, KIT_START_US + 10 * FRAME_US);
		cr_expect_eq(w.audio_pkts, kind == MEDIA_AUDIO ? 0 : 51);
		cr_expect_eq(w.frames, kind == MEDIA_VIDEO ? 0 : 11);
		kit_wire_fini(&w);
	}
}

Test(publisher, a_publisher_of_nothing_or_without_memory_is_refused)
{
	struct publisher_config config = { .cname = "" };
	struct publisher *p;

	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	config.source = w.source;
	config.negotiated = &w.negotiated;
	fault_after(0);
	cr_expect_eq(publisher_create(&p, &config), -ENOMEM);
	fault_after(-1);
	cr_expect_null(p);
	w.negotiated.media[MEDIA_AUDIO].codecs[0].codec = CODEC_PCMU;
	w.negotiated.media[MEDIA_VIDEO].is_accepted = false;
	cr_expect_eq(publisher_create(&p, &config), -ENOTSUP);
	cr_expect_null(p);
	kit_wire_fini(&w);
}

Test(publisher, a_closed_transport_ends_it)
{
	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	kit_wire_start(&w, 4);
	kit_wire_run_frames(&w, 2);
	cr_assert(lifetime_close(&w.transport.life, TRANSPORT_CLOSED_BY_PEER));
	cr_expect_eq(publisher_on_due(w.publisher, w.due_us), UINT64_MAX);
	feed_nack(KIT_VIDEO_SSRC, (uint16_t)(w.next_seq[MEDIA_VIDEO] - 1));
	cr_expect_eq(w.frames, 2);
	cr_expect_eq(w.repeats, 0);
	kit_wire_fini(&w);
}

Test(publisher, what_the_socket_does_not_take_is_counted_and_can_be_asked_for)
{
	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	kit_wire_start(&w, 4);
	kit_wire_run_frames(&w, 2);
	w.is_deaf = true;
	w.now_us = w.due_us = KIT_START_US + 2 * FRAME_US;
	w.due_us = publisher_on_due(w.publisher, w.now_us);
	cr_expect_gt(stats().unsent, 2);
	w.is_deaf = false;
	feed_nack(KIT_VIDEO_SSRC, w.next_seq[MEDIA_VIDEO]);
	cr_expect_eq(w.repeats, 1);
	kit_wire_fini(&w);
}

Test(publisher, rubbish_in_rtcp_is_counted_and_does_no_harm)
{
	static const uint8_t cut_pli[] = { 0x81, 206, 0, 1, 1, 2, 3, 4 };
	static const uint8_t cut_rr[] = { 0x81, 201, 0, 1, 1, 2, 3, 4 };
	static const uint8_t bad_version[] = { 0x41, 206, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0 };

	setup(SEAL_AES_CM_128_HMAC_SHA1_80);
	kit_wire_start(&w, 4);
	kit_wire_run_frames(&w, 2);
	publisher_on_rtcp(w.publisher, w.now_us, cut_pli, sizeof(cut_pli));
	publisher_on_rtcp(w.publisher, w.now_us, cut_rr, sizeof(cut_rr));
	publisher_on_rtcp(w.publisher, w.now_us, bad_version, sizeof(bad_version));
	cr_expect_eq(stats().bad_rtcp, 3);
	cr_expect_eq(stats().plis, 0);
	kit_wire_run_frames(&w, 3);
	cr_expect_eq(w.number, 2);
	kit_wire_fini(&w);
}
