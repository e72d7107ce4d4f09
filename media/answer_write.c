#include "media/answer_parts.h"

#include <inttypes.h>

struct answer_writer {
	struct sdp_writer w;
	const struct sdp *s;
	const struct negotiated *n;
	const struct answer_local *local;
	bool egress; /* we send */
	struct bundle bundle;
};

static void put_span(struct sdp_writer *w, const char *before, struct sdp_span span)
{
	if (span.at)
		sdp_put(w, "%s%.*s\r\n", before, (int)span.len, span.at);
}

static bool is_answered_mid(const struct answer_writer *a, struct sdp_span mid)
{
	for (unsigned i = 0; i < a->s->media_count; i++) {
		if (a->n->lines[i] != NEGOTIATED_REJECTED &&
		    sdp_span_equal(a->s->media[i].mid, mid))
			return true;
	}
	return false;
}

static void put_bundle(struct answer_writer *a)
{
	struct sdp_span mids = a->bundle.mids, mid;

	if (a->bundle.tagged < 0)
		return;
	sdp_put(&a->w, "a=group:BUNDLE");
	for (mid = sdp_span_word(&mids); mid.at; mid = sdp_span_word(&mids)) {
		if (is_answered_mid(a, mid))
			sdp_put(&a->w, " %.*s", (int)mid.len, mid.at);
	}
	sdp_put(&a->w, "\r\n");
}

static void put_session(struct answer_writer *a)
{
	sdp_put(&a->w, "v=0\r\no=- %" PRIu64 " 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n",
		a->local->session_id);
	put_bundle(a);
	if (a->n->extmap_allow_mixed)
		sdp_put(&a->w, "a=extmap-allow-mixed\r\n");
	if (a->egress)
		sdp_put(&a->w, "a=msid-semantic:WMS *\r\n");
	sdp_put(&a->w, "a=ice-lite\r\na=ice-options:trickle\r\n");
}

/* Firefox wants an rtpmap for every payload type, Chromium a format on a refused m-line: the first. */
static void put_refused_format(struct answer_writer *a, const struct sdp_media *m)
{
	const struct sdp_format *f = &a->s->formats[m->first_format];

	if (!m->formats || !f->name.at)
		return;
	sdp_put(&a->w, "a=rtpmap:%u %.*s/%u", f->pt, (int)f->name.len, f->name.at, f->clock_hz);
	sdp_put(&a->w, f->channels > 1 ? "/%u\r\n" : "\r\n", f->channels);
}

static void put_transport(struct answer_writer *a)
{
	const struct answer_local *local = a->local;

	sdp_put(&a->w, "a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", local->ufrag, local->pwd);
	sdp_put(&a->w, "a=fingerprint:sha-256 %s\r\n", local->fingerprint);
	sdp_put(&a->w, "a=setup:%s\r\n",
		a->n->dtls_role == NEGOTIATED_DTLS_SERVER ? "passive" : "active");
}

/* On the m-line that carries the transport; the others of the BUNDLE share it. */
static void put_candidates(struct answer_writer *a, unsigned line)
{
	if (a->bundle.tagged >= 0 && a->bundle.tagged != (int)line)
		return;
	sdp_put_candidates(&a->w, a->local->candidates, a->local->candidate_count);
	sdp_put(&a->w, "a=end-of-candidates\r\n");
}

static void put_refused(struct answer_writer *a, unsigned line)
{
	const struct sdp_media *m = &a->s->media[line];
	bool inactive = a->n->lines[line] == NEGOTIATED_INACTIVE;
	struct sdp_span formats = m->formats_text;
	struct sdp_span first = sdp_span_word(&formats);

	sdp_put(&a->w, "m=%.*s %d %.*s %.*s\r\nc=IN IP4 0.0.0.0\r\n", (int)m->kind_text.len,
		m->kind_text.at, inactive ? 9 : 0, (int)m->protocol.len, m->protocol.at,
		(int)first.len, first.at);
	if (inactive)
		put_transport(a);
	put_span(&a->w, "a=mid:", m->mid);
	if (m->kind <= SDP_VIDEO)
		sdp_put(&a->w, "a=inactive\r\n");
	if (inactive && m->kind <= SDP_VIDEO)
		sdp_put(&a->w, "a=rtcp-mux\r\n");
	if (m->kind == SDP_APPLICATION)
		put_span(&a->w, "a=sctp-port:", m->sctp_port);
	put_refused_format(a, m);
	if (inactive)
		put_candidates(a, line);
}

static const char *answered_direction(const struct sdp_extension *e)
{
	if (!e->has_direction)
		return "";
	if (e->direction == SDP_SENDRECV)
		return "/sendrecv";
	return e->direction == SDP_SENDONLY ? "/recvonly" : "/sendonly";
}

static void put_extensions(struct answer_writer *a, const struct sdp_media *m,
			   const struct negotiated_media *media)
{
	uint32_t written = 0;
	const struct sdp_extension *e;

	for (unsigned i = 0; (e = media_extension(a->s, m, i)) != NULL; i++) {
		enum ext_kind kind = ext_kind_of_uri(e->uri.at, e->uri.len);

		if (kind == EXT_KINDS || media->extensions.id_of[kind] != e->id ||
		    (written >> kind & 1))
			continue;
		written |= 1u << kind;
		sdp_put(&a->w, "a=extmap:%u%s %.*s\r\n", e->id, answered_direction(e),
			(int)e->uri.len, e->uri.at);
	}
}

