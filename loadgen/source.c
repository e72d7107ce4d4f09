#include "loadgen/source.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/encoder.h"

enum {
	/* Opus packets of the loop's end that are encoded first and thrown away, so that the
	 * encoder begins the loop in the state in which it ends it. */
	PREROLL_PACKETS = 25,
	US_PER_S = 1000000,
	AUDIO_PACKETS_PER_S = US_PER_S / SOURCE_AUDIO_PACKET_US,
	/* Whole waves a second: no break where the loop starts over. */
	TONE_LEFT_HZ = 330,
	TONE_RIGHT_HZ = 440,
	BEEP_HZ = 1000,
	BEEP_SAMPLES = ENCODER_AUDIO_HZ / 10, /* at the start of every second */
};
_Static_assert((int)SOURCE_MAX_TEMPORAL_LAYERS == (int)ENCODER_TEMPORAL_LAYERS, "all of them");
_Static_assert((int)SOURCE_AUDIO_PACKET_TICKS == (int)ENCODER_AUDIO_SAMPLES,
	       "the RTP clock counts samples");

struct span {
	size_t offset;
	uint32_t len;
};

struct source {
	uint32_t fps, video_bps, temporal_layers;
	uint32_t frame_count, audio_count;
	struct span *frames, *audio;
	uint8_t *bytes; /* what the spans are of */
	size_t used_bytes, cap_bytes;
};

void source_config_init(struct source_config *config)
{
	*config = (struct source_config){
		.width = 640,
		.height = 360,
		.fps = 30,
		.video_bps = 1200000,
		.audio_bps = 64000,
		.loop_ms = 4000,
		.temporal_layers = 1,
		.title = "SLUICE",
	};
}

static bool is_within(uint32_t value, uint32_t low, uint32_t high)
{
	return value >= low && value <= high;
}

static bool config_is_valid(const struct source_config *c)
{
	return is_within(c->width, PICTURE_MIN_WIDTH, 1920) && c->width % 2 == 0 &&
	       is_within(c->height, PICTURE_MIN_HEIGHT, 1080) && c->height % 2 == 0 &&
	       is_within(c->fps, 1, SOURCE_MAX_FPS) && is_within(c->video_bps, 50000, 20000000) &&
	       is_within(c->audio_bps, 6000, 256000) &&
	       is_within(c->loop_ms, 1000, SOURCE_MAX_LOOP_MS) && c->loop_ms % 1000 == 0 &&
	       is_within(c->temporal_layers, 1, SOURCE_MAX_TEMPORAL_LAYERS) && c->title != NULL;
}

static int append(struct source *s, struct span *span, const uint8_t *bytes, size_t len)
{
	if (!s->bytes || s->cap_bytes - s->used_bytes < len) {
		size_t cap = 2 * (s->cap_bytes + len);
		uint8_t *grown = realloc(s->bytes, cap);

		if (!grown)
			return -ENOMEM;
		s->bytes = grown;
		s->cap_bytes = cap;
	}
	memcpy(s->bytes + s->used_bytes, bytes, len);
	*span = (struct span){ s->used_bytes, (uint32_t)len };
	s->used_bytes += len;
	return 0;
}

static int make_video(struct source *s, const struct source_config *c)
{
	struct encoder_vp8_config config = {
		.width = c->width,
		.height = c->height,
		.fps = c->fps,
		.bitrate_bps = c->video_bps,
		.max_keyframe_frames = SOURCE_MAX_KEYFRAME_FRAMES,
		.temporal_layers = c->temporal_layers,
	};
	struct encoder_vp8 *encoder;
	int err = encoder_vp8_create(&encoder, &config);

	for (uint32_t i = 0; err == 0 && i < s->frame_count; i++) {
		struct picture_moment moment = { i, s->frame_count, c->fps, c->title };
		const uint8_t *bytes;
		size_t len;

		picture_draw(encoder_vp8_picture(encoder), &moment);
		err = encoder_vp8_encode(encoder, i == 0, &bytes, &len);
		if (err == 0)
			err = append(s, &s->frames[i], bytes, len);
	}
	encoder_vp8_destroy(encoder);
	return err;
}

