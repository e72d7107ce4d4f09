/* media/bwe_aimd.c - see bwe_aimd.h for the contract. */
#include "media/bwe_aimd.h"

#include <math.h>

enum {
	RESPONSE_US = 100000, /* of the over-use estimator, on top of the round trip */
	MIN_REDUCE_US = 10000,
	MAX_REDUCE_US = 200000, /* one decrease in so long, whatever the round trip */
	STEP_MIN_BPS_PER_S = 4000,
	GROWTH_SLACK_BPS = 10000,
	FRAMES_PER_S = 30,
	PACKET_BITS = 1200 * 8,
};

static const double beta = 0.85; /* section 5.5: recommended between 0.8 and 0.95 */
static const double used_fully = 0.8, burst_ms = 50;
static const double eta = 1.08; /* per second */
static const double growth_over_acked = 1.5;
static const double capacity_smoothing = 0.95;
static const double deviation_min = 0.4, deviation_max = 2.5; /* kbit/s, per kbit/s of the mean */

void bwe_aimd_init(struct bwe_aimd *a, double bps, uint64_t now_us)
{
	*a = (struct bwe_aimd){
		.bps = bps, .deviation = deviation_min, .is_growing = true, .changed_us = now_us
	};
}

/* Three standard deviations around the mean, in bit/s. */
static double capacity_margin(const struct bwe_aimd *a)
{
	return 3 * sqrt(a->deviation * a->capacity_bps / 1000) * 1000;
}

static void note_capacity(struct bwe_aimd *a, double acked_bps)
{
	double error_kbps, norm;

	if (a->capacity_bps <= 0) {
		a->capacity_bps = acked_bps;
		return;
	}
	error_kbps = (a->capacity_bps - acked_bps) / 1000;
	a->capacity_bps =
	    capacity_smoothing * a->capacity_bps + (1 - capacity_smoothing) * acked_bps;
	norm = fmax(a->capacity_bps / 1000, 1);
	a->deviation = capacity_smoothing * a->deviation +
		       (1 - capacity_smoothing) * error_kbps * error_kbps / norm;
	a->deviation = fmin(fmax(a->deviation, deviation_min), deviation_max);
}

static bool may_lower(const struct bwe_aimd *a, const struct bwe_aimd_input *in)
{
	uint64_t spacing_us = in->rtt_us < MIN_REDUCE_US   ? MIN_REDUCE_US
			      : in->rtt_us > MAX_REDUCE_US ? MAX_REDUCE_US
							   : in->rtt_us;

	return a->is_growing || in->now_us - a->changed_us >= spacing_us ||
	       (double)in->recent_bps < a->bps / 2;
}

static void lower(struct bwe_aimd *a, const struct bwe_aimd_input *in)
{
	double acked_bps = (double)in->recent_bps;
	bool is_burst = acked_bps < used_fully * a->bps && in->queue_ms < burst_ms;
	double to_bps = beta * (in->recent_bps && !is_burst ? acked_bps : a->bps);

	if (!may_lower(a, in))
		return;
	if (in->recent_bps && !is_burst) {
		if (acked_bps < a->capacity_bps - capacity_margin(a))
			a->capacity_bps = 0;
		note_capacity(a, acked_bps);
	}
	if (to_bps < a->bps)
		a->bps = to_bps;
	a->is_growing = false;
	a->changed_us = a->lowered_us = in->now_us;
}

/* Half a packet or more per response time, of frames cut into equal packets. */
static double step_bps_per_s(const struct bwe_aimd *a, uint32_t rtt_us)
{
	double frame_bits = a->bps / FRAMES_PER_S;
	double packet_bits = frame_bits / ceil(frame_bits / PACKET_BITS);
	double response_s = (rtt_us + RESPONSE_US) / 1e6;

	return fmax(STEP_MIN_BPS_PER_S, packet_bits / response_s);
}

static void grow(struct bwe_aimd *a, const struct bwe_aimd_input *in)
{
	double passed_s = fmin((double)(in->now_us - a->changed_us) / 1e6, 1);
	double limit_bps = growth_over_acked * (double)in->acked_bps + GROWTH_SLACK_BPS;
	double to_bps = a->bps;

	if (a->capacity_bps > 0 && (double)in->acked_bps > a->capacity_bps + capacity_margin(a))
		a->capacity_bps = 0;
	if (a->capacity_bps > 0)
		to_bps += step_bps_per_s(a, in->rtt_us) * passed_s;
	else
		to_bps *= pow(eta, passed_s);
	a->changed_us = in->now_us;
	if (in->acked_bps && to_bps > limit_bps)
		to_bps = limit_bps;
	if (to_bps > a->bps)
		a->bps = to_bps;
}

void bwe_aimd_update(struct bwe_aimd *a, const struct bwe_aimd_input *in)
{
	switch (in->usage) {
	case BWE_OVERUSE:
		lower(a, in);
		break;
	case BWE_UNDERUSE:
		a->is_growing = false;
		break;
	case BWE_NORMAL:
		if (!a->is_growing)
			a->changed_us = in->now_us;
		a->is_growing = true;
		grow(a, in);
		break;
	}
}

void bwe_aimd_raise(struct bwe_aimd *a, double bps, uint64_t now_us)
{
	if (bps <= a->bps)
		return;
	a->bps = bps;
	a->changed_us = now_us;
	if (bps > a->capacity_bps + capacity_margin(a))
		a->capacity_bps = 0;
}
