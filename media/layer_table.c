/* media/layer_table.c - see layer_table.h for the contract.
 *
 * Packets are counted by class: those of one layer that the same targets need. A target's figures
 * are the sums over the classes it needs, so a packet costs one addition, however many targets.
 */
#include "media/layer_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtp.h"

enum {
	BUCKET_US = 100000,
	BUCKETS = LAYER_WINDOW_US / BUCKET_US + 1, /* the last one is being filled */
	CLASSES = 24,                              /* of an encoding */
	OVERHEAD_BYTES = 40,     /* a viewer's RTP header, extensions and SRTP tag, about */
	MIN_ELAPSED_US = 300000, /* a shorter past says nothing about bits a second */
	GAP_DIVISOR = 8,         /* of the moving average of intervals between frames */
	MAX_GAP_US = 2000000,
	SMOOTHING_US = 2000000, /* time constant of published bitrates */
	MATERIAL_DIVISOR = 6,
	VLA_LAG_US = 300000, /* packets this much after an allocation prove more than it does */
};

struct class
{
	uint32_t targets;
	uint8_t spatial_id, temporal_id;
	bool is_used;
	uint32_t newest_timestamp;
	uint32_t gap_us; /* usual interval between frames; 0: not known */
	uint64_t first_us, last_us, frame_us;
	uint32_t bytes[BUCKETS];
	uint16_t frames[BUCKETS];
};

struct encoding {
	struct class classes[CLASSES];
	uint32_t bitrate_bps[LAYERS_TARGETS]; /* smoothed; 0: not measured yet */
	uint64_t measured_us;                 /* when that was */
};

struct layer_meter {
	struct encoding encodings[LAYER_ENCODINGS];
	uint8_t class_count; /* of all encodings */
	uint64_t bucket;     /* newest, in BUCKET_US since the clock's start */
	uint64_t newest_us;  /* last packet of any layer */
	struct layer_table published;
	uint64_t published_us;
	uint64_t due_us;

	/* What the sender says. */
	bool has_vla;
	uint64_t vla_us;
	struct vla vla;
	uint8_t vla_stream_of[LAYER_ENCODINGS]; /* VLA_STREAMS: not known */
};

int layer_meter_create(struct layer_meter **out)
{
	*out = malloc(sizeof(**out));
	if (!*out)
		return -ENOMEM;
	layer_meter_start(*out);
	return 0;
}

void layer_meter_destroy(struct layer_meter *m)
{
	free(m);
}

void layer_meter_start(struct layer_meter *m)
{
	memset(m, 0, sizeof(*m));
	memset(m->vla_stream_of, VLA_STREAMS, sizeof(m->vla_stream_of));
	m->due_us = UINT64_MAX;
}

size_t layer_meter_bytes(void)
{
	return sizeof(struct layer_meter);
}

/* --- Counting ------------------------------------------------------------------------------ */

static void clear_bucket(struct layer_meter *m, uint64_t bucket)
{
	for (unsigned e = 0; e < LAYER_ENCODINGS; e++)
		for (unsigned c = 0; c < CLASSES; c++) {
			m->encodings[e].classes[c].bytes[bucket % BUCKETS] = 0;
			m->encodings[e].classes[c].frames[bucket % BUCKETS] = 0;
		}
}

static void advance(struct layer_meter *m, uint64_t now_us)
{
	uint64_t bucket = now_us / BUCKET_US;

	if (bucket > m->bucket + BUCKETS)
		m->bucket = bucket - BUCKETS;
	while (m->bucket < bucket)
		clear_bucket(m, ++m->bucket);
}

