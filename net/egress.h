/* net/egress.h - outgoing datagrams gathered into GSO messages, and messages into one call.
 *
 * The caller appends datagrams in the order they shall leave; consecutive ones for the same path
 * and owner become segments of one UDP_SEGMENT message as far as the rules allow: equal sizes but
 * for a shorter last one, at most EGRESS_SEGMENTS. All bytes lie in one arena, small enough to
 * stay in the cache between being sealed and being sent.
 *
 * Partial sends never reorder and never send twice: what the kernel did not take stays, and
 * egress_flush() goes on from there. A message that GSO refuses leaves datagram by datagram and
 * its address is not segmented again for a while.
 *
 * Source:  udp(7) UDP_SEGMENT; the rules are those of DESIGN "GSO rules" and "Partial sends".
 * Thread:  the owner's.
 * Memory:  one allocation, in egress_create().
 */
#ifndef NET_EGRESS_H
#define NET_EGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"

enum {
	EGRESS_SEGMENTS = 64,            /* of one message: the kernel's UDP_MAX_SEGMENTS */
	EGRESS_MESSAGES = 64,            /* of one sendmmsg call */
	EGRESS_ARENA_BYTES = 192 * 1024, /* of an L2 cache of 512 KB or more */
	EGRESS_GSO_BYTES = 65507,        /* largest UDP payload over IPv4 */
	EGRESS_GSO_OFF_US = 60000000,    /* an address that refused a message */
};

enum egress_status {
	EGRESS_DONE,    /* everything left, or was given up and counted */
	EGRESS_BLOCKED, /* the socket is full: flush again when it is writable */
	EGRESS_STARVED, /* the kernel is out of buffers: writability does not tell, try a little later */
};

struct egress_stats {
	uint64_t datagrams, bytes, messages, calls;
	uint64_t blocked;     /* EAGAIN, ENOBUFS, ENOMEM */
	uint64_t gso_refused; /* messages sent singly after EINVAL, EMSGSIZE or EIO */
	uint64_t failed;      /* messages lost to another error */
	uint64_t
	    segments_histogram[8]; /* messages by segments: 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64 */
};

struct egress_failure {
	uint32_t owner;
	int error; /* negative errno */
};

struct egress;

/** @param fd of a bound UDP socket, the caller's; v4 tells its family
 *  @param gso whether to use UDP_SEGMENT at all
 *  @return 0 or -ENOMEM */
int egress_create(struct egress **out, int fd, bool v4, bool gso);

/* Packets for one connection, one behind the other: `segment_bytes` each, but for a shorter last. */
struct egress_message {
	const uint8_t *bytes;
	uint32_t len, owner;
	uint16_t segment_bytes, connection;
};

/**
 * An egress for the connections of a port instead of a socket: the same arena and rules, but each
 * message is given to `send`, which takes all of it. egress_flush() is never blocked.
 *
 * @param send called during egress_flush(); may not call this egress
 * @return 0 or -ENOMEM
 */
int egress_create_sink(struct egress **out, void (*send)(void *arg, const struct egress_message *m),
		       void *arg);
void egress_destroy(struct egress *e);

/**
 * Append one datagram of `len` bytes (1 to 1,500 or so) and get the place to write it.
 *
 * @param owner whom a failure is counted against; any value
 * @return where to put the bytes, before the next egress_flush(); NULL when full: flush first.
 *         While blocked the rest of the arena may still be appended to.
 */
uint8_t *egress_append(struct egress *e, const struct net_path *path, size_t len, uint32_t owner);

/** The next datagram starts a message of its own: a pacing boundary. */
void egress_cut(struct egress *e);

bool egress_is_empty(const struct egress *e);

/** Send. @param now_us for the addresses that refuse GSO */
enum egress_status egress_flush(struct egress *e, uint64_t now_us);

/** Take one failure of the last flush. @return false when there is none left */
bool egress_take_failure(struct egress *e, struct egress_failure *out);

const struct egress_stats *egress_stats(const struct egress *e);
/** GSO was refused by so many addresses, and taken by none, that it is off for good. */
bool egress_has_gso(const struct egress *e);

#endif
