/* server/http_events.h - an event stream on an HTTP connection.
 *
 * The answer has no end: when nothing waits the connection is suspended, and resumed when there is
 * something to send or a sign of life is due. What the peer does not take stays in the socket's
 * buffer; once that is full nothing more is read from the stream, and a connection that takes nothing
 * for HTTP_EVENTS_STALL_US is closed.
 *
 * Source:  WHATWG HTML, section "Server-sent events"; libmicrohttpd's suspended connections.
 * Thread:  control only.
 * Memory:  one reader a connection, freed with it; the text of one event while it is sent.
 */
#ifndef SERVER_HTTP_EVENTS_H
#define SERVER_HTTP_EVENTS_H

#include "server/http_internal.h"

enum {
	HTTP_EVENTS_KEEP_US =
	    15 * 1000000, /* a comment after this silence: proxies cut idle ones */
	HTTP_EVENTS_STALL_US = 3 * HTTP_EVENTS_KEEP_US,
};

/** The answer to a GET of an event stream. @return NULL: there is no such stream, or no memory */
struct MHD_Response *http_events_response(struct http_listener *l, struct MHD_Connection *con,
					  const char *session_id, uint64_t number);

/** Once a second: signs of life. */
void http_events_tick(struct http *h, uint64_t now_us);

/** End all: suspended connections must not outlive the daemon. */
void http_events_end(struct http *h);

#endif
