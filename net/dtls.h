/* net/dtls.h - one DTLS 1.2 handshake with a WebRTC peer, and the SRTP keys it agrees on.
 *
 * Source:  RFC 6347 (DTLS 1.2), RFC 5764 (use_srtp), RFC 7714 section 12 (GCM profiles),
 *          RFC 8122 (certificate fingerprints), RFC 5288 and RFC 7905 (record protection).
 * Sans-IO: datagrams and time are arguments. The one exception is inside the library that does
 *          the handshake: it reads the wall clock for its retransmission timer and its own
 *          random source.
 * Thread:  a handshake belongs to one worker, which may lend it to a helper for one step:
 *          dtls_submit() (owner), dtls_work() (any one thread), dtls_complete() (owner). Between
 *          submit and complete the owner may call dtls_on_datagram() and nothing else.
 *          An identity may be referenced and used by any thread.
 * Memory:  about 95 KB while a handshake is open (76 of them the library's; a stranger's forged
 *          fragments may double it), 58 KB when it ended, 0.5 KB once dtls_release() ran.
 */
#ifndef NET_DTLS_H
#define NET_DTLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/srtp.h"

struct dtls;
struct dtls_identity;

enum {
	DTLS_MTU_BYTES = 1200,        /* largest datagram we send */
	DTLS_DATAGRAM_BYTES = 1500,   /* largest one we take; longer ones are dropped */
	DTLS_QUEUE_PKTS = 8,          /* waiting for a step, 6 KB at most; more are dropped */
	DTLS_FINGERPRINT_BYTES = 96,  /* "AB:CD:…" of SHA-256 with its terminator */
	DTLS_CLOSE_NOTIFY_BYTES = 48, /* most that dtls_close_notify() writes */
	DTLS_REBUILDS_PER_S = 5,      /* new tries after a stray datagram broke one */
	DTLS_IDENTITY_DAYS = 30,      /* life of a certificate */
};

/* --- our certificate ------------------------------------------------------------------- */

/** A new P-256 key and self-signed certificate, valid DTLS_IDENTITY_DAYS; one reference.
 *  Takes about 0.2 ms. Handshakes keep the identity they began with.
 *  @return 0 or -ENOMEM (the library failed) */
int dtls_identity_create(struct dtls_identity **out);
/** Agree on this SRTP profile only, instead of on any we know. Before the first handshake.
 *  @return 0 or -EINVAL: the profile is unknown */
int dtls_identity_limit(struct dtls_identity *id, enum seal_profile profile);
struct dtls_identity *dtls_identity_ref(struct dtls_identity *id);
/** NULL is allowed. */
void dtls_identity_unref(struct dtls_identity *id);
/** SHA-256 of the certificate as upper-case "AB:CD:…", for "a=fingerprint:sha-256 …".
 *  Valid as long as the reference. */
const char *dtls_identity_fingerprint(const struct dtls_identity *id);

/* --- the peer's certificate ------------------------------------------------------------ */

enum dtls_hash { DTLS_SHA_256, DTLS_SHA_384, DTLS_SHA_512 };

struct dtls_fingerprint {
	enum dtls_hash hash;
	uint8_t digest[64]; /* 32, 48 or 64 bytes of it used */
};

/** Parse the two words of an a=fingerprint line; case does not matter (RFC 8122 section 5).
 *  @return 0, -ENOTSUP (a hash that is not accepted: sha-1, md5, …) or -EINVAL */
int dtls_fingerprint_parse(struct dtls_fingerprint *out, const char *hash, const char *hex);

/* --- a handshake ----------------------------------------------------------------------- */

enum dtls_role { DTLS_SERVER, DTLS_CLIENT };

enum dtls_state {
	DTLS_HANDSHAKE, /* under way; also while a broken try waits for its rebuild */
	DTLS_CONNECTED, /* peer proved its certificate: keys may be read */
	DTLS_CLOSED,    /* the peer's close_notify came, authenticated */
	DTLS_FAILED,    /* final: dtls_failure() says why */
};

enum dtls_failure {
	DTLS_FAILURE_NONE,
	DTLS_FAILURE_FINGERPRINT, /* handshake complete, but with another certificate */
	DTLS_FAILURE_PROFILE,     /* complete, but no SRTP profile in common */
	DTLS_FAILURE_ALERT,       /* an authenticated fatal alert */
};

