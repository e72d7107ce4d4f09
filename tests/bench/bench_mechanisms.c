/* bench_mechanisms [--json]: the three mechanisms, each beside what it stands in for, in one run.
 *
 *   lifetime  the closed word, against a flag behind a mutex, a poll of an eventfd, a call
 *   slab      get and put, against one freelist behind a mutex and malloc, from 1 to 16 threads,
 *             and get on one thread, put on another
 *   trigger   triggers on one ticker that nobody asks, against timers made anew each turn:
 *             allocations and wake-ups in one second
 *
 * CPU time of threads; medians of ROUNDS alternations with the least and the most. Nothing is
 * judged. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "net/lifetime.h"
#include "net/loop.h"
#include "net/ticker.h"
#include "net/trigger.h"
#include "pool/ring.h"
#include "pool/slab.h"

enum { ROUNDS = 7, MAX_THREADS = 16 };

static bool as_json;
static unsigned rows_printed;

/* --- counting allocations ---------------------------------------------------------------- */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif

static _Thread_local uint64_t allocations;

#ifndef HAS_SANITIZER
/* The C library's own, behind the names that everything in the process calls. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	allocations++;
	return __libc_realloc(p, size);
}
#endif

/* --- results ----------------------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double report(const char *group, const char *name, unsigned threads, double values[ROUNDS],
		     const char *unit)
{
	qsort(values, ROUNDS, sizeof(double), by_value);
	if (as_json)
		printf("%s{\"group\":\"%s\",\"name\":\"%s\",\"threads\":%u,\"unit\":\"%s\","
		       "\"median\":%.4g,\"min\":%.4g,\"max\":%.4g}",
		       rows_printed++ ? ",\n" : "", group, name, threads, unit, values[ROUNDS / 2],
		       values[0], values[ROUNDS - 1]);
	else
		printf("%-9s %-46s %3u %10.4g  (%.4g to %.4g) %s\n", group, name, threads,
		       values[ROUNDS / 2], values[0], values[ROUNDS - 1], unit);
	return values[ROUNDS / 2];
}

/* Threads side by side, not one after the other: on every core in turn. */
static void pin(pthread_t thread, unsigned number)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % (unsigned)(cores > 0 ? cores : 1), &set);
	(void)pthread_setaffinity_np(thread, sizeof(set), &set);
}

/* Waiting is not what is measured: asleep it costs next to nothing. */
static void pause_briefly(void)
{
	struct timespec pause = { .tv_nsec = 20000 };

	nanosleep(&pause, NULL);
}

/* --- the closed flag --------------------------------------------------------------------- */

enum { CHECKS = 2000000, POLLS = 50000 };

struct guarded {
	pthread_mutex_t lock;
	bool is_closed;
};

static struct lifetime life;
static struct guarded guarded = { .lock = PTHREAD_MUTEX_INITIALIZER };
static int event_fd;
static volatile unsigned sink;

/* Keeps the compiler from hoisting the check out of the loop, at the cost of nothing. */
static inline void barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static bool is_closed_by_call(const struct lifetime *l)
{
	barrier();
	return lifetime_is_closed(l);
}

static bool is_closed_by_mutex(void)
{
	bool closed;

	pthread_mutex_lock(&guarded.lock);
	closed = guarded.is_closed;
	pthread_mutex_unlock(&guarded.lock);
	return closed;
}

