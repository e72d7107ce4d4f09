/* media/clock.h - the publisher's clocks read on the relay's clock.
 *
 * A publisher's sender reports pair its wall clock (NTP) with each SSRC's RTP clock. The relay keeps
 * ONE offset from that wall clock to its own monotonic clock, shared by all the publisher's SSRCs, so
 * that audio and video stay in step whatever the network does to single reports. From it follow
 * anchors: "at relay time at_us this track's RTP clock shows rtp", from which a viewer's sender reports
 * extrapolate. Before the publisher's first report there is none.
 *
 * Source:  RFC 3550 section 6.4.1 (NTP and RTP timestamps of the same instant).
 * Sans-IO: time is an argument: microseconds of the relay's monotonic clock; NTP is Q32.32 seconds
 *          since 1900.
 * Thread:  struct clock: the publisher's worker. Anchors are values, copied to other workers.
 * Memory:  caller's storage, plain values.
 */
#ifndef MEDIA_CLOCK_H
#define MEDIA_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	CLOCK_TRACKS = 16,         /* SSRCs of one publisher that may have sender reports */
	CLOCK_STEP_US = 1000000,   /* a larger change of the offset is a wall clock that was set */
	CLOCK_FOLLOW_DIVISOR = 32, /* a later report moves the offset by this part of its excess */
};

struct clock_anchor {
	uint64_t at_us;    /* relay time */
	uint32_t rtp;      /* the track's RTP clock then, as viewers see it */
	uint32_t clock_hz; /* 0: no anchor, no sender report */
};

struct clock_source {
	uint64_t ntp_us; /* of its last report, on the publisher's wall clock */
	uint32_t rtp;
	uint32_t clock_hz; /* 0: no report yet */
};

struct clock {
	int64_t offset_us; /* relay time minus the publisher's wall clock */
	bool has_offset;
	struct clock_source sources[CLOCK_TRACKS];
};

/** A new publisher: nothing is known. */
void clock_init(struct clock *c);

/**
 * A sender report arrived. Afterwards every track's anchor may have moved: hand all of them on.
 *
 * @param source   which of the publisher's SSRCs, below CLOCK_TRACKS
 * @param clock_hz above 0
 */
void clock_on_sr(struct clock *c, unsigned source, uint64_t ntp, uint32_t rtp, uint32_t clock_hz,
		 uint64_t arrival_us);

/**
 * The anchor of one track as its viewers see it.
 *
 * @param timestamp_offset what the track adds to this source's timestamps (track_timestamp_offset())
 * @return false, and clock_hz 0: that source has no report yet
 */
bool clock_anchor(const struct clock *c, unsigned source, uint32_t timestamp_offset,
		  struct clock_anchor *out);

/** The RTP clock at relay time now_us, before or after the anchor. @param a with clock_hz above 0 */
uint32_t clock_anchor_rtp(const struct clock_anchor *a, uint64_t now_us);

/** Microseconds since 1900 of an NTP time, and back; exact to one microsecond. */
uint64_t clock_us_of_ntp(uint64_t ntp);
uint64_t clock_ntp_of_us(uint64_t us_since_1900);

/** NTP of a Unix time in microseconds. */
uint64_t clock_ntp_of_unix_us(uint64_t unix_us);

#endif
