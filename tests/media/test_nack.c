#include <criterion/criterion.h>
#include <errno.h>

#include "media/nack.h"
#include "tests/fault.h"
#include "tests/media/flow.h"

enum { RTT_US = 50000, REORDER_US = 10000, MAX_AGE_US = 1000000, MAX_MISSING = 64 };

static struct nack *n;

static void create(uint32_t reorder_us, uint16_t max_missing)
{
	struct nack_config config = { RTT_US, reorder_us, MAX_AGE_US, max_missing };

	cr_assert_eq(nack_create(&n, &config), 0);
}

static void setup(void)
{
	create(REORDER_US, MAX_MISSING);
}

static void teardown(void)
{
	nack_destroy(n);
}

TestSuite(nack, .init = setup, .fini = teardown, .timeout = 10);

static struct nack_stats stats_of(void)
{
	struct nack_stats stats;

	nack_stats(n, &stats);
	return stats;
}

Test(nack, refuses_a_configuration_out_of_range)
{
	static const struct nack_config bad[] = {
		{ 0, 0, 1, 1 }, { 1, 0, 0, 1 },          { 1, 0, 1, 0 },
		{ 1, 2, 1, 1 }, { 1, 0, UINT32_MAX, 1 }, { 1, 0, 1, NACK_WINDOW_PKTS + 1 },
	};
	struct nack *other;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(nack_create(&other, &bad[i]), -EINVAL, "row %zu", i);
	fault_after(0);
	cr_expect_eq(nack_create(&other, &(struct nack_config){ 1, 0, 1, 1 }), -ENOMEM);
	fault_after(-1);
	cr_expect_null(other);
}

Test(nack, asks_only_when_reordering_is_ruled_out)
{
	uint16_t seqs[4];

	nack_on_packet(n, 10, 0);
	nack_on_packet(n, 12, 0);
	cr_expect_eq(nack_deadline_us(n), REORDER_US);
	cr_expect_eq(nack_poll(n, REORDER_US - 1, seqs, 4), 0, "one microsecond early");
	cr_assert_eq(nack_poll(n, REORDER_US, seqs, 4), 1);
	cr_expect_eq(seqs[0], 11);
}

Test(nack, asks_at_once_for_what_many_packets_have_overtaken)
{
	uint16_t seqs[4];

	nack_on_packet(n, 65530, 0);
	for (uint16_t i = 0; i < NACK_REORDER_PKTS; i++) {
		cr_expect_eq(nack_poll(n, 0, seqs, 4), 0, "after %u", i);
		nack_on_packet(n, (uint16_t)(65532 + i), 0);
	}
	cr_assert_eq(nack_poll(n, 0, seqs, 4), 1);
	cr_expect_eq(seqs[0], 65531);
}

Test(nack, asks_again_only_after_one_round_trip)
{
	uint64_t asked_us = REORDER_US;
	uint16_t seqs[4];

	nack_on_packet(n, 10, 0);
	nack_on_packet(n, 12, 0);
	cr_assert_eq(nack_poll(n, asked_us, seqs, 4), 1);
	cr_expect_eq(nack_deadline_us(n), asked_us + RTT_US);
	cr_expect_eq(nack_poll(n, asked_us + RTT_US - 1, seqs, 4), 0);
	cr_expect_eq(nack_poll(n, asked_us + RTT_US, seqs, 4), 1);
	cr_expect_eq(stats_of().requested, 1);
	cr_expect_eq(stats_of().repeated, 1);
}

static const struct {
	uint32_t rtt_us, want_us;
} spacings[] = {
	{ 1, NACK_MIN_RETRY_US },
	{ NACK_MIN_RETRY_US, NACK_MIN_RETRY_US },
	{ 70000, 70000 },
	{ NACK_MAX_RETRY_US + 1, NACK_MAX_RETRY_US },
	{ UINT32_MAX, NACK_MAX_RETRY_US },
};

Test(nack, spaces_its_requests_within_bounds)
{
	for (size_t i = 0; i < sizeof(spacings) / sizeof(spacings[0]); i++) {
		uint16_t seqs[4];

		teardown();
		setup();
		nack_set_rtt(n, spacings[i].rtt_us, 0);
		nack_on_packet(n, 10, 0);
		nack_on_packet(n, 12, 0);
		nack_poll(n, REORDER_US, seqs, 4);
		cr_expect_eq(nack_deadline_us(n) - REORDER_US, spacings[i].want_us, "rtt %u",
			     spacings[i].rtt_us);
	}
}

Test(nack, a_reordered_arrival_is_never_asked_for)
{
	uint16_t seqs[4];

	nack_on_packet(n, 10, 0);
	nack_on_packet(n, 12, 0);
	nack_on_packet(n, 11, 5);
	cr_expect_eq(nack_deadline_us(n), UINT64_MAX);
	cr_expect_eq(nack_poll(n, 10 * REORDER_US, seqs, 4), 0);
	cr_expect_eq(stats_of().reordered, 1);
	cr_expect_eq(stats_of().recovered, 0);
}

