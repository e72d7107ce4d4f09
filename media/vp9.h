/* media/vp9.h - what a relay reads in a VP9 payload.
 *
 * Source:  RFC 9628 section 4.2 (payload descriptor); VP9 bitstream specification 0.6, section 6.2.
 * Sans-IO, any thread, no memory: see media/codec.h, whose codec_inspect() is the way in.
 */
#ifndef MEDIA_VP9_H
#define MEDIA_VP9_H

#include "media/codec.h"

/** As codec_inspect() for VP9; *out is zeroed by the caller. */
bool vp9_inspect(const uint8_t *payload, size_t len, struct codec_info *out);

enum { VP9_LAYERS = 8 };

/* Scalability structure: the spatial layers of the pictures from here on. */
struct vp9_structure {
	uint8_t layer_count; /* 1..VP9_LAYERS */
	bool has_sizes;
	uint16_t width[VP9_LAYERS], height[VP9_LAYERS]; /* pixels, by spatial id */
};

/** @return false: the payload is malformed or carries none */
bool vp9_read_structure(const uint8_t *payload, size_t len, struct vp9_structure *out);

#endif
