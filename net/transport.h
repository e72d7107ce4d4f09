/* net/transport.h - the association with one peer: ICE, DTLS and SRTP over one UDP flow.
 *
 * Source:  demultiplexing RFC 7983 and RFC 5761 section 4; keys RFC 5764; order of trust
 *          RFC 8445, RFC 8827 section 6.5.
 * Sans-IO: bytes, path and time go in; after every input poll until TRANSPORT_IDLE, then arm
 *          one timer. (DTLS reads the wall clock inside, see net/dtls.h.)
 * Thread:  one worker. Two exceptions: lifetime_close() from any thread, and
 *          transport_work_run() on a helper. No call locks or blocks.
 * Memory:  allocated at creation and when the handshake begins and ends; media allocates nothing.
 *
 * Order of trust: STUN with the right integrity makes an address known; DTLS and SRTP count only
 * from known addresses; SRTP keys exist only once the certificate matched the fingerprint.
 * Whatever fails on the way is dropped with a verdict, answered with silence, and ends nothing.
 */
#ifndef NET_TRANSPORT_H
#define NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"
#include "net/dtls.h"
#include "net/ice.h"
#include "net/lifetime.h"
#include "net/srtp.h"

enum {
	TRANSPORT_ICE_TIMEOUT_US = 10 * 1000 * 1000,  /* creation to the first valid check */
	TRANSPORT_DTLS_TIMEOUT_US = 10 * 1000 * 1000, /* first valid check to keys */
	TRANSPORT_NOMINATION_US = 500 * 1000, /* DTLS client: wait for USE-CANDIDATE, then begin */
};

/* Why a transport ended: the value of its lifetime word. Never reorder: shown by the API. */
enum transport_reason {
	TRANSPORT_OPEN = 0,
	TRANSPORT_CLOSED_BY_CLIENT,    /* DELETE */
	TRANSPORT_CLOSED_BY_ADMIN,     /* kicked */
	TRANSPORT_CLOSED_BY_PEER,      /* authenticated close_notify */
	TRANSPORT_CLOSED_REPLACED,     /* a newer publisher took the stream */
	TRANSPORT_CLOSED_STREAM_ENDED, /* the viewer's publisher is gone for good */
	TRANSPORT_CLOSED_CODEC, /* the stream goes on in a codec that the viewer has not agreed to */
	TRANSPORT_CLOSED_SHUTDOWN,    /* drain deadline */
	TRANSPORT_CLOSED_SILENT,      /* nothing authentic for 30 s */
	TRANSPORT_CLOSED_NO_ICE,      /* no valid check in time */
	TRANSPORT_CLOSED_NO_DTLS,     /* no complete handshake in time */
	TRANSPORT_CLOSED_FINGERPRINT, /* peer owns another certificate than it signalled */
	TRANSPORT_CLOSED_NO_PROFILE,  /* no SRTP profile in common */
	TRANSPORT_CLOSED_ALERT,       /* authenticated fatal alert */
	TRANSPORT_CLOSED_NO_MEDIA,    /* publisher sent nothing in time */
	TRANSPORT_CLOSED_NO_MEMORY,
	TRANSPORT_CLOSED_STUCK, /* over a connection: the peer does not read */
	TRANSPORT_REASONS
};
/** "closed by client", …; "unknown" outside the enum. */
const char *transport_reason_text(uint32_t reason);

/* The part that fan-out touches per packet; the rest is behind it. Read by the owner thread.
 *
 *	if (lifetime_is_closed(&t->life) || !t->tx) skip;
 *	seal from t->tx, send over t->path
 *
 * `tx` is NULL until the peer is authenticated and has shown that it reads what is sent to `path`;
 * then it stays the same until transport_destroy().
 * `path` is where media goes (all zero: nowhere just now); it changes only inside calls on this
 * transport, and
 * `path_serial` counts the changes, for callers that keep a sockaddr made from it. */
struct transport {
	struct lifetime life; /* 0 or an enum transport_reason */
	bool is_direct;       /* of net/direct.h: without ICE and DTLS */
	uint32_t path_serial;
	struct net_path path;
	struct seal_tx *tx;
	struct seal_rx *rx;
};

