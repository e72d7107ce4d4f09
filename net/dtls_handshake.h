/* net/dtls_handshake.h - the SSL object of one handshake: fed record by record, rebuilt when a
 * stray one broke it. Internal to net/dtls*.
 *
 * Thread: whoever owns the step; `waiting` alone stays with the worker (see net/dtls.c).
 */
#ifndef NET_DTLS_HANDSHAKE_H
#define NET_DTLS_HANDSHAKE_H

#include <openssl/ssl.h>

#include "net/dtls.h"
#include "net/dtls_closer.h"
#include "net/dtls_queue.h"
#include "net/dtls_record.h"

enum dtls_phase {
	DTLS_PHASE_HELLO,    /* server: no complete ClientHello yet; client: none sent */
	DTLS_PHASE_ANSWERED, /* our first flight is out, the peer's next is not begun */
	DTLS_PHASE_BEGUN,    /* records of the peer's next flight were taken */
	DTLS_PHASE_DONE,     /* handshake finished and the peer's certificate compared */
};

struct dtls_handshake {
	SSL *ssl; /* NULL before the first build and between tries */
	struct dtls_identity *identity;
	enum dtls_role role;
	const struct dtls_fingerprint *remote;

	enum dtls_phase phase;
	enum dtls_state state;
	enum dtls_failure failure;
	bool has_built;  /* further builds count as rebuilds */
	bool has_random; /* a ClientHello is under way, begun by this random */
	uint8_t hello_random[DTLS_RANDOM_BYTES];
	uint64_t rival_us; /* since when others than the answered one say hello; 0: none does */
	uint32_t clear_records; /* given to the library */

	uint64_t now_us;
	uint64_t timer_us;  /* retransmission, or the earliest rebuild */
	uint64_t window_us; /* rebuilds are counted over one second from here */
	uint32_t window_rebuilds;

	struct dtls_queue *in;      /* this step's */
	struct dtls_queue *waiting; /* the worker's, exchanged with `in` by dtls_submit() */
	struct dtls_queue queue[2];
	struct dtls_queue out;
	const uint8_t *reading; /* what the BIO hands out next */
	size_t reading_len;
	struct dtls_last_sent last_sent;

	struct seal_keys tx, rx;
	const char *error;
	uint32_t rebuilds, strays, mismatches;
	uint8_t alert; /* authenticated */
	bool has_alert, is_alert_fatal;
};

/** @return NULL: out of memory */
struct dtls_handshake *dtls_handshake_create(struct dtls_identity *id, enum dtls_role role,
					     const struct dtls_fingerprint *remote);
void dtls_handshake_destroy(struct dtls_handshake *h);
/** Take all of `in`, serve the timer, write to `out`. */
void dtls_handshake_run(struct dtls_handshake *h);
/** Number of SSL owners alive. */
uint32_t dtls_handshake_live(void);

#endif
