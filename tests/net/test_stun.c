#include <criterion/criterion.h>

#include "net/stun.h"
#include "pool/bytes.h"

TestSuite(stun, .timeout = 10);

#define RFC5769_PWD "VOkJxbRl1RmTxUk/WvJxBt"

/* RFC 5769 section 2.1 */
static const uint8_t sample_request[] =
    "\x00\x01\x00\x58\x21\x12\xa4\x42\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae"
    "\x80\x22\x00\x10STUN test client"
    "\x00\x24\x00\x04\x6e\x00\x01\xff"
    "\x80\x29\x00\x08\x93\x2f\xf9\xb1\x51\x26\x3b\x36"
    "\x00\x06\x00\x09\x65\x76\x74\x6a\x3a\x68\x36\x76\x59\x20\x20\x20"
    "\x00\x08\x00\x14\x9a\xea\xa7\x0c\xbf\xd8\xcb\x56\x78\x1e\xf2\xb5\xb2\xd3\xf2\x49\xc1\xb5"
    "\x71\xa2"
    "\x80\x28\x00\x04\xe5\x7a\x3b\xcf";
/* section 2.2 */
static const uint8_t sample_v4[] =
    "\x01\x01\x00\x3c\x21\x12\xa4\x42\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae"
    "\x80\x22\x00\x0btest vector "
    "\x00\x20\x00\x08\x00\x01\xa1\x47\xe1\x12\xa6\x43"
    "\x00\x08\x00\x14\x2b\x91\xf5\x99\xfd\x9e\x90\xc3\x8c\x74\x89\xf9\x2a\xf9\xba\x53\xf0\x6b"
    "\xe7\xd7"
    "\x80\x28\x00\x04\xc0\x7d\x4c\x96";
/* section 2.3 */
static const uint8_t sample_v6[] =
    "\x01\x01\x00\x48\x21\x12\xa4\x42\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae"
    "\x80\x22\x00\x0btest vector "
    "\x00\x20\x00\x14\x00\x02\xa1\x47\x01\x13\xa9\xfa\xa5\xd3\xf1\x79\xbc\x25\xf4\xb5\xbe\xd2"
    "\xb9\xd9"
    "\x00\x08\x00\x14\xa3\x82\x95\x4e\x4b\xe6\x7b\xf1\x17\x84\xc9\x7c\x82\x92\xc2\x75\xbf\xe3"
    "\xed\x41"
    "\x80\x28\x00\x04\xc8\xfb\x0b\x4c";

static const uint8_t id[STUN_TRANSACTION_BYTES] = "transaction";

Test(stun, reads_the_sample_request_of_rfc_5769)
{
	struct stun_message m;

	cr_assert_eq(stun_parse(&m, sample_request, sizeof(sample_request) - 1), STUN_OK);
	cr_expect_eq(m.class, STUN_REQUEST);
	cr_expect_eq(m.method, STUN_BINDING);
	cr_expect_eq(m.username_bytes, 9);
	cr_expect_arr_eq(m.username, "evtj:h6vY", 9);
	cr_expect_eq(m.priority, 0x6e0001ff);
	cr_expect(m.has_controlled && !m.has_controlling && m.has_fingerprint);
	cr_expect_eq(m.tie_breaker, 0x932ff9b151263b36);
	cr_expect(stun_is_authentic(&m, RFC5769_PWD));
	cr_expect_not(stun_is_authentic(&m, "VOkJxbRl1RmTxUk/WvJxBu"));
}

