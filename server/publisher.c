/* server/publisher.c - see publisher.h for the contract. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "media/packet.h"
#include "server/branch.h"
#include "server/publisher_inner.h"
#include "server/start.h"

enum {
	RR_INTERVAL_US = 1000000,
	NACK_FIRST_RTT_US = 100000,
	NACK_REORDER_US = 10000,
	NACK_MAX_AGE_US = 1000000,
	NACK_MAX_MISSING = 512,
	NACK_BYTES_A_NUMBER = 12, /* as media/nack.h says */
	ARRIVALS_BYTES = 16384,   /* as media/twcc_arrivals.h says */
};

/* --- making ------------------------------------------------------------------------------ */

static void learn_types(struct publisher *p, unsigned kind)
{
	const struct negotiated_media *m = publisher_terms(p, kind);

	for (unsigned i = 0; i < m->codec_count; i++) {
		const struct negotiated_codec *c = &m->codecs[i];
		struct type_entry entry = { .is_known = true,
					    .kind = (uint8_t)kind,
					    .codec = (uint8_t)c->codec,
					    .place = (uint8_t)(i + 1),
					    .media_type = c->pt };

		p->types[c->pt % PUBLISHER_PAYLOAD_TYPES] = entry;
		if (c->red_pt != NEGOTIATED_NO_PT) {
			p->types[c->red_pt % PUBLISHER_PAYLOAD_TYPES] = entry;
			p->types[c->red_pt % PUBLISHER_PAYLOAD_TYPES].codec = CODEC_RED;
		}
		entry.is_rtx = true;
		if (c->rtx_pt != NEGOTIATED_NO_PT)
			p->types[c->rtx_pt % PUBLISHER_PAYLOAD_TYPES] = entry;
	}
}

static int open_stretch(struct publisher *p, struct source *source)
{
	struct worker *w = publisher_worker(p);
	struct stretch_config config = {
		.max_age_us = w->shared->config->media.fast_start_ms * UINT64_C(1000),
		.max_pkts = START_KEPT_PKTS,
	};

	return stretch_create(&source->stretch, &config, w->pool);
}

static int open_source(struct publisher *p, struct source *source)
{
	const struct negotiated_media *m = publisher_terms(p, source->kind);
	struct nack_config config = {
		.rtt_us = NACK_FIRST_RTT_US,
		.reorder_us = NACK_REORDER_US,
		.max_age_us = NACK_MAX_AGE_US,
		.max_missing = NACK_MAX_MISSING,
	};
	int err = 0;

	if (!m->is_accepted || source->encoding >= publisher_encodings(p, source->kind))
		return 0;
	if (source->kind == MEDIA_VIDEO && publisher_worker(p)->shared->config->media.fast_start)
		err = open_stretch(p, source);
	if (!err && m->feedback & SDP_FB_NACK)
		err = nack_create(&source->nack, &config);
	return err;
}

static int open_sources(struct publisher *p)
{
	const struct config *config = publisher_worker(p)->shared->config;
	int err = 0;

	for (unsigned lane = 0; lane < STREAM_LANES; lane++) {
		struct source *source = &p->sources[lane];

		source->kind = (uint8_t)stream_lane_kind(lane);
		source->encoding = (uint8_t)(lane - source->kind);
		keyasks_init(&source->keyasks, config->media.keyframe_interval_ms * UINT64_C(1000),
			     config->media.keyframe_share_percent);
	}
	for (unsigned kind = 0; kind < STREAM_TRACKS; kind++)
		if (publisher_terms(p, kind)->is_accepted)
			learn_types(p, kind);
	for (unsigned lane = 0; lane < STREAM_LANES && !err; lane++)
		err = open_source(p, &p->sources[lane]);
	if (!err && publisher_terms(p, MEDIA_VIDEO)->is_accepted)
		err = publisher_open_layers(p);
	return err;
}

static int open_arrivals(struct publisher *p)
{
	uint8_t feedback = 0;

	for (unsigned kind = 0; kind < STREAM_TRACKS; kind++)
		feedback |= publisher_terms(p, kind)->feedback;
	return feedback & SDP_FB_TRANSPORT_CC ? twcc_arrivals_create(&p->arrivals) : 0;
}

int publisher_create(struct publisher **out, struct session *session)
{
	struct publisher *p = calloc(1, sizeof(*p));
	int err;

	*out = NULL;
	if (!p)
		return -ENOMEM;
	p->session = session;
	err = open_sources(p);
	if (!err)
		err = open_arrivals(p);
	if (err) {
		publisher_destroy(p);
		return err;
	}
	clock_init(&p->clock);
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
	publisher_close_layers(p);
	for (unsigned i = 0; i < STREAM_LANES; i++) {
		keyasks_stop(&p->sources[i].keyasks);
		nack_destroy(p->sources[i].nack);
		stretch_destroy(p->sources[i].stretch);
	}
	twcc_arrivals_destroy(p->arrivals);
	free(p);
	return feed;
}

bool publisher_is_fed(const struct publisher *p)
{
	return p->feed != NULL;
}

