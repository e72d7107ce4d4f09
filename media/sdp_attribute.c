#include "media/sdp_parts.h"
#include "media/sdp_span.h"

/* RFC 8839 section 5.4 */
enum { UFRAG_MIN_BYTES = 4, PWD_MIN_BYTES = 22 };

static struct sdp_attributes *attributes(struct sdp_reader *r)
{
	return r->m ? &r->m->attributes : &r->s->session;
}

/* ice-char is ALPHA, DIGIT, '+' and '/'. Some stacks use '-' and '_' as well, which hurts nobody;
 * a colon would make the STUN username ambiguous. */
static bool is_ice_text(struct sdp_span text)
{
	for (uint32_t i = 0; i < text.len; i++) {
		if (text.at[i] <= ' ' || text.at[i] > '~' || text.at[i] == ':')
			return false;
	}
	return true;
}

static enum sdp_verdict on_ufrag(struct sdp_reader *r, struct sdp_span value)
{
	if (value.len < UFRAG_MIN_BYTES || value.len > SDP_MAX_ICE_BYTES || !is_ice_text(value))
		return sdp_refuse(r, SDP_MALFORMED,
				  "an ice-ufrag has %d to %d letters, digits, '+' or '/'",
				  UFRAG_MIN_BYTES, SDP_MAX_ICE_BYTES);
	attributes(r)->ufrag = value;
	return SDP_OK;
}

static enum sdp_verdict on_pwd(struct sdp_reader *r, struct sdp_span value)
{
	if (value.len < PWD_MIN_BYTES || value.len > SDP_MAX_ICE_BYTES || !is_ice_text(value))
		return sdp_refuse(r, SDP_MALFORMED,
				  "an ice-pwd has %d to %d letters, digits, '+' or '/'",
				  PWD_MIN_BYTES, SDP_MAX_ICE_BYTES);
	attributes(r)->pwd = value;
	return SDP_OK;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* "AB:CD:EF": RFC 8122 section 5 */
static bool is_hex_pairs(struct sdp_span text)
{
	if (text.len % 3 != 2)
		return false;
	for (uint32_t i = 0; i < text.len; i++) {
		if (i % 3 == 2 ? text.at[i] != ':' : !is_hex(text.at[i]))
			return false;
	}
	return true;
}

static enum sdp_verdict on_fingerprint(struct sdp_reader *r, struct sdp_span value)
{
	static const struct {
		const char *hash;
		uint32_t bytes;
	} known[] = { { "sha-256", 32 }, { "sha-384", 48 }, { "sha-512", 64 } };
	struct sdp_span hash = sdp_span_word(&value), digest = sdp_span_word(&value);
	struct sdp_attributes *a = attributes(r);

	if (!hash.at || !digest.at || !is_hex_pairs(digest))
		return sdp_refuse(r, SDP_MALFORMED,
				  "a fingerprint is a hash name and pairs of hex digits with ':'");
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (sdp_span_is_nocase(hash, known[i].hash) && digest.len != known[i].bytes * 3 - 1)
			return sdp_refuse(r, SDP_MALFORMED, "a %s fingerprint has %u bytes, not %u",
					  known[i].hash, known[i].bytes, (digest.len + 1) / 3);
	}
	if (a->fingerprint_count == SDP_MAX_FINGERPRINTS)
		return sdp_refuse(r, SDP_TOO_LARGE, "more than %d fingerprints in one place",
				  SDP_MAX_FINGERPRINTS);
	a->fingerprints[a->fingerprint_count++] = (struct sdp_fingerprint){ hash, digest };
	return SDP_OK;
}

static enum sdp_verdict on_setup(struct sdp_reader *r, struct sdp_span value)
{
	static const char *const names[] = { "actpass", "active", "passive", "holdconn" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sdp_span_is_nocase(value, names[i])) {
			attributes(r)->setup = (enum sdp_setup)(SDP_SETUP_ACTPASS + i);
			return SDP_OK;
		}
	}
	return sdp_refuse(r, SDP_MALFORMED, "setup is actpass, active or passive, not '%.*s'",
			  sdp_span_print(value), value.at);
}

