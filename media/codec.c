/* media/codec.c - see codec.h for the contract. */
#include "media/codec.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "media/av1.h"
#include "media/h264.h"
#include "media/h265.h"
#include "media/vp8.h"
#include "media/vp9.h"
#include "pool/bytes.h"

static const struct {
	const char *name;
	enum media_kind kind;
	uint32_t clock_hz;
	int static_payload_type;
	bool (*inspect)(const uint8_t *payload, size_t len, struct codec_info *out);
} codecs[CODECS] = {
	[CODEC_NONE] = { "", MEDIA_AUDIO, 0, -1, NULL },
	[CODEC_OPUS] = { "opus", MEDIA_AUDIO, 48000, -1, NULL },
	[CODEC_MULTIOPUS] = { "multiopus", MEDIA_AUDIO, 48000, -1, NULL },
	[CODEC_PCMU] = { "PCMU", MEDIA_AUDIO, 8000, 0, NULL },
	[CODEC_PCMA] = { "PCMA", MEDIA_AUDIO, 8000, 8, NULL },
	[CODEC_G722] = { "G722", MEDIA_AUDIO, 8000, 9, NULL },
	[CODEC_RED] = { "red", MEDIA_AUDIO, 48000, -1, NULL },
	[CODEC_VP8] = { "VP8", MEDIA_VIDEO, 90000, -1, vp8_inspect },
	[CODEC_VP9] = { "VP9", MEDIA_VIDEO, 90000, -1, vp9_inspect },
	[CODEC_H264] = { "H264", MEDIA_VIDEO, 90000, -1, h264_inspect },
	[CODEC_H265] = { "H265", MEDIA_VIDEO, 90000, -1, h265_inspect },
	[CODEC_AV1] = { "AV1", MEDIA_VIDEO, 90000, -1, av1_inspect },
};

const char *codec_name(enum media_codec codec)
{
	assert(codec < CODECS);
	return codecs[codec].name;
}

enum media_codec codec_of_name(enum media_kind kind, const char *name, size_t len)
{
	for (unsigned c = CODEC_NONE + 1; c < CODECS; c++)
		if (codecs[c].kind == kind && strlen(codecs[c].name) == len &&
		    strncasecmp(codecs[c].name, name, len) == 0)
			return (enum media_codec)c;
	return CODEC_NONE;
}

enum media_kind codec_kind(enum media_codec codec)
{
	assert(codec > CODEC_NONE && codec < CODECS);
	return codecs[codec].kind;
}

uint32_t codec_clock_hz(enum media_codec codec)
{
	assert(codec < CODECS);
	return codecs[codec].clock_hz;
}

int codec_static_payload_type(enum media_codec codec)
{
	assert(codec < CODECS);
	return codecs[codec].static_payload_type;
}

bool codec_inspect(enum media_codec codec, const uint8_t *payload, size_t len,
		   struct codec_info *out)
{
	assert(codec < CODECS);
	memset(out, 0, sizeof(*out));
	if (!codecs[codec].inspect) {
		out->flags = len > 0 ? CODEC_FRAME_START : 0;
		return len > 0;
	}
	if (codecs[codec].inspect(payload, len, out))
		return true;
	out->flags &= ~(uint32_t)CODEC_KEYFRAME_START;
	return false;
}

void codec_patch_ids(uint8_t *payload, const struct codec_info *info, uint16_t picture_id,
		     uint8_t tl0picidx)
{
	if (info->flags & CODEC_HAS_PICTURE_ID) {
		if (info->picture_id_bits == 15)
			be16_write(payload + info->picture_id_offset, picture_id | 0x8000);
		else
			payload[info->picture_id_offset] = picture_id & 0x7f;
	}
	if (info->flags & CODEC_HAS_TL0PICIDX)
		payload[info->tl0picidx_offset] = tl0picidx;
}