Test(nack, a_repaired_packet_counts_as_recovered_once)
{
	uint16_t seqs[4];

	nack_on_packet(n, 10, 0);
	nack_on_packet(n, 12, 0);
	nack_poll(n, REORDER_US, seqs, 4);
	nack_on_packet(n, 11, REORDER_US + 100);
	nack_on_packet(n, 11, REORDER_US + 200);
	cr_expect_eq(nack_poll(n, REORDER_US + RTT_US, seqs, 4), 0);
	cr_expect_eq(stats_of().recovered, 1);
	cr_expect_eq(nack_missing(n), 0);
}

Test(nack, gives_up_after_max_tries)
{
	uint64_t now_us = REORDER_US;
	uint16_t seqs[4];

	nack_on_packet(n, 10, 0);
	nack_on_packet(n, 12, 0);
	for (int try = 0; try < NACK_MAX_TRIES; try++, now_us += RTT_US)
		cr_assert_eq(nack_poll(n, now_us, seqs, 4), 1, "try %d", try);
	cr_expect_eq(nack_poll(n, now_us, seqs, 4), 0);
	cr_expect_eq(nack_deadline_us(n), UINT64_MAX);
	cr_expect_eq(stats_of().given_up, 1);
}

Test(nack, a_new_round_trip_holds_for_what_was_asked_already)
{
	uint16_t seqs[4];

	nack_on_packet(n, 10, 0);
	nack_on_packet(n, 12, 0);
	cr_assert_eq(nack_poll(n, REORDER_US, seqs, 4), 1);
	nack_set_rtt(n, 2 * RTT_US, REORDER_US + 1);
	cr_expect_eq(nack_deadline_us(n), REORDER_US + 2 * RTT_US);
	cr_expect_eq(nack_poll(n, REORDER_US + 2 * RTT_US - 1, seqs, 4), 0);
	nack_set_rtt(n, RTT_US / 2, REORDER_US + 2 * RTT_US - 1);
	cr_expect_eq(nack_poll(n, REORDER_US + 2 * RTT_US - 1, seqs, 4), 1, "overdue now");
}

Test(nack, the_answer_to_a_single_request_tells_how_long_it_took)
{
	uint16_t seqs[4];

	nack_on_packet(n, 10, 0);
	nack_on_packet(n, 14, 0);
	cr_expect_eq(nack_answer_us(n), 0);
	nack_on_packet(n, 11, 5000);
	cr_expect_eq(nack_answer_us(n), 0, "was not asked for");
	cr_assert_eq(nack_poll(n, REORDER_US, seqs, 4), 2);
	nack_on_packet(n, 12, REORDER_US + 30000);
	cr_expect_eq(nack_answer_us(n), 30000);
	nack_on_packet(n, 15, REORDER_US + 30000);
	cr_expect_eq(nack_answer_us(n), 0, "is another packet");
	cr_assert_eq(nack_poll(n, REORDER_US + RTT_US, seqs, 4), 1);
	nack_on_packet(n, 13, REORDER_US + RTT_US + 1000);
	cr_expect_eq(nack_answer_us(n), 0, "which request was it?");
}

Test(nack, gives_up_what_comes_too_late_to_be_of_use)
{
	uint16_t seqs[4];

	nack_set_rtt(n, NACK_MAX_RETRY_US, 0);
	nack_on_packet(n, 10, 0);
	nack_on_packet(n, 12, 0);
	cr_expect_eq(nack_poll(n, MAX_AGE_US + 1, seqs, 4), 0);
	cr_expect_eq(stats_of().given_up, 1);
	cr_expect_eq(stats_of().requested, 0);
}

Test(nack, a_small_array_gets_the_oldest_and_the_rest_next)
{
	uint16_t seqs[4];

	nack_on_packet(n, 65533, 0);
	nack_on_packet(n, 4, 0);
	cr_assert_eq(nack_poll(n, REORDER_US, seqs, 4), 4);
	cr_expect_arr_eq(seqs, ((uint16_t[]){ 65534, 65535, 0, 1 }), sizeof(seqs));
	cr_expect_eq(nack_deadline_us(n), REORDER_US, "more is due now");
	cr_assert_eq(nack_poll(n, REORDER_US, seqs, 4), 2);
	cr_expect_eq(seqs[0], 2);
	cr_expect_eq(seqs[1], 3);
}

Test(nack, the_oldest_make_room_when_too_many_are_missing)
{
	uint16_t seqs[MAX_MISSING + 1];

	nack_on_packet(n, 0, 0);
	nack_on_packet(n, 11, 0);
	nack_on_packet(n, 11 + MAX_MISSING, 0);
	cr_expect_eq(nack_missing(n), MAX_MISSING);
	cr_assert_eq(nack_poll(n, REORDER_US, seqs, MAX_MISSING + 1), MAX_MISSING);
	cr_expect_eq(seqs[0], 10, "1 to 9 were given up for 12 to %d", 10 + MAX_MISSING);
	cr_expect_eq(stats_of().given_up, 9);
	nack_on_packet(n, (uint16_t)(12 + 3 * MAX_MISSING), REORDER_US);
	cr_expect_eq(nack_missing(n), MAX_MISSING);
}

