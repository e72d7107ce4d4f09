/* Workers with a pool each hand slabs to one another in rings, some of them shared by several
 * receivers at once, and put them wherever the last reference falls. Every slab must carry what
 * its owner wrote until its last put, and all must be home in the end. Exit status 0: held. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/ring.h"
#include "pool/slab.h"

enum { WORKERS = 3, ROUNDS = 30000, CAPACITY = 200, RING_SLOTS = 64 };

struct worker {
	struct slab_pool *pool;
	uint32_t index;
	uint64_t sent, received, refused;
};

static struct worker workers[WORKERS];
static struct ring *rings[WORKERS][WORKERS]; /* [from][to] */
static _Atomic uint32_t producing = WORKERS;

static void check(bool held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "stress_slab: %s\n", what);
	exit(1);
}

/* One reference for each receiver, as a packet goes to each worker that has viewers. */
static void share(struct worker *w, uint32_t round)
{
	struct slab *s = slab_get(w->pool);

	if (!s) {
		w->refused++;
		return;
	}
	memset(s->data, (int)(round & 0xff), 256);
	s->len = (uint16_t)(round & 0xff);
	slab_ref(s, WORKERS - 1);
	for (uint32_t to = 0; to < WORKERS; to++) {
		if (to != w->index && ring_put(rings[w->index][to], s))
			w->sent++;
		else
			slab_put(w->pool, s);
	}
}

static void receive(struct worker *w)
{
	for (uint32_t from = 0; from < WORKERS; from++) {
		struct slab *s = from == w->index ? NULL : ring_take(rings[from][w->index]);

		for (; s; s = ring_take(rings[from][w->index])) {
			check(s->data[0] == (uint8_t)s->len && s->data[255] == (uint8_t)s->len,
			      "a shared slab was overwritten");
			w->received++;
			slab_put(w->pool, s);
		}
	}
}

static void turn(struct worker *w, uint32_t round)
{
	receive(w);
	if (round % 8 == 0) {
		slab_pool_flush(w->pool);
		slab_pool_drain(w->pool);
	}
	if (round % 1000 == 0)
		slab_pool_trim(w->pool);
}

static void *work(void *argument)
{
	struct worker *w = argument;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		share(w, round);
		turn(w, round);
	}
	atomic_fetch_sub_explicit(&producing, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&producing, memory_order_acquire) != 0) {
		turn(w, 0);
		sched_yield();
	}
	receive(w); /* what was put before the last producer stopped */
	slab_pool_flush(w->pool);
	return NULL;
}

int main(void)
{
	pthread_t threads[WORKERS];
	uint64_t sent = 0, received = 0;

	for (uint32_t i = 0; i < WORKERS; i++) {
		struct slab_pool_config config = { CAPACITY, 8, i };

		workers[i].index = i;
		check(slab_pool_create(&workers[i].pool, &config) == 0, "no memory");
		for (uint32_t to = 0; to < WORKERS; to++)
			check(ring_create(&rings[i][to], RING_SLOTS) == 0, "no memory");
	}
	for (uint32_t i = 0; i < WORKERS; i++)
		check(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "no thread");
	for (uint32_t i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		sent += workers[i].sent;
		received += workers[i].received;
	}
	check(sent == received && sent > 0, "a reference was lost");
	for (uint32_t i = 0; i < WORKERS; i++) {
		slab_pool_destroy(workers[i].pool); /* asserts that every slab is home */
		for (uint32_t to = 0; to < WORKERS; to++)
			ring_destroy(rings[i][to]);
	}
	return 0;
}
