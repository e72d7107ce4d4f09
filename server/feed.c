/* server/feed.c - see feed.h for the contract. */
#include "server/feed.h"

#include <errno.h>
#include <stdlib.h>

#include "media/mapping.h"
#include "media/rtx.h"

enum {
	VIDEO_CLOCK_HZ = 90000, /* of every video format */
	/* What a viewer's header takes with the extensions a relay forwards in one-byte form: fixed
	 * part, block header, mid, audio level, orientation, playout delay, capture time. */
	FEED_HEADER_BYTES = 12 + 4 + 36 + RTX_OSN_BYTES,
};

int feed_create(struct feed **out, struct stream *stream, uint16_t pad_bytes)
{
	struct feed *f = calloc(1, sizeof(*f));
	int err = 0;

	*out = NULL;
	if (!f)
		return -ENOMEM;
	f->stream = stream_ref(stream);
	align_init(&f->align, VIDEO_CLOCK_HZ);
	for (unsigned i = 0; i < STREAM_LANES && !err; i++) {
		unsigned kind = stream_lane_kind(i);
		struct track_config config = {
			.is_video = kind == MEDIA_VIDEO,
			.pad_bytes = pad_bytes,
			.header_bytes = FEED_HEADER_BYTES,
			.stream = stream->slot,
			.stream_generation = stream->generation,
			.track = (uint8_t)kind,
			.encoding = (uint8_t)(i - kind),
		};

		err = track_create(&f->tracks[i], &config);
	}
	if (err) {
		feed_destroy(f);
		return err;
	}
	*out = f;
	return 0;
}

void feed_destroy(struct feed *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < STREAM_LANES; i++)
		track_destroy(f->tracks[i]);
	stream_unref(f->stream);
	free(f);
}
