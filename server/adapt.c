/* server/adapt.c - see adapt.h for the contract. */
#include "server/adapt.h"

#include <errno.h>
#include <stdlib.h>

#include "media/bwe.h"
#include "media/choice.h"
#include "media/pacer.h"
#include "server/pass.h"
#include "server/viewer_layers.h"

enum {
	START_BPS = 300000,  /* nothing is known of a link yet ... */
	START_PACE_PCT = 60, /* ... nor shall the first packets fill it */
	SETTLE_US = 1500000, /* what first probes show is followed at once */
	MIN_BPS = 30000,
	MAX_BPS = 100000000,
	TICK_US = 100000,             /* the estimate is looked at so often */
	PROBE_TICK_US = 5000,         /* and parts of a probe leave */
	PROBE_PART_PKTS = 64,         /* of one part, at most */
	PROBE_BACK_PKTS = 64,         /* how far back packets to repeat are looked for */
	PACKET_BYTES = 1200,          /* of what waits */
	GOAL_PCT = CHOICE_UP_PCT + 5, /* of the next option's rate: probing goes so far */
	AUDIO_SPAN_US = 1000000,
	RESUME_PCT =
	    CHOICE_RESUME_PCT + 5, /* of the cheapest option's rate, while video is paused */
	CACHE_LINE_BYTES = 64,
};

struct adapt {
	struct bwe *bwe;
	struct pacer pacer;
	struct choice choice;
	struct choice_pick pick; /* as it was passed on */
	bool has_pick;
	bool is_probing_possible;
	uint64_t probe_back; /* packets before the cursor that were repeated for probes */
	uint64_t due_us;
	uint64_t settle_us; /* end of the time in which probes count at once */
	uint64_t probed;    /* probes that showed something so far */
	/* The audio's rate: it is not numbered, so the estimate is of what it leaves. */
	uint64_t audio_us, audio_bytes;
	uint32_t audio_bps;
};

void adapt_prefetch(const struct adapt *a)
{
	__builtin_prefetch(a->bwe);
	__builtin_prefetch((const uint8_t *)a->bwe + CACHE_LINE_BYTES);
}

/* --- making ------------------------------------------------------------------------------ */

/* Are all repeats to this viewer of a stream of their own? */
static bool has_rtx(const struct plan_track *t)
{
	for (unsigned c = 0; c < CODECS; c++)
		if (mapping_has_codec(&t->mapping, (uint8_t)c) &&
		    !mapping_has_rtx(&t->mapping, (uint8_t)c))
			return false;
	return t->rtx_ssrc != 0;
}

/* From now on its packets have the extensions that were agreed for this. */
static void add_stamps(struct viewer *v, const struct plan_track *terms)
{
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	struct mapping mapping = terms->mapping;
	struct templates *templates;

	mapping.ext_ids[MAPPING_TRANSPORT_CC] = terms->transport_cc_id;
	mapping.ext_ids[MAPPING_SEND_TIME] = terms->send_time_id;
	mapping_seal(&mapping);
	templates = branch_templates(v->branch, &mapping, MEDIA_VIDEO);
	if (!templates)
		return; /* then the viewer has nothing to answer to */
	branch_release_templates(v->branch, t->templates);
	t->templates = templates;
}

int adapt_open(struct viewer *v)
{
	const struct plan_track *terms = &v->session->plan->tracks[MEDIA_VIDEO];
	struct worker *w = v->session->worker;
	struct bwe_config config = { START_BPS, MIN_BPS, MAX_BPS, w->now_us };
	struct adapt *a;
	int err = viewer_open_layers(v);

	if (err)
		return err;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	err = bwe_create(&a->bwe, &config);
	if (err) {
		free(a);
		return err;
	}
	pacer_init(&a->pacer, START_BPS);
	choice_init(&a->choice);
	choice_set_wish(&a->choice, &v->wish);
	a->is_probing_possible = has_rtx(terms);
	a->settle_us = w->now_us + SETTLE_US;
	if (a->is_probing_possible)
		add_stamps(v, terms);
	v->adapt = a;
	counter_add(&w->counters.adaptive_viewers, 1);
	adapt_on_due(v);
	return 0;
}

void adapt_destroy(struct adapt *a)
{
	if (!a)
		return;
	bwe_destroy(a->bwe);
	free(a);
}

size_t adapt_bytes(void)
{
	return sizeof(struct adapt) + bwe_bytes();
}

/* --- sending ----------------------------------------------------------------------------- */

