/* What was reported against other servers: descriptions that crashed them, or that they answered so that
 * the client could not go on. Cases of other parts are rows of their own tests:
 *
 *	Location without a slash, missing; PATCH without If-Match, of JSON; OPTIONS (mediamtx#3177,
 *	obs-studio#9459, whip-whep-js#22, react-native-whip-whep#289, go2rtc#798)
 *		tests/http/test_http, test_whip; tests/e2e/test_transcripts
 *	DTLS from a peer-reflexive address, before a check, from elsewhere (asterisk#503, sipsorcery#1559);
 *	ClientHello in two datagrams (freeswitch#2966); DTLS started early (srs#4722)
 *		tests/net/test_transport_packets, test_dtls_stray; tests/server/test_plane_roles
 *	attributes behind MESSAGE-INTEGRITY (pion/stun PR#273)
 *		tests/net/test_ice: a_nomination_behind_integrity_is_not_obeyed
 *	large flights, a lost last flight (OvenMediaEngine#2329, rtpengine#1796)
 *		tests/net/test_dtls: last_flight_is_repeated_until_the_release; the kits check the MTU
 *	wraps with losses, one roll-over count an SSRC (mediasoup#1437, sipsorcery PR#1584)
 *		tests/server/test_plane_wraps; tests/net/test_srtp
 *	extension ids 15 and 0, padding, malformed headers (licode#2046, str0m PR#212, livekit#4689)
 *		tests/media/test_ext, test_rtp, test_track
 *	VP8, VP9, H264, AV1 payloads (pion/webrtc PR#3520, janus PR#1965, ZLMediaKit PR#4815, ex_webrtc PR#239)
 *		tests/media/test_codec
 *	RTCP of every odd shape (pion/webrtc#447, gpac#3638, janus PR#3652, rtpengine#138, mediasoup#350)
 *		tests/media/test_rtcp; transport-wide feedback (janus#3253): test_rtcp_twcc
 *	RTX headers, NACK without answer, switching layers (webrtc-rs/rtc#210, obs#13161, mediasoup#140,
 *	janus#1806, livekit#4594, str0m#346)
 *		tests/media/test_mapping, test_nack, test_numbering; tests/server/test_plane_nack, test_plane_layers
 */
#include "media/answer.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/media/kit_answer.h"

static struct sdp *offer;
static struct negotiated *n;
static char *out;

static void setup(void)
{
	offer = malloc(sizeof(*offer));
	n = malloc(sizeof(*n));
	out = malloc(ANSWER_MAX_BYTES);
	cr_assert(offer && n && out);
}

static void teardown(void)
{
	free(offer);
	free(n);
	free(out);
}

TestSuite(reported, .init = setup, .fini = teardown, .timeout = 10);

#define HEAD "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
#define TRANSPORT                                                                                  \
	"a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"                                 \
	"a=fingerprint:sha-256 AB:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:"                      \
	"EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF\r\n"
#define AUDIO                                                                                      \
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtcp-mux\r\na=rtpmap:111 "                \
	"opus/48000/2\r\n"

/* --- what is refused --------------------------------------------------------------------- */

static const struct {
	const char *name, *text;
	size_t len; /* 0: up to its end */
	bool is_parsed;
	enum answer_verdict verdict; /* where it is parsed */
} refused[] = {
	{ "no m-line (srs#4354)", HEAD TRANSPORT, 0, true, ANSWER_UNACCEPTABLE },
	{ "payload type beyond 32 bits (pjproject#2093)",
	  HEAD "m=audio 17000 RTP/AVP 4294967296\r\n", 0, false, ANSWER_OK },
	{ "a zero byte in fmtp (pjproject#2092)", HEAD TRANSPORT AUDIO "a=fmtp\0:101 0-16\r\n",
	  sizeof(HEAD TRANSPORT AUDIO "a=fmtp\0:101 0-16\r\n") - 1, false, ANSWER_OK },
	{ "RTP without encryption (licode#2048)",
	  HEAD TRANSPORT "m=video 9 RTP/AVPF 96\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n", 0,
	  true, ANSWER_UNACCEPTABLE },
	{ "SAVPF with a format nobody has (OpenVidu#724)",
	  HEAD TRANSPORT "m=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\na=rtcp-mux\r\n", 0, true,
	  ANSWER_NO_COMMON_CODEC },
};

static enum answer_verdict negotiate(const char *text)
{
	char reason[ANSWER_REASON_BYTES];
	struct answer_policy policy;
	struct sdp_error error;

	answer_policy_init(&policy, ANSWER_INGEST);
	answer_policy_layers(&policy);
	cr_assert_eq(sdp_parse(offer, text, strlen(text), &error), SDP_OK, "%s", error.text);
	return answer_negotiate(offer, &policy, n, reason);
}