static const struct {
	const char *name;
	uint16_t step; /* second packet minus first, modulo 2^16 */
	int want;
} gaps[] = {
	{ "next in order", 1, 0 },
	{ "one lost", 2, 1 },
	{ "duplicate", 0, 0 },
	{ "reordered", (uint16_t)-1, 0 },
	{ "largest gap kept", NACK_WINDOW_PKTS, NACK_WINDOW_PKTS - 1 },
	{ "jump past the window", NACK_WINDOW_PKTS + 1, -ERANGE },
};

Test(nack, reports_how_many_are_newly_missing)
{
	for (size_t s = 0; s < FLOW_STARTS; s++) {
		for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
			int got;

			teardown();
			create(REORDER_US, NACK_WINDOW_PKTS);
			nack_on_packet(n, flow_starts[s], 0);
			got = nack_on_packet(n, (uint16_t)(flow_starts[s] + gaps[i].step), 0);
			cr_expect_eq(got, gaps[i].want, "%s from %u: got %d", gaps[i].name,
				     flow_starts[s], got);
			cr_expect_eq(nack_missing(n), (size_t)(got > 0 ? got : 0));
		}
	}
}

/* Every request is for a number truly missing, never sooner than the rules allow; at the end
 * each missing number was recovered, reordered or given up. */
Test(nack, random_loss_keeps_the_rules, .timeout = 30)
{
	enum { STEPS = 100000 };
	static uint64_t asked_us[STEPS];
	static bool is_here[STEPS];
	uint64_t random = 3, now_us = 0;
	uint16_t seqs[16];
	struct nack_stats stats;

	is_here[0] = true;
	nack_on_packet(n, 60000, 0);
	for (uint32_t i = 1; i < STEPS; i++, now_us += 1000) {
		uint32_t at =
		    flow_random(&random) % 10 == 0 && i > 50 ? i - flow_random(&random) % 50 : i;
		size_t count;

		if (flow_random(&random) % 10 != 0) {
			is_here[at] = true;
			nack_on_packet(n, (uint16_t)(60000 + at), now_us);
		}
		count = nack_poll(n, now_us, seqs, 16);
		for (size_t k = 0; k < count; k++) {
			uint32_t number = i - (uint16_t)(60000 + i - seqs[k]);

			cr_assert_not(is_here[number], "asked for %u, which arrived", number);
			cr_assert(asked_us[number] == 0 || now_us - asked_us[number] >= RTT_US);
			asked_us[number] = now_us;
		}
		cr_assert(count == 16 || nack_deadline_us(n) > now_us);
	}
	nack_stats(n, &stats);
	cr_expect_eq(stats.missing,
		     stats.recovered + stats.reordered + stats.given_up + nack_missing(n));
	cr_expect_gt(stats.recovered, 100);
	cr_expect_gt(stats.reordered, 100);
}

/* One packet in each round is missing; @return how long after the next one it is asked for. */
static uint64_t wait_us(uint16_t *seq, uint64_t *now_us)
{
	uint16_t seqs[4];
	uint64_t from_us = *now_us;

	nack_on_packet(n, *seq, from_us);
	nack_on_packet(n, (uint16_t)(*seq + 2), from_us);
	*now_us = nack_deadline_us(n);
	cr_assert_eq(nack_poll(n, *now_us, seqs, 4), 1);
	*seq = (uint16_t)(*seq + 2);
	return *now_us - from_us;
}

Test(nack, waits_as_long_as_reordering_takes_here)
{
	uint64_t now_us = 0, waited_us = REORDER_US;
	uint16_t seq = 65500;

	/* Nothing ever comes by itself: waiting is in vain. */
	for (unsigned i = 0; i < 40; i++) {
		uint64_t us = wait_us(&seq, &now_us);

		cr_expect_leq(us, waited_us);
		waited_us = us;
		now_us += RTT_US - 1000;
		nack_on_packet(n, (uint16_t)(seq - 1), now_us);
	}
	cr_expect_eq(waited_us, NACK_REORDER_MIN_US);
	/* It came by itself after all, since no repair is that quick. */
	(void)wait_us(&seq, &now_us);
	now_us += 5000;
	nack_on_packet(n, (uint16_t)(seq - 1), now_us);
	waited_us = wait_us(&seq, &now_us);
	cr_expect_geq(waited_us, 6000);
	cr_expect_leq(waited_us, 9000);
	nack_on_packet(n, (uint16_t)(seq - 1), now_us + RTT_US);
	/* Never longer than configured. */
	nack_on_packet(n, (uint16_t)(seq + 2), now_us);
	nack_on_packet(n, (uint16_t)(seq + 1), now_us + 3 * REORDER_US);
	seq = (uint16_t)(seq + 2);
	now_us += 3 * REORDER_US;
	cr_expect_eq(wait_us(&seq, &now_us), REORDER_US);
}
