#include <criterion/criterion.h>
#include <errno.h>

#include "media/rtp.h"
#include "pool/bytes.h"
#include "tests/fault.h"
#include "tests/media/flow.h"

enum {
	CLOCK_HZ = 90000,
	FRAME_US = 33333,
	HEADER_BYTES = 34, /* header budget of the tracks here */
};

static struct slab_pool *pool;
static struct track *t;

static void setup(void)
{
	struct track_config config = {
		.is_video = true,
		.pad_bytes = 16,
		.header_bytes = HEADER_BYTES,
		.stream = 7,
		.stream_generation = 3,
		.track = 1,
	};

	pool = flow_pool(64);
	cr_assert_eq(track_create(&t, &config), 0);
	track_start(t, CLOCK_HZ);
}

static void teardown(void)
{
	track_destroy(t);
	slab_pool_destroy(pool);
}

TestSuite(track, .init = setup, .fini = teardown, .timeout = 10);

/* Feed a packet and let it go; what it was given is in *p. */
static enum track_verdict feed(const struct flow_packet *in, struct media_packet *p)
{
	struct slab *s;
	enum track_verdict verdict = flow_feed(t, pool, in, &s);

	*p = *packet_of(s);
	slab_put(pool, s);
	return verdict;
}

static enum track_verdict feed_seq(uint16_t seq, uint16_t payload_bytes, struct media_packet *p)
{
	return feed(&(struct flow_packet){ .seq = seq,
					   .payload_bytes = payload_bytes,
					   .timestamp = 3000,
					   .codec = CODEC_H264 },
		    p);
}

Test(track, refuses_a_configuration_out_of_range)
{
	struct track_config config = { .pad_bytes = TRACK_MAX_PAD_BYTES + 1, .header_bytes = 12 };
	struct track *other;

	cr_expect_eq(track_create(&other, &config), -EINVAL);
	config = (struct track_config){ .header_bytes = 11 };
	cr_expect_eq(track_create(&other, &config), -EINVAL);
	config.header_bytes = TRACK_DATAGRAM_BYTES;
	cr_expect_eq(track_create(&other, &config), -EINVAL);
	config.header_bytes = 12;
	fault_after(0);
	cr_expect_eq(track_create(&other, &config), -ENOMEM);
	fault_after(-1);
	cr_expect_null(other);
}

/* Second arrival after a first one at each start; S = expect swallowed etc. */
static const struct {
	const char *name;
	int step; /* of the second packet's number */
	uint16_t payload_bytes;
	enum track_verdict want;
	uint64_t index_step;
} seconds[] = {
	{ "next in order", 1, 100, TRACK_FORWARD, 1 },
	{ "one lost between", 2, 100, TRACK_FORWARD, 2 },
	{ "the widest gap that stays a gap", TRACK_WINDOW_PKTS - 1, 100, TRACK_FORWARD,
	  TRACK_WINDOW_PKTS - 1 },
	{ "a jump leaves no hole", TRACK_WINDOW_PKTS, 100, TRACK_FORWARD, 1 },
	{ "a long jump leaves no hole", 32767, 100, TRACK_FORWARD, 1 },
	{ "the same again", 0, 100, TRACK_DUPLICATE, 0 },
	{ "before the first", -1, 100, TRACK_TOO_OLD, 0 },
	{ "far before the first", -30000, 100, TRACK_TOO_OLD, 0 },
	{ "padding next", 1, 0, TRACK_SWALLOWED, 0 },
	{ "padding behind a gap", 5, 0, TRACK_SWALLOWED, 0 },
};

Test(track, numbers_the_second_packet_by_its_distance_from_the_first)
{
	for (size_t s = 0; s < FLOW_STARTS; s++) {
		for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
			uint16_t seq = (uint16_t)(flow_starts[s] + seconds[i].step);
			struct media_packet first, second;
			enum track_verdict got;

			teardown();
			setup();
			cr_assert_eq(feed_seq(flow_starts[s], 100, &first), TRACK_FORWARD);
			cr_expect_eq(first.index, TRACK_FIRST_INDEX);
			got = feed_seq(seq, seconds[i].payload_bytes, &second);
			cr_expect_eq(got, seconds[i].want, "%s from %u: %d", seconds[i].name,
				     flow_starts[s], got);
			if (got == TRACK_FORWARD)
				cr_expect_eq(second.index - first.index, seconds[i].index_step,
					     "%s from %u", seconds[i].name, flow_starts[s]);
			cr_expect_eq(track_newest_index(t),
				     TRACK_FIRST_INDEX + seconds[i].index_step, "%s from %u",
				     seconds[i].name, flow_starts[s]);
		}
	}
}

