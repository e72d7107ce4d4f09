/* media/bwe_aimd.h - the rate that the delay allows: down by a factor, up by a factor or by steps.
 *
 * Overuse sets the rate to 85 % of what arrived. Then it grows again: by steps of about half a packet
 * per response time while what arrives is near the rate at which overuse was met before, by 8 % a second
 * where that is not known or outgrown. Where less is sent than would be allowed, a short queue may be a
 * mere burst, and what arrives is not what could: then the rate goes down by 15 % only. It never grows far beyond what arrives: a link that is not used
 * proves nothing.
 *
 * Source:  draft-ietf-rmcat-gcc-02 section 5.5.
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  caller's storage, plain values.
 */
#ifndef MEDIA_BWE_AIMD_H
#define MEDIA_BWE_AIMD_H

#include "media/bwe_trend.h"

struct bwe_aimd {
	double bps;
	double capacity_bps; /* mean of what arrived when overuse was met; 0: unknown */
	double deviation;    /* its variance, relative to the mean */
	bool is_growing;     /* else it waits for a queue to drain */
	uint64_t changed_us; /* last change of the rate */
	uint64_t lowered_us; /* last decrease; 0: none */
};

struct bwe_aimd_input {
	enum bwe_usage usage;
	uint64_t acked_bps; /* arrived lately, over long enough to be steady; 0: unknown */
	uint64_t
	    recent_bps;  /* the same over a shorter time: while a queue grows, the link's rate */
	double queue_ms; /* waiting on the way */
	uint32_t rtt_us;
	uint64_t now_us;
};

void bwe_aimd_init(struct bwe_aimd *a, double bps, uint64_t now_us);

/** Follow the newest feedback. */
void bwe_aimd_update(struct bwe_aimd *a, const struct bwe_aimd_input *in);

/** The link has been shown to carry that much. Lower than the rate: no effect. */
void bwe_aimd_raise(struct bwe_aimd *a, double bps, uint64_t now_us);

#endif
