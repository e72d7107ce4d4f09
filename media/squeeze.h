/* media/squeeze.h - timestamps of what a viewer gets from before it joined.
 *
 * A viewer that starts in the past gets a stretch of seconds within milliseconds. Under their own
 * timestamps its receiver would take the first packets for late ones and play everything that much
 * behind; so what is older than the moment of joining moves close to it:
 *
 *     ts' = base - (base - ts) / divisor
 *
 * `base` is the newest timestamp at that moment. From there on timestamps are the stream's own, and so
 * are the sender reports: the receiver begins at the live edge. The value depends on the packet and on
 * what was fixed when the viewer began, so a packet sent again has it again.
 *
 * Sans-IO: values in, values out.
 * Thread:  any, once made.
 * Memory:  caller's storage, plain values. All zero: nothing is changed.
 */
#ifndef MEDIA_SQUEEZE_H
#define MEDIA_SQUEEZE_H

#include <stdint.h>

enum {
	SQUEEZE_DIVISOR = 64, /* two seconds become 31 ms */
	/* Indices so far above the newest at the moment of joining may still carry an older timestamp
	 * (reordered, or pictures sent in decoding order); far above it the timestamp's own wrap would
	 * look like one. */
	SQUEEZE_MARGIN_PKTS = 256,
};

struct squeeze {
	uint64_t through_index; /* above it nothing is changed */
	uint32_t base;          /* RTP ticks */
	uint32_t divisor;       /* at least 1, unless all is zero */
};

/** The timestamp under which the viewer gets packet `index`, whose own is `timestamp`. Order is kept;
 *  frames at least `divisor` ticks apart stay apart. */
static inline uint32_t squeeze_timestamp(const struct squeeze *s, uint64_t index,
					 uint32_t timestamp)
{
	int32_t behind_ticks;

	if (index > s->through_index)
		return timestamp;
	behind_ticks = (int32_t)(s->base - timestamp);
	return behind_ticks > 0 ? s->base - (uint32_t)behind_ticks / s->divisor : timestamp;
}

#endif
