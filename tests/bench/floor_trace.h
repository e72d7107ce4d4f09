/* tests/bench/floor_trace.h - what one viewer gets, pass by pass: the traffic that the floor replays.
 *
 * Text, one thing a line; '#' begins a comment:
 *
 *     period 1000000          the trace repeats after so many microseconds
 *     pass 33333              what follows left at this time, in rising order
 *     message                 what follows is one message
 *     video 20 1164 end       a segment: RTP header and payload bytes without the tag; `end` marks
 *     audio 20 160            the last packet of a frame
 *
 * Thread:  one.
 * Memory:  allocated when made.
 */
#ifndef BENCH_FLOOR_TRACE_H
#define BENCH_FLOOR_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	TRACE_PASSES = 8192,
	TRACE_SEGMENTS = 65536,
	TRACE_PASS_SEGMENTS = 64,
	TRACE_MIN_PAYLOAD_BYTES = 48, /* room for what the feeder writes about the packet */
	TRACE_MAX_PAYLOAD_BYTES = 1400,
	TRACE_MAX_HEADER_BYTES = 64,
	TRACE_TICK_US = 5000,      /* browsers send a burst every tick ... */
	TRACE_BURST_PERCENT = 250, /* ... at this part of the video's rate */
};

enum trace_kind { TRACE_AUDIO, TRACE_VIDEO, TRACE_KINDS };

struct trace_segment {
	uint16_t header_bytes, payload_bytes;
	uint8_t kind;
	bool begins_message, ends_frame;
};

struct trace_pass {
	uint64_t at_us;
	uint32_t first, count; /* of the segments */
};

/* When the feeder sends the source packet of a segment. */
struct trace_event {
	uint64_t at_us;
	uint32_t pass, segment;
	bool runs_pass; /* the last of its pass */
};

struct trace {
	uint64_t period_us;
	uint32_t pass_count, segment_count, message_count;
	struct trace_pass passes[TRACE_PASSES];
	struct trace_segment segments[TRACE_SEGMENTS];
	struct trace_event events[TRACE_SEGMENTS]; /* by time; trace_schedule() */
};

/** One second of VP8 at 30 frames/s with 5 packets a frame, and 50 Opus packets. Frames leave whole,
 *  audio by itself. @return NULL without memory */
struct trace *trace_create_default(void);

/** @return NULL without memory, or when the file cannot be read or understood: stderr says where */
struct trace *trace_create_from(FILE *file);
void trace_destroy(struct trace *t);

/** Fill in the events: the packets of a pass at once, or as browsers send them. */
void trace_schedule(struct trace *t, bool as_browser);

#endif
