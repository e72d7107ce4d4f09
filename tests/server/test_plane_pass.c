#include <criterion/criterion.h>
#include <errno.h>

#include "net/random.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_pass, .timeout = 120);

enum { VIEWERS = 12 };

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };

struct room {
	struct kit_plane *p;
	struct kit_peer *source;
	struct kit_peer *viewers[VIEWERS];
};

/* Everybody watches and has its first key frame. */
static void open_room(struct room *r, const char *yaml)
{
	r->p = kit_plane_open(yaml, 1);
	r->source = kit_peer_join(r->p, "live", &publisher);
	kit_plane_advance(r->p, 10000);
	kit_peer_send_frame(r->source, true, 1, 100, NULL);
	kit_plane_advance(r->p, 10000);
	for (unsigned i = 0; i < VIEWERS; i++)
		r->viewers[i] = kit_peer_join(r->p, "live", &viewer);
	kit_peer_send_frame(r->source, true, 1, 100, NULL);
	kit_peer_send_audio(r->source);
	kit_plane_advance(r->p, 100000);
	for (unsigned i = 0; i < VIEWERS; i++) {
		cr_assert_eq(r->viewers[i]->packet_count, 2);
		kit_peer_forget(r->viewers[i]);
	}
}

static void send_part(struct room *r, const struct kit_rtp *first, unsigned from, unsigned n,
		      unsigned of)
{
	for (unsigned i = from; i < from + n; i++) {
		struct kit_rtp rtp = *first;

		rtp.index += i;
		rtp.number += i;
		rtp.is_start = i == 0;
		rtp.marker = i + 1 == of;
		kit_peer_send(r->source, &rtp, false);
	}
}

static struct kit_rtp next_frame(struct room *r, unsigned packets, uint16_t bytes)
{
	struct kit_peer *s = r->source;
	struct kit_rtp rtp = {
		.kind = MEDIA_VIDEO,
		.index = s->next_index[MEDIA_VIDEO],
		.timestamp = s->timestamp[MEDIA_VIDEO],
		.number = s->next_number,
		.bytes = bytes,
	};

	s->next_index[MEDIA_VIDEO] += packets;
	s->next_number += packets;
	s->timestamp[MEDIA_VIDEO] += 3000;
	return rtp;
}

static size_t got(const struct room *r)
{
	size_t n = 0;

	for (unsigned i = 0; i < VIEWERS; i++)
		n += r->viewers[i]->packet_count;
	return n;
}

