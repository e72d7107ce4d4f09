/* server/http_text.h - reading what a client wrote in a request line and header fields.
 *
 * Source:  RFC 9110 (media types, fields), RFC 6750 section 2.1 (Bearer), the routes of the relay.
 * Sans-IO: text in, values out; nothing here allocates.
 */
#ifndef SERVER_HTTP_TEXT_H
#define SERVER_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

enum { HTTP_STREAM_BYTES = 65 }; /* 64 characters, terminated */

enum http_method {
	HTTP_OTHER,
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PATCH,
	HTTP_DELETE,
	HTTP_OPTIONS,
};

enum http_route_kind {
	HTTP_ROUTE_NONE, /* 404 */
	HTTP_ROUTE_WHIP,
	HTTP_ROUTE_WHEP,
	HTTP_ROUTE_SESSION,
	HTTP_ROUTE_SESSION_STATUS,
	HTTP_ROUTE_SESSION_EVENTS, /* where event streams are opened */
	HTTP_ROUTE_EVENT_STREAM,
	HTTP_ROUTE_SESSION_LAYER,
	HTTP_ROUTE_PAGE_DASHBOARD,
	HTTP_ROUTE_PAGE_PUBLISH,
	HTTP_ROUTE_PAGE_WATCH,
	HTTP_ROUTE_PAGE_FILE,
	HTTP_ROUTE_API_INFO,
	HTTP_ROUTE_API_STREAMS,
	HTTP_ROUTE_API_SESSIONS,
	HTTP_ROUTE_API_SESSION,
	HTTP_ROUTE_RTP_IN, /* of a stream */
	HTTP_ROUTE_RTP_OUTS,
	HTTP_ROUTE_RTP_OUT, /* one of them */
	HTTP_ROUTE_METRICS,
	HTTP_ROUTE_HEALTHZ,
	HTTP_ROUTE_READYZ,
	HTTP_ROUTES,
};

struct http_route {
	enum http_route_kind kind;
	char name[HTTP_STREAM_BYTES]; /* stream, session id or file; empty otherwise */
	uint64_t number;              /* of a session, or of one of its event streams */
};

enum http_method http_method_of(const char *text);

/** What the path of a request target names. A query never gets here. */
struct http_route http_route_of(const char *path);

/** "whip", "api_sessions": for metrics. */
const char *http_route_name(enum http_route_kind kind);

/** Whether a Content-Type field names `type`, with or without parameters, in any case. */
bool http_is_type(const char *field, const char *type);

/** Whether a Host field is localhost, 127.x.x.x or [::1], with or without a port. */
bool http_is_loopback_host(const char *host);

/** The token of an Authorization field of scheme Bearer; false for anything else.
 *  @param token points into the field, not terminated */
bool http_bearer(const char *authorization, const char **token, size_t *len);

/**
 * Who is behind the proxies: the last address of X-Forwarded-For that is not a trusted proxy, as
 * long as the one who added it is one. A field that cannot be read ends the search there.
 *
 * @param peer   of the connection, the layout of struct net_addr
 * @param field  all X-Forwarded-For fields joined by commas, NULL when absent
 */
void http_client_ip(uint8_t out[16], const uint8_t peer[16], const char *field,
		    const struct config_networks *trusted);

/** Content-Length as RFC 9110 section 8.6 writes it: digits only.
 *  @return 0 or -EINVAL (also for more than 18 digits) */
int http_length_of(uint64_t *out, const char *field);

#endif
