#include "media/offer.h"
#include "media/answer_parts.h"

#include <inttypes.h>
#include <stdarg.h>

struct offered_codec {
	enum media_codec codec;
	uint8_t pt;
	uint8_t rtx_pt; /* NEGOTIATED_NO_PT: none */
	bool publish;   /* also offered by a publisher, which sends one codec of each kind */
	const char *fmtp;
};

/* Numbers as Chromium uses them: a table that fits its own reads easiest in a capture. */
static const struct offered_codec offered[] = {
	{ CODEC_OPUS, OFFER_PT_OPUS, NEGOTIATED_NO_PT, true, "minptime=10;useinbandfec=1" },
	{ CODEC_VP8, OFFER_PT_VP8, OFFER_PT_VP8_RTX, true, "" },
	{ CODEC_VP9, OFFER_PT_VP9, 99, false, "profile-id=0" },
	{ CODEC_H264, OFFER_PT_H264, 103, false,
	  "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f" },
	{ CODEC_H264, 104, 105, false,
	  "level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42e01f" },
	{ CODEC_H264, 106, 107, false,
	  "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=4d001f" },
	{ CODEC_H264, 108, 109, false,
	  "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=64001f" },
	{ CODEC_AV1, OFFER_PT_AV1, 46, false, "level-idx=5;profile=0;tier=0" },
};

enum { OFFERED_CODECS = sizeof(offered) / sizeof(offered[0]) };

/* One id a URI on all m-lines: they share a transport. */
static const struct {
	enum ext_kind kind;
	uint8_t id;
	bool publish;
	bool audio, video;
} extensions[] = {
	{ EXT_MID, 4, true, true, true },
	{ EXT_AUDIO_LEVEL, 1, true, true, false },
	{ EXT_ABS_CAPTURE_TIME, 6, true, true, true },
	{ EXT_PLAYOUT_DELAY, 5, false, false, true },
	{ EXT_VIDEO_ORIENTATION, 13, false, false, true },
	{ EXT_DEPENDENCY_DESCRIPTOR, 12, false, false, true },
};

static bool is_offered(const struct offer_config *config, const struct offered_codec *c,
		       enum media_kind kind)
{
	return codec_kind(c->codec) == kind && (c->publish || config->role == OFFER_WATCH);
}

static void put_codecs(struct sdp_writer *w, const struct offer_config *config,
		       enum media_kind kind)
{
	for (unsigned i = 0; i < OFFERED_CODECS; i++) {
		const struct offered_codec *c = &offered[i];

		if (!is_offered(config, c, kind))
			continue;
		sdp_put(w, "a=rtpmap:%u %s/%u%s\r\n", c->pt, codec_name(c->codec),
			codec_clock_hz(c->codec), c->codec == CODEC_OPUS ? "/2" : "");
		if (kind == MEDIA_VIDEO)
			sdp_put(w,
				"a=rtcp-fb:%u ccm fir\r\na=rtcp-fb:%u nack\r\n"
				"a=rtcp-fb:%u nack pli\r\n",
				c->pt, c->pt, c->pt);
		if (config->transport_cc)
			sdp_put(w, "a=rtcp-fb:%u transport-cc\r\n", c->pt);
		if (config->remb && kind == MEDIA_VIDEO)
			sdp_put(w, "a=rtcp-fb:%u goog-remb\r\n", c->pt);
		if (c->fmtp[0])
			sdp_put(w, "a=fmtp:%u %s\r\n", c->pt, c->fmtp);
		if (config->rtx && c->rtx_pt != NEGOTIATED_NO_PT)
			sdp_put(w, "a=rtpmap:%u rtx/90000\r\na=fmtp:%u apt=%u\r\n", c->rtx_pt,
				c->rtx_pt, c->pt);
	}
}

static void put_extensions(struct sdp_writer *w, const struct offer_config *config,
			   enum media_kind kind)
{
	for (unsigned i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
		bool fits = kind == MEDIA_AUDIO ? extensions[i].audio : extensions[i].video;

		if (fits && (extensions[i].publish || config->role == OFFER_WATCH))
			sdp_put(w, "a=extmap:%u %s\r\n", extensions[i].id,
				ext_uri(extensions[i].kind));
	}
	if (config->transport_cc)
		sdp_put(w, "a=extmap:%u %s\r\n", OFFER_ID_TRANSPORT_CC, ext_uri(EXT_TRANSPORT_CC));
	if (config->remb && kind == MEDIA_VIDEO)
		sdp_put(w, "a=extmap:%u %s\r\n", OFFER_ID_SEND_TIME, ext_uri(EXT_ABS_SEND_TIME));
}

static bool sends_rtx(const struct offer_config *config, enum media_kind kind)
{
	return config->rtx && kind == MEDIA_VIDEO && config->rtx_ssrc[kind] != 0;
}

static void put_sources(struct sdp_writer *w, const struct offer_config *config,
			enum media_kind kind, const char *name)
{
	uint32_t ssrcs[2] = { config->ssrc[kind], config->rtx_ssrc[kind] };
	unsigned count = sends_rtx(config, kind) ? 2 : 1;

