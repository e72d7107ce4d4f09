/* server/publisher.c - see publisher.h for the contract. */
#include "server/publisher.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "media/clock.h"
#include "media/nack.h"
#include "media/packet.h"
#include "media/reports.h"
#include "media/rtcp.h"
#include "media/rtx.h"
#include "net/trigger.h"
#include "server/branch.h"

enum {
	RR_INTERVAL_US = 1000000,
	KEYFRAME_RETRY_US = 1000000, /* a request that brought no key frame is made again */
	KEYFRAME_TRIES = 5,
	NACK_BATCH_PKTS = 64,
	NACK_FIRST_RTT_US = 100000,
	NACK_REORDER_US = 10000,
	NACK_MAX_AGE_US = 1000000,
	NACK_MAX_MISSING = 512,
	NACK_BYTES_A_NUMBER = 12, /* as media/nack.h says */
	FORMER_SSRC_US = 2000000, /* stragglers of a replaced SSRC do not switch back to it */
	/* What we tell a publisher that takes REMB it may send: no estimate, just no limit. */
	REMB_BPS = 20000000,
	RTCP_SSRC = 1, /* our own, as receiver */
	RTCP_BYTES = 1200,
	PAYLOAD_TYPES = 128,
};

/* What a payload type means here. */
struct type_entry {
	bool is_known, is_rtx, is_unwanted;
	uint8_t kind;       /* enum media_kind */
	uint8_t codec;      /* enum media_codec; of RTX: of what it repeats */
	uint8_t media_type; /* of RTX: payload type of what it repeats */
};

/* The SSRC that carries one kind. */
struct source {
	bool is_started;
	uint32_t ssrc, former_ssrc;
	uint64_t former_until_us;
	uint64_t given_up; /* of the tracker's statistics, as last seen */
	struct reports_rx reports;
	struct nack *nack; /* NULL where the peer does not answer NACK */
};

struct publisher {
	struct session *session;
	struct feed *feed; /* NULL until control handed it over */
	struct source sources[STREAM_TRACKS];
	struct type_entry types[PAYLOAD_TYPES];
	struct clock clock;
	struct trigger keyframe;
	unsigned keyframe_tries; /* requests since the last key frame came */
	uint64_t keyframe_retry_us;
	uint64_t report_due_us;
	uint64_t last_media_us;
	uint8_t fir_command;
};

static struct worker *worker_of(const struct publisher *p)
{
	return p->session->worker;
}

static const struct negotiated_media *terms_of(const struct publisher *p, unsigned kind)
{
	return &p->session->plan->negotiated->media[kind];
}

/* --- making ------------------------------------------------------------------------------ */

static void learn_types(struct publisher *p, unsigned kind)
{
	const struct negotiated_media *m = terms_of(p, kind);

	for (unsigned i = 0; i < m->codec_count; i++) {
		const struct negotiated_codec *c = &m->codecs[i];
		struct type_entry entry = { .is_known = true,
					    .kind = (uint8_t)kind,
					    .codec = (uint8_t)c->codec,
					    .media_type = c->pt };

		p->types[c->pt % PAYLOAD_TYPES] = entry;
		entry.is_rtx = true;
		if (c->rtx_pt != NEGOTIATED_NO_PT)
			p->types[c->rtx_pt % PAYLOAD_TYPES] = entry;
	}
}

static int open_source(struct publisher *p, unsigned kind)
{
	const struct negotiated_media *m = terms_of(p, kind);
	struct nack_config config = {
		.rtt_us = NACK_FIRST_RTT_US,
		.reorder_us = NACK_REORDER_US,
		.max_age_us = NACK_MAX_AGE_US,
		.max_missing = NACK_MAX_MISSING,
	};

	if (!m->is_accepted)
		return 0;
	learn_types(p, kind);
	return m->feedback & SDP_FB_NACK ? nack_create(&p->sources[kind].nack, &config) : 0;
}

int publisher_create(struct publisher **out, struct session *session)
{
	struct publisher *p = calloc(1, sizeof(*p));
	const struct config *config = session->worker->shared->config;
	int err = p ? 0 : -ENOMEM;

	*out = NULL;
	for (unsigned kind = 0; kind < STREAM_TRACKS && !err; kind++) {
		p->session = session;
		err = open_source(p, kind);
	}
	if (err) {
		publisher_destroy(p);
		return err;
	}
	clock_init(&p->clock);
	trigger_init(&p->keyframe, config->media.keyframe_interval_ms * UINT64_C(1000));
	p->keyframe_retry_us = UINT64_MAX;
	p->last_media_us = session->worker->now_us;
	p->report_due_us = session->worker->now_us + RR_INTERVAL_US;
	session_arm_role(session, p->report_due_us);
	*out = p;
	return 0;
}

