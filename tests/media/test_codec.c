#include "media/codec.h"

#include <criterion/criterion.h>
#include <string.h>

#include "media/rtp.h"
#include "tests/corpus.h"
#include "tests/hex.h"

TestSuite(codec, .timeout = 10);

enum { PAYLOAD_BYTES = 256 };

Test(codec, names_lead_back_to_their_codec)
{
	for (unsigned c = CODEC_NONE + 1; c < CODECS; c++) {
		enum media_codec codec = (enum media_codec)c;
		enum media_kind kind = codec_kind(codec);
		const char *name = codec_name(codec);

		cr_expect_eq(codec_of_name(kind, name, strlen(name)), codec, "%s", name);
		cr_expect_eq(codec_of_name(!kind, name, strlen(name)), CODEC_NONE, "%s", name);
		cr_expect_gt(codec_clock_hz(codec), 0);
	}
	cr_expect_eq(codec_of_name(MEDIA_VIDEO, "vp8", 3), CODEC_VP8);
	cr_expect_eq(codec_of_name(MEDIA_AUDIO, "OPUS/48000", 4), CODEC_OPUS);
	cr_expect_eq(codec_of_name(MEDIA_VIDEO, "VP80", 4), CODEC_NONE);
	cr_expect_eq(codec_of_name(MEDIA_AUDIO, "", 0), CODEC_NONE);
	cr_expect_eq(codec_clock_hz(CODEC_G722), 8000, "RFC 3551 keeps an old mistake");
	cr_expect_eq(codec_static_payload_type(CODEC_PCMU), 0);
	cr_expect_eq(codec_static_payload_type(CODEC_OPUS), -1);
}

enum {
	START = CODEC_FRAME_START,
	END = CODEC_FRAME_END,
	KEY = CODEC_KEYFRAME_START,
	PICTURE_ID = CODEC_HAS_PICTURE_ID,
	TL0 = CODEC_HAS_TL0PICIDX,
	LAYERS = CODEC_HAS_LAYERS,
	ANY = -1, /* flags of a payload that is refused, beyond KEY */
};

