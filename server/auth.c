#include "server/auth.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "net/digest.h"
#include "server/http_text.h"

struct auth_tokens {
	size_t first; /* in digests[] */
	size_t count;
};

struct auth {
	bool is_open;
	struct auth_tokens roles[AUTH_ROLES];
	uint8_t digests[][DIGEST_SHA256_BYTES];
};

int auth_create(struct auth **out, const struct config *c)
{
	const struct config_strings *lists[AUTH_ROLES] = { &c->tokens.publish, &c->tokens.watch,
							   &c->tokens.admin };
	size_t total = 0;
	struct auth *a;

	for (int role = 0; role < AUTH_ROLES; role++)
		total += lists[role]->count;
	a = calloc(1, sizeof(*a) + total * DIGEST_SHA256_BYTES);
	*out = a;
	if (!a)
		return -ENOMEM;
	a->is_open = c->http.open;
	total = 0;
	for (int role = 0; role < AUTH_ROLES; role++) {
		a->roles[role] = (struct auth_tokens){ total, lists[role]->count };
		for (size_t i = 0; i < lists[role]->count; i++)
			digest_sha256(lists[role]->items[i], strlen(lists[role]->items[i]),
				      a->digests[total++]);
	}
	return 0;
}

void auth_destroy(struct auth *a)
{
	free(a);
}

/* Every token is compared, whichever fits: how long it takes must not tell which one did. */
static bool role_has(const struct auth *a, enum auth_role role,
		     const uint8_t digest[DIGEST_SHA256_BYTES])
{
	const struct auth_tokens *t = &a->roles[role];
	unsigned found = 0;

	for (size_t i = 0; i < t->count; i++)
		found |= digest_is_equal(a->digests[t->first + i], digest, DIGEST_SHA256_BYTES);
	return found != 0;
}

enum auth_verdict auth_check(const struct auth *a, enum auth_role role, bool is_privileged,
			     const char *authorization)
{
	uint8_t digest[DIGEST_SHA256_BYTES];
	const char *token;
	size_t len;
	bool is_other = false;

	assert(role < AUTH_ROLES);
	if (role == AUTH_ADMIN && is_privileged)
		return AUTH_OK;
	if (a->roles[role].count == 0 && role != AUTH_ADMIN && (a->is_open || is_privileged))
		return AUTH_OK;
	if (a->roles[role].count == 0)
		return AUTH_FORBIDDEN;
	if (!authorization)
		return AUTH_MISSING;
	if (!http_bearer(authorization, &token, &len))
		return AUTH_INVALID;
	digest_sha256(token, len, digest);
	if (role_has(a, role, digest))
		return AUTH_OK;
	for (int other = 0; other < AUTH_ROLES; other++)
		is_other = role_has(a, (enum auth_role)other, digest) || is_other;
	return is_other ? AUTH_SCOPE : AUTH_INVALID;
}

bool auth_is_privileged(const uint8_t ip[16], const char *host, bool is_forwarded)
{
	static const uint8_t v4_loopback[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };
	static const uint8_t v6_loopback[16] = { [15] = 1 };

	if (memcmp(ip, v4_loopback, sizeof(v4_loopback)) != 0 && memcmp(ip, v6_loopback, 16) != 0)
		return false;
	return !is_forwarded && host && http_is_loopback_host(host);
}
