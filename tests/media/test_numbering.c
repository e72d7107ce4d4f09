#include <criterion/criterion.h>
#include <stdlib.h>

#include "media/numbering.h"
#include "pool/bytes.h"

TestSuite(numbering, .timeout = 20);

enum {
	FRAME_TICKS = 3000,
	FRAME_US = 33333,
	FIRST_NUMBER = 65530, /* the 16-bit number wraps early */
};

static struct numbering n;

/* A VP8 packet with a 15-bit picture id, TL0PICIDX and temporal layer. */
struct facts {
	uint8_t encoding, temporal_id, tl0;
	uint16_t picture;
	uint32_t timestamp, targets;
	uint64_t index, arrival_us;
};

static struct slab *vp8(const struct facts *f)
{
	static struct slab slabs[8];
	static unsigned next;
	struct slab *s = &slabs[next++ % 8];
	uint8_t *payload = s->data + RTP_HEADER_BYTES;

	memset(s->meta, 0, sizeof(s->meta));
	*packet_of(s) = (struct media_packet){
		.index = f->index,
		.arrival_us = f->arrival_us,
		.timestamp = f->timestamp,
		.targets = f->targets,
		.encoding = f->encoding,
		.temporal_id = f->temporal_id,
		.codec = CODEC_VP8,
		.payload_offset = RTP_HEADER_BYTES,
		.payload_bytes = 20,
	};
	memset(payload, 0x55, 20);
	payload[0] = 0x90;
	payload[1] = 0xe0; /* I, L, T */
	be16_write(payload + 2, 0x8000 | f->picture);
	payload[4] = f->tl0;
	payload[5] = (uint8_t)(f->temporal_id << 6);
	return s;
}

/* One packet a frame, every second one in the upper temporal layer. */
static struct facts nth(uint8_t encoding, uint64_t i)
{
	return (struct facts){
		.encoding = encoding,
		.temporal_id = i % 2,
		.targets = i % 2 ? 2 : 3,
		.tl0 = (uint8_t)(i / 2),
		.picture = (uint16_t)(i + 1000u * encoding) & 0x7fff,
		.timestamp = (uint32_t)i * FRAME_TICKS,
		.arrival_us = i * FRAME_US,
		.index = 70000 + 100000u * encoding + i,
	};
}

static struct numbering_place take(const struct facts *f)
{
	struct numbering_place place;

	numbering_take(&n, vp8(f), &place);
	return place;
}

static uint16_t picture_sent(const struct facts *f, const struct numbering_shift *shift)
{
	uint8_t lead[NUMBERING_LEAD_BYTES];
	const struct slab *s = vp8(f);
	size_t bytes = numbering_lead(s, shift, lead);

	return be16_read((bytes ? lead : packet_payload(s)) + 2) & 0x7fff;
}

Test(numbering, a_viewer_that_gets_everything_is_sent_it_as_it_is)
{
	struct numbering_place place;
	uint8_t lead[NUMBERING_LEAD_BYTES];

	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 1, NUMBERING_ALL);
	for (uint64_t i = 0; i < 1000; i++) {
		struct facts f = nth(1, i);

		place = take(&f);
		cr_expect_eq(place.number, FIRST_NUMBER + i);
		cr_expect_eq(numbering_lead(vp8(&f), &place.shift, lead), 0);
		cr_expect_eq(place.shift.timestamp, 0);
	}
	cr_expect_eq(n.run_count, 1);
}

Test(numbering, what_is_left_out_closes_up)
{
	uint16_t pictures = 0;

	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		struct facts f = nth(0, i);
		struct numbering_place place;

		if (i % 2) {
			numbering_drop(&n, vp8(&f));
			cr_expect_not(numbering_find_index(&n, 0, f.index, &place));
			continue;
		}
		place = take(&f);
		cr_expect_eq(place.number, FIRST_NUMBER + i / 2);
		cr_expect_eq(picture_sent(&f, &place.shift), pictures++);
		cr_expect_eq(place.shift.tl0, 0, "layer 0 is whole");
		cr_expect_eq(place.shift.timestamp, 0, "time is not closed up");
	}
}

