#include "media/offer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sdp *s;
static struct negotiated *server, *client;
static char *text;
static char reason[ANSWER_REASON_BYTES];

static void setup(void)
{
	s = malloc(sizeof(*s));
	server = malloc(sizeof(*server));
	client = malloc(sizeof(*client));
	text = malloc(ANSWER_MAX_BYTES);
	cr_assert(s && server && client && text);
}

static void teardown(void)
{
	free(s);
	free(server);
	free(client);
	free(text);
}

TestSuite(offer, .init = setup, .fini = teardown, .timeout = 10);

#define FINGERPRINT                                                                                \
	"AB:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:"                                         \
	"01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF"

static const struct sdp_address here[] = { { .family = 4, .ip = { 127, 0, 0, 2 }, .port = 4000 } };
static const struct sdp_address there[] = { { .family = 4, .ip = { 127, 0, 0, 1 }, .port = 8189 } };

static const struct answer_local local = {
	.ufrag = "serverufrag",
	.pwd = "serverserverserverserver",
	.fingerprint = FINGERPRINT,
	.session_id = 1,
	.cname = "relay",
	.msid = "stream",
	.candidates = there,
	.candidate_count = 1,
};

static struct offer_config config_of(enum offer_role role)
{
	return (struct offer_config){
		.role = role,
		.audio = true,
		.video = true,
		.rtx = true,
		.ufrag = "clientufrag",
		.pwd = "clientclientclientclient",
		.fingerprint = FINGERPRINT,
		.session_id = 2,
		.cname = "load",
		.msid = "camera",
		.ssrc = { 11, 12 },
		.rtx_ssrc = { 0, 13 },
		.candidates = here,
		.candidate_count = 1,
	};
}

static void parse(const char *sdp)
{
	struct sdp_error error;

	cr_assert_eq(sdp_parse(s, sdp, strlen(sdp), &error), SDP_OK, "%s", error.text);
}

/* Offer, the server's negotiation and answer, and what the client reads of it. */
static enum offer_verdict exchange(const struct offer_config *config,
				   const struct answer_policy *policy)
{
	static char offer[OFFER_MAX_BYTES];

	cr_assert_gt(offer_write(config, offer, sizeof(offer)), 0);
	parse(offer);
	cr_assert_eq(answer_negotiate(s, policy, server, reason), ANSWER_OK, "%s", reason);
	cr_assert_gt(answer_write(s, server, &local, text, ANSWER_MAX_BYTES), 0);
	parse(text);
	return offer_read_answer(config, s, client, reason);
}

static struct answer_policy policy_of(enum answer_role role)
{
	struct answer_policy policy;

	answer_policy_init(&policy, role);
	policy.ssrc[MEDIA_AUDIO] = 21;
	policy.ssrc[MEDIA_VIDEO] = 22;
	policy.rtx_ssrc[MEDIA_VIDEO] = 23;
	return policy;
}

static void expect_both_agree(void)
{
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		const struct negotiated_media *a = &server->media[kind], *b = &client->media[kind];

		cr_assert_eq(a->is_accepted, b->is_accepted);
		cr_assert_eq(a->codec_count, b->codec_count);
		for (unsigned i = 0; i < a->codec_count; i++) {
			cr_expect_eq(a->codecs[i].codec, b->codecs[i].codec);
			cr_expect_eq(a->codecs[i].pt, b->codecs[i].pt);
			cr_expect_eq(a->codecs[i].rtx_pt, b->codecs[i].rtx_pt);
			cr_expect_eq(a->codecs[i].clock_hz, b->codecs[i].clock_hz);
			cr_expect_eq(a->codecs[i].channels, b->codecs[i].channels);
			cr_expect_eq(a->codecs[i].feedback, b->codecs[i].feedback);
			cr_expect_str_eq(a->codecs[i].fmtp, b->codecs[i].fmtp);
		}
		cr_expect_eq(memcmp(&a->extensions, &b->extensions, sizeof(a->extensions)), 0);
		cr_expect_str_eq(a->mid, b->mid);
		cr_expect_eq(a->local_ssrc, b->remote_ssrc);
		cr_expect_eq(a->local_rtx_ssrc, b->remote_rtx_ssrc);
		cr_expect_eq(b->local_ssrc, a->remote_ssrc);
		cr_expect_eq(b->local_rtx_ssrc, a->remote_rtx_ssrc);
		cr_expect_eq(a->rtcp_rsize, b->rtcp_rsize);
	}
	cr_expect_str_eq(server->remote_ufrag, "clientufrag");
	cr_expect_str_eq(client->remote_ufrag, "serverufrag");
	cr_expect_str_eq(client->remote_pwd, "serverserverserverserver");
	cr_expect_str_eq(client->fingerprints[0].digest, FINGERPRINT);
	cr_expect_eq(server->dtls_role, NEGOTIATED_DTLS_SERVER);
	cr_expect_eq(client->dtls_role, NEGOTIATED_DTLS_CLIENT);
	cr_expect(client->remote_is_lite && !server->remote_is_lite);
	cr_expect(client->candidate_count == 1 && client->candidates[0].port == 8189);
	cr_expect(server->candidate_count == 1 && server->candidates[0].port == 4000);
	cr_expect_neq(client->is_egress, server->is_egress);
}

