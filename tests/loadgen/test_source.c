#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/source.h"
#include "tests/fault.h"
#include "tests/loadgen/kit_media.h"

TestSuite(source, .timeout = 60);

static struct source *make(const struct source_config *config)
{
	struct source *s;

	cr_assert_eq(source_create(&s, config), 0);
	return s;
}

static struct source *make_small(void)
{
	struct source_config config;

	kit_small_config(&config);
	return make(&config);
}

static struct source *make_default(void)
{
	struct source_config config;

	source_config_init(&config);
	return make(&config);
}

/* RFC 6386 9.1: the first bit of a frame is 0 for key frames. */
static bool is_keyframe(struct source_unit frame)
{
	return (frame.bytes[0] & 1) == 0;
}

Test(source, the_loop_decodes_to_the_pictures_drawn_also_over_its_end)
{
	struct source *s = make_default();
	struct kit_vp8 *decoder = kit_vp8_create();
	struct picture drawn, decoded;

	kit_picture_init(&drawn, 640, 360);
	cr_assert_eq(source_frames(s), 120);
	for (uint32_t i = 0; i < 2 * source_frames(s); i++) {
		uint32_t at = i % source_frames(s);
		struct picture_moment moment = { at, source_frames(s), 30, "SLUICE" };
		struct source_unit frame = source_frame(s, at);

		kit_vp8_decode(decoder, frame.bytes, frame.len, &decoded);
		cr_expect_eq(picture_read_number(&decoded), (int)at);
		picture_draw(&drawn, &moment);
		cr_expect_gt(kit_psnr_db(&drawn, &decoded), 22, "frame %u: %.1f dB", at,
			     kit_psnr_db(&drawn, &decoded));
	}
	kit_picture_fini(&drawn);
	kit_vp8_destroy(decoder);
	source_destroy(s);
}

Test(source, a_decoder_follows_a_jump_from_anywhere_to_the_start)
{
	struct source *s = make_small();
	struct kit_vp8 *decoder = kit_vp8_create();
	struct picture decoded;

	for (uint32_t length = 1; length <= source_frames(s); length++) {
		for (uint32_t at = 0; at < length; at++) {
			struct source_unit frame = source_frame(s, at);

			kit_vp8_decode(decoder, frame.bytes, frame.len, &decoded);
			cr_expect_eq(picture_read_number(&decoded), (int)at);
		}
	}
	kit_vp8_destroy(decoder);
	source_destroy(s);
}

Test(source, the_first_frame_is_the_only_key_frame_and_bounded)
{
	static const uint32_t bitrates_bps[] = { 600000, 1200000, 2500000 };

	for (size_t k = 0; k < sizeof(bitrates_bps) / sizeof(bitrates_bps[0]); k++) {
		struct source_config config;
		struct source *s;
		uint32_t share = bitrates_bps[k] / 8 / 30;

		source_config_init(&config);
		config.loop_ms = 1000;
		config.video_bps = bitrates_bps[k];
		s = make(&config);
		for (uint32_t i = 0; i < source_frames(s); i++)
			cr_expect_eq(is_keyframe(source_frame(s, i)), i == 0, "frame %u", i);
		cr_expect_leq(source_frame(s, 0).len, SOURCE_MAX_KEYFRAME_FRAMES * share, "%u b/s",
			      bitrates_bps[k]);
		source_destroy(s);
	}
}

Test(source, a_decoder_follows_any_of_the_temporal_layers_over_the_end_of_the_loop)
{
	struct picture decoded;

	for (uint32_t layers = 1; layers <= SOURCE_MAX_TEMPORAL_LAYERS; layers++) {
		for (uint32_t wanted = 0; wanted < layers; wanted++) {
			struct source_config config;
			struct source *s;
			struct kit_vp8 *decoder = kit_vp8_create();
			uint32_t shown = 0;

			kit_small_config(&config);
			config.temporal_layers = layers;
			s = make(&config);
			for (uint32_t i = 0; i < 2 * source_frames(s); i++) {
				uint32_t at = i % source_frames(s);
				struct source_unit frame = source_frame(s, at);

				if (source_layer(s, at).temporal_id > wanted)
					continue;
				kit_vp8_decode(decoder, frame.bytes, frame.len, &decoded);
				cr_expect_eq(picture_read_number(&decoded), (int)at,
					     "%u of %u layers, frame %u", wanted + 1, layers, at);
				shown++;
			}
			/* Every frame, every second or every fourth of ten, the first one included. */
			cr_expect_eq(shown, 2 * ((10 + (1U << (layers - 1 - wanted)) - 1) >>
						 (layers - 1 - wanted)));
			kit_vp8_destroy(decoder);
			source_destroy(s);
		}
	}
}

