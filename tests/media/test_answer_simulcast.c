#include "media/answer.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

static struct sdp *offer;
static struct negotiated *n;
static const struct negotiated_media *video;
static char *out;
static char reason[ANSWER_REASON_BYTES];

static void setup(void)
{
	offer = malloc(sizeof(*offer));
	n = malloc(sizeof(*n));
	out = malloc(ANSWER_MAX_BYTES);
	cr_assert(offer && n && out);
	video = &n->media[MEDIA_VIDEO];
}

static void teardown(void)
{
	free(offer);
	free(n);
	free(out);
}

TestSuite(answer_simulcast, .init = setup, .fini = teardown, .timeout = 10);

static const struct answer_local local = {
	.ufrag = "slce0123456789ab",
	.pwd = "abcdefghijklmnopqrstuvwxyz012345",
	.fingerprint = "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:"
		       "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF",
	.session_id = 1,
};

static void negotiate(const char *name, const char *text, size_t len, unsigned max)
{
	struct answer_policy policy;
	struct sdp_error error;

	answer_policy_init(&policy, ANSWER_INGEST);
	answer_policy_layers(&policy);
	policy.max_encodings = (uint8_t)max;
	policy.max_codecs = 1;
	cr_assert_eq(sdp_parse(offer, text, len, &error), SDP_OK, "%s: %s", name, error.text);
	cr_assert_eq(answer_negotiate(offer, &policy, n, reason), ANSWER_OK, "%s: %s", name,
		     reason);
	cr_assert_gt(answer_write(offer, n, &local, out, ANSWER_MAX_BYTES), 0, "%s", name);
}

/* "rid ssrc rtx_ssrc, ..." from the lowest quality up */
static const char *encodings_text(void)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < video->encoding_count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %u %u", i ? ", " : "",
					video->encodings[i].rid, video->encodings[i].ssrc,
					video->encodings[i].rtx_ssrc);
	return text;
}

static bool has_video_extension(const char *uri)
{
	return strstr(strstr(out, "m=video"), uri) != NULL;
}

static const struct {
	const char *file;
	const char *encodings;
	const char *lines; /* of the answer */
} clients[] = {
	{ "chrome156-sendonly-simulcast.sdp", "l 0 0, m 0 0, h 0 0",
	  "a=rid:h recv\r\na=rid:m recv\r\na=rid:l recv\r\na=simulcast:recv h;m;l\r\n" },
	{ "firefox153esr-sendonly-simulcast.sdp",
	  "l 3194064854 325357522, m 1315576286 2823197921, h 2306680131 610296345",
	  "a=rid:h recv\r\na=rid:m recv\r\na=rid:l recv\r\na=simulcast:recv h;m;l\r\n" },
	{ "obs-equiv-libdatachannel0245-h264-simulcast3.sdp", "2 0 0, 1 0 0, 0 0 0",
	  "a=rid:0 recv\r\na=rid:1 recv\r\na=rid:2 recv\r\na=simulcast:recv 0;1;2\r\n" },
};

Test(answer_simulcast, names_every_encoding_that_a_client_offers)
{
	for (unsigned i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		const char *name = clients[i].file;
		size_t len;
		char *text = fixture_read("offers", name, &len);

		negotiate(name, text, len, NEGOTIATED_MAX_ENCODINGS);
		cr_expect_str_eq(encodings_text(), clients[i].encodings, "%s", name);
		cr_expect(strstr(out, clients[i].lines), "%s: %s", name, out);
		cr_expect(has_video_extension("urn:ietf:params:rtp-hdrext:sdes:mid"), "%s", name);
		cr_expect(has_video_extension("urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"),
			  "%s", name);
		cr_expect(n->media[MEDIA_AUDIO].encoding_count == 1, "%s", name);
		free(text);
	}
}

