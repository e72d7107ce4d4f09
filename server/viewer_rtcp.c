/* server/viewer_rtcp.c - what a viewer and the relay report to each other. */
#include <string.h>
#include <time.h>

#include "media/clock.h"
#include "media/rtcp.h"
#include "server/adapt.h"
#include "server/pass.h"
#include "server/plain.h"
#include "server/publisher.h"
#include "server/viewer_layers.h"

enum {
	RTCP_BYTES = 600,
	ROUND_TRIP_RISE_DIVISOR = 16,
	ALL_KINDS = 1 << MEDIA_AUDIO | 1 << MEDIA_VIDEO,
	NACKS_PER_PACKET = 256, /* numbers of one RTCP packet that are looked at */
};

/* --- RTCP to the viewer ------------------------------------------------------------------ */

/* The wall clock that sender reports carry. */
static uint64_t wall_ntp(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return clock_ntp_of_unix_us((uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000);
}

static void send_rtcp(struct viewer *v, unsigned kinds, struct rtcp_writer *w)
{
	session_send_rtcp(v->session, kinds, w->out, w->len_bytes,
			  RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES);
}

/* Tracks of other kinds are on a leg of their own. @return an SSRC of those that are not */
static uint32_t write_reports(struct viewer *v, unsigned kinds, struct rtcp_writer *w)
{
	uint64_t ntp = wall_ntp();
	uint32_t ssrc = 0;

	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		const struct viewer_track *t = &v->tracks[i];
		const struct clock_anchor *anchor = &v->branch->anchors[i];
		struct rtcp_sender_info info;
		uint32_t rtp;

		if (!(kinds >> i & 1))
			continue;
		if (t->templates)
			ssrc = t->ssrc;
		if (!t->is_started || anchor->clock_hz == 0)
			continue;
		rtp = clock_anchor_rtp(anchor, v->session->worker->now_us);
		if (i == MEDIA_VIDEO && v->layers)
			rtp += v->layers->numbering.shift.timestamp;
		reports_tx_sender_info(&t->sent, ntp, rtp, &info);
		rtcp_write_sr(w, t->ssrc, &info, NULL, 0);
		rtcp_write_sdes_cname(w, t->ssrc, v->branch->stream->name,
				      strlen(v->branch->stream->name));
	}
	return ssrc;
}

/* One compound packet a leg: a sender report for each track that has a clock, and the name that binds
 * them together. */
static void send_reports(struct viewer *v, unsigned kinds)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	struct rtcp_dlrr answers[REFERENCE_TIMES];
	struct rtcp_writer w;
	uint32_t ssrc;
	size_t n;

	rtcp_writer_init(&w, bytes, RTCP_BYTES);
	ssrc = write_reports(v, kinds, &w);
	n = reference_times_take(&v->reference_times, v->session->worker->now_us, answers);
	if (n > 0 && w.len_bytes == 0)
		rtcp_write_rr(&w, ssrc, NULL,
			      0); /* the publisher told no clock: no sender report */
	if (n > 0)
		rtcp_write_xr_dlrr(&w, ssrc, answers, n);
	if (w.len_bytes)
		send_rtcp(v, kinds, &w);
}

static void say_bye(struct viewer *v, unsigned kinds)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	uint32_t ssrcs[STREAM_TRACKS];
	struct rtcp_writer w;
	size_t n = 0;

	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		if (kinds >> i & 1 && v->tracks[i].templates)
			ssrcs[n++] = v->tracks[i].ssrc;
	if (n == 0)
		return;
	rtcp_writer_init(&w, bytes, RTCP_BYTES);
	rtcp_write_rr(&w, ssrcs[0], NULL, 0);
	rtcp_write_sdes_cname(&w, ssrcs[0], v->branch->stream->name,
			      strlen(v->branch->stream->name));
	rtcp_write_bye(&w, ssrcs, n);
	send_rtcp(v, kinds, &w);
}

