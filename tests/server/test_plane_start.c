#include <criterion/criterion.h>

#include "tests/server/kit_plane.h"

TestSuite(plane_start, .timeout = 120);

enum { FRAME_US = 33333, PACKETS = 3 };

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config here = { .audio = true, .video = true, .rtx = true };
static const struct kit_peer_config plain = { .audio = true, .video = true };
static const struct kit_peer_config there = {
	.audio = true, .video = true, .rtx = true, .worker = 1
};

static void play(struct kit_plane *p, struct kit_peer *source, unsigned frames)
{
	for (unsigned i = 0; i < frames; i++) {
		kit_peer_send_frame(source, false, PACKETS, 500, NULL);
		kit_peer_send_audio(source);
		kit_plane_advance(p, FRAME_US);
	}
}

/* A key frame and half a second behind it. @return the number of its first packet */
static uint32_t play_group(struct kit_plane *p, struct kit_peer *source)
{
	struct kit_rtp first;

	kit_peer_send_frame(source, true, PACKETS, 500, &first);
	kit_plane_advance(p, FRAME_US);
	play(p, source, 15);
	return first.number;
}

static struct kit_plane *open_stream(const char *yaml, struct kit_peer **source)
{
	struct kit_plane *p = kit_plane_open(yaml, 2);

	*source = kit_peer_join(p, "live", &publisher);
	kit_plane_advance(p, 10000);
	return p;
}

/* Joins while the stream goes on. */
static struct kit_peer *join(struct kit_plane *p, struct kit_peer *source,
			     const struct kit_peer_config *config)
{
	struct kit_peer *v = kit_peer_open(p, "live", config);

	for (unsigned i = 0; i < 20 && !v->is_connected; i++)
		play(p, source, 1);
	cr_assert(v->is_connected);
	play(p, source, 10);
	return v;
}

static const struct kit_packet *next_video(const struct kit_peer *v, size_t *at)
{
	while (*at < v->packet_count)
		if (v->packets[(*at)++].kind == MEDIA_VIDEO)
			return &v->packets[*at - 1];
	return NULL;
}

/* All from the publisher's packet `number` on, in its order, and with its audio left alone. */
static void expect_whole(const struct kit_peer *v, const struct kit_peer *source, uint32_t number)
{
	const struct kit_packet *k, *before = NULL;
	size_t at = 0;

	k = next_video(v, &at);
	cr_assert(k);
	cr_expect_eq(k->number, number, "begins with %u, not %u", k->number, number);
	for (; k; k = next_video(v, &at)) {
		if (before) {
			cr_expect_eq(k->index, before->index + 1);
			cr_expect_gt(k->number, before->number);
			cr_expect_eq(k->timestamp != before->timestamp, before->marker);
			cr_expect_geq((int32_t)(k->timestamp - before->timestamp), 0);
		}
		before = k;
	}
	cr_expect_eq(before->number, source->next_number - 2, "to the end");
	cr_expect(before->marker);
}

Test(plane_start, a_joiner_begins_with_the_key_frame_that_is_held)
{
	/* The first viewer of a worker as well as later ones, on the publisher's worker or another. */
	for (unsigned row = 0; row < 4; row++) {
		const struct kit_peer_config *config = row % 2 ? &there : &here;
		struct kit_peer *source, *v;
		struct kit_plane *p = open_stream("", &source);
		uint32_t first;
		unsigned plis;

		if (row >= 2)
			(void)kit_peer_join(p, "live", config);
		first = play_group(p, source);
		plis = source->plis;
		kit_plane_advance(p, 600000); /* beyond the least interval of requests */
		v = join(p, source, config);
		expect_whole(v, source, first);
		cr_expect_eq(source->plis, plis, "nobody was asked, row %u", row);
		cr_expect_eq(KIT_SUM(p, fast_start_hits), 1, "row %u", row);
		cr_expect_eq(KIT_SUM(p, fast_start_misses), 0);
		cr_expect_eq(KIT_SUM(p, nacks_received), 0);
		kit_plane_close(p);
	}
}

Test(plane_start, timestamps_meet_the_streams_own_at_the_moment_of_joining)
{
	struct kit_peer *source, *v;
	struct kit_plane *p = open_stream("", &source);
	const struct kit_packet *k;
	uint32_t live;
	size_t at = 0;

	play_group(p, source);
	v = join(p, source, &here);
	play(p, source, 5);
	live = source->timestamp[MEDIA_VIDEO] - 3000; /* of the newest frame */
	k = next_video(v, &at);
	cr_expect_leq(live - k->timestamp, 16u * 3000, "close to the live edge: %u ticks behind",
		      live - k->timestamp);
	while (at < v->packet_count)
		if (v->packets[at++].kind == MEDIA_VIDEO)
			k = &v->packets[at - 1];
	cr_expect_eq(k->timestamp, live);
	kit_plane_close(p);
}

/* Without RTX a repeat has the first send's number: the debug build's record of seals asserts that it
 * is the same packet. */
Test(plane_start, what_is_begun_with_can_be_asked_for_again)
{
	static const struct kit_peer_config *const kinds[] = { &here, &plain };

	for (unsigned row = 0; row < 2; row++) {
		struct kit_peer *source, *v;
		struct kit_plane *p = open_stream("", &source);
		struct kit_packet first;
		size_t at = 0, count;

		play_group(p, source);
		v = join(p, source, kinds[row]);
		first = *next_video(v, &at);
		count = v->packet_count;
		kit_peer_nack(v, MEDIA_VIDEO, &first.seq, 1);
		kit_plane_advance(p, 1000);
		cr_expect_eq(KIT_SUM(p, resent_rtx), row == 0);
		cr_expect_eq(KIT_SUM(p, resent_plain), row == 1);
		/* Under its first number its receiver has had it. */
		cr_assert_eq(v->packet_count, count + (row == 0));
		if (row == 0) {
			cr_expect_eq(v->packets[count].timestamp, first.timestamp);
			cr_expect_eq(v->packets[count].number, first.number);
		}
		kit_plane_close(p);
	}
}

