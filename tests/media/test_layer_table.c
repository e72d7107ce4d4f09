#include "media/layer_table.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/fault.h"
#include "tests/media/flow.h"

enum { FRAME_US = 33333, FRAME_TICKS = 3000, OVERHEAD_BYTES = 40 };

static struct layer_meter *m;
static struct layers *layers[LAYER_ENCODINGS];
static struct layer_table table;
static struct slab slab;
static uint64_t now_us;
static uint64_t published; /* tables so far */
static uint64_t published_us;
static uint32_t timestamp;

static void setup(void)
{
	cr_assert_eq(layer_meter_create(&m), 0);
	for (unsigned i = 0; i < LAYER_ENCODINGS; i++)
		cr_assert_eq(layers_create(&layers[i], false), 0);
	now_us = 1000000;
}

static void teardown(void)
{
	layer_meter_destroy(m);
	for (unsigned i = 0; i < LAYER_ENCODINGS; i++)
		layers_destroy(layers[i]);
}

TestSuite(layer_table, .init = setup, .fini = teardown, .timeout = 10);

static void poll_meter(void)
{
	const struct layers *all[LAYER_ENCODINGS] = { layers[0], layers[1], layers[2], layers[3] };

	if (layer_meter_poll(m, all, now_us, &table)) {
		published++;
		published_us = now_us;
	}
}

/* A frame of VP8 in packets of 1000 bytes or one smaller. TID t, no Y; a key frame of that width. */
static void send(unsigned encoding, unsigned t, size_t bytes, unsigned key_width)
{
	static const uint8_t descriptor[] = { 0x90, 0x60, 0x22 };
	uint8_t *payload = slab.data + RTP_HEADER_BYTES;

	for (size_t at = 0; at < bytes; at += 1000) {
		struct rtp_packet rtp = { .payload_offset = RTP_HEADER_BYTES,
					  .marker = at + 1000 >= bytes };
		struct codec_info info;

		rtp.payload_bytes = (uint16_t)(bytes - at < 1000 ? bytes - at : 1000);
		memset(payload, 0xff, rtp.payload_bytes);
		memcpy(payload, descriptor, sizeof(descriptor));
		payload[0] = at == 0 ? 0x90 : 0x80;
		payload[3] = (uint8_t)(t << 6);
		if (at == 0 && key_width) {
			memcpy(payload + 4, "\x50\xe4\x00\x9d\x01\x2a", 6);
			payload[10] = (uint8_t)key_width;
			payload[11] = (uint8_t)(key_width >> 8);
			payload[12] = (uint8_t)(key_width * 9 / 16);
			payload[13] = (uint8_t)(key_width * 9 / 16 >> 8);
		}
		codec_inspect(CODEC_VP8, payload, rtp.payload_bytes, &info);
		packet_describe(&slab, &rtp, NULL, CODEC_VP8, &info, now_us);
		layers_on_packet(layers[encoding], &slab, &info);
		packet_of(&slab)->encoding = (uint8_t)encoding;
		packet_of(&slab)->timestamp = timestamp;
		layer_meter_on_packet(m, packet_of(&slab));
	}
}

static void tick(void)
{
	now_us += FRAME_US;
	timestamp += FRAME_TICKS;
	if (layer_meter_due_us(m) <= now_us)
		poll_meter();
}

/* `frames` pictures of three encodings at 30 a second; those of `mask` are sent. */
static void run_simulcast(unsigned frames, unsigned mask)
{
	for (unsigned i = 0; i < frames; i++) {
		for (unsigned e = 0; e < 3; e++)
			if (mask >> e & 1)
				send(e, 0, (size_t)1000 << (2 * e),
				     (uint16_t)(i == 0 ? 320 << e : 0));
		tick();
	}
}

static bool is_active(unsigned encoding, unsigned target)
{
	const struct layer_option *o = layer_table_find(&table, encoding, target);

	cr_assert(o, "%u %u", encoding, target);
	return o->is_active;
}

static void expect_bitrate(unsigned encoding, unsigned target, uint32_t want_bps)
{
	const struct layer_option *o = layer_table_find(&table, encoding, target);

	cr_assert(o, "%u %u", encoding, target);
	cr_expect(o->bitrate_bps > want_bps / 100 * 85 && o->bitrate_bps < want_bps / 100 * 115,
		  "%u %u: %u, not %u", encoding, target, o->bitrate_bps, want_bps);
}

