#include "media/answer_parts.h"

#include <stdarg.h>

struct negotiation {
	const struct sdp *s;
	const struct answer_policy *policy;
	struct negotiated *out;
	struct bundle bundle;
	char *reason;
};

__attribute__((format(printf, 3, 4))) static enum answer_verdict
refuse(struct negotiation *n, enum answer_verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(n->reason, ANSWER_REASON_BYTES, format, args);
	va_end(args);
	return verdict;
}

static const enum media_codec default_codecs[NEGOTIATED_KINDS][5] = {
	[MEDIA_AUDIO] = { CODEC_OPUS, CODEC_MULTIOPUS, CODEC_G722, CODEC_PCMU, CODEC_PCMA },
	[MEDIA_VIDEO] = { CODEC_VP8, CODEC_VP9, CODEC_H264, CODEC_H265, CODEC_AV1 },
};

void answer_policy_init(struct answer_policy *policy, enum answer_role role)
{
	static const uint32_t audio =
	    1u << EXT_MID | 1u << EXT_AUDIO_LEVEL | 1u << EXT_ABS_CAPTURE_TIME;
	static const uint32_t video = 1u << EXT_MID | 1u << EXT_VIDEO_ORIENTATION |
				      1u << EXT_PLAYOUT_DELAY | 1u << EXT_ABS_CAPTURE_TIME |
				      1u << EXT_DEPENDENCY_DESCRIPTOR;

	memset(policy, 0, sizeof(*policy));
	policy->role = role;
	for (int kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		policy->is_default[kind] = true;
		for (unsigned i = 0; i < 5 && default_codecs[kind][i] != CODEC_NONE; i++)
			policy->codecs[kind][policy->codec_count[kind]++].codec =
			    default_codecs[kind][i];
	}
	policy->extensions[MEDIA_AUDIO] = audio;
	policy->extensions[MEDIA_VIDEO] = video;
	policy->feedback = SDP_FB_NACK | SDP_FB_PLI | SDP_FB_FIR;
	policy->rtx = true;
	policy->red = true;
}

void answer_policy_layers(struct answer_policy *policy)
{
	policy->max_encodings = NEGOTIATED_MAX_ENCODINGS;
	policy->extensions[MEDIA_VIDEO] |= 1u << EXT_VIDEO_LAYERS_ALLOCATION;
}

void answer_policy_only(struct answer_policy *policy, enum media_codec codec, const char *fmtp)
{
	enum media_kind kind = codec_kind(codec);

	if (policy->is_default[kind])
		policy->codec_count[kind] = 0;
	policy->is_default[kind] = false;
	if (policy->codec_count[kind] < NEGOTIATED_MAX_CODECS)
		policy->codecs[kind][policy->codec_count[kind]++] =
		    (struct answer_codec){ codec, fmtp };
}

static bool has_live_rtp(const struct sdp_media *m)
{
	return m->kind <= SDP_VIDEO && !media_is_disabled(m);
}

static const char *direction_name(enum sdp_direction direction)
{
	static const char *const names[] = { "inactive", "sendonly", "recvonly", "sendrecv" };

	return names[direction];
}

/* A refused m-line leaves BUNDLE, unless it carries the transport: Chromium fails when the first one
 * is refused with port 0. */
static void set_refused(struct negotiation *n, unsigned line)
{
	n->out->lines[line] =
	    n->bundle.tagged == (int)line ? NEGOTIATED_INACTIVE : NEGOTIATED_REJECTED;
}

static bool is_encrypted(struct sdp_span protocol)
{
	static const char *const known[] = { "UDP/TLS/RTP/SAVPF",  "UDP/TLS/RTP/SAVP",
					     "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP",
					     "RTP/SAVPF",          "RTP/SAVP" };

	/* RFC 8829 section 5.1.2: any of these, with DTLS attributes, means DTLS-SRTP. */
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (sdp_span_is(protocol, known[i]))
			return true;
	}
	return false;
}

/* What every live audio and video m-line must be, wanted or not. */
static enum answer_verdict check_line(struct negotiation *n, unsigned line)
{
	const struct sdp_media *m = &n->s->media[line];
	bool ingest = n->policy->role == ANSWER_INGEST;
	enum sdp_direction must = ingest ? SDP_SENDONLY : SDP_RECVONLY;
	enum sdp_direction direction = m->attributes.direction;

