/* media/answer_parts.h - what the negotiation, the answer's writer and the client's side share.
 *
 * Source:  RFC 9143 (BUNDLE), RFC 6184 section 8 (H264), RFC 7587 (Opus), RFC 9628 (VP9).
 * Sans-IO: structs and text in and out.
 * Thread:  any.
 * Memory:  none.
 */
#ifndef MEDIA_ANSWER_PARTS_H
#define MEDIA_ANSWER_PARTS_H

#include "media/answer.h"
#include "media/sdp_span.h"

/** The BUNDLE group that counts, and its tagged m-line: the first of its mids that names a live one. */
struct bundle {
	struct sdp_span mids; /* NULL: no group */
	int tagged;           /* index of the m-line, -1: no group */
};
struct bundle bundle_find(const struct sdp *s);

/** Disabled by its writer: port 0 without bundle-only (RFC 9143 section 6). */
bool media_is_disabled(const struct sdp_media *m);

/** Codec of a payload type, by its rtpmap or by RFC 3551; CODEC_NONE when it is none of ours or its
 *  clock or channels are not the codec's. */
enum media_codec format_codec(enum media_kind kind, const struct sdp_format *f);

/** The RTX payload type of pt on this m-line, or NEGOTIATED_NO_PT. */
uint8_t format_rtx(const struct sdp *s, const struct sdp_media *m, uint8_t pt);

/** The RED payload type whose blocks are all pt, or NEGOTIATED_NO_PT.
 *  @param is_first receives whether it stands before pt: preferred */
uint8_t format_red(const struct sdp *s, const struct sdp_media *m, uint8_t pt, bool *is_first);

/**
 * Can a receiver that offered `receiver` decode a stream of `stream` (both fmtp texts)?
 *
 * @return 0: no; the larger the better otherwise. stream.at == NULL: any variant we can carry.
 */
int codec_fit(enum media_codec codec, struct sdp_span stream, struct sdp_span receiver);

/** Our fmtp for an offered format: what tells variants apart, read and written anew. */
void codec_write_fmtp(enum media_codec codec, struct sdp_span offered,
		      char out[NEGOTIATED_FMTP_BYTES]);

/** Tell a viewer's answer that the Opus stream with the fmtp `stream` is stereo. */
void codec_carry_stereo(const char *stream, char fmtp[NEGOTIATED_FMTP_BYTES]);

/** Fingerprints of hashes we can check, in the case both need. @return how many */
uint8_t negotiated_take_fingerprints(struct negotiated *n, const struct sdp_attributes *a);

/** Usable candidates of an m-line. */
void negotiated_take_candidates(struct negotiated *n, const struct sdp *s,
				const struct sdp_media *m);

/** Extension ids of an m-line, where its direction lets the peer send (or receive) them. */
void negotiated_take_extensions(struct negotiated_media *out, const struct sdp *s,
				const struct sdp_media *m, uint32_t allowed,
				enum sdp_direction peer_must);

/** Mid, SSRCs, msid and rtcp-rsize of an accepted m-line. */
void negotiated_take_media(struct negotiated_media *out, const struct sdp *s, unsigned line);

/** The encodings of a video m-line of which we receive at most max (RFC 8853 section 5.3.2).
 *  out->codecs are those accepted. */
void negotiated_take_encodings(struct negotiated_media *out, const struct sdp *s,
			       const struct sdp_media *m, unsigned max);

/** Are its encodings told apart by rid? Then the answer has a=rid and a=simulcast. */
bool negotiated_has_rids(const struct negotiated_media *m);

/** a=rid and a=simulcast of an answer, in the order of the offer; nothing without rids. */
void answer_put_simulcast(struct sdp_writer *w, const struct sdp *offer,
			  const struct sdp_media *offered, const struct negotiated_media *m);

/** The index-th extension that holds for an m-line, its own first, then the session's; NULL at the end. */
const struct sdp_extension *media_extension(const struct sdp *s, const struct sdp_media *m,
					    unsigned index);

#endif
