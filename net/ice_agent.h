/* net/ice_agent.h - the inside of an agent, for net/ice*.c alone.
 *
 *   ice.c       life of an agent, its clock, what comes out
 *   ice_recv.c  messages that come in
 *   ice_check.c pairs, the checks we send, nomination
 */
#ifndef NET_ICE_AGENT_H
#define NET_ICE_AGENT_H

#include "net/ice.h"
#include "net/stun.h"

enum {
	ICE_NONE = -1,
	ICE_MESSAGE_BYTES = 152, /* our longest: a request with both ufrags at 32 characters, 148 */
	ICE_MAX_SENDS = 7,       /* Rc, RFC 8489 6.2.1 */
	ICE_MAX_SENDS_LITE = 5,
	ICE_BETTER_WAIT_US = 200000, /* how long a preferred pair may still win */
};

enum ice_check {
	ICE_CHECK_NONE,
	ICE_CHECK_DUE,  /* a new transaction starts at next_us */
	ICE_CHECK_SENT, /* repeated, or given up, at next_us */
};

/* A remote address (lite), or a path we may use (controlling). */
struct ice_pair {
	struct net_path path;
	uint8_t transaction[STUN_TRANSACTION_BYTES];
	uint64_t heard_us; /* last authentic packet from there */
	uint64_t next_us;
	uint8_t check; /* enum ice_check */
	uint8_t sends; /* of this transaction */
	bool is_used : 1;
	bool is_validated : 1;
	bool is_unannounced : 1; /* validated, and the owner was not told yet */
	bool is_proven : 1;
	bool is_awaited : 1;    /* `transaction` is out */
	bool has_answered : 1;  /* full: a check succeeded under the present credentials */
	bool is_nominating : 1; /* controlling: its checks carry USE-CANDIDATE */
	/* The peer's did, before our own check succeeded: when it does, this is the path. */
	bool is_nominated : 1;
};

struct ice_keys {
	struct ice_credentials local, remote;
};

struct ice_agent {
	uint64_t now_us;
	uint64_t heard_us;
	uint64_t pace_us;     /* no check before */
	uint64_t nominate_us; /* controlling: choose then; UINT64_MAX = nothing to choose */
	uint64_t connect_limit_us;
	uint64_t tie_breaker;
	uint64_t draws; /* how often the seed was used */
	struct ice_pair pairs[ICE_MAX_PAIRS];
	struct net_path response_path, dropped_path;
	struct ice_keys keys, old_keys;
	uint32_t counts[ICE_VERDICTS];
	uint8_t seed[ICE_SEED_BYTES];
	uint8_t message[ICE_MESSAGE_BYTES];
	uint8_t response_bytes; /* waiting in `message`; 0 = none */
	int8_t selected;        /* index into pairs, or ICE_NONE */
	int8_t wanted;          /* lite: nominated, and asked before it is followed */
	bool is_lite;
	bool is_controlling;
	bool has_old_keys;
	bool has_heard;
	bool is_settled; /* nominated under the present credentials */
	bool is_over;
	bool is_selected_unannounced, is_dropped_unannounced, is_over_unannounced;
};
_Static_assert(sizeof(struct ice_agent) <= 1536, "one for each viewer");

/* now + span, where a clock at its end stands still. */
static inline uint64_t ice_later(uint64_t now_us, uint64_t span_us)
{
	return now_us > UINT64_MAX - span_us ? UINT64_MAX : now_us + span_us;
}

static inline struct ice_pair *ice_selected(struct ice_agent *a)
{
	return a->selected == ICE_NONE ? NULL : &a->pairs[a->selected];
}

/* ice_check.c */

/** The pair with this remote address and, for a full agent, this local one; or NULL. */
struct ice_pair *ice_pair_find(struct ice_agent *a, const struct net_path *path);
/** A place for `path`. Lite: takes that of the address unheard for longest. Full: NULL when full. */
struct ice_pair *ice_pair_claim(struct ice_agent *a, const struct net_path *path);
void ice_pair_validate(struct ice_pair *p);
/** Begin a transaction as soon as pacing allows. */
void ice_check_start(struct ice_agent *a, struct ice_pair *p);
void ice_check_stop(struct ice_pair *p);
/** Every pair anew (full agents): after a restart, a role switch, a nomination that failed. */
void ice_check_start_all(struct ice_agent *a);
/** Lite: a USE-CANDIDATE, or what stands for one, came over `path`. */
void ice_nominate_lite(struct ice_agent *a, struct ice_pair *p, const struct net_path *path);
/** Full: the peer's USE-CANDIDATE, while we are the controlled side. */
void ice_nominate_controlled(struct ice_agent *a, struct ice_pair *p);
/** An authentic success response to the pair's check. */
void ice_check_succeeded(struct ice_agent *a, struct ice_pair *p);
/** Controlling: nominate, if it is time. */
void ice_settle(struct ice_agent *a);
/** Build the next check that is due into a->message. @return its bytes, 0 when none is */
size_t ice_check_next(struct ice_agent *a, struct net_path *path);
/** When ice_check_next() or ice_settle() has work. */
uint64_t ice_check_deadline_us(const struct ice_agent *a);

/* ice_recv.c */

enum ice_verdict ice_receive(struct ice_agent *a, const struct net_path *path, const uint8_t *bytes,
			     size_t len);

#endif
