/* server/whep.h - the extensions of a WHEP session: event streams and the choice of a layer.
 *
 * The session's id, a secret, is in the path, so that a browser's EventSource, which sends no token,
 * may read.
 *
 * Source:  draft-ietf-wish-whep, core extensions.
 * Thread:  control only.
 */
#ifndef SERVER_WHEP_H
#define SERVER_WHEP_H

#include "server/http_request.h"

bool whep_is_route(enum http_route_kind kind);

/** Decide without the body. @return false: the reply is filled. */
bool whep_admit(struct http_context *ctx, const struct http_request *req, struct http_reply *reply);

/** Answer an admitted request; for an event stream the HTTP side sends the body itself. */
void whep_handle(struct http_context *ctx, const struct http_request *req,
		 struct http_reply *reply);

/** The Link fields that announce the extensions, for the answer to a viewer's offer.
 *  @param base what stands before our paths, may be "" */
void whep_links(struct http_reply *reply, const char *base, const char *session_id);

/** What an event stream is asked for: a JSON array of names; no body asks for all.
 *  @return 1u << enum event_kind for each, or 0 with one line in `reason` */
uint32_t whep_read_events(const char *body, size_t len, char reason[REGISTRY_REASON_BYTES]);

/** A choice of layer. @return false: one line is in `reason` */
bool whep_read_layer(const char *body, size_t len, struct registry_layer *out,
		     char reason[REGISTRY_REASON_BYTES]);

#endif
