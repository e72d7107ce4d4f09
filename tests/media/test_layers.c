#include "media/layers.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "media/packet.h"
#include "tests/fault.h"
#include "tests/hex.h"
#include "tests/media/flow.h"
#include "tests/media/kit_dd.h"

static struct layers *l;
static struct slab slab;
static const struct media_packet *const p = (const void *)slab.meta;

static void setup(void)
{
	cr_assert_eq(layers_create(&l, false), 0);
}

static void teardown(void)
{
	layers_destroy(l);
}

TestSuite(layers, .init = setup, .fini = teardown, .timeout = 10);

enum { DESCRIPTOR_AT = 16, PAYLOAD_AT = 300 };

/* One packet: a payload in hex, and a dependency descriptor or none. */
static enum dd_verdict feed(enum media_codec codec, const char *hex, bool marker,
			    const uint8_t *descriptor, size_t descriptor_bytes)
{
	struct rtp_packet rtp = { .payload_offset = PAYLOAD_AT, .marker = marker };
	struct ext_values ext = { 0 };
	struct codec_info info;

	rtp.payload_bytes = (uint16_t)hex_bytes(hex, slab.data + PAYLOAD_AT, 256);
	if (descriptor) {
		memcpy(slab.data + DESCRIPTOR_AT, descriptor, descriptor_bytes);
		ext.present = 1 << EXT_DEPENDENCY_DESCRIPTOR;
		ext.span[EXT_DEPENDENCY_DESCRIPTOR] =
		    (struct ext_span){ DESCRIPTOR_AT, (uint8_t)descriptor_bytes };
	}
	codec_inspect(codec, slab.data + PAYLOAD_AT, rtp.payload_bytes, &info);
	packet_describe(&slab, &rtp, &ext, codec, &info, 0);
	return layers_on_packet(l, &slab, &info);
}

static bool has_target(unsigned s, unsigned t)
{
	return layers_targets(l) >> layers_number(s, t) & 1;
}

static bool needs(unsigned s, unsigned t)
{
	return p->targets >> layers_number(s, t) & 1;
}

static bool contains(unsigned s, unsigned t, unsigned s2, unsigned t2)
{
	return layers_target(l, layers_number(s, t))->contains >> layers_number(s2, t2) & 1;
}

static bool may_enter(unsigned s, unsigned t, unsigned s2, unsigned t2)
{
	return packet_may_enter(p, layers_number(s, t), layers_number(s2, t2));
}

/* --- Without layers ------------------------------------------------------------------------ */

Test(layers, a_stream_that_tells_of_no_layers_has_one_target)
{
	cr_expect_eq(layers_targets(l), 0, "before any packet");
	feed(CODEC_H264, "67 42c01e 8c8d4050 1ed00f08 846a", false, NULL, 0);
	cr_expect_eq(layers_targets(l), 1);
	cr_expect_eq(layers_active(l), 1);
	cr_expect_eq(layers_target(l, 0)->width, 640);
	cr_expect_eq(layers_target(l, 0)->height, 480);
	cr_expect(p->targets == UINT32_MAX && p->switches == UINT32_MAX);
	feed(CODEC_H264, "41 9a", true, NULL, 0);
	cr_expect(p->targets == UINT32_MAX && p->switches == 0 && p->ends == UINT32_MAX);
}

Test(layers, padding_alone_is_left_as_it_was)
{
	cr_expect_eq(feed(CODEC_VP8, "", false, NULL, 0), DD_OK);
	cr_expect_eq(p->targets, UINT32_MAX);
	cr_expect_eq(layers_targets(l), 0);
}

Test(layers, memory_that_is_missing_is_said)
{
	struct layers *none;

	fault_after(0);
	cr_expect_eq(layers_create(&none, false), -ENOMEM);
	fault_after(-1);
	cr_expect_null(none);
	layers_destroy(NULL);
}

/* --- VP8 ----------------------------------------------------------------------------------- */

/* X, then L and T: TL0PICIDX 22, TID and Y in the last byte. */
#define VP8_KEY       "90 60 22 00 50e400 9d012a 8002e001"
#define VP8_T0        "90 60 22 00 51e400"
#define VP8_T1_SYNC   "90 60 22 60 51e400"
#define VP8_T1        "90 60 22 40 51e400"
#define VP8_T2        "b0 60 22 80 51e400"
#define VP8_T2_SYNC   "b0 60 22 a0 51e400"
#define VP8_T1_MIDDLE "80 60 22 60 51e400"

