#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/framing.h"
#include "net/tcp.h"
#include "tests/fault.h"

static struct slab_pool *pool;
static struct tcp_connection *c;
static int peer = -1;

static void open_pair(void)
{
	struct net_path path = { .remote = { .port = 1 }, .local = { .port = 2 } };
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	cr_assert_eq(tcp_connection_create(&c, fds[0], &path), 0);
	peer = fds[1];
}

static void setup(void)
{
	struct slab_pool_config config = { .capacity_slabs = 4 };

	cr_assert_eq(slab_pool_create(&pool, &config), 0);
	open_pair();
}

static void teardown(void)
{
	fault_after(-1);
	tcp_connection_destroy(c);
	if (peer >= 0)
		close(peer);
	slab_pool_destroy(pool);
}

TestSuite(tcp, .init = setup, .fini = teardown, .timeout = 10);

static void say(const void *bytes, size_t len)
{
	cr_assert_eq(send(peer, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static const struct {
	const char *name;
	const char *said;
	size_t bytes;
	bool ends;
	enum tcp_status want[3];
} streams[] = {
	{ "a packet and the begin of another", "\0\1a\0", 4, false, { TCP_READY, TCP_AGAIN } },
	{ "two packets", "\0\1a\0\1b", 6, false, { TCP_READY, TCP_READY, TCP_AGAIN } },
	{ "a packet, then the end", "\0\1a", 3, true, { TCP_READY, TCP_ENDED } },
	{ "the end within a packet", "\0\2a", 3, true, { TCP_ENDED } },
	{ "no frames", "GET / HTTP/1.1\r\n", 16, false, { TCP_OVERSIZED, TCP_OVERSIZED } },
	{ "nothing", "", 0, false, { TCP_AGAIN } },
};

Test(tcp, packets_come_out_one_by_one)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		tcp_connection_destroy(c);
		close(peer);
		open_pair();
		say(streams[i].said, streams[i].bytes);
		if (streams[i].ends)
			cr_assert_eq(shutdown(peer, SHUT_WR), 0);
		for (size_t k = 0; k < 3 && (k == 0 || streams[i].want[k] != TCP_READY); k++) {
			struct slab *slab = NULL;
			enum tcp_status status = tcp_connection_receive(c, pool, &slab);

			cr_expect_eq(status, streams[i].want[k], "%s: %zu", streams[i].name, k);
			if (status == TCP_READY)
				slab_put(pool, slab);
			if (status != TCP_READY)
				break;
		}
	}
}

Test(tcp, a_first_packet_may_be_looked_at_and_is_still_received)
{
	uint8_t *bytes;
	size_t len;
	struct slab *slab;

	say("\0\3abc\0\1d", 8);
	cr_assert_eq(tcp_connection_peek(c, &bytes, &len), TCP_READY);
	cr_expect(len == 3 && memcmp(bytes, "abc", 3) == 0);
	cr_assert_eq(tcp_connection_receive(c, pool, &slab), TCP_READY);
	cr_expect(slab->len == 3 && memcmp(slab->data, "abc", 3) == 0);
	slab_put(pool, slab);
	cr_expect(tcp_connection_is_ahead(c), "nobody will say that the second one is here");
	cr_assert_eq(tcp_connection_receive(c, pool, &slab), TCP_READY);
	cr_expect(slab->len == 1 && slab->data[0] == 'd');
	slab_put(pool, slab);
	cr_expect_not(tcp_connection_is_ahead(c));
}

Test(tcp, a_dry_pool_drops_packets_and_not_the_stream)
{
	struct slab *slabs[4], *slab = NULL;

	for (int i = 0; i < 4; i++)
		slabs[i] = slab_get(pool);
	say("\0\1a\0\1b", 6);
	cr_expect_eq(tcp_connection_receive(c, pool, &slab), TCP_DRY);
	slab_put(pool, slabs[0]);
	cr_assert_eq(tcp_connection_receive(c, pool, &slab), TCP_READY);
	cr_expect_eq(slab->data[0], 'b');
	slab_put(pool, slab);
	for (int i = 1; i < 4; i++)
		slab_put(pool, slabs[i]);
}

/* All that the peer can read, as frames. @return how many packets; each is `size` bytes of its number */
static unsigned read_frames(struct frame_reader *r, size_t size, unsigned from)
{
	unsigned n = 0;

	for (;;) {
		uint8_t *bytes, *at;
		size_t len, room;
		ssize_t got;

		while (frame_reader_peek(r, &bytes, &len) == FRAME_READY) {
			cr_assert_eq(len, size);
			for (size_t i = 0; i < len; i++)
				cr_assert_eq(bytes[i], (uint8_t)(from + n), "packet %u", from + n);
			frame_reader_skip(r);
			n++;
		}
		at = frame_reader_room(r, &room);
		got = recv(peer, at, room, MSG_DONTWAIT);
		if (got <= 0)
			return n;
		frame_reader_added(r, (size_t)got);
	}
}

enum { BATCH = 10, SIZE = 1000 };

static enum tcp_status send_batch(unsigned first, unsigned *dropped)
{
	uint8_t bytes[BATCH * SIZE];

	for (unsigned i = 0; i < BATCH; i++)
		memset(bytes + i * SIZE, (uint8_t)(first + i), SIZE);
	return tcp_connection_send(c, bytes, sizeof(bytes), SIZE, dropped);
}

Test(tcp, what_the_kernel_does_not_take_waits_whole_and_in_order)
{
	struct frame_reader *r = calloc(1, sizeof(*r));
	unsigned sent = 0, got = 0, dropped = 0;
	size_t progress;

	while (send_batch(sent, &dropped) == TCP_READY)
		sent += BATCH;
	cr_expect_eq(dropped, 0);
	sent += BATCH;
	cr_assert(tcp_connection_is_waiting(c));
	cr_expect_eq(send_batch(sent, &dropped), TCP_AGAIN, "later ones stand behind");
	sent += BATCH;
	while (got < sent) {
		unsigned n = read_frames(r, SIZE, got);
		enum tcp_status status = tcp_connection_flush(c, &progress);

		got += n;
		cr_assert_neq(status, TCP_FAILED);
		cr_assert(n > 0 || progress > 0 || got == sent, "%u of %u", got, sent);
	}
	cr_expect_not(tcp_connection_is_waiting(c));
	cr_expect_gt(tcp_connection_bytes(c), FRAME_QUEUE_BYTES);
	tcp_connection_trim(c);
	cr_expect_lt(tcp_connection_bytes(c), FRAME_QUEUE_BYTES);
	free(r);
}

Test(tcp, a_peer_that_does_not_read_costs_a_bounded_queue)
{
	unsigned dropped = 0, all_dropped = 0, sent = 0;
	size_t before = tcp_connection_bytes(c);

	for (; all_dropped < 1000; sent += BATCH) {
		cr_assert_neq(send_batch(sent, &dropped), TCP_FAILED);
		all_dropped += dropped;
		cr_assert_lt(sent, 100000);
	}
	cr_expect_eq(dropped, BATCH, "all of it, now");
	cr_expect_eq(tcp_connection_bytes(c) - before, FRAME_QUEUE_BYTES);
}

Test(tcp, the_shorter_last_packet_of_a_message_keeps_its_length)
{
	uint8_t bytes[25], got[64];
	unsigned dropped;

	memset(bytes, 'x', sizeof(bytes));
	cr_assert_eq(tcp_connection_send(c, bytes, 25, 10, &dropped), TCP_READY);
	cr_assert_eq(recv(peer, got, sizeof(got), MSG_DONTWAIT), 25 + 3 * 2);
	cr_expect(got[0] == 0 && got[1] == 10 && got[12] == 0 && got[13] == 10);
	cr_expect(got[24] == 0 && got[25] == 5);
}

Test(tcp, a_connection_that_broke_says_so)
{
	unsigned dropped;
	uint8_t bytes[10] = { 0 };

	close(peer);
	peer = -1;
	cr_expect_eq(tcp_connection_send(c, bytes, 10, 10, &dropped), TCP_FAILED);
}

Test(tcp, without_memory_for_what_waits_it_is_dropped_or_the_stream_ends)
{
	unsigned dropped = 0, sent = 0;
	enum tcp_status status = TCP_READY;

	fault_after(0);
	for (; status == TCP_READY && dropped == 0; sent += BATCH)
		status = send_batch(sent, &dropped);
	cr_expect(status == TCP_FAILED || dropped > 0);
}

Test(tcp, a_listener_takes_connections_and_names_both_ends)
{
	struct net_addr any;
	struct tcp_listener *l, *second;
	struct tcp_connection *got = NULL;
	struct sockaddr_storage name;
	socklen_t len;
	int fd = socket(AF_INET, SOCK_STREAM, 0), err;

	net_addr_parse(&any, "127.0.0.1:0");
	cr_assert_eq(tcp_listen(&l, &any, false), 0);
	cr_expect_eq(tcp_accept(l, &got), -EAGAIN);
	cr_expect_neq(tcp_listener_local(l)->port, 0);
	cr_expect_eq(tcp_listen(&second, tcp_listener_local(l), false), -EADDRINUSE);
	len = net_addr_to_sockaddr(tcp_listener_local(l), AF_INET, &name);
	cr_assert_eq(connect(fd, (struct sockaddr *)&name, len), 0);
	do
		err = tcp_accept(l, &got);
	while (err == -EAGAIN);
	cr_assert_eq(err, 0);
	cr_expect(net_addr_is_equal(&tcp_connection_path(got)->local, tcp_listener_local(l)));
	cr_expect(net_addr_is_loopback(&tcp_connection_path(got)->remote));
	tcp_connection_name(got, 7);
	cr_expect_eq(tcp_connection_path(got)->remote.connection, 7);
	tcp_connection_destroy(got);
	tcp_unlisten(l);
	close(fd);
}