struct feed *publisher_destroy(struct publisher *p)
{
	struct feed *feed;

	if (!p)
		return NULL;
	feed = p->feed;
	if (feed) {
		uint64_t self = session_ref_pack(session_ref_of(p->session));

		/* Only if no other publisher has taken over meanwhile. */
		atomic_compare_exchange_strong_explicit(&feed->stream->publisher, &self, 0,
							memory_order_relaxed, memory_order_relaxed);
	}
	trigger_stop(&p->keyframe, TRIGGER_DROP);
	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		nack_destroy(p->sources[i].nack);
	free(p);
	return feed;
}

size_t publisher_bytes(const struct publisher *p)
{
	size_t bytes = sizeof(*p);

	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		if (p->sources[i].nack)
			bytes += NACK_MAX_MISSING * NACK_BYTES_A_NUMBER;
	return bytes;
}

/* --- RTCP to the publisher --------------------------------------------------------------- */

static void send_rtcp(struct publisher *p, struct rtcp_writer *w)
{
	struct session *s = p->session;
	int len = seal_rtcp(s->worker->engine, s->transport->tx, w->out, w->len_bytes,
			    RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES);

	if (len > 0)
		worker_send(s->worker, &s->transport->path, w->out, (size_t)len, s->slot);
}

/* Every compound packet begins with a report (RFC 3550 6.1), with whatever there is to say. */
static void begin_rtcp(struct publisher *p, struct rtcp_writer *w,
		       uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES], bool with_blocks)
{
	struct rtcp_report blocks[STREAM_TRACKS];
	size_t n = 0;

	if (with_blocks)
		for (unsigned i = 0; i < STREAM_TRACKS; i++)
			if (p->sources[i].is_started &&
			    reports_rx_block(&p->sources[i].reports, worker_of(p)->now_us,
					     &blocks[n]))
				n++;
	rtcp_writer_init(w, bytes, RTCP_BYTES);
	rtcp_write_rr(w, RTCP_SSRC, blocks, n);
	rtcp_write_sdes_cname(w, RTCP_SSRC, "sluice", 6);
}

static void send_report(struct publisher *p)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	const struct source *video = &p->sources[MEDIA_VIDEO];
	struct plan_stats *stats = &p->session->plan->stats;
	int64_t lost = 0;
	struct rtcp_writer w;

	begin_rtcp(p, &w, bytes, true);
	if (video->is_started && terms_of(p, MEDIA_VIDEO)->feedback & SDP_FB_REMB)
		rtcp_write_remb(&w, RTCP_SSRC, REMB_BPS, &video->ssrc, 1);
	send_rtcp(p, &w);
	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		if (p->sources[i].is_started)
			lost += reports_rx_lost(&p->sources[i].reports);
	counter_set(&stats->lost, lost > 0 ? (uint64_t)lost : 0);
	if (video->is_started)
		counter_set(&stats->jitter_us, reports_rx_jitter_us(&video->reports));
}

static void send_nacks(struct publisher *p, struct source *source)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	uint16_t seqs[NACK_BATCH_PKTS];
	size_t n = nack_poll(source->nack, worker_of(p)->now_us, seqs, NACK_BATCH_PKTS);
	struct nack_stats stats;
	struct rtcp_writer w;

	nack_stats(source->nack, &stats);
	if (stats.given_up != source->given_up) {
		source->given_up = stats.given_up;
		if (source == &p->sources[MEDIA_VIDEO])
			publisher_want_keyframe(p, PUBLISHER_KEYFRAME_LOSS, 1);
	}
	if (n == 0)
		return;
	begin_rtcp(p, &w, bytes, false);
	if (rtcp_write_nack(&w, RTCP_SSRC, source->ssrc, seqs, n) > 0) {
		send_rtcp(p, &w);
		counter_add(&worker_of(p)->counters.publisher_nacks, n);
		counter_add(&p->session->plan->stats.nacked, n);
	}
}

