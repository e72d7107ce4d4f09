#include "media/ext.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/hex.h"

TestSuite(ext, .timeout = 10);

enum { PACKET_BYTES = 512 };

/* A packet with this extension (profile, length and data as hex) and payload ff. */
static struct rtp_packet parse_with(const char *block, uint8_t bytes[PACKET_BYTES])
{
	size_t len = hex_bytes("90e00001 00000002 00000003", bytes, PACKET_BYTES);
	struct rtp_packet p;

	len += hex_bytes(block, bytes + len, PACKET_BYTES - len - 1);
	bytes[len++] = 0xff;
	cr_assert_eq(rtp_parse(bytes, len, &p), RTP_OK, "%s", block);
	cr_assert_eq(p.payload_bytes, 1, "%s", block);
	return p;
}

static const struct {
	const char *name;
	const char *block;
	const char *want; /* ids and lengths, in order */
} blocks[] = {
	{ "empty", "bede0000", "" },
	{ "one element", "bede0001 10aa0000", "1:1 " },
	{ "padding before, between and after", "bede0003 0010aa00 0021bbcc 00000000", "1:1 2:2 " },
	{ "sixteen bytes", "bede0005 2f000102 03040506 0708090a 0b0c0d0e 0f000000", "2:16 " },
	{ "id 15 ends the block", "bede0002 10aaf0bb 10cc0000", "1:1 " },
	{ "id 15 first", "bede0001 f0aa10bb", "" },
	{ "id 0 with a length ends the block", "bede0002 10aa01bb bb10cc00", "1:1 " },
	{ "element runs past the end", "bede0001 10aa13bb", "1:1 " },
	{ "element header is the last byte", "bede0001 11aaaa10", "1:2 " },
	{ "two-byte element runs past the end", "10000002 0100020d aabb0000", "1:0 " },
	{ "two-byte, empty and long ids", "10000003 01002002 aabb0fff 01cc0000", "1:0 32:2 " },
	{ "two-byte, id 15 is an id", "10000001 0f02aabb", "15:2 " },
	{ "two-byte header cut off", "10000001 0101aa02", "1:1 " },
	{ "application bits", "100f0001 0101aa00", "1:1 " },
	{ "another profile", "abac0001 10aa0000", "" },
};

Test(ext, elements_are_found_within_the_block)
{
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		uint8_t bytes[PACKET_BYTES];
		struct rtp_packet p = parse_with(blocks[i].block, bytes);
		struct ext_cursor c;
		struct ext_element e;
		char got[64] = "";
		size_t n = 0;

		ext_cursor_init(&c, bytes, &p);
		while (ext_cursor_next(&c, &e)) {
			n += (size_t)snprintf(got + n, sizeof(got) - n, "%u:%u ", e.id, e.bytes);
			cr_expect_leq(e.data + e.bytes, bytes + p.ext_offset + p.ext_bytes, "%s",
				      blocks[i].name);
		}
		cr_expect_str_eq(got, blocks[i].want, "%s: got %s", blocks[i].name, got);
		cr_expect_not(ext_cursor_next(&c, &e), "%s goes on after its end", blocks[i].name);
	}
}

static void map_all(struct ext_map *map)
{
	memset(map, 0, sizeof(*map));
	for (unsigned k = 0; k < EXT_KINDS; k++)
		cr_assert_eq(ext_map_set(map, (enum ext_kind)k, k + 1), 0);
}

Test(ext, every_kind_has_a_uri_that_leads_back_to_it)
{
	for (unsigned k = 0; k < EXT_KINDS; k++) {
		const char *uri = ext_uri((enum ext_kind)k);

		cr_expect_eq(ext_kind_of_uri(uri, strlen(uri)), k, "%s", uri);
		cr_expect_eq(ext_kind_of_uri(uri, strlen(uri) - 1), EXT_KINDS, "%s", uri);
	}
	cr_expect_eq(ext_kind_of_uri("urn:ietf:params:rtp-hdrext:toffset", 34), EXT_KINDS);
	cr_expect_eq(ext_kind_of_uri("", 0), EXT_KINDS);
}

