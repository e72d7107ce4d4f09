#include "server/plain_api.h"

#include <jansson.h>

#include "server/problem.h"

enum { BUSY_RETRY_S = 2 };

static const char sdp_type[] = "application/sdp";
static const char object_type[] = "application/json";

bool plain_api_is_route(enum http_route_kind kind)
{
	return kind == HTTP_ROUTE_RTP_IN;
}

static bool is_type(const struct http_request *req, const char *type)
{
	return req->content_type && http_is_type(req->content_type, type);
}

bool plain_api_admit(const struct http_request *req, struct http_reply *reply)
{
	switch (req->method) {
	case HTTP_GET:
	case HTTP_HEAD:
	case HTTP_DELETE:
		return true;
	case HTTP_POST:
		if (is_type(req, sdp_type) || is_type(req, object_type))
			return true;
		http_reply_field(reply, "Accept-Post", "%s, %s", sdp_type, object_type);
		http_reply_problem(reply, 415,
				   "The body must be application/sdp or application/json.");
		return false;
	default:
		http_reply_not_allowed(reply, "DELETE, GET, HEAD, POST");
		return false;
	}
}

/* @return false: it is there, but no text */
static bool take_text(const json_t *json, const char *name, const char **out, size_t *len)
{
	const json_t *value = json_object_get(json, name);

	if (!value || json_is_null(value))
		return true;
	*out = json_string_value(value);
	*len = json_string_length(value);
	return *out && strlen(*out) == *len;
}

bool plain_api_read_input(const char *body, size_t len, json_t **json, struct registry_input *out,
			  char reason[REGISTRY_REASON_BYTES])
{
	json_error_t error;
	size_t source_bytes;

	*out = (struct registry_input){ .sdp = NULL };
	*json = json_loadb(body ? body : "", len, JSON_REJECT_DUPLICATES, &error);
	if (!*json) {
		snprintf(reason, REGISTRY_REASON_BYTES, "The body is not JSON: %s (line %d).",
			 error.text, error.line);
		return false;
	}
	if (json_is_object(*json) && take_text(*json, "sdp", &out->sdp, &out->sdp_bytes) &&
	    out->sdp && take_text(*json, "source", &out->source, &source_bytes))
		return true;
	snprintf(reason, REGISTRY_REASON_BYTES,
		 "The body must be an object of sdp (a session description) and, where that does "
		 "not tell, source (the sender's IP address).");
	return false;
}

static void refuse(const struct registry_reply *from, struct http_reply *reply)
{
	unsigned status = problem_status(from->status);

	if (status == 503)
		http_reply_field(reply, "Retry-After", "%u",
				 from->retry_after_s ? from->retry_after_s : BUSY_RETRY_S);
	http_reply_problem(reply, status, from->reason[0] ? from->reason : problem_title(status));
}

static void post_input(struct http_context *ctx, const struct http_request *req,
		       struct http_reply *reply)
{
	struct registry_reply answer = { .status = REGISTRY_UNPARSABLE };
	struct registry_input ask = { req->body ? req->body : "", req->body_bytes, NULL };
	json_t *json = NULL;

	if (is_type(req, sdp_type) ||
	    plain_api_read_input(req->body, req->body_bytes, &json, &ask, answer.reason))
		registry_open_input(ctx->registry, req->route.name, &ask, &answer);
	json_decref(json);
	if (answer.status != REGISTRY_OK) {
		refuse(&answer, reply);
	} else {
		http_reply_field(reply, "Location", "/api/streams/%s/rtp-in", req->route.name);
		http_reply_field(reply, "Cache-Control", "no-store");
		reply->status = 201;
		reply->type = sdp_type;
		reply->body = answer.body;
		reply->body_bytes = answer.body_bytes;
		answer.body = NULL;
	}
	free(answer.body);
}

void plain_api_handle(struct http_context *ctx, const struct http_request *req,
		      struct http_reply *reply)
{
	json_t *json = NULL;

	if (req->method == HTTP_POST) {
		post_input(ctx, req, reply);
		return;
	}
	if (req->method == HTTP_DELETE &&
	    registry_close_input(ctx->registry, req->route.name) == REGISTRY_OK) {
		reply->status = 200;
		return;
	}
	if (req->method != HTTP_DELETE)
		json = registry_input_json(ctx->registry, req->route.name);
	if (json)
		http_reply_json(reply, json);
	else
		http_reply_problem(reply, 404, "No plain RTP feeds this stream.");
}
