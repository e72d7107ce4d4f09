/* server/worker_letters.c - what a worker does with its mail, and what it tells of itself. */
#include <stdlib.h>

#include "server/branch.h"
#include "server/publisher.h"
#include "server/session.h"
#include "server/worker_inner.h"

void worker_post(struct worker *w, struct letter *letter)
{
	if (mailbox_post(&w->mailbox, &letter->mail))
		loop_wake(w->waker);
}

void worker_tell_control(struct worker *w, struct letter *letter)
{
	if (mailbox_post(w->shared->control, &letter->mail))
		loop_wake(w->shared->control_waker);
}

void worker_tell_stopped(struct worker *w)
{
	w->stopped_letter.kind = LETTER_STOPPED;
	w->stopped_letter.worker = w->index;
	worker_tell_control(w, &w->stopped_letter);
}

void worker_forget(struct worker *w, unsigned other, const struct net_addr *addr,
		   struct session_ref owner)
{
	struct letter *letter = calloc(1, sizeof(*letter));

	/* Without memory the entry stays and its datagrams come here in vain: tried again then. */
	if (!letter)
		return;
	letter->kind = LETTER_FORGET;
	letter->to = owner;
	letter->addr = *addr;
	worker_post(w->shared->team[other], letter);
}

static void stop(struct worker *w, enum transport_reason reason)
{
	for (uint32_t i = 0; i < w->session_cap; i++)
		if (w->sessions[i].session)
			session_end(w->sessions[i].session, reason);
	w->is_stopping = true;
}

static void on_session_letter(struct worker *w, struct letter *letter)
{
	struct session *s = worker_session(w, letter->to);

	switch (letter->kind) {
	case LETTER_CLOSE:
		if (s)
			session_end(s, (enum transport_reason)letter->reason);
		return;
	case LETTER_RESTART:
		if (s)
			session_restart(s, &letter->restart.local, &letter->restart.remote);
		explicit_bzero(&letter->restart, sizeof(letter->restart));
		return;
	case LETTER_KEYFRAME:
		if (s && s->publisher)
			publisher_want_keyframe(s->publisher, letter->reason,
						letter->keyframe.folds);
		return;
	default:
		return;
	}
}

/* A feed that finds no publisher any more goes back to control: in its own letter, since a feed
 * may not be lost for want of memory. @return whether the letter was sent on */
static bool on_feed(struct worker *w, struct letter *letter)
{
	struct session *s = worker_session(w, letter->to);

	if (s && s->publisher) {
		publisher_take_feed(s->publisher, letter->feed);
		return false;
	}
	letter->kind = LETTER_ENDED;
	worker_tell_control(w, letter);
	return true;
}

static void read_letter(struct worker *w, struct letter *letter)
{
	struct branch *b;

	switch (letter->kind) {
	case LETTER_ANCHORS:
		b = worker_branch(w, letter->stream->slot, letter->stream->generation);
		if (b)
			branch_set_anchors(b, letter->anchors);
		stream_unref(letter->stream);
		return;
	case LETTER_FORGET:
		worker_drop_address(w, &letter->addr, letter->to);
		return;
	case LETTER_STOP:
		stop(w, (enum transport_reason)letter->reason);
		return;
	default:
		on_session_letter(w, letter);
	}
}

void worker_read_letters(struct worker *w)
{
	struct mail *mail = mailbox_take(&w->mailbox);

	while (mail) {
		struct letter *letter = (struct letter *)(void *)mail;

		mail = mail->next;
		if (letter->kind == LETTER_FEED && on_feed(w, letter))
			continue;
		read_letter(w, letter);
		free(letter);
	}
}

void worker_discard_letters(struct worker *w)
{
	struct mail *mail = mailbox_take(&w->mailbox);

	while (mail) {
		struct letter *letter = (struct letter *)(void *)mail;

		mail = mail->next;
		if (letter->kind == LETTER_ANCHORS)
			stream_unref(letter->stream);
		if (letter->kind == LETTER_FEED)
			feed_destroy(letter->feed);
		explicit_bzero(letter, sizeof(*letter)); /* there may be passwords in it */
		free(letter);
	}
}

static void publish_sockets(struct worker *w)
{
	struct worker_counters *c = &w->counters;
	struct egress_stats sum = { 0 };
	struct udp_stats in = { .rcvbuf_bytes = UINT32_MAX, .sndbuf_bytes = UINT32_MAX };

	for (unsigned i = 0; i < w->socket_count; i++) {
		const struct egress_stats *e = egress_stats(w->sockets[i].egress);
		struct udp_stats u;

		sum.datagrams += e->datagrams;
		sum.bytes += e->bytes;
		sum.messages += e->messages;
		sum.calls += e->calls;
		sum.blocked += e->blocked;
		sum.gso_refused += e->gso_refused;
		sum.failed += e->failed;
		for (unsigned k = 0; k < 8; k++)
			sum.segments_histogram[k] += e->segments_histogram[k];
		udp_stats(w->sockets[i].udp, &u);
		in.datagrams += u.datagrams;
		in.kernel_drops += u.kernel_drops;
		in.oversized += u.oversized;
		in.pool_drops += u.pool_drops;
		in.rcvbuf_bytes =
		    u.rcvbuf_bytes < in.rcvbuf_bytes ? u.rcvbuf_bytes : in.rcvbuf_bytes;
		in.sndbuf_bytes =
		    u.sndbuf_bytes < in.sndbuf_bytes ? u.sndbuf_bytes : in.sndbuf_bytes;
	}
	counter_set(&c->egress_datagrams, sum.datagrams);
	counter_set(&c->egress_bytes, sum.bytes);
	counter_set(&c->egress_messages, sum.messages);
	counter_set(&c->egress_calls, sum.calls);
	counter_set(&c->egress_blocked, sum.blocked);
	counter_set(&c->egress_gso_refused, sum.gso_refused);
	counter_set(&c->egress_failed, sum.failed);
	for (unsigned k = 0; k < 8; k++)
		counter_set(&c->egress_histogram[k], sum.segments_histogram[k]);
	counter_set(&c->socket_datagrams, in.datagrams);
	counter_set(&c->socket_kernel_drops, in.kernel_drops);
	counter_set(&c->socket_oversized, in.oversized);
	counter_set(&c->socket_pool_drops, in.pool_drops);
	counter_set(&c->rcvbuf_bytes, in.rcvbuf_bytes);
	counter_set(&c->sndbuf_bytes, in.sndbuf_bytes);
}

void worker_publish(struct worker *w)
{
	struct worker_counters *c = &w->counters;
	struct slab_pool_stats pool;

	publish_sockets(w);
	slab_pool_stats(w->pool, &pool);
	counter_set(&c->slabs_in_use, pool.in_use);
	counter_set(&c->slabs_high, pool.in_use_high);
	counter_set(&c->slabs_capacity, pool.capacity);
	counter_set(&c->slabs_exhausted, pool.exhausted);
	counter_set(&c->slabs_trimmed_bytes, pool.trimmed_bytes);
	counter_set(&c->sessions, w->session_count);
}
