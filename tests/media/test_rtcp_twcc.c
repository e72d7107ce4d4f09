#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "media/rtcp.h"
#include "tests/hex.h"

TestSuite(rtcp_twcc, .timeout = 20);

enum { MISSING = RTCP_TWCC_MISSING, MAX_STATUSES = 9000 };

static bool open_first(struct rtcp_twcc_cursor *c, const uint8_t *bytes, size_t len)
{
	struct rtcp_cursor members;
	struct rtcp_member m;
	struct rtcp_feedback fb;

	rtcp_cursor_init(&members, bytes, len);
	cr_assert_eq(rtcp_cursor_next(&members, &m), RTCP_NEXT_MEMBER);
	cr_assert_eq(m.kind, RTCP_TRANSPORT_CC);
	return rtcp_parse_feedback(&m, &fb) && rtcp_twcc_init(c, &fb);
}

/* Statuses as text: "." missing, else the ticks of 250 us since the reference time. */
static const struct {
	const char *name, *hex, *want; /* NULL: refused */
} feedbacks[] = {
	{ "run of received", "8fcd0006 00000001 00000002 ffff0003 00000001 2003 010203 000000",
	  "1 3 6 " },
	{ "the same, its three bytes of fill counted as padding",
	  "afcd0006 00000001 00000002 ffff0003 00000001 2003 010203 000003", "1 3 6 " },
	{ "two bytes of padding", "afcd0006 00000001 00000002 ffff0004 00000001 2004 01020304 0002",
	  "1 3 6 10 " },
	{ "one byte of padding", "afcd0006 00000001 00000002 ffff0005 00000001 2005 0102030405 01",
	  "1 3 6 10 15 " },
	{ "run of missing", "8fcd0005 00000001 00000002 00050004 00000001 00040000", ". . . . " },
	{ "one-bit vector of eleven",
	  "8fcd0006 00000001 00000002 0001000b 00000001 a808 010203 000000",
	  "1 . 3 . . . . . . . 6 " },
	{ "two-bit vector, large and negative deltas",
	  "8fcd0006 00000001 00000002 00010004 00000001 d880 05fffe 0100 00", "5 3 . 259 " },
	{ "reserved symbol counts as missing",
	  "8fcd0005 00000001 00000002 00010002 00000001 dc00 0500", "5 . " },
	{ "run of length 0 before the real one",
	  "8fcd0006 00000001 00000002 00010001 00000001 0000 2001 07000000", "7 " },
	{ "deltas cut off", "8fcd0005 00000001 00000002 00010005 00000001 20050102", "1 3 " },
	{ "no status", "8fcd0005 00000001 00000002 00010000 00000001 20010000", NULL },
	{ "chunks do not cover the statuses",
	  "8fcd0005 00000001 00000002 00010005 00000001 00020002", NULL },
	{ "fixed part cut off", "8fcd0003 00000001 00000002 00010005", NULL },
};

Test(rtcp_twcc, statuses_and_deltas_are_read_in_order)
{
	for (size_t i = 0; i < sizeof(feedbacks) / sizeof(feedbacks[0]); i++) {
		uint8_t bytes[256];
		size_t len = hex_bytes(feedbacks[i].hex, bytes, sizeof(bytes));
		struct rtcp_twcc_status s;
		struct rtcp_twcc_cursor c;
		char got[128] = "";
		size_t n = 0;
		uint16_t seq;

		if (!open_first(&c, bytes, len)) {
			cr_expect_null(feedbacks[i].want, "%s", feedbacks[i].name);
			continue;
		}
		cr_assert_not_null(feedbacks[i].want, "%s", feedbacks[i].name);
		seq = c.base_seq;
		while (rtcp_twcc_next(&c, &s)) {
			cr_expect_eq(s.seq, seq++, "%s", feedbacks[i].name);
			if (s.is_received)
				n += (size_t)snprintf(got + n, sizeof(got) - n, "%d ",
						      (int)(s.arrival_us / 250));
			else
				n += (size_t)snprintf(got + n, sizeof(got) - n, ". ");
		}
		cr_expect_str_eq(got, feedbacks[i].want, "%s: got %s", feedbacks[i].name, got);
		cr_expect_not(rtcp_twcc_next(&c, &s), "%s", feedbacks[i].name);
	}
}

