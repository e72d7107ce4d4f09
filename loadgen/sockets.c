#include "loadgen/sockets.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
	MESSAGES = 8,           /* of one call; with GRO half a megabyte, so that it stays cached */
	MESSAGE_BYTES = 65536,  /* with GRO a whole message of the relay */
	CALLS_PER_WAKE = 8,     /* then the others' turn */
	BUFFER_BYTES = 8 << 20, /* a second of 64 viewers' media */
	FIRST_HOST = 127 << 24 | 1 << 16 | 1, /* 127.1.0.1 is peer 0's */
	CONTROL_BYTES = CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(uint32_t)) +
			CMSG_SPACE(sizeof(int)),
};

struct shared_socket {
	struct sockets *all;
	struct loop_watch *watch;
	struct net_addr local; /* its address, or with many the port they share */
	int fd;
	uint32_t first_peer;
	uint32_t kernel_drops_seen; /* the kernel's counter wraps at 2^32 */
};

struct sockets {
	struct sockets_config config;
	struct sockets_stats stats;
	struct shared_socket **items;
	uint32_t item_count, peers_per_item;
	bool is_v4, is_shared;

	struct mmsghdr msgs[MESSAGES];
	struct iovec iovs[MESSAGES];
	struct sockaddr_storage names[MESSAGES];
	_Alignas(struct cmsghdr) uint8_t controls[MESSAGES][CONTROL_BYTES];
	uint8_t *area;
};

int sockets_create(struct sockets **out, const struct sockets_config *config)
{
	struct sockets *s;

	*out = NULL;
	if (config->peers > SOCKETS_MAX_PEERS)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->is_v4 = net_addr_is_v4(&config->local);
	s->is_shared = s->is_v4 && net_addr_is_loopback(&config->local);
	s->peers_per_item = s->is_shared ? SOCKETS_PEERS : 1;
	s->item_count = (config->peers + s->peers_per_item - 1) / s->peers_per_item;
	s->items = calloc(s->item_count + 1, sizeof(struct shared_socket *));
	s->area = malloc((size_t)MESSAGES * MESSAGE_BYTES);
	if (!s->items || !s->area) {
		sockets_destroy(s);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < MESSAGES; i++) {
		s->iovs[i].iov_base = s->area + (size_t)i * MESSAGE_BYTES;
		s->iovs[i].iov_len = MESSAGE_BYTES;
	}
	*out = s;
	return 0;
}

static void close_socket(struct shared_socket *item)
{
	if (!item)
		return;
	loop_watch_close(item->watch);
	if (item->fd >= 0)
		close(item->fd);
	free(item);
}

void sockets_destroy(struct sockets *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->items && i < s->item_count; i++)
		close_socket(s->items[i]);
	free(s->items);
	free(s->area);
	free(s);
}

/* --- receiving ------------------------------------------------------------------------- */

struct control {
	struct net_addr local;
	size_t segment_bytes; /* 0: one datagram */
};

static void read_control(struct shared_socket *item, struct msghdr *hdr, struct control *out)
{
	out->local = item->local;
	out->segment_bytes = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(out->local.ip + 12, &info.ipi_addr, 4);
		} else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			int bytes;

			memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
			out->segment_bytes = bytes > 0 ? (size_t)bytes : 0;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			uint32_t drops;

			memcpy(&drops, CMSG_DATA(c), sizeof(drops));
			item->all->stats.kernel_drops += drops - item->kernel_drops_seen;
			item->kernel_drops_seen = drops;
		}
	}
}

/* @return the peer that has this address, or UINT32_MAX */
static uint32_t peer_of(const struct shared_socket *item, const struct net_addr *local)
{
	const uint8_t *ip = local->ip + 12;
	uint32_t peer;

	if (!item->all->is_shared)
		return item->first_peer;
	peer = ((uint32_t)ip[0] << 24 | (uint32_t)ip[1] << 16 | (uint32_t)ip[2] << 8 | ip[3]) -
	       (uint32_t)FIRST_HOST;
	return peer - item->first_peer < SOCKETS_PEERS ? peer : UINT32_MAX;
}

static void take_message(struct shared_socket *item, unsigned i)
{
	struct sockets *s = item->all;
	uint8_t *at = s->iovs[i].iov_base;
	size_t left = s->msgs[i].msg_len;
	struct control control;
	struct net_path path;
	uint32_t peer;

	read_control(item, &s->msgs[i].msg_hdr, &control);
	path.local = control.local;
	s->stats.messages++;
	s->stats.bytes += left;
	peer = peer_of(item, &control.local);
	if (peer >= s->config.peers ||
	    net_addr_from_sockaddr(&path.remote, (struct sockaddr *)&s->names[i])) {
		s->stats.strays++;
		return;
	}
	while (left > 0) {
		size_t len = control.segment_bytes > 0 && control.segment_bytes < left
				 ? control.segment_bytes
				 : left;

		s->stats.datagrams++;
		s->config.on_datagram(s->config.arg, peer, &path, at, len);
		at += len;
		left -= len;
	}
}