	if (n->policy->is_plain)
		return ANSWER_OK;
	if (!is_encrypted(m->protocol))
		return refuse(n, ANSWER_UNACCEPTABLE,
			      "m-line %u (%s) is %.*s, which is not encrypted by DTLS-SRTP: "
			      "UDP/TLS/RTP/SAVPF is needed",
			      line + 1, m->kind == SDP_AUDIO ? "audio" : "video",
			      sdp_span_print(m->protocol), m->protocol.at);
	if (direction != SDP_INACTIVE && !(direction & must))
		return refuse(n, ANSWER_UNACCEPTABLE, "m-line %u (%s) is %s: %s", line + 1,
			      m->kind == SDP_AUDIO ? "audio" : "video", direction_name(direction),
			      ingest ? "publishing needs sendonly or sendrecv"
				     : "watching needs recvonly or sendrecv");
	if (!m->rtcp_mux)
		return refuse(n, ANSWER_UNACCEPTABLE,
			      "m-line %u (%s) has no a=rtcp-mux: RTP and RTCP must share one port",
			      line + 1, m->kind == SDP_AUDIO ? "audio" : "video");
	return ANSWER_OK;
}

static enum answer_verdict check_bundle(struct negotiation *n)
{
	unsigned live = 0, outside = 0;

	for (unsigned i = 0; i < n->s->media_count; i++) {
		const struct sdp_media *m = &n->s->media[i];

		if (!has_live_rtp(m) || m->attributes.direction == SDP_INACTIVE)
			continue;
		live++;
		if (!sdp_bundle_has(n->bundle.mids, m->mid) || n->bundle.tagged < 0)
			outside = i + 1;
	}
	if (live > 1 && n->bundle.tagged < 0)
		return refuse(n, ANSWER_UNACCEPTABLE,
			      "%u m-lines but no usable a=group:BUNDLE: all media must share one "
			      "transport (bundlePolicy max-bundle)",
			      live);
	if (live > 1 && outside)
		return refuse(n, ANSWER_UNACCEPTABLE,
			      "m-line %u is not in the BUNDLE group: all media must share one "
			      "transport (bundlePolicy max-bundle)",
			      outside);
	return ANSWER_OK;
}

/* Marks the formats of an m-line that one entry of the policy allows: all of them when the variant
 * does not matter, else the one that fits a live stream best. */
static void mark_formats(const struct negotiation *n, const struct sdp_media *m,
			 enum media_kind kind, const struct answer_codec *allowed,
			 bool marked[static 128])
{
	struct sdp_span stream = { NULL, 0 };
	int best_fit = 0;
	unsigned best = 0;

	if (allowed->fmtp && allowed->fmtp[0])
		stream = (struct sdp_span){ allowed->fmtp, (uint32_t)strlen(allowed->fmtp) };
	for (unsigned i = 0; i < m->formats; i++) {
		const struct sdp_format *f = &n->s->formats[m->first_format + i];
		int fit;

		if (format_codec(kind, f) != allowed->codec)
			continue;
		fit = codec_fit(allowed->codec, stream, f->fmtp);
		if (!stream.at)
			marked[i] |= fit > 0;
		if (fit > best_fit) {
			best_fit = fit;
			best = i;
		}
	}
	if (stream.at && best_fit > 0)
		marked[best] = true;
}

static void add_codec(const struct negotiation *n, const struct sdp_media *m, enum media_kind kind,
		      const struct sdp_format *f)
{
	struct negotiated_media *out = &n->out->media[kind];
	struct negotiated_codec *c = &out->codecs[out->codec_count++];

	c->codec = format_codec(kind, f);
	c->pt = f->pt;
	c->rtx_pt = NEGOTIATED_NO_PT;
	c->clock_hz = codec_clock_hz(c->codec);
	c->channels = f->channels;
	c->feedback = f->feedback & n->policy->feedback;
	/* Retransmission answers a NACK; without one the format would be idle. */
	if (n->policy->rtx && kind == MEDIA_VIDEO && (c->feedback & SDP_FB_NACK))
		c->rtx_pt = format_rtx(n->s, m, f->pt);
	c->red_pt = NEGOTIATED_NO_PT;
	if (n->policy->red && c->codec == CODEC_OPUS)
		c->red_pt = format_red(n->s, m, f->pt, &c->is_red_first);
	codec_write_fmtp(c->codec, f->fmtp, c->fmtp);
	for (unsigned i = 0; i < n->policy->codec_count[kind] && c->codec == CODEC_OPUS; i++)
		if (n->policy->codecs[kind][i].fmtp)
			codec_carry_stereo(n->policy->codecs[kind][i].fmtp, c->fmtp);
	out->feedback |= c->feedback;
}

static void take_codecs(const struct negotiation *n, const struct sdp_media *m,
			enum media_kind kind)
{
	const struct answer_policy *p = n->policy;
	unsigned max = p->max_codecs && p->max_codecs < NEGOTIATED_MAX_CODECS
			   ? p->max_codecs
			   : NEGOTIATED_MAX_CODECS;
	bool marked[128] = { false }; /* payload types are unique, so an m-line has at most 128 */

