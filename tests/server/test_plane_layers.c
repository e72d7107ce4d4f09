#include <criterion/criterion.h>
#include <errno.h>

#include "tests/server/kit_layers.h"

TestSuite(plane_layers, .timeout = 120);

static const struct kit_peer_config with_rtx = { .audio = true, .video = true, .rtx = true };

static const struct kit_layers_config vp8 = {
	.codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 3
};

struct room {
	struct kit_plane *p;
	struct kit_layers *source;
	struct kit_peer *peer;
	struct viewer *viewer;
	struct kit_decoder *decoder;
};

static void open_room(struct room *r, const struct kit_layers_config *config,
		      const struct kit_peer_config *viewer, unsigned loss_percent)
{
	r->p = kit_plane_open("", 1);
	r->source = kit_layers_join(r->p, "live", config, 1);
	kit_layers_pictures(r->source, 5);
	r->peer = kit_peer_join(r->p, "live", viewer);
	r->viewer = kit_viewer_of(r->p, r->peer);
	cr_assert(r->viewer);
	r->decoder = kit_decoder_create(r->peer);
	r->peer->loss_percent = loss_percent;
}

static void close_room(struct room *r)
{
	kit_decoder_destroy(r->decoder);
	kit_layers_drop(r->source);
	kit_plane_close(r->p);
}

static void run(struct room *r, unsigned pictures)
{
	while (pictures--) {
		kit_layers_picture(r->source);
		kit_decoder_run(r->decoder);
		cr_assert_str_eq(r->decoder->error, "");
	}
}

static uint64_t counted(const struct room *r, size_t offset)
{
	return kit_plane_sum(r->p, offset);
}

Test(plane_layers, without_a_choice_the_best_encoding_is_sent)
{
	static const struct kit_layers_config reversed = {
		.codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 1, .is_reversed = true
	};
	static const struct kit_layers_config by_ssrc = {
		.codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 1, .by_ssrc = true
	};
	static const struct kit_layers_config *const rows[] = { &vp8, &reversed, &by_ssrc };

	for (size_t i = 0; i < 3; i++) {
		struct room r;

		open_room(&r, rows[i], &with_rtx, 0);
		run(&r, 60);
		cr_expect_gt(r.decoder->of_encoding[2], 20, "row %zu", i);
		cr_expect_leq(r.decoder->switches, 1, "row %zu", i);
		cr_expect_gt(r.decoder->pictures, 50, "row %zu", i);
		close_room(&r);
	}
}

static void wish(struct room *r, int encoding, int spatial, int temporal)
{
	struct choice_wish wish = {
		(int8_t)encoding, (int8_t)spatial, (int8_t)temporal, 0, 0, 0, 0
	};

	viewer_set_wish(r->viewer, &wish);
}

/* Wants something else every so often; counts on the kit's decoder for the rest. */
static void switch_about(struct room *r, unsigned wants, uint64_t seed)
{
	const struct kit_layers_config *c = &r->source->config;

	run(r, 60); /* until all are known */
	for (unsigned i = 0; i < wants; i++) {
		unsigned encoding = kit_dice(&seed, c->encodings);
		unsigned spatial = kit_dice(&seed, c->spatial);
		unsigned temporal = kit_dice(&seed, c->temporal);
		unsigned target = layers_number(spatial, temporal);

		wish(r, (int)encoding, (int)spatial, (int)temporal);
		/* The key frame may get lost, too, and be asked for again. */
		run(r, c->loss_percent ? 60 : 25);
		cr_expect_eq(r->viewer->layers->encoding, encoding, "codec %u, want %u", c->codec,
			     i);
		cr_expect_eq(r->viewer->layers->target, target, "codec %u, want %u", c->codec, i);
		run(r, kit_dice(&seed, 12));
	}
}

static const struct {
	const char *name;
	struct kit_layers_config config;
} codecs[] = {
	{ "VP8", { .codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 3 } },
	{ "H264", { .codec = CODEC_H264, .encodings = 3, .spatial = 1, .temporal = 1 } },
	{ "VP9", { .codec = CODEC_VP9, .encodings = 1, .spatial = 3, .temporal = 3 } },
	{ "VP8 by SSRC",
	  { .codec = CODEC_VP8, .encodings = 2, .spatial = 1, .temporal = 2, .by_ssrc = true } },
};

enum { CODEC_ROWS = sizeof(codecs) / sizeof(codecs[0]) };

