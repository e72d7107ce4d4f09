#include "media/answer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"
#include "tests/media/kit_answer.h"

static struct sdp *offer, *answer;
static struct negotiated *n;
static const char *asked; /* the offer's text */
static char *out;
static char reason[ANSWER_REASON_BYTES];

static void setup(void)
{
	offer = malloc(sizeof(*offer));
	answer = malloc(sizeof(*answer));
	n = malloc(sizeof(*n));
	out = malloc(ANSWER_MAX_BYTES);
	cr_assert(offer && answer && n && out);
}

static void teardown(void)
{
	free(offer);
	free(answer);
	free(n);
	free(out);
}

TestSuite(answer, .init = setup, .fini = teardown, .timeout = 10);

static const struct sdp_address candidates[] = {
	{ .family = 6, .ip = { [15] = 1 }, .port = 8189 },
	{ .family = 4, .ip = { 127, 0, 0, 1 }, .port = 8189 },
};

static const struct answer_local local = {
	.ufrag = "slce0123456789ab",
	.pwd = "abcdefghijklmnopqrstuvwxyz012345",
	.fingerprint = "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:"
		       "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF",
	.session_id = 4611686018427387905,
	.cname = "relay",
	.msid = "stream",
	.candidates = candidates,
	.candidate_count = 2,
};

static struct answer_policy policy_of(enum answer_role role)
{
	struct answer_policy policy;

	answer_policy_init(&policy, role);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		policy.ssrc[kind] = 1000 + kind;
		policy.rtx_ssrc[kind] = 2000 + kind;
	}
	return policy;
}

static void answer_as(const char *name, enum answer_role role)
{
	struct answer_policy policy = policy_of(role);
	enum answer_verdict verdict = answer_negotiate(offer, &policy, n, reason);
	int len;

	cr_assert_eq(verdict, ANSWER_OK, "%s: %s", name, reason);
	cr_expect_str_eq(reason, "", "%s", name);
	len = answer_write(offer, n, &local, out, ANSWER_MAX_BYTES);
	cr_assert_gt(len, 0, "%s", name);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		const struct negotiated_media *m = &n->media[kind];

		cr_expect_eq(m->is_accepted, m->codec_count > 0, "%s", name);
		cr_expect_eq(m->local_ssrc != 0, m->is_accepted && role == ANSWER_EGRESS, "%s",
			     name);
	}
}

static const struct {
	const char *file;
	enum answer_role role;
} golden[] = {
	{ "chrome156-sendonly.sdp", ANSWER_INGEST },
	{ "chrome156-recvonly.sdp", ANSWER_EGRESS },
	{ "firefox153esr-sendonly.sdp", ANSWER_INGEST },
	{ "firefox153esr-recvonly.sdp", ANSWER_EGRESS },
	{ "firefox-mediamtx.reader.sdp", ANSWER_EGRESS },
	{ "gst122-sendonly-h264.sdp", ANSWER_INGEST },
	{ "obs-equiv-libdatachannel0245-h264.sdp", ANSWER_INGEST },
	{ "ffmpeg-whip-20250722.sdp", ANSWER_INGEST },
	{ "ffmpeg-whip-20250722-2.sdp", ANSWER_INGEST },
	{ "aiortc140-recvonly.sdp", ANSWER_EGRESS },
};

static void expect_same_lines(const char *name, const char *have, size_t have_len, const char *want,
			      size_t want_len)
{
	for (unsigned line = 1; have_len || want_len; line++) {
		const char *have_end = memchr(have, '\n', have_len);
		const char *want_end = memchr(want, '\n', want_len);
		size_t a = have_end ? (size_t)(have_end - have) + 1 : have_len;
		size_t b = want_end ? (size_t)(want_end - want) + 1 : want_len;

		cr_assert(a == b && memcmp(have, want, a) == 0, "%s line %u: '%.*s' is not '%.*s'",
			  name, line, (int)a, have, (int)b, want);
		have += a;
		have_len -= a;
		want += b;
		want_len -= b;
	}
}

/* build/answer prints these files; each line was read against what the client accepts. */
Test(answer, is_line_by_line_what_was_reviewed)
{
	for (unsigned i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		size_t offer_len, want_len;
		char *text = fixture_read("offers", golden[i].file, &offer_len);
		char *want = fixture_read("answers", golden[i].file, &want_len);

		cr_assert_eq(sdp_parse(offer, text, offer_len, NULL), SDP_OK);
		answer_as(golden[i].file, golden[i].role);
		expect_same_lines(golden[i].file, out, strlen(out), want, want_len);
		free(text);
		free(want);
	}
}

#define HEAD "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
#define TRANSPORT                                                                                  \
	"a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"                                 \
	"a=fingerprint:sha-256 ab:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:"                      \
	"EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF\r\na=setup:actpass\r\n"
#define OPUS  "a=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n"
#define VP8   "a=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n"
#define AUDIO "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n" OPUS
#define VIDEO "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\n" VP8
#define BOTH  HEAD "a=group:BUNDLE 0 1\r\n" TRANSPORT