static void put_feedback(struct sdp_writer *w, const struct negotiated_codec *c)
{
	static const struct {
		enum sdp_feedback bit;
		const char *text;
	} known[] = {
		{ SDP_FB_REMB, "goog-remb" }, { SDP_FB_TRANSPORT_CC, "transport-cc" },
		{ SDP_FB_FIR, "ccm fir" },    { SDP_FB_NACK, "nack" },
		{ SDP_FB_PLI, "nack pli" },
	};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (c->feedback & known[i].bit)
			sdp_put(w, "a=rtcp-fb:%u %s\r\n", c->pt, known[i].text);
	}
}

static void put_codec(struct answer_writer *a, const struct negotiated_codec *c)
{
	sdp_put(&a->w, "a=rtpmap:%u %s/%u", c->pt, codec_name(c->codec), c->clock_hz);
	sdp_put(&a->w, c->channels > 1 ? "/%u\r\n" : "\r\n", c->channels);
	put_feedback(&a->w, c);
	if (c->fmtp[0])
		sdp_put(&a->w, "a=fmtp:%u %s\r\n", c->pt, c->fmtp);
	if (c->rtx_pt != NEGOTIATED_NO_PT)
		sdp_put(&a->w, "a=rtpmap:%u rtx/%u\r\na=fmtp:%u apt=%u\r\n", c->rtx_pt, c->clock_hz,
			c->rtx_pt, c->pt);
	if (c->red_pt != NEGOTIATED_NO_PT)
		sdp_put(&a->w, "a=rtpmap:%u red/%u/2\r\na=fmtp:%u %u/%u\r\n", c->red_pt,
			c->clock_hz, c->red_pt, c->pt, c->pt);
}

/* In the order of the offer: the first one is what the peer sends. */
static void put_types(struct answer_writer *a, const struct negotiated_codec *c)
{
	if (c->red_pt != NEGOTIATED_NO_PT && c->is_red_first)
		sdp_put(&a->w, " %u", c->red_pt);
	sdp_put(&a->w, " %u", c->pt);
	if (c->red_pt != NEGOTIATED_NO_PT && !c->is_red_first)
		sdp_put(&a->w, " %u", c->red_pt);
	if (c->rtx_pt != NEGOTIATED_NO_PT)
		sdp_put(&a->w, " %u", c->rtx_pt);
}

static void put_sources(struct answer_writer *a, const struct negotiated_media *m, const char *kind)
{
	const struct answer_local *local = a->local;
	uint32_t ssrcs[2] = { m->local_ssrc, m->local_rtx_ssrc };

	if (ssrcs[1])
		sdp_put(&a->w, "a=ssrc-group:FID %u %u\r\n", ssrcs[0], ssrcs[1]);
	for (unsigned i = 0; i < 2 && ssrcs[i]; i++)
		sdp_put(&a->w, "a=ssrc:%u cname:%s\r\na=ssrc:%u msid:%s %s-%s\r\n", ssrcs[i],
			local->cname, ssrcs[i], local->msid, local->msid, kind);
}

static void put_accepted(struct answer_writer *a, unsigned line)
{
	const struct sdp_media *offered = &a->s->media[line];
	const char *kind = offered->kind == SDP_AUDIO ? "audio" : "video";
	const struct negotiated_media *m =
	    &a->n->media[offered->kind == SDP_AUDIO ? MEDIA_AUDIO : MEDIA_VIDEO];

	sdp_put(&a->w, "m=%s 9 %.*s", kind, (int)offered->protocol.len, offered->protocol.at);
	for (unsigned i = 0; i < m->codec_count; i++)
		put_types(a, &m->codecs[i]);
	sdp_put(&a->w, "\r\nc=IN IP4 0.0.0.0\r\n");
	put_transport(a);
	put_span(&a->w, "a=mid:", offered->mid);
	put_extensions(a, offered, m);
	sdp_put(&a->w, a->egress ? "a=sendonly\r\n" : "a=recvonly\r\n");
	if (a->egress)
		sdp_put(&a->w, "a=msid:%s %s-%s\r\n", a->local->msid, a->local->msid, kind);
	/* RFC 9725 section 4.4.1 asks for rtcp-mux-only in each bundled m-section. */
	sdp_put(&a->w, "a=rtcp-mux\r\na=rtcp-mux-only\r\n");
	if (m->rtcp_rsize)
		sdp_put(&a->w, "a=rtcp-rsize\r\n");
	if (m->rcvr_rtt)
		sdp_put(&a->w, "a=rtcp-xr:rcvr-rtt=all\r\n");
	for (unsigned i = 0; i < m->codec_count; i++)
		put_codec(a, &m->codecs[i]);
	if (a->egress)
		put_sources(a, m, kind);
	answer_put_simulcast(&a->w, a->s, offered, m);
	put_candidates(a, line);
}

int answer_write(const struct sdp *offer, const struct negotiated *n,
		 const struct answer_local *local, char *out, size_t cap)
{
	struct answer_writer a = {
		.s = offer,
		.n = n,
		.local = local,
		.egress = n->is_egress,
		.bundle = bundle_find(offer),
	};

	sdp_writer_init(&a.w, out, cap);
	put_session(&a);
	for (unsigned i = 0; i < offer->media_count; i++) {
		if (n->lines[i] == NEGOTIATED_ACCEPTED)
			put_accepted(&a, i);
		else
			put_refused(&a, i);
	}
	return sdp_writer_finish(&a.w);
}
