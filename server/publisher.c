/* server/publisher.c - see publisher.h for the contract. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "media/packet.h"
#include "server/branch.h"
#include "server/publisher_inner.h"

enum {
	RR_INTERVAL_US = 1000000,
	KEYFRAME_RETRY_US = 1000000, /* a request that brought no key frame is made again */
	KEYFRAME_TRIES = 5,
	NACK_FIRST_RTT_US = 100000,
	NACK_REORDER_US = 10000,
	NACK_MAX_AGE_US = 1000000,
	NACK_MAX_MISSING = 512,
	NACK_BYTES_A_NUMBER = 12, /* as media/nack.h says */
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
					    .media_type = c->pt };

		p->types[c->pt % PUBLISHER_PAYLOAD_TYPES] = entry;
		entry.is_rtx = true;
		if (c->rtx_pt != NEGOTIATED_NO_PT)
			p->types[c->rtx_pt % PUBLISHER_PAYLOAD_TYPES] = entry;
	}
}

static int open_source(struct publisher *p, unsigned kind)
{
	const struct negotiated_media *m = publisher_terms(p, kind);
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

/* --- deadlines --------------------------------------------------------------------------- */

void publisher_arm(struct publisher *p)
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

void publisher_run_keyframes(struct publisher *p)
{
	struct worker *w = publisher_worker(p);
	struct trigger_run run;

	if (!p->sources[MEDIA_VIDEO].is_started)
		return;
	if (!trigger_begin(&p->keyframe, w->now_us, &run))
		return;
	counter_add(&w->counters.keyframes_folded, run.folds - 1);
	publisher_send_keyframe_request(p);
	trigger_end(&p->keyframe);
	p->keyframe_tries++;
	p->keyframe_retry_us =
	    p->keyframe_tries < KEYFRAME_TRIES ? w->now_us + KEYFRAME_RETRY_US : UINT64_MAX;
}

void publisher_want_keyframe(struct publisher *p, uint32_t reasons, uint32_t folds)
{
	struct worker *w = publisher_worker(p);

	if (!publisher_terms(p, MEDIA_VIDEO)->is_accepted)
		return;
	counter_add(&w->counters.keyframes_asked, folds);
	p->keyframe_tries = 0;
	if (trigger_request(&p->keyframe, w->now_us, reasons, folds))
		return;
	publisher_run_keyframes(p);
	publisher_arm(p);
}

void publisher_on_due(struct publisher *p)
{
	struct worker *w = publisher_worker(p);
	const struct config *config = w->shared->config;

	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		if (p->sources[i].nack && nack_deadline_us(p->sources[i].nack) <= w->now_us)
			publisher_send_nacks(p, &p->sources[i]);
	if (p->keyframe_retry_us <= w->now_us) {
		p->keyframe_retry_us = UINT64_MAX;
		(void)trigger_request(&p->keyframe, w->now_us, PUBLISHER_KEYFRAME_LOSS, 1);
	}
	publisher_run_keyframes(p);
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
	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		const struct negotiated_media *m = publisher_terms(p, i);

		if (m->is_accepted)
			track_start(feed->tracks[i], m->codecs[0].clock_hz);
	}
	atomic_store_explicit(&feed->stream->publisher, self, memory_order_relaxed);
	publisher_want_keyframe(p, PUBLISHER_KEYFRAME_START, 1);
}

static void hand_over(struct publisher *p, struct slab *slab)
{
	struct worker *w = publisher_worker(p);
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

void publisher_feed_packet(struct publisher *p, struct slab *slab, const struct track_input *in,
			   const struct type_entry *type, const struct ext_values *ext)
{
	struct worker *w = publisher_worker(p);
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
