/* server/publisher_rtcp.c - what a publisher and the relay report to each other. */
#include <string.h>

#include "media/rtcp.h"
#include "server/branch.h"
#include "server/publisher_inner.h"

enum {
	NACK_BATCH_PKTS = 64,
	/* What we tell a publisher that takes REMB it may send: no estimate, just no limit. */
	REMB_BPS = 20000000,
	RTCP_SSRC = 1, /* our own, as receiver */
	RTCP_BYTES = 1200,
	ALL_KINDS = 1 << MEDIA_AUDIO | 1 << MEDIA_VIDEO,
};

/* --- RTCP to the publisher --------------------------------------------------------------- */

static void send_rtcp(struct publisher *p, unsigned kinds, struct rtcp_writer *w)
{
	session_send_rtcp(p->session, kinds, w->out, w->len_bytes,
			  RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES);
}

/* Every compound packet begins with a report (RFC 3550 6.1), with whatever there is to say. */
static void begin_rtcp(struct publisher *p, struct rtcp_writer *w,
		       uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES], bool with_blocks)
{
	struct rtcp_report blocks[STREAM_LANES];
	size_t n = 0;

	if (with_blocks)
		for (unsigned i = 0; i < STREAM_LANES; i++)
			if (p->sources[i].is_started &&
			    reports_rx_block(&p->sources[i].reports, publisher_worker(p)->now_us,
					     &blocks[n]))
				n++;
	rtcp_writer_init(w, bytes, RTCP_BYTES);
	rtcp_write_rr(w, RTCP_SSRC, blocks, n);
	rtcp_write_sdes_cname(w, RTCP_SSRC, "sluice", 6);
}

void publisher_send_report(struct publisher *p)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	struct plan_stats *stats = &p->session->plan->stats;
	uint32_t videos[STREAM_ENCODINGS];
	uint32_t jitter_us = 0;
	int64_t lost = 0;
	struct rtcp_writer w;
	size_t n = 0;

	for (unsigned i = 0; i < STREAM_LANES; i++) {
		const struct source *source = &p->sources[i];

		if (!source->is_started)
			continue;
		lost += reports_rx_lost(&source->reports);
		if (source->kind != MEDIA_VIDEO)
			continue;
		videos[n++] = source->ssrc;
		if (reports_rx_jitter_us(&source->reports) > jitter_us)
			jitter_us = reports_rx_jitter_us(&source->reports);
	}
	begin_rtcp(p, &w, bytes, true);
	rtcp_write_xr_rrtr(&w, RTCP_SSRC, clock_ntp_of_us(publisher_worker(p)->now_us));
	if (n > 0 && publisher_terms(p, MEDIA_VIDEO)->feedback & SDP_FB_REMB)
		rtcp_write_remb(&w, RTCP_SSRC, REMB_BPS, videos, n);
	send_rtcp(p, ALL_KINDS, &w);
	counter_set(&stats->lost, lost > 0 ? (uint64_t)lost : 0);
	if (n > 0)
		counter_set(&stats->jitter_us, jitter_us);
}

void publisher_send_nacks(struct publisher *p, struct source *source)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	uint16_t seqs[NACK_BATCH_PKTS];
	size_t n = nack_poll(source->nack, publisher_worker(p)->now_us, seqs, NACK_BATCH_PKTS);
	struct nack_stats stats;
	struct rtcp_writer w;

	nack_stats(source->nack, &stats);
	if (stats.given_up != source->given_up) {
		source->given_up = stats.given_up;
		if (source->kind == MEDIA_VIDEO)
			publisher_want_keyframe(p, source->encoding, PUBLISHER_KEYFRAME_LOSS, 1);
	}
	if (n == 0)
		return;
	begin_rtcp(p, &w, bytes, false);
	if (rtcp_write_nack(&w, RTCP_SSRC, source->ssrc, seqs, n) > 0) {
		send_rtcp(p, 1u << source->kind, &w);
		counter_add(&publisher_worker(p)->counters.publisher_nacks, n);
		counter_add(&p->session->plan->stats.nacked, n);
	}
}

static uint32_t any_ssrc(const struct publisher *p)
{
	for (unsigned i = 0; i < STREAM_LANES; i++)
		if (p->sources[i].is_started)
			return p->sources[i].ssrc;
	return 0;
}

void publisher_send_arrivals(struct publisher *p)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	uint64_t now_us = publisher_worker(p)->now_us;
	struct rtcp_writer w;

	while (p->arrivals && twcc_arrivals_deadline_us(p->arrivals) <= now_us) {
		/* Twenty times a second: RFC 5506 spares the report before it. */
		if (publisher_terms(p, MEDIA_VIDEO)->rtcp_rsize)
			rtcp_writer_init(&w, bytes, RTCP_BYTES);
		else
			begin_rtcp(p, &w, bytes, false);
		if (twcc_arrivals_write(p->arrivals, &w, RTCP_SSRC, any_ssrc(p)) <= 0)
			return;
		send_rtcp(p, ALL_KINDS, &w);
		counter_add(&publisher_worker(p)->counters.publisher_feedbacks, 1);
	}
}

