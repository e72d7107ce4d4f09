/* Peers that do less than others: FFmpeg waits as DTLS server and sends one check in its life, libnice
 * falls silent once it is connected. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/stun.h"
#include "tests/fixture.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_roles, .timeout = 120);

enum { S = 1000000, FRAME_US = 40000, PAYLOAD_BYTES = 200, PT_FFMPEG_H264 = 106, TEXT = 16384 };

/* A client's side of ICE as such peers have it: no answer to a check of theirs is needed after the
 * first, so what the kit's agent asks later is answered here. */
struct quiet {
	unsigned asked;  /* checks that reached the relay */
	unsigned wanted; /* those that may */
	bool is_bare;    /* without PRIORITY and ICE-CONTROLLING, nominating at once */
	bool has_use_candidate;
};

static void answer_here(struct kit_peer *peer, const struct stun_message *m)
{
	struct net_path path = { .remote = kit_relay_addr, .local = peer->addr };
	uint8_t bytes[256];
	struct stun_writer w;
	uint64_t index;
	size_t len;

	stun_write_begin(&w, bytes, sizeof(bytes), STUN_SUCCESS, m->transaction);
	stun_write_mapped(&w, &peer->addr);
	len = stun_write_end(&w, peer->terms.remote_pwd, true);
	cr_assert(len);
	cr_expect_eq(
	    transport_on_datagram(peer->transport, peer->plane->now_us, &path, bytes, &len, &index),
	    TRANSPORT_CONSUMED);
}

/* USERNAME, USE-CANDIDATE, MESSAGE-INTEGRITY, FINGERPRINT and nothing else. */
static size_t write_bare(const struct quiet *q, struct kit_peer *peer, uint8_t *bytes)
{
	uint8_t transaction[STUN_TRANSACTION_BYTES];
	struct stun_writer w;

	memcpy(transaction, bytes + 8, sizeof(transaction));
	stun_write_begin(&w, bytes, KIT_WIRE_BYTES, STUN_REQUEST, transaction);
	stun_write_username(&w, peer->terms.remote_ufrag, peer->local.ufrag);
	if (q->has_use_candidate)
		stun_write(&w, STUN_USE_CANDIDATE, NULL, 0);
	return stun_write_end(&w, peer->terms.remote_pwd, true);
}

static size_t send_few_checks(void *arg, struct kit_peer *peer, uint8_t *bytes, size_t len)
{
	struct quiet *q = arg;
	struct stun_message m;

	if (!stun_is_message(bytes, len))
		return len;
	cr_assert_eq(stun_parse(&m, bytes, len), STUN_OK);
	if (m.class != STUN_REQUEST)
		return len;
	if (q->asked == q->wanted) {
		answer_here(peer, &m);
		return 0;
	}
	q->asked++;
	return q->is_bare ? write_bare(q, peer, bytes) : len;
}

/* --- FFmpeg ------------------------------------------------------------------------------ */

static void copy_line(const char *from, const char *prefix, char *text)
{
	const char *value = strstr(from, prefix);
	char *at = strstr(text, prefix), rest[TEXT];

	cr_assert(value && at);
	for (; at; at = strstr(at, prefix)) {
		size_t n = strcspn(value, "\r");

		snprintf(rest, sizeof(rest), "%s", at + strcspn(at, "\r"));
		memcpy(at, value, n);
		memcpy(at + n, rest, strlen(rest) + 1);
		at += n;
	}
}

/* Its offer as it was captured, with the secrets of this run. */
static void offer_as_ffmpeg(void *arg, char *text)
{
	char ours[TEXT];
	size_t len;
	char *captured = fixture_read("offers", "ffmpeg-whip-20250722.sdp", &len);

	(void)arg;
	snprintf(ours, sizeof(ours), "%s", text);
	memcpy(text, captured, len);
	text[len] = '\0';
	free(captured);
	copy_line(ours, "a=ice-ufrag:", text);
	copy_line(ours, "a=ice-pwd:", text);
	copy_line(ours, "a=fingerprint:", text);
}

static void replace(char *text, const char *from, const char *to)
{
	char *at = strstr(text, from);
	char rest[TEXT];

	cr_assert(at, "no %s in %s", from, text);
	snprintf(rest, sizeof(rest), "%s", at + strlen(from));
	memcpy(at, to, strlen(to));
	memcpy(at + strlen(to), rest, strlen(rest) + 1);
}

/* Two things FFmpeg looks for, then in the numbers of the kit. */
static void read_as_ffmpeg(void *arg, char *text)
{
	(void)arg;
	cr_expect_eq(strncmp(text, "v=", 2), 0);
	cr_expect(strstr(text, " udp ") && strstr(text, " typ host"));
	cr_expect(strstr(text, "a=setup:active\r\n") && !strstr(text, "a=setup:passive"));
	replace(text, "SAVPF 106\r\n", "SAVPF 96\r\n");
	replace(text, "a=rtpmap:106 H264/90000", "a=rtpmap:96 VP8/90000");
}