static enum answer_verdict negotiate(const char *text, const struct answer_policy *policy)
{
	struct sdp_error error;

	asked = text;
	cr_assert_eq(sdp_parse(offer, text, strlen(text), &error), SDP_OK, "%s", error.text);
	return answer_negotiate(offer, policy, n, reason);
}

/* The answer to what was negotiated last. */
static void write_and_check(const char *name, enum answer_role role)
{
	int len = answer_write(offer, n, &local, out, ANSWER_MAX_BYTES);
	struct sdp_error error;

	cr_assert_gt(len, 0, "%s", name);
	cr_assert_eq(sdp_parse(answer, out, (size_t)len, &error), SDP_OK, "%s: %s", name,
		     error.text);
	cr_assert_eq(answer->media_count, offer->media_count, "%s", name);
	for (unsigned i = 0; i < answer->media_count; i++)
		cr_expect_eq(answer->media[i].port, n->lines[i] == NEGOTIATED_REJECTED ? 0 : 9,
			     "%s: m-line %u", name, i);
	kit_answer_check(name, asked, out, role == ANSWER_INGEST);
}

static const struct {
	const char *name;
	const char *text;
	enum answer_role role;
	enum answer_verdict verdict;
	const char *reason;
} refused[] = {
	{ "no m-line", HEAD TRANSPORT, ANSWER_INGEST, ANSWER_UNACCEPTABLE, "has no m-line" },
	{ "recvonly publisher", BOTH AUDIO "a=recvonly\r\n", ANSWER_INGEST, ANSWER_UNACCEPTABLE,
	  "m-line 1 (audio) is recvonly: publishing needs sendonly or sendrecv" },
	{ "sendonly viewer", BOTH AUDIO VIDEO "a=sendonly\r\n", ANSWER_EGRESS, ANSWER_UNACCEPTABLE,
	  "m-line 2 (video) is sendonly: watching needs recvonly or sendrecv" },
	{ "inactive", BOTH AUDIO "a=inactive\r\n", ANSWER_INGEST, ANSWER_UNACCEPTABLE,
	  "no m-line of the offer can be used" },
	{ "no BUNDLE", HEAD TRANSPORT AUDIO VIDEO, ANSWER_INGEST, ANSWER_UNACCEPTABLE,
	  "2 m-lines but no usable a=group:BUNDLE" },
	{ "BUNDLE of one of two", HEAD "a=group:BUNDLE 0\r\n" TRANSPORT AUDIO VIDEO, ANSWER_INGEST,
	  ANSWER_UNACCEPTABLE, "m-line 2 is not in the BUNDLE group" },
	{ "plain RTP", BOTH "m=video 9 RTP/AVPF 96\r\na=mid:1\r\n" VP8, ANSWER_INGEST,
	  ANSWER_UNACCEPTABLE, "m-line 1 (video) is RTP/AVPF, which is not encrypted" },
	{ "RTP/AVP", BOTH "m=audio 9 RTP/AVP 111\r\na=mid:0\r\n" OPUS, ANSWER_INGEST,
	  ANSWER_UNACCEPTABLE, "m-line 1 (audio) is RTP/AVP, which is not encrypted" },
	{ "no rtcp-mux",
	  BOTH "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\n",
	  ANSWER_INGEST, ANSWER_UNACCEPTABLE, "has no a=rtcp-mux" },
	{ "no credentials", HEAD AUDIO, ANSWER_INGEST, ANSWER_UNACCEPTABLE, "no a=ice-ufrag" },
	{ "no fingerprint", HEAD "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n" AUDIO,
	  ANSWER_INGEST, ANSWER_UNACCEPTABLE, "no a=fingerprint of sha-256" },
	{ "sha-1 only",
	  HEAD "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
	       "a=fingerprint:sha-1 AB:CD\r\n" AUDIO,
	  ANSWER_INGEST, ANSWER_UNACCEPTABLE, "no a=fingerprint of sha-256" },
	{ "holdconn", BOTH AUDIO "a=setup:holdconn\r\n", ANSWER_INGEST, ANSWER_UNACCEPTABLE,
	  "a=setup:holdconn cannot connect" },
	{ "other codecs",
	  BOTH "m=video 9 UDP/TLS/RTP/SAVPF 0 97\r\na=mid:1\r\na=rtcp-mux\r\n"
	       "a=rtpmap:97 Theora/90000\r\n",
	  ANSWER_INGEST, ANSWER_NO_COMMON_CODEC,
	  "no common video codec: offered Theora; possible VP8, VP9, H264, H265, AV1" },
	{ "one of two kinds",
	  BOTH AUDIO "m=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:1\r\na=rtcp-mux\r\n", ANSWER_INGEST,
	  ANSWER_NO_COMMON_CODEC, "no common video codec: offered none known" },
	{ "H264 interleaved",
	  BOTH "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=rtcp-mux\r\n"
	       "a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=2\r\n",
	  ANSWER_INGEST, ANSWER_NO_COMMON_CODEC, "offered H264" },
	{ "opus with another clock",
	  BOTH "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n"
	       "a=rtcp-mux\r\na=rtpmap:111 opus/16000/2\r\n",
	  ANSWER_INGEST, ANSWER_NO_COMMON_CODEC, "offered opus" },
};