size_t publisher_bytes(const struct publisher *p)
{
	size_t bytes = sizeof(*p) + publisher_layers_bytes(p) + (p->arrivals ? ARRIVALS_BYTES : 0);

	for (unsigned i = 0; i < STREAM_LANES; i++) {
		if (p->sources[i].nack)
			bytes += NACK_MAX_MISSING * NACK_BYTES_A_NUMBER;
		if (p->sources[i].stretch)
			bytes += stretch_bytes(p->sources[i].stretch);
	}
	return bytes;
}

void publisher_expire(struct publisher *p, uint64_t now_us)
{
	for (unsigned i = 0; i < STREAM_LANES; i++)
		if (p->sources[i].stretch)
			stretch_expire(p->sources[i].stretch, now_us);
}

/* --- deadlines --------------------------------------------------------------------------- */

static uint64_t source_due_us(const struct source *source)
{
	/* Until its SSRC is known there is nobody to ask: its first packet looks again. */
	uint64_t due_us = source->is_started ? keyasks_due_us(&source->keyasks) : UINT64_MAX;

	if (source->nack && nack_deadline_us(source->nack) < due_us)
		due_us = nack_deadline_us(source->nack);
	return due_us;
}

void publisher_arm(struct publisher *p)
{
	uint64_t due_us = p->report_due_us;

	for (unsigned i = 0; i < STREAM_LANES; i++) {
		uint64_t source_us = source_due_us(&p->sources[i]);

		if (source_us < due_us)
			due_us = source_us;
	}
	if (p->arrivals && twcc_arrivals_deadline_us(p->arrivals) < due_us)
		due_us = twcc_arrivals_deadline_us(p->arrivals);
	if (p->feed && p->meter && layer_meter_due_us(p->meter) < due_us)
		due_us = layer_meter_due_us(p->meter);
	session_arm_role(p->session, due_us);
}

static bool has_descriptors(const struct publisher *p)
{
	return publisher_terms(p, MEDIA_VIDEO)->extensions.id_of[EXT_DEPENDENCY_DESCRIPTOR] != 0;
}

void publisher_run_keyframes(struct publisher *p, struct source *source)
{
	struct worker *w = publisher_worker(p);
	struct trigger_run run;

	if (!source->is_started)
		return;
	switch (keyasks_poll(&source->keyasks, w->now_us, &run)) {
	case KEYASKS_ASK:
		counter_add(&w->counters.keyframes_folded, run.folds - 1);
		publisher_send_keyframe_request(p, source);
		if (p->session->plan->is_opaque && !has_descriptors(p))
			keyasks_assume_answered(&source->keyasks);
		break;
	case KEYASKS_HELD:
		counter_add(&w->counters.keyframes_held, 1);
		break;
	case KEYASKS_IDLE:
		break;
	}
}

void publisher_want_keyframe(struct publisher *p, unsigned encoding, uint32_t reasons,
			     uint32_t folds)
{
	struct worker *w = publisher_worker(p);
	struct source *source = publisher_source(p, MEDIA_VIDEO, encoding);

	if (!publisher_terms(p, MEDIA_VIDEO)->is_accepted ||
	    encoding >= publisher_encodings(p, MEDIA_VIDEO))
		return;
	counter_add(&w->counters.keyframes_asked, folds);
	keyasks_want(&source->keyasks, w->now_us, reasons, folds,
		     reasons & (PUBLISHER_KEYFRAME_JOIN | PUBLISHER_KEYFRAME_START |
				PUBLISHER_KEYFRAME_LOSS | PUBLISHER_KEYFRAME_MOVE));
	publisher_run_keyframes(p, source);
	publisher_arm(p);
}

void publisher_on_moved(struct publisher *p)
{
	for (unsigned i = 0; i < STREAM_LANES; i++)
		if (p->sources[i].nack)
			nack_reset(p->sources[i].nack);
	if (p->arrivals)
		twcc_arrivals_on_moved(p->arrivals);
	for (unsigned e = 0; e < publisher_encodings(p, MEDIA_VIDEO); e++)
		publisher_want_keyframe(p, e, PUBLISHER_KEYFRAME_MOVE, 1);
}

static void run_source(struct publisher *p, struct source *source)
{
	struct worker *w = publisher_worker(p);

	if (source->nack && nack_deadline_us(source->nack) <= w->now_us)
		publisher_send_nacks(p, source);
	publisher_run_keyframes(p, source);
}

void publisher_follow_round_trip(struct publisher *p)
{
	uint32_t patience_us = round_trip_patience_us(&p->rtt);

	for (unsigned i = 0; i < STREAM_LANES; i++)
		if (p->sources[i].nack)
			nack_set_rtt(p->sources[i].nack, patience_us, publisher_worker(p)->now_us);
	counter_set(&p->session->plan->stats.rtt_us, p->rtt.smoothed_us);
	publisher_arm(p);
}

