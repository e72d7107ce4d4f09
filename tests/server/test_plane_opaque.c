#include <criterion/criterion.h>
#include <string.h>

#include "tests/server/kit_plane.h"

TestSuite(plane_opaque, .timeout = 120);

enum { DD_ID = 12, PACKETS = 3, PAYLOAD_BYTES = 300, FIRST_INDEX = 5000, FRAME_US = 33333 };

static void offer_descriptor(void *arg, char *text)
{
	char *at = strstr(text, "m=video");
	char rest[8192], line[128];

	(void)arg;
	cr_assert(at);
	at = strstr(at, "a=extmap:");
	cr_assert(at);
	snprintf(rest, sizeof(rest), "%s", at);
	snprintf(line, sizeof(line), "a=extmap:%d %s\r\n", DD_ID,
		 ext_uri(EXT_DEPENDENCY_DESCRIPTOR));
	memcpy(at, line, strlen(line));
	memcpy(at + strlen(line), rest, strlen(rest) + 1);
}

static const struct kit_peer_config described = {
	.publishes = true,
	.audio = true,
	.video = true,
	.rtx = true,
	.is_opaque = true,
	.edit_offer = offer_descriptor,
};
static const struct kit_peer_config untold = {
	.publishes = true, .audio = true, .video = true, .rtx = true, .is_opaque = true
};
static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };

struct source {
	struct kit_peer *peer;
	uint64_t index, seed;
	uint32_t timestamp;
	uint16_t frame;
};

static uint8_t byte_of(uint64_t seed, unsigned i)
{
	uint64_t z = (seed + i) * 0x9e3779b97f4a7c15;

	return (uint8_t)(z >> 56 ^ z >> 24);
}

/* One structure: a key frame, and a frame that refers to the one before. Bits as in the AV1 RTP
 * specification, appendix A. */
static size_t write_descriptor(uint8_t out[8], const struct source *s, bool is_key, bool is_start,
			       bool is_end)
{
	out[0] = (uint8_t)(is_start << 7 | is_end << 6 | !is_key);
	be16_write(out + 1, s->frame);
	if (!is_key || !is_start)
		return 3;
	/* structure | offset 0, 1 target | same layer, end | switch, switch | none; 1 | no chain */
	memcpy(out + 3, (const uint8_t[]){ 0x80, 0x00, 0x3a, 0x40, 0x00 }, 5);
	return 8;
}

static void send_packet(struct source *s, bool is_key, bool is_start, bool is_end)
{
	uint8_t bytes[400] = { 0 }, dd[8];
	struct ext_element element = { dd, 0, DD_ID };
	struct rtp_header header = {
		.timestamp = s->timestamp,
		.ssrc = s->peer->ssrc[MEDIA_VIDEO],
		.payload_type = OFFER_PT_VP8,
		.marker = is_end,
		.has_extension = s->peer->config.edit_offer != NULL,
	};
	size_t at = RTP_HEADER_BYTES;

	rtp_header_write(bytes, &header);
	if (header.has_extension) {
		element.bytes = (uint8_t)write_descriptor(dd, s, is_key, is_start, is_end);
		cr_assert_eq(ext_block_write(bytes + at, 16, &element, 1), 0);
		at += 16;
	}
	for (unsigned i = 0; i < PAYLOAD_BYTES; i++)
		bytes[at + i] = byte_of(s->seed, i);
	s->seed += 1000;
	cr_assert(kit_peer_send_plain(s->peer, bytes, at + PAYLOAD_BYTES, s->index++));
}

static void send_frame(struct source *s, bool is_key)
{
	for (unsigned i = 0; i < PACKETS; i++)
		send_packet(s, is_key, i == 0, i + 1 == PACKETS);
	s->timestamp += 3000;
	s->frame++;
	kit_plane_advance(s->peer->plane, FRAME_US);
}

