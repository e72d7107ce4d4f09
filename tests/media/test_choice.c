#include "media/choice.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/media/flow.h"

enum { SECOND_US = 1000000, TICK_US = 200000, AUDIO_BPS = 50000, MINUTE_US = 60 * SECOND_US };

static struct choice c;
static struct layer_table t;
static uint64_t now_us;

/* Three encodings of 150, 500 and 2,000 kbit/s with two temporal layers each: 60 % without the upper. */
static const uint32_t encoding_bps[] = { 150000, 500000, 2000000 };

static void add(unsigned encoding, unsigned temporal_id, uint32_t bitrate_bps)
{
	t.options[t.count++] = (struct layer_option){
		.encoding = (uint8_t)encoding,
		.target = (uint8_t)layers_number(0, temporal_id),
		.temporal_id = (uint8_t)temporal_id,
		.bitrate_bps = bitrate_bps,
		.width = (uint16_t)(320 << encoding),
		.height = (uint16_t)(180 << encoding),
		.is_active = true,
	};
}

static void setup(void)
{
	memset(&t, 0, sizeof(t));
	for (unsigned e = 0; e < 3; e++) {
		add(e, 0, encoding_bps[e] * 6 / 10);
		add(e, 1, encoding_bps[e]);
	}
	choice_init(&c);
	now_us = SECOND_US;
}

TestSuite(choice, .init = setup, .timeout = 10);

static struct choice_pick update(uint32_t video_bps)
{
	return choice_update(&c, &t, video_bps == UINT32_MAX ? UINT32_MAX : video_bps + AUDIO_BPS,
			     AUDIO_BPS, now_us);
}

static struct choice_pick run(uint32_t video_bps, uint64_t us)
{
	struct choice_pick pick = c.pick;

	for (uint64_t end_us = now_us + us; now_us < end_us; now_us += TICK_US)
		pick = update(video_bps);
	return pick;
}

static bool is_at(struct choice_pick pick, unsigned encoding, unsigned temporal_id)
{
	return !pick.is_paused && pick.encoding == encoding &&
	       pick.target == layers_number(0, temporal_id);
}

static void set_active(unsigned encoding, bool is_active)
{
	for (unsigned i = 0; i < t.count; i++)
		if (t.options[i].encoding == encoding)
			t.options[i].is_active = is_active;
}

Test(choice, it_begins_with_what_fits)
{
	cr_expect(is_at(update(600000), 1, 1));
	setup();
	cr_expect(is_at(update(40000), 0, 0), "the cheapest, if nothing fits");
	setup();
	cr_expect(is_at(update(UINT32_MAX), 2, 1), "the best, if there is no limit");
	setup();
	cr_expect(is_at(choice_update(&c, &t, 150000, 100000, now_us), 0, 0), "audio comes first");
}

Test(choice, it_goes_down_at_once)
{
	run(5000000, 20 * SECOND_US);
	cr_expect(is_at(update(1900001), 2, 1), "within the tolerance");
	cr_expect(is_at(update(700000), 1, 1));
	cr_expect(is_at(update(100000), 0, 0));
}

Test(choice, it_goes_up_with_margin_and_after_a_while)
{
	run(510000, SECOND_US);
	cr_expect(is_at(run(2000000, 20 * SECOND_US), 2, 0), "2000 would fit, but barely");
	cr_expect(is_at(run(2450000, CHOICE_UP_HOLD_US), 2, 0), "not yet");
	cr_expect(is_at(run(2450000, TICK_US), 2, 1));
}

Test(choice, a_moment_that_fits_is_not_enough)
{
	run(510000, SECOND_US);
	for (unsigned i = 0; i < 20; i++) {
		run(5000000, 2 * SECOND_US);
		cr_expect(is_at(update(510000), 1, 1), "%u", i);
	}
}

Test(choice, it_climbs_to_the_best_that_fits_within_15_s)
{
	run(5000000, 30 * SECOND_US);
	cr_expect(is_at(run(350000, 5 * SECOND_US), 1, 0));
	cr_expect(is_at(run(5000000, 5 * SECOND_US), 2, 1));
}

