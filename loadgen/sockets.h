/* loadgen/sockets.h - the UDP sockets of all peers, received from as cheaply as possible.
 *
 * Against a relay on this host one socket serves SOCKETS_PEERS peers: the whole of 127.0.0.0/8 is
 * ours, so each peer has an address of its own there and its datagrams are told apart by their
 * destination. Elsewhere each peer has a socket of its own, as a real client does. With GRO the
 * kernel hands over what the relay sent as one message in one piece, which is cut up here.
 *
 * Source:  udp(7) UDP_GRO, ip(7) IP_PKTINFO, socket(7) SO_RXQ_OVFL.
 * Thread:  the loop's.
 * Memory:  one receive area for all sockets; a socket each as peers are added.
 */
#ifndef LOADGEN_SOCKETS_H
#define LOADGEN_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"
#include "net/loop.h"

enum {
	SOCKETS_PEERS = 64, /* of one loopback socket */
	SOCKETS_MAX_PEERS = 1 << 20,
};

struct sockets;

/** The bytes are the callee's to change until it returns. */
typedef void sockets_on_datagram(void *arg, uint32_t peer, const struct net_path *path,
				 uint8_t *bytes, size_t len);

struct sockets_config {
	struct loop *loop;
	/* Of this host, the one that reaches the relay; loopback: share sockets. */
	struct net_addr local;
	bool gro;
	uint32_t peers; /* at most, up to SOCKETS_MAX_PEERS */
	sockets_on_datagram *on_datagram;
	void (*on_batch)(void *arg); /* before the datagrams of one wake-up: read the clock */
	void *arg;
};

/** @return 0, -ENOMEM or -EINVAL (too many peers) */
int sockets_create(struct sockets **out, const struct sockets_config *config);
void sockets_destroy(struct sockets *s);

/**
 * Give a peer (0 to config.peers - 1) its address; once for each.
 *
 * @param local receives what to offer as its candidate
 * @return 0 or a negative errno of socket(2) or bind(2)
 */
int sockets_add(struct sockets *s, uint32_t peer, struct net_addr *local);

/**
 * Another port for a peer and all that share its socket, as a NAT gives that forgot its mapping:
 * none of them is told, and what is on its way to the former port is lost.
 *
 * @return 0 or a negative errno of socket(2) or bind(2); the former port stays
 */
int sockets_rebind(struct sockets *s, uint32_t peer);

/** Send one datagram of a peer; path->local is its address. A full socket loses it, as the network
 *  may. @return false: lost */
bool sockets_send(struct sockets *s, uint32_t peer, const struct net_path *path,
		  const uint8_t *bytes, size_t len);

struct sockets_stats {
	uint64_t datagrams, bytes;
	uint64_t messages;     /* what recvmmsg returned: datagrams, or several as one by GRO */
	uint64_t calls;        /* of recvmmsg */
	uint64_t kernel_drops; /* a receive buffer was full */
	uint64_t unsent;
	uint64_t strays; /* to an address that no peer has */
};
void sockets_stats(const struct sockets *s, struct sockets_stats *out);

#endif
