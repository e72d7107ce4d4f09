/* server/strangers.c - see strangers.h for the contract. */
#include "server/strangers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, PREFIX_BYTES = 8 };

/* Failures spent so far, paid back with time: zero is a clean slate, so that calloc() is init. */
struct bucket {
	uint64_t at_us;
	uint64_t spent_us; /* in time that pays it back */
};

struct strangers {
	uint64_t cost_us; /* of one failure */
	uint64_t limit_us;
	uint64_t seed;
	struct bucket buckets[BUCKETS];
};

int strangers_create(struct strangers **out, uint32_t per_s, uint32_t burst, uint64_t seed)
{
	struct strangers *s = calloc(1, sizeof(*s));

	assert(per_s > 0 && burst > 0);
	*out = s;
	if (!s)
		return -ENOMEM;
	s->cost_us = 1000000 / per_s;
	s->limit_us = s->cost_us * burst;
	s->seed = seed;
	return 0;
}

void strangers_destroy(struct strangers *s)
{
	free(s);
}

static struct bucket *bucket_of(struct strangers *s, const struct net_addr *addr, uint64_t now_us)
{
	struct net_addr key = { .port = 0 };
	struct bucket *b;
	uint64_t paid_us;

	memcpy(key.ip, addr->ip, net_addr_is_v4(addr) ? sizeof(key.ip) : PREFIX_BYTES);
	b = &s->buckets[net_addr_hash(&key, s->seed) % BUCKETS];
	paid_us = now_us - b->at_us;
	b->spent_us = b->spent_us > paid_us ? b->spent_us - paid_us : 0;
	b->at_us = now_us;
	return b;
}

bool strangers_may_try(struct strangers *s, const struct net_addr *addr, uint64_t now_us)
{
	return bucket_of(s, addr, now_us)->spent_us + s->cost_us <= s->limit_us;
}

void strangers_charge(struct strangers *s, const struct net_addr *addr, uint64_t now_us)
{
	bucket_of(s, addr, now_us)->spent_us += s->cost_us;
}