static bool direction_of(struct sdp_span text, enum sdp_direction *out)
{
	static const char *const names[] = { "inactive", "sendonly", "recvonly", "sendrecv" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sdp_span_is(text, names[i])) {
			*out = (enum sdp_direction)i;
			return true;
		}
	}
	return false;
}

static enum sdp_verdict on_group(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_span semantics = sdp_span_word(&value);

	/* LS (lip sync) and others say nothing about transports. */
	if (r->m || !sdp_span_is_nocase(semantics, "BUNDLE"))
		return SDP_OK;
	if (r->s->bundle_count == SDP_MAX_BUNDLES)
		return sdp_refuse(r, SDP_TOO_LARGE, "more than %d BUNDLE groups", SDP_MAX_BUNDLES);
	r->s->bundles[r->s->bundle_count++] = sdp_span_trim(value);
	return SDP_OK;
}

static enum sdp_verdict on_extmap(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_span id = sdp_span_word(&value), uri = sdp_span_word(&value), direction = id;
	struct sdp_extension e = { .direction = SDP_SENDRECV, .uri = uri };
	struct sdp *s = r->s;
	uint32_t number;

	id = sdp_span_cut(&direction, '/');
	e.has_direction = direction.len > 0;
	if (!uri.at || (e.has_direction && !direction_of(direction, &e.direction)))
		return sdp_refuse(r, SDP_MALFORMED, "an extmap is 'id[/direction] uri'");
	/* RFC 8285 section 5: above 255 only 4096..4351, "to be numbered by the answer" */
	if (!sdp_span_number(id, 4351, &number) || number == 0 || (number > 255 && number < 4096))
		return sdp_refuse(r, SDP_MALFORMED, "extmap id '%.*s' is not from 1 to 255",
				  sdp_span_print(id), id.at);
	if (s->extension_count == SDP_MAX_EXTENSIONS)
		return sdp_refuse(r, SDP_TOO_LARGE, "more than %d extmaps", SDP_MAX_EXTENSIONS);
	e.id = (uint16_t)number;
	s->extensions[s->extension_count++] = e;
	if (r->m)
		r->m->extensions++;
	return SDP_OK;
}

static enum sdp_verdict on_mid(struct sdp_reader *r, struct sdp_span value)
{
	if (!r->m)
		return SDP_OK;
	for (uint32_t i = 0; i < value.len; i++) {
		if (value.at[i] <= ' ')
			return sdp_refuse(r, SDP_MALFORMED, "a mid is one word");
	}
	if (value.len > SDP_MAX_MID_BYTES)
		return sdp_refuse(r, SDP_TOO_LARGE, "a mid has at most %d bytes",
				  SDP_MAX_MID_BYTES);
	r->m->mid = value;
	return SDP_OK;
}

/* "111 opus/48000/2" */
static enum sdp_verdict on_rtpmap(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_span word = sdp_span_word(&value), encoding = sdp_span_word(&value), name, clock;
	uint32_t pt, clock_hz = 0, channels = 1;
	enum sdp_verdict verdict = sdp_reader_pt(r, word, &pt);
	struct sdp_format *f;

	if (verdict != SDP_OK)
		return verdict;
	if (!encoding.at)
		encoding = (struct sdp_span){ value.at, 0 };
	name = sdp_span_cut(&encoding, '/');
	clock = sdp_span_cut(&encoding, '/');
	if (!name.len || !sdp_span_number(clock, UINT32_MAX, &clock_hz) || clock_hz == 0)
		return sdp_refuse(r, SDP_MALFORMED,
				  "an rtpmap is 'payload-type name/clock[/channels]'");
	if (encoding.len && !sdp_span_number(encoding, 255, &channels))
		return sdp_refuse(r, SDP_MALFORMED, "'%.*s' is no number of channels",
				  sdp_span_print(encoding), encoding.at);
	f = r->m ? sdp_reader_format(r, pt) : NULL;
	if (!f || f->name.at)
		return SDP_OK;
	f->name = name;
	f->clock_hz = clock_hz;
	f->channels = (uint8_t)channels;
	return SDP_OK;
}