Test(layer_table, without_a_choice_there_is_no_table_and_nothing_to_do)
{
	for (unsigned i = 0; i < 300; i++) {
		send(0, 0, 4000, i == 0 ? 640 : 0);
		tick();
		poll_meter();
	}
	cr_expect_eq(published, 0);
	cr_expect_eq(layer_meter_due_us(m), UINT64_MAX);
}

Test(layer_table, encodings_are_sorted_by_what_they_cost)
{
	run_simulcast(90, 7);
	cr_assert_eq(table.count, 3);
	for (unsigned e = 0; e < 3; e++) {
		cr_expect_eq(table.options[e].encoding, e);
		cr_expect_eq(table.options[e].width, 320 << e);
		cr_expect_eq(table.options[e].height, 180 << e);
		cr_expect_geq(table.options[e].fps, 29);
		cr_expect_leq(table.options[e].fps, 31);
		cr_expect(table.options[e].is_active);
		expect_bitrate(e, 0, ((1000u + OVERHEAD_BYTES) << (2 * e)) * 8 * 30);
	}
}

Test(layer_table, temporal_layers_cost_what_they_and_those_below_take)
{
	static const unsigned pattern[] = { 0, 2, 1, 2 };

	for (unsigned i = 0; i < 120; i++) {
		send(0, pattern[i % 4], 3000, i == 0 ? 640 : 0);
		tick();
	}
	cr_assert_eq(table.count, 3);
	for (unsigned t = 0; t < 3; t++) {
		cr_expect_eq(table.options[t].temporal_id, t);
		cr_expect_geq(table.options[t].fps, (30 >> (2 - t)) - 1);
		cr_expect_leq(table.options[t].fps, (30 >> (2 - t)) + 1);
		expect_bitrate(0, t, (3000u + 3 * OVERHEAD_BYTES) * 8 * 30 >> (2 - t));
	}
	cr_expect(table.options[2].contains == 7 && table.options[0].contains == 1);
}

Test(layer_table, a_layer_that_stops_is_inactive_within_half_a_second_and_comes_back)
{
	uint64_t stopped_us;

	run_simulcast(90, 7);
	stopped_us = now_us;
	run_simulcast(15, 3);
	cr_expect_not(is_active(2, 0));
	cr_expect_leq(published_us - stopped_us, 500000);
	cr_expect(is_active(0, 0) && is_active(1, 0));
	cr_expect_gt(layer_table_find(&table, 2, 0)->bitrate_bps, 1000000, "as last seen");
	run_simulcast(300, 3);
	cr_expect_eq(table.count, 3, "it is not forgotten");
	stopped_us = now_us;
	run_simulcast(5, 7);
	cr_expect(is_active(2, 0));
	cr_expect_leq(published_us - stopped_us, 200000);
}

Test(layer_table, a_temporal_layer_that_stops_is_inactive)
{
	for (unsigned i = 0; i < 120; i++) {
		if (i < 60 || i % 2 == 0)
			send(0, i % 2, 3000, i == 0 ? 640 : 0);
		tick();
	}
	cr_expect(is_active(0, 0) && !is_active(0, 1));
}

Test(layer_table, silence_of_all_layers_says_nothing)
{
	run_simulcast(90, 7);
	for (unsigned i = 0; i < 100; i++)
		tick();
	for (unsigned e = 0; e < 3; e++)
		cr_expect(is_active(e, 0));
}

Test(layer_table, few_frames_a_second_are_no_silence)
{
	run_simulcast(60, 7);
	for (unsigned i = 0; i < 40; i++) {
		run_simulcast(1, 7);
		now_us += 970000;
		poll_meter();
		for (unsigned e = 0; e < 3; e++)
			cr_expect(is_active(e, 0), "%u", i);
	}
	cr_expect_leq(table.options[0].fps, 2);
}

Test(layer_table, figures_change_the_table_only_when_they_matter)
{
	uint64_t before;

	run_simulcast(150, 7);
	before = published;
	run_simulcast(300, 7);
	cr_expect_leq(published - before, 1, "key frames apart nothing changed");
	before = published;
	for (unsigned i = 0; i < 150; i++) {
		send(0, 0, 1000, 0);
		send(1, 0, 4000, 0);
		send(2, 0, 32000, 0);
		tick();
	}
	cr_expect_gt(published, before);
	cr_expect_leq(published - before, 10, "twice a second at most");
	expect_bitrate(2, 0, 32u * (1000 + OVERHEAD_BYTES) * 8 * 30);
}

