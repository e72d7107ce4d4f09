/* loadgen/viewer.h - one watching client: counts what arrives, asks for what is missing.
 *
 * Of an ordinary viewer only the RTP header is read, which SRTP leaves in clear; of a verified one
 * every packet is authenticated and decrypted by libsrtp2. Retransmissions are opened for both,
 * since the number of what they repeat is encrypted.
 *
 * Where the server takes the viewer's transport-wide feedback, the viewer sends it (feedback.h).
 *
 * Source:  RFC 4585 (NACK, PLI), RFC 4588 (RTX), RFC 3550 section 6.4.2 (RR).
 * Thread:  the loop's.
 * Memory:  about 20 KB each with its peer; a verified one 20 KB more, one that sends feedback 17 KB.
 */
#ifndef LOADGEN_VIEWER_H
#define LOADGEN_VIEWER_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/histogram.h"
#include "loadgen/latency.h"
#include "loadgen/lateness.h"
#include "loadgen/peer.h"

enum {
	VIEWER_REPORT_US = 1000000, /* between two receiver reports */
	VIEWER_PLI_US = 1000000,    /* between two requests for a key frame, at least */
	/* What a viewer gets at first may be older than itself, under timestamps that fit nothing
	 * sent: latency is measured from here on. */
	VIEWER_SETTLE_US = 1000000,
	VIEWER_ALIVE_US =
	    1000000, /* a track that came within this before the end came to the end */
};

/* What the viewers of one program count together. */
struct viewer_tally {
	bool is_measuring;    /* latencies count */
	uint64_t pkts, bytes; /* RTP datagrams and their UDP payload */
	uint64_t verified, bad_auth;
	uint64_t nacked_pkts, plis;
	struct histogram frame_us, audio_us; /* publisher to viewer */
	struct histogram join_us;            /* offer to first packet */
	struct histogram keyframe_us; /* offer to first whole key frame; of verified viewers */
	uint64_t joined, failed;
};

struct viewer_config {
	uint32_t number; /* of the peer */
	const char *url;
	const char *token;
	bool is_verified;
	bool transport_cc; /* offer transport-wide feedback, and send it if it is taken */
	uint64_t give_up_us;
	struct viewer_tally *tally;
	struct latency *latency[NEGOTIATED_KINDS]; /* NULL: the publisher is not ours */
};

struct viewer;

/** @return as peer_create() */
int viewer_create(struct viewer **out, struct peer_ground *g, const struct viewer_config *config);
void viewer_destroy(struct viewer *v); /* NULL is allowed */
void viewer_start(struct viewer *v);

/** The measurement ends: later numbers do not count, missing ones may still come. */
void viewer_freeze(struct viewer *v);

struct viewer_result {
	bool is_joined;
	bool is_complete; /* every accepted track came to the end */
	uint64_t expected, received, repaired, duplicated;
};
void viewer_result(const struct viewer *v, struct viewer_result *out);

/** How long what it got was under way. */
const struct lateness *viewer_lateness(const struct viewer *v);
struct peer *viewer_peer(const struct viewer *v);

#endif
