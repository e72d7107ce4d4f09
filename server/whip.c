#include "server/whip.h"

#include <assert.h>
#include <time.h>

#include "server/ice_links.h"
#include "server/whep.h"

static const char sdp_type[] = "application/sdp";
static const char sdpfrag_type[] = "application/trickle-ice-sdpfrag";
static const char endpoint_methods[] = "GET, HEAD, OPTIONS, POST";
static const char session_methods[] = "DELETE, GET, HEAD, OPTIONS, PATCH";

bool whip_is_route(enum http_route_kind kind)
{
	return kind == HTTP_ROUTE_WHIP || kind == HTTP_ROUTE_WHEP || kind == HTTP_ROUTE_SESSION ||
	       kind == HTTP_ROUTE_SESSION_STATUS;
}

static bool is_endpoint(const struct http_request *req)
{
	return req->route.kind == HTTP_ROUTE_WHIP || req->route.kind == HTTP_ROUTE_WHEP;
}

void whip_cors(struct http_reply *reply)
{
	http_reply_field(reply, "Access-Control-Allow-Origin", "*");
	/* Allow-Methods is exposed because one player trickles only if it can read it. */
	http_reply_field(reply, "Access-Control-Expose-Headers",
			 "Location, Link, ETag, Accept-Post, Accept-Patch, Retry-After, "
			 "WWW-Authenticate, Access-Control-Allow-Methods");
}

/* By the wall clock, which TURN servers go by. */
static void ice_links(const struct http_context *ctx, const struct http_request *req,
		      bool is_admitted, struct http_reply *reply)
{
	ice_links_write(ctx->config, req->route.name, is_admitted, (uint64_t)time(NULL), reply);
}

static enum auth_verdict verdict_of(const struct http_context *ctx, const struct http_request *req)
{
	return auth_check(ctx->auth, req->route.kind == HTTP_ROUTE_WHIP ? AUTH_PUBLISH : AUTH_WATCH,
			  req->is_privileged, req->authorization);
}

static void accept_field(const struct http_request *req, struct http_reply *reply)
{
	if (is_endpoint(req))
		http_reply_field(reply, "Accept-Post", "%s", sdp_type);
	else
		http_reply_field(reply, "Accept-Patch", "%s", sdpfrag_type);
}

static void options(struct http_context *ctx, const struct http_request *req,
		    struct http_reply *reply)
{
	reply->status = 200;
	http_reply_field(reply, "Allow", "%s",
			 is_endpoint(req) ? endpoint_methods : session_methods);
	http_reply_field(reply, "Access-Control-Allow-Methods", "POST, PATCH, DELETE, OPTIONS");
	http_reply_field(reply, "Access-Control-Allow-Headers",
			 "Authorization, Content-Type, If-Match, ETag");
	http_reply_field(reply, "Access-Control-Max-Age", "86400");
	accept_field(req, reply);
	/* Credentials are for those alone who might use them (RFC 9725 section 4.6). */
	if (is_endpoint(req) && !req->is_preflight)
		ice_links(ctx, req, verdict_of(ctx, req) == AUTH_OK, reply);
}

static bool admit_token(struct http_context *ctx, const struct http_request *req,
			struct http_reply *reply)
{
	bool is_publish = req->route.kind == HTTP_ROUTE_WHIP;

	switch (verdict_of(ctx, req)) {
	case AUTH_OK:
		return true;
	case AUTH_MISSING:
		http_reply_field(reply, "WWW-Authenticate", "Bearer realm=\"sluice\"");
		http_reply_problem(reply, 401,
				   is_publish ? "Publishing needs a token (Authorization: Bearer)."
					      : "Watching needs a token (Authorization: Bearer).");
		break;
	case AUTH_INVALID:
		http_reply_field(reply, "WWW-Authenticate",
				 "Bearer realm=\"sluice\", error=\"invalid_token\"");
		http_reply_problem(reply, 401, "The token is not valid here.");
		break;
	case AUTH_SCOPE:
		http_reply_field(reply, "WWW-Authenticate",
				 "Bearer realm=\"sluice\", error=\"insufficient_scope\"");
		http_reply_problem(reply, 403,
				   is_publish ? "The token may not publish."
					      : "The token may not watch.");
		break;
	case AUTH_FORBIDDEN:
		http_reply_problem(
		    reply, 403,
		    "No token is configured, so only clients on the relay's own host "
		    "may do this, and not through a proxy.");
		break;
	}
	ctx->counters.refused_token++;
	return false;
}

