#include <criterion/criterion.h>

#include "media/rtcp.h"
#include "net/random.h"
#include "server/session.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_publish, .timeout = 120);

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };

static struct kit_peer_config on_worker(const struct kit_peer_config *of, unsigned worker)
{
	struct kit_peer_config config = *of;

	config.worker = worker;
	return config;
}

static void send_second(struct kit_plane *p, struct kit_peer *source)
{
	for (unsigned i = 0; i < 30; i++) {
		kit_peer_send_frame(source, i == 0, 1 + i % 3, 700, NULL);
		if (i % 2)
			kit_peer_send_audio(source);
		kit_plane_advance(p, 33333);
	}
}

/* Numbers without a hole, timestamps and picture ids that never go back. */
static void expect_continuity(const struct kit_peer *v)
{
	const struct kit_packet *last[NEGOTIATED_KINDS] = { NULL };

	for (size_t i = 0; i < v->packet_count; i++) {
		const struct kit_packet *k = &v->packets[i];
		const struct kit_packet *before = last[k->kind];

		last[k->kind] = k;
		if (!before)
			continue;
		cr_assert_eq(k->index, before->index + 1, "packet %zu", i);
		cr_assert_geq(rtp_timestamp_diff(k->timestamp, before->timestamp), 0, "packet %zu",
			      i);
		cr_assert_lt(rtp_timestamp_diff(k->timestamp, before->timestamp), 90000 * 20,
			     "packet %zu", i);
		if (k->kind == MEDIA_VIDEO) {
			uint16_t now = (uint16_t)((k->head[2] & 0x7f) << 8 | k->head[3]);
			uint16_t then = (uint16_t)((before->head[2] & 0x7f) << 8 | before->head[3]);
			bool is_new = k->timestamp != before->timestamp;

			cr_assert_eq((now - then) & 0x7fff, is_new ? 1 : 0, "packet %zu: %u, %u", i,
				     then, now);
		}
	}
}

Test(plane_publish, a_publisher_that_comes_back_goes_on_where_it_stopped)
{
	/* Where the publishers are, one after the other; how the one before ends. */
	static const struct {
		unsigned worker;
		enum { LEAVES, VANISHES, IS_TAKEN_OVER } end;
	} rows[] = { { 0, LEAVES },        { 0, VANISHES },      { 1, LEAVES },
		     { 0, IS_TAKEN_OVER }, { 0, IS_TAKEN_OVER }, { 1, IS_TAKEN_OVER },
		     { 0, LEAVES } };
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *near, *far;
	struct kit_peer_config config = on_worker(&viewer, 1);
	size_t want;

	kit_plane_advance(p, 10000);
	near = kit_peer_join(p, "live", &viewer);
	far = kit_peer_join(p, "live", &config);
	send_second(p, source);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kit_peer *next;

		if (rows[i].end == LEAVES)
			kit_peer_leave(source);
		if (rows[i].end == VANISHES)
			source->is_mute = true;
		if (rows[i].end != IS_TAKEN_OVER)
			kit_plane_advance(p, 400000);
		config = on_worker(&publisher, rows[i].worker);
		next = kit_peer_join(p, "live", &config);
		kit_plane_advance(p, 10000);
		if (rows[i].end == IS_TAKEN_OVER)
			cr_expect(source->is_closed);
		kit_peer_drop(source);
		source = next;
		send_second(p, source);
	}
	want = 60 * (sizeof(rows) / sizeof(rows[0]) + 1);
	cr_expect_eq(kit_peer_count(near, MEDIA_VIDEO, false), want);
	cr_expect_eq(kit_peer_count(far, MEDIA_VIDEO, false), want);
	expect_continuity(near);
	expect_continuity(far);
	kit_plane_close(p);
}

Test(plane_publish, a_new_ssrc_goes_on_as_well)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);

	send_second(p, source);
	for (unsigned i = 0; i < 4; i++) {
		source->ssrc[MEDIA_VIDEO] += 12345;
		source->ssrc[MEDIA_AUDIO] += 54321;
		source->next_index[MEDIA_VIDEO] = random_u64() & 0x7fff;
		source->next_index[MEDIA_AUDIO] = random_u64() & 0x7fff;
		source->timestamp[MEDIA_VIDEO] = (uint32_t)random_u64();
		source->timestamp[MEDIA_AUDIO] = (uint32_t)random_u64();
		send_second(p, source);
	}
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 300);
	expect_continuity(v);
	kit_plane_close(p);
}