static const struct {
	const char *name;
	enum media_codec codec;
	const char *hex;
	bool ok;
	int flags;
	int width, height;
} payloads[] = {
	{ "any audio", CODEC_OPUS, "78", true, START, 0, 0 },
	{ "empty audio", CODEC_OPUS, "", false, 0, 0, 0 },

	{ "key frame", CODEC_VP8, "10 50e400 9d012a 8002e001 00", true, START | KEY, 640, 480 },
	{ "scaling bits are no size", CODEC_VP8, "10 50e400 9d012a 80c2e041 00", true, START | KEY,
	  640, 480 },
	{ "inter frame", CODEC_VP8, "10 51e400 9d012a 8002e001 00", true, START, 0, 0 },
	{ "no start code", CODEC_VP8, "10 50e400 9d012b 8002e001 00", true, START, 0, 0 },
	{ "frame header cut off", CODEC_VP8, "10 50e400 9d012a 8002e0", true, START, 0, 0 },
	{ "second partition", CODEC_VP8, "11 50e400 9d012a 8002e001 00", true, 0, 0, 0 },
	{ "middle of a partition", CODEC_VP8, "00 50e400 9d012a 8002e001", true, 0, 0, 0 },
	{ "not referenced", CODEC_VP8, "30 51", true, START | CODEC_NOT_REFERENCED, 0, 0 },
	{ "all optional fields", CODEC_VP8, "90 f0 8081 22 e7 50e400 9d012a 8002e001", true,
	  START | KEY | PICTURE_ID | TL0 | LAYERS | CODEC_HAS_KEYIDX | CODEC_SWITCH_UP, 640, 480 },
	{ "nothing", CODEC_VP8, "", false, ANY, 0, 0 },
	{ "first byte alone", CODEC_VP8, "10", false, ANY, 0, 0 },
	{ "extension without fields", CODEC_VP8, "90 00", false, ANY, 0, 0 },
	{ "long picture id cut off", CODEC_VP8, "90 80 85", false, ANY, 0, 0 },
	{ "picture id and no bitstream", CODEC_VP8, "90 80 05", false, ANY, 0, 0 },
	{ "extension missing", CODEC_VP8, "80", false, ANY, 0, 0 },
	{ "picture id missing", CODEC_VP8, "90 80", false, ANY, 0, 0 },
	{ "TL0PICIDX missing", CODEC_VP8, "90 40", false, ANY, 0, 0 },
	{ "TID missing", CODEC_VP8, "90 20", false, ANY, 0, 0 },

	{ "key frame, profile 0", CODEC_VP9, "0c 82498342 2027f01df0", true, START | END | KEY, 640,
	  480 },
	{ "key frame, profile 3", CODEC_VP9, "08 b124c1a108013f80ef80", true, START | KEY, 640,
	  480 },
	{ "inter frame of profile 3", CODEC_VP9, "08 b324c1a108013f80ef80", true, START, 0, 0 },
	{ "inter frame that does not set P", CODEC_VP9, "8c 8001 8600", true,
	  START | END | PICTURE_ID, 0, 0 },
	{ "existing frame shown again", CODEC_VP9, "08 8a498342 2027f01df0", true, START, 0, 0 },
	{ "P says inter", CODEC_VP9, "48 82498342 2027f01df0", true, START | CODEC_INTER_PICTURE, 0,
	  0 },
	{ "not the first packet", CODEC_VP9, "04 82498342 2027f01df0", true, END, 0, 0 },
	{ "upper spatial layer", CODEC_VP9, "28 03 07 82498342 2027f01df0", true,
	  START | LAYERS | TL0 | CODEC_INTER_LAYER, 0, 0 },
	{ "no frame marker", CODEC_VP9, "08 42498342 2027f01df0", true, START, 0, 0 },
	{ "scalability structure gives the largest size", CODEC_VP9,
	  "0a 38 014000f0 028001e0 01 04 01 82498342 2027f01df0", true,
	  START | KEY | CODEC_HAS_STRUCTURE, 640, 480 },
	{ "flexible mode's references", CODEC_VP9, "d8 05 03 02 86", true,
	  START | PICTURE_ID | CODEC_FLEXIBLE | CODEC_INTER_PICTURE, 0, 0 },
	{ "nothing", CODEC_VP9, "", false, ANY, 0, 0 },
	{ "descriptor alone", CODEC_VP9, "08", false, ANY, 0, 0 },
	{ "picture id cut off", CODEC_VP9, "88 80", false, ANY, 0, 0 },
	{ "layers cut off", CODEC_VP9, "28", false, ANY, 0, 0 },
	{ "TL0PICIDX cut off", CODEC_VP9, "28 00", false, ANY, 0, 0 },
	{ "a fourth reference", CODEC_VP9, "58 03 03 03 03 86", false, ANY, 0, 0 },
	{ "structure cut off", CODEC_VP9, "0a 38 014000f0 0280", false, ANY, 0, 0 },
	{ "structure's pictures cut off", CODEC_VP9, "0a 08 ff 04", false, ANY, 0, 0 },

	{ "IDR", CODEC_H264, "65 88 84", true, START | KEY, 0, 0 },
	{ "second slice of an IDR", CODEC_H264, "65 40 84", true, 0, 0, 0 },
	{ "inter slice", CODEC_H264, "41 9a", true, START, 0, 0 },
	{ "SPS alone", CODEC_H264, "67 42c01e 8c8d4050 1ed00f08 846a", true, START | KEY, 640,
	  480 },
	{ "high profile, cropped to 1080", CODEC_H264,
	  "67 640028 acd940 7802 27e5 9a8080 80a0 0000 0300 2000 0007 81e3 0632 c0", true,
	  START | KEY, 1920, 1080 },
	{ "SPS with an escaped byte before its size", CODEC_H264,
	  "6742c01ed00000030100000300e80a03d9", true, START | KEY, 640, 480 },
	{ "short SPS", CODEC_H264, "67 42c01e", true, START | KEY, 0, 0 },
	{ "SPS of one byte", CODEC_H264, "67", true, 0, 0, 0 },
	{ "PPS alone", CODEC_H264, "68 ce3c80", true, START, 0, 0 },
	{ "STAP-A of SPS, PPS, IDR", CODEC_H264,
	  "78 000e 6742c01e 8c8d4050 1ed00f08 846a 0004 68ce3c80 0003 658884", true, START | KEY,
	  640, 480 },
	{ "STAP-A whose last unit is cut off", CODEC_H264,
	  "78 000e 6742c01e 8c8d4050 1ed00f08 846a 0004 68ce3c80 03fd 658884", false, ANY, 640,
	  480 },
	{ "STAP-A with a unit of no bytes", CODEC_H264, "78 0000 0003 658884", false, ANY, 0, 0 },
	{ "STAP-A in a STAP-A", CODEC_H264, "78 0006 78 0003 658884", false, ANY, 0, 0 },
	{ "STAP-A of nothing", CODEC_H264, "78", false, ANY, 0, 0 },
	{ "FU-A start of an IDR", CODEC_H264, "7c 85 88", true, START | KEY, 0, 0 },
	{ "FU-A middle", CODEC_H264, "7c 05 88", true, 0, 0, 0 },
	{ "FU-A end", CODEC_H264, "7c 45 88", true, 0, 0, 0 },
	{ "FU-A start of a second slice", CODEC_H264, "7c 85 40", true, 0, 0, 0 },
	{ "FU-A start of an inter slice", CODEC_H264, "5c 81 9a", true, START, 0, 0 },
	{ "FU-A without data", CODEC_H264, "7c 85", false, ANY, 0, 0 },
	{ "type 0", CODEC_H264, "60 88", false, ANY, 0, 0 },
	{ "interleaved FU-B", CODEC_H264, "7d 85 0000 88", false, ANY, 0, 0 },
	{ "nothing", CODEC_H264, "", false, ANY, 0, 0 },

	{ "IDR", CODEC_H265, "26 01 af", true, START | KEY | LAYERS, 0, 0 },
	{ "CRA", CODEC_H265, "2a 01 af", true, START | KEY | LAYERS, 0, 0 },
	{ "later slice of an IDR", CODEC_H265, "26 01 2f", true, LAYERS, 0, 0 },
	{ "trailing picture", CODEC_H265, "02 01 d0", true, START | LAYERS, 0, 0 },
	{ "temporal switch", CODEC_H265, "08 02 d0", true, START | LAYERS | CODEC_SWITCH_UP, 0, 0 },
	{ "VPS", CODEC_H265, "40 01 0c01ff", true, START | KEY | LAYERS, 0, 0 },
	{ "PPS alone", CODEC_H265, "44 01 c172b4", true, START | LAYERS, 0, 0 },
	{ "AP of VPS, SPS, PPS", CODEC_H265, "60 01 0005 40010c01ff 0005 42010101ff 0003 4401c1",
	  true, START | KEY | LAYERS, 0, 0 },
	{ "AP cut off", CODEC_H265, "60 01 0005 40010c01ff 0005 4201", false, ANY, 0, 0 },
	{ "AP of nothing", CODEC_H265, "60 01", false, ANY, 0, 0 },
	{ "FU start of an IDR", CODEC_H265, "62 01 93 af", true, START | KEY | LAYERS, 0, 0 },
	{ "FU middle", CODEC_H265, "62 01 13 af", true, LAYERS, 0, 0 },
	{ "FU without data", CODEC_H265, "62 01 93", false, ANY, 0, 0 },
	{ "FU header missing", CODEC_H265, "62 01", false, ANY, 0, 0 },
	{ "temporal id 0 is forbidden", CODEC_H265, "26 00 af", false, ANY, 0, 0 },
	{ "forbidden bit", CODEC_H265, "a6 01 af", false, ANY, 0, 0 },
	{ "nothing", CODEC_H265, "", false, ANY, 0, 0 },

	{ "new sequence", CODEC_AV1, "28 0b 08000000 24c4ffdf 003f00 30 1000", true, START | KEY,
	  640, 480 },
	{ "new sequence of a level with a tier", CODEC_AV1, "18 08 00000042627fef80", true,
	  START | KEY, 640, 480 },
	{ "repeated sequence header", CODEC_AV1, "20 02 0800 30 1000", true, START, 0, 0 },
	{ "frame", CODEC_AV1, "10 30 1000", true, START, 0, 0 },
	{ "frame with layers", CODEC_AV1, "10 34 48 1000", true, START | LAYERS, 0, 0 },
	{ "tile group", CODEC_AV1, "10 20 1000", true, 0, 0, 0 },
	{ "continued", CODEC_AV1, "90 fec6", true, 0, 0, 0 },
	{ "length before the only element", CODEC_AV1, "00 03 301000", true, START, 0, 0 },
	{ "continued and new at once", CODEC_AV1, "98 30 1000", false, ANY, 0, 0 },
	{ "element runs past the end", CODEC_AV1, "08 04 080000", false, ANY, 0, 0 },
	{ "second element missing", CODEC_AV1, "28 02 0800", false, ANY, 0, 0 },
	{ "length without an end", CODEC_AV1, "08 ffffffff ffffffff ff", false, ANY, 0, 0 },
	{ "forbidden bit", CODEC_AV1, "18 88 00", false, ANY, 0, 0 },
	{ "layer byte missing", CODEC_AV1, "18 0c", false, ANY, 0, 0 },
	{ "first element empty", CODEC_AV1, "08 00 01 08", false, ANY, 0, 0 },
	{ "aggregation header alone", CODEC_AV1, "18", false, ANY, 0, 0 },
	{ "nothing", CODEC_AV1, "", false, ANY, 0, 0 },
};

