#include <criterion/criterion.h>
#include <errno.h>

#include "media/ext.h"
#include "media/mapping.h"
#include "media/rtp.h"
#include "media/rtx.h"

enum { TYPE = 109, RTX_TYPE = 110 };

static struct mapping m;
static struct slab slab;

static void setup(void)
{
	static const uint8_t delay[3] = { 0x01, 0x20, 0x03 };
	struct media_packet *p = packet_of(&slab);

	mapping_init(&m);
	m.types[CODEC_VP8] = TYPE;
	m.rtx_types[CODEC_VP8] = RTX_TYPE;
	memset(&slab, 0, sizeof(slab));
	p->index = 0x123456789;
	p->timestamp = 0xaabbccdd;
	p->codec = CODEC_VP8;
	p->audio_level = 0x85;
	p->orientation = 0x03;
	memcpy(p->playout_delay, delay, sizeof(delay));
	p->capture_offset = 100;
	p->capture_bytes = 8;
	memset(slab.data + 100, 0xc7, 8);
	p->descriptor_offset = 200;
	p->descriptor_bytes = 3;
	memset(slab.data + 200, 0xdd, 20);
}

TestSuite(mapping, .init = setup, .timeout = 10);

static void set_all_ids(uint8_t first)
{
	for (uint8_t i = MAPPING_MID; i < MAPPING_DESCRIPTOR; i++)
		m.ext_ids[i] = (uint8_t)(first + i - MAPPING_MID);
	cr_assert_eq(mapping_set_mid(&m, "v1", 2), 0);
}

static void set_stamp_ids(uint8_t first)
{
	m.ext_ids[MAPPING_TRANSPORT_CC] = first;
	m.ext_ids[MAPPING_SEND_TIME] = (uint8_t)(first + 1);
}

static void expect_header(const uint8_t *want, size_t bytes, const char *name)
{
	uint8_t out[MAPPING_HEADER_MAX_BYTES];
	size_t got;

	memset(out, 0x5a, sizeof(out));
	got = mapping_write_header(&m, &slab, out);
	cr_assert_eq(got, bytes, "%s: %zu bytes", name, got);
	cr_expect_arr_eq(out, want, bytes, "%s", name);
}

Test(mapping, without_extensions_the_header_has_12_bytes)
{
	static const uint8_t plain[] = {
		0x80, TYPE, 0x67, 0x89, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 0, 0
	};
	static const uint8_t flagged[] = { 0xa0, 0x80 | TYPE, 0x67, 0x89, 0xaa, 0xbb,
					   0xcc, 0xdd,        0,    0,    0,    0 };

	mapping_seal(&m);
	expect_header(plain, sizeof(plain), "plain");
	packet_of(&slab)->flags = PACKET_MARKER | PACKET_PADDED;
	expect_header(flagged, sizeof(flagged), "marker and padding");
	cr_expect_eq(mapping_header_bytes(&m), sizeof(plain));
}

Test(mapping, the_one_byte_block_has_one_length_whatever_is_present)
{
	static const uint8_t empty[] = {
		0x90, TYPE, 0x67, 0x89, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 0, 0, 0xbe, 0xde, 0,
		7,    0x31, 'v',  '1',  0,    0,    0,    0,    0, 0, 0, 0, 0,    0,    0,
		0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0,    0,
	};
	static const uint8_t full[] = {
		0x90, TYPE, 0x67, 0x89, 0xaa, 0xbb, 0xcc, 0xdd, 0,    0,    0,
		0,    0xbe, 0xde, 0,    7,    0x31, 'v',  '1',  0x40, 0x85, 0x50,
		0x03, 0x62, 0x01, 0x20, 0x03, 0x77, 0xc7, 0xc7, 0xc7, 0xc7, 0xc7,
		0xc7, 0xc7, 0xc7, 0,    0,    0,    0,    0,    0,    0,    0,
	};

	set_all_ids(3);
	mapping_seal(&m);
	cr_expect_eq(mapping_header_bytes(&m), sizeof(full));
	expect_header(empty, sizeof(empty), "nothing but the mid");
	packet_of(&slab)->flags = PACKET_AUDIO_LEVEL | PACKET_ORIENTATION | PACKET_PLAYOUT_DELAY |
				  PACKET_CAPTURE_TIME | PACKET_DESCRIPTOR;
	expect_header(full, sizeof(full), "everything, the descriptor not negotiated");
}

