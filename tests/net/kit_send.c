#include "tests/net/kit_send.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

static const struct kit_send_step *script;
static size_t script_steps, script_at;
static bool is_scripted;
static int segments_error;
static unsigned calls;
static struct kit_send_datagram datagrams[KIT_SEND_DATAGRAMS];
static size_t datagram_count;

int __real_sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

void kit_send_script(const struct kit_send_step *steps, size_t n)
{
	script = steps;
	script_steps = n;
	script_at = 0;
	is_scripted = steps != NULL;
	segments_error = 0;
	calls = 0;
	datagram_count = 0;
}

void kit_send_refuse_segments(int error)
{
	segments_error = error;
}

size_t kit_send_count(void)
{
	return datagram_count;
}

const struct kit_send_datagram *kit_send_datagram(size_t i)
{
	assert(i < datagram_count);
	return &datagrams[i];
}

unsigned kit_send_calls(void)
{
	return calls;
}

static size_t segment_bytes(const struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		uint16_t size;

		if (c->cmsg_level != IPPROTO_UDP)
			continue;
		memcpy(&size, CMSG_DATA(c), sizeof(size));
		return size;
	}
	return m->msg_iov[0].iov_len;
}

static bool names_source(const struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c))
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO))
			return true;
	return false;
}

static void record(const struct msghdr *m)
{
	const uint8_t *bytes = m->msg_iov[0].iov_base;
	size_t left = m->msg_iov[0].iov_len;
	size_t size = segment_bytes(m);

	while (left) {
		struct kit_send_datagram *d = &datagrams[datagram_count++];
		size_t len = left < size ? left : size;

		assert(datagram_count < KIT_SEND_DATAGRAMS);
		/* The port lies at the same place in both families. */
		d->port = ntohs(((const struct sockaddr_in *)m->msg_name)->sin_port);
		d->len = (uint16_t)len;
		d->names_source = names_source(m);
		memcpy(d->head, bytes, len < KIT_SEND_BYTES ? len : KIT_SEND_BYTES);
		bytes += len;
		left -= len;
	}
}

static bool is_refused(const struct msghdr *m)
{
	return segments_error && segment_bytes(m) < m->msg_iov[0].iov_len;
}

/* @return how many of n are taken, or -1 with errno */
static int answer(unsigned n)
{
	struct kit_send_step step = { n, 0 };

	calls++;
	if (script_at < script_steps)
		step = script[script_at++];
	if (step.messages == 0) {
		errno = step.error;
		return -1;
	}
	return (int)(step.messages < n ? step.messages : n);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags)
{
	int taken;

	if (!is_scripted)
		return __real_sendmmsg(fd, messages, n, flags);
	if (n && is_refused(&messages[0].msg_hdr)) {
		calls++;
		errno = segments_error;
		return -1;
	}
	taken = answer(n);
	for (int i = 0; i < taken; i++) {
		if (is_refused(&messages[i].msg_hdr))
			return i;
		record(&messages[i].msg_hdr);
	}
	return taken;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (!is_scripted)
		return __real_sendmsg(fd, message, flags);
	if (answer(1) < 0)
		return -1;
	record(message);
	return (ssize_t)message->msg_iov[0].iov_len;
}
