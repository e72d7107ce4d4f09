/* media/nack.h - which RTP packets of one SSRC are missing, and when to ask for them.
 *
 * A gap is first asked for when it has outlived ordinary reordering: after reorder_us at first, then
 * as late as packets have been seen to come by themselves, or once NACK_REORDER_PKTS later ones came. Then again each round trip, until it arrives, was asked for
 * NACK_MAX_TRIES times, or is older than max_age_us.
 *
 * Source:  RFC 4585 section 6.2.1 (generic NACK); sequence order as RFC 3550 A.1.
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  one allocation, in nack_create(); none after it; 12 bytes a packet that may be missing.
 */
#ifndef MEDIA_NACK_H
#define MEDIA_NACK_H

#include <stddef.h>
#include <stdint.h>

enum {
	NACK_WINDOW_PKTS = 512, /* a larger jump is no loss but a restart */
	NACK_MAX_TRIES = 10,    /* requests per packet, then it is given up */
	NACK_REORDER_MIN_US =
	    1000,                  /* least wait, where all that was asked for had to be repaired */
	NACK_REORDER_PKTS = 16,    /* so many behind the newest, a packet is no longer reordered */
	NACK_MIN_RETRY_US = 20000, /* floor of the spacing, whatever the round trip */
	NACK_MAX_RETRY_US = 500000, /* ceiling, so that a wrong round trip does not silence us */
};

struct nack;

struct nack_config {
	uint32_t rtt_us;     /* first guess, above 0 */
	uint32_t reorder_us; /* longest wait before the first request; 0: ask at once, always */
	uint32_t max_age_us; /* since noticed missing; later the packet has no use; above 0 */
	uint16_t
	    max_missing; /* tracked at once, 1..NACK_WINDOW_PKTS; beyond, the oldest is given up */
};

struct nack_stats {
	uint64_t missing;   /* numbers ever noticed missing */
	uint64_t requested; /* numbers asked for at least once */
	uint64_t repeated;  /* requests beyond a number's first */
	uint64_t recovered; /* arrived after having been asked for */
	uint64_t reordered; /* arrived by themselves, before the first request */
	uint64_t given_up;
};

/**
 * Create a tracker for one SSRC.
 *
 * @param out receives the tracker, owned by the caller (nack_destroy()); NULL on failure
 * @return 0, -ENOMEM or -EINVAL (config out of range)
 */
int nack_create(struct nack **out, const struct nack_config *config);

/** NULL is allowed. */
void nack_destroy(struct nack *n);

/** Forget everything; the next packet starts anew. Statistics and round trip stay. */
void nack_reset(struct nack *n);

/** A fresh measurement of the round trip, above 0: also for what was asked already. */
void nack_set_rtt(struct nack *n, uint32_t rtt_us, uint64_t now_us);

/**
 * Record an arrival, by itself or by RTX (then the original number). Reordered, late and duplicate
 * packets are normal input.
 *
 * @return how many packets this arrival shows to be missing (0 or more), or -ERANGE: the jump
 *         exceeds NACK_WINDOW_PKTS, tracking restarts at seq and the caller should ask for a key
 *         frame
 */
int nack_on_packet(struct nack *n, uint16_t seq, uint64_t now_us);

/**
 * Take what is due for a request, oldest first. Each is due again one round trip later.
 *
 * @param seqs caller's array of cap entries
 * @return entries written, 0..cap; when cap, ask again
 */
size_t nack_poll(struct nack *n, uint64_t now_us, uint16_t *seqs, size_t cap);

/** Absolute time at which nack_poll() may have work, never later than the true one; UINT64_MAX when
 *  nothing is missing. O(1). */
uint64_t nack_deadline_us(const struct nack *n);

/** Of the last nack_on_packet(): how long before it that number had been asked for, 0 unless that
 *  was exactly once: of several requests nobody knows which was answered. */
uint32_t nack_answer_us(const struct nack *n);

/** Numbers missing now. */
size_t nack_missing(const struct nack *n);

void nack_stats(const struct nack *n, struct nack_stats *out);

#endif
