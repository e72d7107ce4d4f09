/* server/publisher_rtp.c - packets of a publisher: which source they come from, what they are. */
#include <errno.h>
#include <string.h>

#include "media/red.h"
#include "media/rtx.h"
#include "server/publisher_inner.h"

enum {
	FORMER_SSRC_US = 2000000, /* stragglers of a replaced SSRC do not switch back to it */
};

static void start_source(struct publisher *p, struct source *source, uint32_t ssrc)
{
	uint32_t clock_hz = publisher_clock_hz(p, source->kind);

	if (source->is_started) {
		source->former_ssrc = source->ssrc;
		source->former_until_us = publisher_worker(p)->now_us + FORMER_SSRC_US;
		if (p->feed)
			track_start(p->feed->tracks[stream_lane(source->kind, source->encoding)],
				    clock_hz);
		if (source->nack)
			nack_reset(source->nack);
		if (source->layers)
			layers_start(source->layers);
	}
	source->is_started = true;
	source->ssrc = ssrc;
	reports_rx_init(&source->reports, ssrc, clock_hz);
	if (source->kind != MEDIA_VIDEO)
		return;
	if (source->former_until_us) {
		publisher_want_keyframe(p, source->encoding, PUBLISHER_KEYFRAME_START, 1);
	} else {
		publisher_run_keyframes(p, source); /* asked for when there was nobody to ask */
		publisher_arm(p);
	}
}

/* What comes from a source, and as what. @return false: a straggler of an SSRC that was replaced */
static bool follow_source(struct publisher *p, struct source *source, const struct type_entry *type,
			  uint32_t ssrc)
{
	bool is_known = source->is_started && source->ssrc == ssrc;

	if (!is_known && source->is_started && source->former_ssrc == ssrc &&
	    publisher_worker(p)->now_us < source->former_until_us)
		return false;
	if (type->place && type->place != p->codecs[source->kind])
		publisher_change_codec(p, source, type->place);
	if (!is_known)
		start_source(p, source, ssrc);
	return true;
}

/* The encoding of that name. @return NULL: there is none */
static struct source *source_by_rid(struct publisher *p, const uint8_t *rid, size_t bytes)
{
	const struct negotiated_media *m = publisher_terms(p, MEDIA_VIDEO);

	for (unsigned e = 0; e < publisher_encodings(p, MEDIA_VIDEO); e++)
		if (strlen(m->encodings[e].rid) == bytes &&
		    memcmp(m->encodings[e].rid, rid, bytes) == 0)
			return publisher_source(p, MEDIA_VIDEO, e);
	return NULL;
}

/* An SSRC belongs to the encoding that last named itself with it, else to the one announced. */
static struct source *source_by_ssrc(struct publisher *p, uint32_t ssrc, bool is_rtx)
{
	const struct negotiated_media *m = publisher_terms(p, MEDIA_VIDEO);
	unsigned count = publisher_encodings(p, MEDIA_VIDEO);

	for (unsigned e = 0; e < count; e++) {
		struct source *source = publisher_source(p, MEDIA_VIDEO, e);

		if (is_rtx ? source->rtx_ssrc == ssrc : source->is_started && source->ssrc == ssrc)
			return source;
	}
	for (unsigned e = 0; e < count; e++)
		if ((is_rtx ? m->encodings[e].rtx_ssrc : m->encodings[e].ssrc) == ssrc)
			return publisher_source(p, MEDIA_VIDEO, e);
	return NULL;
}

/* An SSRC that now names itself another encoding than its group said (Firefox). */
static void take_ssrc_from_others(struct publisher *p, const struct source *owner, uint32_t ssrc)
{
	for (unsigned e = 0; e < publisher_encodings(p, MEDIA_VIDEO); e++) {
		struct source *source = publisher_source(p, MEDIA_VIDEO, e);

		if (source == owner || !source->is_started || source->ssrc != ssrc)
			continue;
		source->is_started = false;
		layers_start(source->layers);
		if (source->nack)
			nack_reset(source->nack);
		if (p->feed)
			track_start(p->feed->tracks[stream_lane(MEDIA_VIDEO, e)],
				    publisher_clock_hz(p, MEDIA_VIDEO));
	}
}

