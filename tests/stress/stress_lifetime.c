/* Many closers, many waiters, one owner: one reason, everybody sees the end, nothing of the object
 * is touched after the owner's acknowledgement. Exit status 0 is a pass. */
#include <pthread.h>
#include <stdio.h>

#include "net/lifetime.h"

enum { ROUNDS = 300, CLOSERS = 4, SPINS = 2000 };

struct object {
	struct lifetime life;
	uint64_t value; /* the owner's alone until it acknowledged */
	pthread_barrier_t start;
	_Atomic unsigned winners;
};

static struct object object;

static void *close_and_wait(void *arg)
{
	uint32_t reason = (uint32_t)(uintptr_t)arg;

	pthread_barrier_wait(&object.start);
	if (lifetime_close(&object.life, reason))
		atomic_fetch_add(&object.winners, 1);
	if (lifetime_reason(&object.life) == 0)
		return (void *)1;
	if (lifetime_wait(&object.life, 30000000))
		return (void *)2;
	/* Ordered behind the owner's last write by the acknowledgement. */
	return object.value == 0 ? (void *)3 : NULL;
}

static int round_of(void)
{
	pthread_t threads[CLOSERS];
	int failed = 0;

	lifetime_init(&object.life);
	object.value = 0;
	atomic_store(&object.winners, 0);
	for (uintptr_t i = 0; i < CLOSERS; i++)
		if (pthread_create(&threads[i], NULL, close_and_wait, (void *)(i + 1)))
			return 1;
	pthread_barrier_wait(&object.start);
	while (!lifetime_is_closed(&object.life))
		object.value++;
	for (unsigned i = 0; i < SPINS; i++)
		object.value++;
	lifetime_acknowledge(&object.life);
	for (unsigned i = 0; i < CLOSERS; i++) {
		void *result;

		pthread_join(threads[i], &result);
		failed |= result != NULL;
	}
	return failed || atomic_load(&object.winners) != 1;
}

int main(void)
{
	pthread_barrier_init(&object.start, NULL, CLOSERS + 1);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (round_of()) {
			fprintf(stderr, "round %u failed\n", i);
			return 1;
		}
	}
	return 0;
}
