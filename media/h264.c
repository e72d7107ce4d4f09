/* media/h264.c - see h264.h for the contract. */
#include "media/h264.h"

#include "media/bits.h"
#include "pool/bytes.h"

enum {
	NAL_SLICE = 1,
	NAL_PARTITION_A = 2,
	NAL_IDR = 5,
	NAL_SEI = 6,
	NAL_SPS = 7,
	NAL_PPS = 8,
	NAL_DELIMITER = 9,
	NAL_LAST_SINGLE = 23,
	NAL_STAP_A = 24,
	NAL_FU_A = 28,

	FU_START = 0x80,
	SPS_READ_BYTES = 96,    /* the frame size lies well within */
	MAX_MACROBLOCKS = 4096, /* a side of 65,536 pixels */
};

/* Takes out emulation prevention bytes (7.4.1): 00 00 03 stands for 00 00. */
static size_t unescape(const uint8_t *nal, size_t len, uint8_t *out, size_t cap)
{
	unsigned zeros = 0;
	size_t n = 0;

	for (size_t i = 0; i < len && n < cap; i++) {
		if (zeros >= 2 && nal[i] == 3) {
			zeros = 0;
			continue;
		}
		zeros = nal[i] == 0 ? zeros + 1 : 0;
		out[n++] = nal[i];
	}
	return n;
}

static void skip_scaling_list(struct bits *b, unsigned size)
{
	int32_t last = 8, next = 8;

	for (unsigned i = 0; i < size && !b->is_overrun; i++) {
		if (next != 0)
			next = (int32_t)(((int64_t)last + bits_golomb_signed(b) + 256) & 0xff);
		last = next == 0 ? last : next;
	}
}

static bool has_chroma_fields(unsigned profile)
{
	static const uint8_t profiles[] = { 100, 110, 122, 244, 44,  83, 86,
					    118, 128, 138, 139, 134, 135 };

	for (size_t i = 0; i < sizeof(profiles); i++)
		if (profiles[i] == profile)
			return true;
	return false;
}

/* @return chroma_format_idc */
static uint32_t read_chroma_fields(struct bits *b)
{
	uint32_t chroma = bits_golomb(b);
	bool separate = chroma == 3 && bits_flag(b);

	bits_golomb(b); /* bit_depth_luma_minus8 */
	bits_golomb(b);
	bits_read(b, 1);
	if (bits_flag(b)) /* seq_scaling_matrix_present_flag */
		for (unsigned i = 0; i < (chroma == 3 ? 12 : 8); i++)
			if (bits_flag(b))
				skip_scaling_list(b, i < 6 ? 16 : 64);
	return separate ? 0 : chroma;
}

static void skip_order_count(struct bits *b)
{
	uint32_t type = bits_golomb(b);
	uint32_t cycle;

	if (type == 0)
		bits_golomb(b);
	if (type != 1)
		return;
	bits_read(b, 1);
	bits_golomb(b);
	bits_golomb(b);
	cycle = bits_golomb(b);
	for (; cycle > 0 && !b->is_overrun; cycle--)
		bits_golomb(b);
}

/* Macroblocks less what is cropped, in pixels; 0 when that makes no sense. */
static uint16_t side(uint32_t macroblocks, uint64_t cropped)
{
	uint64_t pixels = (uint64_t)macroblocks * 16;

	if (macroblocks > MAX_MACROBLOCKS || cropped >= pixels || pixels - cropped > UINT16_MAX)
		return 0;
	return (uint16_t)(pixels - cropped);
}