Test(mapping, the_two_byte_form_is_taken_for_all_or_none)
{
	static const uint8_t bare[] = {
		0x90, TYPE, 0x67, 0x89, 0xaa, 0xbb, 0xcc, 0xdd, 0,   0,
		0,    0,    0x10, 0,    0,    1,    2,    1,    'a', 0,
	};
	static const uint8_t with_descriptor[] = {
		0x90, TYPE, 0x67, 0x89, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0,    0,    0,
		0x10, 0,    0,    2,    2,    1,    'a',  12,   3, 0xdd, 0xdd, 0xdd,
	};

	m.ext_ids[MAPPING_MID] = 2;
	m.ext_ids[MAPPING_DESCRIPTOR] = 12;
	cr_assert_eq(mapping_set_mid(&m, "a", 1), 0);
	mapping_seal(&m);
	expect_header(bare, sizeof(bare), "no descriptor");
	packet_of(&slab)->flags = PACKET_DESCRIPTOR;
	expect_header(with_descriptor, sizeof(with_descriptor), "descriptor on top");
}

/* Whatever ids and lengths, our own reader finds each value again. */
Test(mapping, what_is_written_is_read_back)
{
	static const enum ext_kind kinds[MAPPING_EXTS] = {
		EXT_TRANSPORT_CC,     EXT_ABS_SEND_TIME,         EXT_MID,
		EXT_AUDIO_LEVEL,      EXT_VIDEO_ORIENTATION,     EXT_PLAYOUT_DELAY,
		EXT_ABS_CAPTURE_TIME, EXT_DEPENDENCY_DESCRIPTOR,
	};
	static const uint8_t firsts[] = { 1, 7, 16, 240 };

	for (size_t f = 0; f < sizeof(firsts); f++) {
		struct ext_map map = { 0 };
		struct ext_values values;
		struct rtp_packet rtp;
		uint8_t out[MAPPING_HEADER_MAX_BYTES];
		size_t bytes;

		setup();
		set_all_ids(firsts[f]);
		m.ext_ids[MAPPING_DESCRIPTOR] = (uint8_t)(firsts[f] + 5);
		set_stamp_ids((uint8_t)(firsts[f] + 6));
		mapping_seal(&m);
		for (size_t i = 0; i < MAPPING_EXTS; i++)
			cr_assert_eq(ext_map_set(&map, kinds[i], m.ext_ids[i]), 0);
		packet_of(&slab)->flags = PACKET_AUDIO_LEVEL | PACKET_ORIENTATION |
					  PACKET_PLAYOUT_DELAY | PACKET_CAPTURE_TIME |
					  PACKET_DESCRIPTOR;
		packet_of(&slab)->descriptor_bytes = 20;
		bytes = mapping_write_header(&m, &slab, out);
		mapping_stamp(&m, out, 0xfedc, 70500000);
		cr_assert_eq(rtp_parse(out, bytes, &rtp), RTP_OK);
		cr_expect_eq(rtp.payload_offset, bytes);
		ext_read(&map, out, &rtp, &values);
		for (size_t i = 0; i < MAPPING_EXTS; i++)
			cr_expect(ext_has(&values, kinds[i]), "extension %zu from id %u", i,
				  firsts[f]);
		cr_expect_eq(values.transport_seq, 0xfedc);
		cr_expect_eq(values.abs_send_time, 13 << 17, "70.5 s, after the wrap at 64");
		cr_expect_eq(values.audio_level_dbov, 5);
		cr_expect(values.audio_is_voice);
		cr_expect_eq(values.orientation, 3);
		cr_expect_eq(values.playout_min_10ms, 0x012);
		cr_expect_eq(values.playout_max_10ms, 0x003);
		cr_expect_eq(values.capture_ntp, 0xc7c7c7c7c7c7c7c7);
		cr_expect_eq(values.span[EXT_DEPENDENCY_DESCRIPTOR].bytes, 20);
	}
}