Test(codec, payloads_say_what_they_carry)
{
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		uint8_t bytes[PAYLOAD_BYTES];
		size_t len = hex_bytes(payloads[i].hex, bytes, sizeof(bytes));
		const char *name = payloads[i].name;
		struct codec_info info;
		bool ok = codec_inspect(payloads[i].codec, bytes, len, &info);

		cr_expect_eq(ok, payloads[i].ok, "%s %s", codec_name(payloads[i].codec), name);
		if (payloads[i].flags == ANY)
			cr_expect_not(info.flags & KEY, "%s %s", codec_name(payloads[i].codec),
				      name);
		else
			cr_expect_eq(info.flags, (uint32_t)payloads[i].flags, "%s %s: %x",
				     codec_name(payloads[i].codec), name, info.flags);
		cr_expect(info.width == payloads[i].width && info.height == payloads[i].height,
			  "%s %s: %ux%u", codec_name(payloads[i].codec), name, info.width,
			  info.height);
	}
}

/* However a payload is cut, nothing is read past its end and no flag comes out of thin air. */
Test(codec, a_cut_payload_says_no_more_than_the_whole)
{
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		uint8_t bytes[PAYLOAD_BYTES];
		size_t len = hex_bytes(payloads[i].hex, bytes, sizeof(bytes));
		struct codec_info whole, cut;

		codec_inspect(payloads[i].codec, bytes, len, &whole);
		for (size_t n = 0; n < len; n++) {
			/* At an allocation's end, so that a sanitizer sees a read beyond. */
			uint8_t *exact = malloc(n + 1);

			cr_assert(exact);
			memcpy(exact + 1, bytes, n);
			codec_inspect(payloads[i].codec, exact + 1, n, &cut);
			if (payloads[i].ok)
				cr_expect_eq(cut.flags & ~whole.flags, 0, "%s cut to %zu",
					     payloads[i].name, n);
			free(exact);
		}
	}
}

