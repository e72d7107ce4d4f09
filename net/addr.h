/* net/addr.h - a peer's or our own address as a plain value, and the pair of them that is a way to a peer.
 *
 * Source:  IPv4-mapped form RFC 4291 section 2.5.5.2.
 * Sans-IO: plain values; the shell converts from and to struct sockaddr.
 */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct net_addr {
	uint8_t ip[16]; /* IPv6, or IPv4 mapped */
	uint16_t port;  /* host order */
	/* 0: datagrams. Else the number of the connection that is the only way to this remote address:
	 * its owner's name for it (net/tcp.h), never on the wire. */
	uint16_t connection;
};

/* Where a datagram came from and at which of our addresses it arrived; or where to send one
 * and from which of our addresses. An all-zero local address leaves the choice to the kernel. */
struct net_path {
	struct net_addr remote;
	struct net_addr local;
};

enum { NET_ADDR_TEXT_BYTES = 56 }; /* "[v6 address]:65535" with its terminator */

static inline bool net_addr_is_equal(const struct net_addr *a, const struct net_addr *b)
{
	return a->port == b->port && a->connection == b->connection &&
	       memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

static inline bool net_addr_is_same_ip(const struct net_addr *a, const struct net_addr *b)
{
	return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

bool net_addr_is_v4(const struct net_addr *a);
/** 127.0.0.0/8 or ::1. */
bool net_addr_is_loopback(const struct net_addr *a);
/** RFC 1918, RFC 6598, link-local, unique local or loopback: not reachable from the Internet. */
bool net_addr_is_private(const struct net_addr *a);
/** 0.0.0.0 or ::. */
bool net_addr_is_any(const struct net_addr *a);

/** Mix of ip and port, keyed by `seed` so that a stranger cannot choose collisions. */
uint32_t net_addr_hash(const struct net_addr *a, uint64_t seed);

/** Parse "1.2.3.4" or "2001:db8::1" (no brackets, no port; port becomes 0).
 *  @return 0 or -EINVAL */
int net_addr_parse_ip(struct net_addr *out, const char *text);

/** Parse "1.2.3.4:80", "[::1]:80" or ":80" (any IPv6 address).
 *  @return 0 or -EINVAL */
int net_addr_parse(struct net_addr *out, const char *text);

/** Write "1.2.3.4" or "2001:db8::1"; returns `text`. */
const char *net_addr_format_ip(const struct net_addr *a, char text[NET_ADDR_TEXT_BYTES]);

/** Write "1.2.3.4:80" or "[2001:db8::1]:80"; returns `text`. */
const char *net_addr_format(const struct net_addr *a, char text[NET_ADDR_TEXT_BYTES]);

/** From AF_INET or AF_INET6; of datagrams. @return 0 or -EAFNOSUPPORT */
int net_addr_from_sockaddr(struct net_addr *out, const struct sockaddr *sa);

/** As a sockaddr of `family` (AF_INET asserts an IPv4-mapped address); returns its length. */
socklen_t net_addr_to_sockaddr(const struct net_addr *a, int family, struct sockaddr_storage *out);

#endif
