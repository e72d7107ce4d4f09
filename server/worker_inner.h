/* server/worker_inner.h - a worker as its own parts see it: session, publisher, branch, viewer.
 *
 * Thread: the worker's. Nothing outside server/worker*, session, publisher, branch, pass and
 *         viewer includes this.
 */
#ifndef SERVER_WORKER_INNER_H
#define SERVER_WORKER_INNER_H

#include <pthread.h>

#include "net/egress.h"
#include "net/loop.h"
#include "net/srtp.h"
#include "net/ticker.h"
#include "net/udp.h"
#include "pool/ring.h"
#include "pool/slab.h"
#include "server/addrtable.h"
#include "server/strangers.h"
#include "server/worker.h"

struct branch;
struct plain_io;
struct session;
struct worker_tcp;

struct worker_socket {
	struct worker *worker;
	struct udp_socket *udp; /* NULL: the egress leads to TCP connections */
	struct egress *egress;
	struct loop_watch *watch;
	bool is_blocked; /* the kernel's buffer is full: nothing more until it is writable */
};

struct session_slot {
	struct session *session; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

struct branch_slot {
	struct branch *branch; /* NULL: none */
	uint32_t generation;
};

struct worker {
	struct worker_shared *shared;
	unsigned index;
	pthread_t thread;
	bool is_started, is_stopping, is_stopped;
	uint64_t now_us;        /* read once a callback */
	uint64_t turn_began_us; /* 0 between turns */

	struct loop *loop;
	struct loop_timer *timer;
	struct loop_waker *waker;
	struct mailbox mailbox;
	struct ticker ticker;
	uint64_t timer_due_us; /* what the loop timer is armed for */
	struct ticker_item housekeeping;
	struct ticker_item starved; /* a socket for which the kernel had no buffers */
	uint64_t trimmed_us;        /* when the pool was, last */
	unsigned quiet_rounds;      /* housekeeping rounds without a session */

	struct slab_pool *pool;
	uint64_t relieved_us; /* when histories were last cut short for its sake */
	struct seal_engine *engine;
	struct worker_socket sockets[WORKER_MAX_SOCKETS];
	unsigned socket_count;
	struct worker_tcp *tcp;          /* NULL: no TCP port */
	struct plain_io *plains;         /* sessions with ports of their own */
	struct udp_stats plain_received; /* by those of ended sessions */
	struct egress_stats plain_sent;
	struct addrtable *addrs;
	uint32_t forward_count; /* entries of it that name other workers */
	struct strangers *strangers;

	/* From worker i to this one; [index] itself stays NULL. */
	struct ring *media_in[STREAM_MAX_WORKERS];
	struct ring *datagrams_in[STREAM_MAX_WORKERS];
	uint64_t to_wake; /* workers whose rings got something this turn */

	struct session_slot *sessions;
	uint32_t session_cap, session_free, session_count;
	struct session *want_work; /* handshake steps beyond the limit, in order */
	struct session **want_work_tail;
	unsigned works_running;

	struct branch_slot *branches; /* by stream slot */
	uint32_t branch_cap;
	struct branch *ready; /* branches with a pass to run, in order */
	struct branch **ready_tail;
	struct pass_batch *batch;

	struct worker_counters counters;
	struct letter stopped_letter; /* the last one: it needs no memory */
};

/* The object that `member` is part of. */
#define container_of(pointer, type, member)                                                        \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* A datagram on its way to the worker that owns the session: in the slab's meta. */
struct forwarded {
	struct net_path path;
	uint32_t slot, generation;
	uint8_t from;
};
_Static_assert(sizeof(struct forwarded) <= SLAB_META_BYTES, "a forwarded datagram fits its slab");

/** The egress whose socket owns this local address. */
struct worker_socket *worker_socket_for(struct worker *w, const struct net_path *path);

/** Send one datagram that is not media. Dropped and counted when everything is full. */
void worker_send(struct worker *w, const struct net_path *path, const uint8_t *bytes, size_t len,
		 uint32_t owner);

/** The same over a socket, which may be NULL: dropped. */
void worker_send_over(struct worker *w, struct worker_socket *s, const struct net_path *path,
		      const uint8_t *bytes, size_t len, uint32_t owner);

/** Send what a socket's egress holds. @return false: blocked, it goes on by itself */
bool worker_flush(struct worker *w, struct worker_socket *s);

/** NULL when there is no such session (any more). */
struct session *worker_session(struct worker *w, struct session_ref ref);

/** A letter for control. */
void worker_tell_control(struct worker *w, struct letter *letter);

/** Something for that worker lies in a ring: wake it at the end of this turn. */
static inline void worker_wake_later(struct worker *w, unsigned other)
{
	w->to_wake |= UINT64_C(1) << other;
}

/** Every callback of the loop begins with it: reads the clock. */
void worker_begin(struct worker *w);

void worker_read_letters(struct worker *w);
/** Letters that came after the thread had ended. */
void worker_discard_letters(struct worker *w);
void worker_tell_stopped(struct worker *w);

/** Who vouches for STUN from an address without a session: the plan of its ufrag, if the plan's
 *  password signed it. Else NULL, counted, and charged to the address.
 *  @return with a reference for the caller */
struct plan *worker_vouch(struct worker *w, const struct net_addr *from, const uint8_t *bytes,
			  size_t len);

/** A STUN request from an address without a session, or (refused_by: its packed session_ref) one
 *  that the address's session does not accept; takes over the slab. */
void worker_on_stranger(struct worker *w, const struct net_path *path, struct slab *slab,
			uint64_t refused_by);

/** Enter an address, of a session here or of one elsewhere. @return false without memory */
bool worker_know_address(struct worker *w, const struct net_addr *addr, struct session_ref owner);
void worker_drop_address(struct worker *w, const struct net_addr *addr, struct session_ref owner);

/** Another worker forwards `addr` to a session that is gone: have it stop. */
void worker_forget(struct worker *w, unsigned other, const struct net_addr *addr,
		   struct session_ref owner);

/** Copy what sockets and pool count to where control reads it. */
void worker_publish(struct worker *w);

void worker_add_received(struct udp_stats *sum, const struct udp_stats *u);
void worker_add_sent(struct egress_stats *sum, const struct egress_stats *e);

/** Once a turn: when slabs run short, histories let go of their oldest packets. */
void worker_relieve_pool(struct worker *w);

/** Of the housekeeping item. */
void worker_on_housekeeping(struct ticker_item *item, uint64_t now_us);

/** There is a session: trim and publish once a second while that is so. */
void worker_keep_house(struct worker *w);

/** Put the branch on the list of those with a pass to run. */
void worker_branch_ready(struct worker *w, struct branch *b);

/** The branch of a stream here, NULL if there is none. */
struct branch *worker_branch(struct worker *w, uint32_t slot, uint32_t generation);

#endif
