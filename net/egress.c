/* net/egress.c - see egress.h for the contract. */
#include "net/egress.h"

#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum {
	CONTROL_BYTES = CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t)),
	REFUSING_ADDRESSES = 16,
	REFUSALS_TO_GIVE_UP = 8,
};

struct message {
	uint32_t start; /* in the arena */
	uint32_t bytes;
	uint32_t owner;
	uint16_t segment_bytes;
	uint16_t segments;
	uint16_t sent; /* segments already sent, when they go singly */
	uint16_t connection;
	bool closed; /* its last segment was shorter, or a cut was asked */
	bool singly;
	const struct net_path *path_key; /* identity only, never followed */
};

struct refusal {
	struct net_addr addr;
	uint64_t until_us;
};

struct egress {
	int fd;
	void (*send)(void *arg, const struct egress_message *m); /* instead of fd, or NULL */
	void *send_arg;
	bool v4, gso, gso_succeeded;
	bool has_source; /* bound to one address: messages need not say from which they leave */
	uint32_t used;   /* of the arena */
	unsigned count, next; /* messages appended; first one not yet sent */
	unsigned refusals;
	uint64_t now_us; /* of the last flush */
	int full_errno;  /* why the last flush stopped */
	struct refusal refusing[REFUSING_ADDRESSES];
	unsigned refusing_count;
	struct egress_failure failures[EGRESS_MESSAGES];
	unsigned failure_count;
	struct egress_stats stats;
	struct message messages[EGRESS_MESSAGES];
	struct mmsghdr headers[EGRESS_MESSAGES];
	struct iovec iovs[EGRESS_MESSAGES];
	struct sockaddr_storage names[EGRESS_MESSAGES];
	_Alignas(struct cmsghdr) uint8_t controls[EGRESS_MESSAGES][CONTROL_BYTES];
	_Alignas(64) uint8_t arena[EGRESS_ARENA_BYTES];
};

static bool is_bound_to_one(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	struct net_addr addr;

	return getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
	       net_addr_from_sockaddr(&addr, (struct sockaddr *)&name) == 0 &&
	       !net_addr_is_any(&addr);
}

int egress_create(struct egress **out, int fd, bool v4, bool gso)
{
	struct egress *e = calloc(1, sizeof(*e));

	*out = e;
	if (!e)
		return -ENOMEM;
	e->fd = fd;
	e->v4 = v4;
	e->gso = gso;
	e->has_source = is_bound_to_one(fd);
	return 0;
}

int egress_create_sink(struct egress **out, void (*send)(void *arg, const struct egress_message *m),
		       void *arg)
{
	int err = egress_create(out, -1, true, true);

	if (err)
		return err;
	(*out)->send = send;
	(*out)->send_arg = arg;
	return 0;
}

void egress_destroy(struct egress *e)
{
	free(e);
}

static bool refuses_gso(struct egress *e, const struct net_addr *addr)
{
	if (e->refusing_count == 0)
		return false;
	for (unsigned i = 0; i < e->refusing_count; i++)
		if (e->refusing[i].until_us > e->now_us &&
		    net_addr_is_equal(&e->refusing[i].addr, addr))
			return true;
	return false;
}

static void note_refusal(struct egress *e, const struct net_addr *addr)
{
	unsigned at = 0;

	e->stats.gso_refused++;
	if (!e->gso_succeeded && ++e->refusals >= REFUSALS_TO_GIVE_UP)
		e->gso = false;
	if (e->refusing_count < REFUSING_ADDRESSES)
		at = e->refusing_count++;
	else
		for (unsigned i = 1; i < REFUSING_ADDRESSES; i++)
			if (e->refusing[i].until_us < e->refusing[at].until_us)
				at = i;
	e->refusing[at] = (struct refusal){ *addr, e->now_us + EGRESS_GSO_OFF_US };
}

static bool may_extend(const struct egress *e, const struct message *m, const struct net_path *path,
		       size_t len, uint32_t owner)
{
	return e->gso && !m->closed && m->path_key == path && m->owner == owner &&
	       len <= m->segment_bytes && m->segments < EGRESS_SEGMENTS &&
	       m->bytes + len <= EGRESS_GSO_BYTES;
}