static bool is_closed_by_poll(void)
{
	struct pollfd p = { .fd = event_fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* One loop a way, so that each is compiled for itself. */
#define TIMED(count, check)                                                                        \
	do {                                                                                       \
		unsigned closed = 0;                                                               \
		uint64_t start = cpu_ns();                                                         \
		for (int i = 0; i < (count); i++) {                                                \
			barrier();                                                                 \
			closed += (check);                                                         \
		}                                                                                  \
		result = (double)(cpu_ns() - start) / (count);                                     \
		sink += closed;                                                                    \
	} while (0)

enum way { WAY_NOTHING, WAY_WORD, WAY_CALL, WAY_MUTEX, WAY_POLL, WAYS };

static double time_way(enum way way)
{
	double result = 0;

	switch (way) {
	case WAY_NOTHING:
		TIMED(CHECKS, 0u);
		break;
	case WAY_WORD:
		TIMED(CHECKS, lifetime_is_closed(&life));
		break;
	case WAY_CALL:
		TIMED(CHECKS, is_closed_by_call(&life));
		break;
	case WAY_MUTEX:
		TIMED(CHECKS, is_closed_by_mutex());
		break;
	case WAY_POLL:
		TIMED(POLLS, is_closed_by_poll());
		break;
	default:
		abort();
	}
	return result;
}

static _Atomic bool rival_runs, rival_stops;

static void *run_rival(void *arg)
{
	(void)arg;
	atomic_store_explicit(&rival_runs, true, memory_order_relaxed);
	while (!atomic_load_explicit(&rival_stops, memory_order_relaxed))
		sink += is_closed_by_mutex();
	return NULL;
}

static void bench_lifetime(void)
{
	static const char *const names[WAYS] = { "empty loop", "closed word, one relaxed load",
						 "the same, called out of line",
						 "flag behind a mutex", "poll of an eventfd" };
	static double ns[WAYS + 1][ROUNDS];
	pthread_t rival;

	pin(pthread_self(), 0);
	lifetime_init(&life);
	event_fd = eventfd(0, EFD_CLOEXEC);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned way = 0; way < WAYS; way++)
			ns[way][round] = time_way((enum way)way);
		atomic_store_explicit(&rival_runs, false, memory_order_relaxed);
		atomic_store_explicit(&rival_stops, false, memory_order_relaxed);
		if (pthread_create(&rival, NULL, run_rival, NULL))
			abort();
		pin(rival, 1);
		while (!atomic_load_explicit(&rival_runs, memory_order_relaxed))
			pause_briefly();
		ns[WAYS][round] = time_way(WAY_MUTEX);
		atomic_store_explicit(&rival_stops, true, memory_order_relaxed);
		pthread_join(rival, NULL);
	}
	for (unsigned way = 0; way < WAYS; way++)
		report("lifetime", names[way], 1, ns[way], "ns/check");
	report("lifetime", names[WAY_MUTEX], 2, ns[WAYS], "ns/check");
	close(event_fd);
}

/* --- the pool ---------------------------------------------------------------------------- */

enum {
	RUN_US = 60000,
	ABROAD = 500000,
	HELD = 8,
	CAPACITY = 4096,
	BUFFER_BYTES = 2048,
	RING_SLOTS = 1024
};

enum allocator { BY_SLAB, BY_MUTEX, BY_MALLOC, ALLOCATORS };
static const char *const allocator_names[ALLOCATORS] = { "slab pool", "freelist behind a mutex",
							 "malloc" };

struct node {
	struct node *next;
};

static struct {
	pthread_mutex_t lock;
	struct node *first;
} freelist = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *get_guarded(void)
{
	struct node *n;

	pthread_mutex_lock(&freelist.lock);
	n = freelist.first;
	if (n)
		freelist.first = n->next;
	pthread_mutex_unlock(&freelist.lock);
	return n;
}

static void put_guarded(void *p)
{
	struct node *n = p;

	pthread_mutex_lock(&freelist.lock);
	n->next = freelist.first;
	freelist.first = n;
	pthread_mutex_unlock(&freelist.lock);
}

static void fill_freelist(void)
{
	for (unsigned i = 0; i < CAPACITY; i++) {
		void *p = malloc(BUFFER_BYTES);

		if (!p)
			abort();
		put_guarded(p);
	}
}

static void *get(enum allocator a, struct slab_pool *pool)
{
	void *p = a == BY_SLAB    ? (void *)slab_get(pool)
		  : a == BY_MUTEX ? get_guarded()
				  : malloc(BUFFER_BYTES);

	if (!p)
		abort();
	return p;
}

static void put(enum allocator a, struct slab_pool *pool, void *p)
{
	if (a == BY_SLAB)
		slab_put(pool, p);
	else if (a == BY_MUTEX)
		put_guarded(p);
	else
		free(p);
}

struct worker {
	pthread_t thread;
	enum allocator allocator;
	struct slab_pool *pool;
	pthread_barrier_t *start;
	struct ring *ring;
	uint64_t ns, pairs;
};

