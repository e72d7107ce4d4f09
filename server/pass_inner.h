/* server/pass_inner.h - what the parts of a pass share.
 *
 * Thread: the worker's. Nothing outside server/pass* includes this.
 */
#ifndef SERVER_PASS_INNER_H
#define SERVER_PASS_INNER_H

#include "server/pass.h"

/** One packet for one viewer: header, place, job. @return false: blocked, nothing was done */
bool pass_queue(struct viewer *v, struct viewer_track *t, struct slab *slab, bool as_rtx);

#endif
