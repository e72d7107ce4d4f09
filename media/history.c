/* media/history.c - see history.h for the contract.
 *
 * Slot of an index: index modulo the capacity. Everything held lies in [oldest, newest], a span never
 * longer than the capacity, so two held packets never want one slot.
 */
#include "media/history.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "media/packet.h"

enum { SLOT_BYTES = sizeof(void *) + sizeof(uint32_t) };

struct history {
	struct history_config config;
	struct history_stats stats;
	struct slab_pool *pool;
	uint64_t oldest, newest; /* newest 0: nothing came yet */
	uint64_t keyframe;       /* newest index that began one; 0: none */
	uint32_t late_count;
	uint64_t late[HISTORY_LATE_PKTS];
	uint32_t *put_us; /* by slot, low bits: nothing is held for an hour */
	struct slab *slots[];
};

static struct slab **slot_of(struct history *h, uint64_t index)
{
	return &h->slots[index & (h->config.capacity_pkts - 1)];
}

int history_create(struct history **out, const struct history_config *config,
		   struct slab_pool *pool)
{
	uint32_t n = config->capacity_pkts;
	struct history *h;

	*out = NULL;
	if (n < 2 || n > HISTORY_MAX_PKTS || (n & (n - 1)) != 0 ||
	    (config->max_bytes > 0 && config->max_bytes < SLAB_BYTES))
		return -EINVAL;
	h = calloc(1, sizeof(*h) + n * SLOT_BYTES);
	if (!h)
		return -ENOMEM;
	h->config = *config;
	h->pool = pool;
	h->put_us = (uint32_t *)(void *)&h->slots[n];
	*out = h;
	return 0;
}

/* Let go of the oldest index, held or not. */
static void drop_oldest(struct history *h)
{
	struct slab **slot = slot_of(h, h->oldest++);

	if (!*slot)
		return;
	slab_put(h->pool, *slot);
	*slot = NULL;
	h->stats.evicted++;
	h->stats.pkts--;
	h->stats.bytes -= SLAB_BYTES;
}

void history_clear(struct history *h)
{
	if (h->newest == 0)
		return;
	while (h->oldest <= h->newest)
		drop_oldest(h);
}

void history_drop_below(struct history *h, uint64_t index)
{
	while (h->newest != 0 && h->oldest < index && h->oldest <= h->newest)
		drop_oldest(h);
}

void history_destroy(struct history *h)
{
	if (!h)
		return;
	history_clear(h);
	free(h);
}

static bool is_over_bounds(const struct history *h, const struct slab *oldest, uint64_t now_us)
{
	uint32_t age_us;

	if (h->config.max_bytes > 0 && h->stats.bytes > h->config.max_bytes)
		return true;
	age_us = (uint32_t)now_us -
		 h->put_us[packet_of_const(oldest)->index & (h->config.capacity_pkts - 1)];
	return h->config.max_age_us > 0 && age_us > h->config.max_age_us;
}

/* Holes are let go only together with an older or newer packet that goes: after a pause, what is
 * missing at the far end may still be repaired. */
void history_expire(struct history *h, uint64_t now_us)
{
	struct slab *s;

	while ((s = history_next(h, 0)) && is_over_bounds(h, s, now_us)) {
		uint64_t index = packet_of_const(s)->index;

		while (h->oldest <= index)
			drop_oldest(h);
	}
}

/* Make room so that `index` becomes the newest of a span no longer than the capacity. */
static void advance(struct history *h, uint64_t index)
{
	if (h->newest == 0 || index - h->newest >= h->config.capacity_pkts) {
		history_clear(h);
		h->oldest = index;
	}
	while (index - h->oldest >= h->config.capacity_pkts)
		drop_oldest(h);
	h->newest = index;
}

static enum history_verdict classify(struct history *h, uint64_t index)
{
	if (h->newest == 0 || index > h->newest)
		return HISTORY_NEWEST;
	if (index < h->oldest)
		return HISTORY_TOO_OLD;
	return *slot_of(h, index) ? HISTORY_DUPLICATE : HISTORY_LATE;
}

/* Of a key frame's packets several may be marked (parameter sets, slices): the first counts. */
static void note_keyframe(struct history *h, const struct media_packet *p)
{
	const struct slab *known = history_keyframe(h);
	bool is_same_frame = known && packet_of_const(known)->timestamp == p->timestamp;

	if (is_same_frame ? p->index < h->keyframe : p->index > h->keyframe)
		h->keyframe = p->index;
}

enum history_verdict history_put(struct history *h, struct slab *s, uint64_t now_us)
{
	const struct media_packet *p = packet_of(s);
	enum history_verdict verdict = classify(h, p->index);

	assert(p->index > 0);
	h->stats.verdicts[verdict]++;
	if (verdict == HISTORY_DUPLICATE || verdict == HISTORY_TOO_OLD) {
		slab_put(h->pool, s);
		return verdict;
	}
	if (verdict == HISTORY_NEWEST)
		advance(h, p->index);
	else
		h->late[h->late_count++ % HISTORY_LATE_PKTS] = p->index;
	if (packet_has(p, PACKET_KEYFRAME))
		note_keyframe(h, p);
	*slot_of(h, p->index) = s;
	h->put_us[p->index & (h->config.capacity_pkts - 1)] = (uint32_t)now_us;
	h->stats.pkts++;
	h->stats.bytes += SLAB_BYTES;
	history_expire(h, now_us);
	return verdict;
}

struct slab *history_get(const struct history *h, uint64_t index)
{
	if (index < h->oldest || index > h->newest || h->newest == 0)
		return NULL;
	return h->slots[index & (h->config.capacity_pkts - 1)];
}

struct slab *history_next(const struct history *h, uint64_t cursor)
{
	uint64_t index = cursor + 1 > h->oldest ? cursor + 1 : h->oldest;

	if (h->newest == 0)
		return NULL;
	for (; index <= h->newest; index++) {
		struct slab *s = h->slots[index & (h->config.capacity_pkts - 1)];

		if (s)
			return s;
	}
	return NULL;
}

uint32_t history_late_count(const struct history *h)
{
	return h->late_count;
}

struct slab *history_next_late(const struct history *h, uint32_t *seen, uint64_t cursor)
{
	if (h->late_count - *seen > HISTORY_LATE_PKTS)
		*seen = h->late_count - HISTORY_LATE_PKTS;
	while (*seen != h->late_count) {
		uint64_t index = h->late[(*seen)++ % HISTORY_LATE_PKTS];
		struct slab *s = index <= cursor ? history_get(h, index) : NULL;

		if (s)
			return s;
	}
	return NULL;
}

bool history_is_missing(const struct history *h, uint64_t index)
{
	return h->newest != 0 && index >= h->oldest && index <= h->newest && !history_get(h, index);
}

uint64_t history_oldest_index(const struct history *h)
{
	return h->oldest;
}

uint64_t history_newest_index(const struct history *h)
{
	return h->newest;
}

struct slab *history_keyframe(const struct history *h)
{
	return h->keyframe ? history_get(h, h->keyframe) : NULL;
}

void history_stats(const struct history *h, struct history_stats *out)
{
	*out = h->stats;
}

size_t history_bytes(const struct history *h)
{
	return sizeof(*h) + (size_t)h->config.capacity_pkts * SLOT_BYTES;
}
