/* media/rtp.h - the RTP header: found in a datagram, written into one, and its arithmetic.
 *
 * Source:  RFC 3550 section 5.1 (header), 5.3.1 (extension), A.1 (order of sequence numbers);
 *          RFC 5761 section 4 (telling RTCP from RTP); RFC 7983 (first byte 128 to 191).
 * Sans-IO: bytes in, values out. Nothing is kept between calls.
 * Thread:  any; no shared state.
 * Memory:  none. Offsets point into the caller's bytes.
 */
#ifndef MEDIA_RTP_H
#define MEDIA_RTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RTP_HEADER_BYTES = 12,    /* fixed part, no CSRC */
	RTP_EXT_HEADER_BYTES = 4, /* profile and length, before the extension's data */
	RTP_PACKET_MAX_BYTES = 65535,
	RTP_SEQ_CYCLE = 1 << 16,
};

/** What is wrong with a datagram; each is normal input, to be counted and dropped. */
enum rtp_verdict {
	RTP_OK,
	RTP_SHORT,         /* fixed header or CSRC list cut off; or above RTP_PACKET_MAX_BYTES */
	RTP_BAD_VERSION,   /* not version 2 */
	RTP_BAD_EXTENSION, /* extension longer than the packet */
	RTP_BAD_PADDING,   /* count 0, or more than what follows the header */
	RTP_VERDICTS,
};

/** A parsed packet: host order; offsets from the packet's first byte. */
struct rtp_packet {
	uint32_t timestamp;
	uint32_t ssrc;
	uint16_t seq;
	uint16_t ext_profile;    /* 0xBEDE, 0x100x or another's; 0 and ext_bytes 0 without X */
	uint16_t ext_offset;     /* first byte after the 4-byte extension header */
	uint16_t ext_bytes;      /* multiple of 4, without that header */
	uint16_t payload_offset; /* = length of the whole header */
	uint16_t payload_bytes;  /* without padding; 0 is a padding-only or empty packet */
	uint8_t payload_type;    /* 0..127 */
	uint8_t csrc_count;      /* 0..15; the list starts at RTP_HEADER_BYTES */
	uint8_t padding_bytes;   /* after the payload, count byte included; 0 without P */
	bool marker;
};

/**
 * Parse a plaintext packet (also the clear header of a sealed one, see rtp_parse_header()).
 *
 * @param out filled on RTP_OK only
 * @return RTP_OK or what is wrong
 */
enum rtp_verdict rtp_parse(const uint8_t *bytes, size_t len, struct rtp_packet *out);

/**
 * As rtp_parse(), but padding is left alone, since its count is still encrypted: payload_bytes
 * runs to the end of the packet and padding_bytes is 0. Never returns RTP_BAD_PADDING.
 */
enum rtp_verdict rtp_parse_header(const uint8_t *bytes, size_t len, struct rtp_packet *out);

/** RTCP on a multiplexed port: version 2 and packet type 192 to 223 (RFC 5761 section 4). */
static inline bool rtp_is_rtcp(const uint8_t *bytes, size_t len)
{
	return len >= 2 && bytes[0] >> 6 == 2 && bytes[1] >= 192 && bytes[1] <= 223;
}

/** The fixed header to write: version 2, no CSRC. */
struct rtp_header {
	uint32_t timestamp;
	uint32_t ssrc;
	uint16_t seq;
	uint8_t payload_type; /* 0..127 */
	bool marker;
	bool has_extension; /* an extension block (ext_block_write()) follows */
	bool has_padding;
};

/** Write RTP_HEADER_BYTES bytes to out. */
void rtp_header_write(uint8_t *out, const struct rtp_header *h);

/**
 * Write RTP padding of `count` bytes (zeros, then the count) to out and nothing else; the caller
 * sets P in the header. @param count 1..255
 */
void rtp_padding_write(uint8_t *out, uint8_t count);

/** a minus b in serial arithmetic: -32768..32767, above 0 when a comes after b. */
static inline int rtp_seq_diff(uint16_t a, uint16_t b)
{
	return (int16_t)(uint16_t)(a - b);
}

static inline bool rtp_seq_is_newer(uint16_t a, uint16_t b)
{
	return rtp_seq_diff(a, b) > 0;
}

/** a minus b in ticks, above 0 when a is later. */
static inline int32_t rtp_timestamp_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

/**
 * The extended number nearest to `reference` whose low 16 bits are seq; of two equally near
 * (32,768 away) the older, as rtp_seq_diff(). A number before 0 does not exist: what would be
 * one is taken as ahead. Who must see packets older than its first starts in cycle 1:
 * reference = RTP_SEQ_CYCLE + first seq.
 */
static inline uint64_t rtp_seq_unwrap(uint64_t reference, uint16_t seq)
{
	int step = rtp_seq_diff(seq, (uint16_t)reference);

	if (step < 0 && (uint64_t)-step > reference)
		return reference + (uint64_t)(step + RTP_SEQ_CYCLE);
	return reference + (uint64_t)step;
}

#endif
