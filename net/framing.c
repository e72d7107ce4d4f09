/* net/framing.c - see framing.h for the contract. */
#include "net/framing.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool/bytes.h"

/* --- reading ----------------------------------------------------------------------------- */

uint8_t *frame_reader_room(struct frame_reader *r, size_t *bytes)
{
	if (r->from > 0) {
		memmove(r->bytes, r->bytes + r->from, (size_t)r->have - r->from);
		r->have = (uint16_t)(r->have - r->from);
		r->from = 0;
	}
	*bytes = sizeof(r->bytes) - r->have;
	return r->bytes + r->have;
}

void frame_reader_added(struct frame_reader *r, size_t bytes)
{
	assert(bytes <= sizeof(r->bytes) - r->have);
	r->have = (uint16_t)(r->have + bytes);
}

enum frame_next frame_reader_peek(struct frame_reader *r, uint8_t **bytes, size_t *len)
{
	while (r->have - r->from >= FRAME_HEADER_BYTES) {
		*len = be16_read(r->bytes + r->from);
		*bytes = r->bytes + r->from + FRAME_HEADER_BYTES;
		if (*len > FRAME_MAX_BYTES)
			return FRAME_OVERSIZED;
		if (*len > 0)
			return (size_t)(r->have - r->from) >= FRAME_HEADER_BYTES + *len
				   ? FRAME_READY
				   : FRAME_MORE;
		r->from += FRAME_HEADER_BYTES;
	}
	return FRAME_MORE;
}

void frame_reader_skip(struct frame_reader *r)
{
	size_t bytes = FRAME_HEADER_BYTES + (size_t)be16_read(r->bytes + r->from);

	assert(bytes <= (size_t)(r->have - r->from));
	r->from = (uint16_t)(r->from + bytes);
}

/* --- writing ----------------------------------------------------------------------------- */

static void put(struct frame_queue *q, const uint8_t *bytes, size_t len)
{
	uint32_t at = (q->from + q->used) % FRAME_QUEUE_BYTES;
	size_t head = FRAME_QUEUE_BYTES - at;

	if (head > len)
		head = len;
	memcpy(q->bytes + at, bytes, head);
	memcpy(q->bytes, bytes + head, len - head);
	q->used += (uint32_t)len;
}

int frame_queue_push(struct frame_queue *q, const uint8_t *bytes, size_t len, size_t skip)
{
	uint8_t header[FRAME_HEADER_BYTES];

	assert(len > 0 && len <= UINT16_MAX && skip < FRAME_HEADER_BYTES + len);
	if (q->used + FRAME_HEADER_BYTES + len - skip > FRAME_QUEUE_BYTES)
		return -ENOBUFS;
	if (!q->bytes) {
		q->bytes = malloc(FRAME_QUEUE_BYTES);
		if (!q->bytes)
			return -ENOMEM;
	}
	be16_write(header, (uint16_t)len);
	if (skip < FRAME_HEADER_BYTES) {
		put(q, header + skip, FRAME_HEADER_BYTES - skip);
		skip = FRAME_HEADER_BYTES;
	}
	put(q, bytes + (skip - FRAME_HEADER_BYTES), len - (skip - FRAME_HEADER_BYTES));
	return 0;
}

int frame_queue_peek(const struct frame_queue *q, struct iovec out[2])
{
	size_t head = FRAME_QUEUE_BYTES - q->from;

	if (q->used == 0)
		return 0;
	if (head > q->used)
		head = q->used;
	out[0] = (struct iovec){ q->bytes + q->from, head };
	out[1] = (struct iovec){ q->bytes, q->used - head };
	return out[1].iov_len > 0 ? 2 : 1;
}

void frame_queue_skip(struct frame_queue *q, size_t bytes)
{
	assert(bytes <= q->used);
	q->from = (uint32_t)((q->from + bytes) % FRAME_QUEUE_BYTES);
	q->used -= (uint32_t)bytes;
}

void frame_queue_release(struct frame_queue *q)
{
	free(q->bytes);
	*q = (struct frame_queue){ 0 };
}
