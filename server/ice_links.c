#include "server/ice_links.h"

#include <assert.h>
#include <inttypes.h>

#include "net/stun.h"

/* RFC 4648 section 4. */
static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void base64_write(char *out, const uint8_t *bytes, size_t n)
{
	for (; n > 0; n -= n < 3 ? n : 3, bytes += 3) {
		uint32_t word = (uint32_t)bytes[0] << 16;

		if (n > 1)
			word |= (uint32_t)bytes[1] << 8;
		if (n > 2)
			word |= bytes[2];
		*out++ = base64[word >> 18];
		*out++ = base64[word >> 12 & 63];
		*out++ = n > 1 ? base64[word >> 6 & 63] : '=';
		*out++ = n > 2 ? base64[word & 63] : '=';
	}
	*out = '\0';
}

void turn_credentials_make(struct turn_credentials *out, const char *secret, const char *user,
			   uint64_t expires_s)
{
	uint8_t mac[STUN_HMAC_BYTES];
	int n = snprintf(out->username, sizeof(out->username), "%" PRIu64 ":%s", expires_s, user);

	assert(n > 0 && (size_t)n < sizeof(out->username));
	_Static_assert((STUN_HMAC_BYTES + 2) / 3 * 4 < TURN_CREDENTIAL_BYTES, "it fits");
	stun_hmac_sha1((struct stun_span){ secret, strlen(secret) },
		       (struct stun_span){ out->username, (size_t)n }, (struct stun_span){ 0 },
		       mac);
	base64_write(out->credential, mac, sizeof(mac));
}

/* The parameters in this order: players split and match them by hand. */
static void link_with(struct http_reply *reply, const char *url, const char *username,
		      const char *credential)
{
	http_reply_field(reply, "Link",
			 "<%s>; rel=\"ice-server\"; username=\"%s\"; credential=\"%s\"; "
			 "credential-type=\"password\"",
			 url, username, credential);
}

void ice_links_write(const struct config *config, const char *stream, bool is_admitted,
		     uint64_t unix_s, struct http_reply *reply)
{
	for (size_t i = 0; i < config->ice.servers.count; i++) {
		const struct config_ice_server *s = &config->ice.servers.items[i];
		struct turn_credentials made = { .credential = "" };

		if (!s->credential && !s->secret) {
			http_reply_field(reply, "Link", "<%s>; rel=\"ice-server\"", s->url);
		} else if (is_admitted && s->credential) {
			link_with(reply, s->url, s->username, s->credential);
		} else if (is_admitted) {
			turn_credentials_make(&made, s->secret, s->username ? s->username : stream,
					      unix_s + config->ice.credentials_ttl_s);
			link_with(reply, s->url, made.username, made.credential);
			explicit_bzero(&made, sizeof(made));
		}
	}
}