static const struct {
	const char *name;
	enum media_codec codec;
	const char *hex;
	int picture_id, bits, tl0, keyidx, sid, tid, descriptor;
} fields[] = {
	{ "VP8, everything", CODEC_VP8, "90 f0 8102 22 e7 51", 0x102, 15, 0x22, 7, 0, 3, 6 },
	{ "VP8, short id", CODEC_VP8, "90 80 7f 51", 0x7f, 7, 0, 0, 0, 0, 3 },
	{ "VP8, layers only", CODEC_VP8, "90 20 80 51", 0, 0, 0, 0, 0, 2, 3 },
	{ "VP9, everything", CODEC_VP9, "e8 8102 b7 44 86", 0x102, 15, 0x44, 0, 3, 5, 5 },
	{ "VP9, short id", CODEC_VP9, "88 7f 86", 0x7f, 7, 0, 0, 0, 0, 2 },
	{ "VP9, flexible", CODEC_VP9, "b8 05 24 86", 5, 7, 0, 0, 2, 1, 3 },
	{ "H265", CODEC_H265, "03 0c d0", 0, 0, 0, 0, 33, 3, 0 },
	{ "AV1", CODEC_AV1, "10 34 50 1000", 0, 0, 0, 0, 2, 2, 0 },
};

Test(codec, ids_and_layers_are_read_where_they_lie)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint8_t bytes[PAYLOAD_BYTES];
		size_t len = hex_bytes(fields[i].hex, bytes, sizeof(bytes));
		struct codec_info n;

		cr_expect(codec_inspect(fields[i].codec, bytes, len, &n), "%s", fields[i].name);
		cr_expect(n.picture_id == fields[i].picture_id &&
			      n.picture_id_bits == fields[i].bits,
			  "%s: %x of %u bits", fields[i].name, n.picture_id, n.picture_id_bits);
		cr_expect_eq(n.tl0picidx, fields[i].tl0, "%s", fields[i].name);
		cr_expect_eq(n.keyidx, fields[i].keyidx, "%s", fields[i].name);
		cr_expect_eq(n.spatial_id, fields[i].sid, "%s: %u", fields[i].name, n.spatial_id);
		cr_expect_eq(n.temporal_id, fields[i].tid, "%s: %u", fields[i].name, n.temporal_id);
		cr_expect_eq(n.descriptor_bytes, fields[i].descriptor, "%s", fields[i].name);
	}
}