/* To whom, and from which of our addresses. */
static void address_message(struct egress *e, unsigned i, const struct net_path *path)
{
	struct msghdr *hdr = &e->headers[i].msg_hdr;

	*hdr = (struct msghdr){ .msg_name = &e->names[i], .msg_iov = &e->iovs[i], .msg_iovlen = 1 };
	hdr->msg_namelen =
	    net_addr_to_sockaddr(&path->remote, e->v4 ? AF_INET : AF_INET6, &e->names[i]);
	hdr->msg_control = e->controls[i];
	if (!e->has_source && !net_addr_is_any(&path->local)) {
		struct cmsghdr *c = (struct cmsghdr *)(void *)e->controls[i];

		if (e->v4) {
			struct in_pktinfo info = { 0 };

			memcpy(&info.ipi_spec_dst, path->local.ip + 12, 4);
			c->cmsg_level = IPPROTO_IP;
			c->cmsg_type = IP_PKTINFO;
			c->cmsg_len = CMSG_LEN(sizeof(info));
			memcpy(CMSG_DATA(c), &info, sizeof(info));
			hdr->msg_controllen = CMSG_SPACE(sizeof(info));
		} else {
			struct in6_pktinfo info = { 0 };

			memcpy(&info.ipi6_addr, path->local.ip, 16);
			c->cmsg_level = IPPROTO_IPV6;
			c->cmsg_type = IPV6_PKTINFO;
			c->cmsg_len = CMSG_LEN(sizeof(info));
			memcpy(CMSG_DATA(c), &info, sizeof(info));
			hdr->msg_controllen = CMSG_SPACE(sizeof(info));
		}
	}
}

static struct message *open_message(struct egress *e, const struct net_path *path, size_t len,
				    uint32_t owner)
{
	unsigned i = e->count++;
	struct message *m = &e->messages[i];

	*m = (struct message){
		.start = e->used,
		.owner = owner,
		.segment_bytes = (uint16_t)len,
		.connection = path->remote.connection,
		.closed = refuses_gso(e, &path->remote),
		.path_key = path,
	};
	if (!e->send)
		address_message(e, i, path);
	return m;
}

uint8_t *egress_append(struct egress *e, const struct net_path *path, size_t len, uint32_t owner)
{
	struct message *m = e->count > e->next ? &e->messages[e->count - 1] : NULL;
	uint8_t *place;

	assert(len > 0 && len <= UINT16_MAX);
	if (e->used + len > EGRESS_ARENA_BYTES)
		return NULL;
	if (!m || !may_extend(e, m, path, len, owner)) {
		if (e->count == EGRESS_MESSAGES)
			return NULL;
		m = open_message(e, path, len, owner);
	}
	if (len < m->segment_bytes)
		m->closed = true;
	m->segments++;
	m->bytes += (uint32_t)len;
	place = e->arena + e->used;
	e->used += (uint32_t)len;
	return place;
}

void egress_cut(struct egress *e)
{
	if (e->count > e->next)
		e->messages[e->count - 1].closed = true;
}

bool egress_is_empty(const struct egress *e)
{
	return e->count == e->next;
}

static void add_segment_size(struct egress *e, unsigned i)
{
	struct msghdr *hdr = &e->headers[i].msg_hdr;
	struct cmsghdr *c = (struct cmsghdr *)(void *)(e->controls[i] + hdr->msg_controllen);
	uint16_t size = e->messages[i].segment_bytes;

	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
	hdr->msg_controllen += CMSG_SPACE(sizeof(size));
}

/* Lengths are final only now: the last message may have grown until this call. */
static void finish_headers(struct egress *e, unsigned from)
{
	for (unsigned i = from; i < e->count; i++) {
		struct message *m = &e->messages[i];

		if (e->iovs[i].iov_base)
			continue;
		m->closed = true;
		e->iovs[i] = (struct iovec){ e->arena + m->start, m->bytes };
		if (m->segments > 1)
			add_segment_size(e, i);
		if (e->headers[i].msg_hdr.msg_controllen == 0)
			e->headers[i].msg_hdr.msg_control = NULL;
	}
}

static unsigned histogram_slot(unsigned segments)
{
	unsigned slot = 0;

	while (segments > 1u << slot)
		slot++;
	return slot; /* 1, 2, 3-4, 5-8, … */
}

static void count_sent(struct egress *e, const struct message *m)
{
	e->stats.messages++;
	e->stats.datagrams += m->segments;
	e->stats.bytes += m->bytes;
	e->stats.segments_histogram[histogram_slot(m->segments)]++;
	if (m->segments > 1)
		e->gso_succeeded = true;
}

static void give_up(struct egress *e, const struct message *m, int error)
{
	e->stats.failed++;
	e->failures[e->failure_count++ % EGRESS_MESSAGES] =
	    (struct egress_failure){ m->owner, error };
}

static bool is_full(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == ENOMEM;
}

