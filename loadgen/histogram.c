#include "loadgen/histogram.h"

#include <string.h>

enum { BUCKETS = HISTOGRAM_STEPS * HISTOGRAM_OCTAVES, STEP_BITS = 6 };

_Static_assert(1 << STEP_BITS == HISTOGRAM_STEPS, "bucket_of() shifts by it");

void histogram_init(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
}

/* Values below HISTOGRAM_STEPS have a bucket each; above, the leading bit chooses the octave and
 * the STEP_BITS behind it the step. */
static unsigned bucket_of(uint64_t value)
{
	unsigned shift, bucket;

	if (value < HISTOGRAM_STEPS)
		return (unsigned)value;
	shift = 63 - STEP_BITS - (unsigned)__builtin_clzll(value);
	bucket = (shift + 1) * HISTOGRAM_STEPS + (unsigned)(value >> shift) - HISTOGRAM_STEPS;
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static uint64_t top_of(unsigned bucket)
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
	h->buckets[bucket_of(value)]++;
}

uint64_t histogram_quantile(const struct histogram *h, unsigned permille)
{
	uint64_t wanted = (h->count * permille + 999) / 1000, sum = 0;

	for (unsigned i = 0; i < BUCKETS && h->count > 0; i++) {
		sum += h->buckets[i];
		if (sum >= wanted && sum > 0)
			return i < BUCKETS - 1 && top_of(i) < h->max ? top_of(i) : h->max;
	}
	return 0;
}