Test(offer, a_viewer_and_the_relay_agree)
{
	struct offer_config config = config_of(OFFER_WATCH);
	struct answer_policy policy = policy_of(ANSWER_EGRESS);

	cr_assert_eq(exchange(&config, &policy), OFFER_OK, "%s", reason);
	expect_both_agree();
	cr_expect_eq(client->media[MEDIA_AUDIO].codecs[0].pt, OFFER_PT_OPUS);
	cr_expect_eq(client->media[MEDIA_VIDEO].codec_count, 7);
	cr_expect_eq(client->media[MEDIA_VIDEO].codecs[0].rtx_pt, OFFER_PT_VP8_RTX);
	cr_expect_eq(client->media[MEDIA_VIDEO].remote_rtx_ssrc, 23);
	cr_expect_neq(client->media[MEDIA_VIDEO].extensions.id_of[EXT_MID], 0);
}

Test(offer, a_publisher_and_the_relay_agree)
{
	struct offer_config config = config_of(OFFER_PUBLISH);
	struct answer_policy policy = policy_of(ANSWER_INGEST);

	cr_assert_eq(exchange(&config, &policy), OFFER_OK, "%s", reason);
	expect_both_agree();
	cr_expect_eq(client->media[MEDIA_VIDEO].codec_count, 1);
	cr_expect_eq(client->media[MEDIA_VIDEO].codecs[0].codec, CODEC_VP8);
	cr_expect_eq(server->media[MEDIA_VIDEO].remote_ssrc, 12);
	cr_expect_eq(server->media[MEDIA_VIDEO].remote_rtx_ssrc, 13);
	cr_expect_str_eq(server->media[MEDIA_AUDIO].msid_stream, "camera");
}

Test(offer, every_choice_of_kinds_and_rtx_is_agreed_on)
{
	for (unsigned choice = 0; choice < 12; choice++) {
		enum offer_role role = choice % 2 ? OFFER_PUBLISH : OFFER_WATCH;
		struct offer_config config = config_of(role);
		struct answer_policy policy =
		    policy_of(role == OFFER_PUBLISH ? ANSWER_INGEST : ANSWER_EGRESS);

		config.rtx = choice / 2 % 2;
		config.audio = choice / 4 != 0;
		config.video = choice / 4 != 1;
		cr_assert_eq(exchange(&config, &policy), OFFER_OK, "%u: %s", choice, reason);
		expect_both_agree();
		cr_expect_eq(client->media[MEDIA_AUDIO].is_accepted, config.audio, "%u", choice);
		cr_expect_eq(client->media[MEDIA_VIDEO].is_accepted, config.video, "%u", choice);
		if (!config.rtx)
			cr_expect(!strstr(text, "rtx") && !strstr(text, "FID"), "%u", choice);
	}
}

Test(offer, one_codec_of_the_stream_is_what_the_viewer_gets)
{
	struct offer_config config = config_of(OFFER_WATCH);
	struct answer_policy policy = policy_of(ANSWER_EGRESS);

	answer_policy_only(&policy, CODEC_H264, "packetization-mode=1;profile-level-id=42e01f");
	answer_policy_only(&policy, CODEC_OPUS, NULL);
	cr_assert_eq(exchange(&config, &policy), OFFER_OK, "%s", reason);
	expect_both_agree();
	cr_expect_eq(client->media[MEDIA_VIDEO].codec_count, 1);
	cr_expect_eq(client->media[MEDIA_VIDEO].codecs[0].pt, OFFER_PT_H264);
}

Test(offer, a_refused_kind_is_left_out)
{
	struct offer_config config = config_of(OFFER_WATCH);
	struct answer_policy policy = policy_of(ANSWER_EGRESS);

	policy.codec_count[MEDIA_AUDIO] = 0; /* the first m-line: answered inactive */
	cr_assert_eq(exchange(&config, &policy), OFFER_OK, "%s", reason);
	cr_expect(!client->media[MEDIA_AUDIO].is_accepted);
	cr_expect(client->media[MEDIA_VIDEO].is_accepted);
	cr_expect_eq(client->candidate_count, 1, "they stand on the m-line without media");
}

#define HEAD "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n"
#define TRANSPORT                                                                                  \
	"a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"                                 \
	"a=fingerprint:SHA-256 " FINGERPRINT "\r\na=rtcp-mux\r\n"
#define AUDIO                                                                                      \
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtpmap:111 OPUS/48000/2\r\n" TRANSPORT
#define VIDEO "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=rtpmap:96 VP8/90000\r\n" TRANSPORT

