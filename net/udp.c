/* net/udp.c - see udp.h for the contract. */
#include "net/udp.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { CONTROL_BYTES = CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint32_t)) };

struct udp_socket {
	int fd;
	bool v4, gso;
	struct net_addr local;
	uint32_t kernel_drops_seen; /* the kernel's counter wraps at 2^32 */
	struct udp_stats stats;
	struct slab *ready[UDP_BATCH_PKTS]; /* where the next datagrams go */
	struct mmsghdr msgs[UDP_BATCH_PKTS];
	struct iovec iovs[UDP_BATCH_PKTS];
	struct sockaddr_storage names[UDP_BATCH_PKTS];
	_Alignas(struct cmsghdr) uint8_t controls[UDP_BATCH_PKTS][CONTROL_BYTES];
	uint8_t scratch[16]; /* a datagram that is read to be dropped */
};

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

/* The privileged form goes past net.core.rmem_max; without the right the plain form is capped. */
static uint32_t set_buffer(int fd, int forced, int plain, uint32_t bytes)
{
	int got = 0;
	socklen_t len = sizeof(got);

	if (bytes && set_int(fd, SOL_SOCKET, forced, (int)bytes))
		(void)set_int(fd, SOL_SOCKET, plain, (int)bytes);
	(void)getsockopt(fd, SOL_SOCKET, plain, &got, &len);
	return (uint32_t)got / 2; /* the kernel doubles the value for its own bookkeeping */
}

static int set_options(struct udp_socket *s, const struct udp_options *o)
{
	int err = 0;

	if (o->shared)
		err = set_int(s->fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (!err)
		err = set_int(s->fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	if (!err && s->v4)
		err = set_int(s->fd, IPPROTO_IP, IP_PKTINFO, 1);
	if (!err && s->v4)
		err = set_int(s->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT);
	if (!err && !s->v4)
		err = set_int(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!err && !s->v4)
		err = set_int(s->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (!err && !s->v4)
		err = set_int(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_OMIT);
	if (err)
		return err;
	s->stats.rcvbuf_bytes = set_buffer(s->fd, SO_RCVBUFFORCE, SO_RCVBUF, o->rcvbuf_bytes);
	s->stats.sndbuf_bytes = set_buffer(s->fd, SO_SNDBUFFORCE, SO_SNDBUF, o->sndbuf_bytes);
	s->gso = set_int(s->fd, IPPROTO_UDP, UDP_SEGMENT, 0) == 0;
	return 0;
}

static int bind_to(struct udp_socket *s, const struct net_addr *addr)
{
	struct sockaddr_storage name;
	socklen_t len = net_addr_to_sockaddr(addr, s->v4 ? AF_INET : AF_INET6, &name);

	if (bind(s->fd, (struct sockaddr *)&name, len))
		return -errno;
	len = sizeof(name);
	if (getsockname(s->fd, (struct sockaddr *)&name, &len))
		return -errno;
	return net_addr_from_sockaddr(&s->local, (struct sockaddr *)&name);
}

static void prepare_batch(struct udp_socket *s)
{
	for (unsigned i = 0; i < UDP_BATCH_PKTS; i++) {
		s->iovs[i].iov_len = SLAB_DATA_BYTES;
		s->msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &s->names[i],
			.msg_iov = &s->iovs[i],
			.msg_iovlen = 1,
			.msg_control = s->controls[i],
		};
	}
}

int udp_open(struct udp_socket **out, const struct udp_options *options)
{
	struct udp_socket *s = calloc(1, sizeof(*s));
	int err;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->v4 = net_addr_is_v4(&options->bind);
	s->fd = socket(s->v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	err = s->fd < 0 ? -errno : set_options(s, options);
	if (!err)
		err = bind_to(s, &options->bind);
	if (err) {
		udp_close(s, NULL);
		return err;
	}
	prepare_batch(s);
	*out = s;
	return 0;
}

void udp_close(struct udp_socket *s, struct slab_pool *pool)
{
	if (!s)
		return;
	for (unsigned i = 0; i < UDP_BATCH_PKTS; i++)
		if (s->ready[i])
			slab_put(pool, s->ready[i]);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

int udp_fd(const struct udp_socket *s)
{
	return s->fd;
}

bool udp_is_v4(const struct udp_socket *s)
{
	return s->v4;
}

const struct net_addr *udp_local(const struct udp_socket *s)
{
	return &s->local;
}

bool udp_has_gso(const struct udp_socket *s)
{
	return s->gso;
}

void udp_stats(const struct udp_socket *s, struct udp_stats *out)
{
	*out = s->stats;
}

/* @return how many datagrams can be received: slabs at hand */
static unsigned refill(struct udp_socket *s, struct slab_pool *pool)
{
	for (unsigned i = 0; i < UDP_BATCH_PKTS; i++) {
		if (!s->ready[i])
			s->ready[i] = slab_get(pool);
		if (!s->ready[i])
			return i;
		s->iovs[i].iov_base = s->ready[i]->data;
	}
	return UDP_BATCH_PKTS;
}

/* With no slab to receive into, the queue is still emptied: stale packets help nobody. */
static unsigned drop_one(struct udp_socket *s, bool *drained)
{
	*drained = recv(s->fd, s->scratch, sizeof(s->scratch), MSG_DONTWAIT) < 0;
	if (!*drained)
		s->stats.pool_drops++;
	return 0;
}

static void read_control(struct udp_socket *s, struct msghdr *hdr, struct net_addr *local)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(local->ip + 12, &info.ipi_addr, 4);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(local->ip, &info.ipi6_addr, 16);
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			uint32_t drops;

			memcpy(&drops, CMSG_DATA(c), sizeof(drops));
			s->stats.kernel_drops += drops - s->kernel_drops_seen;
			s->kernel_drops_seen = drops;
		}
	}
}

static bool accept_datagram(struct udp_socket *s, unsigned i, struct udp_packet *out)
{
	struct msghdr *hdr = &s->msgs[i].msg_hdr;
	struct slab *slab = s->ready[i];

	out->path.local = s->local;
	read_control(s, hdr, &out->path.local);
	s->stats.datagrams++;
	s->stats.bytes += s->msgs[i].msg_len;
	if (hdr->msg_flags & MSG_TRUNC) {
		s->stats.oversized++;
		return false;
	}
	if (net_addr_from_sockaddr(&out->path.remote, (struct sockaddr *)&s->names[i]))
		return false;
	slab->len = (uint16_t)s->msgs[i].msg_len;
	out->slab = slab;
	return true;
}

unsigned udp_receive(struct udp_socket *s, struct slab_pool *pool,
		     struct udp_packet out[UDP_BATCH_PKTS], bool *drained)
{
	unsigned room = refill(s, pool);
	unsigned count = 0;
	int got;

	if (room == 0)
		return drop_one(s, drained);
	for (unsigned i = 0; i < room; i++) {
		s->msgs[i].msg_hdr.msg_namelen = sizeof(s->names[i]);
		s->msgs[i].msg_hdr.msg_controllen = CONTROL_BYTES;
		s->msgs[i].msg_hdr.msg_flags = 0;
	}
	do
		got = recvmmsg(s->fd, s->msgs, room, MSG_DONTWAIT, NULL);
	while (got < 0 && errno != EAGAIN && errno != EBADF && errno != ENOMEM);
	*drained = got < (int)room;
	for (int i = 0; i < got; i++) {
		/* A refused datagram leaves its slab where it is, for the next one. */
		if (accept_datagram(s, (unsigned)i, &out[count])) {
			s->ready[i] = NULL;
			count++;
		}
	}
	return count;
}
