#include <criterion/criterion.h>
#include <errno.h>

#include "net/random.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_nack, .timeout = 120);

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config with_rtx = { .audio = true, .video = true, .rtx = true };
static const struct kit_peer_config without_rtx = { .audio = true, .video = true };

struct pair {
	struct kit_plane *p;
	struct kit_peer *source, *viewer;
};

static void open_pair(struct pair *t, const struct kit_peer_config *config)
{
	t->p = kit_plane_open("", 1);
	t->source = kit_peer_join(t->p, "live", &publisher);
	kit_plane_advance(t->p, 10000);
	t->viewer = kit_peer_join(t->p, "live", config);
	kit_peer_send_frame(t->source, true, 1, 500, NULL);
	kit_plane_advance(t->p, 10000);
	cr_assert_eq(t->viewer->packet_count, 1);
}

static struct kit_rtp take_packet(struct pair *t, bool is_keyframe)
{
	struct kit_peer *s = t->source;
	struct kit_rtp rtp = {
		.kind = MEDIA_VIDEO,
		.index = s->next_index[MEDIA_VIDEO]++,
		.timestamp = s->timestamp[MEDIA_VIDEO],
		.number = s->next_number++,
		.bytes = 600,
		.picture_id = s->picture_id++ & 0x7fff,
		.is_keyframe = is_keyframe,
		.is_start = true,
		.marker = true,
	};

	s->timestamp[MEDIA_VIDEO] += 3000;
	return rtp;
}

Test(plane_nack, a_lost_packet_is_asked_for_and_its_repair_takes_its_place)
{
	static const bool as_rtx[] = { true, false };

	for (size_t row = 0; row < 2; row++) {
		struct pair t;
		struct kit_rtp lost, next;
		uint64_t asked_us = 0;
		struct kit_peer *v;

		open_pair(&t, &with_rtx);
		v = t.viewer;
		lost = take_packet(&t, false);
		next = take_packet(&t, false);
		kit_peer_send(t.source, &next, false);
		kit_plane_settle(t.p);
		cr_expect_eq(v->packet_count, 2, "what follows does not wait");
		cr_expect_eq(v->packets[1].index, v->packets[0].index + 2, "a hole is left");
		for (unsigned i = 0; i < 100 && t.source->nack_count == 0; i++, asked_us += 1000)
			kit_plane_advance(t.p, 1000);
		cr_expect_eq(t.source->nack_count, 1);
		cr_expect_eq(t.source->nacks[0], (uint16_t)lost.index);
		cr_expect_geq(asked_us, 10000, "it may have been reordered");
		cr_expect_leq(asked_us, 14000);
		kit_peer_send(t.source, &lost, as_rtx[row]);
		kit_plane_settle(t.p);
		cr_assert_eq(v->packet_count, 3);
		cr_expect_eq(v->packets[2].index, v->packets[0].index + 1);
		cr_expect_eq(v->packets[2].number, lost.number);
		cr_expect_eq(v->packets[2].timestamp, v->packets[0].timestamp + 3000);
		/* A second repair is one too many. */
		kit_peer_send(t.source, &lost, true);
		kit_plane_advance(t.p, 1000000);
		cr_expect_eq(v->packet_count, 3);
		cr_expect_eq(t.source->nack_count, 1);
		kit_plane_close(t.p);
	}
}

/* The viewer sees the hole as soon as the relay does, and asks long before the repair is there. */
Test(plane_nack, what_a_viewer_asks_while_the_relay_misses_it_comes_once)
{
	static const struct kit_peer_config *configs[] = { &with_rtx, &without_rtx };

	for (size_t row = 0; row < 2; row++) {
		struct pair t;
		struct kit_rtp lost, next;
		struct kit_peer *v;
		uint16_t seq;

		open_pair(&t, configs[row]);
		v = t.viewer;
		lost = take_packet(&t, false);
		next = take_packet(&t, false);
		kit_peer_send(t.source, &next, false);
		kit_plane_settle(t.p);
		cr_assert_eq(v->packet_count, 2);
		seq = (uint16_t)(v->packets[0].seq + 1);
		for (unsigned i = 0; i < 3; i++) {
			kit_peer_nack(v, MEDIA_VIDEO, &seq, 1);
			kit_plane_advance(t.p, 20000);
		}
		cr_expect_eq(v->packet_count, 2);
		cr_expect_eq(KIT_SUM(t.p, resend_parked), 3);
		cr_expect_eq(KIT_SUM(t.p, resend_gone), 0);
		kit_peer_send(t.source, &lost, true);
		kit_plane_settle(t.p);
		/* Asked before it came, arriving after. */
		kit_peer_nack(v, MEDIA_VIDEO, &seq, 1);
		kit_plane_advance(t.p, 1000);
		cr_assert_eq(v->packet_count, 3);
		cr_expect_eq(v->packets[2].seq, seq);
		cr_expect_eq(v->packets[2].number, lost.number);
		cr_expect_not(v->packets[2].is_rtx);
		cr_expect_eq(v->verdicts[TRANSPORT_DROP_SRTP_REPLAYED], 0, "nor a second time");
		cr_expect_eq(KIT_SUM(t.p, resend_refused), 1);
		/* It was lost on the viewer's own leg: a round trip later it may be had again. */
		kit_plane_advance(t.p, 30000);
		kit_peer_nack(v, MEDIA_VIDEO, &seq, 1);
		kit_plane_settle(t.p);
		cr_expect_eq(KIT_SUM(t.p, resent_rtx) + KIT_SUM(t.p, resent_plain), 1);
		kit_plane_close(t.p);
	}
}

