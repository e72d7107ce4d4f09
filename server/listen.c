/* server/listen.c - see listen.h for the contract. */
#include "server/listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/udp.h"

enum { PORT_TRIES = 16 }; /* a free port of one family may be taken in the other */

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
static int probe(const struct net_addr *addr, uint16_t *port)
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

static bool is_family_missing(int err)
{
	return err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL;
}

/* Addresses [from, set->count) come from one ":PORT" or address and share the port. */
static int settle(struct listen_set *set, unsigned from, bool is_both)
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

static int resolve_one(struct listen_set *set, const struct config_address *a)
{
	unsigned from = set->count;
	int err = -EADDRINUSE;

	for (unsigned i = 0; i < PORT_TRIES && err == -EADDRINUSE; i++) {
		set->count = from;
		err = expand(set, a);
		if (!err)
			err = settle(set, from, a->is_both);
		if (a->port)
			break;
	}
	return err;
}

int listen_resolve(struct listen_set *out, const struct config *config,
		   char error[LISTEN_ERROR_BYTES])
{
	*out = (struct listen_set){ 0 };
	for (size_t i = 0; i < config->udp.listen.count; i++) {
		const struct config_address *a = &config->udp.listen.items[i];
		int err = resolve_one(out, a);

		if (!err)
			continue;
		if (err == -EADDRINUSE)
			snprintf(
			    error, LISTEN_ERROR_BYTES,
			    "UDP %s is taken by another program; choose another port with --udp",
			    a->text);
		else if (err == -E2BIG)
			snprintf(error, LISTEN_ERROR_BYTES, "more than %d UDP addresses to bind",
				 WORKER_MAX_SOCKETS);
		else
			snprintf(error, LISTEN_ERROR_BYTES, "cannot bind UDP %s: %s", a->text,
				 strerror(-err));
		return err;
	}
	return 0;
}
