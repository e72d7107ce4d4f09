/* server/branch.c - see branch.h for the contract. */
#include "server/branch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/publisher.h"
#include "server/start.h"
#include "server/viewer.h"

enum {
	HISTORY_PKTS = 4096,
	KEYFRAME_FOLD_US = 20000,   /* requests of viewers here, before they travel */
	KEYFRAME_AGAIN_US = 500000, /* while viewers still wait for one */
	FIRST_VIEWERS = 16,
	/* So long, or 2.5 of its frames' intervals, an encoding may be silent while others go on. */
	SILENCE_US = 350000,
	INTERVAL_MAX_US = 400000,
};

/* --- making ------------------------------------------------------------------------------ */

static void on_timer(struct ticker_item *item, uint64_t now_us);

static int open_history(struct branch *b, unsigned lane)
{
	struct history_config config = { .capacity_pkts = HISTORY_PKTS };

	start_bound_history(b->worker->shared->config, stream_lane_kind(lane), &config);
	if (lane >= b->lanes)
		b->lanes = lane + 1;
	return history_create(&b->tracks[lane].history, &config, b->worker->pool);
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
	for (unsigned i = 0; i < STREAM_LANES; i++)
		history_destroy(b->tracks[i].history);
	assert(!b->templates);
	stream_unref(b->stream);
	free(b->table);
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
	b->pace_due_us = UINT64_MAX;
	for (unsigned i = 0; i < STREAM_LANES; i++) {
		b->tracks[i].hold_due_us = b->tracks[i].keyframe_due_us = UINT64_MAX;
		trigger_init(&b->tracks[i].keyframe, KEYFRAME_FOLD_US);
	}
	ticker_item_init(&b->timer, on_timer);
	/* Further encodings get theirs when they send. */
	if (open_history(b, MEDIA_AUDIO) || open_history(b, MEDIA_VIDEO)) {
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
	for (unsigned i = 0; i < STREAM_LANES; i++)
		trigger_stop(&b->tracks[i].keyframe, TRIGGER_DROP);
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

void branch_want_pass(struct branch *b)
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
		t->hold_due_us = UINT64_MAX;
		branch_want_pass(b);
		return;
	}
	if (t->is_holding && p->timestamp == t->held_timestamp)
		return;
	if (t->is_holding) {
		/* The frame before ended without its marker. */
		t->release = p->index - 1;
		end_hold(b, t);
		branch_want_pass(b);
	}
	t->is_holding = true;
	t->held_from_us = p->arrival_us;
	t->held_timestamp = p->timestamp;
	t->hold_due_us = p->arrival_us + c->media.hold_us;
	branch_arm(b);
}

static void note_video(struct branch *b, struct branch_track *t, const struct media_packet *p)
{
	uint64_t now_us = b->worker->now_us;

	if (p->timestamp != t->newest_timestamp && t->newest_us) {
		uint64_t gap_us = now_us - t->newest_us;

		if (gap_us > INTERVAL_MAX_US)
			gap_us = INTERVAL_MAX_US;
		t->interval_us = (uint32_t)((t->interval_us * 7 + gap_us) / 8);
	}
	t->newest_timestamp = p->timestamp;
	b->video_us = t->newest_us = now_us;
}

void branch_on_packet(struct branch *b, struct slab *slab)
{
	const struct media_packet packet = *packet_of(slab);
	unsigned lane = stream_lane(packet.track, packet.encoding);
	struct branch_track *t = &b->tracks[lane];

	if (!t->history && open_history(b, lane)) {
		slab_put(b->worker->pool, slab);
		counter_add(&b->worker->counters.handed_over_drops, 1);
		return;
	}
	switch (history_put(t->history, slab, b->worker->now_us)) {
	case HISTORY_NEWEST:
		if (packet_has(&packet, PACKET_VIDEO)) {
			note_video(b, t, &packet);
			release_video(b, t, &packet);
		} else {
			t->release = packet.index;
			branch_want_pass(b);
		}
		return;
	case HISTORY_LATE:
		branch_want_pass(b);
		return;
	default:
		return;
	}
}

/* --- encodings --------------------------------------------------------------------------- */

