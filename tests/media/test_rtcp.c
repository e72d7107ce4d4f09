#include "media/rtcp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/corpus.h"
#include "tests/hex.h"

TestSuite(rtcp, .timeout = 10);

enum { PACKET_BYTES = 1500 };

/* Kinds of all members in order, by number, with M where the walk ends badly. */
static void walk(const uint8_t *bytes, size_t len, char *out, size_t cap)
{
	struct rtcp_cursor c;
	struct rtcp_member m;
	enum rtcp_next next;
	size_t n = 0;

	out[0] = '\0';
	rtcp_cursor_init(&c, bytes, len);
	while ((next = rtcp_cursor_next(&c, &m)) == RTCP_NEXT_MEMBER) {
		cr_assert(m.body >= bytes && m.body + m.body_bytes <= bytes + len);
		n += (size_t)snprintf(out + n, cap - n, "%d ", m.kind);
	}
	if (next == RTCP_NEXT_MALFORMED)
		snprintf(out + n, cap - n, "M");
	cr_expect_eq(rtcp_cursor_next(&c, &m), RTCP_NEXT_END, "goes on after its end");
}

/* RTCP_SR 0, RR 1, SDES 2, BYE 3, APP 4, NACK 5, TRANSPORT_CC 6, PLI 7, FIR 8, REMB 9, XR 10 */
static const struct {
	const char *name, *hex, *want;
} compounds[] = {
	{ "nothing", "", "" },
	{ "three bytes", "80c900", "M" },
	{ "RR without reports", "80c90001 00000001", "1 " },
	{ "version 1", "40c90001 00000001", "M" },
	{ "one word short", "80c90002 00000001", "M" },
	{ "SR and SDES from a phone",
	  "80c80006 9cf6b791 e020b715 e45b8dc5 c5df70cd 0000020e 00069e0a"
	  "81ca0006 9cf6b791 01106a76 43624958 2f545877 52354d51 71630000",
	  "0 2 " },
	{ "reduced-size PLI alone", "81ce0002 8c08a05d f310a866", "7 " },
	{ "RR, then feedback with a length beyond the end",
	  "80c90001 00000001 81cd0064 00000001 00000002", "1 M" },
	{ "SR that counts a report it has not",
	  "81c8000c 12345678 00000000 00000000 00000000 00000000 00000000"
	  "00000000 00000000 00000000 00000000 00000000 00000000",
	  "0 " },
	{ "NACK", "81cd0003 5bf5b77d b075af13 a84f0008", "5 " },
	{ "transport-cc", "8fcd0004 00000001 00000002 00010001 00000000", "6 " },
	{ "FIR", "84ce0004 8c08a05d 00000000 f310a866 0a000000", "8 " },
	{ "REMB", "8fce0005 8c08a05d 00000000 52454d42 0101f400 f310a866", "9 " },
	{ "application feedback of another name",
	  "8fce0005 8c08a05d 00000000 52454d43 0101f400 f310a866", "11 " },
	{ "application feedback too short for a name", "8fce0002 8c08a05d 00000000", "11 " },
	{ "APP, XR, BYE, unknown",
	  "80cc0002 00000001 61626364 80cf0001 00000001 81cb0001 00000001"
	  "80d00000",
	  "4 10 3 11 " },
	{ "padding", "a0c90002 00000001 00000004", "1 " },
	{ "padding count 0", "a0c90002 00000001 00000000", "M" },
	{ "padding not of words, as libwebrtc has it", "a0c90002 00000001 00000003", "1 " },
	{ "padding above the body", "a0c90002 00000001 0000000c", "M" },
	{ "padding without a body", "a0c90000", "M" },
};

Test(rtcp, members_are_walked_within_their_bounds)
{
	for (size_t i = 0; i < sizeof(compounds) / sizeof(compounds[0]); i++) {
		uint8_t bytes[PACKET_BYTES];
		size_t len = hex_bytes(compounds[i].hex, bytes, sizeof(bytes));
		char got[64];

		walk(bytes, len, got, sizeof(got));
		cr_expect_str_eq(got, compounds[i].want, "%s: got %s", compounds[i].name, got);
	}
}

