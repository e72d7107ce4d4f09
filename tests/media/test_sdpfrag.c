#include "media/sdpfrag.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

TestSuite(sdpfrag, .timeout = 10);

static const struct {
	const char *file;
	const char *ufrag;
	unsigned mids, candidates, discarded;
	bool end;
} bodies[] = {
	{ "chrome-eyevinn.whip-1.sdpfrag", "UDWT", 1, 0, 1,
	  false }, /* component 0, [2001:db8::1] */
	{ "chrome-eyevinn.whip-2.sdpfrag", "UDWT", 1, 0, 1, false },
	{ "chrome-mediamtx.publisher-1.sdpfrag", "IXV4", 2, 4, 4, false },
	{ "chrome-whip-whep.whep-1.sdpfrag", "POvj", 1, 2, 0, false },
	{ "chrome-whip-whep.whep-2.sdpfrag", "POvj", 1, 0, 0, true },
	{ "chrome-whip-whep.whip-restart-3.sdpfrag", "gFJ9", 0, 0, 0, false },
	{ "firefox-eyevinn.whip-1.sdpfrag", "bf477d6d", 1, 0, 1, false },
	{ "firefox-mediamtx.reader-1.sdpfrag", "001fb83f", 3, 6, 14, false }, /* "a=" between */
	{ "firefox-whip-whep.whip-1.sdpfrag", "ded0f14e", 1, 2, 6, false },
	{ "simple-whip-client-1.sdpfrag", "DCdumcpZoWgnj8vnoI4uYQ0mA4k0ZAyk", 1, 2, 7, false },
	{ "simple-whip-client-2.sdpfrag", "DCdumcpZoWgnj8vnoI4uYQ0mA4k0ZAyk", 1, 0, 0, true },
};

Test(sdpfrag, reads_what_clients_send)
{
	for (unsigned i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const char *name = bodies[i].file;
		struct sdp_error error;
		struct sdpfrag f;
		size_t len;
		char *text = fixture_read("offers/sdpfrag", name, &len);

		cr_expect_eq(sdpfrag_parse(&f, text, len, &error), SDP_OK, "%s: %s", name,
			     error.text);
		cr_expect_str_eq(f.ufrag, bodies[i].ufrag, "%s", name);
		cr_expect_geq(strlen(f.pwd), 22u, "%s", name);
		cr_expect_eq(f.mid_count, bodies[i].mids, "%s: %u mids", name, f.mid_count);
		cr_expect_eq(f.candidate_count, bodies[i].candidates, "%s: %u", name,
			     f.candidate_count);
		cr_expect_eq(f.discarded, bodies[i].discarded, "%s: %u", name, f.discarded);
		cr_expect_eq(f.end_of_candidates, bodies[i].end, "%s", name);
		free(text);
	}
}

static void body_parses(const char *name, const char *text, size_t len)
{
	struct sdp_error error;
	struct sdpfrag f;

	cr_expect_eq(sdpfrag_parse(&f, text, len, &error), SDP_OK, "%s: %s", name, error.text);
}

Test(sdpfrag, reads_every_captured_body)
{
	cr_assert_geq(fixture_each("offers/sdpfrag", ".sdpfrag", body_parses), 17u);
}

Test(sdpfrag, keeps_addresses_once_and_in_order)
{
	static const char text[] = "m=audio 9 RTP/AVP 0\na=mid:0\n"
				   "a=candidate:1 1 udp 1 192.0.2.7 1000 typ host\n"
				   "a=candidate:1 1 udp 1 [2001:db8::7] 1001 typ host\n"
				   "a=candidate:2 1 udp 1 192.0.2.7 1000 typ srflx\n";
	struct sdpfrag f;

	cr_assert_eq(sdpfrag_parse(&f, text, sizeof(text) - 1, NULL), SDP_OK);
	cr_assert_eq(f.candidate_count, 2);
	cr_expect(f.candidates[0].family == 4 && f.candidates[0].port == 1000);
	cr_expect(f.candidates[0].ip[0] == 192 && f.candidates[0].ip[3] == 7);
	cr_expect(f.candidates[1].family == 6 && f.candidates[1].ip[15] == 7);
	cr_expect_str_eq(f.ufrag, "", "no credentials: the current session");
}

