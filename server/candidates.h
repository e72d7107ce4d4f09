/* server/candidates.h - the addresses that answers name.
 *
 * Thread: control.
 */
#ifndef SERVER_CANDIDATES_H
#define SERVER_CANDIDATES_H

#include "config/config.h"
#include "media/sdp.h"
#include "net/addr.h"

enum { CANDIDATES_MAX = 32 };

struct candidates {
	struct sdp_address items[CANDIDATES_MAX];
	size_t count;
	bool is_private_only; /* nobody on the Internet can reach any of them */
};

/**
 * The same for the TCP port: behind what candidates_collect() found. An advertised address stands for
 * both, with the port bound here unless it names one.
 *
 * @return 0, or a negative errno of getifaddrs()
 */
int candidates_add_tcp(struct candidates *c, const struct config *config,
		       const struct net_addr *bound, size_t count);

/**
 * From what UDP sockets are bound to: --advertise replaces everything; a specific address is itself one; a
 * wildcard stands for every interface address of its family, loopback only when there is no other.
 *
 * @return 0, or a negative errno of getifaddrs()
 */
int candidates_collect(struct candidates *out, const struct config *config,
		       const struct net_addr *bound, size_t count);

/** "udp 192.0.2.1:8189, tcp 192.0.2.1:8189": the first ones, and how many more. Returns `out`. */
const char *candidates_write(const struct candidates *c, char *out, size_t bytes);

#endif
