#include "loadgen/histogram.h"

#include <string.h>

enum { BUCKETS = HISTOGRAM_STEPS * HISTOGRAM_OCTAVES, STEP_BITS = 6 };

_Static_assert(1 << STEP_BITS == HISTOGRAM_STEPS, "histogram_bucket() shifts by it");

void histogram_init(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
}

/* Values below HISTOGRAM_STEPS have a bucket each; above, the leading bit chooses the octave and
 * the STEP_BITS behind it the step. */
unsigned histogram_bucket(uint64_t value)
{
	unsigned shift, bucket;

	if (value < HISTOGRAM_STEPS)
		return (unsigned)value;
	shift = 63 - STEP_BITS - (unsigned)__builtin_clzll(value);
	bucket = (shift + 1) * HISTOGRAM_STEPS + (unsigned)(value >> shift) - HISTOGRAM_STEPS;
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

uint64_t histogram_top(unsigned bucket)
{
	unsigned shift;

	if (bucket < HISTOGRAM_STEPS)
		return bucket;
	shift = bucket / HISTOGRAM_STEPS - 1;
	return ((uint64_t)(HISTOGRAM_STEPS + bucket % HISTOGRAM_STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	h->count++;
	if (value > h->max)
		h->max = value;
	h->buckets[histogram_bucket(value)]++;
}

uint64_t histogram_quantile(const struct histogram *h, unsigned permille)
{
	uint64_t wanted = (h->count * permille + 999) / 1000, sum = 0;

	for (unsigned i = 0; i < BUCKETS && h->count > 0; i++) {
		sum += h->buckets[i];
		if (sum >= wanted && sum > 0)
			return i < BUCKETS - 1 && histogram_top(i) < h->max ? histogram_top(i)
									    : h->max;
	}
	return 0;
}