static const struct {
	const char *name;
	const char *text;
	const char *error;
} refused[] = {
	{ "nothing", "", "the fragment has no a= line" },
	{ "blank lines", "\r\n\r\n", "the fragment has no a= line" },
	{ "JSON", "{\"candidate\":\"\"}", "line 1: '{\"candidate\":\"\"}' is not of the form" },
	{ "control byte", "a=mid:\x01\r\n", "line 1: holds the control byte 0x01" },
	{ "short ufrag", "a=ice-ufrag:abc\r\n", "line 1: an ice-ufrag has 4 to 256" },
	{ "short pwd", "a=ice-pwd:short\r\n", "line 1: an ice-pwd has 22 to 256" },
	{ "half of the credentials", "a=ice-ufrag:abcd\r\n",
	  "ice-ufrag and ice-pwd come together" },
	{ "mid without a name", "a=mid:\r\n", "a mid has 1 to 32 bytes" },
};

Test(sdpfrag, says_what_is_wrong_and_where)
{
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct sdp_error error;
		struct sdpfrag f;

		cr_expect_eq(sdpfrag_parse(&f, refused[i].text, strlen(refused[i].text), &error),
			     SDP_MALFORMED, "%s", refused[i].name);
		cr_expect(strstr(error.text, refused[i].error), "%s: '%s'", refused[i].name,
			  error.text);
	}
}

static enum sdp_verdict parse_repeated(const char *line, unsigned count, struct sdpfrag *f)
{
	static char text[2 * SDPFRAG_MAX_BYTES];
	size_t len = 0;

	for (unsigned i = 0; i < count; i++) {
		memcpy(text + len, line, strlen(line));
		len += strlen(line);
	}
	return sdpfrag_parse(f, text, len, NULL);
}

Test(sdpfrag, takes_what_is_at_a_limit_and_refuses_one_more)
{
	static const struct {
		const char *line;
		unsigned max;
	} caps[] = {
		{ "a=candidate:1 1 udp 1 192.0.2.7 1000 typ host\n", SDPFRAG_MAX_CANDIDATES },
		{ "a=candidate:nonsense\n", SDPFRAG_MAX_CANDIDATES },
		{ "a=mid:0\n", SDP_MAX_MEDIA },
		{ "a=x\n", 1000 },
		{ "a=abcdefghijklm\n", SDPFRAG_MAX_BYTES / 16 },
	};
	struct sdpfrag f;

	for (unsigned i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		if (i + 1 < sizeof(caps) / sizeof(caps[0]))
			cr_expect_eq(parse_repeated(caps[i].line, caps[i].max, &f), SDP_OK, "%s",
				     caps[i].line);
		cr_expect_eq(parse_repeated(caps[i].line, caps[i].max + 1, &f), SDP_TOO_LARGE, "%s",
			     caps[i].line);
	}
}

Test(sdpfrag, writes_the_reply_to_a_restart)
{
	static const struct sdp_address candidates[] = {
		{ .family = 4, .transport = SDP_TCP, .ip = { 192, 0, 2, 1 }, .port = 443 },
		{ .family = 6, .ip = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 }, .port = 8189 },
		{ .family = 4, .ip = { 192, 0, 2, 1 }, .port = 8189 },
	};
	struct sdpfrag_reply reply = {
		.ufrag = "relayufrag",
		.pwd = "abcdefghijklmnopqrstuvwx",
		.mid = "audio0",
		.media = "audio",
		.candidates = candidates,
		.candidate_count = 3,
	};
	char out[SDPFRAG_REPLY_BYTES];
	struct sdpfrag f;
	int len = sdpfrag_write_reply(&reply, out, sizeof(out));

	cr_assert_gt(len, 0);
	cr_expect_str_eq(out,
			 "a=ice-lite\r\n"
			 "a=ice-options:trickle\r\n"
			 "a=ice-ufrag:relayufrag\r\n"
			 "a=ice-pwd:abcdefghijklmnopqrstuvwx\r\n"
			 "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\n"
			 "a=mid:audio0\r\n"
			 "a=candidate:1 1 udp 2130706431 192.0.2.1 8189 typ host\r\n"
			 "a=candidate:2 1 udp 2130706175 2001:db8::1 8189 typ host\r\n"
			 "a=candidate:3 1 tcp 1520434687 192.0.2.1 443 typ host tcptype passive\r\n"
			 "a=end-of-candidates\r\n");
	cr_assert_eq(sdpfrag_parse(&f, out, (size_t)len, NULL), SDP_OK, "it reads what it writes");
	cr_expect_eq(f.candidate_count, 2, "TCP of a client's is of no use to us");
	cr_expect_eq(sdpfrag_write_reply(&reply, out, (size_t)len), -ENOSPC);
	cr_expect_eq(sdpfrag_write_reply(&reply, out, (size_t)len + 1), len);
}
