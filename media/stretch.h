/* media/stretch.h - a track since its last key frame, kept where it comes in.
 *
 * A worker that gets its first viewer of a stream has no history of it. So the publisher's worker keeps
 * references to what it sent since the last key frame, to hand them to such a worker first. Once the
 * key frame is too old to begin with, nothing is kept until the next one.
 *
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  one allocation beside the history's, in stretch_create(). One slab reference a packet.
 */
#ifndef MEDIA_STRETCH_H
#define MEDIA_STRETCH_H

#include <stddef.h>
#include <stdint.h>

#include "pool/slab.h"

struct stretch;

struct stretch_config {
	uint64_t max_age_us; /* of the key frame */
	uint32_t max_pkts;   /* power of two, 2..HISTORY_MAX_PKTS; a longer stretch is let go */
};

/** @param pool this worker's own. @return 0, -ENOMEM or -EINVAL (max_pkts) */
int stretch_create(struct stretch **out, const struct stretch_config *config,
		   struct slab_pool *pool);
/** Puts every reference. NULL is allowed. */
void stretch_destroy(struct stretch *st);

/** A numbered packet of the track, in the order in which it came; takes over one reference. */
void stretch_on_packet(struct stretch *st, struct slab *s, uint64_t now_us);

/** Let go of everything if the key frame is too old at now_us. */
void stretch_expire(struct stretch *st, uint64_t now_us);

/** The first packet kept with an index above `cursor` (0: the key frame's first), or NULL: that was
 *  the last one, or there is no key frame. Borrowed until the next call that may let go. */
struct slab *stretch_next(const struct stretch *st, uint64_t cursor);

/** Memory it holds, slabs apart. */
size_t stretch_bytes(const struct stretch *st);

#endif
