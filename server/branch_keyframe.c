/* server/branch_keyframe.c - key frame requests of a branch's viewers, folded before they travel. */
#include <stdlib.h>

#include "server/branch.h"
#include "server/publisher.h"
#include "server/start.h"

static void ask_publisher(struct branch *b, uint8_t encoding, const struct trigger_run *run)
{
	struct worker *w = b->worker;
	uint64_t word = atomic_load_explicit(&b->stream->publisher, memory_order_relaxed);
	struct session_ref ref = session_ref_unpack(word);
	struct letter *letter;

	if (word == 0)
		return; /* the next publisher begins with a key frame */
	if (ref.worker == w->index) {
		struct session *s = worker_session(w, ref);

		if (s && s->publisher)
			publisher_want_keyframe(s->publisher, encoding, run->reasons, run->folds);
		return;
	}
	letter = calloc(1, sizeof(*letter));
	if (!letter)
		return; /* viewers that wait ask again */
	letter->kind = LETTER_KEYFRAME;
	letter->to = ref;
	letter->reason = run->reasons;
	letter->ask.folds = run->folds;
	letter->ask.encoding = encoding;
	worker_post(w->shared->team[ref.worker], letter);
}

static void run_trigger(struct branch *b, unsigned encoding)
{
	struct trigger *trigger = &branch_video(b, encoding)->keyframe;
	struct trigger_run run;

	if (!trigger_begin(trigger, b->worker->now_us, &run))
		return;
	ask_publisher(b, (uint8_t)encoding, &run);
	trigger_end(trigger);
}

/* A request may get lost, and a key frame too: while somebody waits, it is asked for again. */
static void ask_again(struct branch *b, struct branch_track *t)
{
	uint64_t now_us = b->worker->now_us;

	if (t->keyframe_due_us > now_us)
		return;
	t->keyframe_due_us = UINT64_MAX;
	if (!t->waiting)
		return;
	start_on_asked(b);
	(void)trigger_request(&t->keyframe, now_us, PUBLISHER_KEYFRAME_JOIN, 1);
}

void branch_run_keyframes(struct branch *b)
{
	for (unsigned e = 0; e < STREAM_ENCODINGS; e++) {
		ask_again(b, branch_video(b, e));
		run_trigger(b, e);
	}
}

void branch_want_keyframe(struct branch *b, unsigned encoding, uint32_t reason)
{
	(void)trigger_request(&branch_video(b, encoding)->keyframe, b->worker->now_us, reason, 1);
	run_trigger(b, encoding);
	branch_arm(b);
}