static struct slab_pool *make_pool(unsigned index)
{
	struct slab_pool_config config = { .capacity_slabs = CAPACITY,
					   .high_water_slabs = CAPACITY,
					   .index = index };
	struct slab_pool *pool;

	if (slab_pool_create(&pool, &config))
		abort();
	return pool;
}

static _Atomic bool pairs_stop;

static void *run_pairs(void *arg)
{
	struct worker *w = arg;
	void *held[HELD];
	uint64_t start;

	pthread_barrier_wait(w->start);
	start = cpu_ns();
	/* As a receive batch does: some are taken, then as many given back. */
	while (!atomic_load_explicit(&pairs_stop, memory_order_relaxed)) {
		for (unsigned j = 0; j < HELD; j++)
			held[j] = get(w->allocator, w->pool);
		barrier();
		for (unsigned j = 0; j < HELD; j++)
			put(w->allocator, w->pool, held[j]);
		w->pairs += HELD;
	}
	w->ns = cpu_ns() - start;
	return NULL;
}

/* CPU ns of a get and put pair, over all threads. */
static double time_threads(enum allocator allocator, unsigned threads)
{
	static struct worker workers[MAX_THREADS];
	pthread_barrier_t start;
	struct timespec run = { .tv_nsec = RUN_US * 1000 };
	uint64_t ns = 0, pairs = 0;

	atomic_store_explicit(&pairs_stop, false, memory_order_relaxed);
	pthread_barrier_init(&start, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		workers[i] = (struct worker){ .allocator = allocator, .start = &start };
		if (allocator == BY_SLAB)
			workers[i].pool = make_pool(i);
		if (pthread_create(&workers[i].thread, NULL, run_pairs, &workers[i]))
			abort();
		pin(workers[i].thread, i);
	}
	pthread_barrier_wait(&start);
	nanosleep(&run, NULL);
	atomic_store_explicit(&pairs_stop, true, memory_order_relaxed);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		ns += workers[i].ns;
		pairs += workers[i].pairs;
		slab_pool_destroy(workers[i].pool);
	}
	pthread_barrier_destroy(&start);
	return (double)ns / (double)pairs;
}

static void *run_getter(void *arg)
{
	struct worker *w = arg;
	uint64_t start;

	pthread_barrier_wait(w->start);
	start = cpu_ns();
	for (unsigned i = 0; i < ABROAD;) {
		unsigned room = ring_room(w->ring);

		if (room < HELD) {
			pause_briefly();
			continue;
		}
		if (w->allocator == BY_SLAB)
			slab_pool_drain(w->pool);
		for (unsigned j = 0; j < HELD && i < ABROAD; j++, i++)
			(void)ring_put(w->ring, get(w->allocator, w->pool));
	}
	w->ns = cpu_ns() - start;
	return NULL;
}

static void *run_putter(void *arg)
{
	struct worker *w = arg;
	uint64_t start;

	pthread_barrier_wait(w->start);
	start = cpu_ns();
	for (unsigned i = 0; i < ABROAD;) {
		void *p = ring_take(w->ring);

		if (!p) {
			pause_briefly();
			continue;
		}
		put(w->allocator, w->pool, p);
		i++;
	}
	if (w->allocator == BY_SLAB)
		slab_pool_flush(w->pool);
	w->ns = cpu_ns() - start;
	return NULL;
}

/* Both threads' CPU ns for a buffer that is taken on one, travels a ring and is given back on the
 * other; the ring's own cost and waiting for the other side are the same for all. */
static double time_abroad(enum allocator allocator)
{
	struct worker sides[2];
	pthread_barrier_t start;
	struct ring *ring;

	if (ring_create(&ring, RING_SLOTS))
		abort();
	pthread_barrier_init(&start, NULL, 2);
	for (unsigned i = 0; i < 2; i++) {
		sides[i] = (struct worker){ .allocator = allocator, .start = &start, .ring = ring };
		if (allocator == BY_SLAB)
			sides[i].pool = make_pool(i);
	}
	if (pthread_create(&sides[0].thread, NULL, run_getter, &sides[0]) ||
	    pthread_create(&sides[1].thread, NULL, run_putter, &sides[1]))
		abort();
	pin(sides[0].thread, 0);
	pin(sides[1].thread, 1);
	pthread_join(sides[0].thread, NULL);
	pthread_join(sides[1].thread, NULL);
	for (unsigned i = 0; i < 2; i++)
		slab_pool_destroy(sides[i].pool);
	pthread_barrier_destroy(&start);
	ring_destroy(ring);
	return (double)(sides[0].ns + sides[1].ns) / ABROAD;
}

