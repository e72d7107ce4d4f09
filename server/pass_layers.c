/* server/pass_layers.c - the video of a viewer that has a choice.
 *
 * Walks the encoding that the viewer gets and leaves out what its target does not need. A change of
 * encoding happens between two pictures, where the wanted encoding has a fresh key frame; a change
 * of target before the first packet of a picture that allows it.
 */
#include "media/start.h"
#include "server/adapt.h"
#include "server/pass_inner.h"
#include "server/start.h"

enum {
	FRESH_SLACK_US =
	    10000, /* a key frame may have come so much before the last packet sent ... */
	FRESH_AGE_US = 100000, /* ... if it is no older than this */
	PICTURE_PATIENCE_US =
	    50000, /* so long a key frame waits for the end of the picture before */
};

static struct branch_track *lane_of(struct viewer *v, unsigned encoding)
{
	return branch_video(v->branch, encoding);
}

static uint64_t released(const struct viewer *v, unsigned encoding)
{
	return v->branch->pass_to[stream_lane(MEDIA_VIDEO, encoding)];
}

/* --- changes of encoding ----------------------------------------------------------------- */

/* Going on with an old key frame would show again what was seen, and send it in a burst. */
static bool is_fresh(const struct viewer *v, const struct media_packet *keyframe)
{
	const struct viewer_layers *l = v->layers;
	uint64_t came_us = keyframe->arrival_us;

	if (!v->tracks[MEDIA_VIDEO].is_started)
		return came_us >= v->joined_us;
	return came_us >= l->goal_us || (came_us + FRESH_SLACK_US >= l->numbering.arrival_us &&
					 came_us + FRESH_AGE_US >= v->session->worker->now_us);
}

/* Is the picture that was begun sent to its end? Where its end may be missing, what follows is sent
 * first: so the missing packets get numbers, under which they can still come. */
static bool is_between_pictures(struct viewer *v)
{
	const struct viewer_layers *l = v->layers;
	const struct slab *next;

	if (l->has_ended || !l->has_seen)
		return true;
	next = history_next(lane_of(v, l->encoding)->history, v->tracks[MEDIA_VIDEO].cursor);
	return next && packet_of_const(next)->timestamp != l->seen_timestamp &&
	       packet_of_const(next)->index == v->tracks[MEDIA_VIDEO].cursor + 1;
}

/* Does the picture that was begun go on with a packet that is here? It is sent, however long that has
 * waited for a socket or the pacer. */
static bool has_more_of_picture(struct viewer *v)
{
	const struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	const struct slab *next = history_next(lane_of(v, v->layers->encoding)->history, t->cursor);

	return next && packet_of_const(next)->timestamp == v->layers->seen_timestamp &&
	       packet_of_const(next)->index == t->cursor + 1;
}

/* Parameter sets travel in packets of their own ahead of the picture. Where one may be missing, it is
 * waited for: the publisher is asked for it already. */
static bool may_lack_beginning(const struct history *h, uint64_t first)
{
	const struct media_packet *p = packet_of_const(history_get(h, first));

	return (p->codec == CODEC_H264 || p->codec == CODEC_H265) &&
	       history_is_missing(h, first - 1);
}

/* The picture that was begun will not be whole in time: what is missing of it keeps its numbers, or the
 * viewer would take what it has for all of it. */
static void leave_picture(struct viewer *v)
{
	struct viewer_layers *l = v->layers;
	uint64_t cursor = v->tracks[MEDIA_VIDEO].cursor;
	const struct slab *next = history_next(lane_of(v, l->encoding)->history, cursor);

	numbering_keep(&l->numbering, next ? packet_of_const(next)->index : cursor + 2);
}