static void each_leg(struct viewer *v, void (*send)(struct viewer *v, unsigned kinds))
{
	unsigned kinds;

	if (!v->session->plain)
		send(v, ALL_KINDS);
	for (unsigned i = 0; v->session->plain && (kinds = plain_leg_kinds(v->session, i)); i++)
		send(v, kinds);
}

void viewer_send_reports(struct viewer *v)
{
	each_leg(v, send_reports);
}

void viewer_say_bye(struct viewer *v)
{
	each_leg(v, say_bye);
}

/* --- RTCP from the viewer ---------------------------------------------------------------- */

/* Repeats are spaced by the round trip as it is without queues: a spacing above it would refuse the
 * requests of viewers who know it better. */
static void follow_round_trip(struct viewer *v, uint32_t rtt_us)
{
	if (v->rtt_us == 0 || rtt_us < v->rtt_us)
		v->rtt_us = rtt_us;
	else
		v->rtt_us += (rtt_us - v->rtt_us) / ROUND_TRIP_RISE_DIVISOR;
}

static void on_report(struct viewer *v, const struct rtcp_report *r)
{
	struct plan_stats *stats = &v->session->plan->stats;
	uint32_t rtt_us;

	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		if (!v->tracks[i].templates || v->tracks[i].ssrc != r->ssrc)
			continue;
		if (r->last_sr && reports_rtt(r, wall_ntp(), &rtt_us)) {
			follow_round_trip(v, rtt_us);
			counter_set(&stats->rtt_us, rtt_us);
		}
		if (i == MEDIA_VIDEO && v->adapt)
			adapt_on_report(v, r);
		if (i == MEDIA_VIDEO || !v->tracks[MEDIA_VIDEO].templates) {
			uint32_t hz = i == MEDIA_VIDEO ? 90000 : 48000;

			counter_set(&stats->lost, r->lost_pkts > 0 ? (uint64_t)r->lost_pkts : 0);
			counter_set(&stats->jitter_us, UINT64_C(1000000) * r->jitter_ticks / hz);
		}
	}
}

static void on_reports(struct viewer *v, const struct rtcp_member *m)
{
	struct rtcp_sender_info info;
	struct rtcp_report report;
	uint32_t ssrc;

	if (m->kind == RTCP_SR ? !rtcp_parse_sr(m, &ssrc, &info) : !rtcp_parse_rr(m, &ssrc))
		return;
	for (size_t i = 0; i < m->count; i++) {
		rtcp_report_read(m, i, &report);
		on_report(v, &report);
	}
}

static void on_extended_report(struct viewer *v, const struct rtcp_member *m)
{
	struct rtcp_xr_cursor cursor;
	struct rtcp_xr_block block;
	uint64_t ntp;

	if (!rtcp_xr_init(&cursor, m))
		return;
	while (rtcp_xr_next(&cursor, &block))
		if (rtcp_xr_rrtr(&block, &ntp))
			reference_times_note(&v->reference_times, cursor.ssrc, ntp,
					     v->session->worker->now_us);
}

/* What the viewer means by a number. @return NULL: not known, or not held any more, or (*is_parked)
 * not yet */
static struct slab *find_sent(struct viewer *v, unsigned kind, uint16_t seq,
			      struct numbering_place *place, bool *is_parked)
{
	const struct viewer_track *t = &v->tracks[kind];
	const struct history *h = v->branch->tracks[kind].history;
	uint64_t index;

	*is_parked = false;
	if (!t->is_started)
		return NULL;
	if (kind == MEDIA_VIDEO && v->layers) {
		if (!numbering_find_number(&v->layers->numbering, seq, place))
			return NULL;
		h = branch_video(v->branch, place->encoding)->history;
		index = place->index;
	} else if (!resend_index(&t->resend, t->cursor, seq, &index)) {
		return NULL;
	}
	*is_parked = history_is_missing(h, index);
	return history_get(h, index);
}

