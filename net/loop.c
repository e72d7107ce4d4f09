/* net/loop.c - see loop.h for the contract. */
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { HELPER_NICE = 5 }; /* handshakes yield to media, but are not starved by it */

struct loop_signal {
	uv_signal_t handle;
	struct loop_signal *next;
	void (*on_signal)(void *arg, int signo);
	void *arg;
};

struct loop {
	uv_loop_t uv;
	uv_prepare_t prepare;
	uv_idle_t idle; /* active while a turn asked to be called again */
	bool (*turn)(void *arg);
	void *turn_arg;
	struct loop_signal *signals;
	bool idling;
};

struct loop_watch {
	uv_poll_t handle;
	void (*on_ready)(void *arg, unsigned events);
	void *arg;
	unsigned events;
};

struct loop_timer {
	uv_timer_t handle;
	void (*on_due)(void *arg);
	void *arg;
};

struct loop_waker {
	uv_async_t handle;
	void (*on_wake)(void *arg);
	void *arg;
};

struct loop_work {
	uv_work_t handle;
	void (*run)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

uint64_t clock_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void free_handle(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_idle(uv_idle_t *handle)
{
	(void)handle; /* an active idle handle makes the poll not sleep; that is its whole use */
}

static void on_prepare(uv_prepare_t *handle)
{
	struct loop *l = handle->data;
	bool again = l->turn && l->turn(l->turn_arg);

	if (again == l->idling)
		return;
	l->idling = again;
	if (again)
		uv_idle_start(&l->idle, on_idle);
	else
		uv_idle_stop(&l->idle);
}

int loop_create(struct loop **out)
{
	struct loop *l = calloc(1, sizeof(*l));
	int err;

	*out = NULL;
	if (!l)
		return -ENOMEM;
	err = uv_loop_init(&l->uv);
	if (err) {
		free(l);
		return err;
	}
	uv_prepare_init(&l->uv, &l->prepare);
	uv_idle_init(&l->uv, &l->idle);
	l->prepare.data = l;
	l->idle.data = l;
	*out = l;
	return 0;
}

void loop_destroy(struct loop *l)
{
	if (!l)
		return;
	for (struct loop_signal *s = l->signals, *next; s; s = next) {
		next = s->next;
		uv_close((uv_handle_t *)&s->handle, free_handle);
	}
	uv_close((uv_handle_t *)&l->prepare, NULL);
	uv_close((uv_handle_t *)&l->idle, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT);
	if (uv_loop_close(&l->uv) != 0) {
		fprintf(stderr, "loop_destroy: a handle was left open\n");
		abort();
	}
	free(l);
}

void loop_run(struct loop *l)
{
	uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
	uv_stop(&l->uv);
}

void loop_on_turn(struct loop *l, bool (*turn)(void *arg), void *arg)
{
	l->turn = turn;
	l->turn_arg = arg;
	if (turn)
		uv_prepare_start(&l->prepare, on_prepare);
	else
		uv_prepare_stop(&l->prepare);
	if (!turn && l->idling) {
		l->idling = false;
		uv_idle_stop(&l->idle);
	}
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
	struct loop_watch *w = handle->data;
	unsigned ready = 0;

	if (status < 0)
		ready = w->events;
	if (events & UV_READABLE)
		ready |= LOOP_READABLE;
	if (events & UV_WRITABLE)
		ready |= LOOP_WRITABLE;
	w->on_ready(w->arg, ready);
}

int loop_watch_open(struct loop *l, struct loop_watch **out, int fd,
		    void (*on_ready)(void *arg, unsigned events), void *arg)
{
	struct loop_watch *w = calloc(1, sizeof(*w));
	int err;

	*out = NULL;
	if (!w)
		return -ENOMEM;
	err = uv_poll_init(&l->uv, &w->handle, fd);
	if (err) {
		free(w);
		return err;
	}
	w->handle.data = w;
	w->on_ready = on_ready;
	w->arg = arg;
	*out = w;
	return 0;
}

void loop_watch_set(struct loop_watch *w, unsigned events)
{
	int want = 0;

	if (events == w->events)
		return;
	w->events = events;
	if (events & LOOP_READABLE)
		want |= UV_READABLE;
	if (events & LOOP_WRITABLE)
		want |= UV_WRITABLE;
	if (want)
		uv_poll_start(&w->handle, want, on_poll);
	else
		uv_poll_stop(&w->handle);
}

void loop_watch_close(struct loop_watch *w)
{
	if (w)
		uv_close((uv_handle_t *)&w->handle, free_handle);
}

static void on_timer(uv_timer_t *handle)
{
	struct loop_timer *t = handle->data;

	t->on_due(t->arg);
}

int loop_timer_open(struct loop *l, struct loop_timer **out, void (*on_due)(void *arg), void *arg)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return -ENOMEM;
	uv_timer_init(&l->uv, &t->handle);
	t->handle.data = t;
	t->on_due = on_due;
	t->arg = arg;
	return 0;
}

void loop_timer_arm(struct loop_timer *t, uint64_t due_us)
{
	uint64_t now_us;

	if (due_us == UINT64_MAX) {
		uv_timer_stop(&t->handle);
		return;
	}
	now_us = clock_now_us();
	/* libuv counts from the loop's cached time: bring it up to now first. */
	uv_update_time(t->handle.loop);
	uv_timer_start(&t->handle, on_timer, due_us > now_us ? (due_us - now_us + 999) / 1000 : 0,
		       0);
}

void loop_timer_close(struct loop_timer *t)
{
	if (t)
		uv_close((uv_handle_t *)&t->handle, free_handle);
}

static void on_async(uv_async_t *handle)
{
	struct loop_waker *w = handle->data;

	w->on_wake(w->arg);
}

int loop_waker_open(struct loop *l, struct loop_waker **out, void (*on_wake)(void *arg), void *arg)
{
	struct loop_waker *w = calloc(1, sizeof(*w));
	int err;

	*out = NULL;
	if (!w)
		return -ENOMEM;
	err = uv_async_init(&l->uv, &w->handle, on_async);
	if (err) {
		free(w);
		return err;
	}
	w->handle.data = w;
	w->on_wake = on_wake;
	w->arg = arg;
	*out = w;
	return 0;
}

void loop_wake(struct loop_waker *w)
{
	uv_async_send(&w->handle);
}

void loop_waker_close(struct loop_waker *w)
{
	if (w)
		uv_close((uv_handle_t *)&w->handle, free_handle);
}

static void on_uv_signal(uv_signal_t *handle, int signo)
{
	struct loop_signal *s = handle->data;

	s->on_signal(s->arg, signo);
}

int loop_on_signal(struct loop *l, int signo, void (*on_signal)(void *arg, int signo), void *arg)
{
	struct loop_signal *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	err = uv_signal_init(&l->uv, &s->handle);
	if (err) {
		free(s);
		return err;
	}
	s->handle.data = s;
	s->on_signal = on_signal;
	s->arg = arg;
	s->next = l->signals;
	l->signals = s;
	return uv_signal_start(&s->handle, on_uv_signal, signo);
}

void loop_set_helpers(unsigned threads)
{
	char text[16];

	assert(threads >= 1 && threads <= 64);
	snprintf(text, sizeof(text), "%u", threads);
	setenv("UV_THREADPOOL_SIZE", text, 1); /* read by libuv at its first work item */
}

static void on_work(uv_work_t *handle)
{
	static _Thread_local bool lowered;
	struct loop_work *w = handle->data;

	if (!lowered) {
		lowered = true;
		/* On Linux niceness is a thread's own. Failing only loses the preference. */
		(void)!nice(HELPER_NICE);
	}
	w->run(w->arg);
}

static void on_work_done(uv_work_t *handle, int status)
{
	struct loop_work *w = handle->data;

	(void)status; /* only uv_cancel() sets it, which is never called */
	w->done(w->arg);
	free(w);
}

int loop_submit(struct loop *l, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
	struct loop_work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct loop_work){ .run = run, .done = done, .arg = arg };
	w->handle.data = w;
	uv_queue_work(&l->uv, &w->handle, on_work, on_work_done);
	return 0;
}