static void begin_encoding(struct viewer *v, const struct history *h, uint64_t first)
{
	struct viewer_layers *l = v->layers;
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];

	if (t->is_started) {
		counter_add(&v->session->worker->counters.layer_switches, 1);
	} else {
		resend_init(&t->resend, first, t->first_number, t->first_rtx);
		numbering_init(&l->numbering, t->first_number);
		t->is_started = true;
		l->first_encoding = l->goal.encoding;
	}
	l->encoding = l->goal.encoding;
	l->target = l->goal.target;
	l->is_paused = false;
	l->complete = UINT32_C(1) << l->target;
	l->has_seen = false;
	l->has_ended = true;
	l->late_seen[l->encoding] = history_late_count(h);
	t->cursor = first - 1;
	t->paced_to = t->paced_until_us = 0;
	numbering_switch(&l->numbering, l->encoding, l->target);
	viewer_wait_for(v, VIEWER_NO_KEYFRAME);
	viewer_tell_layer(v);
}

/* @return whether anything changed */
static bool follow_goal(struct viewer *v)
{
	struct viewer_layers *l = v->layers;
	const struct history *h;
	const struct slab *keyframe;
	uint64_t waited_us, first;
	bool is_inside;

	if (l->goal.is_paused) {
		if (l->is_paused || !is_between_pictures(v))
			return false;
		l->is_paused = true;
		viewer_tell_layer(v);
		counter_add(&v->session->worker->counters.layer_pauses, 1);
		return true;
	}
	h = lane_of(v, l->goal.encoding)->history;
	if (!h || !viewer_needs_keyframe(v))
		return false;
	if (v->tracks[MEDIA_VIDEO].is_undecided) {
		if (!start_decide(v, l->goal.encoding, &first))
			return false;
		begin_encoding(v, h, first);
		return true;
	}
	keyframe = history_keyframe(h);
	if (!keyframe || packet_of_const(keyframe)->index > released(v, l->goal.encoding) ||
	    !is_fresh(v, packet_of_const(keyframe)))
		return false;
	waited_us = v->session->worker->now_us - packet_of_const(keyframe)->arrival_us;
	is_inside = v->tracks[MEDIA_VIDEO].is_started && !l->is_paused && !is_between_pictures(v);
	if (is_inside && (waited_us < PICTURE_PATIENCE_US || has_more_of_picture(v)))
		return false;
	first = start_of_frame(h, keyframe, 0);
	if (may_lack_beginning(h, first))
		return false;
	if (is_inside)
		leave_picture(v);
	begin_encoding(v, h, first);
	return true;
}

/* --- changes of target ------------------------------------------------------------------- */

static void follow_target(struct viewer_layers *l, const struct media_packet *p, bool is_new)
{
	unsigned from = l->target % LAYERS_TARGETS; /* NUMBERING_ALL: as the highest */
	bool is_entry = packet_has(p, PACKET_FRAME_START) || packet_has(p, PACKET_KEYFRAME);
	/* What is missing before it may be its beginning. */
	bool begins_picture = is_new && (is_entry || p->index == l->numbering.cursor + 1);

	if (l->goal.encoding != l->encoding || l->goal.target == l->target || l->goal.is_paused)
		return;
	if (!(begins_picture && l->complete >> l->goal.target & 1) &&
	    !(is_entry && packet_may_enter(p, from, l->goal.target)))
		return;
	numbering_retarget(&l->numbering, l->goal.target, p->index);
	l->target = l->goal.target;
	l->complete |= UINT32_C(1) << l->target;
}

/* What the viewer could go on with from here, if it gets this frame. */
static void note_entry(struct viewer_layers *l, const struct media_packet *p)
{
	unsigned from = l->target % LAYERS_TARGETS;

	if ((packet_has(p, PACKET_FRAME_START) || packet_has(p, PACKET_KEYFRAME)) &&
	    (p->targets >> from & 1 || packet_has(p, PACKET_ENTRY)))
		l->complete |= p->switches;
}

/* --- packets ----------------------------------------------------------------------------- */