Test(stun, reads_the_sample_responses_of_rfc_5769)
{
	static const struct {
		const uint8_t *bytes;
		size_t len;
		const char *mapped;
	} rows[] = {
		{ sample_v4, sizeof(sample_v4) - 1, "192.0.2.1:32853" },
		{ sample_v6, sizeof(sample_v6) - 1,
		  "[2001:db8:1234:5678:11:2233:4455:6677]:32853" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stun_message m;
		char text[NET_ADDR_TEXT_BYTES];

		cr_assert_eq(stun_parse(&m, rows[i].bytes, rows[i].len), STUN_OK, "row %zu", i);
		cr_expect_eq(m.class, STUN_SUCCESS);
		cr_expect(m.has_mapped);
		cr_expect_str_eq(net_addr_format(&m.mapped, text), rows[i].mapped);
		cr_expect(stun_is_authentic(&m, RFC5769_PWD), "row %zu", i);
	}
}

Test(stun, hmac_matches_rfc_2202_also_for_a_key_longer_than_a_block)
{
	static const uint8_t text[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	static const uint8_t want_long[STUN_HMAC_BYTES] =
	    "\xaa\x4a\xe5\xe1\x52\x72\xd0\x0e\x95\x70\x56\x37\xce\x8a\x3b\x55\xed\x40\x21\x12";
	static const uint8_t want_short[STUN_HMAC_BYTES] =
	    "\xef\xfc\xdf\x6a\xe5\xeb\x2f\xa2\xd2\x74\x16\xd5\xf1\x84\xdf\x9c\x25\x9a\x7c\x79";
	uint8_t key[80], out[STUN_HMAC_BYTES];

	memset(key, 0xaa, sizeof(key));
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		stun_hmac_sha1((struct stun_span){ key, sizeof(key) },
			       (struct stun_span){ text, cut },
			       (struct stun_span){ text + cut, sizeof(text) - 1 - cut }, out);
		cr_expect_arr_eq(out, want_long, sizeof(out), "cut at %zu", cut);
	}
	stun_hmac_sha1((struct stun_span){ "Jefe", 4 },
		       (struct stun_span){ "what do ya want ", 16 },
		       (struct stun_span){ "for nothing?", 12 }, out);
	cr_expect_arr_eq(out, want_short, sizeof(out));
}

Test(stun, any_flipped_bit_of_a_message_is_noticed)
{
	enum { FINGERPRINT_AT = sizeof(sample_request) - 1 - 8 };
	uint8_t bytes[sizeof(sample_request) - 1];

	for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
		struct stun_message m;

		memcpy(bytes, sample_request, sizeof(bytes));
		bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
		if (stun_parse(&m, bytes, sizeof(bytes)) != STUN_OK)
			continue;
		cr_expect_not(m.has_fingerprint, "bit %zu", bit);
		/* Integrity ends before the FINGERPRINT, and what follows it is not seen. */
		cr_expect(bit / 8 >= FINGERPRINT_AT || !stun_is_authentic(&m, RFC5769_PWD),
			  "bit %zu", bit);
	}
}

Test(stun, any_cut_or_lengthened_message_is_refused)
{
	uint8_t bytes[sizeof(sample_request) + 8] = { 0 };
	struct stun_message m;

	memcpy(bytes, sample_request, sizeof(sample_request) - 1);
	for (size_t len = 0; len < sizeof(bytes); len++)
		cr_expect(len == sizeof(sample_request) - 1 ||
			      stun_parse(&m, bytes, len) != STUN_OK,
			  "%zu bytes", len);
}

Test(stun, knows_its_own_from_other_datagrams)
{
	uint8_t bytes[sizeof(sample_request) - 1];

	memcpy(bytes, sample_request, sizeof(bytes));
	cr_expect(stun_is_message(bytes, sizeof(bytes)));
	cr_expect_not(stun_is_message(bytes, 0));
	cr_expect_not(stun_is_message(bytes, STUN_HEADER_BYTES - 1));
	for (unsigned first = 0; first < 256; first++) {
		bytes[0] = (uint8_t)first;
		cr_expect_eq(stun_is_message(bytes, sizeof(bytes)), first < 4, "first %u", first);
	}
	bytes[0] = 0;
	bytes[4] ^= 1;
	cr_expect_not(stun_is_message(bytes, sizeof(bytes)), "wrong cookie");
}

/* Attributes as raw bytes, behind a header that fits them. */
static enum stun_verdict parse_raw(struct stun_message *m, const char *attributes, size_t n)
{
	static uint8_t bytes[1024];
	struct stun_writer w;

	stun_write_begin(&w, bytes, sizeof(bytes), STUN_REQUEST, id);
	memcpy(bytes + STUN_HEADER_BYTES, attributes, n);
	be16_write(bytes + 2, (uint16_t)n);
	return stun_parse(m, bytes, STUN_HEADER_BYTES + n);
}

#define RAW(text) text, sizeof(text) - 1

