#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "media/red.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_audio, .timeout = 120);

enum { PT_RED = 63, PT_OTHER = 109, HEAD_BYTES = 5, OLD_BYTES = 6, NEW_BYTES = 20, PACKETS = 5 };

/* What a peer offers for audio: the first line instead of the kit's formats, then their maps. Answers
 * are made to look as the kit expects them. */
struct formats {
	const char *types, *maps;
	const char *answer_types, *answer_map; /* as the relay is to write them; NULL: whatever */
};

static void replace(char *text, const char *from, const char *to)
{
	char *at = strstr(text, from);
	char rest[8192];

	cr_assert(at, "no %s in %s", from, text);
	snprintf(rest, sizeof(rest), "%s", at + strlen(from));
	memcpy(at, to, strlen(to));
	memcpy(at + strlen(to), rest, strlen(rest) + 1);
}

static void edit_offer(void *arg, char *text)
{
	const struct formats *f = arg;

	replace(text, "m=audio 9 UDP/TLS/RTP/SAVPF 111", f->types);
	replace(text, "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n",
		f->maps);
}

static void edit_answer(void *arg, char *text)
{
	const struct formats *f = arg;

	cr_expect(strstr(text, f->answer_types), "no %s in %s", f->answer_types, text);
	cr_expect(strstr(text, f->answer_map), "no %s in %s", f->answer_map, text);
	replace(text, f->answer_types, "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n");
	replace(text, f->answer_map, "a=rtpmap:111 opus/48000/2\r\n");
}

#define OPUS "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n"
#define RED  "a=rtpmap:63 red/48000/2\r\na=fmtp:63 111/111\r\n"
#define LINE "m=audio 9 UDP/TLS/RTP/SAVPF "

static struct formats prefers_red = { LINE "63 111", OPUS RED, LINE "63 111\r\n", RED };
static struct formats knows_red = { LINE "111 63", OPUS RED, LINE "111 63\r\n", RED };
static struct formats without_red = { LINE "111", OPUS, LINE "111\r\n",
				      "a=rtpmap:111 opus/48000/2\r\n" };
static struct formats other_numbers = {
	LINE "109 35",
	"a=rtpmap:109 opus/48000/2\r\na=rtpmap:35 red/48000/2\r\na=fmtp:35 109/109/109\r\n",
	LINE "109 35\r\n", "a=rtpmap:35 red/48000/2\r\na=fmtp:35 109/109\r\n"
};
static struct formats other_opus = { LINE "109", "a=rtpmap:109 opus/48000/2\r\n", LINE "109\r\n",
				     "a=rtpmap:109 opus/48000/2\r\n" };

static struct kit_peer *join(struct kit_plane *p, bool publishes, struct formats *f)
{
	return kit_peer_join(p, "live",
			     &(struct kit_peer_config){ .publishes = publishes,
							.audio = true,
							.video = true,
							.edit_offer = edit_offer,
							.edit_answer = edit_answer,
							.edit_arg = f });
}

/* One packet that repeats the one before it; `pt` is what its blocks say. */
static void send_red(struct kit_peer *source, unsigned i, uint8_t pt)
{
	uint8_t bytes[RTP_HEADER_BYTES + HEAD_BYTES + OLD_BYTES + NEW_BYTES];
	uint8_t *payload = bytes + RTP_HEADER_BYTES;
	struct rtp_header header = {
		.timestamp = 960 * i,
		.ssrc = source->ssrc[MEDIA_AUDIO],
		.payload_type = PT_RED,
	};

	rtp_header_write(bytes, &header);
	memcpy(payload, (const uint8_t[]){ 0x80 | pt, 0x0f, 0x00, OLD_BYTES, pt }, HEAD_BYTES);
	memset(payload + HEAD_BYTES, 0xd0, OLD_BYTES);
	memset(payload + HEAD_BYTES + OLD_BYTES, (int)i, NEW_BYTES);
	cr_assert(kit_peer_send_plain(source, bytes, sizeof(bytes), 1000 + i));
}

static void expect(const struct kit_peer *v, uint8_t payload_type, uint8_t block_type)
{
	cr_assert_eq(v->packet_count, PACKETS);
	for (unsigned i = 0; i < PACKETS; i++) {
		const struct kit_packet *k = &v->packets[i];
		const uint8_t *primary = k->head;

		cr_expect_eq(k->payload_type, payload_type);
		cr_expect_eq(k->index, v->packets[0].index + i);
		if (block_type) {
			cr_expect_eq(k->payload_bytes, HEAD_BYTES + OLD_BYTES + NEW_BYTES);
			cr_assert_eq(red_header_bytes(k->head, k->payload_bytes, block_type),
				     HEAD_BYTES);
			primary += red_primary_offset(k->head);
		} else {
			cr_expect_eq(k->payload_bytes, NEW_BYTES);
		}
		for (unsigned b = 0; b < 10; b++)
			cr_expect_eq(primary[b], i);
	}
}