struct transport_config {
	enum ice_role ice_role;   /* ICE_LITE: serves plans; ICE_CONTROLLING: the client side */
	enum dtls_role dtls_role; /* DTLS_SERVER unless the peer's setup is passive */
	struct ice_credentials local, remote;
	struct dtls_fingerprint fingerprint; /* of the peer */
	struct dtls_identity *identity;      /* ours; a reference is taken */
	struct seal_engine *engine;          /* the worker's; outlives the transport */
	uint64_t tie_breaker;                /* ICE_CONTROLLING; random */
	uint8_t seed[ICE_SEED_BYTES];        /* transaction ids; random */
	bool keep_keys; /* for transport_kept_keys(): a measuring client's, never the relay's */
};

/** @return 0, -ENOMEM, or -EINVAL (a ufrag or password shorter or longer than ICE allows) */
int transport_create(struct transport **out, uint64_t now_us,
		     const struct transport_config *config);

/** Release everything now; while a helper works on it the object stays as a zombie, freed by
 *  transport_work_done(). Sends nothing: close and poll first for a close_notify. The caller may
 *  not use `t` again but to hand it to transport_work_done(). NULL is allowed. */
void transport_destroy(struct transport *t);

/* --- input ----------------------------------------------------------------------------- */

/* One counter each. The first three are success. */
enum transport_verdict {
	TRANSPORT_RTP,      /* opened in place: len and index are set */
	TRANSPORT_RTCP,     /* opened in place: len is set */
	TRANSPORT_CONSUMED, /* STUN or DTLS: poll */
	TRANSPORT_DROP_CLOSED,
	TRANSPORT_DROP_UNKNOWN_PROTOCOL, /* first byte is none of RFC 7983's that we serve */
	TRANSPORT_DROP_UNVALIDATED,      /* DTLS or SRTP from an address without a valid check */
	TRANSPORT_DROP_STUN_MALFORMED,
	TRANSPORT_DROP_STUN_CREDENTIALS, /* wrong ufrag or integrity */
	TRANSPORT_DROP_STUN_OTHER,       /* a response to nothing, an indication, an error … */
	TRANSPORT_DROP_DTLS_MALFORMED,
	TRANSPORT_DROP_DTLS_PLAIN_ALERT,
	TRANSPORT_DROP_DTLS_STRAY,
	TRANSPORT_DROP_DTLS_QUEUE_FULL, /* a step is running and eight datagrams wait */
	TRANSPORT_DROP_SRTP_EARLY,      /* no keys yet */
	TRANSPORT_DROP_SRTP_MALFORMED,
	TRANSPORT_DROP_SRTP_AUTH,
	TRANSPORT_DROP_SRTP_REPLAYED,
	TRANSPORT_DROP_SRTP_SSRCS,   /* more sources than the cap */
	TRANSPORT_DROP_WRONG_SOURCE, /* plain RTP from elsewhere than it is to come from */
	TRANSPORT_VERDICTS
};
/** Metric label: "rtp", "rtcp", "consumed", "closed", "unvalidated", … */
const char *transport_verdict_text(enum transport_verdict v);

/**
 * A datagram for this peer: its address is in the table under it, or it is a Binding request
 * whose ufrag is its own. Media is decrypted where it lies.
 *
 * @param bytes  *len of them, overwritten for RTP and RTCP (also when authentication fails)
 * @param index  set for TRANSPORT_RTP: rollover counter << 16 | sequence number
 * For RTP and RTCP the poll loop may be skipped: media never makes output, but for the first
 * packet (the handshake's memory is freed) and new addresses, both of which wait for the next
 * poll without harm.
 */
enum transport_verdict transport_on_datagram(struct transport *t, uint64_t now_us,
					     const struct net_path *path, uint8_t *bytes,
					     size_t *len, uint64_t *index);

/** The deadline of TRANSPORT_IDLE passed; early and repeated calls do no harm. */
void transport_on_timeout(struct transport *t, uint64_t now_us);

/** A lite agent's: the connection that was the only way to this address is gone. If media went there
 *  it goes to another validated address, or nowhere (path is all zero) until there is one. */
void transport_on_lost(struct transport *t, uint64_t now_us, const struct net_addr *remote);

/** ICE_CONTROLLING: a pair to check, most preferred first.
 *  @return 0, -ENOSPC (ICE_MAX_PAIRS) or -ENOTSUP (a lite agent) */
int transport_add_remote(struct transport *t, uint64_t now_us, const struct net_path *path);

/** ICE_CONTROLLING: our address may have changed, so ask the peer at once.
 *  @return 0 or -ENOTSUP (a lite agent) */
int transport_recheck(struct transport *t, uint64_t now_us);

/** New credentials (RFC 8445 section 9); the former work, and keys and path stay, until the first
 *  valid check under the new. @return 0 or -EINVAL (nothing changes) */
