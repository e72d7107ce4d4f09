/* media/packet.c - see packet.h for the contract. */
#include "media/packet.h"

#include <string.h>

static uint16_t flags_of_codec(enum media_codec codec, const struct codec_info *info)
{
	unsigned flags = 0;

	if (info->flags & CODEC_KEYFRAME_START)
		flags |= PACKET_KEYFRAME;
	if (info->flags & CODEC_FRAME_START)
		flags |= PACKET_FRAME_START;
	/* VP9's bit speaks of upper spatial layers only. */
	if (codec == CODEC_VP8 && info->flags & CODEC_NOT_REFERENCED)
		flags |= PACKET_DISCARDABLE;
	return (uint16_t)flags;
}

static void describe_extensions(struct media_packet *p, const struct slab *s,
				const struct ext_values *ext)
{
	if (ext_has(ext, EXT_AUDIO_LEVEL)) {
		p->flags |= PACKET_AUDIO_LEVEL;
		p->audio_level = (uint8_t)(ext->audio_is_voice << 7 | ext->audio_level_dbov);
	}
	if (ext_has(ext, EXT_VIDEO_ORIENTATION)) {
		p->flags |= PACKET_ORIENTATION;
		p->orientation = ext->orientation;
	}
	if (ext_has(ext, EXT_PLAYOUT_DELAY)) {
		p->flags |= PACKET_PLAYOUT_DELAY;
		memcpy(p->playout_delay, s->data + ext->span[EXT_PLAYOUT_DELAY].offset,
		       sizeof(p->playout_delay));
	}
	if (ext_has(ext, EXT_ABS_CAPTURE_TIME)) {
		p->flags |= PACKET_CAPTURE_TIME;
		p->capture_offset = ext->span[EXT_ABS_CAPTURE_TIME].offset;
		p->capture_bytes = ext->span[EXT_ABS_CAPTURE_TIME].bytes;
	}
	if (ext_has(ext, EXT_DEPENDENCY_DESCRIPTOR)) {
		p->flags |= PACKET_DESCRIPTOR;
		p->descriptor_offset = ext->span[EXT_DEPENDENCY_DESCRIPTOR].offset;
		p->descriptor_bytes = ext->span[EXT_DEPENDENCY_DESCRIPTOR].bytes;
	}
}

void packet_describe(struct slab *s, const struct rtp_packet *rtp, const struct ext_values *ext,
		     enum media_codec codec, const struct codec_info *info, uint64_t arrival_us)
{
	struct media_packet *p = packet_of(s);

	assert(rtp->payload_offset + rtp->payload_bytes <= SLAB_DATA_BYTES);
	*p = (struct media_packet){
		.arrival_us = arrival_us,
		.payload_offset = rtp->payload_offset,
		.payload_bytes = rtp->payload_bytes,
		.codec = (uint8_t)codec,
		.flags = rtp->marker ? PACKET_MARKER : 0,
	};
	if (info) {
		p->flags |= flags_of_codec(codec, info);
		p->spatial_id = info->spatial_id;
		p->temporal_id = info->temporal_id;
	}
	if (codec != CODEC_NONE && codec_kind(codec) == MEDIA_VIDEO &&
	    (rtp->marker || (info && info->flags & CODEC_FRAME_END)))
		p->flags |= PACKET_FRAME_END;
	p->targets = UINT32_MAX;
	p->switches = packet_has(p, PACKET_KEYFRAME) ? UINT32_MAX : 0;
	p->ends = rtp->marker ? UINT32_MAX : 0;
	if (ext)
		describe_extensions(p, s, ext);
}
