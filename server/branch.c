/* server/branch.c - see branch.h for the contract. */
#include "server/branch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/publisher.h"
#include "server/viewer.h"

enum {
	HISTORY_PKTS = 4096,
	KEYFRAME_FOLD_US = 20000,   /* requests of viewers here, before they travel */
	KEYFRAME_AGAIN_US = 500000, /* while viewers still wait for one */
	FIRST_VIEWERS = 16,
};

/* --- making ------------------------------------------------------------------------------ */

static void on_timer(struct ticker_item *item, uint64_t now_us);

static int open_histories(struct branch *b)
{
	const struct config *c = b->worker->shared->config;
	struct history_config config = {
		.capacity_pkts = HISTORY_PKTS,
		.max_age_us = c->media.history_ms * 1000,
		.max_bytes = c->media.history_bytes / STREAM_TRACKS,
	};
	int err = 0;

	for (unsigned i = 0; i < STREAM_TRACKS && !err; i++)
		err = history_create(&b->tracks[i].history, &config, b->worker->pool);
	return err;
}

static bool grow_branches(struct worker *w, uint32_t slot)
{
	uint32_t cap = w->branch_cap ? w->branch_cap : 64;
	struct branch_slot *slots;

	while (cap <= slot)
		cap *= 2;
	slots = realloc(w->branches, cap * sizeof(*slots));
	if (!slots)
		return false;
	memset(slots + w->branch_cap, 0, (cap - w->branch_cap) * sizeof(*slots));
	w->branches = slots;
	w->branch_cap = cap;
	return true;
}

static void destroy(struct branch *b)
{
	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		history_destroy(b->tracks[i].history);
	assert(!b->templates);
	stream_unref(b->stream);
	free(b->viewers);
	free(b);
}

struct branch *branch_get(struct worker *w, struct stream *stream)
{
	struct branch *b = worker_branch(w, stream->slot, stream->generation);

	if (b)
		return b;
	if (stream->slot >= w->branch_cap && !grow_branches(w, stream->slot))
		return NULL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->worker = w;
	b->stream = stream_ref(stream);
	b->hold_due_us = b->pace_due_us = b->keyframe_due_us = UINT64_MAX;
	trigger_init(&b->keyframe, KEYFRAME_FOLD_US);
	ticker_item_init(&b->timer, on_timer);
	if (open_histories(b)) {
		destroy(b);
		return NULL;
	}
	w->branches[stream->slot] = (struct branch_slot){ b, stream->generation };
	atomic_fetch_or_explicit(&stream->wanted, UINT64_C(1) << w->index, memory_order_relaxed);
	counter_add(&w->counters.branches, 1);
	return b;
}

static void leave_ready_list(struct branch *b)
{
	struct worker *w = b->worker;

	for (struct branch **at = &w->ready; *at; at = &(*at)->next_ready) {
		if (*at != b)
			continue;
		*at = b->next_ready;
		if (!*at)
			w->ready_tail = at;
		return;
	}
}

static void end(struct branch *b)
{
	struct worker *w = b->worker;
	struct stream *stream = b->stream;

	atomic_fetch_and_explicit(&stream->wanted, ~(UINT64_C(1) << w->index),
				  memory_order_relaxed);
	w->branches[stream->slot] = (struct branch_slot){ 0 };
	if (b->is_ready)
		leave_ready_list(b);
	ticker_arm(&w->ticker, &b->timer, UINT64_MAX);
	trigger_stop(&b->keyframe, TRIGGER_DROP);
	counter_add(&w->counters.branches, (uint64_t)-1);
	destroy(b);
}

int branch_join(struct branch *b, struct viewer *v)
{
	if (b->viewer_count == b->viewer_cap) {
		uint32_t cap = b->viewer_cap ? b->viewer_cap * 2 : FIRST_VIEWERS;
		struct viewer **viewers = realloc(b->viewers, cap * sizeof(struct viewer *));

		if (!viewers) {
			if (b->viewer_count == 0)
				end(b);
			return -ENOMEM;
		}
		b->viewers = viewers;
		b->viewer_cap = cap;
	}
	v->at = b->viewer_count;
	b->viewers[b->viewer_count++] = v;
	atomic_fetch_add_explicit(&b->stream->viewers, 1, memory_order_relaxed);
	return 0;
}

void branch_leave(struct branch *b, struct viewer *v)
{
	struct viewer *last = b->viewers[--b->viewer_count];

	/* The last one takes the place. A running pass may miss it for once: it has a cursor of its
	 * own, and the next pass sends what it still lacks. */
	b->viewers[v->at] = last;
	last->at = v->at;
	b->wants_pass |= b->is_passing;
	atomic_fetch_sub_explicit(&b->stream->viewers, 1, memory_order_relaxed);
	if (b->viewer_count == 0)
		end(b);
}

/* --- packets ----------------------------------------------------------------------------- */

static void want_pass(struct branch *b)
{
	b->wants_pass = true;
	worker_branch_ready(b->worker, b);
}