static int receive(struct shared_socket *item)
{
	struct sockets *s = item->all;
	int got;

	for (unsigned i = 0; i < MESSAGES; i++) {
		s->msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &s->names[i],
			.msg_namelen = sizeof(s->names[i]),
			.msg_iov = &s->iovs[i],
			.msg_iovlen = 1,
			.msg_control = s->controls[i],
			.msg_controllen = CONTROL_BYTES,
		};
	}
	do
		got = recvmmsg(item->fd, s->msgs, MESSAGES, MSG_DONTWAIT, NULL);
	while (got < 0 && (errno == ECONNREFUSED || errno == EINTR));
	s->stats.calls++;
	return got;
}

static void on_ready(void *arg, unsigned events)
{
	struct shared_socket *item = arg;
	struct sockets *s = item->all;

	if (!(events & LOOP_READABLE))
		return;
	for (unsigned call = 0; call < CALLS_PER_WAKE; call++) {
		int got = receive(item);

		if (got > 0)
			s->config.on_batch(s->config.arg);
		for (int i = 0; i < got; i++)
			take_message(item, (unsigned)i);
		if (got < MESSAGES)
			return;
	}
}

/* --- opening --------------------------------------------------------------------------- */

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static int set_options(const struct sockets *s, int fd)
{
	int err = set_int(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);

	if (!err && s->is_shared)
		err = set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
	/* Older kernels do without. */
	if (s->config.gro)
		(void)set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
	/* The privileged form goes past net.core.rmem_max. */
	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES))
		(void)set_int(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
	return err;
}

static int bind_socket(const struct sockets *s, struct shared_socket *item)
{
	struct net_addr addr = s->config.local;
	struct sockaddr_storage name;
	socklen_t len;

	addr.port = 0;
	if (s->is_shared)
		memset(addr.ip + 12, 0, 4);
	len = net_addr_to_sockaddr(&addr, s->is_v4 ? AF_INET : AF_INET6, &name);
	if (bind(item->fd, (struct sockaddr *)&name, len))
		return -errno;
	len = sizeof(name);
	if (getsockname(item->fd, (struct sockaddr *)&name, &len))
		return -errno;
	return net_addr_from_sockaddr(&item->local, (struct sockaddr *)&name);
}

static int open_socket(struct sockets *s, uint32_t at)
{
	struct shared_socket *item = calloc(1, sizeof(*item));
	int err;

	if (!item)
		return -ENOMEM;
	item->all = s;
	item->first_peer = at * s->peers_per_item;
	item->fd =
	    socket(s->is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	err = item->fd < 0 ? -errno : set_options(s, item->fd);
	if (!err)
		err = bind_socket(s, item);
	if (!err)
		err = loop_watch_open(s->config.loop, &item->watch, item->fd, on_ready, item);
	if (err) {
		close_socket(item);
		return err;
	}
	loop_watch_set(item->watch, LOOP_READABLE);
	s->items[at] = item;
	return 0;
}

int sockets_add(struct sockets *s, uint32_t peer, struct net_addr *local)
{
	uint32_t at = peer / s->peers_per_item, host = (uint32_t)FIRST_HOST + peer;
	int err;

	assert(peer < s->config.peers);
	err = s->items[at] ? 0 : open_socket(s, at);
	if (err)
		return err;
	*local = s->items[at]->local;
	if (s->is_shared)
		for (unsigned i = 0; i < 4; i++)
			local->ip[12 + i] = (uint8_t)(host >> (24 - 8 * i));
	return 0;
}

int sockets_rebind(struct sockets *s, uint32_t peer)
{
	uint32_t at = peer / s->peers_per_item;
	struct shared_socket *former = s->items[at];
	int err = open_socket(s, at); /* the new one first: it cannot get the same port */

	if (err)
		s->items[at] = former;
	else
		close_socket(former);
	return err;
}

/* --- sending --------------------------------------------------------------------------- */

bool sockets_send(struct sockets *s, uint32_t peer, const struct net_path *path,
		  const uint8_t *bytes, size_t len)
{
	struct shared_socket *item = s->items[peer / s->peers_per_item];
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in_pktinfo))] = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct sockaddr_storage name;
	struct msghdr hdr = { .msg_name = &name, .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (s->is_v4 && !net_addr_is_v4(&path->remote))
		return false;
	hdr.msg_namelen = net_addr_to_sockaddr(&path->remote, s->is_v4 ? AF_INET : AF_INET6, &name);
	if (s->is_shared) {
		struct in_pktinfo info = { 0 };
		struct cmsghdr *c;

		hdr.msg_control = control;
		hdr.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&hdr);
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(&info.ipi_spec_dst, path->local.ip + 12, 4);
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	}
	do
		sent = sendmsg(item->fd, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && (errno == EINTR || errno == ECONNREFUSED));
	s->stats.unsent += sent < 0;
	return sent >= 0;
}

void sockets_stats(const struct sockets *s, struct sockets_stats *out)
{
	*out = s->stats;
}