Test(answer, refuses_with_a_reason_a_person_can_act_on)
{
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct answer_policy policy = policy_of(refused[i].role);

		cr_expect_eq(negotiate(refused[i].text, &policy), refused[i].verdict, "%s: %s",
			     refused[i].name, reason);
		cr_expect(strstr(reason, refused[i].reason), "%s: '%s'", refused[i].name, reason);
	}
}

static const struct {
	const char *name;
	const char *text;
	uint8_t lines[4];
	const char *bundle;
} shapes[] = {
	{ "second video",
	  HEAD "a=group:BUNDLE 0 1 2\r\n" TRANSPORT AUDIO VIDEO
	       "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:2\r\n" VP8,
	  { NEGOTIATED_ACCEPTED, NEGOTIATED_ACCEPTED, NEGOTIATED_REJECTED },
	  "a=group:BUNDLE 0 1\r\n" },
	{ "data channel last",
	  BOTH AUDIO VIDEO "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:2\r\n",
	  { NEGOTIATED_ACCEPTED, NEGOTIATED_ACCEPTED, NEGOTIATED_REJECTED },
	  "a=group:BUNDLE 0 1\r\n" },
	{ "data channel first",
	  BOTH "m=application 9 UDP/DTLS/SCTP "
	       "webrtc-datachannel\r\na=mid:0\r\na=sctp-port:5000\r\n" VIDEO,
	  { NEGOTIATED_INACTIVE, NEGOTIATED_ACCEPTED },
	  "a=group:BUNDLE 0 1\r\n" },
	{ "inactive first",
	  BOTH AUDIO "a=inactive\r\n" VIDEO,
	  { NEGOTIATED_INACTIVE, NEGOTIATED_ACCEPTED },
	  "a=group:BUNDLE 0 1\r\n" },
	{ "tagged is the second",
	  HEAD "a=group:BUNDLE 1 0\r\n" TRANSPORT AUDIO VIDEO,
	  { NEGOTIATED_ACCEPTED, NEGOTIATED_ACCEPTED },
	  "a=group:BUNDLE 1 0\r\n" },
	{ "port 0 with bundle-only",
	  BOTH AUDIO "m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=bundle-only\r\n" VP8,
	  { NEGOTIATED_ACCEPTED, NEGOTIATED_ACCEPTED },
	  "a=group:BUNDLE 0 1\r\n" },
	{ "port 0 without",
	  BOTH AUDIO "m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\n" VP8,
	  { NEGOTIATED_ACCEPTED, NEGOTIATED_REJECTED },
	  "a=group:BUNDLE 0\r\n" },
	{ "inactive outside",
	  BOTH AUDIO "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:x\r\na=inactive\r\n" VP8,
	  { NEGOTIATED_ACCEPTED, NEGOTIATED_REJECTED },
	  "a=group:BUNDLE 0\r\n" },
	{ "absent mid",
	  HEAD "a=group:BUNDLE 0 1\r\na=group:LS 0 1\r\n" TRANSPORT VIDEO,
	  { NEGOTIATED_ACCEPTED },
	  "a=group:BUNDLE 1\r\n" },
};

Test(answer, refuses_m_lines_so_that_browsers_accept_the_answer)
{
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct answer_policy policy = policy_of(ANSWER_INGEST);

		cr_assert_eq(negotiate(shapes[i].text, &policy), ANSWER_OK, "%s: %s",
			     shapes[i].name, reason);
		for (unsigned j = 0; j < offer->media_count; j++)
			cr_expect_eq(n->lines[j], shapes[i].lines[j], "%s: m-line %u",
				     shapes[i].name, j);
		write_and_check(shapes[i].name, ANSWER_INGEST);
		cr_expect(strstr(out, shapes[i].bundle), "%s", shapes[i].name);
	}
}

static const struct {
	const char *setup;
	enum negotiated_role role;
} setups[] = {
	{ "a=setup:actpass\r\n", NEGOTIATED_DTLS_SERVER },
	{ "a=setup:active\r\n", NEGOTIATED_DTLS_SERVER },
	{ "a=setup:passive\r\n", NEGOTIATED_DTLS_CLIENT },
	{ "", NEGOTIATED_DTLS_SERVER },
};

Test(answer, takes_the_dtls_role_the_offer_leaves)
{
	struct answer_policy policy = policy_of(ANSWER_INGEST);

	for (unsigned i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
		char text[2048];

		snprintf(text, sizeof(text), BOTH AUDIO "%s", setups[i].setup);
		cr_assert_eq(negotiate(text, &policy), ANSWER_OK, "%s", reason);
		cr_expect_eq(n->dtls_role, setups[i].role, "%s", setups[i].setup);
	}
}

