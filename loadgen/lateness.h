/* loadgen/lateness.h - whether what comes late comes late to all viewers alike.
 *
 * A unit (a frame of video, a packet of audio) is late when it is among the slowest 1 in 100 of all
 * viewers' units, rounded up to a whole step of the scale. Which delay that is shows at the end only,
 * so each viewer keeps a coarse distribution of its own.
 *
 * Sans-IO: values only.
 * Thread:  one.
 * Memory:  a plain value of 1 KB.
 */
#ifndef LOADGEN_LATENESS_H
#define LOADGEN_LATENESS_H

#include <stdint.h>

enum {
	LATENESS_STEPS = 16,    /* between one power of two of microseconds and the next */
	LATENESS_BUCKETS = 256, /* up to 2 s; larger ones count there */
	LATENESS_ONE_IN = 100,  /* units are late, or a few more */
};

struct lateness {
	uint32_t units[LATENESS_BUCKETS];
};

void lateness_add(struct lateness *l, uint64_t latency_us);

/** The sum of all viewers grows by one viewer. */
void lateness_merge(struct lateness *all, const struct lateness *one);

/** What lateness_share() calls late: the first late bucket, by the sum of all viewers. */
unsigned lateness_bound(const struct lateness *all);

/** The longest delay that is not late yet. @param bound from lateness_bound() */
uint64_t lateness_bound_us(unsigned bound);

/** @return late units over units, 0 to 1; 0 when there were none */
double lateness_share(const struct lateness *l, unsigned bound);

#endif
