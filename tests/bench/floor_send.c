/* tests/bench/floor_send.c - the bare loop: receive, rewrite, seal, send, and nothing else.
 *
 * It has its own few lines of GSO and shares no code with the relay but the cipher.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "pool/bytes.h"
#include "tests/bench/floor_run.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum {
	RING = 512, /* source packets kept of each kind: more than any pass has */
	SLOT_BYTES = 2048,
	BATCH = 32,    /* source packets a call */
	MESSAGES = 32, /* messages a call: more gains nothing */
	JOBS = 160,
	ARENA_BYTES = 160 * 1024,
	VIDEO_TYPE = 96,
	AUDIO_TYPE = 111,
	VIDEO_SSRC = 0x10000000,
	AUDIO_SSRC = 0x20000000,
};

struct slot {
	uint8_t bytes[SLOT_BYTES];
};

/* A segment of the running pass: the same for all viewers. */
struct template
{
	uint8_t header[TRACE_MAX_HEADER_BYTES];
	uint16_t header_bytes, payload_bytes, datagram_bytes;
	uint8_t kind;
	bool begins_message;
	uint32_t number;
	const uint8_t *payload;
};

struct sender {
	struct floor_shared *shared;
	const struct floor_options *options;
	const struct trace *trace;
	int fd;
	struct seal_engine *engine;
	struct seal_tx **tx;

	struct slot received[BATCH];
	struct slot kept[TRACE_KINDS][RING];
	uint32_t kept_number[TRACE_KINDS][RING];

	struct template templates[TRACE_PASS_SEGMENTS];
	unsigned template_count;

	unsigned job_count, message_count;
	size_t used;
	struct seal_job jobs[JOBS];
	uint8_t headers[JOBS][TRACE_MAX_HEADER_BYTES];
	struct mmsghdr messages[MESSAGES];
	struct iovec iovs[MESSAGES];
	_Alignas(struct cmsghdr) uint8_t controls[MESSAGES][CMSG_SPACE(sizeof(uint16_t))];
	_Alignas(64) uint8_t arena[ARENA_BYTES];

	struct floor_phase *phase; /* the one measured now; NULL: none */
	struct floor_cpu start;
	struct floor_phase scratch; /* counts what is not measured */
};

static struct floor_phase *counters(struct sender *s)
{
	return s->phase ? s->phase : &s->scratch;
}

static void wait_writable(struct sender *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLOUT };

	counters(s)->blocked++;
	(void)poll(&p, 1, 100);
}

/* --- GSO --------------------------------------------------------------------------------- */

static void flush(struct sender *s)
{
	unsigned at = 0;

	seal_rtp(s->engine, s->jobs, s->job_count);
	while (at < s->message_count) {
		int sent = sendmmsg(s->fd, s->messages + at, s->message_count - at, MSG_DONTWAIT);

		if (sent > 0)
			at += (unsigned)sent;
		else if (errno != EAGAIN && errno != ENOBUFS)
			abort();
		else
			wait_writable(s);
	}
	counters(s)->packets += s->job_count;
	counters(s)->messages += s->message_count;
	s->job_count = s->message_count = 0;
	s->used = 0;
}

/* The segments from `first` on that make one message, and their bytes. */
static unsigned message_length(const struct sender *s, unsigned first, size_t *bytes)
{
	unsigned n = 0;

	*bytes = 0;
	do
		*bytes += s->templates[first + n++].datagram_bytes;
	while (first + n < s->template_count && !s->templates[first + n].begins_message);
	return n;
}

static void begin_message(struct sender *s, struct sockaddr_in *to, size_t bytes,
			  uint16_t segment_bytes)
{
	unsigned i = s->message_count++;
	struct msghdr *hdr = &s->messages[i].msg_hdr;
	struct cmsghdr *c = (struct cmsghdr *)(void *)s->controls[i];

	s->iovs[i] = (struct iovec){ s->arena + s->used, bytes };
	*hdr = (struct msghdr){
		.msg_name = to, .msg_namelen = sizeof(*to), .msg_iov = &s->iovs[i], .msg_iovlen = 1
	};
	if (bytes <= segment_bytes)
		return;
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment_bytes));
	memcpy(CMSG_DATA(c), &segment_bytes, sizeof(segment_bytes));
	hdr->msg_control = c;
	hdr->msg_controllen = CMSG_SPACE(sizeof(segment_bytes));
}

