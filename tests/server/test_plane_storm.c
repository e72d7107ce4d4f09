/* Thousands of key frame requests at once, and who joins meanwhile. */
#include <criterion/criterion.h>

#include "tests/server/kit_plane.h"

TestSuite(plane_storm, .timeout = 200);

enum { ENCODER_US = 30000, DELTA_BYTES = 1100 };

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };

/* An encoder that answers each request after a moment. */
struct encoder {
	struct kit_peer *peer;
	unsigned keyframe_pkts;
	unsigned asked; /* requests seen */
	uint64_t keyframe_us, frame_us;
	uint64_t asked_us[64]; /* when each came */
};

static void run(struct kit_plane *p, struct encoder *e, uint64_t us)
{
	uint64_t until_us = p->now_us + us;

	for (; p->now_us < until_us; kit_plane_advance(p, 5000)) {
		for (; e->asked < e->peer->plis; e->asked++) {
			e->asked_us[e->asked % 64] = e->peer->last_pli_us;
			e->keyframe_us = p->now_us + ENCODER_US;
		}
		if (e->keyframe_us && e->keyframe_us <= p->now_us) {
			kit_peer_send_frame(e->peer, true, e->keyframe_pkts, DELTA_BYTES, NULL);
			e->keyframe_us = 0;
			e->frame_us = p->now_us + 33000;
		} else if (e->frame_us <= p->now_us) {
			kit_peer_send_frame(e->peer, false, 3, DELTA_BYTES, NULL);
			e->frame_us = p->now_us + 33000;
		}
	}
}

/* When the first key frame came, 0: none did. */
static uint64_t picture_us(const struct kit_peer *v)
{
	for (size_t i = 0; i < v->packet_count; i++)
		if (v->packets[i].kind == MEDIA_VIDEO && !(v->packets[i].head[4] & 1))
			return v->packets[i].at_us;
	return 0;
}

Test(plane_storm, three_thousand_requests_are_one_in_half_a_second_and_a_joiner_has_a_picture)
{
	enum { VIEWERS = 1000, REQUESTS = 3000 };
	struct kit_plane *p = kit_plane_open("pool:\n  packets: 65536\n", 2);
	struct encoder e = { .peer = kit_peer_join(p, "live", &publisher), .keyframe_pkts = 10 };
	static struct kit_peer *viewers[VIEWERS];
	struct kit_peer *joiner = NULL;
	uint64_t began_us, joined_us = 0;
	unsigned before;

	kit_plane_advance(p, 10000);
	for (unsigned i = 0; i < VIEWERS; i++) {
		struct kit_peer_config config = viewer;

		config.worker = i % 2;
		viewers[i] = kit_peer_join(p, "live", &config);
	}
	run(p, &e, 5000000);
	for (unsigned i = 0; i < VIEWERS; i++)
		cr_assert_neq(picture_us(viewers[i]), 0, "viewer %u", i);
	before = e.asked;
	began_us = p->now_us;
	for (unsigned i = 0; i < REQUESTS; i++) {
		kit_peer_pli(viewers[i * 7 % VIEWERS]);
		if (i == REQUESTS / 2) {
			joiner = kit_peer_join(p, "live", &viewer);
			joined_us = p->now_us;
		}
		if (i % 150 == 149)
			run(p, &e, 5000);
	}
	cr_expect_leq(p->now_us - began_us, 150000);
	run(p, &e, 2000000);
	for (unsigned i = before + 1; i < e.asked; i++)
		cr_expect_geq(e.asked_us[i % 64] - e.asked_us[(i - 1) % 64], 499000, "request %u",
			      i);
	cr_expect_leq(e.asked - before, 3);
	cr_assert_neq(picture_us(joiner), 0);
	cr_expect_leq(picture_us(joiner) - joined_us, 1000000);
	cr_expect_geq(KIT_SUM(p, keyframes_asked), REQUESTS);
	printf("%u requests from %u viewers in %llu ms: %u sent on; the joiner had a key frame "
	       "after %llu ms\n",
	       REQUESTS, VIEWERS, (unsigned long long)(p->now_us - began_us) / 1000 - 2000,
	       e.asked - before, (unsigned long long)(picture_us(joiner) - joined_us) / 1000);
	kit_plane_close(p);
}

/* Everybody asks all the time: key frames stay a share of the stream, but who joins sees it soon. */
Test(plane_storm, key_frames_stay_a_share_whoever_asks_how_often)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct encoder e = { .peer = kit_peer_join(p, "live", &publisher), .keyframe_pkts = 60 };
	struct kit_peer *v = kit_peer_join(p, "live", &viewer), *joiner;
	size_t keyframe_packets = 0, packets = 0;
	uint64_t joined_us;

	/* 100 KB a second and key frames of 66 KB: with two a second these were more than half. */
	for (unsigned i = 0; i < 1000; i++) {
		kit_peer_pli(v);
		run(p, &e, 20000);
	}
	for (size_t i = 0; i < v->packet_count; i++)
		keyframe_packets +=
		    v->packets[i].kind == MEDIA_VIDEO && !(v->packets[i].head[4] & 1);
	packets = kit_peer_count(v, MEDIA_VIDEO, false);
	cr_expect_leq(keyframe_packets * 100, packets * 30, "%zu of %zu packets", keyframe_packets,
		      packets);
	cr_expect_gt(KIT_SUM(p, keyframes_held), 0);
	joined_us = p->now_us;
	joiner = kit_peer_join(p, "live", &viewer);
	run(p, &e, 1500000);
	cr_assert_neq(picture_us(joiner), 0);
	cr_expect_leq(picture_us(joiner) - joined_us, 1000000);
	kit_plane_close(p);
}

/* What the relay itself lost nobody has: all pictures stand still. */
Test(plane_storm, a_gap_that_nobody_repairs_does_not_wait_for_a_share)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct encoder e = { .peer = kit_peer_join(p, "live", &publisher), .keyframe_pkts = 60 };
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	uint64_t held;
	unsigned before;

	for (unsigned i = 0; i < 1000; i++) {
		kit_peer_pli(v);
		run(p, &e, 20000);
	}
	do {
		held = KIT_SUM(p, keyframes_held);
		kit_peer_pli(v);
		run(p, &e, 20000);
	} while (KIT_SUM(p, keyframes_held) == held);
	before = e.asked;
	e.peer->next_index[MEDIA_VIDEO] += 600;
	run(p, &e, 1000000);
	cr_expect_gt(e.asked, before);
	kit_plane_close(p);
}
