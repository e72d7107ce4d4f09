#include <criterion/criterion.h>
#include <string.h>

#include "net/digest.h"
#include "net/random.h"

TestSuite(digest, .timeout = 10);

/* FIPS 180-4's examples, as published beside the standard. */
static const struct {
	const char *text;
	uint8_t want[4];
} samples[] = {
	{ "", { 0xe3, 0xb0, 0xc4, 0x42 } },
	{ "abc", { 0xba, 0x78, 0x16, 0xbf } },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", { 0x24, 0x8d, 0x6a, 0x61 } },
};

Test(digest, sha256_gives_the_published_values)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		uint8_t out[DIGEST_SHA256_BYTES];

		digest_sha256(samples[i].text, strlen(samples[i].text), out);
		cr_expect_arr_eq(out, samples[i].want, 4, "\"%s\"", samples[i].text);
	}
}

Test(digest, is_equal_sees_a_difference_in_every_place)
{
	uint8_t a[33], b[33];

	random_bytes(a, sizeof(a));
	memcpy(b, a, sizeof(b));
	cr_expect(digest_is_equal(a, b, sizeof(a)));
	for (size_t i = 0; i < sizeof(a); i++) {
		b[i] ^= 0x80;
		cr_expect_not(digest_is_equal(a, b, sizeof(a)), "byte %zu", i);
		b[i] ^= 0x80;
	}
	cr_expect(digest_is_equal(a, b, 0));
}

Test(digest, random_numbers_do_not_repeat)
{
	uint64_t seen[256];

	for (size_t i = 0; i < 256; i++) {
		seen[i] = random_u64();
		for (size_t k = 0; k < i; k++)
			cr_expect_neq(seen[k], seen[i]);
	}
}
