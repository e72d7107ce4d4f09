/* server/http.h - the HTTP listeners of the relay, run by the control loop.
 *
 * Source:  RFC 9110, RFC 9112; libmicrohttpd with an epoll descriptor of its own, watched by the
 *          loop: no thread is added.
 * Thread:  control only.
 * Memory:  a request's body is held while it is read, bounded by limits.sdp_bytes; connections are
 *          bounded by limits.connections.
 */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include "config/config.h"
#include "net/addr.h"
#include "net/loop.h"
#include "server/registry.h"

enum { HTTP_ERROR_BYTES = 256 };

struct http;

/**
 * Bind http.listen, and http.admin when set, and serve from then on.
 *
 * @param c      must outlive the object, or the next http_reload()
 * @param error  one line for a person when it fails
 * @return 0, -EADDRINUSE, -EACCES and what else bind() gives, -ENOENT and what else reading the
 *         certificate gives, -EINVAL (the certificate or key is no good), -ENOMEM
 */
int http_create(struct http **out, struct loop *loop, const struct config *c, struct registry *r,
		char error[HTTP_ERROR_BYTES]);

/** What http_create() would refuse without binding anything: the certificate and its key.
 *
 * @param error  one line for a person when it fails
 * @return 0, -ENOENT and what else reading gives, -EINVAL (no certificate with its key)
 */
int http_check(const struct config *c, char error[HTTP_ERROR_BYTES]);

/** Connections are closed. NULL is allowed. */
void http_destroy(struct http *h);

/** Tokens, limits, ICE servers and switches of another configuration; the listeners and the
 *  certificate stay. @return 0 or -ENOMEM (nothing changed) */
int http_reload(struct http *h, const struct config *c);

/** The address the main listener is bound to, with its real port. */
struct net_addr http_bound(const struct http *h);
/** The same of the admin listener; port 0 when there is none. */
struct net_addr http_bound_admin(const struct http *h);

#endif