Test(numbering, pictures_of_other_codecs_keep_their_gaps)
{
	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 0);
	for (uint64_t i = 0; i < 10; i++) {
		struct facts f = nth(0, i);
		struct slab *s = vp8(&f);
		struct numbering_place place;

		/* VP9: I, picture id of 15 bits, then what could be a bitstream. */
		packet_of(s)->codec = CODEC_VP9;
		s->data[RTP_HEADER_BYTES] = 0x80;
		be16_write(s->data + RTP_HEADER_BYTES + 1, (uint16_t)(0x8000 | i));
		if (i % 2) {
			numbering_drop(&n, s);
			continue;
		}
		numbering_take(&n, s, &place);
		cr_expect_eq(place.shift.picture, 0, "references count in picture ids");
	}
}

Test(numbering, a_switch_continues_whatever_the_encodings_say)
{
	static const struct {
		const char *name;
		uint32_t clock_ahead;
		uint32_t want_step; /* of the timestamp, one frame after the last one sent */
	} rows[] = {
		{ "clocks agree", 0, FRAME_TICKS },
		{ "clocks far apart", 0x80001234, FRAME_TICKS },
		{ "the other far behind", (uint32_t)-1000000, FRAME_TICKS },
		{ "half a second ahead", 45000, 45000 + FRAME_TICKS },
		{ "a frame behind: the same instant", (uint32_t)-FRAME_TICKS, 1 },
		{ "three frames behind", (uint32_t)-3 * FRAME_TICKS, 1 },
	};

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct facts old = nth(0, 400), next = nth(2, 401);
		struct numbering_place before, after;

		numbering_init(&n, FIRST_NUMBER);
		numbering_switch(&n, 0, NUMBERING_ALL);
		before = take(&old);
		numbering_switch(&n, 2, NUMBERING_ALL);
		next.timestamp += rows[row].clock_ahead;
		after = take(&next);
		cr_expect_eq(after.number, before.number + 1, "%s", rows[row].name);
		cr_expect_leq(next.timestamp + after.shift.timestamp - old.timestamp,
			      rows[row].want_step, "%s", rows[row].name);
		cr_expect_geq(next.timestamp + after.shift.timestamp - old.timestamp + 1,
			      rows[row].want_step, "%s", rows[row].name);
		cr_expect_eq(picture_sent(&next, &after.shift), old.picture + 1);
		cr_expect_eq((uint8_t)(next.tl0 + after.shift.tl0), (uint8_t)(old.tl0 + 1));
	}
}

Test(numbering, a_missing_packet_keeps_its_number)
{
	struct facts f[6];
	struct numbering_place place;

	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 0);
	for (unsigned i = 0; i < 6; i++)
		f[i] = nth(0, i);
	take(&f[0]);
	numbering_drop(&n, vp8(&f[1])); /* 2 is missing */
	numbering_drop(&n, vp8(&f[3]));
	place = take(&f[4]);
	cr_expect_eq(place.number, FIRST_NUMBER + 2);
	cr_assert(numbering_find_index(&n, 0, f[2].index, &place));
	cr_expect_eq(place.number, FIRST_NUMBER + 1);
	cr_expect_eq(place.target, 0, "whether it is wanted is told by what the viewer got then");
	cr_expect_eq(picture_sent(&f[2], &place.shift), 1);
	cr_assert(numbering_find_number(&n, (uint16_t)(FIRST_NUMBER + 1), &place));
	cr_expect_eq(place.index, f[2].index);
}

Test(numbering, what_is_missing_within_an_unwanted_frame_is_unwanted)
{
	struct facts first = nth(0, 1), last = first;
	struct facts before = nth(0, 0), after = nth(0, 2);
	struct numbering_place place;

	last.index += 3;
	after.index = last.index + 1;
	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 0);
	take(&before);
	numbering_drop(&n, vp8(&first));
	numbering_drop(&n, vp8(&last));
	place = take(&after);
	cr_expect_eq(place.number, FIRST_NUMBER + 1);
	cr_expect_eq(picture_sent(&after, &place.shift), before.picture + 1, "one picture less");
	cr_expect_not(numbering_find_index(&n, 0, first.index + 1, &place));
}

Test(numbering, a_gap_too_large_to_be_repaired_closes_up)
{
	static const struct {
		uint64_t missing, kept;
	} rows[] = { { NUMBERING_MAX_GAP, NUMBERING_MAX_GAP }, { NUMBERING_MAX_GAP + 1, 0 } };

	for (size_t i = 0; i < 2; i++) {
		struct facts f = nth(0, 0);

		numbering_init(&n, FIRST_NUMBER);
		numbering_switch(&n, 0, NUMBERING_ALL);
		take(&f);
		f.index += rows[i].missing + 1;
		cr_expect_eq(take(&f).number, FIRST_NUMBER + 1 + rows[i].kept);
	}
}

