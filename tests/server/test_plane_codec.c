/* Which codec a stream has: a publisher offers several, its packets say which; viewers follow or go. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server/kit_plane.h"

TestSuite(plane_codec, .timeout = 120);

enum { FRAME_US = 33333, PAYLOAD_BYTES = 100, HEARD_BYTES = 256, PT_PCMU = 0 };

static void replace(char *text, const char *from, const char *to)
{
	char *at = strstr(text, from);
	char rest[8192];

	cr_assert(at, "no %s in %s", from, text);
	snprintf(rest, sizeof(rest), "%s", at + strlen(from));
	memcpy(at, to, strlen(to));
	memcpy(at + strlen(to), rest, strlen(rest) + 1);
}

/* As Pion's default offer: VP8 before H264 whatever the track is; and telephony's audio. */
static void offer_many(void *arg, char *text)
{
	(void)arg;
	replace(text, "SAVPF 111", "SAVPF 111 0");
	replace(text, "SAVPF 96 97", "SAVPF 96 97 102 103 98");
	snprintf(text + strlen(text), OFFER_MAX_BYTES - strlen(text),
		 "a=rtpmap:102 H264/90000\r\na=rtcp-fb:102 nack\r\na=rtcp-fb:102 nack pli\r\n"
		 "a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;"
		 "profile-level-id=42e01f\r\na=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102\r\n"
		 "a=rtpmap:98 VP9/90000\r\n");
}

/* A viewer that knows only some of the codecs: those of the others get names nobody has. */
static void forget_codecs(void *arg, char *text)
{
	const char *const *names = arg;

	for (; *names; names++)
		for (char *at = strstr(text, *names); at; at = strstr(at, *names))
			*at = 'x';
}

static const char *const but_vp8[] = { "VP9/", "H264/", "AV1/", NULL };
static const char *const but_h264[] = { "VP8/", "VP9/", "AV1/", NULL };

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true, .edit_offer = offer_many
};
static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };
static const struct kit_peer_config vp8_viewer = {
	.audio = true,
	.video = true,
	.edit_offer = forget_codecs,
	.edit_arg = (void *)but_vp8,
};
static const struct kit_peer_config h264_viewer = {
	.audio = true,
	.video = true,
	.edit_offer = forget_codecs,
	.edit_arg = (void *)but_h264,
};

/* A picture in one packet: for H264, parameter sets (a key frame) or a slice. */
static void send_video(struct kit_peer *source, uint8_t payload_type, bool is_key)
{
	uint8_t bytes[RTP_HEADER_BYTES + PAYLOAD_BYTES] = { 0 };
	uint8_t *payload = bytes + RTP_HEADER_BYTES;
	struct rtp_header header = {
		.timestamp = source->timestamp[MEDIA_VIDEO],
		.ssrc = source->ssrc[MEDIA_VIDEO],
		.payload_type = payload_type,
		.marker = true,
	};

	if (payload_type == OFFER_PT_VP8) {
		kit_peer_send_frame(source, is_key, 1, PAYLOAD_BYTES, NULL);
		kit_plane_advance(source->plane, FRAME_US);
		return;
	}
	rtp_header_write(bytes, &header);
	payload[0] = is_key ? 0x67 : 0x61;
	memcpy(payload + 1, (const uint8_t[]){ 0x42, 0xe0, 0x1f, 0x8c, 0x68, 0x14, 0x02 }, 7);
	cr_assert(
	    kit_peer_send_plain(source, bytes, sizeof(bytes), source->next_index[MEDIA_VIDEO]++));
	source->timestamp[MEDIA_VIDEO] += 3000;
	kit_plane_advance(source->plane, FRAME_US);
}

static void send_some(struct kit_peer *source, uint8_t payload_type)
{
	for (unsigned i = 0; i < 10; i++)
		send_video(source, payload_type, i == 0);
}

static unsigned of_type(const struct kit_peer *v, uint8_t payload_type)
{
	unsigned count = 0;

	for (size_t i = 0; i < v->packet_count; i++)
		count += v->packets[i].payload_type == payload_type;
	return count;
}

static const char *codec_of(struct kit_plane *p)
{
	const struct negotiated_codec *c =
	    stream_entry_codec(registry_find_stream(p->registry, "live"), MEDIA_VIDEO);

	return c ? codec_name(c->codec) : "none";
}

static void on_ready(void *arg)
{
	(void)arg;
}

/* What a viewer's event stream says, "reconnect " for one. */
static void hear(struct kit_plane *p, const struct kit_peer *v, void (*between)(void *), void *arg,
		 char out[HEARD_BYTES])
{
	struct event_stream *stream;
	uint64_t number;
	size_t len, at = 0;
	char *text;

	cr_assert_eq(registry_events_open(p->registry, v->id, 1u << EVENT_RECONNECT, &number),
		     REGISTRY_OK);
	stream = registry_events_attach(p->registry, v->id, number, on_ready, &number);
	cr_assert(stream);
	between(arg);
	out[0] = '\0';
	while ((text = event_stream_read(stream, &number, &len)) != NULL) {
		at += (size_t)snprintf(out + at, HEARD_BYTES - at, "%s", text);
		free(text);
	}
	cr_expect(event_stream_is_over(stream, &number));
	event_stream_detach(stream, &number);
}

