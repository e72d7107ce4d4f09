/* net/framing.h - packets in a byte stream: where each begins and ends, and those that wait to leave.
 *
 * Source:  RFC 4571 section 2 (two bytes of length, then the packet), as RFC 6544 section 3 wants
 *          it for STUN, DTLS and media alike.
 * Sans-IO: bytes go in and out; nothing here reads a socket or a clock.
 * Thread:  the owner's.
 * Memory:  a reader none; a queue one allocation when the first byte has to wait.
 */
#ifndef NET_FRAMING_H
#define NET_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "pool/slab.h"

enum {
	FRAME_HEADER_BYTES = 2,
	FRAME_MAX_BYTES = SLAB_DATA_BYTES, /* no WebRTC packet is longer; who says so is lost */
	FRAME_READER_BYTES = 2 * (FRAME_HEADER_BYTES + FRAME_MAX_BYTES),
	FRAME_QUEUE_BYTES = 256 * 1024, /* that wait for a slow peer: half a second of 4 Mbit/s */
};

/* What was read of a stream, ahead of what was taken from it. Zeroed memory is an empty one. */
struct frame_reader {
	uint16_t from, have; /* bytes[from .. have) are not taken yet */
	uint8_t bytes[FRAME_READER_BYTES];
};

enum frame_next {
	FRAME_MORE,      /* no whole packet is here */
	FRAME_READY,     /* `bytes` and `len` are set */
	FRAME_OVERSIZED, /* longer than FRAME_MAX_BYTES: the stream cannot be read any further */
};

/** Where to put what is read next, and at most how much: never 0 after FRAME_MORE. */
uint8_t *frame_reader_room(struct frame_reader *r, size_t *bytes);
/** So much was put there. */
void frame_reader_added(struct frame_reader *r, size_t bytes);

/** The first packet, left where it is. Empty ones, which RFC 4571 allows, are skipped.
 *  @param bytes valid until the next frame_reader_room() */
enum frame_next frame_reader_peek(struct frame_reader *r, uint8_t **bytes, size_t *len);
/** Take the packet that frame_reader_peek() showed. */
void frame_reader_skip(struct frame_reader *r);

/* Bytes that wait to be written: whole packets with their lengths, the first one perhaps begun.
 * Zeroed memory is an empty one. */
struct frame_queue {
	uint8_t *bytes; /* a ring of FRAME_QUEUE_BYTES; NULL while nothing has waited */
	uint32_t from, used;
};

/**
 * Append a packet, but for its first `skip` bytes (its two of length count), which were written.
 *
 * @return 0, -ENOBUFS (full: nothing was appended) or -ENOMEM
 */
int frame_queue_push(struct frame_queue *q, const uint8_t *bytes, size_t len, size_t skip);

/** What to write next, in up to two pieces. @return how many; 0: nothing waits */
int frame_queue_peek(const struct frame_queue *q, struct iovec out[2]);
/** So many bytes of it were written. */
void frame_queue_skip(struct frame_queue *q, size_t bytes);

static inline bool frame_queue_is_empty(const struct frame_queue *q)
{
	return q->used == 0;
}

/** Give the memory back; what waits is lost. Empty afterwards. */
void frame_queue_release(struct frame_queue *q);

#endif