Test(reported, descriptions_that_crashed_or_were_downgraded_are_refused)
{
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		size_t len = refused[i].len ? refused[i].len : strlen(refused[i].text);

		cr_expect_eq(sdp_parse(offer, refused[i].text, len, NULL) == SDP_OK,
			     refused[i].is_parsed, "%s", refused[i].name);
		if (refused[i].is_parsed)
			cr_expect_eq(negotiate(refused[i].text), refused[i].verdict, "%s",
				     refused[i].name);
	}
}

/* --- what is answered -------------------------------------------------------------------- */

static const struct answer_local local = {
	.ufrag = "slce0123456789ab",
	.pwd = "abcdefghijklmnopqrstuvwxyz012345",
	.fingerprint = "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:"
		       "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF",
	.session_id = 1,
	.candidates = &(struct sdp_address){ .family = 4, .ip = { 192, 0, 2, 1 }, .port = 8189 },
	.candidate_count = 1,
};

static const struct {
	const char *name, *text;
	const char *has[3], *has_not;
} answered[] = {
	{ "a second group, credentials of the session (srs PR#3581)",
	  HEAD "a=group:LS 0\r\na=group:BUNDLE 0\r\n" TRANSPORT "a=setup:actpass\r\n" AUDIO,
	  { "a=group:BUNDLE 0\r\n", "m=audio 9 " },
	  "group:LS" },
	{ "setup:active is answered passive (janus PR#3020)",
	  HEAD "a=group:BUNDLE 0\r\n" TRANSPORT "a=setup:active\r\n" AUDIO,
	  { "a=setup:passive\r\n" },
	  "setup:active" },
	{ "setup:passive is answered active (janus PR#3020)",
	  HEAD "a=group:BUNDLE 0\r\n" TRANSPORT "a=setup:passive\r\n" AUDIO,
	  { "a=setup:active\r\n" },
	  "setup:passive" },
	{ "parameter sets with = and , in them (srs#3093)",
	  HEAD
	  "a=group:BUNDLE 1\r\n" TRANSPORT
	  "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=rtcp-mux\r\na=rtpmap:96 H264/90000\r\n"
	  "a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAFdkBckA==,aMuMsg==;"
	  "profile-level-id=42c015\r\n",
	  { "a=fmtp:96 packetization-mode=1;profile-level-id=42c015\r\n" },
	  "sprop" },
	{ "a BUNDLE of mids that are not there (FFmpeg)",
	  HEAD
	  "a=group:BUNDLE 0 1\r\n" TRANSPORT
	  "m=video 9 UDP/TLS/RTP/SAVPF 106\r\na=mid:1\r\na=rtcp-mux\r\na=rtpmap:106 H264/90000\r\n"
	  "a=fmtp:106 packetization-mode=1;profile-level-id=64000c\r\n",
	  { "a=group:BUNDLE 1\r\n", "profile-level-id=64000c" },
	  "BUNDLE 0" },
	{ "a refused m-line keeps a format, and leaves BUNDLE (OpenVidu#724, ZLMediaKit PR#4720)",
	  HEAD "a=group:BUNDLE 0 1\r\n" TRANSPORT AUDIO
	       "m=video 0 UDP/TLS/RTP/SAVPF 0\r\na=mid:1\r\na=rtcp-mux\r\n",
	  { "a=group:BUNDLE 0\r\n", "m=video 0 UDP/TLS/RTP/SAVPF 0\r\n" },
	  "BUNDLE 0 1" },
	{ "rids bring their extensions (webrtc-rs/rtc#8)",
	  HEAD
	  "a=group:BUNDLE 1\r\n" TRANSPORT
	  "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n"
	  "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid\r\n"
	  "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n"
	  "a=rid:0 send\r\na=rid:1 send\r\na=rid:2 send\r\na=simulcast:send 0;1;2\r\n",
	  { "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid\r\n",
	    "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n",
	    "a=simulcast:recv 0;1;2\r\n" },
	  "simulcast:send" },
};

Test(reported, answers_that_clients_could_not_take_are_given_otherwise)
{
	for (unsigned i = 0; i < sizeof(answered) / sizeof(answered[0]); i++) {
		cr_assert_eq(negotiate(answered[i].text), ANSWER_OK, "%s", answered[i].name);
		cr_assert_gt(answer_write(offer, n, &local, out, ANSWER_MAX_BYTES), 0);
		kit_answer_check(answered[i].name, answered[i].text, out, true);
		for (unsigned j = 0; j < 3 && answered[i].has[j]; j++)
			cr_expect(strstr(out, answered[i].has[j]), "%s: no %s in %s",
				  answered[i].name, answered[i].has[j], out);
		cr_expect_not(strstr(out, answered[i].has_not), "%s: %s", answered[i].name, out);
	}
}
