#include <criterion/criterion.h>

#include "media/clock.h"
#include "tests/media/flow.h"

enum { AUDIO, VIDEO, AUDIO_HZ = 48000, VIDEO_HZ = 90000 };

/* The publisher's wall clock at relay time 0, and its RTP clocks then. */
static const uint64_t wall_us = 3900000000u * 1000000ull;
static const uint32_t audio_rtp = 4294967000u, video_rtp = 1000;

static struct clock c;

static void setup(void)
{
	clock_init(&c);
}

TestSuite(clock, .init = setup, .timeout = 10);

static uint32_t rtp_at(unsigned source, uint64_t us)
{
	uint64_t hz = source == AUDIO ? AUDIO_HZ : VIDEO_HZ;

	return (source == AUDIO ? audio_rtp : video_rtp) + (uint32_t)(us * hz / 1000000);
}

/* A report sent at relay time sent_us that took delay_us. */
static void report(unsigned source, uint64_t sent_us, uint64_t delay_us)
{
	clock_on_sr(&c, source, clock_ntp_of_us(wall_us + sent_us), rtp_at(source, sent_us),
		    source == AUDIO ? AUDIO_HZ : VIDEO_HZ, sent_us + delay_us);
}

static uint32_t anchored(unsigned source, uint64_t now_us)
{
	struct clock_anchor anchor;

	cr_assert(clock_anchor(&c, source, 0, &anchor));
	return clock_anchor_rtp(&anchor, now_us);
}

/* Difference of two readings in microseconds of the source's clock. */
static int64_t off_us(unsigned source, uint64_t now_us, uint64_t want_us)
{
	int32_t ticks = (int32_t)(anchored(source, now_us) - rtp_at(source, want_us));

	return (int64_t)ticks * 1000000 / (source == AUDIO ? AUDIO_HZ : VIDEO_HZ);
}

Test(clock, there_is_no_anchor_before_the_sources_first_report)
{
	struct clock_anchor anchor;

	cr_expect_not(clock_anchor(&c, AUDIO, 0, &anchor));
	cr_expect_eq(anchor.clock_hz, 0);
	report(AUDIO, 0, 1000);
	cr_expect(clock_anchor(&c, AUDIO, 0, &anchor));
	cr_expect_not(clock_anchor(&c, VIDEO, 0, &anchor), "its RTP clock is still unknown");
}

Test(clock, the_rtp_clock_is_extrapolated_both_ways)
{
	report(VIDEO, 5000000, 20000);
	cr_expect_eq(anchored(VIDEO, 5020000), rtp_at(VIDEO, 5000000));
	cr_expect_eq(anchored(VIDEO, 6020000), rtp_at(VIDEO, 6000000));
	cr_expect_eq(anchored(VIDEO, 4020000), rtp_at(VIDEO, 4000000));
}

Test(clock, the_tracks_offset_is_added)
{
	struct clock_anchor anchor;

	report(VIDEO, 0, 0);
	clock_anchor(&c, VIDEO, 0xfffffff0, &anchor);
	cr_expect_eq(clock_anchor_rtp(&anchor, 0), video_rtp - 16);
}

/* Audio's report was fast, video's slow: both are read with the same offset, so what the
 * publisher captured together is shown together. */
Test(clock, all_sources_of_a_publisher_share_one_offset)
{
	report(AUDIO, 1000000, 10000);
	report(VIDEO, 1100000, 200000);
	for (uint64_t now_us = 1500000; now_us < 3000000; now_us += 100000)
		cr_expect_leq(llabs(off_us(AUDIO, now_us, 0) - off_us(VIDEO, now_us, 0)), 30);
}

Test(clock, a_faster_report_is_believed_at_once)
{
	report(AUDIO, 0, 100000);
	report(AUDIO, 1000000, 10000);
	cr_expect_leq(llabs(off_us(AUDIO, 2000000, 1990000)), 30);
}

Test(clock, a_slower_report_moves_it_a_little)
{
	report(AUDIO, 0, 10000);
	report(AUDIO, 1000000, 10000 + CLOCK_FOLLOW_DIVISOR * 1000);
	cr_expect_leq(llabs(off_us(AUDIO, 2000000, 1990000 - 1000)), 30);
}

Test(clock, drift_is_followed)
{
	/* The publisher's clock runs 100 ppm slow, so its reports seem to arrive ever later. */
	for (uint64_t i = 0; i < 1000; i++)
		report(AUDIO, i * 1000000, 10000 + i * 100);
	cr_expect_leq(llabs(off_us(AUDIO, 1000000000, 1000000000 - 110000)), 5000);
}

Test(clock, a_wall_clock_that_was_set_starts_anew)
{
	struct clock_anchor anchor;

	report(AUDIO, 0, 0);
	report(VIDEO, 0, 0);
	clock_on_sr(&c, AUDIO, clock_ntp_of_us(wall_us + 3600000000), rtp_at(AUDIO, 1000000),
		    AUDIO_HZ, 1000000);
	cr_expect_eq(anchored(AUDIO, 1000000), rtp_at(AUDIO, 1000000));
	cr_expect_not(clock_anchor(&c, VIDEO, 0, &anchor), "its last report tells the old time");
}

Test(clock, ntp_and_microseconds_convert_both_ways)
{
	uint64_t random = 1;

	for (int i = 0; i < 100000; i++) {
		uint64_t us =
		    (uint64_t)flow_random(&random) * 1000000 + flow_random(&random) % 1000000;

		cr_assert_eq(clock_us_of_ntp(clock_ntp_of_us(us)), us);
	}
	cr_expect_eq(clock_ntp_of_unix_us(0), 2208988800ull << 32);
	cr_expect_eq(clock_ntp_of_unix_us(500000), 2208988800ull << 32 | 1ull << 31);
}