static struct kit_peer_config ffmpeg_of(struct quiet *q)
{
	return (struct kit_peer_config){
		.publishes = true,
		.audio = true,
		.video = true,
		.edit_offer = offer_as_ffmpeg,
		.edit_answer = read_as_ffmpeg,
		.edit_sent = send_few_checks,
		.edit_arg = q,
	};
}

static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };

static void send_frame(struct kit_peer *source, bool is_key)
{
	uint8_t bytes[RTP_HEADER_BYTES + PAYLOAD_BYTES] = { 0 };
	struct rtp_header header = {
		.timestamp = source->timestamp[MEDIA_VIDEO],
		.ssrc = source->ssrc[MEDIA_VIDEO],
		.payload_type = PT_FFMPEG_H264,
		.marker = true,
	};

	rtp_header_write(bytes, &header);
	bytes[RTP_HEADER_BYTES] = is_key ? 0x67 : 0x61;
	memcpy(bytes + RTP_HEADER_BYTES + 1,
	       (const uint8_t[]){ 0x64, 0x00, 0x0c, 0x8c, 0x68, 0x14, 0x02 }, 7);
	cr_assert(
	    kit_peer_send_plain(source, bytes, sizeof(bytes), source->next_index[MEDIA_VIDEO]++));
	source->timestamp[MEDIA_VIDEO] += 3600;
	kit_peer_send_audio(source);
	kit_plane_advance(source->plane, FRAME_US);
}

Test(plane_roles, ffmpeg_publishes_after_one_check_as_dtls_server)
{
	struct quiet q = { .wanted = 1, .is_bare = true, .has_use_candidate = true };
	struct kit_peer_config ffmpeg = ffmpeg_of(&q);
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &ffmpeg);
	struct kit_peer *v;

	cr_expect_eq(source->terms.dtls_role, NEGOTIATED_DTLS_SERVER);
	kit_plane_advance(p, 10000);
	v = kit_peer_join(p, "live", &viewer);
	for (unsigned i = 0; i < 50; i++)
		send_frame(source, i == 0);
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 50);
	cr_expect_eq(kit_peer_count(v, MEDIA_AUDIO, false), 50);
	/* Media is all that comes of it from now on. */
	for (unsigned second = 0; second < 120; second++) {
		send_frame(source, false);
		kit_plane_advance(p, S - FRAME_US);
	}
	cr_expect_eq(q.asked, 1);
	cr_expect_not(source->is_closed);
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 170);
	/* And when nothing comes, it is gone. */
	kit_plane_advance(p, 60 * S);
	cr_expect_eq(registry_sessions_open(p->registry), 1);
	kit_plane_close(p);
}

Test(plane_roles, without_nomination_the_relay_waits_half_a_second_before_it_begins)
{
	struct quiet q = { .wanted = 1, .is_bare = true };
	struct kit_peer_config config = ffmpeg_of(&q);
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_open(p, "live", &config);

	kit_plane_advance(p, 450000);
	cr_expect_eq(q.asked, 1);
	cr_expect_not(source->is_connected, "it might still nominate another address");
	kit_plane_advance(p, 300000);
	cr_expect(source->is_connected);
	kit_plane_close(p);
}

/* --- libnice ----------------------------------------------------------------------------- */

static void send_indication(struct kit_peer *peer)
{
	static const uint8_t transaction[STUN_TRANSACTION_BYTES] = { 7 };
	uint8_t bytes[64];
	struct stun_writer w;
	size_t len;

	stun_write_begin(&w, bytes, sizeof(bytes), STUN_INDICATION, transaction);
	len = stun_write_end(&w, NULL, true);
	cr_assert_eq(len, 28, "as captured");
	kit_peer_send_raw(peer, bytes, len);
}

static void send_receiver_report(struct kit_peer *peer)
{
	uint8_t bytes[64];
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_rr(&w, 1, NULL, 0);
	kit_peer_send_rtcp(peer, bytes, w.len_bytes);
}

Test(plane_roles, libnice_is_silent_but_for_indications_and_lives_by_what_it_sends)
{
	static const struct kit_peer_config publisher = { .publishes = true,
							  .audio = true,
							  .video = true };
	struct quiet reporting = { .wanted = 2 }, mute = { .wanted = 2 };
	struct kit_peer_config config = viewer;
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *lives, *dies;

	config.edit_sent = send_few_checks;
	config.edit_arg = &reporting;
	lives = kit_peer_join(p, "live", &config);
	config.edit_arg = &mute;
	dies = kit_peer_join(p, "live", &config);
	for (unsigned second = 0; second < 120; second++) {
		kit_peer_send_frame(source, second == 0, 1, PAYLOAD_BYTES, NULL);
		if (second % 25 == 24) {
			send_indication(lives);
			send_indication(dies);
		}
		if (second % 5 == 4)
			send_receiver_report(lives);
		kit_plane_advance(p, S);
	}
	cr_expect_eq(reporting.asked, 2, "one check, and one that nominates");
	cr_expect_not(lives->is_closed);
	cr_expect_eq(kit_peer_count(lives, MEDIA_VIDEO, false), 120);
	cr_expect(dies->is_closed, "what anybody could send keeps nobody alive");
	cr_expect_eq(p->registry->sessions_ended[TRANSPORT_CLOSED_SILENT], 1);
	kit_plane_close(p);
}