/* A viewer may begin with a frame of a higher layer that is said to need the base only. */
Test(source, where_a_frame_needs_the_base_only_the_other_layers_may_be_missing)
{
	struct source_config config;
	struct kit_vp8 *all = kit_vp8_create(), *few = kit_vp8_create();
	struct source *s;
	struct picture whole, entered;
	unsigned syncs = 0;

	source_config_init(&config);
	config.loop_ms = 1000;
	config.temporal_layers = 3;
	s = make(&config);
	for (uint32_t i = 0; i < source_frames(s); i++) {
		struct source_unit frame = source_frame(s, i);
		struct source_layer layer = source_layer(s, i);

		kit_vp8_decode(all, frame.bytes, frame.len, &whole);
		if (layer.temporal_id > 0 && !layer.is_sync)
			continue;
		kit_vp8_decode(few, frame.bytes, frame.len, &entered);
		cr_expect_gt(kit_psnr_db(&whole, &entered), 90, "frame %u is not the same", i);
		syncs += layer.temporal_id > 0;
	}
	cr_expect_eq(syncs, 15);
	kit_vp8_destroy(all);
	kit_vp8_destroy(few);
	source_destroy(s);
}

Test(source, the_bitrate_is_the_one_asked_for_and_even)
{
	struct source *s = make_default();
	double want_bytes = 1200000.0 / 8 * 4, bytes = 0;
	uint32_t of_five_packets = 0;

	for (uint32_t i = 0; i < source_frames(s); i++) {
		uint32_t len = source_frame(s, i).len;

		bytes += len;
		of_five_packets += len > 3500 && len < 7000;
	}
	cr_expect_float_eq(bytes, want_bytes, want_bytes / 10, "%.0f bytes", bytes);
	cr_expect_gt(of_five_packets, source_frames(s) * 8 / 10);
	bytes = 0;
	for (uint32_t i = 0; i < source_audio_packets(s); i++)
		bytes += source_audio(s, i).len;
	cr_expect_float_eq(bytes, 64000 / 8 * 4, 64000 / 8 * 4 / 10, "%.0f bytes", bytes);
	source_destroy(s);
}

/* Energy of a frequency in one channel (Goertzel). */
static double energy(const int16_t *samples, size_t n, size_t channel, double hz)
{
	double k = 2 * cos(2 * M_PI * hz / 48000), a = 0, b = 0;

	for (size_t i = 0; i < n; i++) {
		double c = samples[2 * i + channel] + k * a - b;

		b = a;
		a = c;
	}
	return (a * a + b * b - k * a * b) / (double)n / (double)n;
}

static int largest_step(const int16_t *samples, size_t n)
{
	int largest = 0;

	for (size_t i = 2; i < 2 * n; i++)
		largest = abs(samples[i] - samples[i - 2]) > largest
			      ? abs(samples[i] - samples[i - 2])
			      : largest;
	return largest;
}