static void bench_slab(void)
{
	enum { COUNTS = 5 };
	static const unsigned counts[COUNTS] = { 1, 2, 4, 8, 16 };
	static double ns[ALLOCATORS][COUNTS][ROUNDS], abroad[ALLOCATORS][ROUNDS];

	fill_freelist();
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned a = 0; a < ALLOCATORS; a++) {
			for (unsigned i = 0; i < COUNTS; i++)
				ns[a][i][round] = time_threads((enum allocator)a, counts[i]);
			abroad[a][round] = time_abroad((enum allocator)a);
		}
	for (unsigned i = 0; i < COUNTS; i++)
		for (unsigned a = 0; a < ALLOCATORS; a++)
			report("slab", allocator_names[a], counts[i], ns[a][i], "ns/pair");
	for (unsigned a = 0; a < ALLOCATORS; a++) {
		char name[64];

		snprintf(name, sizeof(name), "%s, put on another thread", allocator_names[a]);
		report("slab", name, 2, abroad[a], "ns/pair");
	}
}

/* --- the trigger ------------------------------------------------------------------------- */

enum { TRIGGERS = 100, INTERVAL_US = 20000, QUIET_MS = 1000, REQUESTS = 1000000 };

struct quiet {
	double allocations, wakeups, cpu_us;
};

struct usage_start {
	uint64_t allocations, cpu_ns;
	long switches;
};

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static struct usage_start begin_usage(void)
{
	return (struct usage_start){ allocations, cpu_ns(), switches() };
}

static struct quiet end_usage(const struct usage_start *start)
{
	return (struct quiet){
		.allocations = (double)(allocations - start->allocations),
		.wakeups = (double)(switches() - start->switches),
		.cpu_us = (double)(cpu_ns() - start->cpu_ns) / 1e3,
	};
}

struct watched {
	struct trigger trigger;
	struct ticker_item item;
};

struct scene {
	struct loop *loop;
	struct loop_timer *timer;
	struct loop_waker *waker;
	struct ticker ticker;
	struct watched watched[TRIGGERS];
	struct usage_start start;
	struct quiet quiet;
	unsigned runs, turns;
};

static struct scene scene;

static void arm_scene(void)
{
	loop_timer_arm(scene.timer, ticker_due_us(&scene.ticker));
}

static void run_watched(struct watched *w, uint64_t now_us)
{
	struct trigger_run run;

	if (trigger_begin(&w->trigger, now_us, &run)) {
		scene.runs++;
		trigger_end(&w->trigger);
	}
	ticker_arm(&scene.ticker, &w->item, trigger_due_us(&w->trigger));
}

static void on_item(struct ticker_item *item, uint64_t now_us)
{
	run_watched((struct watched *)(void *)((char *)item - offsetof(struct watched, item)),
		    now_us);
}

static void on_scene_timer(void *arg)
{
	(void)arg;
	ticker_run(&scene.ticker, clock_now_us());
	arm_scene();
	/* All have run on their trailing edges, and nobody asks any more: quiet from here on. */
	if (scene.runs == 2 * TRIGGERS && ticker_due_us(&scene.ticker) == UINT64_MAX)
		scene.start = begin_usage();
}

static void on_scene_wake(void *arg)
{
	(void)arg;
	scene.quiet = end_usage(&scene.start);
	scene.quiet.wakeups -= 1; /* the one that ends the measurement */
	loop_stop(scene.loop);
}

static void *wake_later(void *arg)
{
	struct timespec pause = { QUIET_MS / 1000, INTERVAL_US * 2000 + 20000000 };

	(void)arg;
	nanosleep(&pause, NULL);
	loop_wake(scene.waker);
	return NULL;
}

/* Two requests each: one runs at once, one after the interval; then a second of nothing. */
static struct quiet time_triggers(void)
{
	pthread_t waker;
	uint64_t now_us = clock_now_us();

