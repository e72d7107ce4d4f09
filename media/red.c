/* media/red.c - see red.h for the contract. */
#include "media/red.h"

#include <string.h>

#include "pool/bytes.h"

enum {
	FOLLOWED = 0x80, /* F: another block header follows */
	TYPE_BITS = 0x7f,
	LENGTH_BITS = 0x3ff,
};

size_t red_header_bytes(const uint8_t *payload, size_t len, uint8_t pt)
{
	size_t at = 0, redundant_bytes = 0;

	while (at < len && at < RED_MAX_HEADER_BYTES && (payload[at] & TYPE_BITS) == pt) {
		if (!(payload[at] & FOLLOWED))
			return at + 1 + redundant_bytes < len ? at + 1 : 0;
		if (len - at < RED_BLOCK_HEADER_BYTES)
			return 0;
		redundant_bytes += be16_read(payload + at + 2) & LENGTH_BITS;
		at += RED_BLOCK_HEADER_BYTES;
	}
	return 0;
}

size_t red_primary_offset(const uint8_t *payload)
{
	size_t at = 0, redundant_bytes = 0;

	for (; payload[at] & FOLLOWED; at += RED_BLOCK_HEADER_BYTES)
		redundant_bytes += be16_read(payload + at + 2) & LENGTH_BITS;
	return at + 1 + redundant_bytes;
}

size_t red_write_header(const uint8_t *payload, uint8_t pt, uint8_t out[RED_MAX_HEADER_BYTES])
{
	size_t at = 0;

	for (; payload[at] & FOLLOWED; at += RED_BLOCK_HEADER_BYTES) {
		memcpy(out + at, payload + at, RED_BLOCK_HEADER_BYTES);
		out[at] = FOLLOWED | pt;
	}
	out[at] = pt;
	return at + 1;
}
