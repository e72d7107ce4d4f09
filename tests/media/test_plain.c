#include "media/plain.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(plain, .timeout = 10);

#define HEAD  "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=No Name\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\n"
#define VIDEO "m=video 5004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
#define AUDIO "m=audio 5006 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\n"

static struct negotiated n;
static struct plain_terms terms;
static char reason[ANSWER_REASON_BYTES];

static enum answer_verdict read_text(const char *text)
{
	struct sdp *s = malloc(sizeof(*s));
	enum answer_verdict verdict;
	struct sdp_error error;

	cr_assert(s);
	reason[0] = '\0';
	cr_assert_eq(sdp_parse(s, text, strlen(text), &error), SDP_OK, "%s", error.text);
	verdict = plain_read(s, &n, &terms, reason);
	free(s);
	return verdict;
}

/* As `ffmpeg -f rtp` writes it. */
static const char ffmpeg[] = HEAD
    "a=tool:libavformat 59.27.100\r\nm=video 5004 RTP/AVP 96\r\nb=AS:800\r\n"
    "a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1; "
    "sprop-parameter-sets=Z0LAHtkAoD2hAAADAAEAAAMAPA8WLkg=,aMuMsg==; profile-level-id=42C01E\r\n"
    "m=audio 5006 RTP/AVP 97\r\nb=AS:96\r\na=rtpmap:97 opus/48000/2\r\na=fmtp:97 "
    "sprop-stereo=1\r\n";

Test(plain, what_ffmpeg_writes_is_understood)
{
	static const uint8_t source[4] = { 192, 0, 2, 7 };

	cr_assert_eq(read_text(ffmpeg), ANSWER_OK, "%s", reason);
	cr_expect_eq(terms.leg_count, 2);
	for (unsigned kind = 0; kind < 2; kind++) {
		uint16_t port = kind == MEDIA_AUDIO ? 5006 : 5004;

		cr_expect_eq(terms.legs[kind].kinds, 1u << kind);
		cr_expect_eq(terms.legs[kind].port, port);
		cr_expect_eq(terms.legs[kind].rtcp_port, port + 1);
		cr_expect(!terms.legs[kind].rtcp_mux);
		cr_expect_eq(n.media[kind].codec_count, 1);
		cr_expect_eq(n.media[kind].codecs[0].feedback, 0, "RTP/AVP knows none");
	}
	cr_expect_eq(n.media[MEDIA_VIDEO].codecs[0].codec, CODEC_H264);
	cr_expect_str_eq(n.media[MEDIA_VIDEO].codecs[0].fmtp,
			 "packetization-mode=1;profile-level-id=42c01e");
	cr_expect_eq(n.media[MEDIA_AUDIO].codecs[0].codec, CODEC_OPUS);
	cr_expect(!terms.is_filtered);
	cr_expect_eq(terms.source.family, 4);
	cr_expect_arr_eq(terms.source.ip, source, sizeof(source));
}

