#include "loadgen/connection.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/framing.h"
#include "pool/bytes.h"

enum { READS_PER_WAKE = 8 }; /* then the others' turn */

enum state { DIALLING, OPEN, ENDED };

struct connection {
	const struct connection_handlers *handlers;
	void *arg;
	struct loop_watch *watch;
	struct net_path path;
	int fd;
	enum state state;
	struct frame_queue queue;
	struct frame_reader reader;
};

static void end(struct connection *c, int error)
{
	loop_watch_set(c->watch, 0);
	frame_queue_release(&c->queue);
	c->state = ENDED;
	c->handlers->on_end(c->arg, error);
}

/* --- writing --------------------------------------------------------------------------- */

static ssize_t write_some(const struct connection *c, struct iovec *iov, int pieces)
{
	struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = (size_t)pieces };
	ssize_t sent;

	do
		sent = sendmsg(c->fd, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 && errno == EAGAIN ? 0 : sent;
}

/* A broken connection is found out by the watch, not here: senders are not prepared for its end. */
static void flush(struct connection *c)
{
	struct iovec iov[2];
	int pieces;

	while ((pieces = frame_queue_peek(&c->queue, iov)) > 0) {
		ssize_t sent = write_some(c, iov, pieces);

		if (sent <= 0)
			return;
		frame_queue_skip(&c->queue, (size_t)sent);
	}
	loop_watch_set(c->watch, LOOP_READABLE);
}

bool connection_send(struct connection *c, const uint8_t *bytes, size_t len)
{
	uint8_t header[FRAME_HEADER_BYTES];
	struct iovec iov[2] = { { header, sizeof(header) }, { (void *)(uintptr_t)bytes, len } };
	ssize_t sent = 0;

	assert(len > 0 && len <= FRAME_MAX_BYTES);
	if (c->state != OPEN)
		return false;
	be16_write(header, (uint16_t)len);
	if (frame_queue_is_empty(&c->queue))
		sent = write_some(c, iov, 2);
	if (sent < 0)
		return false;
	if ((size_t)sent == sizeof(header) + len)
		return true;
	if (frame_queue_push(&c->queue, bytes, len, (size_t)sent) != 0)
		return false;
	loop_watch_set(c->watch, LOOP_READABLE | LOOP_WRITABLE);
	return true;
}

/* --- reading --------------------------------------------------------------------------- */

/* @return false: it has ended */
static bool deliver(struct connection *c)
{
	uint8_t *bytes;
	size_t len;

	for (;;) {
		switch (frame_reader_peek(&c->reader, &bytes, &len)) {
		case FRAME_MORE:
			return true;
		case FRAME_OVERSIZED:
			end(c, EMSGSIZE);
			return false;
		case FRAME_READY:
			c->handlers->on_packet(c->arg, &c->path, bytes, len);
			/* Its length stands before what the callee was free to change. */
			frame_reader_skip(&c->reader);
			break;
		}
	}
}

static void read_all(struct connection *c)
{
	c->handlers->on_batch(c->arg);
	for (unsigned i = 0; i < READS_PER_WAKE; i++) {
		size_t room;
		uint8_t *at = frame_reader_room(&c->reader, &room);
		ssize_t got = recv(c->fd, at, room, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			end(c, got < 0 ? errno : 0);
			return;
		}
		frame_reader_added(&c->reader, (size_t)got);
		if (!deliver(c) || (size_t)got < room)
			return;
	}
}

/* --- opening --------------------------------------------------------------------------- */

static void on_dialled(struct connection *c)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int error = 0;
	socklen_t error_len = sizeof(error);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &error_len) || error) {
		end(c, error ? error : errno);
		return;
	}
	if (getsockname(c->fd, (struct sockaddr *)&name, &len)) {
		end(c, errno);
		return;
	}
	net_addr_from_sockaddr(&c->path.local, (struct sockaddr *)&name);
	c->state = OPEN;
	loop_watch_set(c->watch, LOOP_READABLE);
	c->handlers->on_batch(c->arg);
	c->handlers->on_open(c->arg, &c->path);
}

static void on_ready(void *arg, unsigned events)
{
	struct connection *c = arg;

	if (c->state == DIALLING) {
		on_dialled(c);
		return;
	}
	if (events & LOOP_WRITABLE)
		flush(c);
	if (events & LOOP_READABLE)
		read_all(c);
}

static int dial(struct connection *c)
{
	bool v4 = net_addr_is_v4(&c->path.remote);
	int family = v4 ? AF_INET : AF_INET6, on = 1;
	struct sockaddr_storage name;
	socklen_t len = net_addr_to_sockaddr(&c->path.remote, family, &name);

	c->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	if (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		return -errno;
	return connect(c->fd, (struct sockaddr *)&name, len) && errno != EINPROGRESS ? -errno : 0;
}

int connection_open(struct connection **out, struct loop *loop, const struct net_addr *remote,
		    const struct connection_handlers *handlers, void *arg)
{
	struct connection *c = calloc(1, sizeof(*c));
	int err;

	*out = NULL;
	if (!c)
		return -ENOMEM;
	c->handlers = handlers;
	c->arg = arg;
	c->path.remote = *remote;
	c->path.remote.connection = CONNECTION_NUMBER;
	err = dial(c);
	if (!err)
		err = loop_watch_open(loop, &c->watch, c->fd, on_ready, c);
	if (err) {
		connection_close(c);
		return err;
	}
	loop_watch_set(c->watch, LOOP_WRITABLE);
	*out = c;
	return 0;
}

void connection_close(struct connection *c)
{
	if (!c)
		return;
	loop_watch_close(c->watch);
	frame_queue_release(&c->queue);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}