static void send_keyframe_request(struct publisher *p)
{
	uint8_t bytes[RTCP_BYTES + SEAL_RTCP_MAX_EXTRA_BYTES];
	uint32_t ssrc = p->sources[MEDIA_VIDEO].ssrc;
	uint8_t feedback = terms_of(p, MEDIA_VIDEO)->feedback;
	struct rtcp_writer w;

	begin_rtcp(p, &w, bytes, false);
	if (feedback & SDP_FB_PLI || !(feedback & SDP_FB_FIR))
		rtcp_write_pli(&w, RTCP_SSRC, ssrc);
	else
		rtcp_write_fir(&w, RTCP_SSRC, ssrc, p->fir_command++);
	send_rtcp(p, &w);
	counter_add(&worker_of(p)->counters.publisher_plis, 1);
	counter_add(&p->session->plan->stats.keyframe_requests, 1);
}

/* --- deadlines --------------------------------------------------------------------------- */

static void arm(struct publisher *p)
{
	uint64_t due_us = p->report_due_us;
	uint64_t keyframe_us = trigger_due_us(&p->keyframe);

	/* Until the video SSRC is known there is nobody to ask: its first packet looks again. */
	if (p->sources[MEDIA_VIDEO].is_started && keyframe_us < due_us)
		due_us = keyframe_us;
	if (p->keyframe_retry_us < due_us)
		due_us = p->keyframe_retry_us;
	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		const struct nack *nack = p->sources[i].nack;

		if (nack && nack_deadline_us(nack) < due_us)
			due_us = nack_deadline_us(nack);
	}
	session_arm_role(p->session, due_us);
}

static void run_keyframe_trigger(struct publisher *p)
{
	struct worker *w = worker_of(p);
	struct trigger_run run;

	if (!p->sources[MEDIA_VIDEO].is_started)
		return;
	if (!trigger_begin(&p->keyframe, w->now_us, &run))
		return;
	counter_add(&w->counters.keyframes_folded, run.folds - 1);
	send_keyframe_request(p);
	trigger_end(&p->keyframe);
	p->keyframe_tries++;
	p->keyframe_retry_us =
	    p->keyframe_tries < KEYFRAME_TRIES ? w->now_us + KEYFRAME_RETRY_US : UINT64_MAX;
}

void publisher_want_keyframe(struct publisher *p, uint32_t reasons, uint32_t folds)
{
	struct worker *w = worker_of(p);

	if (!terms_of(p, MEDIA_VIDEO)->is_accepted)
		return;
	counter_add(&w->counters.keyframes_asked, folds);
	p->keyframe_tries = 0;
	if (trigger_request(&p->keyframe, w->now_us, reasons, folds))
		return;
	run_keyframe_trigger(p);
	arm(p);
}

void publisher_on_due(struct publisher *p)
{
	struct worker *w = worker_of(p);
	const struct config *config = w->shared->config;

	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		if (p->sources[i].nack && nack_deadline_us(p->sources[i].nack) <= w->now_us)
			send_nacks(p, &p->sources[i]);
	if (p->keyframe_retry_us <= w->now_us) {
		p->keyframe_retry_us = UINT64_MAX;
		(void)trigger_request(&p->keyframe, w->now_us, PUBLISHER_KEYFRAME_LOSS, 1);
	}
	run_keyframe_trigger(p);
	if (p->report_due_us <= w->now_us) {
		session_measure(p->session);
		send_report(p);
		p->report_due_us = w->now_us + RR_INTERVAL_US;
		if (w->now_us - p->last_media_us >
		    config->session.media_timeout_ms * UINT64_C(1000))
			lifetime_close(&p->session->transport->life, TRANSPORT_CLOSED_NO_MEDIA);
	}
	arm(p);
}

/* --- feed -------------------------------------------------------------------------------- */

void publisher_take_feed(struct publisher *p, struct feed *feed)
{
	uint64_t self = session_ref_pack(session_ref_of(p->session));

	assert(!p->feed);
	p->feed = feed;
	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		const struct negotiated_media *m = terms_of(p, i);

		if (m->is_accepted)
			track_start(feed->tracks[i], m->codecs[0].clock_hz);
	}
	atomic_store_explicit(&feed->stream->publisher, self, memory_order_relaxed);
	publisher_want_keyframe(p, PUBLISHER_KEYFRAME_START, 1);
}