/* A link that looks wider than it is: each attempt brings it down. */
Test(choice, failed_attempts_become_rare)
{
	uint64_t ups_us[64];
	unsigned ups = 0;

	t.options[4].is_active = false; /* nothing between 500 and 2000 */
	run(510000, SECOND_US);
	for (uint64_t end_us = now_us + 20 * (uint64_t)MINUTE_US; now_us < end_us;) {
		run(2600000, TICK_US);
		if (c.pick.encoding != 2)
			continue;
		cr_assert_lt(ups, 64);
		ups_us[ups++] = now_us;
		run(600000, 2 * SECOND_US);
		cr_assert_neq(c.pick.encoding, 2);
	}
	cr_expect_geq(ups, 4);
	for (unsigned i = 1; i < ups; i++) {
		uint64_t wait_us = (uint64_t)CHOICE_BACKOFF_US << (i - 1);

		if (wait_us > CHOICE_BACKOFF_MAX_US)
			wait_us = CHOICE_BACKOFF_MAX_US;
		cr_expect_geq(ups_us[i] - ups_us[i - 1], wait_us, "%u", i);
		cr_expect_leq(ups_us[i] - ups_us[i - 1], wait_us + 8 * SECOND_US, "%u", i);
	}
	run(2600000, 10 * (uint64_t)MINUTE_US);
	cr_expect_eq(c.backoff_us, CHOICE_BACKOFF_US, "what held is no failure any more");
}

Test(choice, a_failure_does_not_keep_it_from_what_is_cheaper)
{
	run(5000000, TICK_US);
	run(100000, CHOICE_FAIL_US + SECOND_US);
	run(5000000, CHOICE_UP_HOLD_US + TICK_US);
	cr_assert_eq(c.pick.encoding, 2);
	run(100000, SECOND_US);
	cr_assert(is_at(c.pick, 0, 0));
	cr_expect(is_at(run(3000000, 10 * SECOND_US), 2, 0), "1200 of the 2000 that failed");
}

Test(choice, a_link_that_shows_much_more_is_not_the_one_that_failed)
{
	run(100000, SECOND_US);
	run(2600000, CHOICE_UP_HOLD_US + TICK_US);
	cr_assert(is_at(c.pick, 2, 1));
	cr_expect_eq(choice_anew_bps(&c, now_us), 0);
	run(100000, SECOND_US);
	cr_assert(is_at(c.pick, 0, 0));
	cr_expect_eq(choice_anew_bps(&c, now_us), 3400000);
	cr_assert(is_at(run(3300000, 10 * SECOND_US), 2, 0));
	cr_expect(is_at(run(3400000, CHOICE_UP_HOLD_US + TICK_US), 2, 1));
	cr_expect_eq(choice_anew_bps(&c, now_us), 0);
}

/* --- Pause --------------------------------------------------------------------------------- */

Test(choice, video_pauses_when_nothing_fits_and_resumes_with_margin)
{
	run(200000, SECOND_US);
	cr_expect_not(run(50000, CHOICE_PAUSE_HOLD_US).is_paused, "a moment is no reason");
	cr_expect(run(50000, TICK_US).is_paused);
	cr_expect(run(100000, 20 * SECOND_US).is_paused, "90 would fit, but barely");
	cr_expect_not(run(120000, 20 * SECOND_US).is_paused);
	cr_expect_eq(c.pauses, 1);
}

Test(choice, a_pause_that_failed_to_end_takes_longer_to_try_again)
{
	run(200000, SECOND_US);
	run(50000, SECOND_US);
	run(150000, CHOICE_UP_HOLD_US + TICK_US);
	cr_assert_not(c.pick.is_paused);
	run(50000, SECOND_US);
	cr_assert(c.pick.is_paused);
	cr_expect(run(150000, CHOICE_BACKOFF_US - 2 * SECOND_US).is_paused);
	cr_expect_not(run(150000, 10 * SECOND_US).is_paused);
}

Test(choice, a_pause_outlasts_a_layer_that_stops)
{
	run(200000, SECOND_US);
	run(50000, SECOND_US);
	set_active(0, false);
	cr_expect(run(50000, SECOND_US).is_paused);
	cr_expect_eq(c.pick.encoding, 1);
	set_active(0, true);
	cr_expect(run(50000, SECOND_US).is_paused);
}

/* --- Layers that come and go ------------------------------------------------------------------ */

Test(choice, a_layer_that_stopped_is_left_at_once)
{
	run(5000000, SECOND_US);
	set_active(2, false);
	cr_expect(is_at(update(5000000), 1, 1));
	set_active(2, true);
	cr_expect(is_at(run(5000000, 5 * SECOND_US), 2, 1), "and taken up again");
}

Test(choice, missing_middle_layers_are_passed_over)
{
	set_active(1, false);
	run(5000000, SECOND_US);
	cr_expect(is_at(update(700000), 0, 1), "past the one that would fit");
	cr_expect(is_at(run(5000000, 5 * SECOND_US), 2, 1));
	set_active(0, false);
	set_active(2, false);
	cr_expect(is_at(update(5000000), 2, 1), "nothing is sent: nothing to go to");
	set_active(1, true);
	cr_expect(is_at(update(100000), 1, 0), "the lowest is gone");
}

/* --- By hand ---------------------------------------------------------------------------------- */

static void wish(int encoding, int spatial_id, int temporal_id, unsigned width, unsigned height)
{
	const struct choice_wish w = { (int8_t)encoding,
				       (int8_t)spatial_id,
				       (int8_t)temporal_id,
				       (uint16_t)width,
				       (uint16_t)height,
				       0,
				       0 };

	choice_set_wish(&c, &w);
}