Test(answer, hands_over_what_the_transport_needs)
{
	struct answer_policy policy = policy_of(ANSWER_INGEST);

	cr_assert_eq(negotiate(BOTH AUDIO
			       "a=candidate:1 1 udp 1 192.0.2.1 5000 typ host\r\n"
			       "a=candidate:1 1 tcp 1 192.0.2.1 9 typ host\r\n" VIDEO
			       "a=ice-ufrag:other\r\na=ice-pwd:9999999999999999999999\r\n"
			       "a=ssrc-group:FID 7 8\r\na=ssrc:7 cname:x\r\n"
			       "a=ssrc:8 cname:x\r\na=rtcp-rsize\r\na=msid:s t\r\n"
			       "a=rtcp-xr:stat-summary=loss rcvr-rtt=all:10000\r\n",
			       &policy),
		     ANSWER_OK, "%s", reason);
	cr_expect_str_eq(n->remote_ufrag, "abcd", "of the tagged m-line, not of the others");
	cr_expect_str_eq(n->remote_pwd, "0123456789012345678901");
	cr_expect_eq(n->fingerprint_count, 1);
	cr_expect_str_eq(n->fingerprints[0].hash, "sha-256");
	cr_expect_eq(strncmp(n->fingerprints[0].digest, "AB:23:", 6), 0, "in capitals");
	cr_expect(n->candidate_count == 1 && n->candidates[0].port == 5000);
	cr_expect(n->is_bundled && !n->is_egress && n->line_count == 2);
	cr_expect_eq(n->media[MEDIA_VIDEO].remote_ssrc, 7);
	cr_expect_eq(n->media[MEDIA_VIDEO].remote_rtx_ssrc, 8);
	cr_expect_str_eq(n->media[MEDIA_VIDEO].mid, "1");
	cr_expect_str_eq(n->media[MEDIA_VIDEO].msid_stream, "s");
	cr_expect(n->media[MEDIA_VIDEO].rtcp_rsize && !n->media[MEDIA_AUDIO].rtcp_rsize);
	cr_expect(n->media[MEDIA_VIDEO].rcvr_rtt && !n->media[MEDIA_AUDIO].rcvr_rtt);
}