static void hand_over(struct publisher *p, struct slab *slab)
{
	struct worker *w = worker_of(p);
	uint64_t wanted = atomic_load_explicit(&p->feed->stream->wanted, memory_order_relaxed);
	const struct media_packet *packet = packet_of(slab);
	struct branch *here = worker_branch(w, packet->stream, packet->stream_generation);

	wanted &= ~(UINT64_C(1) << w->index);
	for (unsigned i = 0; wanted; i++, wanted >>= 1) {
		struct worker *other = w->shared->team[i];

		if (!(wanted & 1))
			continue;
		slab_ref(slab, 1);
		if (ring_put(other->media_in[w->index], slab)) {
			worker_wake_later(w, i);
			counter_add(&w->counters.handed_over, 1);
		} else {
			slab_put(w->pool, slab);
			counter_add(&w->counters.handed_over_drops, 1);
		}
	}
	if (here)
		branch_on_packet(here, slab);
	else
		slab_put(w->pool, slab);
}

static void feed_packet(struct publisher *p, struct slab *slab, const struct track_input *in,
			const struct type_entry *type, const struct ext_values *ext)
{
	struct worker *w = worker_of(p);
	enum track_verdict verdict;

	packet_describe(slab, in->rtp, ext, (enum media_codec)type->codec, in->codec, w->now_us);
	verdict = track_on_packet(p->feed->tracks[type->kind], slab, in);
	switch (verdict) {
	case TRACK_FORWARD:
		if (packet_has(packet_of(slab), PACKET_KEYFRAME)) {
			counter_add(&w->counters.keyframes_received, 1);
			p->keyframe_tries = 0;
			p->keyframe_retry_us = UINT64_MAX;
		}
		hand_over(p, slab);
		return;
	case TRACK_SWALLOWED:
		counter_add(&w->counters.track_swallowed, 1);
		break;
	case TRACK_DUPLICATE:
		counter_add(&w->counters.track_duplicate, 1);
		break;
	default:
		counter_add(&w->counters.track_too_old, 1);
		break;
	}
	slab_put(w->pool, slab);
}

/* --- RTP from the publisher -------------------------------------------------------------- */

static void start_source(struct publisher *p, unsigned kind, uint32_t ssrc)
{
	struct source *source = &p->sources[kind];
	uint32_t clock_hz = terms_of(p, kind)->codecs[0].clock_hz;

	if (source->is_started) {
		source->former_ssrc = source->ssrc;
		source->former_until_us = worker_of(p)->now_us + FORMER_SSRC_US;
		if (p->feed)
			track_start(p->feed->tracks[kind], clock_hz);
		if (source->nack)
			nack_reset(source->nack);
	}
	source->is_started = true;
	source->ssrc = ssrc;
	reports_rx_init(&source->reports, ssrc, clock_hz);
	if (kind != MEDIA_VIDEO)
		return;
	if (source->former_until_us) {
		publisher_want_keyframe(p, PUBLISHER_KEYFRAME_START, 1);
	} else {
		run_keyframe_trigger(p); /* asked for before there was anybody to ask */
		arm(p);
	}
}

/* @return false: a straggler of an SSRC that was replaced */
static bool follow_ssrc(struct publisher *p, unsigned kind, uint32_t ssrc)
{
	struct source *source = &p->sources[kind];

	if (source->is_started && source->ssrc == ssrc)
		return true;
	if (source->is_started && source->former_ssrc == ssrc &&
	    worker_of(p)->now_us < source->former_until_us)
		return false;
	start_source(p, kind, ssrc);
	return true;
}

static void note_arrival(struct publisher *p, struct source *source, const struct rtp_packet *rtp,
			 bool is_repaired)
{
	struct worker *w = worker_of(p);
	uint64_t before_us;

	if (!source->nack)
		return;
	before_us = nack_deadline_us(source->nack);
	if (nack_on_packet(source->nack, rtp->seq, w->now_us) == -ERANGE && !is_repaired &&
	    source == &p->sources[MEDIA_VIDEO])
		publisher_want_keyframe(p, PUBLISHER_KEYFRAME_LOSS, 1);
	if (nack_deadline_us(source->nack) != before_us)
		arm(p);
}

/* FEC, comfort noise and whatever else was not agreed shares an SSRC's numbers: nobody gets it, but
 * its numbers must not look lost. */
static const struct type_entry *type_by_ssrc(const struct publisher *p, uint32_t ssrc)
{
	static const struct type_entry unwanted[STREAM_TRACKS] = {
		[MEDIA_AUDIO] = { .is_unwanted = true, .kind = MEDIA_AUDIO },
		[MEDIA_VIDEO] = { .is_unwanted = true, .kind = MEDIA_VIDEO },
	};

	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		if (p->sources[i].is_started && p->sources[i].ssrc == ssrc)
			return &unwanted[i];
	return NULL;
}