Test(layer_table, an_allocation_takes_a_layer_away_at_once_and_gives_sizes)
{
	struct vla vla = { .stream_count = 3 };

	for (unsigned i = 0; i < 90; i++) {
		for (unsigned e = 0; e < 3; e++)
			send(e, 0, (size_t)1000 << (2 * e), 0);
		tick();
	}
	cr_expect_eq(layer_table_find(&table, 1, 0)->width, 0, "no key frame was seen");
	vla.has_resolutions = true;
	for (unsigned e = 0; e < 3; e++) {
		vla.layers[2 - e][0] = (struct vla_layer){ .temporal_count = 1,
							   .width = 320u << e,
							   .height = 180u << e };
		vla.stream = (uint8_t)(2 - e);
		/* The sender counts its streams from the largest. */
		layer_meter_on_vla(m, e, &vla);
	}
	for (unsigned e = 0; e < 3; e++) {
		vla.stream = (uint8_t)(2 - e);
		layer_meter_on_vla(m, e, &vla);
	}
	poll_meter();
	cr_expect_eq(layer_table_find(&table, 1, 0)->width, 640);
	vla.stream = 2;
	vla.layers[0][0].temporal_count = 0;
	layer_meter_on_vla(m, 0, &vla);
	poll_meter();
	cr_expect_not(is_active(2, 0));
	cr_expect(is_active(1, 0));
	now_us += 350000;
	send(2, 0, 16000, 0);
	poll_meter();
	cr_expect(is_active(2, 0), "it is sent, whatever was said");
}

Test(layer_table, another_publisher_starts_anew)
{
	run_simulcast(60, 7);
	layer_meter_start(m);
	cr_expect_eq(layer_meter_due_us(m), UINT64_MAX);
	for (unsigned i = 0; i < LAYER_ENCODINGS; i++)
		layers_start(layers[i]);
	run_simulcast(30, 3);
	cr_expect_eq(table.count, 2);
}

Test(layer_table, more_classes_than_are_kept_cost_the_silent_ones)
{
	/* As many layers as there are numbers: a stranger's descriptor could do that. */
	for (unsigned i = 0; i < 2000; i++) {
		send(0, i % 4, 500, 0);
		packet_of(&slab)->targets = i;
		packet_of(&slab)->arrival_us = now_us;
		layer_meter_on_packet(m, packet_of(&slab));
		tick();
	}
	cr_expect_eq(table.count, 4);
}

Test(layer_table, tables_differ_in_what_a_choice_depends_on)
{
	struct layer_table a = { .count = 2 }, b;

	a.options[0] = (struct layer_option){ .bitrate_bps = 100000, .fps = 30, .is_active = true };
	a.options[1] = (struct layer_option){
		.bitrate_bps = 600000, .fps = 30, .encoding = 1, .is_active = true
	};
	b = a;
	cr_expect_not(layer_table_differs(&a, &b));
	b.options[1].bitrate_bps = 690000;
	cr_expect_not(layer_table_differs(&a, &b), "less than a sixth");
	b.options[1].bitrate_bps = 730000;
	cr_expect(layer_table_differs(&a, &b));
	b = a;
	b.options[0].is_active = false;
	cr_expect(layer_table_differs(&a, &b));
	b = a;
	b.options[0].width = 320;
	cr_expect(layer_table_differs(&a, &b));
	b = a;
	b.options[0].fps = 15;
	cr_expect(layer_table_differs(&a, &b));
	b = a;
	b.options[0] = a.options[1];
	b.options[1] = a.options[0];
	cr_expect_not(layer_table_differs(&a, &b), "order alone is no difference");
	b = a;
	b.count = 1;
	cr_expect(layer_table_differs(&a, &b));
}

Test(layer_table, memory_that_is_missing_is_said)
{
	struct layer_meter *none;

	fault_after(0);
	cr_expect_eq(layer_meter_create(&none), -ENOMEM);
	fault_after(-1);
	cr_expect_null(none);
	layer_meter_destroy(NULL);
}
