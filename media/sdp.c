#include "media/sdp.h"
#include "media/sdp_parts.h"
#include "media/sdp_span.h"

#include <stdarg.h>

enum sdp_verdict sdp_refuse(struct sdp_reader *r, enum sdp_verdict verdict, const char *format, ...)
{
	struct sdp_error *e = r->error;
	va_list args;
	int n;

	if (!e)
		return verdict;
	e->line = r->line;
	n = r->line ? snprintf(e->text, sizeof(e->text), "line %u: ", r->line) : 0;
	va_start(args, format);
	vsnprintf(e->text + n, sizeof(e->text) - (size_t)n, format, args);
	va_end(args);
	return verdict;
}

enum sdp_verdict sdp_reader_pt(struct sdp_reader *r, struct sdp_span text, uint32_t *pt)
{
	if (sdp_span_number(text, 127, pt))
		return SDP_OK;
	if (sdp_span_is_digits(text))
		return sdp_refuse(r, SDP_MALFORMED, "payload type %.*s is above 127",
				  sdp_span_print(text), text.at);
	return sdp_refuse(r, SDP_MALFORMED, "'%.*s' is not a payload type: a number from 0 to 127",
			  sdp_span_print(text), text.at ? text.at : "");
}

struct sdp_format *sdp_reader_format(struct sdp_reader *r, uint32_t pt)
{
	struct sdp_format *f = &r->s->formats[r->m->first_format];

	for (unsigned i = 0; i < r->m->formats; i++) {
		if (f[i].pt == pt)
			return &f[i];
	}
	return NULL;
}

static enum sdp_verdict read_formats(struct sdp_reader *r, struct sdp_span rest)
{
	enum sdp_verdict verdict;
	struct sdp_span word;
	uint32_t pt;

	for (word = sdp_span_word(&rest); word.at; word = sdp_span_word(&rest)) {
		verdict = sdp_reader_pt(r, word, &pt);
		if (verdict != SDP_OK)
			return verdict;
		if (sdp_reader_format(r, pt))
			continue;
		if (r->s->format_count == SDP_MAX_FORMATS)
			return sdp_refuse(r, SDP_TOO_LARGE, "more than %d payload types",
					  SDP_MAX_FORMATS);
		r->s->formats[r->s->format_count++] =
		    (struct sdp_format){ .pt = (uint8_t)pt, .channels = 1 };
		r->m->formats++;
	}
	return SDP_OK;
}

static enum sdp_kind kind_of(struct sdp_span text)
{
	if (sdp_span_is(text, "audio"))
		return SDP_AUDIO;
	if (sdp_span_is(text, "video"))
		return SDP_VIDEO;
	return sdp_span_is(text, "application") ? SDP_APPLICATION : SDP_OTHER;
}

static bool is_rtp(struct sdp_span protocol)
{
	struct sdp_span part;

	while (protocol.len) {
		part = sdp_span_cut(&protocol, '/');
		if (sdp_span_is(part, "RTP"))
			return true;
	}
	return false;
}

/* "m=audio 9 UDP/TLS/RTP/SAVPF 111 0" */
static enum sdp_verdict on_media(struct sdp_reader *r, struct sdp_span text)
{
	struct sdp *s = r->s;
	struct sdp_span kind = sdp_span_word(&text), port = sdp_span_word(&text);
	struct sdp_span protocol = sdp_span_word(&text);
	uint32_t number;

	text = sdp_span_trim(text);
	if (!text.len)
		return sdp_refuse(r, SDP_MALFORMED,
				  "an m-line is 'm=kind port protocol format...'");
	if (!sdp_span_number(port, 65535, &number))
		return sdp_refuse(r, SDP_MALFORMED, "port '%.*s' is not a number from 0 to 65535",
				  sdp_span_print(port), port.at);
	if (s->media_count == SDP_MAX_MEDIA)
		return sdp_refuse(r, SDP_TOO_LARGE, "more than %d m-lines", SDP_MAX_MEDIA);
	if (!r->m)
		s->session_extensions = s->extension_count;
	r->m = &s->media[s->media_count++];
	*r->m = (struct sdp_media){
		.line = r->line,
		.kind = kind_of(kind),
		.kind_text = kind,
		.port = (uint16_t)number,
		.protocol = protocol,
		.formats_text = text,
		.first_format = s->format_count,
		.first_extension = s->extension_count,
		.first_ssrc = s->ssrc_count,
		.first_group = s->group_count,
		.first_rid = s->rid_count,
		.first_candidate = s->candidate_count,
	};
	return is_rtp(protocol) ? read_formats(r, text) : SDP_OK;
}

static enum sdp_verdict check_bytes(struct sdp_reader *r, struct sdp_span line)
{
	if (line.len > SDP_MAX_LINE_BYTES)
		return sdp_refuse(r, SDP_TOO_LARGE, "longer than %d bytes", SDP_MAX_LINE_BYTES);
	for (uint32_t i = 0; i < line.len; i++) {
		unsigned char c = (unsigned char)line.at[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return sdp_refuse(r, SDP_MALFORMED, "holds the control byte 0x%02x", c);
	}
	return SDP_OK;
}

static enum sdp_verdict on_line(struct sdp_reader *r, struct sdp_span line)
{
	enum sdp_verdict verdict = check_bytes(r, line);
	struct sdp_span value;

