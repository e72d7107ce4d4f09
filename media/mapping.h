/* media/mapping.h - the form in which a viewer gets a track: payload types and extension ids.
 *
 * A plain value, equal for all viewers that negotiated alike. The header of a packet is the same for
 * all viewers of one mapping but for sequence number, timestamp and SSRC, so it is built once with
 * mapping_write_header() and patched per viewer with mapping_patch(). Built twice, it is the same byte
 * for byte: what a repeated seal needs. Where that need not be, since the viewer gets repeats as RTX, the
 * mapping may have values that mapping_stamp() sets anew for each sending.
 *
 * The extension block has one length for every packet of the track (zero padding, RFC 8285), so that a
 * frame's packets make equal segments; a dependency descriptor, being of any length, comes on top.
 *
 * Source:  RFC 3550 section 5.1; RFC 8285; RFC 4588 (RTX payload type).
 * Sans-IO: values in, bytes out.
 * Thread:  any, once filled.
 * Memory:  none.
 */
#ifndef MEDIA_MAPPING_H
#define MEDIA_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/codec.h"
#include "media/packet.h"
#include "pool/bytes.h"

enum {
	MAPPING_NO_TYPE = 255, /* codec or RTX not negotiated */
	MAPPING_MID_MAX_BYTES = 32,
	/* Longest header: fixed part, block header, all values in two-byte form, a descriptor. */
	MAPPING_HEADER_MAX_BYTES = 12 + 4 + 80 + 2 + 255 + 3,
};

/* Extensions that are forwarded or written. In this order they stand in the block: first those whose
 * value is another with each sending, so that their place is the same in every packet. */
enum mapping_ext {
	MAPPING_TRANSPORT_CC,
	MAPPING_SEND_TIME,
	MAPPING_MID,
	MAPPING_AUDIO_LEVEL,
	MAPPING_ORIENTATION,
	MAPPING_PLAYOUT_DELAY,
	MAPPING_CAPTURE_TIME,
	MAPPING_DESCRIPTOR,
	MAPPING_EXTS,
};

struct mapping {
	/* Payload type by enum media_codec, or MAPPING_NO_TYPE. RED without one is unpacked: what it
	 * carries is Opus. */
	uint8_t types[CODECS];
	uint8_t rtx_types[CODECS];     /* of the RTX stream that repeats that codec, likewise */
	uint8_t ext_ids[MAPPING_EXTS]; /* 0: not negotiated; never 15 */
	uint8_t mid_bytes;
	char mid[MAPPING_MID_MAX_BYTES]; /* not terminated, zeros behind mid_bytes */
	/* Set by mapping_seal(): */
	uint8_t is_two_byte;                   /* form of the block, the same in every packet */
	uint8_t fixed_bytes;                   /* of the block's elements, descriptor apart */
	uint8_t transport_cc_at, send_time_at; /* where the values lie in a header; 0: not there */
};

/** No codec, no extension. Then fill in payload types, ids and mid, and mapping_seal(). */
void mapping_init(struct mapping *m);

/** The mid that is written where ext_ids[MAPPING_MID] is set.
 *  @return 0 or -EINVAL: empty or longer than MAPPING_MID_MAX_BYTES */
int mapping_set_mid(struct mapping *m, const char *mid, size_t bytes);

/** Fix the block's form and length. Afterwards the mapping is read-only. */
void mapping_seal(struct mapping *m);

/** Two sealed mappings that write the same headers. */
bool mapping_is_equal(const struct mapping *a, const struct mapping *b);
uint32_t mapping_hash(const struct mapping *m);

/** Bytes of every header without a descriptor; RTX has RTX_OSN_BYTES more. */
size_t mapping_header_bytes(const struct mapping *m);

/** The viewer gets the primary block of RED packets. */
static inline bool mapping_unpacks(const struct mapping *m, uint8_t codec)
{
	return codec == CODEC_RED && m->types[CODEC_RED] == MAPPING_NO_TYPE;
}

static inline bool mapping_has_codec(const struct mapping *m, uint8_t codec)
{
	if (mapping_unpacks(m, codec))
		codec = CODEC_OPUS;
	return codec < CODECS && m->types[codec] != MAPPING_NO_TYPE;
}

static inline bool mapping_has_rtx(const struct mapping *m, uint8_t codec)
{
	return codec < CODECS && m->rtx_types[codec] != MAPPING_NO_TYPE;
}

/**
 * Write the header of a packet: version, P, X, marker, payload type, sequence number = low 16 bits of
 * the index, timestamp as in the packet, SSRC 0, extension block.
 *
 * @param s    a slab that track_on_packet() numbered, of a codec this mapping has
 * @param out  MAPPING_HEADER_MAX_BYTES
 * @return bytes written, multiple of 4
 */
size_t mapping_write_header(const struct mapping *m, const struct slab *s, uint8_t *out);

/** Make a copy of that header one viewer's. */
static inline void mapping_patch(uint8_t *header, uint16_t seq, uint32_t timestamp, uint32_t ssrc)
{
	be16_write(header + 2, seq);
	be32_write(header + 4, timestamp);
	be32_write(header + 8, ssrc);
}

/** Set what is another with each sending: the transport-wide number and the time, 24 bits in units of
 *  2^-18 s, as far as the mapping has them. Not for packets that may be repeated under their number:
 *  a repeat has to be the same. */
static inline void mapping_stamp(const struct mapping *m, uint8_t *header, uint16_t transport_seq,
				 uint64_t now_us)
{
	if (m->transport_cc_at)
		be16_write(header + m->transport_cc_at, transport_seq);
	if (m->send_time_at)
		be24_write(header + m->send_time_at, (uint32_t)((now_us << 18) / 1000000));
}

/** Turn a copy of that header into one of the RTX stream; then mapping_patch() with the RTX stream's
 *  number and SSRC, and the original number as the payload's first RTX_OSN_BYTES.
 *  @param codec the packet's; mapping_has_rtx() */
static inline void mapping_make_rtx(const struct mapping *m, uint8_t *header, uint8_t codec)
{
	header[1] = (uint8_t)((header[1] & 0x80) | m->rtx_types[codec]);
}

/** The payload is padding alone, which ends nothing. */
static inline void mapping_set_padding(uint8_t *header)
{
	header[0] |= 0x20;
	header[1] &= 0x7f;
}

/** Add to the frame number in the dependency descriptor, if `header`, written for this packet, has one. */
void mapping_shift_frame(const struct mapping *m, const struct slab *s, uint8_t *header,
			 uint16_t shift);

/** Where layers are dropped, the last packet forwarded of a picture ends it. */
static inline void mapping_set_marker(uint8_t *header)
{
	header[1] |= 0x80;
}

#endif