Test(plane_start, an_old_key_frame_is_not_begun_with)
{
	static const struct {
		const char *yaml;
		unsigned pause_us;
		bool is_hit;
	} rows[] = {
		{ "", 700000, true },
		{ "", 2000000, false },
		{ "media:\n  fast_start_ms: 1000\n", 700000, false },
		{ "media:\n  fast_start_ms: 4000\n", 2000000, true },
		{ "media:\n  fast_start: false\n", 0, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned far = 0; far < 2; far++) {
			struct kit_peer *source, *v;
			struct kit_plane *p = open_stream(rows[i].yaml, &source);
			uint32_t first = play_group(p, source);
			unsigned plis = source->plis;

			kit_plane_advance(p, rows[i].pause_us);
			v = join(p, source, far ? &there : &here);
			cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false) > 0, rows[i].is_hit,
				     "row %zu", i);
			cr_expect_eq(KIT_SUM(p, fast_start_hits), rows[i].is_hit);
			cr_expect_eq(source->plis == plis, rows[i].is_hit, "row %zu", i);
			/* In any case the next one serves. */
			if (!rows[i].is_hit) {
				first = play_group(p, source);
				expect_whole(v, source, first);
			}
			kit_plane_close(p);
		}
	}
}

Test(plane_start, a_stretch_with_a_hole_is_refused)
{
	struct kit_peer *source, *v;
	struct kit_plane *p = open_stream("", &source);
	uint32_t first;
	unsigned plis;

	play_group(p, source);
	source->next_index[MEDIA_VIDEO]++; /* lost, and not sent again */
	play(p, source, 10);
	plis = source->plis;
	v = join(p, source, &here);
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 0);
	cr_expect_eq(KIT_SUM(p, fast_start_refused), 1);
	cr_expect_gt(source->plis, plis);
	first = play_group(p, source);
	expect_whole(v, source, first);
	kit_plane_close(p);
}

Test(plane_start, a_long_stretch_leaves_in_parts_and_audio_passes_it)
{
	struct kit_peer *source, *v;
	struct kit_plane *p = open_stream("", &source);
	uint64_t first_us = 0, last_us = 0, worst_us = 0;
	unsigned most = 0, burst = 0, backlog;
	size_t at = 0;

	(void)kit_peer_join(p, "live", &here);
	play_group(p, source);
	for (unsigned i = 0; i < 16; i++) {
		kit_peer_send_frame(source, false, 24, 500, NULL);
		kit_plane_advance(p, FRAME_US);
	}
	v = kit_peer_open(p, "live", &here);
	while (!v->is_connected)
		kit_plane_advance(p, 1000);
	backlog = (unsigned)kit_peer_count(v, MEDIA_VIDEO, false);
	for (unsigned i = 0; i < 40; i++) {
		uint64_t sent_us = p->now_us;
		size_t before = kit_peer_count(v, MEDIA_AUDIO, false);

		kit_peer_send_audio(source);
		for (unsigned ms = 0; kit_peer_count(v, MEDIA_AUDIO, false) == before; ms++) {
			kit_plane_advance(p, 100);
			cr_assert_lt(ms, 100);
		}
		if (p->now_us - sent_us > worst_us)
			worst_us = p->now_us - sent_us;
		kit_plane_advance(p, 5000);
	}
	for (const struct kit_packet *k; (k = next_video(v, &at)) != NULL;) {
		first_us = first_us ? first_us : k->at_us;
		burst = k->at_us == last_us ? burst + 1 : 1;
		most = burst > most ? burst : most;
		last_us = k->at_us;
	}
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 16 * PACKETS + 16 * 24);
	cr_expect_leq(worst_us, 1000, "audio waited %u us", (unsigned)worst_us);
	cr_expect_leq(most, (16 * PACKETS + 16 * 24) / 8, "%u at once, first %u", most, backlog);
	cr_expect_geq(last_us - first_us, 30000);
	cr_expect_leq(last_us - first_us, 150000, "%u us", (unsigned)(last_us - first_us));
	kit_plane_close(p);
}

Test(plane_start, a_silent_stream_is_asked_for_a_key_frame_soon)
{
	struct kit_peer *source, *v;
	struct kit_plane *p = open_stream("", &source);
	unsigned plis;

	play_group(p, source);
	plis = source->plis;
	kit_plane_advance(p, 600000);
	v = kit_peer_open(p, "live", &there);
	while (!v->is_connected)
		kit_plane_advance(p, 1000);
	cr_expect_eq(source->plis, plis);
	kit_plane_advance(p, 150000);
	cr_expect_eq(source->plis, plis + 1);
	kit_plane_close(p);
}

Test(plane_start, a_publisher_without_viewers_keeps_no_old_packets)
{
	struct kit_peer *source;
	struct kit_plane *p = open_stream("", &source);

	play_group(p, source);
	worker_publish(kit_plane_worker(p, 0));
	cr_expect_geq(KIT_SUM(p, slabs_in_use), 16 * PACKETS);
	kit_plane_advance(p, 1500000);
	play(p, source, 15);
	worker_publish(kit_plane_worker(p, 0));
	cr_expect_leq(KIT_SUM(p, slabs_in_use), PACKETS);
	kit_plane_close(p);
}
