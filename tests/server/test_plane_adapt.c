#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/server/kit_layers.h"
#include "tests/server/kit_link.h"

TestSuite(plane_adapt, .timeout = 120);

enum { S = 1000000, PICTURES_PER_S = 30, HALF_RTT_US = 20000, QUEUE_BYTES = 75000 };

/* About 180, 360 and 720 kbit/s. */
static const struct kit_layers_config three = {
	.codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 1, .payload_bytes = 280
};
static const struct kit_peer_config answering = {
	.audio = true, .video = true, .rtx = true, .transport_cc = true
};
static const struct impair_profile narrow = { .delay_us = HALF_RTT_US,
					      .rate_kbps = 400,
					      .queue_bytes = QUEUE_BYTES };
static const struct impair_profile wide = { .delay_us = HALF_RTT_US };

struct room {
	struct kit_plane *p;
	struct kit_layers *source;
	struct kit_peer *peer;
	struct viewer *viewer;
	struct kit_decoder *decoder;
	struct kit_link *link;
};

static void open_room(struct room *r, const struct kit_layers_config *source,
		      const struct kit_peer_config *viewer, const struct impair_profile *profile)
{
	r->p = kit_plane_open("", 1);
	r->source = kit_layers_join(r->p, "live", source, 1);
	kit_layers_pictures(r->source, 30);
	r->peer = kit_peer_join(r->p, "live", viewer);
	r->viewer = kit_viewer_of(r->p, r->peer);
	cr_assert(r->viewer);
	r->decoder = kit_decoder_create(r->peer);
	r->link = kit_link_create(r->peer, profile, 5);
}

static void close_room(struct room *r)
{
	kit_link_destroy(r->link);
	kit_decoder_destroy(r->decoder);
	kit_layers_drop(r->source);
	kit_plane_close(r->p);
}

static void run(struct room *r, unsigned seconds)
{
	for (unsigned i = 0; i < seconds * PICTURES_PER_S; i++) {
		kit_layers_picture(r->source);
		kit_decoder_run(r->decoder);
		cr_assert_str_eq(r->decoder->error, "");
	}
}

static uint64_t estimate_bps(const struct room *r)
{
	return counter_read(&r->viewer->session->plan->stats.estimate_bps);
}

static unsigned encoding_of(const struct room *r)
{
	return r->viewer->layers->encoding;
}

/* Seconds until the viewer gets that encoding, at most `most`. */
static unsigned seconds_until(struct room *r, unsigned encoding, unsigned most)
{
	unsigned seconds = 0;

	for (; seconds < most && encoding_of(r) != encoding; seconds++)
		run(r, 1);
	return seconds;
}

Test(plane_adapt, a_limited_viewer_settles_on_what_fits_and_climbs)
{
	unsigned climbed, switches;
	uint32_t queued_us;
	struct room r;

	open_room(&r, &three, &answering, &narrow);
	run(&r, 5);
	cr_expect_eq(encoding_of(&r), 0);
	switches = r.decoder->switches;
	run(&r, 25);
	cr_expect_eq(encoding_of(&r), 0);
	cr_expect_eq(r.decoder->switches, switches);
	cr_expect(estimate_bps(&r) > 250000 && estimate_bps(&r) < 450000, "%lu", estimate_bps(&r));
	queued_us = kit_link_queued_us(r.link, 95);
	cr_expect_lt(queued_us, 300000);
	cr_expect_gt(r.decoder->pictures, 27 * PICTURES_PER_S);
	kit_link_set(r.link, &wide);
	climbed = seconds_until(&r, 2, 20);
	cr_expect_leq(climbed, 15);
	run(&r, 10);
	cr_expect_eq(encoding_of(&r), 2);
	printf(
	    "layers of 190, 370 and 700 kbit/s behind 400: p95 of the queue %u ms, all of it %u s "
	    "after the limit was lifted, %lu probe packets, %u pictures, none undecodable\n",
	    queued_us / 1000, climbed, KIT_SUM(r.p, probe_packets), r.decoder->pictures);
	cr_expect_gt(KIT_SUM(r.p, feedback_received), 500);
	cr_expect_eq(KIT_SUM(r.p, feedback_unusable), 0);
	close_room(&r);
}

Test(plane_adapt, a_good_link_gets_the_best_within_two_seconds)
{
	struct room r;

	open_room(&r, &three, &answering, &wide);
	run(&r, 1);
	cr_expect_leq(seconds_until(&r, 2, 10), 1);
	run(&r, 20);
	cr_expect_eq(encoding_of(&r), 2);
	cr_expect_leq(r.decoder->switches, 2);
	close_room(&r);
}

Test(plane_adapt, a_link_that_turns_bad_is_left_to_a_lower_layer)
{
	struct room r;

	open_room(&r, &three, &answering, &wide);
	run(&r, 15);
	cr_expect_eq(encoding_of(&r), 2);
	kit_link_set(r.link, &narrow);
	cr_expect_leq(seconds_until(&r, 0, 10), 4);
	run(&r, 10);
	(void)kit_link_queued_us(r.link, 95);
	run(&r, 20);
	cr_expect_eq(encoding_of(&r), 0);
	cr_expect_lt(kit_link_queued_us(r.link, 95), 300000);
	close_room(&r);
}

/* The link is narrow again as soon as it went up, and wide once more: that failure does not count there. */
Test(plane_adapt, a_failure_does_not_keep_it_from_climbing_when_the_limit_is_lifted)
{
	struct room r;
	unsigned climbed;

	open_room(&r, &three, &answering, &narrow);
	run(&r, 15);
	kit_link_set(r.link, &wide);
	cr_assert_leq(seconds_until(&r, 2, 20), 15);
	kit_link_set(r.link, &narrow);
	run(&r, 8);
	cr_assert_eq(encoding_of(&r), 0);
	kit_link_set(r.link, &wide);
	climbed = seconds_until(&r, 2, 40);
	printf("lifted 8 s after a failure: all of it %u s later\n", climbed);
	cr_expect_leq(climbed, 15);
	close_room(&r);
}

