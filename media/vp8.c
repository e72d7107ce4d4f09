/* media/vp8.c - see vp8.h for the contract. */
#include "media/vp8.h"

#include "pool/bytes.h"

enum {
	HAS_EXTENSION = 0x80, /* X */
	NON_REFERENCE = 0x20, /* N */
	PARTITION_START = 0x10,
	PARTITION_INDEX = 0x07,

	HAS_PICTURE_ID = 0x80, /* I, L, T, K of the extension byte */
	HAS_TL0PICIDX = 0x40,
	HAS_TID = 0x20,
	HAS_KEYIDX = 0x10,

	LONG_PICTURE_ID = 0x80, /* M */

	KEYFRAME_HEADER_BYTES = 10, /* frame tag 3, start code 3, width 2, height 2 */
};

/* The descriptor's optional part. @return its end, or 0: cut off */
static size_t read_extension(const uint8_t *p, size_t len, struct codec_info *out)
{
	size_t at = 2;

	if (len < at)
		return 0;
	if (p[1] & HAS_PICTURE_ID) {
		if (len < at + 1 || (p[at] & LONG_PICTURE_ID && len < at + 2))
			return 0;
		out->flags |= CODEC_HAS_PICTURE_ID;
		out->picture_id_offset = (uint8_t)at;
		out->picture_id_bits = p[at] & LONG_PICTURE_ID ? 15 : 7;
		out->picture_id = p[at] & LONG_PICTURE_ID ? be16_read(p + at) & 0x7fff : p[at];
		at += p[at] & LONG_PICTURE_ID ? 2 : 1;
	}
	if (p[1] & HAS_TL0PICIDX) {
		if (len < at + 1)
			return 0;
		out->flags |= CODEC_HAS_TL0PICIDX;
		out->tl0picidx_offset = (uint8_t)at;
		out->tl0picidx = p[at++];
	}
	if (p[1] & (HAS_TID | HAS_KEYIDX)) {
		if (len < at + 1)
			return 0;
		if (p[1] & HAS_TID) {
			out->flags |= CODEC_HAS_LAYERS | (p[at] & 0x20 ? CODEC_SWITCH_UP : 0);
			out->temporal_id = p[at] >> 6;
		}
		if (p[1] & HAS_KEYIDX)
			out->flags |= CODEC_HAS_KEYIDX;
		out->keyidx = p[at++] & 0x1f;
	}
	return at;
}

/* "P: Inverse key frame flag" (RFC 7741 section 4.3), and the start code that proves it. */
static void read_frame_header(const uint8_t *p, size_t len, struct codec_info *out)
{
	if (len < KEYFRAME_HEADER_BYTES || p[0] & 1 || be24_read(p + 3) != 0x9d012a)
		return;
	out->flags |= CODEC_KEYFRAME_START;
	/* Little-endian; the two high bits are a scaling hint. */
	out->width = (uint16_t)((p[7] & 0x3f) << 8 | p[6]);
	out->height = (uint16_t)((p[9] & 0x3f) << 8 | p[8]);
}

bool vp8_inspect(const uint8_t *payload, size_t len, struct codec_info *out)
{
	size_t at = 1;

	if (len == 0)
		return false;
	if (payload[0] & NON_REFERENCE)
		out->flags |= CODEC_NOT_REFERENCED;
	if (payload[0] & HAS_EXTENSION)
		at = read_extension(payload, len, out);
	if (at == 0 || at == len)
		return false;
	out->descriptor_bytes = (uint8_t)at;
	if ((payload[0] & (PARTITION_START | PARTITION_INDEX)) == PARTITION_START) {
		out->flags |= CODEC_FRAME_START;
		read_frame_header(payload + at, len - at, out);
	}
	return true;
}