/* What a datagram was worth. */
enum dtls_verdict {
	DTLS_QUEUED,
	DTLS_MALFORMED,   /* no complete record of a version we speak, or too long */
	DTLS_PLAIN_ALERT, /* unauthenticated alert: noted for diagnosis, never obeyed */
	DTLS_STRAY,       /* well formed, but it cannot belong to this handshake now */
	DTLS_QUEUE_FULL,
	DTLS_VERDICTS
};

/** Takes a reference on `id`. A client speaks first: it wants a step at once.
 *  @return 0 or -ENOMEM */
int dtls_create(struct dtls **out, struct dtls_identity *id, enum dtls_role role,
		const struct dtls_fingerprint *remote);
/** Not between submit and complete. NULL is allowed. */
void dtls_destroy(struct dtls *d);

/** Copies what may be useful. Records that no honest peer would send now are cut out here, so
 *  that they never reach the handshake. After dtls_release() a datagram is judged at once. */
enum dtls_verdict dtls_on_datagram(struct dtls *d, const uint8_t *bytes, size_t len);

/** Does dtls_step() have something to do at `now_us`? Not between submit and complete. */
bool dtls_wants_step(const struct dtls *d, uint64_t now_us);
/** Would that step do public key arithmetic (0.2 to 0.6 ms), so that a helper should? */
bool dtls_is_step_heavy(const struct dtls *d);
/** Absolute time at which dtls_wants_step() turns true by itself; UINT64_MAX: never. */
uint64_t dtls_deadline_us(const struct dtls *d);

void dtls_submit(struct dtls *d, uint64_t now_us);
void dtls_work(struct dtls *d);
void dtls_complete(struct dtls *d);
/** Instead of dtls_work() and dtls_complete(): the step is not taken, its datagrams wait on. */
void dtls_cancel(struct dtls *d);
/** The three in one, on the owner's thread. */
void dtls_step(struct dtls *d, uint64_t now_us);

/** Next datagram to send, at most DTLS_MTU_BYTES, valid until the next call; NULL: none. */
const uint8_t *dtls_next_datagram(struct dtls *d, size_t *len);

enum dtls_state dtls_state(const struct dtls *d);
enum dtls_failure dtls_failure(const struct dtls *d);

/** Keys of both directions, until dtls_release().
 *  @return 0 or -EAGAIN (not DTLS_CONNECTED, or released: nothing is written) */
int dtls_keys(const struct dtls *d, struct seal_keys *tx, struct seal_keys *rx);

/** The peer has all of our last flight (it sent something under the keys): free the handshake,
 *  keep what reads and writes one close_notify. No effect unless DTLS_CONNECTED or _CLOSED. */
void dtls_release(struct dtls *d);

/** Write one close_notify record, releasing the handshake; each call uses a new number.
 *  @return its length, or 0 when there was no handshake to close or `cap` is too small */
size_t dtls_close_notify(struct dtls *d, uint8_t *out, size_t cap);

/* --- diagnosis ------------------------------------------------------------------------- */

/* How far a try has come; a server's words in brackets a client's. */
enum dtls_progress {
	DTLS_PROGRESS_NONE,     /* no complete ClientHello yet (none sent) */
	DTLS_PROGRESS_ANSWERED, /* our first flight is out, the peer's next is not begun */
	DTLS_PROGRESS_BEGUN,    /* a part of the peer's next flight came */
	DTLS_PROGRESS_DONE,     /* the handshake finished */
};

struct dtls_status {
	const char *cipher; /* "" until connected; static text */
	uint8_t alert;      /* description of the last alert received, 0 also for none */
	bool has_alert;
	bool is_alert_authentic; /* false: anyone on the path may have written it */
	enum dtls_progress progress;
	const char *error; /* what broke the last try, in the library's words; "": none */
	uint32_t rebuilds;
	uint32_t strays; /* records that were well formed but out of place */
	uint32_t fingerprint_mismatches;
	bool is_released;
	size_t bytes; /* estimate of memory held, the library's share included */
};
void dtls_status(const struct dtls *d, struct dtls_status *out);
/** "handshake_failure" for 40, as RFC 8446 section 6 names them; "unknown" otherwise. */
const char *dtls_alert_text(uint8_t description);

/* Objects alive in the process; equal to zero when all sessions are gone. */
struct dtls_live {
	uint32_t handshakes;  /* struct dtls */
	uint32_t ssl_objects; /* of them not yet released */
	uint32_t identities;
};
void dtls_live(struct dtls_live *out);

#endif
