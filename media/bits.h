/* media/bits.h - fields that do not end on byte boundaries, read from a bounded span.
 *
 * Sans-IO: past the end every read gives 0 and sets is_overrun: read all, then test once.
 * Thread:  a reader belongs to its caller.
 */
#ifndef MEDIA_BITS_H
#define MEDIA_BITS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bits {
	const uint8_t *bytes;
	size_t len_bits;
	size_t at_bits;
	bool is_overrun;
};

static inline void bits_init(struct bits *b, const uint8_t *bytes, size_t len)
{
	b->bytes = bytes;
	b->len_bits = len * 8;
	b->at_bits = 0;
	b->is_overrun = false;
}

/** The next n bits, first one highest. @param n 0..32 */
static inline uint32_t bits_read(struct bits *b, unsigned n)
{
	uint32_t v = 0;

	assert(n <= 32);
	if (b->len_bits - b->at_bits < n) {
		b->is_overrun = true;
		b->at_bits = b->len_bits;
		return 0;
	}
	for (; n > 0; n--, b->at_bits++)
		v = v << 1 | ((uint32_t)b->bytes[b->at_bits / 8] >> (7 - b->at_bits % 8) & 1u);
	return v;
}

static inline bool bits_flag(struct bits *b)
{
	return bits_read(b, 1);
}

/** Exponential Golomb, unsigned (ue(v) of ITU-T H.264 section 9.1); above 2^32-2 is an overrun. */
static inline uint32_t bits_golomb(struct bits *b)
{
	unsigned zeros = 0;

	while (!b->is_overrun && !bits_flag(b))
		zeros++;
	if (b->is_overrun || zeros > 31) {
		b->is_overrun = true;
		return 0;
	}
	return (1u << zeros) - 1 + bits_read(b, zeros);
}

/** Exponential Golomb, signed (se(v)). */
static inline int32_t bits_golomb_signed(struct bits *b)
{
	int64_t v = bits_golomb(b);

	return (int32_t)(v & 1 ? (v + 1) / 2 : -(v / 2));
}

#endif
