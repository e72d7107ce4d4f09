#include "net/addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool net_addr_is_v4(const struct net_addr *a)
{
	return memcmp(a->ip, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

bool net_addr_is_loopback(const struct net_addr *a)
{
	static const uint8_t loopback6[16] = { [15] = 1 };

	if (net_addr_is_v4(a))
		return a->ip[12] == 127;
	return memcmp(a->ip, loopback6, sizeof(loopback6)) == 0;
}

static bool is_private_v4(const uint8_t v4[4])
{
	return v4[0] == 10 || v4[0] == 127 || (v4[0] == 172 && (v4[1] & 0xf0) == 16) ||
	       (v4[0] == 192 && v4[1] == 168) || (v4[0] == 169 && v4[1] == 254) ||
	       (v4[0] == 100 && (v4[1] & 0xc0) == 64);
}

bool net_addr_is_private(const struct net_addr *a)
{
	bool is_link_local = a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
	bool is_unique_local = (a->ip[0] & 0xfe) == 0xfc;

	if (net_addr_is_v4(a))
		return is_private_v4(a->ip + 12);
	return is_link_local || is_unique_local || net_addr_is_loopback(a);
}

bool net_addr_is_any(const struct net_addr *a)
{
	static const uint8_t any[16];

	return memcmp(a->ip, any, sizeof(any)) == 0 ||
	       (net_addr_is_v4(a) && memcmp(a->ip + 12, any, 4) == 0);
}

static uint64_t rotate(uint64_t v, unsigned bits)
{
	return v << bits | v >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

/* SipHash-1-3 with the seed as both key halves: short, and no collisions without the seed. */
uint32_t net_addr_hash(const struct net_addr *a, uint64_t seed)
{
	uint64_t words[3] = { 0 };
	uint64_t v[4] = { seed ^ 0x736f6d6570736575, seed ^ 0x646f72616e646f6d,
			  seed ^ 0x6c7967656e657261, seed ^ 0x7465646279746573 };

	memcpy(words, a->ip, sizeof(a->ip));
	words[2] = (uint64_t)(sizeof(a->ip) + sizeof(a->port)) << 56 | a->port;
	for (size_t i = 0; i < 3; i++) {
		v[3] ^= words[i];
		sip_round(v);
		v[0] ^= words[i];
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return (uint32_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

int net_addr_parse_ip(struct net_addr *out, const char *text)
{
	struct net_addr a = { 0 };

	if (inet_pton(AF_INET, text, a.ip + 12) == 1)
		memcpy(a.ip, mapped_prefix, sizeof(mapped_prefix));
	else if (inet_pton(AF_INET6, text, a.ip) != 1)
		return -EINVAL;
	*out = a;
	return 0;
}

/* Decimal, 0 to 65535, at most five digits and nothing else. */
static int parse_port(uint16_t *out, const char *text)
{
	uint32_t port = 0;
	size_t n = strspn(text, "0123456789");

	if (n == 0 || n > 5 || text[n] != '\0')
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		port = port * 10 + (uint32_t)(text[i] - '0');
	if (port > UINT16_MAX)
		return -EINVAL;
	*out = (uint16_t)port;
	return 0;
}

int net_addr_parse(struct net_addr *out, const char *text)
{
	struct net_addr a = { 0 };
	char host[INET6_ADDRSTRLEN];
	const char *colon = strrchr(text, ':');
	bool is_bracketed = text[0] == '[';
	size_t n;
	int err;

	if (!colon)
		return -EINVAL;
	n = (size_t)(colon - text);
	if (is_bracketed && (n < 2 || text[n - 1] != ']'))
		return -EINVAL;
	if (is_bracketed) {
		text++;
		n -= 2;
	}
	if (n >= sizeof(host) || (is_bracketed && n == 0))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	/* Brackets and IPv6 go together, so that the last colon is never part of the address. */
	if (is_bracketed != (strchr(host, ':') != NULL))
		return -EINVAL;
	err = n ? net_addr_parse_ip(&a, host) : 0;
	if (!err)
		err = parse_port(&a.port, colon + 1);
	if (!err)
		*out = a;
	return err;
}

const char *net_addr_format_ip(const struct net_addr *a, char text[NET_ADDR_TEXT_BYTES])
{
	bool is_v4 = net_addr_is_v4(a);

	inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? a->ip + 12 : a->ip, text,
		  NET_ADDR_TEXT_BYTES);
	return text;
}

const char *net_addr_format(const struct net_addr *a, char text[NET_ADDR_TEXT_BYTES])
{
	char ip[NET_ADDR_TEXT_BYTES];

	net_addr_format_ip(a, ip);
	if (net_addr_is_v4(a))
		snprintf(text, NET_ADDR_TEXT_BYTES, "%.45s:%u", ip, a->port);
	else
		snprintf(text, NET_ADDR_TEXT_BYTES, "[%.45s]:%u", ip, a->port);
	return text;
}

int net_addr_from_sockaddr(struct net_addr *out, const struct sockaddr *sa)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	out->connection = 0;
	switch (sa->sa_family) {
	case AF_INET:
		memcpy(&v4, sa, sizeof(v4));
		memcpy(out->ip, mapped_prefix, sizeof(mapped_prefix));
		memcpy(out->ip + 12, &v4.sin_addr, 4);
		out->port = ntohs(v4.sin_port);
		return 0;
	case AF_INET6:
		memcpy(&v6, sa, sizeof(v6));
		memcpy(out->ip, &v6.sin6_addr, sizeof(out->ip));
		out->port = ntohs(v6.sin6_port);
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

socklen_t net_addr_to_sockaddr(const struct net_addr *a, int family, struct sockaddr_storage *out)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(a->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(a->port) };

	if (family == AF_INET) {
		assert(net_addr_is_v4(a) || net_addr_is_any(a));
		memcpy(&v4.sin_addr, a->ip + 12, 4);
		memcpy(out, &v4, sizeof(v4));
		return sizeof(v4);
	}
	assert(family == AF_INET6);
	memcpy(&v6.sin6_addr, a->ip, sizeof(a->ip));
	memcpy(out, &v6, sizeof(v6));
	return sizeof(v6);
}
