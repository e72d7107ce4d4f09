/* media/numbering.c - see numbering.h for the contract. */
#include "media/numbering.h"

#include <assert.h>
#include <string.h>

#include "pool/bytes.h"

enum {
	CLOCK_HZ = 90000,                 /* of every video format */
	TIMESTAMP_SLACK_TICKS = CLOCK_HZ, /* a change of encoding may move the clock by so much */
	MAX_ELAPSED_US = 3600 * 1000000LL,
};

/* What a packet carries of ids. */
struct ids {
	bool has_picture, has_tl0, has_frame;
	bool is_closing; /* left out pictures leave no gap */
	uint16_t picture, frame;
	uint8_t tl0;
};

static void read_ids(const struct slab *s, struct ids *out)
{
	const struct media_packet *p = packet_of_const(s);
	struct codec_info info = { 0 };

	*out = (struct ids){ .is_closing = p->codec == CODEC_VP8 };
	if (packet_has(p, PACKET_DESCRIPTOR) && p->descriptor_bytes >= 3) {
		out->has_frame = true;
		out->frame = be16_read(s->data + p->descriptor_offset + 1);
	}
	if (p->is_opaque || (p->codec != CODEC_VP8 && p->codec != CODEC_VP9))
		return;
	(void)codec_inspect((enum media_codec)p->codec, packet_payload(s),
			    (size_t)(p->payload_bytes - p->padding_bytes), &info);
	out->has_picture = (info.flags & CODEC_HAS_PICTURE_ID) != 0;
	out->has_tl0 = (info.flags & CODEC_HAS_TL0PICIDX) != 0;
	out->picture = info.picture_id;
	out->tl0 = info.tl0picidx;
}

/* --- runs -------------------------------------------------------------------------------- */

static const struct numbering_run *run_at(const struct numbering *n, uint32_t i)
{
	return &n->runs[i % NUMBERING_RUNS];
}

static uint32_t oldest_run(const struct numbering *n)
{
	return n->run_count > NUMBERING_RUNS ? n->run_count - NUMBERING_RUNS : 0;
}

/* Number behind a run's last. */
static uint64_t run_end(const struct numbering *n, uint32_t i)
{
	return i + 1 == n->run_count ? n->next_number : run_at(n, i + 1)->number;
}

static void begin_run(struct numbering *n, uint64_t index)
{
	n->runs[n->run_count++ % NUMBERING_RUNS] = (struct numbering_run){
		.number = n->next_number,
		.index = index,
		.shift = n->shift,
		.encoding = n->encoding,
		.target = n->target,
	};
	n->is_open = true;
}

/* Numbers for everything above the cursor and below `index`. */
static void keep_gap(struct numbering *n, uint64_t index)
{
	uint64_t gap = index - n->cursor - 1;

	if (gap == 0)
		return;
	n->cursor = index - 1;
	if (gap > NUMBERING_MAX_GAP) {
		n->is_open = false;
		return;
	}
	if (!n->is_open)
		begin_run(n, index - gap);
	n->next_number += gap;
}

static void place_in(const struct numbering_run *run, uint64_t index, struct numbering_place *out)
{
	*out = (struct numbering_place){
		.number = run->number + (index - run->index),
		.index = index,
		.shift = run->shift,
		.encoding = run->encoding,
		.target = run->target,
	};
}

/* --- changes ----------------------------------------------------------------------------- */

void numbering_init(struct numbering *n, uint64_t first_number)
{
	memset(n, 0, sizeof(*n));
	n->next_number = first_number;
	n->is_switching = true;
	n->target = NUMBERING_ALL;
}

/* Remember what the next change has to go on from. What is left out counts too: something missing before
 * it may still come, and take the ids in between. */