bool branch_is_live(const struct branch *b, unsigned encoding)
{
	const struct branch_track *t = &b->tracks[stream_lane(MEDIA_VIDEO, encoding)];
	uint64_t silent_us = b->video_us - t->newest_us;

	return t->newest_us &&
	       (silent_us <= SILENCE_US || silent_us <= t->interval_us * UINT64_C(5) / 2);
}

unsigned branch_live_encoding(const struct branch *b, unsigned encoding)
{
	for (unsigned e = encoding + 1; e-- > 0;)
		if (branch_is_live(b, e))
			return e;
	for (unsigned e = encoding + 1; e < STREAM_ENCODINGS; e++)
		if (branch_is_live(b, e))
			return e;
	return encoding;
}

/* Options are in order of their cost. */
static const struct layer_option *best_option(const struct branch *b)
{
	for (unsigned i = b->table ? b->table->count : 0; i-- > 0;) {
		const struct layer_option *o = &b->table->options[i];

		if (o->is_active && branch_is_live(b, o->encoding))
			return o;
	}
	return NULL;
}

void branch_set_table(struct branch *b, const struct layer_table *table)
{
	if (table->count == 0) {
		free(b->table);
		b->table = NULL;
		return;
	}
	if (!b->table)
		b->table = malloc(sizeof(*b->table));
	if (b->table)
		*b->table = *table;
}

unsigned branch_best_encoding(const struct branch *b)
{
	const struct layer_option *best = best_option(b);

	if (best)
		return best->encoding;
	for (unsigned e = STREAM_ENCODINGS; e-- > 0;)
		if (branch_is_live(b, e))
			return e;
	return 0;
}

/* --- the rest ---------------------------------------------------------------------------- */

void branch_expire(struct branch *b, uint64_t now_us)
{
	for (unsigned i = 0; i < b->lanes; i++)
		if (b->tracks[i].history)
			history_expire(b->tracks[i].history, now_us);
}

void branch_set_anchors(struct branch *b, const struct clock_anchor anchors[STREAM_TRACKS])
{
	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		b->anchors[i] = anchors[i];
}

static void release_held(struct branch *b, struct branch_track *t)
{
	t->hold_due_us = UINT64_MAX;
	end_hold(b, t);
	t->release = history_newest_index(t->history);
	branch_want_pass(b);
}

/* --- timer ------------------------------------------------------------------------------- */

static void on_timer(struct ticker_item *item, uint64_t now_us)
{
	struct branch *b = container_of(item, struct branch, timer);

	b->worker->now_us = now_us;
	for (unsigned i = MEDIA_VIDEO; i < b->lanes; i++)
		if (b->tracks[i].hold_due_us <= now_us)
			release_held(b, &b->tracks[i]);
	if (b->pace_due_us <= now_us) {
		b->pace_due_us = UINT64_MAX;
		branch_want_pass(b);
	}
	branch_run_keyframes(b);
	branch_arm(b);
}

static uint64_t lane_due_us(const struct branch *b, struct branch_track *t)
{
	uint64_t due_us = trigger_due_us(&t->keyframe);

	if (t->waiting && t->keyframe_due_us == UINT64_MAX)
		t->keyframe_due_us = b->worker->now_us + KEYFRAME_AGAIN_US;
	if (t->keyframe_due_us < due_us)
		due_us = t->keyframe_due_us;
	return t->hold_due_us < due_us ? t->hold_due_us : due_us;
}

void branch_arm(struct branch *b)
{
	uint64_t due_us = b->pace_due_us;

	for (unsigned i = MEDIA_VIDEO; i < STREAM_LANES; i++) {
		uint64_t lane_us = lane_due_us(b, &b->tracks[i]);

		if (lane_us < due_us)
			due_us = lane_us;
	}
	if (due_us != b->timer.due_us)
		ticker_arm(&b->worker->ticker, &b->timer, due_us);
}

size_t branch_bytes(const struct branch *b)
{
	size_t bytes = sizeof(*b) + (b->table ? sizeof(*b->table) : 0) +
		       b->viewer_cap * sizeof(struct viewer *);

	for (unsigned i = 0; i < b->lanes; i++)
		if (b->tracks[i].history)
			bytes += history_bytes(b->tracks[i].history);
	for (const struct templates *t = b->templates; t; t = t->next)
		bytes += sizeof(*t);
	return bytes;
}