Test(plane_codec, the_packets_say_which_of_the_codecs_agreed_on_it_is)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *early, *late;

	kit_plane_advance(p, 10000);
	cr_expect_str_eq(codec_of(p), "VP8", "what it prefers, while nothing came");
	early = kit_peer_join(p, "live", &viewer);
	cr_expect_eq(early->terms.media[MEDIA_VIDEO].codec_count, 3, "all it may turn out to be");
	send_some(source, OFFER_PT_H264);
	cr_expect_str_eq(codec_of(p), "H264");
	cr_expect_eq(KIT_SUM(p, codecs_settled), 1);
	late = kit_peer_join(p, "live", &viewer);
	cr_expect_eq(late->terms.media[MEDIA_VIDEO].codec_count, 1, "what it is");
	cr_expect_eq(late->terms.media[MEDIA_VIDEO].codecs[0].codec, CODEC_H264);
	kit_peer_forget(early);
	send_some(source, OFFER_PT_H264);
	cr_expect_eq(of_type(early, OFFER_PT_H264), 10);
	cr_expect_geq(of_type(late, OFFER_PT_H264), 10);
	cr_expect_eq(of_type(early, OFFER_PT_VP8) + of_type(late, OFFER_PT_VP8), 0);
	kit_plane_close(p);
}

static void settle_on_h264(void *source)
{
	send_some(source, OFFER_PT_H264);
}

Test(plane_codec, a_viewer_that_guessed_wrong_is_told_to_come_again)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *right, *wrong;
	char heard[HEARD_BYTES];

	kit_plane_advance(p, 10000);
	right = kit_peer_join(p, "live", &h264_viewer);
	wrong = kit_peer_join(p, "live", &vp8_viewer);
	cr_expect_not(wrong->is_closed, "it may still turn out to be VP8");
	hear(p, wrong, settle_on_h264, source, heard);
	cr_expect_str_eq(heard, "event: reconnect\ndata: {}\n\n");
	cr_expect(wrong->is_closed && !right->is_closed);
	cr_expect_eq(p->registry->sessions_ended[TRANSPORT_CLOSED_CODEC], 1);
	cr_expect_eq(of_type(right, OFFER_PT_H264), 10);
	wrong = kit_peer_open(p, "live", &vp8_viewer);
	cr_expect_eq(wrong->status, REGISTRY_NO_COMMON_CODEC);
	kit_plane_close(p);
}

/* Chromium's encoder may fail and another take over, on the same SSRC. */
Test(plane_codec, a_publisher_may_change_its_codec_at_any_packet)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *both, *one;

	kit_plane_advance(p, 10000);
	both = kit_peer_join(p, "live", &viewer);
	send_some(source, OFFER_PT_VP8);
	one = kit_peer_join(p, "live", &vp8_viewer);
	cr_expect_str_eq(codec_of(p), "VP8");
	kit_peer_forget(both);
	send_some(source, OFFER_PT_H264);
	cr_expect_str_eq(codec_of(p), "H264");
	cr_expect(one->is_closed && !both->is_closed);
	cr_expect_eq(of_type(both, OFFER_PT_H264), 10);
	for (size_t i = 1; i < both->packet_count; i++)
		cr_expect_eq(both->packets[i].index, both->packets[i - 1].index + 1);
	/* A publisher that cannot decide costs a letter at a time, and its viewers nothing. */
	for (unsigned i = 0; i < 50; i++)
		send_video(source, i % 2 ? OFFER_PT_VP8 : OFFER_PT_H264, false);
	cr_expect_eq(KIT_SUM(p, codecs_settled), 51);
	cr_expect_not(both->is_closed);
	kit_plane_close(p);
}

static void know_pcmu(void *arg, char *text)
{
	(void)arg;
	replace(text, "SAVPF 111", "SAVPF 111 0");
}

static void send_pcmu(struct kit_peer *source)
{
	struct rtp_header header = {
		.timestamp = source->timestamp[MEDIA_AUDIO],
		.ssrc = source->ssrc[MEDIA_AUDIO],
		.payload_type = PT_PCMU,
	};
	uint8_t bytes[RTP_HEADER_BYTES + 160] = { 0 };

	for (unsigned i = 0; i < 10; i++) {
		rtp_header_write(bytes, &header);
		cr_assert(kit_peer_send_plain(source, bytes, sizeof(bytes),
					      source->next_index[MEDIA_AUDIO]++));
		header.timestamp += 160;
		kit_plane_advance(source->plane, 20000);
	}
}