Test(plane_layers, fifty_switches_leave_no_frame_undecodable)
{
	for (size_t i = 0; i < CODEC_ROWS; i++) {
		struct room r;

		open_room(&r, &codecs[i].config, &with_rtx, 0);
		switch_about(&r, 50, i);
		cr_expect_gt(r.decoder->pictures, 600, "%s: %u", codecs[i].name,
			     r.decoder->pictures);
		cr_expect_eq(kit_decoder_missing(r.decoder), 0, "%s", codecs[i].name);
		cr_expect_eq(counted(&r, offsetof(struct worker_counters, nacks_received)), 0);
		cr_expect_eq(r.decoder->paddings, 0, "%s", codecs[i].name);
		close_room(&r);
	}
}

/* What is lost on either side comes by repair, under its own number, whatever the viewer gets by then. */
Test(plane_layers, losses_on_both_sides_are_repaired_across_switches)
{
	static const struct kit_peer_config without_rtx = { .audio = true, .video = true };

	for (size_t i = 0; i < 2 * CODEC_ROWS; i++) {
		struct kit_layers_config config = codecs[i / 2].config;
		struct room r;

		config.loss_percent = 2;
		open_room(&r, &config, i % 2 ? &without_rtx : &with_rtx, 3);
		r.decoder->may_skip_pictures = true;
		switch_about(&r, 50, i);
		r.peer->loss_percent = r.source->config.loss_percent = 0;
		run(&r, 60);
		cr_expect_gt(r.decoder->pictures, 600, "%s", codecs[i / 2].name);
		cr_expect(config.codec == CODEC_H264 || r.decoder->paddings > 0,
			  "%s: late and unwanted", codecs[i / 2].name);
		cr_expect_gt(r.peer->lost, 50, "%s", codecs[i / 2].name);
		cr_expect_leq(kit_decoder_missing(r.decoder), 1, "%s: %lu", codecs[i / 2].name,
			      (unsigned long)kit_decoder_missing(r.decoder));
		cr_expect_eq(r.peer->verdicts[TRANSPORT_DROP_SRTP_AUTH], 0);
		close_room(&r);
	}
}

/* Each encoding is repaired, also those that no viewer gets. */
Test(plane_layers, every_encoding_is_repaired_and_asked_by_its_own_name)
{
	struct kit_layers_config config = vp8;
	unsigned plis[KIT_ENCODINGS];
	struct room r;

	config.loss_percent = 5;
	open_room(&r, &config, &with_rtx, 0);
	r.decoder->may_skip_pictures = true;
	run(&r, 100);
	for (unsigned e = 0; e < 3; e++) {
		unsigned asked = 0;

		for (size_t i = 0; i < r.source->peer->nack_count; i++)
			asked += r.source->peer->nack_ssrcs[i] == r.source->encodings[e].ssrc;
		cr_expect_gt(asked, 5, "encoding %u", e);
		plis[e] = r.source->encodings[e].plis;
	}
	cr_assert_eq(viewer_want(r.viewer, 0, VIEWER_TOP), 0);
	run(&r, 60);
	cr_expect_gt(r.source->encodings[0].plis, plis[0]);
	cr_expect_eq(r.source->encodings[1].plis, plis[1]);
	cr_expect_eq(r.source->encodings[2].plis, plis[2]);
	cr_expect_gt(r.decoder->of_encoding[0], 40);
	close_room(&r);
}

Test(plane_layers, a_packet_that_names_its_encoding_is_believed_against_the_group)
{
	static const struct kit_layers_config config = {
		.codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 1, .by_both = true
	};
	struct room r;

	open_room(&r, &config, &with_rtx, 0);
	run(&r, 30);
	for (unsigned e = 0; e < 3; e++) {
		wish(&r, (int)e, CHOICE_ANY, CHOICE_ANY);
		run(&r, 30);
		cr_expect_eq(r.decoder->last->encoding, e);
	}
	close_room(&r);
}

Test(plane_layers, an_encoding_that_stops_is_left_within_half_a_second)
{
	struct room r;

	open_room(&r, &vp8, &with_rtx, 0);
	run(&r, 30);
	wish(&r, 2, CHOICE_ANY, CHOICE_ANY);
	run(&r, 60);
	cr_expect_eq(r.decoder->last->encoding, 2);
	r.decoder->longest_us = 0;
	r.source->encodings[2].is_silent = true;
	run(&r, 30);
	cr_expect_eq(r.decoder->last->encoding, 1, "the next one below");
	cr_expect_leq(r.decoder->longest_us, 500000);
	/* The one in the middle as well. */
	r.decoder->longest_us = 0;
	r.source->encodings[1].is_silent = true;
	run(&r, 30);
	cr_expect_eq(r.decoder->last->encoding, 0);
	cr_expect_leq(r.decoder->longest_us, 500000);
	/* What was wanted is sent again: back to it, past what is still missing. */
	r.source->encodings[2].is_silent = false;
	r.decoder->longest_us = 0;
	run(&r, 30);
	cr_expect_eq(r.decoder->last->encoding, 2);
	cr_expect_leq(r.decoder->longest_us, 200000, "%lu", r.decoder->longest_us);
	close_room(&r);
}