	if (count == 2)
		sdp_put(w, "a=ssrc-group:FID %u %u\r\n", ssrcs[0], ssrcs[1]);
	for (unsigned i = 0; i < count; i++)
		sdp_put(w, "a=ssrc:%u cname:%s\r\na=ssrc:%u msid:%s %s-%s\r\n", ssrcs[i],
			config->cname, ssrcs[i], config->msid, config->msid, name);
}

static void put_media(struct sdp_writer *w, const struct offer_config *config, enum media_kind kind,
		      unsigned line)
{
	const char *name = kind == MEDIA_AUDIO ? "audio" : "video";
	bool publish = config->role == OFFER_PUBLISH;

	sdp_put(w, "m=%s 9 UDP/TLS/RTP/SAVPF", name);
	for (unsigned i = 0; i < OFFERED_CODECS; i++) {
		if (!is_offered(config, &offered[i], kind))
			continue;
		sdp_put(w, " %u", offered[i].pt);
		if (config->rtx && offered[i].rtx_pt != NEGOTIATED_NO_PT)
			sdp_put(w, " %u", offered[i].rtx_pt);
	}
	sdp_put(w, "\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", config->ufrag,
		config->pwd);
	sdp_put(w, "a=fingerprint:sha-256 %s\r\na=setup:actpass\r\na=mid:%u\r\n",
		config->fingerprint, line);
	put_extensions(w, config, kind);
	sdp_put(w, publish ? "a=sendonly\r\n" : "a=recvonly\r\n");
	if (publish)
		sdp_put(w, "a=msid:%s %s-%s\r\n", config->msid, config->msid, name);
	sdp_put(w, "a=rtcp-mux\r\na=rtcp-mux-only\r\na=rtcp-rsize\r\n");
	put_codecs(w, config, kind);
	if (publish)
		put_sources(w, config, kind, name);
	if (line == 0)
		sdp_put_candidates(w, config->candidates, config->candidate_count);
	sdp_put(w, "a=end-of-candidates\r\n");
}

int offer_write(const struct offer_config *config, char *out, size_t cap)
{
	struct sdp_writer w;

	sdp_writer_init(&w, out, cap);
	sdp_put(&w, "v=0\r\no=- %" PRIu64 " 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n",
		config->session_id);
	sdp_put(&w,
		config->audio && config->video ? "a=group:BUNDLE 0 1\r\n" : "a=group:BUNDLE 0\r\n");
	sdp_put(&w, "a=extmap-allow-mixed\r\na=msid-semantic:WMS *\r\n");
	if (config->audio)
		put_media(&w, config, MEDIA_AUDIO, 0);
	if (config->video)
		put_media(&w, config, MEDIA_VIDEO, config->audio ? 1 : 0);
	return sdp_writer_finish(&w);
}

struct reading {
	const struct offer_config *config;
	const struct sdp *s;
	struct negotiated *out;
	char *reason;
};

__attribute__((format(printf, 3, 4))) static enum offer_verdict
refuse(struct reading *r, enum offer_verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->reason, ANSWER_REASON_BYTES, format, args);
	va_end(args);
	return verdict;
}

static const struct offered_codec *offered_by_pt(const struct offer_config *config,
						 enum media_kind kind, uint8_t pt)
{
	for (unsigned i = 0; i < OFFERED_CODECS; i++) {
		if (is_offered(config, &offered[i], kind) && offered[i].pt == pt)
			return &offered[i];
	}
	return NULL;
}

static void take_codecs(struct reading *r, const struct sdp_media *m, enum media_kind kind)
{
	struct negotiated_media *out = &r->out->media[kind];
	const struct sdp_span any_variant = { NULL, 0 };

	for (unsigned i = 0; i < m->formats && out->codec_count < NEGOTIATED_MAX_CODECS; i++) {
		const struct sdp_format *f = &r->s->formats[m->first_format + i];
		const struct offered_codec *ours = offered_by_pt(r->config, kind, f->pt);
		struct negotiated_codec *c = &out->codecs[out->codec_count];

		if (!ours || format_codec(kind, f) != ours->codec)
			continue;
		/* A form of the codec that nobody here speaks: H264's interleaved mode. */
		if (!codec_fit(ours->codec, any_variant, f->fmtp))
			continue;
		out->codec_count++;
		c->codec = ours->codec;
		c->pt = f->pt;
		c->rtx_pt = NEGOTIATED_NO_PT;
		c->clock_hz = f->clock_hz;
		c->channels = f->channels;
		c->feedback = f->feedback;
		if (r->config->rtx && format_rtx(r->s, m, f->pt) == ours->rtx_pt)
			c->rtx_pt = ours->rtx_pt;
		c->red_pt = NEGOTIATED_NO_PT;
		codec_write_fmtp(c->codec, f->fmtp, c->fmtp);
		out->feedback |= c->feedback;
	}
}

