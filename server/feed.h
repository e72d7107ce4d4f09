/* server/feed.h - the continuity of a stream: what one publisher leaves to the next.
 *
 * Numbers, timestamps and picture ids go on where the last publisher stopped, so that viewers
 * never see them go back. Made by control with the stream's first publisher; travels by letter to
 * the worker that serves the current one, and back when that one ends.
 *
 * Thread: whoever holds it; one at a time.
 */
#ifndef SERVER_FEED_H
#define SERVER_FEED_H

#include "media/align.h"
#include "media/track.h"
#include "server/stream.h"

struct feed {
	struct stream *stream; /* a reference */
	struct track *tracks[STREAM_LANES];
	struct align align; /* timestamps of the video */
};

/** @param pad_bytes of video, see media/track.h. @return 0, -ENOMEM or -EINVAL */
int feed_create(struct feed **out, struct stream *stream, uint16_t pad_bytes);
/** NULL is allowed. */
void feed_destroy(struct feed *f);

#endif
