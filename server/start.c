/* server/start.c - see start.h for the contract. */
#include "server/start.h"

#include "media/packet.h"
#include "media/start.h"
#include "server/publisher.h"

enum {
	/* Sound is 50 packets a second: an eighth of the bytes is seconds of it. */
	AUDIO_SHARE = 8,
};

void start_bound_history(const struct config *c, unsigned kind, struct history_config *out)
{
	uint32_t needed_us = c->media.fast_start_ms * 1000 + START_RESERVE_US;
	uint32_t audio_bytes = c->media.history_bytes / AUDIO_SHARE;

	out->max_age_us = c->media.history_ms * 1000;
	if (kind == MEDIA_VIDEO && c->media.fast_start && out->max_age_us < needed_us)
		out->max_age_us = needed_us;
	out->max_bytes = kind == MEDIA_VIDEO ? c->media.history_bytes - audio_bytes : audio_bytes;
}

void start_on_join(struct viewer *v, unsigned encoding)
{
	struct branch *b = v->branch;
	struct branch_track *lane = branch_video(b, encoding);
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];

	if (!b->worker->shared->config->media.fast_start) {
		viewer_wait_for(v, (uint8_t)encoding); /* which asks for it */
		return;
	}
	t->is_undecided = true;
	if (lane->history && history_newest_index(lane->history) != 0) {
		branch_want_pass(b);
	} else {
		viewer_wait_for(v, (uint8_t)encoding);
		lane->keyframe_due_us = b->worker->now_us + START_SEED_US;
	}
	branch_arm(b);
}

void start_on_asked(struct branch *b)
{
	for (uint32_t i = 0; i < b->viewer_count; i++)
		b->viewers[i]->tracks[MEDIA_VIDEO].is_asked = true;
}

static void count(struct worker_counters *c, enum start_verdict verdict)
{
	if (verdict == START_HIT)
		counter_add(&c->fast_start_hits, 1);
	else if (verdict == START_NO_KEYFRAME || verdict == START_STALE)
		counter_add(&c->fast_start_misses, 1);
	else
		counter_add(&c->fast_start_refused, 1);
}

/* A key frame that came after the viewer is begun with at once: it comes in its own time. */
static bool is_live(const struct viewer *v, const struct slab *keyframe, uint64_t release)
{
	return keyframe && packet_of_const(keyframe)->index <= release &&
	       packet_of_const(keyframe)->arrival_us >= v->joined_us;
}

bool start_decide(struct viewer *v, unsigned encoding, uint64_t *first_index)
{
	struct branch *b = v->branch;
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	const struct history *h = branch_video(b, encoding)->history;
	const struct config *c = b->worker->shared->config;
	struct history_config bounds;
	struct start_limits limits;
	enum start_verdict verdict;
	struct start start;

	if (is_live(v, history_keyframe(h), b->pass_to[stream_lane(MEDIA_VIDEO, encoding)])) {
		t->is_undecided = false;
		*first_index = start_of_frame(h, history_keyframe(h), t->wait_from);
		return true;
	}
	if (b->worker->now_us < v->joined_us + START_SETTLE_US) {
		b->is_pacing = true; /* passes go on */
		return false;
	}
	start_bound_history(c, MEDIA_VIDEO, &bounds);
	limits = (struct start_limits){
		.max_age_us = c->media.fast_start_ms * UINT64_C(1000),
		/* A quarter stays free for what comes while the viewer catches up. */
		.max_pkts = bounds.max_bytes / SLAB_BYTES / 4 * 3,
	};
	t->is_undecided = false;
	verdict = start_find(h, &limits, b->worker->now_us, &start);
	count(&b->worker->counters, verdict);
	if (verdict != START_HIT) {
		t->wait_from = history_newest_index(h);
		if (v->waits_for != encoding)
			viewer_wait_for(v, (uint8_t)encoding);
		else if (!t->is_asked)
			branch_want_keyframe(b, encoding, PUBLISHER_KEYFRAME_JOIN);
		return false;
	}
	*first_index = start.first_index;
	t->squeeze = start.squeeze;
	return true;
}
