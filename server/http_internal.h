/* server/http_internal.h - shared by http.c (listeners, connections) and http_exchange.c (one
 * request and its answer). */
#ifndef SERVER_HTTP_INTERNAL_H
#define SERVER_HTTP_INTERNAL_H

#include <microhttpd.h>

#include "server/http.h"
#include "server/http_request.h"

enum http_phase {
	HTTP_PHASE_HEAD, /* TLS handshake, request line, header fields */
	HTTP_PHASE_BODY,
	HTTP_PHASE_ANSWER,
	HTTP_PHASE_EVENTS, /* an event stream: since it took something last */
	HTTP_PHASE_IDLE,   /* between requests */
};

struct http_listener {
	struct http *http;
	struct MHD_Daemon *daemon;
	struct loop_watch *watch;
	struct loop_timer *timer;
	struct net_addr bound;
	bool is_admin;
	bool is_tls;
	bool has_ended_one; /* a connection, in this run of the library */
	bool has_resumed;   /* one, since the library ran last */
};

/* One TCP connection. In a list ordered by since_us, the longest in its phase first. */
struct http_connection {
	struct http_connection *prev;
	struct http_connection *next;
	uint64_t since_us; /* when the phase began */
	enum http_phase phase;
	int fd;
	const char *target_end; /* of the request line being read, in the library's buffer */
	uint8_t ip[16];
	bool is_counted; /* by limits_connection_open() */
	bool is_closing; /* shut down by us */
};

struct http_reader; /* http_events.c */

struct http {
	struct http_context ctx;
	struct loop *loop;
	struct loop_timer *sweep;
	struct http_listener listeners[2]; /* main, admin (daemon NULL when there is none) */
	struct http_connection *oldest;
	struct http_connection *newest;
	struct http_reader *readers;
	uint32_t connections_max;
};

/** A connection was resumed: the library has to run, which it does not ask for by itself. */
void http_listener_wake(struct http_listener *l);

/** The connection begins another phase now. */
void http_connection_enter(struct http *h, struct http_connection *c, enum http_phase phase);

/** NULL when there was no memory for it. */
struct http_connection *http_connection_of(struct MHD_Connection *con);

/** libmicrohttpd's callbacks for one request; `cls` is the listener. */
enum MHD_Result http_exchange_step(void *cls, struct MHD_Connection *con, const char *url,
				   const char *method, const char *version, const char *upload,
				   size_t *upload_bytes, void **exchange);
void http_exchange_end(void *cls, struct MHD_Connection *con, void **exchange,
		       enum MHD_RequestTerminationCode code);

#endif