	for (unsigned i = 0; i < p->codec_count[kind]; i++)
		mark_formats(n, m, kind, &p->codecs[kind][i], marked);
	for (unsigned i = 0; i < m->formats && n->out->media[kind].codec_count < max; i++) {
		if (marked[i])
			add_codec(n, m, kind, &n->s->formats[m->first_format + i]);
	}
}

static void put_name(struct sdp_writer *w, const char *name, size_t len, struct sdp_span fmtp)
{
	struct sdp_span value = { NULL, 0 };

	if (!sdp_fmtp_get(fmtp, "profile-level-id", &value))
		sdp_fmtp_get(fmtp, "profile-id", &value);
	sdp_put(w, "%s%.*s", w->len ? ", " : "", (int)len, name);
	if (value.len)
		sdp_put(w, " %.*s", value.len < 8 ? (int)value.len : 8, value.at);
}

static enum answer_verdict refuse_codecs(struct negotiation *n, const struct sdp_media *m,
					 enum media_kind kind)
{
	char offered[100], possible[80];
	struct sdp_writer o, p;

	sdp_writer_init(&o, offered, sizeof(offered));
	sdp_writer_init(&p, possible, sizeof(possible));
	for (unsigned i = 0; i < m->formats; i++) {
		const struct sdp_format *f = &n->s->formats[m->first_format + i];

		if (f->name.at && !sdp_span_is_nocase(f->name, "rtx"))
			put_name(&o, f->name.at, (size_t)sdp_span_print(f->name), f->fmtp);
	}
	for (unsigned i = 0; i < n->policy->codec_count[kind]; i++) {
		const struct answer_codec *c = &n->policy->codecs[kind][i];
		const char *fmtp = c->fmtp ? c->fmtp : "";

		put_name(&p, codec_name(c->codec), strlen(codec_name(c->codec)),
			 (struct sdp_span){ fmtp, (uint32_t)strlen(fmtp) });
	}
	return refuse(n, ANSWER_NO_COMMON_CODEC, "no common %s codec: offered %s%s; possible %s%s",
		      kind == MEDIA_AUDIO ? "audio" : "video", o.len ? offered : "none known",
		      o.overflow ? "..." : "", possible, p.overflow ? "..." : "");
}

/* Feedback on all packets needs their numbers; with it, nobody needs REMB. */
static void settle_feedback(struct negotiated_media *out)
{
	bool is_numbered = out->extensions.id_of[EXT_TRANSPORT_CC] != 0;

	out->feedback = 0;
	for (unsigned i = 0; i < out->codec_count; i++) {
		struct negotiated_codec *c = &out->codecs[i];

		if (!is_numbered)
			c->feedback &= (uint8_t)~SDP_FB_TRANSPORT_CC;
		if (c->feedback & SDP_FB_TRANSPORT_CC)
			c->feedback &= (uint8_t)~SDP_FB_REMB;
		out->feedback |= c->feedback;
	}
}

/* RFC 9143 section 10.2: in a BUNDLE an id means the same on all m-lines. aiortc offers one id with
 * two meanings, and then takes the last for both: what we send must not need the other. */
static uint32_t without_ambiguous(const struct negotiation *n, const struct sdp_media *m,
				  enum media_kind kind, uint32_t extensions)
{
	const struct ext_map *others =
	    &n->out->media[kind == MEDIA_AUDIO ? MEDIA_VIDEO : MEDIA_AUDIO].extensions;
	const struct sdp_extension *e;

	for (unsigned i = 0; (e = media_extension(n->s, m, i)) != NULL; i++) {
		enum ext_kind own = ext_kind_of_uri(e->uri.at, e->uri.len);
		enum ext_kind other =
		    e->id <= EXT_MAX_ID ? ext_map_kind(others, (uint8_t)e->id) : EXT_KINDS;

		if (own != EXT_KINDS && other != EXT_KINDS && own != other)
			extensions &= ~(1u << own);
	}
	return extensions;
}

static enum answer_verdict accept_line(struct negotiation *n, unsigned line, enum media_kind kind)
{
	const struct sdp_media *m = &n->s->media[line];
	struct negotiated_media *out = &n->out->media[kind];
	bool egress = n->policy->role == ANSWER_EGRESS;
	uint32_t extensions = n->policy->extensions[kind];

