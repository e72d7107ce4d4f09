/* server/whip.h - the routes of WHIP, WHEP and their sessions.
 *
 * Source: RFC 9725 (WHIP), draft-ietf-wish-whep, RFC 8840 (trickle fragments), Fetch (CORS).
 * Thread: control only.
 */
#ifndef SERVER_WHIP_H
#define SERVER_WHIP_H

#include "server/http_request.h"

/** Whether these routes serve the request's route. */
bool whip_is_route(enum http_route_kind kind);

/** The CORS fields each answer of these routes has, refusals included: any origin, no credentials
 *  (a token is sent by script, not by the browser). */
void whip_cors(struct http_reply *reply);

/**
 * What can be said before the body is read: method, token, rate, media type.
 *
 * @return true: read the body, then whip_handle(); false: `reply` is the answer
 */
bool whip_admit(struct http_context *ctx, const struct http_request *req, struct http_reply *reply);

void whip_handle(struct http_context *ctx, const struct http_request *req,
		 struct http_reply *reply);

#endif