Test(answer_simulcast, is_not_answered_unless_the_policy_wants_it)
{
	for (unsigned max = 0; max <= 1; max++) {
		size_t len;
		char *text = fixture_read("offers", clients[1].file, &len);

		negotiate(clients[1].file, text, len, max);
		cr_expect_str_eq(encodings_text(), " 2306680131 610296345");
		cr_expect(!strstr(out, "a=rid") && !strstr(out, "simulcast") &&
			  !has_video_extension("rtp-stream-id"));
		free(text);
	}
}

Test(answer_simulcast, svc_is_one_encoding_with_its_extensions)
{
	size_t len;
	char *text = fixture_read("offers", "chrome156-sendonly-svc-videoonly.sdp", &len);

	negotiate("svc", text, len, NEGOTIATED_MAX_ENCODINGS);
	cr_expect_str_eq(encodings_text(), " 992382710 1236998971");
	cr_expect(!strstr(out, "a=rid") && !strstr(out, "simulcast"));
	cr_expect(strstr(out, "a=extmap:13 https://aomediacodec.github.io/av1-rtp-spec/"
			      "#dependency-descriptor-rtp-header-extension\r\n"));
	cr_expect(strstr(out, "a=extmap:14 http://www.webrtc.org/experiments/rtp-hdrext/"
			      "video-layers-allocation00\r\n"));
	free(text);
}

#define HEAD                                                                                       \
	"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n"                  \
	"a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"                                 \
	"a=fingerprint:sha-256 ab:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:"                      \
	"EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF\r\na=setup:actpass\r\n"                \
	"m=video 9 UDP/TLS/RTP/SAVPF 96 97 98\r\na=mid:0\r\na=rtcp-mux\r\na=sendonly\r\n"          \
	"a=rtpmap:96 VP8/90000\r\na=rtpmap:97 VP9/90000\r\na=rtpmap:98 rtx/90000\r\n"              \
	"a=fmtp:98 apt=96\r\na=rtcp-fb:96 nack\r\n"
#define RIDS "a=rid:q send\r\na=rid:h send\r\na=rid:f send\r\n"

