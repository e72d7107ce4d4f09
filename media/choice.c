/* media/choice.c - see choice.h for the contract. */
#include "media/choice.h"

#include <assert.h>
#include <string.h>

static const struct choice_wish no_wish = { CHOICE_ANY, CHOICE_ANY, CHOICE_ANY, 0, 0, 0, 0 };

void choice_init(struct choice *c)
{
	memset(c, 0, sizeof(*c));
	c->wish = no_wish;
	c->backoff_us = CHOICE_BACKOFF_US;
	c->due_us = UINT64_MAX;
}

void choice_set_wish(struct choice *c, const struct choice_wish *wish)
{
	struct choice_pick pick = c->pick;
	bool has_pick = c->has_pick;

	choice_init(c);
	c->wish = *wish;
	c->pick = pick;
	c->has_pick = has_pick;
	c->is_free = true;
}

static bool is_by_hand(const struct choice *c)
{
	return c->wish.encoding != CHOICE_ANY || c->wish.spatial_id != CHOICE_ANY ||
	       c->wish.temporal_id != CHOICE_ANY;
}

/* --- What is allowed ------------------------------------------------------------------------- */

static bool is_small_enough(const struct choice *c, const struct layer_option *o)
{
	return (c->wish.max_width == 0 || o->width <= c->wish.max_width) &&
	       (c->wish.max_height == 0 || o->height <= c->wish.max_height);
}

static bool is_below(unsigned id, unsigned layers)
{
	return layers == 0 || id < layers;
}

static bool is_meant(int wish, unsigned value)
{
	return wish == CHOICE_ANY || (unsigned)wish == value;
}

static bool is_matching(const struct choice *c, const struct layer_option *o)
{
	return is_meant(c->wish.encoding, o->encoding) &&
	       is_meant(c->wish.spatial_id, o->spatial_id) &&
	       is_meant(c->wish.temporal_id, o->temporal_id) && is_small_enough(c, o) &&
	       is_below(o->spatial_id, c->wish.spatial_layers) &&
	       is_below(o->temporal_id, c->wish.temporal_layers);
}

/* Options by quality, as far as a wish by hand goes: what it leaves open counts for nothing. */
static int rank(const struct choice *c, int encoding, int spatial_id, int temporal_id)
{
	int rank = c->wish.encoding == CHOICE_ANY ? 0 : encoding;

	rank = rank * LAYERS_SPATIAL + (c->wish.spatial_id == CHOICE_ANY ? 0 : spatial_id);
	return rank * LAYERS_ROW + (c->wish.temporal_id == CHOICE_ANY ? 0 : temporal_id);
}

static int distance(const struct choice *c, const struct layer_option *o)
{
	int off = rank(c, o->encoding, o->spatial_id, o->temporal_id) -
		  rank(c, c->wish.encoding, c->wish.spatial_id, c->wish.temporal_id);

	/* Anything below is nearer than what is above. */
	return off <= 0 ? -off : off + LAYER_ENCODINGS * LAYERS_TARGETS;
}

static uint32_t area(const struct layer_option *o)
{
	return (uint32_t)o->width * o->height;
}

/* Where nothing that is sent matches the wish, what comes nearest to it: by hand by rank, else the
 * smallest picture. */
static const struct layer_option *nearest(const struct choice *c, const struct layer_table *t)
{
	const struct layer_option *best = NULL;

	for (unsigned i = 0; i < t->count; i++) {
		const struct layer_option *o = &t->options[i];

		if (!o->is_active)
			continue;
		if (!best ||
		    (is_by_hand(c) ? distance(c, o) < distance(c, best) : area(o) < area(best)))
			best = o;
	}
	return best;
}

/* --- What fits ------------------------------------------------------------------------------- */

static bool fits(const struct layer_option *o, uint32_t video_bps, unsigned pct)
{
	return (uint64_t)o->bitrate_bps * pct / 100 <= video_bps;
}

