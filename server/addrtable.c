/* server/addrtable.c - see addrtable.h for the contract.
 *
 * Linear probing with backward-shift removal: no tombstones, so a table that saw a million
 * sessions come and go is as quick as a new one.
 */
#include "server/addrtable.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

struct slot {
	struct net_addr addr;
	uint32_t hash;
	uint64_t owner; /* session_ref, 0: free */
};

struct addrtable {
	struct slot *slots;
	uint32_t mask, count;
	uint64_t seed;
};

int addrtable_create(struct addrtable **out, uint64_t seed)
{
	struct addrtable *t = calloc(1, sizeof(*t));

	*out = NULL;
	if (!t)
		return -ENOMEM;
	t->slots = calloc(FIRST_SLOTS, sizeof(*t->slots));
	if (!t->slots) {
		free(t);
		return -ENOMEM;
	}
	t->mask = FIRST_SLOTS - 1;
	t->seed = seed;
	*out = t;
	return 0;
}

void addrtable_destroy(struct addrtable *t)
{
	if (!t)
		return;
	free(t->slots);
	free(t);
}

/* The slot that holds addr, or the free one where it would go. */
static uint32_t probe(const struct addrtable *t, const struct net_addr *addr, uint32_t hash)
{
	uint32_t at = hash & t->mask;

	while (t->slots[at].owner &&
	       (t->slots[at].hash != hash || !net_addr_is_equal(&t->slots[at].addr, addr)))
		at = (at + 1) & t->mask;
	return at;
}

bool addrtable_find(const struct addrtable *t, const struct net_addr *addr,
		    struct session_ref *owner)
{
	const struct slot *s = &t->slots[probe(t, addr, net_addr_hash(addr, t->seed))];

	if (!s->owner)
		return false;
	*owner = session_ref_unpack(s->owner);
	return true;
}

static int grow(struct addrtable *t)
{
	uint32_t old_slots = t->mask + 1;
	struct slot *old = t->slots;
	struct slot *slots = calloc((size_t)old_slots * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	t->slots = slots;
	t->mask = old_slots * 2 - 1;
	for (uint32_t i = 0; i < old_slots; i++)
		if (old[i].owner)
			t->slots[probe(t, &old[i].addr, old[i].hash)] = old[i];
	free(old);
	return 0;
}

int addrtable_set(struct addrtable *t, const struct net_addr *addr, struct session_ref owner)
{
	uint32_t hash = net_addr_hash(addr, t->seed);
	struct slot *s = &t->slots[probe(t, addr, hash)];

	if (!s->owner) {
		if ((t->count + 1) * 2 > t->mask + 1) {
			if (grow(t))
				return -ENOMEM;
			s = &t->slots[probe(t, addr, hash)];
		}
		t->count++;
	}
	*s = (struct slot){ .addr = *addr, .hash = hash, .owner = session_ref_pack(owner) };
	return 0;
}

void addrtable_remove(struct addrtable *t, const struct net_addr *addr, struct session_ref owner)
{
	uint32_t hole = probe(t, addr, net_addr_hash(addr, t->seed));

	if (t->slots[hole].owner != session_ref_pack(owner))
		return;
	t->count--;
	/* Move back each follower whose home is at or before the hole. */
	for (uint32_t at = (hole + 1) & t->mask; t->slots[at].owner; at = (at + 1) & t->mask) {
		uint32_t home = t->slots[at].hash & t->mask;

		if (((at - home) & t->mask) < ((at - hole) & t->mask))
			continue;
		t->slots[hole] = t->slots[at];
		hole = at;
	}
	t->slots[hole].owner = 0;
}

uint32_t addrtable_count(const struct addrtable *t)
{
	return t->count;
}
