/* server/limits.h - how much of us one client, and all of them together, may use.
 *
 * Sans-IO: time is an argument.
 * Thread:  control only.
 * Memory:  two fixed tables, allocated in limits_create(); nothing grows with clients.
 *
 * A client is an IPv4 address or an IPv6 /64; its port plays no part. Loopback and the networks of
 * limits.trusted have no limit of their own, only the node's. A table without room for one more
 * client refuses it: entries that would behave like new ones give way first, so only a flood from
 * thousands of addresses gets there.
 */
#ifndef SERVER_LIMITS_H
#define SERVER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct limits;

enum {
	LIMITS_CLIENTS = 8192, /* table entries */
	LIMITS_SESSIONS = 8192,
};

enum limits_verdict {
	LIMITS_OK,
	LIMITS_CLIENT, /* 429: this client asks too much */
	LIMITS_NODE,   /* 503: all together ask too much */
};

/** @param seed  keys the tables so that a stranger cannot choose collisions
 *  @return 0 or -ENOMEM */
int limits_create(struct limits **out, const struct config *c, uint64_t seed);
void limits_destroy(struct limits *l);

/** The limits of another configuration from now on; what was counted stays. `c` must outlive the
 *  limits, or the next call of this. */
void limits_configure(struct limits *l, const struct config *c);

/** A POST for a session. *retry_after_s is set unless OK, at least 1. */
enum limits_verdict limits_on_post(struct limits *l, const uint8_t ip[16], uint64_t now_us,
				   unsigned *retry_after_s);

/** A PATCH to a session; false: 429. Sessions that share an entry share the allowance. */
bool limits_on_patch(struct limits *l, const char *session_id, uint64_t now_us);

/** An HTTP connection. True: limits_connection_close() must follow. */
bool limits_connection_open(struct limits *l, const uint8_t ip[16], uint64_t now_us);
void limits_connection_close(struct limits *l, const uint8_t ip[16]);

/** A session that is not connected yet. True: limits_half_open_release() must follow. */
bool limits_half_open_take(struct limits *l, const uint8_t ip[16], uint64_t now_us);
void limits_half_open_release(struct limits *l, const uint8_t ip[16]);

/** Table entries that hold something, for metrics and leak tests. */
unsigned limits_clients(const struct limits *l, uint64_t now_us);

#endif
