/* RTP header and extensions: what was accepted lies within the packet, says the same when written
 * again, and its extensions survive being written as a block of their own. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "media/ext.h"
#include "media/rtp.h"

enum { MAX_ELEMENTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_header(const struct rtp_packet *p)
{
	const struct rtp_header h = { .timestamp = p->timestamp,
				      .ssrc = p->ssrc,
				      .seq = p->seq,
				      .payload_type = p->payload_type,
				      .marker = p->marker };
	uint8_t bytes[RTP_HEADER_BYTES];
	struct rtp_packet q;

	rtp_header_write(bytes, &h);
	assert(rtp_parse(bytes, sizeof(bytes), &q) == RTP_OK);
	assert(q.timestamp == p->timestamp && q.ssrc == p->ssrc && q.seq == p->seq);
	assert(q.payload_type == p->payload_type && q.marker == p->marker);
}

/* Elements of the packet, at most MAX_ELEMENTS, that a block may hold. */
static size_t collect(const uint8_t *bytes, const struct rtp_packet *p, struct ext_element *out)
{
	const uint8_t *block_end = bytes + p->ext_offset + p->ext_bytes;
	struct ext_element e;
	struct ext_cursor c;
	size_t n = 0;

	ext_cursor_init(&c, bytes, p);
	while (ext_cursor_next(&c, &e)) {
		assert(e.id != 0 && e.data >= bytes + p->ext_offset);
		assert(e.data + e.bytes <= block_end);
		if (n < MAX_ELEMENTS && e.id != EXT_ID_RESERVED)
			out[n++] = e;
	}
	return n;
}

static void check_block(const uint8_t *bytes, const struct rtp_packet *p)
{
	static uint8_t packet[RTP_HEADER_BYTES + EXT_BLOCK_MAX_BYTES];
	struct ext_element elements[MAX_ELEMENTS], e;
	size_t n = collect(bytes, p, elements);
	size_t block_bytes = ext_block_bytes(elements, n);
	struct ext_cursor c;
	struct rtp_packet q;

	if (n == 0 || block_bytes > EXT_BLOCK_MAX_BYTES)
		return;
	rtp_header_write(packet, &(struct rtp_header){ .has_extension = true });
	assert(ext_block_write(packet + RTP_HEADER_BYTES, block_bytes, elements, n) == 0);
	assert(rtp_parse(packet, RTP_HEADER_BYTES + block_bytes, &q) == RTP_OK);
	ext_cursor_init(&c, packet, &q);
	for (size_t i = 0; i < n; i++) {
		assert(ext_cursor_next(&c, &e));
		assert(e.id == elements[i].id && e.bytes == elements[i].bytes);
		assert(memcmp(e.data, elements[i].data, e.bytes) == 0);
	}
	assert(!ext_cursor_next(&c, &e));
}

static void check_values(const uint8_t *bytes, const struct rtp_packet *p)
{
	struct ext_map map = { 0 };
	struct ext_values v;

	for (unsigned k = 0; k < EXT_KINDS; k++)
		assert(ext_map_set(&map, (enum ext_kind)k, k + 1) == 0);
	ext_read(&map, bytes, p, &v);
	assert(v.present >> EXT_KINDS == 0);
	for (unsigned k = 0; k < EXT_KINDS; k++) {
		if (!ext_has(&v, (enum ext_kind)k))
			continue;
		assert(v.span[k].offset >= p->ext_offset);
		assert(v.span[k].offset + v.span[k].bytes <= p->ext_offset + p->ext_bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);
	struct rtp_packet p, sealed;

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	if (rtp_parse(bytes, size, &p) == RTP_OK) {
		assert(size == (size_t)p.payload_offset + p.payload_bytes + p.padding_bytes);
		assert(p.ext_offset + p.ext_bytes <= p.payload_offset);
		assert(rtp_parse_header(bytes, size, &sealed) == RTP_OK);
		assert(sealed.payload_offset == p.payload_offset);
		assert(sealed.payload_bytes == p.payload_bytes + p.padding_bytes);
		check_header(&p);
		check_block(bytes, &p);
		check_values(bytes, &p);
	}
	free(bytes);
	return 0;
}
