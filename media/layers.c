/* media/layers.c - see layers.h for the contract.
 *
 * Masks of targets lie as LAYERS_SPATIAL rows of LAYERS_ROW bits. A dependency descriptor names
 * targets by its own count; `stands_for` holds, for each of them, the numbers that mean it: its own,
 * and those the structure does not have for which it is the nearest.
 */
#include "media/layers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "media/packet.h"
#include "media/vp9.h"
#include "pool/bytes.h"

enum {
	ROW_MASK = (1 << LAYERS_ROW) - 1,
	RECENT_FRAMES = 128, /* power of two; references reach further back only at key frames */
};

#define ALL_ROWS 0x01010101u /* a mask of a row times this: that mask in every row */

/* A structure and when it came. */
struct described {
	struct dd_structure structure;
	uint32_t stands_for[DD_MAX_TARGETS];
	uint16_t since; /* frame number */
};

/* A frame of the dependency descriptor, for those that refer to it. */
struct recent {
	uint16_t frame_number;
	bool is_known;
	uint32_t targets;
};

struct layers {
	bool is_opaque;
	uint8_t codec; /* of the packets before; another one starts anew */
	bool has_packet;
	uint32_t present, active;
	struct layers_target targets[LAYERS_TARGETS];

	/* VP9's payload descriptor. */
	uint8_t spatial_count; /* 0: no structure said it */
	uint8_t isolated;      /* bit s: layer s does not serve upper ones but in key pictures */
	bool has_sizes;        /* of each layer, from a structure */

	bool is_described;  /* `now` is valid */
	bool was_described; /* `before` as well */
	struct described now, before;
	struct recent recent[RECENT_FRAMES];
};

int layers_create(struct layers **out, bool is_opaque)
{
	struct layers *l = calloc(1, sizeof(*l));

	*out = l;
	if (!l)
		return -ENOMEM;
	l->is_opaque = is_opaque;
	return 0;
}

void layers_destroy(struct layers *l)
{
	free(l);
}

void layers_start(struct layers *l)
{
	bool is_opaque = l->is_opaque;

	memset(l, 0, sizeof(*l));
	l->is_opaque = is_opaque;
}

size_t layers_bytes(void)
{
	return sizeof(struct layers);
}

/* --- Masks ------------------------------------------------------------------------------- */

static uint32_t bit_of(unsigned target)
{
	return UINT32_C(1) << target;
}

static uint32_t row_of(unsigned spatial_id)
{
	return (uint32_t)ROW_MASK << (spatial_id * LAYERS_ROW);
}

/* Row `spatial_id` and all above it. */
static uint32_t rows_from(unsigned spatial_id)
{
	return UINT32_MAX << (spatial_id * LAYERS_ROW);
}

/* In every row, temporal id `temporal_id` and all above it. */
static uint32_t columns_from(unsigned temporal_id)
{
	return ((uint32_t)ROW_MASK & (uint32_t)ROW_MASK << temporal_id) * ALL_ROWS;
}

static uint32_t columns_to(unsigned temporal_id)
{
	return ((UINT32_C(2) << temporal_id) - 1) * ALL_ROWS;
}

/* --- What the payload descriptors of VP8 and VP9 say --------------------------------------- */

/* What a target of (s, t) contains: its row, and the rows below that serve it. */
static uint32_t grid_contains(const struct layers *l, unsigned target)
{
	unsigned spatial_id = target / LAYERS_ROW;
	uint32_t rows = row_of(spatial_id);

	for (unsigned s = 0; s < spatial_id; s++)
		if (!(l->isolated >> s & 1))
			rows |= row_of(s);
	return rows & columns_to(target % LAYERS_ROW);
}

static void grid_refresh(struct layers *l)
{
	for (uint32_t left = l->present; left; left &= left - 1) {
		unsigned target = (unsigned)__builtin_ctz(left);

		l->targets[target].contains = grid_contains(l, target) & l->present;
	}
}

static void grid_add(struct layers *l, unsigned spatial_id, unsigned temporal_id)
{
	unsigned number = layers_number(spatial_id, temporal_id);
	struct layers_target *t = &l->targets[number];

	if (l->present & bit_of(number))
		return;
	/* The same picture sizes as its neighbours of that spatial layer. */
	*t = l->targets[layers_number(spatial_id, 0)];
	t->spatial_id = (uint8_t)spatial_id;
	t->temporal_id = (uint8_t)temporal_id;
	l->present |= bit_of(number);
	l->active = l->present;
	grid_refresh(l);
}

