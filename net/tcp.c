/* net/tcp.c - see tcp.h for the contract. */
#include "net/tcp.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/framing.h"
#include "pool/bytes.h"

enum {
	SEGMENTS = 64,           /* written by one call */
	USER_TIMEOUT_MS = 15000, /* sent and not acknowledged for so long: the peer is gone */
};

struct tcp_listener {
	int fd;
	struct net_addr local;
};

struct tcp_connection {
	int fd;
	struct net_path path;
	struct frame_queue queue;
	struct frame_reader reader;
};

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

/* --- listening --------------------------------------------------------------------------- */

static int open_listener(struct tcp_listener *l, const struct net_addr *addr, bool shared)
{
	bool v4 = net_addr_is_v4(addr);
	struct sockaddr_storage name;
	socklen_t len = net_addr_to_sockaddr(addr, v4 ? AF_INET : AF_INET6, &name);
	int err = 0;

	l->fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return -errno;
	/* Connections of an earlier run that the kernel still remembers do not count. */
	err = set_int(l->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!err && shared)
		err = set_int(l->fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (!err && !v4)
		err = set_int(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (err)
		return err;
	if (bind(l->fd, (struct sockaddr *)&name, len) || listen(l->fd, TCP_BACKLOG))
		return -errno;
	len = sizeof(name);
	if (getsockname(l->fd, (struct sockaddr *)&name, &len))
		return -errno;
	return net_addr_from_sockaddr(&l->local, (struct sockaddr *)&name);
}

int tcp_listen(struct tcp_listener **out, const struct net_addr *bind, bool shared)
{
	struct tcp_listener *l = calloc(1, sizeof(*l));
	int err;

	*out = NULL;
	if (!l)
		return -ENOMEM;
	err = open_listener(l, bind, shared);
	if (err) {
		tcp_unlisten(l);
		return err;
	}
	*out = l;
	return 0;
}

void tcp_unlisten(struct tcp_listener *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

int tcp_listener_fd(const struct tcp_listener *l)
{
	return l->fd;
}

const struct net_addr *tcp_listener_local(const struct tcp_listener *l)
{
	return &l->local;
}

/* Options that a kernel may lack make a connection slower, not useless. */
static void tune(int fd)
{
	(void)set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	(void)set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, TCP_UNSENT_BYTES);
	(void)set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
}

int tcp_accept(struct tcp_listener *l, struct tcp_connection **out)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	struct net_path path = { .local = l->local };
	int fd = accept4(l->fd, (struct sockaddr *)&name, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int err;

	*out = NULL;
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ||
			       errno == EAGAIN
			   ? -errno
			   : -ECONNABORTED; /* accept(2): errors of the new connection */
	err = net_addr_from_sockaddr(&path.remote, (struct sockaddr *)&name);
	len = sizeof(name);
	if (!err && getsockname(fd, (struct sockaddr *)&name, &len) == 0)
		err = net_addr_from_sockaddr(&path.local, (struct sockaddr *)&name);
	if (!err)
		err = tcp_connection_create(out, fd, &path);
	if (err) {
		close(fd);
		return err == -ENOMEM ? err : -ECONNABORTED;
	}
	tune(fd);
	return 0;
}

/* --- a connection ------------------------------------------------------------------------ */

int tcp_connection_create(struct tcp_connection **out, int fd, const struct net_path *path)
{
	struct tcp_connection *c = calloc(1, sizeof(*c));

	*out = c;
	if (!c)
		return -ENOMEM;
	c->fd = fd;
	c->path = *path;
	return 0;
}

void tcp_connection_destroy(struct tcp_connection *c)
{
	if (!c)
		return;
	frame_queue_release(&c->queue);
	close(c->fd);
	free(c);
}

int tcp_connection_fd(const struct tcp_connection *c)
{
	return c->fd;
}

const struct net_path *tcp_connection_path(const struct tcp_connection *c)
{
	return &c->path;
}

void tcp_connection_name(struct tcp_connection *c, uint16_t number)
{
	c->path.remote.connection = number;
}

/* --- reading ----------------------------------------------------------------------------- */

static enum tcp_status read_more(struct tcp_connection *c)
{
	size_t room;
	uint8_t *at = frame_reader_room(&c->reader, &room);
	ssize_t got;

	assert(room > 0);
	do
		got = recv(c->fd, at, room, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got > 0) {
		frame_reader_added(&c->reader, (size_t)got);
		return TCP_READY;
	}
	if (got == 0)
		return TCP_ENDED;
	return errno == EAGAIN ? TCP_AGAIN : TCP_FAILED;
}

enum tcp_status tcp_connection_peek(struct tcp_connection *c, uint8_t **bytes, size_t *len)
{
	enum tcp_status status;

	for (;;) {
		switch (frame_reader_peek(&c->reader, bytes, len)) {
		case FRAME_READY:
			return TCP_READY;
		case FRAME_OVERSIZED:
			return TCP_OVERSIZED;
		case FRAME_MORE:
			break;
		}
		status = read_more(c);
		if (status != TCP_READY)
			return status;
	}
}

enum tcp_status tcp_connection_receive(struct tcp_connection *c, struct slab_pool *pool,
				       struct slab **out)
{
	uint8_t *bytes;
	size_t len;
	enum tcp_status status = tcp_connection_peek(c, &bytes, &len);

	if (status != TCP_READY)
		return status;
	*out = slab_get(pool);
	if (*out) {
		memcpy((*out)->data, bytes, len);
		(*out)->len = (uint16_t)len;
	}
	frame_reader_skip(&c->reader);
	return *out ? TCP_READY : TCP_DRY;
}

/* --- writing ----------------------------------------------------------------------------- */

/* @return bytes written, 0 when the socket is full, -1 when the connection is broken */
static ssize_t write_pieces(struct tcp_connection *c, struct iovec *pieces, unsigned count)
{
	struct msghdr hdr = { .msg_iov = pieces, .msg_iovlen = count };
	ssize_t sent;

	do
		sent = sendmsg(c->fd, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? 0 : -1;
}

/* Packets [at, len) wait, but for `skip` bytes of the first one, which are written. A packet that
 * was begun has to be ended: there is room for it, since the queue was empty.
 * @return false: without memory the stream cannot go on */
static bool keep(struct tcp_connection *c, const uint8_t *bytes, uint32_t len,
		 uint16_t segment_bytes, size_t skip, unsigned *dropped)
{
	for (uint32_t at = 0; at < len; at += segment_bytes) {
		uint32_t size = len - at < segment_bytes ? len - at : segment_bytes;
		int err;

		if (skip >= FRAME_HEADER_BYTES + size) {
			skip -= FRAME_HEADER_BYTES + size;
			continue;
		}
		err = frame_queue_push(&c->queue, bytes + at, size, skip);
		if (err == -ENOMEM && skip > 0)
			return false;
		if (err)
			(*dropped)++;
		skip = 0;
	}
	return true;
}

/* One call's worth of packets. @return as write_pieces() */
static ssize_t write_segments(struct tcp_connection *c, const uint8_t *bytes, uint32_t len,
			      uint16_t segment_bytes)
{
	uint8_t headers[SEGMENTS][FRAME_HEADER_BYTES];
	struct iovec pieces[2 * SEGMENTS];
	unsigned n = 0;

	for (uint32_t at = 0; at < len; at += segment_bytes, n++) {
		uint32_t size = len - at < segment_bytes ? len - at : segment_bytes;

		assert(n < SEGMENTS);
		be16_write(headers[n], (uint16_t)size);
		pieces[2 * n] = (struct iovec){ headers[n], FRAME_HEADER_BYTES };
		pieces[2 * n + 1] = (struct iovec){ (void *)(bytes + at), size };
	}
	return write_pieces(c, pieces, 2 * n);
}

enum tcp_status tcp_connection_send(struct tcp_connection *c, const uint8_t *bytes, uint32_t len,
				    uint16_t segment_bytes, unsigned *dropped)
{
	ssize_t sent = 0;

	assert(len > 0 && segment_bytes > 0);
	*dropped = 0;
	if (frame_queue_is_empty(&c->queue))
		sent = write_segments(c, bytes, len, segment_bytes);
	if (sent < 0 || !keep(c, bytes, len, segment_bytes, (size_t)sent, dropped))
		return TCP_FAILED;
	return frame_queue_is_empty(&c->queue) ? TCP_READY : TCP_AGAIN;
}

enum tcp_status tcp_connection_flush(struct tcp_connection *c, size_t *progress)
{
	struct iovec pieces[2];
	ssize_t sent = 1;
	int n;

	*progress = 0;
	while (sent > 0 && (n = frame_queue_peek(&c->queue, pieces)) > 0) {
		sent = write_pieces(c, pieces, (unsigned)n);
		if (sent < 0)
			return TCP_FAILED;
		frame_queue_skip(&c->queue, (size_t)sent);
		*progress += (size_t)sent;
	}
	return frame_queue_is_empty(&c->queue) ? TCP_READY : TCP_AGAIN;
}

void tcp_connection_trim(struct tcp_connection *c)
{
	if (frame_queue_is_empty(&c->queue))
		frame_queue_release(&c->queue);
}

bool tcp_connection_is_ahead(struct tcp_connection *c)
{
	uint8_t *bytes;
	size_t len;

	return frame_reader_peek(&c->reader, &bytes, &len) == FRAME_READY;
}

bool tcp_connection_is_waiting(const struct tcp_connection *c)
{
	return !frame_queue_is_empty(&c->queue);
}

size_t tcp_connection_bytes(const struct tcp_connection *c)
{
	return sizeof(*c) + (c->queue.bytes ? FRAME_QUEUE_BYTES : 0);
}
