/* media/pacer.h - when a viewer's next packets may leave, so that a large frame does not fill its link.
 *
 * A viewer's video leaves at PACER_FACTOR times the estimate of its link. An ordinary frame is within
 * what may leave at once; a key frame is cut into parts. What has been passed over is sent first: where
 * the rate does not carry the backlog in time, it is raised. Audio never asks, it only counts.
 *
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  caller's storage, plain values.
 */
#ifndef MEDIA_PACER_H
#define MEDIA_PACER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PACER_FACTOR_PERCENT = 250,  /* of the estimate */
	PACER_BURST_US = 20000,      /* so much of the pace leaves at once */
	PACER_PART_US = 10000,       /* then parts of this size */
	PACER_MAX_DELAY_US = 500000, /* a backlog is gone after that, whatever the estimate */
};

struct pacer {
	double us_per_byte;
	double needed_per_us; /* bytes, for the backlog; until there is none */
	uint64_t free_us;     /* when what was sent has left, at the pace */
	uint64_t resume_us;   /* nothing before it; 0: free to send */
};

/** @param target_bps the estimate, above 0 */
void pacer_init(struct pacer *p, uint64_t target_bps);

/** The pace from now on. @param backlog_bytes that wait to be sent */
void pacer_set_rate(struct pacer *p, uint64_t target_bps, uint64_t backlog_bytes);

/** May the next video packet leave? */
static inline bool pacer_may_send(const struct pacer *p, uint64_t now_us)
{
	return now_us >= p->resume_us;
}

/** A packet of any kind left. */
void pacer_on_sent(struct pacer *p, uint32_t bytes, uint64_t now_us);

/** From when on pacer_may_send() says yes; in the past where it does already. */
static inline uint64_t pacer_due_us(const struct pacer *p)
{
	return p->resume_us;
}

#endif
