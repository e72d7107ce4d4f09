#include <criterion/criterion.h>
#include <string.h>

#include "tests/sim/kit_link.h"

TestSuite(link, .timeout = 10);

Test(link, delivers_after_its_delay_and_not_before)
{
	static const struct sim_step steps[] = { { 0, { .delay_us = 20000 } } };
	struct sim_link *l = sim_link_create(steps, 1, 1);
	struct sim_datagram d;

	cr_expect_eq(sim_link_deadline_us(l), UINT64_MAX);
	cr_expect_eq(sim_link_send(l, 1000, "hello", 5), IMPAIR_PASSED);
	cr_expect_eq(sim_link_deadline_us(l), 21000);
	cr_expect_not(sim_link_receive(l, 20999, &d));
	cr_assert(sim_link_receive(l, 21000, &d));
	cr_expect_eq(d.sent_us, 1000);
	cr_expect(d.len == 5 && memcmp(d.bytes, "hello", 5) == 0);
	sim_link_destroy(l);
}

Test(link, copies_arrive_twice_and_flipped_bits_are_flipped)
{
	static const struct sim_step steps[] = {
		{ 0, { .dup_ppm = IMPAIR_PPM, .corrupt_ppm = IMPAIR_PPM } }
	};
	struct sim_link *l = sim_link_create(steps, 1, 1);
	struct sim_datagram first, second;
	int bits = 0;

	sim_link_send(l, 0, "hello", 5);
	cr_assert(sim_link_receive(l, 0, &first) && sim_link_receive(l, 0, &second));
	cr_expect_eq(memcmp(first.bytes, second.bytes, 5), 0);
	for (int i = 0; i < 40; i++)
		bits += (first.bytes[i / 8] ^ "hello"[i / 8]) >> i % 8 & 1;
	cr_expect_eq(bits, 1);
	cr_expect_eq(sim_link_stats(l)->delivered, 2);
	sim_link_destroy(l);
}

/* 2,000 kbit/s offered for ten seconds to each rate: what comes out is the rate. */
Test(link, capacity_follows_its_steps)
{
	static const struct sim_step steps[] = {
		{ 0, { .rate_kbps = 1000, .queue_bytes = 20000 } },
		{ 10000000, { .rate_kbps = 400, .queue_bytes = 20000 } },
		{ 20000000, { .rate_kbps = 4000, .queue_bytes = 20000 } },
	};
	static const uint64_t want_kbps[] = { 1000, 400, 2000 };
	struct sim_link *l = sim_link_create(steps, 3, 1);
	uint8_t bytes[1000] = { 0 };
	uint64_t before = 0;
	struct sim_datagram d;

	for (uint64_t now_us = 0; now_us < 30000000; now_us += 4000) {
		size_t step = now_us / 10000000;

		cr_assert_eq(sim_link_profile(l, now_us), &steps[step].profile);
		sim_link_send(l, now_us, bytes, sizeof(bytes));
		while (sim_link_receive(l, now_us, &d))
			cr_assert_leq(now_us - d.sent_us, 430000, "a queue of 20 KB at 400 kbit/s");
		if (now_us % 10000000 == 9996000) {
			uint64_t kbps =
			    (sim_link_stats(l)->delivered_bytes - before) * 8 / 10 / 1000;

			before = sim_link_stats(l)->delivered_bytes;
			cr_expect(kbps * 20 > want_kbps[step] * 18 && kbps <= want_kbps[step] + 20,
				  "%lu instead of %lu kbit/s", kbps, want_kbps[step]);
		}
	}
	cr_expect_gt(sim_link_stats(l)->overflowed, 0);
	cr_expect_eq(sim_link_stats(l)->lost, 0);
	sim_link_destroy(l);
}

static uint64_t digest_of_run(uint64_t seed)
{
	static const struct sim_step steps[] = {
		{ 0,
		  { .loss_ppm = 50000, .burst_pkts = 4, .jitter_us = 30000, .reorder_ppm = 20000 } }
	};
	struct sim_link *l = sim_link_create(steps, 1, seed);
	uint64_t digest = 0;
	struct sim_datagram d;

	for (uint64_t now_us = 0; now_us < 10000000; now_us += 1000) {
		sim_link_send(l, now_us, &now_us, sizeof(now_us));
		while (sim_link_receive(l, now_us, &d))
			digest = digest * 1000003 + d.sent_us * 31 + now_us;
	}
	sim_link_destroy(l);
	return digest;
}

Test(link, the_seed_decides_all)
{
	cr_expect_eq(digest_of_run(7), digest_of_run(7));
	cr_expect_neq(digest_of_run(7), digest_of_run(8));
}
