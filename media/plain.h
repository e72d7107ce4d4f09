/* media/plain.h - plain RTP described by SDP: ports, addresses and codecs, read and written.
 *
 * Source:  RFC 8866, RFC 3551 (RTP/AVP), RFC 4585 (AVPF), RFC 3605 (a=rtcp), RFC 5761 (rtcp-mux),
 *          RFC 4570 (a=source-filter).
 * Sans-IO: text and structs in and out.
 * Thread:  any.
 * Memory:  none is allocated.
 */
#ifndef MEDIA_PLAIN_H
#define MEDIA_PLAIN_H

#include "media/answer.h"

enum {
	PLAIN_LEGS = NEGOTIATED_KINDS, /* pairs of ports: one a kind, or one for both */
	PLAIN_MAX_BYTES = 4096,        /* every text that plain_write() writes fits */
};

/** What one RTP port carries. */
struct plain_leg {
	uint8_t kinds;      /* 1u << enum media_kind */
	uint16_t port;      /* of the m-line */
	uint16_t rtcp_port; /* of RTCP: `port` itself with rtcp_mux, else of a=rtcp or one above */
	bool rtcp_mux;
};

struct plain_terms {
	uint8_t leg_count;
	struct plain_leg legs[PLAIN_LEGS];
	struct sdp_address
	    source;       /* of a=source-filter, else of c=; family 0: neither names an address */
	bool is_filtered; /* source is of a=source-filter, so it says where packets come from */
};

/**
 * What a description says of packets to be received. The m-lines are taken as an offer to send, of
 * any direction but inactive; m-lines with one port, or in one BUNDLE, share a leg.
 *
 * @param n       receives codecs, payload types and feedback; one codec a kind
 * @param reason  one line when it cannot be used
 */
enum answer_verdict plain_read(const struct sdp *s, struct negotiated *n, struct plain_terms *out,
			       char reason[ANSWER_REASON_BYTES]);

/** Where packets are received, for whoever is to send or to open them. */
struct plain_text {
	const char *name; /* of the session */
	uint64_t session_id;
	struct sdp_address address;
	const char *direction; /* "recvonly", or NULL: no line */
	const struct plain_terms *terms;
	const struct negotiated_codec *codecs[NEGOTIATED_KINDS]; /* NULL: none of that kind */
};

/** @return length without the terminator, or -ENOSPC */
int plain_write(const struct plain_text *t, char *out, size_t cap);

#endif