Test(plane_layers, all_encodings_silent_is_no_reason_to_leave_one)
{
	struct room r;

	open_room(&r, &vp8, &with_rtx, 0);
	run(&r, 30);
	for (unsigned e = 0; e < 3; e++)
		r.source->encodings[e].is_silent = true;
	run(&r, 60);
	for (unsigned e = 0; e < 3; e++)
		r.source->encodings[e].is_silent = false;
	r.decoder->switches = 0;
	run(&r, 60);
	cr_expect_eq(r.decoder->switches, 0);
	cr_expect_eq(r.decoder->last->encoding, 2);
	close_room(&r);
}

Test(plane_layers, video_pauses_behind_a_picture_and_resumes_with_a_key_frame)
{
	for (size_t i = 0; i < CODEC_ROWS; i++) {
		struct room r;
		unsigned pictures, keyframes;

		open_room(&r, &codecs[i].config, &with_rtx, 0);
		run(&r, 30);
		for (unsigned turn = 0; turn < 5; turn++) {
			cr_assert_eq(viewer_want(r.viewer, 0, VIEWER_TOP | VIEWER_PAUSED), 0);
			run(&r, 2);
			pictures = r.decoder->pictures;
			keyframes = r.decoder->keyframes;
			cr_expect_not(r.decoder->is_open, "%s", codecs[i].name);
			run(&r, 30 + turn);
			cr_expect_eq(r.decoder->pictures, pictures, "%s", codecs[i].name);
			cr_assert_eq(viewer_want(r.viewer, 0, VIEWER_TOP), 0);
			run(&r, 20);
			cr_expect_gt(r.decoder->pictures, pictures + 10, "%s", codecs[i].name);
			cr_expect_gt(r.decoder->keyframes, keyframes, "%s", codecs[i].name);
		}
		cr_expect_eq(kit_decoder_missing(r.decoder), 0);
		cr_expect_eq(counted(&r, offsetof(struct worker_counters, layer_pauses)), 5);
		close_room(&r);
	}
}

Test(plane_layers, publishers_with_more_and_fewer_encodings_follow_each_other)
{
	static const unsigned counts[] = { 3, 1, 2, 3, 1 };
	struct kit_layers_config config = vp8;
	struct kit_layers *before = NULL;
	struct room r;

	open_room(&r, &config, &with_rtx, 0);
	run(&r, 60);
	for (size_t i = 1; i < sizeof(counts) / sizeof(counts[0]); i++) {
		before = r.source;
		config.encodings = counts[i];
		r.source = kit_layers_join(r.p, "live", &config, i);
		r.decoder->longest_us = 0;
		run(&r, 90);
		cr_expect_eq(r.decoder->last->encoding, counts[i] - 1u, "%u encodings", counts[i]);
		/* The newest one, or the newest of fewer temporal layers. */
		cr_expect_geq(r.decoder->last->picture + 4, r.source->picture);
		kit_layers_drop(before);
	}
	cr_expect_eq(kit_decoder_missing(r.decoder), 0);
	close_room(&r);
}

Test(plane_layers, viewers_of_another_worker_choose_as_well)
{
	struct kit_peer_config far = with_rtx;
	struct room r;

	far.worker = 1;
	r.p = kit_plane_open("", 2);
	r.source = kit_layers_join(r.p, "live", &vp8, 1);
	kit_layers_pictures(r.source, 60);
	r.peer = kit_peer_join(r.p, "live", &far);
	r.viewer = kit_viewer_of(r.p, r.peer);
	r.decoder = kit_decoder_create(r.peer);
	run(&r, 30);
	cr_assert_not_null(r.viewer->branch->table, "the table came with what was seeded");
	cr_expect_geq(r.viewer->branch->table->count, 3);
	switch_about(&r, 10, 3);
	close_room(&r);
}

static struct kit_wire_answer stumble(void *arg, unsigned offered)
{
	uint64_t draw = kit_dice(arg, 16);

	if (draw == 0)
		return (struct kit_wire_answer){ 0, EAGAIN };
	if (draw == 1)
		return (struct kit_wire_answer){ 0, EINVAL };
	if (draw == 2)
		return (struct kit_wire_answer){ 0, ENOBUFS };
	return (struct kit_wire_answer){ draw < 6 ? 1 : offered, 0 };
}

