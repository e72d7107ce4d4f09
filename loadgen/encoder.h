/* loadgen/encoder.h - pictures to VP8 and samples to Opus, set up as for a call.
 *
 * Source:  VP8 by libvpx, Opus by libopus.
 * Thread:  an encoder belongs to one thread at a time.
 * Memory:  the libraries' own; released by _destroy.
 */
#ifndef LOADGEN_ENCODER_H
#define LOADGEN_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/picture.h"

enum {
	ENCODER_AUDIO_HZ = 48000,
	ENCODER_AUDIO_CHANNELS = 2,
	ENCODER_AUDIO_SAMPLES = 960, /* of each channel in one packet: 20 ms */
	ENCODER_AUDIO_MAX_BYTES = 1275,
	ENCODER_TEMPORAL_LAYERS = 3, /* at most */
};

struct encoder_vp8;

struct encoder_vp8_config {
	uint32_t width, height, fps, bitrate_bps;
	uint32_t max_keyframe_frames; /* a key frame aims below this many frames' share of bytes */
	uint32_t temporal_layers;     /* 1..ENCODER_TEMPORAL_LAYERS */
};

/* Where a frame stands among temporal layers. The base layer is every frame, every second or every
 * fourth, by how many layers there are. */
struct encoder_vp8_layer {
	uint8_t id;   /* 0: the base layer */
	bool is_sync; /* of the frames before it, it depends on the base layer only */
};

/** Of the i-th frame since a key frame, which is 0. */
struct encoder_vp8_layer encoder_vp8_layer(uint32_t temporal_layers, uint32_t i);

/** Constant bitrate, no frame ever dropped, key frames only when asked for.
 *  @return 0, -ENOMEM or -EIO: libvpx refuses */
int encoder_vp8_create(struct encoder_vp8 **out, const struct encoder_vp8_config *config);
void encoder_vp8_destroy(struct encoder_vp8 *e); /* NULL is allowed */

/** The picture that the next encoder_vp8_encode() takes; its planes are the encoder's. */
const struct picture *encoder_vp8_picture(const struct encoder_vp8 *e);

/** @param bytes receives the frame, valid until the next call on this encoder
 *  @return 0 or -EIO */
int encoder_vp8_encode(struct encoder_vp8 *e, bool keyframe, const uint8_t **bytes, size_t *len);

struct encoder_opus;

/** @return 0, -ENOMEM or -EIO: libopus refuses */
int encoder_opus_create(struct encoder_opus **out, uint32_t bitrate_bps);
void encoder_opus_destroy(struct encoder_opus *e); /* NULL is allowed */

/** @param samples interleaved, ENCODER_AUDIO_SAMPLES of each channel
 *  @return length of the packet in out, or -EIO */
int encoder_opus_encode(struct encoder_opus *e, const int16_t *samples,
			uint8_t out[ENCODER_AUDIO_MAX_BYTES]);

#endif