/* The frame number lies behind the descriptor's first byte; nothing else of the header moves. */
Test(mapping, a_descriptors_frame_number_is_shifted_where_it_stands)
{
	static const uint8_t ids[] = { 1, 20 };

	for (size_t i = 0; i < sizeof(ids); i++) {
		uint8_t plain[MAPPING_HEADER_MAX_BYTES], shifted[MAPPING_HEADER_MAX_BYTES];
		size_t bytes, at = 0;

		setup();
		set_all_ids(ids[i]);
		m.ext_ids[MAPPING_DESCRIPTOR] = (uint8_t)(ids[i] + 5);
		set_stamp_ids((uint8_t)(ids[i] + 6));
		mapping_seal(&m);
		packet_of(&slab)->flags = PACKET_ORIENTATION | PACKET_DESCRIPTOR;
		packet_of(&slab)->descriptor_bytes = 20;
		memcpy(slab.data + packet_of(&slab)->descriptor_offset, "\x81\xff\xfe", 3);
		bytes = mapping_write_header(&m, &slab, plain);
		memcpy(shifted, plain, bytes);
		mapping_shift_frame(&m, &slab, shifted, 5);
		while (at < bytes && plain[at] == shifted[at])
			at++;
		cr_assert_lt(at + 2, bytes, "something changed");
		cr_expect_arr_eq(plain + at - 1, "\x81\xff\xfe", 3);
		cr_expect_arr_eq(shifted + at - 1, "\x81\x00\x03", 3);
		cr_expect_arr_eq(plain + at + 2, shifted + at + 2, bytes - at - 2);
		/* Nothing to shift. */
		packet_of(&slab)->flags = PACKET_ORIENTATION;
		bytes = mapping_write_header(&m, &slab, plain);
		memcpy(shifted, plain, bytes);
		mapping_shift_frame(&m, &slab, shifted, 5);
		cr_expect_arr_eq(plain, shifted, bytes);
	}
}

Test(mapping, padding_in_place_of_a_packet_ends_nothing)
{
	uint8_t header[12] = { 0x90, 0xe0 };

	mapping_set_padding(header);
	cr_expect_eq(header[0], 0xb0);
	cr_expect_eq(header[1], 0x60);
}

Test(mapping, the_longest_header_fits_its_bound)
{
	uint8_t out[MAPPING_HEADER_MAX_BYTES];
	char mid[MAPPING_MID_MAX_BYTES];

	memset(mid, 'm', sizeof(mid));
	set_all_ids(200);
	m.ext_ids[MAPPING_DESCRIPTOR] = 220;
	set_stamp_ids(230);
	cr_assert_eq(mapping_set_mid(&m, mid, sizeof(mid)), 0);
	cr_expect_eq(mapping_set_mid(&m, mid, sizeof(mid) + 1), -EINVAL);
	cr_expect_eq(mapping_set_mid(&m, mid, 0), -EINVAL);
	mapping_seal(&m);
	packet_of(&slab)->flags = PACKET_DESCRIPTOR;
	packet_of(&slab)->descriptor_bytes = 255;
	cr_expect_leq(mapping_write_header(&m, &slab, out), sizeof(out));
}

Test(mapping, a_repeat_is_the_same_byte_for_byte)
{
	uint8_t a[MAPPING_HEADER_MAX_BYTES], b[MAPPING_HEADER_MAX_BYTES];
	size_t bytes;

	set_all_ids(1);
	mapping_seal(&m);
	packet_of(&slab)->flags = PACKET_CAPTURE_TIME | PACKET_PLAYOUT_DELAY;
	memset(a, 0, sizeof(a));
	memset(b, 0xff, sizeof(b));
	bytes = mapping_write_header(&m, &slab, a);
	cr_assert_eq(mapping_write_header(&m, &slab, b), bytes);
	cr_expect_arr_eq(a, b, bytes);
}

