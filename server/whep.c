#include "server/whep.h"

#include <assert.h>
#include <jansson.h>

#include "server/events.h"
#include "server/problem.h"
#include "server/whip.h"

static const struct registry_layer layer_auto = {
	.spatial = REGISTRY_LAYER_ANY,
	.temporal = REGISTRY_LAYER_ANY,
	.max_spatial = REGISTRY_LAYER_ANY,
	.max_temporal = REGISTRY_LAYER_ANY,
};

static const char body_type[] = "application/json";

bool whep_is_route(enum http_route_kind kind)
{
	return kind == HTTP_ROUTE_SESSION_EVENTS || kind == HTTP_ROUTE_EVENT_STREAM ||
	       kind == HTTP_ROUTE_SESSION_LAYER;
}

void whep_links(struct http_reply *reply, const char *base, const char *session_id)
{
	static const char rel[] = "urn:ietf:params:whep:ext:core:";

	http_reply_field(reply, "Link",
			 "<%s/session/%s/events>; rel=\"%sserver-sent-events\"; events=\"%s\"",
			 base, session_id, rel, events_names);
	http_reply_field(reply, "Link", "<%s/session/%s/layer>; rel=\"%slayer\"", base, session_id,
			 rel);
}

/* --- admission --------------------------------------------------------------------------- */

static const char *methods_of(enum http_route_kind kind)
{
	return kind == HTTP_ROUTE_SESSION_EVENTS  ? "OPTIONS, POST"
	       : kind == HTTP_ROUTE_SESSION_LAYER ? "DELETE, OPTIONS, POST"
						  : "DELETE, GET, OPTIONS";
}

static bool has_method(const struct http_request *req)
{
	switch (req->method) {
	case HTTP_OPTIONS:
		return true;
	case HTTP_GET:
		return req->route.kind == HTTP_ROUTE_EVENT_STREAM;
	case HTTP_POST:
		return req->route.kind != HTTP_ROUTE_EVENT_STREAM;
	case HTTP_DELETE:
		return req->route.kind != HTTP_ROUTE_SESSION_EVENTS;
	default:
		return false;
	}
}

static bool admit_type(const struct http_request *req, struct http_reply *reply)
{
	if (req->method != HTTP_POST || !req->content_type ||
	    http_is_type(req->content_type, body_type))
		return true;
	http_reply_field(reply, "Accept-Post", "%s", body_type);
	http_reply_problem(reply, 415, "The body must be application/json.");
	return false;
}

bool whep_admit(struct http_context *ctx, const struct http_request *req, struct http_reply *reply)
{
	if (!has_method(req)) {
		http_reply_not_allowed(reply, methods_of(req->route.kind));
		return false;
	}
	if (req->method != HTTP_OPTIONS &&
	    !limits_on_patch(ctx->limits, req->route.name, req->now_us)) {
		http_reply_field(reply, "Retry-After", "1");
		ctx->counters.refused_client_rate++;
		http_reply_problem(reply, 429, "Too many requests to this session.");
		return false;
	}
	return admit_type(req, reply);
}

/* --- bodies ------------------------------------------------------------------------------ */

static json_t *read_json(const char *body, size_t len, char reason[REGISTRY_REASON_BYTES])
{
	json_error_t error;
	json_t *json = json_loadb(body ? body : "", len, JSON_REJECT_DUPLICATES, &error);

	if (!json)
		snprintf(reason, REGISTRY_REASON_BYTES, "The body is not JSON: %s (line %d).",
			 error.text, error.line);
	return json;
}

uint32_t whep_read_events(const char *body, size_t len, char reason[REGISTRY_REASON_BYTES])
{
	uint32_t wanted = 0;
	json_t *json, *item;
	size_t i;

	if (!len)
		return EVENTS_ALL;
	json = read_json(body, len, reason);
	if (!json)
		return 0;
	snprintf(reason, REGISTRY_REASON_BYTES, "The body must be an array of names of %s.",
		 events_names);
	json_array_foreach(json, i, item)
	{
		const char *name = json_string_value(item);
		enum event_kind kind = name ? event_kind_of(name) : EVENT_KINDS;

		if (kind == EVENT_KINDS) {
			wanted = 0;
			break;
		}
		wanted |= 1u << kind;
	}
	json_decref(json);
	return wanted;
}

/* A member that is a number of 0 to max. Absent or null leaves *out. @return false: neither */
static bool take_number(json_t *json, const char *name, int max, int *out)
{
	json_t *value = json_object_get(json, name);
	json_int_t number = json_integer_value(value);

	if (!value || json_is_null(value))
		return true;
	if (!json_is_integer(value) || number < 0)
		return false;
	*out = number > max ? max : (int)number;
	return true;
}

static bool take_text(json_t *json, const char *name, char *out, size_t cap)
{
	json_t *value = json_object_get(json, name);

	if (!value || json_is_null(value))
		return true;
	/* A name longer than any, or with a zero in it, is nobody's. */
	if (!json_is_string(value) || json_string_length(value) >= cap ||
	    strlen(json_string_value(value)) != json_string_length(value))
		return false;
	memcpy(out, json_string_value(value), json_string_length(value) + 1);
	return true;
}