static struct rtcp_member first_member(const uint8_t *bytes, size_t len, enum rtcp_kind want)
{
	struct rtcp_cursor c;
	struct rtcp_member m;

	rtcp_cursor_init(&c, bytes, len);
	cr_assert_eq(rtcp_cursor_next(&c, &m), RTCP_NEXT_MEMBER);
	cr_assert_eq(m.kind, want);
	return m;
}

static struct rtcp_feedback first_feedback(const uint8_t *bytes, size_t len, enum rtcp_kind want)
{
	struct rtcp_member m = first_member(bytes, len, want);
	struct rtcp_feedback fb;

	cr_assert(rtcp_parse_feedback(&m, &fb));
	return fb;
}

Test(rtcp, a_report_count_beyond_the_member_is_refused)
{
	/* The reports would lie in the next member. */
	static const char *const rows[] = {
		"81c80006 12345678 00000000 00000000 00000000 00000000 00000000"
		"81ca0006 9cf6b791 01106a76 43624958 2f545877 52354d51 71630000",
		"81c8000b 12345678 00000000 00000000 00000000 00000000 00000000"
		"00000000 00000000 00000000 00000000 00000000",
		"80c80005 12345678 00000000 00000000 00000000 00000000",
		"80c80000",
	};
	uint8_t bytes[PACKET_BYTES];
	struct rtcp_sender_info info;
	struct rtcp_member m;
	uint32_t ssrc;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		m = first_member(bytes, hex_bytes(rows[i], bytes, sizeof(bytes)), RTCP_SR);
		cr_expect_not(rtcp_parse_sr(&m, &ssrc, &info), "%s", rows[i]);
	}
	m = first_member(bytes,
			 hex_bytes("82c90007 12345678 00000000 00000000 00000000 00000000"
				   "00000000 00000000",
				   bytes, sizeof(bytes)),
			 RTCP_RR);
	cr_expect_not(rtcp_parse_rr(&m, &ssrc));
}

Test(rtcp, a_senders_report_says_what_it_was_built_from)
{
	const struct rtcp_sender_info want = { UINT64_C(0xe020b715e45b8dc5), 0xc5df70cd, 526,
					       433674 };
	const struct rtcp_report reports[2] = {
		{ 0x11111111, 255, -1, 0xffff0001, 7, 0xdeadbeef, 65536 },
		{ 0x22222222, 0, 0x7fffff, 65535, 0, 0, 0 },
	};
	uint8_t bytes[PACKET_BYTES];
	struct rtcp_sender_info got;
	struct rtcp_writer w;
	struct rtcp_member m;
	struct rtcp_report r;
	uint32_t ssrc;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_sr(&w, 0x9cf6b791, &want, reports, 2), 0);
	cr_expect_eq(w.len_bytes, 28 + 48);
	m = first_member(bytes, w.len_bytes, RTCP_SR);
	cr_assert(rtcp_parse_sr(&m, &ssrc, &got));
	cr_expect_eq(ssrc, 0x9cf6b791);
	cr_expect(got.ntp == want.ntp && got.rtp_timestamp == want.rtp_timestamp &&
		  got.packets == want.packets && got.bytes == want.bytes);
	cr_assert_eq(m.count, 2);
	for (size_t i = 0; i < 2; i++) {
		rtcp_report_read(&m, i, &r);
		cr_expect(
		    r.ssrc == reports[i].ssrc && r.fraction_lost == reports[i].fraction_lost &&
		    r.lost_pkts == reports[i].lost_pkts &&
		    r.highest_seq == reports[i].highest_seq &&
		    r.jitter_ticks == reports[i].jitter_ticks && r.last_sr == reports[i].last_sr &&
		    r.delay_q16_s == reports[i].delay_q16_s);
	}
}