Test(rtcp_twcc, a_browsers_feedback_is_read)
{
	uint8_t bytes[64];
	size_t len = hex_bytes("8fcd0007 16ca50ce ae657257 0a74000a 053f58bb 200ae000 04000000"
			       "00001400",
			       bytes, sizeof(bytes));
	struct rtcp_twcc_status s;
	struct rtcp_twcc_cursor c;
	size_t n = 0;

	cr_assert(open_first(&c, bytes, len));
	cr_expect_eq(c.base_seq, 0x0a74);
	cr_expect_eq(c.reference_64ms, 0x053f58);
	cr_expect_eq(c.feedback_count, 0xbb);
	for (; rtcp_twcc_next(&c, &s); n++)
		cr_expect(s.is_received);
	cr_expect_eq(n, 10);
	cr_expect_eq(s.arrival_us, INT64_C(0x053f58) * 64000 + (0xe0 + 4 + 0x14) * 250);
}

/* Builds feedback after feedback until all is told, and compares with what was asked. */
static size_t expect_told(const char *name, const struct rtcp_twcc_report *all, size_t cap)
{
	static uint8_t bytes[65536];
	struct rtcp_twcc_report part = *all;
	size_t at = 0, built = 0;

	while (at < all->n) {
		struct rtcp_twcc_cursor c;
		struct rtcp_twcc_status s;
		struct rtcp_writer w;
		int covered;

		part.base_seq = (uint16_t)(all->base_seq + at);
		part.arrival_us = all->arrival_us + at;
		part.n = all->n - at;
		rtcp_writer_init(&w, bytes, cap);
		covered = rtcp_write_twcc(&w, &part);
		if (covered == -ENODATA)
			break;
		cr_assert_gt(covered, 0, "%s: %d at %zu", name, covered, at);
		cr_expect_leq(w.len_bytes, cap);
		built++;
		cr_assert(open_first(&c, bytes, w.len_bytes), "%s at %zu", name, at);
		cr_expect_eq(c.statuses, covered);
		for (int i = 0; i < covered; i++) {
			int64_t want = part.arrival_us[i];

			cr_assert(rtcp_twcc_next(&c, &s), "%s: %d of %d", name, i, covered);
			cr_assert_eq(s.seq, (uint16_t)(part.base_seq + i));
			cr_assert_eq(s.is_received, want != MISSING, "%s: status %zu", name,
				     at + (size_t)i);
			if (s.is_received)
				cr_assert_eq(s.arrival_us, want / 250 * 250, "%s: status %zu", name,
					     at + (size_t)i);
		}
		at += (size_t)covered;
	}
	for (; at < all->n; at++)
		cr_expect_eq(all->arrival_us[at], MISSING, "%s: %zu never told", name, at);
	return built;
}

static int64_t steady(size_t i)
{
	return 1000000 + (int64_t)i * 1000;
}

static int64_t every_third_lost(size_t i)
{
	return i % 3 == 1 ? MISSING : steady(i);
}

static int64_t swapped(size_t i)
{
	return steady(i ^ 1) + (i & 1 ? 7 : 240);
}

static int64_t slow(size_t i)
{
	return 1000000 + (int64_t)i * 100000;
}

static int64_t mostly_lost(size_t i)
{
	return i % 500 == 499 ? steady(i) : MISSING;
}

static int64_t pauses_of_nine_seconds(size_t i)
{
	return 1000000 + (int64_t)(i / 50) * 9000000 + (int64_t)(i % 50) * 300;
}

