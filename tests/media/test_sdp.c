#include "media/sdp.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

static struct sdp *s;
static char *kept;

static void setup(void)
{
	s = malloc(sizeof(*s));
	cr_assert(s);
}

static void teardown(void)
{
	free(kept);
	free(s);
}

TestSuite(sdp, .init = setup, .fini = teardown, .timeout = 10);

#define HEAD  "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
#define AUDIO HEAD "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"

/* Parses a copy of exactly the text's length, so that sanitizers see a read past the end. Spans point
 * into the copy, which lives until the next call. */
static enum sdp_verdict parse(const char *text, size_t len, struct sdp_error *error)
{
	free(kept);
	kept = malloc(len ? len : 1);
	cr_assert(kept);
	memcpy(kept, text, len);
	return sdp_parse(s, kept, len, error);
}

static void parse_ok(const char *text)
{
	struct sdp_error error;

	cr_assert_eq(parse(text, strlen(text), &error), SDP_OK, "%s", error.text);
}

static void offer_parses(const char *name, const char *text, size_t len)
{
	struct sdp_error error;

	cr_expect_eq(sdp_parse(s, text, len, &error), SDP_OK, "%s: %s", name, error.text);
	cr_expect(s->media_count >= 1 && s->format_count >= 1, "%s", name);
	for (unsigned i = 0; i < s->media_count; i++) {
		const struct sdp_media *m = &s->media[i];

		cr_expect(m->mid.at && m->attributes.ufrag.at && m->attributes.pwd.at, "%s", name);
		cr_expect_eq(m->attributes.fingerprint_count, 1, "%s", name);
		cr_expect_neq(m->attributes.setup, SDP_SETUP_NONE, "%s", name);
	}
}

Test(sdp, reads_the_offer_of_every_client)
{
	cr_assert_geq(fixture_each("offers", ".sdp", offer_parses), 60u);
}

static const struct {
	const char *name;
	const char *text;
	const char *error;
} refused[] = {
	{ "nothing", "", "line 1: a session description starts with 'v=0'" },
	{ "not a description", "hello", "line 1: a session description starts with 'v=0'" },
	{ "JSON", "{\"sdp\":1}", "line 1: a session description starts with 'v=0'" },
	{ "version 1", "v=1\r\n", "line 1: a session description starts with 'v=0'" },
	{ "version 0x", "v=0x\r\n", "line 1: only 'v=0', at the start, is known" },
	{ "no equals sign", HEAD "hello\r\n", "line 5: 'hello' is not of the form 'letter=value'" },
	{ "payload type of 33 bits", HEAD "m=audio 17000 RTP/AVP 4294967296\r\n",
	  "line 5: payload type 4294967296 is above 127" },
	{ "payload type 128", HEAD "m=audio 9 UDP/TLS/RTP/SAVPF 0 128\r\n",
	  "line 5: payload type 128 is above 127" },
	{ "payload type of letters", HEAD "m=audio 9 UDP/TLS/RTP/SAVPF opus\r\n",
	  "line 5: 'opus' is not a payload type" },
	{ "m-line without formats", HEAD "m=audio 9 UDP/TLS/RTP/SAVPF\r\n",
	  "line 5: an m-line is 'm=kind port protocol format...'" },
	{ "port 65536", HEAD "m=audio 65536 UDP/TLS/RTP/SAVPF 0\r\n",
	  "line 5: port '65536' is not a number from 0 to 65535" },
	{ "bare carriage return", AUDIO "a=mid:0\ra=x\r\n", "line 6: holds the control byte 0x0d" },
	{ "rtpmap above 127", AUDIO "a=rtpmap:300 opus/48000\r\n",
	  "line 6: payload type 300 is above 127" },
	{ "rtpmap without clock", AUDIO "a=rtpmap:111 opus\r\n", "line 6: an rtpmap is" },
	{ "rtpmap without anything", AUDIO "a=rtpmap:111\r\n", "line 6: an rtpmap is" },
	{ "rtpmap with clock 0", AUDIO "a=rtpmap:111 opus/0\r\n", "line 6: an rtpmap is" },
	{ "300 channels", AUDIO "a=rtpmap:111 opus/48000/300\r\n",
	  "'300' is no number of channels" },
	{ "attribute without value", AUDIO "a=mid\r\n", "line 6: a=mid has no value" },
	{ "ufrag of 3", AUDIO "a=ice-ufrag:abc\r\n", "line 6: an ice-ufrag has 4 to 256" },
	{ "ufrag with a colon", AUDIO "a=ice-ufrag:ab:cd\r\n",
	  "line 6: an ice-ufrag has 4 to 256" },
	{ "pwd of 21", AUDIO "a=ice-pwd:abcdefghijklmnopqrstu\r\n", "an ice-pwd has 22 to 256" },
	{ "short fingerprint", AUDIO "a=fingerprint:sha-256 AB:CD\r\n",
	  "line 6: a sha-256 fingerprint has 32 bytes, not 2" },
	{ "fingerprint of other letters", AUDIO "a=fingerprint:sha-256 XY:CD\r\n",
	  "line 6: a fingerprint is a hash name and pairs of hex digits" },
	{ "unknown setup", AUDIO "a=setup:maybe\r\n",
	  "line 6: setup is actpass, active or passive, not 'maybe'" },
	{ "extmap id 0", AUDIO "a=extmap:0 urn:x\r\n", "extmap id '0' is not from 1 to 255" },
	{ "extmap id 256", AUDIO "a=extmap:256 urn:x\r\n", "extmap id '256' is not" },
	{ "extmap direction", AUDIO "a=extmap:1/up urn:x\r\n",
	  "an extmap is 'id[/direction] uri'" },
	{ "SSRC of 33 bits", AUDIO "a=ssrc:4294967296 cname:x\r\n",
	  "'4294967296' is not an SSRC: a number of 32 bits" },
	{ "SSRC group of letters", AUDIO "a=ssrc-group:FID 1 x\r\n", "'x' is not an SSRC" },
	{ "rid without direction", AUDIO "a=rid:h\r\n", "a rid is 'name send' or 'name recv'" },
	{ "one mid for two", AUDIO "a=mid:0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\n",
	  "line 7: mid '0' names two m-lines" },
	{ "mid of two words", AUDIO "a=mid:0 1\r\n", "line 6: a mid is one word" },
};

