/* media/av1.h - what a relay reads in an AV1 payload.
 *
 * Source:  AV1 RTP payload specification 1.0, section 4; AV1 bitstream specification, 5.3 and 5.5.
 * Sans-IO, any thread, no memory: see media/codec.h, whose codec_inspect() is the way in.
 */
#ifndef MEDIA_AV1_H
#define MEDIA_AV1_H

#include "media/codec.h"

/** As codec_inspect() for AV1; *out is zeroed by the caller. */
bool av1_inspect(const uint8_t *payload, size_t len, struct codec_info *out);

#endif
