#include "media/rtp.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/corpus.h"
#include "tests/hex.h"

TestSuite(rtp, .timeout = 10);

static const struct {
	const char *name;
	const char *hex;
	enum rtp_verdict want;
	int payload_bytes, padding_bytes; /* of RTP_OK */
} packets[] = {
	{ "nothing", "", RTP_SHORT, 0, 0 },
	{ "eleven bytes", "80600001 00000002 000000", RTP_SHORT, 0, 0 },
	{ "a header alone", "80600001 00000002 00000003", RTP_OK, 0, 0 },
	{ "version 1", "40600001 00000002 00000003 ff", RTP_BAD_VERSION, 0, 0 },
	{ "version 3", "c0600001 00000002 00000003 ff", RTP_BAD_VERSION, 0, 0 },
	{ "one payload byte", "80600001 00000002 00000003 aa", RTP_OK, 1, 0 },
	{ "CSRC list cut off", "82600001 00000002 00000003 00000004", RTP_SHORT, 0, 0 },
	{ "two CSRCs", "82600001 00000002 00000003 00000004 00000005 aa", RTP_OK, 1, 0 },
	{ "extension header cut off", "90600001 00000002 00000003 bede00", RTP_BAD_EXTENSION, 0,
	  0 },
	{ "extension cut off", "90600001 00000002 00000003 bede0002 10aa0000", RTP_BAD_EXTENSION, 0,
	  0 },
	{ "extension", "90600001 00000002 00000003 bede0001 10aa0000 bb", RTP_OK, 1, 0 },
	{ "empty extension", "90600001 00000002 00000003 bede0000", RTP_OK, 0, 0 },
	{ "padding without a payload", "a0600001 00000002 00000003", RTP_BAD_PADDING, 0, 0 },
	{ "padding count 0", "a0600001 00000002 00000003 aa00", RTP_BAD_PADDING, 0, 0 },
	{ "padding above the payload", "a0600001 00000002 00000003 aa03", RTP_BAD_PADDING, 0, 0 },
	{ "padding only", "a0600001 00000002 00000003 000003", RTP_OK, 0, 3 },
	{ "payload and padding", "a0600001 00000002 00000003 aabb0002", RTP_OK, 2, 2 },
	{ "padding may not reach into the extension",
	  "b0600001 00000002 00000003 bede0001 10aa0006 06", RTP_BAD_PADDING, 0, 0 },
	{ "ten bytes a fuzzer found", "9064ff7461ffff74ff80", RTP_SHORT, 0, 0 },
};

Test(rtp, header_and_padding_are_bounded_by_the_packet)
{
	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		uint8_t bytes[64];
		size_t len = hex_bytes(packets[i].hex, bytes, sizeof(bytes));
		struct rtp_packet p;
		enum rtp_verdict got = rtp_parse(bytes, len, &p);

		cr_expect_eq(got, packets[i].want, "%s: got %d", packets[i].name, got);
		if (got != RTP_OK || packets[i].want != RTP_OK)
			continue;
		cr_expect_eq(p.payload_bytes, packets[i].payload_bytes, "%s", packets[i].name);
		cr_expect_eq(p.padding_bytes, packets[i].padding_bytes, "%s", packets[i].name);
		cr_expect_eq((size_t)p.payload_offset + p.payload_bytes + p.padding_bytes, len,
			     "%s", packets[i].name);
	}
}

Test(rtp, a_sealed_packet_keeps_its_padding_unread)
{
	uint8_t bytes[64];
	size_t len = hex_bytes("a0600001 00000002 00000003 aabbccff", bytes, sizeof(bytes));
	struct rtp_packet p;

	cr_expect_eq(rtp_parse(bytes, len, &p), RTP_BAD_PADDING);
	cr_assert_eq(rtp_parse_header(bytes, len, &p), RTP_OK);
	cr_expect_eq(p.payload_bytes, 4);
	cr_expect_eq(p.padding_bytes, 0);
}

Test(rtp, a_packet_above_the_largest_datagram_is_refused)
{
	static uint8_t bytes[RTP_PACKET_MAX_BYTES + 1] = { 0x80 };
	struct rtp_packet p;

	cr_expect_eq(rtp_parse(bytes, sizeof(bytes), &p), RTP_SHORT);
	cr_assert_eq(rtp_parse(bytes, sizeof(bytes) - 1, &p), RTP_OK);
	cr_expect_eq(p.payload_bytes, RTP_PACKET_MAX_BYTES - RTP_HEADER_BYTES);
}

