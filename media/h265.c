/* media/h265.c - see h265.h for the contract. */
#include "media/h265.h"

#include "pool/bytes.h"

enum {
	NAL_HEADER_BYTES = 2,
	NAL_TSA_N = 2, /* 2 to 5: temporal sub-layer access, a receiver may switch up here */
	NAL_STSA_R = 5,
	NAL_LAST_INTER = 9,
	NAL_IRAP_FIRST = 16, /* BLA, IDR, CRA */
	NAL_IRAP_LAST = 21,
	NAL_VPS = 32,
	NAL_SPS = 33,
	NAL_PPS = 34,
	NAL_DELIMITER = 35,
	NAL_PREFIX_SEI = 39,
	NAL_LAST_SINGLE = 47,
	NAL_AGGREGATION = 48,
	NAL_FRAGMENT = 49,

	FU_START = 0x80,
};

static unsigned nal_type(const uint8_t *nal)
{
	return nal[0] >> 1 & 0x3f;
}

/* @param body after the two header bytes */
static void read_nal(unsigned type, const uint8_t *body, size_t len, struct codec_info *out)
{
	bool first_slice = len > 0 && body[0] & 0x80; /* first_slice_segment_in_pic_flag */

	if (type <= NAL_LAST_INTER || (type >= NAL_IRAP_FIRST && type <= NAL_IRAP_LAST)) {
		if (!first_slice)
			return;
		out->flags |= CODEC_FRAME_START;
		if (type >= NAL_IRAP_FIRST)
			out->flags |= CODEC_KEYFRAME_START;
		if (type >= NAL_TSA_N && type <= NAL_STSA_R)
			out->flags |= CODEC_SWITCH_UP;
		return;
	}
	switch (type) {
	case NAL_VPS:
	case NAL_SPS:
		/* PPS is left out: one may come alone between inter pictures. */
		if (len >= 3)
			out->flags |= CODEC_FRAME_START | CODEC_KEYFRAME_START;
		break;
	case NAL_PPS:
	case NAL_DELIMITER:
	case NAL_PREFIX_SEI:
		out->flags |= CODEC_FRAME_START;
		break;
	default:
		break;
	}
}

static bool read_single(const uint8_t *nal, size_t len, struct codec_info *out)
{
	if (len < NAL_HEADER_BYTES || nal_type(nal) > NAL_LAST_SINGLE)
		return false;
	read_nal(nal_type(nal), nal + NAL_HEADER_BYTES, len - NAL_HEADER_BYTES, out);
	return true;
}

/* Without DONL: sprop-max-don-diff is 0 in WebRTC. */
static bool read_aggregate(const uint8_t *p, size_t len, struct codec_info *out)
{
	size_t at = NAL_HEADER_BYTES;

	while (len - at >= 2) {
		size_t nal_bytes = be16_read(p + at);

		at += 2;
		if (nal_bytes > len - at || !read_single(p + at, nal_bytes, out))
			return false;
		at += nal_bytes;
	}
	return at == len && len > NAL_HEADER_BYTES;
}

bool h265_inspect(const uint8_t *payload, size_t len, struct codec_info *out)
{
	/* F is 0, and "the value of TID MUST NOT be 0": it is the temporal id plus 1. */
	if (len <= NAL_HEADER_BYTES || payload[0] & 0x80 || (payload[1] & 7) == 0)
		return false;
	out->flags |= CODEC_HAS_LAYERS;
	out->temporal_id = (uint8_t)((payload[1] & 7) - 1);
	out->spatial_id = (uint8_t)((payload[0] & 1) << 5 | payload[1] >> 3);
	switch (nal_type(payload)) {
	case NAL_AGGREGATION:
		return read_aggregate(payload, len, out);
	case NAL_FRAGMENT:
		if (len < NAL_HEADER_BYTES + 2)
			return false;
		if (payload[2] & FU_START)
			read_nal(payload[2] & 0x3f, payload + 3, len - 3, out);
		return true;
	default:
		return read_single(payload, len, out);
	}
}