Test(rtcp, cumulative_loss_is_clamped_to_24_bits)
{
	static const struct {
		int32_t in, want;
	} rows[] = {
		{ 0x7fffff, 0x7fffff },   { 0x800000, 0x7fffff },   { INT32_MAX, 0x7fffff },
		{ -0x800000, -0x800000 }, { -0x800001, -0x800000 }, { INT32_MIN, -0x800000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct rtcp_report report = { .lost_pkts = rows[i].in };
		uint8_t bytes[64];
		struct rtcp_writer w;
		struct rtcp_member m;
		struct rtcp_report got;

		rtcp_writer_init(&w, bytes, sizeof(bytes));
		cr_assert_eq(rtcp_write_rr(&w, 1, &report, 1), 0);
		m = first_member(bytes, w.len_bytes, RTCP_RR);
		rtcp_report_read(&m, 0, &got);
		cr_expect_eq(got.lost_pkts, rows[i].want, "%d: %d", rows[i].in, got.lost_pkts);
	}
}

/* Every item as "ssrc:type=text ". */
static const struct {
	const char *name, *hex, *want;
} descriptions[] = {
	{ "one CNAME", "81ca0003 00000001 01026162 00000000", "1:1=ab " },
	{ "two chunks", "82ca0006 00000001 01026162 00000000 00000002 01016300 00000000",
	  "1:1=ab "
	  "2:1=c " },
	{ "chunks ended by a single null", "82ca0004 00000001 01016100 00000002 01016200",
	  "1:1=a 2:1=b " },
	{ "item of no bytes", "81ca0002 00000001 01000000", "1:1= " },
	{ "two items", "81ca0003 00000001 01016102 01620000", "1:1=a 1:2=b " },
	{ "chunk without items", "82ca0005 00000001 00000000 00000002 01016300 00000000",
	  "2:1=c " },
	{ "text runs past the end", "81ca0002 00000001 01036162", "" },
	{ "item header cut off by the end", "81ca0002 00000001 01016101", "1:1=a " },
	{ "no terminating null", "81ca0002 00000001 01026162", "1:1=ab " },
	{ "more chunks counted than there are", "9fca0003 00000001 01026162 00000000", "1:1=ab " },
	{ "no chunk", "81ca0000", "" },
};

Test(rtcp, source_descriptions_are_read_chunk_by_chunk)
{
	for (size_t i = 0; i < sizeof(descriptions) / sizeof(descriptions[0]); i++) {
		uint8_t bytes[PACKET_BYTES];
		size_t len = hex_bytes(descriptions[i].hex, bytes, sizeof(bytes));
		struct rtcp_member m = first_member(bytes, len, RTCP_SDES);
		struct rtcp_sdes_cursor c;
		struct rtcp_sdes_item item;
		char got[64] = "";
		size_t n = 0;

		rtcp_sdes_init(&c, &m);
		while (rtcp_sdes_next(&c, &item))
			n += (size_t)snprintf(got + n, sizeof(got) - n, "%u:%u=%.*s ", item.ssrc,
					      item.type, item.bytes, item.text);
		cr_expect_str_eq(got, descriptions[i].want, "%s: got %s", descriptions[i].name,
				 got);
		cr_expect_not(rtcp_sdes_next(&c, &item));
	}
}

Test(rtcp, a_cname_of_any_length_reads_back)
{
	char cname[RTCP_CNAME_MAX_BYTES];

	memset(cname, 'c', sizeof(cname));
	for (size_t len = 0; len <= sizeof(cname); len++) {
		uint8_t bytes[512];
		struct rtcp_sdes_cursor c;
		struct rtcp_sdes_item item;
		struct rtcp_writer w;
		struct rtcp_member m;

		rtcp_writer_init(&w, bytes, sizeof(bytes));
		cr_assert_eq(rtcp_write_sdes_cname(&w, 7, cname, len), 0);
		m = first_member(bytes, w.len_bytes, RTCP_SDES);
		rtcp_sdes_init(&c, &m);
		cr_assert(rtcp_sdes_next(&c, &item), "%zu", len);
		cr_expect(item.ssrc == 7 && item.type == RTCP_SDES_CNAME && item.bytes == len);
		cr_expect_not(rtcp_sdes_next(&c, &item), "%zu", len);
		cr_expect_eq(bytes[w.len_bytes - 1], 0, "a null ends the chunk");
	}
}

Test(rtcp, bye_names_no_more_sources_than_it_holds)
{
	const uint32_t ssrcs[2] = { 1, 0xffffffff };
	uint8_t bytes[64];
	struct rtcp_writer w;
	struct rtcp_member m;
	uint32_t ssrc;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_bye(&w, ssrcs, 2), 0);
	m = first_member(bytes, w.len_bytes, RTCP_BYE);
	cr_expect(rtcp_bye_ssrc(&m, 0, &ssrc) && ssrc == 1);
	cr_expect(rtcp_bye_ssrc(&m, 1, &ssrc) && ssrc == 0xffffffff);
	cr_expect_not(rtcp_bye_ssrc(&m, 2, &ssrc));
	m = first_member(bytes, hex_bytes("83cb0001 00000009", bytes, sizeof(bytes)), RTCP_BYE);
	cr_expect(rtcp_bye_ssrc(&m, 0, &ssrc) && ssrc == 9);
	cr_expect_not(rtcp_bye_ssrc(&m, 1, &ssrc), "counted, not there");
}

