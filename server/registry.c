/* server/registry.c - see registry.h and registry_life.h for the contracts: mail, time, life. */
#include "server/registry.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "server/registry_inner.h"
#include "server/registry_life.h"

enum {
	IDENTITY_LIFE_S = 86400, /* new sessions get a fresh certificate each day */
	TRIM_CALM_US = 3000000,
};

int registry_renew_identity(struct registry *r)
{
	uint64_t now_us = clock_now_us();
	struct dtls_identity *fresh;
	int err;

	if (r->identity && now_us - r->identity_us < IDENTITY_LIFE_S * UINT64_C(1000000))
		return 0;
	err = dtls_identity_create(&fresh);
	if (err)
		return r->identity ? 0 : err; /* yesterday's is still good */
	dtls_identity_unref(r->identity);
	r->identity = fresh;
	r->identity_us = now_us;
	return 0;
}

/* --- mail and time ----------------------------------------------------------------------- */

static void on_ended(struct registry *r, struct letter *letter)
{
	struct plan *plan = letter->plan;

	if (plan && !plan->is_over) {
		registry_log_session(r, "session_end", plan);
		r->sessions_ended[atomic_load(&plan->reason) % TRANSPORT_REASONS]++;
		plan_ref(plan);
		if (plan->role == PLAN_PUBLISHER)
			registry_on_feed(r, plan, letter->feed);
		registry_plan_over(r, plan);
		if (plan->plain && plan->role == PLAN_PUBLISHER &&
		    atomic_load(&plan->reason) == TRANSPORT_CLOSED_NO_MEDIA)
			registry_renew_input(r, plan);
		plan_unref(plan);
	} else if (letter->feed) {
		registry_on_feed(r, plan, letter->feed);
	}
	plan_unref(plan);
}

static void read_letter(struct registry *r, struct letter *letter)
{
	switch (letter->kind) {
	case LETTER_CONNECTED:
		registry_log_session(r, "publisher_connected", letter->plan);
		registry_on_connected(r, letter->plan);
		plan_unref(letter->plan);
		break;
	case LETTER_CODEC:
		registry_on_codec(r, letter->plan);
		plan_unref(letter->plan);
		break;
	case LETTER_LAYERS:
		registry_on_layers(r, letter->stream, &letter->layers);
		stream_unref(letter->stream);
		break;
	case LETTER_ENDED:
		on_ended(r, letter);
		break;
	case LETTER_STOPPED:
		/* The worker's own memory: not to be freed. */
		if (++r->workers_stopped == r->shared->workers && r->on_stopped)
			r->on_stopped(r->on_stopped_arg);
		return;
	default:
		break;
	}
	free(letter);
}

static void read_letters(struct registry *r)
{
	struct mail *mail = mailbox_take(&r->mailbox);

	while (mail) {
		struct letter *letter = (struct letter *)(void *)mail;

		mail = mail->next;
		read_letter(r, letter);
	}
}

static void on_wake(void *arg)
{
	read_letters(arg);
}

static void measure(struct plan *p, uint64_t now_us)
{
	uint64_t elapsed_us = now_us - p->measured_us;

	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		uint64_t bytes = counter_read(&p->stats.track_bytes[i]);

		if (p->measured_us && elapsed_us)
			p->bitrate_bps[i] = (bytes - p->measured_bytes[i]) * 8000000 / elapsed_us;
		p->measured_bytes[i] = bytes;
	}
	p->measured_us = now_us;
}

/* Once a second: what has expired, what may be forgotten. May free p. */
static void review(struct registry *r, struct plan *p, uint64_t now_us)
{
	uint64_t age_us = now_us - p->created_us;
	uint64_t claim = atomic_load_explicit(&p->claim, memory_order_relaxed);

	if (p->is_over) {
		if (now_us - p->over_us >= REGISTRY_MEMORY_US ||
		    r->over_count > REGISTRY_MEMORY_SESSIONS) {
			registry_remember(r, p);
			registry_unlist_plan(r, p);
		}
		return;
	}
	if (claim == 0) {
		if (age_us >= r->config->session.plan_timeout_ms * UINT64_C(1000) &&
		    registry_withdraw(r, p, TRANSPORT_CLOSED_NO_ICE))
			r->plans_expired++;
		else
			r->unclaimed++;
		return;
	}
	if (p->role == PLAN_PUBLISHER) {
		measure(p, now_us);
		registry_hear(p, now_us);
	}
	if (atomic_load_explicit(&p->state, memory_order_relaxed) >= PLAN_CONNECTED)
		registry_settle(r, p);
}

