/* media/h264.h - what a relay reads in an H264 payload.
 *
 * Source:  RFC 6184 section 5; ITU-T H.264 sections 7.3.1, 7.3.2.1, 7.3.3.
 * Sans-IO, any thread, no memory: see media/codec.h, whose codec_inspect() is the way in.
 */
#ifndef MEDIA_H264_H
#define MEDIA_H264_H

#include "media/codec.h"

/** As codec_inspect() for H264; *out is zeroed by the caller. */
bool h264_inspect(const uint8_t *payload, size_t len, struct codec_info *out);

#endif
