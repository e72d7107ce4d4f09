#include "config/schema.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>

enum { SECRET_MAX_BYTES = 256, ICE_TEXT_MAX_BYTES = 512 };

static const char digits[] = "0123456789";
/* RFC 6750 section 2.1: b64token. Anything else cannot arrive in a Bearer header field. */
static const char token_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "-._~+/=";

static int number_parse(uint32_t *out, const char *text, uint32_t min, uint32_t max)
{
	size_t len = strlen(text);
	unsigned long long n;

	if (len == 0 || len > 10 || strspn(text, digits) != len)
		return -EINVAL;
	n = strtoull(text, NULL, 10);
	if (n < min || n > max)
		return -EINVAL;
	*out = (uint32_t)n;
	return 0;
}

/* RFC 4291 section 2.5.5.2: an IPv4 address is ::ffff:a.b.c.d. */
static int ip_parse(uint8_t ip[16], bool *is_v4, const char *text, size_t len)
{
	char copy[INET6_ADDRSTRLEN];

	if (len == 0 || len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	memset(ip, 0, 16);
	*is_v4 = inet_pton(AF_INET, copy, ip + 12) == 1;
	if (*is_v4)
		memset(ip + 10, 0xff, 2);
	else if (inet_pton(AF_INET6, copy, ip) != 1)
		return -EINVAL;
	return 0;
}

/* "IP", "IP:PORT", "[IP6]", "[IP6]:PORT" or ":PORT"; *port stays when there is none. */
static int address_split(struct config_address *a, const char *text, const char **port)
{
	const char *colon = strrchr(text, ':');
	const char *close = strchr(text, ']');
	const char *ip = text;
	size_t ip_len;

	if (text[0] == '[') {
		if (!close || (close[1] != '\0' && close[1] != ':'))
			return -EINVAL;
		colon = close[1] == ':' ? close + 1 : NULL;
		ip = text + 1;
		ip_len = (size_t)(close - ip);
		if (!memchr(ip, ':', ip_len))
			return -EINVAL;
	} else {
		if (colon && strchr(text, ':') != colon)
			colon = NULL; /* a bare IPv6 address */
		ip_len = colon ? (size_t)(colon - text) : strlen(text);
	}
	*port = colon ? colon + 1 : NULL;
	a->is_both = ip_len == 0 && colon;
	if (a->is_both)
		return 0;
	if (ip_len == strlen("localhost") && memcmp(ip, "localhost", ip_len) == 0)
		return ip_parse(a->ip, &a->is_v4, "127.0.0.1", strlen("127.0.0.1"));
	return ip_parse(a->ip, &a->is_v4, ip, ip_len);
}

static int address_parse(struct config_address *out, const char *text, bool is_host)
{
	struct config_address a = { .port = 0 };
	const char *port = NULL;
	uint32_t number = 0;
	int err;

	if (strlen(text) >= sizeof(a.text))
		return -EINVAL;
	memcpy(a.text, text, strlen(text) + 1);
	err = address_split(&a, text, &port);
	if (err)
		return err;
	if (is_host ? config_address_is_wildcard(&a) : !port)
		return -EINVAL;
	if (port && number_parse(&number, port, is_host ? 1 : 0, UINT16_MAX))
		return -EINVAL;
	a.port = (uint16_t)number;
	*out = a;
	return 0;
}

static int network_parse(struct config_network *out, const char *text)
{
	const char *slash = strchr(text, '/');
	struct config_network n = { .prefix_bits = 128 };
	uint32_t bits = 0;
	bool is_v4;

	if (ip_parse(n.ip, &is_v4, text, slash ? (size_t)(slash - text) : strlen(text)))
		return -EINVAL;
	if (slash) {
		if (number_parse(&bits, slash + 1, 0, is_v4 ? 32 : 128))
			return -EINVAL;
		n.prefix_bits = (uint8_t)(bits + (is_v4 ? 96 : 0));
	}
	for (unsigned bit = n.prefix_bits; bit < 128; bit++)
		n.ip[bit / 8] &= (uint8_t) ~(0x80u >> (bit % 8));
	*out = n;
	return 0;
}

/* All lists are {items, count}; grows by one. NULL when memory or the list's room is out. */
static void *list_push(void **items, size_t *count, size_t item_bytes, int *err)
{
	char *grown;

	*err = -E2BIG;
	if (*count >= CONFIG_LIST_MAX)
		return NULL;
	*err = -ENOMEM;
	grown = realloc(*items, (*count + 1) * item_bytes);
	if (!grown)
		return NULL;
	*err = 0;
	*items = grown;
	memset(grown + *count * item_bytes, 0, item_bytes);
	return grown + (*count)++ * item_bytes;
}

static int addresses_add(struct config_addresses *list, const char *text, bool is_host)
{
	struct config_address a;
	struct config_address *slot;
	int err = address_parse(&a, text, is_host);

	if (err)
		return err;
	slot = list_push((void **)&list->items, &list->count, sizeof(a), &err);
	if (slot)
		*slot = a;
	return err;
}

static int networks_add(struct config_networks *list, const char *text)
{
	struct config_network n;
	struct config_network *slot;
	int err = network_parse(&n, text);

	if (err)
		return err;
	slot = list_push((void **)&list->items, &list->count, sizeof(n), &err);
	if (slot)
		*slot = n;
	return err;
}

static int secrets_add(struct config_strings *list, const char *text)
{
	size_t len = strlen(text);
	char *copy;
	char **slot;
	int err;

	if (len == 0 || len > SECRET_MAX_BYTES || strspn(text, token_chars) != len)
		return -EINVAL;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	slot = list_push((void **)&list->items, &list->count, sizeof(*slot), &err);
	if (slot)
		*slot = copy;
	else
		free(copy);
	return err;
}

static int path_set(char **out, const char *text)
{
	char *copy;

	if (text[0] == '\0' || strlen(text) >= PATH_MAX)
		return -EINVAL;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*out);
	*out = copy;
	return 0;
}

