/* loadgen/connection.h - one peer's way to a server that UDP does not reach: a TCP connection.
 *
 * It is dialled, and then carries what datagrams would: packet by packet, each with its length before
 * it. What the kernel does not take waits in a bounded queue; a packet that has no room there is
 * lost, as on a network.
 *
 * Source:  RFC 6544 (an active candidate's side), framing RFC 4571.
 * Thread:  the loop's.
 * Memory:  one allocation (4 KB), one more while packets wait (FRAME_QUEUE_BYTES).
 */
#ifndef LOADGEN_CONNECTION_H
#define LOADGEN_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"
#include "net/loop.h"

enum { CONNECTION_NUMBER = 1 }; /* net_addr.connection of the remote address: a peer has one */

struct connection;

/* None of them may close the connection. */
struct connection_handlers {
	/* Connected: packets can be sent on this path from now on. */
	void (*on_open)(void *arg, const struct net_path *path);
	/* Packets of one wake-up follow: read the clock. */
	void (*on_batch)(void *arg);
	/* The bytes are the callee's to change until it returns. */
	void (*on_packet)(void *arg, const struct net_path *path, uint8_t *bytes, size_t len);
	/* Once, and nothing else comes after it. `error` is an errno, or 0 when the server closed it. */
	void (*on_end)(void *arg, int error);
};

/** Dial. @return 0 or a negative errno of socket(2) or connect(2), or -ENOMEM: no handler is called */
int connection_open(struct connection **out, struct loop *loop, const struct net_addr *remote,
		    const struct connection_handlers *handlers, void *arg);
/** What still waits to be sent is lost. NULL is allowed. */
void connection_close(struct connection *c);

/** Send one packet, of 1 to FRAME_MAX_BYTES. @return false: lost */
bool connection_send(struct connection *c, const uint8_t *bytes, size_t len);

#endif