static void read_size(struct bits *b, uint32_t chroma, struct codec_info *out)
{
	uint64_t width = (uint64_t)bits_golomb(b) + 1;
	uint64_t height = (uint64_t)bits_golomb(b) + 1;
	bool frames_only = bits_flag(b);
	uint64_t crop_x = 0, crop_y = 0;

	if (!frames_only)
		bits_read(b, 1);
	bits_read(b, 1); /* direct_8x8_inference_flag */
	if (bits_flag(b)) {
		crop_x = (uint64_t)bits_golomb(b) + bits_golomb(b);
		crop_y = (uint64_t)bits_golomb(b) + bits_golomb(b);
	}
	if (b->is_overrun || width > MAX_MACROBLOCKS || height > MAX_MACROBLOCKS)
		return;
	crop_x *= chroma == 1 || chroma == 2 ? 2 : 1;
	crop_y *= chroma == 1 ? 2 : 1;
	crop_y *= frames_only ? 1 : 2;
	out->width = side((uint32_t)width, crop_x);
	out->height = side((uint32_t)height * (frames_only ? 1 : 2), crop_y);
}

static void read_sps(const uint8_t *nal, size_t len, struct codec_info *out)
{
	uint8_t clear[SPS_READ_BYTES];
	uint32_t chroma = 1;
	struct bits b;
	unsigned profile;

	bits_init(&b, clear, unescape(nal, len, clear, sizeof(clear)));
	bits_read(&b, 8); /* NAL header */
	profile = bits_read(&b, 8);
	bits_read(&b, 16); /* constraints, level */
	bits_golomb(&b);
	if (has_chroma_fields(profile))
		chroma = read_chroma_fields(&b);
	bits_golomb(&b); /* log2_max_frame_num_minus4 */
	skip_order_count(&b);
	bits_golomb(&b); /* max_num_ref_frames */
	bits_read(&b, 1);
	read_size(&b, chroma, out);
}

/* What the first bytes of a NAL unit say. @param body after its header byte, may be cut short */
static void read_nal(unsigned type, const uint8_t *body, size_t len, struct codec_info *out)
{
	/* first_mb_in_slice is 0: its Golomb code is the single bit 1. */
	bool first_slice = len > 0 && body[0] & 0x80;

	switch (type) {
	case NAL_SPS:
		if (len >= 3)
			out->flags |= CODEC_FRAME_START | CODEC_KEYFRAME_START;
		break;
	case NAL_IDR:
		if (first_slice)
			out->flags |= CODEC_FRAME_START | CODEC_KEYFRAME_START;
		break;
	case NAL_SLICE:
	case NAL_PARTITION_A:
		if (first_slice)
			out->flags |= CODEC_FRAME_START;
		break;
	case NAL_SEI:
	case NAL_PPS:
	case NAL_DELIMITER:
		out->flags |= CODEC_FRAME_START;
		break;
	default:
		break;
	}
}

static bool read_single(const uint8_t *nal, size_t len, struct codec_info *out)
{
	unsigned type = nal[0] & 0x1f;

	if (type == 0 || type > NAL_LAST_SINGLE)
		return false;
	read_nal(type, nal + 1, len - 1, out);
	if (type == NAL_SPS)
		read_sps(nal, len, out);
	return true;
}

static bool read_stap(const uint8_t *p, size_t len, struct codec_info *out)
{
	size_t at = 1;

	while (len - at >= 2) {
		size_t nal_bytes = be16_read(p + at);

		at += 2;
		if (nal_bytes == 0 || nal_bytes > len - at || !read_single(p + at, nal_bytes, out))
			return false;
		at += nal_bytes;
	}
	return at == len && len > 1;
}

bool h264_inspect(const uint8_t *payload, size_t len, struct codec_info *out)
{
	if (len == 0)
		return false;
	switch (payload[0] & 0x1f) {
	case NAL_STAP_A:
		return read_stap(payload, len, out);
	case NAL_FU_A:
		if (len < 3)
			return false;
		if (payload[1] & FU_START)
			read_nal(payload[1] & 0x1f, payload + 2, len - 2, out);
		return true;
	default:
		/* STAP-B, MTAP and FU-B belong to interleaved mode, which WebRTC does not use. */
		return read_single(payload, len, out);
	}
}
