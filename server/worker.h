/* server/worker.h - one thread of the data plane: sockets, sessions, branches, timers.
 *
 * Owner of everything it makes. Control and the other workers reach it by letter; packets and
 * datagrams of other workers come by ring.
 *
 * Thread: worker_post() and reading the counters from any; worker_start/join/destroy by control;
 *         all else, and server/worker_inner.h, on the worker's own thread.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "net/transport.h"
#include "net/udp.h"
#include "server/counter.h"
#include "server/directory.h"
#include "server/letter.h"

struct worker;
struct worker_team;

enum {
	WORKER_MAX_SOCKETS = 8,
	WORKER_VISIT_SLOTS = 8, /* powers of two of packets: the last is 64 and more */
	WORKER_LAG_SLOTS = 16,  /* powers of two of microseconds: the last is 16 ms and more */
};

/* Why a TCP connection was closed. */
enum worker_tcp_cause {
	WORKER_TCP_PEER,      /* by the peer */
	WORKER_TCP_ERROR,     /* reset, or nothing was acknowledged any more */
	WORKER_TCP_SESSION,   /* its session ended, or has newer addresses */
	WORKER_TCP_STRANGER,  /* its first packet was no Binding request of a session's */
	WORKER_TCP_REFUSED,   /* nobody serves that session, here or any more */
	WORKER_TCP_OVERSIZED, /* what it sent were no frames */
	WORKER_TCP_LATE,      /* no Binding request in time */
	WORKER_TCP_CROWDED,   /* half open, and newer ones needed its place */
	WORKER_TCP_LIMITED,   /* too many half open ones of its address */
	WORKER_TCP_FULL,      /* WORKER_TCP_MAX, or no memory */
	WORKER_TCP_IDLE,
	WORKER_TCP_STUCK, /* the peer does not read */
	WORKER_TCP_CAUSES,
};

/* Written by the worker, read by control. */
struct worker_counters {
	counter sessions, sessions_opened, viewers, branches, forwards, handshakes,
	    handshakes_waiting;
	counter packets_in, bytes_in;
	counter verdicts[TRANSPORT_VERDICTS];
	counter strangers_not_stun, strangers_unknown, strangers_bad_integrity, strangers_limited;
	counter handed_over, handed_over_drops; /* media packets to other workers' rings */
	counter forwarded, forwarded_drops;     /* datagrams to the worker that owns the session */
	counter wakeups_sent;
	counter rtp_malformed, rtp_unknown_type, rtp_unknown_source, rtp_unfed, rtcp_malformed,
	    red_malformed;
	counter codecs_settled; /* a publisher sent another codec than before, or the first */
	/* Plain RTP: packets that a full socket did not take; reports for an address not known. */
	counter plain_blocked_drops, plain_unaddressed;
	counter receive_batches;      /* reads of a socket that gave something */
	counter descriptors_unusable; /* dependency descriptors that tell nothing */
	counter track_swallowed, track_duplicate, track_too_old;
	counter publisher_nacks, publisher_plis, keyframes_received;
	counter publisher_feedbacks, arrivals_untold; /* transport-wide feedback */
	counter keyframes_asked, keyframes_folded, keyframes_suppressed, keyframes_held;
	counter nacks_received, resent_rtx, resent_plain, resend_refused, resend_gone,
	    resend_parked;
	counter fast_start_hits, fast_start_misses, fast_start_refused;
	counter passes, slices;
	/* Viewers that went to another encoding; whose video was paused; packets that they left out. */
	counter layer_switches, layer_pauses, layer_drops;
	/* Viewers whose link is looked after; feedback on it; packets sent to find out what it carries. */
	counter adaptive_viewers, feedback_received, feedback_unusable, probe_packets;
	counter passed_over; /* packets that left the history before a viewer got them */
	counter egress_datagrams, egress_messages, egress_bytes, egress_calls, egress_blocked;
	counter egress_gso_refused, egress_failed, egress_control_drops;
	counter egress_histogram[8];
	counter socket_kernel_drops, socket_oversized, socket_pool_drops, socket_datagrams;
	counter rcvbuf_bytes, sndbuf_bytes; /* the smallest of its sockets */
	counter tcp_connections, tcp_half_open, tcp_bytes;
	counter tcp_accepted, tcp_accept_failed, tcp_moved, tcp_closed[WORKER_TCP_CAUSES];
	counter tcp_packets_in, tcp_pool_drops;
	counter tcp_queue_drops, tcp_gone_drops; /* packets out: the peer is slow, or was gone */
	counter slabs_in_use, slabs_high, slabs_capacity, slabs_exhausted, slabs_relieved,
	    slabs_trimmed_bytes;
	counter visit_slots[WORKER_VISIT_SLOTS]; /* packets a viewer got in one pass, log2 */
	counter
	    hold_slots[WORKER_LAG_SLOTS];    /* how long frames waited for their rest, log2 of us */
	counter session_bytes, branch_bytes; /* memory they hold, slabs apart */
	counter lag_slots[WORKER_LAG_SLOTS]; /* how long a turn took, log2 of microseconds */
};

/* What all workers are given; lives as long as they. */
struct worker_shared {
	const struct config *config;
	struct directory *directory;
	unsigned workers;
	struct worker *team[STREAM_MAX_WORKERS];
	bool has_tcp; /* connections are served: those of `tcp`, tcp_count addresses to listen on */
	struct net_addr tcp[WORKER_MAX_SOCKETS];
	unsigned tcp_count;
	uint32_t tcp_connections; /* at most, on each worker */
	/* Control's mailbox and how to wake it. */
	struct mailbox *control;
	struct loop_waker *control_waker;
};

/** Bind the sockets and allocate; nothing runs yet. `index` is below shared->workers; the new
 *  worker enters shared->team.
 *  @param listen what to bind, count of them; ports are final
 *  @return 0 or a negative errno, with `error` saying which step */
int worker_create(struct worker **out, struct worker_shared *shared, unsigned index,
		  const struct net_addr *listen, unsigned count, char error[128]);

/** After all workers are created. @return 0 or a negative errno */
int worker_start(struct worker *w);
/** Wait for the thread to end: after LETTER_STOP. */
void worker_join(struct worker *w);
/** Puts slabs that lie in rings home. All workers must have been joined. NULL is allowed. */
void worker_drain_rings(struct worker *w);
void worker_destroy(struct worker *w);

/** Hand over a letter; the worker is woken if it slept. Any thread. */
void worker_post(struct worker *w, struct letter *letter);

/* One more in the slot of a value: up to 1, 2, 4, 8, ... */
static inline void worker_count_log2(counter *slots, unsigned count, uint64_t value)
{
	unsigned slot = 0;

	while (slot < count - 1 && value > UINT64_C(1) << slot)
		slot++;
	counter_add(&slots[slot], 1);
}

const struct worker_counters *worker_counters(const struct worker *w);
const char *worker_engine_name(const struct worker *w);
/** Metric label. */
const char *worker_tcp_cause_text(enum worker_tcp_cause cause);

#endif
