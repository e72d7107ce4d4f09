/* Over loopback sockets: the test is the server. */
#include "loadgen/connection.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/framing.h"
#include "pool/bytes.h"

enum {
	PACKET_BYTES = 1000,
	KEPT = 8,
	ENOUGH = 100000, /* of such packets fill any socket and the queue */
};

static struct loop *loop;
static struct connection *c;
static int listener, server;

static struct {
	bool is_open;
	int ends, error;
	unsigned count;
	size_t len[KEPT];
	uint8_t bytes[KEPT][FRAME_MAX_BYTES];
	struct net_path path;
} seen;

static void on_open(void *arg, const struct net_path *path)
{
	cr_expect_eq(arg, &seen);
	seen.is_open = true;
	seen.path = *path;
	loop_stop(loop);
}

static void on_batch(void *arg)
{
	cr_expect_eq(arg, &seen);
}

static void on_packet(void *arg, const struct net_path *path, uint8_t *bytes, size_t len)
{
	cr_expect_eq(arg, &seen);
	cr_expect(net_addr_is_equal(&path->remote, &seen.path.remote));
	cr_assert_lt(seen.count, KEPT);
	memcpy(seen.bytes[seen.count], bytes, len);
	memset(bytes, 0xff, len); /* as opening in place does */
	seen.len[seen.count++] = len;
	loop_stop(loop);
}

static void on_end(void *arg, int error)
{
	cr_expect_eq(arg, &seen);
	seen.ends++;
	seen.error = error;
	loop_stop(loop);
}

static const struct connection_handlers handlers = { on_open, on_batch, on_packet, on_end };

static struct net_addr listen_somewhere(void)
{
	struct sockaddr_storage name = { 0 };
	struct net_addr addr;
	socklen_t len;

	net_addr_parse(&addr, "127.0.0.1:0");
	len = net_addr_to_sockaddr(&addr, AF_INET, &name);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&name, len), 0);
	cr_assert_eq(listen(listener, 1), 0);
	len = sizeof(name);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&name, &len), 0);
	net_addr_from_sockaddr(&addr, (struct sockaddr *)&name);
	return addr;
}

static void setup(void)
{
	memset(&seen, 0, sizeof(seen));
	c = NULL;
	listener = server = -1;
	cr_assert_eq(loop_create(&loop), 0);
}

static void teardown(void)
{
	connection_close(c);
	loop_destroy(loop);
	if (server >= 0)
		close(server);
	if (listener >= 0)
		close(listener);
}

static void open_both(void)
{
	struct net_addr addr = listen_somewhere();

	cr_assert_eq(connection_open(&c, loop, &addr, &handlers, &seen), 0);
	cr_expect_not(connection_send(c, (const uint8_t *)"x", 1), "it is not open yet");
	loop_run(loop);
	cr_assert(seen.is_open);
	cr_expect_eq(seen.path.remote.port, addr.port);
	cr_expect_eq(seen.path.remote.connection, CONNECTION_NUMBER);
	cr_expect_neq(seen.path.local.port, 0);
	server = accept(listener, NULL, NULL);
	cr_assert_geq(server, 0);
}

static void server_says(const void *bytes, size_t len)
{
	cr_assert_eq(send(server, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void server_hears(void *bytes, size_t len)
{
	cr_assert_eq(recv(server, bytes, len, MSG_WAITALL), (ssize_t)len);
}

TestSuite(connection, .init = setup, .fini = teardown, .timeout = 10);

Test(connection, carries_packets_with_their_lengths_both_ways)
{
	uint8_t heard[8];

	open_both();
	cr_expect(connection_send(c, (const uint8_t *)"abc", 3));
	cr_expect(connection_send(c, (const uint8_t *)"d", 1));
	server_hears(heard, sizeof(heard));
	cr_expect_arr_eq(heard, "\0\3abc\0\1d", sizeof(heard));

	server_says("\0\2hi\0\0\0\3", 8); /* an empty frame, then one that is to be continued */
	loop_run(loop);
	cr_expect_eq(seen.count, 1);
	server_says("you", 3);
	while (seen.count < 2)
		loop_run(loop);
	cr_expect_eq(seen.len[0], 2);
	cr_expect_arr_eq(seen.bytes[0], "hi", 2);
	cr_expect_eq(seen.len[1], 3);
	cr_expect_arr_eq(seen.bytes[1], "you", 3);
}

/* Each packet says its number, and the rest of it as well. */
static unsigned send_until_full(void)
{
	uint8_t packet[PACKET_BYTES];

	for (unsigned i = 0; i < ENOUGH; i++) {
		memset(packet, (int)(i % 251), sizeof(packet));
		be32_write(packet, i);
		if (!connection_send(c, packet, sizeof(packet)))
			return i;
	}
	return ENOUGH;
}

static void *run_loop(void *arg)
{
	(void)arg;
	loop_run(loop); /* until the server has ended it */
	return NULL;
}

Test(connection, loses_whole_packets_when_the_server_does_not_read)
{
	unsigned sent;
	pthread_t thread;

	open_both();
	sent = send_until_full();
	cr_assert_lt(sent, ENOUGH, "the queue is bounded");
	cr_assert_eq(pthread_create(&thread, NULL, run_loop, NULL), 0);
	for (unsigned i = 0; i < sent; i++) {
		uint8_t frame[FRAME_HEADER_BYTES + PACKET_BYTES];

		server_hears(frame, sizeof(frame));
		cr_assert_eq(be16_read(frame), PACKET_BYTES, "packet %u of %u", i, sent);
		cr_assert_eq(be32_read(frame + 2), i);
		cr_assert_eq(frame[sizeof(frame) - 1], i % 251);
	}
	shutdown(server, SHUT_WR);
	pthread_join(thread, NULL);
	cr_expect_eq(seen.ends, 1);
	cr_expect_eq(seen.error, 0);
}

Test(connection, tells_once_that_the_server_ended_it_and_sends_no_more)
{
	open_both();
	server_says("\0\1x", 3);
	close(server);
	server = -1;
	while (seen.ends == 0)
		loop_run(loop);
	cr_expect_eq(seen.count, 1, "what came before is delivered");
	cr_expect_eq(seen.error, 0);
	cr_expect_not(connection_send(c, (const uint8_t *)"x", 1));
	cr_expect_eq(seen.ends, 1);
}

Test(connection, ends_when_what_comes_are_no_frames)
{
	open_both();
	server_says("HTTP/1.1 400 Bad Request\r\n", 26);
	loop_run(loop);
	cr_expect_eq(seen.ends, 1);
	cr_expect_eq(seen.error, EMSGSIZE);
	cr_expect_eq(seen.count, 0);
}

Test(connection, says_why_it_could_not_be_opened)
{
	struct net_addr addr = listen_somewhere();
	int err;

	close(listener);
	listener = -1;
	/* Over loopback the refusal may be there at once. */
	err = connection_open(&c, loop, &addr, &handlers, &seen);
	if (err == 0) {
		loop_run(loop);
		cr_expect_eq(seen.ends, 1);
		err = -seen.error;
	}
	cr_expect_eq(err, -ECONNREFUSED);
	cr_expect_not(seen.is_open);
}