static void set_size(struct layers *l, unsigned spatial_id, uint32_t width, uint32_t height)
{
	for (unsigned t = 0; t < LAYERS_ROW; t++) {
		struct layers_target *target = &l->targets[layers_number(spatial_id, t)];

		target->width = width > UINT16_MAX ? UINT16_MAX : (uint16_t)width;
		target->height = height > UINT16_MAX ? UINT16_MAX : (uint16_t)height;
	}
}

static void on_vp8(struct layers *l, struct media_packet *p, const struct codec_info *info)
{
	unsigned t = info->temporal_id;

	grid_add(l, 0, t);
	p->targets = columns_from(t);
	if (packet_has(p, PACKET_KEYFRAME) || !packet_has(p, PACKET_FRAME_START) ||
	    !(info->flags & CODEC_SWITCH_UP) || t == 0)
		return;
	/* "Y: layer sync bit: [...] only uses the base layer as a reference": RFC 7741 4.2. */
	p->switches = bit_of(t) * ALL_ROWS;
	p->flags |= PACKET_ENTRY;
}

static void learn_vp9_structure(struct layers *l, const struct slab *s)
{
	const struct media_packet *p = packet_of_const(s);
	struct vp9_structure structure;

	if (!vp9_read_structure(packet_payload(s), p->payload_bytes, &structure))
		return;
	l->spatial_count = structure.layer_count;
	l->has_sizes = structure.has_sizes;
	for (unsigned i = 0; structure.has_sizes && i < structure.layer_count; i++)
		set_size(l, i < LAYERS_SPATIAL ? i : LAYERS_SPATIAL - 1, structure.width[i],
			 structure.height[i]);
	if (l->is_described || structure.layer_count >= LAYERS_SPATIAL)
		return;
	l->present &= ~rows_from(structure.layer_count);
	l->active = l->present;
	grid_refresh(l);
}

/* "Z: Not a reference frame for upper spatial layers": RFC 9628 4.2. Of a key picture no layer says
 * it that another one needs, so it is the pictures between that tell the modes apart. */
static void learn_isolation(struct layers *l, const struct codec_info *info, unsigned spatial_id)
{
	uint8_t bit = (uint8_t)(1u << spatial_id);
	bool is_isolated = info->flags & CODEC_NOT_REFERENCED;

	if (!(info->flags & CODEC_INTER_PICTURE) || is_isolated == !!(l->isolated & bit))
		return;
	l->isolated ^= bit;
	grid_refresh(l);
}

static void on_vp9(struct layers *l, struct media_packet *p, const struct codec_info *info)
{
	unsigned s = info->spatial_id < LAYERS_SPATIAL ? info->spatial_id : LAYERS_SPATIAL - 1;
	unsigned t = info->temporal_id;
	bool is_below_top = s + 1u < l->spatial_count || (rows_from(s) & ~row_of(s) & l->present);

	grid_add(l, s, t);
	if (is_below_top)
		learn_isolation(l, info, s);
	p->targets = columns_from(t);
	p->targets &= is_below_top && info->flags & CODEC_NOT_REFERENCED ? row_of(s) : rows_from(s);
	p->spatial_id = (uint8_t)s;
	if (packet_has(p, PACKET_FRAME_END) && !packet_has(p, PACKET_MARKER))
		p->ends = row_of(s);
	if (packet_has(p, PACKET_KEYFRAME) || !packet_has(p, PACKET_FRAME_START))
		return;
	/* "subsequent frames with temporal-layer ID values higher than T will not depend on any frame
	 * before the current frame [...] with temporal-layer ID value greater than T" */
	if (info->flags & CODEC_SWITCH_UP)
		p->switches = row_of(s) & columns_from(t) & ~(bit_of(t) * ALL_ROWS);
	/* An upper layer that begins here: it refers to the layer below in this picture alone. */
	if (s == 1 && t == 0 && !(info->flags & CODEC_INTER_PICTURE)) {
		p->switches |= row_of(s) & bit_of(0) * ALL_ROWS;
		p->flags |= PACKET_ENTRY;
	}
}

/* --- What the dependency descriptor says --------------------------------------------------- */

static unsigned number_of(const struct dd_structure *s, unsigned i)
{
	return layers_number(s->target_spatial_id[i], s->target_temporal_id[i]);
}

/* The target of the structure that number stands for: the highest one that is above it in neither
 * kind of layer, else the first. */
static unsigned nearest_target(const struct dd_structure *s, unsigned number)
{
	unsigned best = 0;
	int best_number = -1;

	for (unsigned i = 0; i < s->target_count; i++) {
		int n = (int)number_of(s, i);

		if (s->target_spatial_id[i] <= number / LAYERS_ROW &&
		    s->target_temporal_id[i] <= number % LAYERS_ROW && n > best_number) {
			best = i;
			best_number = n;
		}
	}
	return best;
}

