/* media/rtx.h - a retransmission packet turned back into the packet it repeats.
 *
 * Source:  RFC 4588 section 4 (payload format): the original sequence number (OSN), then the
 *          original payload; timestamp, marker and extensions are the original's.
 * Sans-IO: values only.
 * Thread:  any.
 */
#ifndef MEDIA_RTX_H
#define MEDIA_RTX_H

#include <stdbool.h>
#include <stdint.h>

#include "media/rtp.h"

enum { RTX_OSN_BYTES = 2 };

/**
 * Rewrite the parsed view, not the bytes: sequence number becomes the OSN, the payload starts behind
 * it, SSRC and payload type become the original's.
 *
 * @param bytes the packet of which *rtp is the parse
 * @return false: no OSN in it. That is a padding-only probe; *rtp is unchanged
 */
bool rtx_unwrap(struct rtp_packet *rtp, const uint8_t *bytes, uint32_t media_ssrc,
		uint8_t media_payload_type);

#endif
