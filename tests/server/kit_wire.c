#include "tests/server/kit_wire.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/loop.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { FIRST_FD = 1000, LEFT = 16384 };

struct arrival {
	struct net_path path;
	uint16_t len;
	uint8_t bytes[KIT_WIRE_BYTES];
};

struct udp_socket {
	unsigned at;
	struct net_addr local;
	struct udp_stats stats;
	bool is_open, is_full;
	unsigned first, count;
	struct arrival queue[KIT_WIRE_QUEUE];
};

static struct udp_socket *sockets[KIT_WIRE_SOCKETS];
static unsigned socket_count;
static struct kit_datagram left[LEFT];
static unsigned left_first, left_count, left_lost;
static uint32_t message_count;
static unsigned locks;
static struct kit_wire_answer (*on_send)(void *arg, unsigned offered);
static void *on_send_arg;

int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	locks++;
	return __real_pthread_mutex_lock(mutex);
}

unsigned kit_wire_locks(void)
{
	return locks;
}

void kit_wire_reset(void)
{
	for (unsigned i = 0; i < socket_count; i++) {
		assert(!sockets[i]->is_open);
		free(sockets[i]);
		sockets[i] = NULL;
	}
	socket_count = 0;
	left_first = left_count = left_lost = 0;
	on_send = NULL;
}

/* --- udp.h -------------------------------------------------------------------------------- */

int udp_open(struct udp_socket **out, const struct udp_options *options)
{
	struct udp_socket *s;

	*out = NULL;
	for (unsigned i = 0; i < socket_count && !options->shared; i++)
		if (sockets[i]->is_open && net_addr_is_equal(&sockets[i]->local, &options->bind))
			return -EADDRINUSE;
	s = calloc(1, sizeof(*s));
	*out = s;
	if (!s)
		return -ENOMEM;
	assert(socket_count < KIT_WIRE_SOCKETS);
	s->at = socket_count;
	s->local = options->bind;
	s->is_open = true;
	s->stats.rcvbuf_bytes = options->rcvbuf_bytes;
	s->stats.sndbuf_bytes = options->sndbuf_bytes;
	sockets[socket_count++] = s;
	return 0;
}

void udp_close(struct udp_socket *s, struct slab_pool *pool)
{
	(void)pool;
	if (s)
		s->is_open = false; /* freed by kit_wire_reset() */
}

int udp_fd(const struct udp_socket *s)
{
	return FIRST_FD + (int)s->at;
}

bool udp_is_v4(const struct udp_socket *s)
{
	return net_addr_is_v4(&s->local);
}

const struct net_addr *udp_local(const struct udp_socket *s)
{
	return &s->local;
}

bool udp_has_gso(const struct udp_socket *s)
{
	return s->is_open;
}

void udp_stats(const struct udp_socket *s, struct udp_stats *out)
{
	*out = s->stats;
}

unsigned udp_receive(struct udp_socket *s, struct slab_pool *pool,
		     struct udp_packet out[UDP_BATCH_PKTS], bool *drained)
{
	unsigned n = 0;

	while (s->count && n < UDP_BATCH_PKTS) {
		const struct arrival *a = &s->queue[s->first];
		struct slab *slab = slab_get(pool);

		s->first = (s->first + 1) % KIT_WIRE_QUEUE;
		s->count--;
		if (!slab) {
			s->stats.pool_drops++;
			continue;
		}
		s->stats.datagrams++;
		s->stats.bytes += a->len;
		memcpy(slab->data, a->bytes, a->len);
		slab->len = a->len;
		out[n++] = (struct udp_packet){ slab, a->path };
	}
	*drained = s->count == 0;
	return n;
}

/* --- arriving ----------------------------------------------------------------------------- */

static struct udp_socket *socket_of(int fd)
{
	unsigned at = (unsigned)(fd - FIRST_FD);

	assert(at < socket_count && sockets[at]->is_open);
	return sockets[at];
}

int kit_wire_fd(unsigned i)
{
	return FIRST_FD + (int)i;
}

