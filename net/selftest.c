#include "net/selftest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { SEGMENT_BYTES = 100, LAST_BYTES = 40, SEGMENTS = 3, FLOWS = 32, WAIT_MS = 1000 };
enum { MESSAGE_BYTES = (SEGMENTS - 1) * SEGMENT_BYTES + LAST_BYTES };

struct control {
	_Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];
};

/* Bound to 127.0.0.1; to `port` (0: any), shared if it says so. @return fd or -errno */
static int open_bound(uint16_t *port, int is_shared)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(*port) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if ((is_shared &&
	     setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &is_shared, sizeof(is_shared))) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    getsockname(fd, (struct sockaddr *)&at, &len)) {
		err = -errno;
		close(fd);
		return err;
	}
	*port = ntohs(at.sin_port);
	return fd;
}

/* A sender that only knows one receiver. */
static int open_sender(uint16_t to)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(to) };
	uint16_t port = 0;
	int fd = open_bound(&port, 0), err;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n = poll(&p, 1, WAIT_MS);

	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

static int send_segmented(int fd)
{
	char bytes[MESSAGE_BYTES] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct control control = { { 0 } };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	uint16_t size = SEGMENT_BYTES;
	struct cmsghdr *c;

	m.msg_control = control.bytes;
	m.msg_controllen = CMSG_SPACE(sizeof(size));
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
	return sendmsg(fd, &m, 0) < 0 ? -errno : 0;
}

static int expect_segments(int fd)
{
	char bytes[MESSAGE_BYTES];

	for (int i = 0; i < SEGMENTS; i++) {
		ssize_t want = i < SEGMENTS - 1 ? SEGMENT_BYTES : LAST_BYTES;
		int err = wait_for(fd);

		if (err)
			return err;
		if (recv(fd, bytes, sizeof(bytes), MSG_TRUNC) != want)
			return -EBADMSG;
	}
	return 0;
}

static int expect_whole(int fd)
{
	char bytes[MESSAGE_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct control control = { { 0 } };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	int err = wait_for(fd), size = 0;

	if (err)
		return err;
	m.msg_control = control.bytes;
	m.msg_controllen = sizeof(control.bytes);
	if (recvmsg(fd, &m, 0) != MESSAGE_BYTES)
		return -EBADMSG;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO)
		return -EBADMSG;
	memcpy(&size, CMSG_DATA(c), sizeof(size));
	return size == SEGMENT_BYTES ? 0 : -EBADMSG;
}

/* A pair of sockets, one test, no sockets. */
static int between(int (*send_it)(int fd), int (*expect)(int fd), int gro)
{
	uint16_t port = 0;
	int in = open_bound(&port, 0), out = in < 0 ? in : open_sender(port), err = 0;

	if (out < 0)
		err = out;
	else if (gro && setsockopt(in, IPPROTO_UDP, UDP_GRO, &gro, sizeof(gro)))
		err = -errno;
	if (!err)
		err = send_it(out);
	if (!err)
		err = expect(in);
	if (out >= 0)
		close(out);
	if (in >= 0)
		close(in);
	return err;
}

int selftest_gso(void)
{
	return between(send_segmented, expect_segments, 0);
}

int selftest_gro(void)
{
	return between(send_segmented, expect_whole, 1);
}

static int send_batch(int fd)
{
	struct mmsghdr m[SEGMENTS] = { 0 };
	struct iovec iov = { (char[1]){ 0 }, 1 };
	int n;

	for (int i = 0; i < SEGMENTS; i++) {
		m[i].msg_hdr.msg_iov = &iov;
		m[i].msg_hdr.msg_iovlen = 1;
	}
	n = sendmmsg(fd, m, SEGMENTS, 0);
	return n < 0 ? -errno : n == SEGMENTS ? 0 : -EBADMSG;
}

static int expect_batch(int fd)
{
	struct mmsghdr m[SEGMENTS] = { 0 };
	char bytes[SEGMENTS] = { 0 };
	struct iovec iov[SEGMENTS];
	int n, err = wait_for(fd);

	for (int i = 0; i < SEGMENTS; i++) {
		iov[i] = (struct iovec){ bytes + i, 1 };
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	if (err)
		return err;
	n = recvmmsg(fd, m, SEGMENTS, MSG_DONTWAIT, NULL); /* loopback delivers as it sends */
	return n < 0 ? -errno : n == SEGMENTS ? 0 : -EBADMSG;
}

int selftest_batches(void)
{
	return between(send_batch, expect_batch, 0);
}

/* One flow sends twice; @return which of the two got both, or a negative errno */
static int receiver_of_flow(const int in[2], uint16_t port)
{
	struct pollfd p[2] = { { .fd = in[0], .events = POLLIN },
			       { .fd = in[1], .events = POLLIN } };
	char byte = 0;
	int who, out = open_sender(port);

	if (out < 0)
		return out;
	if (send(out, &byte, 1, 0) != 1 || send(out, &byte, 1, 0) != 1) {
		who = -errno;
		close(out);
		return who;
	}
	close(out);
	if (poll(p, 2, WAIT_MS) <= 0)
		return -ETIMEDOUT;
	who = p[0].revents ? 0 : 1;
	for (int i = 0; i < 2; i++)
		if (recv(in[who], &byte, 1, MSG_DONTWAIT) != 1)
			return -EBADMSG;
	return who;
}

int selftest_reuseport(void)
{
	uint16_t port = 0;
	int in[2] = { open_bound(&port, 1), -1 }, got[2] = { 0, 0 }, err = in[0] < 0 ? in[0] : 0;

	if (!err)
		in[1] = open_bound(&port, 1);
	if (!err && in[1] < 0)
		err = in[1];
	for (int i = 0; i < FLOWS && !err; i++) {
		int who = receiver_of_flow(in, port);

		if (who < 0)
			err = who;
		else
			got[who]++;
	}
	if (!err && (got[0] == 0 || got[1] == 0))
		err = -EBADMSG;
	for (int i = 0; i < 2; i++)
		if (in[i] >= 0)
			close(in[i]);
	return err;
}
