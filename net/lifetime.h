/* net/lifetime.h - whether an object is still open, asked once per packet for the price of a load.
 *
 * One word says both that the object is closed and why, so "closed" can never be seen without a
 * reason; the first reason wins and never changes. A second word says that the owner has seen the
 * close and that nothing of the object runs any more; threads may wait for that.
 *
 * Thread: every call from any thread, but lifetime_init() and lifetime_acknowledge(): the owner.
 * Memory: plain value inside the object it describes; whoever waits must keep the object alive.
 */
#ifndef NET_LIFETIME_H
#define NET_LIFETIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lifetime {
	_Atomic uint32_t reason; /* 0 while open, else why it was closed */
	_Atomic uint32_t ended;  /* futex word: 1 once the owner acknowledged */
	pthread_t owner;
};

/** Open, owned by the calling thread. */
void lifetime_init(struct lifetime *l);

/** The hot check: one relaxed load. A caller that goes on to read what the closer wrote uses
 *  lifetime_reason() instead. */
static inline bool lifetime_is_closed(const struct lifetime *l)
{
	return atomic_load_explicit(&l->reason, memory_order_relaxed) != 0;
}

/** 0 while open. Acquire, pairs with the release in lifetime_close(): what the closer wrote
 *  before it closed is visible. */
static inline uint32_t lifetime_reason(const struct lifetime *l)
{
	return atomic_load_explicit(&l->reason, memory_order_acquire);
}

/** Close for `reason` (not 0). @return true when this call closed it, false when it was closed
 *  before, whose reason stands. Telling the owner is the caller's: post to its mailbox. */
bool lifetime_close(struct lifetime *l, uint32_t reason);

/** The owner has seen the close and runs nothing of this object any more. Wakes all waiters, once.
 *  Idempotent; asserts that the object is closed. */
void lifetime_acknowledge(struct lifetime *l);

/** True once lifetime_acknowledge() ran: a task that finds this must not touch the object. */
bool lifetime_is_ended(const struct lifetime *l);

/**
 * Wait until the owner acknowledged the close.
 *
 * @return 0; -EDEADLK at once when called on the owner's own thread, which could never be woken;
 *         -ETIMEDOUT after timeout_us
 */
int lifetime_wait(struct lifetime *l, uint64_t timeout_us);

#endif
