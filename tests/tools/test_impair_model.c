#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "tests/fault.h"
#include "tests/tools/impair_model.h"

enum { MANY = 200000 };

TestSuite(impair_model, .timeout = 10);

static struct impair_profile profile_of(const char *name, const char *value)
{
	struct impair_profile p = { 0 };

	cr_assert_eq(impair_profile_set(&p, name, value), 0, "%s %s", name, value);
	return p;
}

Test(impair_model, a_perfect_network_passes_all_at_once)
{
	struct impair_profile p = { 0 };
	struct impair_flow f;

	impair_flow_init(&f, &p, 1);
	for (uint64_t i = 0; i < 1000; i++) {
		struct impair_fate fate = impair_flow_on_datagram(&f, i, 1200);

		cr_assert_eq(fate.verdict, IMPAIR_PASSED);
		cr_assert_eq(fate.due_us, i);
		cr_assert_eq(fate.flip_bit, UINT32_MAX);
		cr_assert_not(fate.is_copied || fate.is_reordered);
	}
}

Test(impair_model, understands_settings_as_people_write_them)
{
	static const struct {
		const char *name, *value;
		int want;
	} rows[] = {
		{ "loss", "5", 0 },
		{ "loss", "0.25", 0 },
		{ "loss", "100", 0 },
		{ "loss", "101", -EINVAL },
		{ "loss", "-1", -EINVAL },
		{ "loss", "", -EINVAL },
		{ "loss", "nan", -EINVAL },
		{ "loss", "5%", -EINVAL },
		{ "losses", "5", -ENOENT },
		{ "", "5", -ENOENT },
		{ "delay", "5", 0 },
		{ "delay-", "5", -ENOENT },
		{ "burst", "8", 0 },
		{ "delay-ms", "60000", 0 },
		{ "delay-ms", "60001", -EINVAL },
		{ "jitter-ms", "0.5", 0 },
		{ "rate-kbps", "400", 0 },
		{ "queue-kb", "inf", -EINVAL },
		{ "queue-kb", "64", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct impair_profile p = { 0 };
		int err = impair_profile_set(&p, rows[i].name, rows[i].value);

		cr_expect_eq(err, rows[i].want, "%s %s: %d", rows[i].name, rows[i].value, err);
	}
	cr_expect_eq(profile_of("loss", "0.25").loss_ppm, 2500);
	cr_expect_eq(profile_of("jitter-ms", "0.5").jitter_us, 500);
	cr_expect_eq(profile_of("queue-kb", "64").queue_bytes, 64000);
	cr_expect_eq(profile_of("rate-kbps", "400").rate_kbps, 400);
}

Test(impair_model, loses_the_share_asked_for_in_runs_of_the_length_asked_for)
{
	static const struct {
		uint32_t loss_ppm, burst_pkts;
	} rows[] = { { 10000, 1 }, { 50000, 0 }, { 50000, 5 }, { 200000, 10 }, { 500000, 2 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct impair_profile p = { .loss_ppm = rows[i].loss_ppm,
					    .burst_pkts = rows[i].burst_pkts };
		uint32_t lost = 0, runs = 0;
		bool was_lost = false;
		struct impair_flow f;

		impair_flow_init(&f, &p, 7);
		for (int n = 0; n < MANY; n++) {
			bool is_lost = impair_flow_on_datagram(&f, 0, 100).verdict == IMPAIR_LOST;

			lost += is_lost;
			runs += is_lost && !was_lost;
			was_lost = is_lost;
		}
		cr_expect_float_eq((double)lost / MANY, rows[i].loss_ppm / 1e6, 0.01,
				   "row %zu: %u lost", i, lost);
		if (rows[i].burst_pkts > 1)
			cr_expect_float_eq((double)lost / runs, rows[i].burst_pkts,
					   rows[i].burst_pkts * 0.1, "row %zu: %u runs", i, runs);
	}
}

Test(impair_model, loses_nothing_at_none_and_everything_at_all)
{
	for (uint32_t burst = 0; burst < 4; burst++) {
		struct impair_profile none = { .burst_pkts = burst };
		struct impair_profile all = { .burst_pkts = burst, .loss_ppm = IMPAIR_PPM };
		struct impair_flow f, g;

		impair_flow_init(&f, &none, 3);
		impair_flow_init(&g, &all, 3);
		for (int n = 0; n < 1000; n++) {
			cr_assert_eq(impair_flow_on_datagram(&f, 0, 1).verdict, IMPAIR_PASSED);
			cr_assert_eq(impair_flow_on_datagram(&g, 0, 1).verdict, IMPAIR_LOST);
		}
	}
}

Test(impair_model, jitter_delays_without_changing_the_order)
{
	struct impair_profile p = { .delay_us = 50000, .jitter_us = 20000 };
	uint64_t last_us = 0, least_us = UINT64_MAX, most_us = 0;
	struct impair_flow f;

	impair_flow_init(&f, &p, 11);
	for (uint64_t now_us = 0; now_us < 10000000; now_us += 10000) {
		uint64_t due_us = impair_flow_on_datagram(&f, now_us, 100).due_us;

		cr_assert_geq(due_us, last_us);
		last_us = due_us;
		least_us = due_us - now_us < least_us ? due_us - now_us : least_us;
		most_us = due_us - now_us > most_us ? due_us - now_us : most_us;
	}
	cr_expect_geq(least_us, 50000);
	cr_expect_leq(most_us, 70000);
	cr_expect_gt(most_us - least_us, 15000, "it does vary");
}

Test(impair_model, the_bottleneck_spaces_datagrams_by_its_rate)
{
	struct impair_profile p = { .rate_kbps = 1000, .queue_bytes = 1000000 };
	struct impair_flow f;

	impair_flow_init(&f, &p, 1);
	/* 972 + 28 bytes of headers are 8,000 bits: 8 ms each. */
	for (uint64_t i = 1; i <= 10; i++)
		cr_expect_eq(impair_flow_on_datagram(&f, 0, 972).due_us, i * 8000);
	cr_expect_eq(impair_flow_on_datagram(&f, 500000, 972).due_us, 508000, "idle before");
}

Test(impair_model, a_full_queue_drops_and_empties_with_time)
{
	struct impair_profile p = { .rate_kbps = 800, .queue_bytes = 3000 };
	int passed = 0;
	struct impair_flow f;

	impair_flow_init(&f, &p, 1);
	while (impair_flow_on_datagram(&f, 0, 972).verdict == IMPAIR_PASSED)
		passed++;
	cr_expect_eq(passed, 3, "%d passed", passed);
	/* 100 bytes a millisecond: 10 ms later there is room for one more. */
	cr_expect_eq(impair_flow_on_datagram(&f, 10000, 972).verdict, IMPAIR_PASSED);
	cr_expect_eq(impair_flow_on_datagram(&f, 10000, 972).verdict, IMPAIR_OVERFLOW);
}

Test(impair_model, an_idle_bottleneck_takes_even_what_exceeds_its_queue)
{
	struct impair_profile p = { .rate_kbps = 800 };
	struct impair_flow f;

	impair_flow_init(&f, &p, 1);
	cr_expect_eq(impair_flow_on_datagram(&f, 0, 1200).verdict, IMPAIR_PASSED);
	cr_expect_eq(impair_flow_on_datagram(&f, 0, 1200).verdict, IMPAIR_OVERFLOW);
}

Test(impair_model, copies_corrupts_and_reorders_the_share_asked_for)
{
	struct impair_profile p = { .dup_ppm = 100000, .corrupt_ppm = 50000, .reorder_ppm = 20000 };
	uint32_t copied = 0, corrupt = 0, reordered = 0;
	struct impair_flow f;

	impair_flow_init(&f, &p, 5);
	for (int n = 0; n < MANY; n++) {
		struct impair_fate fate = impair_flow_on_datagram(&f, 0, 10);

		copied += fate.is_copied;
		reordered += fate.is_reordered;
		cr_assert_eq(fate.due_us >= IMPAIR_REORDER_MIN_US, fate.is_reordered);
		if (fate.flip_bit != UINT32_MAX) {
			corrupt++;
			cr_assert_lt(fate.flip_bit, 80);
		}
	}
	cr_expect_float_eq((double)copied / MANY, 0.1, 0.005);
	cr_expect_float_eq((double)corrupt / MANY, 0.05, 0.005);
	cr_expect_float_eq((double)reordered / MANY, 0.02, 0.005);
}

Test(impair_model, the_same_seed_gives_the_same_fates)
{
	struct impair_profile p = { .loss_ppm = 100000, .jitter_us = 5000, .dup_ppm = 50000 };
	struct impair_flow a, b, other;
	int differ = 0;

	impair_flow_init(&a, &p, 42);
	impair_flow_init(&b, &p, 42);
	impair_flow_init(&other, &p, 43);
	for (uint64_t i = 0; i < 1000; i++) {
		struct impair_fate x = impair_flow_on_datagram(&a, i, 100);
		struct impair_fate y = impair_flow_on_datagram(&b, i, 100);
		struct impair_fate z = impair_flow_on_datagram(&other, i, 100);

		cr_assert(x.verdict == y.verdict && x.due_us == y.due_us &&
			  x.is_copied == y.is_copied);
		differ += x.verdict != z.verdict || x.due_us != z.due_us;
	}
	cr_expect_gt(differ, 500, "another seed, another history");
}

Test(impair_model, the_queue_gives_back_by_time_and_then_by_arrival)
{
	static const uint64_t dues_us[] = { 50, 10, 30, 10, 20, 50, 10, 40 };
	static const uint8_t want[] = { 1, 3, 6, 4, 2, 7, 0, 5 };
	enum { COUNT = sizeof(want) };
	struct impair_queue *q;
	struct impair_item item;

	cr_assert_eq(impair_queue_create(&q, COUNT), 0);
	cr_expect_eq(impair_queue_deadline_us(q), UINT64_MAX);
	for (uint8_t i = 0; i < COUNT; i++)
		cr_assert_eq(impair_queue_push(q, dues_us[i], q, &i, 1), 0);
	cr_expect_eq(impair_queue_push(q, 1, q, want, 1), -ENOBUFS);
	cr_expect_eq(impair_queue_deadline_us(q), 10);
	cr_expect_not(impair_queue_pop(q, 9, &item), "nothing is due yet");
	for (size_t i = 0; i < COUNT; i++) {
		cr_assert(impair_queue_pop(q, 50, &item));
		cr_expect_eq(item.bytes[0], want[i], "place %zu: %u", i, item.bytes[0]);
		cr_expect_eq(item.owner, q);
		free(item.bytes);
	}
	cr_expect_not(impair_queue_pop(q, UINT64_MAX, &item));
	impair_queue_destroy(q);
}

Test(impair_model, the_queue_stays_sorted_through_random_use)
{
	struct impair_queue *q;
	struct impair_item item;
	uint64_t due_us, now_us = 0;
	uint32_t random = 9;

	cr_assert_eq(impair_queue_create(&q, 1000), 0);
	for (int step = 0; step < 5000; step++) {
		random = random * 1664525 + 1013904223;
		due_us = now_us + (random >> 20);
		cr_assert_eq(impair_queue_push(q, due_us, NULL, (uint8_t *)&due_us, 8), 0);
		if (step < 500)
			continue;
		now_us = impair_queue_deadline_us(q);
		cr_assert(impair_queue_pop(q, now_us, &item));
		memcpy(&due_us, item.bytes, 8);
		free(item.bytes);
		cr_assert_eq(due_us, now_us);
		cr_assert_geq(impair_queue_deadline_us(q), now_us);
	}
	impair_queue_destroy(q); /* with 500 still on their way: nothing may leak */
}

Test(impair_model, the_queue_survives_every_single_failure)
{
	static const uint8_t byte;
	struct impair_queue *q;
	int faults = 0;
	int err = -ENOMEM;

	for (; err == -ENOMEM; faults++) {
		fault_after(faults);
		err = impair_queue_create(&q, 4);
		fault_after(-1);
		cr_expect(err == 0 || q == NULL, "fault %d", faults);
	}
	cr_expect_eq(faults, 3, "the queue, its entries, then success");
	fault_after(0);
	cr_expect_eq(impair_queue_push(q, 1, NULL, &byte, 1), -ENOMEM);
	fault_after(-1);
	cr_expect_eq(impair_queue_deadline_us(q), UINT64_MAX, "nothing half queued");
	impair_queue_destroy(q);
}

/* A Binding request with SOFTWARE "abc" (padded) before USERNAME "srv1:cli". */
static const uint8_t request[] = {
	0x00, 0x01, 0x00, 0x14, 0x21, 0x12, 0xa4, 0x42, 1,    2,    3,   4,   5,   6,
	7,    8,    9,    10,   11,   12,   0x80, 0x22, 0x00, 0x03, 'a', 'b', 'c', 0,
	0x00, 0x06, 0x00, 0x08, 's',  'r',  'v',  '1',  ':',  'c',  'l', 'i',
};

Test(impair_model, reads_both_names_of_a_binding_request)
{
	char server[IMPAIR_UFRAG_BYTES], client[IMPAIR_UFRAG_BYTES];

	cr_assert(impair_stun_ufrags(request, sizeof(request), server, client));
	cr_expect_str_eq(server, "srv1");
	cr_expect_str_eq(client, "cli");
}

Test(impair_model, takes_nothing_else_for_a_binding_request)
{
	char server[IMPAIR_UFRAG_BYTES], client[IMPAIR_UFRAG_BYTES];

	for (size_t len = 0; len < sizeof(request); len++) {
		uint8_t *cut = malloc(len ? len : 1); /* an over-read shows under asan */

		memcpy(cut, request, len);
		cr_expect_not(impair_stun_ufrags(cut, len, server, client), "cut at %zu", len);
		free(cut);
	}
	/* Type, cookie, the colon, and a length that runs past the end. */
	static const size_t broken[] = { 1, 4, 36, 31 };

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		uint8_t copy[sizeof(request)];

		memcpy(copy, request, sizeof(copy));
		copy[broken[i]] ^= 0x40;
		cr_expect_not(impair_stun_ufrags(copy, sizeof(copy), server, client),
			      "byte %zu changed", broken[i]);
	}
}
