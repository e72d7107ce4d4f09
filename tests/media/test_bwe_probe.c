#include <criterion/criterion.h>

#include "media/bwe_probe.h"

TestSuite(bwe_probe, .timeout = 10);

enum { S = 1000000, START_US = 5 * S, MAX_PKTS = 400 };

static struct bwe_probe p;

struct packet {
	uint64_t at_us;
	uint32_t bytes;
};
static struct packet sent[MAX_PKTS];
static size_t count;

static void send_all(double rate_bps, uint32_t most_bytes)
{
	uint32_t due;

	count = 0;
	bwe_probe_begin(&p, rate_bps, START_US);
	for (uint64_t now_us = START_US; p.state == BWE_PROBE_SENDING; now_us += BWE_PROBE_TICK_US)
		while ((due = bwe_probe_due_bytes(&p, now_us)) > 0) {
			uint32_t bytes = due < most_bytes ? due : most_bytes;

			cr_assert_lt(count, MAX_PKTS);
			cr_assert_eq(bwe_probe_on_sent(&p, bytes, now_us), p.id);
			sent[count++] = (struct packet){ now_us, bytes };
		}
}

/* Through a link of that rate, every nth lost (0: none). @return what was measured, 0: nothing */
static double arrive(double link_bps, size_t lost_every)
{
	double free_us = START_US;
	double bps = 0;

	for (size_t i = 0; i < count; i++) {
		if ((double)sent[i].at_us > free_us)
			free_us = (double)sent[i].at_us;
		free_us += sent[i].bytes * 8e6 / link_bps;
		if (lost_every && i % lost_every == 0)
			continue;
		bwe_probe_on_arrival(&p, p.id, sent[i].bytes, (int64_t)free_us + 77 * S);
	}
	if (bwe_probe_poll(&p, START_US + S, &bps) == BWE_PROBE_MEASURED)
		return bps;
	return 0;
}

Test(bwe_probe, what_passes_freely_has_the_rate_of_the_probe)
{
	static const double rates_bps[] = { 100e3, 300e3, 900e3, 3e6, 10e6 };

	for (size_t i = 0; i < sizeof(rates_bps) / sizeof(rates_bps[0]); i++) {
		double got;

		send_all(rates_bps[i], 1200);
		cr_expect_geq(count, BWE_PROBE_MIN_PKTS);
		got = arrive(100e6, 0);
		cr_expect(got > 0.85 * rates_bps[i] && got < 1.3 * rates_bps[i], "%f of %f", got,
			  rates_bps[i]);
	}
}

Test(bwe_probe, a_full_link_shows_its_own_rate)
{
	double got;

	send_all(3e6, 1200);
	got = arrive(1e6, 0);
	cr_expect(got > 0.85e6 && got < 1.05e6, "%f", got);
}

Test(bwe_probe, is_short)
{
	send_all(2e6, 1200);
	cr_expect_leq(sent[count - 1].at_us, START_US + BWE_PROBE_US);
	cr_expect_leq(p.sent_bytes, 10000);
}

Test(bwe_probe, fails_when_too_little_arrives)
{
	double bps;

	send_all(3e6, 1200);
	cr_expect_eq(arrive(100e6, 2), 0);
	cr_expect_eq(p.state, BWE_PROBE_WAITING);
	cr_expect_eq(bwe_probe_poll(&p, START_US + 2 * BWE_PROBE_TIMEOUT_US, &bps),
		     BWE_PROBE_FAILED);
	cr_expect_eq(p.state, BWE_PROBE_IDLE);
	cr_expect_eq(bwe_probe_poll(&p, START_US + 3 * BWE_PROBE_TIMEOUT_US, &bps),
		     BWE_PROBE_PENDING);
}

Test(bwe_probe, ends_when_nobody_sends_it)
{
	double bps;

	bwe_probe_begin(&p, 1e6, START_US);
	cr_expect_eq(bwe_probe_poll(&p, START_US + BWE_PROBE_TIMEOUT_US - 1, &bps),
		     BWE_PROBE_PENDING);
	cr_expect_eq(bwe_probe_poll(&p, START_US + BWE_PROBE_TIMEOUT_US, &bps), BWE_PROBE_FAILED);
}

Test(bwe_probe, arrivals_of_earlier_probes_do_not_count)
{
	uint8_t before;

	send_all(1e6, 1200);
	before = p.id;
	cr_expect_gt(arrive(100e6, 0), 0);
	send_all(1e6, 1200);
	cr_expect_neq(p.id, before);
	bwe_probe_on_arrival(&p, before, 1000, START_US);
	cr_expect_eq(p.got_pkts, 0);
	/* Numbers come again after 255 probes, never 0. */
	for (int i = 0; i < 300; i++) {
		cr_assert_gt(arrive(100e6, 0), 0);
		send_all(1e6, 1200);
		cr_assert_neq(p.id, 0);
	}
}

Test(bwe_probe, arrivals_at_one_instant_tell_nothing)
{
	double bps = 1;

	send_all(1e6, 1200);
	for (size_t i = 0; i < count; i++)
		bwe_probe_on_arrival(&p, p.id, sent[i].bytes, START_US);
	cr_expect_eq(bwe_probe_poll(&p, START_US + S, &bps), BWE_PROBE_FAILED);
}
