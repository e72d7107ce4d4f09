/* server/listen.h - which UDP and TCP addresses all workers bind.
 *
 * Thread: main, before workers exist.
 */
#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include "config/config.h"
#include "net/addr.h"
#include "server/worker.h"

enum { LISTEN_ERROR_BYTES = 160 };

struct listen_set {
	struct net_addr items[WORKER_MAX_SOCKETS];
	unsigned count;
	bool is_v6_missing; /* a wildcard of both families, on a system without IPv6 */
	bool is_taken; /* TCP: an address of UDP's is not free, and nobody asked for it by name */
};

/**
 * Turn the configured addresses into what to bind: ":PORT" is both families, port 0 becomes a port
 * that is free in all of them. Each is bound once without SO_REUSEPORT, so that a second server on
 * the same port is refused rather than silently given half of the first one's traffic.
 *
 * @param error one line for a person when it fails
 * @return 0 or a negative errno (-EADDRINUSE, -EACCES, -EADDRNOTAVAIL, -E2BIG …)
 */
int listen_resolve(struct listen_set *out, const struct config *config,
		   char error[LISTEN_ERROR_BYTES]);

/** The same for tcp.listen; without it, what `udp` is, if all of that is free (else is_taken). Nothing
 *  when tcp.enabled is false. @return as listen_resolve() */
int listen_resolve_tcp(struct listen_set *out, const struct config *config,
		       const struct listen_set *udp, char error[LISTEN_ERROR_BYTES]);

/** How many TCP connections for media there may be at a time, in all workers; any thread. */
uint32_t listen_tcp_connections(const struct config *config);

#endif
