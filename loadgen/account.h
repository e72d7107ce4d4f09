/* loadgen/account.h - which packets of one SSRC arrived: every number counted once.
 *
 * Expected is what lies between the first number that came and the last one at the moment of
 * account_freeze(): what is on its way then counts as neither received nor lost.
 *
 * Source:  RFC 3550 A.1 (order of sequence numbers).
 * Sans-IO: numbers only.
 * Thread:  one.
 * Memory:  a plain value; 512 bytes remember the newest numbers.
 */
#ifndef LOADGEN_ACCOUNT_H
#define LOADGEN_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

enum { ACCOUNT_WINDOW_PKTS = 4096 }; /* how late a packet may be and still be told from a repeat */

enum account_arrival {
	ACCOUNT_NEW,
	ACCOUNT_DUPLICATE,
	ACCOUNT_OUTSIDE, /* before the first, behind the frozen last, or older than the window */
};

struct account {
	uint64_t first, highest; /* extended numbers, cycle 1 at the start */
	uint64_t last;           /* frozen; UINT64_MAX before */
	uint64_t received;       /* different numbers from first to last, repaired ones included */
	uint64_t repaired, duplicated;
	uint64_t seen[ACCOUNT_WINDOW_PKTS / 64];
	bool is_started;
};

void account_init(struct account *a);

/** @param is_repair it came because it was asked for: RTX, or sent again after a NACK */
enum account_arrival account_on_packet(struct account *a, uint16_t seq, bool is_repair);

/** The end: numbers behind the highest so far do not count; missing ones may still come. */
void account_freeze(struct account *a);

uint64_t account_expected(const struct account *a);
uint64_t account_lost(const struct account *a);

#endif
