/* media/rtp.c - see rtp.h for the contract. */
#include "media/rtp.h"

#include <assert.h>
#include <string.h>

#include "pool/bytes.h"

enum {
	RTP_VERSION = 2,
	FLAG_PADDING = 0x20,
	FLAG_EXTENSION = 0x10,
	CSRC_COUNT = 0x0f,
	MARKER = 0x80,
};

static enum rtp_verdict parse_extension(const uint8_t *bytes, size_t len, struct rtp_packet *p)
{
	size_t at = p->payload_offset;
	size_t ext_bytes;

	if (len - at < RTP_EXT_HEADER_BYTES)
		return RTP_BAD_EXTENSION;
	ext_bytes = (size_t)be16_read(bytes + at + 2) * 4;
	if (len - at - RTP_EXT_HEADER_BYTES < ext_bytes)
		return RTP_BAD_EXTENSION;
	p->ext_profile = be16_read(bytes + at);
	p->ext_offset = (uint16_t)(at + RTP_EXT_HEADER_BYTES);
	p->ext_bytes = (uint16_t)ext_bytes;
	p->payload_offset = (uint16_t)(at + RTP_EXT_HEADER_BYTES + ext_bytes);
	return RTP_OK;
}

enum rtp_verdict rtp_parse_header(const uint8_t *bytes, size_t len, struct rtp_packet *out)
{
	struct rtp_packet p = { 0 };

	if (len < RTP_HEADER_BYTES || len > RTP_PACKET_MAX_BYTES)
		return RTP_SHORT;
	if (bytes[0] >> 6 != RTP_VERSION)
		return RTP_BAD_VERSION;
	p.csrc_count = bytes[0] & CSRC_COUNT;
	p.payload_offset = (uint16_t)(RTP_HEADER_BYTES + p.csrc_count * 4);
	if (len < p.payload_offset)
		return RTP_SHORT;
	p.marker = bytes[1] & MARKER;
	p.payload_type = bytes[1] & 0x7f;
	p.seq = be16_read(bytes + 2);
	p.timestamp = be32_read(bytes + 4);
	p.ssrc = be32_read(bytes + 8);
	if (bytes[0] & FLAG_EXTENSION && parse_extension(bytes, len, &p) != RTP_OK)
		return RTP_BAD_EXTENSION;
	p.payload_bytes = (uint16_t)(len - p.payload_offset);
	*out = p;
	return RTP_OK;
}

enum rtp_verdict rtp_parse(const uint8_t *bytes, size_t len, struct rtp_packet *out)
{
	struct rtp_packet p;
	enum rtp_verdict verdict = rtp_parse_header(bytes, len, &p);
	uint8_t count;

	if (verdict != RTP_OK)
		return verdict;
	if (bytes[0] & FLAG_PADDING) {
		if (p.payload_bytes == 0)
			return RTP_BAD_PADDING;
		count = bytes[len - 1];
		if (count == 0 || count > p.payload_bytes)
			return RTP_BAD_PADDING;
		p.padding_bytes = count;
		p.payload_bytes = (uint16_t)(p.payload_bytes - count);
	}
	*out = p;
	return RTP_OK;
}

void rtp_header_write(uint8_t *out, const struct rtp_header *h)
{
	assert(h->payload_type <= 0x7f);
	out[0] = (uint8_t)(RTP_VERSION << 6 | (h->has_padding ? FLAG_PADDING : 0) |
			   (h->has_extension ? FLAG_EXTENSION : 0));
	out[1] = (uint8_t)((h->marker ? MARKER : 0) | h->payload_type);
	be16_write(out + 2, h->seq);
	be32_write(out + 4, h->timestamp);
	be32_write(out + 8, h->ssrc);
}

void rtp_padding_write(uint8_t *out, uint8_t count)
{
	assert(count > 0);
	memset(out, 0, count - 1u);
	out[count - 1] = count;
}