Test(layers, vp8_temporal_layers_are_targets)
{
	feed(CODEC_VP8, VP8_KEY, true, NULL, 0);
	cr_expect(has_target(0, 0) && !has_target(0, 1), "none but the base seen so far");
	cr_expect(needs(0, 0) && needs(0, 2) && may_enter(0, 0, 0, 2));
	feed(CODEC_VP8, VP8_T2, true, NULL, 0);
	cr_expect(!needs(0, 0) && !needs(0, 1) && needs(0, 2) && needs(0, 3));
	cr_expect(packet_has(p, PACKET_DISCARDABLE));
	feed(CODEC_VP8, VP8_T1, true, NULL, 0);
	cr_expect(!needs(0, 0) && needs(0, 1) && needs(0, 2));
	cr_expect(!may_enter(0, 0, 0, 1), "it refers to more than the base layer");
	feed(CODEC_VP8, VP8_T0, true, NULL, 0);
	cr_expect(needs(0, 0) && needs(0, 2) && !may_enter(0, 0, 0, 1));
	cr_expect_eq(layers_targets(l), 7);
	for (unsigned t = 0; t < 3; t++)
		cr_expect_eq(layers_target(l, t)->width, 640, "%u", t);
	cr_expect(contains(0, 2, 0, 0) && contains(0, 2, 0, 2) && !contains(0, 0, 0, 1));
}

Test(layers, vp8_layer_sync_lets_viewers_of_lower_layers_in)
{
	feed(CODEC_VP8, VP8_KEY, true, NULL, 0);
	feed(CODEC_VP8, VP8_T1_SYNC, true, NULL, 0);
	cr_expect(may_enter(0, 0, 0, 1) && !may_enter(0, 0, 0, 2));
	feed(CODEC_VP8, VP8_T1_MIDDLE, true, NULL, 0);
	cr_expect(needs(0, 1) && !may_enter(0, 0, 0, 1), "in the middle of a frame nobody begins");
	feed(CODEC_VP8, VP8_T2_SYNC, true, NULL, 0);
	cr_expect(may_enter(0, 0, 0, 2) && may_enter(0, 1, 0, 2));
}

Test(layers, another_codec_or_source_starts_anew)
{
	feed(CODEC_VP8, VP8_T2, true, NULL, 0);
	cr_expect(has_target(0, 2));
	feed(CODEC_H264, "41 9a", true, NULL, 0);
	cr_expect_eq(layers_targets(l), 1);
	feed(CODEC_VP8, VP8_T2, true, NULL, 0);
	layers_start(l);
	cr_expect_eq(layers_targets(l), 0);
}

/* --- VP9's own descriptor -------------------------------------------------------------------- */

/* I P L F B E V Z, picture id 1, layers T U S D, TL0PICIDX. Two spatial layers by the structure. */
#define VP9_KEY_S0    "aa 01 00 05 38 014000b4 02800168 01 04 01 82498342 2027f01df0"
#define VP9_KEY_S1    "ac 01 03 05 8600"
#define VP9_T0_S0     "e8 01 00 05 8600"
#define VP9_T0_S0_END "ec 01 00 05 8600"
#define VP9_T0_S1     "ec 01 03 05 8600"
#define VP9_T1_S0_UP  "e8 01 30 05 8600"
#define VP9_T0_S0_UP  "e8 01 10 05 8600"
#define VP9_T1_S0     "ec 01 20 05 8600"
#define VP9_T1_S1     "ec 01 23 05 8600"
#define VP9_T0_S0_Z   "ed 01 00 05 8600"
#define VP9_T0_S1_Z   "ed 01 02 05 8600"

