#include "server/http_request.h"

#include <assert.h>
#include <stdarg.h>

#include "server/problem.h"

enum { JSON_MAX_BYTES = 4096 }; /* of requests that are JSON alone */

static const char problem_type[] = "application/problem+json";

void http_reply_field(struct http_reply *r, const char *name, const char *format, ...)
{
	char value[2048];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	assert(n >= 0 && (size_t)n < sizeof(value));
	/* Whatever is echoed was checked where it came in; a line end here is our bug. */
	assert(!strpbrk(value, "\r\n"));
	text_append(&r->fields, name, strlen(name) + 1);
	text_append(&r->fields, value, (size_t)n + 1);
}

static void body_drop(struct http_reply *r)
{
	if (!r->is_body_static)
		free((void *)r->body);
	r->body = NULL;
	r->body_bytes = 0;
	r->is_body_static = false;
	r->type = NULL;
}

void http_reply_problem(struct http_reply *r, unsigned status, const char *detail)
{
	char *body = malloc(PROBLEM_BYTES);

	body_drop(r);
	r->status = status;
	if (!body)
		return; /* the status says enough */
	r->body_bytes = problem_write(body, status, detail);
	r->body = body;
	r->type = problem_type;
}

void http_reply_refused(struct http_reply *r, const struct registry_reply *from)
{
	unsigned status = problem_status(from->status);
	unsigned retry_after_s = from->retry_after_s;

	if (status == 503 && retry_after_s == 0)
		retry_after_s = HTTP_BUSY_RETRY_S;
	if (retry_after_s)
		http_reply_field(r, "Retry-After", "%u", retry_after_s);
	http_reply_problem(r, status, from->reason[0] ? from->reason : problem_title(status));
}

void http_reply_granted(struct http_reply *r, struct registry_reply *from, unsigned status,
			const char *type)
{
	r->status = status;
	r->type = type;
	r->body = from->body;
	r->body_bytes = from->body_bytes;
	from->body = NULL;
}

void http_reply_not_allowed(struct http_reply *r, const char *methods)
{
	char detail[128];

	snprintf(detail, sizeof(detail), "This address takes %s.", methods);
	http_reply_field(r, "Allow", "%s", methods);
	http_reply_problem(r, 405, detail);
}

void http_reply_json(struct http_reply *r, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

	json_decref(json);
	if (!text) {
		http_reply_problem(r, 500, "Out of memory.");
		return;
	}
	body_drop(r);
	r->status = 200;
	r->body = text;
	r->body_bytes = strlen(text);
	r->type = "application/json";
	http_reply_field(r, "Cache-Control", "no-store");
}

void http_reply_fini(struct http_reply *r)
{
	body_drop(r);
	text_free(&r->fields);
}

size_t http_body_max(const struct config *c, enum http_route_kind route, enum http_method method)
{
	if (method == HTTP_POST && (route == HTTP_ROUTE_WHIP || route == HTTP_ROUTE_WHEP))
		return c->limits.sdp_bytes;
	if (method == HTTP_POST && route == HTTP_ROUTE_RTP_IN)
		return c->limits.sdp_bytes;
	if (method == HTTP_POST && route == HTTP_ROUTE_RTP_OUTS)
		return JSON_MAX_BYTES;
	if (method == HTTP_PATCH && route == HTTP_ROUTE_SESSION)
		return c->limits.sdpfrag_bytes;
	if (method == HTTP_POST &&
	    (route == HTTP_ROUTE_SESSION_EVENTS || route == HTTP_ROUTE_SESSION_LAYER))
		return JSON_MAX_BYTES;
	return 0;
}
