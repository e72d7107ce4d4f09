/* media/answer.h - from an offer and a policy to what both sides agreed on, and to the answer's text.
 *
 * Source:  RFC 3264, RFC 8829 section 5.3 (answers), RFC 9143 (BUNDLE), RFC 9725 (WHIP) section 4.4,
 *          draft-ietf-wish-whep; RFC 6184 section 8.2.2 (H264), RFC 4588 (RTX), RFC 8285 (extensions).
 * Sans-IO: text and structs in and out; nothing is random in here: SSRCs and credentials come in.
 * Thread:  any.
 * Memory:  none is allocated. struct negotiated copies what it needs: it outlives the offer.
 */
#ifndef MEDIA_ANSWER_H
#define MEDIA_ANSWER_H

#include "media/codec.h"
#include "media/ext.h"
#include "media/sdp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NEGOTIATED_MAX_CODECS = 20, /* of one kind; Chromium offers 15 for video */
	NEGOTIATED_FMTP_BYTES = 96,
	NEGOTIATED_MAX_CANDIDATES = 16,
	NEGOTIATED_NO_PT = 0xff,
	NEGOTIATED_KINDS = 2, /* index: enum media_kind */
	NEGOTIATED_MAX_ENCODINGS = 4,
	NEGOTIATED_RID_BYTES = 17, /* with terminator; a one-byte header extension holds 16 */
	ANSWER_MSID_BYTES = 65,
	ANSWER_REASON_BYTES = 256, /* one line for a person */
	ANSWER_MAX_BYTES = 32768,  /* every answer fits: 16 m-lines, 20 codecs with RTX */
};

/** One codec both sides can do. */
struct negotiated_codec {
	enum media_codec codec;
	uint8_t pt;
	uint8_t rtx_pt;    /* NEGOTIATED_NO_PT: no retransmission format */
	uint8_t red_pt;    /* RED that carries this codec alone; NEGOTIATED_NO_PT: none */
	bool is_red_first; /* the offer prefers RED: whoever sends then sends that */
	uint8_t channels;
	uint8_t feedback; /* enum sdp_feedback bits agreed for pt */
	uint32_t clock_hz;
	/* What tells variants of the codec apart, with what we say about it: "profile-level-id=42e01f;
	 * packetization-mode=1". This is the fmtp text in the answer; compare by negotiated_match(). */
	char fmtp[NEGOTIATED_FMTP_BYTES];
};

/**
 * One of the encodings in which a peer sends a track at once (simulcast).
 *
 * Where EXT_RID is among the m-line's extensions and a packet carries it, the rid says which encoding
 * the packet belongs to, whatever the SSRC: Firefox announces both, and they have disagreed. The
 * SSRCs hold for packets without (Pion agrees on no such extension), and are 0 where none was
 * announced.
 */
struct negotiated_encoding {
	char rid[NEGOTIATED_RID_BYTES]; /* "": told apart by SSRC, or the only one */
	uint32_t ssrc, rtx_ssrc;
};

/** The accepted m-line of one kind. */
struct negotiated_media {
	bool is_accepted;
	uint8_t m_line; /* position in offer and answer */
	char mid[SDP_MAX_MID_BYTES + 1];
	uint8_t codec_count; /* at least 1 when accepted; order of the offer */
	struct negotiated_codec codecs[NEGOTIATED_MAX_CODECS];
	struct ext_map extensions; /* ids both sides use on this m-line */
	uint8_t feedback;          /* union of the codecs' enum sdp_feedback bits */
	bool rtcp_rsize;
	bool rcvr_rtt; /* receivers measure their round trip: RFC 3611 section 4.4 */
	uint32_t remote_ssrc, remote_rtx_ssrc; /* 0: not announced */
	uint32_t local_ssrc, local_rtx_ssrc;   /* 0: we send nothing, or no RTX */
	/* Ingest only: 1 or more when accepted. In ascending quality as far as an offer tells: by name
	 * where all begin with letters of "lmh" or of "qhf", else the reverse of a=simulcast, which
	 * names the preferred one first (RFC 8853 section 5.2); the order of a=ssrc-group:SIM. That is
	 * a guess: scripts list their encodings either way, so what arrives decides. */
	uint8_t encoding_count;
	struct negotiated_encoding encodings[NEGOTIATED_MAX_ENCODINGS];
	char msid_stream[ANSWER_MSID_BYTES]; /* of the peer; "-" or "" without */
	char msid_track[ANSWER_MSID_BYTES];
};

struct negotiated_fingerprint {
	char hash[12];    /* "sha-256", lower case */
	char digest[192]; /* "AB:CD:...", upper case; sha-512 fits */
};

enum negotiated_role { NEGOTIATED_DTLS_SERVER, NEGOTIATED_DTLS_CLIENT };

enum negotiated_line {
	NEGOTIATED_REJECTED, /* port 0, outside BUNDLE */
	NEGOTIATED_ACCEPTED,
	NEGOTIATED_INACTIVE, /* port 9, inside BUNDLE, no media: a refused first bundled m-line */
};

