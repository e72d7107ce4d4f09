/* tests/server/kit_wire.h - the wire between a relay and its peers, in memory.
 *
 * Defines net/udp.h anew (no real socket is opened) and takes the place of sendmmsg() and sendmsg()
 * (the Makefile's --wrap), so that a test decides what arrives, what the kernel says, and reads
 * every datagram that left, in order and with the message it left in.
 */
#ifndef TESTS_SERVER_KIT_WIRE_H
#define TESTS_SERVER_KIT_WIRE_H

#include "net/udp.h"

enum { KIT_WIRE_BYTES = 1536, KIT_WIRE_SOCKETS = 64, KIT_WIRE_QUEUE = 4096 };

struct kit_datagram {
	struct net_path path; /* as the relay sees it */
	uint32_t message;     /* counts messages: segments of one have the same */
	uint16_t segments;    /* of that message */
	uint16_t segment;     /* which of them */
	uint16_t len;
	uint8_t bytes[KIT_WIRE_BYTES];
};

/** Forget all sockets, datagrams and scripts. */
void kit_wire_reset(void);

/** The fd of socket i in the order they were opened. */
int kit_wire_fd(unsigned i);

/** A datagram reaches the socket. @return false: its queue is full, it is lost */
bool kit_wire_arrive(int fd, const struct net_path *path, const uint8_t *bytes, size_t len);

/** The next datagram that left, any socket; valid until the next call. NULL: none. */
const struct kit_datagram *kit_wire_take(void);
/** Datagrams that left and nobody took, since nobody read for long: 0 unless a test is wrong. */
unsigned kit_wire_lost(void);

/** LOOP_ bits of a socket; of a real one, as the kernel says. */
unsigned kit_wire_ready(int fd);

/** One answer of the kernel: take so many messages of those offered (0: fail with `error`). */
struct kit_wire_answer {
	unsigned messages;
	int error;
};
/** Asked for each send call; NULL: takes everything. After EAGAIN the socket is not writable until
 *  kit_wire_unblock(). */
void kit_wire_on_send(struct kit_wire_answer (*answer)(void *arg, unsigned offered), void *arg);
void kit_wire_unblock(void);

/** Mutexes locked by anything linked here, so far. */
unsigned kit_wire_locks(void);

#endif
