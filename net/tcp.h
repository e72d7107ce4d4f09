/* net/tcp.h - the one TCP port, for peers whose networks let no UDP through: listeners, and one
 * framed connection a peer.
 *
 * Each worker has its own listener on the same port (SO_REUSEPORT). A connection is read packet by
 * packet into slabs, as datagrams are, and written from the egress arena; what the kernel does not
 * take waits in a bounded queue, and what the queue does not take is dropped packet by packet, as
 * the network would drop datagrams: a peer that does not read costs nobody else anything.
 *
 * Source: RFC 6544 (passive host candidates), framing RFC 4571.
 * Thread: the owner's; a connection may be given to another thread as a whole.
 * Memory: one allocation a connection (4 KB), one more while packets wait (FRAME_QUEUE_BYTES).
 */
#ifndef NET_TCP_H
#define NET_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "net/addr.h"
#include "pool/slab.h"

enum {
	TCP_BACKLOG = 512,
	/* The kernel takes no more while so much waits to be sent for the first time: old media in
	 * its buffers would only come late. */
	TCP_UNSENT_BYTES = 64 * 1024,
};

struct tcp_listener;
struct tcp_connection;

/** @param shared SO_REUSEPORT: the other workers listen on the same port
 *  @return 0, -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, -EMFILE, -ENOMEM … */
int tcp_listen(struct tcp_listener **out, const struct net_addr *bind, bool shared);
/** NULL is allowed. */
void tcp_unlisten(struct tcp_listener *l);
int tcp_listener_fd(const struct tcp_listener *l);
/** The address bound, with the port the kernel chose. */
const struct net_addr *tcp_listener_local(const struct tcp_listener *l);

/** The next connection that waits. @return 0, -EAGAIN (none), -ECONNABORTED (it is gone already),
 *  or -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM: it keeps waiting */
int tcp_accept(struct tcp_listener *l, struct tcp_connection **out);

/** A connection of a socket that is connected and does not block; the socket is its own from now on.
 *  @param path remote.connection is 0 @return 0 or -ENOMEM (the socket stays the caller's) */
int tcp_connection_create(struct tcp_connection **out, int fd, const struct net_path *path);
/** Closes the socket. NULL is allowed. */
void tcp_connection_destroy(struct tcp_connection *c);

int tcp_connection_fd(const struct tcp_connection *c);
/** remote.connection is as set by tcp_connection_name(). */
const struct net_path *tcp_connection_path(const struct tcp_connection *c);
/** Set the number by which its owner finds it: net_addr.connection of its remote address. */
void tcp_connection_name(struct tcp_connection *c, uint16_t number);

enum tcp_status {
	TCP_READY,
	TCP_AGAIN,     /* nothing more now */
	TCP_ENDED,     /* the peer closed it */
	TCP_FAILED,    /* reset, timed out, unreachable */
	TCP_OVERSIZED, /* what it sends are no frames */
	TCP_DRY,       /* no slab was left: a packet was dropped */
};

/** The first packet, which stays the next one to be received.
 *  @param bytes valid until the next call on this connection
 *  @return TCP_READY, TCP_AGAIN, TCP_ENDED, TCP_FAILED or TCP_OVERSIZED */
enum tcp_status tcp_connection_peek(struct tcp_connection *c, uint8_t **bytes, size_t *len);

/** The next packet, in a slab of the caller's. @return any of the above */
enum tcp_status tcp_connection_receive(struct tcp_connection *c, struct slab_pool *pool,
				       struct slab **out);

/**
 * Send `bytes`: packets of `segment_bytes` but for a shorter last one. What cannot leave waits.
 *
 * @param dropped receives how many packets there was no room for
 * @return TCP_READY: all left; TCP_AGAIN: some wait, call tcp_connection_flush() when writable;
 *         TCP_FAILED: the connection is of no use any more
 */
enum tcp_status tcp_connection_send(struct tcp_connection *c, const uint8_t *bytes, uint32_t len,
				    uint16_t segment_bytes, unsigned *dropped);

/** Write what waits. @param progress receives how many bytes left
 *  @return as tcp_connection_send() */
enum tcp_status tcp_connection_flush(struct tcp_connection *c, size_t *progress);

/** A whole packet was read ahead: nobody will say that it is there. */
bool tcp_connection_is_ahead(struct tcp_connection *c);
/** Something waits to be written. */
bool tcp_connection_is_waiting(const struct tcp_connection *c);
/** Give back the memory of a queue that is empty. */
void tcp_connection_trim(struct tcp_connection *c);
/** Memory held. */
size_t tcp_connection_bytes(const struct tcp_connection *c);

#endif
