#include <criterion/criterion.h>
#include <string.h>

#include "media/red.h"

TestSuite(red, .timeout = 10);

enum { PT = 111 };

/* Two redundant blocks of 3 and 2 bytes, and a primary of 4. */
static const uint8_t good[] = { 0x80 | PT, 0, 0x04, 3, 0x80 | PT, 0x0f, 0x00, 2, PT,
				1,         2, 3,    4, 5,         6,    7,    8, 9 };

Test(red, finds_the_primary_block)
{
	const uint8_t alone[] = { PT, 42 };

	cr_expect_eq(red_header_bytes(good, sizeof(good), PT), 9);
	cr_expect_eq(red_primary_offset(good), 14);
	cr_expect_eq(good[red_primary_offset(good)], 6);
	cr_expect_eq(red_header_bytes(alone, sizeof(alone), PT), 1);
	cr_expect_eq(red_primary_offset(alone), 1);
}

Test(red, refuses_what_has_no_primary_block)
{
	for (size_t len = 0; len < sizeof(good); len++)
		cr_expect_eq(red_header_bytes(good, len, PT) != 0, len > 14, "%zu bytes", len);
}

Test(red, refuses_blocks_of_another_payload_type)
{
	static const size_t heads[] = { 0, 4, 8 };

	for (size_t i = 0; i < 3; i++) {
		uint8_t bytes[sizeof(good)];

		memcpy(bytes, good, sizeof(good));
		bytes[heads[i]] ^= 1;
		cr_expect_eq(red_header_bytes(bytes, sizeof(bytes), PT), 0, "head %zu", i);
	}
}

Test(red, takes_as_many_blocks_as_it_says)
{
	uint8_t bytes[RED_BLOCK_HEADER_BYTES * (RED_MAX_REDUNDANT + 1) + 2];

	for (unsigned blocks = 0; blocks <= RED_MAX_REDUNDANT + 1; blocks++) {
		size_t at = (size_t)blocks * RED_BLOCK_HEADER_BYTES;

		memset(bytes, 0, sizeof(bytes));
		for (unsigned i = 0; i < blocks; i++)
			bytes[i * RED_BLOCK_HEADER_BYTES] = 0x80 | PT;
		bytes[at] = PT;
		cr_expect_eq(red_header_bytes(bytes, at + 2, PT),
			     blocks <= RED_MAX_REDUNDANT ? at + 1 : 0, "%u blocks", blocks);
	}
}

Test(red, writes_the_heads_for_another_payload_type)
{
	uint8_t out[RED_MAX_HEADER_BYTES], joined[sizeof(good)];
	size_t n = red_write_header(good, 96, out);

	cr_assert_eq(n, 9);
	memcpy(joined, good, sizeof(good));
	memcpy(joined, out, n);
	cr_expect_eq(red_header_bytes(joined, sizeof(joined), 96), 9);
	cr_expect_eq(red_primary_offset(joined), 14);
	cr_expect_arr_eq(out + 1, good + 1, 3);
	cr_expect_arr_eq(out + 5, good + 5, 3);
	cr_expect_eq(red_write_header(good, PT, out), 9);
	cr_expect_arr_eq(out, good, 9);
}
