/* media/av1.c - see av1.h for the contract. */
#include "media/av1.h"

#include "media/bits.h"

enum {
	CONTINUES = 0x80,    /* Z: the first OBU began in an earlier packet */
	NEW_SEQUENCE = 0x08, /* N: first packet of a coded video sequence */

	OBU_FORBIDDEN = 0x80,
	OBU_EXTENSION = 0x04,
	OBU_HAS_SIZE = 0x02,
	OBU_SEQUENCE_HEADER = 1,
	OBU_TEMPORAL_DELIMITER = 2,
	OBU_FRAME_HEADER = 3,
	OBU_METADATA = 5,
	OBU_FRAME = 6,

	LEB128_MAX_BYTES = 8,
	MAX_SEQ_LEVEL_WITHOUT_TIER = 7,
};

struct span {
	const uint8_t *at, *end;
};

static bool read_leb128(struct span *s, uint64_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < LEB128_MAX_BYTES && s->at < s->end; i++) {
		*out |= (uint64_t)(*s->at & 0x7f) << (7 * i);
		if (!(*s->at++ & 0x80))
			return true;
	}
	return false;
}

/* The next OBU element; the last one of `elements` (1 to 3, 0 = not counted) has no length. */
static bool take_element(struct span *s, unsigned elements, unsigned index, struct span *out)
{
	uint64_t bytes = (uint64_t)(s->end - s->at);

	if (elements == 0 || index + 1 < elements)
		if (!read_leb128(s, &bytes))
			return false;
	if (bytes > (uint64_t)(s->end - s->at))
		return false;
	out->at = s->at;
	out->end = s->at + bytes;
	s->at = out->end;
	return true;
}

/* operating_parameters up to the frame size, where no timing information precedes it. */
static bool skip_operating_points(struct bits *b)
{
	bool has_delay;
	unsigned points;

	if (bits_flag(b)) /* timing_info_present_flag */
		return false;
	has_delay = bits_flag(b);
	points = bits_read(b, 5) + 1;
	for (; points > 0; points--) {
		bits_read(b, 12);
		if (bits_read(b, 5) > MAX_SEQ_LEVEL_WITHOUT_TIER)
			bits_read(b, 1);
		if (has_delay && bits_flag(b))
			bits_read(b, 4);
	}
	return true;
}

static void read_sequence_header(const uint8_t *p, size_t len, struct codec_info *out)
{
	struct bits b;
	unsigned width_bits, height_bits;
	uint32_t width, height;

	bits_init(&b, p, len);
	bits_read(&b, 4);         /* seq_profile, still_picture */
	if (bits_flag(&b))        /* reduced_still_picture_header */
		bits_read(&b, 5); /* its only level */
	else if (!skip_operating_points(&b))
		return;
	width_bits = bits_read(&b, 4) + 1;
	height_bits = bits_read(&b, 4) + 1;
	width = bits_read(&b, width_bits) + 1;
	height = bits_read(&b, height_bits) + 1;
	if (b.is_overrun || width > UINT16_MAX || height > UINT16_MAX)
		return;
	out->width = (uint16_t)width;
	out->height = (uint16_t)height;
}

/* The first OBU of a packet, which begins here. It may go on in the next packet. */
static bool read_obu(struct span s, struct codec_info *out)
{
	unsigned type;
	uint8_t header;
	uint64_t size;

	if (s.at == s.end)
		return false;
	header = *s.at++;
	type = header >> 3 & 0x0f;
	if (header & OBU_FORBIDDEN)
		return false;
	if (header & OBU_EXTENSION) {
		if (s.at == s.end)
			return false;
		out->flags |= CODEC_HAS_LAYERS;
		out->temporal_id = *s.at >> 5;
		out->spatial_id = *s.at >> 3 & 3;
		s.at++;
	}
	if (header & OBU_HAS_SIZE && !read_leb128(&s, &size))
		return false;
	if (type == OBU_SEQUENCE_HEADER)
		read_sequence_header(s.at, (size_t)(s.end - s.at), out);
	if (type == OBU_SEQUENCE_HEADER || type == OBU_TEMPORAL_DELIMITER ||
	    type == OBU_FRAME_HEADER || type == OBU_METADATA || type == OBU_FRAME)
		out->flags |= CODEC_FRAME_START;
	return true;
}

bool av1_inspect(const uint8_t *payload, size_t len, struct codec_info *out)
{
	struct span rest;
	struct span first, element;
	unsigned elements;

	if (len < 2)
		return false;
	rest = (struct span){ payload + 1, payload + len };
	elements = payload[0] >> 4 & 3;
	if (!take_element(&rest, elements, 0, &first))
		return false;
	for (unsigned i = 1; elements ? i < elements : rest.at < rest.end; i++)
		if (!take_element(&rest, elements, i, &element) || element.at == element.end)
			return false;
	if (payload[0] & CONTINUES)
		return !(payload[0] & NEW_SEQUENCE);
	if (!read_obu(first, out))
		return false;
	/* Sequence headers are repeated before other frames too: N alone tells. */
	if (payload[0] & NEW_SEQUENCE)
		out->flags |= CODEC_FRAME_START | CODEC_KEYFRAME_START;
	return true;
}
