/* tests/media/kit_dd.c - see kit_dd.h. Templates: of each layer one for key pictures, one for others. */
#include "tests/media/kit_dd.h"

#include <criterion/criterion.h>
#include <string.h>

enum { NOT_PRESENT, DISCARDABLE, SWITCH, REQUIRED };

struct writer {
	uint8_t *bytes;
	size_t at_bits;
};

static void put(struct writer *w, unsigned n, uint32_t value)
{
	for (; n > 0; n--, w->at_bits++) {
		cr_assert_lt(w->at_bits, KIT_DD_BYTES * 8);
		w->bytes[w->at_bits / 8] |=
		    (uint8_t)((value >> (n - 1) & 1) << (7 - w->at_bits % 8));
	}
}

unsigned kit_dd_target(const struct kit_dd *dd, unsigned s, unsigned t)
{
	return s * dd->temporal + t;
}

static unsigned indication(const struct kit_dd *dd, unsigned s, unsigned t, bool is_key,
			   unsigned target)
{
	unsigned target_s = target / dd->temporal, target_t = target % dd->temporal;

	if (s > target_s || t > target_t || (dd->is_key_mode && !is_key && s != target_s))
		return NOT_PRESENT;
	if (s < target_s)
		return is_key ? SWITCH : REQUIRED;
	return t > 0 && t == target_t ? DISCARDABLE : SWITCH;
}

static void write_indications(struct writer *w, const struct kit_dd *dd, unsigned s, unsigned t,
			      bool is_key)
{
	for (unsigned target = 0; target < dd->spatial * dd->temporal; target++)
		put(w, 2, indication(dd, s, t, is_key, target));
}

/* Two templates for each layer: 2n for key pictures, 2n + 1 for others. */
static void write_structure(struct writer *w, const struct kit_dd *dd)
{
	unsigned layers = dd->spatial * dd->temporal;

	put(w, 6, dd->offset);
	put(w, 5, layers - 1);
	for (unsigned n = 0; n < layers; n++) {
		bool is_new_spatial = (n + 1) % dd->temporal == 0;

		put(w, 2, 0);
		put(w, 2, n + 1 == layers ? 3 : is_new_spatial ? 2 : 1);
	}
	for (unsigned n = 0; n < layers; n++) {
		write_indications(w, dd, n / dd->temporal, n % dd->temporal, true);
		write_indications(w, dd, n / dd->temporal, n % dd->temporal, false);
	}
	put(w, 2 * layers, 0); /* no references: each frame brings its own */
	/* ns(layers + 1): no chains */
	for (unsigned x = layers + 1, bits = 0;; x >>= 1, bits++)
		if (x <= 1) {
			put(w, bits, 0);
			break;
		}
	put(w, 1, 1);
	for (unsigned s = 0; s < dd->spatial; s++) {
		put(w, 16, (640u >> (dd->spatial - 1 - s)) - 1);
		put(w, 16, (360u >> (dd->spatial - 1 - s)) - 1);
	}
}

/* The newest frame of this spatial layer that is of a lower temporal layer (of the base layer, the
 * base layer's last), and the layer below. */
static void write_references(struct writer *w, const struct kit_dd *dd, unsigned s, unsigned t,
			     bool is_key, uint16_t number)
{
	uint16_t newest = dd->last[s][0];

	for (unsigned lower = 1; lower < t; lower++)
		if ((int16_t)(dd->last[s][lower] - newest) > 0)
			newest = dd->last[s][lower];
	if (!is_key) {
		put(w, 2, 2);
		put(w, 8, (uint32_t)(uint16_t)(number - newest) - 1);
	}
	if (s > 0 && (is_key || !dd->is_key_mode)) {
		put(w, 2, 2);
		put(w, 8, 0);
	}
	put(w, 2, 0);
}

size_t kit_dd_write(struct kit_dd *dd, unsigned s, unsigned t, bool is_key,
		    uint8_t out[KIT_DD_BYTES])
{
	struct writer w = { .bytes = out };
	uint16_t number = (uint16_t)(dd->next_frame + s);

	memset(out, 0, KIT_DD_BYTES);
	put(&w, 2, 3); /* first and last packet of the frame */
	put(&w, 6, (dd->offset + 2 * kit_dd_target(dd, s, t) + !is_key) % 64);
	put(&w, 16, number);
	put(&w, 1, is_key && s == 0);
	put(&w, 4, 2); /* own references */
	if (is_key && s == 0)
		write_structure(&w, dd);
	write_references(&w, dd, s, t, is_key, number);
	dd->last[s][t] = number;
	return (w.at_bits + 7) / 8;
}

void kit_dd_next_picture(struct kit_dd *dd)
{
	dd->next_frame = (uint16_t)(dd->next_frame + dd->spatial);
}
