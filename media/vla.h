/* media/vla.h - the video layers allocation header extension: what a sender sends, layer by layer.
 *
 * Source:  http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00
 * Sans-IO: bytes in, values out.
 * Thread:  any; no shared state.
 * Memory:  none.
 */
#ifndef MEDIA_VLA_H
#define MEDIA_VLA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VLA_STREAMS = 4, /* RTP streams of one track: encodings */
	VLA_SPATIAL = 4,
	VLA_TEMPORAL = 4,
};

struct vla_layer {
	/* Of what a receiver of this layer needs: lower temporal layers included, lower spatial ones
	 * where they are needed. By temporal id, ascending. */
	uint32_t bitrate_bps[VLA_TEMPORAL];
	uint32_t width, height; /* pixels, 1..65536; valid with has_resolutions */
	uint8_t fps;            /* at most; likewise */
	uint8_t temporal_count; /* 1..4; 0: the layer is not sent */
};

struct vla {
	uint8_t stream;       /* number of the stream this came on, in the sender's order */
	uint8_t stream_count; /* 0: nothing is sent at all */
	bool has_resolutions;
	struct vla_layer layers[VLA_STREAMS][VLA_SPATIAL];
};

/** @return false: malformed, *out is undefined */
bool vla_parse(const uint8_t *bytes, size_t len, struct vla *out);

#endif