void adapt_on_visit(struct viewer *v, uint64_t backlog_pkts)
{
	struct adapt *a = v->adapt;
	uint64_t target_bps = bwe_target_bps(a->bwe);

	if (v->session->worker->now_us < a->settle_us && a->probed == 0) {
		target_bps = target_bps * START_PACE_PCT / 100;
		backlog_pkts = 0; /* of before it joined: in no hurry */
	}
	pacer_set_rate(&a->pacer, target_bps, backlog_pkts * PACKET_BYTES);
}

bool adapt_may_send(struct viewer *v)
{
	if (pacer_may_send(&v->adapt->pacer, v->session->worker->now_us))
		return true;
	v->branch->is_pacing = true;
	return false;
}

void adapt_on_send(struct viewer *v, const struct viewer_track *t, uint8_t *header, size_t bytes)
{
	struct adapt *a = v->adapt;
	uint64_t now_us = v->session->worker->now_us;

	pacer_on_sent(&a->pacer, (uint32_t)bytes, now_us);
	if (t == &v->tracks[MEDIA_VIDEO])
		mapping_stamp(&t->templates->mapping, header,
			      bwe_on_sent(a->bwe, (uint32_t)bytes, now_us), now_us);
}

/* --- probing ----------------------------------------------------------------------------- */

/* A packet that the viewer was sent lately, another one each time. @return NULL: there is none */
static struct slab *next_to_repeat(struct viewer *v, struct numbering_place *place)
{
	const struct viewer_layers *l = v->layers;
	const struct history *h = branch_video(v->branch, l->encoding)->history;
	uint64_t cursor = v->tracks[MEDIA_VIDEO].cursor;

	for (unsigned tries = 0; h && tries < PROBE_BACK_PKTS; tries++) {
		uint64_t back = v->adapt->probe_back++ % PROBE_BACK_PKTS;
		struct slab *slab = back < cursor ? history_get(h, cursor - back) : NULL;

		if (slab && numbering_find_index(&l->numbering, l->encoding, cursor - back, place))
			return slab;
	}
	return NULL;
}

static void send_probe(struct viewer *v)
{
	struct numbering_place place;
	unsigned sent = 0;

	while (sent < PROBE_PART_PKTS &&
	       bwe_probe_bytes(v->adapt->bwe, v->session->worker->now_us)) {
		struct slab *slab = next_to_repeat(v, &place);

		if (slab ? !pass_probe(v, slab, &place) : !pass_pad(v))
			break;
		sent++;
	}
	if (sent)
		pass_finish(v->session->worker);
}

/* --- layers ------------------------------------------------------------------------------ */

