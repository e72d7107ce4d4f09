/* Frames of a byte stream: however it is cut, the same packets come out, and what goes into a queue
 * in any pieces leaves as one stream. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct summary {
	unsigned packets;
	size_t bytes;
	uint32_t sum;
	bool is_over;
};

static void take_all(struct frame_reader *r, struct summary *s)
{
	uint8_t *bytes;
	size_t len;
	enum frame_next next;

	while ((next = frame_reader_peek(r, &bytes, &len)) == FRAME_READY) {
		assert(len > 0 && len <= FRAME_MAX_BYTES);
		for (size_t i = 0; i < len; i++)
			s->sum = s->sum * 31 + bytes[i];
		s->bytes += len;
		s->packets++;
		frame_reader_skip(r);
	}
	s->is_over = next == FRAME_OVERSIZED;
}

/* Read in pieces of `step`, or as much as there is room for. */
static struct summary read_in(const uint8_t *data, size_t size, size_t step)
{
	struct frame_reader *r = calloc(1, sizeof(*r));
	struct summary s = { 0 };

	assert(r);
	while (size && !s.is_over) {
		size_t room, n;
		uint8_t *at = frame_reader_room(r, &room);

		assert(room > 0);
		n = step < room ? step : room;
		n = n < size ? n : size;
		memcpy(at, data, n);
		frame_reader_added(r, n);
		data += n;
		size -= n;
		take_all(r, &s);
	}
	free(r);
	return s;
}

static void expect_same(const struct summary *a, const struct summary *b)
{
	assert(a->packets == b->packets && a->bytes == b->bytes && a->sum == b->sum);
	assert(a->is_over == b->is_over);
}

/* The input as packets of its own lengths: pushed, taken in pieces, read again. */
static void through_queue(const uint8_t *data, size_t size)
{
	struct frame_queue q = { 0 };
	struct frame_reader *r = calloc(1, sizeof(*r));
	struct summary got = { 0 }, put = { 0 };

	assert(r);
	while (size > 1) {
		size_t n = data[0] % (size - 1) + 1, room;
		struct iovec pieces[2];

		assert(frame_queue_push(&q, data + 1, n, 0) == 0);
		for (size_t i = 0; i < n; i++)
			put.sum = put.sum * 31 + data[1 + i];
		put.packets++;
		put.bytes += n;
		while (frame_queue_peek(&q, pieces) > 0) {
			uint8_t *at = frame_reader_room(r, &room);
			size_t piece = 1 + data[0] % 64;

			piece = piece < pieces[0].iov_len ? piece : pieces[0].iov_len;
			piece = piece < room ? piece : room;
			memcpy(at, pieces[0].iov_base, piece);
			frame_reader_added(r, piece);
			frame_queue_skip(&q, piece);
			take_all(r, &got);
		}
		data += n + 1;
		size -= n + 1;
	}
	expect_same(&got, &put);
	frame_queue_release(&q);
	free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct summary whole = read_in(data, size, SIZE_MAX);
	struct summary bytewise = read_in(data, size, 1);
	struct summary odd = read_in(data, size, 1 + size % 7);

	expect_same(&whole, &bytewise);
	expect_same(&whole, &odd);
	through_queue(data, size);
	return 0;
}