/* Target i contains every target that is in no template in which i is not. */
static uint32_t contained_by(const struct dd_structure *s, unsigned i)
{
	uint32_t numbers = 0;
	uint64_t beyond = 0;

	for (unsigned t = 0; t < s->template_count; t++)
		if (dd_indication_of(&s->templates[t], i) == DD_NOT_PRESENT)
			beyond |= s->templates[t].indications;
	for (unsigned k = 0; k < s->target_count; k++)
		if (!(beyond >> (2 * k) & 3))
			numbers |= bit_of(number_of(s, k));
	return numbers;
}

static void adopt_target(struct layers *l, const struct dd_structure *s, unsigned i)
{
	unsigned number = number_of(s, i);
	struct layers_target *t = &l->targets[number];

	l->present |= bit_of(number);
	t->spatial_id = s->target_spatial_id[i];
	t->temporal_id = s->target_temporal_id[i];
	t->contains = contained_by(s, i) | bit_of(number);
}

static void adopt_structure(struct layers *l, struct described *d)
{
	const struct dd_structure *s = &d->structure;

	memset(d->stands_for, 0, sizeof(d->stands_for));
	for (unsigned number = 0; number < LAYERS_TARGETS; number++)
		d->stands_for[nearest_target(s, number)] |= bit_of(number);
	l->present = 0;
	for (unsigned i = 0; i < s->target_count; i++)
		adopt_target(l, s, i);
	l->active = l->present;
	for (unsigned i = 0; s->has_resolutions && i <= s->max_spatial_id; i++)
		set_size(l, i, s->resolutions[i].width, s->resolutions[i].height);
}

/* Of the structure's targets for which `want` is told, all the numbers they go by. */
static uint32_t numbers_of(const struct described *d, const struct dd_dependencies *frame,
			   bool is_switch)
{
	uint32_t numbers = 0;

	for (unsigned i = 0; i < d->structure.target_count; i++) {
		enum dd_indication indication = dd_indication_of(frame, i);

		if (is_switch ? indication == DD_SWITCH : indication != DD_NOT_PRESENT)
			numbers |= d->stands_for[i];
	}
	return numbers;
}

static bool is_discardable(const struct dd_structure *s, const struct dd_dependencies *frame)
{
	bool is_any = false;

	for (unsigned i = 0; i < s->target_count; i++) {
		enum dd_indication indication = dd_indication_of(frame, i);

		if (indication == DD_SWITCH || indication == DD_REQUIRED)
			return false;
		is_any |= indication == DD_DISCARDABLE;
	}
	return is_any;
}

/* Whether every target has all that the frame refers to. */
static bool is_entry(const struct layers *l, const struct dd_info *info)
{
	uint32_t common = UINT32_MAX;

	for (unsigned i = 0; i < info->frame.fdiff_count; i++) {
		uint16_t number = (uint16_t)(info->frame_number - info->frame.fdiffs[i]);
		const struct recent *r = &l->recent[number % RECENT_FRAMES];

		common &= r->is_known && r->frame_number == number ? r->targets : 0;
	}
	return common == UINT32_MAX;
}

static void describe_frame(struct layers *l, struct media_packet *p, const struct described *d,
			   const struct dd_info *info)
{
	struct recent *r = &l->recent[info->frame_number % RECENT_FRAMES];

	p->spatial_id = info->frame.spatial_id;
	p->temporal_id = info->frame.temporal_id;
	p->targets = numbers_of(d, &info->frame, false);
	*r = (struct recent){ info->frame_number, true, p->targets };
	if (is_discardable(&d->structure, &info->frame))
		p->flags |= PACKET_DISCARDABLE;
	if (info->is_frame_end && !packet_has(p, PACKET_MARKER))
		p->ends = 0;
	for (unsigned i = 0; info->is_frame_end && i < d->structure.target_count; i++)
		if (d->structure.target_spatial_id[i] == p->spatial_id)
			p->ends |= d->stands_for[i];
	if (!info->is_frame_start || packet_has(p, PACKET_KEYFRAME))
		return;
	p->switches = numbers_of(d, &info->frame, true);
	if (is_entry(l, info))
		p->flags |= PACKET_ENTRY;
}

/* Frame limits are told whether or not the structure is known. */
static void take_limits(const struct layers *l, struct media_packet *p, const struct dd_info *info)
{
	bool is_key = info->has_structure && info->is_frame_start && info->has_frame &&
		      info->frame.fdiff_count == 0 && info->frame.spatial_id == 0;

	p->flags &= (uint16_t) ~(PACKET_FRAME_START | PACKET_FRAME_END);
	if (info->is_frame_start)
		p->flags |= PACKET_FRAME_START;
	if (info->is_frame_end || packet_has(p, PACKET_MARKER))
		p->flags |= PACKET_FRAME_END;
	if (l->is_opaque && is_key) {
		p->flags |= PACKET_KEYFRAME;
		p->switches = UINT32_MAX;
	}
}