Test(choice, a_wish_by_hand_is_followed_at_once_whatever_the_network_says)
{
	run(5000000, SECOND_US);
	for (unsigned i = 0; i < 50; i++) {
		unsigned encoding = i % 3, temporal_id = i / 3 % 2;

		wish((int)encoding, CHOICE_ANY, (int)temporal_id, 0, 0);
		cr_expect(is_at(update(100000), encoding, temporal_id), "%u", i);
	}
	cr_expect(is_at(run(10000, 10 * SECOND_US), 1, 0), "nor is it paused: %u.%u",
		  c.pick.encoding, c.pick.target);
}

Test(choice, what_a_wish_leaves_open_goes_by_the_network)
{
	wish(2, CHOICE_ANY, CHOICE_ANY, 0, 0);
	cr_expect(is_at(update(5000000), 2, 1));
	cr_expect(is_at(update(300000), 2, 0), "its cheapest, though it does not fit");
	cr_expect(is_at(run(5000000, 5 * SECOND_US), 2, 1));
}

Test(choice, where_the_wish_is_not_sent_it_is_the_nearest_below)
{
	wish(1, CHOICE_ANY, 1, 0, 0);
	set_active(1, false);
	cr_expect(is_at(update(5000000), 0, 1));
	set_active(0, false);
	cr_expect(is_at(update(5000000), 2, 0), "or above");
	set_active(1, true);
	cr_expect(is_at(update(5000000), 1, 1), "and itself as soon as it is there");
}

Test(choice, layers_are_no_more_than_wished)
{
	struct choice_wish w = { CHOICE_ANY, CHOICE_ANY, CHOICE_ANY, 0, 0, 0, 1 };

	choice_set_wish(&c, &w);
	cr_expect(is_at(run(5000000, 10 * SECOND_US), 2, 0));
	w.temporal_layers = 2;
	choice_set_wish(&c, &w);
	cr_expect(is_at(update(5000000), 2, 1));
	w.spatial_layers = 1;
	choice_set_wish(&c, &w);
	cr_expect(is_at(update(5000000), 2, 1), "there is but one");
}

Test(choice, a_picture_is_no_larger_than_wished)
{
	wish(CHOICE_ANY, CHOICE_ANY, CHOICE_ANY, 640, 0);
	cr_expect(is_at(run(5000000, 10 * SECOND_US), 1, 1));
	wish(CHOICE_ANY, CHOICE_ANY, CHOICE_ANY, 0, 200);
	cr_expect(is_at(update(5000000), 0, 1), "a wish is followed at once");
	wish(CHOICE_ANY, CHOICE_ANY, CHOICE_ANY, 100, 100);
	cr_expect_eq(update(5000000).encoding, 0, "the smallest there is");
	wish(CHOICE_ANY, CHOICE_ANY, CHOICE_ANY, 0, 0);
	cr_expect(is_at(update(5000000), 2, 1));
}

/* --- Whatever happens -------------------------------------------------------------------------- */

/* Bitrates and estimates that wander by `pct` about their means. */
static uint32_t noisy(uint32_t mean, unsigned pct, uint64_t *random)
{
	return (uint32_t)((uint64_t)mean * (100 - pct + flow_random(random) % (2 * pct + 1)) / 100);
}

static void sort_options(void)
{
	for (unsigned i = 1; i < t.count; i++)
		for (unsigned k = i; k > 0; k--) {
			struct layer_option o = t.options[k];

			if (o.bitrate_bps >= t.options[k - 1].bitrate_bps)
				break;
			t.options[k] = t.options[k - 1];
			t.options[k - 1] = o;
		}
}

static void wander(struct layer_table *mean, unsigned pct, uint64_t *random)
{
	t = *mean;
	for (unsigned i = 0; i < t.count; i++)
		t.options[i].bitrate_bps = noisy(t.options[i].bitrate_bps, pct, random);
	sort_options();
}

Test(choice, a_steady_link_sees_at_most_one_change_a_minute)
{
	enum { MINUTES = 20 };

	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t random = seed;
		uint32_t mean_bps = 60000 + flow_random(&random) % 3000000;
		struct layer_table mean;
		uint32_t changes = 0;
		struct choice_pick before;

		setup();
		mean = t;
		before = update(mean_bps);
		for (uint64_t end_us = now_us + MINUTES * (uint64_t)MINUTE_US; now_us < end_us;
		     now_us += TICK_US) {
			struct choice_pick pick;

			if (now_us % SECOND_US == 0)
				wander(&mean, 8, &random);
			pick = update(noisy(mean_bps, 10, &random));
			changes += memcmp(&pick, &before, sizeof(pick)) != 0;
			before = pick;
		}
		cr_expect_leq(changes, MINUTES, "seed %lu, %u bit/s: %u", seed, mean_bps, changes);
	}
}

