/* media/resend.h - which of a viewer's NACKed packets may be sent again, and under which numbers.
 *
 * One struct resend per viewer and track, one struct resend_share per viewer. A number is sent again
 * at most once per max(round trip, 25 ms), and repeats take at most a fifth of what the viewer's media
 * takes, so that a NACK flood cannot turn the relay into an amplifier.
 *
 * Source:  RFC 4585 section 6.2.1; RFC 4588 section 4 (RTX has a sequence of its own).
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  caller's storage, plain values.
 */
#ifndef MEDIA_RESEND_H
#define MEDIA_RESEND_H

#include <stdbool.h>
#include <stdint.h>

enum {
	RESEND_MIN_SPACING_US = 25000,
	RESEND_SHARE_DIVISOR = 5,              /* repeats : media = 1 : 5 */
	RESEND_START_CREDIT_BYTES = 16 * 1024, /* before the viewer's media has earned any */
	RESEND_MAX_CREDIT_BYTES = 64 * 1024,   /* one burst */
	RESEND_SETS = 16, /* table of recent repeats: sets of ways, power of two */
	RESEND_WAYS = 4,
	RESEND_FIRST_NUMBER_MAX = 32767, /* a first number above it may wrap before the receiver has
	                                  * seen enough to follow the roll-over */
};

/* What one viewer's media has earned for repeats, over all its tracks. */
struct resend_share {
	uint32_t credit_fifths; /* in 1/RESEND_SHARE_DIVISOR bytes */
};

void resend_share_init(struct resend_share *share);

/** The viewer was sent `bytes` of media (first sends only). */
static inline void resend_share_earn(struct resend_share *share, uint32_t bytes)
{
	enum { MAX_FIFTHS = RESEND_MAX_CREDIT_BYTES * RESEND_SHARE_DIVISOR };
	uint32_t room = MAX_FIFTHS - share->credit_fifths;

	share->credit_fifths += bytes < room ? bytes : room;
}

struct resend_slot {
	uint32_t sent_us; /* low bits of the clock */
	uint16_t seq;
	uint16_t is_used;
};

struct resend {
	uint64_t first_index; /* first of the stream's indices that this viewer gets */
	uint64_t offset; /* number = index + offset, modulo 2^64: 48 bits that SRTP seals with */
	uint64_t rtx_number; /* next of the RTX stream, 48 bits likewise */
	struct resend_slot slots[RESEND_SETS][RESEND_WAYS];
};

/**
 * @param first_index  the stream's index of the first packet sent to this viewer
 * @param first_number its sequence number, random in 0..RESEND_FIRST_NUMBER_MAX
 * @param first_rtx    the same for the RTX stream
 */
void resend_init(struct resend *r, uint64_t first_index, uint16_t first_number, uint16_t first_rtx);

/** The number (roll-over count and sequence number, for SRTP) under which this viewer gets `index`.
 *  Always the same. @param index not below first_index */
static inline uint64_t resend_number(const struct resend *r, uint64_t index)
{
	return index + r->offset;
}

/**
 * The stream's index behind a 16-bit number that the viewer names.
 *
 * @param newest_index the newest index sent to this viewer
 * @return false: no packet of that number was sent to it
 */
bool resend_index(const struct resend *r, uint64_t newest_index, uint16_t seq, uint64_t *index);

enum resend_verdict {
	RESEND_SEND,       /* recorded and paid for: send it now */
	RESEND_TOO_SOON,   /* sent again less than one spacing ago */
	RESEND_OVER_SHARE, /* the viewer's credit does not cover it */
	RESEND_BUSY,       /* too many different numbers within one spacing */
	RESEND_VERDICTS,
};

/**
 * May number `seq` be sent again?
 *
 * @param bytes  of the datagram to send
 * @param rtt_us the viewer's round trip, 0 when unknown
 */
enum resend_verdict resend_allow(struct resend *r, struct resend_share *share, uint16_t seq,
				 uint32_t bytes, uint64_t now_us, uint32_t rtt_us);

/** Number `seq` was sent for the first time, late: what the viewer asked before it got it is no
 *  reason to send it again. */
void resend_note(struct resend *r, uint16_t seq, uint64_t now_us, uint32_t rtt_us);

/** The next number of the RTX stream: each is to be used for one content only. */
static inline uint64_t resend_next_rtx(struct resend *r)
{
	return r->rtx_number++;
}

#endif