Test(track, a_packet_says_where_it_belongs)
{
	struct media_packet p;

	feed_seq(9, 100, &p);
	cr_expect_eq(p.stream, 7);
	cr_expect_eq(p.stream_generation, 3);
	cr_expect_eq(p.track, 1);
	cr_expect(packet_has(&p, PACKET_VIDEO));
	cr_expect(packet_has(&p, PACKET_RESTART), "the first of a source is marked");
	feed_seq(10, 100, &p);
	cr_expect_not(packet_has(&p, PACKET_RESTART));
}

Test(track, later_numbers_close_up_behind_swallowed_padding)
{
	struct media_packet p;

	feed_seq(65534, 100, &p);
	cr_expect_eq(feed_seq(65535, 0, &p), TRACK_SWALLOWED);
	cr_expect_eq(feed_seq(0, 0, &p), TRACK_SWALLOWED);
	cr_expect_eq(feed_seq(2, 100, &p), TRACK_FORWARD);
	cr_expect_eq(p.index, TRACK_FIRST_INDEX + 2, "1 is lost and keeps its place");
	cr_expect_eq(feed_seq(1, 100, &p), TRACK_FORWARD);
	cr_expect_eq(p.index, TRACK_FIRST_INDEX + 1);
	cr_expect_eq(feed_seq(65535, 0, &p), TRACK_DUPLICATE);
}

Test(track, late_padding_fills_its_number_as_padding)
{
	struct slab *s;
	struct media_packet p;
	struct flow_packet late = { .seq = 11,
				    .timestamp = 3000,
				    .padding_bytes = 200,
				    .codec = CODEC_H264,
				    .marker = true };

	feed_seq(10, 100, &p);
	feed_seq(12, 100, &p);
	cr_assert_eq(flow_feed(t, pool, &late, &s), TRACK_FORWARD);
	p = *packet_of(s);
	cr_expect_eq(p.index, TRACK_FIRST_INDEX + 1);
	cr_expect_eq(p.flags, PACKET_PADDING_ONLY | PACKET_PADDED | PACKET_VIDEO);
	cr_expect_eq(p.payload_bytes, 16);
	cr_expect_eq(p.padding_bytes, 16);
	cr_expect_eq(s->len, RTP_HEADER_BYTES + 16);
	cr_expect_eq(packet_payload(s)[15], 16);
	slab_put(pool, s);
}

Test(track, what_nobody_wants_counts_as_padding)
{
	struct flow_packet fec = { .seq = 11, .payload_bytes = 50, .is_unwanted = true };
	struct media_packet p;

	feed_seq(10, 100, &p);
	cr_expect_eq(feed(&fec, &p), TRACK_SWALLOWED);
	feed_seq(13, 100, &p);
	cr_expect_eq(p.index, TRACK_FIRST_INDEX + 2);
	fec.seq = 12;
	cr_expect_eq(feed(&fec, &p), TRACK_FORWARD);
	cr_expect(packet_has(&p, PACKET_PADDING_ONLY));
	cr_expect_eq(p.codec, CODEC_H264, "so that a viewer's mapping has a type for it");
}

Test(track, a_source_that_goes_back_is_believed_at_the_second_packet)
{
	struct media_packet p;

	feed_seq(30000, 100, &p);
	cr_expect_eq(feed_seq(5, 100, &p), TRACK_TOO_OLD);
	cr_expect_eq(feed_seq(7, 100, &p), TRACK_TOO_OLD);
	cr_expect_eq(feed_seq(8, 100, &p), TRACK_FORWARD);
	cr_expect_eq(p.index, TRACK_FIRST_INDEX + 1);
	cr_expect(packet_has(&p, PACKET_RESTART));
}