bool kit_wire_arrive(int fd, const struct net_path *path, const uint8_t *bytes, size_t len)
{
	struct udp_socket *s = socket_of(fd);
	struct arrival *a;

	assert(len <= KIT_WIRE_BYTES);
	if (s->count == KIT_WIRE_QUEUE)
		return false;
	a = &s->queue[(s->first + s->count++) % KIT_WIRE_QUEUE];
	a->path = *path;
	a->len = (uint16_t)len;
	memcpy(a->bytes, bytes, len);
	return true;
}

static unsigned kernel_ready(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN | POLLOUT };
	int err = poll(&poller, 1, 0);

	assert(err >= 0);
	return (poller.revents & (POLLIN | POLLHUP | POLLERR) ? (unsigned)LOOP_READABLE : 0) |
	       (poller.revents & (POLLOUT | POLLERR) ? (unsigned)LOOP_WRITABLE : 0);
}

unsigned kit_wire_ready(int fd)
{
	const struct udp_socket *s;

	if (fd < FIRST_FD)
		return kernel_ready(fd);
	s = socket_of(fd);

	return (s->count ? (unsigned)LOOP_READABLE : 0) |
	       (s->is_full ? 0 : (unsigned)LOOP_WRITABLE);
}

/* --- leaving ------------------------------------------------------------------------------ */

void kit_wire_on_send(struct kit_wire_answer (*answer)(void *arg, unsigned offered), void *arg)
{
	on_send = answer;
	on_send_arg = arg;
}

void kit_wire_unblock(void)
{
	for (unsigned i = 0; i < socket_count; i++)
		sockets[i]->is_full = false;
}

const struct kit_datagram *kit_wire_take(void)
{
	const struct kit_datagram *d = &left[left_first];

	if (left_count == 0)
		return NULL;
	left_first = (left_first + 1) % LEFT;
	left_count--;
	return d;
}

unsigned kit_wire_lost(void)
{
	return left_lost;
}

static size_t segment_bytes(const struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		uint16_t size;

		if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_SEGMENT)
			continue;
		memcpy(&size, CMSG_DATA(c), sizeof(size));
		return size;
	}
	return m->msg_iov[0].iov_len;
}

static void leave(const struct udp_socket *s, const struct msghdr *m)
{
	const uint8_t *at = m->msg_iov[0].iov_base;
	size_t rest = m->msg_iov[0].iov_len;
	size_t size = segment_bytes(m);
	uint16_t segments = (uint16_t)((rest + size - 1) / size);

	message_count++;
	for (uint16_t i = 0; i < segments; i++) {
		struct kit_datagram *d = &left[(left_first + left_count) % LEFT];
		size_t len = rest < size ? rest : size;

		assert(len > 0 && len <= KIT_WIRE_BYTES);
		if (left_count == LEFT) {
			left_lost++;
			return;
		}
		left_count++;
		net_addr_from_sockaddr(&d->path.remote, m->msg_name);
		d->path.local = s->local;
		d->message = message_count;
		d->segments = segments;
		d->segment = i;
		d->len = (uint16_t)len;
		memcpy(d->bytes, at, len);
		at += len;
		rest -= len;
	}
}

/* @return how many of n are taken, or -1 with errno */
static int ask(struct udp_socket *s, unsigned n)
{
	struct kit_wire_answer a = { n, 0 };

	if (s->is_full) {
		errno = EAGAIN;
		return -1;
	}
	if (on_send)
		a = on_send(on_send_arg, n);
	if (a.messages == 0) {
		s->is_full = a.error == EAGAIN;
		errno = a.error;
		return -1;
	}
	return (int)(a.messages < n ? a.messages : n);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags)
{
	struct udp_socket *s = socket_of(fd);
	int taken = ask(s, n);

	(void)flags;
	for (int i = 0; i < taken; i++)
		leave(s, &messages[i].msg_hdr);
	return taken;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct udp_socket *s;

	if (fd < FIRST_FD)
		return __real_sendmsg(fd, message, flags);
	s = socket_of(fd);
	if (ask(s, 1) < 0)
		return -1;
	leave(s, message);
	return (ssize_t)message->msg_iov[0].iov_len;
}