/* Handshakes and ended sessions leave holes in the heap: give them back once it has calmed down. The
 * heap is walked under its lock, so this waits for sessions to stop coming and going. */
static void trim_heap(struct registry *r, uint64_t now_us)
{
	uint64_t changes = 0;

	for (unsigned i = 0; i < r->shared->workers; i++)
		changes += counter_read(&worker_counters(r->shared->team[i])->sessions_opened);
	for (unsigned i = 0; i < TRANSPORT_REASONS; i++)
		changes += r->sessions_ended[i];
	if (changes != r->changes_seen) {
		r->changes_seen = changes;
		r->trim_due_us = now_us + TRIM_CALM_US;
	} else if (r->trim_due_us <= now_us) {
		r->trim_due_us = UINT64_MAX;
		malloc_trim(0);
	}
}

static void on_tick(void *arg)
{
	struct registry *r = arg;
	uint64_t now_us = clock_now_us();

	read_letters(r);
	r->unclaimed = 0;
	for (struct plan *p = r->oldest, *newer; p; p = newer) {
		newer = p->newer;
		review(r, p, now_us);
	}
	registry_events_tick(r);
	trim_heap(r, now_us);
	loop_timer_arm(r->timer, now_us + REGISTRY_TICK_US);
}

/* --- life -------------------------------------------------------------------------------- */

int registry_create(struct registry **out, struct loop *loop, struct worker_shared *shared,
		    const struct candidates *candidates)
{
	struct registry *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->loop = loop;
	r->shared = shared;
	r->config = shared->config;
	r->candidates = *candidates;
	r->started_us = clock_now_us();
	r->trim_due_us = UINT64_MAX;
	mailbox_init(&r->mailbox);
	shared->control = &r->mailbox;
	err = registry_renew_identity(r);
	if (!err)
		err = loop_waker_open(loop, &r->waker, on_wake, r);
	if (!err)
		err = loop_timer_open(loop, &r->timer, on_tick, r);
	if (err) {
		registry_destroy(r);
		return err;
	}
	shared->control_waker = r->waker;
	loop_timer_arm(r->timer, r->started_us + REGISTRY_TICK_US);
	*out = r;
	return 0;
}

void registry_on_settled(struct registry *r,
			 void (*on_settled)(void *arg, const uint8_t client[16]), void *arg)
{
	r->on_settled = on_settled;
	r->on_settled_arg = arg;
}

void registry_drain(struct registry *r)
{
	r->is_draining = true;
	registry_events_push(r, NULL, EVENT_RECONNECT);
}

bool registry_is_ready(const struct registry *r)
{
	const struct config *c = r->config;

	return !r->is_draining && r->unclaimed < c->limits.unclaimed_plans &&
	       (c->limits.sessions == 0 || r->plan_count - r->over_count < c->limits.sessions);
}

/* Plain RTP goes on for ever: nobody waits for its end. */
uint32_t registry_sessions_open(const struct registry *r)
{
	return r->plan_count - r->over_count - registry_plain_count(r, PLAN_PUBLISHER) -
	       registry_plain_count(r, PLAN_VIEWER);
}

void registry_stop(struct registry *r, uint32_t reason, void (*on_stopped)(void *arg), void *arg)
{
	r->is_draining = true;
	r->on_stopped = on_stopped;
	r->on_stopped_arg = arg;
	for (unsigned i = 0; i < r->shared->workers; i++) {
		struct letter *letter = calloc(1, sizeof(*letter));

		if (!letter)
			abort(); /* cannot even end: nothing better is left */
		letter->kind = LETTER_STOP;
		letter->reason = reason;
		worker_post(r->shared->team[i], letter);
	}
}

void registry_destroy(struct registry *r)
{
	if (!r)
		return;
	read_letters(r);
	while (r->oldest)
		registry_unlist_plan(r, r->oldest);
	registry_free_streams(r);
	registry_forget_ended(r);
	dtls_identity_unref(r->identity);
	loop_waker_close(r->waker);
	loop_timer_close(r->timer);
	free(r);
}
