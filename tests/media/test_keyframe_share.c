#include <criterion/criterion.h>

#include "media/keyframe_share.h"

TestSuite(keyframe_share, .timeout = 10);

enum { FRAME_US = 33333, DELTA_BYTES = 5000, KEYFRAME_BYTES = 60000, PERCENT = 25 };

struct source {
	struct keyframe_share share;
	uint64_t now_us;
	uint32_t timestamp;
};

static void send_frame(struct source *s, bool is_keyframe)
{
	uint32_t bytes = is_keyframe ? KEYFRAME_BYTES : DELTA_BYTES;

	s->timestamp += 3000;
	for (uint32_t sent = 0; sent < bytes; sent += 1000)
		keyframe_share_on_packet(&s->share, s->timestamp, 1000, is_keyframe && sent == 0,
					 s->now_us);
	s->now_us += FRAME_US;
}

static void send_deltas(struct source *s, unsigned count)
{
	while (count--)
		send_frame(s, false);
}

static void open_source(struct source *s)
{
	*s = (struct source){ .now_us = 1000000 };
	keyframe_share_init(&s->share, PERCENT);
	cr_expect_eq(keyframe_share_wait_us(&s->share), 0, "the first one is free");
	send_frame(s, true);
	send_deltas(s, 60);
}

Test(keyframe_share, a_few_key_frames_may_follow_each_other)
{
	struct source s;

	open_source(&s);
	for (unsigned i = 0; i < KEYFRAME_SHARE_BURST; i++) {
		cr_expect_eq(keyframe_share_wait_us(&s.share), 0, "key frame %u", i);
		send_frame(&s, true);
	}
	cr_expect_gt(keyframe_share_wait_us(&s.share), 0);
}

/* Whoever asks whenever he may gets this share. */
Test(keyframe_share, in_the_long_run_key_frames_take_their_share)
{
	uint64_t keyframes = 0, bytes = 0;
	struct source s;

	open_source(&s);
	for (unsigned i = 0; i < 3000; i++) {
		bool is_keyframe = keyframe_share_wait_us(&s.share) == 0;

		send_frame(&s, is_keyframe);
		keyframes += is_keyframe ? KEYFRAME_BYTES : 0;
		bytes += is_keyframe ? KEYFRAME_BYTES : DELTA_BYTES;
	}
	cr_expect_leq(keyframes * 100, bytes * (PERCENT + 1));
	cr_expect_geq(keyframes * 100, bytes * (PERCENT - 2));
}

Test(keyframe_share, the_wait_is_what_it_takes_to_earn_the_rest)
{
	struct source s;
	uint64_t wait_us;

	open_source(&s);
	send_frame(&s, true);
	send_frame(&s, true);
	send_deltas(&s, 10);
	wait_us = keyframe_share_wait_us(&s.share);
	cr_assert_gt(wait_us, 100000);
	send_deltas(&s, (unsigned)(wait_us * 2 / 3 / FRAME_US));
	cr_expect_gt(keyframe_share_wait_us(&s.share), 0);
	send_deltas(&s, (unsigned)(2 * wait_us / FRAME_US));
	cr_expect_eq(keyframe_share_wait_us(&s.share), 0);
}

Test(keyframe_share, key_frames_nobody_asked_for_draw_no_deeper_than_one)
{
	struct source s;
	uint64_t deltas = 0;

	open_source(&s);
	for (unsigned i = 0; i < 50; i++)
		send_frame(&s, true);
	while (keyframe_share_wait_us(&s.share) > 0 && deltas < 1000) {
		send_frame(&s, false);
		deltas++;
	}
	cr_expect_leq(deltas, KEYFRAME_BYTES * 100 / PERCENT / DELTA_BYTES + 1);
}

Test(keyframe_share, a_silent_source_is_waited_for_without_end)
{
	struct keyframe_share k;

	keyframe_share_init(&k, PERCENT);
	for (uint32_t i = 1; i <= 3; i++)
		keyframe_share_on_packet(&k, i, 1000, true, 1000);
	cr_expect_eq(keyframe_share_wait_us(&k), UINT64_MAX, "no rate is known");
}

Test(keyframe_share, a_hundred_percent_is_no_bound)
{
	struct keyframe_share k;

	keyframe_share_init(&k, 100);
	for (uint32_t i = 1; i <= 100; i++) {
		keyframe_share_on_packet(&k, i, 50000, true, i);
		cr_expect_eq(keyframe_share_wait_us(&k), 0, "key frame %u", i);
	}
}

Test(keyframe_share, several_beginnings_of_one_frame_are_one_key_frame)
{
	struct keyframe_share k;

	keyframe_share_init(&k, PERCENT);
	cr_expect(keyframe_share_on_packet(&k, 9000, 100, true, 1));
	cr_expect_not(keyframe_share_on_packet(&k, 9000, 1000, true, 2));
	cr_expect_not(keyframe_share_on_packet(&k, 9000, 1000, false, 3));
	cr_expect_not(keyframe_share_on_packet(&k, 12000, 1000, false, 4));
	cr_expect(keyframe_share_on_packet(&k, 15000, 100, true, 5));
	cr_expect_eq(k.former_bytes, 2100);
}
