/* media/red.h - redundant audio: one packet that repeats the ones before it.
 *
 * A RED payload is a list of block headers, the redundant blocks, and the primary one, which is the
 * packet that would have been sent alone. The relay passes it on to viewers that agreed to RED and the
 * primary block alone to the others.
 *
 * Source:  RFC 2198 section 3: four bytes a redundant block (F bit and payload type, timestamp offset
 *          of 14 bits, length of 10), one byte for the primary.
 * Sans-IO: bytes in, values out.
 * Thread:  any.
 * Memory:  none.
 */
#ifndef MEDIA_RED_H
#define MEDIA_RED_H

#include <stddef.h>
#include <stdint.h>

enum {
	RED_MAX_REDUNDANT = 9, /* blocks; libwebrtc sends at most so many */
	RED_BLOCK_HEADER_BYTES = 4,
	RED_MAX_HEADER_BYTES = RED_MAX_REDUNDANT * RED_BLOCK_HEADER_BYTES + 1,
};

/**
 * The length of all block headers.
 *
 * @param pt payload type that every block must have: the agreed codec's
 * @return 0: no RED payload, too many blocks, one of another payload type, or no primary block
 */
size_t red_header_bytes(const uint8_t *payload, size_t len, uint8_t pt);

/** Where the primary block begins; it reaches to the end.
 *  @param payload red_header_bytes() found it good */
size_t red_primary_offset(const uint8_t *payload);

/** The block headers as a viewer gets them whose payload type for the codec is `pt`.
 *  @param payload likewise
 *  @return bytes written, which take the place of as many of the payload */
size_t red_write_header(const uint8_t *payload, uint8_t pt, uint8_t out[RED_MAX_HEADER_BYTES]);

#endif
