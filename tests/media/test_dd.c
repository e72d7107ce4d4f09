#include "media/dd.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(dd, .timeout = 10);

enum { BYTES = 128 };

/* Bits as text, blanks for the eye; the last byte is filled with zeros. */
static size_t bits_of(const char *text, uint8_t out[BYTES])
{
	size_t n = 0;

	memset(out, 0, BYTES);
	for (; *text; text++) {
		if (*text == ' ')
			continue;
		cr_assert(n < BYTES * 8 && (*text == '0' || *text == '1'));
		out[n / 8] |= (uint8_t)((*text - '0') << (7 - n % 8));
		n++;
	}
	return (n + 7) / 8;
}

#define FIXED(start, end, id, number) start end " " id " " number " "
#define FRAME_1                       "00000000 00000001"

/* Two temporal layers, two targets, one chain: templates 5 (key), 6 (T0), 7 (T1). */
#define TWO_LAYERS                                                                                 \
	"000101 00001 "          /* template_id_offset 5, two targets */                           \
	"00 01 11 "              /* template 0: T0; 1: T0; 2: T1, the last */                      \
	"10 10  11 10  00 01 "   /* switch switch; required switch; absent discardable */          \
	"0  1 0011 0  1 0001 0 " /* none; 4; 2 */                                                  \
	"10 "                    /* ns(3): one chain */                                            \
	"0000 0100 0010 "        /* no bits say which chain; distances 0, 4, 2 */

static const char key_frame[] =
    FIXED("1", "1", "000101", FRAME_1) "1 0 0 0 0 " TWO_LAYERS
				       "1 0000001001111111 0000000111011111"; /* 640x480 */

static struct dd_structure known;

static void learn(void)
{
	uint8_t bytes[BYTES];
	struct dd_info info;

	memset(&known, 0, sizeof(known));
	cr_assert_eq(dd_parse(bytes, bits_of(key_frame, bytes), &known, &info), DD_OK);
}

Test(dd, a_key_frame_brings_the_structure)
{
	uint8_t bytes[BYTES];
	struct dd_info info;

	memset(&known, 0, sizeof(known));
	cr_assert_eq(dd_parse(bytes, bits_of(key_frame, bytes), &known, &info), DD_OK);
	cr_expect(info.is_frame_start && info.is_frame_end && info.has_structure && info.has_frame);
	cr_expect(info.has_active_targets && info.active_targets == 3, "all of them");
	cr_expect_eq(info.frame_number, 1);
	cr_expect_eq(info.frame.fdiff_count, 0);
	cr_expect_eq(dd_indication_of(&info.frame, 0), DD_SWITCH);
	cr_expect(known.template_count == 3 && known.target_count == 2 && known.chain_count == 1);
	cr_expect(known.templates[1].fdiff_count == 1 && known.templates[1].fdiffs[0] == 4);
	cr_expect(known.templates[2].fdiffs[0] == 2 && known.templates[2].chain_fdiffs[0] == 2);
	cr_expect(known.target_temporal_id[0] == 0 && known.target_temporal_id[1] == 1);
	cr_expect(known.has_resolutions && known.resolutions[0].width == 640 &&
		  known.resolutions[0].height == 480);
}

static const struct {
	const char *name, *bits;
	enum dd_verdict want;
	bool has_frame;
	int temporal_id, targets; /* targets: -1 when not said */
	int fdiffs[3];
	int indication_of_0;
	int chain;
} frames[] = {
	{ "three bytes, template T1",
	  FIXED("1", "0", "000111", FRAME_1),
	  DD_OK,
	  true,
	  1,
	  -1,
	  { 2 },
	  DD_NOT_PRESENT,
	  2 },
	{ "template T0",
	  FIXED("0", "1", "000110", FRAME_1),
	  DD_OK,
	  true,
	  0,
	  -1,
	  { 4 },
	  DD_REQUIRED,
	  4 },
	{ "flags all clear",
	  FIXED("1", "1", "000110", FRAME_1) "0 0 0 0 0",
	  DD_OK,
	  true,
	  0,
	  -1,
	  { 4 },
	  DD_REQUIRED,
	  4 },
	{ "active targets",
	  FIXED("1", "1", "000110", FRAME_1) "0 1 0 0 0 01",
	  DD_OK,
	  true,
	  0,
	  1,
	  { 4 },
	  DD_REQUIRED,
	  4 },
	{ "own indications",
	  FIXED("1", "1", "000110", FRAME_1) "0 0 1 0 0 01 01",
	  DD_OK,
	  true,
	  0,
	  -1,
	  { 4 },
	  DD_DISCARDABLE,
	  4 },
	{ "own references of 4, 8 and 12 bits",
	  FIXED("1", "1", "000110", FRAME_1) "0 0 0 1 0 01 0000 10 11111111 11 111111111111 00",
	  DD_OK,
	  true,
	  0,
	  -1,
	  { 1, 256, 4096 },
	  DD_REQUIRED,
	  4 },
	{ "own chains",
	  FIXED("1", "1", "000110", FRAME_1) "0 0 0 0 1 11111111",
	  DD_OK,
	  true,
	  0,
	  -1,
	  { 4 },
	  DD_REQUIRED,
	  255 },
	{ "template below the offset",
	  FIXED("1", "1", "000100", FRAME_1),
	  DD_UNKNOWN_TEMPLATE,
	  false,
	  0,
	  -1,
	  { 0 },
	  0,
	  0 },
	{ "template above the last",
	  FIXED("1", "1", "001000", FRAME_1),
	  DD_UNKNOWN_TEMPLATE,
	  false,
	  0,
	  -1,
	  { 0 },
	  0,
	  0 },
	{ "two bytes", "11000101 00000000", DD_MALFORMED, false, 0, -1, { 0 }, 0, 0 },
	{ "own chains cut off",
	  FIXED("1", "1", "000110", FRAME_1) "0 0 0 0 1 111",
	  DD_MALFORMED,
	  false,
	  0,
	  -1,
	  { 0 },
	  0,
	  0 },
	{ "own references cut off",
	  FIXED("1", "1", "000110", FRAME_1) "0 0 0 1 0 111",
	  DD_MALFORMED,
	  false,
	  0,
	  -1,
	  { 0 },
	  0,
	  0 },
	{ "structure cut off",
	  FIXED("1", "1", "000101", FRAME_1) "1 0 0 0 0 000101 00001 00",
	  DD_MALFORMED,
	  false,
	  0,
	  -1,
	  { 0 },
	  0,
	  0 },
};

