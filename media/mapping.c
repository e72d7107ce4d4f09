/* media/mapping.c - see mapping.h for the contract. */
#include "media/mapping.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "media/ext.h"
#include "media/rtp.h"

/* Room each value takes in the fixed part; the mid's is its own length. */
static const uint8_t value_bytes[MAPPING_EXTS] = {
	[MAPPING_TRANSPORT_CC] = 2,
	[MAPPING_SEND_TIME] = 3,
	[MAPPING_AUDIO_LEVEL] = 1,
	[MAPPING_ORIENTATION] = 1,
	[MAPPING_PLAYOUT_DELAY] = 3,
	[MAPPING_CAPTURE_TIME] = 16, /* 8 without the capture clock's offset */
};

enum { DESCRIPTOR_FIXED_BYTES = 3 }; /* flags, template id, frame number */

void mapping_init(struct mapping *m)
{
	memset(m, 0, sizeof(*m));
	memset(m->types, MAPPING_NO_TYPE, sizeof(m->types));
	memset(m->rtx_types, MAPPING_NO_TYPE, sizeof(m->rtx_types));
}

int mapping_set_mid(struct mapping *m, const char *mid, size_t bytes)
{
	if (bytes == 0 || bytes > MAPPING_MID_MAX_BYTES)
		return -EINVAL;
	memset(m->mid, 0, sizeof(m->mid));
	memcpy(m->mid, mid, bytes);
	m->mid_bytes = (uint8_t)bytes;
	return 0;
}

static size_t room_of(const struct mapping *m, enum mapping_ext ext)
{
	size_t bytes = ext == MAPPING_MID ? m->mid_bytes : value_bytes[ext];

	return m->ext_ids[ext] == 0 || bytes == 0 ? 0 : bytes + 1 + m->is_two_byte;
}

/* Where the value of an extension lies in a header, with so many bytes of the block before it. */
static uint8_t place_of(const struct mapping *m, enum mapping_ext ext, size_t before)
{
	if (m->ext_ids[ext] == 0)
		return 0;
	return (uint8_t)(RTP_HEADER_BYTES + RTP_EXT_HEADER_BYTES + before + 1 + m->is_two_byte);
}

void mapping_seal(struct mapping *m)
{
	size_t bytes = 0;

	/* A descriptor may outgrow the one-byte form, and forms may not be mixed unasked (RFC 8285
	 * section 4.1.2). */
	m->is_two_byte = m->ext_ids[MAPPING_DESCRIPTOR] != 0;
	if (m->ext_ids[MAPPING_MID] != 0 && m->mid_bytes > EXT_ONE_BYTE_MAX_BYTES)
		m->is_two_byte = 1;
	for (size_t i = 0; i < MAPPING_EXTS; i++) {
		assert(m->ext_ids[i] != EXT_ID_RESERVED);
		if (m->ext_ids[i] > EXT_ONE_BYTE_MAX_ID)
			m->is_two_byte = 1;
	}
	m->transport_cc_at = place_of(m, MAPPING_TRANSPORT_CC, bytes);
	bytes += room_of(m, MAPPING_TRANSPORT_CC);
	m->send_time_at = place_of(m, MAPPING_SEND_TIME, bytes);
	for (size_t i = MAPPING_SEND_TIME; i < MAPPING_DESCRIPTOR; i++)
		bytes += room_of(m, (enum mapping_ext)i);
	m->fixed_bytes = (uint8_t)bytes;
}

