/* server/worker_letters.c - what a worker does with its mail. */
#include <stdlib.h>

#include "server/branch.h"
#include "server/publisher.h"
#include "server/session.h"
#include "server/viewer.h"
#include "server/worker_inner.h"
#include "server/worker_tcp.h"

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
	case LETTER_WISH:
		if (s && s->viewer)
			viewer_set_wish(s->viewer, &letter->wish);
		return;
	case LETTER_KEYFRAME:
		if (s && s->publisher)
			publisher_want_keyframe(s->publisher, letter->ask.encoding, letter->reason,
						letter->ask.folds);
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
		session_on_feed(s);
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
	case LETTER_LAYERS:
		b = worker_branch(w, letter->stream->slot, letter->stream->generation);
		if (b)
			branch_set_table(b, &letter->layers);
		stream_unref(letter->stream);
		return;
	case LETTER_FORGET:
		worker_drop_address(w, &letter->addr, letter->to);
		return;
	case LETTER_CONNECTION:
		worker_tcp_on_moved(w, letter->connection, letter->to);
		return;
	case LETTER_SERVE:
		(void)session_claim(w, letter->plan);
		plan_unref(letter->plan);
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
		if (letter->kind == LETTER_ANCHORS || letter->kind == LETTER_LAYERS)
			stream_unref(letter->stream);
		if (letter->kind == LETTER_SERVE)
			plan_unref(letter->plan);
		if (letter->kind == LETTER_FEED)
			feed_destroy(letter->feed);
		if (letter->kind == LETTER_CONNECTION)
			tcp_connection_destroy(letter->connection);
		explicit_bzero(letter, sizeof(*letter)); /* there may be passwords in it */
		free(letter);
	}
}
