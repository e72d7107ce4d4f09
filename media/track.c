/* media/track.c - see track.h for the contract.
 *
 * Within one source, index = number + base - (padding-only packets swallowed below that number),
 * where number is the source's sequence number, extended. Two bitmaps over the last
 * TRACK_WINDOW_PKTS numbers say which were seen and which of these were swallowed, so that a late
 * packet finds the place it would have had in order. A number may be swallowed only while nothing
 * above it has an index: so an index, once given, never shifts.
 */
#include "media/track.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "media/packet.h"
#include "pool/bytes.h"

enum {
	WORD_BITS = 64,
	WINDOW_WORDS = TRACK_WINDOW_PKTS / WORD_BITS,
	FALLBACK_PADDING_BYTES = 4, /* of a padding-only packet where no rounding is asked for */
	TIMESTAMP_SLACK_S = 2,      /* a jump of numbers whose timestamps fit within keeps them */
	DESCRIPTOR_FRAME_AT = 1,    /* of a dependency descriptor: behind flags and template id */
	DESCRIPTOR_FIXED_BYTES = 3,
	MAX_ELAPSED_TICKS = 1 << 30, /* a pause of hours must not make the new timestamp look old */
};

/* Picture ids of one kind: what the current source's need added, and the newest written. */
struct id_chain {
	uint16_t offset, newest;
	bool has_newest;
	bool is_pending; /* offset to be found at the source's first id */
};

struct track {
	struct track_config config;
	struct track_stats stats;
	uint32_t clock_hz;
	uint32_t timestamp_offset;
	uint32_t newest_timestamp; /* as sent */
	uint64_t newest_timestamp_us;
	uint64_t newest_index;
	bool has_output;
	uint8_t codec; /* of the newest packet forwarded */

	/* The current source. */
	bool is_started;
	bool is_restart; /* nothing forwarded since the numbering was set */
	bool has_bad_seq;
	uint16_t bad_seq;         /* where a source that jumped back would continue */
	uint64_t first_number;    /* below it nothing belongs to this numbering */
	uint64_t newest_number;   /* seen, swallowed ones included */
	uint64_t newest_numbered; /* highest number that has an index; 0: none */
	uint64_t base;
	uint64_t swallowed;
	uint64_t seen[WINDOW_WORDS];
	uint64_t padding[WINDOW_WORDS];
	struct id_chain picture, tl0;
	struct id_chain frame; /* number of the dependency descriptor */
};

static bool is_valid_header(uint16_t header_bytes)
{
	return header_bytes >= RTP_HEADER_BYTES && header_bytes < TRACK_DATAGRAM_BYTES;
}

int track_create(struct track **out, const struct track_config *config)
{
	struct track *t;

	*out = NULL;
	if (config->pad_bytes > TRACK_MAX_PAD_BYTES || !is_valid_header(config->header_bytes))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->config = *config;
	t->newest_index = TRACK_FIRST_INDEX - 1;
	t->clock_hz = 1;
	*out = t;
	return 0;
}

void track_destroy(struct track *t)
{
	free(t);
}

void track_start(struct track *t, uint32_t clock_hz)
{
	assert(clock_hz > 0);
	t->clock_hz = clock_hz;
	t->is_started = false;
	t->picture.is_pending = true;
	t->tl0.is_pending = true;
	t->frame.is_pending = true;
}

static bool bit_get(const uint64_t *map, uint64_t number)
{
	uint64_t at = number % TRACK_WINDOW_PKTS;

	return map[at / WORD_BITS] >> at % WORD_BITS & 1;
}

static void bit_set(uint64_t *map, uint64_t number)
{
	uint64_t at = number % TRACK_WINDOW_PKTS;

	map[at / WORD_BITS] |= 1ULL << at % WORD_BITS;
}

static void bit_clear(uint64_t *map, uint64_t number)
{
	uint64_t at = number % TRACK_WINDOW_PKTS;

	map[at / WORD_BITS] &= ~(1ULL << at % WORD_BITS);
}

/* How many numbers above `number` were swallowed. */
static uint64_t swallowed_above(const struct track *t, uint64_t number)
{
	uint64_t count = 0;

	for (uint64_t n = number + 1; n <= t->newest_number;) {
		uint64_t bits = t->padding[n % TRACK_WINDOW_PKTS / WORD_BITS] >> n % WORD_BITS;
		uint64_t span = WORD_BITS - n % WORD_BITS;

		if (span > t->newest_number - n + 1) {
			span = t->newest_number - n + 1;
			bits &= (1ULL << span) - 1;
		}
		count += (uint64_t)__builtin_popcountll(bits);
		n += span;
	}
	return count;
}

