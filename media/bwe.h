/* media/bwe.h - how much a viewer's link carries.
 *
 * An estimate from the delay of what was sent (bwe_trend, bwe_aimd), bounded by its loss (bwe_loss) and
 * raised by probes (bwe_probe): with layers to choose from, media alone never shows that a larger one
 * would fit. The caller numbers each packet with bwe_on_sent(), writes that number as the transport-wide
 * extension, and passes in the feedback.
 *
 * Feedback that was negotiated may never come. Where packets stay unanswered, the peer's REMB counts
 * instead, or without that the loss in its receiver reports. Of a peer that sends nothing at all
 * nothing is known, and all is allowed.
 *
 * Source:  draft-ietf-rmcat-gcc-02; draft-holmer-rmcat-transport-wide-cc-extensions-01;
 *          draft-alvestrand-rmcat-remb-03.
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  one allocation of 9 KB, in bwe_create(); none after it.
 */
#ifndef MEDIA_BWE_H
#define MEDIA_BWE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/rtcp.h"

enum {
	BWE_HISTORY_PKTS = 1024, /* sent packets whose feedback can be read; power of two */
};

struct bwe;

struct bwe_config {
	uint32_t start_bps; /* before anything is known */
	uint32_t min_bps;   /* never less; above 0 */
	uint32_t max_bps;   /* never more */
	uint64_t now_us;
};

enum bwe_source {
	BWE_FROM_FEEDBACK, /* transport-wide feedback, or its absence is not yet certain */
	BWE_FROM_REMB,
	BWE_FROM_REPORTS,
	BWE_FROM_NOTHING, /* not even reports come: no limit is known, the estimate is max_bps */
};

struct bwe_stats {
	enum bwe_source source;
	uint32_t rtt_us;     /* 0: unknown */
	uint64_t steady_bps; /* the estimate, had no queue to drain */
	uint64_t acked_bps;
	double loss_share;
	bool has_limit; /* else nothing came yet that could tell of one */
	uint64_t feedbacks, packets_acked, packets_lost;
	uint64_t probes, probes_measured;
	uint64_t decreases;
};

/** @return 0, -ENOMEM or -EINVAL (min_bps is 0, or not min <= start <= max). *out is the caller's, NULL
 *          on failure */
int bwe_create(struct bwe **out, const struct bwe_config *config);

/** NULL is allowed. */
void bwe_destroy(struct bwe *b);

/** A packet leaves. @param bytes of the datagram. @return its transport-wide number */
uint16_t bwe_on_sent(struct bwe *b, uint32_t bytes, uint64_t now_us);

enum bwe_verdict {
	BWE_OK,
	BWE_MALFORMED, /* no usable feedback; nothing was taken from it */
	BWE_UNKNOWN,   /* names only packets that were not sent, or too long ago */
};

enum bwe_verdict bwe_on_feedback(struct bwe *b, const struct rtcp_feedback *fb, uint64_t now_us);

/** The peer's own estimate: counts where no feedback comes. */
void bwe_on_remb(struct bwe *b, uint64_t bps, uint64_t now_us);

/** Loss since the peer's last receiver report on the stream, of 256. */
void bwe_on_report(struct bwe *b, uint8_t fraction_lost, uint64_t now_us);

/** A measured round trip; 0 is ignored. */
void bwe_set_rtt(struct bwe *b, uint32_t rtt_us);

/** The rate from which on more is of no use: probing goes that far. 0: no probing. */
void bwe_set_goal(struct bwe *b, uint64_t bps);

/** The estimate. O(1). */
uint64_t bwe_target_bps(const struct bwe *b);

/** Bytes of padding to send now for a probe's sake; 0 when none. Numbered by bwe_on_sent() as well. */
uint32_t bwe_probe_bytes(struct bwe *b, uint64_t now_us);

/** What is to happen without any packet: call it at the deadline. */
void bwe_on_timeout(struct bwe *b, uint64_t now_us);

/** When bwe_on_timeout() and bwe_probe_bytes() are to be called, not later; UINT64_MAX: never. */
uint64_t bwe_deadline_us(const struct bwe *b);

/** Memory of one. */
size_t bwe_bytes(void);

void bwe_stats(const struct bwe *b, struct bwe_stats *out);

#endif
