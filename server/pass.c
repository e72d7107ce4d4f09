/* server/pass.c - see pass.h for the contract.
 *
 * Viewer by viewer, so that a viewer's packets lie side by side and leave as one message. Sealing
 * is deferred: each packet gets its place in the egress arena and a job; jobs run in batches,
 * which lets the cipher work on several viewers at once, and always before the arena is sent.
 */
#include "media/start.h"
#include "server/adapt.h"
#include "server/pass_inner.h"
#include "server/start.h"
#include "server/viewer_layers.h"

enum {
	VIEWERS_PER_CLOCK_READ = 4,
	AHEAD = 8,            /* visits: about what one batch of jobs takes */
	BURST_PKTS = 32,      /* a viewer's link must not get more at once */
	BURST_PART_PKTS = 16, /* larger frames leave in such parts ... */
	BURST_PART_US = 5000, /* ... this far apart */
	BURST_PARTS = 8,      /* but in parts so large that a stream of any rate is kept up with */
	PASS_STRIDE = 61,     /* each pass starts so many viewers further: nobody is always last */
};

/* --- one viewer -------------------------------------------------------------------------- */

/* Where payloads are opaque and no descriptor tells of key frames, any frame may be one: a viewer
 * begins with the next, and its decoder waits for what it asked for. */
static struct slab *find_untold(const struct history *h, uint64_t after)
{
	struct slab *slab = history_next(h, after);

	while (slab && packet_of_const(slab)->is_opaque &&
	       !packet_has(packet_of_const(slab), PACKET_DESCRIPTOR)) {
		if (packet_has(packet_of_const(slab), PACKET_FRAME_START))
			return slab;
		slab = history_next(h, packet_of_const(slab)->index);
	}
	return NULL;
}

/* May the viewer start now, and where? */
static bool find_start(const struct viewer_track *t, const struct history *h, unsigned kind,
		       uint64_t to, uint64_t *first)
{
	struct slab *slab =
	    kind == MEDIA_VIDEO ? history_keyframe(h) : history_next(h, t->wait_from);

	if (kind == MEDIA_VIDEO && (!slab || packet_of_const(slab)->index <= t->wait_from))
		slab = find_untold(h, t->wait_from);
	if (!slab || packet_of_const(slab)->index <= t->wait_from ||
	    packet_of_const(slab)->index > to)
		return false;
	*first = kind == MEDIA_VIDEO ? start_of_frame(h, slab, t->wait_from)
				     : packet_of_const(slab)->index;
	return true;
}

static bool start_track(struct viewer *v, unsigned kind)
{
	struct viewer_track *t = &v->tracks[kind];
	const struct history *h = v->branch->tracks[kind].history;
	uint64_t first;

	if (t->is_undecided ? !start_decide(v, 0, &first)
			    : !find_start(t, h, kind, v->branch->pass_to[kind], &first))
		return false;
	resend_init(&t->resend, first, t->first_number, t->first_rtx);
	t->cursor = first - 1;
	t->late_seen = history_late_count(h);
	t->is_started = true;
	if (kind == MEDIA_VIDEO)
		viewer_wait_for(v, VIEWER_NO_KEYFRAME);
	return true;
}

bool pass_send_packet(struct viewer *v, struct viewer_track *t, struct slab *slab,
		      const struct numbering_place *place)
{
	const struct media_packet *p = packet_of_const(slab);

	if (!mapping_has_codec(&t->templates->mapping, p->codec))
		return true; /* a codec that this viewer did not agree to */
	if (!pass_queue(v, t, slab, place, false))
		return false;
	reports_tx_on_packet(&t->sent, p->payload_bytes);
	resend_share_earn(&v->share, slab->len);
	return true;
}

static bool send_late(struct viewer *v, struct viewer_track *t, const struct history *h)
{
	struct slab *slab;
	uint32_t seen = t->late_seen;

	while ((slab = history_next_late(h, &seen, t->cursor)) != NULL) {
		uint64_t index = packet_of_const(slab)->index;

		if (index >= t->resend.first_index) {
			if (!pass_send_packet(v, t, slab, NULL))
				return false;
			resend_note(&t->resend, (uint16_t)resend_number(&t->resend, index),
				    v->session->worker->now_us, v->rtt_us);
		}
		t->late_seen = seen;
	}
	t->late_seen = seen;
	return true;
}

/* How many packets the viewer may get in this visit. */
unsigned pass_limit(struct viewer *v, struct viewer_track *t, uint64_t to)
{
	uint64_t now_us = v->session->worker->now_us;

	if (to > t->cursor && to - t->cursor > BURST_PKTS)
		t->paced_to = to;
	if (t->cursor >= t->paced_to)
		return UINT32_MAX;
	v->branch->is_pacing = true;
	if (now_us < t->paced_until_us)
		return 0; /* this pass is on for another reason */
	t->paced_until_us = now_us + BURST_PART_US;
	if (to - t->cursor > BURST_PARTS * BURST_PART_PKTS)
		return (unsigned)((to - t->cursor) / BURST_PARTS);
	return BURST_PART_PKTS;
}

/* What the viewer did not get in time is gone: the worker, or its socket, was held up for longer than
 * the history reaches. */
static void count_passed_over(struct viewer *v, const struct viewer_track *t,
			      const struct history *h, uint64_t next)
{
	uint64_t oldest = history_oldest_index(h);

	if (t->cursor + 1 < oldest)
		counter_add(&v->session->worker->counters.passed_over,
			    (oldest < next ? oldest : next) - t->cursor - 1);
}