Test(source, the_sound_decodes_and_runs_over_the_end_of_the_loop_without_a_click)
{
	struct source *s = make_small();
	struct kit_opus *decoder = kit_opus_create();
	uint32_t packets = source_audio_packets(s);
	int16_t *samples = malloc(3 * packets * KIT_OPUS_SAMPLES * 2 * sizeof(*samples));
	size_t second = (size_t)packets * KIT_OPUS_SAMPLES;

	cr_assert(samples);
	cr_assert_eq(packets, 50);
	for (uint32_t i = 0; i < 3 * packets; i++) {
		struct source_unit u = source_audio(s, i % packets);
		int16_t *out = samples + (size_t)i * KIT_OPUS_SAMPLES * 2;

		kit_opus_decode(decoder, u.bytes, u.len, out);
		cr_expect_gt(energy(out, KIT_OPUS_SAMPLES, 0, 330), 1e4, "packet %u", i);
	}
	/* Away from the beep each channel holds its own tone. */
	for (size_t channel = 0; channel < 2; channel++) {
		const int16_t *quiet = samples + 2 * (second / 2);
		double own = energy(quiet, second / 4, channel, channel == 0 ? 330 : 440);
		double other = energy(quiet, second / 4, channel, channel == 0 ? 440 : 330);

		cr_expect_gt(own, 100 * other, "channel %zu", channel);
	}
	/* Where the rounds meet (the decoder is 312 samples late), steps are as small as within the
	 * chord; the beep begins too softly to count. */
	cr_expect_leq(largest_step(samples + 2 * (second - 480), 480 + 312 + 48),
		      2 * largest_step(samples + 2 * (second / 2), second / 4));
	free(samples);
	kit_opus_destroy(decoder);
	source_destroy(s);
}

Test(source, the_same_configuration_gives_the_same_bytes)
{
	struct source *a = make_small(), *b = make_small();

	for (uint32_t i = 0; i < source_frames(a); i++) {
		struct source_unit x = source_frame(a, i), y = source_frame(b, i);

		cr_assert(x.len == y.len && memcmp(x.bytes, y.bytes, x.len) == 0, "frame %u", i);
	}
	for (uint32_t i = 0; i < source_audio_packets(a); i++) {
		struct source_unit x = source_audio(a, i), y = source_audio(b, i);

		cr_assert(x.len == y.len && memcmp(x.bytes, y.bytes, x.len) == 0, "packet %u", i);
	}
	source_destroy(a);
	source_destroy(b);
}

Test(source, values_out_of_range_are_refused)
{
	static const struct {
		const char *name;
		size_t offset;
		uint32_t value;
	} rows[] = {
		{ "odd width", offsetof(struct source_config, width), 641 },
		{ "narrow", offsetof(struct source_config, width), 126 },
		{ "wide", offsetof(struct source_config, width), 1922 },
		{ "odd height", offsetof(struct source_config, height), 361 },
		{ "low", offsetof(struct source_config, height), 94 },
		{ "high", offsetof(struct source_config, height), 1082 },
		{ "no frames", offsetof(struct source_config, fps), 0 },
		{ "many frames", offsetof(struct source_config, fps), SOURCE_MAX_FPS + 1 },
		{ "few bits", offsetof(struct source_config, video_bps), 49999 },
		{ "many bits", offsetof(struct source_config, video_bps), 20000001 },
		{ "few audio bits", offsetof(struct source_config, audio_bps), 5999 },
		{ "many audio bits", offsetof(struct source_config, audio_bps), 256001 },
		{ "no loop", offsetof(struct source_config, loop_ms), 0 },
		{ "broken second", offsetof(struct source_config, loop_ms), 1500 },
		{ "no layer", offsetof(struct source_config, temporal_layers), 0 },
		{ "many layers", offsetof(struct source_config, temporal_layers),
		  SOURCE_MAX_TEMPORAL_LAYERS + 1 },
		{ "long loop", offsetof(struct source_config, loop_ms), SOURCE_MAX_LOOP_MS + 1000 },
	};
	struct source *s;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct source_config config;

		kit_small_config(&config);
		memcpy((uint8_t *)&config + rows[i].offset, &rows[i].value, sizeof(uint32_t));
		cr_expect_eq(source_create(&s, &config), -EINVAL, "%s", rows[i].name);
		cr_expect_null(s);
	}
}

Test(source, whichever_allocation_fails_nothing_is_left)
{
	struct source_config config;
	struct source *s = NULL;
	int err = -ENOMEM, faults = 0;

	kit_small_config(&config);
	for (; err == -ENOMEM; faults++) {
		fault_after(faults);
		err = source_create(&s, &config);
		fault_after(-1);
		cr_expect(err == 0 || s == NULL, "fault %d", faults);
	}
	cr_expect_eq(err, 0);
	cr_expect_gt(faults, 5);
	source_destroy(s);
}
