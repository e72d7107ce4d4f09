/* tests/server/kit_stream.h - a peer's connection to a relay of kit_plane.h: a pair of sockets of this
 * process, so that net/tcp.c and the kernel's partial writes are the real ones.
 */
#ifndef TESTS_SERVER_KIT_STREAM_H
#define TESTS_SERVER_KIT_STREAM_H

#include "tests/server/kit_plane.h"

struct kit_stream;

/** From now on the peer sends over a connection that this worker accepts, and gets what comes there.
 *  A former one stays open until the relay closes it. */
void kit_stream_open(struct kit_peer *peer, unsigned worker);
/** A connection from `addr` whose peer says these bytes (NULL: nothing) and never reads.
 *  @return its descriptor, the caller's */
int kit_stream_stranger(struct kit_plane *p, unsigned worker, const struct net_addr *addr,
			const void *bytes, size_t len);

/** The end, seen from the peer. */
void kit_stream_close(struct kit_peer *peer);
/** Has the relay closed it? */
bool kit_stream_is_ended(const struct kit_peer *peer);
/** Leave what comes where it is. */
void kit_stream_stall(struct kit_peer *peer);

/* For kit_plane.c. */
void kit_stream_send(struct kit_stream *s, const uint8_t *bytes, size_t len);
/** @return the next packet, valid until the next call; NULL: none */
const struct kit_datagram *kit_stream_take(struct kit_stream *s);

#endif
