/* loadgen/peer.h - one WebRTC client: offer, answer, ICE, DTLS, until it is connected or has failed.
 *
 * What it publishes or watches is another's: handlers are told when media may flow and what came.
 *
 * Source:  RFC 9725 (WHIP), draft-ietf-wish-whep; a full ICE agent, controlling, over UDP or, as the
 *          active side of RFC 6544, over TCP; DTLS as the answer says.
 * Thread:  the loop's; handshake steps run on the loop's helpers.
 * Memory:  about 8 KB each and what the transport takes.
 */
#ifndef LOADGEN_PEER_H
#define LOADGEN_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/signal.h"
#include "loadgen/sockets.h"
#include "media/offer.h"
#include "net/dtls.h"
#include "net/loop.h"
#include "net/ticker.h"
#include "net/transport.h"

enum {
	PEER_EARLY_PKTS = 256,      /* kept that came before our side of the handshake ended */
	PEER_RETRY_US = 500 * 1000, /* after 409, 429 or 503 without a Retry-After; doubled */
	PEER_MAX_RETRY_US = 8000000,
	PEER_ERROR_BYTES = 256,
};

/* What all peers of a program share. */
struct peer_ground {
	struct loop *loop;
	struct loop_timer *timer; /* for the ticker */
	struct ticker ticker;
	struct sockets *sockets;
	struct signal_client *signal;
	struct seal_engine *engine;
	struct dtls_identity *identity;
	bool is_tcp;     /* peers dial what an answer names for TCP; set before the first one */
	uint64_t now_us; /* of this wake-up */
	unsigned works;  /* handshake steps under way */
	struct net_addr local;
	struct peer **peers; /* by number */
	uint32_t peer_count;
};

/** @param local of this host, the address that reaches the relay
 *  @param peers at most
 *  @return 0 or a negative errno */
int peer_ground_open(struct peer_ground *g, const struct net_addr *local, uint32_t peers, bool gro);
/** All peers were destroyed, and no work is under way. */
void peer_ground_close(struct peer_ground *g);

enum peer_state {
	PEER_NEW,
	PEER_ASKING,     /* an offer is under way, or waits for its next try */
	PEER_CONNECTING, /* answer read: ICE and DTLS */
	PEER_CONNECTED,
	PEER_FAILED, /* peer_error() says why */
	PEER_LEAVING,
	PEER_GONE,
};

struct peer;

struct peer_handlers {
	/* The transport is connected: tx is set. What came early is delivered after this. */
	void (*on_connected)(void *arg);
	/* RTP as it came, sealed; from the path that media takes. `sent_us` is when it came. */
	void (*on_rtp)(void *arg, uint64_t came_us, uint8_t *bytes, size_t len);
	/* RTCP, opened. */
	void (*on_rtcp)(void *arg, uint8_t *bytes, size_t len);
	/* RTCP that did not open. */
	void (*on_forged)(void *arg);
	/* The time given to peer_arm() has come. */
	void (*on_due)(void *arg);
	/* PEER_FAILED; once. */
	void (*on_failed)(void *arg);
};

struct peer_config {
	uint32_t number; /* its place in the ground */
	enum offer_role role;
	const char *url;   /* borrowed until the peer is destroyed, as is the token */
	const char *token; /* NULL: none */
	bool keep_keys;
	bool transport_cc;   /* watch: transport-wide feedback is offered */
	uint64_t give_up_us; /* no further tries after this time */
	const struct peer_handlers *handlers;
	void *arg;
};

/** @return 0 or -ENOMEM or, over UDP, what sockets_add() says */
int peer_create(struct peer **out, struct peer_ground *g, const struct peer_config *config);
/** Its session is left alone: peer_leave() first. NULL is allowed. */
void peer_destroy(struct peer *p);

/** POST the offer. */
void peer_start(struct peer *p);

/** Another port (sockets_rebind()), from which the server is asked at once. Not over TCP.
 *  @return 0 or what sockets_rebind() says */
int peer_rebind(struct peer *p);

/** It cannot go on, says its user: PEER_FAILED. */
void peer_fail(struct peer *p, const char *why);

/** Close and DELETE the session. PEER_GONE when it is answered. */
void peer_leave(struct peer *p);

/** on_due once at that time; UINT64_MAX: never. */
void peer_arm(struct peer *p, uint64_t due_us);

/** Send one sealed datagram to the peer. @return false: lost */
bool peer_send(struct peer *p, const uint8_t *bytes, size_t len);

/** Seal RTCP in place and send it. @param len of `cap` bytes, with room for the tag */
void peer_send_rtcp(struct peer *p, uint8_t *bytes, size_t len, size_t cap);

/** Open RTP in place, by the relay's own code. @return the verdict; len is set on success */
enum seal_verdict peer_open_rtp(struct peer *p, uint8_t *bytes, size_t *len);

enum peer_state peer_state(const struct peer *p);
/** Why it failed, or what it was refused by last and asks again; "" while all is well. */
const char *peer_error(const struct peer *p);
/** No server answered at all. */
bool peer_is_unreachable(const struct peer *p);
struct transport *peer_transport(const struct peer *p);
const struct negotiated *peer_negotiated(const struct peer *p);
struct peer_ground *peer_ground(const struct peer *p);
uint64_t peer_asked_us(const struct peer *p); /* when the offer that was answered left */

#endif