Test(stun, sizes_that_cannot_be_are_malformed)
{
	static const struct {
		const char *name, *raw;
		size_t n;
	} rows[] = {
		{ "longer than the message", RAW("\x00\x06\x00\x09"
						 "12345678") },
		{ "length 65535", RAW("\x80\x22\xff\xff") },
		{ "priority of 3", RAW("\x00\x24\x00\x03\x01\x02\x03\x00") },
		{ "use-candidate with a value", RAW("\x00\x25\x00\x04\x00\x00\x00\x00") },
		{ "role of 4", RAW("\x80\x2a\x00\x04\x00\x00\x00\x00") },
		{ "integrity of 16",
		  RAW("\x00\x08\x00\x10\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06"
		      "\x07\x08") },
		{ "IPv4 address of 16 bytes",
		  RAW("\x00\x20\x00\x14\x00\x01\x12\x34\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02"
		      "\x03\x04\x05\x06\x07\x08") },
		{ "address of family 3", RAW("\x00\x20\x00\x08\x00\x03\x12\x34\x01\x02\x03\x04") },
		{ "address of 2 bytes", RAW("\x00\x20\x00\x02\x00\x01\x00\x00") },
		{ "error code 299", RAW("\x00\x09\x00\x04\x00\x00\x02\x63") },
		{ "error code 4 hundred and 100", RAW("\x00\x09\x00\x04\x00\x00\x04\x64") },
		{ "fingerprint not last", RAW("\x80\x28\x00\x04\x01\x02\x03\x04\x00\x25\x00\x00") },
		{ "fingerprint of 8", RAW("\x80\x28\x00\x08\x01\x02\x03\x04\x05\x06\x07\x08") },
	};
	struct stun_message m;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(parse_raw(&m, rows[i].raw, rows[i].n), STUN_MALFORMED, "%s",
			     rows[i].name);
	cr_expect_eq(parse_raw(&m, RAW("\x80\x28\x00\x04\x01\x02\x03\x04")), STUN_BAD_FINGERPRINT);
}

Test(stun, a_username_may_have_508_bytes_and_no_more)
{
	static char raw[4 + 512] = "\x00\x06\x01\xfc";
	struct stun_message m;

	memset(raw + 4, 'u', 512);
	cr_expect_eq(parse_raw(&m, raw, 4 + 508), STUN_OK);
	cr_expect_eq(m.username_bytes, 508);
	raw[3] = (char)0xfd;
	cr_expect_eq(parse_raw(&m, raw, 4 + 512), STUN_MALFORMED);
}

Test(stun, the_first_of_repeated_attributes_counts)
{
	struct stun_message m;

	cr_assert_eq(parse_raw(&m, RAW("\x00\x24\x00\x04\x00\x00\x00\x01"
				       "\x00\x24\x00\x04\x00\x00\x00\x02"
				       "\x00\x06\x00\x03"
				       "a:b "
				       "\x00\x06\x00\x03"
				       "c:d ")),
		     STUN_OK);
	cr_expect_eq(m.priority, 1);
	cr_expect_arr_eq(m.username, "a:b", 3);
}

Test(stun, unknown_required_attributes_are_named_and_optional_ones_are_not)
{
	struct stun_message m;

	cr_assert_eq(parse_raw(&m, RAW("\x7f\xff\x00\x00\x80\x22\x00\x00\xc0\x57\x00\x00"
				       "\x00\x03\x00\x00\x00\x15\x00\x00\x00\x02\x00\x00"
				       "\x00\x04\x00\x00\x00\x05\x00\x00")),
		     STUN_OK);
	cr_expect_eq(m.unknown_count, STUN_MAX_UNKNOWN);
	cr_expect_eq(m.unknown[0], 0x7fff);
	cr_expect_eq(m.unknown[1], 0x0003);
}

Test(stun, what_follows_integrity_is_not_seen)
{
	uint8_t bytes[256];
	struct stun_message m;
	struct stun_writer w;
	size_t len;

	stun_write_begin(&w, bytes, sizeof(bytes), STUN_REQUEST, id);
	stun_write_username(&w, "ours", "theirs");
	len = stun_write_end(&w, RFC5769_PWD, false);
	cr_assert_gt(len, 0);
	stun_write(&w, STUN_USE_CANDIDATE, NULL, 0);
	stun_write_u64(&w, STUN_ICE_CONTROLLING, 7);
	stun_write(&w, 0x7fff, NULL, 0);
	len = stun_write_end(&w, NULL, true);
	cr_assert_eq(stun_parse(&m, bytes, len), STUN_OK);
	cr_expect_not(m.has_use_candidate || m.has_controlling || m.unknown_count);
	cr_expect(m.has_fingerprint);
	cr_expect(stun_is_authentic(&m, RFC5769_PWD), "integrity covers what precedes it");
}

Test(stun, integrity_behind_a_stronger_one_is_not_taken)
{
	static const uint8_t sha256[32];
	uint8_t bytes[256];
	struct stun_message m;
	struct stun_writer w;
	size_t len;

	stun_write_begin(&w, bytes, sizeof(bytes), STUN_REQUEST, id);
	stun_write_username(&w, "ours", "theirs");
	stun_write(&w, STUN_MESSAGE_INTEGRITY_SHA256, sha256, sizeof(sha256));
	len = stun_write_end(&w, RFC5769_PWD, true);
	cr_assert_eq(stun_parse(&m, bytes, len), STUN_OK);
	cr_expect_eq(m.integrity_offset, 0);
	cr_expect_not(stun_is_authentic(&m, RFC5769_PWD));
}

