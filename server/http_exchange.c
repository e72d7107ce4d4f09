/* One request and its answer. libmicrohttpd calls http_exchange_step() when the header fields are
 * there, for each piece of the body, and once more at its end; an answer may be given at the first
 * call or at the last, not between. */
#include <assert.h>
#include <errno.h>
#include <strings.h>

#include "server/api.h"
#include "server/http_events.h"
#include "server/http_internal.h"
#include "server/pages.h"
#include "server/whep.h"
#include "server/whip.h"

enum {
	HEAD_MAX_BYTES = 8 * 1024,
	FIELDS_MAX = 64,
	/* A body of up to this size is read to its end even when it is not wanted: an answer sent
	 * while the client still writes is lost in the reset that follows. */
	DISCARD_MAX_BYTES = 1024 * 1024,
	UNWANTED_MAX_BYTES = 64 * 1024, /* where a method has no use for a body */
	FORWARDED_BYTES = 512,
	LINE_END_BYTES = 2, /* CR LF */
};

/* What the header fields say about the framing and the way here. */
struct fields {
	unsigned count;
	unsigned lengths;   /* Content-Length */
	unsigned encodings; /* Transfer-Encoding */
	unsigned hosts;
	bool is_chunked;
	bool is_length_bad;
	bool is_forwarded;
	bool is_bad; /* a name or a value holds what it must not */
	bool is_cut; /* the library read the lines otherwise than they were sent */
	uint64_t length;
	const char *end; /* of the last value, in the library's buffer */
	char forwarded_for[FORWARDED_BYTES];
};

struct http_exchange {
	struct http_request req;
	struct http_reply reply;
	bool is_answered; /* reply is the answer; what is left of the body is discarded */
	bool is_close;    /* the connection ends with the answer */
	char *body;
	size_t body_bytes;
	size_t body_room;
	size_t body_max;
	uint64_t discarded_bytes;
	uint64_t discard_max; /* of the whole body; then the connection is closed */
};

static bool is_token(const char *name)
{
	static const char tchar[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz";

	return name[0] != '\0' && name[strspn(name, tchar)] == '\0';
}

/* RFC 9110 section 5.5: no control byte but the tab; a zero ends the text, see is_head_whole(). */
static bool is_value(const char *value)
{
	for (const char *p = value; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
			return false;
	return true;
}

static void note_forwarded_for(struct fields *f, const char *value)
{
	size_t used = strlen(f->forwarded_for);

	snprintf(f->forwarded_for + used, sizeof(f->forwarded_for) - used, "%s%s", used ? "," : "",
		 value);
}

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *name,
				const char *value)
{
	struct fields *f = cls;

	(void)kind;
	value = value ? value : "";
	f->count++;
	f->is_cut = f->is_cut || name != f->end + LINE_END_BYTES;
	f->end = value + strlen(value);
	f->is_bad = f->is_bad || !is_token(name) || !is_value(value);
	if (strcasecmp(name, "Content-Length") == 0) {
		f->lengths++;
		f->is_length_bad = f->is_length_bad || http_length_of(&f->length, value) != 0;
	} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		f->encodings++;
		f->is_chunked = strcasecmp(value, "chunked") == 0;
	} else if (strcasecmp(name, "Host") == 0) {
		f->hosts++;
	} else if (strcasecmp(name, "Forwarded") == 0 || strcasecmp(name, "Via") == 0 ||
		   strcasecmp(name, "X-Real-IP") == 0 ||
		   strncasecmp(name, "X-Forwarded-", strlen("X-Forwarded-")) == 0) {
		f->is_forwarded = true;
	}
	if (strcasecmp(name, "X-Forwarded-For") == 0)
		note_forwarded_for(f, value);
	return MHD_YES;
}

/* libmicrohttpd ends a text at a zero byte, a line at a bare LF and the header section at a line that
 * begins with a colon, and it unfolds values (RFC 9112 section 5.2): a proxy in front may have read
 * another request. It zeroes line ends in place, so all of it shows: every line must begin two bytes
 * behind the end of the text before it, and the empty one must be the last. */
static bool is_head_whole(const struct fields *f, const char *method, size_t head_bytes)
{
	return !f->is_cut && method + head_bytes == f->end + 2 * LINE_END_BYTES;
}

/* RFC 9112 section 6.3: what two readers could frame in two ways is refused, and the connection
 * with it. NULL: the framing is plain. */
static const char *framing_fault(const struct fields *f, const char *version)
{
	if (f->lengths && f->encodings)
		return "Content-Length and Transfer-Encoding exclude each other.";
	if (f->lengths > 1 || f->is_length_bad)
		return "Content-Length must be one number.";
	if (f->encodings > 1 || (f->encodings && !f->is_chunked))
		return "Transfer-Encoding must be chunked.";
	if (f->encodings && strcmp(version, "HTTP/1.1") != 0)
		return "Transfer-Encoding needs HTTP/1.1.";
	if (f->hosts > 1 || (f->hosts == 0 && strcmp(version, "HTTP/1.1") == 0))
		return "There must be one Host.";
	if (f->is_bad || f->is_cut)
		return "A line of the request is malformed.";
	return NULL;
}