/* The class that has been silent for longest makes room. */
static struct class *make_class(struct layer_meter *m, struct encoding *e,
				const struct media_packet *p)
{
	struct class *c = &e->classes[0];

	for (unsigned i = 1; i < CLASSES && c->is_used; i++)
		if (!e->classes[i].is_used || e->classes[i].last_us < c->last_us)
			c = &e->classes[i];
	if (!c->is_used)
		m->class_count++;
	*c = (struct class){
		.is_used = true,
		.targets = p->targets,
		.spatial_id = p->spatial_id,
		.temporal_id = p->temporal_id,
		.first_us = p->arrival_us,
		.newest_timestamp = p->timestamp - 1,
	};
	if (m->class_count > 1 && m->due_us == UINT64_MAX)
		m->due_us = p->arrival_us;
	return c;
}

static struct class *class_of(struct layer_meter *m, struct encoding *e,
			      const struct media_packet *p)
{
	for (unsigned i = 0; i < CLASSES; i++) {
		struct class *c = &e->classes[i];

		if (c->is_used && c->targets == p->targets && c->spatial_id == p->spatial_id &&
		    c->temporal_id == p->temporal_id)
			return c;
	}
	return make_class(m, e, p);
}

static void note_frame(struct class *c, const struct media_packet *p)
{
	uint64_t gap_us = p->arrival_us - c->frame_us;

	if (gap_us > MAX_GAP_US)
		gap_us = MAX_GAP_US;
	if (c->gap_us == 0 && c->frame_us > 0)
		c->gap_us = (uint32_t)gap_us;
	else if (c->frame_us > 0)
		c->gap_us = c->gap_us - c->gap_us / GAP_DIVISOR + (uint32_t)gap_us / GAP_DIVISOR;
	c->frame_us = p->arrival_us;
	c->newest_timestamp = p->timestamp;
}

void layer_meter_on_packet(struct layer_meter *m, const struct media_packet *p)
{
	struct class *c;

	assert(p->encoding < LAYER_ENCODINGS);
	if (packet_has(p, PACKET_PADDING_ONLY))
		return;
	advance(m, p->arrival_us);
	c = class_of(m, &m->encodings[p->encoding], p);
	c->bytes[m->bucket % BUCKETS] += p->payload_bytes + OVERHEAD_BYTES;
	c->last_us = p->arrival_us;
	m->newest_us = p->arrival_us;
	if (rtp_timestamp_diff(p->timestamp, c->newest_timestamp) > 0) {
		c->frames[m->bucket % BUCKETS]++;
		note_frame(c, p);
	}
}

void layer_meter_on_vla(struct layer_meter *m, unsigned encoding, const struct vla *vla)
{
	assert(encoding < LAYER_ENCODINGS);
	m->has_vla = true;
	m->vla = *vla;
	m->vla_us = m->newest_us;
	if (vla->stream_count > 0)
		m->vla_stream_of[encoding] = vla->stream;
}

/* --- From counts to a table ------------------------------------------------------------------ */

/* What the sender says of that layer; NULL where it says nothing. */
static const struct vla_layer *allocation_of(const struct layer_meter *m, unsigned encoding,
					     unsigned spatial_id)
{
	unsigned stream = m->vla_stream_of[encoding];

	if (!m->has_vla || stream == VLA_STREAMS || spatial_id >= VLA_SPATIAL)
		return NULL;
	return &m->vla.layers[stream][spatial_id];
}

/* A target in the window, and its own highest layer: the packets that no lower target needs. */
struct sums {
	uint64_t bytes;
	uint32_t frames;
	uint64_t first_us;
	uint64_t own_first_us, own_last_us; /* own_last_us 0: none seen */
	uint32_t own_gap_us;                /* 0: not known */
};

static void add_own(struct sums *sums, const struct class *c)
{
	if (sums->own_last_us == 0 || c->first_us < sums->own_first_us)
		sums->own_first_us = c->first_us;
	if (c->last_us > sums->own_last_us)
		sums->own_last_us = c->last_us;
	if (c->gap_us > 0 && (sums->own_gap_us == 0 || c->gap_us < sums->own_gap_us))
		sums->own_gap_us = c->gap_us;
}

static struct sums sum_up(const struct encoding *e, const struct layers_target *t, unsigned target)
{
	struct sums sums = { .first_us = UINT64_MAX };