Test(plane_pass, a_frame_is_held_to_its_marker_for_many_viewers_only)
{
	static const struct {
		const char *yaml;
		unsigned early, sooner; /* packets a viewer before the marker, after hold_us */
	} rows[] = {
		{ "media:\n  hold_min_viewers: 12\n", 0, 4 },
		{ "media:\n  hold_min_viewers: 13\n", 4, 4 },
		{ "media:\n  hold_min_viewers: 1\n  hold_us: 0\n", 4, 4 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct room r;
		struct kit_rtp frame;

		open_room(&r, rows[i].yaml);
		frame = next_frame(&r, 5, 500);
		send_part(&r, &frame, 0, 4, 5);
		kit_plane_advance(r.p, 14000);
		cr_expect_eq(got(&r), rows[i].early * VIEWERS, "row %zu", i);
		/* Audio does not wait. */
		kit_peer_send_audio(r.source);
		kit_plane_settle(r.p);
		cr_expect_eq(got(&r), (rows[i].early + 1) * VIEWERS, "row %zu", i);
		kit_plane_advance(r.p, 3000);
		cr_expect_eq(got(&r), (rows[i].sooner + 1) * VIEWERS, "row %zu: hold_us", i);
		send_part(&r, &frame, 4, 1, 5);
		kit_plane_settle(r.p);
		cr_expect_eq(got(&r), 6 * VIEWERS, "row %zu: marker", i);
		/* A frame without a marker leaves with the next one's first packet. */
		frame = next_frame(&r, 4, 500);
		send_part(&r, &frame, 0, 3, 4);
		frame = next_frame(&r, 4, 500);
		send_part(&r, &frame, 0, 1, 4);
		kit_plane_settle(r.p);
		cr_expect_eq(got(&r), (rows[i].early ? 10 : 9) * VIEWERS, "row %zu", i);
		kit_plane_close(r.p);
	}
}

Test(plane_pass, equal_segments_leave_as_one_message)
{
	struct room r;
	struct kit_rtp frame;

	open_room(&r, "media:\n  hold_min_viewers: 2\n");
	/* Payloads of unequal length are rounded up; the last may be shorter, audio rides behind. */
	frame = next_frame(&r, 8, 1001);
	for (unsigned i = 0; i < 8; i++) {
		frame.bytes = (uint16_t)(i == 7 ? 300 : 1001 + i);
		frame.is_start = i == 0;
		frame.marker = i == 7;
		kit_peer_send(r.source, &frame, false);
		frame.index++;
		frame.number++;
	}
	kit_plane_settle(r.p);
	for (unsigned i = 0; i < VIEWERS; i++) {
		const struct kit_peer *v = r.viewers[i];

		cr_assert_eq(v->packet_count, 8);
		for (size_t k = 0; k < 8; k++) {
			cr_expect_eq(v->packets[k].message, v->packets[0].message);
			cr_expect_eq(v->packets[k].segments, 8);
			cr_expect_eq(v->packets[k].payload_bytes, k == 7 ? 300 : 1001 + k);
			if (k < 7)
				cr_expect_eq(v->packets[k].wire_bytes, v->packets[0].wire_bytes);
			cr_expect_leq(v->packets[k].wire_bytes, 1200 + 16);
		}
	}
	kit_plane_close(r.p);
}

Test(plane_pass, a_large_frame_leaves_in_parts)
{
	struct room r;
	struct kit_peer *v;
	uint64_t sent_us[100];
	size_t n = 0;

	open_room(&r, "media:\n  hold_min_viewers: 2\n");
	v = r.viewers[3];
	kit_peer_send_frame(r.source, true, 100, 1000, NULL);
	/* Passes that audio makes do not let more of it go. */
	for (unsigned i = 0; i < 25; i++) {
		kit_plane_advance(r.p, 2000);
		kit_peer_send_audio(r.source);
	}
	kit_plane_settle(r.p);
	for (size_t i = 0; i < v->packet_count; i++) {
		cr_expect_leq(v->packets[i].segments, 17);
		if (v->packets[i].kind == MEDIA_VIDEO)
			sent_us[n++] = v->packets[i].at_us;
	}
	cr_assert_eq(n, 100);
	for (size_t i = 16; i < 100; i++)
		cr_expect_geq(sent_us[i] - sent_us[i - 16], 5000);
	cr_expect_lt(sent_us[99] - sent_us[0], 6 * 7000);
	for (unsigned i = 0; i < VIEWERS; i++)
		cr_expect_eq(kit_peer_count(r.viewers[i], MEDIA_VIDEO, false), 100);
	kit_plane_close(r.p);
}

Test(plane_pass, a_stream_of_any_rate_is_kept_up_with)
{
	struct room r;
	uint32_t from;

	/* Frames of 300 packets, 30 a second: 72 Mbit/s. */
	open_room(&r, "media:\n  hold_min_viewers: 2\n");
	from = r.source->next_number;
	for (unsigned i = 0; i < 60; i++) {
		kit_peer_send_frame(r.source, false, 300, 1000, NULL);
		kit_plane_advance(r.p, 33333);
	}
	kit_plane_advance(r.p, 100000);
	for (unsigned i = 0; i < VIEWERS; i++)
		cr_expect_eq(r.viewers[i]->packet_count, r.source->next_number - from);
	kit_plane_close(r.p);
}

/* Each viewer got each packet of [from, to) exactly once, the media in order but for late ones. */
static void expect_each_once(const struct room *r, uint32_t from, uint32_t to, const char *what)
{
	static uint8_t seen[1 << 16];

	for (unsigned i = 0; i < VIEWERS; i++) {
		const struct kit_peer *v = r->viewers[i];
		unsigned missing = 0, repeated = 0;

		memset(seen, 0, to - from);
		for (size_t k = 0; k < v->packet_count; k++)
			if (v->packets[k].number >= from && v->packets[k].number < to)
				repeated += seen[v->packets[k].number - from]++ > 0;
		for (uint32_t k = from; k < to; k++)
			missing += !seen[k - from];
		/* What comes twice under one index is a replay to the receiver. */
		repeated += (unsigned)v->verdicts[TRANSPORT_DROP_SRTP_REPLAYED];
		cr_expect_eq(missing, 0, "%s: viewer %u misses %u", what, i, missing);
		cr_expect_eq(repeated, 0, "%s: viewer %u got %u twice", what, i, repeated);
	}
}

static void expect_order(const struct room *r, const char *what)
{
	for (unsigned i = 0; i < VIEWERS; i++) {
		const struct kit_peer *v = r->viewers[i];
		uint64_t last[2] = { 0, 0 };

		for (size_t k = 0; k < v->packet_count; k++) {
			cr_assert_gt(v->packets[k].index, last[v->packets[k].kind], "%s: viewer %u",
				     what, i);
			last[v->packets[k].kind] = v->packets[k].index;
		}
	}
}

Test(plane_pass, sliced_passes_and_late_packets_reach_everybody_once)
{
	struct room r;
	struct kit_rtp late[64];
	unsigned late_count = 0;
	uint32_t from;

	open_room(&r, "media:\n  slice_us: 100\n");
	from = r.source->next_number;
	kit_clock_step(60); /* a few viewers a slice */
	for (unsigned round = 0; round < 400; round++) {
		unsigned n = 1 + (unsigned)(random_u64() % 6);
		struct kit_rtp frame = next_frame(&r, n, 600);

		for (unsigned i = 0; i < n; i++) {
			struct kit_rtp rtp = frame;

			rtp.index += i;
			rtp.number += i;
			rtp.is_start = i == 0;
			rtp.marker = i + 1 == n;
			if (random_u64() % 8 == 0 && late_count < 64)
				late[late_count++] = rtp;
			else
				kit_peer_send(r.source, &rtp, false);
		}
		/* In the middle of the pass, some of what was lost comes after all. */
		for (unsigned k = 0; k < random_u64() % 5; k++) {
			kit_loop_round(kit_plane_worker(r.p, 0)->loop);
			while (late_count && random_u64() % 2)
				kit_peer_send(r.source, &late[--late_count], random_u64() % 2);
		}
		if (round % 4 == 0)
			kit_plane_advance(r.p, 3000);
	}
	while (late_count)
		kit_peer_send(r.source, &late[--late_count], true);
	kit_plane_advance(r.p, 50000);
	cr_expect_gt(KIT_SUM(r.p, slices), 50);
	expect_each_once(&r, from, r.source->next_number, "sliced");
	kit_plane_close(r.p);
}

Test(plane_pass, who_joins_or_leaves_during_a_pass_costs_nobody_a_packet)
{
	struct room r;
	struct kit_peer *extra[4];
	uint32_t from;

	open_room(&r, "media:\n  slice_us: 100\n");
	from = r.source->next_number;
	for (unsigned round = 0; round < 40; round++) {
		struct worker *w = kit_plane_worker(r.p, 0);

		for (unsigned i = 0; i < 4; i++)
			extra[i] = kit_peer_join(r.p, "live", &viewer);
		kit_clock_step(60);
		kit_peer_send_frame(r.source, round % 8 == 0, 2, 600, NULL);
		for (unsigned i = 0; i < 4; i++) {
			kit_loop_round(w->loop);
			kit_peer_leave(extra[i]);
			kit_loop_round(r.p->loop);
		}
		kit_clock_step(0);
		/* Nothing else comes that could make up for a viewer left out. */
		kit_plane_advance(r.p, 20000);
		expect_each_once(&r, from, r.source->next_number, "joins");
		for (unsigned i = 0; i < 4; i++)
			kit_peer_drop(extra[i]);
	}
	kit_plane_close(r.p);
}

/* What the kernel says, drawn. */
struct trouble {
	unsigned calls, shorts, failures;
	int error; /* 0: short counts alone */
};

static struct kit_wire_answer make_trouble(void *arg, unsigned offered)
{
	struct trouble *t = arg;
	uint64_t draw = random_u64() % 4;

	t->calls++;
	if (draw == 0 && offered > 1) {
		t->shorts++;
		return (struct kit_wire_answer){ 1 + (unsigned)(random_u64() % (offered - 1)), 0 };
	}
	if (draw == 1 && t->error) {
		t->failures++;
		return (struct kit_wire_answer){ 0, t->error };
	}
	return (struct kit_wire_answer){ offered, 0 };
}

Test(plane_pass, a_kernel_that_is_full_loses_and_repeats_nothing)
{
	static const int errors[] = { 0, EAGAIN, ENOBUFS, ENOMEM, EINTR };

	for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
		struct trouble trouble = { .error = errors[e] };
		struct room r;
		uint32_t from;

		open_room(&r, "");
		from = r.source->next_number;
		kit_wire_on_send(make_trouble, &trouble);
		for (unsigned round = 0; round < 150; round++) {
			kit_peer_send_frame(r.source, false, 1 + round % 9, 900, NULL);
			if (round % 3 == 0)
				kit_peer_send_audio(r.source);
			kit_plane_advance(r.p, 2000);
			kit_wire_unblock();
			kit_plane_advance(r.p, 2000);
		}
		kit_wire_on_send(NULL, NULL);
		kit_wire_unblock();
		kit_plane_advance(r.p, 100000);
		cr_expect_gt(trouble.shorts, 10);
		cr_expect(trouble.failures > 10 || errors[e] == 0);
		expect_each_once(&r, from, r.source->next_number, strerror(errors[e]));
		expect_order(&r, strerror(errors[e]));
		kit_plane_close(r.p);
	}
}