Test(sdp, says_what_is_wrong_and_where)
{
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct sdp_error error;
		enum sdp_verdict verdict = parse(refused[i].text, strlen(refused[i].text), &error);

		cr_expect_eq(verdict, SDP_MALFORMED, "%s", refused[i].name);
		cr_expect(strstr(error.text, refused[i].error), "%s: '%s'", refused[i].name,
			  error.text);
	}
}

Test(sdp, refuses_a_nul_byte)
{
	static const char text[] = AUDIO "a=fmtp\0:101 0-16\r\n";
	struct sdp_error error;

	cr_expect_eq(parse(text, sizeof(text) - 1, &error), SDP_MALFORMED);
	cr_expect_str_eq(error.text, "line 6: holds the control byte 0x00");
	cr_expect_eq(error.line, 6);
}

Test(sdp, takes_either_line_end_and_none_at_the_last_line)
{
	parse_ok(
	    "v=0\no=- 1 1 IN IP4 127.0.0.1\ns=-\nt=0 0\nm=audio 9 UDP/TLS/RTP/SAVPF 0\na=mid:x");
	cr_expect(sdp_span_is(s->media[0].mid, "x"));
	parse_ok(AUDIO "a=mid:x\r\n\r\n");
	cr_expect(sdp_span_is(s->media[0].mid, "x"));
}

Test(sdp, hands_session_attributes_down_and_lets_media_ones_win)
{
	const struct sdp_attributes *a;

	parse_ok(HEAD "a=group:LS 0 1\r\na=group:BUNDLE 0 1\r\na=ice-ufrag:sess\r\n"
		      "a=ice-pwd:0123456789012345678901\r\na=setup:passive\r\na=sendonly\r\n"
		      "a=fingerprint:sha-1 AB\r\na=extmap:3 urn:session\r\n"
		      "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n"
		      "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=ice-ufrag:line\r\n"
		      "a=ice-pwd:abcdefghijklmnopqrstuv\r\na=setup:active\r\na=recvonly\r\n"
		      "a=extmap:4 urn:line\r\n");
	a = &s->media[0].attributes;
	cr_expect(sdp_span_is(a->ufrag, "sess") && a->setup == SDP_SETUP_PASSIVE);
	cr_expect(a->direction == SDP_SENDONLY && a->fingerprint_count == 1);
	a = &s->media[1].attributes;
	cr_expect(sdp_span_is(a->ufrag, "line") && sdp_span_is(a->pwd, "abcdefghijklmnopqrstuv"));
	cr_expect(a->direction == SDP_RECVONLY && a->setup == SDP_SETUP_ACTIVE);
	cr_expect_eq(s->session_extensions, 1);
	cr_expect_eq(s->media[1].extensions, 1);
	cr_expect(sdp_span_is(s->extensions[s->media[1].first_extension].uri, "urn:line"));
	cr_expect_eq(s->bundle_count, 1, "LS says nothing about transports");
	cr_expect(sdp_span_is(s->bundles[0], "0 1"));
}

