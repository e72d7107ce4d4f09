/* media/sdpfrag.h - trickle and restart fragments, the bodies of PATCH.
 *
 * Source:  RFC 8840 (application/trickle-ice-sdpfrag), RFC 9725 section 4.3 (WHIP), RFC 8839.
 * Sans-IO: text in, struct out.
 * Thread:  any.
 * Memory:  none is allocated; the struct holds copies.
 */
#ifndef MEDIA_SDPFRAG_H
#define MEDIA_SDPFRAG_H

#include "media/sdp.h"

enum {
	SDPFRAG_MAX_BYTES = 16384,
	SDPFRAG_MAX_CANDIDATES = 64,
	SDPFRAG_REPLY_BYTES = 8192, /* every reply of up to SDPFRAG_MAX_CANDIDATES fits */
};

struct sdpfrag {
	char
	    ufrag[SDP_MAX_ICE_BYTES + 1]; /* "" when the fragment names none: the current session */
	char pwd[SDP_MAX_ICE_BYTES + 1];
	struct sdp_address candidates[SDPFRAG_MAX_CANDIDATES]; /* usable, without repetitions */
	uint16_t candidate_count;
	/* Candidate lines that are no use here: TCP, names, another component than 1, link-local,
	 * malformed. RFC 9725: they are discarded, the rest of the fragment counts. */
	uint16_t discarded;
	bool end_of_candidates;
	uint8_t mid_count;
	char mids[SDP_MAX_MEDIA][SDP_MAX_MID_BYTES + 1];
};

/**
 * Parse a fragment. The ICE credentials may stand before the first m-line or within any; when several
 * m-lines name them, the first counts. Without any a= or m= line it is malformed.
 */
enum sdp_verdict sdpfrag_parse(struct sdpfrag *out, const char *text, size_t len,
			       struct sdp_error *error);

/** Strings are borrowed during the call. */
struct sdpfrag_reply {
	const char *ufrag;
	const char *pwd;
	const char *mid;   /* of the first bundled m-line; NULL or "" leaves the line out */
	const char *media; /* "audio" or "video": its kind */
	const struct sdp_address
	    *candidates; /* host; all of them, UDP and IPv4 are written first */
	size_t candidate_count;
};

/**
 * Write the answer to an ICE restart: our new credentials and all candidates.
 *
 * @return length without the terminator, or -ENOSPC
 */
int sdpfrag_write_reply(const struct sdpfrag_reply *reply, char *out, size_t cap);

#endif
