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
	PATTERN_FRAMES = 4,   /* after which the temporal layers begin anew */
	OPUS_EFFORT = 5,      /* of 0..10 */
};

/* What a frame of a layer does not touch. The base layer knows the last frame only, and so itself;
 * whatever is above it may be left out, also by the entropy coder. */
enum {
	KEEP_ALL = VP8_EFLAG_NO_UPD_LAST | VP8_EFLAG_NO_UPD_GF | VP8_EFLAG_NO_UPD_ARF |
		   VP8_EFLAG_NO_UPD_ENTROPY,
	REFER_TO_BASE = VP8_EFLAG_NO_REF_GF | VP8_EFLAG_NO_REF_ARF,
	BASE = REFER_TO_BASE | VP8_EFLAG_NO_UPD_GF | VP8_EFLAG_NO_UPD_ARF,
	ABOVE_BASE = REFER_TO_BASE | KEEP_ALL,
	MIDDLE = ABOVE_BASE & ~VP8_EFLAG_NO_UPD_GF, /* kept for the frame after it */
	ABOVE_MIDDLE = VP8_EFLAG_NO_REF_ARF | KEEP_ALL,
};

static const struct pattern {
	struct encoder_vp8_layer layer[PATTERN_FRAMES];
	vpx_enc_frame_flags_t flags[PATTERN_FRAMES];
	uint32_t rate_percent[ENCODER_TEMPORAL_LAYERS]; /* of each layer with those below it */
	uint32_t rate_divisor[ENCODER_TEMPORAL_LAYERS]; /* of its frames, likewise */
} patterns[ENCODER_TEMPORAL_LAYERS] = {
	{ .layer = { { 0, true }, { 0, true }, { 0, true }, { 0, true } },
	  .rate_percent = { 100 },
	  .rate_divisor = { 1 } },
	{ .layer = { { 0, true }, { 1, true }, { 0, true }, { 1, true } },
	  .flags = { BASE, ABOVE_BASE, BASE, ABOVE_BASE },
	  .rate_percent = { 60, 100 },
	  .rate_divisor = { 2, 1 } },
	{ .layer = { { 0, true }, { 2, true }, { 1, true }, { 2, false } },
	  .flags = { BASE, ABOVE_BASE, MIDDLE, ABOVE_MIDDLE },
	  .rate_percent = { 40, 60, 100 },
	  .rate_divisor = { 4, 2, 1 } },
};

struct encoder_vp8_layer encoder_vp8_layer(uint32_t temporal_layers, uint32_t i)
{
	return patterns[temporal_layers - 1].layer[i % PATTERN_FRAMES];
}

struct encoder_vp8 {
	const struct pattern *pattern;
	uint32_t since_keyframe;
	bool has_layers;
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

/* Before the codec is opened: what libvpx is told of the layers. */
static void set_layers(const struct encoder_vp8_config *c, vpx_codec_enc_cfg_t *cfg)
{
	const struct pattern *p = &patterns[c->temporal_layers - 1];

	cfg->ts_number_layers = c->temporal_layers;
	cfg->ts_periodicity = PATTERN_FRAMES;
	for (uint32_t i = 0; i < c->temporal_layers; i++) {
		cfg->ts_target_bitrate[i] = cfg->rc_target_bitrate * p->rate_percent[i] / 100;
		cfg->ts_rate_decimator[i] = p->rate_divisor[i];
	}
	for (unsigned i = 0; i < PATTERN_FRAMES; i++)
		cfg->ts_layer_id[i] = p->layer[i].id;
	cfg->g_error_resilient = VPX_ERROR_RESILIENT_DEFAULT;
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
	if (e->has_layers)
		set_layers(c, &cfg);
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
	e->pattern = &patterns[config->temporal_layers - 1];
	e->has_layers = config->temporal_layers > 1;
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
	vpx_enc_frame_flags_t flags;
	uint32_t at;

	if (keyframe)
		e->since_keyframe = 0;
	at = e->since_keyframe++ % PATTERN_FRAMES;
	flags = keyframe ? VPX_EFLAG_FORCE_KF : e->pattern->flags[at];
	if (e->has_layers && vpx_codec_control(&e->codec, VP8E_SET_TEMPORAL_LAYER_ID,
					       e->pattern->layer[at].id) != VPX_CODEC_OK)
		return -EIO;
	if (vpx_codec_encode(&e->codec, &e->image, e->pts, 1, flags, VPX_DL_REALTIME) !=
	    VPX_CODEC_OK)
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
