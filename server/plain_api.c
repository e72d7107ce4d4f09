#include "server/plain_api.h"

#include <jansson.h>

static const char sdp_type[] = "application/sdp";
static const char object_type[] = "application/json";

bool plain_api_is_route(enum http_route_kind kind)
{
	return kind == HTTP_ROUTE_RTP_IN || kind == HTTP_ROUTE_RTP_OUTS ||
	       kind == HTTP_ROUTE_RTP_OUT;
}

static bool is_type(const struct http_request *req, const char *type)
{
	return req->content_type && http_is_type(req->content_type, type);
}

static const char *methods_of(enum http_route_kind kind)
{
	return kind == HTTP_ROUTE_RTP_IN     ? "DELETE, GET, HEAD, POST"
	       : kind == HTTP_ROUTE_RTP_OUTS ? "GET, HEAD, POST"
					     : "DELETE, GET, HEAD";
}

static bool has_method(const struct http_request *req)
{
	switch (req->method) {
	case HTTP_GET:
	case HTTP_HEAD:
		return true;
	case HTTP_DELETE:
		return req->route.kind != HTTP_ROUTE_RTP_OUTS;
	case HTTP_POST:
		return req->route.kind != HTTP_ROUTE_RTP_OUT;
	default:
		return false;
	}
}

bool plain_api_admit(const struct http_request *req, struct http_reply *reply)
{
	bool takes_sdp = req->route.kind == HTTP_ROUTE_RTP_IN;

	if (!has_method(req)) {
		http_reply_not_allowed(reply, methods_of(req->route.kind));
		return false;
	}
	if (req->method != HTTP_POST || is_type(req, object_type) ||
	    (takes_sdp && is_type(req, sdp_type)))
		return true;
	http_reply_field(reply, "Accept-Post", "%s%s", takes_sdp ? "application/sdp, " : "",
			 object_type);
	http_reply_problem(reply, 415,
			   takes_sdp ? "The body must be application/sdp or application/json."
				     : "The body must be application/json.");
	return false;
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

static bool take_port(const json_t *json, const char *name, uint16_t *out)
{
	const json_t *value = json_object_get(json, name);

	if (!value || json_is_null(value))
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 1 ||
	    json_integer_value(value) > UINT16_MAX)
		return false;
	*out = (uint16_t)json_integer_value(value);
	return true;
}

static bool take_bool(const json_t *json, const char *name, bool *out)
{
	const json_t *value = json_object_get(json, name);

	*out = json_is_true(value);
	return !value || json_is_null(value) || json_is_boolean(value);
}

static json_t *read_json(const char *body, size_t len, char reason[REGISTRY_REASON_BYTES])
{
	json_error_t error;
	json_t *json = json_loadb(body ? body : "", len, JSON_REJECT_DUPLICATES, &error);

	if (!json)
		snprintf(reason, REGISTRY_REASON_BYTES, "The body is not JSON: %s (line %d).",
			 error.text, error.line);
	return json;
}

bool plain_api_read_input(const char *body, size_t len, json_t **json, struct registry_input *out,
			  char reason[REGISTRY_REASON_BYTES])
{
	size_t source_bytes;

	*out = (struct registry_input){ .sdp = NULL };
	*json = read_json(body, len, reason);
	if (!*json)
		return false;
	if (json_is_object(*json) && take_text(*json, "sdp", &out->sdp, &out->sdp_bytes) &&
	    out->sdp && take_text(*json, "source", &out->source, &source_bytes))
		return true;
	snprintf(reason, REGISTRY_REASON_BYTES,
		 "The body must be an object of sdp (a session description) and, where that does "
		 "not tell, source (the sender's IP address).");
	return false;
}

bool plain_api_read_output(const char *body, size_t len, json_t **json, struct registry_output *out,
			   char reason[REGISTRY_REASON_BYTES])
{
	size_t address_bytes;

	*out = (struct registry_output){ .address = NULL };
	*json = read_json(body, len, reason);
	if (!*json)
		return false;
	if (json_is_object(*json) && take_text(*json, "address", &out->address, &address_bytes) &&
	    out->address && take_port(*json, "audio", &out->audio) &&
	    take_port(*json, "video", &out->video) && take_bool(*json, "rtcp_mux", &out->rtcp_mux))
		return true;
	snprintf(reason, REGISTRY_REASON_BYTES,
		 "The body must be an object of address (the target's IP address), audio, video "
		 "(ports of 1 to 65535) and rtcp_mux (true or false).");
	return false;
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
		http_reply_refused(reply, &answer);
	} else {
		http_reply_field(reply, "Location", "/api/streams/%s/rtp-in", req->route.name);
		http_reply_field(reply, "Cache-Control", "no-store");
		http_reply_granted(reply, &answer, 201, sdp_type);
	}
	free(answer.body);
}

static void post_output(struct http_context *ctx, const struct http_request *req,
			struct http_reply *reply)
{
	struct registry_reply answer = { .status = REGISTRY_UNPARSABLE };
	struct registry_output ask;
	json_t *json = NULL;

	if (plain_api_read_output(req->body, req->body_bytes, &json, &ask, answer.reason))
		registry_open_output(ctx->registry, req->route.name, &ask, &answer);
	json_decref(json);
	if (answer.status != REGISTRY_OK) {
		http_reply_refused(reply, &answer);
	} else {
		http_reply_field(reply, "Location", "/api/streams/%s/rtp-out/%llu", req->route.name,
				 (unsigned long long)answer.number);
		http_reply_field(reply, "Cache-Control", "no-store");
		http_reply_granted(reply, &answer, 201, sdp_type);
	}
	free(answer.body);
}

static json_t *show(struct http_context *ctx, const struct http_route *route)
{
	switch (route->kind) {
	case HTTP_ROUTE_RTP_OUTS:
		return registry_outputs_json(ctx->registry, route->name);
	case HTTP_ROUTE_RTP_OUT:
		return registry_output_json(ctx->registry, route->name, route->number);
	default:
		return registry_input_json(ctx->registry, route->name);
	}
}

static bool end(struct http_context *ctx, const struct http_route *route)
{
	enum registry_status status =
	    route->kind == HTTP_ROUTE_RTP_IN
		? registry_close_input(ctx->registry, route->name)
		: registry_close_output(ctx->registry, route->name, route->number);

	return status == REGISTRY_OK;
}

void plain_api_handle(struct http_context *ctx, const struct http_request *req,
		      struct http_reply *reply)
{
	bool is_input = req->route.kind == HTTP_ROUTE_RTP_IN;
	json_t *json = NULL;

	if (req->method == HTTP_POST && is_input) {
		post_input(ctx, req, reply);
		return;
	}
	if (req->method == HTTP_POST) {
		post_output(ctx, req, reply);
		return;
	}
	if (req->method == HTTP_DELETE && end(ctx, &req->route)) {
		reply->status = 200;
		return;
	}
	if (req->method != HTTP_DELETE)
		json = show(ctx, &req->route);
	if (json)
		http_reply_json(reply, json);
	else
		http_reply_problem(reply, 404,
				   is_input ? "No plain RTP feeds this stream."
					    : "The stream is not sent there.");
}