/* mediaId is the m-line's index, as a string; some write the number, some the mid. */
static bool take_media(json_t *json, struct registry_layer *out)
{
	json_t *value = json_object_get(json, "mediaId");

	if (!json_is_integer(value))
		return take_text(json, "mediaId", out->media, sizeof(out->media));
	snprintf(out->media, sizeof(out->media), "%" JSON_INTEGER_FORMAT,
		 json_integer_value(value));
	return true;
}

bool whep_read_layer(const char *body, size_t len, struct registry_layer *out,
		     char reason[REGISTRY_REASON_BYTES])
{
	static const struct {
		const char *name;
		size_t at;
		int max;
	} numbers[] = {
		{ "spatialLayerId", offsetof(struct registry_layer, spatial), REGISTRY_LAYER_MAX },
		{ "temporalLayerId", offsetof(struct registry_layer, temporal),
		  REGISTRY_LAYER_MAX },
		{ "maxSpatialLayerId", offsetof(struct registry_layer, max_spatial),
		  REGISTRY_LAYER_MAX },
		{ "maxTemporalLayerId", offsetof(struct registry_layer, max_temporal),
		  REGISTRY_LAYER_MAX },
		{ "maxWidth", offsetof(struct registry_layer, max_width), UINT16_MAX },
		{ "maxHeight", offsetof(struct registry_layer, max_height), UINT16_MAX },
	};
	json_t *json = read_json(body, len, reason);
	bool is_good = json_is_object(json);

	*out = layer_auto;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && is_good; i++)
		is_good = take_number(json, numbers[i].name, numbers[i].max,
				      (int *)(void *)((char *)out + numbers[i].at));
	is_good = is_good && take_media(json, out) &&
		  take_text(json, "encodingId", out->rid, sizeof(out->rid)) &&
		  take_text(json, "rid", out->rid, sizeof(out->rid));
	if (json && !is_good)
		snprintf(reason, REGISTRY_REASON_BYTES,
			 "The body must be an object of mediaId, rid (texts), spatialLayerId, "
			 "temporalLayerId, maxSpatialLayerId, maxTemporalLayerId, maxWidth, "
			 "maxHeight (numbers).");
	json_decref(json);
	return is_good;
}

/* --- answers ----------------------------------------------------------------------------- */

static void options(const struct http_request *req, struct http_reply *reply)
{
	reply->status = 200;
	http_reply_field(reply, "Allow", "%s", methods_of(req->route.kind));
	http_reply_field(reply, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
	/* Players send the token along, though the path is enough. */
	http_reply_field(reply, "Access-Control-Allow-Headers",
			 "Authorization, Content-Type, Last-Event-ID, Cache-Control");
	http_reply_field(reply, "Access-Control-Max-Age", "86400");
}

static void verdict(enum registry_status status, unsigned good, const char *reason,
		    struct http_reply *reply)
{
	if (status == REGISTRY_OK)
		reply->status = good;
	else if (status == REGISTRY_NOT_FOUND)
		http_reply_problem(reply, 404, "There is no such session, or it has ended.");
	else
		http_reply_problem(reply, problem_status(status), reason);
}

static void open_events(struct http_context *ctx, const struct http_request *req,
			struct http_reply *reply)
{
	char reason[REGISTRY_REASON_BYTES];
	uint32_t wanted = whep_read_events(req->body, req->body_bytes, reason);
	enum registry_status status;
	uint64_t number;

	if (!wanted) {
		http_reply_problem(reply, 400, reason);
		return;
	}
	status = registry_events_open(ctx->registry, req->route.name, wanted, &number);
	if (status == REGISTRY_FULL) {
		http_reply_problem(reply, 429, "The session has too many event streams.");
		return;
	}
	verdict(status, 201, "", reply);
	if (status == REGISTRY_OK)
		http_reply_field(reply, "Location", "/session/%s/events/%llu", req->route.name,
				 (unsigned long long)number);
}

static void select_layer(struct http_context *ctx, const struct http_request *req,
			 struct http_reply *reply)
{
	char reason[REGISTRY_REASON_BYTES] = "";
	struct registry_layer layer = layer_auto;
	enum registry_status status;

	if (req->method == HTTP_POST &&
	    !whep_read_layer(req->body, req->body_bytes, &layer, reason)) {
		http_reply_problem(reply, 400, reason);
		return;
	}
	status = registry_select_layer(ctx->registry, req->route.name, &layer, reason);
	verdict(status, 200, reason, reply);
}

static void read_events(struct http_reply *reply)
{
	reply->status = 200;
	reply->type = "text/event-stream";
	reply->is_event_stream = true;
	http_reply_field(reply, "Cache-Control", "no-store");
	http_reply_field(reply, "X-Accel-Buffering", "no"); /* nginx would wait for more */
}

void whep_handle(struct http_context *ctx, const struct http_request *req, struct http_reply *reply)
{
	assert(has_method(req));
	if (req->method == HTTP_OPTIONS)
		options(req, reply);
	else if (req->route.kind == HTTP_ROUTE_SESSION_LAYER)
		select_layer(ctx, req, reply);
	else if (req->method == HTTP_POST)
		open_events(ctx, req, reply);
	else if (req->method == HTTP_GET)
		read_events(reply);
	else
		verdict(registry_events_close(ctx->registry, req->route.name, req->route.number),
			200, "", reply);
}
