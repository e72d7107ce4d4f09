/* server/worker_tcp.h - a worker's connections: accepted, introduced by their first packet, given to
 * the session it names, closed when it is time.
 *
 * The first packet of a connection has to be a Binding request that the session's password signed
 * (as the first datagram of an unknown address has to be); until then the connection is half open:
 * few of them are kept, and none for long. If another worker serves the session, the connection
 * moves there as a whole, by letter. From then on its packets are the session's as datagrams are,
 * and net_path says over which connection they came.
 *
 * Thread: the worker's, but for create and destroy.
 * Memory: what net/tcp.h says for each connection, and a little for the worker.
 */
#ifndef SERVER_WORKER_TCP_H
#define SERVER_WORKER_TCP_H

#include "net/tcp.h"
#include "server/worker_inner.h"

enum {
	WORKER_TCP_MAX = 32767,      /* connections of a worker: half of the numbers there are */
	WORKER_TCP_HALF_OPEN = 1024, /* of them without a session: a newer one ends the oldest */
	WORKER_TCP_HALF_OPEN_US = 10000000, /* from accept to a valid Binding request */
	WORKER_TCP_IDLE_US = 60000000,      /* without a packet from the peer */
	WORKER_TCP_STUCK_US = 10000000,     /* the peer takes nothing of what waits for it */
};

/** With shared->has_tcp: listen on shared->tcp. @return 0 or a negative errno */
int worker_tcp_create(struct worker *w);
/** Closes what is left, telling nobody. Before the loop goes. */
void worker_tcp_destroy(struct worker *w);

/** Whose egress leads to connections; NULL: this relay has no TCP port. */
struct worker_socket *worker_tcp_socket(struct worker *w);

/** A connection that was accepted: takes it over. */
void worker_tcp_on_accepted(struct worker *w, struct tcp_connection *c);

/** One that another worker introduced to a session here: takes it over. */
void worker_tcp_on_moved(struct worker *w, struct tcp_connection *c, struct session_ref owner);

/** The session needs it no more: it ends after what was appended so far has left. */
void worker_tcp_release(struct worker *w, uint16_t connection, struct session_ref owner);

/** End what has to end, telling sessions of it: after each flush of a turn.
 *  @return true: a session was told and may have something to send */
bool worker_tcp_bury(struct worker *w);

#endif