Test(track, a_repaired_packet_never_moves_the_numbering)
{
	struct flow_packet repaired = { .seq = 7, .payload_bytes = 9, .is_repaired = true };
	struct media_packet p;

	feed_seq(30000, 100, &p);
	cr_expect_eq(feed(&repaired, &p), TRACK_TOO_OLD);
	repaired.seq = 8;
	cr_expect_eq(feed(&repaired, &p), TRACK_TOO_OLD);
	repaired.seq = 30000 + TRACK_WINDOW_PKTS;
	cr_expect_eq(feed(&repaired, &p), TRACK_TOO_OLD);
	feed_seq(30002, 100, &p);
	repaired.seq = 30001;
	cr_expect_eq(feed(&repaired, &p), TRACK_FORWARD);
	cr_expect(packet_has(&p, PACKET_REPAIRED));
	cr_expect_eq(p.index, TRACK_FIRST_INDEX + 1);
}

Test(track, a_new_publisher_continues_behind_the_last_packet)
{
	for (size_t i = 0; i < FLOW_STARTS; i++) {
		struct flow_packet in = { .seq = 100,
					  .timestamp = 4000000000u,
					  .payload_bytes = 9,
					  .arrival_us = 1000000,
					  .codec = CODEC_H264 };
		struct media_packet last, p;

		teardown();
		setup();
		feed(&in, &last);
		track_start(t, CLOCK_HZ);
		in.seq = flow_starts[i];
		in.timestamp = 77;
		in.arrival_us += 500000;
		cr_expect_eq(feed(&in, &p), TRACK_FORWARD);
		cr_expect_eq(p.index, last.index + 1, "from %u", flow_starts[i]);
		cr_expect_eq(p.timestamp, last.timestamp + CLOCK_HZ / 2);
		cr_expect(packet_has(&p, PACKET_RESTART));
		cr_expect_eq(track_timestamp_offset(t), p.timestamp - 77);
		in.seq--;
		cr_expect_eq(feed(&in, &p), TRACK_TOO_OLD, "its place is taken");
		in.seq = (uint16_t)(in.seq + 2);
		in.timestamp += 3000;
		feed(&in, &p);
		cr_expect_eq(p.index, last.index + 2);
		cr_expect_eq(p.timestamp, last.timestamp + CLOCK_HZ / 2 + 3000);
	}
}

Test(track, a_new_publisher_fills_the_hole_that_padding_left_at_the_end)
{
	struct media_packet p;

	feed_seq(10, 100, &p);
	cr_expect_eq(feed_seq(12, 0, &p), TRACK_SWALLOWED);
	track_start(t, CLOCK_HZ);
	cr_expect_eq(feed_seq(500, 0, &p), TRACK_SWALLOWED);
	cr_expect_eq(feed_seq(501, 100, &p), TRACK_FORWARD);
	cr_expect_eq(p.index, TRACK_FIRST_INDEX + 1);
}

static const struct {
	const char *name;
	uint64_t pause_us;
	uint32_t want_ticks;
} pauses[] = {
	{ "at once", 0, 1 },
	{ "clock went back", (uint64_t)-5, 1 },
	{ "one tick", 12, 1 },
	{ "a second", 1000000, CLOCK_HZ },
	{ "a day looks no further ahead than serial order allows", 86400000000, 1 << 30 },
};

Test(track, a_new_publisher_never_takes_timestamps_back)
{
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		struct flow_packet in = { .timestamp = 5,
					  .payload_bytes = 9,
					  .arrival_us = 1000000 };
		struct media_packet last, p;

		teardown();
		setup();
		feed(&in, &last);
		track_start(t, CLOCK_HZ);
		in.timestamp = 0x80000000;
		in.arrival_us += pauses[i].pause_us;
		feed(&in, &p);
		cr_expect_eq(p.timestamp - last.timestamp, pauses[i].want_ticks, "%s: %u",
			     pauses[i].name, p.timestamp - last.timestamp);
	}
}

Test(track, a_jump_of_numbers_keeps_timestamps_that_fit)
{
	struct flow_packet in = { .seq = 1, .timestamp = 1000, .payload_bytes = 9 };
	struct media_packet p;

	feed(&in, &p);
	in = (struct flow_packet){ .seq = 5001,
				   .timestamp = 1000 + 3 * CLOCK_HZ + 900,
				   .payload_bytes = 9,
				   .arrival_us = 3000000 };
	feed(&in, &p);
	cr_expect_eq(p.timestamp, in.timestamp, "10 ms from where the wall clock puts it");
	in = (struct flow_packet){
		.seq = 10001, .timestamp = 5, .payload_bytes = 9, .arrival_us = 4000000
	};
	feed(&in, &p);
	cr_expect_eq(p.timestamp, 1000 + 4 * CLOCK_HZ + 900, "a new clock is brought in line");
}

