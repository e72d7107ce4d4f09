#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "net/framing.h"
#include "tests/fault.h"

static struct frame_reader reader;
static struct frame_queue queue;
static uint8_t packet[FRAME_MAX_BYTES];

static void setup(void)
{
	memset(&reader, 0, sizeof(reader));
	for (size_t i = 0; i < sizeof(packet); i++)
		packet[i] = (uint8_t)(i * 7 + i / 256);
}

static void teardown(void)
{
	frame_queue_release(&queue);
}

TestSuite(framing, .init = setup, .fini = teardown, .timeout = 10);

static void feed(const uint8_t *bytes, size_t len)
{
	size_t room;
	uint8_t *at = frame_reader_room(&reader, &room);

	cr_assert_geq(room, len);
	memcpy(at, bytes, len);
	frame_reader_added(&reader, len);
}

static const size_t lengths[] = { 1, 2, 20, 1200, FRAME_MAX_BYTES - 1, FRAME_MAX_BYTES };

Test(framing, a_packet_comes_out_whole_however_it_came_in)
{
	uint8_t stream[FRAME_HEADER_BYTES + FRAME_MAX_BYTES];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i], total = FRAME_HEADER_BYTES + n;

		stream[0] = (uint8_t)(n >> 8);
		stream[1] = (uint8_t)n;
		memcpy(stream + FRAME_HEADER_BYTES, packet, n);
		for (size_t cut = 1; cut <= total; cut += cut < 4 || cut + 4 > total ? 1 : 97) {
			uint8_t *bytes;
			size_t len;

			feed(stream, cut);
			cr_expect_eq(frame_reader_peek(&reader, &bytes, &len),
				     cut < total ? FRAME_MORE : FRAME_READY, "%zu of %zu", cut, n);
			feed(stream + cut, total - cut);
			cr_assert_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_READY);
			cr_assert_eq(len, n);
			cr_expect_arr_eq(bytes, packet, n);
			frame_reader_skip(&reader);
			cr_expect_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_MORE);
		}
	}
}

Test(framing, packets_read_at_once_come_out_one_by_one_and_empty_ones_not_at_all)
{
	static const uint8_t stream[] = { 0, 0, 0, 1, 'a', 0, 0, 0, 0, 0, 2, 'b', 'c', 0, 0, 0, 1 };
	uint8_t *bytes;
	size_t len;

	feed(stream, sizeof(stream));
	cr_assert_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_READY);
	cr_expect(len == 1 && bytes[0] == 'a');
	cr_assert_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_READY);
	cr_expect(len == 1 && bytes[0] == 'a', "it stays until it is taken");
	frame_reader_skip(&reader);
	cr_assert_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_READY);
	cr_expect(len == 2 && bytes[0] == 'b' && bytes[1] == 'c');
	frame_reader_skip(&reader);
	cr_expect_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_MORE);
}

Test(framing, a_length_that_no_packet_has_ends_the_stream)
{
	uint8_t head[] = { (FRAME_MAX_BYTES + 1) >> 8, (FRAME_MAX_BYTES + 1) & 0xff };
	uint8_t *bytes;
	size_t len;

	feed(head, sizeof(head));
	cr_expect_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_OVERSIZED);
}

Test(framing, there_is_room_to_go_on_whenever_more_is_wanted)
{
	uint8_t head[] = { FRAME_MAX_BYTES >> 8, FRAME_MAX_BYTES & 0xff };
	uint8_t *bytes;
	size_t len, room;

	feed(head, 2);
	for (size_t i = 0; i < FRAME_MAX_BYTES; i++) {
		cr_assert_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_MORE);
		frame_reader_room(&reader, &room);
		cr_assert_gt(room, 0);
		feed(packet, 1);
	}
	cr_expect_eq(frame_reader_peek(&reader, &bytes, &len), FRAME_READY);
}

/* Take n bytes of the queue as a kernel would that takes no more. */
static void take(uint8_t *out, size_t n)
{
	struct iovec pieces[2];
	int count = frame_queue_peek(&queue, pieces);
	size_t left = n;

	for (int i = 0; i < count && left; i++) {
		size_t k = pieces[i].iov_len < left ? pieces[i].iov_len : left;

		memcpy(out, pieces[i].iov_base, k);
		out += k;
		left -= k;
	}
	cr_assert_eq(left, 0);
	frame_queue_skip(&queue, n);
}

Test(framing, what_waits_leaves_as_one_stream_of_frames)
{
	uint8_t out[FRAME_HEADER_BYTES + 1000];

	/* More than once round the ring, in pieces that do not fit it. */
	for (unsigned i = 0; i < 1000; i++) {
		cr_assert_eq(frame_queue_push(&queue, packet, 1000, 0), 0);
		take(out, 1);
		take(out + 1, sizeof(out) - 1);
		cr_assert(out[0] == 1000 >> 8 && out[1] == (1000 & 0xff));
		cr_assert_arr_eq(out + FRAME_HEADER_BYTES, packet, 1000);
		cr_assert(frame_queue_is_empty(&queue));
	}
}

Test(framing, of_a_packet_that_was_begun_the_rest_waits)
{
	uint8_t out[FRAME_HEADER_BYTES + 10];

	for (size_t skip = 0; skip < sizeof(out); skip++) {
		out[0] = 0;
		out[1] = 10;
		memcpy(out + FRAME_HEADER_BYTES, packet, 10);
		memset(out + skip, 0xee, sizeof(out) - skip);
		cr_assert_eq(frame_queue_push(&queue, packet, 10, skip), 0);
		take(out + skip, sizeof(out) - skip);
		cr_expect(frame_queue_is_empty(&queue), "%zu", skip);
		cr_expect(out[0] == 0 && out[1] == 10, "%zu", skip);
		cr_expect_arr_eq(out + FRAME_HEADER_BYTES, packet, 10);
	}
}

Test(framing, a_full_queue_refuses_whole_packets_and_grows_no_further)
{
	const size_t each = FRAME_HEADER_BYTES + 1000;
	unsigned n = 0;

	while (frame_queue_push(&queue, packet, 1000, 0) == 0)
		n++;
	cr_expect_eq(n, FRAME_QUEUE_BYTES / each);
	cr_expect_eq(frame_queue_push(&queue, packet, 1000, 0), -ENOBUFS);
	cr_expect_eq(queue.used, n * each);
	cr_expect_eq(frame_queue_push(&queue, packet, FRAME_QUEUE_BYTES - n * each - 2, 0), 0,
		     "a smaller one still fits");
}

Test(framing, without_memory_nothing_waits)
{
	fault_after(0);
	cr_expect_eq(frame_queue_push(&queue, packet, 10, 0), -ENOMEM);
	fault_after(-1);
	cr_expect(frame_queue_is_empty(&queue));
}
