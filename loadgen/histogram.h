/* loadgen/histogram.h - how a quantity is distributed, to 1 part in 64.
 *
 * Sans-IO: values only.
 * Thread:  one.
 * Memory:  a plain value of 20 KB.
 */
#ifndef LOADGEN_HISTOGRAM_H
#define LOADGEN_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_STEPS = 64,   /* between one power of two and the next */
	HISTOGRAM_OCTAVES = 40, /* up to 2^45: a year in microseconds; larger ones count there */
};

struct histogram {
	uint64_t count, max;
	uint64_t buckets[HISTOGRAM_STEPS * HISTOGRAM_OCTAVES];
};

/** The bucket of a value: one each below HISTOGRAM_STEPS, then HISTOGRAM_STEPS to an octave. */
unsigned histogram_bucket(uint64_t value);

/** The largest value of a bucket. */
uint64_t histogram_top(unsigned bucket);

void histogram_init(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t value);

/** The smallest value that at least `permille` of 1,000 values do not exceed, rounded up to its
 *  step but never above the maximum; 0 when empty. */
uint64_t histogram_quantile(const struct histogram *h, unsigned permille);

#endif
