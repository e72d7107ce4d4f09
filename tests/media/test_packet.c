#include <criterion/criterion.h>

#include "media/packet.h"
#include "media/rtx.h"
#include "pool/bytes.h"

TestSuite(packet, .timeout = 10);
TestSuite(rtx, .timeout = 10);

static struct slab slab;

Test(packet, what_the_readers_found_is_kept)
{
	static const struct rtp_packet rtp = { .seq = 9,
					       .payload_offset = 40,
					       .payload_bytes = 100,
					       .padding_bytes = 7,
					       .marker = true };
	static const struct codec_info info = { .flags = CODEC_KEYFRAME_START | CODEC_FRAME_START |
							 CODEC_NOT_REFERENCED,
						.spatial_id = 2,
						.temporal_id = 1 };
	struct ext_values ext = {
		.present = 1 << EXT_AUDIO_LEVEL | 1 << EXT_VIDEO_ORIENTATION |
			   1 << EXT_PLAYOUT_DELAY | 1 << EXT_ABS_CAPTURE_TIME |
			   1 << EXT_DEPENDENCY_DESCRIPTOR,
		.audio_level_dbov = 127,
		.audio_is_voice = true,
		.orientation = 9,
	};
	const struct media_packet *p = packet_of(&slab);

	ext.span[EXT_PLAYOUT_DELAY] = (struct ext_span){ 20, 3 };
	ext.span[EXT_ABS_CAPTURE_TIME] = (struct ext_span){ 24, 16 };
	ext.span[EXT_DEPENDENCY_DESCRIPTOR] = (struct ext_span){ 30, 5 };
	memcpy(slab.data + 20, "\1\2\3", 3);
	packet_describe(&slab, &rtp, &ext, CODEC_VP8, &info, 123);
	cr_expect_eq(p->arrival_us, 123);
	cr_expect_eq(p->payload_offset, 40);
	cr_expect_eq(p->payload_bytes, 100);
	cr_expect_eq(p->codec, CODEC_VP8);
	cr_expect_eq(p->spatial_id, 2);
	cr_expect_eq(p->temporal_id, 1);
	cr_expect_eq(p->audio_level, 0xff);
	cr_expect_eq(p->orientation, 9);
	cr_expect_arr_eq(p->playout_delay, "\1\2\3", 3);
	cr_expect_eq(p->capture_offset, 24);
	cr_expect_eq(p->capture_bytes, 16);
	cr_expect_eq(p->descriptor_offset, 30);
	cr_expect_eq(p->descriptor_bytes, 5);
	cr_expect_eq(p->flags, PACKET_KEYFRAME | PACKET_FRAME_START | PACKET_MARKER |
				   PACKET_DISCARDABLE | PACKET_AUDIO_LEVEL | PACKET_ORIENTATION |
				   PACKET_PLAYOUT_DELAY | PACKET_CAPTURE_TIME | PACKET_DESCRIPTOR |
				   PACKET_FRAME_END);
	cr_expect_eq(p->encoding, 0);
	cr_expect_eq(p->targets, UINT32_MAX);
	cr_expect_eq(p->switches, UINT32_MAX);
	cr_expect_eq(p->ends, UINT32_MAX);
}

Test(packet, a_stream_without_layers_is_needed_whole_and_begun_at_key_frames)
{
	static const struct rtp_packet rtp = { .payload_offset = 12, .payload_bytes = 20 };
	static const struct codec_info delta = { .flags = CODEC_FRAME_START };
	static const struct codec_info layer_end = { .flags = CODEC_FRAME_END };

	packet_describe(&slab, &rtp, NULL, CODEC_VP9, &delta, 0);
	cr_expect_eq(packet_of(&slab)->targets, UINT32_MAX);
	cr_expect_eq(packet_of(&slab)->switches, 0);
	cr_expect_eq(packet_of(&slab)->ends, 0);
	cr_expect_not(packet_has(packet_of(&slab), PACKET_FRAME_END));
	packet_describe(&slab, &rtp, NULL, CODEC_VP9, &layer_end, 0);
	cr_expect(packet_has(packet_of(&slab), PACKET_FRAME_END), "without a marker");
}

Test(packet, the_marker_of_audio_ends_no_frame)
{
	static const struct rtp_packet rtp = { .payload_offset = 12, .marker = true };

	packet_describe(&slab, &rtp, NULL, CODEC_OPUS, NULL, 0);
	cr_expect_eq(packet_of(&slab)->flags, PACKET_MARKER);
}

Test(packet, what_nobody_looked_for_is_absent)
{
	static const struct rtp_packet rtp = { .payload_offset = 12 };

	memset(slab.meta, 0xff, sizeof(slab.meta));
	packet_describe(&slab, &rtp, NULL, CODEC_OPUS, NULL, 0);
	cr_expect_eq(packet_of(&slab)->flags, 0);
	cr_expect_eq(packet_of(&slab)->index, 0);
}

Test(rtx, a_repeat_becomes_the_original_again)
{
	static const struct rtp_header header = {
		.timestamp = 5, .ssrc = 111, .seq = 7, .payload_type = 97, .marker = true
	};
	uint8_t bytes[32] = { 0 };
	struct rtp_packet rtp;

	rtp_header_write(bytes, &header);
	be16_write(bytes + 12, 65535);
	cr_assert_eq(rtp_parse(bytes, sizeof(bytes), &rtp), RTP_OK);
	cr_assert(rtx_unwrap(&rtp, bytes, 222, 96));
	cr_expect_eq(rtp.seq, 65535);
	cr_expect_eq(rtp.ssrc, 222);
	cr_expect_eq(rtp.payload_type, 96);
	cr_expect_eq(rtp.timestamp, 5);
	cr_expect(rtp.marker);
	cr_expect_eq(rtp.payload_offset, 14);
	cr_expect_eq(rtp.payload_bytes, 18);
}

Test(rtx, a_probe_without_a_number_is_none)
{
	for (size_t bytes_in = 12; bytes_in < 14; bytes_in++) {
		uint8_t bytes[14] = { 0x80 };
		struct rtp_packet rtp, before;

		cr_assert_eq(rtp_parse(bytes, bytes_in, &rtp), RTP_OK);
		before = rtp;
		cr_expect_not(rtx_unwrap(&rtp, bytes, 222, 96));
		cr_expect_eq(memcmp(&rtp, &before, sizeof(rtp)), 0);
	}
}