Test(dd, frames_follow_their_template_or_say_otherwise)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		const char *name = frames[i].name;
		uint8_t bytes[BYTES];
		size_t len = bits_of(frames[i].bits, bytes);
		struct dd_structure before;
		struct dd_info info;
		enum dd_verdict got;

		learn();
		before = known;
		got = dd_parse(bytes, len, &known, &info);
		cr_expect_eq(got, frames[i].want, "%s: %d", name, got);
		cr_expect_eq(memcmp(&before, &known, sizeof(known)), 0, "%s changed it", name);
		if (got != DD_OK)
			continue;
		cr_expect_eq(info.frame_number, 1, "%s", name);
		cr_expect_eq(info.has_frame, frames[i].has_frame, "%s", name);
		cr_expect_eq(info.frame.temporal_id, frames[i].temporal_id, "%s", name);
		cr_expect_eq(info.has_active_targets ? (int)info.active_targets : -1,
			     frames[i].targets, "%s", name);
		for (unsigned f = 0; f < 3; f++)
			cr_expect_eq(info.frame.fdiffs[f], frames[i].fdiffs[f], "%s: %u", name, f);
		cr_expect_eq((int)dd_indication_of(&info.frame, 0), frames[i].indication_of_0, "%s",
			     name);
		cr_expect_eq(info.frame.chain_fdiffs[0], frames[i].chain, "%s", name);
	}
}

Test(dd, template_ids_wrap_at_64)
{
	uint8_t bytes[BYTES];
	struct dd_info info;

	learn();
	known.template_id_offset = 63;
	cr_assert_eq(
	    dd_parse(bytes, bits_of(FIXED("1", "1", "000001", FRAME_1), bytes), &known, &info),
	    DD_OK);
	cr_expect_eq(info.frame.temporal_id, 1, "63, 0, 1: the third");
	cr_expect_eq(
	    dd_parse(bytes, bits_of(FIXED("1", "1", "000010", FRAME_1), bytes), &known, &info),
	    DD_UNKNOWN_TEMPLATE);
}

Test(dd, a_structure_without_the_packets_own_template_is_not_taken)
{
	static const char foreign[] =
	    FIXED("1", "1", "100000", FRAME_1) "1 0 0 0 0 " TWO_LAYERS "0";
	struct dd_structure none = { 0 };
	uint8_t bytes[BYTES];
	struct dd_info info;

	cr_expect_eq(dd_parse(bytes, bits_of(foreign, bytes), &none, &info), DD_UNKNOWN_TEMPLATE);
	cr_expect_eq(none.template_count, 0);
	cr_expect_not(info.has_structure);
}

Test(dd, without_a_structure_the_fixed_fields_are_all_there_is)
{
	struct dd_structure none = { 0 };
	uint8_t bytes[BYTES];
	struct dd_info info;

	cr_assert_eq(dd_parse(bytes, bits_of("10 000111 11111111 11111111", bytes), &none, &info),
		     DD_OK);
	cr_expect(info.is_frame_start && !info.is_frame_end && info.frame_number == 65535);
	cr_expect_not(info.has_frame);
	cr_assert_eq(dd_parse(bytes, bits_of("10 000111 11111111 11111111 0 1 1 1 1 1", bytes),
			      &none, &info),
		     DD_OK);
	cr_expect_not(info.has_frame || info.has_active_targets);
}

Test(dd, a_structure_cut_anywhere_leaves_the_known_one_as_it_was)
{
	uint8_t bytes[BYTES];
	size_t len = bits_of(key_frame, bytes);
	struct dd_structure before;
	struct dd_info info;

	learn();
	known.template_id_offset = 9; /* so that a replacement shows */
	before = known;
	for (size_t n = 0; n < len; n++) {
		uint8_t *exact = malloc(n + 1);

		cr_assert(exact);
		memcpy(exact + 1, bytes, n);
		cr_expect_neq(dd_parse(exact + 1, n, &known, &info), DD_OK, "%zu bytes", n);
		cr_expect_eq(memcmp(&before, &known, sizeof(known)), 0, "%zu bytes", n);
		free(exact);
	}
	cr_expect_eq(dd_parse(bytes, len, &known, &info), DD_OK);
	cr_expect_eq(known.template_id_offset, 5);
}

Test(dd, more_layers_than_are_kept_are_refused)
{
	uint8_t bytes[BYTES];
	struct dd_info info;

	learn();
	/* next_layer_idc says "spatial" four times: a fifth spatial layer. */
	cr_expect_eq(dd_parse(bytes,
			      bits_of("11 000101 00000000 00000001 1 0 0 0 0 000101 00000"
				      "10 10 10 10 11 00000000 00000000 00000000 00000000",
				      bytes),
			      &known, &info),
		     DD_MALFORMED);
}
