/* server/stream.h - what all threads share of one stream.
 *
 * Thread: name, slot and generation never change. `publisher` is written by the worker that feeds
 *         the stream, `wanted` by each worker for its own bit; both are read by anyone, relaxed:
 *         a stale value costs a packet or a request, which the next one repairs.
 * Memory: counted references; the last one frees.
 */
#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "media/answer.h"

enum {
	STREAM_NAME_BYTES = 65, /* 1 to 64 characters and the terminator */
	STREAM_TRACKS = NEGOTIATED_KINDS,
	STREAM_ENCODINGS = 4, /* of the video, at most */
	STREAM_LANES = 1 + STREAM_ENCODINGS,
	STREAM_MAX_WORKERS = 64,
};

_Static_assert(MEDIA_AUDIO == 0 && MEDIA_VIDEO == 1, "lanes: the audio, then video's encodings");

/* A lane carries one sequence of packets: the audio, or one encoding of the video. */
static inline unsigned stream_lane(unsigned kind, unsigned encoding)
{
	return kind + encoding;
}

static inline unsigned stream_lane_kind(unsigned lane)
{
	return lane < MEDIA_VIDEO ? MEDIA_AUDIO : MEDIA_VIDEO;
}

/* Names a session wherever it lives: worker, place in its table, and a count that makes a reused
 * place another session. Packs into one word; 0 is none. */
struct session_ref {
	uint8_t worker;
	uint32_t slot; /* below 2^24 - 1 */
	uint32_t generation;
};

static inline uint64_t session_ref_pack(struct session_ref r)
{
	return (uint64_t)r.worker << 56 | (uint64_t)(r.slot + 1) << 32 | r.generation;
}

static inline struct session_ref session_ref_unpack(uint64_t word)
{
	return (struct session_ref){
		.worker = (uint8_t)(word >> 56),
		.slot = ((uint32_t)(word >> 32) & 0xffffff) - 1,
		.generation = (uint32_t)word,
	};
}

struct stream {
	_Atomic uint32_t refs;
	uint32_t slot;              /* in every worker's branch table */
	uint32_t generation;        /* makes a reused slot another stream */
	_Atomic uint64_t publisher; /* session_ref of who feeds it, 0: nobody */
	_Atomic uint64_t wanted;    /* bit i: worker i has viewers of it */
	_Atomic uint32_t viewers;
	char name[STREAM_NAME_BYTES];
};

/** One reference. @return NULL without memory */
struct stream *stream_create(const char *name, uint32_t slot, uint32_t generation);
struct stream *stream_ref(struct stream *s);
void stream_unref(struct stream *s);
/** Streams alive in the process. */
uint32_t stream_live(void);

#endif