Test(layers, vp9_layers_are_targets_each_with_its_size)
{
	feed(CODEC_VP9, VP9_KEY_S0, false, NULL, 0);
	cr_expect(packet_has(p, PACKET_KEYFRAME) && needs(0, 0) && needs(1, 0));
	cr_expect(may_enter(0, 0, 1, 1));
	feed(CODEC_VP9, VP9_KEY_S1, true, NULL, 0);
	cr_expect(!needs(0, 0) && needs(1, 0) && needs(3, 0), "above the top stands for the top");
	cr_expect(has_target(0, 0) && has_target(1, 0) && !has_target(1, 1));
	cr_expect_eq(layers_target(l, layers_number(0, 0))->width, 320);
	cr_expect_eq(layers_target(l, layers_number(1, 0))->height, 360);
	feed(CODEC_VP9, VP9_T1_S1, true, NULL, 0);
	cr_expect(!needs(1, 0) && needs(1, 1) && !needs(0, 1));
	cr_expect_eq(layers_target(l, layers_number(1, 1))->width, 640, "as its spatial layer");
	feed(CODEC_VP9, VP9_T1_S0, false, NULL, 0);
	cr_expect(contains(1, 1, 0, 1) && contains(1, 1, 1, 0) && contains(1, 0, 0, 0));
	cr_expect(!contains(0, 1, 1, 0) && !contains(1, 0, 0, 1));
}

Test(layers, vp9_pictures_end_where_the_targets_highest_layer_ends)
{
	feed(CODEC_VP9, VP9_KEY_S0, false, NULL, 0);
	cr_expect_eq(p->ends, 0, "its frame goes on");
	feed(CODEC_VP9, VP9_T0_S0_END, false, NULL, 0);
	cr_expect(p->ends >> layers_number(0, 0) & 1 && !(p->ends >> layers_number(1, 0) & 1));
	feed(CODEC_VP9, VP9_T0_S1, true, NULL, 0);
	cr_expect_eq(p->ends, UINT32_MAX);
}

Test(layers, vp9_goes_up_where_u_or_a_new_layer_allows_it)
{
	feed(CODEC_VP9, VP9_KEY_S0, false, NULL, 0);
	feed(CODEC_VP9, VP9_T0_S0, false, NULL, 0);
	cr_expect(!may_enter(0, 0, 0, 1) && !may_enter(0, 0, 1, 0));
	feed(CODEC_VP9, VP9_T0_S0_UP, false, NULL, 0);
	cr_expect(may_enter(0, 0, 0, 1) && may_enter(0, 0, 0, 2) && !may_enter(0, 0, 1, 0));
	feed(CODEC_VP9, VP9_T1_S0_UP, false, NULL, 0);
	cr_expect(may_enter(0, 1, 0, 2));
	cr_expect(!may_enter(0, 0, 0, 2), "they did not get this frame");
	feed(CODEC_VP9, VP9_T0_S1, true, NULL, 0);
	cr_expect(!may_enter(0, 0, 1, 0), "it refers to earlier pictures of its own layer");
	feed(CODEC_VP9, VP9_KEY_S1, true, NULL, 0);
	cr_expect(may_enter(0, 0, 1, 0), "it refers to the layer below alone");
}

Test(layers, vp9_in_key_mode_needs_lower_layers_at_key_pictures_only)
{
	feed(CODEC_VP9, VP9_KEY_S0, false, NULL, 0);
	feed(CODEC_VP9, VP9_KEY_S1, true, NULL, 0);
	cr_expect(contains(1, 0, 0, 0), "nothing says otherwise so far");
	feed(CODEC_VP9, VP9_T0_S0_Z, false, NULL, 0);
	cr_expect(needs(0, 0) && !needs(1, 0));
	cr_expect(!contains(1, 0, 0, 0), "going down has to wait");
	feed(CODEC_VP9, VP9_T0_S1_Z, true, NULL, 0);
	cr_expect(!needs(0, 0) && needs(1, 0) && needs(2, 0));
	feed(CODEC_VP9, VP9_KEY_S0, false, NULL, 0);
	cr_expect(needs(1, 0) && !contains(1, 0, 0, 0), "a key picture changes nothing");
	feed(CODEC_VP9, VP9_T0_S0, false, NULL, 0);
	cr_expect(contains(1, 0, 0, 0), "the mode changed");
}

