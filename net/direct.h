/* net/direct.h - an association without ICE and DTLS: RTP and RTCP with an address that was told.
 *
 * It is a struct transport: sessions poll, close and destroy it as any other (net/transport.h). What
 * it carries lies on legs: a pair of ports for each kind of media, or one for both.
 *
 * Order of trust: a packet counts when it comes from the leg's source. Where only the source's IP
 * was told, the first packet of a payload type that was agreed fixes the port; a newer port of that
 * IP is taken once the former was silent for DIRECT_MOVE_US. Where no IP was told either, the first
 * such packet fixes both, and the IP stays. RTCP may come from another port of the same IP.
 *
 * Source:  RFC 3550, RFC 5761 section 4 (RTCP on RTP's port).
 * Sans-IO: bytes, path and time go in.
 * Thread:  one worker; lifetime_close() from any.
 * Memory:  one allocation, in direct_create(), and what the contexts take.
 */
#ifndef NET_DIRECT_H
#define NET_DIRECT_H

#include "net/transport.h"

enum {
	DIRECT_LEGS = 2,
	DIRECT_MOVE_US = 2000000,
	DIRECT_TYPE_BYTES = 16, /* a bit for each payload type */
};

struct direct_leg_config {
	/* Receiving: the IP that packets come from; any (net_addr_is_any()): the first valid sender's. */
	struct net_addr source;
	uint8_t
	    types[DIRECT_TYPE_BYTES]; /* payload types that may fix a source; none: nothing may */
	/* Sending: where RTP and RTCP go; port 0: nowhere (RTCP: until some came). */
	struct net_addr rtp_to, rtcp_to;
	bool rtcp_mux;
};

struct direct_config {
	struct seal_engine *engine; /* the worker's; outlives this */
	bool sends; /* media leaves: connected at once. Else with the first packet that counts */
	uint8_t leg_count;
	struct direct_leg_config legs[DIRECT_LEGS];
};

/* Where a leg's packets go. */
struct direct_leg {
	struct net_path rtp, rtcp; /* remote.port 0: not known */
	struct seal_tx *tx;
};

/** @return 0 or -ENOMEM */
int direct_create(struct transport **out, const struct direct_config *config);

/* One of a leg's ports: RTP's, or RTCP's own. */
struct direct_port {
	uint8_t leg;
	bool is_rtcp;
};

/** A datagram on a leg's port. Returns TRANSPORT_RTP, TRANSPORT_RTCP, TRANSPORT_DROP_CLOSED,
 *  TRANSPORT_DROP_UNKNOWN_PROTOCOL or TRANSPORT_DROP_WRONG_SOURCE. */
enum transport_verdict direct_on_datagram(struct transport *t, uint64_t now_us,
					  struct direct_port port, const struct net_path *path,
					  const uint8_t *bytes, size_t len);

const struct direct_leg *direct_leg(const struct transport *t, unsigned leg);
unsigned direct_leg_count(const struct transport *t);

/* Of net/transport.c, for transports that are direct. */
void direct_destroy(struct transport *t);
void direct_poll(struct transport *t, struct transport_output *out);
void direct_status(const struct transport *t, struct transport_status *out);

#endif