static struct kit_wire_answer take_nothing(void *arg, unsigned offered)
{
	(void)offered;
	return (struct kit_wire_answer){ 0, *(const int *)arg };
}

/* More than the arena holds waits; nothing else comes that would send it off. */
Test(plane_pass, what_waits_leaves_once_the_kernel_has_room)
{
	static const int errors[] = { EAGAIN, ENOBUFS, ENOMEM };

	for (size_t e = 0; e < 3; e++) {
		int error = errors[e];
		struct room r;
		uint32_t from;

		open_room(&r, "");
		from = r.source->next_number;
		kit_wire_on_send(take_nothing, &error);
		kit_peer_send_frame(r.source, false, 30, 1000, NULL);
		kit_plane_advance(r.p, 20000);
		cr_expect_eq(got(&r), 0);
		kit_wire_on_send(NULL, NULL);
		kit_wire_unblock();
		kit_plane_advance(r.p, 20000);
		expect_each_once(&r, from, r.source->next_number, strerror(error));
		expect_order(&r, strerror(error));
		kit_plane_close(r.p);
	}
}

Test(plane_pass, late_packets_survive_a_full_kernel)
{
	struct trouble trouble = { .error = EAGAIN };
	struct kit_rtp late[40];
	struct room r;
	uint32_t from;

	open_room(&r, "");
	from = r.source->next_number;
	for (unsigned round = 0; round < 30; round++) {
		for (unsigned i = 0; i < 40; i++) {
			struct kit_rtp rtp = next_frame(&r, 2, 1100);

			rtp.is_start = true;
			late[i] = rtp;
			late[i].index++;
			late[i].number++;
			late[i].is_start = false;
			late[i].marker = true;
			kit_peer_send(r.source, &rtp, false);
		}
		kit_plane_advance(r.p, 20000);
		/* 40 late ones for 12 viewers are more than the arena holds. */
		kit_wire_on_send(make_trouble, &trouble);
		for (unsigned i = 0; i < 40; i++)
			kit_peer_send(r.source, &late[i], i % 2);
		for (unsigned i = 0; i < 20; i++) {
			kit_plane_settle(r.p);
			kit_wire_unblock();
		}
		kit_wire_on_send(NULL, NULL);
		kit_plane_advance(r.p, 20000);
	}
	cr_expect_gt(trouble.failures, 20);
	expect_each_once(&r, from, r.source->next_number, "late");
	kit_plane_close(r.p);
}