Test(ext, a_map_gives_each_id_one_kind)
{
	struct ext_map map = { 0 };

	cr_expect_eq(ext_map_set(&map, EXT_MID, 0), -EINVAL);
	cr_expect_eq(ext_map_set(&map, EXT_MID, 15), -EINVAL);
	cr_expect_eq(ext_map_set(&map, EXT_MID, 256), -EINVAL);
	cr_expect_eq(ext_map_set(&map, EXT_MID, 4), 0);
	cr_expect_eq(ext_map_set(&map, EXT_MID, 4), 0, "the same again");
	cr_expect_eq(ext_map_set(&map, EXT_MID, 5), -EEXIST);
	cr_expect_eq(ext_map_set(&map, EXT_RID, 4), -EEXIST);
	cr_expect_eq(ext_map_set(&map, EXT_RID, 255), 0);
	cr_expect_eq(ext_map_kind(&map, 4), EXT_MID);
	cr_expect_eq(ext_map_kind(&map, 255), EXT_RID);
	cr_expect_eq(ext_map_kind(&map, 0), EXT_KINDS);
	cr_expect_eq(ext_map_kind(&map, 5), EXT_KINDS);
	cr_expect_eq(ext_map_kind(&map, 254), EXT_KINDS);
}

static const struct {
	const char *name;
	const char *block;
	enum ext_kind kind;
	bool want;
} lengths[] = {
	{ "mid", "bede0001 12616263", EXT_MID, true },
	{ "abs-send-time", "bede0001 42010203", EXT_ABS_SEND_TIME, true },
	{ "abs-send-time of 2 bytes", "bede0001 41010200", EXT_ABS_SEND_TIME, false },
	{ "transport-cc", "bede0001 51010200", EXT_TRANSPORT_CC, true },
	{ "transport-cc of 4 bytes", "bede0002 53010203 04000000", EXT_TRANSPORT_CC, false },
	{ "audio level", "bede0001 60a70000", EXT_AUDIO_LEVEL, true },
	{ "audio level, two-byte form", "10000001 0601a700", EXT_AUDIO_LEVEL, true },
	{ "audio level without its byte", "10000001 06000000", EXT_AUDIO_LEVEL, false },
	{ "orientation", "bede0001 70030000", EXT_VIDEO_ORIENTATION, true },
	{ "playout delay", "bede0001 82014032", EXT_PLAYOUT_DELAY, true },
	{ "capture time", "bede0003 97000000 01800000 00000000", EXT_ABS_CAPTURE_TIME, true },
	{ "capture time with offset", "bede0005 9f000000 01800000 00ffffff ffc00000 00000000",
	  EXT_ABS_CAPTURE_TIME, true },
	{ "capture time of 9 bytes", "bede0003 98000000 01800000 00ff0000", EXT_ABS_CAPTURE_TIME,
	  false },
	{ "dependency descriptor", "bede0001 a2800001", EXT_DEPENDENCY_DESCRIPTOR, true },
	{ "layers allocation", "bede0001 b0000000", EXT_VIDEO_LAYERS_ALLOCATION, true },
};

Test(ext, a_value_of_the_wrong_length_is_absent)
{
	struct ext_map map;

	map_all(&map);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint8_t bytes[PACKET_BYTES];
		struct rtp_packet p = parse_with(lengths[i].block, bytes);
		struct ext_values v;

		ext_read(&map, bytes, &p, &v);
		cr_expect_eq(v.present, lengths[i].want ? 1u << lengths[i].kind : 0, "%s: %x",
			     lengths[i].name, v.present);
	}
}

Test(ext, typed_values_mean_what_their_documents_say)
{
	struct ext_map map;
	struct ext_values v;
	struct rtp_packet p;
	uint8_t bytes[PACKET_BYTES];

	map_all(&map);
	p = parse_with("bede0004 60a77003 82014032 51beef42 01020300", bytes);
	ext_read(&map, bytes, &p, &v);
	cr_expect(v.audio_is_voice);
	cr_expect_eq(v.audio_level_dbov, 0x27);
	cr_expect_eq(v.orientation, 3);
	cr_expect_eq(v.playout_min_10ms, 0x014);
	cr_expect_eq(v.playout_max_10ms, 0x032);
	cr_expect_eq(v.transport_seq, 0xbeef);
	cr_expect_eq(v.abs_send_time, 0x010203);
	cr_expect_not(ext_has(&v, EXT_RID));
	p = parse_with("bede0002 11303122 61626300", bytes);
	ext_read(&map, bytes, &p, &v);
	cr_assert_eq(v.present, 1u << EXT_MID | 1u << EXT_RID);
	cr_expect_eq(v.span[EXT_MID].bytes, 2);
	cr_expect_arr_eq(bytes + v.span[EXT_MID].offset, "01", 2);
	cr_expect_eq(v.span[EXT_RID].bytes, 3);
	cr_expect_arr_eq(bytes + v.span[EXT_RID].offset, "abc", 3);
	p = parse_with("bede0005 9f000000 01800000 00ffffff ffc00000 00000000", bytes);
	ext_read(&map, bytes, &p, &v);
	cr_expect_eq(v.capture_ntp, UINT64_C(0x0000000180000000));
	cr_expect(v.has_capture_offset);
	cr_expect_eq(v.capture_offset_ntp, -INT64_C(0x40000000), "a quarter second behind");
}