static void end_hold(struct branch *b, struct branch_track *t)
{
	struct worker *w = b->worker;

	if (t->is_holding)
		worker_count_log2(w->counters.hold_slots, WORKER_LAG_SLOTS,
				  w->now_us > t->held_from_us ? w->now_us - t->held_from_us : 0);
	t->is_holding = false;
}

/* How far passes may send now: a frame waits for its last packet, since what leaves together
 * costs a third of what leaves one by one. */
static void release_video(struct branch *b, struct branch_track *t, const struct media_packet *p)
{
	const struct config *c = b->worker->shared->config;

	if (b->viewer_count < c->media.hold_min_viewers || c->media.hold_us == 0 ||
	    packet_has(p, PACKET_MARKER)) {
		t->release = p->index;
		end_hold(b, t);
		b->hold_due_us = UINT64_MAX;
		want_pass(b);
		return;
	}
	if (t->is_holding && p->timestamp == t->held_timestamp)
		return;
	if (t->is_holding) {
		/* The frame before ended without its marker. */
		t->release = p->index - 1;
		end_hold(b, t);
		want_pass(b);
	}
	t->is_holding = true;
	t->held_from_us = p->arrival_us;
	t->held_timestamp = p->timestamp;
	b->hold_due_us = p->arrival_us + c->media.hold_us;
	branch_arm(b);
}

void branch_on_packet(struct branch *b, struct slab *slab)
{
	const struct media_packet packet = *packet_of(slab);
	struct branch_track *t = &b->tracks[packet.track];

	switch (history_put(t->history, slab, b->worker->now_us)) {
	case HISTORY_NEWEST:
		if (packet_has(&packet, PACKET_VIDEO)) {
			release_video(b, t, &packet);
		} else {
			t->release = packet.index;
			want_pass(b);
		}
		return;
	case HISTORY_LATE:
		want_pass(b);
		return;
	default:
		return;
	}
}

void branch_expire(struct branch *b, uint64_t now_us)
{
	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		history_expire(b->tracks[i].history, now_us);
}

void branch_set_anchors(struct branch *b, const struct clock_anchor anchors[STREAM_TRACKS])
{
	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		b->tracks[i].anchor = anchors[i];
}

/* --- key frames -------------------------------------------------------------------------- */

static void ask_publisher(struct branch *b, const struct trigger_run *run)
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
			publisher_want_keyframe(s->publisher, run->reasons, run->folds);
		return;
	}
	letter = calloc(1, sizeof(*letter));
	if (!letter)
		return; /* viewers that wait ask again */
	letter->kind = LETTER_KEYFRAME;
	letter->to = ref;
	letter->reason = run->reasons;
	letter->folds = run->folds;
	worker_post(w->shared->team[ref.worker], letter);
}

static void run_keyframe_trigger(struct branch *b)
{
	struct trigger_run run;

	if (!trigger_begin(&b->keyframe, b->worker->now_us, &run))
		return;
	ask_publisher(b, &run);
	trigger_end(&b->keyframe);
}

void branch_want_keyframe(struct branch *b, uint32_t reason)
{
	(void)trigger_request(&b->keyframe, b->worker->now_us, reason, 1);
	run_keyframe_trigger(b);
	branch_arm(b);
}

/* --- timer ------------------------------------------------------------------------------- */

static void on_timer(struct ticker_item *item, uint64_t now_us)
{
	struct branch *b = container_of(item, struct branch, timer);
	struct branch_track *video = &b->tracks[MEDIA_VIDEO];

	b->worker->now_us = now_us;
	if (b->hold_due_us <= now_us) {
		b->hold_due_us = UINT64_MAX;
		end_hold(b, video);
		video->release = history_newest_index(video->history);
		want_pass(b);
	}
	if (b->pace_due_us <= now_us) {
		b->pace_due_us = UINT64_MAX;
		want_pass(b);
	}
	if (b->keyframe_due_us <= now_us) {
		b->keyframe_due_us = UINT64_MAX;
		if (b->waiting)
			(void)trigger_request(&b->keyframe, now_us, PUBLISHER_KEYFRAME_JOIN, 1);
	}
	run_keyframe_trigger(b);
	branch_arm(b);
}

void branch_arm(struct branch *b)
{
	uint64_t due_us = trigger_due_us(&b->keyframe);

	if (b->waiting && b->keyframe_due_us == UINT64_MAX)
		b->keyframe_due_us = b->worker->now_us + KEYFRAME_AGAIN_US;
	if (b->keyframe_due_us < due_us)
		due_us = b->keyframe_due_us;
	if (b->hold_due_us < due_us)
		due_us = b->hold_due_us;
	if (b->pace_due_us < due_us)
		due_us = b->pace_due_us;
	if (due_us != b->timer.due_us)
		ticker_arm(&b->worker->ticker, &b->timer, due_us);
}

size_t branch_bytes(const struct branch *b)
{
	size_t bytes = sizeof(*b) + b->viewer_cap * sizeof(struct viewer *) +
		       STREAM_TRACKS * HISTORY_PKTS * sizeof(struct slab *);

	for (const struct templates *t = b->templates; t; t = t->next)
		bytes += sizeof(*t);
	return bytes;
}
