#include "tests/server/kit_loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/random.h"
#include "tests/server/kit_wire.h"

enum { WATCHES = 128, TIMERS = 4, WORKS = 256 };

struct loop_watch {
	struct loop *loop;
	int fd;
	unsigned events;
	void (*on_ready)(void *arg, unsigned events);
	void *arg;
};

struct loop_timer {
	struct loop *loop;
	uint64_t due_us;
	void (*on_due)(void *arg);
	void *arg;
};

struct loop_waker {
	struct loop *loop;
	bool is_set;
	void (*on_wake)(void *arg);
	void *arg;
};

struct work {
	void (*run)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

struct loop {
	struct loop_watch *watches[WATCHES];
	struct loop_timer *timers[TIMERS];
	struct loop_waker *waker;
	struct work works[WORKS]; /* in order */
	unsigned work_count;
	bool is_work_held, is_stopped, again;
	bool (*turn)(void *arg);
	void *turn_arg;
	unsigned wakes, wake_calls;
};

static uint64_t clock_us, clock_step_us, random_state = 1;

/* --- clock and chance --------------------------------------------------------------------- */

uint64_t clock_now_us(void)
{
	clock_us += clock_step_us;
	return clock_us;
}

void kit_clock_set(uint64_t now_us)
{
	clock_us = now_us;
}

uint64_t kit_clock(void)
{
	return clock_us;
}

void kit_clock_step(uint64_t us_a_reading)
{
	clock_step_us = us_a_reading;
}

void kit_random_seed(uint64_t seed)
{
	random_state = seed * 2 + 1;
}

/* xorshift64* */
uint64_t random_u64(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(2685821657736338717);
}

void random_bytes(void *out, size_t n)
{
	uint8_t *at = out;

	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(random_u64() >> 32);
}

/* --- handles ------------------------------------------------------------------------------ */

int loop_create(struct loop **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < WATCHES; i++)
		assert(!l->watches[i]);
	for (unsigned i = 0; i < TIMERS; i++)
		assert(!l->timers[i]);
	assert(!l->waker && l->work_count == 0);
	free(l);
}

void loop_stop(struct loop *l)
{
	l->is_stopped = true;
}

void loop_run(struct loop *l)
{
	while (!l->is_stopped && kit_loop_round(l))
		;
}

void loop_on_turn(struct loop *l, bool (*turn)(void *arg), void *arg)
{
	l->turn = turn;
	l->turn_arg = arg;
}

int loop_watch_open(struct loop *l, struct loop_watch **out, int fd,
		    void (*on_ready)(void *arg, unsigned events), void *arg)
{
	struct loop_watch *w = calloc(1, sizeof(*w));
	unsigned i = 0;

	*out = w;
	if (!w)
		return -ENOMEM;
	*w = (struct loop_watch){ l, fd, 0, on_ready, arg };
	while (l->watches[i])
		i++;
	assert(i < WATCHES);
	l->watches[i] = w;
	return 0;
}

void loop_watch_set(struct loop_watch *w, unsigned events)
{
	w->events = events;
}

void loop_watch_close(struct loop_watch *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < WATCHES; i++)
		if (w->loop->watches[i] == w)
			w->loop->watches[i] = NULL;
	free(w);
}

int loop_timer_open(struct loop *l, struct loop_timer **out, void (*on_due)(void *arg), void *arg)
{
	struct loop_timer *t = calloc(1, sizeof(*t));
	unsigned i = 0;

	*out = t;
	if (!t)
		return -ENOMEM;
	*t = (struct loop_timer){ l, UINT64_MAX, on_due, arg };
	while (l->timers[i])
		i++;
	assert(i < TIMERS);
	l->timers[i] = t;
	return 0;
}

/* As the real one: rounded up to a millisecond. */
void loop_timer_arm(struct loop_timer *t, uint64_t due_us)
{
	uint64_t wait_us = due_us > clock_us ? due_us - clock_us : 0;

	t->due_us = due_us == UINT64_MAX ? due_us : clock_us + (wait_us + 999) / 1000 * 1000;
}