static double tone(uint32_t hz, uint32_t sample)
{
	return sin(2 * M_PI * hz * sample / ENCODER_AUDIO_HZ);
}

/* A quiet chord, and a beep with soft edges whenever the clock in the picture counts a second. */
static void make_samples(int16_t *out, uint32_t first)
{
	for (uint32_t i = 0; i < ENCODER_AUDIO_SAMPLES; i++) {
		uint32_t n = (first + i) % ENCODER_AUDIO_HZ;
		double beep = 0;

		if (n < BEEP_SAMPLES)
			beep = 6000 * sin(M_PI * n / BEEP_SAMPLES) * tone(BEEP_HZ, n);
		out[2 * i] = (int16_t)lrint(3000 * tone(TONE_LEFT_HZ, n) + beep);
		out[2 * i + 1] = (int16_t)lrint(3000 * tone(TONE_RIGHT_HZ, n) + beep);
	}
}

static int make_audio(struct source *s, const struct source_config *c)
{
	struct encoder_opus *encoder;
	int16_t samples[ENCODER_AUDIO_SAMPLES * ENCODER_AUDIO_CHANNELS];
	uint8_t packet[ENCODER_AUDIO_MAX_BYTES];
	int err = encoder_opus_create(&encoder, c->audio_bps);

	for (uint32_t i = 0; err == 0 && i < PREROLL_PACKETS + s->audio_count; i++) {
		uint32_t at = (i + s->audio_count - PREROLL_PACKETS) % s->audio_count;
		int len;

		make_samples(samples, at * ENCODER_AUDIO_SAMPLES);
		len = encoder_opus_encode(encoder, samples, packet);
		if (len < 0)
			err = len;
		else if (i >= PREROLL_PACKETS)
			err = append(s, &s->audio[at], packet, (size_t)len);
	}
	encoder_opus_destroy(encoder);
	return err;
}

int source_create(struct source **out, const struct source_config *config)
{
	struct source *s;
	int err = -ENOMEM;

	*out = NULL;
	if (!config_is_valid(config))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fps = config->fps;
	s->video_bps = config->video_bps;
	s->temporal_layers = config->temporal_layers;
	s->frame_count = config->loop_ms / 1000 * config->fps;
	s->audio_count = config->loop_ms / 1000 * AUDIO_PACKETS_PER_S;
	s->frames = calloc(s->frame_count, sizeof(*s->frames));
	s->audio = calloc(s->audio_count, sizeof(*s->audio));
	if (!s->frames || !s->audio)
		goto fail;
	err = make_video(s, config);
	if (err == 0)
		err = make_audio(s, config);
	if (err)
		goto fail;
	*out = s;
	return 0;

fail:
	source_destroy(s);
	return err;
}

void source_destroy(struct source *s)
{
	if (!s)
		return;
	free(s->frames);
	free(s->audio);
	free(s->bytes);
	free(s);
}

uint32_t source_fps(const struct source *s)
{
	return s->fps;
}

uint32_t source_video_bps(const struct source *s)
{
	return s->video_bps;
}

uint32_t source_frames(const struct source *s)
{
	return s->frame_count;
}

struct source_unit source_frame(const struct source *s, uint32_t i)
{
	assert(i < s->frame_count);
	return (struct source_unit){ s->bytes + s->frames[i].offset, s->frames[i].len };
}

struct source_layer source_layer(const struct source *s, uint32_t i)
{
	struct encoder_vp8_layer layer = encoder_vp8_layer(s->temporal_layers, i);

	return (struct source_layer){ layer.id, layer.is_sync };
}

uint32_t source_audio_packets(const struct source *s)
{
	return s->audio_count;
}

struct source_unit source_audio(const struct source *s, uint32_t i)
{
	assert(i < s->audio_count);
	return (struct source_unit){ s->bytes + s->audio[i].offset, s->audio[i].len };
}