Test(mapping, stamps_without_a_place_change_nothing)
{
	uint8_t before[MAPPING_HEADER_MAX_BYTES], after[MAPPING_HEADER_MAX_BYTES];
	size_t bytes;

	set_all_ids(1);
	mapping_seal(&m);
	bytes = mapping_write_header(&m, &slab, before);
	memcpy(after, before, bytes);
	mapping_stamp(&m, after, 0xffff, 1234567);
	cr_expect_arr_eq(after, before, bytes);
}

Test(mapping, a_patched_header_is_one_viewers)
{
	uint8_t out[MAPPING_HEADER_MAX_BYTES];
	struct rtp_packet rtp;
	size_t bytes;

	mapping_seal(&m);
	bytes = mapping_write_header(&m, &slab, out);
	mapping_patch(out, 0xfffe, 77, 0xdeadbeef);
	cr_assert_eq(rtp_parse(out, bytes, &rtp), RTP_OK);
	cr_expect_eq(rtp.seq, 0xfffe);
	cr_expect_eq(rtp.timestamp, 77);
	cr_expect_eq(rtp.ssrc, 0xdeadbeef);
	cr_expect_eq(rtp.payload_type, TYPE);
	cr_expect_not(rtp.marker);
	mapping_set_marker(out);
	mapping_make_rtx(&m, out, CODEC_VP8);
	cr_assert_eq(rtp_parse(out, bytes, &rtp), RTP_OK);
	cr_expect_eq(rtp.payload_type, RTX_TYPE);
	cr_expect(rtp.marker);
}

/* The relay's repeat as a receiver undoes it: header, number, shared payload. */
Test(mapping, a_repeat_by_rtx_is_unwrapped_to_the_original)
{
	static const uint16_t numbers[] = { 0, 1, 32767, 32768, 65534, 65535 };

	set_all_ids(1);
	mapping_seal(&m);
	packet_of(&slab)->flags = PACKET_MARKER | PACKET_ORIENTATION;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint8_t out[MAPPING_HEADER_MAX_BYTES + RTX_OSN_BYTES + 5];
		size_t bytes = mapping_write_header(&m, &slab, out);
		struct rtp_packet rtp;

		mapping_make_rtx(&m, out, CODEC_VP8);
		mapping_patch(out, 7, 1234, 0x1111);
		be16_write(out + bytes, numbers[i]);
		memcpy(out + bytes + RTX_OSN_BYTES, "hello", 5);
		cr_assert_eq(rtp_parse(out, bytes + RTX_OSN_BYTES + 5, &rtp), RTP_OK);
		cr_expect_eq(rtp.payload_type, RTX_TYPE);
		cr_expect_eq(rtp.seq, 7);
		cr_assert(rtx_unwrap(&rtp, out, 0x2222, TYPE));
		cr_expect_eq(rtp.seq, numbers[i]);
		cr_expect_eq(rtp.payload_type, TYPE);
		cr_expect_eq(rtp.ssrc, 0x2222);
		cr_expect_eq(rtp.timestamp, 1234);
		cr_expect(rtp.marker);
		cr_expect_eq(rtp.payload_bytes, 5);
		cr_expect_arr_eq(out + rtp.payload_offset, "hello", 5);
	}
}

Test(mapping, equal_values_are_equal_mappings)
{
	struct mapping other;

	set_all_ids(1);
	mapping_seal(&m);
	other = m;
	cr_expect(mapping_is_equal(&m, &other));
	cr_expect_eq(mapping_hash(&m), mapping_hash(&other));
	other.types[CODEC_H264] = 99;
	cr_expect_not(mapping_is_equal(&m, &other));
	cr_expect_neq(mapping_hash(&m), mapping_hash(&other));
	cr_expect(mapping_has_codec(&other, CODEC_H264));
	cr_expect_not(mapping_has_codec(&m, CODEC_H264));
	cr_expect_not(mapping_has_codec(&m, CODECS));
	cr_expect(mapping_has_rtx(&m, CODEC_VP8));
	cr_expect_not(mapping_has_rtx(&other, CODEC_H264));
}
