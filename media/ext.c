/* media/ext.c - see ext.h for the contract. */
#include "media/ext.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "pool/bytes.h"

static const struct {
	const char *uri;
	uint8_t bytes; /* 0: any length */
} kinds[EXT_KINDS] = {
	/* RFC 9143 section 15.1 */
	[EXT_MID] = { "urn:ietf:params:rtp-hdrext:sdes:mid", 0 },
	/* RFC 8852 section 3 */
	[EXT_RID] = { "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id", 0 },
	[EXT_REPAIRED_RID] = { "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id", 0 },
	[EXT_ABS_SEND_TIME] = { "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time", 3 },
	[EXT_TRANSPORT_CC] = { "http://www.ietf.org/id/"
			       "draft-holmer-rmcat-transport-wide-cc-extensions-01",
			       2 },
	/* RFC 6464 */
	[EXT_AUDIO_LEVEL] = { "urn:ietf:params:rtp-hdrext:ssrc-audio-level", 1 },
	/* 3GPP TS 26.114 section 7.4.5 */
	[EXT_VIDEO_ORIENTATION] = { "urn:3gpp:video-orientation", 1 },
	[EXT_PLAYOUT_DELAY] = { "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay", 3 },
	[EXT_ABS_CAPTURE_TIME] = { "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
				   0 },
	[EXT_DEPENDENCY_DESCRIPTOR] = { "https://aomediacodec.github.io/av1-rtp-spec/"
					"#dependency-descriptor-rtp-header-extension",
					0 },
	[EXT_VIDEO_LAYERS_ALLOCATION] = { "http://www.webrtc.org/experiments/rtp-hdrext/"
					  "video-layers-allocation00",
					  0 },
};

enum {
	CAPTURE_TIME_SHORT_BYTES = 8, /* without, with the clock offset */
	CAPTURE_TIME_LONG_BYTES = 16,
};

enum ext_kind ext_kind_of_uri(const char *uri, size_t len)
{
	for (unsigned k = 0; k < EXT_KINDS; k++)
		if (strlen(kinds[k].uri) == len && memcmp(kinds[k].uri, uri, len) == 0)
			return (enum ext_kind)k;
	return EXT_KINDS;
}

const char *ext_uri(enum ext_kind kind)
{
	assert(kind < EXT_KINDS);
	return kinds[kind].uri;
}

int ext_map_set(struct ext_map *map, enum ext_kind kind, unsigned id)
{
	enum ext_kind taken;

	assert(kind < EXT_KINDS);
	if (id == 0 || id == EXT_ID_RESERVED || id > EXT_MAX_ID)
		return -EINVAL;
	taken = ext_map_kind(map, (uint8_t)id);
	if (taken == kind)
		return 0;
	if (taken != EXT_KINDS || map->id_of[kind] != 0)
		return -EEXIST;
	map->id_of[kind] = (uint8_t)id;
	if (id <= EXT_ONE_BYTE_MAX_ID)
		map->kind_of[id] = (uint8_t)(kind + 1);
	return 0;
}

enum ext_kind ext_map_kind(const struct ext_map *map, uint8_t id)
{
	if (id == 0)
		return EXT_KINDS;
	if (id <= EXT_ONE_BYTE_MAX_ID)
		return map->kind_of[id] ? (enum ext_kind)(map->kind_of[id] - 1) : EXT_KINDS;
	for (unsigned k = 0; k < EXT_KINDS; k++)
		if (map->id_of[k] == id)
			return (enum ext_kind)k;
	return EXT_KINDS;
}

void ext_cursor_init(struct ext_cursor *c, const uint8_t *bytes, const struct rtp_packet *rtp)
{
	c->at = c->end = bytes + rtp->ext_offset;
	c->two_byte = (rtp->ext_profile & 0xfff0) == EXT_PROFILE_TWO_BYTE;
	if (c->two_byte || rtp->ext_profile == EXT_PROFILE_ONE_BYTE)
		c->end += rtp->ext_bytes;
}

/* Reads one element's id and length, at c->at, which is not padding. */
static bool read_head(struct ext_cursor *c, struct ext_element *out)
{
	if (c->two_byte) {
		if (c->end - c->at < 2)
			return false;
		out->id = c->at[0];
		out->bytes = c->at[1];
		c->at += 2;
		return true;
	}
	out->id = c->at[0] >> 4;
	/* Id 15: "all processing of the extension elements MUST be terminated" (RFC 8285 4.2).
	 * Id 0 with a length is no padding byte and no element either. */
	if (out->id == EXT_ID_RESERVED || out->id == 0)
		return false;
	out->bytes = (uint8_t)((c->at[0] & 0x0f) + 1);
	c->at += 1;
	return true;
}

