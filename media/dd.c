/* media/dd.c - see dd.h for the contract. Names in comments are the specification's. */
#include "media/dd.h"

#include <string.h>

#include "media/bits.h"

enum {
	NEXT_SAME = 0, /* next_layer_idc */
	NEXT_TEMPORAL = 1,
	NEXT_SPATIAL = 2,
	NEXT_END = 3,
};

/* ns(n): unsigned, below n, in as few bits as that needs. */
static uint32_t read_below(struct bits *b, uint32_t n)
{
	unsigned w = 0;
	uint32_t short_codes, v;

	for (uint32_t x = n; x != 0; x >>= 1)
		w++;
	short_codes = (1u << w) - n;
	v = bits_read(b, w - 1);
	if (v < short_codes)
		return v;
	return (v << 1) - short_codes + bits_read(b, 1);
}

/* template_layers() */
static bool read_layers(struct bits *b, struct dd_structure *s)
{
	unsigned spatial = 0, temporal = 0;
	unsigned next;

	do {
		if (s->template_count == DD_MAX_TEMPLATES || spatial >= DD_MAX_SPATIAL ||
		    temporal >= DD_MAX_TEMPORAL || b->is_overrun)
			return false;
		s->templates[s->template_count].spatial_id = (uint8_t)spatial;
		s->templates[s->template_count].temporal_id = (uint8_t)temporal;
		s->template_count++;
		next = bits_read(b, 2);
		if (next == NEXT_TEMPORAL)
			temporal++;
		if (next == NEXT_SPATIAL) {
			temporal = 0;
			spatial++;
		}
	} while (next != NEXT_END);
	s->max_spatial_id = (uint8_t)spatial;
	return true;
}

static uint64_t read_indications(struct bits *b, unsigned targets)
{
	uint64_t indications = 0;

	for (unsigned t = 0; t < targets; t++)
		indications |= (uint64_t)bits_read(b, 2) << (2 * t);
	return indications;
}

static bool add_fdiff(struct dd_dependencies *d, uint32_t fdiff)
{
	if (d->fdiff_count == DD_MAX_FDIFFS)
		return false;
	d->fdiffs[d->fdiff_count++] = (uint16_t)fdiff;
	return true;
}

/* template_fdiffs() */
static bool read_template_fdiffs(struct bits *b, struct dd_structure *s)
{
	for (unsigned t = 0; t < s->template_count; t++)
		while (bits_flag(b))
			if (!add_fdiff(&s->templates[t], bits_read(b, 4) + 1))
				return false;
	return true;
}

/* template_chains() */
static void read_chains(struct bits *b, struct dd_structure *s)
{
	s->chain_count = (uint8_t)read_below(b, s->target_count + 1u);
	if (s->chain_count == 0)
		return;
	for (unsigned t = 0; t < s->target_count; t++)
		s->target_chain[t] = (uint8_t)read_below(b, s->chain_count);
	for (unsigned t = 0; t < s->template_count; t++)
		for (unsigned c = 0; c < s->chain_count; c++)
			s->templates[t].chain_fdiffs[c] = (uint8_t)bits_read(b, 4);
}

/* decode_target_layers(): the highest layers among templates that a target needs. */
static void find_target_layers(struct dd_structure *s)
{
	for (unsigned t = 0; t < s->target_count; t++) {
		for (unsigned i = 0; i < s->template_count; i++) {
			const struct dd_dependencies *d = &s->templates[i];

			if (dd_indication_of(d, t) == DD_NOT_PRESENT)
				continue;
			if (d->spatial_id > s->target_spatial_id[t])
				s->target_spatial_id[t] = d->spatial_id;
			if (d->temporal_id > s->target_temporal_id[t])
				s->target_temporal_id[t] = d->temporal_id;
		}
	}
}

