/* media/round_trip.h - the round trip to a peer that sends, from what it happens to tell.
 *
 * Answers to our receiver reference times (RFC 3611 section 4.5) are exact. A peer that gives none
 * still answers NACKs: the time from a request to its repair counts where no exact answer came for
 * ROUND_TRIP_EXACT_US. Smoothed as RFC 6298 section 2.
 *
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  plain values.
 */
#ifndef MEDIA_ROUND_TRIP_H
#define MEDIA_ROUND_TRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/rtcp.h"

enum {
	ROUND_TRIP_EXACT_US = 10000000,
	ROUND_TRIP_MAX_US = 10000000, /* a longer one is an error */
	ROUND_TRIP_SLACK_US = 5000,   /* least variation taken into account */
};

struct round_trip {
	uint64_t exact_us;    /* when the last exact sample came */
	uint32_t smoothed_us; /* 0: unknown */
	uint32_t deviation_us;
	bool is_exact;
};

/** Its answer to a reference time of ours.
 *  @param now_ntp the clock that rtcp_write_xr_rrtr() was given, now
 *  @return false: it answers none, or makes no sense */
bool round_trip_on_dlrr(struct round_trip *r, const struct rtcp_dlrr *dlrr, uint64_t now_ntp,
			uint64_t now_us);

/** A packet asked for once came `took_us` later. */
void round_trip_on_repair(struct round_trip *r, uint32_t took_us, uint64_t now_us);

/** How long after a request its answer is to be missed; 0: unknown. */
uint32_t round_trip_patience_us(const struct round_trip *r);

/* The other way round: reference times of a peer that receives, to be answered with the next
 * report. One peer may name several receivers (SSRCs), each with its own. */
enum { REFERENCE_TIMES = 4 };

struct reference_times {
	struct {
		uint32_t ssrc, last_rr;
		uint64_t arrival_us;
	} items[REFERENCE_TIMES];
	uint8_t count, next;
};

void reference_times_note(struct reference_times *t, uint32_t ssrc, uint64_t ntp, uint64_t now_us);

/** What to answer now; each is answered once. @return entries written */
size_t reference_times_take(struct reference_times *t, uint64_t now_us,
			    struct rtcp_dlrr out[REFERENCE_TIMES]);

#endif
