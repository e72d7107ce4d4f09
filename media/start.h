/* media/start.h - where in a track's history a viewer may begin.
 *
 * A fast start begins at the newest key frame that is held, and goes on with all that followed it, so
 * that the first picture does not wait for the publisher. It is refused where a decoder could not
 * follow: the key frame is old, packets behind it are gone, another publisher has taken over since.
 *
 * Sans-IO: time is an argument.
 * Thread:  the history's worker.
 * Memory:  none.
 */
#ifndef MEDIA_START_H
#define MEDIA_START_H

#include <stdint.h>

#include "media/history.h"
#include "media/squeeze.h"

enum {
	/* A hole so young may be under repair: the viewer gets the rest when the others do. */
	START_REPAIR_US = 100000,
};

struct start_limits {
	uint64_t max_age_us; /* of the key frame */
	uint64_t max_pkts;   /* from there to the newest */
};

enum start_verdict {
	START_HIT,
	START_NO_KEYFRAME, /* none is held */
	START_STALE,       /* it is older than max_age_us */
	START_LARGE,       /* more than max_pkts */
	START_BROKEN,      /* a hole, or a change of publisher, behind the key frame */
	START_VERDICTS,
};

struct start {
	uint64_t first_index;
	struct squeeze squeeze;
};

/** May a viewer that comes now begin in the past? *out is set on START_HIT only. */
enum start_verdict start_find(const struct history *h, const struct start_limits *limits,
			      uint64_t now_us, struct start *out);

/** The first packet of the key frame that `slab` is of: parameter sets come in packets of their own,
 *  ahead of the picture, with its timestamp.
 *  @param after look no further back than this index + 1 */
uint64_t start_of_frame(const struct history *h, const struct slab *slab, uint64_t after);

#endif