static struct source publish(struct kit_plane *p, const struct kit_peer_config *config)
{
	struct source s = { .peer = kit_peer_join(p, "live", config),
			    .index = FIRST_INDEX,
			    .seed = p->now_us };

	kit_plane_advance(p, 10000);
	return s;
}

/* From the payload of `seed` on, in order and byte for byte. */
static void expect_from(const struct kit_peer *v, uint64_t seed, size_t packets)
{
	cr_assert_eq(v->packet_count, packets, "%zu of %zu", v->packet_count, packets);
	for (size_t i = 0; i < packets; i++, seed += 1000) {
		const struct kit_packet *k = &v->packets[i];

		cr_expect_eq(k->index, v->packets[0].index + i);
		for (unsigned b = 0; b < KIT_HEAD_BYTES; b++)
			cr_expect_eq(k->head[b], byte_of(seed, b), "packet %zu, byte %u", i, b);
	}
}

Test(plane_opaque, key_frames_are_told_by_the_descriptor_alone)
{
	struct kit_plane *p = kit_plane_open("media:\n  fast_start: false\n", 1);
	struct source s = publish(p, &described);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	uint64_t seed;

	/* Among so many random payloads some look like key frames of VP8. */
	for (unsigned i = 0; i < 300; i++)
		send_frame(&s, false);
	cr_expect_eq(v->packet_count, 0);
	seed = s.seed;
	send_frame(&s, true);
	for (unsigned i = 0; i < 10; i++)
		send_frame(&s, false);
	expect_from(v, seed, 11 * PACKETS);
	cr_expect_eq(KIT_SUM(p, keyframes_received), 1);
	kit_plane_close(p);
}

Test(plane_opaque, a_joiner_may_begin_in_the_past)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct source s = publish(p, &described);
	struct kit_peer *v;
	uint64_t seed = s.seed;

	send_frame(&s, true);
	send_frame(&s, false);
	v = kit_peer_join(p, "live", &viewer);
	send_frame(&s, false);
	send_frame(&s, false);
	expect_from(v, seed, 4 * PACKETS);
	cr_expect_eq(KIT_SUM(p, fast_start_hits), 1);
	kit_plane_close(p);
}

Test(plane_opaque, without_descriptors_a_joiner_asks_once_and_begins_at_any_frame)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct source s = publish(p, &untold);
	struct kit_peer *v;
	unsigned plis;
	uint64_t seed;

	for (unsigned i = 0; i < 30; i++)
		send_frame(&s, false);
	plis = s.peer->plis;
	v = kit_peer_join(p, "live", &viewer);
	send_packet(&s, false, true,
		    false); /* a frame's beginning, which it may be too early for */
	kit_plane_advance(p, 50000);
	kit_peer_forget(v);
	seed = s.seed;
	s.timestamp += 3000;
	for (unsigned i = 0; i < 10; i++)
		send_frame(&s, false);
	expect_from(v, seed, 10 * PACKETS);
	kit_plane_advance(p, 5000000);
	cr_expect_eq(s.peer->plis, plis + 1, "%u", s.peer->plis - plis);
	kit_plane_close(p);
}

/* Padding lies outside of payloads; picture ids lie within. */
Test(plane_opaque, the_next_publisher_is_passed_on_as_it_is)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct source first = publish(p, &described), second;
	struct kit_peer *v;
	uint64_t index, seed;

	v = kit_peer_join(p, "live", &viewer);
	send_frame(&first, true);
	send_frame(&first, false);
	cr_assert_eq(v->packet_count, 2 * PACKETS);
	index = v->packets[2 * PACKETS - 1].index;
	second = publish(p, &described);
	kit_peer_forget(v);
	seed = second.seed;
	send_frame(&second, true);
	for (unsigned i = 0; i < 20; i++)
		send_frame(&second, false);
	expect_from(v, seed, 21 * PACKETS);
	cr_expect_eq(v->packets[0].index, index + 1);
	kit_plane_close(p);
}
