/* server/http_request.h - what a route's handler gets and what it answers, without the HTTP library.
 *
 * Thread: control only.
 * Memory: a request is valid during the call; a reply's body and header fields are released by the
 *         HTTP side once sent.
 */
#ifndef SERVER_HTTP_REQUEST_H
#define SERVER_HTTP_REQUEST_H

#include "server/auth.h"
#include "server/http_text.h"
#include "server/limits.h"
#include "server/registry.h"
#include "server/text.h"

enum {
	HTTP_STATUS_CLASSES = 6, /* 1xx to 5xx; index 0 unused */
	HTTP_BUSY_RETRY_S = 2,   /* Retry-After where nothing names a time */
};

struct http_counters {
	uint64_t requests[HTTP_ROUTES][HTTP_STATUS_CLASSES];
	uint64_t refused_token;
	uint64_t refused_client_rate;
	uint64_t refused_node_rate;
	uint64_t refused_connections_ip; /* connections closed at once: too many of one address */
	uint64_t closed_slow;            /* connections closed: a request took too long */
	uint64_t closed_idle;            /* connections closed: idle, or to make room */
	uint64_t connections_open;
	uint64_t event_readers; /* connections that read an event stream now */
};

/* Shared by all handlers; the HTTP side owns it. */
struct http_context {
	const struct config *config;
	struct registry *registry;
	struct auth *auth;
	struct limits *limits;
	struct http_counters counters;
	uint64_t started_us;
};

struct http_request {
	enum http_method method;
	struct http_route route;
	const char *body; /* NULL when there is none */
	size_t body_bytes;
	const char *content_type; /* header fields, NULL when absent */
	const char *authorization;
	const char *if_match;
	const char *opaque;    /* of the query: NULL when absent, "" without a value */
	bool is_privileged;    /* auth_is_privileged() */
	uint8_t client_ip[16]; /* behind trusted proxies; the layout of struct net_addr */
	uint64_t now_us;
	bool is_preflight; /* OPTIONS with Access-Control-Request-Method */
};

struct http_reply {
	unsigned status;
	const char *type; /* Content-Type, NULL: none */
	const char *body;
	size_t body_bytes;
	bool is_body_static;  /* else the HTTP side frees it */
	bool is_event_stream; /* the body is the event stream that the route names */
	struct text fields;   /* "Name\0value\0" after each other */
};

/** Add a header field. */
__attribute__((format(printf, 3, 4))) void http_reply_field(struct http_reply *r, const char *name,
							    const char *format, ...);

/** A problem of RFC 9457; what the reply had is dropped, its header fields stay. */
void http_reply_problem(struct http_reply *r, unsigned status, const char *detail);

/** What the registry refused: its status and reason, and when to come again where that helps. */
void http_reply_refused(struct http_reply *r, const struct registry_reply *from);
/** What it granted, with its body, which is the reply's from now on. `type` stays the caller's. */
void http_reply_granted(struct http_reply *r, struct registry_reply *from, unsigned status,
			const char *type);

/** 405 with the methods that are allowed ("GET, HEAD"). */
void http_reply_not_allowed(struct http_reply *r, const char *methods);

/** A JSON body; takes the reference. NULL: 500. */
void http_reply_json(struct http_reply *r, json_t *json);

void http_reply_fini(struct http_reply *r);

/* Largest body a method of a route may have; 0: none is read. */
size_t http_body_max(const struct config *c, enum http_route_kind route, enum http_method method);

#endif
