/* media/vp8.h - what a relay reads in a VP8 payload.
 *
 * Source:  RFC 7741 section 4.2 (payload descriptor); RFC 6386 section 9.1 (frame header).
 * Sans-IO, any thread, no memory: see media/codec.h, whose codec_inspect() is the way in.
 */
#ifndef MEDIA_VP8_H
#define MEDIA_VP8_H

#include "media/codec.h"

/** As codec_inspect() for VP8; *out is zeroed by the caller. */
bool vp8_inspect(const uint8_t *payload, size_t len, struct codec_info *out);

#endif