/* "96 apt=97"; m-lines without RTP have formats that are no numbers. */
static enum sdp_verdict on_fmtp(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_span word = sdp_span_word(&value);
	struct sdp_format *f;
	enum sdp_verdict verdict;
	uint32_t pt;

	if (!r->m || !r->m->formats)
		return SDP_OK;
	verdict = sdp_reader_pt(r, word, &pt);
	if (verdict != SDP_OK)
		return verdict;
	f = sdp_reader_format(r, pt);
	if (f && !f->fmtp.at)
		f->fmtp = sdp_span_trim(value);
	return SDP_OK;
}

static uint8_t feedback_of(struct sdp_span text)
{
	static const struct {
		const char *name, *parameter;
		enum sdp_feedback bit;
	} known[] = {
		{ "nack", "", SDP_FB_NACK },      { "nack", "pli", SDP_FB_PLI },
		{ "ccm", "fir", SDP_FB_FIR },     { "transport-cc", "", SDP_FB_TRANSPORT_CC },
		{ "goog-remb", "", SDP_FB_REMB },
	};
	struct sdp_span name = sdp_span_word(&text), parameter = sdp_span_word(&text);

	if (!parameter.at)
		parameter = (struct sdp_span){ text.at, 0 };
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (sdp_span_is_nocase(name, known[i].name) &&
		    sdp_span_is_nocase(parameter, known[i].parameter))
			return (uint8_t)known[i].bit;
	}
	return 0;
}

static enum sdp_verdict on_rtcp_fb(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_span word = sdp_span_word(&value);
	struct sdp_format *f;
	enum sdp_verdict verdict;
	uint8_t bits = feedback_of(value);
	uint32_t pt;

	if (!r->m)
		return SDP_OK;
	if (sdp_span_is(word, "*")) {
		for (unsigned i = 0; i < r->m->formats; i++)
			r->s->formats[r->m->first_format + i].feedback |= bits;
		return SDP_OK;
	}
	verdict = sdp_reader_pt(r, word, &pt);
	if (verdict != SDP_OK)
		return verdict;
	f = sdp_reader_format(r, pt);
	if (f)
		f->feedback |= bits;
	return SDP_OK;
}

static void note_msid(struct sdp_media *m, struct sdp_span value)
{
	if (m->msid_stream.at)
		return;
	m->msid_stream = sdp_span_word(&value);
	m->msid_track = sdp_span_word(&value);
}

static enum sdp_verdict on_msid(struct sdp_reader *r, struct sdp_span value)
{
	if (r->m)
		note_msid(r->m, value);
	return SDP_OK;
}

static enum sdp_verdict read_ssrc(struct sdp_reader *r, struct sdp_span word, uint32_t *out)
{
	if (sdp_span_number(word, UINT32_MAX, out))
		return SDP_OK;
	return sdp_refuse(r, SDP_MALFORMED, "'%.*s' is not an SSRC: a number of 32 bits",
			  sdp_span_print(word), word.at ? word.at : "");
}

static struct sdp_ssrc *find_ssrc(struct sdp_reader *r, uint32_t ssrc)
{
	for (unsigned i = 0; i < r->m->ssrcs; i++) {
		if (r->s->ssrcs[r->m->first_ssrc + i].ssrc == ssrc)
			return &r->s->ssrcs[r->m->first_ssrc + i];
	}
	return NULL;
}

