#include <criterion/criterion.h>

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
	r->decoder = kit_decoder_create(r->peer, loss_percent, 7);
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

/* Wants something else every so often; counts on the kit's decoder for the rest. */
static void switch_about(struct room *r, unsigned wants, uint64_t seed)
{
	const struct kit_layers_config *c = &r->source->config;

	for (unsigned i = 0; i < wants; i++) {
		unsigned encoding = kit_dice(&seed, c->encodings);
		unsigned spatial = kit_dice(&seed, c->spatial);
		unsigned temporal = kit_dice(&seed, c->temporal);
		unsigned target = layers_number(spatial, temporal);

		cr_assert_eq(viewer_want(r->viewer, encoding, target), 0);
		run(r, 25);
		cr_expect_eq(r->viewer->layers->encoding, encoding, "want %u", i);
		cr_expect_eq(r->viewer->layers->target, target, "want %u", i);
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
