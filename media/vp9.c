/* media/vp9.c - see vp9.h for the contract. */
#include "media/vp9.h"

#include "media/bits.h"
#include "pool/bytes.h"

enum {
	HAS_PICTURE_ID = 0x80, /* I P L F B E V Z */
	INTER_PICTURE = 0x40,
	HAS_LAYERS = 0x20,
	FLEXIBLE = 0x10,
	FRAME_START = 0x08,
	FRAME_END = 0x04,
	HAS_STRUCTURE = 0x02,
	NOT_FOR_UPPER_LAYERS = 0x01,

	LONG_PICTURE_ID = 0x80, /* M */
	MAX_REFERENCES = 3,     /* "up to 3 times" */

	FRAME_MARKER = 2,
	SYNC_CODE = 0x498342,
	COLOR_SPACE_RGB = 7,
};

struct reader {
	const uint8_t *p;
	size_t len;
	size_t at;
	bool is_cut; /* sticky: something was promised beyond the end */
};

static uint8_t take(struct reader *r)
{
	if (r->at >= r->len) {
		r->is_cut = true;
		return 0;
	}
	return r->p[r->at++];
}

static void skip(struct reader *r, size_t n)
{
	if (r->len - r->at < n) {
		r->is_cut = true;
		r->at = r->len;
		return;
	}
	r->at += n;
}

static void read_picture_id(struct reader *r, struct codec_info *out)
{
	size_t at = r->at;
	uint8_t first = take(r);
	bool is_long = first & LONG_PICTURE_ID;
	uint16_t id = (uint16_t)(is_long ? (first & 0x7f) << 8 | take(r) : first);

	if (r->is_cut)
		return;
	out->flags |= CODEC_HAS_PICTURE_ID;
	out->picture_id = id;
	out->picture_id_bits = is_long ? 15 : 7;
	out->picture_id_offset = (uint8_t)at;
}

static void read_layers(struct reader *r, bool flexible, struct codec_info *out)
{
	uint8_t b = take(r);

	if (r->is_cut)
		return;
	out->flags |= CODEC_HAS_LAYERS | (b & 0x10 ? CODEC_SWITCH_UP : 0) |
		      (b & 0x01 ? CODEC_INTER_LAYER : 0);
	out->temporal_id = b >> 5;
	out->spatial_id = b >> 1 & 7;
	if (flexible)
		return;
	out->tl0picidx_offset = (uint8_t)r->at;
	out->tl0picidx = take(r);
	if (!r->is_cut)
		out->flags |= CODEC_HAS_TL0PICIDX;
}

static void read_references(struct reader *r)
{
	for (int i = 0; i < MAX_REFERENCES; i++)
		if (!(take(r) & 1)) /* N: another one follows */
			return;
	/* A fourth is not allowed; where the bitstream begins is unknown then. */
	r->is_cut = true;
}

static void read_structure(struct reader *r, struct vp9_structure *out)
{
	uint8_t head = take(r);
	unsigned pictures;

	out->layer_count = (uint8_t)((head >> 5) + 1);
	out->has_sizes = head & 0x10; /* Y */
	for (unsigned i = 0; out->has_sizes && i < out->layer_count; i++) {
		out->width[i] = (uint16_t)(take(r) << 8);
		out->width[i] |= take(r);
		out->height[i] = (uint16_t)(take(r) << 8);
		out->height[i] |= take(r);
	}
	pictures = head & 0x08 ? take(r) : 0;
	for (; pictures > 0 && !r->is_cut; pictures--)
		skip(r, take(r) >> 2 & 3); /* R reference indices */
}

/* color_config() up to the frame size; what it says is not needed. */
static void skip_color(struct bits *b, unsigned profile)
{
	if (profile >= 2)
		bits_read(b, 1); /* 10 or 12 bits */
	if (bits_read(b, 3) == COLOR_SPACE_RGB)
		bits_read(b, profile & 1 ? 1 : 0);
	else
		bits_read(b, profile & 1 ? 4 : 1);
}

/* uncompressed_header(): the descriptor's P bit alone does not make a key frame, some senders
 * never set it. */
static void read_frame_header(const uint8_t *p, size_t len, struct codec_info *out)
{
	struct bits b;
	unsigned profile;
	uint32_t width, height;

	bits_init(&b, p, len);
	if (bits_read(&b, 2) != FRAME_MARKER)
		return;
	profile = bits_read(&b, 1);
	profile |= bits_read(&b, 1) << 1;
	if (profile == 3)
		bits_read(&b, 1);
	if (bits_flag(&b) || bits_flag(&b)) /* show_existing_frame; frame_type, 0 = key */
		return;
	bits_read(&b, 2); /* show_frame, error_resilient_mode */
	if (bits_read(&b, 24) != SYNC_CODE)
		return;
	out->flags |= CODEC_KEYFRAME_START;
	skip_color(&b, profile);
	width = bits_read(&b, 16) + 1;
	height = bits_read(&b, 16) + 1;
	if (b.is_overrun || out->width || width > UINT16_MAX || height > UINT16_MAX)
		return;
	out->width = (uint16_t)width;
	out->height = (uint16_t)height;
}

static uint32_t descriptor_flags(uint8_t first)
{
	return (first & INTER_PICTURE ? CODEC_INTER_PICTURE : 0u) |
	       (first & FLEXIBLE ? CODEC_FLEXIBLE : 0u) |
	       (first & FRAME_START ? CODEC_FRAME_START : 0u) |
	       (first & FRAME_END ? CODEC_FRAME_END : 0u) |
	       (first & NOT_FOR_UPPER_LAYERS ? CODEC_NOT_REFERENCED : 0u);
}

/* The payload descriptor. layer_count is 0 where it has no structure. */
static void read_descriptor(struct reader *r, struct codec_info *out,
			    struct vp9_structure *structure)
{
	uint8_t first = take(r);

	structure->layer_count = 0;
	if (first & HAS_PICTURE_ID)
		read_picture_id(r, out);
	if (first & HAS_LAYERS)
		read_layers(r, first & FLEXIBLE, out);
	if ((first & (FLEXIBLE | INTER_PICTURE)) == (FLEXIBLE | INTER_PICTURE))
		read_references(r);
	if (first & HAS_STRUCTURE)
		read_structure(r, structure);
}

bool vp9_inspect(const uint8_t *payload, size_t len, struct codec_info *out)
{
	struct reader r = { .p = payload, .len = len };
	struct vp9_structure structure;
	unsigned top;

	read_descriptor(&r, out, &structure);
	if (r.is_cut || r.at == r.len)
		return false;
	if (structure.layer_count > 0) {
		out->flags |= CODEC_HAS_STRUCTURE;
		top = structure.layer_count - 1u;
		out->width = structure.has_sizes ? structure.width[top] : 0;
		out->height = structure.has_sizes ? structure.height[top] : 0;
	}
	out->flags |= descriptor_flags(payload[0]);
	out->descriptor_bytes = r.at <= UINT8_MAX ? (uint8_t)r.at : UINT8_MAX;
	if ((payload[0] & (FRAME_START | INTER_PICTURE)) == FRAME_START && out->spatial_id == 0)
		read_frame_header(payload + r.at, len - r.at, out);
	return true;
}

bool vp9_read_structure(const uint8_t *payload, size_t len, struct vp9_structure *out)
{
	struct reader r = { .p = payload, .len = len };
	struct codec_info info = { 0 };

	read_descriptor(&r, &info, out);
	return !r.is_cut && out->layer_count > 0;
}