Test(plane_nack, reordered_packets_are_not_asked_for)
{
	struct pair t;

	open_pair(&t, &with_rtx);
	for (unsigned i = 0; i < 50; i++) {
		struct kit_rtp first = take_packet(&t, false);
		struct kit_rtp second = take_packet(&t, false);

		kit_peer_send(t.source, &second, false);
		kit_plane_advance(t.p, 5000);
		kit_peer_send(t.source, &first, false);
		kit_plane_advance(t.p, 5000);
	}
	cr_expect_eq(t.source->nack_count, 0);
	cr_expect_eq(t.viewer->packet_count, 101);
	kit_plane_close(t.p);
}

Test(plane_nack, what_is_given_up_is_followed_by_a_key_frame_request)
{
	struct pair t;
	unsigned before;

	open_pair(&t, &with_rtx);
	kit_plane_advance(t.p, 1000000);
	before = t.source->plis;
	(void)take_packet(&t, false);
	for (unsigned i = 0; i < 30; i++) {
		struct kit_rtp rtp = take_packet(&t, false);

		kit_peer_send(t.source, &rtp, false);
		kit_plane_advance(t.p, 100000);
	}
	cr_expect_geq(t.source->nack_count, 5);
	cr_expect_leq(t.source->nack_count, 10);
	cr_expect_gt(t.source->plis, before);
	kit_plane_close(t.p);
}

Test(plane_nack, a_viewer_gets_again_what_it_asks_for)
{
	static const struct kit_peer_config *configs[] = { &with_rtx, &without_rtx };

	for (size_t row = 0; row < 2; row++) {
		struct pair t;
		struct kit_peer *v;
		uint16_t seqs[10];
		size_t before;

		open_pair(&t, configs[row]);
		v = t.viewer;
		for (unsigned i = 0; i < 20; i++) {
			struct kit_rtp rtp = take_packet(&t, false);

			kit_peer_send(t.source, &rtp, false);
			kit_plane_advance(t.p, 10000);
		}
		before = v->packet_count;
		for (unsigned i = 0; i < 10; i++)
			seqs[i] = v->packets[i + 5].seq;
		kit_peer_nack(v, MEDIA_VIDEO, seqs, 10);
		kit_plane_settle(t.p);
		if (configs[row]->rtx) {
			cr_assert_eq(v->packet_count, before + 10);
			for (unsigned i = 0; i < 10; i++) {
				const struct kit_packet *again = &v->packets[before + i];
				const struct kit_packet *first = &v->packets[i + 5];

				cr_expect(again->is_rtx);
				cr_expect_eq(again->payload_type, OFFER_PT_VP8_RTX);
				cr_expect_eq(again->osn, first->seq);
				cr_expect_eq(again->number, first->number);
				cr_expect_eq(again->timestamp, first->timestamp);
				cr_expect_eq(again->marker, first->marker);
				cr_expect_eq(again->payload_bytes, first->payload_bytes);
			}
			cr_expect_eq(KIT_SUM(t.p, resent_rtx), 10);
		} else {
			/* The same bytes: to a receiver that had them, replays. */
			cr_expect_eq(v->packet_count, before);
			cr_expect_eq(v->verdicts[TRANSPORT_DROP_SRTP_REPLAYED], 10);
			cr_expect_eq(v->verdicts[TRANSPORT_DROP_SRTP_AUTH], 0);
			cr_expect_eq(KIT_SUM(t.p, resent_plain), 10);
		}
		/* At once again: refused. Numbers that were never sent: unknown. */
		kit_peer_nack(v, MEDIA_VIDEO, seqs, 10);
		kit_plane_settle(t.p);
		cr_expect_eq(KIT_SUM(t.p, resend_refused), 10);
		seqs[0] = (uint16_t)(v->packets[before - 1].seq + 1000);
		kit_peer_nack(v, MEDIA_VIDEO, seqs, 1);
		kit_plane_settle(t.p);
		cr_expect_eq(KIT_SUM(t.p, resend_gone), 1);
		kit_plane_close(t.p);
	}
}

