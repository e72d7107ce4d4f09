/* server/viewer.c - see viewer.h for the contract. */
#include "server/viewer.h"

#include <errno.h>
#include <stdlib.h>

#include "net/random.h"
#include "server/adapt.h"
#include "server/publisher.h"
#include "server/start.h"
#include "server/viewer_layers.h"

enum {
	FIRST_REPORT_US = 200000,
	EARLY_REPORTS = 4, /* soon after the start, so that audio and video find together */
	EARLY_INTERVAL_US = 1000000,
	REPORT_INTERVAL_US = 5000000, /* RFC 3550 6.2's minimum */
};

static int open_track(struct viewer *v, uint8_t kind)
{
	const struct plan_track *terms = &v->session->plan->tracks[kind];
	struct viewer_track *t = &v->tracks[kind];
	uint64_t random = random_u64();

	if (!terms->is_used)
		return 0;
	t->templates = branch_templates(v->branch, &terms->mapping, kind);
	if (!t->templates)
		return -ENOMEM;
	t->ssrc = terms->ssrc;
	t->rtx_ssrc = terms->rtx_ssrc;
	t->first_number = (uint16_t)(random % (RESEND_FIRST_NUMBER_MAX + 1));
	t->first_rtx = (uint16_t)((random >> 32) % (RESEND_FIRST_NUMBER_MAX + 1));
	t->wait_from = history_newest_index(v->branch->tracks[kind].history);
	return 0;
}

static void close_tracks(struct viewer *v)
{
	for (unsigned i = 0; i < STREAM_TRACKS; i++)
		branch_release_templates(v->branch, v->tracks[i].templates);
}

static void set_waiting(struct viewer *v, uint8_t encoding)
{
	if (v->waits_for != VIEWER_NO_KEYFRAME)
		branch_video(v->branch, v->waits_for)->waiting--;
	v->waits_for = encoding;
	if (encoding != VIEWER_NO_KEYFRAME)
		branch_video(v->branch, encoding)->waiting++;
}

int viewer_create(struct viewer **out, struct session *session)
{
	struct viewer *v = lines_calloc(sizeof(*v));
	struct worker *w = session->worker;
	int err;

	*out = NULL;
	if (!v)
		return -ENOMEM;
	v->session = session;
	v->joined_us = w->now_us;
	v->waits_for = VIEWER_NO_KEYFRAME;
	v->branch = branch_get(w, session->plan->stream);
	err = v->branch ? branch_join(v->branch, v) : -ENOMEM;
	if (err) {
		free(v);
		return err;
	}
	for (uint8_t i = 0; i < STREAM_TRACKS && !err; i++)
		err = open_track(v, i);
	if (err) {
		close_tracks(v);
		branch_leave(v->branch, v);
		free(v);
		return err;
	}
	resend_share_init(&v->share);
	v->report_due_us = w->now_us + FIRST_REPORT_US;
	if (v->tracks[MEDIA_VIDEO].templates)
		start_on_join(v, branch_best_encoding(v->branch));
	pthread_mutex_lock(&session->plan->lock);
	v->wish = session->plan->wish;
	pthread_mutex_unlock(&session->plan->lock);
	viewer_arm(v);
	*out = v;
	return 0;
}

void viewer_wait_for(struct viewer *v, uint8_t encoding)
{
	const struct viewer_track *t = &v->tracks[MEDIA_VIDEO];

	if (encoding == v->waits_for)
		return;
	set_waiting(v, encoding);
	if (encoding != VIEWER_NO_KEYFRAME && !t->is_undecided)
		branch_want_keyframe(v->branch, encoding,
				     t->is_started ? PUBLISHER_KEYFRAME_SWITCH
						   : PUBLISHER_KEYFRAME_JOIN);
}

void viewer_on_moved(struct viewer *v)
{
	if (v->tracks[MEDIA_VIDEO].templates)
		branch_want_keyframe(v->branch, v->layers ? v->layers->encoding : 0,
				     PUBLISHER_KEYFRAME_MOVE);
}

size_t viewer_bytes(const struct viewer *v)
{
	return sizeof(*v) + (v->layers ? sizeof(*v->layers) : 0) + (v->adapt ? adapt_bytes() : 0);
}

void viewer_destroy(struct viewer *v)
{
	if (!v)
		return;
	viewer_wait_for(v, VIEWER_NO_KEYFRAME);
	close_tracks(v);
	branch_leave(v->branch, v);
	if (v->adapt)
		counter_add(&v->session->worker->counters.adaptive_viewers, (uint64_t)-1);
	adapt_destroy(v->adapt);
	free(v->layers);
	free(v);
}

void viewer_set_wish(struct viewer *v, const struct choice_wish *wish)
{
	v->wish = *wish;
	if (v->adapt)
		adapt_on_wish(v);
}

void viewer_arm(struct viewer *v)
{
	uint64_t due_us = v->report_due_us;

	if (v->adapt && adapt_due_us(v->adapt) < due_us)
		due_us = adapt_due_us(v->adapt);
	session_arm_role(v->session, due_us);
}

static void report(struct viewer *v)
{
	struct plan_stats *stats = &v->session->plan->stats;
	uint64_t now_us = v->session->worker->now_us;

	counter_set(&stats->bytes, v->bytes);
	counter_set(&stats->packets, v->packets);
	if (v->layers)
		viewer_tell_layer(v);
	session_measure(v->session);
	viewer_send_reports(v);
	/* Whoever reads at the target may have come just now, and cannot ask. */
	if (v->session->plain && !v->asks && v->tracks[MEDIA_VIDEO].templates)
		branch_want_keyframe(v->branch, v->layers ? v->layers->encoding : 0,
				     PUBLISHER_KEYFRAME_VIEWER);
	v->reports++;
	v->report_due_us =
	    now_us + (v->reports < EARLY_REPORTS ? EARLY_INTERVAL_US : REPORT_INTERVAL_US);
}

void viewer_on_due(struct viewer *v)
{
	uint64_t now_us = v->session->worker->now_us;

	if (v->report_due_us <= now_us)
		report(v);
	if (v->adapt && adapt_due_us(v->adapt) <= now_us)
		adapt_on_due(v);
	viewer_arm(v);
}