Test(stun, peek_finds_our_half_of_a_binding_request_alone)
{
	static const struct {
		const char *name, *raw;
		size_t n;
		const char *want;
	} rows[] = {
		{ "both halves", RAW("\x00\x06\x00\x09ours:them\x00\x00\x00"), "ours" },
		{ "two colons",
		  RAW("\x00\x06\x00\x05"
		      "a:b:c\x00\x00\x00"),
		  "a" },
		{ "no colon", RAW("\x00\x06\x00\x04ours"), NULL },
		{ "empty first half", RAW("\x00\x06\x00\x04:our"), NULL },
		{ "empty second half", RAW("\x00\x06\x00\x04our:"), NULL },
		{ "empty", RAW("\x00\x06\x00\x00"), NULL },
		{ "absent", RAW("\x00\x25\x00\x00"), NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stun_message m;
		const char *ufrag;
		size_t n;

		cr_assert_eq(parse_raw(&m, rows[i].raw, rows[i].n), STUN_OK, "%s", rows[i].name);
		cr_expect_eq(stun_peek_username(m.bytes, m.len, &ufrag, &n), rows[i].want != NULL,
			     "%s", rows[i].name);
		if (rows[i].want)
			cr_expect(n == strlen(rows[i].want) && !memcmp(ufrag, rows[i].want, n));
	}
}

Test(stun, peek_wants_a_request)
{
	uint8_t bytes[64];
	struct stun_writer w;
	const char *ufrag;
	size_t n;

	for (int class = STUN_REQUEST; class <= STUN_ERROR; class ++) {
		stun_write_begin(&w, bytes, sizeof(bytes), (enum stun_class) class, id);
		stun_write_username(&w, "ours", "theirs");
		cr_expect_eq(stun_peek_username(bytes, stun_write_end(&w, NULL, false), &ufrag, &n),
			     class == STUN_REQUEST, "class %d", class);
	}
	stun_write_begin(&w, bytes, sizeof(bytes), STUN_REQUEST, id);
	stun_write_username(&w, "ours", "theirs");
	n = stun_write_end(&w, NULL, false);
	bytes[1] = 3;
	cr_expect_not(stun_peek_username(bytes, n, &ufrag, &n), "another method");
}

Test(stun, written_messages_read_back_the_same)
{
	static const char *const addresses[] = { "1.2.3.4:1", "[2001:db8::1]:65535" };

	for (int class = STUN_REQUEST; class <= STUN_ERROR; class ++) {
		uint8_t bytes[256];
		struct stun_message m;
		struct stun_writer w;
		struct net_addr a;

		cr_assert_eq(net_addr_parse(&a, addresses[class & 1]), 0);
		stun_write_begin(&w, bytes, sizeof(bytes), (enum stun_class) class, id);
		stun_write_mapped(&w, &a);
		stun_write_error(&w, 487);
		stun_write_u32(&w, STUN_PRIORITY, 0x12345678);
		cr_assert_eq(stun_parse(&m, bytes, stun_write_end(&w, RFC5769_PWD, true)), STUN_OK);
		cr_expect_eq(m.class, (enum stun_class) class);
		cr_expect(net_addr_is_equal(&m.mapped, &a));
		cr_expect_eq(m.error_code, 487);
		cr_expect_eq(m.priority, 0x12345678);
		cr_expect_arr_eq(m.transaction, id, sizeof(id));
		cr_expect(stun_check_integrity(m.bytes, m.len, RFC5769_PWD));
	}
}

Test(stun, a_message_that_does_not_fit_is_none)
{
	uint8_t bytes[128];
	struct stun_writer w;
	size_t whole;

	stun_write_begin(&w, bytes, sizeof(bytes), STUN_REQUEST, id);
	stun_write_username(&w, "ours", "theirs");
	whole = stun_write_end(&w, RFC5769_PWD, true);
	cr_assert_eq(whole, STUN_HEADER_BYTES + 16 + 24 + 8);
	for (size_t cap = 0; cap <= whole; cap++) {
		memset(bytes, 0xee, sizeof(bytes));
		stun_write_begin(&w, bytes, cap, STUN_REQUEST, id);
		stun_write_username(&w, "ours", "theirs");
		cr_expect_eq(stun_write_end(&w, RFC5769_PWD, true), cap == whole ? whole : 0);
		cr_expect_eq(bytes[cap], 0xee, "wrote past %zu", cap);
	}
}
