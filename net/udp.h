/* net/udp.h - the sockets of the one UDP port: open, receive into slabs.
 *
 * Each worker has its own socket on the same port (SO_REUSEPORT); the kernel deals the flows.
 *
 * Thread: a socket belongs to one thread.
 * Memory: receives straight into slabs of the pool given; a dry pool drops and counts.
 */
#ifndef NET_UDP_H
#define NET_UDP_H

#include <stdbool.h>
#include <stdint.h>

#include "net/addr.h"
#include "pool/slab.h"

enum { UDP_BATCH_PKTS = 32 }; /* larger batches gain nothing */

struct udp_options {
	struct net_addr bind; /* address and port; port 0 picks one; any v6 address is v6 only */
	bool shared;          /* SO_REUSEPORT: the other workers bind the same port */
	uint32_t rcvbuf_bytes, sndbuf_bytes; /* asked for; what the kernel gave is in the stats */
};

struct udp_stats {
	uint64_t datagrams, bytes;
	uint64_t kernel_drops;               /* SO_RXQ_OVFL: our receive buffer was full */
	uint64_t oversized;                  /* datagrams longer than a slab */
	uint64_t pool_drops;                 /* read and dropped, since the pool was dry */
	uint32_t rcvbuf_bytes, sndbuf_bytes; /* as read back */
};

struct udp_packet {
	struct slab *slab;    /* one reference, the caller's */
	struct net_path path; /* local port is the socket's */
};

struct udp_socket;

/** Open, bind, set options. Path MTU discovery is off (OMIT): no ICMP can shrink or block sends.
 *  @return 0, -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, -EMFILE, -ENOMEM … */
int udp_open(struct udp_socket **out, const struct udp_options *options);
void udp_close(struct udp_socket *s, struct slab_pool *pool);

int udp_fd(const struct udp_socket *s);
bool udp_is_v4(const struct udp_socket *s);
/** The address bound, with the port the kernel chose. */
const struct net_addr *udp_local(const struct udp_socket *s);
/** The kernel takes UDP_SEGMENT on this socket. */
bool udp_has_gso(const struct udp_socket *s);
void udp_stats(const struct udp_socket *s, struct udp_stats *out);

/** Read up to UDP_BATCH_PKTS datagrams.
 *  @param drained receives whether the socket was emptied (as far as this call can tell)
 *  @return packets written to out, 0 when there were none; errors of earlier sends that the
 *          kernel reports here are skipped */
unsigned udp_receive(struct udp_socket *s, struct slab_pool *pool,
		     struct udp_packet out[UDP_BATCH_PKTS], bool *drained);

#endif
