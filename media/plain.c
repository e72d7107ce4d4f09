#include "media/plain.h"

#include <arpa/inet.h>

#include "media/answer_parts.h"

static enum answer_verdict refuse_line(const struct sdp_media *m, const char *what,
				       char reason[ANSWER_REASON_BYTES])
{
	snprintf(reason, ANSWER_REASON_BYTES, "line %u: %.*s %s", m->line,
		 sdp_span_print(m->protocol), m->protocol.at, what);
	return ANSWER_UNACCEPTABLE;
}

static enum answer_verdict check_protocols(const struct sdp *s, char reason[ANSWER_REASON_BYTES])
{
	for (unsigned i = 0; i < s->media_count; i++) {
		const struct sdp_media *m = &s->media[i];

		if (m->kind > SDP_VIDEO || media_is_disabled(m) ||
		    sdp_span_is(m->protocol, "RTP/AVP") || sdp_span_is(m->protocol, "RTP/AVPF"))
			continue;
		return refuse_line(m, "is not plain RTP: RTP/AVP or RTP/AVPF is", reason);
	}
	return ANSWER_OK;
}

/* "incl IN IP4 * 192.0.2.1": one source, of any destination. */
static struct sdp_address filtered_source(struct sdp_span filter)
{
	struct sdp_span mode = sdp_span_word(&filter), network = sdp_span_word(&filter);
	struct sdp_address source = { .family = 0 };

	(void)sdp_span_word(&filter); /* type of address */
	(void)sdp_span_word(&filter); /* destination */
	if (sdp_span_is(mode, "incl") && sdp_span_is(network, "IN"))
		sdp_address_parse(&source, sdp_span_word(&filter));
	return source;
}

static bool shares_leg(const struct sdp *s, const struct sdp_media *a, const struct sdp_media *b)
{
	struct bundle bundle = bundle_find(s);

	return a->port == b->port || (bundle.tagged >= 0 && sdp_bundle_has(bundle.mids, a->mid) &&
				      sdp_bundle_has(bundle.mids, b->mid));
}

static uint16_t rtcp_port_of(const struct sdp_media *m)
{
	if (m->rtcp_mux)
		return m->port;
	return m->rtcp.port ? m->rtcp.port : (uint16_t)(m->port + 1);
}

static void add_line(const struct sdp *s, const struct negotiated *n, enum media_kind kind,
		     struct plain_terms *out)
{
	const struct sdp_media *m = &s->media[n->media[kind].m_line];
	const struct sdp_media *first;

	if (out->leg_count > 0) {
		first = &s->media[n->media[MEDIA_AUDIO].m_line];
		if (shares_leg(s, first, m)) {
			out->legs[0].kinds |= (uint8_t)(1u << kind);
			return;
		}
	}
	out->legs[out->leg_count++] = (struct plain_leg){
		.kinds = (uint8_t)(1u << kind),
		.port = m->port,
		.rtcp_port = rtcp_port_of(m),
		.rtcp_mux = m->rtcp_mux,
	};
	if (out->is_filtered)
		return;
	out->source = filtered_source(m->source_filter);
	out->is_filtered = out->source.family != 0;
	if (!out->is_filtered)
		out->source = m->connection;
}

enum answer_verdict plain_read(const struct sdp *s, struct negotiated *n, struct plain_terms *out,
			       char reason[ANSWER_REASON_BYTES])
{
	struct answer_policy policy;
	enum answer_verdict verdict = check_protocols(s, reason);

	memset(out, 0, sizeof(*out));
	answer_policy_init(&policy, ANSWER_INGEST);
	policy.is_plain = true;
	policy.max_codecs = 1;
	if (verdict == ANSWER_OK)
		verdict = answer_negotiate(s, &policy, n, reason);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS && verdict == ANSWER_OK; kind++)
		if (n->media[kind].is_accepted)
			add_line(s, n, (enum media_kind)kind, out);
	return verdict;
}

static void put_codec(struct sdp_writer *w, const struct negotiated_codec *c)
{
	sdp_put(w, "a=rtpmap:%u %s/%u", c->pt, codec_name(c->codec), c->clock_hz);
	sdp_put(w, c->channels > 1 ? "/%u\r\n" : "\r\n", c->channels);
	if (c->fmtp[0])
		sdp_put(w, "a=fmtp:%u %s\r\n", c->pt, c->fmtp);
}

static void put_line(struct sdp_writer *w, const struct plain_text *t, const struct plain_leg *leg,
		     enum media_kind kind)
{
	const struct negotiated_codec *c = t->codecs[kind];

	sdp_put(w, "m=%s %u RTP/%s %u\r\n", kind == MEDIA_AUDIO ? "audio" : "video", leg->port,
		c->feedback ? "AVPF" : "AVP", c->pt);
	put_codec(w, c);
	if (c->feedback & SDP_FB_NACK)
		sdp_put(w, "a=rtcp-fb:%u nack\r\n", c->pt);
	if (c->feedback & SDP_FB_PLI)
		sdp_put(w, "a=rtcp-fb:%u nack pli\r\n", c->pt);
	if (leg->rtcp_mux)
		sdp_put(w, "a=rtcp-mux\r\n");
	else
		sdp_put(w, "a=rtcp:%u\r\n", leg->rtcp_port);
	if (t->direction)
		sdp_put(w, "a=%s\r\n", t->direction);
}

int plain_write(const struct plain_text *t, char *out, size_t cap)
{
	const char *type = t->address.family == 4 ? "IP4" : "IP6";
	char address[INET6_ADDRSTRLEN];
	struct sdp_writer w;

	inet_ntop(t->address.family == 4 ? AF_INET : AF_INET6, t->address.ip, address,
		  sizeof(address));
	sdp_writer_init(&w, out, cap);
	sdp_put(&w, "v=0\r\no=- %llu 1 IN %s %s\r\ns=%s\r\nc=IN %s %s\r\nt=0 0\r\n",
		(unsigned long long)t->session_id, type, address, t->name, type, address);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		for (unsigned i = 0; i < t->terms->leg_count && t->codecs[kind]; i++)
			if (t->terms->legs[i].kinds >> kind & 1)
				put_line(&w, t, &t->terms->legs[i], (enum media_kind)kind);
	return sdp_writer_finish(&w);
}