Test(numbering, a_new_target_holds_for_what_comes_and_not_for_what_was_missing)
{
	struct facts f[4];
	struct numbering_place place;

	for (unsigned i = 0; i < 4; i++)
		f[i] = nth(0, i);
	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 1);
	take(&f[0]); /* 1 is missing */
	numbering_retarget(&n, 0, f[2].index);
	take(&f[2]);
	numbering_drop(&n, vp8(&f[3]));
	cr_assert(numbering_find_index(&n, 0, f[1].index, &place));
	cr_expect_eq(place.target, 1);
	cr_assert(numbering_find_index(&n, 0, f[2].index, &place));
	cr_expect_eq(place.target, 0);
	cr_expect_eq(place.number, FIRST_NUMBER + 2);
}

Test(numbering, a_constant_offset_is_taken_over)
{
	struct facts newest = nth(0, 99), next = nth(0, 100), other = nth(1, 102);
	struct numbering_place place;

	numbering_adopt(&n, 0, nth(0, 0).index, FIRST_NUMBER, newest.index, vp8(&newest));
	place = take(&next);
	cr_expect_eq(place.number, FIRST_NUMBER + 100);
	cr_expect_eq(place.shift.picture, 0);
	cr_assert(numbering_find_number(&n, FIRST_NUMBER + 3, &place));
	cr_expect_eq(place.index, nth(0, 3).index);
	cr_expect_eq(place.target, NUMBERING_ALL);
	numbering_switch(&n, 1, NUMBERING_ALL);
	place = take(&other);
	cr_expect_eq(place.number, FIRST_NUMBER + 101);
	cr_expect_eq(picture_sent(&other, &place.shift), next.picture + 1);

	/* Before the first packet was sent, too. */
	numbering_adopt(&n, 0, 500, FIRST_NUMBER, 499, NULL);
	cr_expect_not(numbering_find_number(&n, FIRST_NUMBER, &place));
	next.index = 500;
	cr_expect_eq(take(&next).number, FIRST_NUMBER);
}

Test(numbering, the_newest_packet_is_taken_as_often_as_it_takes)
{
	struct facts f = nth(0, 0);
	struct numbering_place first, again;

	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 0);
	first = take(&f);
	again = take(&f);
	cr_expect_eq(first.number, again.number);
	f = nth(0, 2);
	cr_expect_eq(take(&f).number, FIRST_NUMBER + 2);
}

Test(numbering, what_is_forgotten_is_unknown)
{
	struct numbering_place place;

	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 0);
	for (uint64_t i = 0; i < 4 * NUMBERING_RUNS; i++) {
		struct facts f = nth(0, i);

		if (i % 2)
			numbering_drop(&n, vp8(&f));
		else
			take(&f);
	}
	cr_expect_not(numbering_find_number(&n, FIRST_NUMBER, &place));
	cr_expect_not(numbering_find_index(&n, 0, nth(0, 0).index, &place));
	cr_expect_not(
	    numbering_find_number(&n, (uint16_t)(FIRST_NUMBER + 2 * NUMBERING_RUNS), &place),
	    "not sent yet");
	cr_assert(numbering_find_number(&n, (uint16_t)(FIRST_NUMBER + NUMBERING_RUNS), &place));
	cr_expect_eq(place.index, nth(0, 2 * NUMBERING_RUNS).index);
}

Test(numbering, what_may_still_come_before_a_switch_has_ids_of_its_own)
{
	struct facts f[5];
	struct facts other = nth(1, 5);
	struct numbering_place late, place;

	for (unsigned i = 0; i < 5; i++)
		f[i] = nth(0, i);
	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 0);
	take(&f[0]);
	numbering_drop(&n, vp8(&f[1])); /* 2 is missing */
	numbering_drop(&n, vp8(&f[3]));
	numbering_switch(&n, 1, 0);
	place = take(&other);
	cr_assert(numbering_find_index(&n, 0, f[2].index, &late));
	cr_expect_eq(picture_sent(&f[2], &late.shift), f[0].picture + 1);
	cr_expect_eq(picture_sent(&other, &place.shift), f[0].picture + 2);
	cr_expect_eq((uint8_t)(f[2].tl0 + late.shift.tl0), f[0].tl0 + 1);
	cr_expect_eq((uint8_t)(other.tl0 + place.shift.tl0), f[0].tl0 + 2);
}

