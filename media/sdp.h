/* media/sdp.h - a session description, parsed into one bounded struct.
 *
 * Source:  RFC 8866 (SDP), RFC 8829 (what WebRTC uses of it), RFC 8839 (ICE attributes), RFC 8285
 *          (extmap), RFC 9143 (BUNDLE), RFC 8851 and RFC 8853 (rid, simulcast).
 * Sans-IO: text in, struct out.
 * Thread:  any; the struct has no hidden state.
 * Memory:  none is allocated. Spans point into the text given to sdp_parse(), so that text must stay
 *          unchanged for as long as the struct is read. The struct is about 40 KB: heap, not stack.
 */
#ifndef MEDIA_SDP_H
#define MEDIA_SDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Above any of these the description is refused, naming the line. Real offers stay below a quarter. */
enum {
	SDP_MAX_BYTES = 65536,
	SDP_MAX_LINES = 1000,
	SDP_MAX_LINE_BYTES = 4096, /* without the line end; parameter sets make long fmtp lines */
	SDP_MAX_MEDIA = 16,
	SDP_MAX_CANDIDATES = 64, /* of the whole description */
	SDP_MAX_FORMATS = 512,   /* payload types, of the whole description */
	SDP_MAX_EXTENSIONS = 256,
	SDP_MAX_SSRCS = 64,
	SDP_MAX_SSRC_GROUPS = 32,
	SDP_MAX_GROUP_SSRCS = 4,
	SDP_MAX_RIDS = 32,
	SDP_MAX_BUNDLES = 4,
	SDP_MAX_FINGERPRINTS = 4, /* per level: session, or one m-line */
	SDP_MAX_MID_BYTES = 32,
	SDP_MAX_ICE_BYTES = 256, /* ufrag and pwd, RFC 8839 section 5.4 */
	SDP_ERROR_BYTES = 200,
};

/** A piece of the caller's text, not terminated; at == NULL means "not there". */
struct sdp_span {
	const char *at;
	uint32_t len;
};

/** What is wrong, for the person who wrote the description. */
struct sdp_error {
	unsigned line;              /* from 1; 0 when it is no single line */
	char text[SDP_ERROR_BYTES]; /* "line 12: payload type 4294967296 is above 127" */
};

enum sdp_verdict {
	SDP_OK,
	SDP_MALFORMED, /* not a description: 400 */
	SDP_TOO_LARGE, /* one of the limits above: 400, over SDP_MAX_BYTES 413 */
	SDP_VERDICTS
};

enum sdp_kind { SDP_AUDIO, SDP_VIDEO, SDP_APPLICATION, SDP_OTHER };

/** As seen by the side that wrote the description. Bits, so that "can send" is a mask. */
enum sdp_direction {
	SDP_INACTIVE = 0,
	SDP_SENDONLY = 1,
	SDP_RECVONLY = 2,
	SDP_SENDRECV = 3,
};

enum sdp_setup {
	SDP_SETUP_NONE,
	SDP_SETUP_ACTPASS,
	SDP_SETUP_ACTIVE,
	SDP_SETUP_PASSIVE,
	SDP_SETUP_HOLDCONN
};

/** One a=rtcp-fb of one payload type, as a bit. What is not listed here is ignored. */
enum sdp_feedback {
	SDP_FB_NACK = 1 << 0,
	SDP_FB_PLI = 1 << 1,
	SDP_FB_FIR = 1 << 2,
	SDP_FB_TRANSPORT_CC = 1 << 3,
	SDP_FB_REMB = 1 << 4,
};

enum sdp_transport { SDP_UDP, SDP_TCP, SDP_TRANSPORT_OTHER };

/** An address and port in host order; family 0 is a name (mDNS), which ip does not hold. */
struct sdp_address {
	uint8_t family;    /* 4, 6 or 0 */
	uint8_t transport; /* enum sdp_transport; TCP of ours is passive */
	uint8_t ip[16];    /* the first 4 or all 16, network order */
	uint16_t port;
};

enum sdp_candidate_type { SDP_HOST, SDP_SRFLX, SDP_PRFLX, SDP_RELAY, SDP_TYPE_OTHER };

struct sdp_candidate {
	uint32_t priority;
	uint16_t component; /* 1 is RTP (with rtcp-mux: everything) */
	uint8_t type;       /* enum sdp_candidate_type */
	struct sdp_address address;
};

/** One payload type of an m-line. Attributes of payload types the m-line does not list are ignored. */
struct sdp_format {
	uint8_t pt;
	uint8_t channels;     /* 1 when the rtpmap names none */
	uint8_t feedback;     /* enum sdp_feedback */
	uint32_t clock_hz;    /* 0 without rtpmap */
	struct sdp_span name; /* "opus"; compare without case; NULL without rtpmap */
	struct sdp_span fmtp; /* everything behind the payload type */
};

struct sdp_extension {
	uint16_t id;                  /* 1..4351, RFC 8285 section 5 */
	bool has_direction;           /* "a=extmap:2/recvonly URI" */
	enum sdp_direction direction; /* SDP_SENDRECV when it has none */
	struct sdp_span uri;
};

struct sdp_ssrc {
	uint32_t ssrc;
	struct sdp_span cname; /* NULL when no line says it */
};

/** "a=ssrc-group:FID 1 2": groups of fewer than two sources are ignored, and so is what exceeds. */
struct sdp_ssrc_group {
	struct sdp_span semantics; /* "FID", "SIM", "FEC-FR" */
	uint8_t count;             /* 2..SDP_MAX_GROUP_SSRCS */
	uint32_t ssrcs[SDP_MAX_GROUP_SSRCS];
};