/* An offer of video formats 100, 101, ... with these names and parameters. */
static const char *video_offer(const char *const formats[][2], unsigned count)
{
	static char text[8192];
	size_t len = (size_t)snprintf(text, sizeof(text), BOTH "m=video 9 UDP/TLS/RTP/SAVPF");

	for (unsigned i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %u", 100 + i);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "\r\na=mid:1\r\na=rtcp-mux\r\n");
	for (unsigned i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"a=rtpmap:%u %s/90000\r\na=fmtp:%u %s\r\n", 100 + i,
					formats[i][0], 100 + i, formats[i][1]);
	return text;
}

#define PM0(profile) "packetization-mode=0;profile-level-id=" profile
#define PM1(profile) "packetization-mode=1;profile-level-id=" profile

static const char *const chromium[][2] = {
	{ "H264", PM1("42001f") }, { "H264", PM0("42001f") }, { "H264", PM1("42e01f") },
	{ "H264", PM0("42e01f") }, { "H264", PM1("4d001f") }, { "H264", PM0("4d001f") },
	{ "H264", PM1("f4001f") }, { "H264", PM0("f4001f") },
};
static const char *const firefox[][2] = { { "H264", PM1("42e01f") } };
static const char *const constrained_high[][2] = { { "H264", PM1("640c1f") },
						   { "H264", PM1("42e01f") } };
static const char *const mode_1[][2] = { { "H264", PM1("42e01f") }, { "H264", PM1("42001f") } };
static const char *const mode_0[][2] = { { "H264", "profile-level-id=42e01f" } };
static const char *const bare[][2] = { { "H264", "x=y" } };
static const char *const vp9[][2] = { { "VP9", "profile-id=2" }, { "VP9", "profile-id=0" } };
static const char *const vp9_bare[][2] = { { "VP9", "x=y" } };
static const char *const av1[][2] = { { "AV1", "profile=1" }, { "AV1", "profile=0" } };
static const char *const av1_high[][2] = { { "AV1", "level-idx=5;profile=1;tier=0" } };

static const struct {
	const char *name;
	const char *const (*formats)[2];
	unsigned count;
	enum media_codec codec;
	const char *stream;
	int pt; /* 0: no common codec */
} matches[] = {
	{ "the same", chromium, 8, CODEC_H264, PM1("42e01f"), 102 },
	{ "another level", chromium, 8, CODEC_H264, PM1("42e034"), 102 },
	{ "baseline", chromium, 8, CODEC_H264, PM1("42001f"), 100 },
	{ "mode 0", chromium, 8, CODEC_H264, PM0("42e01f"), 103 },
	{ "no mode is mode 0", chromium, 8, CODEC_H264, "profile-level-id=4d001f", 105 },
	{ "constrained baseline, written otherwise", chromium, 8, CODEC_H264, PM1("42c015"), 102 },
	{ "high in high 4:4:4", chromium, 8, CODEC_H264, PM1("64000c"), 106 },
	{ "constrained high", chromium, 8, CODEC_H264, PM1("640c1f"), 106 },
	{ "baseline for constrained baseline", firefox, 1, CODEC_H264, PM1("42001f"), 100 },
	{ "main for constrained baseline", firefox, 1, CODEC_H264, PM1("4d001f"), 0 },
	{ "high for constrained baseline", firefox, 1, CODEC_H264, PM1("64000c"), 0 },
	{ "high for constrained high", constrained_high, 2, CODEC_H264, PM1("640028"), 100 },
	{ "exact before included", constrained_high, 2, CODEC_H264, PM1("42e01f"), 101 },
	{ "mode 0 for a receiver of mode 1", mode_1, 2, CODEC_H264, PM0("42001f"), 101 },
	{ "mode 1 for a receiver of mode 0", mode_0, 1, CODEC_H264, PM1("42e01f"), 0 },
	{ "parameter sets do not count", mode_1, 2, CODEC_H264,
	  "packetization-mode=1;sprop-parameter-sets=Z0LAFdkB==,aMuMsg==;profile-level-id=42c015",
	  100 },
	{ "nothing said is baseline", bare, 1, CODEC_H264, PM0("42e01f"), 100 },
	{ "VP9 profile 0", vp9, 2, CODEC_VP9, "profile-id=0", 101 },
	{ "VP9 profile 2", vp9, 2, CODEC_VP9, "profile-id=2", 100 },
	{ "VP9 profile 1", vp9, 2, CODEC_VP9, "profile-id=1", 0 },
	{ "VP9 default profile", vp9_bare, 1, CODEC_VP9, "profile-id=0", 100 },
	{ "AV1 main", av1, 2, CODEC_AV1, "level-idx=5;profile=0;tier=0", 101 },
	{ "AV1 main in high", av1_high, 1, CODEC_AV1, "profile=0", 100 },
	{ "AV1 high for main", vp9, 2, CODEC_AV1, "profile=1", 0 },
};

Test(answer, gives_a_viewer_the_payload_type_that_carries_the_stream)
{
	for (unsigned i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
		struct answer_policy policy = policy_of(ANSWER_EGRESS);
		enum answer_verdict verdict;
		int pt;

		answer_policy_only(&policy, matches[i].codec, matches[i].stream);
		verdict = negotiate(video_offer(matches[i].formats, matches[i].count), &policy);
		pt = verdict == ANSWER_OK ? n->media[MEDIA_VIDEO].codecs[0].pt : 0;
		cr_expect_eq(pt, matches[i].pt, "%s: %d, %s", matches[i].name, pt, reason);
		cr_expect(verdict == ANSWER_OK ? n->media[MEDIA_VIDEO].codec_count == 1
					       : verdict == ANSWER_NO_COMMON_CODEC,
			  "%s", matches[i].name);
	}
}

Test(answer, finds_the_same_payload_type_when_the_publisher_comes_later)
{
	for (unsigned i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
		struct answer_policy policy = policy_of(ANSWER_EGRESS);
		const struct negotiated_codec *c;

		cr_assert_eq(negotiate(video_offer(matches[i].formats, matches[i].count), &policy),
			     ANSWER_OK);
		c = negotiated_match(&n->media[MEDIA_VIDEO], matches[i].codec, matches[i].stream);
		cr_expect_eq(c ? c->pt : 0, matches[i].pt, "%s", matches[i].name);
	}
}

Test(answer, names_both_sides_profiles_when_none_match)
{
	struct answer_policy policy = policy_of(ANSWER_EGRESS);

	answer_policy_only(&policy, CODEC_H264, PM1("64000c"));
	cr_assert_eq(negotiate(video_offer(firefox, 1), &policy), ANSWER_NO_COMMON_CODEC);
	cr_expect_str_eq(reason,
			 "no common video codec: offered H264 42e01f; possible H264 64000c");
}

Test(answer, a_policy_can_name_several_codecs)
{
	struct answer_policy policy = policy_of(ANSWER_INGEST);

	answer_policy_only(&policy, CODEC_VP9, NULL);
	answer_policy_only(&policy, CODEC_AV1, "");
	answer_policy_only(&policy, CODEC_VP8, NULL);
	cr_assert_eq(policy.codec_count[MEDIA_VIDEO], 3);
	cr_assert_eq(negotiate(video_offer(vp9, 2), &policy), ANSWER_OK);
	cr_expect_eq(n->media[MEDIA_VIDEO].codec_count, 2, "both variants");
	policy.max_codecs = 1;
	cr_assert_eq(negotiate(video_offer(vp9, 2), &policy), ANSWER_OK);
	cr_expect_eq(n->media[MEDIA_VIDEO].codec_count, 1);
	cr_expect_eq(n->media[MEDIA_VIDEO].codecs[0].pt, 100, "the offerer's first choice");
}

Test(answer, retransmission_needs_nack_and_the_policy)
{
	static const char text[] =
	    BOTH "m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 99\r\na=mid:1\r\na=fmtp:97 apt=96\r\n"
		 "a=rtpmap:97 rtx/90000\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 transport-cc\r\n"
		 "a=rtpmap:98 VP9/90000\r\na=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=98\r\n" VP8;
	struct answer_policy policy = policy_of(ANSWER_EGRESS);
	const struct negotiated_media *m = &n->media[MEDIA_VIDEO];
	bool is_rtx;

	cr_assert_eq(negotiate(text, &policy), ANSWER_OK, "%s", reason);
	cr_expect(m->codecs[0].rtx_pt == 97 && m->codecs[1].rtx_pt == NEGOTIATED_NO_PT);
	cr_expect_eq(m->codecs[0].feedback, SDP_FB_NACK, "transport-cc only by policy");
	cr_expect(m->local_ssrc == 1001 && m->local_rtx_ssrc == 2001);
	cr_expect(negotiated_by_pt(m, 97, &is_rtx) == &m->codecs[0] && is_rtx);
	cr_expect(negotiated_by_pt(m, 98, &is_rtx) == &m->codecs[1] && !is_rtx);
	cr_expect(!negotiated_by_pt(m, NEGOTIATED_NO_PT, &is_rtx) && !is_rtx);
	policy.rtx = false;
	policy.feedback |= SDP_FB_TRANSPORT_CC;
	cr_assert_eq(negotiate(text, &policy), ANSWER_OK);
	cr_expect(m->codecs[0].rtx_pt == NEGOTIATED_NO_PT && m->local_rtx_ssrc == 0);
	cr_expect_eq(m->feedback, SDP_FB_NACK | SDP_FB_TRANSPORT_CC);
}

/* Feedback on all packets where they are numbered, else REMB: never both. */
Test(answer, a_publisher_gets_one_kind_of_congestion_feedback)
{
	static const struct {
		const char *attributes;
		uint8_t want;
	} rows[] = {
		{ "a=rtcp-fb:96 goog-remb\r\n", SDP_FB_REMB },
		{ "a=rtcp-fb:96 goog-remb\r\na=rtcp-fb:96 transport-cc\r\n", SDP_FB_REMB },
		{ "a=rtcp-fb:96 goog-remb\r\na=rtcp-fb:96 transport-cc\r\na=extmap:9 "
		  "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n",
		  SDP_FB_TRANSPORT_CC },
		{ "", 0 },
	};
	struct answer_policy policy = policy_of(ANSWER_INGEST);

	policy.feedback = SDP_FB_REMB | SDP_FB_TRANSPORT_CC;
	policy.extensions[MEDIA_VIDEO] |= 1u << EXT_TRANSPORT_CC;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[2048];

		snprintf(text, sizeof(text), BOTH AUDIO VIDEO "%s", rows[i].attributes);
		cr_assert_eq(negotiate(text, &policy), ANSWER_OK, "%s", reason);
		cr_expect_eq(n->media[MEDIA_VIDEO].feedback, rows[i].want, "row %u", i);
		cr_expect_eq(n->media[MEDIA_VIDEO].codecs[0].feedback, rows[i].want, "row %u", i);
	}
}

