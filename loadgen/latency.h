/* loadgen/latency.h - from "sent by the publisher" to "received by a viewer", within one process.
 *
 * A relay may move RTP timestamps by one constant for each publisher, which is learnt: of all the
 * offsets under which what one viewer got was sent before it came, the one under which the sizes
 * agree best; where sizes cannot tell (constant bitrate), the one with the smallest delay. Until
 * then, and for what no match is found for, there is no latency.
 *
 * A unit is what is measured: a frame of video, a packet of audio.
 *
 * Sans-IO: time is an argument.
 * Thread:  one.
 * Memory:  one allocation, in latency_create().
 */
#ifndef LOADGEN_LATENCY_H
#define LOADGEN_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LATENCY_UNITS = 256,        /* sent ones remembered: 5 s of 20 ms audio */
	LATENCY_LEARN_UNITS = 24,   /* that the offset is learnt from */
	LATENCY_PADDING_BYTES = 64, /* a relay may round sizes up by so much */
	LATENCY_FORGET_UNITS = 96,  /* without a match in a row: the offset has changed */
};

struct latency; /* of one track of one published stream */

/** @return 0 or -ENOMEM */
int latency_create(struct latency **out);
void latency_destroy(struct latency *l);

/** The publisher sent a packet, for the first time. @param is_end the unit's last packet */
void latency_on_sent(struct latency *l, uint32_t timestamp, size_t bytes, bool is_end,
		     uint64_t now_us);

/* A unit as a viewer got it. */
struct latency_unit {
	uint32_t viewer;
	uint32_t timestamp;
	uint32_t pkts;
	size_t end_bytes; /* size of its last packet by number */
	uint64_t now_us;  /* when the packet that completed it came */
};

enum latency_verdict {
	LATENCY_MATCHED,
	LATENCY_LEARNING,
	LATENCY_INCOMPLETE, /* fewer packets than were sent: some may still come */
	LATENCY_UNKNOWN,    /* no such unit was sent lately */
};

/** @param latency_us receives it with LATENCY_MATCHED */
enum latency_verdict latency_on_unit(struct latency *l, const struct latency_unit *unit,
				     uint64_t *latency_us);

#endif
