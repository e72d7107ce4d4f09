/* pool/ring.h - bounded queue of pointers between exactly two threads: one puts, one takes.
 *
 * Thread: ring_put() and ring_room() by the producer only, ring_take() by the consumer only,
 *         ring_is_empty() by either. Create and destroy while neither runs.
 * Memory: holds pointers and owns none of them; what a pointer stands for passes with it. Both
 *         allocations happen in ring_create(). Each side keeps its own copy of the other's
 *         position and looks again only when that copy says full or empty, so that a batch
 *         costs one transfer of the shared line rather than one an item.
 */
#ifndef POOL_RING_H
#define POOL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RING_LINE_BYTES = 64,
	RING_MAX_SLOTS = 1 << 24, /* far below 2^31, so that tail - head stays a count */
};

struct ring {
	void **slots; /* fixed at creation */
	uint32_t mask;

	/* The producer's line. */
	_Alignas(RING_LINE_BYTES) _Atomic uint32_t tail; /* next to fill */
	uint32_t head_seen;                              /* the consumer's head, as last read */

	/* The consumer's line. */
	_Alignas(RING_LINE_BYTES) _Atomic uint32_t head; /* next to take */
	uint32_t tail_seen;                              /* the producer's tail, as last read */
};

/**
 * Create a ring of exactly `slots` items.
 *
 * @param out receives the ring, owned by the caller (ring_destroy()); NULL on failure
 * @return 0, -ENOMEM, or -EINVAL (slots is no power of two in 1..RING_MAX_SLOTS)
 */
int ring_create(struct ring **out, uint32_t slots);

/** Release a ring. What it still holds is the caller's to take first. NULL is allowed. */
void ring_destroy(struct ring *r);

/** How many puts will succeed now. The consumer may meanwhile make it more, never less. */
static inline uint32_t ring_room(struct ring *r)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	/* A1, pairs with R2: the consumer's read of a slot precedes our reuse of it. */
	r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
	return r->mask + 1 - (tail - r->head_seen);
}

/** Append one item, not NULL. @return false when full: the item stays the caller's, who counts
 *  the drop */
static inline bool ring_put(struct ring *r, void *item)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail - r->head_seen > r->mask && ring_room(r) == 0)
		return false;
	r->slots[tail & r->mask] = item;
	/* R1, pairs with A2: the slot is filled before the consumer sees the new tail. */
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

/** Take the oldest item. @return NULL when empty */
static inline void *ring_take(struct ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	void *item;

	if (head == r->tail_seen) {
		/* A2, pairs with R1: what the producer wrote before its put is visible here. */
		r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head == r->tail_seen)
			return NULL;
	}
	item = r->slots[head & r->mask];
	/* R2, pairs with A1: the slot is read before the producer sees it free. */
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return item;
}

/** Whether the ring was empty at some moment during the call: for the consumer, a put that
 *  happened before it is seen; for the producer, a hint. Orders nothing: take to read. */
static inline bool ring_is_empty(const struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) ==
	       atomic_load_explicit(&r->tail, memory_order_relaxed);
}

#endif