static bool admit_rate(struct http_context *ctx, const struct http_request *req,
		       struct http_reply *reply)
{
	unsigned retry_after_s = 1;
	enum limits_verdict verdict;

	if (is_endpoint(req))
		verdict = limits_on_post(ctx->limits, req->client_ip, req->now_us, &retry_after_s);
	else
		verdict = limits_on_patch(ctx->limits, req->route.name, req->now_us)
			      ? LIMITS_OK
			      : LIMITS_CLIENT;
	if (verdict == LIMITS_OK)
		return true;
	http_reply_field(reply, "Retry-After", "%u", retry_after_s);
	if (verdict == LIMITS_CLIENT) {
		ctx->counters.refused_client_rate++;
		http_reply_problem(reply, 429, "Too many requests from this client.");
	} else {
		ctx->counters.refused_node_rate++;
		http_reply_problem(reply, 503, "The relay takes no more new sessions this second.");
	}
	return false;
}

static bool admit_type(const struct http_request *req, struct http_reply *reply)
{
	const char *type = is_endpoint(req) ? sdp_type : sdpfrag_type;
	char detail[96];

	if (req->content_type && http_is_type(req->content_type, type))
		return true;
	snprintf(detail, sizeof(detail), "The body must be %s.", type);
	accept_field(req, reply);
	http_reply_problem(reply, 415, detail);
	return false;
}

static bool has_method(const struct http_request *req)
{
	switch (req->method) {
	case HTTP_GET:
	case HTTP_HEAD:
	case HTTP_OPTIONS:
		return true;
	case HTTP_POST:
		return is_endpoint(req);
	case HTTP_PATCH:
	case HTTP_DELETE:
		return req->route.kind == HTTP_ROUTE_SESSION;
	case HTTP_OTHER:
		break;
	}
	return false;
}

static bool is_opaque(const struct http_request *req)
{
	return req->opaque && strcmp(req->opaque, "1") == 0;
}

static bool admit_query(const struct http_request *req, struct http_reply *reply)
{
	if (req->route.kind != HTTP_ROUTE_WHIP || !req->opaque || is_opaque(req) ||
	    strcmp(req->opaque, "0") == 0)
		return true;
	http_reply_problem(reply, 400,
			   "opaque in the query is 1 (payloads are encrypted end to end) or 0");
	return false;
}

bool whip_admit(struct http_context *ctx, const struct http_request *req, struct http_reply *reply)
{
	if (!has_method(req)) {
		accept_field(req, reply);
		http_reply_not_allowed(reply, is_endpoint(req) ? endpoint_methods
					      : req->route.kind == HTTP_ROUTE_SESSION
						  ? session_methods
						  : "GET, HEAD, OPTIONS");
		return false;
	}
	if (req->method == HTTP_POST)
		return admit_token(ctx, req, reply) && admit_rate(ctx, req, reply) &&
		       admit_type(req, reply) && admit_query(req, reply);
	if (req->method == HTTP_PATCH)
		return admit_rate(ctx, req, reply) && admit_type(req, reply);
	return true;
}