bool pass_is_wanted(const struct viewer_track *t, const struct media_packet *p, uint8_t target)
{
	return mapping_has_codec(&t->templates->mapping, p->codec) &&
	       (target == NUMBERING_ALL || p->targets >> target & 1);
}

/* One packet of the encoding that the viewer gets. @return false: blocked */
static bool walk(struct viewer *v, struct slab *slab)
{
	struct viewer_layers *l = v->layers;
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	const struct media_packet *p = packet_of_const(slab);
	bool begins_picture = !l->has_seen || p->timestamp != l->seen_timestamp;
	/* It has its number since a visit that was blocked: what is wanted since then comes after it. */
	bool is_taken = !l->numbering.is_switching && p->index <= l->numbering.cursor;
	struct numbering_place place;

	if (packet_has(p, PACKET_PADDING_ONLY)) {
		numbering_drop(&l->numbering, slab);
		return true;
	}
	if (!is_taken && (begins_picture || packet_has(p, PACKET_KEYFRAME)))
		follow_target(l, p, begins_picture);
	note_entry(l, p);
	if (is_taken || pass_is_wanted(t, p, l->target)) {
		numbering_take(&l->numbering, slab, &place);
		if (!pass_send_packet(v, t, slab, &place))
			return false;
		l->has_ended = p->ends >> (l->target % LAYERS_TARGETS) & 1;
	} else {
		numbering_drop(&l->numbering, slab);
		l->complete &= ~p->targets;
		l->has_ended |= begins_picture;
		counter_add(&v->session->worker->counters.layer_drops, 1);
	}
	l->has_seen = true;
	l->seen_timestamp = p->timestamp;
	return true;
}

/* What came late of an encoding and has a number waiting for it. @return false: blocked */
static bool send_late(struct viewer *v, unsigned encoding)
{
	struct viewer_layers *l = v->layers;
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	const struct history *h = lane_of(v, encoding)->history;
	uint64_t cursor = encoding == l->encoding ? t->cursor : UINT64_MAX;
	uint32_t seen = l->late_seen[encoding];
	struct numbering_place place;
	struct slab *slab;

	while ((slab = history_next_late(h, &seen, cursor)) != NULL) {
		if (numbering_find_index(&l->numbering, (uint8_t)encoding,
					 packet_of_const(slab)->index, &place)) {
			if (!pass_send_packet(v, t, slab, &place))
				return false;
			resend_note(&t->resend, (uint16_t)place.number, v->session->worker->now_us,
				    v->rtt_us);
		}
		l->late_seen[encoding] = seen;
	}
	l->late_seen[encoding] = seen;
	return true;
}

static bool send_all_late(struct viewer *v)
{
	for (unsigned e = 0; e < STREAM_ENCODINGS; e++)
		if (lane_of(v, e)->history && !send_late(v, e))
			return false;
	return true;
}

bool pass_send_layers(struct viewer *v)
{
	struct viewer_layers *l = v->layers;
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	unsigned limit = 0;
	bool has_limit = false;

	viewer_aim(v);
	if (t->is_started && !send_all_late(v))
		return false;
	for (;;) {
		const struct history *h;
		struct slab *slab;
		uint64_t to;

		if (follow_goal(v))
			has_limit = false;
		if (!t->is_started || l->is_paused)
			return true;
		h = lane_of(v, l->encoding)->history;
		to = released(v, l->encoding);
		if (!has_limit && v->adapt)
			adapt_on_visit(v, to > t->cursor ? to - t->cursor : 0);
		else if (!has_limit)
			limit = pass_limit(v, t, to);
		has_limit = true;
		slab = history_next(h, t->cursor);
		if (!slab || packet_of_const(slab)->index > to)
			return true;
		if (v->adapt ? !adapt_may_send(v) : limit-- == 0)
			return true;
		if (!walk(v, slab))
			return false;
		pass_advance(v, t, h, packet_of_const(slab)->index);
	}
}