void publisher_on_due(struct publisher *p)
{
	struct worker *w = publisher_worker(p);
	const struct config *config = w->shared->config;

	for (unsigned i = 0; i < STREAM_LANES; i++)
		run_source(p, &p->sources[i]);
	publisher_send_arrivals(p);
	if (p->feed && p->meter && layer_meter_due_us(p->meter) <= w->now_us)
		publisher_poll_table(p);
	if (p->report_due_us <= w->now_us) {
		session_measure(p->session);
		publisher_send_report(p);
		p->report_due_us = w->now_us + RR_INTERVAL_US;
		if (w->now_us - p->last_media_us >
		    config->session.media_timeout_ms * UINT64_C(1000))
			lifetime_close(&p->session->transport->life, TRANSPORT_CLOSED_NO_MEDIA);
	}
	publisher_arm(p);
}

/* --- feed -------------------------------------------------------------------------------- */

void publisher_take_feed(struct publisher *p, struct feed *feed)
{
	uint64_t self = session_ref_pack(session_ref_of(p->session));

	assert(!p->feed);
	p->feed = feed;
	for (unsigned i = 0; i < STREAM_LANES; i++) {
		unsigned kind = p->sources[i].kind;

		if (publisher_terms(p, kind)->is_accepted)
			track_start(feed->tracks[i], publisher_clock_hz(p, kind));
	}
	align_start(&feed->align);
	atomic_store_explicit(&feed->stream->publisher, self, memory_order_relaxed);
	/* What the publisher before had to offer is gone. */
	publisher_tell_table(p, atomic_load_explicit(&feed->stream->wanted, memory_order_relaxed));
	for (unsigned e = 0; e < publisher_encodings(p, MEDIA_VIDEO); e++)
		publisher_want_keyframe(p, e, PUBLISHER_KEYFRAME_START, 1);
}

/* To the branches of these workers; takes over one reference. */
static void hand_to(struct publisher *p, struct slab *slab, uint64_t workers)
{
	struct worker *w = publisher_worker(p);
	const struct media_packet *packet = packet_of(slab);
	struct branch *here = NULL;

	if (workers >> w->index & 1)
		here = worker_branch(w, packet->stream, packet->stream_generation);
	workers &= ~(UINT64_C(1) << w->index);
	for (unsigned i = 0; workers; i++, workers >>= 1) {
		struct worker *other = w->shared->team[i];

		if (!(workers & 1))
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

/* A branch that has just begun gets what its first viewer may start with, ahead of all else. A branch
 * that ended and began anew between two packets goes without: its viewer waits for a key frame. */
static void seed(struct publisher *p, uint64_t workers)
{
	for (unsigned i = 0; i < STREAM_LANES; i++) {
		const struct stretch *stretch = p->sources[i].stretch;
		struct slab *slab = stretch ? stretch_next(stretch, 0) : NULL;

		for (; slab; slab = stretch_next(stretch, packet_of(slab)->index)) {
			slab_ref(slab, 1);
			hand_to(p, slab, workers);
		}
	}
}

static void hand_over(struct publisher *p, struct source *source, struct slab *slab)
{
	uint64_t wanted = atomic_load_explicit(&p->feed->stream->wanted, memory_order_relaxed);

	if (wanted & ~p->seeded) {
		seed(p, wanted & ~p->seeded);
		if (p->table.count)
			publisher_tell_table(p, wanted & ~p->seeded);
	}
	p->seeded = wanted;
	if (source->stretch) {
		slab_ref(slab, 1);
		stretch_on_packet(source->stretch, slab, publisher_worker(p)->now_us);
	}
	hand_to(p, slab, wanted);
}

static void note_video(struct publisher *p, struct source *source,
		       const struct media_packet *packet, uint32_t bytes)
{
	struct worker *w = publisher_worker(p);
	uint32_t answered;

	if (!keyasks_on_packet(&source->keyasks, packet->timestamp, bytes,
			       packet_has(packet, PACKET_KEYFRAME), w->now_us, &answered))
		return;
	counter_add(&w->counters.keyframes_received, 1);
	counter_add(&w->counters.keyframes_suppressed, answered);
	publisher_arm(p);
}

void publisher_feed_packet(struct publisher *p, struct slab *slab, const struct track_input *in,
			   struct source *source, enum media_codec codec,
			   const struct ext_values *ext)
{
	struct worker *w = publisher_worker(p);
	enum track_verdict verdict;

	packet_describe(slab, in->rtp, ext, codec, in->codec, w->now_us);
	packet_of(slab)->is_opaque = p->session->plan->is_opaque;
	if (source->layers && !in->is_unwanted)
		publisher_read_layers(p, source, slab, in->codec);
	if (packet_of(slab)->is_opaque && in->codec->flags & CODEC_FRAME_START &&
	    !packet_has(packet_of(slab), PACKET_DESCRIPTOR))
		packet_of(slab)->flags |= PACKET_FRAME_START; /* by its timestamp */
	verdict =
	    track_on_packet(p->feed->tracks[stream_lane(source->kind, source->encoding)], slab, in);
	switch (verdict) {
	case TRACK_FORWARD:
		if (source->layers) {
			packet_of(slab)->timestamp = align_on_packet(
			    &p->feed->align, source->encoding, in->rtp->timestamp, w->now_us);
			publisher_measure(p, source, slab, ext);
			note_video(p, source, packet_of(slab), slab->len);
		}
		hand_over(p, source, slab);
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
