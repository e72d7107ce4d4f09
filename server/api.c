#include "server/api.h"

#include "server/metrics.h"
#include "server/plain_api.h"

bool api_is_admin_only(enum http_route_kind kind)
{
	switch (kind) {
	case HTTP_ROUTE_API_INFO:
	case HTTP_ROUTE_API_STREAMS:
	case HTTP_ROUTE_API_SESSIONS:
	case HTTP_ROUTE_API_SESSION:
	case HTTP_ROUTE_METRICS:
		return true;
	default:
		return plain_api_is_route(kind);
	}
}

bool api_is_route(enum http_route_kind kind)
{
	return api_is_admin_only(kind) || kind == HTTP_ROUTE_HEALTHZ || kind == HTTP_ROUTE_READYZ;
}

static bool admit_admin(struct http_context *ctx, const struct http_request *req,
			struct http_reply *reply)
{
	enum auth_verdict verdict =
	    auth_check(ctx->auth, AUTH_ADMIN, req->is_privileged, req->authorization);

	if (verdict == AUTH_OK)
		return true;
	ctx->counters.refused_token++;
	if (verdict == AUTH_FORBIDDEN) {
		http_reply_problem(
		    reply, 403,
		    "No admin token is configured, so only clients on the relay's own "
		    "host may see this, and not through a proxy.");
	} else if (verdict == AUTH_SCOPE) {
		http_reply_field(reply, "WWW-Authenticate",
				 "Bearer realm=\"sluice\", error=\"insufficient_scope\"");
		http_reply_problem(reply, 403, "This needs an admin token.");
	} else {
		http_reply_field(reply, "WWW-Authenticate", "Bearer realm=\"sluice\"%s",
				 verdict == AUTH_INVALID ? ", error=\"invalid_token\"" : "");
		http_reply_problem(reply, 401,
				   "This needs an admin token (Authorization: Bearer).");
	}
	return false;
}

bool api_admit(struct http_context *ctx, const struct http_request *req, struct http_reply *reply)
{
	bool may_delete = req->route.kind == HTTP_ROUTE_API_SESSION;

	if (api_is_admin_only(req->route.kind) && !admit_admin(ctx, req, reply))
		return false;
	if (plain_api_is_route(req->route.kind))
		return plain_api_admit(req, reply);
	if (req->method == HTTP_GET || req->method == HTTP_HEAD ||
	    (req->method == HTTP_DELETE && may_delete))
		return true;
	http_reply_not_allowed(reply, may_delete ? "DELETE, GET, HEAD" : "GET, HEAD");
	return false;
}

static void static_text(struct http_reply *reply, unsigned status, const char *body)
{
	reply->status = status;
	reply->type = "text/plain; charset=utf-8";
	reply->body = body;
	reply->body_bytes = strlen(body);
	reply->is_body_static = true;
	http_reply_field(reply, "Cache-Control", "no-store");
}

static void ready(struct http_context *ctx, struct http_reply *reply)
{
	if (registry_is_ready(ctx->registry)) {
		static_text(reply, 200, "ready\n");
		return;
	}
	http_reply_field(reply, "Retry-After", "5");
	static_text(reply, 503, "not taking new sessions\n");
}

static void metrics(struct http_context *ctx, struct http_reply *reply)
{
	struct text t = { 0 };
	size_t len;

	metrics_write(ctx, &t);
	registry_metrics(ctx->registry, &t);
	reply->body = text_take(&t, &len);
	if (!reply->body) {
		http_reply_problem(reply, 500, "Out of memory.");
		return;
	}
	reply->body_bytes = len;
	reply->status = 200;
	reply->type = "text/plain; version=0.0.4; charset=utf-8";
	http_reply_field(reply, "Cache-Control", "no-store");
}

static void session(struct http_context *ctx, const struct http_request *req,
		    struct http_reply *reply)
{
	json_t *json;

	if (req->method == HTTP_DELETE &&
	    registry_kick(ctx->registry, req->route.number) == REGISTRY_OK) {
		reply->status = 200;
		return;
	}
	json =
	    req->method == HTTP_DELETE ? NULL : registry_session(ctx->registry, req->route.number);
	if (json)
		http_reply_json(reply, json);
	else
		http_reply_problem(reply, 404, "There is no session of this number.");
}

void api_handle(struct http_context *ctx, const struct http_request *req, struct http_reply *reply)
{
	if (plain_api_is_route(req->route.kind)) {
		plain_api_handle(ctx, req, reply);
		return;
	}
	switch (req->route.kind) {
	case HTTP_ROUTE_API_INFO:
		http_reply_json(reply, registry_info(ctx->registry));
		break;
	case HTTP_ROUTE_API_STREAMS:
		http_reply_json(reply, registry_streams(ctx->registry));
		break;
	case HTTP_ROUTE_API_SESSIONS:
		http_reply_json(reply, registry_sessions(ctx->registry));
		break;
	case HTTP_ROUTE_API_SESSION:
		session(ctx, req, reply);
		break;
	case HTTP_ROUTE_METRICS:
		metrics(ctx, reply);
		break;
	case HTTP_ROUTE_READYZ:
		ready(ctx, reply);
		break;
	default:
		static_text(reply, 200, "ok\n");
	}
}