static const char *field(struct MHD_Connection *con, const char *name)
{
	return MHD_lookup_connection_value(con, MHD_HEADER_KIND, name);
}

static void answer(struct http_exchange *x, unsigned status, const char *detail, bool is_close)
{
	http_reply_problem(&x->reply, status, detail);
	x->is_answered = true;
	x->is_close = x->is_close || is_close;
}

static enum MHD_Result on_argument(void *cls, enum MHD_ValueKind kind, const char *key,
				   const char *value)
{
	struct http_request *req = cls;

	(void)kind;
	if (strcmp(key, "opaque") == 0)
		req->opaque = value ? value : "";
	return MHD_YES;
}

static void request_fill(struct http_request *req, const struct http_listener *l,
			 struct MHD_Connection *con, const struct http_connection *c,
			 const struct fields *f)
{
	const struct config *config = l->http->ctx.config;

	req->content_type = field(con, "Content-Type");
	req->authorization = field(con, "Authorization");
	req->if_match = field(con, "If-Match");
	MHD_get_connection_values(con, MHD_GET_ARGUMENT_KIND, on_argument, req);
	req->is_preflight = field(con, "Access-Control-Request-Method") != NULL;
	req->is_privileged = auth_is_privileged(c->ip, field(con, "Host"), f->is_forwarded);
	req->now_us = clock_now_us();
	http_client_ip(req->client_ip, c->ip, f->forwarded_for, &config->http.trusted_proxies);
}

/* Which listener serves what: with an admin listener the API and the metrics are only there, and
 * only they, the dashboard with its files and the health checks are. */
static bool is_served(const struct http_listener *l, enum http_route_kind kind)
{
	if (kind == HTTP_ROUTE_NONE)
		return false;
	if (!l->is_admin)
		return !l->http->listeners[1].daemon || !api_is_admin_only(kind);
	return api_is_route(kind) || kind == HTTP_ROUTE_PAGE_DASHBOARD ||
	       kind == HTTP_ROUTE_PAGE_FILE;
}

/* All that can be decided before the body. */
static void admit(struct http_exchange *x, struct http_listener *l, const struct fields *f,
		  const char *version)
{
	struct http_context *ctx = &l->http->ctx;
	const char *fault = framing_fault(f, version);
	enum http_route_kind kind = x->req.route.kind;

	if (whip_is_route(kind) || whep_is_route(kind))
		whip_cors(&x->reply);
	if (fault)
		answer(x, 400, fault, true);
	else if (f->count > FIELDS_MAX)
		answer(x, 431, "Too many header fields.", true);
	else if (!is_served(l, kind))
		answer(x, 404,
		       "There is nothing here. A stream's name is 1 to 64 of A-Z a-z 0-9 . _ ~ -",
		       false);
	else if (whip_is_route(kind))
		x->is_answered = !whip_admit(ctx, &x->req, &x->reply);
	else if (whep_is_route(kind))
		x->is_answered = !whep_admit(ctx, &x->req, &x->reply);
	else if (api_is_route(kind))
		x->is_answered = !api_admit(ctx, &x->req, &x->reply);
	x->body_max = http_body_max(ctx->config, kind, x->req.method);
	if (f->lengths && f->length > x->body_max && !x->is_answered &&
	    (x->body_max > 0 || f->length > UNWANTED_MAX_BYTES))
		answer(x, 413, "The body is too large.", false);
	if (x->is_answered && f->lengths && f->length > DISCARD_MAX_BYTES)
		x->is_close = true;
	x->discard_max = f->lengths        ? DISCARD_MAX_BYTES
			 : x->body_max > 0 ? 2 * x->body_max
					   : 2 * UNWANTED_MAX_BYTES;
}

/* Of an event stream the answer comes piece by piece; of anything else it is there. */
static struct MHD_Response *response_of(struct http_listener *l, struct MHD_Connection *con,
					struct http_exchange *x)
{
	struct http_reply *r = &x->reply;
	struct MHD_Response *response = NULL;

	if (r->is_event_stream) {
		response = http_events_response(l, con, x->req.route.name, x->req.route.number);
		if (response)
			return response;
		http_reply_problem(r, 404, "There is no such event stream, or it has ended.");
	}
	response = MHD_create_response_from_buffer(r->body_bytes, (void *)r->body,
						   r->is_body_static ? MHD_RESPMEM_PERSISTENT
								     : MHD_RESPMEM_MUST_FREE);
	if (response)
		r->body = NULL; /* the response's now */
	return response;
}

static enum MHD_Result send_reply(struct http_listener *l, struct MHD_Connection *con,
				  struct http_exchange *x)
{
	struct http_reply *r = &x->reply;
	struct MHD_Response *response;
	enum MHD_Result result;