static void patch(uint8_t *header, const struct template *t, uint32_t viewer)
{
	be16_write(header + 2, (uint16_t)t->number);
	be32_write(header + 8, (t->kind == TRACE_VIDEO ? VIDEO_SSRC : AUDIO_SSRC) + viewer);
}

static void add_job(struct sender *s, const struct template *t, uint32_t viewer)
{
	uint8_t *header = s->headers[s->job_count];

	memcpy(header, t->header, t->header_bytes);
	patch(header, t, viewer);
	s->jobs[s->job_count++] = (struct seal_job){
		.tx = s->tx[viewer],
		.index = t->number,
		.header = header,
		.payload = t->payload,
		.header_bytes = t->header_bytes,
		.payload_bytes = t->payload_bytes,
		.out = s->arena + s->used,
	};
	s->used += t->datagram_bytes;
}

static void pass_gso(struct sender *s)
{
	for (uint32_t v = 0; v < s->options->viewers; v++) {
		for (unsigned i = 0; i < s->template_count;) {
			size_t bytes;
			unsigned n = message_length(s, i, &bytes);

			if (s->message_count == MESSAGES || s->job_count + n > JOBS ||
			    s->used + bytes > ARENA_BYTES)
				flush(s);
			begin_message(s, &s->shared->viewers[v], bytes,
				      s->templates[i].datagram_bytes);
			for (unsigned end = i + n; i < end; i++)
				add_job(s, &s->templates[i], v);
		}
	}
	flush(s);
}

/* --- one by one, nothing sealed ---------------------------------------------------------- */

static void send_plainly(struct sender *s, const uint8_t *bytes, size_t len,
			 const struct sockaddr_in *to)
{
	while (sendto(s->fd, bytes, len, MSG_DONTWAIT, (const struct sockaddr *)to, sizeof(*to)) <
	       0) {
		if (errno != EAGAIN && errno != ENOBUFS)
			abort();
		wait_writable(s);
	}
}

static void pass_sendto(struct sender *s)
{
	/* Each segment complete, as long as when sealed. */
	for (unsigned i = 0; i < s->template_count; i++) {
		const struct template *t = &s->templates[i];
		uint8_t *at = s->arena + (size_t)i * SLOT_BYTES;

		memcpy(at, t->header, t->header_bytes);
		memcpy(at + t->header_bytes, t->payload, t->payload_bytes);
	}
	for (uint32_t v = 0; v < s->options->viewers; v++) {
		for (unsigned i = 0; i < s->template_count; i++) {
			uint8_t *at = s->arena + (size_t)i * SLOT_BYTES;

			patch(at, &s->templates[i], v);
			send_plainly(s, at, s->templates[i].datagram_bytes, &s->shared->viewers[v]);
		}
	}
	counters(s)->packets += (uint64_t)s->options->viewers * s->template_count;
	counters(s)->messages += (uint64_t)s->options->viewers * s->template_count;
}
_Static_assert(TRACE_PASS_SEGMENTS *SLOT_BYTES <= ARENA_BYTES, "a pass fits the arena");

/* --- source packets ---------------------------------------------------------------------- */

static void write_header(uint8_t *out, const struct trace_segment *segment, uint32_t number)
{
	memset(out, 0, segment->header_bytes);
	out[0] = segment->header_bytes > 12 ? 0x90 : 0x80;
	out[1] = segment->kind == TRACE_VIDEO ? VIDEO_TYPE : AUDIO_TYPE;
	if (segment->ends_frame)
		out[1] |= 0x80;
	be32_write(out + 4, number);
	if (segment->header_bytes < 16)
		return;
	be16_write(out + 12, 0xbede);
	be16_write(out + 14, (uint16_t)((segment->header_bytes - 16) / 4));
}

