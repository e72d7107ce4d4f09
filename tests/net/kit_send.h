/* tests/net/kit_send.h - what the kernel says to sendmmsg() and sendmsg(), decided by the test.
 *
 * Linked in the place of both (FAULTS_net in the Makefile). While nothing is scripted, calls go
 * to the kernel.
 */
#ifndef TESTS_NET_KIT_SEND_H
#define TESTS_NET_KIT_SEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIT_SEND_STEPS = 32, KIT_SEND_DATAGRAMS = 4096, KIT_SEND_BYTES = 64 };

/* One answer: take `messages` of those offered (0: fail with error). */
struct kit_send_step {
	unsigned messages;
	int error;
};

/* One datagram as it would be on the wire; segments of a message are split here. */
struct kit_send_datagram {
	uint16_t port; /* of its destination */
	uint16_t len;
	bool names_source; /* from which of our addresses it leaves */
	uint8_t head[KIT_SEND_BYTES];
};

/** From now on nothing reaches the kernel: the steps are answered in order, then everything is
 *  taken. NULL ends it. */
void kit_send_script(const struct kit_send_step *steps, size_t n);

/** Refuse every message of more than one segment with this errno; 0: none. */
void kit_send_refuse_segments(int error);

/** What left since the script began, in order. */
size_t kit_send_count(void);
const struct kit_send_datagram *kit_send_datagram(size_t i);
/** Calls made since. */
unsigned kit_send_calls(void);

#endif
