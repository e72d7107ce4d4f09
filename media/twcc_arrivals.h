/* media/twcc_arrivals.h - when a publisher's packets arrived, and the feedback that tells it.
 *
 * One per transport: the extension's number counts all its packets, audio, video and RTX alike. Each
 * arrival is told once, TWCC_ARRIVALS_INTERVAL_US after the first one not told yet. A packet that
 * comes after it was told as missing is told again, with all that follow it: senders ignore what they
 * know.
 *
 * Source:  draft-holmer-rmcat-transport-wide-cc-extensions-01.
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  one allocation of 16 KB, in twcc_arrivals_create(); none after it.
 */
#ifndef MEDIA_TWCC_ARRIVALS_H
#define MEDIA_TWCC_ARRIVALS_H

#include <stdint.h>

#include "media/rtcp.h"

enum {
	TWCC_ARRIVALS_CAP_PKTS = 2048,     /* kept at once, told ones included */
	TWCC_ARRIVALS_JUMP_PKTS = 1024,    /* a larger jump, either way, is no gap but a restart */
	TWCC_ARRIVALS_BACK_PKTS = 512,     /* how far behind the told ones a late packet counts */
	TWCC_ARRIVALS_INTERVAL_US = 50000, /* from an arrival to the feedback that tells of it */
};

struct twcc_arrivals;

enum twcc_arrivals_verdict {
	TWCC_ARRIVALS_NEW,
	TWCC_ARRIVALS_DUPLICATE, /* the first arrival counts */
	TWCC_ARRIVALS_LATE,      /* too far behind: not told */
	TWCC_ARRIVALS_RESTART,   /* a jump: numbers before it will not be told any more */
	TWCC_ARRIVALS_VERDICTS,
};

/** @return 0 or -ENOMEM. *out is the caller's (twcc_arrivals_destroy()), NULL on failure */
int twcc_arrivals_create(struct twcc_arrivals **out);

/** NULL is allowed. */
void twcc_arrivals_destroy(struct twcc_arrivals *a);

/** A packet with number `seq` arrived. Any order is normal input. */
enum twcc_arrivals_verdict twcc_arrivals_on_packet(struct twcc_arrivals *a, uint16_t seq,
						   uint64_t now_us);

/** The path changed: what was on its way then is told neither as arrived nor as missing, since that
 *  says nothing of the new path's load. Arrivals not told yet count as untold. */
void twcc_arrivals_on_moved(struct twcc_arrivals *a);

/** When twcc_arrivals_write() is to be called; UINT64_MAX when all was told. */
uint64_t twcc_arrivals_deadline_us(const struct twcc_arrivals *a);

/**
 * Append one feedback, about as many arrivals as fit. Where the deadline is not later afterwards, some
 * did not fit and belong into another packet.
 *
 * @return numbers told of, 0 (nothing to tell; nothing written) or -ENOSPC (w is unchanged)
 */
int twcc_arrivals_write(struct twcc_arrivals *a, struct rtcp_writer *w, uint32_t sender_ssrc,
			uint32_t media_ssrc);

/** Arrivals that were dropped before they were told, since nobody called twcc_arrivals_write(). */
uint64_t twcc_arrivals_untold(const struct twcc_arrivals *a);

#endif