/* @return false: a source packet of the pass was lost */
static bool prepare_pass(struct sender *s, const struct floor_packet *last)
{
	const struct trace_pass *pass = &s->trace->passes[last->pass];
	uint32_t numbers[TRACE_KINDS];
	uint16_t tag_bytes = (uint16_t)seal_tag_bytes(s->options->profile);

	memcpy(numbers, last->first, sizeof(numbers));
	s->template_count = 0;
	for (uint32_t i = pass->first; i < pass->first + pass->count; i++) {
		const struct trace_segment *segment = &s->trace->segments[i];
		uint32_t number = numbers[segment->kind]++;
		struct template *t = &s->templates[s->template_count++];

		if (s->kept_number[segment->kind][number % RING] != number)
			return false;
		*t = (struct template){
			.header_bytes = segment->header_bytes,
			.payload_bytes = segment->payload_bytes,
			.datagram_bytes =
			    (uint16_t)(segment->header_bytes + segment->payload_bytes + tag_bytes),
			.kind = segment->kind,
			.begins_message = segment->begins_message,
			.number = number,
			.payload = s->kept[segment->kind][number % RING].bytes,
		};
		write_header(t->header, segment, number);
	}
	return true;
}

static void change_phase(struct sender *s, const struct floor_packet *packet)
{
	struct floor_phase *next = packet->is_measured ? &s->shared->phases[packet->phase] : NULL;

	if (next == s->phase)
		return;
	if (s->phase) {
		floor_read_cpu(&s->phase->sent_cpu, s->options->send_core);
		floor_subtract_cpu(&s->phase->sent_cpu, &s->start);
	}
	s->phase = next;
	if (next)
		floor_read_cpu(&s->start, s->options->send_core);
}

/* @return false: that was the last one */
static bool take_source(struct sender *s, const uint8_t *bytes, size_t len)
{
	struct floor_packet packet;

	memcpy(&packet, bytes, sizeof(packet));
	if (packet.is_last)
		return false;
	s->kept_number[packet.kind][packet.number % RING] = packet.number;
	memcpy(s->kept[packet.kind][packet.number % RING].bytes, bytes, len);
	if (!packet.runs_pass)
		return true;
	change_phase(s, &packet);
	if (!prepare_pass(s, &packet))
		counters(s)->missing++;
	else if (packet.mode == FLOOR_GSO)
		pass_gso(s);
	else
		pass_sendto(s);
	return true;
}

static int run(struct sender *s)
{
	struct mmsghdr batch[BATCH] = { 0 };
	struct iovec iovs[BATCH];
	bool goes_on = true;

	for (unsigned i = 0; i < BATCH; i++) {
		iovs[i] = (struct iovec){ s->received[i].bytes, SLOT_BYTES };
		batch[i].msg_hdr = (struct msghdr){ .msg_iov = &iovs[i], .msg_iovlen = 1 };
	}
	while (goes_on) {
		int got = recvmmsg(s->fd, batch, BATCH, MSG_WAITFORONE, NULL);

		if (got < 0 && errno != EINTR && errno != ECONNREFUSED)
			return -errno;
		for (int i = 0; i < got && goes_on; i++)
			if (batch[i].msg_len >= sizeof(struct floor_packet))
				goes_on = take_source(s, s->received[i].bytes, batch[i].msg_len);
	}
	change_phase(s, &(struct floor_packet){ .is_measured = false });
	return 0;
}

static int open_sessions(struct sender *s)
{
	int err = seal_engine_create(&s->engine, s->options->engine);

	s->tx = calloc(s->options->viewers, sizeof(struct seal_tx *));
	if (!s->tx)
		return -ENOMEM;
	for (uint32_t v = 0; v < s->options->viewers && !err; v++) {
		struct seal_keys keys = { .profile = s->options->profile };

		be32_write(keys.key, v + 1);
		err = seal_tx_create(&s->tx[v], s->engine, &keys);
	}
	return err;
}

static void close_sessions(struct sender *s)
{
	for (uint32_t v = 0; s->tx && v < s->options->viewers; v++)
		seal_tx_destroy(s->tx[v]);
	free(s->tx);
	seal_engine_destroy(s->engine);
}

int floor_send(struct floor_shared *shared, const struct floor_options *options,
	       const struct trace *trace, int fd)
{
	struct sender *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->shared = shared;
	s->options = options;
	s->trace = trace;
	s->fd = fd;
	memset(s->kept_number, 0xff, sizeof(s->kept_number));
	err = open_sessions(s);
	atomic_store_explicit(&shared->state, err ? FLOOR_FAILED : FLOOR_SENDING,
			      memory_order_release);
	if (!err)
		err = run(s);
	atomic_store_explicit(&shared->state, FLOOR_SENT, memory_order_release);
	close_sessions(s);
	free(s);
	return err;
}