/* Which source a packet comes from, or repeats. @return NULL: one of several encodings, untold */
static struct source *find_source(struct publisher *p, const struct type_entry *type,
				  const struct rtp_packet *rtp, const uint8_t *bytes,
				  const struct ext_values *ext)
{
	enum ext_kind name = type->is_rtx ? EXT_REPAIRED_RID : EXT_RID;
	struct source *source;

	if (publisher_encodings(p, type->kind) < 2)
		return publisher_source(p, type->kind, 0);
	if (!ext_has(ext, name))
		return source_by_ssrc(p, rtp->ssrc, type->is_rtx);
	source = source_by_rid(p, bytes + ext->span[name].offset, ext->span[name].bytes);
	if (source && type->is_rtx)
		source->rtx_ssrc = rtp->ssrc;
	else if (source && source->ssrc != rtp->ssrc)
		take_ssrc_from_others(p, source, rtp->ssrc);
	return source;
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
	    source->kind == MEDIA_VIDEO)
		publisher_want_keyframe(p, source->encoding, PUBLISHER_KEYFRAME_LOSS, 1);
	if (nack_answer_us(source->nack)) {
		round_trip_on_repair(&p->rtt, nack_answer_us(source->nack), w->now_us);
		publisher_follow_round_trip(p);
	} else if (nack_deadline_us(source->nack) != before_us) {
		publisher_arm(p);
	}
}

/* Every packet counts, wanted or not: the number is the transport's. */
static void note_transport_number(struct publisher *p, const struct ext_values *ext)
{
	struct worker *w = publisher_worker(p);
	uint64_t before_us = twcc_arrivals_deadline_us(p->arrivals);

	if (twcc_arrivals_on_packet(p->arrivals, ext->transport_seq, w->now_us) ==
	    TWCC_ARRIVALS_LATE)
		counter_add(&w->counters.arrivals_untold, 1);
	if (twcc_arrivals_deadline_us(p->arrivals) != before_us)
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

	for (unsigned i = 0; i < STREAM_LANES; i++)
		if (p->sources[i].is_started && p->sources[i].ssrc == ssrc)
			return &unwanted[p->sources[i].kind];
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

/* What RED carries must be there for those who get it unpacked. */
static bool is_whole(struct worker *w, const struct type_entry *type, const struct rtp_packet *rtp,
		     const struct slab *slab)
{
	if (type->codec != CODEC_RED || rtp->payload_bytes == 0 ||
	    red_header_bytes(slab->data + rtp->payload_offset, rtp->payload_bytes,
			     type->media_type))
		return true;
	counter_add(&w->counters.red_malformed, 1);
	return false;
}

/* What can be known without the payload. A descriptor, where there is one, says more: layers.c. */
static void guess_frame(struct source *source, const struct rtp_packet *rtp, struct codec_info *out)
{
	int32_t ahead = rtp_timestamp_diff(rtp->timestamp, source->newest_timestamp);

	if (ahead > 0 || !source->has_timestamp) {
		source->newest_timestamp = rtp->timestamp;
		source->has_timestamp = true;
		out->flags = CODEC_FRAME_START;
	}
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
	ext_read(&publisher_terms(p, type->kind)->extensions, slab->data, &rtp, &ext);
	if (p->arrivals && ext_has(&ext, EXT_TRANSPORT_CC))
		note_transport_number(p, &ext);
	source = find_source(p, type, &rtp, slab->data, &ext);
	if (!source) {
		counter_add(&w->counters.rtp_unknown_source, 1);
		goto drop;
	}
	if (type->is_rtx) {
		/* Nothing to repair yet, or a probe of padding alone. */
		if (!source->is_started ||
		    !rtx_unwrap(&rtp, slab->data, source->ssrc, type->media_type))
			goto drop;
		in.is_repaired = true;
	} else {
		if (!follow_source(p, source, type, rtp.ssrc))
			goto drop;
		reports_rx_on_packet(&source->reports, rtp.seq, rtp.timestamp, slab->len,
				     w->now_us);
	}
	in.is_unwanted = type->is_unwanted || !is_whole(w, type, &rtp, slab);
	note_arrival(p, source, &rtp, in.is_repaired);
	if (!p->feed) {
		counter_add(&w->counters.rtp_unfed, 1);
		goto drop;
	}
	if (p->session->plan->is_opaque)
		guess_frame(source, &rtp, &codec);
	else
		codec_inspect((enum media_codec)type->codec, slab->data + rtp.payload_offset,
			      rtp.payload_bytes, &codec);
	publisher_feed_packet(p, slab, &in, source, (enum media_codec)type->codec, &ext);
	return;

drop:
	slab_put(w->pool, slab);
}
