#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server/kit_layers.h"

enum { ASK_AGAIN_US = 40000, ASKS = 64 };

struct kit_decoder *kit_decoder_create(struct kit_peer *viewer)
{
	struct kit_decoder *d = calloc(1, sizeof(*d));

	assert(d);
	d->viewer = viewer;
	d->seen = calloc(KIT_SEEN, sizeof(*d->seen));
	assert(d->seen);
	return d;
}

void kit_decoder_destroy(struct kit_decoder *d)
{
	free(d->seen);
	free(d);
}

__attribute__((format(printf, 2, 3))) static void fail(struct kit_decoder *d, const char *format,
						       ...)
{
	int n = snprintf(d->error, sizeof(d->error), "picture %u: ", d->pictures);
	va_list args;

	va_start(args, format);
	vsnprintf(d->error + n, sizeof(d->error) - (size_t)n, format, args);
	va_end(args);
}

static struct kit_seen *seen_of(struct kit_decoder *d, uint64_t index)
{
	return &d->seen[index % KIT_SEEN];
}

/* --- decoding ----------------------------------------------------------------------------- */

static bool is_decoded(const struct kit_decoder *d, unsigned spatial_id, uint64_t reference)
{
	return d->decoded[spatial_id][reference % KIT_DECODED] == reference;
}

/* Sequence, time and ids of a new picture go on from the one before. */
static bool goes_on(struct kit_decoder *d, const struct kit_packet *k, const struct kit_fact *f)
{
	struct codec_info info = { 0 };
	enum media_codec codec = k->payload_type == OFFER_PT_VP8   ? CODEC_VP8
				 : k->payload_type == OFFER_PT_VP9 ? CODEC_VP9
								   : CODEC_H264;
	uint16_t step;

	if (codec != CODEC_H264)
		(void)codec_inspect(codec, k->head, sizeof(k->head), &info);
	step = (uint16_t)(info.picture_id - d->picture_id) & 0x7fff;
	if (d->has_picture && rtp_timestamp_diff(k->timestamp, d->timestamp) <= 0)
		fail(d, "timestamp goes %d", rtp_timestamp_diff(k->timestamp, d->timestamp));
	else if (d->has_picture && codec == CODEC_VP8 &&
		 (step < 1 || step > (d->may_skip_pictures ? 64 : 1)))
		fail(d, "picture id goes %u", step);
	else if (d->has_picture && codec == CODEC_VP9 && (step < 1 || step > 64))
		fail(d, "picture id goes %u", step);
	else if (d->has_picture && codec != CODEC_H264 &&
		 info.tl0picidx != (uint8_t)(d->tl0 + (f->temporal_id == 0)))
		fail(d, "TL0PICIDX goes from %u to %u in layer %u", d->tl0, info.tl0picidx,
		     f->temporal_id);
	d->timestamp = k->timestamp;
	d->picture_id = info.picture_id;
	d->tl0 = info.tl0picidx;
	return !d->error[0];
}

/* The first packet of a layer frame. */
static bool begin_frame(struct kit_decoder *d, const struct kit_packet *k, const struct kit_fact *f)
{
	bool is_upper = d->is_open && d->last->picture == f->picture &&
			d->last->encoding == f->encoding && d->last->spatial_id < f->spatial_id;

	if (f->part != 0)
		fail(d, "begins in the middle of %lu/%u", (unsigned long)f->picture, f->encoding);
	else if (d->is_open && !is_upper)
		fail(d, "the picture before has no marker");
	else if (!is_upper && f->spatial_id != 0)
		fail(d, "begins with spatial layer %u", f->spatial_id);
	else if (f->reference && !is_decoded(d, f->spatial_id, f->reference))
		fail(d, "%lu/%u layer %u.%u refers to %lu back", (unsigned long)f->picture,
		     f->encoding, f->spatial_id, f->temporal_id,
		     (unsigned long)(f->order - f->reference));
	if (d->error[0] || is_upper)
		return !d->error[0];
	if (f->is_key) {
		memset(d->decoded, 0, sizeof(d->decoded));
		d->keyframes++;
	}
	if (d->last && d->last->encoding != f->encoding) {
		d->switches++;
		if (!f->is_key)
			fail(d, "another encoding without a key frame");
	}
	return goes_on(d, k, f);
}

