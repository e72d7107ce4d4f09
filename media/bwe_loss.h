/* media/bwe_loss.h - the rate that the loss allows.
 *
 * Loss above 10 % lowers the bound by half of the loss; below 2 % it grows; between the two it waits a
 * while and then grows slowly, since a link may lose a few per cent at any rate. Without such loss there
 * is no bound.
 *
 * Source:  draft-ietf-rmcat-gcc-02 section 6, with the two changes named above.
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  caller's storage, plain values; all-zero is ready.
 */
#ifndef MEDIA_BWE_LOSS_H
#define MEDIA_BWE_LOSS_H

#include <stdint.h>

enum { BWE_LOSS_MIN_PKTS = 30 }; /* fewer do not make a share */

struct bwe_loss {
	double bound_bps; /* 0: none */
	uint64_t lowered_us;
	uint64_t changed_us;
	uint32_t pkts, lost; /* since the share was last taken */
	double share;        /* smoothed */
};

/** Packets whose fate is known now, `lost` of them not arrived. A packet told as lost that arrives after
 *  all is given back by pkts = 0, lost = -1. */
void bwe_loss_on_packets(struct bwe_loss *l, uint32_t pkts, int32_t lost);

struct bwe_loss_input {
	double rate_bps;    /* aimed at now, this bound included */
	double delay_bps;   /* what the delay allows: a bound above it ends */
	double arrived_bps; /* lately: the link carries that much, so the bound stays near it */
	uint32_t rtt_us;
	uint64_t now_us;
};

/** Take the share and move the bound. */
void bwe_loss_update(struct bwe_loss *l, const struct bwe_loss_input *in);

/** The link has been shown to carry that much. */
void bwe_loss_raise(struct bwe_loss *l, double bps);

#endif
