#include "loadgen/lateness.h"

#include "loadgen/histogram.h"

enum { MERGED = HISTOGRAM_STEPS / LATENESS_STEPS }; /* buckets of a histogram to one of ours */

void lateness_add(struct lateness *l, uint64_t latency_us)
{
	unsigned bucket = histogram_bucket(latency_us) / MERGED;

	l->units[bucket < LATENESS_BUCKETS ? bucket : LATENESS_BUCKETS - 1]++;
}

void lateness_merge(struct lateness *all, const struct lateness *one)
{
	for (unsigned i = 0; i < LATENESS_BUCKETS; i++)
		all->units[i] += one->units[i];
}

static uint64_t units_from(const struct lateness *l, unsigned bucket)
{
	uint64_t units = 0;

	for (unsigned i = bucket; i < LATENESS_BUCKETS; i++)
		units += l->units[i];
	return units;
}

unsigned lateness_bound(const struct lateness *all)
{
	uint64_t units = units_from(all, 0), late = 0;
	unsigned bound = LATENESS_BUCKETS;

	while (bound > 0 && late * LATENESS_ONE_IN < units)
		late += all->units[--bound];
	return bound;
}

uint64_t lateness_bound_us(unsigned bound)
{
	return bound > 0 ? histogram_top(bound * MERGED - 1) : 0;
}

double lateness_share(const struct lateness *l, unsigned bound)
{
	uint64_t units = units_from(l, 0);

	return units > 0 ? (double)units_from(l, bound) / (double)units : 0;
}
