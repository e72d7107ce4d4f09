/* net/ice.h - one ICE agent: the lite side of a session, or the controlling client.
 *
 * Source:  RFC 8445; consent RFC 7675; STUN RFC 8489.
 * Sans-IO: bytes, paths and time come in as arguments; bytes and events go out through
 *          ice_agent_poll(). After every input call, poll until ICE_IDLE, then arm one timer.
 * Thread:  one owner.
 * Memory:  one allocation, in ice_agent_create(); none after it.
 *
 * Lite (the relay). Answers Binding requests that carry USERNAME "local:remote" and a right
 * MESSAGE-INTEGRITY, and nothing else: every other datagram meets silence and a counter. A
 * request so answered validates its source address. The selected path follows the latest
 * USE-CANDIDATE:
 *   - the first nomination, and a new port on the selected IP, are followed at once;
 *   - a new IP is first sent a Binding request of our own, signed with the peer's password, and is
 *     followed when the success response comes from that very address. Otherwise a peer could
 *     point its stream at somebody else's address;
 *   - the first selected IP is asked too, at once but in parallel: until it answered,
 *     ice_agent_is_proven() is false, and no media may go there;
 *   - an address behind a connection (net_addr.connection) is proven by being validated: its
 *     handshake went there and back, so that it is followed at once and never asked; but a host whose
 *     datagrams have come within ICE_FRESH_US, and whose address is proven, keeps that: who nominates
 *     all pairs that work would end on the slowest. Left for a connection before they were proven,
 *     datagrams are returned to when their address answers;
 *   - peers exist that never nominate again (their NAT forgets them, their consent checks carry no
 *     USE-CANDIDATE): once the selected address was silent for ICE_STALE_US, a plain request from
 *     another one counts as a nomination.
 *
 * Controlling (the load generator). Checks the pairs it was given in order of preference, paced by
 * ICE_PACING_US, and uses regular nomination: the first checks are plain, and the best pair that
 * answered is checked again with USE-CANDIDATE. A lite peer follows the *latest* USE-CANDIDATE, so
 * that aggressive nomination of several pairs would leave the two sides on different ones; the
 * round trip this costs is hidden, since DTLS may start on ICE_EVENT_VALIDATED. Consent checks
 * follow every 4 to 6 s, with USE-CANDIDATE, so that the peer follows us through a NAT rebinding.
 * It answers valid requests as well (the peer may be a full agent) and resolves role conflicts.
 *
 * Life. Lite: 30 s without an authenticated packet from a validated address end the session.
 * Controlling: consent is given by success responses alone (RFC 7675 section 5.1), 30 s as well.
 */
#ifndef NET_ICE_H
#define NET_ICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"

enum {
	ICE_MAX_PAIRS = 8, /* remote addresses (lite) or candidate pairs (controlling) */
	ICE_UFRAG_MAX_BYTES = 32,
	ICE_PWD_MAX_BYTES = 64,
	ICE_SEED_BYTES = 32,
	ICE_EXPIRY_US = 30000000,     /* RFC 7675 5.1: consent expires after 30 s */
	ICE_STALE_US = 8000000,       /* longer than any consent interval (6 s) */
	ICE_FRESH_US = 1000000,       /* heard so lately: no reason to leave it for a connection */
	ICE_PACING_US = 50000,        /* Ta, RFC 8445 14.2 */
	ICE_RTO_US = 500000,          /* RFC 8445 14.3; doubled for each copy, but only to: */
	ICE_RTO_MAX_US = 1000000,     /* plain doubling leaves gaps of 16 s in 30 s of life */
	ICE_CONSENT_MIN_US = 4000000, /* RFC 7675 5.1: 5 s times 0.8 ... */
	ICE_CONSENT_MAX_US = 6000000, /* ... to 1.2 */
	ICE_MAX_RESPONSE_GROWTH_BYTES =
	    12, /* a response is never larger than its request by more */
};

struct ice_credentials {
	char ufrag[ICE_UFRAG_MAX_BYTES + 1]; /* terminated, 4 to 32 characters */
	char pwd[ICE_PWD_MAX_BYTES + 1];     /* terminated, 22 to 64 characters */
};

enum ice_role { ICE_LITE, ICE_CONTROLLING };

struct ice_config {
	enum ice_role role;
	struct ice_credentials local, remote;
	uint64_t tie_breaker;
	/* Transaction ids and jitter are a keyed function of it (HMAC-SHA1): random bytes from a
	 * strong source in production, anything fixed in a test. */
	uint8_t seed[ICE_SEED_BYTES];
	/* ICE_EVENT_EXPIRED if nothing valid came this long after creation; 0 = no limit, the
	 * owner keeps one. */
	uint64_t connect_limit_us;
};

struct ice_agent;