/* As OBS: agreed on, never sent. What remains are reports without loss. */
Test(plane_adapt, feedback_that_never_comes_is_not_waited_for)
{
	struct room r;

	open_room(&r, &three, &answering, &wide);
	kit_link_silence(r.link);
	run(&r, 1);
	cr_expect_lt(seconds_until(&r, 2, 60), 60);
	cr_expect_eq(KIT_SUM(r.p, feedback_received), 0);
	close_room(&r);
}

/* About 360 and 720 kbit/s: more than is assumed of a link before anything is known. */
static const struct kit_layers_config large = {
	.codec = CODEC_VP8, .encodings = 2, .spatial = 1, .temporal = 1, .payload_bytes = 560
};

Test(plane_adapt, who_cannot_tell_is_not_denied_the_cheapest)
{
	static const struct kit_peer_config telling_nothing = { .audio = true,
								.video = true,
								.rtx = true };
	struct room r;

	open_room(&r, &large, &telling_nothing, &wide);
	run(&r, 5);
	cr_expect_eq(KIT_SUM(r.p, layer_pauses), 0);
	cr_expect_gt(r.decoder->pictures, 4 * PICTURES_PER_S);
	close_room(&r);
}

Test(plane_adapt, video_that_was_paused_comes_back_with_the_rate)
{
	struct impair_profile tiny = narrow;
	unsigned pictures, seconds = 0;
	struct room r;

	tiny.rate_kbps = 150;
	open_room(&r, &large, &answering, &tiny);
	run(&r, 1);
	while (!r.viewer->layers->is_paused && seconds++ < 20)
		run(&r, 1);
	cr_assert(r.viewer->layers->is_paused);
	kit_link_set(r.link, &wide);
	for (seconds = 0; r.viewer->layers->is_paused && seconds < 60; seconds++)
		run(&r, 1);
	cr_expect_lt(seconds, 30);
	pictures = r.decoder->pictures;
	run(&r, 10);
	cr_expect_gt(r.decoder->pictures, pictures + 8 * PICTURES_PER_S);
	close_room(&r);
}

/* Does every packet of the video that came have this extension? -1: some have. */
static int has_everywhere(const struct kit_peer *peer, enum ext_kind kind)
{
	size_t with = 0, all = 0;

	for (size_t i = 0; i < peer->packet_count; i++) {
		if (peer->packets[i].kind != MEDIA_VIDEO)
			continue;
		all++;
		with += ext_has(&peer->packets[i].ext, kind);
	}
	cr_assert_gt(all, 100);
	return with == all ? 1 : with == 0 ? 0 : -1;
}

static const struct {
	const char *name;
	struct kit_peer_config viewer;
	unsigned encodings;
	bool has_number, has_time, is_looked_after;
} stamps[] = {
	{ "transport-cc",
	  { .audio = true, .video = true, .rtx = true, .transport_cc = true },
	  3,
	  true,
	  false,
	  true },
	{ "REMB",
	  { .audio = true, .video = true, .rtx = true, .remb = true },
	  3,
	  false,
	  true,
	  true },
	{ "both agreed",
	  { .audio = true, .video = true, .rtx = true, .transport_cc = true, .remb = true },
	  3,
	  true,
	  false,
	  true },
	{ "plain repeats",
	  { .audio = true, .video = true, .transport_cc = true, .remb = true },
	  3,
	  false,
	  false,
	  true },
	{ "nothing agreed", { .audio = true, .video = true, .rtx = true }, 3, false, false, true },
	{ "one layer",
	  { .audio = true, .video = true, .rtx = true, .transport_cc = true, .remb = true },
	  1,
	  false,
	  false,
	  false },
};

Test(plane_adapt, packets_are_stamped_only_where_it_is_of_use)
{
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
		struct kit_layers_config source = three;
		struct kit_plane *p = kit_plane_open("", 1);
		struct kit_layers *l;
		struct kit_peer *viewer;

		source.encodings = stamps[i].encodings;
		l = kit_layers_join(p, "live", &source, 1);
		kit_layers_pictures(l, 60);
		viewer = kit_peer_join(p, "live", &stamps[i].viewer);
		kit_layers_pictures(l, 90);
		cr_expect_eq(has_everywhere(viewer, EXT_TRANSPORT_CC), stamps[i].has_number, "%s",
			     stamps[i].name);
		cr_expect_eq(has_everywhere(viewer, EXT_ABS_SEND_TIME), stamps[i].has_time, "%s",
			     stamps[i].name);
		cr_expect_eq(KIT_SUM(p, adaptive_viewers), stamps[i].is_looked_after, "%s",
			     stamps[i].name);
		kit_layers_drop(l);
		kit_plane_close(p);
	}
}

Test(plane_adapt, nonsense_for_feedback_is_counted)
{
	static const uint8_t bad[] = { 0x8f, 205, 0, 4, 0, 0, 0, 1, 0, 0,
				       0,    2,   0, 9, 0, 0, 0, 0, 0, 0 };
	struct room r;

	open_room(&r, &three, &answering, &wide);
	run(&r, 2);
	kit_peer_send_rtcp(r.peer, bad, sizeof(bad));
	kit_plane_settle(r.p);
	cr_expect_eq(KIT_SUM(r.p, feedback_unusable), 1);
	run(&r, 2);
	close_room(&r);
}