static bool is_gso_refusal(const struct message *m, int error)
{
	return m->segments > 1 && !m->singly &&
	       (error == EINVAL || error == EMSGSIZE || error == EIO);
}

/* @return 0, -EAGAIN when the socket is full (full_errno says how), or another negative errno */
static int send_one(struct egress *e, const struct msghdr *hdr)
{
	ssize_t sent;

	do {
		e->stats.calls++;
		sent = sendmsg(e->fd, hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	if (!is_full(errno))
		return -errno;
	e->full_errno = errno;
	return -EAGAIN;
}

/* A message whose GSO form was refused, datagram by datagram. @return false when blocked */
static bool send_singly(struct egress *e, unsigned i)
{
	struct message *m = &e->messages[i];
	struct msghdr hdr = e->headers[i].msg_hdr;
	struct iovec iov;

	/* The segment size is the last control message: leave it off. */
	hdr.msg_controllen -= CMSG_SPACE(sizeof(uint16_t));
	if (hdr.msg_controllen == 0)
		hdr.msg_control = NULL;
	hdr.msg_iov = &iov;
	while (m->sent < m->segments) {
		uint32_t at = (uint32_t)m->sent * m->segment_bytes;
		uint32_t left = m->bytes - at;

		iov.iov_base = e->arena + m->start + at;
		iov.iov_len = left < m->segment_bytes ? left : m->segment_bytes;
		switch (send_one(e, &hdr)) {
		case 0:
			break;
		case -EAGAIN:
			return false;
		default:
			give_up(e, m, -errno);
			return true;
		}
		m->sent++;
		e->stats.datagrams++;
		e->stats.bytes += iov.iov_len;
	}
	e->stats.messages += m->segments;
	e->stats.segments_histogram[0] += m->segments;
	return true;
}

/* How many messages from `next` on can go in one call: up to the next one that goes singly. */
static unsigned batch_length(const struct egress *e)
{
	unsigned end = e->next;

	while (end < e->count && !e->messages[end].singly)
		end++;
	return end - e->next;
}

/* @return false when blocked */
static bool send_batch(struct egress *e)
{
	unsigned n = batch_length(e);
	int sent;

	if (n == 0) {
		if (!send_singly(e, e->next))
			return false;
		e->next++;
		return true;
	}
	e->stats.calls++;
	sent = sendmmsg(e->fd, e->headers + e->next, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0) {
		for (int i = 0; i < sent; i++)
			count_sent(e, &e->messages[e->next + (unsigned)i]);
		e->next += (unsigned)sent;
		return true; /* a short count means the next one failed: the next call says why */
	}
	if (errno == EINTR)
		return true;
	if (is_full(errno)) {
		e->full_errno = errno;
		return false;
	}
	if (is_gso_refusal(&e->messages[e->next], errno)) {
		struct net_addr to;

		if (net_addr_from_sockaddr(&to, (struct sockaddr *)&e->names[e->next]) == 0)
			note_refusal(e, &to);
		e->messages[e->next].singly = true;
		return true;
	}
	give_up(e, &e->messages[e->next++], -errno);
	return true;
}

static void send_to_sink(struct egress *e)
{
	for (; e->next < e->count; e->next++) {
		const struct message *m = &e->messages[e->next];
		struct egress_message out = {
			.bytes = e->arena + m->start,
			.len = m->bytes,
			.owner = m->owner,
			.segment_bytes = m->segment_bytes,
			.connection = m->connection,
		};

		e->send(e->send_arg, &out);
		count_sent(e, m);
	}
}

enum egress_status egress_flush(struct egress *e, uint64_t now_us)
{
	e->now_us = now_us;
	e->failure_count = 0;
	if (e->send)
		send_to_sink(e);
	else
		finish_headers(e, e->next);
	while (e->next < e->count) {
		if (!send_batch(e)) {
			e->stats.blocked++;
			return e->full_errno == EAGAIN ? EGRESS_BLOCKED : EGRESS_STARVED;
		}
	}
	memset(e->iovs, 0, e->count * sizeof(e->iovs[0]));
	e->used = 0;
	e->count = 0;
	e->next = 0;
	return EGRESS_DONE;
}

bool egress_take_failure(struct egress *e, struct egress_failure *out)
{
	if (e->failure_count == 0)
		return false;
	e->failure_count--;
	*out = e->failures[e->failure_count % EGRESS_MESSAGES];
	return true;
}

const struct egress_stats *egress_stats(const struct egress *e)
{
	return &e->stats;
}

bool egress_has_gso(const struct egress *e)
{
	return e->gso;
}