	for (unsigned i = 0; i < CLASSES; i++) {
		const struct class *c = &e->classes[i];

		if (!c->is_used || !(c->targets >> target & 1))
			continue;
		if (c->first_us < sums.first_us)
			sums.first_us = c->first_us;
		for (unsigned b = 0; b < BUCKETS; b++) {
			sums.bytes += c->bytes[b];
			if (c->spatial_id == t->spatial_id)
				sums.frames += c->frames[b];
		}
		if (c->spatial_id == t->spatial_id && c->temporal_id == t->temporal_id)
			add_own(&sums, c);
	}
	return sums;
}

static bool is_gone(const struct layer_meter *m, const struct sums *sums)
{
	uint64_t limit_us = sums->own_gap_us * UINT64_C(5) / 2;

	if (limit_us < LAYER_SILENCE_US)
		limit_us = LAYER_SILENCE_US;
	return m->newest_us - sums->own_last_us > limit_us;
}

static bool is_withdrawn(const struct layer_meter *m, const struct vla_layer *allocation,
			 unsigned temporal_id, const struct sums *sums)
{
	return allocation && temporal_id >= allocation->temporal_count &&
	       sums->own_last_us < m->vla_us + VLA_LAG_US;
}

static uint64_t elapsed_us(const struct layer_meter *m, uint64_t first_us, uint64_t now_us)
{
	uint64_t window_us = now_us - (m->bucket - (BUCKETS - 1)) * BUCKET_US;
	uint64_t past_us = now_us - first_us;

	if (past_us < MIN_ELAPSED_US)
		past_us = MIN_ELAPSED_US;
	return past_us < window_us ? past_us : window_us;
}

static uint32_t smoothed(const struct encoding *e, unsigned target, uint64_t rate, uint64_t now_us,
			 bool is_young)
{
	uint64_t before = e->bitrate_bps[target];
	uint64_t passed_us = now_us - e->measured_us;

	if (rate > UINT32_MAX)
		rate = UINT32_MAX;
	if (before == 0 || is_young || passed_us >= SMOOTHING_US)
		return (uint32_t)rate;
	return (uint32_t)((before * (SMOOTHING_US - passed_us) + rate * passed_us) / SMOOTHING_US);
}

static uint16_t clipped(uint32_t pixels)
{
	return pixels > UINT16_MAX ? UINT16_MAX : (uint16_t)pixels;
}

/* What does not change from packet to packet. */
static void describe_target(const struct layer_meter *m, const struct layers_target *t,
			    const struct vla_layer *allocation, struct layer_option *option)
{
	option->spatial_id = t->spatial_id;
	option->temporal_id = t->temporal_id;
	option->contains = t->contains;
	option->width = t->width;
	option->height = t->height;
	if (t->width == 0 && allocation && m->vla.has_resolutions) {
		option->width = clipped(allocation->width);
		option->height = clipped(allocation->height);
	}
}

/* @return false: nothing of the target's own was seen yet */
static bool describe_option(const struct layer_meter *m, struct encoding *e,
			    const struct layers *layers, uint64_t now_us,
			    struct layer_option *option)
{
	const struct layers_target *t = layers_target(layers, option->target);
	const struct vla_layer *allocation = allocation_of(m, option->encoding, t->spatial_id);
	struct sums sums = sum_up(e, t, option->target);
	uint64_t span_us = elapsed_us(m, sums.first_us, now_us);

	if (sums.own_last_us == 0)
		return false;
	describe_target(m, t, allocation, option);
	option->is_active = layers_active(layers) >> option->target & 1 && !is_gone(m, &sums) &&
			    !is_withdrawn(m, allocation, t->temporal_id, &sums);
	if (option->is_active)
		e->bitrate_bps[option->target] =
		    smoothed(e, option->target, sums.bytes * 8000000 / span_us, now_us,
			     now_us - sums.own_first_us < LAYER_WINDOW_US);
	option->bitrate_bps = e->bitrate_bps[option->target];
	option->fps = (uint8_t)((sums.frames * UINT64_C(1000000) + span_us / 2) / span_us);
	return true;
}