Test(plane_pass, a_message_that_fails_is_skipped_and_counted_alone)
{
	static const int errors[] = { EPERM, ENETUNREACH, EHOSTUNREACH, ECONNREFUSED };

	for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
		struct trouble trouble = { .error = errors[e] };
		uint64_t failures = 0;
		size_t want, have;
		uint32_t from;
		struct room r;

		open_room(&r, "media:\n  hold_min_viewers: 2\n");
		from = r.source->next_number;
		kit_wire_on_send(make_trouble, &trouble);
		for (unsigned round = 0; round < 50; round++) {
			kit_peer_send_frame(r.source, false, 4, 900, NULL);
			kit_plane_advance(r.p, 3000);
		}
		kit_wire_on_send(NULL, NULL);
		kit_plane_advance(r.p, 100000);
		expect_order(&r, strerror(errors[e]));
		/* A frame is one message of four segments: whole frames are missing, as many as the
		 * kernel refused. Nothing else is. */
		want = (size_t)VIEWERS * (r.source->next_number - from);
		have = got(&r);
		for (struct plan *plan = r.p->registry->oldest; plan; plan = plan->newer)
			failures += counter_read(&plan->stats.send_failures);
		cr_expect_eq(failures, trouble.failures);
		cr_expect_leq(want - have, 4 * trouble.failures);
		cr_expect_geq(want - have, 4 * (trouble.failures - trouble.failures / 8));
		kit_plane_close(r.p);
	}
}
