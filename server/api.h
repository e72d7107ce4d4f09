/* server/api.h - the JSON API, the metrics and the health checks.
 *
 * Thread: control only.
 */
#ifndef SERVER_API_H
#define SERVER_API_H

#include "server/http_request.h"

bool api_is_route(enum http_route_kind kind);

/** Whether the route leaves the main listener when there is an admin listener. */
bool api_is_admin_only(enum http_route_kind kind);

/** As whip_admit(): method, and the admin token where the route asks for one. */
bool api_admit(struct http_context *ctx, const struct http_request *req, struct http_reply *reply);

void api_handle(struct http_context *ctx, const struct http_request *req, struct http_reply *reply);

#endif