	if (r->fields.failed)
		r->status = 500;
	assert(r->status >= 100 && r->status < 600);
	response = response_of(l, con, x);
	if (!response)
		return MHD_NO;
	if (r->type)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, r->type);
	for (size_t at = 0; !r->fields.failed && at < r->fields.len;) {
		const char *name = r->fields.bytes + at;
		const char *value = name + strlen(name) + 1;

		MHD_add_response_header(response, name, value);
		at += strlen(name) + strlen(value) + 2;
	}
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (x->is_close)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	l->http->ctx.counters.requests[x->req.route.kind][r->status / 100]++;
	result = MHD_queue_response(con, r->status, response);
	MHD_destroy_response(response);
	return result;
}

struct http_connection *http_connection_of(struct MHD_Connection *con)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(con, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static enum MHD_Result exchange_begin(struct http_listener *l, struct MHD_Connection *con,
				      const char *url, const char *method, const char *version,
				      void **exchange)
{
	struct http_connection *c = http_connection_of(con);
	const union MHD_ConnectionInfo *head =
	    MHD_get_connection_info(con, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	struct http_exchange *x;
	struct fields f = { .count = 0 };

	if (!c || c->is_closing)
		return MHD_NO;
	x = calloc(1, sizeof(*x));
	if (!x)
		return MHD_NO;
	*exchange = x;
	f.end = version + strlen(version);
	f.is_cut = version != c->target_end + 1;
	MHD_get_connection_values(con, MHD_HEADER_KIND, on_field, &f);
	f.is_cut = !head || !is_head_whole(&f, method, head->header_size);
	x->req.method = http_method_of(method);
	x->req.route = http_route_of(url);
	request_fill(&x->req, l, con, c, &f);
	if (head && head->header_size > HEAD_MAX_BYTES)
		answer(x, 431, "The header fields are too large.", true);
	else
		admit(x, l, &f, version);
	http_connection_enter(l->http, c, HTTP_PHASE_BODY);
	/* Not asked to go on, an Expect: 100-continue client sends no body; and one that is too
	 * long, or framed in two ways, is not waited for. */
	if (x->is_answered && (x->is_close || field(con, "Expect")))
		return send_reply(l, con, x);
	return MHD_YES;
}

static enum MHD_Result body_append(struct http_exchange *x, const char *bytes, size_t n)
{
	size_t room = x->body_room ? x->body_room : 8192;

	while (room < x->body_bytes + n)
		room *= 2;
	if (room > x->body_room) {
		char *grown = realloc(x->body, room);

		if (!grown)
			return MHD_NO;
		x->body = grown;
		x->body_room = room;
	}
	memcpy(x->body + x->body_bytes, bytes, n);
	x->body_bytes += n;
	return MHD_YES;
}

/* MHD_NO closes the connection: there is no other way to end a body. */
static enum MHD_Result exchange_body(struct http_exchange *x, const char *bytes, size_t n)
{
	if (!x->is_answered && x->body_bytes + n <= x->body_max)
		return body_append(x, bytes, n);
	x->discarded_bytes += n;
	if (!x->is_answered && (x->body_max > 0 || x->discarded_bytes > UNWANTED_MAX_BYTES))
		answer(x, 413, "The body is too large.", false);
	return x->body_bytes + x->discarded_bytes <= x->discard_max ? MHD_YES : MHD_NO;
}

static enum MHD_Result exchange_finish(struct http_listener *l, struct MHD_Connection *con,
				       struct http_exchange *x)
{
	struct http_context *ctx = &l->http->ctx;
	struct http_connection *c = http_connection_of(con);

	if (c)
		http_connection_enter(l->http, c, HTTP_PHASE_ANSWER);
	x->req.body = x->body;
	x->req.body_bytes = x->body_bytes;
	if (x->is_answered)
		return send_reply(l, con, x);
	if (whip_is_route(x->req.route.kind))
		whip_handle(ctx, &x->req, &x->reply);
	else if (whep_is_route(x->req.route.kind))
		whep_handle(ctx, &x->req, &x->reply);
	else if (api_is_route(x->req.route.kind))
		api_handle(ctx, &x->req, &x->reply);
	else
		pages_handle(&x->req, &x->reply);
	return send_reply(l, con, x);
}

/* NOLINTNEXTLINE(readability-function-size): the arguments are the library's */
enum MHD_Result http_exchange_step(void *cls, struct MHD_Connection *con, const char *url,
				   const char *method, const char *version, const char *upload,
				   size_t *upload_bytes, void **exchange)
{
	struct http_listener *l = cls;
	struct http_exchange *x = *exchange;
	enum MHD_Result result;

	if (!x)
		return exchange_begin(l, con, url, method, version, exchange);
	if (*upload_bytes == 0)
		return exchange_finish(l, con, x);
	result = exchange_body(x, upload, *upload_bytes);
	*upload_bytes = 0;
	return result;
}

void http_exchange_end(void *cls, struct MHD_Connection *con, void **exchange,
		       enum MHD_RequestTerminationCode code)
{
	struct http_listener *l = cls;
	struct http_connection *c = http_connection_of(con);
	struct http_exchange *x = *exchange;

	(void)code;
	*exchange = NULL;
	if (c)
		http_connection_enter(l->http, c, HTTP_PHASE_IDLE);
	if (!x)
		return;
	http_reply_fini(&x->reply);
	free(x->body);
	free(x);
}
