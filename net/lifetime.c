/* net/lifetime.c - see lifetime.h for the contract. */
#include "net/lifetime.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void lifetime_init(struct lifetime *l)
{
	atomic_init(&l->reason, 0);
	atomic_init(&l->ended, 0);
	l->owner = pthread_self();
}

bool lifetime_close(struct lifetime *l, uint32_t reason)
{
	uint32_t open = 0;

	assert(reason != 0);
	/* Release, pairs with the acquire in lifetime_reason(). */
	return atomic_compare_exchange_strong_explicit(&l->reason, &open, reason,
						       memory_order_release, memory_order_relaxed);
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

void lifetime_acknowledge(struct lifetime *l)
{
	assert(lifetime_is_closed(l));
	/* Release, pairs with the acquire in lifetime_is_ended(): all the owner did is visible. */
	if (atomic_exchange_explicit(&l->ended, 1, memory_order_release) == 0)
		futex(&l->ended, FUTEX_WAKE, INT_MAX, NULL);
}

bool lifetime_is_ended(const struct lifetime *l)
{
	return atomic_load_explicit(&l->ended, memory_order_acquire) != 0;
}

static uint64_t clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

int lifetime_wait(struct lifetime *l, uint64_t timeout_us)
{
	uint64_t deadline_us;

	if (lifetime_is_ended(l))
		return 0;
	if (pthread_equal(l->owner, pthread_self()))
		return -EDEADLK;
	deadline_us = clock_us() + timeout_us;
	while (!lifetime_is_ended(l)) {
		uint64_t now_us = clock_us();
		struct timespec left;

		if (now_us >= deadline_us)
			return -ETIMEDOUT;
		left.tv_sec = (time_t)((deadline_us - now_us) / 1000000);
		left.tv_nsec = (long)((deadline_us - now_us) % 1000000 * 1000);
		/* A wake between the check and the wait changes the word: EAGAIN, look again. */
		futex(&l->ended, FUTEX_WAIT, 0, &left);
	}
	return 0;
}
