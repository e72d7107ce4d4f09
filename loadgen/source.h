/* loadgen/source.h - a loop of real media, drawn and encoded once and shared by all publishers.
 *
 * VP8 and Opus, a few seconds of them. Frame 0 is a key frame and the only one, so that the loop can
 * start over after its last frame, and at any moment when a key frame is asked for. With temporal
 * layers, the frames above a layer may be left out. The tone's waves
 * and the Opus encoder's state fit together where the loop's end meets its start.
 *
 * Source:  VP8 RFC 6386 by libvpx; Opus RFC 6716 by libopus.
 * Sans-IO: the same configuration and libraries give the same bytes.
 * Thread:  after source_create() the object is read-only: any thread.
 * Memory:  allocated at creation; a default loop is about 650 KB.
 */
#ifndef LOADGEN_SOURCE_H
#define LOADGEN_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SOURCE_AUDIO_PACKET_US = 20000,  /* of sound in one Opus packet */
	SOURCE_AUDIO_PACKET_TICKS = 960, /* the same at 48 kHz */
	SOURCE_MAX_KEYFRAME_FRAMES = 3,  /* bytes of a key frame, in frames of even size */
	SOURCE_MAX_LOOP_MS = 60000,
	SOURCE_MAX_FPS = 60,
	SOURCE_MAX_TEMPORAL_LAYERS = 3,
};

struct source_config {
	uint32_t width, height;   /* pixels, even, 128x96 to 1920x1080 */
	uint32_t fps;             /* 1..SOURCE_MAX_FPS */
	uint32_t video_bps;       /* 50,000..20,000,000; what the picture cannot be coarsened to
	                        * is exceeded: 640x360 at 30/s takes 600,000 */
	uint32_t audio_bps;       /* 6,000..256,000 */
	uint32_t loop_ms;         /* whole seconds, at most SOURCE_MAX_LOOP_MS */
	uint32_t temporal_layers; /* 1..SOURCE_MAX_TEMPORAL_LAYERS */
	const char *title; /* drawn into the picture: printable ASCII; borrowed by the call */
};

/** 640x360, 30 frames/s, 1.2 Mbit/s, 64 kbit/s, 4 s, one layer, title "SLUICE". */
void source_config_init(struct source_config *config);

struct source;

/** Draws and encodes: about one second of CPU time for the default loop.
 *  @return 0, -ENOMEM, -EINVAL (a configuration value) or -EIO (an encoder failed) */
int source_create(struct source **out, const struct source_config *config);
void source_destroy(struct source *s); /* NULL is allowed */

/** Encoded bytes, valid as long as the source. */
struct source_unit {
	const uint8_t *bytes;
	uint32_t len;
};

uint32_t source_fps(const struct source *s);
uint32_t source_video_bps(const struct source *s); /* as configured */

/** Frames of one loop, and the i-th (i below that): VP8 bitstream without any RTP. */
uint32_t source_frames(const struct source *s);
struct source_unit source_frame(const struct source *s, uint32_t i);

/* What the frame's payload descriptor says of it. */
struct source_layer {
	uint8_t temporal_id;
	bool is_sync; /* of the frames before it, it depends on the base layer only */
};
struct source_layer source_layer(const struct source *s, uint32_t i);

/** Audio packets of one loop, and the i-th: Opus, stereo, SOURCE_AUDIO_PACKET_US each. */
uint32_t source_audio_packets(const struct source *s);
struct source_unit source_audio(const struct source *s, uint32_t i);

#endif
