/* media/ext.h - RTP header extensions: which id means what, reading them, writing a block.
 *
 * Source:  RFC 8285 (one- and two-byte forms); each kind's document is named at its URI in ext.c.
 * Sans-IO: bytes in, values out.
 * Thread:  a map belongs to whoever filled it; reading a const map is safe from any thread.
 * Memory:  none. Spans are offsets into the caller's packet.
 */
#ifndef MEDIA_EXT_H
#define MEDIA_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/rtp.h"

enum {
	EXT_PROFILE_ONE_BYTE = 0xBEDE,
	EXT_PROFILE_TWO_BYTE = 0x1000, /* low 4 bits are "appbits", ignored */
	EXT_ONE_BYTE_MAX_ID = 14,
	EXT_ONE_BYTE_MAX_BYTES = 16,
	EXT_ID_RESERVED = 15, /* ends a one-byte block; never assigned here in either form */
	EXT_MAX_ID = 255,
	EXT_BLOCK_MAX_BYTES = 1024, /* longest block ext_block_write() makes, header included */
};

enum ext_kind {
	EXT_MID,
	EXT_RID,
	EXT_REPAIRED_RID,
	EXT_ABS_SEND_TIME,
	EXT_TRANSPORT_CC,
	EXT_AUDIO_LEVEL,
	EXT_VIDEO_ORIENTATION,
	EXT_PLAYOUT_DELAY,
	EXT_ABS_CAPTURE_TIME,
	EXT_DEPENDENCY_DESCRIPTOR,
	EXT_VIDEO_LAYERS_ALLOCATION,
	EXT_KINDS, /* also: "no kind we know" */
};

/** Kind of an SDP extmap URI (uri need not be terminated), EXT_KINDS when unknown. */
enum ext_kind ext_kind_of_uri(const char *uri, size_t len);

/** The URI to write into SDP; static storage. */
const char *ext_uri(enum ext_kind kind);

/** One peer's ids. All-zero is the empty map. */
struct ext_map {
	uint8_t id_of[EXT_KINDS];                 /* 0 = not negotiated */
	uint8_t kind_of[EXT_ONE_BYTE_MAX_ID + 1]; /* kind + 1; read by ext_map_kind() */
};

/**
 * @return 0; -EINVAL: id is 0, EXT_ID_RESERVED or above EXT_MAX_ID; -EEXIST: the id means another
 *         kind, or the kind has another id already (the map is unchanged)
 */
int ext_map_set(struct ext_map *map, enum ext_kind kind, unsigned id);

/** @return EXT_KINDS for an id without a meaning */
enum ext_kind ext_map_kind(const struct ext_map *map, uint8_t id);

/** Part of a packet. bytes = 0: absent (or empty). */
struct ext_span {
	uint16_t offset; /* from the packet's first byte */
	uint8_t bytes;
};

/** What a packet's extensions say. A value whose length is wrong for its kind is absent. */
struct ext_values {
	uint32_t present;                /* bit 1 << kind; test before using a value */
	struct ext_span span[EXT_KINDS]; /* raw value of every present kind */
	uint32_t abs_send_time;          /* 24 bits, unit 2^-18 s, wraps at 64 s */
	uint16_t transport_seq;
	uint8_t audio_level_dbov; /* 0..127, meaning 0..-127 dBov */
	bool audio_is_voice;
	uint8_t orientation;       /* the byte of 3GPP TS 26.114: C, F, R1, R0 in the low bits */
	uint16_t playout_min_10ms; /* 12 bits, unit 10 ms */
	uint16_t playout_max_10ms;
	uint64_t capture_ntp; /* Q32.32 s since 1900, capture clock */
	bool has_capture_offset;
	int64_t capture_offset_ntp; /* Q32.32 s, capture clock's offset to the sender's */
};

static inline bool ext_has(const struct ext_values *v, enum ext_kind kind)
{
	return v->present >> kind & 1;
}

/**
 * Read a packet's extensions. A block that breaks its own bounds, or an unknown profile, ends the
 * reading and keeps what came before: a bad extension never costs the packet. Of repeated kinds
 * the last counts.
 *
 * @param bytes the packet that rtp_parse() accepted as *rtp
 */
void ext_read(const struct ext_map *map, const uint8_t *bytes, const struct rtp_packet *rtp,
	      struct ext_values *out);

/** One element as it lies in a block. */
struct ext_element {
	const uint8_t *data;
	uint8_t bytes; /* 0..255 */
	uint8_t id;    /* 1..255, never 15 in a one-byte block */
};

struct ext_cursor {
	const uint8_t *at, *end;
	bool two_byte;
};

/** Elements of any packet that rtp_parse() accepted; none when the profile is not RFC 8285's. */
void ext_cursor_init(struct ext_cursor *c, const uint8_t *bytes, const struct rtp_packet *rtp);

/** @return false at the end, at id 15 of a one-byte block, and at an element that is cut off */
bool ext_cursor_next(struct ext_cursor *c, struct ext_element *out);

/** Shortest block for these elements: header included, multiple of 4; 0 for n = 0. */
size_t ext_block_bytes(const struct ext_element *elements, size_t n);

/**
 * Write a complete extension block (header, elements, zero padding) of exactly block_bytes: the
 * one-byte form where every id is at most 14 and every length 1..16, else the two-byte form.
 *
 * @param block_bytes multiple of 4, at least RTP_EXT_HEADER_BYTES, at most EXT_BLOCK_MAX_BYTES
 * @return 0 or -ENOSPC: the elements need more (out is unchanged)
 */
int ext_block_write(uint8_t *out, size_t block_bytes, const struct ext_element *elements, size_t n);

#endif