bool mapping_is_equal(const struct mapping *a, const struct mapping *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

uint32_t mapping_hash(const struct mapping *m)
{
	const uint8_t *bytes = (const uint8_t *)m;
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < sizeof(*m); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

static size_t block_bytes(const struct mapping *m, size_t descriptor_bytes)
{
	size_t bytes = m->fixed_bytes + descriptor_bytes;

	return bytes == 0 ? 0 : RTP_EXT_HEADER_BYTES + ((bytes + 3) & ~(size_t)3);
}

size_t mapping_header_bytes(const struct mapping *m)
{
	return RTP_HEADER_BYTES + block_bytes(m, 0);
}

static uint8_t *write_element(const struct mapping *m, uint8_t *at, enum mapping_ext ext,
			      const void *value, size_t bytes)
{
	if (m->is_two_byte) {
		*at++ = m->ext_ids[ext];
		*at++ = (uint8_t)bytes;
	} else {
		*at++ = (uint8_t)((size_t)m->ext_ids[ext] << 4 | (bytes - 1));
	}
	memcpy(at, value, bytes);
	return at + bytes;
}

/* The value of an extension in this packet. @return its length, 0: none */
static size_t value_of(const struct mapping *m, const struct slab *s, enum mapping_ext ext,
		       const void **value)
{
	static const uint8_t unset[3];
	const struct media_packet *p = packet_of_const(s);

	switch (ext) {
	case MAPPING_TRANSPORT_CC:
	case MAPPING_SEND_TIME:
		*value = unset;
		return value_bytes[ext];
	case MAPPING_MID:
		*value = m->mid;
		return m->mid_bytes;
	case MAPPING_AUDIO_LEVEL:
		*value = &p->audio_level;
		return packet_has(p, PACKET_AUDIO_LEVEL) ? 1 : 0;
	case MAPPING_ORIENTATION:
		*value = &p->orientation;
		return packet_has(p, PACKET_ORIENTATION) ? 1 : 0;
	case MAPPING_PLAYOUT_DELAY:
		*value = p->playout_delay;
		return packet_has(p, PACKET_PLAYOUT_DELAY) ? sizeof(p->playout_delay) : 0;
	case MAPPING_CAPTURE_TIME:
		*value = s->data + p->capture_offset;
		return packet_has(p, PACKET_CAPTURE_TIME) ? p->capture_bytes : 0;
	case MAPPING_DESCRIPTOR:
		*value = s->data + p->descriptor_offset;
		return packet_has(p, PACKET_DESCRIPTOR) ? p->descriptor_bytes : 0;
	case MAPPING_EXTS:
		break;
	}
	return 0;
}

size_t mapping_write_header(const struct mapping *m, const struct slab *s, uint8_t *out)
{
	const struct media_packet *p = packet_of_const(s);
	bool has_descriptor = m->ext_ids[MAPPING_DESCRIPTOR] && packet_has(p, PACKET_DESCRIPTOR);
	size_t block = block_bytes(m, has_descriptor ? 2u + p->descriptor_bytes : 0);
	struct rtp_header header = {
		.timestamp = p->timestamp,
		.seq = (uint16_t)p->index,
		.payload_type = m->types[mapping_unpacks(m, p->codec) ? CODEC_OPUS : p->codec],
		.marker = packet_has(p, PACKET_MARKER),
		.has_extension = block > 0,
		.has_padding = packet_has(p, PACKET_PADDED),
	};
	uint8_t *at = out + RTP_HEADER_BYTES + RTP_EXT_HEADER_BYTES;

	assert(mapping_has_codec(m, p->codec));
	rtp_header_write(out, &header);
	if (block == 0)
		return RTP_HEADER_BYTES;
	be16_write(out + RTP_HEADER_BYTES,
		   m->is_two_byte ? EXT_PROFILE_TWO_BYTE : EXT_PROFILE_ONE_BYTE);
	be16_write(out + RTP_HEADER_BYTES + 2, (uint16_t)((block - RTP_EXT_HEADER_BYTES) / 4));
	for (size_t i = 0; i < MAPPING_EXTS; i++) {
		const void *value = NULL;
		size_t bytes = value_of(m, s, (enum mapping_ext)i, &value);

		if (m->ext_ids[i] != 0 && bytes > 0)
			at = write_element(m, at, (enum mapping_ext)i, value, bytes);
	}
	assert(at <= out + RTP_HEADER_BYTES + block);
	memset(at, 0, (size_t)(out + RTP_HEADER_BYTES + block - at));
	return RTP_HEADER_BYTES + block;
}

void mapping_shift_frame(const struct mapping *m, const struct slab *s, uint8_t *header,
			 uint16_t shift)
{
	uint8_t *at = header + RTP_HEADER_BYTES + RTP_EXT_HEADER_BYTES;
	const void *value;

	if (m->ext_ids[MAPPING_DESCRIPTOR] == 0 ||
	    value_of(m, s, MAPPING_DESCRIPTOR, &value) < DESCRIPTOR_FIXED_BYTES)
		return;
	for (size_t i = 0; i < MAPPING_DESCRIPTOR; i++) {
		size_t bytes = m->ext_ids[i] ? value_of(m, s, (enum mapping_ext)i, &value) : 0;

		at += bytes ? bytes + 1 + m->is_two_byte : 0;
	}
	at += 1 + m->is_two_byte + 1; /* the element's head, then flags and template id */
	be16_write(at, (uint16_t)(be16_read(at) + shift));
}
