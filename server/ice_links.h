/* server/ice_links.h - the STUN and TURN servers of the configuration as clients are told of them.
 *
 * Source:  RFC 9725 section 4.6 (Link, rel="ice-server"); draft-uberti-behave-turn-rest-00 section
 *          2.2 (credentials that expire).
 * Sans-IO: time is an argument.
 * Thread:  any.
 */
#ifndef SERVER_ICE_LINKS_H
#define SERVER_ICE_LINKS_H

#include "config/config.h"
#include "server/http_request.h"

enum {
	TURN_USERNAME_BYTES = 544,  /* ten digits of expiry, a colon, a configured name */
	TURN_CREDENTIAL_BYTES = 29, /* HMAC-SHA1 as base64, terminated */
};

struct turn_credentials {
	char username[TURN_USERNAME_BYTES];
	char credential[TURN_CREDENTIAL_BYTES];
};

/** What a TURN server with this shared secret accepts until `expires_s` (seconds since 1970):
 *  username "expires:user", credential base64(HMAC-SHA1(secret, username)).
 *  @param user at most 512 bytes */
void turn_credentials_make(struct turn_credentials *out, const char *secret, const char *user,
			   uint64_t expires_s);

/**
 * One Link field a server.
 *
 * @param stream      stands for the user where the configuration names none
 * @param is_admitted whoever asks may publish or watch: without that, only servers that need no
 *                    credentials are told
 * @param unix_s      seconds since 1970, now
 */
void ice_links_write(const struct config *config, const char *stream, bool is_admitted,
		     uint64_t unix_s, struct http_reply *reply);

#endif
