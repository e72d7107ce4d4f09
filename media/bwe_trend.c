/* media/bwe_trend.c - see bwe_trend.h for the contract. */
#include "media/bwe_trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	BURST_MAX_US = 100000,   /* a group that arrives in one go is not longer */
	CLOCK_JUMP_US = 3000000, /* a difference that no queue makes */
	SCALE_DELTAS = 60,
};

/* draft-ietf-rmcat-gcc-02 section 5.4, table 1: K_u, K_d, overuse_time_th; a slope is scaled by the
 * number of deltas and a gain to be comparable with the threshold in milliseconds. */
static const double smoothing = 0.9;
static const double gain = 4;
static const double threshold_start_ms = 12.5, threshold_min_ms = 6, threshold_max_ms = 600;
static const double k_up = 0.0087, k_down = 0.039;
static const double adapt_max_ms = 100, spike_ms = 15;
static const double overuse_time_ms = 10;

void bwe_trend_init(struct bwe_trend *t)
{
	memset(t, 0, sizeof(*t));
	t->threshold_ms = threshold_start_ms;
	t->over_ms = -1;
}

/* Slope of the least squares line, in ms of delay per ms; 0 where all samples are of one time. */
static double slope_of(const struct bwe_trend *t)
{
	double mean_x = 0, mean_y = 0, above = 0, below = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		mean_x += t->at_ms[i];
		mean_y += t->delay_ms[i];
	}
	mean_x /= t->count;
	mean_y /= t->count;
	for (uint32_t i = 0; i < t->count; i++) {
		above += (t->at_ms[i] - mean_x) * (t->delay_ms[i] - mean_y);
		below += (t->at_ms[i] - mean_x) * (t->at_ms[i] - mean_x);
	}
	return below > 0 ? above / below : 0;
}

static void adapt_threshold(struct bwe_trend *t, double trend_ms, int64_t arrival_us)
{
	double size_ms = fabs(trend_ms);
	double passed_ms = (double)(arrival_us - t->adapted_us) / 1000;

	t->adapted_us = arrival_us;
	/* A sudden loss of capacity must not raise the threshold above itself. */
	if (size_ms > t->threshold_ms + spike_ms)
		return;
	if (passed_ms > adapt_max_ms)
		passed_ms = adapt_max_ms;
	t->threshold_ms +=
	    (size_ms < t->threshold_ms ? k_down : k_up) * (size_ms - t->threshold_ms) * passed_ms;
	t->threshold_ms = fmin(fmax(t->threshold_ms, threshold_min_ms), threshold_max_ms);
}

static void detect(struct bwe_trend *t, double slope, double sent_ms, int64_t arrival_us)
{
	double trend_ms = (t->deltas < SCALE_DELTAS ? t->deltas : SCALE_DELTAS) * slope * gain;

	if (trend_ms > t->threshold_ms) {
		t->over_ms = t->over_ms < 0 ? sent_ms / 2 : t->over_ms + sent_ms;
		t->overs++;
		if (t->over_ms > overuse_time_ms && t->overs > 1 && slope >= t->last_slope) {
			t->over_ms = 0;
			t->overs = 0;
			t->usage = BWE_OVERUSE;
		}
	} else {
		t->over_ms = -1;
		t->overs = 0;
		t->usage = trend_ms < -t->threshold_ms ? BWE_UNDERUSE : BWE_NORMAL;
	}
	t->last_slope = slope;
	adapt_threshold(t, trend_ms, arrival_us);
}

static void note_base(struct bwe_trend *t, int64_t arrival_us)
{
	if (arrival_us - t->base_us > BWE_BASE_US) {
		t->base_before_ms = t->base_ms;
		t->base_ms = t->smoothed_ms;
		t->base_us = arrival_us;
	}
	t->base_ms = fmin(t->base_ms, t->smoothed_ms);
}

double bwe_trend_queue_ms(const struct bwe_trend *t)
{
	return t->smoothed_ms - fmin(t->base_ms, t->base_before_ms);
}

static void on_delta(struct bwe_trend *t, double arrival_ms, double sent_ms, int64_t arrival_us)
{
	if (t->deltas == 0)
		t->origin_us = t->adapted_us = t->base_us = arrival_us;
	t->deltas += t->deltas < SCALE_DELTAS;
	t->accumulated_ms += arrival_ms - sent_ms;
	t->smoothed_ms = smoothing * t->smoothed_ms + (1 - smoothing) * t->accumulated_ms;
	note_base(t, arrival_us);
	t->at_ms[t->next] = (double)(arrival_us - t->origin_us) / 1000;
	t->delay_ms[t->next] = t->smoothed_ms;
	t->next = (t->next + 1) % BWE_TREND_GROUPS;
	t->count += t->count < BWE_TREND_GROUPS;
	if (t->count >= BWE_TREND_MIN_GROUPS)
		detect(t, slope_of(t), sent_ms, arrival_us);
}

/* Sent within BWE_GROUP_US, or delivered together by a link that was held up. */
static bool is_in_group(const struct bwe_group *g, int64_t sent_us, int64_t arrival_us)
{
	int64_t arrival_delta_us = arrival_us - g->last_arrival_us;

	if (sent_us - g->first_sent_us <= BWE_GROUP_US)
		return true;
	return arrival_delta_us <= BWE_GROUP_US && arrival_delta_us < sent_us - g->last_sent_us &&
	       arrival_us - g->first_arrival_us < BURST_MAX_US;
}

/* The current group is complete: it becomes the previous one. */
static void close_group(struct bwe_trend *t)
{
	struct bwe_group group = t->current;
	int64_t sent_us = group.last_sent_us - t->previous.last_sent_us;
	int64_t arrival_us = group.last_arrival_us - t->previous.last_arrival_us;

	if (t->has_previous && llabs(arrival_us - sent_us) > CLOCK_JUMP_US)
		bwe_trend_init(t);
	else if (t->has_previous && arrival_us >= 0)
		on_delta(t, (double)arrival_us / 1000, (double)sent_us / 1000,
			 group.last_arrival_us);
	t->previous = group;
	t->has_previous = true;
}

void bwe_trend_on_packet(struct bwe_trend *t, int64_t sent_us, int64_t arrival_us)
{
	struct bwe_group *g = &t->current;

	if (t->has_current && sent_us < g->first_sent_us)
		return;
	if (t->has_current && is_in_group(g, sent_us, arrival_us)) {
		if (sent_us > g->last_sent_us)
			g->last_sent_us = sent_us;
		if (arrival_us > g->last_arrival_us)
			g->last_arrival_us = arrival_us;
		return;
	}
	if (t->has_current)
		close_group(t);
	*g = (struct bwe_group){ sent_us, sent_us, arrival_us, arrival_us };
	t->has_current = true;
}