void pass_advance(struct viewer *v, struct viewer_track *t, const struct history *h, uint64_t index)
{
	if (index != t->cursor + 1)
		count_passed_over(v, t, h, index);
	t->cursor = index;
}

/* @return false: blocked; the cursor says how far it came */
static bool send_track(struct viewer *v, unsigned kind)
{
	struct viewer_track *t = &v->tracks[kind];
	const struct history *h = v->branch->tracks[kind].history;
	uint64_t to = v->branch->pass_to[kind];
	struct slab *slab;
	unsigned limit;

	if (!t->templates || (!t->is_started && !start_track(v, kind)))
		return true;
	if (!send_late(v, t, h))
		return false;
	limit = kind == MEDIA_VIDEO ? pass_limit(v, t, to) : UINT32_MAX;
	while (limit-- && (slab = history_next(h, t->cursor)) != NULL &&
	       packet_of_const(slab)->index <= to) {
		uint64_t index = packet_of_const(slab)->index;

		if (!pass_send_packet(v, t, slab, NULL))
			return false;
		pass_advance(v, t, h, index);
	}
	return true;
}

/* Without memory it gets all that is sent, as fast as it comes. */
static void open_adapt(struct viewer *v)
{
	if (adapt_open(v) == 0)
		viewer_arm(v);
}

static bool send_video(struct viewer *v)
{
	bool has_choice = v->layers || v->branch->lanes > MEDIA_VIDEO + 1 || v->branch->table;

	if (!has_choice || !v->tracks[MEDIA_VIDEO].templates || viewer_open_layers(v))
		return send_track(v, MEDIA_VIDEO);
	if (v->branch->table && !v->adapt)
		open_adapt(v);
	return pass_send_layers(v);
}

static bool visit(struct viewer *v)
{
	struct transport *transport = v->session->transport;

	if (lifetime_is_closed(&transport->life))
		return true;
	/* Video first: pending audio rides as the last, shorter segment. */
	return send_video(v) && send_track(v, MEDIA_AUDIO);
}

/* --- the pass ---------------------------------------------------------------------------- */

static void begin(struct branch *b)
{
	b->is_passing = true;
	b->wants_pass = false;
	b->is_pacing = false;
	b->pass_at = 0;
	b->pass_start = b->viewer_count ? (b->pass_start + PASS_STRIDE) % b->viewer_count : 0;
	for (unsigned i = 0; i < b->lanes; i++)
		b->pass_to[i] = b->tracks[i].release;
}

static struct viewer *viewer_at(const struct branch *b, uint32_t at)
{
	uint32_t i = b->pass_start + at;

	while (i >=
	       b->viewer_count) /* cheaper than a division; more than once only after many left */
		i -= b->viewer_count;
	return b->viewers[i];
}

/* What the next visits touch lies in no near cache: each step of the way there is asked for a few
 * visits after the one before it. Inlined by force: gcc drops calls of functions that only prefetch. */
__attribute__((always_inline)) static inline void look_ahead(const struct branch *b)
{
	const struct transport *transport;
	const struct viewer *v;

	if (b->pass_at + AHEAD >= b->viewer_count)
		return;
	v = viewer_at(b, b->pass_at + AHEAD);
	__builtin_prefetch(v);
	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		__builtin_prefetch(&v->tracks[i]);
		__builtin_prefetch(&v->tracks[i].sent);
	}
	__builtin_prefetch(viewer_at(b, b->pass_at + AHEAD * 3 / 4)->session);
	transport = viewer_at(b, b->pass_at + AHEAD / 2)->session->transport;
	__builtin_prefetch(transport);
	__builtin_prefetch(&transport->tx);
	__builtin_prefetch(viewer_at(b, b->pass_at + AHEAD / 4)->session->transport->tx);
}

/* The same for what only viewers with a choice have. */
__attribute__((always_inline)) static inline void look_ahead_layers(const struct branch *b)
{
	const struct viewer *v;

	if (!b->table || b->pass_at + AHEAD / 2 >= b->viewer_count)
		return;
	v = viewer_at(b, b->pass_at + AHEAD / 2);
	__builtin_prefetch(v->adapt);
	__builtin_prefetch(v->layers);
	if (v->layers)
		__builtin_prefetch(&v->layers->numbering);
	v = viewer_at(b, b->pass_at + AHEAD / 4);
	if (v->adapt)
		adapt_prefetch(v->adapt);
}

static enum pass_status visit_all(struct branch *b, uint64_t until_us)
{
	while (b->pass_at < b->viewer_count) {
		struct viewer *v = viewer_at(b, b->pass_at);

		uint64_t sent_before = v->packets;

		look_ahead(b);
		look_ahead_layers(b);
		if (!visit(v))
			return PASS_BLOCKED;
		if (v->packets != sent_before)
			worker_count_log2(b->worker->counters.visit_slots, WORKER_VISIT_SLOTS,
					  v->packets - sent_before);
		b->pass_at++;
		if (b->pass_at % VIEWERS_PER_CLOCK_READ == 0 && b->pass_at < b->viewer_count &&
		    clock_now_us() >= until_us)
			return PASS_SLICED;
	}
	b->is_passing = false;
	if (b->is_pacing && b->pace_due_us == UINT64_MAX)
		b->pace_due_us = b->worker->now_us + BURST_PART_US;
	return PASS_DONE;
}

enum pass_status pass_run(struct branch *b, uint64_t until_us)
{
	enum pass_status status;

	if (!b->is_passing)
		begin(b);
	status = visit_all(b, until_us);
	pass_finish(b->worker); /* jobs point into slabs that the history may let go */
	return status;
}
