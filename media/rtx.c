/* media/rtx.c - see rtx.h for the contract. */
#include "media/rtx.h"

#include "pool/bytes.h"

bool rtx_unwrap(struct rtp_packet *rtp, const uint8_t *bytes, uint32_t media_ssrc,
		uint8_t media_payload_type)
{
	if (rtp->payload_bytes < RTX_OSN_BYTES)
		return false;
	rtp->seq = be16_read(bytes + rtp->payload_offset);
	rtp->payload_offset = (uint16_t)(rtp->payload_offset + RTX_OSN_BYTES);
	rtp->payload_bytes = (uint16_t)(rtp->payload_bytes - RTX_OSN_BYTES);
	rtp->ssrc = media_ssrc;
	rtp->payload_type = media_payload_type;
	return true;
}