Test(layers, vp9_structure_with_fewer_layers_takes_targets_away)
{
	feed(CODEC_VP9, VP9_KEY_S0, false, NULL, 0);
	feed(CODEC_VP9, VP9_KEY_S1, true, NULL, 0);
	cr_expect(has_target(1, 0));
	/* N_S 0: one layer of 320x180. */
	feed(CODEC_VP9, "ae 01 00 05 18 014000b4 01 04 01 82498342 2027f01df0", true, NULL, 0);
	cr_expect_eq(layers_targets(l), 1);
	cr_expect_eq(layers_target(l, 0)->width, 320);
}

/* --- The dependency descriptor --------------------------------------------------------------- */

static struct kit_dd dd;

/* One frame of one packet, of AV1: OBU frame with N on key pictures' first layer. */
static enum dd_verdict feed_frame(unsigned s, unsigned t, bool is_key)
{
	uint8_t descriptor[KIT_DD_BYTES];
	size_t bytes = kit_dd_write(&dd, s, t, is_key, descriptor);

	return feed(CODEC_AV1, is_key && s == 0 ? "18 30 00" : "10 30 00", s + 1 == dd.spatial,
		    descriptor, bytes);
}

static void feed_picture(unsigned t, bool is_key)
{
	for (unsigned s = 0; s < dd.spatial; s++)
		cr_assert_eq(feed_frame(s, t, is_key), DD_OK);
	kit_dd_next_picture(&dd);
}

Test(layers, a_structure_brings_all_targets_and_their_sizes)
{
	dd = (struct kit_dd){ .spatial = 3, .temporal = 3, .next_frame = 65530 };
	feed_picture(0, true);
	cr_expect_eq(layers_targets(l), 0x070707);
	cr_expect_eq(layers_active(l), 0x070707);
	cr_expect_eq(layers_target(l, layers_number(0, 2))->width, 160);
	cr_expect_eq(layers_target(l, layers_number(2, 0))->height, 360);
	cr_expect(contains(2, 2, 0, 0) && contains(1, 1, 0, 1) && !contains(1, 1, 0, 2));
	feed_picture(2, false);
	feed_picture(1, false);
	cr_expect(!needs(2, 0) && needs(2, 1) && needs(2, 2) && !needs(1, 2), "its top layer");
	cr_expect(needs(3, 5) && !needs(3, 0), "numbers there are not stand for the nearest");
	cr_expect(p->spatial_id == 2 && p->temporal_id == 1);
}

Test(layers, a_descriptor_limits_frames_and_pictures)
{
	dd = (struct kit_dd){ .spatial = 2, .temporal = 1 };
	feed_frame(0, 0, true);
	cr_expect(packet_has(p, PACKET_FRAME_START) && packet_has(p, PACKET_FRAME_END));
	cr_expect(packet_has(p, PACKET_KEYFRAME) && p->switches == UINT32_MAX);
	cr_expect(p->ends >> layers_number(0, 0) & 1 && !(p->ends >> layers_number(1, 0) & 1));
	feed_frame(1, 0, true);
	cr_expect_eq(p->ends, UINT32_MAX, "the sender's own marker");
	cr_expect(may_enter(0, 0, 1, 0), "all viewers have the layer below");
}

Test(layers, what_nothing_refers_to_is_discardable)
{
	dd = (struct kit_dd){ .spatial = 1, .temporal = 2 };
	feed_picture(0, true);
	cr_expect_not(packet_has(p, PACKET_DISCARDABLE));
	feed_picture(1, false);
	cr_expect(packet_has(p, PACKET_DISCARDABLE));
}

/* Packets whose structure is still missing go to everyone, and the late structure is taken. */
Test(layers, a_structure_may_come_late)
{
	uint8_t late[KIT_DD_BYTES];
	size_t late_bytes;

	dd = (struct kit_dd){ .spatial = 2, .temporal = 1 };
	feed_picture(0, true);
	dd.offset = 10; /* another structure, with one layer more */
	dd.temporal = 2;
	late_bytes = kit_dd_write(&dd, 0, 0, true, late);
	cr_expect_eq(feed_frame(1, 0, true), DD_UNKNOWN_TEMPLATE);
	cr_expect_eq(p->targets, UINT32_MAX);
	cr_expect(packet_has(p, PACKET_FRAME_START) && p->switches == 0);
	kit_dd_next_picture(&dd);
	cr_expect_eq(feed_frame(0, 1, false), DD_UNKNOWN_TEMPLATE);
	cr_expect(!has_target(1, 1));
	cr_expect_eq(feed(CODEC_AV1, "18 30 00", false, late, late_bytes), DD_OK);
	cr_expect(has_target(1, 1) && needs(0, 0) && packet_has(p, PACKET_KEYFRAME));
	cr_expect_eq(feed_frame(1, 1, false), DD_OK);
	cr_expect(needs(1, 1) && !needs(1, 0));
}