static bool is_cheaper(const struct layer_option *a, const struct layer_option *b)
{
	if (a->bitrate_bps != b->bitrate_bps)
		return a->bitrate_bps < b->bitrate_bps;
	if (a->encoding != b->encoding)
		return a->encoding < b->encoding;
	return a->target < b->target;
}

static void insert(struct layer_table *t, const struct layer_option *option)
{
	unsigned at = t->count;

	if (t->count == LAYER_OPTIONS) {
		if (!is_cheaper(option, &t->options[LAYER_OPTIONS - 1]))
			return;
		at = LAYER_OPTIONS - 1;
	} else {
		t->count++;
	}
	for (; at > 0 && is_cheaper(option, &t->options[at - 1]); at--)
		t->options[at] = t->options[at - 1];
	t->options[at] = *option;
}

static void build(struct layer_meter *m, const struct layers *const layers[LAYER_ENCODINGS],
		  uint64_t now_us, struct layer_table *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < LAYER_ENCODINGS; i++) {
		struct encoding *e = &m->encodings[i];

		if (!layers[i])
			continue;
		for (uint32_t left = layers_targets(layers[i]); left; left &= left - 1) {
			struct layer_option option = {
				.encoding = (uint8_t)i,
				.target = (uint8_t)__builtin_ctz(left),
			};

			if (describe_option(m, e, layers[i], now_us, &option))
				insert(out, &option);
		}
		e->measured_us = now_us;
	}
	if (out->count <= 1)
		out->count = 0;
}

/* --- Tables -------------------------------------------------------------------------------- */

const struct layer_option *layer_table_find(const struct layer_table *t, unsigned encoding,
					    unsigned target)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->options[i].encoding == encoding && t->options[i].target == target)
			return &t->options[i];
	return NULL;
}

static bool is_far(uint32_t a, uint32_t b)
{
	uint32_t more = a > b ? a : b;

	return more - (a > b ? b : a) > more / MATERIAL_DIVISOR;
}

/* Another choice, whatever its figures. */
static bool has_other_options(const struct layer_table *a, const struct layer_table *b)
{
	if (a->count != b->count)
		return true;
	for (unsigned i = 0; i < a->count; i++) {
		const struct layer_option *o = &a->options[i];
		const struct layer_option *n = layer_table_find(b, o->encoding, o->target);

		if (!n || n->is_active != o->is_active || n->width != o->width ||
		    n->height != o->height || n->contains != o->contains)
			return true;
	}
	return false;
}

bool layer_table_differs(const struct layer_table *older, const struct layer_table *newer)
{
	if (has_other_options(older, newer))
		return true;
	for (unsigned i = 0; i < older->count; i++) {
		const struct layer_option *o = &older->options[i];
		const struct layer_option *n = layer_table_find(newer, o->encoding, o->target);

		if (is_far(o->bitrate_bps, n->bitrate_bps) || is_far(o->fps, n->fps))
			return true;
	}
	return false;
}

bool layer_meter_poll(struct layer_meter *m, const struct layers *const layers[LAYER_ENCODINGS],
		      uint64_t now_us, struct layer_table *out)
{
	struct layer_table table;
	bool is_due = now_us >= m->published_us + LAYER_TABLE_INTERVAL_US;

	if (m->class_count <= 1)
		return false;
	advance(m, now_us);
	m->due_us = (m->bucket + 1) * BUCKET_US;
	build(m, layers, now_us, &table);
	if (!has_other_options(&m->published, &table) &&
	    !(is_due && layer_table_differs(&m->published, &table)))
		return false;
	m->published = table;
	m->published_us = now_us;
	*out = table;
	return true;
}

uint64_t layer_meter_due_us(const struct layer_meter *m)
{
	return m->due_us;
}