Test(sdp, an_m_line_without_direction_is_sendrecv)
{
	parse_ok(AUDIO);
	cr_expect_eq(s->media[0].attributes.direction, SDP_SENDRECV);
}

Test(sdp, reads_formats_in_any_order_of_attributes)
{
	const struct sdp_format *f;

	parse_ok(HEAD "m=video 9 UDP/TLS/RTP/SAVPF 96 97 96\r\na=fmtp:97 apt=96\r\n"
		      "a=rtcp-fb:96 nack \r\na=rtcp-fb:* ccm fir\r\na=rtcp-fb:97 transport-cc\r\n"
		      "a=rtcp-fb:96 nack pli\r\na=rtcp-fb:96 nack rpsi\r\na=rtcp-fb:5 nack\r\n"
		      "a=rtpmap:97 rtx/90000\r\na=rtpmap:96 VP8/90000\r\na=rtpmap:96 VP9/90000\r\n"
		      "a=rtpmap:1 G722/8000/1\r\n");
	cr_assert_eq(s->media[0].formats, 2, "96 is listed twice and counts once");
	f = s->formats;
	cr_expect(f[0].pt == 96 && sdp_span_is(f[0].name, "VP8") && f[0].clock_hz == 90000);
	cr_expect_eq(f[0].feedback, SDP_FB_NACK | SDP_FB_PLI | SDP_FB_FIR);
	cr_expect_eq(f[1].feedback, SDP_FB_FIR | SDP_FB_TRANSPORT_CC);
	cr_expect(sdp_span_is(f[1].fmtp, "apt=96"));
}

Test(sdp, splits_a_parameter_at_its_first_equals_sign_only)
{
	static const char fmtp[] = "packetization-mode=1; sprop-parameter-sets=Z0LAFdkB==,aMuMsg==;"
				   "Profile-Level-Id=42c015;flag";
	struct sdp_span text = { fmtp, sizeof(fmtp) - 1 }, value;

	cr_assert(sdp_fmtp_get(text, "sprop-parameter-sets", &value));
	cr_expect(sdp_span_is(value, "Z0LAFdkB==,aMuMsg=="));
	cr_assert(sdp_fmtp_get(text, "profile-level-id", &value));
	cr_expect(sdp_span_is(value, "42c015"));
	cr_assert(sdp_fmtp_get(text, "flag", &value));
	cr_expect_eq(value.len, 0);
	cr_expect(!sdp_fmtp_get(text, "mode", &value), "not a part of another name");
}

Test(sdp, reads_sources_and_their_retransmission_partners)
{
	parse_ok(HEAD "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=ssrc-group:FID 11 12\r\n"
		      "a=ssrc-group:FID 13\r\na=ssrc:11 cname:x y\r\na=ssrc:12 cname:x\r\n"
		      "a=ssrc:11 msid:stream track\r\n");
	cr_assert_eq(s->media[0].ssrcs, 2);
	cr_expect(s->ssrcs[0].ssrc == 11 && sdp_span_is(s->ssrcs[0].cname, "x y"));
	cr_expect_eq(sdp_rtx_ssrc(s, s->media, 11), 12);
	cr_expect_eq(sdp_rtx_ssrc(s, s->media, 12), 0);
	cr_expect_eq(sdp_rtx_ssrc(s, s->media, 13), 0, "a group of one");
	cr_expect(sdp_span_is(s->media[0].msid_stream, "stream") &&
		  sdp_span_is(s->media[0].msid_track, "track"));
}