/* A link whose estimate goes above its capacity as long as it is not filled, and collapses when it
 * is: what estimators do. */
Test(choice, a_link_that_can_only_be_known_by_trying_sees_few_changes)
{
	enum { MINUTES = 20 };

	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t random = seed;
		uint32_t capacity_bps = 100000 + flow_random(&random) % 2500000;
		uint32_t estimate_bps = capacity_bps;

		setup();
		for (uint64_t end_us = now_us + MINUTES * (uint64_t)MINUTE_US; now_us < end_us;
		     now_us += TICK_US) {
			struct choice_pick pick = update(estimate_bps);
			const struct layer_option *o =
			    layer_table_find(&t, pick.encoding, pick.target);

			if (!pick.is_paused && o->bitrate_bps > capacity_bps)
				estimate_bps = capacity_bps / 100 * 80;
			else if (estimate_bps < capacity_bps / 2 * 3)
				estimate_bps += estimate_bps / 50;
		}
		cr_expect_leq(c.ups + c.downs + c.pauses, MINUTES,
			      "seed %lu, %u bit/s: %u up, %u down", seed, capacity_bps, c.ups,
			      c.downs);
		cr_expect_not(c.pick.is_paused && capacity_bps > 150000);
	}
}

Test(choice, on_any_link_it_never_stays_on_what_does_not_fit_or_is_not_sent)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint64_t random = seed, last_up_us = 0;
		uint32_t video_bps = 1000000, ups = 0;
		struct layer_table mean;

		setup();
		mean = t;
		for (unsigned i = 0; i < 3000; i++, now_us += TICK_US) {
			const struct layer_option *o;
			struct choice_pick pick;

			if (flow_random(&random) % 50 == 0)
				mean.options[flow_random(&random) % mean.count].is_active =
				    flow_random(&random) % 3 > 0;
			wander(&mean, 10, &random);
			video_bps = noisy(video_bps, 15, &random);
			video_bps = video_bps < 20000     ? 20000
				    : video_bps > 4000000 ? 4000000
							  : video_bps;
			pick = update(video_bps);
			o = layer_table_find(&t, pick.encoding, pick.target);
			cr_assert(o);
			if (!o->is_active)
				for (unsigned k = 0; k < t.count; k++)
					cr_assert_not(t.options[k].is_active, "there was another");
			for (unsigned k = 0; k < t.count && !pick.is_paused && o->is_active; k++)
				if (t.options[k].is_active && &t.options[k] != o &&
				    t.options[k].bitrate_bps < o->bitrate_bps)
					cr_assert_leq((uint64_t)o->bitrate_bps * 95 / 100,
						      video_bps);
			if (c.ups > ups)
				cr_assert_geq(now_us - last_up_us, CHOICE_UP_HOLD_US);
			if (c.ups > ups)
				last_up_us = now_us;
			ups = c.ups;
			cr_assert_gt(choice_due_us(&c), now_us, "never due in the past");
		}
	}
}

/* However the link swings, it does not swing with it for long. */
Test(choice, after_some_downs_it_goes_up_once_a_minute)
{
	enum { MINUTES = 10 };

	for (uint64_t end_us = now_us + MINUTES * (uint64_t)MINUTE_US; now_us < end_us;) {
		run(5000000, 15 * SECOND_US);
		run(600000, SECOND_US);
	}
	cr_expect_geq(c.downs, MINUTES);
	cr_expect_leq(c.downs, CHOICE_DOWN_BURST + 1 + MINUTES, "%u", c.downs);
}

Test(choice, climbing_by_small_steps_is_free)
{
	t.count = 0;
	for (unsigned i = 0; i < 12; i++)
		add(i / 4, i % 4, 100000 + i * 100000);
	run(100000, SECOND_US);
	for (unsigned i = 1; i < 12; i++)
		cr_expect(is_at(run((100000 + i * 100000) * 5 / 4, 4 * SECOND_US), i / 4, i % 4),
			  "%u: %u.%u", i, c.pick.encoding, c.pick.target);
}

Test(choice, its_due_time_is_all_it_needs)
{
	/* Called only when due, it does what it does when called all the time. */
	run(510000, SECOND_US);
	update(5000000);
	while (choice_due_us(&c) != UINT64_MAX) {
		now_us = choice_due_us(&c);
		update(5000000);
	}
	cr_expect(is_at(c.pick, 2, 1));
	now_us += MINUTE_US; /* later than an attempt fails */
	update(20000);
	update(20000);
	now_us = choice_due_us(&c);
	cr_expect(update(20000).is_paused);
	cr_expect_eq(choice_due_us(&c), UINT64_MAX);
}