Test(answer, takes_extensions_the_peer_may_use_in_our_direction)
{
	static const char text[] = HEAD
	    "a=group:BUNDLE 1\r\na=extmap:7 urn:ietf:params:rtp-hdrext:sdes:mid\r\n" TRANSPORT
	    "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\n" VP8
	    "a=extmap:2/recvonly http://www.webrtc.org/experiments/rtp-hdrext/playout-delay\r\n"
	    "a=extmap:3/sendonly urn:3gpp:video-orientation\r\n"
	    "a=extmap:15 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n"
	    "a=extmap:4 urn:unknown\r\n";
	struct answer_policy policy = policy_of(ANSWER_EGRESS);
	const uint8_t *id = n->media[MEDIA_VIDEO].extensions.id_of;

	policy.extensions[MEDIA_VIDEO] = UINT32_MAX;
	cr_assert_eq(negotiate(text, &policy), ANSWER_OK, "%s", reason);
	cr_expect(id[EXT_MID] == 7 && id[EXT_PLAYOUT_DELAY] == 2);
	cr_expect(id[EXT_VIDEO_ORIENTATION] == 0 && id[EXT_RID] == 0);
	cr_assert_gt(answer_write(offer, n, &local, out, ANSWER_MAX_BYTES), 0);
	cr_expect(strstr(out, "a=extmap:2/sendonly http"));
	cr_expect(strstr(out, "a=extmap:7 urn:ietf:params:rtp-hdrext:sdes:mid\r\n"));
	cr_expect(!strstr(out, "a=extmap:3") && !strstr(out, "a=extmap:4"));
	policy.role = ANSWER_INGEST;
	cr_assert_eq(negotiate(text, &policy), ANSWER_OK, "%s", reason);
	cr_expect(id[EXT_VIDEO_ORIENTATION] == 3 && id[EXT_PLAYOUT_DELAY] == 0);
	cr_assert_gt(answer_write(offer, n, &local, out, ANSWER_MAX_BYTES), 0);
	cr_expect(strstr(out, "a=extmap:3/recvonly urn:3gpp"));
}