Test(plain, ports_follow_what_the_lines_say)
{
	static const struct {
		const char *name, *text;
		unsigned legs;
		uint16_t port, rtcp_port;
		bool mux;
	} rows[] = {
		{ "one kind", HEAD VIDEO, 1, 5004, 5005, false },
		{ "a port for RTCP", HEAD VIDEO "a=rtcp:6000\r\n", 1, 5004, 6000, false },
		{ "RTCP on RTP's", HEAD VIDEO "a=rtcp-mux\r\n", 1, 5004, 5004, true },
		{ "one port for both",
		  HEAD "m=audio 5004 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\n" VIDEO, 1, 5004,
		  5005, false },
		{ "a bundle",
		  "v=0\r\ns=x\r\nc=IN IP4 192.0.2.7\r\na=group:BUNDLE a v\r\n" AUDIO
		  "a=mid:a\r\n" VIDEO "a=mid:v\r\n",
		  1, 5006, 5007, false },
		{ "a disabled line", HEAD VIDEO "m=audio 0 RTP/AVP 97\r\n", 1, 5004, 5005, false },
		{ "two lines", HEAD VIDEO AUDIO, 2, 5006, 5007, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(read_text(rows[i].text), ANSWER_OK, "%s: %s", rows[i].name, reason);
		cr_expect_eq(terms.leg_count, rows[i].legs, "%s", rows[i].name);
		cr_expect_eq(terms.legs[0].port, rows[i].port, "%s", rows[i].name);
		cr_expect_eq(terms.legs[0].rtcp_port, rows[i].rtcp_port, "%s", rows[i].name);
		cr_expect_eq(terms.legs[0].rtcp_mux, rows[i].mux, "%s", rows[i].name);
	}
}

Test(plain, a_source_filter_comes_before_the_connection)
{
	static const struct {
		const char *line;
		uint8_t first; /* byte of the address */
		bool is_filtered;
	} rows[] = {
		{ "a=source-filter: incl IN IP4 * 203.0.113.9\r\n", 203, true },
		{ "a=source-filter: incl IN IP4 192.0.2.7 203.0.113.9\r\n", 203, true },
		{ "a=source-filter: excl IN IP4 * 203.0.113.9\r\n", 192, false },
		{ "a=source-filter: incl IN IP4 *\r\n", 192, false },
		{ "", 192, false },
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), HEAD VIDEO "%s", rows[i].line);
		cr_assert_eq(read_text(text), ANSWER_OK, "%s", reason);
		cr_expect_eq(terms.is_filtered, rows[i].is_filtered, "%s", rows[i].line);
		cr_expect_eq(terms.source.ip[0], rows[i].first, "%s", rows[i].line);
	}
}

Test(plain, what_is_not_plain_or_not_known_is_refused)
{
	static const struct {
		const char *text;
		enum answer_verdict verdict;
		const char *reason;
	} rows[] = {
		{ HEAD, ANSWER_UNACCEPTABLE, "no m-line" },
		{ HEAD "m=video 5004 UDP/TLS/RTP/SAVPF 96\r\n", ANSWER_UNACCEPTABLE,
		  "line 6: UDP/TLS/RTP/SAVPF is not plain RTP" },
		{ HEAD "m=video 5004 RTP/AVP 96\r\na=rtpmap:96 theora/90000\r\n",
		  ANSWER_NO_COMMON_CODEC, "no common video codec" },
		{ HEAD "m=video 0 RTP/AVP 96\r\n", ANSWER_UNACCEPTABLE, "no m-line" },
		{ HEAD VIDEO "a=inactive\r\n", ANSWER_UNACCEPTABLE, "no m-line" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(read_text(rows[i].text), rows[i].verdict, "%s", rows[i].text);
		cr_expect(strstr(reason, rows[i].reason), "%s", reason);
	}
}

Test(plain, what_is_written_reads_the_same)
{
	struct plain_text text = {
		.name = "live",
		.session_id = 7,
		.address = { .family = 4, .ip = { 192, 0, 2, 7 } },
		.direction = "recvonly",
	};
	struct negotiated first;
	struct plain_terms written;
	char out[PLAIN_MAX_BYTES];

	cr_assert_eq(read_text(ffmpeg), ANSWER_OK);
	first = n;
	written = terms;
	text.terms = &written;
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		text.codecs[kind] = &first.media[kind].codecs[0];
	cr_assert_gt(plain_write(&text, out, sizeof(out)), 0);
	cr_assert_eq(read_text(out), ANSWER_OK, "%s", reason);
	cr_expect_eq(terms.leg_count, written.leg_count);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		cr_expect_eq(terms.legs[kind].port, written.legs[kind].port);
		cr_expect_eq(terms.legs[kind].rtcp_port, written.legs[kind].rtcp_port);
		cr_expect_eq(n.media[kind].codecs[0].pt, first.media[kind].codecs[0].pt);
		cr_expect(negotiated_match(&n.media[kind], first.media[kind].codecs[0].codec,
					   first.media[kind].codecs[0].fmtp));
	}
	cr_expect_eq(plain_write(&text, out, 40), -ENOSPC);
}
