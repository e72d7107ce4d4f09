/* media/bwe_loss.c - see bwe_loss.h for the contract. */
#include "media/bwe_loss.h"

#include <math.h>
#include <stdbool.h>

enum {
	SPACING_US = 300000,   /* between decreases, on top of the round trip */
	PATIENCE_US = 5000000, /* at a loss between the two thresholds */
};

static const double low = 0.02, high = 0.1; /* section 6 */
static const double growth_per_s = 1.08, slow_growth_per_s = 1.03;
static const double smoothing = 0.5;
static const double of_arrived = 0.85;

void bwe_loss_on_packets(struct bwe_loss *l, uint32_t pkts, int32_t lost)
{
	l->pkts += pkts;
	if (lost < 0 && l->lost < (uint32_t)-lost)
		l->lost = 0;
	else
		l->lost += (uint32_t)lost;
}

static void grow(struct bwe_loss *l, const struct bwe_loss_input *in)
{
	double passed_s = fmin((double)(in->now_us - l->changed_us) / 1e6, 1);

	if (l->share > low && in->now_us - l->lowered_us < PATIENCE_US)
		passed_s = 0;
	l->bound_bps *= pow(l->share > low ? slow_growth_per_s : growth_per_s, passed_s);
	if (l->bound_bps > in->delay_bps)
		l->bound_bps = 0;
}

static void lower(struct bwe_loss *l, const struct bwe_loss_input *in)
{
	if (in->now_us - l->lowered_us < SPACING_US + in->rtt_us)
		return;
	if (l->bound_bps <= 0 || in->rate_bps < l->bound_bps)
		l->bound_bps = in->rate_bps;
	l->bound_bps = fmax(l->bound_bps * (1 - l->share / 2), of_arrived * in->arrived_bps);
	l->lowered_us = in->now_us;
}

void bwe_loss_update(struct bwe_loss *l, const struct bwe_loss_input *in)
{
	double share;

	if (l->pkts < BWE_LOSS_MIN_PKTS)
		return;
	share = fmin((double)l->lost / l->pkts, 1);
	l->share = smoothing * l->share + (1 - smoothing) * share;
	l->pkts = l->lost = 0;
	if (l->share > high)
		lower(l, in);
	else if (l->bound_bps > 0)
		grow(l, in);
	l->changed_us = in->now_us;
}

void bwe_loss_raise(struct bwe_loss *l, double bps)
{
	if (l->bound_bps > 0 && l->bound_bps < bps)
		l->bound_bps = bps;
}
