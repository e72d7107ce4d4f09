/* media/align.h - one RTP timeline for all encodings of a video track.
 *
 * Each encoding counts its RTP timestamps from a number of its own. Viewers that go from one to
 * another need them on one timeline, on which pictures of one instant have one timestamp. The first
 * encoding that sends is the reference: it is never moved. The others are placed by the arrival of
 * their first frame, then drawn to where sender reports put them, and at last onto the timestamps
 * of the reference's own frames, by steps of half a millisecond each tenth of a second: so little
 * that no viewer notices. All packets of one frame get one timestamp, late ones too.
 *
 * The timeline outlives publishers: align_start() at each change, and the next one's continues
 * behind it.
 *
 * Source:  RFC 3550 section 6.4.1 (NTP and RTP timestamps of the same instant).
 * Sans-IO: time is an argument: microseconds of the worker's monotonic clock.
 * Thread:  the publisher's worker.
 * Memory:  caller's storage, a plain value.
 */
#ifndef MEDIA_ALIGN_H
#define MEDIA_ALIGN_H

#include <stdbool.h>
#include <stdint.h>

enum {
	ALIGN_ENCODINGS = 4,
	ALIGN_STEPS = 32,          /* moves remembered, for packets that come late */
	ALIGN_FRAMES = 16,         /* frames of the reference remembered */
	ALIGN_STEP_US = 500,       /* at most, ... */
	ALIGN_EVERY_US = 100000,   /* ... each time this has passed */
	ALIGN_SNAP_US = 5000,      /* frames this near belong to one picture */
	ALIGN_REPORT_US = 1000000, /* a report that is further off is not believed */
	ALIGN_JUMP_US =
	    2000000, /* a source further off its arrival than this began to count anew */
};

struct align_step {
	uint32_t from;   /* of the source's timestamps: in force from this one on */
	uint32_t offset; /* added modulo 2^32 */
};

struct align_encoding {
	bool is_started, has_report;
	uint32_t newest;                      /* source's timestamp */
	uint64_t newest_us;                   /* its first arrival */
	uint64_t moved_us;                    /* last step */
	uint64_t report_ntp_us;               /* publisher's wall clock, microseconds */
	uint32_t report_rtp;                  /* source's timestamp then */
	uint8_t step_at;                      /* newest of steps */
	struct align_step steps[ALIGN_STEPS]; /* a ring */
};

struct align {
	uint32_t clock_hz;
	bool has_output;
	uint32_t newest; /* timestamp given, the highest */
	uint64_t newest_us;
	int8_t reference; /* -1: none yet */
	uint8_t frame_at, frame_count;
	uint32_t frames[ALIGN_FRAMES]; /* of the reference, as given; a ring */
	struct align_encoding encodings[ALIGN_ENCODINGS];
};

/** @param clock_hz above 0 */
void align_init(struct align *a, uint32_t clock_hz);

/** Another publisher: where its encodings count is unknown; the timeline goes on. */
void align_start(struct align *a);

/**
 * The timestamp on the common timeline. A source whose timestamps jump (more than ALIGN_JUMP_US away
 * from the wall clock) is placed anew.
 *
 * @param encoding below ALIGN_ENCODINGS
 */
uint32_t align_on_packet(struct align *a, unsigned encoding, uint32_t timestamp,
			 uint64_t arrival_us);

/** A sender report of that encoding. @param ntp_us microseconds since 1900, clock_us_of_ntp() */
void align_on_sr(struct align *a, unsigned encoding, uint64_t ntp_us, uint32_t rtp);

/** What is added now to timestamps of that encoding, for anchors of media/clock.h. */
uint32_t align_offset(const struct align *a, unsigned encoding);

#endif