static int64_t mixed(size_t i)
{
	static const int64_t wait_us[] = { 0, 250, 63750, 64000, 249, 1000000, 8191750 };

	return i % 11 == 5 ? MISSING : 64000 * 5 + wait_us[i * 7 % 7] + (int64_t)i * 10;
}

static const struct {
	const char *name;
	int64_t (*arrival)(size_t i);
	size_t n;
} flows[] = {
	{ "one", steady, 1 },
	{ "eleven", steady, 11 },
	{ "steady", steady, MAX_STATUSES },
	{ "every third lost", every_third_lost, 3000 },
	{ "swapped pairs", swapped, 3000 },
	{ "large deltas only", slow, 500 },
	{ "long runs of missing", mostly_lost, MAX_STATUSES },
	{ "pauses beyond a delta", pauses_of_nine_seconds, 400 },
	{ "mixed", mixed, 1000 },
};

Test(rtcp_twcc, what_is_built_reads_back_whatever_the_space)
{
	static const size_t caps[] = { 28, 32, 40, 64, 256, 1200, 65536 };
	static const uint16_t starts[] = { 0, 1, 32767, 32768, 65534, 65535 };
	static int64_t arrival_us[MAX_STATUSES];

	for (size_t f = 0; f < sizeof(flows) / sizeof(flows[0]); f++) {
		struct rtcp_twcc_report r = { .arrival_us = arrival_us, .n = flows[f].n };

		for (size_t i = 0; i < flows[f].n; i++)
			arrival_us[i] = flows[f].arrival(i);
		for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
			r.base_seq = starts[s];
			expect_told(flows[f].name, &r, 1200);
		}
		for (size_t c = 0; c < sizeof(caps) / sizeof(caps[0]); c++)
			expect_told(flows[f].name, &r, caps[c]);
	}
}

Test(rtcp_twcc, a_thousand_steady_packets_take_one_byte_each_and_one_chunk)
{
	static int64_t arrival_us[1000];
	uint8_t bytes[1200];
	struct rtcp_writer w;

	for (size_t i = 0; i < 1000; i++)
		arrival_us[i] = steady(i);
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_expect_eq(
	    rtcp_write_twcc(&w, &(struct rtcp_twcc_report){ .arrival_us = arrival_us, .n = 1000 }),
	    1000);
	cr_expect_eq(w.len_bytes, (20 + 2 + 1000 + 3) / 4 * 4);
}

Test(rtcp_twcc, nothing_received_and_no_space_are_told_apart)
{
	const int64_t none[] = { MISSING, MISSING };
	const int64_t late[] = { MISSING, MISSING, 64000 };
	uint8_t bytes[64];
	struct rtcp_writer w;
	struct rtcp_twcc_report r = { .arrival_us = none, .n = 2 };

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_expect_eq(rtcp_write_twcc(&w, &r), -ENODATA);
	r.arrival_us = late;
	r.n = 3;
	rtcp_writer_init(&w, bytes, 23);
	cr_expect_eq(rtcp_write_twcc(&w, &r), -ENOSPC);
	cr_expect_eq(w.len_bytes, 0);
	rtcp_writer_init(&w, bytes, 24);
	cr_expect_eq(rtcp_write_twcc(&w, &r), 3);
}

Test(rtcp_twcc, the_reference_time_wraps_after_24_bits)
{
	const int64_t arrival_us[] = { (INT64_C(0x1000000) + 5) * 64000 + 250 };
	uint8_t bytes[64];
	struct rtcp_twcc_cursor c;
	struct rtcp_twcc_status s;
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	cr_assert_eq(
	    rtcp_write_twcc(&w, &(struct rtcp_twcc_report){ .arrival_us = arrival_us, .n = 1 }), 1);
	cr_assert(open_first(&c, bytes, w.len_bytes));
	cr_expect_eq(c.reference_64ms, 5);
	cr_assert(rtcp_twcc_next(&c, &s));
	cr_expect_eq(s.arrival_us, 5 * 64000 + 250);
}