	if (verdict != SDP_OK)
		return verdict;
	if (!line.len)
		return SDP_OK;
	if (line.len < 2 || line.at[0] < 'a' || line.at[0] > 'z' || line.at[1] != '=')
		return sdp_refuse(r, SDP_MALFORMED, "'%.*s' is not of the form 'letter=value'",
				  sdp_span_print(line), line.at);
	value = (struct sdp_span){ line.at + 2, line.len - 2 };
	switch (line.at[0]) {
	case 'm':
		return on_media(r, value);
	case 'a':
		return sdp_on_attribute(r, value);
	case 'c':
		*(r->m ? &r->m->connection : &r->s->connection) = sdp_read_connection(value);
		return SDP_OK;
	case 'v':
		if (!sdp_span_is(sdp_span_trim(value), "0") || r->m)
			return sdp_refuse(r, SDP_MALFORMED, "only 'v=0', at the start, is known");
		return SDP_OK;
	default:
		return SDP_OK;
	}
}

static void inherit(const struct sdp_attributes *from, struct sdp_attributes *to)
{
	if (!to->ufrag.at && !to->pwd.at) {
		to->ufrag = from->ufrag;
		to->pwd = from->pwd;
	}
	if (!to->fingerprint_count) {
		memcpy(to->fingerprints, from->fingerprints, sizeof(to->fingerprints));
		to->fingerprint_count = from->fingerprint_count;
	}
	if (to->setup == SDP_SETUP_NONE)
		to->setup = from->setup;
	if (!to->has_direction)
		to->direction = from->direction;
	to->extmap_allow_mixed |= from->extmap_allow_mixed;
	to->end_of_candidates |= from->end_of_candidates;
	to->ice_lite = from->ice_lite;
}

static enum sdp_verdict finish(struct sdp_reader *r)
{
	struct sdp *s = r->s;

	if (!r->m)
		s->session_extensions = s->extension_count;
	if (!s->session.has_direction)
		s->session.direction = SDP_SENDRECV;
	for (unsigned i = 0; i < s->media_count; i++) {
		inherit(&s->session, &s->media[i].attributes);
		if (!s->media[i].connection.family)
			s->media[i].connection = s->connection;
		if (!s->media[i].source_filter.at)
			s->media[i].source_filter = s->source_filter;
		for (unsigned j = 0; j < i; j++) {
			if (!sdp_span_equal(s->media[i].mid, s->media[j].mid))
				continue;
			r->line = s->media[i].line;
			return sdp_refuse(r, SDP_MALFORMED, "mid '%.*s' names two m-lines",
					  sdp_span_print(s->media[i].mid), s->media[i].mid.at);
		}
	}
	return SDP_OK;
}

enum sdp_verdict sdp_parse(struct sdp *out, const char *text, size_t len, struct sdp_error *error)
{
	struct sdp_reader r = { .s = out, .error = error };
	struct sdp_span rest = { text, (uint32_t)len }, line;
	enum sdp_verdict verdict;

	memset(out, 0, sizeof(*out));
	if (error)
		*error = (struct sdp_error){ 0 };
	if (len > SDP_MAX_BYTES)
		return sdp_refuse(&r, SDP_TOO_LARGE, "the description is longer than %d bytes",
				  SDP_MAX_BYTES);
	if (len < 3 || memcmp(text, "v=0", 3) != 0) {
		r.line = 1;
		return sdp_refuse(&r, SDP_MALFORMED, "a session description starts with 'v=0'");
	}
	while (rest.len) {
		line = sdp_span_cut(&rest, '\n');
		if (line.len && line.at[line.len - 1] == '\r')
			line.len--;
		if (++r.line > SDP_MAX_LINES)
			return sdp_refuse(&r, SDP_TOO_LARGE, "more than %d lines", SDP_MAX_LINES);
		verdict = on_line(&r, line);
		if (verdict != SDP_OK)
			return verdict;
	}
	return finish(&r);
}

bool sdp_fmtp_get(struct sdp_span fmtp, const char *name, struct sdp_span *value)
{
	struct sdp_span pair, key;

	while (fmtp.len) {
		pair = sdp_span_trim(sdp_span_cut(&fmtp, ';'));
		key = sdp_span_cut(&pair, '=');
		if (!sdp_span_is_nocase(sdp_span_trim(key), name))
			continue;
		*value = pair;
		return true;
	}
	return false;
}

uint32_t sdp_rtx_ssrc(const struct sdp *s, const struct sdp_media *m, uint32_t ssrc)
{
	for (unsigned i = 0; i < m->groups; i++) {
		const struct sdp_ssrc_group *g = &s->groups[m->first_group + i];

		if (g->ssrcs[0] == ssrc && sdp_span_is_nocase(g->semantics, "FID"))
			return g->ssrcs[1];
	}
	return 0;
}

static bool is_repair(const struct sdp *s, const struct sdp_media *m, uint32_t ssrc)
{
	for (unsigned i = 0; i < m->groups; i++) {
		const struct sdp_ssrc_group *g = &s->groups[m->first_group + i];

		if (g->ssrcs[1] == ssrc && !sdp_span_is_nocase(g->semantics, "SIM"))
			return true;
	}
	return false;
}

unsigned sdp_primary_ssrcs(const struct sdp *s, const struct sdp_media *m, uint32_t *out,
			   unsigned cap)
{
	unsigned count = 0;

	for (unsigned i = 0; i < m->ssrcs; i++) {
		uint32_t ssrc = s->ssrcs[m->first_ssrc + i].ssrc;

		if (is_repair(s, m, ssrc))
			continue;
		if (count < cap)
			out[count] = ssrc;
		count++;
	}
	return count;
}

bool sdp_bundle_has(struct sdp_span bundle, struct sdp_span mid)
{
	struct sdp_span word;

	if (!mid.at)
		return false;
	for (word = sdp_span_word(&bundle); word.at; word = sdp_span_word(&bundle)) {
		if (sdp_span_equal(word, mid))
			return true;
	}
	return false;
}
