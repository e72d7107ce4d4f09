/* net/ticker.h - all deadlines of one thread behind one timer.
 *
 * A binary heap of deadlines inside the objects that wait. The thread arms one loop timer for
 * ticker_due_us() and none while that is UINT64_MAX: a thread with nothing to wait for makes no
 * wake-up. Deadlines are kept to TICKER_GRAIN_US, so that many that fall together cost one wake-up.
 *
 * Sans-IO: time is an argument.
 * Thread:  the owner's.
 * Memory:  the heap grows to the most items ever armed at once; items are the caller's storage.
 */
#ifndef NET_TICKER_H
#define NET_TICKER_H

#include <stddef.h>
#include <stdint.h>

enum { TICKER_GRAIN_US = 1000 };

struct ticker_item {
	uint64_t due_us;
	uint32_t at; /* place in the heap plus 1; 0 while not armed */
	void (*on_due)(struct ticker_item *item, uint64_t now_us);
};

struct ticker {
	struct ticker_item **heap;
	uint32_t count, cap;
	uint64_t floor_us; /* while ticker_run() runs: the earliest new deadline */
};

void ticker_init(struct ticker *t);
/** Asserts that no item is armed. */
void ticker_fini(struct ticker *t);

/** Disarmed; on_due is called by ticker_run() with the item disarmed, and may arm or free it. */
void ticker_item_init(struct ticker_item *item,
		      void (*on_due)(struct ticker_item *item, uint64_t now_us));

/** Make sure that `items` items can be armed at once: after this ticker_arm() cannot fail for them.
 *  @return 0 or -ENOMEM */
int ticker_reserve(struct ticker *t, uint32_t items);

/** (Re-)arm for due_us; UINT64_MAX disarms. Asserts that room was reserved. */
void ticker_arm(struct ticker *t, struct ticker_item *item, uint64_t due_us);

/** Bring a deadline nearer, never farther: for an item several parties wait on. */
void ticker_arm_sooner(struct ticker *t, struct ticker_item *item, uint64_t due_us);

/** The next deadline; UINT64_MAX when nothing is armed. */
uint64_t ticker_due_us(const struct ticker *t);

/** Run what is due, each item at most once, even if it arms itself for the past. */
void ticker_run(struct ticker *t, uint64_t now_us);

#endif