void loop_timer_close(struct loop_timer *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < TIMERS; i++)
		if (t->loop->timers[i] == t)
			t->loop->timers[i] = NULL;
	free(t);
}

int loop_waker_open(struct loop *l, struct loop_waker **out, void (*on_wake)(void *arg), void *arg)
{
	struct loop_waker *w = calloc(1, sizeof(*w));

	*out = w;
	if (!w)
		return -ENOMEM;
	*w = (struct loop_waker){ l, false, on_wake, arg };
	assert(!l->waker);
	l->waker = w;
	return 0;
}

void loop_wake(struct loop_waker *w)
{
	w->is_set = true;
	w->loop->wake_calls++;
}

void loop_waker_close(struct loop_waker *w)
{
	if (!w)
		return;
	w->loop->waker = NULL;
	free(w);
}

int loop_on_signal(struct loop *l, int signo, void (*on_signal)(void *arg, int signo), void *arg)
{
	(void)l;
	(void)signo;
	(void)on_signal;
	(void)arg;
	return -ENOTSUP; /* signals are main's; nothing under test here takes any */
}

void loop_set_helpers(unsigned threads)
{
	(void)threads; /* work runs on the only thread there is */
}

int loop_submit(struct loop *l, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
	if (l->work_count == WORKS)
		return -ENOMEM;
	l->works[l->work_count++] = (struct work){ run, done, arg };
	return 0;
}

/* --- the round ---------------------------------------------------------------------------- */

static bool run_timers(struct loop *l)
{
	bool ran = false;

	for (unsigned i = 0; i < TIMERS; i++) {
		struct loop_timer *t = l->timers[i];

		if (!t || t->due_us > clock_us)
			continue;
		t->due_us = UINT64_MAX;
		t->on_due(t->arg);
		ran = true;
	}
	return ran;
}

static bool run_watches(struct loop *l)
{
	bool ran = false;

	for (unsigned i = 0; i < WATCHES; i++) {
		struct loop_watch *w = l->watches[i];
		unsigned ready = w ? w->events & kit_wire_ready(w->fd) : 0;

		if (ready == 0)
			continue;
		w->on_ready(w->arg, ready);
		ran = true;
	}
	return ran;
}

static bool run_work(struct loop *l)
{
	unsigned n = l->is_work_held ? 0 : l->work_count;

	for (unsigned i = 0; i < n; i++) {
		struct work work = l->works[0];

		memmove(l->works, l->works + 1, --l->work_count * sizeof(work));
		work.run(work.arg);
		work.done(work.arg);
	}
	return n > 0;
}

bool kit_loop_round(struct loop *l)
{
	bool ran = l->again;

	if (l->is_stopped)
		return false;
	ran |= run_timers(l);
	if (l->waker && l->waker->is_set) {
		l->waker->is_set = false;
		l->wakes++;
		l->waker->on_wake(l->waker->arg);
		ran = true;
	}
	ran |= run_watches(l);
	ran |= run_work(l);
	if (ran && l->turn)
		l->again = l->turn(l->turn_arg);
	return ran;
}

uint64_t kit_loop_due_us(const struct loop *l)
{
	uint64_t due_us = UINT64_MAX;

	for (unsigned i = 0; i < TIMERS; i++)
		if (l->timers[i] && l->timers[i]->due_us < due_us)
			due_us = l->timers[i]->due_us;
	return due_us;
}

void kit_loop_hold_work(struct loop *l, bool is_held)
{
	l->is_work_held = is_held;
}

unsigned kit_loop_works(const struct loop *l)
{
	return l->work_count;
}

unsigned kit_loop_wakes(const struct loop *l)
{
	return l->wakes;
}

unsigned kit_loop_wake_calls(const struct loop *l)
{
	return l->wake_calls;
}

bool kit_loop_is_stopped(const struct loop *l)
{
	return l->is_stopped;
}
