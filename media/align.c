/* media/align.c - see align.h for the contract. */
#include "media/align.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtp.h"

enum {
	NO_REFERENCE = -1,
	MAX_ELAPSED_TICKS = 1 << 30, /* a pause of hours must not make what follows look old */
};

void align_init(struct align *a, uint32_t clock_hz)
{
	assert(clock_hz > 0);
	memset(a, 0, sizeof(*a));
	a->clock_hz = clock_hz;
	a->reference = NO_REFERENCE;
}

void align_start(struct align *a)
{
	memset(a->encodings, 0, sizeof(a->encodings));
	a->reference = NO_REFERENCE;
}

static int64_t ticks_of_us(const struct align *a, int64_t us)
{
	return us / 1000000 * a->clock_hz + us % 1000000 * a->clock_hz / 1000000;
}

/* How far a timestamp has gone by now that was `from` at since_us. */
static uint32_t gone_on(const struct align *a, uint32_t from, uint64_t since_us, uint64_t now_us)
{
	int64_t ticks = ticks_of_us(a, (int64_t)(now_us - since_us));

	return from + (uint32_t)(ticks > MAX_ELAPSED_TICKS ? MAX_ELAPSED_TICKS : ticks);
}

static const struct align_step *newest_step(const struct align_encoding *e)
{
	return &e->steps[e->step_at];
}

static void add_step(struct align_encoding *e, uint32_t from, uint32_t offset)
{
	e->step_at = (uint8_t)((e->step_at + 1) % ALIGN_STEPS);
	e->steps[e->step_at] = (struct align_step){ from, offset };
}

/* How far the reference's nearest frame is from that timestamp, in ticks; INT32_MAX: there is none. */
static int32_t to_reference_frame(const struct align *a, uint32_t timestamp)
{
	int32_t best = INT32_MAX;

	for (unsigned i = 0; i < a->frame_count; i++) {
		int32_t off = rtp_timestamp_diff(a->frames[i], timestamp);

		if (llabs((int64_t)off) < llabs((int64_t)best))
			best = off;
	}
	return best;
}

/* How far the encoding is from where sender reports put it. @return false: they do not say */
static bool off_by_reports(const struct align *a, const struct align_encoding *e, int32_t *ticks)
{
	const struct align_encoding *r = &a->encodings[a->reference];
	int64_t apart_us = (int64_t)(e->report_ntp_us - r->report_ntp_us);
	uint32_t there;

	if (!e->has_report || !r->has_report)
		return false;
	there = r->report_rtp + newest_step(r)->offset + (uint32_t)ticks_of_us(a, apart_us);
	*ticks = rtp_timestamp_diff(there, e->report_rtp + newest_step(e)->offset);
	return *ticks <= ticks_of_us(a, ALIGN_REPORT_US) &&
	       *ticks >= -ticks_of_us(a, ALIGN_REPORT_US);
}

/* How far the encoding is from its place as far as can be told now; 0: it is there. */
static int32_t off_by(const struct align *a, const struct align_encoding *e, uint32_t timestamp)
{
	int32_t snap = (int32_t)ticks_of_us(a, ALIGN_SNAP_US);
	int32_t ticks;

	if (off_by_reports(a, e, &ticks) && (ticks > snap || ticks < -snap))
		return ticks;
	ticks = to_reference_frame(a, timestamp + newest_step(e)->offset);
	return ticks >= -snap && ticks <= snap ? ticks : 0;
}

/* Where the timeline is at now_us: behind all that was given, and if there is a reference, by it. */
static uint32_t timeline_at(const struct align *a, uint64_t now_us)
{
	const struct align_encoding *r = &a->encodings[a->reference < 0 ? 0 : a->reference];
	uint32_t there;

	if (a->reference >= 0)
		return gone_on(a, r->newest + newest_step(r)->offset, r->newest_us, now_us);
	there = gone_on(a, a->newest, a->newest_us, now_us);
	return there == a->newest ? there + 1 : there;
}

