/* server/candidates.c - see candidates.h for the contract. */
#include "server/candidates.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

enum { CANDIDATES_SHOWN = 6 }; /* in words: the rest is counted */

static void add(struct candidates *c, const struct net_addr *addr, enum sdp_transport transport)
{
	struct sdp_address *out;

	for (size_t i = 0; i < c->count; i++) {
		const struct sdp_address *have = &c->items[i];
		const uint8_t *ip = addr->ip + (have->family == 4 ? 12 : 0);

		if (have->transport == transport && have->port == addr->port &&
		    have->family == (net_addr_is_v4(addr) ? 4 : 6) &&
		    memcmp(have->ip, ip, have->family == 4 ? 4 : 16) == 0)
			return;
	}
	if (c->count == CANDIDATES_MAX)
		return;
	out = &c->items[c->count++];
	*out = (struct sdp_address){
		.family = net_addr_is_v4(addr) ? 4 : 6,
		.transport = (uint8_t)transport,
		.port = addr->port,
	};
	if (out->family == 4)
		memcpy(out->ip, addr->ip + 12, 4);
	else
		memcpy(out->ip, addr->ip, 16);
	c->is_private_only &= net_addr_is_private(addr);
}

static bool is_link_local(const struct net_addr *a)
{
	return !net_addr_is_v4(a) && a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

/* Every address of the wildcard's family that is up; loopback or the others, as asked. */
static void add_interfaces(struct candidates *c, const struct net_addr *wildcard, bool loopback,
			   enum sdp_transport transport, const struct ifaddrs *list)
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct net_addr addr;

		if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
		    net_addr_from_sockaddr(&addr, i->ifa_addr))
			continue;
		if (net_addr_is_v4(&addr) != net_addr_is_v4(wildcard) ||
		    net_addr_is_loopback(&addr) != loopback || is_link_local(&addr))
			continue;
		addr.port = wildcard->port;
		add(c, &addr, transport);
	}
}

static void add_advertised(struct candidates *c, const struct config *config,
			   const struct net_addr *bound, enum sdp_transport transport)
{
	for (size_t i = 0; i < config->advertise.count; i++) {
		struct net_addr addr = { .port = config->advertise.items[i].port };

		memcpy(addr.ip, config->advertise.items[i].ip, sizeof(addr.ip));
		if (addr.port == 0)
			addr.port = bound[0].port;
		add(c, &addr, transport);
	}
}

static int add_bound(struct candidates *c, const struct config *config,
		     const struct net_addr *bound, size_t count, enum sdp_transport transport)
{
	size_t before = c->count;
	struct ifaddrs *list;

	if (count == 0)
		return 0;
	if (config->advertise.count) {
		add_advertised(c, config, bound, transport);
		return 0;
	}
	if (getifaddrs(&list))
		return -errno;
	for (size_t i = 0; i < count; i++) {
		if (net_addr_is_any(&bound[i]))
			add_interfaces(c, &bound[i], false, transport, list);
		else
			add(c, &bound[i], transport);
	}
	for (size_t i = 0; i < count && c->count == before; i++)
		add_interfaces(c, &bound[i], true, transport, list);
	freeifaddrs(list);
	return 0;
}

int candidates_collect(struct candidates *out, const struct config *config,
		       const struct net_addr *bound, size_t count)
{
	*out = (struct candidates){ .is_private_only = true };
	return add_bound(out, config, bound, count, SDP_UDP);
}

int candidates_add_tcp(struct candidates *c, const struct config *config,
		       const struct net_addr *bound, size_t count)
{
	return add_bound(c, config, bound, count, SDP_TCP);
}

const char *candidates_write(const struct candidates *c, char *out, size_t bytes)
{
	size_t used = 0, shown = c->count < CANDIDATES_SHOWN ? c->count : CANDIDATES_SHOWN;

	snprintf(out, bytes, "none");
	for (size_t i = 0; i < shown && used < bytes; i++) {
		const struct sdp_address *item = &c->items[i];
		struct net_addr addr = { .port = item->port };
		char text[NET_ADDR_TEXT_BYTES];

		if (item->family == 4) {
			addr.ip[10] = addr.ip[11] = 0xff; /* as struct net_addr maps it */
			memcpy(addr.ip + 12, item->ip, 4);
		} else {
			memcpy(addr.ip, item->ip, sizeof(addr.ip));
		}
		used += (size_t)snprintf(out + used, bytes - used, "%s%s %s", i ? ", " : "",
					 item->transport == SDP_TCP ? "tcp" : "udp",
					 net_addr_format(&addr, text));
	}
	if (c->count > shown && used < bytes)
		snprintf(out + used, bytes - used, " and %zu more", c->count - shown);
	return out;
}