Test(layers, an_old_structure_that_comes_late_replaces_nothing)
{
	uint8_t old[KIT_DD_BYTES], old_frame[KIT_DD_BYTES];
	size_t old_bytes, old_frame_bytes;

	dd = (struct kit_dd){ .spatial = 1, .temporal = 3, .next_frame = 65535 };
	old_bytes = kit_dd_write(&dd, 0, 0, true, old);
	feed(CODEC_AV1, "18 30 00", true, old, old_bytes);
	kit_dd_next_picture(&dd);
	old_frame_bytes = kit_dd_write(&dd, 0, 2, false, old_frame);
	kit_dd_next_picture(&dd);
	dd = (struct kit_dd){ .spatial = 2, .temporal = 2, .offset = 30, .next_frame = 1 };
	feed_picture(0, true);
	cr_expect(has_target(1, 1) && !has_target(0, 2));
	cr_expect_eq(feed(CODEC_AV1, "10 30 00", true, old_frame, old_frame_bytes), DD_OK,
		     "read by the structure of its time");
	cr_expect(!needs(0, 1) && needs(0, 2));
	cr_expect_eq(feed(CODEC_AV1, "18 30 00", true, old, old_bytes), DD_OK);
	cr_expect(has_target(1, 1) && !has_target(0, 2));
	feed_picture(1, false);
	cr_expect(needs(1, 1) && !needs(0, 1));
}

Test(layers, targets_the_sender_stopped_are_not_active)
{
	/* T0 of a stream with two temporal layers: active_decode_targets 01. */
	uint8_t only_base[] = { 0xc0 | 1, 0, 1, 0x40 | 1 << 1 };

	dd = (struct kit_dd){ .spatial = 1, .temporal = 2 };
	feed_picture(0, true);
	cr_expect_eq(layers_active(l), 3);
	cr_expect_eq(feed(CODEC_AV1, "10 30 00", true, only_base, sizeof(only_base)), DD_OK);
	cr_expect_eq(layers_active(l), 1);
	cr_expect_eq(layers_targets(l), 3);
}

Test(layers, a_broken_descriptor_costs_the_layers_of_its_packet_only)
{
	static const uint8_t cut[] = { 0xc0, 0 };

	dd = (struct kit_dd){ .spatial = 2, .temporal = 1 };
	feed_picture(0, true);
	cr_expect_eq(feed(CODEC_AV1, "10 30 00", true, cut, sizeof(cut)), DD_MALFORMED);
	cr_expect_eq(p->targets, UINT32_MAX);
	feed_picture(0, false);
	cr_expect(needs(1, 0) && !needs(0, 0));
}

/* --- Encrypted payloads ---------------------------------------------------------------------- */

Test(layers, of_an_opaque_stream_the_descriptor_alone_counts)
{
	uint8_t descriptor[KIT_DD_BYTES];
	size_t bytes;

	layers_destroy(l);
	cr_assert_eq(layers_create(&l, true), 0);
	/* By chance the payload looks like a key frame with layers. */
	feed(CODEC_VP8, VP8_KEY, true, NULL, 0);
	cr_expect(!packet_has(p, PACKET_KEYFRAME) && !packet_has(p, PACKET_FRAME_START));
	cr_expect(p->switches == 0 && p->targets == UINT32_MAX);
	cr_expect_eq(layers_target(l, 0)->width, 0);
	dd = (struct kit_dd){ .spatial = 1, .temporal = 2 };
	bytes = kit_dd_write(&dd, 0, 0, true, descriptor);
	feed(CODEC_VP8, VP8_T2, true, descriptor, bytes);
	cr_expect(packet_has(p, PACKET_KEYFRAME) && packet_has(p, PACKET_FRAME_START));
	cr_expect(needs(0, 0) && p->switches == UINT32_MAX && p->temporal_id == 0);
	kit_dd_next_picture(&dd);
	bytes = kit_dd_write(&dd, 0, 1, false, descriptor);
	feed(CODEC_VP8, VP8_KEY, true, descriptor, bytes);
	cr_expect(!packet_has(p, PACKET_KEYFRAME) && !needs(0, 0) && needs(0, 1));
}