static void note_newest(struct numbering *n, const struct media_packet *p, const struct ids *ids)
{
	uint32_t timestamp = p->timestamp + n->shift.timestamp;

	if (!n->has_sent || rtp_timestamp_diff(timestamp, n->timestamp) > 0) {
		n->timestamp = timestamp;
		n->arrival_us = p->arrival_us;
	}
	n->has_sent = true;
	if (ids->has_picture) {
		n->has_picture = true;
		n->picture = (uint16_t)(ids->picture + n->shift.picture);
	}
	if (ids->has_tl0) {
		n->has_tl0 = true;
		n->tl0 = (uint8_t)(ids->tl0 + n->shift.tl0);
	}
	if (ids->has_frame) {
		n->has_frame = true;
		n->frame = (uint16_t)(ids->frame + n->shift.frame);
	}
}

void numbering_adopt(struct numbering *n, uint8_t encoding, uint64_t first_index,
		     uint64_t first_number, uint64_t newest_index, const struct slab *newest)
{
	struct ids ids;

	assert(first_index <= newest_index + 1);
	numbering_init(n, first_number);
	n->is_switching = false;
	n->encoding = encoding;
	n->cursor = newest_index;
	begin_run(n, first_index);
	n->next_number += newest_index + 1 - first_index;
	if (!newest)
		return;
	read_ids(newest, &ids);
	note_newest(n, packet_of_const(newest), &ids);
}

void numbering_switch(struct numbering *n, uint8_t encoding, uint8_t target)
{
	n->encoding = encoding;
	n->target = target;
	n->is_switching = true;
	n->is_open = false;
	n->has_dropped = false;
}

void numbering_keep(struct numbering *n, uint64_t index)
{
	if (!n->is_switching && index > n->cursor)
		keep_gap(n, index);
}

void numbering_retarget(struct numbering *n, uint8_t target, uint64_t index)
{
	if (n->is_switching) {
		n->target = target;
		return;
	}
	assert(index > n->cursor);
	keep_gap(n, index);
	n->target = target;
	n->is_open = false;
}

/* What to add to this packet's timestamp so that it lies behind the newest one sent. It stays as it is
 * where the encodings' clocks agree; where they do not, the time between the arrivals counts. */
static uint32_t timestamp_shift(const struct numbering *n, const struct media_packet *p)
{
	uint64_t elapsed_us = p->arrival_us > n->arrival_us ? p->arrival_us - n->arrival_us : 0;
	uint32_t expected;
	int32_t off;

	if (elapsed_us > MAX_ELAPSED_US)
		elapsed_us = MAX_ELAPSED_US;
	expected = n->timestamp + (uint32_t)(elapsed_us * CLOCK_HZ / 1000000);
	off = rtp_timestamp_diff(p->timestamp, expected);
	if (off > TIMESTAMP_SLACK_TICKS || off < -TIMESTAMP_SLACK_TICKS)
		return (expected == n->timestamp ? expected + 1 : expected) - p->timestamp;
	if (rtp_timestamp_diff(p->timestamp, n->timestamp) > 0)
		return 0;
	return n->timestamp + 1 - p->timestamp;
}

static void start_anew(struct numbering *n, const struct media_packet *p, const struct ids *ids)
{
	n->shift = (struct numbering_shift){ 0 };
	if (n->has_sent)
		n->shift.timestamp = timestamp_shift(n, p);
	if (ids->has_picture && n->has_picture)
		n->shift.picture = (uint16_t)(n->picture + 1 - ids->picture);
	if (ids->has_tl0 && n->has_tl0)
		n->shift.tl0 = (uint8_t)(n->tl0 + 1 - ids->tl0);
	if (ids->has_frame && n->has_frame)
		n->shift.frame = (uint16_t)(n->frame + 1 - ids->frame);
	n->is_switching = false;
	n->cursor = p->index - 1;
}

/* --- packets ----------------------------------------------------------------------------- */