/* "1234 cname:name" */
static enum sdp_verdict on_ssrc(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_span word = sdp_span_word(&value), name;
	struct sdp_ssrc *entry;
	enum sdp_verdict verdict;
	uint32_t ssrc;

	if (!r->m)
		return SDP_OK;
	verdict = read_ssrc(r, word, &ssrc);
	if (verdict != SDP_OK)
		return verdict;
	entry = find_ssrc(r, ssrc);
	if (!entry) {
		if (r->s->ssrc_count == SDP_MAX_SSRCS)
			return sdp_refuse(r, SDP_TOO_LARGE, "more than %d SSRCs", SDP_MAX_SSRCS);
		entry = &r->s->ssrcs[r->s->ssrc_count++];
		*entry = (struct sdp_ssrc){ .ssrc = ssrc };
		r->m->ssrcs++;
	}
	value = sdp_span_trim(value);
	name = sdp_span_cut(&value, ':');
	if (sdp_span_is(name, "cname") && !entry->cname.at)
		entry->cname = value;
	if (sdp_span_is(name, "msid"))
		note_msid(r->m, value);
	return SDP_OK;
}

/* "FID 1 2" */
static enum sdp_verdict on_ssrc_group(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_ssrc_group g = { .semantics = sdp_span_word(&value) };
	enum sdp_verdict verdict;
	uint32_t ssrc;

	if (!r->m)
		return SDP_OK;
	for (struct sdp_span w = sdp_span_word(&value); w.at; w = sdp_span_word(&value)) {
		verdict = read_ssrc(r, w, &ssrc);
		if (verdict != SDP_OK)
			return verdict;
		if (g.count < SDP_MAX_GROUP_SSRCS)
			g.ssrcs[g.count++] = ssrc;
	}
	if (g.count < 2)
		return SDP_OK;
	if (r->s->group_count == SDP_MAX_SSRC_GROUPS)
		return sdp_refuse(r, SDP_TOO_LARGE, "more than %d SSRC groups",
				  SDP_MAX_SSRC_GROUPS);
	r->s->groups[r->s->group_count++] = g;
	r->m->groups++;
	return SDP_OK;
}

static enum sdp_verdict on_rid(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_rid rid = { .id = sdp_span_word(&value) };
	struct sdp_span word = sdp_span_word(&value);

	if (!r->m)
		return SDP_OK;
	if (!rid.id.at || (!sdp_span_is(word, "send") && !sdp_span_is(word, "recv")))
		return sdp_refuse(r, SDP_MALFORMED, "a rid is 'name send' or 'name recv'");
	if (r->s->rid_count == SDP_MAX_RIDS)
		return sdp_refuse(r, SDP_TOO_LARGE, "more than %d rids", SDP_MAX_RIDS);
	rid.direction = sdp_span_is(word, "send") ? SDP_SENDONLY : SDP_RECVONLY;
	value = sdp_span_trim(value);
	if (value.len)
		rid.restrictions = value;
	r->s->rids[r->s->rid_count++] = rid;
	r->m->rids++;
	return SDP_OK;
}

static enum sdp_verdict on_simulcast(struct sdp_reader *r, struct sdp_span value)
{
	if (r->m)
		r->m->simulcast = sdp_span_trim(value);
	return SDP_OK;
}

static enum sdp_verdict on_sctp_port(struct sdp_reader *r, struct sdp_span value)
{
	uint32_t port;

	if (!sdp_span_number(value, 65535, &port))
		return sdp_refuse(r, SDP_MALFORMED, "sctp-port is a number from 0 to 65535");
	if (r->m)
		r->m->sctp_port = value;
	return SDP_OK;
}

/* A candidate we cannot read is one we cannot use; it does not spoil the offer. All lines count. */
static enum sdp_verdict on_candidate(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp *s = r->s;

	if (++r->candidate_lines > SDP_MAX_CANDIDATES)
		return sdp_refuse(r, SDP_TOO_LARGE, "more than %d candidates", SDP_MAX_CANDIDATES);
	if (!r->m || !sdp_candidate_parse(&s->candidates[s->candidate_count], value))
		return SDP_OK;
	s->candidate_count++;
	r->m->candidates++;
	return SDP_OK;
}

/* RFC 3611 section 5.1: xr-formats, separated by blanks; "rcvr-rtt=all" may name a size. */
static enum sdp_verdict on_rtcp_xr(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_span format;

	for (format = sdp_span_word(&value); format.at && r->m; format = sdp_span_word(&value))
		r->m->rcvr_rtt |= sdp_span_is(sdp_span_cut(&format, ':'), "rcvr-rtt=all");
	return SDP_OK;
}