/* --- Whatever viewers do by the rules, they can decode ---------------------------------------- */

enum { VIEWERS = 40, PICTURES = 400, HELD = 256 };

struct watcher {
	unsigned target, wish;
	bool has[HELD]; /* by frame number */
};

static void maybe_switch(struct watcher *w)
{
	const struct layers_target *now;

	if (!packet_has(p, PACKET_FRAME_START))
		return;
	if (packet_may_enter(p, w->target, w->wish)) {
		w->target = w->wish;
		return;
	}
	if (!(layers_targets(l) >> w->target & 1))
		return;
	now = layers_target(l, w->target);
	if (now->contains >> w->wish & 1)
		w->target = w->wish;
}

/* The frame's references, read back from the descriptor. */
static void watch(struct watcher *w, const struct dd_structure *known, const uint8_t *descriptor,
		  size_t bytes, const char *mode)
{
	struct dd_structure s = *known;
	struct dd_info info;

	maybe_switch(w);
	cr_assert_eq(dd_parse(descriptor, bytes, &s, &info), DD_OK);
	w->has[info.frame_number % HELD] = false;
	if (!(p->targets >> w->target & 1))
		return;
	w->has[info.frame_number % HELD] = true;
	for (unsigned i = 0; i < info.frame.fdiff_count; i++)
		cr_assert(w->has[(uint16_t)(info.frame_number - info.frame.fdiffs[i]) % HELD],
			  "%s: frame %u of layer %u.%u for target %u", mode, info.frame_number,
			  info.frame.spatial_id, info.frame.temporal_id, w->target);
}

static void run_mode(struct kit_dd mode, const char *name)
{
	static const unsigned pattern[] = { 0, 2, 1, 2 };
	static struct watcher watchers[VIEWERS];
	struct dd_structure known = { 0 };
	uint64_t random = 7;

	memset(watchers, 0, sizeof(watchers));
	layers_start(l);
	dd = mode;
	for (unsigned i = 0; i < PICTURES; i++) {
		bool is_key = i % 100 == 0;
		unsigned t = pattern[i % 4] * (dd.temporal - 1) / 2;

		for (unsigned s = 0; s < dd.spatial; s++) {
			uint8_t descriptor[KIT_DD_BYTES];
			size_t bytes = kit_dd_write(&dd, s, t, is_key, descriptor);
			struct dd_info info;

			feed(CODEC_AV1, is_key && s == 0 ? "18 30 00" : "10 30 00",
			     s + 1 == dd.spatial, descriptor, bytes);
			cr_assert_eq(dd_parse(descriptor, bytes, &known, &info), DD_OK);
			for (unsigned v = 0; v < VIEWERS; v++) {
				if (flow_random(&random) % 20 == 0)
					watchers[v].wish =
					    layers_number(flow_random(&random) % dd.spatial,
							  flow_random(&random) % dd.temporal);
				watch(&watchers[v], &known, descriptor, bytes, name);
			}
		}
		kit_dd_next_picture(&dd);
	}
}

Test(layers, no_switch_that_is_allowed_leads_to_a_frame_that_cannot_be_decoded)
{
	run_mode((struct kit_dd){ .spatial = 1, .temporal = 3 }, "L1T3");
	run_mode((struct kit_dd){ .spatial = 2, .temporal = 2, .next_frame = 65500 }, "L2T2");
	run_mode((struct kit_dd){ .spatial = 3, .temporal = 3 }, "L3T3");
	run_mode((struct kit_dd){ .spatial = 3, .temporal = 3, .is_key_mode = true }, "L3T3_KEY");
	run_mode((struct kit_dd){ .spatial = 3, .temporal = 1, .is_key_mode = true }, "L3T1_KEY");
}