	take_codecs(n, m, kind);
	if (!out->codec_count)
		return refuse_codecs(n, m, kind);
	out->is_accepted = true;
	n->out->lines[line] = NEGOTIATED_ACCEPTED;
	negotiated_take_media(out, n->s, line);
	if (!egress)
		negotiated_take_encodings(out, n->s, m,
					  kind == MEDIA_VIDEO ? n->policy->max_encodings : 1);
	/* An answer with rids but without their extensions could not be kept by the packets. */
	if (negotiated_has_rids(out))
		extensions |= 1u << EXT_MID | 1u << EXT_RID | 1u << EXT_REPAIRED_RID;
	if (egress)
		extensions = without_ambiguous(n, m, kind, extensions);
	negotiated_take_extensions(out, n->s, m, extensions, egress ? SDP_RECVONLY : SDP_SENDONLY);
	if (!egress)
		settle_feedback(out);
	if (egress) {
		out->local_ssrc = n->policy->ssrc[kind];
		for (unsigned i = 0; i < out->codec_count; i++) {
			if (out->codecs[i].rtx_pt != NEGOTIATED_NO_PT)
				out->local_rtx_ssrc = n->policy->rtx_ssrc[kind];
		}
	}
	return ANSWER_OK;
}

static enum answer_verdict judge_line(struct negotiation *n, unsigned line)
{
	const struct sdp_media *m = &n->s->media[line];
	enum media_kind kind = m->kind == SDP_AUDIO ? MEDIA_AUDIO : MEDIA_VIDEO;
	enum answer_verdict verdict;

	set_refused(n, line);
	if (!has_live_rtp(m))
		return ANSWER_OK;
	verdict = check_line(n, line);
	if (verdict != ANSWER_OK)
		return verdict;
	if (m->attributes.direction == SDP_INACTIVE || n->out->media[kind].is_accepted ||
	    !n->policy->codec_count[kind])
		return ANSWER_OK;
	return accept_line(n, line, kind);
}

/* The m-line whose transport attributes count (RFC 9143 section 7.1). */
static const struct sdp_media *transport_line(const struct negotiation *n)
{
	if (n->bundle.tagged >= 0)
		return &n->s->media[n->bundle.tagged];
	for (unsigned i = 0; i < n->s->media_count; i++) {
		if (n->out->lines[i] == NEGOTIATED_ACCEPTED)
			return &n->s->media[i];
	}
	return NULL;
}

static enum answer_verdict take_transport(struct negotiation *n, const struct sdp_media *m)
{
	const struct sdp_attributes *a = &m->attributes;
	struct negotiated *out = n->out;

	if (!sdp_span_copy(a->ufrag, out->remote_ufrag, sizeof(out->remote_ufrag)) ||
	    !sdp_span_copy(a->pwd, out->remote_pwd, sizeof(out->remote_pwd)))
		return refuse(n, ANSWER_UNACCEPTABLE,
			      "the first m-line has no a=ice-ufrag and a=ice-pwd");
	if (!negotiated_take_fingerprints(out, a))
		return refuse(n, ANSWER_UNACCEPTABLE,
			      "the offer has no a=fingerprint of sha-256, sha-384 or sha-512");
	if (a->setup == SDP_SETUP_HOLDCONN)
		return refuse(n, ANSWER_UNACCEPTABLE,
			      "a=setup:holdconn cannot connect: actpass, active or passive can");
	out->dtls_role =
	    a->setup == SDP_SETUP_PASSIVE ? NEGOTIATED_DTLS_CLIENT : NEGOTIATED_DTLS_SERVER;
	out->is_bundled = n->bundle.tagged >= 0;
	out->remote_is_lite = a->ice_lite;
	out->extmap_allow_mixed = a->extmap_allow_mixed;
	negotiated_take_candidates(out, n->s, m);
	return ANSWER_OK;
}

enum answer_verdict answer_negotiate(const struct sdp *offer, const struct answer_policy *policy,
				     struct negotiated *out, char reason[ANSWER_REASON_BYTES])
{
	struct negotiation n = { offer, policy, out, bundle_find(offer), reason };
	const struct sdp_media *transport;
	enum answer_verdict verdict = ANSWER_OK;

	memset(out, 0, sizeof(*out));
	reason[0] = '\0';
	out->line_count = offer->media_count;
	out->is_egress = policy->role == ANSWER_EGRESS;
	if (!offer->media_count)
		return refuse(&n, ANSWER_UNACCEPTABLE, "the offer has no m-line: nothing to %s",
			      policy->role == ANSWER_INGEST ? "receive" : "send");
	for (unsigned i = 0; i < offer->media_count && verdict == ANSWER_OK; i++)
		verdict = judge_line(&n, i);
	if (verdict == ANSWER_OK && !policy->is_plain)
		verdict = check_bundle(&n);
	if (verdict != ANSWER_OK)
		return verdict;
	if (!out->media[MEDIA_AUDIO].is_accepted && !out->media[MEDIA_VIDEO].is_accepted)
		return refuse(
		    &n, ANSWER_UNACCEPTABLE,
		    "no m-line of the offer can be used: each is inactive, disabled or of "
		    "a kind this stream has not");
	if (policy->is_plain)
		return ANSWER_OK;
	transport = transport_line(&n);
	return take_transport(&n, transport);
}
