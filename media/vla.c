/* media/vla.c - see vla.h for the contract. Names in comments are the document's. */
#include "media/vla.h"

#include <string.h>

#include "pool/bytes.h"

enum {
	LEB128_MAX_BYTES = 5, /* what 32 bits take */
	RESOLUTION_BYTES = 5,
	MAX_KBPS = UINT32_MAX / 1000,
};

struct reader {
	const uint8_t *at, *end;
	bool is_cut; /* sticky: something was promised beyond the end */
};

static uint8_t take(struct reader *r)
{
	if (r->at >= r->end) {
		r->is_cut = true;
		return 0;
	}
	return *r->at++;
}

static uint32_t take_leb128(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < LEB128_MAX_BYTES; i++) {
		uint8_t byte = take(r);

		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return value > MAX_KBPS ? MAX_KBPS : (uint32_t)value;
	}
	r->is_cut = true;
	return 0;
}

/* sl_bm, or sl0_bm.. where that is 0: one nibble a stream, padded to whole bytes. */
static void read_masks(struct reader *r, unsigned streams, uint8_t common,
		       uint8_t masks[VLA_STREAMS])
{
	uint8_t byte = 0;

	for (unsigned i = 0; i < streams; i++) {
		if (common == 0 && i % 2 == 0)
			byte = take(r);
		masks[i] = common ? common : i % 2 == 0 ? byte >> 4 : byte & 0x0f;
	}
}

/* #tl: two bits a layer, padded to whole bytes. @return how many layers there are */
static unsigned read_temporal_counts(struct reader *r, const uint8_t masks[VLA_STREAMS],
				     struct vla *out)
{
	unsigned layers = 0;
	uint8_t byte = 0;

	for (unsigned i = 0; i < (unsigned)VLA_STREAMS * VLA_SPATIAL; i++) {
		unsigned stream = i / VLA_SPATIAL, spatial = i % VLA_SPATIAL;

		if (!(masks[stream] >> spatial & 1))
			continue;
		if (layers % 4 == 0)
			byte = take(r);
		out->layers[stream][spatial].temporal_count =
		    (uint8_t)((byte >> (6 - 2 * (layers % 4)) & 3) + 1);
		layers++;
	}
	return layers;
}

static void read_bitrates(struct reader *r, struct vla_layer *layer)
{
	for (unsigned t = 0; t < layer->temporal_count; t++)
		layer->bitrate_bps[t] = take_leb128(r) * 1000;
}

static void read_resolution(struct reader *r, struct vla_layer *layer)
{
	if (layer->temporal_count == 0)
		return;
	if (r->end - r->at < RESOLUTION_BYTES) {
		r->is_cut = true;
		return;
	}
	layer->width = be16_read(r->at) + 1u;
	layer->height = be16_read(r->at + 2) + 1u;
	layer->fps = r->at[4];
	r->at += RESOLUTION_BYTES;
}

bool vla_parse(const uint8_t *bytes, size_t len, struct vla *out)
{
	struct reader r = { .at = bytes, .end = bytes + len };
	struct vla_layer *layers = &out->layers[0][0];
	uint8_t masks[VLA_STREAMS] = { 0 };
	uint8_t head = take(&r);
	unsigned count;

	memset(out, 0, sizeof(*out));
	/* "An empty layer allocation [...] is encoded as special case with a single 0 byte." */
	if (r.is_cut || (len == 1 && head == 0))
		return !r.is_cut;
	out->stream = head >> 6;
	out->stream_count = (uint8_t)((head >> 4 & 3) + 1);
	if (out->stream >= out->stream_count)
		return false;
	read_masks(&r, out->stream_count, head & 0x0f, masks);
	count = read_temporal_counts(&r, masks, out);
	for (unsigned i = 0; i < (unsigned)VLA_STREAMS * VLA_SPATIAL; i++)
		read_bitrates(&r, &layers[i]);
	/* "Presence is inferred from the rtp header extension size." */
	out->has_resolutions = count > 0 && r.at < r.end;
	for (unsigned i = 0; out->has_resolutions && i < (unsigned)VLA_STREAMS * VLA_SPATIAL; i++)
		read_resolution(&r, &layers[i]);
	return !r.is_cut;
}
