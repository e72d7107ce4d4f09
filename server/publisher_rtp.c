/* server/publisher_rtp.c - packets of a publisher: which source they come from, what they are. */
#include <errno.h>

#include "media/rtx.h"
#include "server/publisher_inner.h"

enum {
	FORMER_SSRC_US = 2000000, /* stragglers of a replaced SSRC do not switch back to it */
};

static void start_source(struct publisher *p, unsigned kind, uint32_t ssrc)
{
	struct source *source = &p->sources[kind];
	uint32_t clock_hz = publisher_terms(p, kind)->codecs[0].clock_hz;

	if (source->is_started) {
		source->former_ssrc = source->ssrc;
		source->former_until_us = publisher_worker(p)->now_us + FORMER_SSRC_US;
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
		publisher_run_keyframes(p); /* asked for before there was anybody to ask */
		publisher_arm(p);
	}
}

/* @return false: a straggler of an SSRC that was replaced */
static bool follow_ssrc(struct publisher *p, unsigned kind, uint32_t ssrc)
{
	struct source *source = &p->sources[kind];

	if (source->is_started && source->ssrc == ssrc)
		return true;
	if (source->is_started && source->former_ssrc == ssrc &&
	    publisher_worker(p)->now_us < source->former_until_us)
		return false;
	start_source(p, kind, ssrc);
	return true;
}

static void note_arrival(struct publisher *p, struct source *source, const struct rtp_packet *rtp,
			 bool is_repaired)
{
	struct worker *w = publisher_worker(p);
	uint64_t before_us;

	if (!source->nack)
		return;
	before_us = nack_deadline_us(source->nack);
	if (nack_on_packet(source->nack, rtp->seq, w->now_us) == -ERANGE && !is_repaired &&
	    source == &p->sources[MEDIA_VIDEO])
		publisher_want_keyframe(p, PUBLISHER_KEYFRAME_LOSS, 1);
	if (nack_deadline_us(source->nack) != before_us)
		publisher_arm(p);
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
	struct worker *w = publisher_worker(p);
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
	struct worker *w = publisher_worker(p);
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
	ext_read(&publisher_terms(p, type->kind)->extensions, slab->data, &rtp, &ext);
	codec_inspect((enum media_codec)type->codec, slab->data + rtp.payload_offset,
		      rtp.payload_bytes, &codec);
	publisher_feed_packet(p, slab, &in, type, &ext);
	return;

drop:
	slab_put(w->pool, slab);
}