Test(rtp, a_written_header_reads_back)
{
	const struct rtp_header want = { .timestamp = 0xfedcba98,
					 .ssrc = 0x89abcdef,
					 .seq = 65535,
					 .payload_type = 127,
					 .marker = true,
					 .has_extension = true,
					 .has_padding = true };
	uint8_t bytes[RTP_HEADER_BYTES + 4 + 8] = { 0 };
	struct rtp_packet p;

	rtp_header_write(bytes, &want);
	bytes[12] = 0xbe;
	bytes[13] = 0xde;
	rtp_padding_write(bytes + 16, 8);
	cr_assert_eq(rtp_parse(bytes, sizeof(bytes), &p), RTP_OK);
	cr_expect_eq(p.timestamp, want.timestamp);
	cr_expect_eq(p.ssrc, want.ssrc);
	cr_expect_eq(p.seq, want.seq);
	cr_expect_eq(p.payload_type, want.payload_type);
	cr_expect(p.marker);
	cr_expect_eq(p.ext_profile, 0xbede);
	cr_expect_eq(p.padding_bytes, 8);
	cr_expect_eq(p.payload_bytes, 0);
}

Test(rtp, rtcp_is_told_from_rtp_by_its_packet_type)
{
	static const struct {
		uint8_t first, second;
		bool want;
	} rows[] = {
		{ 0x80, 191, false }, { 0x80, 192, true },  { 0x81, 200, true },
		{ 0x8f, 223, true },  { 0x80, 224, false }, { 0x80, 96, false },
		{ 0x00, 200, false }, { 0xc0, 200, false },
	};
	const uint8_t one[] = { 0x80 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t bytes[] = { rows[i].first, rows[i].second };

		cr_expect_eq(rtp_is_rtcp(bytes, 2), rows[i].want, "%02x %u", bytes[0], bytes[1]);
	}
	cr_expect_not(rtp_is_rtcp(one, 1));
}

/* Sequence numbers wrap where bugs live: every row runs from every start. */
static const uint16_t starts[] = { 0, 1, 32767, 32768, 65534, 65535 };

static const struct {
	const char *name;
	uint16_t step;
	int want;
} steps[] = {
	{ "same", 0, 0 },
	{ "next", 1, 1 },
	{ "previous", (uint16_t)-1, -1 },
	{ "farthest ahead", 32767, 32767 },
	{ "farthest behind", 32769, -32767 },
	{ "half the circle is behind", 32768, -32768 },
};

Test(rtp, sequence_numbers_keep_their_order_over_the_wrap)
{
	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			uint16_t seq = (uint16_t)(starts[s] + steps[i].step);
			uint64_t reference = 5 * UINT64_C(65536) + starts[s];
			uint64_t got = rtp_seq_unwrap(reference, seq);

			cr_expect_eq(rtp_seq_diff(seq, starts[s]), steps[i].want, "%s from %u",
				     steps[i].name, starts[s]);
			cr_expect_eq(rtp_seq_is_newer(seq, starts[s]), steps[i].want > 0);
			cr_expect_eq(got, reference + (uint64_t)steps[i].want, "%s from %u",
				     steps[i].name, starts[s]);
			cr_expect_eq((uint16_t)got, seq);
		}
	}
}

Test(rtp, no_extended_number_lies_before_zero)
{
	cr_expect_eq(rtp_seq_unwrap(0, 65535), 65535);
	cr_expect_eq(rtp_seq_unwrap(10, 0), 0);
	cr_expect_eq(rtp_seq_unwrap(10, 65535), 65535);
	cr_expect_eq(rtp_seq_unwrap(RTP_SEQ_CYCLE + 10, 65535), 65535);
}

Test(rtp, timestamps_keep_their_order_over_the_wrap)
{
	static const uint32_t from[] = { 0, 1, INT32_MAX, 0x80000000, UINT32_MAX };

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		cr_expect_eq(rtp_timestamp_diff(from[i] + 3000, from[i]), 3000);
		cr_expect_eq(rtp_timestamp_diff(from[i] - 3000, from[i]), -3000);
	}
}

/* A header written from what was parsed parses to the same. */
static void expect_stable(const char *name, const uint8_t *bytes, size_t len, void *ctx)
{
	size_t *accepted = ctx;
	uint8_t again[RTP_HEADER_BYTES];
	struct rtp_packet p, q;

	if (rtp_parse(bytes, len, &p) != RTP_OK)
		return;
	++*accepted;
	cr_expect_eq((size_t)p.payload_offset + p.payload_bytes + p.padding_bytes, len, "%s", name);
	cr_expect_leq(p.ext_offset + p.ext_bytes, p.payload_offset, "%s", name);
	rtp_header_write(again, &(struct rtp_header){ p.timestamp, p.ssrc, p.seq, p.payload_type,
						      p.marker, false, false });
	cr_assert_eq(rtp_parse(again, sizeof(again), &q), RTP_OK);
	cr_expect(p.seq == q.seq && p.timestamp == q.timestamp && p.ssrc == q.ssrc &&
		      p.payload_type == q.payload_type && p.marker == q.marker,
		  "%s", name);
}

Test(rtp, collected_packets_stay_within_bounds_and_parse_stably)
{
	size_t accepted = 0;
	size_t seen = corpus_each_file("rtp", expect_stable, &accepted);

	cr_expect(seen == 0 || accepted > 0, "none of %zu accepted", seen);
}
