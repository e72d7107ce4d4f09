/* server/viewer_layers.c - see viewer_layers.h for the contract. */
#include "server/viewer_layers.h"

#include <errno.h>
#include <stdlib.h>

#include "server/publisher.h"

enum {
	/* How long another frame rate of the same encoding waits for a picture with which it may be
	 * begun, before a key frame is asked for: streams with temporal layers have such pictures
	 * often. Upper spatial layers are begun with key frames. */
	SWITCH_PATIENCE_US = 500000,
	ADOPT_BACK_PKTS = 64, /* how far back the last packet sent is looked for */
};

/* The newest packet that a viewer was sent under its constant offset, as far as it is still held. */
static const struct slab *newest_sent(const struct viewer *v)
{
	const struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	const struct history *h = v->branch->tracks[MEDIA_VIDEO].history;
	const struct slab *s = NULL;

	for (uint64_t i = 0; i < ADOPT_BACK_PKTS && !s; i++)
		if (t->cursor - i >= t->resend.first_index)
			s = history_get(h, t->cursor - i);
	return s;
}

int viewer_open_layers(struct viewer *v)
{
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	struct viewer_layers *l;

	if (v->layers)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	v->layers = l;
	l->target = NUMBERING_ALL;
	l->has_ended = true;
	if (!t->is_started)
		return 0; /* it begins when it starts */
	l->complete = UINT32_MAX;
	l->late_seen[0] = t->late_seen;
	numbering_adopt(&l->numbering, 0, t->resend.first_index,
			resend_number(&t->resend, t->resend.first_index), t->cursor,
			newest_sent(v));
	return 0;
}

int viewer_want(struct viewer *v, unsigned encoding, unsigned target)
{
	int err;

	if (!v->tracks[MEDIA_VIDEO].templates)
		return -ENOENT;
	err = viewer_open_layers(v);
	if (err)
		return err;
	v->layers->is_chosen = true;
	v->layers->wish = (struct viewer_goal){
		.encoding = (uint8_t)(encoding % STREAM_ENCODINGS),
		.target = (uint8_t)(target % LAYERS_TARGETS),
		.is_paused = (target & VIEWER_PAUSED) != 0,
	};
	viewer_aim(v);
	return 0;
}

void viewer_tell_layer(struct viewer *v)
{
	const struct viewer_layers *l = v->layers;
	struct plan_layer layer = {
		.encoding = l->encoding,
		.target = l->target,
		.is_paused = l->is_paused,
	};

	counter_set(&v->session->plan->stats.layer, plan_layer_pack(layer));
}

void viewer_want_best(struct viewer *v)
{
	v->layers->is_chosen = false;
	viewer_aim(v);
}

bool viewer_needs_keyframe(const struct viewer *v)
{
	const struct viewer_layers *l = v->layers;

	return !v->tracks[MEDIA_VIDEO].is_started || l->is_paused ||
	       l->goal.encoding != l->encoding;
}

static void wait_for_goal(struct viewer *v)
{
	const struct viewer_layers *l = v->layers;
	bool is_upper = l->goal.target != VIEWER_TOP &&
			l->goal.target / LAYERS_ROW > l->target / LAYERS_ROW &&
			!(l->complete >> l->goal.target & 1);
	bool is_late = l->goal.target != l->target &&
		       (is_upper || v->session->worker->now_us >= l->goal_us + SWITCH_PATIENCE_US);

	if (v->tracks[MEDIA_VIDEO].is_undecided)
		return; /* it may need none */
	if (l->goal.is_paused || !(viewer_needs_keyframe(v) || is_late))
		viewer_wait_for(v, VIEWER_NO_KEYFRAME);
	else
		viewer_wait_for(v, l->goal.encoding);
}

void viewer_aim(struct viewer *v)
{
	struct viewer_layers *l = v->layers;
	struct viewer_goal goal = l->wish;

	if (!l->is_chosen)
		goal = (struct viewer_goal){
			.encoding = (uint8_t)branch_best_encoding(v->branch),
			.target = VIEWER_TOP,
		};
	if (!goal.is_paused && !branch_is_live(v->branch, goal.encoding)) {
		unsigned encoding = branch_live_encoding(v->branch, goal.encoding);

		if (encoding != goal.encoding)
			goal.target = VIEWER_TOP;
		goal.encoding = (uint8_t)encoding;
	}
	if (!l->has_goal || goal.encoding != l->goal.encoding || goal.target != l->goal.target ||
	    goal.is_paused != l->goal.is_paused) {
		l->has_goal = true;
		l->goal = goal;
		l->goal_us = v->session->worker->now_us;
	}
	wait_for_goal(v);
}
