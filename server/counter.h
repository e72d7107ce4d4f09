/* server/counter.h - numbers that one thread writes and others may read at any time.
 *
 * Thread: counter_add() by the one writer; counter_read() by any thread. No order with other
 *         memory: a reader may see one counter before another.
 */
#ifndef SERVER_COUNTER_H
#define SERVER_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

/* A plain load and store: with one writer no locked instruction is needed. */
static inline void counter_add(counter *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void counter_set(counter *c, uint64_t n)
{
	atomic_store_explicit(c, n, memory_order_relaxed);
}

static inline uint64_t counter_read(const counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

#endif