	memset(&scene, 0, sizeof(scene));
	ticker_init(&scene.ticker);
	if (loop_create(&scene.loop) ||
	    loop_timer_open(scene.loop, &scene.timer, on_scene_timer, NULL) ||
	    loop_waker_open(scene.loop, &scene.waker, on_scene_wake, NULL) ||
	    ticker_reserve(&scene.ticker, TRIGGERS))
		abort();
	for (unsigned i = 0; i < TRIGGERS; i++) {
		struct watched *w = &scene.watched[i];

		trigger_init(&w->trigger, INTERVAL_US);
		ticker_item_init(&w->item, on_item);
		(void)trigger_request(&w->trigger, now_us, 1, 1);
		run_watched(w, now_us);
		(void)trigger_request(&w->trigger, now_us, 1, 1);
		run_watched(w, now_us);
	}
	arm_scene();
	if (pthread_create(&waker, NULL, wake_later, NULL))
		abort();
	loop_run(scene.loop);
	pthread_join(waker, NULL);
	loop_timer_close(scene.timer);
	loop_waker_close(scene.waker);
	loop_destroy(scene.loop);
	ticker_fini(&scene.ticker);
	if (scene.runs != 2 * TRIGGERS)
		abort();
	return scene.quiet;
}

/* The reference: each turn of each of them waits on a timer made for that turn. */
struct remade {
	uv_timer_t timer;
};

static uint64_t remade_until_ms;

static void free_remade(uv_handle_t *handle)
{
	free(handle->data);
}

static void start_remade(uv_loop_t *loop);

static void on_remade(uv_timer_t *timer)
{
	uv_loop_t *loop = timer->loop;

	uv_close((uv_handle_t *)timer, free_remade);
	if (uv_now(loop) < remade_until_ms)
		start_remade(loop);
}

static void start_remade(uv_loop_t *loop)
{
	struct remade *r = calloc(1, sizeof(*r));

	if (!r || uv_timer_init(loop, &r->timer))
		abort();
	r->timer.data = r;
	uv_timer_start(&r->timer, on_remade, INTERVAL_US / 1000, 0);
}

static struct quiet time_remade(void)
{
	uv_loop_t loop;
	struct usage_start start;
	struct quiet quiet;

	if (uv_loop_init(&loop))
		abort();
	remade_until_ms = uv_now(&loop) + QUIET_MS;
	start = begin_usage();
	for (unsigned i = 0; i < TRIGGERS; i++)
		start_remade(&loop);
	uv_run(&loop, UV_RUN_DEFAULT);
	quiet = end_usage(&start);
	uv_loop_close(&loop);
	return quiet;
}

/* CPU ns of a request that folds into one already pending. */
static double time_requests(void)
{
	struct trigger t;
	double result;

	trigger_init(&t, INTERVAL_US);
	TIMED(REQUESTS, (unsigned)trigger_request(&t, 1, 1, 1));
	return result;
}

static void report_quiet(const char *name, struct quiet quiet[ROUNDS])
{
	double values[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++)
		values[i] = quiet[i].allocations;
	report("trigger", name, 1, values, "allocations/s");
	for (unsigned i = 0; i < ROUNDS; i++)
		values[i] = quiet[i].wakeups;
	report("trigger", name, 1, values, "wake-ups/s");
	for (unsigned i = 0; i < ROUNDS; i++)
		values[i] = quiet[i].cpu_us;
	report("trigger", name, 1, values, "CPU us/s");
}

static void bench_trigger(void)
{
	static struct quiet triggers[ROUNDS], remade[ROUNDS];
	static double requests[ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++) {
		triggers[round] = time_triggers();
		remade[round] = time_remade();
		requests[round] = time_requests();
	}
	report_quiet("100 triggers that nobody asks", triggers);
	report_quiet("100 timers of 20 ms made anew each turn", remade);
	report("trigger", "request that folds", 1, requests, "ns/request");
}

int main(int argc, char **argv)
{
	as_json = argc > 1 && strcmp(argv[1], "--json") == 0;
	if (as_json)
		printf("[");
	else
		printf("%-9s %-46s %s  median of %d, (least to most)\n", "", "", "threads", ROUNDS);
	bench_lifetime();
	bench_slab();
	bench_trigger();
	if (as_json)
		printf("]\n");
	return 0;
}
