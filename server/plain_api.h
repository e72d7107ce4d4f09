/* server/plain_api.h - the routes of plain RTP: what feeds a stream, and where it is sent.
 *
 * Thread: control only.
 */
#ifndef SERVER_PLAIN_API_H
#define SERVER_PLAIN_API_H

#include "server/http_request.h"

bool plain_api_is_route(enum http_route_kind kind);

/** Method and media type; the admin was admitted. @return false: the reply is filled */
bool plain_api_admit(const struct http_request *req, struct http_reply *reply);

void plain_api_handle(struct http_context *ctx, const struct http_request *req,
		      struct http_reply *reply);

/** A body of JSON: {"sdp": text, "source": IP}. `*json` holds the texts, the caller's reference.
 *  @return false: one line is in `reason` */
bool plain_api_read_input(const char *body, size_t len, json_t **json, struct registry_input *out,
			  char reason[REGISTRY_REASON_BYTES]);

/** A body of JSON: {"address": IP, "audio": port, "video": port, "rtcp_mux": bool}. `*json` holds the
 *  text, the caller's reference. @return false: one line is in `reason` */
bool plain_api_read_output(const char *body, size_t len, json_t **json, struct registry_output *out,
			   char reason[REGISTRY_REASON_BYTES]);

#endif