static void end_picture(struct kit_decoder *d, const struct kit_packet *k, const struct kit_fact *f)
{
	uint64_t now_us = d->viewer->plane->now_us;

	(void)k;
	d->is_open = false;
	d->has_picture = true;
	d->pictures++;
	d->of_encoding[f->encoding]++;
	d->of_spatial[f->spatial_id]++;
	d->of_temporal[f->temporal_id]++;
	if (d->newest_us && now_us - d->newest_us > d->longest_us)
		d->longest_us = now_us - d->newest_us;
	d->newest_us = now_us;
}

static void decode(struct kit_decoder *d, const struct kit_packet *k)
{
	const struct kit_fact *f;
	bool is_inside = d->is_open && d->last->part + 1 < d->last->parts;

	if (k->payload_bytes == 0) {
		d->paddings++;
		return;
	}
	f = kit_layers_fact(k->number);
	if (!f) {
		fail(d, "unknown packet %x", k->number);
		return;
	}
	if (!is_inside && !begin_frame(d, k, f))
		return;
	if (is_inside && (f->picture != d->last->picture || f->encoding != d->last->encoding ||
			  f->spatial_id != d->last->spatial_id || f->part != d->last->part + 1))
		fail(d, "part %u of %u of %lu/%u is missing", d->last->part + 1u, d->last->parts,
		     (unsigned long)d->last->picture, d->last->encoding);
	else if (k->timestamp != d->timestamp)
		fail(d, "two timestamps in a picture");
	else if (k->marker && f->part + 1 != f->parts)
		fail(d, "a marker in the middle");
	if (f->part + 1 == f->parts)
		d->decoded[f->spatial_id][f->order % KIT_DECODED] = f->order;
	d->last = f;
	d->is_open = true;
	if (k->marker)
		end_picture(d, k, f);
}

/* --- receiving ---------------------------------------------------------------------------- */

static void take(struct kit_decoder *d, const struct kit_packet *k)
{
	uint64_t index = k->is_rtx ? rtp_seq_unwrap(d->newest, k->osn) : k->index;
	struct kit_seen *s;

	if (k->is_rtx && k->is_padding)
		return; /* a probe */
	if (!d->has_first) {
		d->has_first = true;
		d->next = d->newest = index;
	}
	if (index < d->next)
		return;
	s = seen_of(d, index);
	if (s->is_here)
		return;
	*s = (struct kit_seen){ .packet = *k, .asked_us = s->asked_us, .is_here = true };
	s->packet.is_rtx = false;
	if (k->is_rtx)
		s->packet.payload_type = (uint8_t)(k->payload_type - 1);
	if (index > d->newest)
		d->newest = index;
	if (d->newest - d->next >= KIT_SEEN)
		fail(d, "packet %u never comes", (uint16_t)d->next);
}

static void ask_again(struct kit_decoder *d)
{
	uint64_t now_us = d->viewer->plane->now_us;
	uint16_t seqs[ASKS];
	size_t n = 0;

	for (uint64_t i = d->next; i <= d->newest && n < ASKS; i++) {
		struct kit_seen *s = seen_of(d, i);

		if (s->is_here || now_us < s->asked_us + ASK_AGAIN_US)
			continue;
		s->asked_us = now_us;
		seqs[n++] = (uint16_t)i;
	}
	if (n)
		kit_peer_nack(d->viewer, MEDIA_VIDEO, seqs, n);
}

void kit_decoder_run(struct kit_decoder *d)
{
	struct kit_peer *v = d->viewer;

	for (; d->taken < v->packet_count; d->taken++)
		if (v->packets[d->taken].kind == MEDIA_VIDEO)
			take(d, &v->packets[d->taken]);
	kit_peer_forget(v);
	d->taken = 0;
	while (d->has_first && !d->error[0] && seen_of(d, d->next)->is_here) {
		decode(d, &seen_of(d, d->next)->packet);
		*seen_of(d, d->next++) = (struct kit_seen){ 0 };
	}
	if (d->has_first && !d->error[0])
		ask_again(d);
}

uint64_t kit_decoder_missing(const struct kit_decoder *d)
{
	return d->has_first ? d->newest + 1 - d->next : 0;
}