/* Sequence numbers wrap where bugs live: every row runs from every start. */
static const uint16_t starts[] = { 0, 1, 32767, 32768, 65534, 65535 };

static const struct {
	const char *name;
	uint16_t steps[8];
	size_t n;
	size_t entries;
} losses[] = {
	{ "one", { 0 }, 1, 1 },
	{ "a run", { 0, 1, 2, 3, 4 }, 5, 1 },
	{ "first and last of one entry", { 0, 16 }, 2, 1 },
	{ "one beyond an entry", { 0, 17 }, 2, 2 },
	{ "far apart", { 0, 1000, 1016, 1017, 30000 }, 5, 4 },
	{ "all of an entry's ends", { 0, 1, 15, 16, 17, 18, 33, 34 }, 8, 3 },
};

static void expect_nack(size_t row, uint16_t start)
{
	uint16_t seqs[8];
	uint8_t bytes[128];
	struct rtcp_feedback fb;
	struct rtcp_nack_cursor c;
	struct rtcp_writer w;
	uint16_t seq;

	for (size_t i = 0; i < losses[row].n; i++)
		seqs[i] = (uint16_t)(start + losses[row].steps[i]);
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_nack(&w, 1, 2, seqs, losses[row].n), (int)losses[row].n);
	fb = first_feedback(bytes, w.len_bytes, RTCP_NACK);
	cr_expect(fb.sender_ssrc == 1 && fb.media_ssrc == 2);
	cr_expect_eq(fb.fci_bytes, losses[row].entries * 4, "%s from %u", losses[row].name, start);
	rtcp_nack_init(&c, &fb);
	for (size_t i = 0; i < losses[row].n; i++)
		cr_expect(rtcp_nack_next(&c, &seq) && seq == seqs[i], "%s from %u: %u at %zu",
			  losses[row].name, start, seq, i);
	cr_expect_not(rtcp_nack_next(&c, &seq), "%s from %u", losses[row].name, start);
}

Test(rtcp, lost_numbers_come_back_in_order_over_the_wrap)
{
	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++)
		for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
			expect_nack(i, starts[s]);
}

Test(rtcp, a_nack_takes_as_many_numbers_as_its_space_holds)
{
	const uint16_t seqs[] = { 10, 100, 200, 201 };
	uint8_t bytes[64];
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, 15);
	cr_expect_eq(rtcp_write_nack(&w, 1, 2, seqs, 4), -ENOSPC);
	cr_expect_eq(w.len_bytes, 0);
	rtcp_writer_init(&w, bytes, 20);
	cr_expect_eq(rtcp_write_nack(&w, 1, 2, seqs, 4), 2);
	cr_expect_eq(first_feedback(bytes, w.len_bytes, RTCP_NACK).fci_bytes, 8);
	rtcp_writer_init(&w, bytes, 24);
	cr_expect_eq(rtcp_write_nack(&w, 1, 2, seqs, 4), 4);
}