/* The structure a packet of that frame refers to: a late one comes from before the newest. */
static struct described *described_for(struct layers *l, uint16_t frame_number)
{
	if (l->was_described && (int16_t)(frame_number - l->now.since) < 0)
		return &l->before;
	return &l->now;
}

static void learn_structure(struct layers *l, const struct dd_structure *fresh, uint16_t since)
{
	if (l->is_described && since == l->now.since)
		return; /* the packet that brought it, once more */
	l->was_described = l->is_described;
	if (l->is_described)
		l->before = l->now;
	l->now.structure = *fresh;
	l->now.since = since;
	l->is_described = true;
	adopt_structure(l, &l->now);
}

static void note_active(struct layers *l, const struct described *d, const struct dd_info *info)
{
	if (!info->has_active_targets || d != &l->now)
		return;
	l->active = 0;
	for (unsigned i = 0; i < d->structure.target_count; i++)
		if (info->active_targets >> i & 1)
			l->active |= bit_of(number_of(&d->structure, i));
}

static enum dd_verdict on_descriptor(struct layers *l, struct slab *s, struct dd_info *info)
{
	struct media_packet *p = packet_of(s);
	const uint8_t *bytes = s->data + p->descriptor_offset;
	uint16_t number = p->descriptor_bytes >= DD_MIN_BYTES ? be16_read(bytes + 1) : l->now.since;
	struct described *d = described_for(l, number);
	struct dd_structure *known = &d->structure;
	struct dd_structure fresh;
	enum dd_verdict verdict;
	bool is_late = d != &l->now;

	/* A structure replaces what it is parsed against; of one that comes late only its own packet
	 * is to see it. */
	if (p->descriptor_bytes > DD_MIN_BYTES) {
		fresh = *known;
		known = &fresh;
	}
	verdict = dd_parse(bytes, p->descriptor_bytes, known, info);
	if (verdict == DD_MALFORMED)
		return verdict;
	if (info->has_structure && !is_late) {
		learn_structure(l, known, info->frame_number);
		d = &l->now;
	}
	take_limits(l, p, info);
	if (info->has_frame && !(info->has_structure && is_late)) {
		note_active(l, d, info);
		describe_frame(l, p, d, info);
	}
	return verdict;
}

/* --- A packet ------------------------------------------------------------------------------ */

static void take_size(struct layers *l, struct slab *s, const struct codec_info *info)
{
	if (info->flags & CODEC_HAS_STRUCTURE)
		learn_vp9_structure(l, s);
	/* Of several spatial layers the payload tells one size, and which layer it means differs. */
	if (info->width == 0 || l->has_sizes || l->present & ~row_of(0) || l->spatial_count > 1)
		return;
	set_size(l, 0, info->width, info->height);
}

static bool is_told_by_payload(const struct media_packet *p, const struct codec_info *info,
			       bool is_described)
{
	if (!(info->flags & CODEC_HAS_LAYERS))
		return false;
	return p->codec == CODEC_VP8 || (p->codec == CODEC_VP9 && !is_described);
}

enum dd_verdict layers_on_packet(struct layers *l, struct slab *s, const struct codec_info *info)
{
	struct media_packet *p = packet_of(s);
	struct dd_info described = { 0 };
	enum dd_verdict verdict = DD_OK;

	if (p->payload_bytes == 0)
		return DD_OK;
	if (l->has_packet && l->codec != p->codec)
		layers_start(l);
	l->has_packet = true;
	l->codec = p->codec;
	if (l->is_opaque) {
		p->flags &= (uint16_t) ~(PACKET_KEYFRAME | PACKET_FRAME_START | PACKET_DISCARDABLE);
		p->switches = 0;
		p->spatial_id = p->temporal_id = 0;
	} else {
		take_size(l, s, info);
	}
	if (packet_has(p, PACKET_DESCRIPTOR) && (l->is_opaque || p->codec != CODEC_VP8))
		verdict = on_descriptor(l, s, &described);
	if (!l->is_opaque && is_told_by_payload(p, info, l->is_described)) {
		if (p->codec == CODEC_VP8)
			on_vp8(l, p, info);
		else
			on_vp9(l, p, info);
	}
	if (l->present == 0)
		grid_add(l, 0, 0);
	return verdict;
}

uint32_t layers_targets(const struct layers *l)
{
	return l->present;
}

uint32_t layers_active(const struct layers *l)
{
	return l->active;
}

const struct layers_target *layers_target(const struct layers *l, unsigned target)
{
	assert(target < LAYERS_TARGETS && l->present >> target & 1);
	return &l->targets[target];
}