/* VP8 descriptor with 15-bit picture id and TL0PICIDX, first packet of a frame's partition. */
static void vp8_payload(uint8_t out[16], uint16_t picture_id, uint8_t tl0)
{
	memset(out, 0, 16);
	out[0] = 0x90;
	out[1] = 0xe0;
	out[2] = (uint8_t)(0x80 | picture_id >> 8);
	out[3] = (uint8_t)picture_id;
	out[4] = tl0;
	out[5] = 0x20;
}

static uint16_t feed_frame(uint16_t seq, uint16_t frame)
{
	struct rtp_packet rtp = { .seq = seq, .payload_offset = 100, .payload_bytes = 50 };
	struct track_input in = { .rtp = &rtp };
	struct slab *s = slab_get(pool);
	uint16_t out;

	packet_describe(s, &rtp, NULL, CODEC_AV1, NULL, 0);
	packet_of(s)->flags |= PACKET_DESCRIPTOR;
	packet_of(s)->descriptor_offset = 40;
	packet_of(s)->descriptor_bytes = 3;
	be16_write(s->data + 41, frame);
	cr_expect_eq(track_on_packet(t, s, &in), TRACK_FORWARD);
	out = be16_read(s->data + 41);
	slab_put(pool, s);
	return out;
}

Test(track, descriptor_frame_numbers_continue_over_publishers)
{
	cr_expect_eq(feed_frame(10, 65535), 65535);
	cr_expect_eq(feed_frame(12, 1), 1);
	track_start(t, CLOCK_HZ);
	cr_expect_eq(feed_frame(500, 300), 2);
	cr_expect_eq(feed_frame(502, 302), 4);
	cr_expect_eq(feed_frame(501, 301), 3, "late");
}