Test(plane_audio, redundancy_reaches_those_who_agreed_to_it)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = join(p, true, &prefers_red);
	struct kit_peer *with = join(p, false, &knows_red);
	struct kit_peer *without = join(p, false, &without_red);
	struct kit_peer *renumbered = join(p, false, &other_numbers);
	struct kit_peer *other = join(p, false, &other_opus);

	for (unsigned i = 0; i < PACKETS; i++) {
		send_red(source, i, OFFER_PT_OPUS);
		kit_plane_advance(p, 20000);
	}
	expect(with, PT_RED, OFFER_PT_OPUS);
	expect(without, OFFER_PT_OPUS, 0);
	expect(renumbered, 35, PT_OTHER);
	expect(other, PT_OTHER, 0);
	kit_plane_close(p);
}

/* A repeat is sealed as the packet it repeats: the debug build's record of seals asserts it. */
Test(plane_audio, redundancy_is_repeated_as_it_was)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = join(p, true, &prefers_red);
	struct formats *const kinds[] = { &knows_red, &without_red, &other_numbers, &other_opus };

	for (unsigned row = 0; row < 4; row++) {
		struct kit_peer *v = join(p, false, kinds[row]);
		uint64_t before = KIT_SUM(p, resent_plain);

		send_red(source, row, OFFER_PT_OPUS);
		kit_plane_advance(p, 20000);
		cr_assert_eq(v->packet_count, 1);
		kit_peer_nack(v, MEDIA_AUDIO, &v->packets[0].seq, 1);
		kit_plane_advance(p, 20000);
		cr_expect_eq(KIT_SUM(p, resent_plain), before + 1, "row %u", row);
	}
	kit_plane_close(p);
}

/* A publisher may change between the two at any time. */
Test(plane_audio, plain_packets_stay_plain)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = join(p, true, &prefers_red);
	struct kit_peer *with = join(p, false, &knows_red);

	kit_peer_send_audio(source);
	kit_plane_advance(p, 20000);
	cr_assert_eq(with->packet_count, 1);
	cr_expect_eq(with->packets[0].payload_type, OFFER_PT_OPUS);
	cr_expect_eq(with->packets[0].payload_bytes, 100);
	kit_plane_close(p);
}

Test(plane_audio, broken_redundancy_reaches_nobody_and_leaves_no_hole)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = join(p, true, &prefers_red);
	struct kit_peer *v = join(p, false, &knows_red);

	send_red(source, 0, OFFER_PT_OPUS);
	send_red(source, 1, OFFER_PT_OPUS + 1);
	send_red(source, 2, OFFER_PT_OPUS);
	kit_plane_advance(p, 20000);
	cr_assert_eq(v->packet_count, 2);
	cr_expect_eq(v->packets[1].index, v->packets[0].index + 1);
	cr_expect_eq(KIT_SUM(p, red_malformed), 1);
	kit_plane_close(p);
}

/* Viewers are not told of a format that the publisher never uses. */
Test(plane_audio, redundancy_is_not_agreed_to_where_nobody_sends_it)
{
	static struct formats refused = { LINE "111 63", OPUS RED, LINE "111\r\n",
					  "a=rtpmap:111 opus/48000/2\r\n" };
	struct kit_plane *p = kit_plane_open("", 1);

	join(p, true, &without_red);
	join(p, false, &refused);
	kit_plane_close(p);
}

/* Its blocks could not be told apart. */
Test(plane_audio, redundancy_is_not_agreed_to_where_payloads_are_opaque)
{
	static struct formats refused = { LINE "63 111", OPUS RED, LINE "111\r\n",
					  "a=rtpmap:111 opus/48000/2\r\n" };
	struct kit_plane *p = kit_plane_open("", 1);

	kit_peer_join(p, "live",
		      &(struct kit_peer_config){ .publishes = true,
						 .audio = true,
						 .video = true,
						 .is_opaque = true,
						 .edit_offer = edit_offer,
						 .edit_answer = edit_answer,
						 .edit_arg = &refused });
	kit_plane_close(p);
}

Test(plane_audio, viewers_are_told_of_stereo)
{
	static struct formats stereo = {
		LINE "111", "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 sprop-stereo=1;stereo=1\r\n",
		LINE "111\r\n",
		"a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1;stereo=1;"
		"sprop-stereo=1\r\n"
	};
	static struct formats told = {
		LINE "111", OPUS, LINE "111\r\n",
		"a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1;"
		"sprop-stereo=1\r\n"
	};
	struct kit_plane *p = kit_plane_open("", 1);

	join(p, true, &stereo);
	join(p, false, &told);
	kit_plane_close(p);
}