Test(plane_codec, an_audio_codec_brings_its_own_clock)
{
	static const struct kit_peer_config listener = { .audio = true, .edit_offer = know_pcmu };
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v;
	struct stream_entry *e;

	kit_plane_advance(p, 10000);
	e = registry_find_stream(p->registry, "live");
	cr_expect_eq(stream_entry_codec(e, MEDIA_AUDIO)->codec, CODEC_OPUS);
	v = kit_peer_join(p, "live", &listener);
	send_pcmu(source);
	cr_expect_eq(stream_entry_codec(e, MEDIA_AUDIO)->codec, CODEC_PCMU);
	cr_expect(!stream_entry_possible(e, MEDIA_AUDIO, 1));
	cr_expect_eq(stream_entry_codec(e, MEDIA_VIDEO)->codec, CODEC_VP8, "no word of it yet");
	cr_expect(stream_entry_possible(e, MEDIA_VIDEO, 2) &&
		  !stream_entry_possible(e, MEDIA_VIDEO, 3));
	/* The next publisher's timestamps go on as far as time did, in units of that clock. */
	kit_peer_leave(source);
	kit_plane_advance(p, 400000);
	source = kit_peer_join(p, "live", &publisher);
	kit_plane_advance(p, 10000);
	send_pcmu(source);
	cr_assert_eq(of_type(v, PT_PCMU), 20);
	cr_expect_lt(rtp_timestamp_diff(v->packets[10].timestamp, v->packets[9].timestamp), 8000);
	cr_expect_gt(rtp_timestamp_diff(v->packets[10].timestamp, v->packets[9].timestamp), 3000);
	kit_plane_close(p);
}

Test(plane_codec, viewers_of_a_publisher_that_comes_back_go_on_if_they_can)
{
	static const struct kit_peer_config vp8_only = {
		.publishes = true, .audio = true, .video = true, .rtx = true
	};
	struct kit_plane *p = kit_plane_open("streams: {wait_for_publisher: true}\n", 2);
	struct kit_peer *all = kit_peer_join(p, "live", &viewer);
	struct kit_peer *some = kit_peer_join(p, "live", &h264_viewer);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);

	kit_plane_advance(p, 10000);
	cr_expect_not(some->is_closed, "viewers from before it");
	send_some(source, OFFER_PT_H264);
	cr_expect_eq(of_type(all, OFFER_PT_H264), 10);
	cr_expect_eq(of_type(some, OFFER_PT_H264), 10);
	kit_peer_leave(source);
	kit_plane_advance(p, 400000);
	source = kit_peer_join(p, "live", &vp8_only);
	kit_plane_advance(p, 10000);
	cr_expect(some->is_closed && !all->is_closed, "no other codec can come of this one");
	send_some(source, OFFER_PT_VP8);
	cr_expect_eq(of_type(all, OFFER_PT_VP8), 10);
	kit_plane_close(p);
}

Test(plane_codec, the_answer_to_a_publisher_is_as_long_as_the_config_lets_it)
{
	static const struct {
		const char *yaml;
		bool is_h264_known;
	} rows[] = { { "", true },
		     { "policy: {max_codecs: 2}\n", true },
		     { "policy: {max_codecs: 1}\n", false } };

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kit_plane *p = kit_plane_open(rows[i].yaml, 1);
		struct kit_peer *source = kit_peer_join(p, "live", &publisher);

		send_some(source, OFFER_PT_H264);
		cr_expect_eq(KIT_SUM(p, rtp_unknown_type), rows[i].is_h264_known ? 0 : 10, "%s",
			     rows[i].yaml);
		kit_plane_close(p);
	}
}

Test(plane_codec, audio_alone_is_for_those_whom_the_config_lets_listen)
{
	static const char *const yaml[] = { "", "policy: {audio_only: true}\n" };

	for (unsigned is_on = 0; is_on < 2; is_on++) {
		struct kit_plane *p = kit_plane_open(yaml[is_on], 1);
		struct kit_peer *source = kit_peer_join(p, "live", &publisher);
		struct kit_peer *v;

		send_some(source, OFFER_PT_H264);
		v = is_on ? kit_peer_join(p, "live", &vp8_viewer)
			  : kit_peer_open(p, "live", &vp8_viewer);
		cr_expect_eq(v->status, is_on ? REGISTRY_OK : REGISTRY_NO_COMMON_CODEC);
		if (is_on) {
			cr_expect(v->terms.media[MEDIA_AUDIO].is_accepted);
			cr_expect_not(v->terms.media[MEDIA_VIDEO].is_accepted);
			send_video(source, OFFER_PT_H264, true);
			kit_peer_send_audio(source);
			kit_plane_advance(p, FRAME_US);
			cr_expect_eq(v->packet_count, 1);
			cr_expect_eq(of_type(v, OFFER_PT_OPUS), 1);
		}
		kit_plane_close(p);
	}
}