bool ext_cursor_next(struct ext_cursor *c, struct ext_element *out)
{
	while (c->at < c->end && *c->at == 0)
		c->at++;
	if (c->at == c->end)
		return false;
	if (!read_head(c, out) || c->end - c->at < out->bytes) {
		c->at = c->end;
		return false;
	}
	out->data = c->at;
	c->at += out->bytes;
	return true;
}

static void read_capture_time(const struct ext_element *e, struct ext_values *v)
{
	v->capture_ntp = be64_read(e->data);
	v->has_capture_offset = e->bytes == CAPTURE_TIME_LONG_BYTES;
	v->capture_offset_ntp = v->has_capture_offset ? (int64_t)be64_read(e->data + 8) : 0;
}

static bool length_fits(enum ext_kind kind, uint8_t bytes)
{
	if (kind == EXT_ABS_CAPTURE_TIME)
		return bytes == CAPTURE_TIME_SHORT_BYTES || bytes == CAPTURE_TIME_LONG_BYTES;
	return kinds[kind].bytes == 0 || kinds[kind].bytes == bytes;
}

static void read_value(enum ext_kind kind, const struct ext_element *e, struct ext_values *v)
{
	switch (kind) {
	case EXT_ABS_SEND_TIME:
		v->abs_send_time = be24_read(e->data);
		break;
	case EXT_TRANSPORT_CC:
		v->transport_seq = be16_read(e->data);
		break;
	case EXT_AUDIO_LEVEL:
		v->audio_is_voice = e->data[0] >> 7;
		v->audio_level_dbov = e->data[0] & 0x7f;
		break;
	case EXT_VIDEO_ORIENTATION:
		v->orientation = e->data[0];
		break;
	case EXT_PLAYOUT_DELAY:
		v->playout_min_10ms = (uint16_t)(be24_read(e->data) >> 12);
		v->playout_max_10ms = (uint16_t)(be24_read(e->data) & 0xfff);
		break;
	case EXT_ABS_CAPTURE_TIME:
		read_capture_time(e, v);
		break;
	default: /* the span is the value */
		break;
	}
}

void ext_read(const struct ext_map *map, const uint8_t *bytes, const struct rtp_packet *rtp,
	      struct ext_values *out)
{
	struct ext_cursor c;
	struct ext_element e;

	memset(out, 0, sizeof(*out));
	ext_cursor_init(&c, bytes, rtp);
	while (ext_cursor_next(&c, &e)) {
		enum ext_kind kind = ext_map_kind(map, e.id);

		if (kind == EXT_KINDS || !length_fits(kind, e.bytes))
			continue;
		out->present |= 1u << kind;
		out->span[kind].offset = (uint16_t)(e.data - bytes);
		out->span[kind].bytes = e.bytes;
		read_value(kind, &e, out);
	}
}

static bool fits_one_byte(const struct ext_element *elements, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (elements[i].id > EXT_ONE_BYTE_MAX_ID || elements[i].bytes == 0 ||
		    elements[i].bytes > EXT_ONE_BYTE_MAX_BYTES)
			return false;
	return true;
}

static size_t element_sum(const struct ext_element *elements, size_t n, bool one_byte)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (one_byte ? 1u : 2u) + elements[i].bytes;
	return sum;
}

size_t ext_block_bytes(const struct ext_element *elements, size_t n)
{
	size_t sum = element_sum(elements, n, fits_one_byte(elements, n));

	return n ? RTP_EXT_HEADER_BYTES + (sum + 3) / 4 * 4 : 0;
}

int ext_block_write(uint8_t *out, size_t block_bytes, const struct ext_element *elements, size_t n)
{
	bool one_byte = fits_one_byte(elements, n);
	size_t sum = element_sum(elements, n, one_byte);
	uint8_t *at = out + RTP_EXT_HEADER_BYTES;

	assert(block_bytes % 4 == 0 && block_bytes >= RTP_EXT_HEADER_BYTES &&
	       block_bytes <= EXT_BLOCK_MAX_BYTES);
	if (sum > block_bytes - RTP_EXT_HEADER_BYTES)
		return -ENOSPC;
	be16_write(out, one_byte ? EXT_PROFILE_ONE_BYTE : EXT_PROFILE_TWO_BYTE);
	be16_write(out + 2, (uint16_t)((block_bytes - RTP_EXT_HEADER_BYTES) / 4));
	for (size_t i = 0; i < n; i++) {
		assert(elements[i].id != 0 && elements[i].id != EXT_ID_RESERVED);
		if (one_byte) {
			*at++ = (uint8_t)(elements[i].id << 4 | (elements[i].bytes - 1));
		} else {
			*at++ = elements[i].id;
			*at++ = elements[i].bytes;
		}
		if (elements[i].bytes)
			memcpy(at, elements[i].data, elements[i].bytes);
		at += elements[i].bytes;
	}
	memset(at, 0, (size_t)(out + block_bytes - at));
	return 0;
}
