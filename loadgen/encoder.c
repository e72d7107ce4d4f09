#include "loadgen/encoder.h"

#include <errno.h>
#include <opus/opus.h>
#include <stdlib.h>
#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>

enum {
	VP8_SPEED = -8,        /* realtime, fixed: -1 best, -16 fastest */
	VP8_MIN_QUANTIZER = 2, /* of 0..63 */
	VP8_MAX_QUANTIZER = 56,
	VP8_BUFFER_MS = 1000, /* of the rate controller: what it may be off by */
	OPUS_EFFORT = 5,      /* of 0..10 */
};

struct encoder_vp8 {
	vpx_codec_ctx_t codec;
	vpx_image_t image;
	struct picture picture;
	vpx_codec_pts_t pts;
	bool has_codec, has_image;
};

static int vp8_error(vpx_codec_err_t err)
{
	if (err == VPX_CODEC_OK)
		return 0;
	return err == VPX_CODEC_MEM_ERROR ? -ENOMEM : -EIO;
}

static int vp8_open(struct encoder_vp8 *e, const struct encoder_vp8_config *c)
{
	vpx_codec_enc_cfg_t cfg;
	vpx_codec_err_t err = vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &cfg, 0);

	if (err != VPX_CODEC_OK)
		return vp8_error(err);
	cfg.g_w = c->width;
	cfg.g_h = c->height;
	cfg.g_timebase = (struct vpx_rational){ 1, (int)c->fps };
	cfg.g_threads = 1; /* the same bytes whatever the machine */
	cfg.g_lag_in_frames = 0;
	cfg.rc_end_usage = VPX_CBR;
	cfg.rc_target_bitrate = c->bitrate_bps / 1000;
	cfg.rc_dropframe_thresh = 0;
	cfg.rc_min_quantizer = VP8_MIN_QUANTIZER;
	cfg.rc_max_quantizer = VP8_MAX_QUANTIZER;
	cfg.rc_buf_sz = VP8_BUFFER_MS;
	cfg.rc_buf_initial_sz = VP8_BUFFER_MS / 2;
	cfg.rc_buf_optimal_sz = VP8_BUFFER_MS / 2;
	cfg.kf_mode = VPX_KF_DISABLED;
	err = vpx_codec_enc_init(&e->codec, vpx_codec_vp8_cx(), &cfg, 0);
	e->has_codec = err == VPX_CODEC_OK;
	if (err == VPX_CODEC_OK)
		err = vpx_codec_control(&e->codec, VP8E_SET_CPUUSED, VP8_SPEED);
	if (err == VPX_CODEC_OK)
		err = vpx_codec_control(&e->codec, VP8E_SET_MAX_INTRA_BITRATE_PCT,
					100 * c->max_keyframe_frames);
	return vp8_error(err);
}

int encoder_vp8_create(struct encoder_vp8 **out, const struct encoder_vp8_config *config)
{
	struct encoder_vp8 *e = calloc(1, sizeof(*e));
	int err;

	*out = NULL;
	if (!e)
		return -ENOMEM;
	err = vp8_open(e, config);
	if (err)
		goto fail;
	e->has_image =
	    vpx_img_alloc(&e->image, VPX_IMG_FMT_I420, config->width, config->height, 16) != NULL;
	err = e->has_image ? 0 : -ENOMEM;
	if (err)
		goto fail;
	e->picture.width = config->width;
	e->picture.height = config->height;
	for (size_t i = 0; i < PICTURE_PLANES; i++) {
		e->picture.plane[i] = e->image.planes[i];
		e->picture.stride_bytes[i] = (size_t)e->image.stride[i];
	}
	*out = e;
	return 0;

fail:
	encoder_vp8_destroy(e);
	return err;
}

void encoder_vp8_destroy(struct encoder_vp8 *e)
{
	if (!e)
		return;
	if (e->has_image)
		vpx_img_free(&e->image);
	if (e->has_codec)
		vpx_codec_destroy(&e->codec);
	free(e);
}

const struct picture *encoder_vp8_picture(const struct encoder_vp8 *e)
{
	return &e->picture;
}

int encoder_vp8_encode(struct encoder_vp8 *e, bool keyframe, const uint8_t **bytes, size_t *len)
{
	const vpx_codec_cx_pkt_t *packet;
	vpx_codec_iter_t iter = NULL;

	if (vpx_codec_encode(&e->codec, &e->image, e->pts, 1, keyframe ? VPX_EFLAG_FORCE_KF : 0,
			     VPX_DL_REALTIME) != VPX_CODEC_OK)
		return -EIO;
	e->pts++;
	packet = vpx_codec_get_cx_data(&e->codec, &iter);
	if (!packet || packet->kind != VPX_CODEC_CX_FRAME_PKT || packet->data.frame.sz == 0)
		return -EIO;
	*bytes = packet->data.frame.buf;
	*len = packet->data.frame.sz;
	return 0;
}

struct encoder_opus {
	OpusEncoder *codec;
};

int encoder_opus_create(struct encoder_opus **out, uint32_t bitrate_bps)
{
	struct encoder_opus *e = calloc(1, sizeof(*e));
	int err = OPUS_OK;

	*out = NULL;
	if (!e)
		return -ENOMEM;
	e->codec = opus_encoder_create(ENCODER_AUDIO_HZ, ENCODER_AUDIO_CHANNELS,
				       OPUS_APPLICATION_AUDIO, &err);
	if (err == OPUS_OK)
		err = opus_encoder_ctl(e->codec, OPUS_SET_BITRATE((opus_int32)bitrate_bps));
	if (err == OPUS_OK)
		err = opus_encoder_ctl(e->codec, OPUS_SET_VBR(0));
	if (err == OPUS_OK)
		err = opus_encoder_ctl(e->codec, OPUS_SET_COMPLEXITY(OPUS_EFFORT));
	if (err != OPUS_OK) {
		encoder_opus_destroy(e);
		return err == OPUS_ALLOC_FAIL ? -ENOMEM : -EIO;
	}
	*out = e;
	return 0;
}

void encoder_opus_destroy(struct encoder_opus *e)
{
	if (!e)
		return;
	if (e->codec)
		opus_encoder_destroy(e->codec);
	free(e);
}

int encoder_opus_encode(struct encoder_opus *e, const int16_t *samples,
			uint8_t out[ENCODER_AUDIO_MAX_BYTES])
{
	int len =
	    opus_encode(e->codec, samples, ENCODER_AUDIO_SAMPLES, out, ENCODER_AUDIO_MAX_BYTES);

	return len > 0 ? len : -EIO;
}
