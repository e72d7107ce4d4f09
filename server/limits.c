#include "server/limits.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { WAYS = 8, SECOND_US = 1000000, PATCH_BURST_S = 4 };

/* One number is a token bucket: the time at which it will be full again. It has room while that
 * lies less than a burst ahead. */
struct limits_client {
	uint64_t key; /* 0: never used */
	uint64_t full_us;
	uint32_t connections;
	uint32_t half_open;
};

struct limits_session {
	uint64_t full_us;
};

struct limits {
	const struct config *config;
	uint64_t seed;
	uint64_t node_full_us;
	struct limits_client clients[LIMITS_CLIENTS];
	struct limits_session sessions[LIMITS_SESSIONS];
};

/* Mixing of splitmix64's finaliser shape: every input bit moves every output bit. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static bool is_v4(const uint8_t ip[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(ip, prefix, sizeof(prefix)) == 0;
}

/* Never 0. IPv4 and IPv6 keys may meet only by chance of the mixing. */
static uint64_t key_of(const struct limits *l, const uint8_t ip[16])
{
	uint64_t raw = 0;

	if (is_v4(ip))
		memcpy(&raw, ip + 8, 8);
	else
		memcpy(&raw, ip, 8);
	raw = mix(mix(raw ^ l->seed) + (is_v4(ip) ? 1 : 0));
	return raw ? raw : 1;
}

static bool is_exempt(const struct limits *l, const uint8_t ip[16])
{
	static const uint8_t loopback[16] = { [15] = 1 };

	if (is_v4(ip) ? ip[12] == 127 : memcmp(ip, loopback, 16) == 0)
		return true;
	return config_networks_have(&l->config->limits.trusted, ip);
}

static bool is_like_new(const struct limits_client *c, uint64_t now_us)
{
	return c->connections == 0 && c->half_open == 0 && c->full_us <= now_us;
}

static struct limits_client *set_of(struct limits *l, uint64_t key)
{
	return &l->clients[(key >> 8) % (LIMITS_CLIENTS / WAYS) * WAYS];
}

static struct limits_client *client_find(struct limits *l, uint64_t key)
{
	struct limits_client *set = set_of(l, key);

	for (int i = 0; i < WAYS; i++)
		if (set[i].key == key)
			return &set[i];
	return NULL;
}

/* The client's entry, or a free one for it; NULL when the set is full of busy clients. */
static struct limits_client *client_of(struct limits *l, const uint8_t ip[16], uint64_t now_us)
{
	uint64_t key = key_of(l, ip);
	struct limits_client *found = client_find(l, key);
	struct limits_client *set = set_of(l, key);

	for (int i = 0; i < WAYS && !found; i++) {
		if (!is_like_new(&set[i], now_us))
			continue;
		set[i] = (struct limits_client){ .key = key };
		found = &set[i];
	}
	return found;
}

/* @return 0 when taken, else the microseconds to wait */
static uint64_t bucket_take(uint64_t *full_us, uint32_t per_s, uint32_t burst, uint64_t now_us)
{
	uint64_t each_us = SECOND_US / per_s;
	uint64_t room_us = each_us * burst;
	uint64_t full = *full_us > now_us ? *full_us : now_us;

	assert(each_us > 0);
	if (full + each_us > now_us + room_us)
		return full + each_us - now_us - room_us;
	*full_us = full + each_us;
	return 0;
}

static unsigned seconds_up(uint64_t us)
{
	return (unsigned)((us + SECOND_US - 1) / SECOND_US);
}

int limits_create(struct limits **out, const struct config *c, uint64_t seed)
{
	struct limits *l = calloc(1, sizeof(*l));

	*out = l;
	if (!l)
		return -ENOMEM;
	l->seed = seed;
	l->config = c;
	return 0;
}

void limits_destroy(struct limits *l)
{
	free(l);
}

void limits_configure(struct limits *l, const struct config *c)
{
	l->config = c;
}

enum limits_verdict limits_on_post(struct limits *l, const uint8_t ip[16], uint64_t now_us,
				   unsigned *retry_after_s)
{
	const struct config *c = l->config;
	uint64_t wait_us = 0;

	*retry_after_s = 0;
	if (!is_exempt(l, ip)) {
		struct limits_client *client = client_of(l, ip, now_us);

		wait_us = client ? bucket_take(&client->full_us, c->limits.posts_per_s,
					       c->limits.posts_burst, now_us)
				 : SECOND_US;
	}
	if (wait_us) {
		*retry_after_s = seconds_up(wait_us);
		return LIMITS_CLIENT;
	}
	wait_us = bucket_take(&l->node_full_us, c->limits.node_posts_per_s,
			      c->limits.node_posts_burst, now_us);
	if (!wait_us)
		return LIMITS_OK;
	/* Spread over some seconds, or all who were refused come back together. */
	*retry_after_s = seconds_up(wait_us) + (unsigned)(mix(now_us ^ l->seed) % 4);
	return LIMITS_NODE;
}

bool limits_on_patch(struct limits *l, const char *session_id, uint64_t now_us)
{
	uint32_t per_s = l->config->limits.patches_per_s;
	uint64_t hash = l->seed;

	for (const char *p = session_id; *p; p++)
		hash = mix(hash ^ (unsigned char)*p);
	return bucket_take(&l->sessions[hash % LIMITS_SESSIONS].full_us, per_s,
			   per_s * PATCH_BURST_S, now_us) == 0;
}

static bool count_take(struct limits *l, const uint8_t ip[16], uint64_t now_us, size_t offset,
		       uint32_t max)
{
	struct limits_client *client;
	uint32_t *count;

	if (is_exempt(l, ip))
		return true;
	client = client_of(l, ip, now_us);
	if (!client)
		return false;
	count = (uint32_t *)((char *)client + offset);
	if (*count >= max)
		return false;
	++*count;
	return true;
}

/* A client that was exempt when it came has nothing to give back: its count is zero already. */
static void count_release(struct limits *l, const uint8_t ip[16], size_t offset)
{
	struct limits_client *client = client_find(l, key_of(l, ip));
	uint32_t *count;

	if (!client)
		return;
	count = (uint32_t *)((char *)client + offset);
	if (*count > 0)
		--*count;
}

bool limits_connection_open(struct limits *l, const uint8_t ip[16], uint64_t now_us)
{
	return count_take(l, ip, now_us, offsetof(struct limits_client, connections),
			  l->config->limits.connections_per_ip);
}

void limits_connection_close(struct limits *l, const uint8_t ip[16])
{
	count_release(l, ip, offsetof(struct limits_client, connections));
}

bool limits_half_open_take(struct limits *l, const uint8_t ip[16], uint64_t now_us)
{
	return count_take(l, ip, now_us, offsetof(struct limits_client, half_open),
			  l->config->limits.half_open_per_ip);
}

void limits_half_open_release(struct limits *l, const uint8_t ip[16])
{
	count_release(l, ip, offsetof(struct limits_client, half_open));
}

unsigned limits_clients(const struct limits *l, uint64_t now_us)
{
	unsigned n = 0;

	for (size_t i = 0; i < LIMITS_CLIENTS; i++)
		n += l->clients[i].key != 0 && !is_like_new(&l->clients[i], now_us);
	return n;
}