enum ice_verdict {
	ICE_ACCEPTED,   /* request answered, or response that was waited for */
	ICE_INDICATION, /* a keep-alive; no answer, and it keeps nothing alive */
	ICE_MALFORMED,
	ICE_BAD_FINGERPRINT,
	ICE_UNEXPECTED_METHOD, /* well-formed, but not Binding */
	ICE_UNKNOWN_USER,      /* no USERNAME, or either half is not ours */
	ICE_NO_INTEGRITY,
	ICE_BAD_INTEGRITY,
	ICE_UNKNOWN_ATTRIBUTE, /* authentic request, answered 420; or a response with one, dropped */
	ICE_ROLE_CONFLICT,     /* answered 487, or a 487 that switched our role */
	ICE_UNMATCHED,         /* response to no check of ours, or to an old one */
	ICE_WRONG_SOURCE,      /* response from another address than the one we asked */
	ICE_ERROR_RESPONSE,    /* authentic error response other than a role conflict */
	ICE_OVER,              /* the agent has expired */
	ICE_VERDICTS,
};

enum ice_event {
	ICE_EVENT_VALIDATED, /* path: this address may be listened to */
	ICE_EVENT_SELECTED,  /* path: send here from now on; once more after a restart */
	ICE_EVENT_DROPPED,   /* path: no longer validated, a newer address needed its place */
	ICE_EVENT_EXPIRED,   /* the last event; the agent answers nothing any more */
};

struct ice_output {
	enum { ICE_IDLE, ICE_TRANSMIT, ICE_NOTIFY } kind;
	union {
		uint64_t
		    deadline_us; /* ICE_IDLE: call ice_agent_on_timeout() then; UINT64_MAX = never */
		struct {
			struct net_path path;
			const uint8_t *bytes; /* valid until the next call on this agent */
			size_t len;
		} transmit;
		struct {
			enum ice_event event;
			struct net_path path; /* zero for ICE_EVENT_EXPIRED */
		} notify;
	};
};

/** @return 0, -ENOMEM, or -EINVAL (a ufrag or password shorter or longer than its limits) */
int ice_agent_create(struct ice_agent **out, uint64_t now_us, const struct ice_config *config);

/** Wipes the credentials. NULL is allowed. */
void ice_agent_destroy(struct ice_agent *a);

/**
 * Controlling: a pair to check, most preferred first. An all-zero local address stands for
 * whatever the kernel chooses.
 *
 * @return 0 (also when the pair is known), -ENOSPC (ICE_MAX_PAIRS), -ENOTSUP (lite agent)
 */
int ice_agent_add_remote(struct ice_agent *a, uint64_t now_us, const struct net_path *path);

/** A datagram that stun_is_message() let through, from any address. */
enum ice_verdict ice_agent_on_stun(struct ice_agent *a, uint64_t now_us,
				   const struct net_path *path, const uint8_t *bytes, size_t len);

/** Controlling: check the selected path now and not when its consent is due; before one is selected
 *  nothing changes. @return 0 or -ENOTSUP (a lite agent) */
int ice_agent_recheck(struct ice_agent *a, uint64_t now_us);

/** An SRTP or SRTCP packet that opened. Keeps a lite agent alive if its source is validated. */
void ice_agent_on_authenticated(struct ice_agent *a, uint64_t now_us, const struct net_path *path);

/** The caller's own proof that the peer reads what is sent to this address: a DTLS handshake that
 *  ended, all of whose flights went there. Ignored for an address that is not validated. */
void ice_agent_on_proven(struct ice_agent *a, const struct net_addr *remote);

/** Lite: the connection that was the only way to this address is gone, and so is what was known of
 *  it. A validated address that is left becomes ice_agent_path(), unselected. */
void ice_agent_on_lost(struct ice_agent *a, uint64_t now_us, const struct net_addr *remote);

void ice_agent_on_timeout(struct ice_agent *a, uint64_t now_us);

/**
 * New credentials of both sides (RFC 8445 section 9). The former ones keep working until the first
 * valid message under the new; validated addresses and the selected path stay until replaced.
 *
 * @return 0 or -EINVAL (as ice_agent_create(); nothing changes)
 */
int ice_agent_restart(struct ice_agent *a, uint64_t now_us, const struct ice_credentials *local,
		      const struct ice_credentials *remote);

/** What to do next. Call until ICE_IDLE after every input. */
struct ice_output ice_agent_poll(struct ice_agent *a);

bool ice_agent_is_validated(const struct ice_agent *a, const struct net_addr *remote);

/** Where to send: the selected path, else the validated one heard last, else NULL. Valid until the
 *  next call on this agent. */
const struct net_path *ice_agent_path(const struct ice_agent *a);

/** Has the peer shown that it reads what is sent to ice_agent_path()? Media waits for this. */
bool ice_agent_is_proven(const struct ice_agent *a);

/** Is a path nominated by the peer (lite) or by us (controlling)? */
bool ice_agent_is_selected(const struct ice_agent *a);

/** When the last packet that counts for life came; creation time before the first. */
uint64_t ice_agent_heard_us(const struct ice_agent *a);

/** Datagrams by verdict since creation; wraps. */
uint32_t ice_agent_count(const struct ice_agent *a, enum ice_verdict verdict);

/** Stable snake_case word for metrics and logs. */
const char *ice_verdict_name(enum ice_verdict verdict);

/** Bytes that one agent holds. */
size_t ice_agent_bytes(void);

#endif