Test(answer, an_id_has_one_meaning_in_all_that_is_sent_to_a_viewer)
{
	static const char text[] =
	    BOTH AUDIO "a=extmap:2 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\n" VIDEO
		       "a=extmap:2 urn:3gpp:video-orientation\r\n"
		       "a=extmap:3 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay\r\n";
	struct answer_policy policy = policy_of(ANSWER_EGRESS);
	const uint8_t *audio = n->media[MEDIA_AUDIO].extensions.id_of;
	const uint8_t *video = n->media[MEDIA_VIDEO].extensions.id_of;

	cr_assert_eq(negotiate(text, &policy), ANSWER_OK, "%s", reason);
	cr_expect_eq(audio[EXT_AUDIO_LEVEL], 2);
	cr_expect_eq(video[EXT_VIDEO_ORIENTATION], 0, "2 is taken");
	cr_expect_eq(video[EXT_PLAYOUT_DELAY], 3);
	write_and_check("one id, two meanings", ANSWER_EGRESS);
	cr_expect(!strstr(out, "a=extmap:2 urn:3gpp"));
}

Test(answer, a_kind_the_stream_has_not_is_refused_quietly)
{
	struct answer_policy policy = policy_of(ANSWER_EGRESS);

	policy.codec_count[MEDIA_AUDIO] = 0;
	cr_assert_eq(negotiate(BOTH AUDIO VIDEO, &policy), ANSWER_OK, "%s", reason);
	cr_expect(n->lines[0] == NEGOTIATED_INACTIVE && n->lines[1] == NEGOTIATED_ACCEPTED);
	write_and_check("video only", ANSWER_EGRESS);
	policy.codec_count[MEDIA_VIDEO] = 0;
	cr_expect_eq(negotiate(BOTH AUDIO VIDEO, &policy), ANSWER_UNACCEPTABLE);
}

Test(answer, asks_for_stereo_where_it_is_offered)
{
	struct answer_policy policy = policy_of(ANSWER_INGEST);

	cr_assert_eq(negotiate(BOTH AUDIO "a=fmtp:111 sprop-stereo=1\r\n", &policy), ANSWER_OK);
	cr_expect_str_eq(n->media[MEDIA_AUDIO].codecs[0].fmtp,
			 "minptime=10;useinbandfec=1;stereo=1;sprop-stereo=1");
	cr_assert_eq(negotiate(BOTH AUDIO "a=fmtp:111 stereo=0\r\n", &policy), ANSWER_OK);
	cr_expect_str_eq(n->media[MEDIA_AUDIO].codecs[0].fmtp, "minptime=10;useinbandfec=1");
}

Test(answer, asks_for_what_an_opus_sender_offers_itself_for)
{
	static const struct {
		const char *offered, *more;
	} rows[] = {
		{ "maxaveragebitrate=510000;usedtx=1;cbr=1;stereo=1",
		  ";stereo=1;sprop-stereo=1;maxaveragebitrate=510000;usedtx=1;cbr=1" },
		{ "maxaveragebitrate=128000", ";maxaveragebitrate=128000" },
		{ "maxaveragebitrate=5999", "" },
		{ "maxaveragebitrate=510001", "" },
		{ "maxaveragebitrate=many;usedtx=2;cbr=0", "" },
	};
	struct answer_policy policy = policy_of(ANSWER_INGEST);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024], want[NEGOTIATED_FMTP_BYTES];

		snprintf(text, sizeof(text), BOTH AUDIO "a=fmtp:111 %s\r\n", rows[i].offered);
		snprintf(want, sizeof(want), "minptime=10;useinbandfec=1%s", rows[i].more);
		cr_assert_eq(negotiate(text, &policy), ANSWER_OK);
		cr_expect_str_eq(n->media[MEDIA_AUDIO].codecs[0].fmtp, want);
	}
}

