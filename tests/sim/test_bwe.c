#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/sim/kit_path.h"

TestSuite(bwe, .timeout = 60);

enum { S = 1000000, HALF_RTT_US = 20000, QUEUE_BYTES = 75000 };

static const struct sim_step clean[] = { { 0, { .delay_us = HALF_RTT_US } } };

static struct sim_path_config config_of(const struct sim_step *steps, size_t n, uint64_t end_us)
{
	return (struct sim_path_config){
		.forward = steps,
		.forward_steps = n,
		.back = clean,
		.back_steps = 1,
		.seed = 1,
		.end_us = end_us,
	};
}

static void print(const char *name, const struct sim_path_result *r, uint64_t from_us,
		  uint64_t to_us)
{
	printf("%s, %lu to %lu s: use %.0f %%, delay p95 %u ms, loss of the run %.2f %%, %lu "
	       "decreases, %lu of %lu probes\n",
	       name, from_us / S, to_us / S, sim_path_use(r, from_us, to_us),
	       sim_path_delay_us(r, from_us, to_us, 95) / 1000, sim_path_loss(r), r->bwe.decreases,
	       r->bwe.probes_measured, r->bwe.probes);
}

Test(bwe, follows_steps_of_the_capacity)
{
	static const struct sim_step steps[] = {
		{ 0, { .delay_us = HALF_RTT_US, .rate_kbps = 2000, .queue_bytes = QUEUE_BYTES } },
		{ 40 * S,
		  { .delay_us = HALF_RTT_US, .rate_kbps = 500, .queue_bytes = QUEUE_BYTES } },
		{ 80 * S,
		  { .delay_us = HALF_RTT_US, .rate_kbps = 2000, .queue_bytes = QUEUE_BYTES } },
	};
	for (uint32_t keyframes = 0; keyframes <= 300; keyframes += 150) {
		struct sim_path_config c = config_of(steps, 3, 120 * S);
		const struct sim_path_result *r;

		c.keyframe_every_frames = keyframes;
		r = sim_path_run(&c);
		print("2 Mbit/s", r, 10 * S, 40 * S);
		print("then 500 kbit/s", r, 50 * S, 80 * S);
		print("then 2 Mbit/s", r, 95 * S, 120 * S);
		if (keyframes == 300)
			sim_path_plot(r, "capacity_steps", "2 Mbit/s, 500 kbit/s, 2 Mbit/s");
		cr_expect_geq(sim_path_use(r, 10 * S, 40 * S), 80);
		cr_expect_geq(sim_path_use(r, 50 * S, 80 * S), 80);
		cr_expect_geq(sim_path_use(r, 95 * S, 120 * S), 80);
		cr_expect_lt(sim_path_loss(r), 1);
		cr_expect_lt(sim_path_delay_us(r, 0, 40 * S, 95), 300000);
		cr_expect_lt(sim_path_delay_us(r, 43 * S, 80 * S, 95), 300000);
		cr_expect_lt(sim_path_delay_us(r, 80 * S, 120 * S, 95), 300000);
	}
}

/* What a link does besides being narrow. */
static const struct {
	const char *name;
	struct impair_profile profile;
	double use_min;
	uint32_t delay_max_ms;
} links[] = {
	{ "clean", { 0 }, 80, 150 },
	{ "5 % loss", { .loss_ppm = 50000 }, 75, 150 },
	{ "5 % loss in bursts", { .loss_ppm = 50000, .burst_pkts = 5 }, 65, 150 },
	{ "20 ms jitter", { .jitter_us = 20000 }, 80, 300 },
	{ "60 ms jitter", { .jitter_us = 60000 }, 75, 500 },
	{ "2 % reordered", { .reorder_ppm = 20000 }, 80, 150 },
	{ "5 % duplicates", { .dup_ppm = 50000 }, 80, 150 },
	{ "300 ms of round trip", { .delay_us = 130000 }, 75, 150 },
	{ "5 % loss, 20 ms jitter", { .loss_ppm = 50000, .jitter_us = 20000 }, 75, 300 },
	{ "a queue of five packets", { .queue_bytes = 6000 }, 75, 100 },
};

Test(bwe, nothing_a_link_does_collapses_the_estimate)
{
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct sim_step step = { 0, links[i].profile };
		struct sim_path_config c = config_of(&step, 1, 60 * S);
		const struct sim_path_result *r;

		step.profile.delay_us += HALF_RTT_US;
		step.profile.rate_kbps = 1000;
		if (step.profile.queue_bytes == 0)
			step.profile.queue_bytes = QUEUE_BYTES;
		r = sim_path_run(&c);
		print(links[i].name, r, 15 * S, 60 * S);
		cr_expect_geq(sim_path_use(r, 15 * S, 60 * S), links[i].use_min, "%s",
			      links[i].name);
		cr_expect_lt(sim_path_delay_us(r, 15 * S, 60 * S, 95), links[i].delay_max_ms * 1000,
			     "%s", links[i].name);
	}
}

static struct sim_path_config layered(const struct sim_step *steps, size_t n, uint64_t end_us)
{
	struct sim_path_config c = config_of(steps, n, end_us);

	c.layers = 3;
	c.layers_bps[0] = 150000;
	c.layers_bps[1] = 500000;
	c.layers_bps[2] = 1500000;
	c.keyframe_every_frames = 300;
	return c;
}

