/* pool/slab.h - recycled packet buffers of one fixed size, owned by one thread.
 *
 * A slab is taken by its pool's owner, may be referenced by any thread, and goes home when its
 * last reference is put. At home it joins a last-in-first-out list with no lock and no atomic;
 * a put on another thread gathers in that thread's own pool, SLAB_BATCH of them per home, and
 * travels as one chain by one compare-and-swap.
 *
 * Thread: slab_get(), slab_pool_*() by the owner; slab_ref() and slab_put() by any thread that
 *         holds a reference, slab_put() naming that thread's own pool. Create and destroy while
 *         no other thread exchanges slabs with the pool.
 * Memory: capacity is fixed when the pool is created and never grows; pages are touched on
 *         first use and given back by slab_pool_trim(). Nothing is allocated after creation.
 * Debug:  with SLUICE_DEBUG the bytes of a free slab are poisoned, and checked when it is taken
 *         again, so that a write after the put is found; under AddressSanitizer any access to
 *         them is reported where it happens. A second put of a slab aborts in every build.
 */
#ifndef POOL_SLAB_H
#define POOL_SLAB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SLAB_BYTES = 2048,
	SLAB_META_BYTES = 64,
	SLAB_DATA_BYTES = 1920,   /* a datagram of any Ethernet path, with room for a tag */
	SLAB_MAX_POOLS = 64,      /* pools that may exchange slabs */
	SLAB_BATCH = 32,          /* foreign slabs gathered per home before they are sent off */
	SLAB_MAX_SLABS = 1 << 24, /* 32 GiB: what a config value above it asks for is a mistake */
};

struct slab_pool;

struct slab {
	struct slab *next; /* the holder's between get and first ref; else the pool's */
	struct slab_pool *home;
	_Atomic uint32_t refs;
	uint16_t len;                               /* bytes used in data */
	uint16_t state;                             /* the pool's, for double-put detection */
	_Alignas(64) uint8_t meta[SLAB_META_BYTES]; /* the holder's, zeroed by slab_get() */
	uint8_t data[SLAB_DATA_BYTES];
};
_Static_assert(sizeof(struct slab) == SLAB_BYTES, "a slab is half a page");

struct slab_pool_config {
	uint32_t capacity_slabs;   /* hard limit, 1..SLAB_MAX_SLABS */
	uint32_t high_water_slabs; /* this many free slabs keep their memory when trimmed */
	uint32_t index; /* below SLAB_MAX_POOLS, unique among pools that exchange slabs */
};

struct slab_pool_stats {
	uint64_t gets, puts; /* puts of this pool's slabs that came home, here or from abroad */
	uint64_t exhausted;  /* gets refused: the caller drops */
	uint64_t foreign_batches;     /* chains received from other threads */
	uint64_t trimmed_bytes;       /* given back to the kernel, cumulative */
	uint32_t in_use, in_use_high; /* slabs out or on their way home now, and the most ever */
	uint32_t touched;             /* slabs whose memory the process holds now */
	uint32_t capacity;
};

/** @return 0, -ENOMEM or -EINVAL (a config value out of its range) */
int slab_pool_create(struct slab_pool **out, const struct slab_pool_config *config);

/** Takes home what has arrived, then asserts that no slab is missing and that no other pool's
 *  slab is gathered here: flush all exchanging pools first. NULL is allowed. */
void slab_pool_destroy(struct slab_pool *p);

/** One reference, len 0, meta zeroed. @return NULL when the pool is exhausted (counted) */
struct slab *slab_get(struct slab_pool *p);

/** Add n references; the caller holds one. */
static inline void slab_ref(struct slab *s, uint32_t n)
{
	atomic_fetch_add_explicit(&s->refs, n, memory_order_relaxed);
}

/** Drop one reference on the thread that owns `mine`. Aborts when there is none to drop. */
void slab_put(struct slab_pool *mine, struct slab *s);

/** Send off every gathered batch, however short. Once a loop turn, before it sleeps. */
void slab_pool_flush(struct slab_pool *mine);

/** Take home what other threads sent. Once a loop turn. */
void slab_pool_drain(struct slab_pool *mine);

/**
 * Give memory of free slabs above the high-water mark back to the kernel. Call on a timer (about
 * once a second): what stayed unused since the previous call goes, at most SLAB_TRIM_MAX_BYTES
 * a call so that a worker is not held up.
 */
enum { SLAB_TRIM_MAX_BYTES = 8 << 20 };
void slab_pool_trim(struct slab_pool *mine);

void slab_pool_stats(const struct slab_pool *p, struct slab_pool_stats *out);

#endif
