#include "tests/loadgen/kit_media.h"

#include <criterion/criterion.h>
#include <math.h>
#include <opus/opus.h>
#include <stdlib.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>

void kit_small_config(struct source_config *config)
{
	source_config_init(config);
	config->width = 192;
	config->height = 108;
	config->fps = 10;
	config->video_bps = 300000;
	config->loop_ms = 1000;
}

void kit_picture_init(struct picture *p, uint32_t width, uint32_t height)
{
	*p = (struct picture){ .width = width, .height = height };
	for (size_t i = 0; i < PICTURE_PLANES; i++) {
		size_t half = i == 0 ? 1 : 2;

		p->stride_bytes[i] = width / half;
		p->plane[i] = calloc(height / half, width / half);
		cr_assert(p->plane[i]);
	}
}

void kit_picture_fini(struct picture *p)
{
	for (size_t i = 0; i < PICTURE_PLANES; i++)
		free(p->plane[i]);
}

double kit_psnr_db(const struct picture *a, const struct picture *b)
{
	double squares = 0;

	cr_assert(a->width == b->width && a->height == b->height);
	for (uint32_t y = 0; y < a->height; y++) {
		for (uint32_t x = 0; x < a->width; x++) {
			double d = a->plane[0][y * a->stride_bytes[0] + x] -
				   b->plane[0][y * b->stride_bytes[0] + x];

			squares += d * d;
		}
	}
	return 10 * log10(255.0 * 255.0 * a->width * a->height / (squares + 1));
}

struct kit_vp8 {
	vpx_codec_ctx_t codec;
};

struct kit_vp8 *kit_vp8_create(void)
{
	struct kit_vp8 *d = calloc(1, sizeof(*d));

	cr_assert(d);
	cr_assert_eq(vpx_codec_dec_init(&d->codec, vpx_codec_vp8_dx(), NULL, 0), VPX_CODEC_OK);
	return d;
}

void kit_vp8_destroy(struct kit_vp8 *d)
{
	vpx_codec_destroy(&d->codec);
	free(d);
}

void kit_vp8_decode(struct kit_vp8 *d, const uint8_t *bytes, size_t len, struct picture *out)
{
	vpx_codec_iter_t iter = NULL;
	vpx_image_t *image;

	cr_assert_eq(vpx_codec_decode(&d->codec, bytes, (unsigned)len, NULL, 0), VPX_CODEC_OK);
	image = vpx_codec_get_frame(&d->codec, &iter);
	cr_assert(image, "every frame shows a picture");
	*out = (struct picture){ .width = image->d_w, .height = image->d_h };
	for (size_t i = 0; i < PICTURE_PLANES; i++) {
		out->plane[i] = image->planes[i];
		out->stride_bytes[i] = (size_t)image->stride[i];
	}
}

struct kit_opus {
	OpusDecoder *codec;
};

struct kit_opus *kit_opus_create(void)
{
	struct kit_opus *d = calloc(1, sizeof(*d));
	int err;

	cr_assert(d);
	d->codec = opus_decoder_create(48000, 2, &err);
	cr_assert_eq(err, OPUS_OK);
	return d;
}

void kit_opus_destroy(struct kit_opus *d)
{
	opus_decoder_destroy(d->codec);
	free(d);
}

void kit_opus_decode(struct kit_opus *d, const uint8_t *bytes, size_t len, int16_t *out)
{
	cr_assert_eq(opus_decode(d->codec, bytes, (opus_int32)len, out, KIT_OPUS_SAMPLES, 0),
		     KIT_OPUS_SAMPLES);
}
