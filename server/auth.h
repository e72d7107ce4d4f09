/* server/auth.h - who may publish, watch and administer.
 *
 * Source:  RFC 6750 section 2.1 (Bearer) and 3.1 (which status).
 * Sans-IO: header values and addresses go in, a verdict comes out.
 * Thread:  control only.
 * Memory:  one allocation in auth_create(); tokens are kept as SHA-256 digests only.
 */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct auth;

enum auth_role { AUTH_PUBLISH, AUTH_WATCH, AUTH_ADMIN, AUTH_ROLES };

enum auth_verdict {
	AUTH_OK,
	AUTH_MISSING,   /* 401: a token is needed */
	AUTH_INVALID,   /* 401: not a token we know */
	AUTH_SCOPE,     /* 403: a token of another role */
	AUTH_FORBIDDEN, /* 403: no token would help, none is configured for this role */
};

/** @return 0 or -ENOMEM */
int auth_create(struct auth **out, const struct config *c);
void auth_destroy(struct auth *a);

/**
 * A role with tokens asks for one of them. A role without is open to privileged clients, and for
 * publishing and watching to everybody when http.open is set. Privileged clients administer
 * without a token.
 *
 * @param authorization  the header field's value, NULL when absent
 */
enum auth_verdict auth_check(const struct auth *a, enum auth_role role, bool is_privileged,
			     const char *authorization);

/**
 * Whether the client sits on this host and means this host: a loopback peer, a Host field of
 * localhost, 127.x or [::1] (a web page elsewhere that resolves its own name to 127.0.0.1 has
 * another), and no sign of a proxy that would lend its own address to strangers.
 *
 * @param ip            of the peer of the connection, the layout of struct net_addr
 * @param host          the Host field, NULL when absent
 * @param is_forwarded  a Forwarded, X-Forwarded-* or Via field is there
 */
bool auth_is_privileged(const uint8_t ip[16], const char *host, bool is_forwarded);

#endif