Test(numbering, what_is_given_up_before_a_switch_keeps_its_numbers)
{
	struct facts first = nth(0, 1), late = nth(0, 3), other = nth(1, 4);
	struct numbering_place place;

	numbering_init(&n, FIRST_NUMBER);
	numbering_keep(&n, 100); /* nothing before the first packet */
	cr_assert_eq(take(&first).number, FIRST_NUMBER);
	numbering_keep(&n, late.index + 1);
	numbering_keep(&n, late.index);
	numbering_switch(&n, 1, NUMBERING_ALL);
	cr_expect_eq(take(&other).number, FIRST_NUMBER + 3);
	cr_assert(numbering_find_index(&n, 0, late.index, &place));
	cr_expect_eq(place.number, FIRST_NUMBER + 2);
}

Test(numbering, descriptor_frame_numbers_continue_too)
{
	struct facts a = nth(0, 10), b = nth(1, 11);
	struct slab *s[2] = { vp8(&a), vp8(&b) };
	struct numbering_place place;

	for (unsigned i = 0; i < 2; i++) {
		packet_of(s[i])->codec = CODEC_AV1;
		packet_of(s[i])->flags |= PACKET_DESCRIPTOR;
		packet_of(s[i])->descriptor_offset = 1000;
		packet_of(s[i])->descriptor_bytes = 3;
		be16_write(s[i]->data + 1001, i ? 5 : 0xffff);
	}
	numbering_init(&n, FIRST_NUMBER);
	numbering_switch(&n, 0, 0);
	numbering_take(&n, s[0], &place);
	cr_expect_eq(place.shift.frame, 0);
	numbering_switch(&n, 1, 0);
	numbering_take(&n, s[1], &place);
	cr_expect_eq((uint16_t)(place.shift.frame + 5), 0);
}

/* --- a long walk -------------------------------------------------------------------------- */

enum { ENCODINGS = 3, WALK = 60000, LATE = 64 };

struct walk {
	struct facts of_number[WALK * 4]; /* by number minus the first: what the viewer was sent */
	bool is_sent[WALK * 4];
	struct {
		uint64_t picture, index;
		uint8_t tl0;
	} source[ENCODINGS];
	struct facts late[LATE];
	unsigned late_count;
	struct numbering_shift shifts[WALK * 4];
	uint32_t newest_timestamp;
	uint16_t newest_picture;
	uint64_t newest_number;
	bool has_newest, was_lost;
};

static uint32_t dice(uint64_t *seed, uint32_t sides)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % sides;
}

static bool is_wanted(const struct facts *f, uint8_t target)
{
	return target == NUMBERING_ALL || f->targets >> target & 1;
}

static void deliver(struct walk *w, const struct facts *f, const struct numbering_place *place)
{
	uint64_t at = place->number - FIRST_NUMBER;

	cr_assert_not(w->is_sent[at], "number %lu twice", (unsigned long)place->number);
	w->is_sent[at] = true;
	w->of_number[at] = *f;
	w->shifts[at] = place->shift;
}

/* In the order of sending: numbers without a gap but for what is missing, pictures and time going on. */
static void check_order(struct walk *w, const struct facts *f, const struct numbering_place *place)
{
	uint32_t timestamp = f->timestamp + place->shift.timestamp;
	uint16_t picture = picture_sent(f, &place->shift);

	if (w->has_newest) {
		uint16_t step = (uint16_t)(picture - w->newest_picture) & 0x7fff;

		cr_assert_gt(place->number, w->newest_number);
		if (!w->was_lost)
			cr_assert_eq(place->number, w->newest_number + 1);
		cr_assert_geq((int32_t)(timestamp - w->newest_timestamp), 0);
		cr_assert_eq(step == 0, timestamp == w->newest_timestamp, "a picture, an instant");
		if (!w->was_lost)
			cr_assert_leq(step, 1);
		cr_assert_lt(step, 0x4000);
	}
	w->has_newest = true;
	w->was_lost = false;
	w->newest_timestamp = timestamp;
	w->newest_picture = picture;
	w->newest_number = place->number;
}

static void check_late(struct walk *w, const struct facts *f)
{
	struct numbering_place place;

	if (numbering_find_index(&n, f->encoding, f->index, &place) && is_wanted(f, place.target))
		deliver(w, f, &place);
}

static bool is_same_shift(const struct numbering_shift *a, const struct numbering_shift *b)
{
	return a->timestamp == b->timestamp && a->picture == b->picture && a->frame == b->frame &&
	       a->tl0 == b->tl0;
}

