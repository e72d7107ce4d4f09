/* server/plain.h - sessions over plain RTP: their ports, opened by control, served by one worker.
 *
 * Control opens the ports and puts them into the plan; the worker that claims the plan takes them over
 * and feeds what arrives to the session, whose transport is direct (net/direct.h).
 *
 * Thread: plain_setup_* control's until the plan is posted, then the worker's; the rest the worker's.
 * Memory: a setup belongs to its plan; the sockets to the setup until plain_open() took them.
 */
#ifndef SERVER_PLAIN_H
#define SERVER_PLAIN_H

#include "config/config.h"
#include "media/plain.h"
#include "net/direct.h"
#include "net/udp.h"

struct session;
struct slab;
struct worker;
struct worker_socket;

/* The sockets of one leg; rtcp is NULL where RTP's serves both. */
struct plain_ports {
	struct udp_socket *rtp, *rtcp;
};

struct plain_setup {
	bool sends;
	struct plain_terms terms; /* with the ports as they are bound, once opened */
	struct direct_leg_config legs[DIRECT_LEGS];
	struct plain_ports ports[DIRECT_LEGS];
	struct net_addr bind; /* port 0 */
};

/**
 * Bind the ports of all legs within the configured range. A leg whose terms name a port of the range
 * gets that one, others any free pair.
 *
 * @param next where to look for free ones first; moves on
 * @return 0, -EADDRINUSE (a named port is taken; *port tells which), -ENOSPC (no pair is free), or
 *         what udp_open() says
 */
int plain_setup_open(struct plain_setup *setup, const struct config *config, uint16_t *next,
		     uint16_t *port);
/** A copy on the heap, which takes over the ports. @return NULL without memory */
struct plain_setup *plain_setup_create(const struct plain_setup *from);
/** How many of them are alive. */
uint32_t plain_setup_live(void);
/** Closes the ports that are still here. */
void plain_setup_close(struct plain_setup *setup);
/** The same, and frees it. NULL is allowed. */
void plain_setup_destroy(struct plain_setup *setup);

struct plain_io;

/** Take over the plan's sockets and make the session's transport. @return 0 or a negative errno */
int plain_open(struct session *s);
/** Sends what waits, closes the sockets, drops what is held. The transport stays. */
void plain_close(struct session *s);

/** The way for a track's packets: socket, path and context. NULL: no way just now */
struct worker_socket *plain_route(struct session *s, unsigned kind, const struct net_path **path,
				  struct seal_tx **tx);

/** Send RTCP to the legs that carry any of `kinds` (1u << enum media_kind). */
void plain_send_rtcp(struct session *s, unsigned kinds, const uint8_t *bytes, size_t len);

/** Kinds of the leg's media; 0: there is no such leg. */
unsigned plain_leg_kinds(const struct session *s, unsigned leg);

/** Keep a packet until the feed is there; takes over the slab. */
void plain_hold(struct session *s, struct slab *slab);
/** The oldest that is kept, now the caller's. NULL: none */
struct slab *plain_release(struct session *s);

/** At the end of a turn: send what the sockets' egresses hold. */
void plain_flush(struct worker *w);

/** Add what the sockets of a worker counted, those of ended sessions included. */
struct egress_stats;
void plain_stats(const struct worker *w, struct udp_stats *in, struct egress_stats *out);

#endif