/* The publisher ends after control has handed it the feed, before the feed is there. */
Test(plane_publish, a_feed_that_finds_nobody_goes_to_the_next_publisher)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *first = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	struct kit_peer_config there = on_worker(&publisher, 1);
	struct worker *w = kit_plane_worker(p, 1);
	struct stream_entry *e;
	struct kit_peer *second, *third;

	send_second(p, first);
	kit_peer_leave(first);
	kit_plane_advance(p, 100000);
	e = registry_find_stream(p->registry, "live");
	cr_assert(e && e->feed && !e->publisher);
	second = kit_peer_open(p, "live", &there);
	/* Until control has sent the feed. */
	for (unsigned i = 0; !e->publisher && i < 5000; i++) {
		p->now_us += 100;
		kit_clock_set(p->now_us);
		kit_loop_round(w->loop);
		for (const struct kit_datagram *d; (d = kit_wire_take()) != NULL;) {
			struct net_path path = {
				.remote = { .ip = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
					    .port = KIT_PORT },
				.local = second->addr
			};
			uint8_t bytes[KIT_WIRE_BYTES];
			size_t len = d->len;
			uint64_t index;

			memcpy(bytes, d->bytes, len);
			if (net_addr_is_equal(&d->path.remote, &second->addr))
				transport_on_datagram(second->transport, p->now_us, &path, bytes,
						      &len, &index);
		}
		kit_peer_poll(second);
		kit_loop_round(p->loop);
	}
	cr_assert(e->publisher && e->is_feed_away);
	/* Its worker ends it first. */
	session_end(worker_session(w, session_ref_unpack(atomic_load(&e->publisher->claim))),
		    TRANSPORT_CLOSED_SILENT);
	cr_assert(kit_loop_round(p->loop));
	cr_expect(e->publisher && e->is_feed_away && !e->feed, "the next one has to wait");
	third = kit_peer_open(p, "live", &publisher);
	kit_plane_advance(p, 300000);
	cr_assert(third->is_connected);
	cr_expect_eq(KIT_SUM(p, sessions), 2);
	send_second(p, third);
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 120);
	expect_continuity(v);
	kit_plane_close(p);
}

Test(plane_publish, an_empty_stream_is_freed)
{
	struct kit_plane *p = kit_plane_open("streams:\n  wait_for_publisher: true\n", 2);

	for (unsigned i = 0; i < 20; i++) {
		struct kit_peer *source = kit_peer_join(p, "live", &publisher);
		struct kit_peer_config config = on_worker(&viewer, i % 2);
		struct kit_peer *v = kit_peer_join(p, "live", &config);

		cr_assert_eq(p->registry->stream_count, 1);
		kit_peer_leave(i % 3 ? source : v);
		kit_plane_advance(p, 50000);
		cr_assert_eq(p->registry->stream_count, 1);
		kit_peer_leave(i % 3 ? v : source);
		kit_plane_advance(p, 50000);
		cr_assert_eq(p->registry->stream_count, 0);
		kit_peer_drop(source);
		kit_peer_drop(v);
	}
	/* Who asks what became of a session gets no answer any more. */
	kit_plane_advance(p, 17000000);
	cr_expect_eq(p->registry->plan_count, 0);
	cr_expect_eq(stream_live(), 0);
	kit_plane_close(p);
}

Test(plane_publish, a_publisher_without_media_is_ended)
{
	struct kit_plane *p = kit_plane_open("session:\n  media_timeout_ms: 5000\n", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);

	for (unsigned i = 0; i < 10; i++) {
		kit_peer_send_audio(source);
		kit_plane_advance(p, 1000000);
	}
	cr_expect_not(source->is_closed);
	kit_plane_advance(p, 7000000);
	cr_expect(source->is_closed);
	cr_expect_eq(p->registry->sessions_ended[TRANSPORT_CLOSED_NO_MEDIA], 1);
	kit_plane_close(p);
}

/* --- key frames --------------------------------------------------------------------------- */

