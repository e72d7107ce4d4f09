/* net/dtls_queue.h - a few datagrams back to back in one block, in order of arrival.
 *
 * Thread: whoever owns the block. Memory: inside it.
 */
#ifndef NET_DTLS_QUEUE_H
#define NET_DTLS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/dtls.h"

enum { DTLS_QUEUE_BYTES = 6144 }; /* two ClientHellos of a browser twice over */

struct dtls_queue {
	uint16_t len[DTLS_QUEUE_PKTS];
	uint16_t used;  /* bytes */
	uint8_t count;  /* datagrams */
	uint8_t next;   /* first one not yet taken */
	uint16_t taken; /* bytes */
	uint8_t bytes[DTLS_QUEUE_BYTES];
};

static inline void dtls_queue_clear(struct dtls_queue *q)
{
	q->used = 0;
	q->count = 0;
	q->next = 0;
	q->taken = 0;
}

static inline bool dtls_queue_has_room(const struct dtls_queue *q, size_t len)
{
	return q->count < DTLS_QUEUE_PKTS && len <= (size_t)(DTLS_QUEUE_BYTES - q->used);
}

static inline bool dtls_queue_put(struct dtls_queue *q, const uint8_t *bytes, size_t len)
{
	if (!dtls_queue_has_room(q, len))
		return false;
	memcpy(q->bytes + q->used, bytes, len);
	q->used = (uint16_t)(q->used + len);
	q->len[q->count++] = (uint16_t)len;
	return true;
}

/** Take the oldest; valid until the queue is cleared. @return NULL when none is left */
static inline const uint8_t *dtls_queue_take(struct dtls_queue *q, size_t *len)
{
	const uint8_t *bytes = q->bytes + q->taken;

	if (q->next == q->count)
		return NULL;
	*len = q->len[q->next++];
	q->taken = (uint16_t)(q->taken + *len);
	return bytes;
}

#endif