static void place(struct align *a, unsigned encoding, uint32_t timestamp, uint64_t now_us)
{
	struct align_encoding *e = &a->encodings[encoding];
	uint32_t there = a->has_output ? timeline_at(a, now_us) : timestamp;

	*e = (struct align_encoding){
		.is_started = true, .newest = timestamp, .newest_us = now_us, .moved_us = now_us
	};
	for (unsigned i = 0; i < ALIGN_STEPS; i++)
		e->steps[i] = (struct align_step){ timestamp, there - timestamp };
	if (a->reference == NO_REFERENCE) {
		a->reference = (int8_t)encoding;
		a->frame_count = 0;
	} else if ((int)encoding != a->reference) {
		e->steps[e->step_at].offset += (uint32_t)off_by(a, e, timestamp);
	}
}

static void move(struct align *a, struct align_encoding *e, uint32_t timestamp, uint64_t now_us)
{
	int32_t step = (int32_t)ticks_of_us(a, ALIGN_STEP_US);
	int32_t off;

	if (now_us < e->moved_us + ALIGN_EVERY_US)
		return;
	off = off_by(a, e, timestamp);
	if (off == 0)
		return;
	off = off > step ? step : off < -step ? -step : off;
	add_step(e, timestamp, newest_step(e)->offset + (uint32_t)off);
	e->moved_us = now_us;
}

/* The offset that was in force for the frame of that timestamp. */
static uint32_t offset_for(const struct align_encoding *e, uint32_t timestamp)
{
	unsigned at = e->step_at;

	for (unsigned i = 0; i < ALIGN_STEPS; i++) {
		if (rtp_timestamp_diff(timestamp, e->steps[at].from) >= 0)
			return e->steps[at].offset;
		at = (at + ALIGN_STEPS - 1) % ALIGN_STEPS;
	}
	return e->steps[(e->step_at + 1) % ALIGN_STEPS].offset;
}

static bool has_jumped(const struct align *a, const struct align_encoding *e, uint32_t timestamp,
		       uint64_t now_us)
{
	uint32_t expected = gone_on(a, e->newest, e->newest_us, now_us);
	int64_t off = rtp_timestamp_diff(timestamp, expected);

	return off > ticks_of_us(a, ALIGN_JUMP_US) || off < -ticks_of_us(a, ALIGN_JUMP_US);
}

static void note_output(struct align *a, unsigned encoding, uint32_t timestamp, uint64_t now_us)
{
	if ((int)encoding == a->reference) {
		a->frame_at = (uint8_t)((a->frame_at + 1) % ALIGN_FRAMES);
		a->frames[a->frame_at] = timestamp;
		if (a->frame_count < ALIGN_FRAMES)
			a->frame_count++;
	}
	if (a->has_output && rtp_timestamp_diff(timestamp, a->newest) <= 0)
		return;
	a->has_output = true;
	a->newest = timestamp;
	a->newest_us = now_us;
}

uint32_t align_on_packet(struct align *a, unsigned encoding, uint32_t timestamp,
			 uint64_t arrival_us)
{
	struct align_encoding *e = &a->encodings[encoding];
	bool is_first;

	assert(encoding < ALIGN_ENCODINGS);
	is_first = !e->is_started || has_jumped(a, e, timestamp, arrival_us);
	if (is_first)
		place(a, encoding, timestamp, arrival_us);
	else if (rtp_timestamp_diff(timestamp, e->newest) <= 0)
		return timestamp + offset_for(e, timestamp);
	else if ((int)encoding != a->reference)
		move(a, e, timestamp, arrival_us);
	e->newest = timestamp;
	e->newest_us = arrival_us;
	timestamp += newest_step(e)->offset;
	note_output(a, encoding, timestamp, arrival_us);
	return timestamp;
}

void align_on_sr(struct align *a, unsigned encoding, uint64_t ntp_us, uint32_t rtp)
{
	struct align_encoding *e = &a->encodings[encoding];

	assert(encoding < ALIGN_ENCODINGS);
	/* "A sender that has no notion of wallclock [...] may set the NTP timestamp to zero." */
	if (!e->is_started || ntp_us == 0)
		return;
	e->has_report = true;
	e->report_ntp_us = ntp_us;
	e->report_rtp = rtp;
}

uint32_t align_offset(const struct align *a, unsigned encoding)
{
	assert(encoding < ALIGN_ENCODINGS);
	return newest_step(&a->encodings[encoding])->offset;
}