static const struct {
	const char *name;
	const char *offer;     /* behind HEAD */
	const char *encodings; /* from the lowest quality up */
	const char *lines;     /* of the answer; NULL: no a=rid and no a=simulcast */
} cases[] = {
	{ "rids and sources but no extension, as Pion does",
	  "a=msid:s t\r\na=msid:s t\r\na=msid:s t\r\na=ssrc:11 cname:c\r\na=ssrc:12 cname:c\r\n"
	  "a=ssrc:13 cname:c\r\n" RIDS "a=simulcast:send q;h;f\r\n",
	  "q 11 0, h 12 0, f 13 0", "a=simulcast:recv q;h;f\r\n" },
	{ "more sources than rids", RIDS "a=simulcast:send q;h\r\na=ssrc:11 cname:c\r\n",
	  "q 0 0, h 0 0", "a=simulcast:recv q;h\r\n" },
	{ "a group of sources",
	  "a=ssrc-group:SIM 11 12 13\r\na=ssrc-group:FID 11 21\r\na=ssrc-group:FID 12 22\r\n"
	  "a=ssrc-group:FID 13 23\r\na=ssrc:11 cname:c\r\na=ssrc:12 cname:c\r\n",
	  " 11 21,  12 22,  13 23", NULL },
	{ "sources without a group", "a=ssrc:11 cname:c\r\na=ssrc:12 cname:c\r\n", " 11 0", NULL },
	{ "nothing said", "", " 0 0", NULL },
	{ "rids without simulcast", RIDS, " 0 0", NULL },
	{ "simulcast without rids", "a=simulcast:send q;h;f\r\n", " 0 0", NULL },
	{ "both directions", RIDS "a=rid:x recv\r\na=simulcast:recv x send q;f\r\n", "q 0 0, f 0 0",
	  "a=simulcast:recv q;f\r\n" },
	{ "only what we should send", "a=rid:x recv\r\na=simulcast:recv x\r\n", " 0 0", NULL },
	{ "a rid for the other direction", RIDS "a=rid:x recv\r\na=simulcast:send q;x;f\r\n",
	  "q 0 0, f 0 0", "a=simulcast:recv q;f\r\n" },
	{ "alternatives and pauses", RIDS "a=rid:b send\r\na=simulcast:send ~q;z,~h,f;b\r\n",
	  "b 0 0, h 0 0, q 0 0",
	  "a=rid:q recv\r\na=rid:h recv\r\na=rid:b recv\r\na=simulcast:recv q;h;b\r\n" },
	{ "twice the same", RIDS "a=simulcast:send q;q;f\r\n", "q 0 0, f 0 0",
	  "a=simulcast:recv q;f\r\n" },
	{ "one", RIDS "a=simulcast:send q\r\n", "q 0 0", "a=rid:q recv\r\na=simulcast:recv q\r\n" },
	{ "five",
	  RIDS "a=rid:a send\r\na=rid:b send\r\n"
	       "a=simulcast:send f;h;q;a;b\r\n",
	  "a 0 0, q 0 0, h 0 0, f 0 0", "a=simulcast:recv f;h;q;a\r\n" },
	{ "a name too long",
	  "a=rid:12345678901234567 send\r\na=rid:1234567890123456 send\r\n"
	  "a=simulcast:send 12345678901234567;1234567890123456\r\n",
	  "1234567890123456 0 0", "a=simulcast:recv 1234567890123456\r\n" },
	{ "limits are kept, as far as the codec was taken",
	  "a=rid:1 send pt=96,97;max-width=640\r\na=rid:2 send max-fps=15;pt=97\r\n"
	  "a=rid:3 send max-height=90 ; pt=98\r\na=simulcast:send 1;2;3\r\n",
	  "3 0 0, 1 0 0",
	  "a=rid:1 recv pt=96;max-width=640\r\na=rid:3 recv max-height=90;pt=98\r\n"
	  "a=simulcast:recv 1;3\r\n" },
	{ "names of sizes, smallest first",
	  "a=rid:low send\r\na=rid:Mid send\r\na=rid:high send\r\na=simulcast:send "
	  "low;Mid;high\r\n",
	  "low 0 0, Mid 0 0, high 0 0", "a=simulcast:recv low;Mid;high\r\n" },
	{ "two names of one letter", "a=rid:hi send\r\na=rid:hd send\r\na=simulcast:send hi;hd\r\n",
	  "hd 0 0, hi 0 0", "a=simulcast:recv hi;hd\r\n" },
	{ "empty parts", RIDS "a=simulcast:send ;;q;,;f;\r\n", "q 0 0, f 0 0",
	  "a=simulcast:recv q;f\r\n" },
};

Test(answer_simulcast, follows_the_offer)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[2048];
		int len = snprintf(text, sizeof(text), "%s%s", HEAD, cases[i].offer);

		negotiate(cases[i].name, text, (size_t)len, NEGOTIATED_MAX_ENCODINGS);
		cr_expect_str_eq(encodings_text(), cases[i].encodings, "%s", cases[i].name);
		if (cases[i].lines)
			cr_expect(strstr(out, cases[i].lines), "%s: %s", cases[i].name, out);
		else
			cr_expect(!strstr(out, "a=rid") && !strstr(out, "a=simulcast"), "%s: %s",
				  cases[i].name, out);
	}
}

Test(answer_simulcast, a_viewer_gets_one_encoding)
{
	static const char text[] = HEAD "a=recvonly\r\na=rid:q recv\r\na=simulcast:recv q\r\n";
	struct answer_policy policy;

	answer_policy_init(&policy, ANSWER_EGRESS);
	answer_policy_layers(&policy);
	cr_assert_eq(sdp_parse(offer, text, strlen(text), NULL), SDP_OK);
	cr_assert_eq(answer_negotiate(offer, &policy, n, reason), ANSWER_OK, "%s", reason);
	cr_assert_gt(answer_write(offer, n, &local, out, ANSWER_MAX_BYTES), 0);
	cr_expect_eq(video->encoding_count, 0);
	cr_expect(!strstr(out, "a=rid") && !strstr(out, "a=simulcast"));
}