Test(rtcp, a_nack_gives_all_17_numbers_of_an_entry_and_ignores_half_an_entry)
{
	uint8_t bytes[64];
	size_t len = hex_bytes("81cd0003 00000001 00000002 fff8ffff", bytes, sizeof(bytes));
	struct rtcp_feedback fb = first_feedback(bytes, len, RTCP_NACK);
	struct rtcp_nack_cursor c;
	uint16_t seq;

	rtcp_nack_init(&c, &fb);
	for (uint16_t want = 0xfff8; want != 9; want++)
		cr_expect(rtcp_nack_next(&c, &seq) && seq == want, "%u", want);
	cr_expect_not(rtcp_nack_next(&c, &seq));
	fb.fci_bytes = 3;
	rtcp_nack_init(&c, &fb);
	cr_expect_not(rtcp_nack_next(&c, &seq));
}

Test(rtcp, keyframe_requests_name_their_stream)
{
	uint8_t bytes[64];
	struct rtcp_feedback fb;
	struct rtcp_writer w;
	uint32_t ssrc;
	uint8_t command;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_pli(&w, 0x8c08a05d, 0xf310a866), 0);
	cr_expect_arr_eq(bytes, "\x81\xce\x00\x02\x8c\x08\xa0\x5d\xf3\x10\xa8\x66", 12);
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_fir(&w, 0x8c08a05d, 0xf310a866, 10), 0);
	fb = first_feedback(bytes, w.len_bytes, RTCP_FIR);
	cr_expect_eq(fb.media_ssrc, 0, "the header's is unused");
	cr_assert(rtcp_fir_entry(&fb, 0, &ssrc, &command));
	cr_expect(ssrc == 0xf310a866 && command == 10);
	cr_expect_not(rtcp_fir_entry(&fb, 1, &ssrc, &command));
}

static const struct {
	uint64_t in, want;
} bitrates[] = {
	{ 0, 0 },
	{ 1, 1 },
	{ 0x3ffff, 0x3ffff },
	{ 0x40000, 0x40000 },
	{ 0x40001, 0x40000 },
	{ 1000000, 1000000 },
	{ UINT64_MAX, UINT64_C(0x3ffff) << 46 },
};

Test(rtcp, a_bitrate_survives_to_its_18_highest_bits)
{
	const uint32_t ssrcs[2] = { 5, 6 };

	for (size_t i = 0; i < sizeof(bitrates) / sizeof(bitrates[0]); i++) {
		uint8_t bytes[64];
		struct rtcp_feedback fb;
		struct rtcp_remb remb;
		struct rtcp_writer w;

		rtcp_writer_init(&w, bytes, sizeof(bytes));
		cr_assert_eq(rtcp_write_remb(&w, 1, bitrates[i].in, ssrcs, 2), 0);
		fb = first_feedback(bytes, w.len_bytes, RTCP_REMB);
		cr_assert(rtcp_parse_remb(&fb, &remb));
		cr_expect_eq(remb.bitrate_bps, bitrates[i].want, "%zu", i);
		cr_expect(remb.ssrc_count == 2 && rtcp_remb_ssrc(&remb, 0) == 5 &&
			  rtcp_remb_ssrc(&remb, 1) == 6);
	}
}

Test(rtcp, a_bitrate_with_a_huge_exponent_saturates_and_a_false_count_is_refused)
{
	uint8_t bytes[64];
	size_t len = hex_bytes("8fce0005 00000001 00000000 52454d42 01ffffff 00000005", bytes,
			       sizeof(bytes));
	struct rtcp_feedback fb = first_feedback(bytes, len, RTCP_REMB);
	struct rtcp_remb remb;

	cr_assert(rtcp_parse_remb(&fb, &remb));
	cr_expect_eq(remb.bitrate_bps, UINT64_MAX);
	bytes[16] = 2;
	cr_expect_not(rtcp_parse_remb(&fb, &remb));
}

