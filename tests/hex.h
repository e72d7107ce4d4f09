/* tests/hex.h - bytes written as text in test tables. */
#ifndef TESTS_HEX_H
#define TESTS_HEX_H

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdint.h>

static inline int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/** Lower-case digits; blanks between bytes are skipped. A wrong table fails the test. */
static inline size_t hex_bytes(const char *hex, uint8_t *out, size_t cap)
{
	size_t n = 0;

	while (*hex) {
		if (*hex == ' ') {
			hex++;
			continue;
		}
		cr_assert(hex_digit(hex[0]) >= 0 && hex_digit(hex[1]) >= 0 && n < cap, "%s", hex);
		out[n++] = (uint8_t)(hex_digit(hex[0]) << 4 | hex_digit(hex[1]));
		hex += 2;
	}
	return n;
}

#endif