static void measure_audio(struct viewer *v)
{
	struct adapt *a = v->adapt;
	uint64_t bytes = v->tracks[MEDIA_AUDIO].sent.bytes;
	uint64_t passed_us = v->session->worker->now_us - a->audio_us;

	if (passed_us < AUDIO_SPAN_US)
		return;
	if (a->audio_us)
		a->audio_bps = (uint32_t)((bytes - a->audio_bytes) * 8 * 1000000 / passed_us);
	a->audio_us = v->session->worker->now_us;
	a->audio_bytes = bytes;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What is above the layer in use, and still of use. What fits already only waits until it has done so for
 * long enough: meanwhile the next is looked for, so that both are reached in one step. */
static uint64_t goal_bps(const struct viewer *v)
{
	uint64_t known_bps = bwe_target_bps(v->adapt->bwe);
	const struct layer_table *t = v->branch->table;
	const struct choice_pick *pick = &v->adapt->pick;
	const struct layer_option *now = layer_table_find(t, pick->encoding, pick->target);
	uint64_t now_bps = now && !pick->is_paused ? now->bitrate_bps : 0;
	uint64_t goal = now_bps;

	for (unsigned i = 0; i < t->count; i++) {
		if (!t->options[i].is_active || t->options[i].bitrate_bps <= now_bps)
			continue;
		goal = t->options[i].bitrate_bps; /* they are in order of their cost */
		if (goal * CHOICE_UP_PCT / 100 > known_bps)
			break;
	}
	return larger(goal * GOAL_PCT / 100,
		      choice_anew_bps(&v->adapt->choice, v->session->worker->now_us));
}

/* Of no video at all: what brings it back. */
static uint64_t resume_bps(const struct viewer *v)
{
	return (uint64_t)v->branch->table->options[0].bitrate_bps * RESUME_PCT / 100;
}

static void follow(struct viewer *v, struct choice_pick pick)
{
	struct adapt *a = v->adapt;

	if (a->has_pick && pick.encoding == a->pick.encoding && pick.target == a->pick.target &&
	    pick.is_paused == a->pick.is_paused)
		return;
	a->has_pick = true;
	a->pick = pick;
	(void)viewer_want(v, pick.encoding,
			  pick.target | (pick.is_paused ? (unsigned)VIEWER_PAUSED : 0u));
	branch_want_pass(v->branch);
}

/* A viewer that just came shall not wait before it goes up: it was low for want of knowledge only. */
static void take_first_probes(struct viewer *v, const struct bwe_stats *stats)
{
	struct adapt *a = v->adapt;

	if (v->session->worker->now_us >= a->settle_us)
		return;
	if (stats->probes_measured > a->probed)
		choice_set_wish(&a->choice, &v->wish);
	a->probed = stats->probes_measured;
}

/* Which layer is it to be, by what is known now? */
static void choose(struct viewer *v)
{
	struct adapt *a = v->adapt;
	struct bwe_stats stats;
	uint64_t available_bps = bwe_target_bps(a->bwe);

	counter_set(&v->session->plan->stats.estimate_bps, available_bps);
	if (!v->branch->table) {
		/* Nothing to choose from, or not yet by a new publisher: the best there is. */
		viewer_want_best(v);
		a->has_pick = false;
		bwe_set_goal(a->bwe, 0);
		return;
	}
	bwe_stats(a->bwe, &stats);
	take_first_probes(v, &stats);
	/* No pause for a queue that drains at the cheapest as well. */
	available_bps = larger(available_bps,
			       smaller(stats.steady_bps, v->branch->table->options[0].bitrate_bps));
	if (stats.source == BWE_FROM_FEEDBACK)
		available_bps += a->audio_bps;
	/* Nor for want of knowledge: a viewer may have no way to tell. */
	if (!stats.has_limit)
		available_bps = larger(available_bps, v->branch->table->options[0].bitrate_bps +
							  (uint64_t)a->audio_bps);
	if (available_bps >= UINT32_MAX)
		available_bps = UINT32_MAX - 1;
	follow(v, choice_update(&a->choice, v->branch->table, (uint32_t)available_bps, a->audio_bps,
				v->session->worker->now_us));
	bwe_set_goal(a->bwe, a->pick.is_paused ? resume_bps(v) : goal_bps(v));
}

void adapt_on_wish(struct viewer *v)
{
	choice_set_wish(&v->adapt->choice, &v->wish);
	choose(v);
}

/* --- what the viewer answers ------------------------------------------------------------- */

void adapt_on_feedback(struct viewer *v, const struct rtcp_member *m)
{
	struct worker_counters *c = &v->session->worker->counters;
	uint64_t now_us = v->session->worker->now_us;
	struct rtcp_feedback fb;
	struct rtcp_remb remb;

	if (!rtcp_parse_feedback(m, &fb))
		return;
	if (m->kind == RTCP_REMB) {
		if (rtcp_parse_remb(&fb, &remb))
			bwe_on_remb(v->adapt->bwe, remb.bitrate_bps, now_us);
	} else if (bwe_on_feedback(v->adapt->bwe, &fb, now_us) == BWE_OK) {
		counter_add(&c->feedback_received, 1);
	} else {
		counter_add(&c->feedback_unusable, 1);
	}
}

void adapt_on_report(struct viewer *v, const struct rtcp_report *r)
{
	bwe_set_rtt(v->adapt->bwe, v->rtt_us);
	bwe_on_report(v->adapt->bwe, r->fraction_lost, v->session->worker->now_us);
}

/* --- time -------------------------------------------------------------------------------- */

uint64_t adapt_due_us(const struct adapt *a)
{
	return a->due_us;
}

void adapt_on_due(struct viewer *v)
{
	struct adapt *a = v->adapt;
	uint64_t now_us = v->session->worker->now_us;
	uint64_t due_us;

	bwe_on_timeout(a->bwe, now_us);
	measure_audio(v);
	choose(v);
	if (a->is_probing_possible)
		send_probe(v);
	due_us = a->is_probing_possible ? bwe_deadline_us(a->bwe) : UINT64_MAX;
	if (due_us < now_us + PROBE_TICK_US)
		due_us = now_us + PROBE_TICK_US;
	a->due_us = due_us < now_us + TICK_US ? due_us : now_us + TICK_US;
}