static void take_sources(struct reading *r, enum media_kind kind)
{
	struct negotiated_media *out = &r->out->media[kind];

	if (r->config->role != OFFER_PUBLISH)
		return;
	out->local_ssrc = r->config->ssrc[kind];
	for (unsigned i = 0; i < out->codec_count; i++) {
		if (out->codecs[i].rtx_pt != NEGOTIATED_NO_PT && sends_rtx(r->config, kind))
			out->local_rtx_ssrc = r->config->rtx_ssrc[kind];
	}
}

static enum offer_verdict read_media(struct reading *r, unsigned line, enum media_kind kind)
{
	const struct sdp_media *m = &r->s->media[line];
	struct negotiated_media *out = &r->out->media[kind];
	enum sdp_direction must = r->config->role == OFFER_PUBLISH ? SDP_RECVONLY : SDP_SENDONLY;
	const char mid[] = { (char)('0' + line), '\0' };

	if (m->kind != (kind == MEDIA_AUDIO ? SDP_AUDIO : SDP_VIDEO) ||
	    (m->mid.at && !sdp_span_is(m->mid, mid)))
		return refuse(r, OFFER_UNUSABLE, "m-line %u of the answer is not the one offered",
			      line + 1);
	if (media_is_disabled(m) || !(m->attributes.direction & must))
		return OFFER_OK;
	if (!m->rtcp_mux)
		return refuse(r, OFFER_UNUSABLE, "m-line %u of the answer has no a=rtcp-mux",
			      line + 1);
	take_codecs(r, m, kind);
	if (!out->codec_count)
		return refuse(r, OFFER_UNUSABLE,
			      "m-line %u of the answer has no payload type that was offered",
			      line + 1);
	out->is_accepted = true;
	r->out->lines[line] = NEGOTIATED_ACCEPTED;
	negotiated_take_media(out, r->s, line);
	negotiated_take_extensions(out, r->s, m, UINT32_MAX, must);
	memcpy(out->mid, mid, sizeof(mid));
	take_sources(r, kind);
	return OFFER_OK;
}

static const struct sdp_media *transport_line(const struct reading *r)
{
	for (unsigned i = 0; i < r->s->media_count; i++) {
		if (r->out->lines[i] == NEGOTIATED_ACCEPTED)
			return &r->s->media[i];
	}
	return NULL;
}

static enum offer_verdict take_transport(struct reading *r, const struct sdp_media *m)
{
	const struct sdp_attributes *a = &m->attributes;
	struct negotiated *out = r->out;

	if (!sdp_span_copy(a->ufrag, out->remote_ufrag, sizeof(out->remote_ufrag)) ||
	    !sdp_span_copy(a->pwd, out->remote_pwd, sizeof(out->remote_pwd)))
		return refuse(r, OFFER_UNUSABLE, "the answer has no a=ice-ufrag and a=ice-pwd");
	if (!negotiated_take_fingerprints(out, a))
		return refuse(r, OFFER_UNUSABLE,
			      "the answer has no a=fingerprint of sha-256, sha-384 or sha-512");
	if (a->setup == SDP_SETUP_ACTPASS || a->setup == SDP_SETUP_HOLDCONN)
		return refuse(r, OFFER_UNUSABLE, "a=setup of the answer is not active or passive");
	/* RFC 4145 section 4: an answer without the attribute is passive. */
	out->dtls_role =
	    a->setup == SDP_SETUP_ACTIVE ? NEGOTIATED_DTLS_SERVER : NEGOTIATED_DTLS_CLIENT;
	out->remote_is_lite = a->ice_lite;
	out->extmap_allow_mixed = a->extmap_allow_mixed;
	negotiated_take_candidates(out, r->s, m);
	/* Some answers repeat the candidates elsewhere, or carry them only there. */
	for (unsigned i = 0; i < r->s->media_count && !out->candidate_count; i++)
		negotiated_take_candidates(out, r->s, &r->s->media[i]);
	return OFFER_OK;
}

enum offer_verdict offer_read_answer(const struct offer_config *config, const struct sdp *answer,
				     struct negotiated *out, char reason[ANSWER_REASON_BYTES])
{
	struct reading r = { config, answer, out, reason };
	unsigned lines = (unsigned)config->audio + (unsigned)config->video;
	enum offer_verdict verdict = OFFER_OK;
	const struct sdp_media *transport;

	memset(out, 0, sizeof(*out));
	reason[0] = '\0';
	out->line_count = answer->media_count;
	out->is_egress = config->role == OFFER_PUBLISH;
	out->is_bundled = answer->bundle_count > 0;
	if (answer->media_count != lines)
		return refuse(&r, OFFER_UNUSABLE, "the answer has %u m-lines, the offer had %u",
			      answer->media_count, lines);
	if (config->audio)
		verdict = read_media(&r, 0, MEDIA_AUDIO);
	if (config->video && verdict == OFFER_OK)
		verdict = read_media(&r, config->audio ? 1 : 0, MEDIA_VIDEO);
	if (verdict != OFFER_OK)
		return verdict;
	transport = transport_line(&r);
	if (!transport)
		return refuse(&r, OFFER_REFUSED, "the answer refuses every m-line");
	return take_transport(&r, transport);
}