/* As MediaMTX's reader offers them, and libwebrtc reads them. */
Test(answer, carries_opus_of_many_channels_where_both_lay_them_out_alike)
{
#define SIX "channel_mapping=0,4,1,2,3,5;num_streams=4;coupled_streams=2"
	static const struct {
		const char *map, *fmtp, *stream;
		bool is_carried;
	} rows[] = {
		{ "multiopus/48000/6", SIX, NULL, true },
		{ "multiopus/48000/6", SIX, SIX, true },
		{ "MULTIOPUS/48000/6",
		  "coupled_streams=2; num_streams=4; channel_mapping=0,4,1,2,3,5", SIX, true },
		{ "multiopus/48000/6",
		  "channel_mapping=0,1,4,2,3,5;num_streams=4;coupled_streams=2", SIX, false },
		{ "multiopus/48000/6", "channel_mapping=0,4,1,2,3,5;num_streams=4", NULL, false },
		{ "multiopus/48000/6",
		  "channel_mapping=0,4,x,2,3,5;num_streams=4;coupled_streams=2", NULL, false },
		{ "multiopus/48000/2", SIX, NULL, false },
		{ "multiopus/48000/9", SIX, NULL, false },
		{ "opus/48000/6", SIX, NULL, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct answer_policy policy =
		    policy_of(rows[i].stream ? ANSWER_EGRESS : ANSWER_INGEST);
		const struct negotiated_codec *c = n->media[MEDIA_AUDIO].codecs;
		char text[1024];

		if (rows[i].stream)
			answer_policy_only(&policy, CODEC_MULTIOPUS, rows[i].stream);
		snprintf(text, sizeof(text),
			 BOTH "m=audio 9 UDP/TLS/RTP/SAVPF 112\r\na=mid:0\r\na=rtcp-mux\r\n"
			      "a=rtpmap:112 %s\r\na=fmtp:112 %s\r\n",
			 rows[i].map, rows[i].fmtp);
		cr_expect_eq(negotiate(text, &policy),
			     rows[i].is_carried ? ANSWER_OK : ANSWER_NO_COMMON_CODEC, "row %zu: %s",
			     i, reason);
		if (!rows[i].is_carried)
			continue;
		cr_expect(c->codec == CODEC_MULTIOPUS && c->channels == 6);
		cr_expect_str_eq(c->fmtp, SIX, "row %zu", i);
		write_and_check("multiopus", policy.role);
		cr_expect(strstr(out, "a=rtpmap:112 multiopus/48000/6\r\n"), "%s", out);
	}
#undef SIX
}

Test(answer, takes_redundancy_of_opus_in_the_order_of_the_offer)
{
	static const struct {
		const char *types, *fmtp;
		int pt;
		bool is_first;
	} rows[] = {
		{ "111 63", "111/111", 63, false },
		{ "63 111", "111/111", 63, true },
		{ "63 111", "111/111/111", 63, true },
		{ "111 63", "111/0", NEGOTIATED_NO_PT, false },
		{ "111 63", "0/111", NEGOTIATED_NO_PT, false },
		{ "111 63", "111/", NEGOTIATED_NO_PT, false },
		{ "111 63", "x", NEGOTIATED_NO_PT, false },
		{ "111 0", "111/111", NEGOTIATED_NO_PT, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct answer_policy policy = policy_of(ANSWER_INGEST);
		char text[1024];

		policy.max_codecs = 1;
		snprintf(text, sizeof(text),
			 BOTH "m=audio 9 UDP/TLS/RTP/SAVPF %s\r\na=mid:0\r\n" OPUS
			      "a=rtpmap:63 red/48000/2\r\na=fmtp:63 %s\r\n",
			 rows[i].types, rows[i].fmtp);
		cr_assert_eq(negotiate(text, &policy), ANSWER_OK, "%s", reason);
		cr_expect_eq(n->media[MEDIA_AUDIO].codec_count, 1);
		cr_expect_eq(n->media[MEDIA_AUDIO].codecs[0].codec, CODEC_OPUS);
		cr_expect_eq(n->media[MEDIA_AUDIO].codecs[0].red_pt, rows[i].pt, "row %zu", i);
		cr_expect_eq(n->media[MEDIA_AUDIO].codecs[0].is_red_first, rows[i].is_first);
		policy.red = false;
		cr_assert_eq(negotiate(text, &policy), ANSWER_OK, "%s", reason);
		cr_expect_eq(n->media[MEDIA_AUDIO].codecs[0].red_pt, NEGOTIATED_NO_PT);
	}
}

Test(answer, takes_the_first_20_codecs)
{
	static const char *formats[NEGOTIATED_MAX_CODECS + 1][2];
	struct answer_policy policy = policy_of(ANSWER_INGEST);

	for (unsigned i = 0; i <= NEGOTIATED_MAX_CODECS; i++) {
		formats[i][0] = "VP8";
		formats[i][1] = "x=y";
	}
	for (unsigned extra = 0; extra < 2; extra++) {
		cr_assert_eq(negotiate(video_offer((const char *const(*)[2])formats,
						   NEGOTIATED_MAX_CODECS + extra),
				       &policy),
			     ANSWER_OK);
		cr_expect_eq(n->media[MEDIA_VIDEO].codec_count, NEGOTIATED_MAX_CODECS);
		write_and_check("many codecs", ANSWER_INGEST);
	}
}

Test(answer, says_when_the_buffer_is_too_small)
{
	struct answer_policy policy = policy_of(ANSWER_INGEST);
	int len;

	cr_assert_eq(negotiate(BOTH AUDIO VIDEO, &policy), ANSWER_OK);
	len = answer_write(offer, n, &local, out, ANSWER_MAX_BYTES);
	cr_expect_eq(answer_write(offer, n, &local, out, (size_t)len + 1), len);
	cr_expect_eq(answer_write(offer, n, &local, out, (size_t)len), -ENOSPC);
	cr_expect_eq(answer_write(offer, n, &local, out, 0), -ENOSPC);
}