static const struct {
	const char *text;
	bool parses, usable, dialled;
} candidates[] = {
	{ "1 1 udp 2122194687 192.0.2.1 38788 typ host generation 0", true, true, false },
	{ "0 1 UDP 2122252543 2001:db8::1 42574 typ host", true, true, false },
	{ "1 1 udp 1 [2001:db8::1] 5 typ host", true, true, false },
	{ "1 1 udp 1 127.0.0.1 5 typ host", true, true, false },
	{ "1 1 udp 1 192.0.2.1 5 typ srflx raddr 10.0.0.1 rport 9", true, true, false },
	{ "1 0 udp 1 192.0.2.1 5 typ host", true, false, false },
	{ "1 2 udp 1 192.0.2.1 5 typ host", true, false, false },
	{ "1 1 tcp 1 192.0.2.1 9 typ host tcptype active", true, false, false },
	{ "1 1 tcp 1 192.0.2.1 5 typ host tcptype passive", true, false, true },
	{ "1 1 TCP 1 2001:db8::1 443 typ host tcptype passive", true, false, true },
	{ "1 2 tcp 1 192.0.2.1 5 typ host tcptype passive", true, false, false },
	{ "1 1 tcp 1 4f1e7f6a-2f.local 5 typ host tcptype passive", true, false, false },
	{ "1 1 tcp 1 0.0.0.0 5 typ host tcptype passive", true, false, false },
	{ "1 1 tcp 1 192.0.2.1 0 typ host tcptype passive", true, false, false },
	{ "1 1 udp 1 4f1e7f6a-2f.local 5 typ host", true, false, false },
	{ "1 1 udp 1 fe80::1 5 typ host", true, false, false },
	{ "1 1 udp 1 ff02::1 5 typ host", true, false, false },
	{ "1 1 udp 1 :: 5 typ host", true, false, false },
	{ "1 1 udp 1 0.0.0.0 5 typ host", true, false, false },
	{ "1 1 udp 1 239.1.1.1 5 typ host", true, false, false },
	{ "1 1 udp 1 192.0.2.1 0 typ host", true, false, false },
	{ "1 1 udp 1 192.0.2.1 65536 typ host", false, false, false },
	{ "1 1 udp 4294967296 192.0.2.1 5 typ host", false, false, false },
	{ "1 x udp 1 192.0.2.1 5 typ host", false, false, false },
	{ "1 1 udp 1 192.0.2.1 5 host", false, false, false },
	{ "1 1 udp 1 192.0.2.1", false, false, false },
	{ "", false, false, false },
};

Test(sdp, tells_candidates_it_could_use_from_others)
{
	for (unsigned i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		struct sdp_span text = { candidates[i].text, (uint32_t)strlen(candidates[i].text) };
		struct sdp_candidate c;
		bool parses = sdp_candidate_parse(&c, text);

		cr_expect_eq(parses, candidates[i].parses, "%s", candidates[i].text);
		if (!parses)
			continue;
		cr_expect_eq(sdp_candidate_is_usable(&c), candidates[i].usable, "%s",
			     candidates[i].text);
		cr_expect_eq(sdp_candidate_can_be_dialled(&c), candidates[i].dialled, "%s",
			     candidates[i].text);
	}
}

/* A description of `count` times a text, in which %u is the count's number. */
static size_t repeat(char *out, size_t cap, const char *head, const char *format, unsigned count)
{
	size_t len = (size_t)snprintf(out, cap, "%s", head);

	for (unsigned i = 0; i < count; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		len += (size_t)snprintf(out + len, cap - len, format, i);
#pragma GCC diagnostic pop
		cr_assert_lt(len, cap);
	}
	return len;
}

static const struct {
	const char *name;
	const char *head, *format;
	unsigned max;
	const char *error;
} caps[] = {
	{ "lines", AUDIO, "a=x:%u\r\n", SDP_MAX_LINES - 5, "more than 1000 lines" },
	{ "m-lines", HEAD, "m=audio 9 UDP/TLS/RTP/SAVPF %u\r\n", SDP_MAX_MEDIA,
	  "more than 16 m-lines" },
	{ "candidates", AUDIO, "a=candidate:%u 1 udp 1 192.0.2.1 5 typ host\r\n",
	  SDP_MAX_CANDIDATES, "more than 64 candidates" },
	{ "bad candidates", AUDIO, "a=candidate:%u nonsense\r\n", SDP_MAX_CANDIDATES,
	  "more than 64 candidates" },
	{ "extmaps", AUDIO, "a=extmap:1 urn:%u\r\n", SDP_MAX_EXTENSIONS, "more than 256 extmaps" },
	{ "SSRCs", AUDIO, "a=ssrc:%u cname:x\r\n", SDP_MAX_SSRCS, "more than 64 SSRCs" },
	{ "SSRC groups", AUDIO, "a=ssrc-group:FID %u 2\r\n", SDP_MAX_SSRC_GROUPS,
	  "more than 32 SSRC groups" },
	{ "rids", AUDIO, "a=rid:%u send\r\n", SDP_MAX_RIDS, "more than 32 rids" },
	{ "bundles", HEAD, "a=group:BUNDLE %u\r\n", SDP_MAX_BUNDLES, "more than 4 BUNDLE groups" },
	{ "fingerprints", AUDIO, "a=fingerprint:x%u AB\r\n", SDP_MAX_FINGERPRINTS,
	  "more than 4 fingerprints" },
};