/* template_dependency_structure() */
static bool read_structure(struct bits *b, struct dd_structure *s)
{
	memset(s, 0, sizeof(*s));
	s->template_id_offset = (uint8_t)bits_read(b, 6);
	s->target_count = (uint8_t)(bits_read(b, 5) + 1);
	if (!read_layers(b, s))
		return false;
	for (unsigned t = 0; t < s->template_count; t++)
		s->templates[t].indications = read_indications(b, s->target_count);
	if (!read_template_fdiffs(b, s))
		return false;
	read_chains(b, s);
	find_target_layers(s);
	s->has_resolutions = bits_flag(b);
	for (unsigned i = 0; s->has_resolutions && i <= s->max_spatial_id; i++) {
		s->resolutions[i].width = bits_read(b, 16) + 1;
		s->resolutions[i].height = bits_read(b, 16) + 1;
	}
	return !b->is_overrun;
}

/* frame_fdiffs() */
static bool read_frame_fdiffs(struct bits *b, struct dd_dependencies *d)
{
	unsigned nibbles;

	d->fdiff_count = 0;
	while ((nibbles = bits_read(b, 2)) != 0)
		if (!add_fdiff(d, bits_read(b, 4 * nibbles) + 1))
			return false;
	return true;
}

struct custom {
	bool indications, fdiffs, chains;
};

/* frame_dependency_definition() */
static enum dd_verdict read_frame(struct bits *b, const struct dd_structure *s,
				  const struct custom *custom, struct dd_info *out)
{
	unsigned index = (out->template_id + 64u - s->template_id_offset) % 64;

	if (index >= s->template_count)
		return DD_UNKNOWN_TEMPLATE;
	out->frame = s->templates[index];
	if (custom->indications)
		out->frame.indications = read_indications(b, s->target_count);
	if (custom->fdiffs && !read_frame_fdiffs(b, &out->frame))
		return DD_MALFORMED;
	if (custom->chains)
		for (unsigned c = 0; c < s->chain_count; c++)
			out->frame.chain_fdiffs[c] = (uint8_t)bits_read(b, 8);
	out->has_frame = true;
	return b->is_overrun ? DD_MALFORMED : DD_OK;
}

static uint32_t all_targets(const struct dd_structure *s)
{
	return (uint32_t)((UINT64_C(1) << s->target_count) - 1);
}

/* extended_descriptor_fields() and what follows them. `fresh` takes a new structure. */
static enum dd_verdict read_extended(struct bits *b, const struct dd_structure *known,
				     struct dd_structure *fresh, struct dd_info *out)
{
	bool has_targets;
	struct custom custom;

	out->has_structure = bits_flag(b);
	has_targets = bits_flag(b);
	custom.indications = bits_flag(b);
	custom.fdiffs = bits_flag(b);
	custom.chains = bits_flag(b);
	if (out->has_structure) {
		if (!read_structure(b, fresh))
			return DD_MALFORMED;
		known = fresh;
		out->has_active_targets = true;
		out->active_targets = all_targets(fresh);
	}
	if (known->template_count == 0)
		return DD_OK; /* the rest cannot be told without a structure */
	if (has_targets) {
		out->has_active_targets = true;
		out->active_targets = bits_read(b, known->target_count);
	}
	return read_frame(b, known, &custom, out);
}

enum dd_verdict dd_parse(const uint8_t *bytes, size_t len, struct dd_structure *structure,
			 struct dd_info *out)
{
	static const struct custom none;
	struct dd_structure fresh;
	struct dd_info info = { 0 };
	enum dd_verdict verdict = DD_OK;
	struct bits b;

	if (len < DD_MIN_BYTES)
		return DD_MALFORMED;
	bits_init(&b, bytes, len);
	info.is_frame_start = bits_flag(&b);
	info.is_frame_end = bits_flag(&b);
	info.template_id = (uint8_t)bits_read(&b, 6);
	info.frame_number = (uint16_t)bits_read(&b, 16);
	if (len > DD_MIN_BYTES)
		verdict = read_extended(&b, structure, &fresh, &info);
	else if (structure->template_count > 0)
		verdict = read_frame(&b, structure, &none, &info);
	if (verdict == DD_MALFORMED)
		return verdict;
	if (verdict == DD_OK && info.has_structure)
		*structure = fresh;
	if (verdict == DD_UNKNOWN_TEMPLATE) {
		info.has_structure = false;
		info.has_active_targets = false;
	}
	*out = info;
	return verdict;
}