static void check_repeats(struct walk *w, uint64_t *seed)
{
	uint64_t newest = n.next_number - 1;
	uint64_t number = newest - dice(seed, 300);
	struct numbering_place place;

	if (number < FIRST_NUMBER || number > newest || !w->is_sent[number - FIRST_NUMBER] ||
	    !numbering_find_number(&n, (uint16_t)number, &place))
		return;
	cr_assert_eq(place.number, number);
	cr_assert_eq(place.index, w->of_number[number - FIRST_NUMBER].index);
	cr_assert_eq(place.encoding, w->of_number[number - FIRST_NUMBER].encoding);
	cr_assert(is_same_shift(&place.shift, &w->shifts[number - FIRST_NUMBER]));
	cr_assert(is_wanted(&w->of_number[number - FIRST_NUMBER], place.target));
}

/* A picture of one to four packets of one encoding, in three temporal layers. */
static void walk_picture(struct walk *w, uint8_t encoding, uint64_t picture, uint64_t *seed,
			 unsigned loss_percent)
{
	static const uint8_t tids[] = { 0, 2, 1, 2 };
	uint8_t tid = tids[picture % 4];
	unsigned packets = 1 + dice(seed, 4);

	w->source[encoding].tl0 = (uint8_t)(w->source[encoding].tl0 + (tid == 0));
	for (unsigned i = 0; i < packets; i++) {
		struct facts f = {
			.encoding = encoding,
			.temporal_id = tid,
			.targets = 7u & ~((1u << tid) - 1u),
			.tl0 = w->source[encoding].tl0,
			.picture = (picture + 977u * encoding) & 0x7fff,
			.timestamp = (uint32_t)picture * FRAME_TICKS + 0x40000000u * encoding,
			.arrival_us = picture * FRAME_US,
			.index = ++w->source[encoding].index,
		};
		struct numbering_place place;

		if (dice(seed, 100) < loss_percent) {
			w->was_lost = true;
			if (w->late_count < LATE && dice(seed, 3))
				w->late[w->late_count++] = f;
		} else if (encoding != n.encoding) {
			continue;
		} else if (is_wanted(&f, n.target)) {
			numbering_take(&n, vp8(&f), &place);
			check_order(w, &f, &place);
			deliver(w, &f, &place);
		} else if (!n.is_switching) {
			numbering_drop(&n, vp8(&f));
		}
		check_repeats(w, seed);
	}
}

static void walk(uint64_t seed, unsigned loss_percent)
{
	struct walk *w = calloc(1, sizeof(*w));
	bool is_paused = false;

	cr_assert(w);
	numbering_init(&n, FIRST_NUMBER);
	for (unsigned e = 0; e < ENCODINGS; e++)
		w->source[e].index = 70000 + 1000000u * e;
	numbering_switch(&n, 0, 2);
	for (uint64_t picture = 0; picture < WALK / 4; picture++) {
		uint32_t draw = dice(&seed, 100);

		/* At the lowest layer, where key frames are. */
		if (picture % 4 == 0 && (draw < 3 || (is_paused && draw < 30))) {
			numbering_switch(&n, (uint8_t)dice(&seed, ENCODINGS),
					 (uint8_t)dice(&seed, 3));
			is_paused = false;
		} else if (draw < 4) {
			is_paused = true;
		} else if (picture % 4 == 0 && draw < 15 && !is_paused) {
			numbering_retarget(&n, (uint8_t)dice(&seed, 3),
					   w->source[n.encoding].index + 1);
		}
		for (uint8_t e = 0; e < ENCODINGS; e++) {
			if (is_paused && e == n.encoding)
				w->source[e].index += 2;
			else
				walk_picture(w, e, picture, &seed, loss_percent);
		}
		while (w->late_count && dice(&seed, 4) == 0)
			check_late(w, &w->late[--w->late_count]);
	}
	cr_expect_gt(n.next_number, FIRST_NUMBER + WALK / 4);
	free(w);
}

Test(numbering, a_long_walk_without_loss_has_no_gap)
{
	for (uint64_t seed = 1; seed <= 10; seed++)
		walk(seed, 0);
}

Test(numbering, a_long_walk_with_loss_gives_each_number_one_content)
{
	for (uint64_t seed = 100; seed < 110; seed++)
		walk(seed, 1 + (unsigned)(seed % 20));
}