Test(sdp, takes_what_is_at_a_limit_and_refuses_one_more)
{
	static char text[SDP_MAX_BYTES];

	for (unsigned i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct sdp_error error;
		size_t len = repeat(text, sizeof(text), caps[i].head, caps[i].format, caps[i].max);

		cr_expect_eq(parse(text, len, &error), SDP_OK, "%s: %s", caps[i].name, error.text);
		len = repeat(text, sizeof(text), caps[i].head, caps[i].format, caps[i].max + 1);
		cr_expect_eq(parse(text, len, &error), SDP_TOO_LARGE, "%s", caps[i].name);
		cr_expect(strstr(error.text, caps[i].error), "%s: %s", caps[i].name, error.text);
	}
}

static const struct {
	const char *head;
	size_t max;
	const char *error;
} lengths[] = {
	{ HEAD "a=", SDP_MAX_LINE_BYTES - 2, "line 5: longer than 4096 bytes" },
	{ AUDIO "a=mid:", SDP_MAX_MID_BYTES, "line 6: a mid has at most 32 bytes" },
};

Test(sdp, limits_the_length_of_lines_and_mids)
{
	static char text[SDP_MAX_BYTES];

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct sdp_error error;
		size_t head = strlen(lengths[i].head);

		memcpy(text, lengths[i].head, head);
		memset(text + head, 'y', lengths[i].max + 1);
		cr_expect_eq(parse(text, head + lengths[i].max, &error), SDP_OK, "%s", error.text);
		cr_expect_eq(parse(text, head + lengths[i].max + 1, &error), SDP_TOO_LARGE);
		cr_expect_str_eq(error.text, lengths[i].error);
	}
}

Test(sdp, takes_512_payload_types_and_no_more)
{
	static char text[SDP_MAX_BYTES];
	size_t len = (size_t)snprintf(text, sizeof(text), HEAD);
	struct sdp_error error;

	for (unsigned line = 0; line < 5; line++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%sm=audio 9 RTP/SAVPF",
					line ? "\n" : "");
		for (unsigned pt = 0; pt < (line < 4 ? 128 : 1); pt++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, " %u", pt);
		cr_expect_eq(parse(text, len, &error), line < 4 ? SDP_OK : SDP_TOO_LARGE, "%u",
			     line);
	}
	cr_expect_str_eq(error.text, "line 9: more than 512 payload types");
}

Test(sdp, takes_64_kib_and_no_byte_more)
{
	static char text[SDP_MAX_BYTES + 1];
	struct sdp_error error;
	size_t len = (size_t)snprintf(text, sizeof(text), HEAD);

	while (len < sizeof(text)) {
		text[len] = (len % 4000) ? 'b' : '\n';
		if (len % 4000 == 1)
			text[len] = 'a';
		if (len % 4000 == 2)
			text[len] = '=';
		len++;
	}
	memcpy(text + strlen(HEAD), "a=", 2);
	cr_expect_eq(parse(text, SDP_MAX_BYTES, &error), SDP_OK, "%s", error.text);
	cr_expect_eq(parse(text, SDP_MAX_BYTES + 1, &error), SDP_TOO_LARGE);
	cr_expect_str_eq(error.text, "the description is longer than 65536 bytes");
}

Test(sdp, any_cut_of_an_offer_ends_in_a_verdict)
{
	size_t len;
	char *text = fixture_read("offers", "chrome156-sendonly-simulcast.sdp", &len);

	for (size_t cut = 0; cut < len; cut += 7) {
		enum sdp_verdict verdict = parse(text, cut, NULL);

		cr_expect(verdict == SDP_OK || verdict == SDP_MALFORMED, "%zu", cut);
	}
	free(text);
}