static const struct {
	const char *name;
	struct ext_element elements[3];
	size_t n;
	size_t shortest;
	uint16_t profile;
} writes[] = {
	{ "nothing", { { 0 } }, 0, 0, EXT_PROFILE_ONE_BYTE },
	{ "one byte", { { (const uint8_t *)"a", 1, 1 } }, 1, 8, EXT_PROFILE_ONE_BYTE },
	{ "limits of the one-byte form",
	  { { (const uint8_t *)"0123456789abcdef", 16, 14 }, { (const uint8_t *)"b", 1, 2 } },
	  2,
	  24,
	  EXT_PROFILE_ONE_BYTE },
	{ "id 16", { { (const uint8_t *)"a", 1, 16 } }, 1, 8, EXT_PROFILE_TWO_BYTE },
	{ "seventeen bytes",
	  { { (const uint8_t *)"0123456789abcdefg", 17, 1 }, { (const uint8_t *)"b", 1, 2 } },
	  2,
	  28,
	  EXT_PROFILE_TWO_BYTE },
	{ "no bytes", { { NULL, 0, 1 } }, 1, 8, EXT_PROFILE_TWO_BYTE },
};

static void expect_block(size_t row, size_t block_bytes)
{
	uint8_t bytes[PACKET_BYTES];
	struct rtp_packet p;
	struct ext_cursor c;
	struct ext_element e;

	memset(bytes, 0x5a, sizeof(bytes));
	rtp_header_write(bytes, &(struct rtp_header){ .has_extension = true });
	cr_assert_eq(ext_block_write(bytes + RTP_HEADER_BYTES, block_bytes, writes[row].elements,
				     writes[row].n),
		     0, "%s", writes[row].name);
	cr_expect_eq(bytes[RTP_HEADER_BYTES + block_bytes], 0x5a, "wrote past its block");
	cr_assert_eq(rtp_parse(bytes, RTP_HEADER_BYTES + block_bytes, &p), RTP_OK);
	cr_expect_eq(p.ext_profile, writes[row].profile, "%s", writes[row].name);
	cr_expect_eq(p.payload_bytes, 0, "%s", writes[row].name);
	ext_cursor_init(&c, bytes, &p);
	for (size_t i = 0; i < writes[row].n; i++) {
		const struct ext_element *want = &writes[row].elements[i];

		cr_assert(ext_cursor_next(&c, &e), "%s, element %zu", writes[row].name, i);
		cr_expect(e.id == want->id && e.bytes == want->bytes, "%s", writes[row].name);
		if (e.bytes)
			cr_expect_arr_eq(e.data, want->data, e.bytes, "%s", writes[row].name);
	}
	cr_expect_not(ext_cursor_next(&c, &e), "%s", writes[row].name);
}

Test(ext, a_written_block_has_the_length_asked_and_reads_back)
{
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		size_t shortest = ext_block_bytes(writes[i].elements, writes[i].n);
		uint8_t out[64];

		cr_expect_eq(shortest, writes[i].shortest, "%s: %zu", writes[i].name, shortest);
		if (shortest == 0)
			shortest = RTP_EXT_HEADER_BYTES;
		for (size_t extra = 0; extra <= 16; extra += 4)
			expect_block(i, shortest + extra);
		if (writes[i].n > 0)
			cr_expect_eq(
			    ext_block_write(out, shortest - 4, writes[i].elements, writes[i].n),
			    -ENOSPC, "%s", writes[i].name);
	}
}