int transport_ice_restart(struct transport *t, uint64_t now_us, const struct ice_credentials *local,
			  const struct ice_credentials *remote);

/**
 * The key of what the peer sends, for an independent check of what arrives. The caller wipes it.
 *
 * @return 0; -EAGAIN before the handshake ended; -ENOTSUP without keep_keys
 */
int transport_kept_keys(const struct transport *t, struct seal_keys *rx);

/* --- output ---------------------------------------------------------------------------- */

enum transport_event {
	TRANSPORT_VALIDATED,   /* path: its remote address may be put into the address table */
	TRANSPORT_INVALIDATED, /* path: take it out again, a newer one needed its place */
	TRANSPORT_CONNECTED,   /* tx and path are set: media may flow (rx opens a moment earlier) */
	TRANSPORT_PATH_CHANGED, /* path: the new t->path */
	TRANSPORT_CLOSED,       /* reason; once, the last event; the lifetime is acknowledged */
};

struct transport_output {
	enum {
		TRANSPORT_IDLE, /* nothing more now: call transport_on_timeout() at deadline_us */
		TRANSPORT_TRANSMIT, /* send `len` bytes over `path` */
		TRANSPORT_NOTIFY,   /* event, with path or reason */
		TRANSPORT_WORK,     /* have a helper call transport_work_run(t); not asked again
				     * until transport_work_done() */
	} kind;
	struct net_path path; /* TRANSMIT; NOTIFY of VALIDATED, CONNECTED, PATH_CHANGED */
	const uint8_t *bytes; /* TRANSMIT; valid until the next call on this transport */
	size_t len;
	uint64_t deadline_us; /* IDLE; UINT64_MAX = never */
	enum transport_event event;
	enum transport_reason reason; /* of TRANSPORT_CLOSED */
};

/** After a close by whichever thread: at most one TRANSMIT (close_notify), then one NOTIFY of
 *  TRANSPORT_CLOSED (both wait for a running step), then IDLE for ever. */
void transport_poll(struct transport *t, uint64_t now_us, struct transport_output *out);

/** The handshake step, on any one thread (0.2 to 0.6 ms). Touches nothing but DTLS. */
void transport_work_run(struct transport *t);

/** On the owner's thread, after transport_work_run() returned; then poll.
 *  @return false: the transport had been destroyed meanwhile and is gone now; do not poll */
bool transport_work_done(struct transport *t, uint64_t now_us);

/** On the owner's thread, instead of both: the step that TRANSPORT_WORK asked for was not begun and
 *  will not be. Before transport_destroy() of a transport that still waits for a helper; if it
 *  lives on, poll asks again. */
void transport_work_cancel(struct transport *t);

/** Would have been TRANSMIT by poll: one close_notify for callers that cannot poll any more.
 *  @return its length, or 0 when there is nothing to close or a step is running */
size_t transport_close_notify(struct transport *t, uint8_t *out, size_t cap);

/* --- diagnosis ------------------------------------------------------------------------- */

enum transport_state {
	TRANSPORT_STATE_NEW,       /* no valid check yet */
	TRANSPORT_STATE_CHECKED,   /* address validated, DTLS not begun */
	TRANSPORT_STATE_HANDSHAKE, /* DTLS under way */
	TRANSPORT_STATE_CONNECTED,
	TRANSPORT_STATE_CLOSED,
};
const char *transport_state_text(enum transport_state s);

struct transport_status {
	enum transport_state state;
	enum transport_reason reason;
	enum seal_profile profile;  /* 0 until connected */
	struct dtls_status dtls;    /* zero until the handshake begins */
	struct net_addr peer;       /* where ICE would send; zero: nowhere yet */
	bool is_peer_proven;        /* ... and the peer has shown that it reads there */
	uint64_t checks;            /* Binding requests and responses with the right integrity */
	uint64_t bad_credentials;   /* STUN with a wrong ufrag or integrity */
	uint64_t last_authentic_us; /* 0: never */
	uint64_t connected_us;      /* when; 0: not yet */
	bool is_step_running;
	size_t bytes; /* memory held, DTLS and SRTP state included */
};
/** While a step runs, `dtls` is as it was before it. */
void transport_status(const struct transport *t, struct transport_status *out);

/* Objects alive in the process. */
struct transport_live {
	uint32_t transports; /* zombies included */
	uint32_t zombies;
};
void transport_live(struct transport_live *out);
/** net/direct.c: one more, or one less. */
void transport_count_direct(int change);

#endif
