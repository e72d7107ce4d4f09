/* One thread puts, one takes, over rings small enough to be full and empty all the time. Every
 * item must arrive once, in order, with what the producer wrote into it. Exit status 0: held. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "pool/ring.h"

enum { ITEMS = 200000 };

static struct ring *ring;
static uint32_t value[ITEMS];

static void *produce(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < ITEMS; i++) {
		value[i] = ~i;
		while (!ring_put(ring, &value[i]))
			sched_yield();
	}
	return NULL;
}

static int consume(void)
{
	for (uint32_t i = 0; i < ITEMS; i++) {
		uint32_t *got = ring_take(ring);

		while (!got) {
			sched_yield();
			got = ring_take(ring);
		}
		if (got != &value[i] || *got != ~i) {
			fprintf(stderr, "item %u: wrong pointer or content\n", i);
			return 1;
		}
		*got = 0; /* handed over: writing must not race with the producer */
	}
	return ring_is_empty(ring) ? 0 : 1;
}

int main(void)
{
	static const uint32_t slots[] = { 1, 2, 64, 1024 };

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		pthread_t producer;
		int status;

		if (ring_create(&ring, slots[i]) || pthread_create(&producer, NULL, produce, NULL))
			return 2;
		status = consume();
		if (pthread_join(producer, NULL) || status) {
			fprintf(stderr, "ring of %u slots failed\n", slots[i]);
			return 1;
		}
		ring_destroy(ring);
	}
	return 0;
}
