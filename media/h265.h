/* media/h265.h - what a relay reads in an H265 payload.
 *
 * Source:  RFC 7798 section 4.4; ITU-T H.265 sections 7.3.1.2, 7.3.6.1.
 * Sans-IO, any thread, no memory: see media/codec.h, whose codec_inspect() is the way in.
 */
#ifndef MEDIA_H265_H
#define MEDIA_H265_H

#include "media/codec.h"

/** As codec_inspect() for H265; *out is zeroed by the caller. */
bool h265_inspect(const uint8_t *payload, size_t len, struct codec_info *out);

#endif