static void post(struct http_context *ctx, const struct http_request *req, struct http_reply *reply)
{
	struct registry_reply answer = { .status = REGISTRY_UNPARSABLE };
	const char *offer = req->body ? req->body : "";
	/* After a redirect some clients resolve a path against the first URL, others the last. */
	const char *base = ctx->config->http.public_url ? ctx->config->http.public_url : "";

	if (!limits_half_open_take(ctx->limits, req->client_ip, req->now_us)) {
		http_reply_field(reply, "Retry-After", "%d", HTTP_BUSY_RETRY_S);
		http_reply_problem(reply, 429, "too many sessions of this client wait to connect");
		return;
	}
	if (req->route.kind == HTTP_ROUTE_WHIP)
		registry_publish(ctx->registry, req->route.name,
				 &(struct registry_offer){ offer, req->body_bytes, is_opaque(req) },
				 req->client_ip, &answer);
	else
		registry_watch(ctx->registry, req->route.name, offer, req->body_bytes,
			       req->client_ip, &answer);
	if (answer.status != REGISTRY_OK) {
		limits_half_open_release(ctx->limits, req->client_ip);
		http_reply_refused(reply, &answer);
	} else {
		http_reply_field(reply, "Location", "%s/session/%s", base, answer.session_id);
		if (answer.etag[0])
			http_reply_field(reply, "ETag", "\"%s\"", answer.etag);
		http_reply_field(reply, "Accept-Patch", "%s", sdpfrag_type);
		http_reply_field(reply, "Access-Control-Allow-Methods",
				 "POST, PATCH, DELETE, OPTIONS");
		http_reply_field(reply, "Cache-Control", "no-store");
		ice_links(ctx, req, true, reply);
		if (req->route.kind == HTTP_ROUTE_WHEP)
			whep_links(reply, base, answer.session_id);
		http_reply_granted(reply, &answer, 201, sdp_type);
	}
	free(answer.body);
}

static void patch(struct http_context *ctx, const struct http_request *req,
		  struct http_reply *reply)
{
	struct registry_reply answer = { .status = REGISTRY_UNPARSABLE };

	registry_patch(ctx->registry, req->route.name, req->body ? req->body : "", req->body_bytes,
		       req->if_match, ctx->config->whip.strict_etags, &answer);
	if (answer.status != REGISTRY_OK) {
		http_reply_refused(reply, &answer);
	} else if (answer.body) {
		if (answer.etag[0])
			http_reply_field(reply, "ETag", "\"%s\"", answer.etag);
		http_reply_field(reply, "Cache-Control", "no-store");
		http_reply_granted(reply, &answer, 200, sdpfrag_type);
	} else {
		reply->status = 204;
	}
	free(answer.body);
}

static void no_such_session(struct http_reply *reply)
{
	http_reply_problem(reply, 404, "There is no such session, or it has ended.");
}

/* GET and HEAD: no content, but for the discovery that HEAD on a WHEP endpoint is. */
static void get(struct http_context *ctx, const struct http_request *req, struct http_reply *reply)
{
	json_t *status;

	if (is_endpoint(req)) {
		bool is_discovery = req->route.kind == HTTP_ROUTE_WHEP && req->method == HTTP_HEAD;

		reply->status = is_discovery ? 200 : 204;
		reply->type = is_discovery ? sdp_type : NULL;
		accept_field(req, reply);
		return;
	}
	status = registry_session_status(ctx->registry, req->route.name);
	if (!status) {
		no_such_session(reply);
	} else if (req->route.kind == HTTP_ROUTE_SESSION_STATUS) {
		http_reply_json(reply, status);
	} else {
		json_decref(status);
		reply->status = 204;
		accept_field(req, reply);
	}
}

void whip_handle(struct http_context *ctx, const struct http_request *req, struct http_reply *reply)
{
	assert(has_method(req));
	switch (req->method) {
	case HTTP_OPTIONS:
		options(ctx, req, reply);
		break;
	case HTTP_POST:
		post(ctx, req, reply);
		break;
	case HTTP_PATCH:
		patch(ctx, req, reply);
		break;
	case HTTP_DELETE:
		/* An entity tag sent with DELETE is ignored (RFC 9725 section 4.2). */
		if (registry_end(ctx->registry, req->route.name) == REGISTRY_OK)
			reply->status = 200;
		else
			no_such_session(reply);
		break;
	default:
		get(ctx, req, reply);
	}
}