Test(rtcp, extended_reports_measure_the_round_trip)
{
	const struct rtcp_dlrr items[2] = { { 1, 2, 3 }, { 4, 5, 6 } };
	uint8_t bytes[128];
	struct rtcp_xr_cursor c;
	struct rtcp_xr_block b;
	struct rtcp_dlrr got;
	struct rtcp_writer w;
	struct rtcp_member m;
	uint64_t ntp;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_xr_rrtr(&w, 77, UINT64_C(0x123456789abcdef0)), 0);
	m = first_member(bytes, w.len_bytes, RTCP_XR);
	cr_assert(rtcp_xr_init(&c, &m));
	cr_expect_eq(c.ssrc, 77);
	cr_assert(rtcp_xr_next(&c, &b));
	cr_expect(rtcp_xr_rrtr(&b, &ntp) && ntp == UINT64_C(0x123456789abcdef0));
	cr_expect_not(rtcp_xr_dlrr(&b, 0, &got));
	cr_expect_not(rtcp_xr_next(&c, &b));
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_eq(rtcp_write_xr_dlrr(&w, 77, items, 2), 0);
	m = first_member(bytes, w.len_bytes, RTCP_XR);
	cr_assert(rtcp_xr_init(&c, &m) && rtcp_xr_next(&c, &b));
	cr_expect_not(rtcp_xr_rrtr(&b, &ntp));
	for (size_t i = 0; i < 2; i++)
		cr_expect(rtcp_xr_dlrr(&b, i, &got) && got.ssrc == items[i].ssrc &&
			  got.last_rr == items[i].last_rr &&
			  got.delay_q16_s == items[i].delay_q16_s);
	cr_expect_not(rtcp_xr_dlrr(&b, 2, &got));
}

Test(rtcp, an_extended_report_block_beyond_the_member_ends_the_walk)
{
	uint8_t bytes[64];
	size_t len = hex_bytes("80cf0003 00000001 04000002 00000000", bytes, sizeof(bytes));
	struct rtcp_member m = first_member(bytes, len, RTCP_XR);
	struct rtcp_xr_cursor c;
	struct rtcp_xr_block b;

	cr_assert(rtcp_xr_init(&c, &m));
	cr_expect_not(rtcp_xr_next(&c, &b));
	m = first_member(bytes, hex_bytes("80cf0000", bytes, sizeof(bytes)), RTCP_XR);
	cr_expect_not(rtcp_xr_init(&c, &m));
}

Test(rtcp, a_member_that_does_not_fit_leaves_the_writer_as_it_was)
{
	const struct rtcp_sender_info info = { 0 };
	const struct rtcp_report report = { 0 };
	const struct rtcp_dlrr dlrr = { 0 };
	const uint32_t ssrc = 1;
	uint8_t bytes[64] = { 0 };
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, 8);
	cr_assert_eq(rtcp_write_rr(&w, 1, NULL, 0), 0);
	cr_assert_eq(w.len_bytes, 8);
	cr_expect_eq(rtcp_write_sr(&w, 1, &info, NULL, 0), -ENOSPC);
	cr_expect_eq(rtcp_write_rr(&w, 1, &report, 1), -ENOSPC);
	cr_expect_eq(rtcp_write_sdes_cname(&w, 1, "a", 1), -ENOSPC);
	cr_expect_eq(rtcp_write_bye(&w, &ssrc, 1), -ENOSPC);
	cr_expect_eq(rtcp_write_pli(&w, 1, 2), -ENOSPC);
	cr_expect_eq(rtcp_write_fir(&w, 1, 2, 3), -ENOSPC);
	cr_expect_eq(rtcp_write_remb(&w, 1, 2, &ssrc, 1), -ENOSPC);
	cr_expect_eq(rtcp_write_xr_rrtr(&w, 1, 2), -ENOSPC);
	cr_expect_eq(rtcp_write_xr_dlrr(&w, 1, &dlrr, 1), -ENOSPC);
	cr_expect_eq(w.len_bytes, 8);
	for (size_t i = 8; i < sizeof(bytes); i++)
		cr_expect_eq(bytes[i], 0, "byte %zu was written", i);
}

static void expect_walk_ends(const char *name, const uint8_t *bytes, size_t len, void *ctx)
{
	size_t *members = ctx;
	struct rtcp_cursor c;
	struct rtcp_member m;

	(void)name;
	rtcp_cursor_init(&c, bytes, len);
	while (rtcp_cursor_next(&c, &m) == RTCP_NEXT_MEMBER)
		++*members;
}

Test(rtcp, collected_packets_are_walked_to_their_end)
{
	size_t members = 0;
	size_t seen = corpus_each_file("rtcp", expect_walk_ends, &members);

	cr_expect(seen == 0 || members > seen / 2, "%zu members in %zu packets", members, seen);
}