void publisher_send_keyframe_request(struct publisher *p, const struct source *source)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	uint8_t feedback = publisher_terms(p, MEDIA_VIDEO)->feedback;
	struct rtcp_writer w;

	begin_rtcp(p, &w, bytes, false);
	if (feedback & SDP_FB_PLI || !(feedback & SDP_FB_FIR))
		rtcp_write_pli(&w, RTCP_SSRC, source->ssrc);
	else
		rtcp_write_fir(&w, RTCP_SSRC, source->ssrc, p->fir_command++);
	send_rtcp(p, 1u << MEDIA_VIDEO, &w);
	counter_add(&publisher_worker(p)->counters.publisher_plis, 1);
	counter_add(&p->session->plan->stats.keyframe_requests, 1);
}

/* --- RTCP from the publisher ------------------------------------------------------------- */

static void tell_anchors(struct publisher *p, const struct clock_anchor anchors[STREAM_TRACKS])
{
	struct worker *w = publisher_worker(p);
	struct stream *stream = p->feed->stream;
	uint64_t wanted = atomic_load_explicit(&stream->wanted, memory_order_relaxed);
	struct branch *here = worker_branch(w, stream->slot, stream->generation);

	if (here)
		branch_set_anchors(here, anchors);
	wanted &= ~(UINT64_C(1) << w->index);
	for (unsigned i = 0; wanted; i++, wanted >>= 1) {
		struct letter *letter = wanted & 1 ? calloc(1, sizeof(*letter)) : NULL;

		if (!letter)
			continue; /* the next report tells again */
		letter->kind = LETTER_ANCHORS;
		letter->stream = stream_ref(stream);
		memcpy(letter->anchors, anchors, sizeof(letter->anchors));
		worker_post(w->shared->team[i], letter);
	}
}

/* The anchors as viewers see the tracks; of the video's encodings the lowest that has one. */
static void find_anchors(const struct publisher *p, struct clock_anchor anchors[STREAM_TRACKS])
{
	for (unsigned lane = STREAM_LANES; lane-- > 0;) {
		const struct source *source = &p->sources[lane];
		uint32_t offset = source->kind == MEDIA_VIDEO
				      ? align_offset(&p->feed->align, source->encoding)
				      : track_timestamp_offset(p->feed->tracks[lane]);
		struct clock_anchor anchor;

		if (source->is_started && clock_anchor(&p->clock, lane, offset, &anchor))
			anchors[source->kind] = anchor;
	}
}

static void on_sender_report(struct publisher *p, const struct rtcp_member *m)
{
	struct clock_anchor anchors[STREAM_TRACKS] = { 0 };
	struct rtcp_sender_info info;
	uint64_t now_us = publisher_worker(p)->now_us;
	bool is_ours = false;
	uint32_t ssrc;

	if (!rtcp_parse_sr(m, &ssrc, &info))
		return;
	for (unsigned lane = 0; lane < STREAM_LANES; lane++) {
		struct source *source = &p->sources[lane];

		if (!source->is_started || source->ssrc != ssrc)
			continue;
		is_ours = true;
		reports_rx_on_sr(&source->reports, info.ntp, now_us);
		if (source->kind == MEDIA_VIDEO && p->feed)
			align_on_sr(&p->feed->align, source->encoding, clock_us_of_ntp(info.ntp),
				    info.rtp_timestamp);
		clock_on_sr(&p->clock, lane, info.ntp, info.rtp_timestamp,
			    publisher_clock_hz(p, source->kind), now_us);
	}
	if (!is_ours || !p->feed)
		return;
	find_anchors(p, anchors);
	tell_anchors(p, anchors);
}

static void on_extended_report(struct publisher *p, const struct rtcp_member *m)
{
	uint64_t now_us = publisher_worker(p)->now_us;
	uint64_t now_ntp = clock_ntp_of_us(now_us);
	struct rtcp_xr_cursor cursor;
	struct rtcp_xr_block block;
	struct rtcp_dlrr dlrr;
	bool is_measured = false;

	if (!rtcp_xr_init(&cursor, m))
		return;
	while (rtcp_xr_next(&cursor, &block))
		for (size_t i = 0; rtcp_xr_dlrr(&block, i, &dlrr); i++)
			is_measured |= dlrr.ssrc == RTCP_SSRC &&
				       round_trip_on_dlrr(&p->rtt, &dlrr, now_ntp, now_us);
	if (is_measured)
		publisher_follow_round_trip(p);
}

void publisher_on_rtcp(struct publisher *p, const uint8_t *bytes, size_t len)
{
	struct rtcp_cursor cursor;
	struct rtcp_member member;
	enum rtcp_next next;

	rtcp_cursor_init(&cursor, bytes, len);
	while ((next = rtcp_cursor_next(&cursor, &member)) == RTCP_NEXT_MEMBER) {
		if (member.kind == RTCP_SR)
			on_sender_report(p, &member);
		else if (member.kind == RTCP_XR)
			on_extended_report(p, &member);
	}
	if (next == RTCP_NEXT_MALFORMED)
		counter_add(&publisher_worker(p)->counters.rtcp_malformed, 1);
}