Test(plane_publish, key_frame_requests_of_many_are_one)
{
	struct kit_plane *p = kit_plane_open("media:\n  keyframe_share_percent: 100\n", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *viewers[30];
	unsigned before;

	kit_plane_advance(p, 10000);
	kit_peer_send_frame(source, true, 1, 100, NULL);
	for (unsigned i = 0; i < 30; i++) {
		struct kit_peer_config config = on_worker(&viewer, i % 2);

		viewers[i] = kit_peer_join(p, "live", &config);
	}
	kit_peer_send_frame(source, true, 1, 100, NULL);
	kit_plane_advance(p, 2000000);
	kit_peer_send_frame(source, true, 1, 100, NULL);
	kit_plane_advance(p, 600000);
	before = source->plis;
	for (unsigned i = 0; i < 3000; i++) {
		kit_peer_pli(viewers[i % 30]);
		if (i % 30 == 29)
			kit_plane_advance(p, 1000);
	}
	cr_expect_eq(source->plis, before + 1, "the leading edge at once");
	kit_plane_advance(p, 300000);
	cr_expect_eq(source->plis, before + 1, "no second one within keyframe_interval_ms");
	kit_plane_advance(p, 300000);
	cr_expect_eq(source->plis, before + 2, "the trailing edge");
	kit_peer_send_frame(source, true, 1, 100, NULL);
	kit_plane_advance(p, 5000000);
	cr_expect_eq(source->plis, before + 2);
	cr_expect_geq(KIT_SUM(p, keyframes_asked), 3000);
	kit_plane_close(p);
}

Test(plane_publish, a_request_that_brings_no_key_frame_is_repeated_a_few_times)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	unsigned before = source->plis;

	kit_peer_send_frame(source, false, 1, 100, NULL);
	for (unsigned i = 0; i < 40; i++) {
		kit_peer_send_frame(source, false, 1, 100, NULL);
		kit_plane_advance(p, 100000);
	}
	cr_expect_geq(source->plis, before + 3, "a viewer waits");
	cr_expect_leq(source->plis, before + 9, "but never more than two a second");
	kit_peer_send_frame(source, true, 1, 100, NULL);
	kit_plane_advance(p, 100000);
	cr_expect_eq(v->packet_count, 1);
	before = source->plis;
	for (unsigned i = 0; i < 20; i++) {
		kit_peer_send_frame(source, false, 1, 100, NULL);
		kit_plane_advance(p, 100000);
	}
	cr_expect_eq(source->plis, before);
	kit_plane_close(p);
}

/* A stream whose first video packet is no key frame, with somebody waiting. */
Test(plane_publish, a_key_frame_is_asked_for_with_the_first_video_packet)
{
	struct kit_plane *p = kit_plane_open("streams:\n  wait_for_publisher: true\n", 1);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);

	kit_peer_send_audio(source);
	kit_plane_advance(p, 100000);
	cr_expect_eq(source->plis, 0, "its SSRC is not known yet");
	kit_peer_send_frame(source, false, 1, 100, NULL);
	kit_plane_settle(p);
	cr_expect_eq(source->plis, 1);
	cr_expect_eq(kit_peer_count(v, MEDIA_AUDIO, false), 1);
	kit_plane_close(p);
}

/* --- clocks and silence ------------------------------------------------------------------- */

static void send_report(struct kit_peer *source, enum media_kind kind)
{
	struct rtcp_sender_info info = {
		.ntp = UINT64_C(0xe0000000) << 32,
		.rtp_timestamp = source->timestamp[kind],
	};
	uint8_t bytes[100];
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_sr(&w, source->ssrc[kind], &info, NULL, 0);
	kit_peer_send_rtcp(source, bytes, w.len_bytes);
}

Test(plane_publish, viewers_get_sender_reports_once_the_publisher_has_sent_its_own)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer_config far = on_worker(&viewer, 1);
	struct kit_peer *viewers[2] = { kit_peer_join(p, "live", &viewer),
					kit_peer_join(p, "live", &far) };

	send_second(p, source);
	send_second(p, source);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(viewers[i]->sender_reports, 0);
	send_report(source, MEDIA_VIDEO);
	send_report(source, MEDIA_AUDIO);
	for (unsigned i = 0; i < 6; i++)
		send_second(p, source);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_geq(viewers[i]->sender_reports, 2, "viewer %u: both tracks", i);
	cr_expect_geq(source->reports, 7, "and the publisher hears what arrived, once a second");
	kit_plane_close(p);
}

Test(plane_publish, who_falls_silent_is_ended)
{
	struct kit_plane *p = kit_plane_open("session:\n  media_timeout_ms: 40000\n", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer_config far = on_worker(&viewer, 1);
	struct kit_peer *v = kit_peer_join(p, "live", &far);

	kit_plane_advance(p, 60000000);
	cr_expect_not(v->is_closed, "consent checks keep it alive");
	cr_expect_eq(registry_sessions_open(p->registry), 1, "the publisher had no media");
	source = kit_peer_join(p, "live", &publisher);
	send_second(p, source);
	v->is_mute = true;
	source->is_mute = true;
	kit_plane_advance(p, 28000000);
	cr_expect_eq(registry_sessions_open(p->registry), 2);
	kit_plane_advance(p, 5000000);
	cr_expect_eq(registry_sessions_open(p->registry), 0);
	cr_expect_eq(p->registry->sessions_ended[TRANSPORT_CLOSED_SILENT], 2);
	cr_expect_eq(p->registry->stream_count, 0);
	kit_plane_close(p);
}