Test(track, picture_ids_continue_over_publishers)
{
	static const struct {
		uint16_t seq, picture_id, want_picture_id;
		uint8_t tl0, want_tl0;
		bool is_new;
	} rows[] = {
		{ 1, 0x7ffe, 0x7ffe, 255, 255, false },
		{ 2, 0x7fff, 0x7fff, 0, 0, false },
		{ 60000, 300, 0, 9, 1, true },
		{ 60001, 301, 1, 9, 1, false },
		{ 60003, 303, 3, 11, 3, false },
		{ 60002, 302, 2, 10, 2, false },
		{ 5, 0, 4, 0, 4, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t payload[16], want[16];
		struct flow_packet in = { .seq = rows[i].seq,
					  .payload = payload,
					  .payload_bytes = 16,
					  .codec = CODEC_VP8,
					  .arrival_us = i * FRAME_US };
		struct slab *s;

		vp8_payload(payload, rows[i].picture_id, rows[i].tl0);
		vp8_payload(want, rows[i].want_picture_id, rows[i].want_tl0);
		if (rows[i].is_new)
			track_start(t, CLOCK_HZ);
		cr_assert_eq(flow_feed(t, pool, &in, &s), TRACK_FORWARD);
		cr_expect_arr_eq(packet_payload(s), want, 16, "row %zu", i);
		slab_put(pool, s);
	}
}

static const struct {
	const char *name;
	uint16_t payload_bytes;
	uint8_t came_padded;
	uint16_t want_bytes;
	uint8_t want_padding;
} roundings[] = {
	{ "already a multiple", 1120, 0, 1120, 0 },
	{ "one short", 1119, 0, 1120, 1 },
	{ "one over", 1121, 0, 1136, 15 },
	{ "a single byte", 1, 0, 16, 15 },
	{ "the publisher's padding goes first", 100, 200, 112, 12 },
	{ "up to the datagram's limit", 1161, 0, TRACK_DATAGRAM_BYTES - HEADER_BYTES, 5 },
	{ "at the limit", TRACK_DATAGRAM_BYTES - HEADER_BYTES, 0,
	  TRACK_DATAGRAM_BYTES - HEADER_BYTES, 0 },
	{ "over the limit it stays", 1180, 0, 1180, 0 },
	{ "larger as it came, it may stay as large", 1290, 60, 1296, 6 },
	{ "no further than it came", 1297, 30, 1305, 8 },
	{ "the slab's end bounds it", SLAB_DATA_BYTES - RTP_HEADER_BYTES, 0,
	  SLAB_DATA_BYTES - RTP_HEADER_BYTES, 0 },
};

Test(track, video_payloads_are_rounded_up_within_the_limit)
{
	for (size_t i = 0; i < sizeof(roundings) / sizeof(roundings[0]); i++) {
		struct flow_packet in = { .seq = (uint16_t)i,
					  .codec = CODEC_H264,
					  .payload_bytes = roundings[i].payload_bytes,
					  .padding_bytes = roundings[i].came_padded };
		struct media_packet p;
		struct slab *s;

		cr_assert_eq(flow_feed(t, pool, &in, &s), TRACK_FORWARD);
		p = *packet_of(s);
		cr_expect_eq(p.payload_bytes, roundings[i].want_bytes, "%s: %u", roundings[i].name,
			     p.payload_bytes);
		cr_expect_eq(p.padding_bytes, roundings[i].want_padding, "%s: %u",
			     roundings[i].name, p.padding_bytes);
		cr_expect_eq(packet_has(&p, PACKET_PADDED), p.padding_bytes > 0);
		if (p.padding_bytes > 0)
			cr_expect_eq(packet_payload(s)[p.payload_bytes - 1], p.padding_bytes);
		cr_expect_eq(s->len, p.payload_offset + p.payload_bytes);
		slab_put(pool, s);
	}
}

Test(track, audio_is_never_rounded)
{
	struct track_config config = { .pad_bytes = 16, .header_bytes = HEADER_BYTES };
	struct media_packet p;

	track_destroy(t);
	cr_assert_eq(track_create(&t, &config), 0);
	track_start(t, 48000);
	feed(&(struct flow_packet){ .payload_bytes = 101, .codec = CODEC_OPUS }, &p);
	cr_expect_eq(p.payload_bytes, 101);
	cr_expect_eq(p.flags & (PACKET_VIDEO | PACKET_PADDED), 0);
}

/* ---- Random histories against a model that knows every packet's true 64-bit number ---- */

enum {
	MODEL_STEPS = 100000,
	MODEL_FLIGHT = 64,   /* packets under way */
	MODEL_MAX_AGE = 400, /* steps, below the window */
};

struct flying {
	uint64_t number; /* true number within its source */
	uint32_t sent_step;
	bool is_padding;
};

struct model {
	uint64_t random;
	uint16_t start;
	/* The current source. */
	uint64_t next_number, first_seen, highest_media;
	uint64_t first_index;
	uint32_t timestamp_base;
	uint64_t forwarded;
	uint8_t fate[MODEL_STEPS]; /* by number: 0 lost, 1 arrived, 2 swallowed */
	struct flying flight[MODEL_FLIGHT];
	size_t in_flight;
	/* Over all sources. */
	uint64_t content_of[MODEL_STEPS * 2]; /* by index - TRACK_FIRST_INDEX; 0: nothing */
	uint64_t source;
	uint32_t newest_timestamp;
	bool has_timestamp;
};

static void model_start_source(struct model *m)
{
	/* Every number below what arrived is either forwarded, swallowed or truly lost. */
	if (m->first_seen && m->highest_media) {
		uint64_t lost = 0;

		for (uint64_t n = m->first_seen; n <= m->highest_media; n++)
			lost += m->fate[n] == 0;
		cr_assert_eq(track_newest_index(t) - m->first_index + 1, m->forwarded + lost,
			     "source %lu: holes beyond the %lu lost", m->source, lost);
	}
	m->source++;
	m->next_number = 1;
	m->first_seen = m->highest_media = m->forwarded = 0;
	m->timestamp_base = flow_random(&m->random);
	m->in_flight = 0;
	m->first_index = track_newest_index(t) + 1;
	memset(m->fate, 0, sizeof(m->fate));
	track_start(t, CLOCK_HZ);
}

static void model_check_forwarded(struct model *m, const struct flying *f, const struct slab *s)
{
	const struct media_packet *p = packet_of_const(s);
	uint64_t content = m->source << 32 | f->number;
	uint64_t at = p->index - TRACK_FIRST_INDEX;

	cr_assert(p->index >= m->first_index && at < MODEL_STEPS);
	cr_assert_eq(m->content_of[at], 0, "two contents under index %lu", p->index);
	for (uint64_t i = at; i-- > 0 && i + 2 * MODEL_FLIGHT > at;)
		cr_assert(m->content_of[i] < content, "order of index %lu", p->index);
	for (uint64_t i = at + 1; i < at + 2 * MODEL_FLIGHT; i++)
		cr_assert(m->content_of[i] == 0 || m->content_of[i] > content, "order of index %lu",
			  p->index);
	m->content_of[at] = content;
	m->forwarded++;
	if (f->number > m->highest_media)
		m->highest_media = f->number;
	if (m->has_timestamp && m->forwarded == 1)
		cr_assert_gt(rtp_timestamp_diff(p->timestamp, m->newest_timestamp), 0);
	if (!m->has_timestamp || rtp_timestamp_diff(p->timestamp, m->newest_timestamp) > 0)
		m->newest_timestamp = p->timestamp;
	m->has_timestamp = true;
	cr_assert_eq(p->timestamp - track_timestamp_offset(t),
		     m->timestamp_base + (uint32_t)f->number * 3000);
	if (f->is_padding)
		cr_assert(packet_has(p, PACKET_PADDING_ONLY));
	else
		cr_assert_eq(memcmp(packet_payload(s), &content, sizeof(content)), 0);
}

static void model_deliver(struct model *m, const struct flying *f, uint64_t now_us)
{
	uint64_t content = m->source << 32 | f->number;
	struct flow_packet in = {
		.seq = (uint16_t)(m->start + f->number),
		.timestamp = m->timestamp_base + (uint32_t)f->number * 3000,
		.arrival_us = now_us,
		.payload = (const uint8_t *)&content,
		.payload_bytes = f->is_padding ? 0 : sizeof(content),
		.padding_bytes = f->is_padding ? 100 : 0,
		.codec = CODEC_H264,
	};
	bool is_first = m->first_seen == 0;
	enum track_verdict want = TRACK_FORWARD, got;
	struct slab *s;

	if (is_first)
		m->first_seen = f->number;
	if (f->number < m->first_seen)
		want = TRACK_TOO_OLD;
	else if (m->fate[f->number])
		want = TRACK_DUPLICATE;
	else if (f->is_padding && f->number > m->highest_media)
		want = TRACK_SWALLOWED;
	got = flow_feed(t, pool, &in, &s);
	cr_assert_eq(got, want, "number %lu of source %lu: %d", f->number, m->source, got);
	if (got == TRACK_FORWARD || got == TRACK_SWALLOWED)
		m->fate[f->number] = got == TRACK_FORWARD ? 1 : 2;
	if (got == TRACK_FORWARD)
		model_check_forwarded(m, f, s);
	slab_put(pool, s);
}

/* Mostly the oldest, sometimes any; nothing stays under way for longer than the window. */
static size_t model_pick(struct model *m, uint32_t step)
{
	if (m->flight[0].sent_step + MODEL_MAX_AGE < step || flow_random(&m->random) % 4)
		return 0;
	return flow_random(&m->random) % m->in_flight;
}

static void model_step(struct model *m, uint32_t step)
{
	uint32_t dice = flow_random(&m->random) % 1000;

	if (dice == 0)
		model_start_source(m);
	if (m->in_flight < MODEL_FLIGHT && dice % 20 != 1) {
		m->flight[m->in_flight++] = (struct flying){
			.number = m->next_number++,
			.sent_step = step,
			.is_padding = flow_random(&m->random) % 8 == 0,
		};
	} else {
		m->next_number++; /* lost */
	}
	while (m->in_flight > 1 + flow_random(&m->random) % (MODEL_FLIGHT - 1)) {
		size_t at = model_pick(m, step);
		struct flying f = m->flight[at];

		model_deliver(m, &f, (uint64_t)step * 1000);
		if (flow_random(&m->random) % 16 == 0)
			model_deliver(m, &f, (uint64_t)step * 1000);
		m->in_flight--;
		memmove(&m->flight[at], &m->flight[at + 1],
			(m->in_flight - at) * sizeof(m->flight[0]));
	}
}

Test(track, random_histories_agree_with_a_64_bit_model, .timeout = 60)
{
	static struct model m;

	for (size_t i = 0; i < FLOW_STARTS; i++) {
		teardown();
		setup();
		m = (struct model){ .random = i, .start = flow_starts[i] };
		model_start_source(&m);
		for (uint32_t step = 0; step < MODEL_STEPS / FLOW_STARTS + 1; step++)
			model_step(&m, step);
		model_start_source(&m);
		cr_expect_gt(m.source, 5, "restarts were part of it");
	}
}
