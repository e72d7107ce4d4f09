#include "media/vla.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hex.h"

TestSuite(vla, .timeout = 10);

enum { BYTES = 255 };

static bool parse(const char *hex, struct vla *out)
{
	uint8_t bytes[BYTES];

	return vla_parse(bytes, hex_bytes(hex, bytes, sizeof(bytes)), out);
}

/* Three streams of one spatial and two temporal layers, this one the last: 100/150, 300/500,
 * 900/1500 kbit/s; 320x180, 640x360, 1280x720 at 30. */
static const char simulcast[] =
    "a1 54 64 9601 ac02 f403 8407 dc0b 013f00b31e 027f01671e 04ff02cf1e";

Test(vla, simulcast_tells_of_each_stream)
{
	static const uint32_t want_bps[3][2] = { { 100000, 150000 },
						 { 300000, 500000 },
						 { 900000, 1500000 } };
	struct vla vla;

	cr_assert(parse(simulcast, &vla));
	cr_expect_eq(vla.stream, 2);
	cr_expect_eq(vla.stream_count, 3);
	cr_expect(vla.has_resolutions);
	for (unsigned i = 0; i < 3; i++) {
		const struct vla_layer *layer = &vla.layers[i][0];

		cr_expect_eq(layer->temporal_count, 2, "%u", i);
		cr_expect_eq(layer->bitrate_bps[0], want_bps[i][0], "%u", i);
		cr_expect_eq(layer->bitrate_bps[1], want_bps[i][1], "%u", i);
		cr_expect_eq(layer->width, 320u << i, "%u", i);
		cr_expect_eq(layer->height, 180u << i, "%u", i);
		cr_expect_eq(layer->fps, 30, "%u", i);
		cr_expect_eq(vla.layers[i][1].temporal_count, 0, "%u", i);
	}
	cr_expect_eq(vla.layers[3][0].temporal_count, 0);
}

Test(vla, spatial_layers_of_one_stream)
{
	struct vla vla;

	/* One stream, layers 0 and 1 of three temporal layers each; no resolutions. */
	cr_assert(parse("03 a0 0a 14 1e 28 32 3c", &vla));
	cr_expect_eq(vla.stream_count, 1);
	cr_expect_not(vla.has_resolutions);
	cr_expect_eq(vla.layers[0][0].bitrate_bps[2], 30000);
	cr_expect_eq(vla.layers[0][1].bitrate_bps[0], 40000);
	cr_expect_eq(vla.layers[0][1].temporal_count, 3);
	cr_expect_eq(vla.layers[0][2].temporal_count, 0);
}

Test(vla, streams_may_differ_in_layers)
{
	struct vla vla;

	/* Two streams: none of the first, layer 1 of the second. */
	cr_assert(parse("10 02 00 0a", &vla));
	cr_expect_eq(vla.stream_count, 2);
	cr_expect_eq(vla.layers[0][0].temporal_count, 0);
	cr_expect_eq(vla.layers[1][0].temporal_count, 0);
	cr_expect_eq(vla.layers[1][1].temporal_count, 1);
	/* Four streams take two bytes of masks. */
	cr_assert(parse("f0 01 01 00 0a 14", &vla));
	cr_expect_eq(vla.layers[1][0].bitrate_bps[0], 10000);
	cr_expect_eq(vla.layers[3][0].bitrate_bps[0], 20000);
}

Test(vla, a_zero_byte_says_that_nothing_is_sent)
{
	struct vla vla;

	cr_assert(parse("00", &vla));
	cr_expect_eq(vla.stream_count, 0);
	cr_expect_eq(vla.layers[0][0].temporal_count, 0);
}

Test(vla, bitrates_beyond_32_bits_are_cut_to_them)
{
	struct vla vla;

	cr_assert(parse("01 00 ffffffff0f", &vla));
	cr_expect_eq(vla.layers[0][0].bitrate_bps[0], UINT32_MAX / 1000 * 1000);
	cr_expect_not(parse("01 00 ffffffffff01", &vla), "longer than 32 bits ever take");
}

Test(vla, what_is_cut_off_is_refused)
{
	uint8_t bytes[BYTES];
	size_t len = hex_bytes(simulcast, bytes, sizeof(bytes));
	size_t bare = len - 15; /* where resolutions begin */
	struct vla vla;

	for (size_t n = 0; n < len; n++) {
		uint8_t *exact = malloc(n + 1);

		cr_assert(exact);
		memcpy(exact + 1, bytes, n);
		cr_expect_eq(vla_parse(exact + 1, n, &vla), n == bare, "%zu bytes", n);
		free(exact);
	}
	cr_expect_not(parse("41 00 0a", &vla), "the second of one stream");
}