/* It is written into header fields, with a path behind it. */
static bool is_base_url(const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789-._~:/[]%";
	size_t scheme = strncmp(text, "https://", 8) == 0  ? 8
			: strncmp(text, "http://", 7) == 0 ? 7
							   : 0;
	size_t len = strlen(text);

	return scheme && len > scheme && len < CONFIG_URL_BYTES && text[scheme] != '/' &&
	       text[len - 1] != '/' && strspn(text, allowed) == len;
}

static int word_set(int *out, const struct config_key *key, const char *text)
{
	for (int i = 0; key->words[i]; i++) {
		if (strcmp(key->words[i], text) == 0) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int bool_set(bool *out, const char *text)
{
	bool is_true = strcmp(text, "true") == 0;

	if (!is_true && strcmp(text, "false") != 0)
		return -EINVAL;
	*out = is_true;
	return 0;
}

static int count_set(uint32_t *out, const struct config_key *key, const char *text)
{
	uint32_t n;

	if (number_parse(&n, text, key->min, key->max) || (key->is_power && (n & (n - 1))))
		return -EINVAL;
	*out = n;
	return 0;
}

int config_value_set(struct config *c, const struct config_key *key, const char *text)
{
	void *member = (char *)c + key->offset;

	switch (key->type) {
	case CONFIG_TYPE_BOOL:
		return bool_set(member, text);
	case CONFIG_TYPE_COUNT:
		return count_set(member, key, text);
	case CONFIG_TYPE_WORD:
		return word_set(member, key, text);
	case CONFIG_TYPE_PATH:
		return path_set(member, text);
	case CONFIG_TYPE_URL:
		return is_base_url(text) ? path_set(member, text) : -EINVAL;
	case CONFIG_TYPE_ADDRESS:
		return address_parse(member, text, false);
	case CONFIG_TYPE_ADDRESSES:
		return addresses_add(member, text, false);
	case CONFIG_TYPE_HOSTS:
		return addresses_add(member, text, true);
	case CONFIG_TYPE_NETWORKS:
		return networks_add(member, text);
	case CONFIG_TYPE_SECRETS:
		return secrets_add(member, text);
	case CONFIG_TYPE_ICE:
		return config_ice_server_add(c, &(struct config_ice_server){ .url = (char *)text });
	}
	return -EINVAL;
}

/* What could end or split a Link header field is refused here, where the operator sees it. */
static bool is_header_safe(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || strchr("\"\\<>,;", *p))
			return false;
	return text[0] != '\0' && strlen(text) <= ICE_TEXT_MAX_BYTES;
}

static bool is_ice_url(const char *url)
{
	static const char *const schemes[] = { "stun:", "stuns:", "turn:", "turns:" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t len = strlen(schemes[i]);

		if (strncmp(url, schemes[i], len) == 0 && url[len] != '\0')
			return is_header_safe(url);
	}
	return false;
}

/* Browsers refuse the whole list for a TURN server without credentials. */
static bool is_ice_server(const struct config_ice_server *s)
{
	if (!s->url || !is_ice_url(s->url) || (s->username && !is_header_safe(s->username)))
		return false;
	if (s->secret)
		return !s->credential && strncmp(s->url, "turn", 4) == 0 && s->secret[0] &&
		       strlen(s->secret) <= ICE_TEXT_MAX_BYTES;
	if (s->credential)
		return s->username && is_header_safe(s->credential);
	return !s->username && strncmp(s->url, "turn", 4) != 0;
}

static void secret_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void ice_server_free(struct config_ice_server *s)
{
	free(s->url);
	free(s->username);
	secret_free(s->credential);
	secret_free(s->secret);
}

static bool copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

int config_ice_server_add(struct config *c, const struct config_ice_server *server)
{
	struct config_ice_server s = { .url = NULL };
	struct config_ice_server *slot;
	int err = -ENOMEM;

	if (!is_ice_server(server))
		return -EINVAL;
	if (!copy_text(&s.url, server->url) || !copy_text(&s.username, server->username) ||
	    !copy_text(&s.credential, server->credential) || !copy_text(&s.secret, server->secret))
		goto fail;
	slot = list_push((void **)&c->ice.servers.items, &c->ice.servers.count, sizeof(s), &err);
	if (!slot)
		goto fail;
	*slot = s;
	return 0;

fail:
	ice_server_free(&s);
	return err;
}

static void ice_clear(struct config_ice_servers *list)
{
	for (size_t i = 0; i < list->count; i++)
		ice_server_free(&list->items[i]);
	free(list->items);
	*list = (struct config_ice_servers){ .count = 0 };
}

static void secrets_clear(struct config_strings *list)
{
	for (size_t i = 0; i < list->count; i++)
		secret_free(list->items[i]);
	free(list->items);
	*list = (struct config_strings){ .count = 0 };
}

void config_list_clear(struct config *c, const struct config_key *key)
{
	void *member = (char *)c + key->offset;

	assert(config_type_is_list(key->type));
	if (key->type == CONFIG_TYPE_ICE) {
		ice_clear(member);
	} else if (key->type == CONFIG_TYPE_SECRETS) {
		secrets_clear(member);
	} else if (key->type == CONFIG_TYPE_NETWORKS) {
		free(((struct config_networks *)member)->items);
		*(struct config_networks *)member = (struct config_networks){ .count = 0 };
	} else {
		free(((struct config_addresses *)member)->items);
		*(struct config_addresses *)member = (struct config_addresses){ .count = 0 };
	}
}

int config_set_defaults(struct config *c)
{
	size_t count;
	const struct config_key *keys = config_schema(&count);

	for (size_t i = 0; i < count; i++) {
		int err =
		    keys[i].by_default ? config_value_set(c, &keys[i], keys[i].by_default) : 0;

		assert(err == 0 || err == -ENOMEM);
		if (err)
			return err;
	}
	return 0;
}

void config_destroy(struct config *c)
{
	size_t count;
	const struct config_key *keys = config_schema(&count);

	if (!c)
		return;
	for (size_t i = 0; i < count; i++) {
		if (config_type_is_list(keys[i].type))
			config_list_clear(c, &keys[i]);
		else if (keys[i].type == CONFIG_TYPE_PATH || keys[i].type == CONFIG_TYPE_URL)
			free(*(char **)((char *)c + keys[i].offset));
	}
	free(c);
}

bool config_address_is_wildcard(const struct config_address *a)
{
	static const uint8_t any[16];
	static const uint8_t any_v4[16] = { [10] = 0xff, [11] = 0xff };

	return a->is_both || memcmp(a->ip, any, 16) == 0 || memcmp(a->ip, any_v4, 16) == 0;
}

bool config_address_is_loopback(const struct config_address *a)
{
	static const uint8_t loopback[16] = { [15] = 1 };

	if (a->is_both)
		return false;
	return a->is_v4 ? a->ip[12] == 127 : memcmp(a->ip, loopback, 16) == 0;
}

bool config_networks_have(const struct config_networks *n, const uint8_t ip[16])
{
	for (size_t i = 0; i < n->count; i++) {
		const struct config_network *net = &n->items[i];
		size_t whole = net->prefix_bits / 8;
		uint8_t mask = (uint8_t) ~(0xffu >> (net->prefix_bits % 8));

		if (memcmp(net->ip, ip, whole) == 0 &&
		    (mask == 0 || (ip[whole] & mask) == net->ip[whole]))
			return true;
	}
	return false;
}