/* A decision's view: the options it may take. */
struct view {
	const struct layer_table *t;
	uint32_t allowed; /* bit i: option i */
	uint32_t video_bps;
	uint64_t now_us;
};

static void allow(const struct choice *c, struct view *v)
{
	const struct layer_option *only;

	v->allowed = 0;
	for (unsigned i = 0; i < v->t->count; i++)
		if (v->t->options[i].is_active && is_matching(c, &v->t->options[i]))
			v->allowed |= UINT32_C(1) << i;
	only = v->allowed ? NULL : nearest(c, v->t);
	if (only)
		v->allowed = UINT32_C(1) << (only - v->t->options);
}

static const struct layer_option *cheapest(const struct view *v)
{
	return &v->t->options[__builtin_ctz(v->allowed)];
}

/* The costliest that fits, below limit_bps; NULL: none. */
static const struct layer_option *best_below(const struct view *v, unsigned pct, uint64_t limit_bps)
{
	for (unsigned i = v->t->count; i-- > 0;) {
		const struct layer_option *o = &v->t->options[i];

		if (v->allowed >> i & 1 && o->bitrate_bps < limit_bps && fits(o, v->video_bps, pct))
			return o;
	}
	return NULL;
}

static const struct layer_option *current(const struct choice *c, const struct view *v)
{
	const struct layer_option *o = layer_table_find(v->t, c->pick.encoding, c->pick.target);

	return c->has_pick && o && v->allowed >> (o - v->t->options) & 1 ? o : NULL;
}

/* --- Decisions ------------------------------------------------------------------------------- */

static void take(struct choice *c, const struct layer_option *o)
{
	c->pick = (struct choice_pick){ .encoding = o->encoding, .target = o->target };
	c->pick_bps = o->bitrate_bps;
	c->has_pick = true;
	c->fits_since_us = 0;
}

static void note_failure(struct choice *c, uint64_t now_us)
{
	if (c->up_us == 0 || now_us - c->up_us >= CHOICE_FAIL_US)
		return;
	c->up_us = 0;
	c->failed_bps = c->pick_bps;
	c->retry_us = now_us + c->backoff_us;
	c->backoff_us *= 2;
	if (c->backoff_us > CHOICE_BACKOFF_MAX_US)
		c->backoff_us = CHOICE_BACKOFF_MAX_US;
}

/* What is above and may be tried. */
static const struct layer_option *next_up(const struct choice *c, const struct view *v,
					  unsigned pct)
{
	uint64_t limit_bps = v->now_us < c->retry_us ? c->failed_bps / 10 * 9 : UINT64_MAX;
	const struct layer_option *o = best_below(v, pct, limit_bps);

	return o && (c->pick.is_paused || o->bitrate_bps > c->pick_bps) ? o : NULL;
}

static void go_up(struct choice *c, const struct layer_option *o, uint64_t now_us)
{
	take(c, o);
	c->tight_since_us = 0;
	c->up_us = now_us;
	c->ups++;
}

static void try_up(struct choice *c, const struct view *v)
{
	const struct layer_option *o =
	    next_up(c, v, c->pick.is_paused ? CHOICE_RESUME_PCT : CHOICE_UP_PCT);

	if (!o) {
		c->fits_since_us = 0;
		return;
	}
	if (c->fits_since_us == 0)
		c->fits_since_us = v->now_us;
	if (v->now_us - c->fits_since_us >= CHOICE_UP_HOLD_US &&
	    c->credit_us <= v->now_us + CHOICE_DOWN_BURST * (uint64_t)CHOICE_DOWN_COST_US)
		go_up(c, o, v->now_us);
}

static void go_down(struct choice *c, const struct view *v)
{
	const struct layer_option *o = best_below(v, 100, c->pick_bps);

	note_failure(c, v->now_us);
	c->downs++;
	c->credit_us = (c->credit_us > v->now_us ? c->credit_us : v->now_us) + CHOICE_DOWN_COST_US;
	take(c, o ? o : cheapest(v));
}

