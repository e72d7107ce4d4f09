/* media/codec.h - the codecs a relay passes on, and what it must know about their payloads.
 *
 * Source:  RFC 7741 (VP8), RFC 9628 (VP9), RFC 6184 (H264), RFC 7798 (H265), AV1 RTP payload
 *          specification 1.0, RFC 7587 (Opus), RFC 2198 (RED), RFC 3551 (PCMU, PCMA, G722).
 * Sans-IO: bytes in, values out. Nothing is kept between packets.
 * Thread:  any; no shared state.
 * Memory:  none. Offsets are from the first byte of the RTP payload.
 */
#ifndef MEDIA_CODEC_H
#define MEDIA_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum media_kind { MEDIA_AUDIO, MEDIA_VIDEO };

enum media_codec {
	CODEC_NONE,
	CODEC_OPUS,
	CODEC_MULTIOPUS, /* three to eight channels, as libwebrtc writes it */
	CODEC_PCMU,
	CODEC_PCMA,
	CODEC_G722,
	CODEC_RED, /* audio/red */
	CODEC_VP8,
	CODEC_VP9,
	CODEC_H264,
	CODEC_H265,
	CODEC_AV1,
	CODECS,
};

/** The SDP encoding name in its usual spelling ("opus", "VP8"); "" for CODEC_NONE. Static. */
const char *codec_name(enum media_codec codec);

/** Case-insensitive, name need not be terminated. @return CODEC_NONE when unknown for that kind */
enum media_codec codec_of_name(enum media_kind kind, const char *name, size_t len);

/** @param codec not CODEC_NONE */
enum media_kind codec_kind(enum media_codec codec);

/** RTP clock in Hz (48000, 90000, and 8000 also for G722: RFC 3551 4.5.2); 0 for CODEC_NONE. */
uint32_t codec_clock_hz(enum media_codec codec);

/** Payload type RFC 3551 assigns (PCMU 0, PCMA 8, G722 9), or -1: dynamic only. */
int codec_static_payload_type(enum media_codec codec);

enum codec_flags {
	CODEC_FRAME_START = 1 << 0, /* first packet of a frame (VP9: of a layer frame) */
	CODEC_FRAME_END = 1 << 1,   /* the payload itself says so (VP9's E); else see the marker */
	/* Decoding may start at this packet. H264 and H265 send parameter sets and the picture in
	 * several packets of one timestamp, and more than one of them may carry this flag. */
	CODEC_KEYFRAME_START = 1 << 2,
	CODEC_HAS_PICTURE_ID = 1 << 3,
	CODEC_HAS_TL0PICIDX = 1 << 4,
	CODEC_HAS_KEYIDX = 1 << 5, /* VP8 only */
	CODEC_HAS_LAYERS = 1 << 6, /* spatial_id and temporal_id were in the payload */
	CODEC_SWITCH_UP = 1 << 7,  /* VP8's Y, VP9's U: a receiver may join this temporal layer */
	CODEC_NOT_REFERENCED = 1 << 8, /* VP8's N; VP9's Z (not by upper spatial layers) */
	CODEC_INTER_LAYER = 1 << 9,    /* VP9's D: predicted from the spatial layer below */
	CODEC_INTER_PICTURE = 1 << 10, /* VP9's P */
	CODEC_FLEXIBLE = 1 << 11,      /* VP9's F */
	CODEC_HAS_STRUCTURE = 1 << 12, /* VP9's V: see vp9_read_structure() */
};

struct codec_info {
	uint32_t flags; /* enum codec_flags */
	uint16_t width; /* pixels, 0 where this packet does not say */
	uint16_t height;
	uint16_t picture_id;
	uint8_t picture_id_bits;   /* 7 or 15 */
	uint8_t picture_id_offset; /* where its 1 or 2 bytes lie */
	uint8_t tl0picidx;
	uint8_t tl0picidx_offset;
	uint8_t keyidx; /* 5 bits, in the byte after the TL0PICIDX position */
	uint8_t spatial_id;
	uint8_t temporal_id;
	uint8_t descriptor_bytes; /* VP8, VP9: what precedes the bitstream; 0 for others */
};

/**
 * Look into a payload (padding stripped). Whatever the bytes are, *out is filled with what could
 * be read within them; a payload that is short or makes no sense has no flag set that needs the
 * missing part, so it is never taken for a key frame. Audio packets are frame starts.
 *
 * @return false when the payload breaks its own format (count it; forwarding is the caller's
 *         choice)
 */
bool codec_inspect(enum media_codec codec, const uint8_t *payload, size_t len,
		   struct codec_info *out);

/**
 * Overwrite PictureID and TL0PICIDX in place, keeping their sizes: the low 7 or 15 bits of
 * picture_id go where `info` (of codec_inspect() on these bytes) found one. VP8 and VP9.
 */
void codec_patch_ids(uint8_t *payload, const struct codec_info *info, uint16_t picture_id,
		     uint8_t tl0picidx);

#endif
