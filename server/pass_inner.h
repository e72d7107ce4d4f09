/* server/pass_inner.h - what the parts of a pass share.
 *
 * Thread: the worker's. Nothing outside server/pass* includes this.
 */
#ifndef SERVER_PASS_INNER_H
#define SERVER_PASS_INNER_H

#include "server/pass.h"
#include "server/viewer_layers.h"

/**
 * One packet for one viewer: header, place, job.
 *
 * @param place NULL: the viewer has a constant offset. Else under what number and how changed it
 *              goes; where the viewer does not want it, padding goes in its place
 * @return false: blocked, nothing was done
 */
bool pass_queue(struct viewer *v, struct viewer_track *t, struct slab *slab,
		const struct numbering_place *place, bool as_rtx);

/** The same for a first send, which is accounted for. */
bool pass_send_packet(struct viewer *v, struct viewer_track *t, struct slab *slab,
		      const struct numbering_place *place);

/** Does a viewer of this target want the packet, and can it take it? */
bool pass_is_wanted(const struct viewer_track *t, const struct media_packet *p, uint8_t target);

/** How many packets up to `to` the viewer may get in this visit. */
unsigned pass_limit(struct viewer *v, struct viewer_track *t, uint64_t to);

/** The packet of that index was dealt with. */
void pass_advance(struct viewer *v, struct viewer_track *t, const struct history *h,
		  uint64_t index);

/** The video of a viewer with v->layers. @return false: blocked */
bool pass_send_layers(struct viewer *v);

#endif