/* Not even the cheapest fits: pause, once that has lasted. @return true: paused */
static bool maybe_pause(struct choice *c, const struct view *v)
{
	if (fits(cheapest(v), v->video_bps, CHOICE_DOWN_PCT)) {
		c->tight_since_us = 0;
		return false;
	}
	if (c->tight_since_us == 0)
		c->tight_since_us = v->now_us;
	if (v->now_us - c->tight_since_us < CHOICE_PAUSE_HOLD_US)
		return false;
	note_failure(c, v->now_us);
	take(c, cheapest(v));
	c->pick.is_paused = true;
	c->pauses++;
	return true;
}

/* The option in use is not sent any more, or not wished for: no fault of the network. */
static void replace(struct choice *c, const struct view *v)
{
	const struct layer_option *o = best_below(v, 100, UINT64_MAX);
	bool is_paused = c->pick.is_paused && !c->is_free;

	if (!o || is_paused)
		o = cheapest(v);
	c->downs += c->has_pick && o->bitrate_bps < c->pick_bps;
	take(c, o);
	c->pick.is_paused = is_paused;
	c->is_free = false;
}

uint64_t choice_anew_bps(const struct choice *c, uint64_t now_us)
{
	return now_us < c->retry_us ? (uint64_t)c->failed_bps * CHOICE_ANEW_PCT / 100 : 0;
}

static void decide(struct choice *c, const struct view *v)
{
	const struct layer_option *now = current(c, v);

	if (v->video_bps >= choice_anew_bps(c, v->now_us))
		c->retry_us = 0;
	if (c->is_free || !now) {
		replace(c, v);
		now = current(c, v);
	}
	c->pick_bps = now->bitrate_bps;
	if (is_by_hand(c) && !(v->allowed & (v->allowed - 1))) {
		c->pick.is_paused = false;
		return;
	}
	if (c->up_us > 0 && v->now_us - c->up_us >= CHOICE_STEADY_US)
		c->backoff_us = CHOICE_BACKOFF_US;
	if (c->pick.is_paused) {
		try_up(c, v);
		return;
	}
	if (!is_by_hand(c) && maybe_pause(c, v))
		return;
	if (!fits(now, v->video_bps, CHOICE_DOWN_PCT) && now != cheapest(v))
		go_down(c, v);
	else
		try_up(c, v);
}

static uint64_t next_due(const struct choice *c, uint64_t now_us)
{
	uint64_t credit_us = c->credit_us - CHOICE_DOWN_BURST * (uint64_t)CHOICE_DOWN_COST_US;
	uint64_t up_us = c->fits_since_us + CHOICE_UP_HOLD_US;
	uint64_t due_us = UINT64_MAX;

	if (c->retry_us > now_us)
		due_us = c->retry_us;
	if (c->tight_since_us > 0 && !c->pick.is_paused &&
	    c->tight_since_us + CHOICE_PAUSE_HOLD_US < due_us)
		due_us = c->tight_since_us + CHOICE_PAUSE_HOLD_US;
	if (c->credit_us > now_us && (int64_t)credit_us > (int64_t)up_us)
		up_us = credit_us;
	if (c->fits_since_us > 0 && up_us < due_us)
		due_us = up_us;
	return due_us;
}

struct choice_pick choice_update(struct choice *c, const struct layer_table *t,
				 uint32_t available_bps, uint32_t audio_bps, uint64_t now_us)
{
	struct view v = { .t = t, .now_us = now_us, .video_bps = available_bps };

	assert(t->count > 0);
	if (available_bps != UINT32_MAX)
		v.video_bps -= audio_bps < available_bps ? audio_bps : available_bps;
	allow(c, &v);
	/* Nothing is sent at all: what was chosen last stands until something is. */
	if (v.allowed)
		decide(c, &v);
	c->due_us = v.allowed ? next_due(c, now_us) : UINT64_MAX;
	return c->pick;
}

uint64_t choice_due_us(const struct choice *c)
{
	return c->due_us;
}
