/* server/session.h - one peer as its worker serves it: transport, addresses, timer, and the role.
 *
 * Thread: the worker's.
 */
#ifndef SERVER_SESSION_H
#define SERVER_SESSION_H

#include "net/transport.h"
#include "server/plan.h"
#include "server/worker_inner.h"

enum { SESSION_MAX_ADDRS = 8 };

struct publisher;
struct viewer;

struct session_addr {
	struct net_addr addr;
	uint8_t worker; /* whose table has it; a foreign one forwards to us */
};

struct session {
	struct worker *worker;
	uint32_t slot, generation;
	struct plan *plan;
	struct letter *end_letter; /* reserved: an end is always told */
	struct transport *transport;
	struct plain_io *plain;       /* NULL: over the worker's own sockets */
	struct worker_socket *socket; /* for the transport's path */
	uint32_t path_serial;         /* of the path that `socket` was chosen for */
	struct ticker_item timer;
	uint64_t transport_due_us, role_due_us;
	struct session_addr addrs[SESSION_MAX_ADDRS];
	uint8_t addr_count;
	bool is_work_wanted, is_work_running;
	size_t bytes; /* as last measured, in the worker's sum */
	struct session *next_work;
	struct publisher *publisher; /* one of these two, once connected */
	struct viewer *viewer;
};

static inline struct session_ref session_ref_of(const struct session *s)
{
	return (struct session_ref){ (uint8_t)s->worker->index, s->slot, s->generation };
}

/** Claim a plan: the session's place is reserved first, so that the claim can name it.
 *  @return NULL: somebody else was quicker, the plan is gone, or memory ran out */
struct session *session_claim(struct worker *w, struct plan *plan);

/** A datagram for this session; takes over the slab. */
void session_on_datagram(struct session *s, const struct net_path *path, struct slab *slab);

/** The same: authentic STUN from an address that this worker's table does not give to the session,
 *  or gives to another one. The session may be gone after. */
void session_meet_again(struct session *s, const struct net_path *path, struct slab *slab);

/** The same, handed over by another worker. */
void session_on_forwarded(struct session *s, const struct net_path *path, struct slab *slab,
			  unsigned from);

/** A datagram on a port of its own; takes over the slab. The session may be gone after. */
void session_on_plain(struct session *s, struct direct_port port, const struct net_path *path,
		      struct slab *slab);

/** Its publisher has got the feed: what was held until then goes on. */
void session_on_feed(struct session *s);

/** Seal an RTCP packet in place and send it to where the tracks of `kinds` (1u << enum media_kind) go.
 *  @param cap bytes there are: SEAL_RTCP_MAX_EXTRA_BYTES more than len */
void session_send_rtcp(struct session *s, unsigned kinds, uint8_t *bytes, size_t len, size_t cap);

void session_restart(struct session *s, const struct ice_credentials *local,
		     const struct ice_credentials *remote);

/** Close for `reason` if it is open, and take it down. The session is gone after. */
void session_end(struct session *s, enum transport_reason reason);

/** The connection to this address is gone. The session may be gone after. */
void session_on_lost(struct session *s, const struct net_addr *addr);

/** The peer takes nothing from this connection any more. The session may be gone after. */
void session_on_stuck(struct session *s, const struct net_addr *addr);

/** Where its media goes; follows path changes. NULL while there is no socket for it. */
struct worker_socket *session_socket(struct session *s);

/** The role wants publisher_on_due() or viewer_on_due() at due_us; UINT64_MAX: not at all. */
void session_arm_role(struct session *s, uint64_t due_us);

/** Bring the worker's sum of memory up to date with what this session holds now. */
void session_measure(struct session *s);

/** Start a handshake step that waits for its turn. */
void session_start_waiting_work(struct worker *w);

#endif