/* Visits that stop anywhere and are taken up again: the record of seals asserts that no number is
 * sealed with two contents, the decoder that nothing is missing in between. */
Test(plane_layers, a_socket_that_blocks_changes_nothing)
{
	for (size_t i = 0; i < CODEC_ROWS; i++) {
		struct kit_layers_config config = codecs[i].config;
		uint64_t seed = i;
		struct room r;

		config.loss_percent = 1;
		open_room(&r, &config, &with_rtx, 1);
		r.decoder->may_skip_pictures = true;
		cr_assert_eq(viewer_want(r.viewer, 0, VIEWER_TOP), 0);
		kit_wire_on_send(stumble, &seed);
		for (unsigned n = 0; n < 1000; n++) {
			unsigned encoding =
			    n % 25 ? r.viewer->layers->goal.encoding : kit_dice(&seed, 3);

			cr_assert_eq(
			    viewer_want(r.viewer, encoding, kit_dice(&seed, LAYERS_TARGETS)), 0);
			if (n % 3 == 0)
				kit_wire_unblock();
			run(&r, 1);
		}
		kit_wire_on_send(NULL, NULL);
		kit_wire_unblock();
		r.peer->loss_percent = r.source->config.loss_percent = 0;
		run(&r, 60);
		cr_expect_gt(r.decoder->pictures, 500, "%s: %u", codecs[i].name,
			     r.decoder->pictures);
		cr_expect_leq(kit_decoder_missing(r.decoder), 1, "%s", codecs[i].name);
		close_room(&r);
	}
}

/* A key frame that waited for the socket longer than the picture before it may lag is no reason to leave
 * that picture: the rest of it is here. */
Test(plane_layers, a_socket_that_blocks_for_long_cuts_no_picture)
{
	for (size_t i = 0; i < CODEC_ROWS; i++) {
		struct kit_layers_config config = codecs[i].config;
		struct kit_peer_config paced = with_rtx;
		uint64_t seed = i;
		struct room r;

		paced.transport_cc = true;
		config.payload_bytes = 300;
		open_room(&r, &config, &paced, 0);
		run(&r, 60);
		kit_wire_on_send(stumble, &seed);
		for (unsigned n = 0; n < 600; n++) {
			cr_assert_eq(viewer_want(r.viewer, kit_dice(&seed, 3), VIEWER_TOP), 0);
			kit_wire_unblock();
			run(&r, 5);
		}
		kit_wire_on_send(NULL, NULL);
		kit_wire_unblock();
		run(&r, 60);
		cr_expect_leq(kit_decoder_missing(r.decoder), 1, "%s", codecs[i].name);
		close_room(&r);
	}
}

/* Nor does a viewer take what it got of a picture for all of it where the rest never comes. */
Test(plane_layers, a_picture_that_is_given_up_leaves_a_gap)
{
	struct kit_layers_config config = vp8;
	struct room r;

	config.loss_percent = 9;
	open_room(&r, &config, &with_rtx, 0);
	r.decoder->may_skip_pictures = true;
	for (unsigned n = 0; n < 200; n++) {
		cr_assert_eq(viewer_want(r.viewer, n % 3, VIEWER_TOP), 0);
		run(&r, 8);
	}
	cr_expect_gt(r.decoder->switches, 50);
	close_room(&r);
}

Test(plane_layers, a_long_stay_takes_no_more_memory)
{
	size_t viewer_before, branch_before, publisher_before;
	struct room r;

	open_room(&r, &vp8, &with_rtx, 0);
	switch_about(&r, 10, 1);
	viewer_before = viewer_bytes(r.viewer);
	branch_before = branch_bytes(r.viewer->branch);
	publisher_before = counted(&r, offsetof(struct worker_counters, session_bytes));
	switch_about(&r, 100, 2);
	cr_expect_eq(viewer_bytes(r.viewer), viewer_before);
	cr_expect_eq(branch_bytes(r.viewer->branch), branch_before);
	cr_expect_eq(counted(&r, offsetof(struct worker_counters, session_bytes)),
		     publisher_before);
	close_room(&r);
}

Test(plane_layers, a_stream_without_a_choice_costs_its_viewers_nothing)
{
	static const struct kit_layers_config plain = {
		.codec = CODEC_VP8, .encodings = 1, .spatial = 1, .temporal = 1
	};
	struct room r;

	open_room(&r, &plain, &with_rtx, 0);
	run(&r, 60);
	cr_expect_null(r.viewer->layers);
	cr_expect_null(r.viewer->branch->table);
	cr_expect_gt(r.decoder->pictures, 50);
	close_room(&r);
}