/* Sealing waits for company, but not beyond the moment its packet may go from the history. */
Test(plane_nack, a_repair_is_sealed_before_its_packet_is_let_go)
{
	struct pair t;
	struct kit_peer *v;
	uint32_t number;
	uint16_t seq;

	open_pair(&t, &with_rtx);
	t.p->config->media.history_bytes =
	    2 * 16 * 2048; /* 16 packets a track, of later branches */
	kit_peer_leave(t.viewer);
	kit_plane_advance(t.p, 10000);
	v = kit_peer_join(t.p, "live", &with_rtx);
	for (unsigned i = 0; i < 10; i++) {
		struct kit_rtp rtp = take_packet(&t, i == 0);

		kit_peer_send(t.source, &rtp, false);
		kit_plane_advance(t.p, 1000);
	}
	cr_assert_eq(v->packet_count, 10);
	seq = v->packets[0].seq;
	number = v->packets[0].number;
	kit_peer_forget(v);
	kit_peer_nack(v, MEDIA_VIDEO, &seq, 1);
	for (unsigned i = 0; i < 25; i++) {
		struct kit_rtp rtp = take_packet(&t, false);

		kit_peer_send(t.source, &rtp, false);
	}
	kit_plane_settle(t.p);
	cr_assert_eq(kit_peer_count(v, MEDIA_VIDEO, true), 1);
	for (size_t i = 0; i < v->packet_count; i++)
		if (v->packets[i].is_rtx)
			cr_expect_eq(v->packets[i].number, number);
	kit_plane_close(t.p);
}

Test(plane_nack, a_flood_of_requests_is_held_to_a_share)
{
	struct pair t;
	uint64_t media = 0;
	unsigned asked = 0;

	open_pair(&t, &with_rtx);
	for (unsigned i = 0; i < 500; i++) {
		struct kit_rtp rtp = take_packet(&t, false);
		struct kit_peer *v = t.viewer;
		uint16_t seqs[100];
		size_t n = v->packet_count < 40 ? v->packet_count : 40;

		kit_peer_send(t.source, &rtp, false);
		media += 600;
		kit_plane_advance(t.p, 30000);
		if (v->packets[0].is_rtx)
			kit_peer_forget(v);
		for (size_t k = 0; k < n; k++)
			seqs[k] = (uint16_t)(v->packets[0].seq + k);
		kit_peer_nack(v, MEDIA_VIDEO, seqs, n);
		asked += (unsigned)n;
		kit_plane_settle(t.p);
	}
	cr_expect_gt(asked, 15000);
	cr_expect_leq(KIT_SUM(t.p, resent_rtx) * 600, media / 5 + 64 * 1024);
	kit_plane_close(t.p);
}

/* A kernel that takes little, nothing, or refuses segments. */
static struct kit_wire_answer stumble(void *arg, unsigned offered)
{
	uint64_t draw = random_u64() % 16;

	(void)arg;
	if (draw == 0)
		return (struct kit_wire_answer){ 0, EAGAIN };
	if (draw == 1)
		return (struct kit_wire_answer){ 0, EINVAL };
	if (draw == 2)
		return (struct kit_wire_answer){ 0, ENOBUFS };
	return (struct kit_wire_answer){ draw < 6 ? 1 : offered, 0 };
}

static uint32_t number_of[1 << 17]; /* what came, by index minus the first one's */
enum { NUMBERS = sizeof(number_of) / sizeof(number_of[0]) };

/* @return the newest sequence number */
static uint16_t note_first_sends(const struct kit_peer *v, uint64_t first, uint16_t newest)
{
	for (size_t i = 0; i < v->packet_count; i++) {
		const struct kit_packet *k = &v->packets[i];

		if (k->kind != MEDIA_VIDEO || k->is_rtx)
			continue;
		if (rtp_seq_is_newer(k->seq, newest))
			newest = k->seq;
		cr_assert_lt(k->index - first, NUMBERS);
		cr_assert_eq(number_of[k->index - first], 0, "an index came twice");
		number_of[k->index - first] = k->number;
	}
	return newest;
}

