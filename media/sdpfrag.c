#include "media/sdpfrag.h"
#include "media/sdp_span.h"

#include <stdarg.h>

enum { SDPFRAG_MAX_LINES = 1000 };

struct fragment_reader {
	struct sdpfrag *out;
	struct sdp_error *error; /* may be NULL */
	unsigned line;
	unsigned lines_known; /* a= and m= lines */
	unsigned candidate_lines;
};

__attribute__((format(printf, 3, 4))) static enum sdp_verdict
refuse(struct fragment_reader *r, enum sdp_verdict verdict, const char *format, ...)
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

static bool is_ice_text(struct sdp_span text, uint32_t min)
{
	for (uint32_t i = 0; i < text.len; i++) {
		if (text.at[i] <= ' ' || text.at[i] > '~' || text.at[i] == ':')
			return false;
	}
	return text.len >= min && text.len <= SDP_MAX_ICE_BYTES;
}

/* The first one counts: clients repeat the same credentials in each m-section. */
static enum sdp_verdict on_credential(struct fragment_reader *r, struct sdp_span value,
				      const char *name, uint32_t min, char *out)
{
	if (!is_ice_text(value, min))
		return refuse(r, SDP_MALFORMED, "an %s has %u to %d letters, digits, '+' or '/'",
			      name, min, SDP_MAX_ICE_BYTES);
	if (!out[0])
		sdp_span_copy(value, out, SDP_MAX_ICE_BYTES + 1);
	return SDP_OK;
}

static enum sdp_verdict on_mid(struct fragment_reader *r, struct sdp_span value)
{
	struct sdpfrag *out = r->out;

	if (!value.len || value.len > SDP_MAX_MID_BYTES)
		return refuse(r, SDP_MALFORMED, "a mid has 1 to %d bytes", SDP_MAX_MID_BYTES);
	if (out->mid_count == SDP_MAX_MEDIA)
		return refuse(r, SDP_TOO_LARGE, "more than %d mids", SDP_MAX_MEDIA);
	sdp_span_copy(value, out->mids[out->mid_count++], sizeof(out->mids[0]));
	return SDP_OK;
}

static void add_candidate(struct sdpfrag *out, const struct sdp_address *address)
{
	for (unsigned i = 0; i < out->candidate_count; i++) {
		if (sdp_address_equal(&out->candidates[i], address))
			return;
	}
	out->candidates[out->candidate_count++] = *address;
}

static enum sdp_verdict on_candidate(struct fragment_reader *r, struct sdp_span value)
{
	struct sdp_candidate c;

	if (++r->candidate_lines > SDPFRAG_MAX_CANDIDATES)
		return refuse(r, SDP_TOO_LARGE, "more than %d candidates", SDPFRAG_MAX_CANDIDATES);
	if (sdp_candidate_parse(&c, value) && sdp_candidate_is_usable(&c))
		add_candidate(r->out, &c.address);
	else
		r->out->discarded++;
	return SDP_OK;
}

static enum sdp_verdict on_attribute(struct fragment_reader *r, struct sdp_span text)
{
	struct sdp_span value = sdp_span_trim(text), name = sdp_span_cut(&value, ':');

	if (sdp_span_is(name, "candidate"))
		return on_candidate(r, value);
	if (sdp_span_is(name, "ice-ufrag"))
		return on_credential(r, value, "ice-ufrag", 4, r->out->ufrag);
	if (sdp_span_is(name, "ice-pwd"))
		return on_credential(r, value, "ice-pwd", 22, r->out->pwd);
	if (sdp_span_is(name, "mid"))
		return on_mid(r, value);
	if (sdp_span_is(name, "end-of-candidates"))
		r->out->end_of_candidates = true;
	return SDP_OK;
}

static enum sdp_verdict on_line(struct fragment_reader *r, struct sdp_span line)
{
	if (line.len > SDP_MAX_LINE_BYTES)
		return refuse(r, SDP_TOO_LARGE, "longer than %d bytes", SDP_MAX_LINE_BYTES);
	for (uint32_t i = 0; i < line.len; i++) {
		unsigned char c = (unsigned char)line.at[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return refuse(r, SDP_MALFORMED, "holds the control byte 0x%02x", c);
	}
	if (!line.len)
		return SDP_OK;
	if (line.len < 2 || line.at[0] < 'a' || line.at[0] > 'z' || line.at[1] != '=')
		return refuse(r, SDP_MALFORMED, "'%.*s' is not of the form 'letter=value'",
			      sdp_span_print(line), line.at);
	r->lines_known += line.at[0] == 'a' || line.at[0] == 'm';
	if (line.at[0] != 'a')
		return SDP_OK;
	return on_attribute(r, (struct sdp_span){ line.at + 2, line.len - 2 });
}

enum sdp_verdict sdpfrag_parse(struct sdpfrag *out, const char *text, size_t len,
			       struct sdp_error *error)
{
	struct fragment_reader r = { .out = out, .error = error };
	struct sdp_span rest = { text, (uint32_t)len }, line;
	enum sdp_verdict verdict;

	memset(out, 0, sizeof(*out));
	if (error)
		*error = (struct sdp_error){ 0 };
	if (len > SDPFRAG_MAX_BYTES)
		return refuse(&r, SDP_TOO_LARGE, "the fragment is longer than %d bytes",
			      SDPFRAG_MAX_BYTES);
	while (rest.len) {
		line = sdp_span_cut(&rest, '\n');
		if (line.len && line.at[line.len - 1] == '\r')
			line.len--;
		if (++r.line > SDPFRAG_MAX_LINES)
			return refuse(&r, SDP_TOO_LARGE, "more than %d lines", SDPFRAG_MAX_LINES);
		verdict = on_line(&r, line);
		if (verdict != SDP_OK)
			return verdict;
	}
	r.line = 0;
	if (!r.lines_known)
		return refuse(&r, SDP_MALFORMED, "the fragment has no a= line");
	if (!out->ufrag[0] != !out->pwd[0])
		return refuse(&r, SDP_MALFORMED, "ice-ufrag and ice-pwd come together");
	return SDP_OK;
}

int sdpfrag_write_reply(const struct sdpfrag_reply *reply, char *out, size_t cap)
{
	struct sdp_writer w;

	sdp_writer_init(&w, out, cap);
	/* RFC 9725 section 4.3.3: what the answer said about ICE is repeated. */
	sdp_put(&w, "a=ice-lite\r\na=ice-options:trickle\r\n");
	sdp_put(&w, "a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", reply->ufrag, reply->pwd);
	sdp_put(&w, "m=%s 9 UDP/TLS/RTP/SAVPF 0\r\n", reply->media);
	if (reply->mid && reply->mid[0])
		sdp_put(&w, "a=mid:%s\r\n", reply->mid);
	sdp_put_candidates(&w, reply->candidates, reply->candidate_count);
	sdp_put(&w, "a=end-of-candidates\r\n");
	return sdp_writer_finish(&w);
}
