/* media/offer.h - the client's side: write an offer, read the answer to it.
 *
 * Source:  RFC 8829, RFC 9725 (WHIP), draft-ietf-wish-whep; RFC 9143 (BUNDLE).
 * Sans-IO: text and structs in and out; SSRCs and credentials come in.
 * Thread:  any.
 * Memory:  none is allocated.
 */
#ifndef MEDIA_OFFER_H
#define MEDIA_OFFER_H

#include "media/answer.h"
#include "media/sdp.h"

enum {
	OFFER_MAX_BYTES = 16384, /* every offer fits */
};

enum offer_role {
	OFFER_PUBLISH, /* WHIP: sendonly, Opus and VP8 */
	OFFER_WATCH,   /* WHEP: recvonly, Opus, VP8, H264, VP9, AV1 */
};

/** Payload types and extension ids of our offers; the answer must use the same. */
enum offer_number {
	OFFER_PT_OPUS = 111,
	OFFER_PT_VP8 = 96,
	OFFER_PT_VP8_RTX = 97,
	OFFER_PT_H264 = 102, /* constrained baseline; further profiles follow */
	OFFER_PT_VP9 = 98,
	OFFER_PT_AV1 = 45,
	OFFER_ID_TRANSPORT_CC = 3,
	OFFER_ID_SEND_TIME = 2,
};

/** Strings are borrowed during the call. */
struct offer_config {
	enum offer_role role;
	bool audio, video; /* at least one */
	bool rtx;          /* offer RTX for each video codec */
	/* Transport-wide feedback: of a publisher that numbers its packets so, or a viewer that sends it. */
	bool transport_cc;
	bool remb; /* watch: the viewer estimates by times of departure, and sends REMB */
	const char *ufrag;
	const char *pwd;
	const char *fingerprint; /* sha-256, "AB:CD:..." */
	uint64_t session_id;
	const char *cname;                    /* publish */
	const char *msid;                     /* publish: stream id */
	uint32_t ssrc[NEGOTIATED_KINDS];      /* publish, by enum media_kind */
	uint32_t rtx_ssrc[NEGOTIATED_KINDS];  /* publish with rtx */
	const struct sdp_address *candidates; /* host, UDP; may be none */
	size_t candidate_count;
};

/** @return length without the terminator, or -ENOSPC */
int offer_write(const struct offer_config *config, char *out, size_t cap);

enum offer_verdict {
	OFFER_OK,
	OFFER_REFUSED,  /* the answer takes none of our m-lines */
	OFFER_UNUSABLE, /* not an answer to this offer, or one we cannot work with: reason */
	OFFER_VERDICTS
};

/**
 * Read the answer to the offer written from `config`.
 *
 * @param out  as the client sees it: remote_* is the server, local_ssrc what we offered, dtls_role
 *             ours. An m-line the server refused has is_accepted == false.
 */
enum offer_verdict offer_read_answer(const struct offer_config *config, const struct sdp *answer,
				     struct negotiated *out, char reason[ANSWER_REASON_BYTES]);

#endif