void numbering_take(struct numbering *n, const struct slab *s, struct numbering_place *out)
{
	const struct media_packet *p = packet_of_const(s);
	struct ids ids;

	assert(p->encoding == n->encoding);
	if (n->is_switching || p->index > n->cursor) {
		read_ids(s, &ids);
		if (n->is_switching)
			start_anew(n, p, &ids);
		keep_gap(n, p->index);
		if (!n->is_open)
			begin_run(n, p->index);
		n->next_number++;
		n->cursor = p->index;
		note_newest(n, p, &ids);
		n->has_dropped = false;
	}
	place_in(run_at(n, n->run_count - 1), p->index, out);
	assert(out->number + 1 == n->next_number);
}

/* What is missing between two packets of one layer frame is of that frame. */
static bool is_same_frame(const struct numbering *n, const struct media_packet *p)
{
	return n->has_dropped && p->timestamp == n->dropped_timestamp &&
	       p->spatial_id == n->dropped_spatial_id;
}

void numbering_drop(struct numbering *n, const struct slab *s)
{
	const struct media_packet *p = packet_of_const(s);
	struct ids ids;

	if (n->is_switching)
		return;
	assert(p->encoding == n->encoding && p->index > n->cursor);
	if (!is_same_frame(n, p))
		keep_gap(n, p->index);
	read_ids(s, &ids);
	if (ids.is_closing && ids.has_picture &&
	    (!n->has_dropped || n->dropped_picture != ids.picture))
		n->shift.picture--;
	note_newest(n, p, &ids);
	n->cursor = p->index;
	n->is_open = false;
	n->has_dropped = true;
	n->dropped_picture = ids.picture;
	n->dropped_spatial_id = p->spatial_id;
	n->dropped_timestamp = p->timestamp;
}

bool numbering_find_index(const struct numbering *n, uint8_t encoding, uint64_t index,
			  struct numbering_place *out)
{
	for (uint32_t i = n->run_count; i-- > oldest_run(n);) {
		const struct numbering_run *run = run_at(n, i);

		if (run->encoding != encoding || index < run->index)
			continue;
		if (index - run->index >= run_end(n, i) - run->number)
			return false;
		place_in(run, index, out);
		return true;
	}
	return false;
}

bool numbering_find_number(const struct numbering *n, uint16_t seq, struct numbering_place *out)
{
	uint64_t newest = n->next_number - 1;
	uint64_t number = newest - (uint16_t)(newest - seq);
	uint32_t low = oldest_run(n), high = n->run_count;

	if (low == high || number > newest || number < run_at(n, low)->number)
		return false;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (run_at(n, middle)->number <= number)
			low = middle;
		else
			high = middle;
	}
	place_in(run_at(n, low), run_at(n, low)->index + (number - run_at(n, low)->number), out);
	return true;
}

size_t numbering_lead(const struct slab *s, const struct numbering_shift *shift,
		      uint8_t lead[NUMBERING_LEAD_BYTES])
{
	const struct media_packet *p = packet_of_const(s);
	struct codec_info info;
	size_t bytes = 0;

	if ((shift->picture == 0 && shift->tl0 == 0) || packet_has(p, PACKET_PADDING_ONLY) ||
	    p->is_opaque || (p->codec != CODEC_VP8 && p->codec != CODEC_VP9))
		return 0;
	(void)codec_inspect((enum media_codec)p->codec, packet_payload(s),
			    (size_t)(p->payload_bytes - p->padding_bytes), &info);
	if (info.flags & CODEC_HAS_PICTURE_ID)
		bytes = info.picture_id_offset + (info.picture_id_bits > 8 ? 2u : 1u);
	if (info.flags & CODEC_HAS_TL0PICIDX && info.tl0picidx_offset + 1u > bytes)
		bytes = info.tl0picidx_offset + 1u;
	assert(bytes <= NUMBERING_LEAD_BYTES);
	memcpy(lead, packet_payload(s), bytes);
	codec_patch_ids(lead, &info, (uint16_t)(info.picture_id + shift->picture),
			(uint8_t)(info.tl0picidx + shift->tl0));
	return bytes;
}