static const struct {
	const char *name;
	const char *answer;
	enum offer_verdict verdict;
	const char *reason;
} answers[] = {
	{ "what other servers write", HEAD AUDIO "a=sendonly\r\na=setup:passive\r\n" VIDEO,
	  OFFER_OK, "" },
	{ "no setup", HEAD AUDIO "a=sendonly\r\n" VIDEO, OFFER_OK, "" },
	{ "no mids",
	  "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n" TRANSPORT VIDEO,
	  OFFER_OK, "" },
	{ "one m-line", HEAD AUDIO, OFFER_UNUSABLE, "has 1 m-lines, the offer had 2" },
	{ "swapped", HEAD VIDEO AUDIO, OFFER_UNUSABLE,
	  "m-line 1 of the answer is not the one offered" },
	{ "another mid", HEAD AUDIO "a=mid:5\r\n" VIDEO, OFFER_UNUSABLE, "m-line 1" },
	{ "other payload types",
	  HEAD "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n" TRANSPORT VIDEO, OFFER_UNUSABLE,
	  "m-line 1 of the answer has no payload type that was offered" },
	{ "interleaved H264",
	  HEAD AUDIO "m=video 9 UDP/TLS/RTP/SAVPF 106\r\na=mid:1\r\na=rtpmap:106 H264/90000\r\n"
		     "a=fmtp:106 packetization-mode=2;profile-level-id=42e01f\r\n" TRANSPORT,
	  OFFER_UNUSABLE, "m-line 2 of the answer has no payload type that was offered" },
	{ "actpass", HEAD AUDIO "a=setup:actpass\r\n" VIDEO, OFFER_UNUSABLE,
	  "not active or passive" },
	{ "nothing sent", HEAD AUDIO "a=recvonly\r\n" VIDEO "a=inactive\r\n", OFFER_REFUSED,
	  "refuses every m-line" },
	{ "no transport",
	  HEAD "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtcp-mux\r\n"
	       "a=rtpmap:111 opus/48000/2\r\n" VIDEO,
	  OFFER_UNUSABLE, "no a=ice-ufrag" },
	{ "no rtcp-mux", HEAD "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n" VIDEO,
	  OFFER_UNUSABLE, "m-line 1 of the answer has no a=rtcp-mux" },
};

Test(offer, judges_the_answers_of_other_servers)
{
	struct offer_config config = config_of(OFFER_WATCH);

	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		enum offer_verdict verdict;

		parse(answers[i].answer);
		verdict = offer_read_answer(&config, s, client, reason);
		cr_expect_eq(verdict, answers[i].verdict, "%s: %s", answers[i].name, reason);
		cr_expect(strstr(reason, answers[i].reason), "%s: %s", answers[i].name, reason);
	}
}

Test(offer, acts_as_dtls_server_when_the_answer_is_active)
{
	struct offer_config config = config_of(OFFER_WATCH);

	parse(HEAD AUDIO "a=setup:active\r\n" VIDEO);
	cr_assert_eq(offer_read_answer(&config, s, client, reason), OFFER_OK, "%s", reason);
	cr_expect_eq(client->dtls_role, NEGOTIATED_DTLS_SERVER);
}

Test(offer, says_when_the_buffer_is_too_small)
{
	struct offer_config config = config_of(OFFER_WATCH);
	int len = offer_write(&config, text, OFFER_MAX_BYTES);

	cr_assert_gt(len, 0);
	cr_expect_eq(offer_write(&config, text, (size_t)len), -ENOSPC);
	cr_expect_eq(offer_write(&config, text, (size_t)len + 1), len);
}

Test(offer, feedback_and_its_extension_are_offered_together_or_not_at_all)
{
	for (int i = 0; i < 3; i++) {
		struct answer_policy policy = policy_of(ANSWER_EGRESS);
		struct offer_config config = config_of(OFFER_WATCH);
		const struct negotiated_media *m = &client->media[MEDIA_VIDEO];

		policy.feedback |= SDP_FB_TRANSPORT_CC | SDP_FB_REMB;
		policy.extensions[MEDIA_VIDEO] |= 1u << EXT_TRANSPORT_CC | 1u << EXT_ABS_SEND_TIME;
		config.transport_cc = i == 1;
		config.remb = i == 2;
		cr_assert_eq(exchange(&config, &policy), OFFER_OK, "%s", reason);
		expect_both_agree();
		cr_expect_eq((m->feedback & SDP_FB_TRANSPORT_CC) != 0, i == 1);
		cr_expect_eq(m->extensions.id_of[EXT_TRANSPORT_CC] != 0, i == 1);
		cr_expect_eq((m->feedback & SDP_FB_REMB) != 0, i == 2);
		cr_expect_eq(m->extensions.id_of[EXT_ABS_SEND_TIME] != 0, i == 2);
	}
}