Test(bwe, a_limited_viewer_settles_on_a_layer_that_fits_and_climbs)
{
	static const struct sim_step steps[] = {
		{ 0, { .delay_us = HALF_RTT_US, .rate_kbps = 400, .queue_bytes = QUEUE_BYTES } },
		{ 40 * S, { .delay_us = HALF_RTT_US } },
	};
	static const uint32_t starts_bps[] = { 100000, 300000, 1000000 };

	for (size_t i = 0; i < sizeof(starts_bps) / sizeof(starts_bps[0]); i++) {
		struct sim_path_config c = layered(steps, 2, 60 * S);
		const struct sim_path_result *r;
		uint64_t settled_us, climbed_us;

		c.start_bps = starts_bps[i];
		r = sim_path_run(&c);
		settled_us = sim_path_settled_us(r, 1, 0, 40 * S);
		climbed_us = sim_path_settled_us(r, 3, 40 * S, 60 * S);
		printf("400 kbit/s from %u: settled after %.1f s, delay p95 %u ms, climbed after "
		       "%.1f s, %u switches\n",
		       starts_bps[i], (double)settled_us / S,
		       sim_path_delay_us(r, 0, 40 * S, 95) / 1000,
		       (double)(climbed_us - 40 * S) / S, r->switches);
		if (i == 2)
			sim_path_plot(r, "limited_viewer",
				      "Layers of 150, 500 and 1,500 kbit/s behind 400 kbit/s, "
				      "then behind no limit");
		cr_expect_lt(settled_us, 5 * S);
		cr_expect_lt(climbed_us, 55 * S);
		cr_expect_lt(sim_path_delay_us(r, 0, 40 * S, 95), 300000);
	}
}

Test(bwe, a_good_link_that_turns_bad_is_left_within_two_seconds)
{
	static const struct sim_step steps[] = {
		{ 0, { .delay_us = HALF_RTT_US, .rate_kbps = 20000, .queue_bytes = 500000 } },
		{ 20 * S,
		  { .delay_us = HALF_RTT_US, .rate_kbps = 400, .queue_bytes = QUEUE_BYTES } },
	};
	struct sim_path_config c = layered(steps, 2, 60 * S);
	const struct sim_path_result *r = sim_path_run(&c);

	print("20 Mbit/s, then 400 kbit/s", r, 25 * S, 60 * S);
	cr_expect_lt(sim_path_settled_us(r, 3, 0, 20 * S), 8 * S);
	cr_expect_lt(sim_path_settled_us(r, 1, 20 * S, 60 * S), 22 * S);
	cr_expect_lt(sim_path_delay_us(r, 25 * S, 60 * S, 95), 300000);
	cr_expect_lt(sim_path_loss(r), 5);
}

/* No layer but the lowest fits, or all do: whatever the estimate does, the layer stays. */
Test(bwe, a_steady_link_sees_no_switches)
{
	static const uint32_t rates_kbps[] = { 300, 400, 900, 1200, 4000 };

	for (size_t i = 0; i < sizeof(rates_kbps) / sizeof(rates_kbps[0]); i++) {
		struct sim_step step = {
			0,
			{ .delay_us = HALF_RTT_US, .queue_bytes = QUEUE_BYTES, .jitter_us = 5000 }
		};
		struct sim_path_config c = layered(&step, 1, 300 * S);
		const struct sim_path_result *r;

		step.profile.rate_kbps = rates_kbps[i];
		r = sim_path_run(&c);
		printf("%u kbit/s for five minutes: %u switches\n", rates_kbps[i], r->switches);
		cr_expect_leq(r->switches, 5, "%u kbit/s", rates_kbps[i]);
		cr_expect_lt(sim_path_delay_us(r, 0, 300 * S, 95), 300000);
	}
}

Test(bwe, a_peer_that_sends_no_feedback_still_gets_what_fits)
{
	static const struct sim_step steps[] = {
		{ 0, { .delay_us = HALF_RTT_US, .rate_kbps = 1000, .queue_bytes = QUEUE_BYTES } },
	};
	static const char *const names[] = {
		[SIM_PEER_REMB] = "REMB only", [SIM_PEER_REPORTS] = "reports only"
	};

	for (enum sim_peer peer = SIM_PEER_REMB; peer <= SIM_PEER_REPORTS; peer++) {
		struct sim_path_config c = layered(steps, 1, 60 * S);
		const struct sim_path_result *r;

		c.peer = peer;
		r = sim_path_run(&c);
		print(names[peer], r, 20 * S, 60 * S);
		cr_expect_eq(r->bwe.source,
			     peer == SIM_PEER_REMB ? BWE_FROM_REMB : BWE_FROM_REPORTS);
		cr_expect_gt(sim_path_use(r, 20 * S, 60 * S), 40, "%s", names[peer]);
		cr_expect_lt(sim_path_loss(r), 15, "%s", names[peer]);
	}
}

/* Feedback that came and stops: nothing gets through, so less and less is sent. */
Test(bwe, an_outage_is_survived)
{
	static const struct sim_step steps[] = {
		{ 0, { .delay_us = HALF_RTT_US, .rate_kbps = 2000, .queue_bytes = QUEUE_BYTES } },
		{ 20 * S, { .loss_ppm = IMPAIR_PPM } },
		{ 25 * S,
		  { .delay_us = HALF_RTT_US, .rate_kbps = 2000, .queue_bytes = QUEUE_BYTES } },
	};
	struct sim_path_config c = layered(steps, 3, 60 * S);
	const struct sim_path_result *r = sim_path_run(&c);

	print("five seconds of nothing", r, 40 * S, 60 * S);
	cr_expect_lt(sim_path_settled_us(r, 3, 25 * S, 60 * S), 40 * S);
	cr_expect_lt(r->samples[249].target_bps, r->samples[199].target_bps / 2);
}