struct sdp_rid {
	struct sdp_span id;
	enum sdp_direction direction; /* SDP_SENDONLY or SDP_RECVONLY */
	struct sdp_span restrictions; /* "pt=96,97;max-width=640"; NULL without */
};

struct sdp_fingerprint {
	struct sdp_span hash;   /* "sha-256" as written; compare without case */
	struct sdp_span digest; /* "AB:CD:..." */
};

/** What session and m-line level share; after parsing an m-line holds what it inherits. */
struct sdp_attributes {
	struct sdp_span ufrag, pwd; /* checked: ice-char, RFC 8839 lengths (4..256, 22..256) */
	struct sdp_fingerprint fingerprints[SDP_MAX_FINGERPRINTS];
	uint8_t fingerprint_count;
	bool has_direction;
	bool extmap_allow_mixed;
	bool end_of_candidates;
	bool ice_lite; /* session level only */
	enum sdp_setup setup;
	enum sdp_direction direction; /* SDP_SENDRECV when nothing says otherwise */
};

/** One m-line. first/count pairs index the arrays of struct sdp. */
struct sdp_media {
	unsigned line; /* of the m= line, from 1 */
	enum sdp_kind kind;
	struct sdp_span kind_text; /* "audio" */
	uint16_t port;
	struct sdp_span protocol;     /* "UDP/TLS/RTP/SAVPF" */
	struct sdp_span formats_text; /* the rest of the m-line */
	struct sdp_attributes attributes;
	struct sdp_span mid;         /* NULL when there is none */
	struct sdp_span msid_stream; /* of the first a=msid or a=ssrc:... msid: */
	struct sdp_span msid_track;
	struct sdp_span simulcast; /* everything behind "a=simulcast:" */
	struct sdp_span sctp_port;
	/* What plain RTP needs (the WebRTC side takes ICE's candidates and DTLS' keys instead). */
	struct sdp_address
	    connection; /* of c=, the session's where it has none; family 0: a name, or none */
	struct sdp_address rtcp; /* of a=rtcp: port 0 without; family 0: as connection */
	struct sdp_span
	    source_filter; /* value of a=source-filter, the session's where it has none */
	bool bundle_only;
	bool rtcp_mux, rtcp_mux_only, rtcp_rsize;
	bool rcvr_rtt; /* receivers may send reference times: RFC 3611 section 5.1 */
	uint16_t first_format, formats;
	uint16_t first_extension, extensions; /* of the m-line; the session's come in addition */
	uint16_t first_ssrc, ssrcs;
	uint16_t first_group, groups;
	uint16_t first_rid, rids;
	uint16_t first_candidate, candidates;
};

struct sdp {
	struct sdp_attributes session;
	struct sdp_address connection;
	struct sdp_span source_filter;
	struct sdp_span
	    bundles[SDP_MAX_BUNDLES]; /* mids of each a=group:BUNDLE, separated by blanks */
	uint8_t bundle_count;
	uint8_t media_count;
	uint16_t format_count, extension_count, session_extensions;
	uint16_t ssrc_count, group_count, rid_count, candidate_count;
	struct sdp_media media[SDP_MAX_MEDIA];
	struct sdp_format formats[SDP_MAX_FORMATS];
	struct sdp_extension extensions[SDP_MAX_EXTENSIONS]; /* the session's first */
	struct sdp_ssrc ssrcs[SDP_MAX_SSRCS];
	struct sdp_ssrc_group groups[SDP_MAX_SSRC_GROUPS];
	struct sdp_rid rids[SDP_MAX_RIDS];
	struct sdp_candidate candidates[SDP_MAX_CANDIDATES];
};

/**
 * Parse a description; CRLF or LF line ends, a last line without one is accepted. Unknown attributes
 * are ignored, known ones with a wrong value refuse the description. A description without m-line
 * parses (whether it is any use is the negotiation's question).
 *
 * @param error  NULL, or filled when the verdict is not SDP_OK
 */
enum sdp_verdict sdp_parse(struct sdp *out, const char *text, size_t len, struct sdp_error *error);

bool sdp_span_is(struct sdp_span span, const char *text);        /* equal */
bool sdp_span_is_nocase(struct sdp_span span, const char *text); /* equal but for ASCII case */
bool sdp_span_equal(struct sdp_span a, struct sdp_span b);

/** Copy as a C string. @return false, and an empty string, when it does not fit. */
bool sdp_span_copy(struct sdp_span span, char *out, size_t cap);

/**
 * Value of a parameter ("apt=96;x=y"); names without case, blanks around ';' allowed. The value
 * starts behind the first '=' and may hold more of them (sprop-parameter-sets).
 */
bool sdp_fmtp_get(struct sdp_span fmtp, const char *name, struct sdp_span *value);

/** First SSRC's partner in an FID group that starts with ssrc; 0 when there is none. */
uint32_t sdp_rtx_ssrc(const struct sdp *s, const struct sdp_media *m, uint32_t ssrc);

/** Sources of an m-line that repeat or protect no other one, in the order of the lines.
 *  @return how many there are, also when that is more than cap; at most cap are written */
unsigned sdp_primary_ssrcs(const struct sdp *s, const struct sdp_media *m, uint32_t *out,
			   unsigned cap);

/** Is mid in the list of mids? */
bool sdp_bundle_has(struct sdp_span bundle, struct sdp_span mid);

/** One a=candidate value (behind the colon). @return false: it is not a candidate line. */
bool sdp_candidate_parse(struct sdp_candidate *out, struct sdp_span value);

/** UDP, component 1, an address and a port we could send to. */
bool sdp_candidate_is_usable(const struct sdp_candidate *c);

/** TCP, component 1, an address and a port that somebody may listen on. */
bool sdp_candidate_can_be_dialled(const struct sdp_candidate *c);

#endif
