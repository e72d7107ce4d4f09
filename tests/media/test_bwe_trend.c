#include <criterion/criterion.h>

#include "media/bwe_trend.h"
#include "tests/media/flow.h"

TestSuite(bwe_trend, .timeout = 10);

enum { FRAME_US = 33000, START_US = 1000000 };

static struct bwe_trend t;
static int64_t sent_us, queue_us;
static uint64_t state;

static void setup(void)
{
	bwe_trend_init(&t);
	sent_us = START_US;
	queue_us = 0;
	state = 1;
}

/* A frame of three packets, each queued so much longer than the last frame's. */
static void frames(int n, int64_t growth_us, uint32_t jitter_us)
{
	for (; n > 0; n--) {
		int64_t late_us = jitter_us ? flow_random(&state) % jitter_us : 0;

		queue_us += growth_us;
		for (int i = 0; i < 3; i++)
			bwe_trend_on_packet(&t, sent_us, sent_us + 50000 + queue_us + late_us + i);
		sent_us += FRAME_US;
	}
}

static int frames_until(enum bwe_usage usage, int64_t growth_us)
{
	int n = 0;

	for (; n < 200 && bwe_trend_usage(&t) != usage; n++)
		frames(1, growth_us, 0);
	return n;
}

Test(bwe_trend, a_steady_way_is_normal, .init = setup)
{
	for (int i = 0; i < 300; i++) {
		frames(1, 0, 0);
		cr_assert_eq(bwe_trend_usage(&t), BWE_NORMAL);
	}
	cr_expect_lt(bwe_trend_queue_ms(&t), 1);
}

/* At 10 % above capacity a queue grows by 3.3 ms a frame. */
Test(bwe_trend, a_growing_queue_is_overuse_within_half_a_second, .init = setup)
{
	frames(60, 0, 0);
	cr_expect_lt(frames_until(BWE_OVERUSE, 3300), 15);
	frames(30, 3300, 0);
	cr_expect_gt(bwe_trend_queue_ms(&t), 80);
}

Test(bwe_trend, a_queue_that_drains_is_underuse_and_then_normal, .init = setup)
{
	frames(60, 0, 0);
	frames(40, 5000, 0);
	cr_expect_lt(frames_until(BWE_UNDERUSE, -6000), 30);
	queue_us = 0;
	cr_expect_lt(frames_until(BWE_NORMAL, 0), 60);
	frames(60, 0, 0);
	cr_expect_lt(bwe_trend_queue_ms(&t), 10);
}

Test(bwe_trend, jitter_is_rarely_taken_for_a_queue, .init = setup)
{
	int overuses = 0;

	for (int i = 0; i < 3000; i++) {
		frames(1, 0, 20000);
		overuses += i > 300 && bwe_trend_usage(&t) == BWE_OVERUSE;
	}
	cr_expect_lt(overuses, 150, "%d of 2,700", overuses);
}

Test(bwe_trend, a_longer_way_is_a_queue_first_and_distance_later, .init = setup)
{
	frames(60, 0, 0);
	queue_us += 200000;
	frames(60, 0, 0);
	cr_expect_gt(bwe_trend_queue_ms(&t), 150);
	frames(2 * BWE_BASE_US / FRAME_US + 30, 0, 0);
	cr_expect_lt(bwe_trend_queue_ms(&t), 1);
}

Test(bwe_trend, what_was_sent_before_the_group_is_left_out, .init = setup)
{
	frames(60, 0, 0);
	for (int i = 0; i < 100; i++)
		bwe_trend_on_packet(&t, sent_us - 10 * FRAME_US, sent_us + 1000000);
	frames(1, 0, 0);
	cr_expect_lt(bwe_trend_queue_ms(&t), 1);
}

Test(bwe_trend, a_clock_that_jumps_begins_anew, .init = setup)
{
	frames(60, 0, 0);
	queue_us += 10000000;
	for (int i = 0; i < 300; i++) {
		frames(1, 0, 0);
		cr_assert_eq(bwe_trend_usage(&t), BWE_NORMAL);
	}
	cr_expect_lt(bwe_trend_queue_ms(&t), 1);
}
