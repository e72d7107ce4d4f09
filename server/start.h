/* server/start.h - how viewers begin: from what the branch holds, or with the next key frame.
 *
 * A viewer that joins is decided about once, at the first pass after START_SETTLE_US. On a branch of
 * its own, which holds nothing yet, that is the pass after the publisher's worker has handed over what
 * it kept (publisher.c); only if nothing comes for START_SEED_US a key frame is asked for without.
 *
 * Thread: the worker's.
 */
#ifndef SERVER_START_H
#define SERVER_START_H

#include <stdbool.h>

#include "config/config.h"
#include "media/history.h"
#include "media/stretch.h"
#include "server/viewer.h"

enum {
	START_SEED_US = 100000,
	/* Our side of the handshake ends first: a burst right behind it would find a peer that has no
	 * keys yet, and begin with losses. */
	START_SETTLE_US = 20000,
	/* What is begun with stays in the history for so much longer: it leaves in parts, and may be
	 * asked for again. */
	START_RESERVE_US = 1000000,
	START_KEPT_PKTS = 2048, /* at the publisher's worker */
};

/** The bounds of a track's history on a branch, so that it holds what viewers begin with. */
void start_bound_history(const struct config *c, unsigned kind, struct history_config *out);

/** The viewer has just been made, to begin with that encoding: is it to be decided about, or does it
 *  wait for a key frame? */
void start_on_join(struct viewer *v, unsigned encoding);

/** The branch asks for a key frame for all who have not begun. */
void start_on_asked(struct branch *b);

/** At each pass while undecided: once it is time, begins the video track in the past if it can, else
 *  asks for a key frame.
 *  @return true: *first_index and the track's squeeze are set */
bool start_decide(struct viewer *v, unsigned encoding, uint64_t *first_index);

#endif