static void serve_nack(struct viewer *v, unsigned kind, uint16_t seq)
{
	struct worker_counters *c = &v->session->worker->counters;
	struct viewer_track *t = &v->tracks[kind];
	struct numbering_place place;
	bool is_parked;
	struct slab *slab = find_sent(v, kind, seq, &place, &is_parked);

	if (!slab) {
		/* What may still come from the publisher goes to every viewer when it does. */
		counter_add(is_parked ? &c->resend_parked : &c->resend_gone, 1);
		return;
	}
	if (resend_allow(&t->resend, &v->share, seq, slab->len, v->session->worker->now_us,
			 v->rtt_us) != RESEND_SEND) {
		counter_add(&c->resend_refused, 1);
		return;
	}
	if (pass_resend(v, kind, slab, kind == MEDIA_VIDEO && v->layers ? &place : NULL))
		counter_add(&v->session->plan->stats.resent, 1);
}

static void on_nack(struct viewer *v, const struct rtcp_feedback *fb)
{
	struct rtcp_nack_cursor cursor;
	uint16_t seq;

	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		if (!v->tracks[i].templates || v->tracks[i].ssrc != fb->media_ssrc)
			continue;
		rtcp_nack_init(&cursor, fb);
		for (unsigned n = 0; n < NACKS_PER_PACKET && rtcp_nack_next(&cursor, &seq); n++) {
			counter_add(&v->session->worker->counters.nacks_received, 1);
			counter_add(&v->session->plan->stats.nacked, 1);
			serve_nack(v, i, seq);
		}
		pass_finish(v->session->worker); /* while the history surely holds the packets */
	}
}

static bool wants_keyframe(const struct viewer *v, const struct rtcp_member *m,
			   const struct rtcp_feedback *fb)
{
	uint32_t ours = v->tracks[MEDIA_VIDEO].ssrc;
	uint32_t ssrc;
	uint8_t command;

	if (m->kind == RTCP_PLI)
		return fb->media_ssrc == ours;
	for (size_t i = 0; rtcp_fir_entry(fb, i, &ssrc, &command); i++)
		if (ssrc == ours)
			return true;
	return false;
}

static void on_feedback(struct viewer *v, const struct rtcp_member *m)
{
	struct rtcp_feedback fb;

	if (!rtcp_parse_feedback(m, &fb))
		return;
	v->asks = true;
	if (m->kind == RTCP_NACK) {
		on_nack(v, &fb);
	} else if (v->tracks[MEDIA_VIDEO].templates && wants_keyframe(v, m, &fb)) {
		counter_add(&v->session->plan->stats.keyframe_requests, 1);
		branch_want_keyframe(v->branch, v->layers ? v->layers->encoding : 0,
				     PUBLISHER_KEYFRAME_VIEWER);
	}
}

void viewer_on_rtcp(struct viewer *v, const uint8_t *bytes, size_t len)
{
	struct rtcp_cursor cursor;
	struct rtcp_member m;
	enum rtcp_next next;

	rtcp_cursor_init(&cursor, bytes, len);
	while ((next = rtcp_cursor_next(&cursor, &m)) == RTCP_NEXT_MEMBER) {
		if (m.kind == RTCP_SR || m.kind == RTCP_RR)
			on_reports(v, &m);
		else if (m.kind == RTCP_XR)
			on_extended_report(v, &m);
		else if (m.kind == RTCP_NACK || m.kind == RTCP_PLI || m.kind == RTCP_FIR)
			on_feedback(v, &m);
		else if ((m.kind == RTCP_TRANSPORT_CC || m.kind == RTCP_REMB) && v->adapt)
			adapt_on_feedback(v, &m);
	}
	if (next == RTCP_NEXT_MALFORMED)
		counter_add(&v->session->worker->counters.rtcp_malformed, 1);
}
