#include "tests/server/kit_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/framing.h"
#include "pool/bytes.h"
#include "server/worker_tcp.h"

struct kit_stream {
	int fd;
	bool is_ended, is_stalled;
	uint32_t count;
	struct frame_reader reader;
	struct kit_datagram datagram;
};

/* @return the peer's end */
static int connect_to(struct kit_plane *p, unsigned worker, const struct net_addr *addr)
{
	struct worker *w = kit_plane_worker(p, worker);
	struct net_path path = { .remote = *addr, .local = { .port = KIT_PORT } };
	struct tcp_connection *c;
	int fds[2], err;

	err = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds);
	assert(err == 0);
	err = tcp_connection_create(&c, fds[0], &path);
	assert(err == 0);
	worker_begin(w);
	worker_tcp_on_accepted(w, c);
	return fds[1];
}

void kit_stream_open(struct kit_peer *peer, unsigned worker)
{
	kit_stream_close(peer);
	peer->tcp = calloc(1, sizeof(*peer->tcp));
	assert(peer->tcp);
	peer->tcp->fd = connect_to(peer->plane, worker, &peer->addr);
}

int kit_stream_stranger(struct kit_plane *p, unsigned worker, const struct net_addr *addr,
			const void *bytes, size_t len)
{
	int fd = connect_to(p, worker, addr);

	if (bytes)
		(void)!send(fd, bytes, len, MSG_NOSIGNAL);
	return fd;
}

void kit_stream_close(struct kit_peer *peer)
{
	if (!peer->tcp)
		return;
	close(peer->tcp->fd);
	free(peer->tcp);
	peer->tcp = NULL;
}

bool kit_stream_is_ended(const struct kit_peer *peer)
{
	return peer->tcp->is_ended;
}

void kit_stream_stall(struct kit_peer *peer)
{
	peer->tcp->is_stalled = true;
}

void kit_stream_send(struct kit_stream *s, const uint8_t *bytes, size_t len)
{
	uint8_t frame[FRAME_HEADER_BYTES + KIT_WIRE_BYTES];
	ssize_t sent;

	assert(len <= KIT_WIRE_BYTES);
	be16_write(frame, (uint16_t)len);
	memcpy(frame + FRAME_HEADER_BYTES, bytes, len);
	sent = send(s->fd, frame, FRAME_HEADER_BYTES + len, MSG_NOSIGNAL);
	assert(sent < 0 || (size_t)sent == FRAME_HEADER_BYTES + len);
}

const struct kit_datagram *kit_stream_take(struct kit_stream *s)
{
	uint8_t *bytes, *at;
	size_t len, room;
	ssize_t got;

	while (!s->is_stalled && !s->is_ended) {
		if (frame_reader_peek(&s->reader, &bytes, &len) == FRAME_READY) {
			assert(len <= KIT_WIRE_BYTES);
			s->datagram.len = (uint16_t)len;
			s->datagram.message = ++s->count;
			s->datagram.segments = 1;
			memcpy(s->datagram.bytes, bytes, len);
			frame_reader_skip(&s->reader);
			return &s->datagram;
		}
		at = frame_reader_room(&s->reader, &room);
		got = recv(s->fd, at, room, MSG_DONTWAIT);
		if (got < 0)
			return NULL;
		s->is_ended = got == 0;
		frame_reader_added(&s->reader, (size_t)got);
	}
	return NULL;
}