static const struct {
	const char *before;
	uint16_t picture_id;
	uint8_t tl0;
	const char *after;
} patches[] = {
	{ "90 f0 8102 22 e7 51", 0x7fff, 0xfe, "90 f0 ffff fe e7 51" },
	{ "90 f0 ffff ff e7 51", 0, 0, "90 f0 8000 00 e7 51" },
	{ "90 f0 8102 22 e7 51", 0xffff, 1, "90 f0 ffff 01 e7 51" },
	{ "90 80 7f 51", 0x1234, 9, "90 80 34 51" },
	{ "90 80 00 51", 0x80ff, 9, "90 80 7f 51" },
	{ "90 40 00 51", 0x1234, 9, "90 40 09 51" },
	{ "90 20 80 51", 0x1234, 9, "90 20 80 51" },
	{ "10 51", 0x1234, 9, "10 51" },
};

Test(codec, patching_keeps_every_size_and_every_other_byte)
{
	for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
		uint8_t bytes[PAYLOAD_BYTES], want[PAYLOAD_BYTES];
		size_t len = hex_bytes(patches[i].before, bytes, sizeof(bytes));
		struct codec_info info;

		cr_assert_eq(hex_bytes(patches[i].after, want, sizeof(want)), len);
		cr_assert(codec_inspect(CODEC_VP8, bytes, len, &info));
		codec_patch_ids(bytes, &info, patches[i].picture_id, patches[i].tl0);
		cr_expect_arr_eq(bytes, want, len, "%s", patches[i].before);
	}
}

/* Key frames of the captures by sequence number. Those of VP8 and H264 were compared once by hand
 * with what Wireshark's dissectors say; they say "bad NAL length" of the one refused payload. */
static const struct {
	const char *capture;
	enum media_codec codec;
	size_t refused;
	uint16_t keys[12];      /* 0 ends the list */
	uint16_t width, height; /* of the first */
} captures[] = {
	{ "vp8.pcap", CODEC_VP8, 0, { 14260, 14262, 14265 }, 240, 180 },
	{ "vp9.pcap", CODEC_VP9, 0, { 19357 }, 494, 371 },
	{ "contiguous_vp9.pcap", CODEC_VP9, 0, { 0 }, 0, 0 },
	{ "h264.pcap",
	  CODEC_H264,
	  1,
	  { 19249, 19251, 19301, 19351, 19401, 19402, 19451, 19452, 19501, 19502 },
	  494,
	  370 },
	{ "av1.pcap", CODEC_AV1, 0, { 7485 }, 640, 480 },
};

struct capture_walk {
	size_t row, keys, refused;
};

static void expect_keyframes(const char *name, const uint8_t *bytes, size_t len, void *ctx)
{
	struct capture_walk *walk = ctx;
	struct codec_info info;
	struct rtp_packet p;

	cr_assert_eq(rtp_parse(bytes, len, &p), RTP_OK, "%s", name);
	if (!codec_inspect(captures[walk->row].codec, bytes + p.payload_offset, p.payload_bytes,
			   &info))
		walk->refused++;
	if (!(info.flags & KEY))
		return;
	cr_assert_lt(walk->keys, 12);
	cr_expect_eq(p.seq, captures[walk->row].keys[walk->keys], "%s: key frame at %u", name,
		     p.seq);
	if (walk->keys == 0)
		cr_expect(info.width == captures[walk->row].width &&
			      info.height == captures[walk->row].height,
			  "%s: %ux%u", name, info.width, info.height);
	walk->keys++;
}

Test(codec, key_frames_of_captured_streams_are_found)
{
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
		struct capture_walk walk = { .row = i };
		size_t want = 0;

		if (corpus_each_datagram(captures[i].capture, expect_keyframes, &walk) == 0)
			continue;
		while (captures[i].keys[want])
			want++;
		cr_expect_eq(walk.keys, want, "%s: %zu", captures[i].capture, walk.keys);
		cr_expect_eq(walk.refused, captures[i].refused, "%s: %zu", captures[i].capture,
			     walk.refused);
	}
}