/* Parse and sort. @return what the payload type means, or NULL: dropped and counted */
static const struct type_entry *sort(struct publisher *p, const struct slab *slab,
				     struct rtp_packet *rtp)
{
	struct worker *w = worker_of(p);
	const struct type_entry *type;

	if (rtp_parse(slab->data, slab->len, rtp) != RTP_OK) {
		counter_add(&w->counters.rtp_malformed, 1);
		return NULL;
	}
	type = &p->types[rtp->payload_type];
	if (!type->is_known)
		counter_add(&w->counters.rtp_unknown_type, 1);
	return type->is_known ? type : type_by_ssrc(p, rtp->ssrc);
}

void publisher_on_rtp(struct publisher *p, struct slab *slab)
{
	struct worker *w = worker_of(p);
	const struct type_entry *type;
	struct codec_info codec = { 0 };
	struct ext_values ext;
	struct rtp_packet rtp;
	struct track_input in = { .rtp = &rtp, .codec = &codec };
	struct source *source;

	counter_add(&w->counters.packets_in, 1);
	counter_add(&w->counters.bytes_in, slab->len);
	type = sort(p, slab, &rtp);
	if (!type)
		goto drop;
	p->last_media_us = w->now_us;
	counter_add(&p->session->plan->stats.packets, 1);
	counter_add(&p->session->plan->stats.bytes, slab->len);
	counter_add(&p->session->plan->stats.track_bytes[type->kind], slab->len);
	source = &p->sources[type->kind];
	if (type->is_rtx) {
		/* Nothing to repair yet, or a probe of padding alone. */
		if (!source->is_started ||
		    !rtx_unwrap(&rtp, slab->data, source->ssrc, type->media_type))
			goto drop;
		in.is_repaired = true;
	} else {
		if (!follow_ssrc(p, type->kind, rtp.ssrc))
			goto drop;
		reports_rx_on_packet(&source->reports, rtp.seq, rtp.timestamp, slab->len,
				     w->now_us);
	}
	in.is_unwanted = type->is_unwanted;
	note_arrival(p, source, &rtp, in.is_repaired);
	if (!p->feed) {
		counter_add(&w->counters.rtp_unfed, 1);
		goto drop;
	}
	ext_read(&terms_of(p, type->kind)->extensions, slab->data, &rtp, &ext);
	codec_inspect((enum media_codec)type->codec, slab->data + rtp.payload_offset,
		      rtp.payload_bytes, &codec);
	feed_packet(p, slab, &in, type, &ext);
	return;

drop:
	slab_put(w->pool, slab);
}

/* --- RTCP from the publisher ------------------------------------------------------------- */

static void tell_anchors(struct publisher *p, const struct clock_anchor anchors[STREAM_TRACKS])
{
	struct worker *w = worker_of(p);
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

static void on_sender_report(struct publisher *p, const struct rtcp_member *m)
{
	struct clock_anchor anchors[STREAM_TRACKS] = { 0 };
	struct rtcp_sender_info info;
	uint64_t now_us = worker_of(p)->now_us;
	bool is_ours = false;
	uint32_t ssrc;

	if (!rtcp_parse_sr(m, &ssrc, &info))
		return;
	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		struct source *source = &p->sources[i];

		if (!source->is_started || source->ssrc != ssrc)
			continue;
		is_ours = true;
		reports_rx_on_sr(&source->reports, info.ntp, now_us);
		clock_on_sr(&p->clock, i, info.ntp, info.rtp_timestamp,
			    terms_of(p, i)->codecs[0].clock_hz, now_us);
	}
	if (!is_ours || !p->feed)
		return;
	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		clock_anchor(&p->clock, i, track_timestamp_offset(p->feed->tracks[i]), &anchors[i]);
	tell_anchors(p, anchors);
}

void publisher_on_rtcp(struct publisher *p, const uint8_t *bytes, size_t len)
{
	struct rtcp_cursor cursor;
	struct rtcp_member member;
	enum rtcp_next next;

	rtcp_cursor_init(&cursor, bytes, len);
	while ((next = rtcp_cursor_next(&cursor, &member)) == RTCP_NEXT_MEMBER)
		if (member.kind == RTCP_SR)
			on_sender_report(p, &member);
	if (next == RTCP_NEXT_MALFORMED)
		counter_add(&worker_of(p)->counters.rtcp_malformed, 1);
}
