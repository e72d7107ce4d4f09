/* server/listen.c - see listen.h for the contract. */
#include "server/listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "net/tcp.h"
#include "net/udp.h"

enum {
	PORT_TRIES = 16, /* a free port of one family, or protocol, may be taken in the other */
	TCP_CONNECTIONS_MAX = 1 << 18,
};

typedef int probe_fn(const struct net_addr *addr, uint16_t *port);

static int add(struct listen_set *set, const uint8_t ip[16], uint16_t port)
{
	struct net_addr *addr = &set->items[set->count];

	if (set->count == WORKER_MAX_SOCKETS)
		return -E2BIG;
	memcpy(addr->ip, ip, sizeof(addr->ip));
	addr->port = port;
	set->count++;
	return 0;
}

static int expand(struct listen_set *set, const struct config_address *a)
{
	static const uint8_t any_v4[16] = { [10] = 0xff, 0xff };
	int err = 0;

	if (a->is_both)
		err = add(set, any_v4, a->port);
	if (!err)
		err = add(set, a->ip, a->port);
	return err;
}

/* Bind for a moment, alone. @return 0 and the port, or a negative errno */
static int probe_udp(const struct net_addr *addr, uint16_t *port)
{
	struct udp_options options = { .bind = *addr };
	struct udp_socket *socket;
	int err = udp_open(&socket, &options);

	if (err)
		return err;
	*port = udp_local(socket)->port;
	udp_close(socket, NULL);
	return 0;
}

static int probe_tcp(const struct net_addr *addr, uint16_t *port)
{
	struct tcp_listener *listener;
	int err = tcp_listen(&listener, addr, false);

	if (err)
		return err;
	*port = tcp_listener_local(listener)->port;
	tcp_unlisten(listener);
	return 0;
}

/* A port that is ours to choose has to be free for both. */
static int probe_both(const struct net_addr *addr, uint16_t *port)
{
	struct net_addr chosen = *addr;
	int err = probe_udp(addr, port);

	if (err || addr->port)
		return err;
	chosen.port = *port;
	return probe_tcp(&chosen, port);
}

static bool is_family_missing(int err)
{
	return err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL;
}

/* Addresses [from, set->count) come from one ":PORT" or address and share the port. */
static int settle(struct listen_set *set, unsigned from, bool is_both, probe_fn *probe)
{
	uint16_t port;
	int err = probe(&set->items[from], &port);

	if (err)
		return err;
	set->items[from].port = port;
	if (!is_both)
		return 0;
	set->items[from + 1].port = port;
	err = probe(&set->items[from + 1], &port);
	if (is_family_missing(err)) {
		set->count = from + 1;
		set->is_v6_missing = true;
		return 0;
	}
	return err;
}

static int resolve_one(struct listen_set *set, const struct config_address *a, probe_fn *probe)
{
	unsigned from = set->count;
	int err = -EADDRINUSE;

	for (unsigned i = 0; i < PORT_TRIES && err == -EADDRINUSE; i++) {
		set->count = from;
		err = expand(set, a);
		if (!err)
			err = settle(set, from, a->is_both, probe);
		if (a->port)
			break;
	}
	return err;
}

static int resolve(struct listen_set *out, const struct config_addresses *list, probe_fn *probe,
		   const char *protocol, char error[LISTEN_ERROR_BYTES])
{
	for (size_t i = 0; i < list->count; i++) {
		const struct config_address *a = &list->items[i];
		int err = resolve_one(out, a, probe);

		if (!err)
			continue;
		if (err == -EADDRINUSE)
			snprintf(error, LISTEN_ERROR_BYTES,
				 "%s %s is taken by another program; choose another port with --%s",
				 protocol, a->text, probe == probe_tcp ? "tcp" : "udp");
		else if (err == -E2BIG)
			snprintf(error, LISTEN_ERROR_BYTES, "more than %d %s addresses to bind",
				 WORKER_MAX_SOCKETS, protocol);
		else
			snprintf(error, LISTEN_ERROR_BYTES, "cannot bind %s %s: %s", protocol,
				 a->text, strerror(-err));
		return err;
	}
	return 0;
}

int listen_resolve(struct listen_set *out, const struct config *config,
		   char error[LISTEN_ERROR_BYTES])
{
	bool is_followed = config->tcp.enabled && config->tcp.listen.count == 0;

	*out = (struct listen_set){ 0 };
	return resolve(out, &config->udp.listen, is_followed ? probe_both : probe_udp, "UDP",
		       error);
}

int listen_resolve_tcp(struct listen_set *out, const struct config *config,
		       const struct listen_set *udp, char error[LISTEN_ERROR_BYTES])
{
	uint16_t port;

	*out = (struct listen_set){ 0 };
	if (!config->tcp.enabled)
		return 0;
	if (config->tcp.listen.count)
		return resolve(out, &config->tcp.listen, probe_tcp, "TCP", error);
	for (unsigned i = 0; i < udp->count; i++) {
		if (probe_tcp(&udp->items[i], &port)) {
			*out = (struct listen_set){ .is_taken = true };
			return 0;
		}
		out->items[out->count++] = udp->items[i];
	}
	return 0;
}

uint32_t listen_tcp_connections(const struct config *config)
{
	struct rlimit fds = { .rlim_cur = 0 };

	if (!config->tcp.enabled)
		return 0;
	if (config->tcp.connections)
		return config->tcp.connections;
	if (getrlimit(RLIMIT_NOFILE, &fds) || fds.rlim_cur / 4 > TCP_CONNECTIONS_MAX)
		return TCP_CONNECTIONS_MAX;
	return (uint32_t)fds.rlim_cur / 4;
}