struct sdp_address sdp_read_connection(struct sdp_span text)
{
	struct sdp_span network = sdp_span_word(&text), type = sdp_span_word(&text);
	struct sdp_span word = sdp_span_word(&text);
	struct sdp_address address = { .family = 0 };

	if (word.at && sdp_span_is(network, "IN") &&
	    (sdp_span_is(type, "IP4") || sdp_span_is(type, "IP6")))
		sdp_address_parse(&address, sdp_span_cut(&word, '/'));
	return address;
}

/* RFC 3605: "53020" or "53020 IN IP4 192.0.2.1". */
static enum sdp_verdict on_rtcp(struct sdp_reader *r, struct sdp_span value)
{
	struct sdp_span word = sdp_span_word(&value);
	uint32_t port;

	if (!sdp_span_number(word, UINT16_MAX, &port))
		return sdp_refuse(r, SDP_MALFORMED, "a=rtcp names a port from 0 to 65535");
	if (!r->m)
		return SDP_OK;
	r->m->rtcp = sdp_read_connection(value);
	r->m->rtcp.port = (uint16_t)port;
	return SDP_OK;
}

/* RFC 4570 */
static enum sdp_verdict on_source_filter(struct sdp_reader *r, struct sdp_span value)
{
	*(r->m ? &r->m->source_filter : &r->s->source_filter) = sdp_span_trim(value);
	return SDP_OK;
}

static const struct {
	const char *name;
	enum sdp_verdict (*read)(struct sdp_reader *r, struct sdp_span value);
} valued[] = {
	{ "candidate", on_candidate },
	{ "rtpmap", on_rtpmap },
	{ "fmtp", on_fmtp },
	{ "rtcp-fb", on_rtcp_fb },
	{ "extmap", on_extmap },
	{ "ssrc", on_ssrc },
	{ "ssrc-group", on_ssrc_group },
	{ "mid", on_mid },
	{ "msid", on_msid },
	{ "rid", on_rid },
	{ "simulcast", on_simulcast },
	{ "ice-ufrag", on_ufrag },
	{ "ice-pwd", on_pwd },
	{ "fingerprint", on_fingerprint },
	{ "setup", on_setup },
	{ "group", on_group },
	{ "sctp-port", on_sctp_port },
	{ "rtcp-xr", on_rtcp_xr },
	{ "rtcp", on_rtcp },
	{ "source-filter", on_source_filter },
};

static void on_flag(struct sdp_reader *r, struct sdp_span name)
{
	struct sdp_attributes *a = attributes(r);

	if (direction_of(name, &a->direction))
		a->has_direction = true;
	else if (sdp_span_is(name, "extmap-allow-mixed"))
		a->extmap_allow_mixed = true;
	else if (sdp_span_is(name, "end-of-candidates"))
		a->end_of_candidates = true;
	else if (sdp_span_is(name, "ice-lite"))
		a->ice_lite = true;
	if (!r->m)
		return;
	if (sdp_span_is(name, "rtcp-mux"))
		r->m->rtcp_mux = true;
	else if (sdp_span_is(name, "rtcp-mux-only"))
		r->m->rtcp_mux_only = true;
	else if (sdp_span_is(name, "rtcp-rsize"))
		r->m->rtcp_rsize = true;
	else if (sdp_span_is(name, "bundle-only"))
		r->m->bundle_only = true;
}

enum sdp_verdict sdp_on_attribute(struct sdp_reader *r, struct sdp_span text)
{
	struct sdp_span value = sdp_span_trim(text), name = sdp_span_cut(&value, ':');

	on_flag(r, name);
	for (unsigned i = 0; i < sizeof(valued) / sizeof(valued[0]); i++) {
		if (!sdp_span_is(name, valued[i].name))
			continue;
		if (!value.len)
			return sdp_refuse(r, SDP_MALFORMED, "a=%s has no value", valued[i].name);
		return valued[i].read(r, value);
	}
	return SDP_OK;
}