struct negotiated {
	struct negotiated_media media[NEGOTIATED_KINDS]; /* by enum media_kind */
	char remote_ufrag[SDP_MAX_ICE_BYTES + 1];
	char remote_pwd[SDP_MAX_ICE_BYTES + 1];
	/* Any of them may match. */
	struct negotiated_fingerprint fingerprints[SDP_MAX_FINGERPRINTS];
	uint8_t fingerprint_count;      /* at least 1, all sha-256, sha-384 or sha-512 */
	enum negotiated_role dtls_role; /* ours */
	bool is_egress;                 /* we send */
	bool is_bundled;                /* the offer had a BUNDLE group we use */
	bool remote_is_lite;
	bool extmap_allow_mixed; /* one- and two-byte extensions in one stream, RFC 8285 */
	/* Usable ones; what exceeds the array is dropped. */
	struct sdp_address candidates[NEGOTIATED_MAX_CANDIDATES];
	uint8_t candidate_count;
	uint8_t line_count;           /* m-lines of the offer */
	uint8_t lines[SDP_MAX_MEDIA]; /* enum negotiated_line */
};

enum answer_role {
	ANSWER_INGEST, /* WHIP: the peer sends */
	ANSWER_EGRESS, /* WHEP: we send */
};

/** A codec that may be accepted. */
struct answer_codec {
	enum media_codec codec;
	/* NULL or "": any variant. Else the fmtp of the stream to be delivered: H264 profile and
	 * packetization mode, VP9, AV1 and H265 profile are matched. Borrowed during the call. */
	const char *fmtp;
};

struct answer_policy {
	enum answer_role role;
	struct answer_codec codecs[NEGOTIATED_KINDS][NEGOTIATED_MAX_CODECS];
	uint8_t codec_count[NEGOTIATED_KINDS]; /* 0: the stream has none of this kind */
	bool is_default[NEGOTIATED_KINDS];     /* codecs are those of answer_policy_init() */
	uint8_t max_codecs; /* accepted for each m-line, in the offer's order; 0: all */
	uint32_t extensions[NEGOTIATED_KINDS]; /* 1u << enum ext_kind: accepted when offered */
	uint8_t feedback;                      /* enum sdp_feedback bits accepted when offered */
	/* Plain RTP: no ICE, no DTLS, no BUNDLE needed, and any direction but inactive. */
	bool is_plain;
	bool rtx; /* accept offered RTX formats (video) */
	bool red; /* accept an offered RED format (Opus) */
	/* Ingest: encodings of video accepted at once, at most NEGOTIATED_MAX_ENCODINGS, those that the
	 * offer prefers. 0 and 1: simulcast is not answered. */
	uint8_t max_encodings;
	/* Egress: what we send with. Ignored for ingest. */
	uint32_t ssrc[NEGOTIATED_KINDS];
	uint32_t rtx_ssrc[NEGOTIATED_KINDS];
};

enum answer_verdict {
	ANSWER_OK,
	ANSWER_NO_COMMON_CODEC, /* 406, the reason names what was offered and what is possible */
	ANSWER_UNACCEPTABLE,    /* 422, the reason says what */
	ANSWER_VERDICTS
};

/**
 * Defaults of a role: every supported codec in any variant, NACK + PLI + FIR, RTX, RED, and the
 * extensions the relay reads (ingest) or forwards (egress). Add SDP_FB_TRANSPORT_CC, SDP_FB_REMB and
 * the extension bits that go with them where something acts on them. Of these an ingest answer takes
 * transport-cc where the packets carry its number, else REMB.
 */
void answer_policy_init(struct answer_policy *policy, enum answer_role role);

/** Ingest: accept simulcast and what tells of layers (video layers allocation) as well. */
void answer_policy_layers(struct answer_policy *policy);

/** Allow this codec instead of the defaults of its kind; once more: in addition. fmtp is borrowed. */
void answer_policy_only(struct answer_policy *policy, enum media_codec codec, const char *fmtp);

/**
 * Decide. *out is filled on ANSWER_OK only; reason is "" then.
 *
 * The first m-line of each kind that can be used is accepted; others are refused in a way browsers
 * accept. An m-line of a kind the stream has, but without a common codec, refuses the whole offer.
 */
enum answer_verdict answer_negotiate(const struct sdp *offer, const struct answer_policy *policy,
				     struct negotiated *out, char reason[ANSWER_REASON_BYTES]);

/** Which agreed codec carries a stream of this codec and fmtp (NULL: any variant); NULL: none can.
 *  An exact profile is preferred over one that includes it. */
const struct negotiated_codec *negotiated_match(const struct negotiated_media *m,
						enum media_codec codec, const char *fmtp);

/** The agreed codec behind a payload type; *is_rtx tells the two apart. NULL: unknown. */
const struct negotiated_codec *negotiated_by_pt(const struct negotiated_media *m, uint8_t pt,
						bool *is_rtx);

/** Our side of the answer. Strings are borrowed during the call. */
struct answer_local {
	const char *ufrag; /* ALPHA and DIGIT only: GStreamer refuses others */
	const char *pwd;
	const char *fingerprint; /* sha-256, "AB:CD:..." in upper case (Firefox refuses lower) */
	uint64_t session_id;     /* of the o= line; below 2^63 */
	const char *cname;       /* egress */
	const char *msid;        /* egress: stream id; tracks are named after it */
	const struct sdp_address *candidates; /* host; UDP and IPv4 are written first */
	size_t candidate_count;
};

/**
 * Write the answer to `offer` (the same one, still valid) as negotiated.
 *
 * @return length without the terminator, or -ENOSPC
 */
int answer_write(const struct sdp *offer, const struct negotiated *n,
		 const struct answer_local *local, char *out, size_t cap);

#endif