/* Where the timestamp should be now, had the newest one gone on with the wall clock. */
static uint32_t expected_timestamp(const struct track *t, uint64_t now_us)
{
	uint64_t elapsed_us = now_us > t->newest_timestamp_us ? now_us - t->newest_timestamp_us : 0;
	uint64_t ticks =
	    elapsed_us / 1000000 * t->clock_hz + elapsed_us % 1000000 * t->clock_hz / 1000000;

	if (ticks == 0)
		ticks = 1;
	if (ticks > MAX_ELAPSED_TICKS)
		ticks = MAX_ELAPSED_TICKS;
	return t->newest_timestamp + (uint32_t)ticks;
}

static bool is_timestamp_fitting(const struct track *t, uint32_t timestamp, uint32_t expected)
{
	int64_t off = rtp_timestamp_diff(timestamp, expected);
	int64_t slack = (int64_t)TIMESTAMP_SLACK_S * t->clock_hz;

	return off >= -slack && off <= slack &&
	       rtp_timestamp_diff(timestamp, t->newest_timestamp) > 0;
}

/* Number from this packet on, directly behind the newest index. */
static uint64_t restart_at(struct track *t, const struct rtp_packet *rtp, uint64_t now_us)
{
	uint64_t number = RTP_SEQ_CYCLE + (uint64_t)rtp->seq;
	uint32_t expected = expected_timestamp(t, now_us);

	if (!t->has_output)
		t->timestamp_offset = 0;
	else if (!t->is_started ||
		 !is_timestamp_fitting(t, rtp->timestamp + t->timestamp_offset, expected))
		t->timestamp_offset = expected - rtp->timestamp;
	if (t->is_started)
		t->stats.jumps++;
	else
		t->stats.starts++;
	memset(t->seen, 0, sizeof(t->seen));
	memset(t->padding, 0, sizeof(t->padding));
	t->is_started = true;
	t->is_restart = true;
	t->has_bad_seq = false;
	t->swallowed = 0;
	t->base = t->newest_index + 1 - number;
	t->first_number = number;
	t->newest_number = number;
	t->newest_numbered = 0;
	return number;
}

/* A source may go back to numbers long gone only by restarting: two in a row make us believe it. */
static bool is_going_back(struct track *t, const struct track_input *in)
{
	if (in->is_repaired)
		return false;
	if (t->has_bad_seq && t->bad_seq == in->rtp->seq)
		return true;
	t->has_bad_seq = true;
	t->bad_seq = (uint16_t)(in->rtp->seq + 1);
	return false;
}

/* Extend the sequence number and note it as seen; TRACK_FORWARD if it is of use. */
static enum track_verdict place(struct track *t, const struct track_input *in, uint64_t now_us,
				uint64_t *number)
{
	uint64_t n;

	if (!t->is_started) {
		n = restart_at(t, in->rtp, now_us);
	} else {
		n = rtp_seq_unwrap(t->newest_number, in->rtp->seq);
		if (n + TRACK_WINDOW_PKTS <= t->newest_number) {
			if (!is_going_back(t, in))
				return TRACK_TOO_OLD;
			n = restart_at(t, in->rtp, now_us);
		} else if (n < t->first_number) {
			return TRACK_TOO_OLD;
		} else if (n >= t->newest_number + TRACK_WINDOW_PKTS) {
			if (in->is_repaired)
				return TRACK_TOO_OLD;
			n = restart_at(t, in->rtp, now_us);
		} else if (n <= t->newest_number && bit_get(t->seen, n)) {
			return TRACK_DUPLICATE;
		}
	}
	for (; t->newest_number < n; t->newest_number++) {
		bit_clear(t->seen, t->newest_number + 1);
		bit_clear(t->padding, t->newest_number + 1);
	}
	bit_set(t->seen, n);
	*number = n;
	return TRACK_FORWARD;
}

static uint16_t id_continue(struct id_chain *chain, uint16_t id, bool is_newest)
{
	uint16_t out;

	if (chain->is_pending) {
		chain->is_pending = false;
		chain->offset = chain->has_newest ? (uint16_t)(chain->newest + 1 - id) : 0;
	}
	out = (uint16_t)(id + chain->offset);
	if (is_newest) {
		chain->newest = out;
		chain->has_newest = true;
	}
	return out;
}

static void continue_ids(struct track *t, struct slab *s, const struct codec_info *info,
			 bool is_newest)
{
	struct media_packet *p = packet_of(s);
	uint16_t picture = info->picture_id;
	uint16_t tl0 = info->tl0picidx;

	if (info->flags & CODEC_HAS_PICTURE_ID)
		picture = id_continue(&t->picture, picture, is_newest);
	if (info->flags & CODEC_HAS_TL0PICIDX)
		tl0 = id_continue(&t->tl0, tl0, is_newest);
	if (t->picture.offset || t->tl0.offset)
		codec_patch_ids(s->data + p->payload_offset, info, picture, (uint8_t)tl0);
}

static void continue_frames(struct track *t, struct slab *s, bool is_newest)
{
	const struct media_packet *p = packet_of(s);
	uint8_t *at = s->data + p->descriptor_offset + DESCRIPTOR_FRAME_AT;
	uint16_t frame;

	if (!packet_has(p, PACKET_DESCRIPTOR) || p->descriptor_bytes < DESCRIPTOR_FIXED_BYTES)
		return;
	frame = id_continue(&t->frame, be16_read(at), is_newest);
	if (t->frame.offset)
		be16_write(at, frame);
}

