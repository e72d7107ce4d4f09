/* media/history.h - the last packets of a track, held by reference, found by index.
 *
 * A ring of slab references, one per index, bounded by packets, age and bytes. Viewers walk it with
 * cursors of their own: in order through history_next(), and through history_next_late() for what
 * arrived behind their cursor (reordered or repaired upstream).
 *
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  one allocation, in history_create(). Each slot owns one slab reference, given back by
 *          slab_put() on the pool named at creation.
 */
#ifndef MEDIA_HISTORY_H
#define MEDIA_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/slab.h"

enum {
	HISTORY_MAX_PKTS = 1 << 15, /* above it a 16-bit number would not name one packet */
	HISTORY_LATE_PKTS = 64,     /* late arrivals remembered, power of two */
};

struct history;

struct history_config {
	uint32_t capacity_pkts; /* power of two, 2..HISTORY_MAX_PKTS */
	uint32_t max_age_us;    /* since history_put(), 0: no bound */
	uint32_t max_bytes;     /* of slabs held (SLAB_BYTES each), at least one; 0: no bound */
};

enum history_verdict {
	HISTORY_NEWEST,    /* kept, and now the newest */
	HISTORY_LATE,      /* kept, in a hole below the newest */
	HISTORY_DUPLICATE, /* that index is held: reference put */
	HISTORY_TOO_OLD,   /* below what is kept: reference put */
	HISTORY_VERDICTS,
};

/** @param pool this worker's own. @return 0, -ENOMEM or -EINVAL (capacity_pkts, max_bytes) */
int history_create(struct history **out, const struct history_config *config,
		   struct slab_pool *pool);

/** Puts every reference. NULL is allowed. */
void history_destroy(struct history *h);

/** Take over the caller's reference, whatever the verdict; evicts what the bounds no longer hold. Age
 *  counts from this call: what waited on the way here, as for a worker that was held up, is kept as
 *  long as any other and can still be sent.
 *  A jump of index beyond the capacity empties the ring first. */
enum history_verdict history_put(struct history *h, struct slab *s, uint64_t now_us);

/** Evict what is older than max_age_us. Call about once a second and tick where nothing arrives. */
void history_expire(struct history *h, uint64_t now_us);

/** Put every reference; indices below the newest stay too old. */
void history_clear(struct history *h);

/** Put what is below `index`, at most up to the newest; from now on it is too old. */
void history_drop_below(struct history *h, uint64_t index);

/** @return the packet, borrowed until the next call that may evict; NULL when not held */
struct slab *history_get(const struct history *h, uint64_t index);

/** The first packet held with an index above `cursor`, holes skipped; NULL: the cursor is at the
 *  end. Start of a walk: cursor = wanted index - 1. Borrowed likewise. */
struct slab *history_next(const struct history *h, uint64_t cursor);

/**
 * The next packet that arrived late behind `cursor`; NULL when there is none. A viewer drains this
 * before each advance of its cursor and sends each packet whose index is not below its first one.
 *
 * @param seen the viewer's place in the list of late arrivals; starts as history_late_count().
 *             More than HISTORY_LATE_PKTS behind, the oldest are skipped (the viewer will ask).
 */
struct slab *history_next_late(const struct history *h, uint32_t *seen, uint64_t cursor);
uint32_t history_late_count(const struct history *h);

/** In the span kept, but not here (yet). */
bool history_is_missing(const struct history *h, uint64_t index);

/** Lowest index that may be held, and the newest; both 0 before the first packet. A cursor below
 *  oldest - 1 has lost packets for good. */
uint64_t history_oldest_index(const struct history *h);
uint64_t history_newest_index(const struct history *h);

/** The first packet of the newest key frame of which a beginning is held; NULL when there is none. */
struct slab *history_keyframe(const struct history *h);

struct history_stats {
	uint64_t verdicts[HISTORY_VERDICTS];
	uint64_t evicted;
	uint32_t pkts;  /* held now */
	uint32_t bytes; /* of slabs held now */
};
void history_stats(const struct history *h, struct history_stats *out);

/** Memory it takes, slabs apart. */
size_t history_bytes(const struct history *h);

#endif