static void check_repairs(const struct kit_peer *v, uint64_t first)
{
	for (size_t i = 0; i < v->packet_count; i++) {
		const struct kit_packet *k = &v->packets[i];
		uint64_t index = first + (uint16_t)(k->osn - (uint16_t)first);

		if (!k->is_rtx)
			continue;
		/* Of the indices with that number, the one of its content, or one lost. */
		while (index - first < NUMBERS && number_of[index - first] &&
		       number_of[index - first] != k->number)
			index += 1 << 16;
		cr_assert_lt(index - first, NUMBERS, "repair of %u brings packet %u", k->osn,
			     k->number);
	}
}

/* A hundred thousand steps, over the wrap of the sequence numbers: the debug build's record of seals
 * asserts that no index is ever sealed with two contents, and each viewer's receiver that each
 * packet's content is the one of its number. */
static void walk(const struct kit_peer_config *config, uint64_t seed, unsigned steps)
{
	struct pair t;
	struct kit_rtp held[8];
	unsigned held_count = 0;
	uint64_t first = 0;
	uint16_t newest = 0;

	open_pair(&t, config);
	kit_random_seed(seed);
	kit_wire_on_send(stumble, NULL);
	first = t.viewer->packets[0].index;
	newest = t.viewer->packets[0].seq;
	memset(number_of, 0, sizeof(number_of));
	for (unsigned step = 0; step < steps; step++) {
		uint64_t draw = random_u64() % 100;
		struct kit_peer *v = t.viewer;

		if (draw < 75) {
			struct kit_rtp rtp = take_packet(&t, step % 512 == 0);

			rtp.bytes = (uint16_t)(100 + random_u64() % 64);
			if (draw < 3 && held_count < 8)
				held[held_count++] = rtp;
			else
				kit_peer_send(t.source, &rtp, false);
		} else if (draw < 80 && held_count) {
			kit_peer_send(t.source, &held[--held_count], random_u64() % 2);
		} else if (draw < 95) {
			uint16_t seq = (uint16_t)(newest - random_u64() % 300);

			kit_peer_nack(v, MEDIA_VIDEO, &seq, 1);
		} else if (draw < 97) {
			kit_peer_send_audio(t.source);
		} else {
			kit_wire_unblock();
			kit_plane_advance(t.p, random_u64() % 20000);
		}
		if (step % 3 == 0)
			kit_plane_settle(t.p);
		newest = note_first_sends(v, first, newest);
		check_repairs(v, first);
		kit_peer_forget(v);
	}
	cr_expect_gt(KIT_SUM(t.p, resent_rtx) + KIT_SUM(t.p, resent_plain), steps / 100);
	cr_expect_eq(t.viewer->verdicts[TRANSPORT_DROP_SRTP_AUTH], 0);
	kit_plane_close(t.p);
}

/* Repairs of what was lost before the move was noticed would be seconds late. */
Test(plane_nack, what_was_lost_while_a_publisher_moved_is_replaced_by_a_key_frame)
{
	struct pair t;
	struct kit_rtp next;
	unsigned plis;

	open_pair(&t, &with_rtx);
	for (unsigned i = 0; i < 100; i++)
		next = take_packet(&t, false);
	t.source->addr.port++;
	plis = t.source->plis;
	kit_plane_advance(t.p, 7000000);
	kit_peer_send(t.source, &next, false);
	kit_plane_advance(t.p, 1000000);
	cr_expect_eq(t.viewer->packet_count, 2, "what follows does not wait");
	cr_expect_eq(t.source->nack_count, 0);
	cr_expect_gt(t.source->plis, plis);
	/* From then on repair goes on as ever. */
	take_packet(&t, false);
	next = take_packet(&t, false);
	kit_peer_send(t.source, &next, false);
	kit_plane_advance(t.p, 30000);
	cr_expect_eq(t.source->nack_count, 1);
	kit_plane_close(t.p);
}

Test(plane_nack, no_index_is_sealed_twice_in_a_long_walk_with_rtx)
{
	walk(&with_rtx, 7, 100000);
}

Test(plane_nack, no_index_is_sealed_twice_in_a_long_walk_without_rtx)
{
	walk(&without_rtx, 8, 100000);
}