static void write_padding(struct track *t, struct slab *s, size_t count)
{
	struct media_packet *p = packet_of(s);

	if (count > 0) {
		rtp_padding_write(s->data + p->payload_offset + p->payload_bytes, (uint8_t)count);
		p->payload_bytes = (uint16_t)(p->payload_bytes + count);
		p->padding_bytes = (uint8_t)count;
		p->flags |= PACKET_PADDED;
		t->stats.padding_sent_bytes += count;
	}
	s->len = (uint16_t)(p->payload_offset + p->payload_bytes);
}

/* Round the payload up as far as the datagram's limit and the slab allow. */
static void round_up(struct track *t, struct slab *s, const struct rtp_packet *rtp)
{
	const struct media_packet *p = packet_of(s);
	size_t came_bytes = (size_t)rtp->payload_offset + rtp->payload_bytes + rtp->padding_bytes;
	size_t limit = came_bytes > TRACK_DATAGRAM_BYTES ? came_bytes : TRACK_DATAGRAM_BYTES;
	size_t room = SLAB_DATA_BYTES - p->payload_offset;
	size_t rounded = p->payload_bytes;

	if (t->config.is_video && t->config.pad_bytes > 0)
		rounded += t->config.pad_bytes - 1 -
			   (rounded + t->config.pad_bytes - 1) % t->config.pad_bytes;
	limit -= t->config.header_bytes;
	if (rounded > limit)
		rounded = limit;
	if (rounded > room)
		rounded = room;
	write_padding(t, s, rounded > p->payload_bytes ? rounded - p->payload_bytes : 0);
}

/* What a viewer gets under a number that turned out to be empty. */
static void make_padding_only(struct track *t, struct slab *s)
{
	struct media_packet *p = packet_of(s);

	p->flags = PACKET_PADDING_ONLY;
	p->targets = UINT32_MAX;
	p->switches = p->ends = 0;
	p->codec = t->codec;
	p->payload_offset = RTP_HEADER_BYTES;
	p->payload_bytes = 0;
	write_padding(t, s, t->config.pad_bytes > 0 ? t->config.pad_bytes : FALLBACK_PADDING_BYTES);
}

static void note_newest(struct track *t, const struct media_packet *p)
{
	t->codec = p->codec;
	t->newest_index = p->index;
	if (t->has_output && rtp_timestamp_diff(p->timestamp, t->newest_timestamp) <= 0)
		return;
	t->newest_timestamp = p->timestamp;
	t->newest_timestamp_us = p->arrival_us;
	t->has_output = true;
}

static void forward(struct track *t, struct slab *s, const struct track_input *in, uint64_t number,
		    bool is_padding)
{
	struct media_packet *p = packet_of(s);
	bool is_newest = number > t->newest_numbered;

	p->index = number + t->base - (t->swallowed - swallowed_above(t, number));
	p->timestamp = in->rtp->timestamp + t->timestamp_offset;
	p->stream = t->config.stream;
	p->stream_generation = t->config.stream_generation;
	p->track = t->config.track;
	p->encoding = t->config.encoding;
	if (is_padding) {
		make_padding_only(t, s);
		t->stats.late_padding++;
	} else {
		if (in->codec)
			continue_ids(t, s, in->codec, is_newest);
		continue_frames(t, s, is_newest);
		round_up(t, s, in->rtp);
	}
	if (t->config.is_video)
		p->flags |= PACKET_VIDEO;
	if (in->is_repaired)
		p->flags |= PACKET_REPAIRED;
	if (!is_newest) {
		t->stats.late++;
		return;
	}
	if (t->is_restart)
		p->flags |= PACKET_RESTART;
	t->is_restart = false;
	t->newest_numbered = number;
	note_newest(t, p);
}

enum track_verdict track_on_packet(struct track *t, struct slab *s, const struct track_input *in)
{
	const struct media_packet *p = packet_of(s);
	bool is_padding = in->is_unwanted || p->payload_bytes == 0;
	enum track_verdict verdict;
	uint64_t number = 0;

	verdict = place(t, in, p->arrival_us, &number);
	if (verdict == TRACK_FORWARD && is_padding && number > t->newest_numbered) {
		bit_set(t->padding, number);
		t->swallowed++;
		verdict = TRACK_SWALLOWED;
	}
	if (verdict == TRACK_FORWARD)
		forward(t, s, in, number, is_padding);
	t->stats.verdicts[verdict]++;
	return verdict;
}

uint64_t track_newest_index(const struct track *t)
{
	return t->newest_index;
}

uint32_t track_timestamp_offset(const struct track *t)
{
	return t->timestamp_offset;
}

void track_stats(const struct track *t, struct track_stats *out)
{
	*out = t->stats;
}
