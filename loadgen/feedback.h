/* loadgen/feedback.h - transport-wide feedback of one viewer, sent as often as browsers send it.
 *
 * At a steady beat all arrivals since the last one are told. The beat follows the rate of what comes:
 * feedback takes FEEDBACK_SHARE_PERCENT of it, within limits.
 *
 * Source:  draft-holmer-rmcat-transport-wide-cc-extensions-01.
 * Sans-IO: time is an argument.
 * Thread:  one.
 * Memory:  allocated at creation, 17 KB; none after it.
 */
#ifndef LOADGEN_FEEDBACK_H
#define LOADGEN_FEEDBACK_H

#include <stdint.h>

#include "media/rtcp.h"

enum {
	FEEDBACK_FIRST_US = 100000, /* the beat until a rate is known */
	FEEDBACK_MIN_US = 50000,
	FEEDBACK_MAX_US = 250000,
	FEEDBACK_SHARE_PERCENT = 5,
	FEEDBACK_BYTES = 68,        /* of one datagram with its headers, for that share */
	FEEDBACK_RATE_US = 1000000, /* the rate is measured over so long */
};

struct feedback;

/** @return 0 or -ENOMEM. *out is the caller's, NULL on failure */
int feedback_create(struct feedback **out);
void feedback_destroy(struct feedback *f); /* NULL is allowed */

/** A packet with this transport-wide number came. @param bytes of its datagram */
void feedback_on_packet(struct feedback *f, uint16_t seq, uint32_t bytes, uint64_t now_us);

/** When to call feedback_write(); UINT64_MAX before the first packet. */
uint64_t feedback_due_us(const struct feedback *f);

/**
 * Append one feedback, and move on to the next beat. What does not fit is told at once by another call,
 * into another packet: feedback_due_us() is not later then.
 *
 * @return numbers told of; 0: nothing came since, and nothing was written, or it is not due
 */
int feedback_write(struct feedback *f, struct rtcp_writer *w, uint32_t sender_ssrc,
		   uint32_t media_ssrc, uint64_t now_us);

#endif
