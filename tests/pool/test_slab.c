#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "pool/slab.h"
#include "tests/fault.h"

enum { CAPACITY = 256, HIGH_WATER = 16 };

static struct slab_pool *here, *there;

static struct slab_pool *pool_of(uint32_t capacity, uint32_t high_water, uint32_t index)
{
	struct slab_pool_config config = { capacity, high_water, index };
	struct slab_pool *p;

	cr_assert_eq(slab_pool_create(&p, &config), 0);
	return p;
}

static struct slab_pool_stats stats_of(const struct slab_pool *p)
{
	struct slab_pool_stats stats;

	slab_pool_stats(p, &stats);
	return stats;
}

static void setup(void)
{
	here = pool_of(CAPACITY, HIGH_WATER, 0);
	there = pool_of(CAPACITY, HIGH_WATER, SLAB_MAX_POOLS - 1);
}

/* Every test ends with all slabs at home, or the destroy aborts it. */
static void teardown(void)
{
	slab_pool_flush(here);
	slab_pool_flush(there);
	slab_pool_destroy(here);
	slab_pool_destroy(there);
}

TestSuite(slab, .init = setup, .fini = teardown, .timeout = 10);

Test(slab, get_resets_what_the_last_holder_left)
{
	struct slab *s = slab_get(here);

	s->len = 1200;
	memset(s->meta, 0xff, sizeof(s->meta));
	memset(s->data, 0xff, sizeof(s->data));
	s->next = s;
	slab_put(here, s);
	cr_assert_eq(slab_get(here), s, "the last one put is the first one taken");
	cr_expect_eq(s->len, 0);
	cr_expect_null(s->next);
	for (size_t i = 0; i < sizeof(s->meta); i++)
		cr_expect_eq(s->meta[i], 0, "meta byte %zu", i);
	slab_put(here, s);
}

Test(slab, goes_home_only_with_its_last_reference)
{
	struct slab *s = slab_get(here);

	slab_ref(s, 2);
	slab_put(here, s);
	slab_put(here, s);
	cr_expect_eq(stats_of(here).puts, 0);
	cr_expect_eq(stats_of(here).in_use, 1);
	slab_put(here, s);
	cr_expect_eq(stats_of(here).puts, 1);
	cr_expect_eq(stats_of(here).in_use, 0);
}

Test(slab, an_exhausted_pool_refuses_and_counts_then_recovers)
{
	static const uint32_t capacities[] = { 1, 2, 3, 7, 64 };

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		struct slab_pool *p = pool_of(capacities[i], 0, 1);
		struct slab *held = NULL;

		for (uint32_t n = 0; n < capacities[i]; n++) {
			struct slab *s = slab_get(p);

			cr_assert_not_null(s, "slab %u of %u", n, capacities[i]);
			s->next = held;
			held = s;
		}
		cr_expect_null(slab_get(p));
		cr_expect_null(slab_get(p));
		cr_expect_eq(stats_of(p).exhausted, 2);
		cr_expect_eq(stats_of(p).in_use_high, capacities[i]);
		while (held) {
			struct slab *s = held;

			held = s->next;
			slab_put(p, s);
		}
		held = slab_get(p);
		cr_expect_not_null(held);
		slab_put(p, held);
		slab_pool_destroy(p);
	}
}

Test(slab, slabs_never_overlap)
{
	struct slab *held[CAPACITY];

	for (int i = 0; i < CAPACITY; i++) {
		held[i] = slab_get(here);
		cr_assert_not_null(held[i]);
		memset(held[i]->data, i, SLAB_DATA_BYTES);
	}
	for (int i = 0; i < CAPACITY; i++) {
		cr_expect_eq(held[i]->data[0], (uint8_t)i, "slab %d", i);
		cr_expect_eq(held[i]->data[SLAB_DATA_BYTES - 1], (uint8_t)i, "slab %d", i);
		slab_put(here, held[i]);
	}
}

Test(slab, a_foreign_put_travels_home_by_flush_and_drain)
{
	struct slab *s = slab_get(here);

	slab_put(there, s);
	slab_pool_drain(here);
	cr_expect_eq(stats_of(here).puts, 0, "gathered, not yet sent");
	slab_pool_flush(there);
	cr_expect_eq(stats_of(here).puts, 0, "sent, not yet taken in");
	slab_pool_drain(here);
	cr_expect_eq(stats_of(here).puts, 1);
	cr_expect_eq(stats_of(here).foreign_batches, 1);
	cr_expect_eq(stats_of(there).puts, 0, "it never was theirs");
	cr_expect_eq(slab_get(here), s);
	slab_put(here, s);
}

Test(slab, a_full_foreign_batch_leaves_without_a_flush)
{
	struct slab *held[SLAB_BATCH];

	for (int i = 0; i < SLAB_BATCH; i++)
		held[i] = slab_get(here);
	for (int i = 0; i < SLAB_BATCH - 1; i++)
		slab_put(there, held[i]);
	slab_pool_drain(here);
	cr_expect_eq(stats_of(here).puts, 0);
	slab_put(there, held[SLAB_BATCH - 1]);
	slab_pool_drain(here);
	cr_expect_eq(stats_of(here).puts, SLAB_BATCH);
	cr_expect_eq(stats_of(here).foreign_batches, 1);
}

Test(slab, one_drain_takes_the_chains_of_several_threads)
{
	struct slab_pool *third = pool_of(4, 0, 5);
	struct slab *a = slab_get(here), *b = slab_get(here), *c = slab_get(here);

	slab_put(there, a);
	slab_put(third, b);
	slab_put(third, c);
	slab_pool_flush(there);
	slab_pool_flush(third);
	slab_pool_drain(here);
	cr_expect_eq(stats_of(here).puts, 3);
	cr_expect_eq(stats_of(here).foreign_batches, 2);
	slab_pool_destroy(third);
}

Test(slab, gathers_for_several_homes_at_once)
{
	struct slab_pool *third = pool_of(4, 0, 5);
	struct slab *a = slab_get(here), *b = slab_get(there);

	slab_put(third, a);
	slab_put(third, b);
	slab_pool_flush(third);
	slab_pool_drain(here);
	slab_pool_drain(there);
	cr_expect_eq(stats_of(here).in_use, 0);
	cr_expect_eq(stats_of(there).in_use, 0);
	slab_pool_destroy(third);
}

/* Takes n slabs at once and puts them back: a burst. */
static void burst(struct slab_pool *p, uint32_t n)
{
	struct slab *held = NULL;

	while (n-- > 0) {
		struct slab *s = slab_get(p);

		cr_assert_not_null(s);
		memset(s->data, 0x11, sizeof(s->data));
		s->next = held;
		held = s;
	}
	while (held) {
		struct slab *s = held;

		held = s->next;
		slab_put(p, s);
	}
}

Test(slab, only_slabs_in_use_cost_memory)
{
	cr_expect_eq(stats_of(here).touched, 0, "nothing before the first get");
	burst(here, 3);
	cr_expect_eq(stats_of(here).touched, 4, "two slabs a page");
}

Test(slab, the_most_ever_in_use_is_remembered_across_page_halves_and_trims)
{
	burst(here, 3);
	cr_expect_eq(stats_of(here).in_use_high, 3, "not the four that have memory");
	burst(here, 2);
	slab_pool_trim(here);
	burst(here, 1);
	slab_pool_trim(here);
	cr_expect_eq(stats_of(here).in_use_high, 3);
	burst(here, 5);
	cr_expect_eq(stats_of(here).in_use_high, 5);
}

Test(slab, trim_gives_back_a_past_burst_but_not_the_high_water)
{
	burst(here, CAPACITY);
	slab_pool_trim(here);
	cr_expect_eq(stats_of(here).trimmed_bytes, 0, "used since the previous trim");
	slab_pool_trim(here);
	cr_expect_eq(stats_of(here).trimmed_bytes, (CAPACITY - HIGH_WATER) * SLAB_BYTES);
	cr_expect_eq(stats_of(here).touched, HIGH_WATER);
	slab_pool_trim(here);
	cr_expect_eq(stats_of(here).touched, HIGH_WATER, "nothing more to give");
	burst(here, CAPACITY);
	cr_expect_eq(stats_of(here).exhausted, 0, "all of it can be used again");
}

Test(slab, trimmed_memory_really_leaves_the_process)
{
	unsigned char resident[CAPACITY / 2];
	struct slab *first = slab_get(here);
	uintptr_t page = (uintptr_t)first & ~(uintptr_t)4095;
	size_t count = 0;

	slab_put(here, first);
	burst(here, CAPACITY);
	slab_pool_trim(here);
	slab_pool_trim(here);
	/* The first slab taken is the first of the mapping. */
	cr_assert_eq(mincore((void *)page, CAPACITY * SLAB_BYTES, resident), 0);
	for (size_t i = 0; i < sizeof(resident); i++)
		count += resident[i] & 1;
	cr_expect_eq(count, HIGH_WATER / 2, "%zu pages resident", count);
}

Test(slab, trim_spares_what_was_in_use_at_any_time_since_the_last)
{
	burst(here, CAPACITY);
	slab_pool_trim(here);
	burst(here, CAPACITY / 2);
	slab_pool_trim(here);
	cr_expect_eq(stats_of(here).touched, CAPACITY / 2 + HIGH_WATER);
}

Test(slab, trim_keeps_pages_of_which_one_slab_is_out)
{
	struct slab *held[CAPACITY];

	for (int i = 0; i < CAPACITY; i++)
		held[i] = slab_get(here);
	for (int i = 0; i < CAPACITY; i += 2)
		slab_put(here, held[i]);
	slab_pool_trim(here);
	slab_pool_trim(here);
	cr_expect_eq(stats_of(here).trimmed_bytes, 0);
	for (int i = 1; i < CAPACITY; i += 2)
		slab_put(here, held[i]);
	slab_pool_trim(here);
	slab_pool_trim(here);
	cr_expect_gt(stats_of(here).trimmed_bytes, 0);
	burst(here, CAPACITY);
}

Test(slab, one_trim_gives_back_a_bounded_amount)
{
	enum { BIG = 3 * SLAB_TRIM_MAX_BYTES / SLAB_BYTES };
	struct slab_pool *p = pool_of(BIG, 0, 2);

	burst(p, BIG);
	slab_pool_trim(p);
	for (uint64_t calls = 1; calls <= 3; calls++) {
		slab_pool_trim(p);
		cr_expect_eq(stats_of(p).trimmed_bytes, calls * SLAB_TRIM_MAX_BYTES);
	}
	cr_expect_eq(stats_of(p).touched, 0);
	burst(p, BIG);
	slab_pool_destroy(p);
}

/* Random gets, puts here and abroad, and trims, against a plain array of what is held. */
Test(slab, keeps_count_through_any_mix_of_calls)
{
	struct slab *held[CAPACITY];
	uint32_t random = 1, count = 0;

	for (int step = 0; step < 50000; step++) {
		random = random * 1664525 + 1013904223;
		/* Drifts between empty and full every few thousand steps. */
		if ((random >> 24) < (step / 2000 % 2 ? 100u : 156u)) {
			bool full = stats_of(here).in_use == CAPACITY;
			struct slab *s = slab_get(here);

			cr_assert_eq(s == NULL, full, "step %d", step);
			if (s) {
				s->len = (uint16_t)count;
				held[count++] = s;
			}
		} else if (count > 0) {
			uint32_t pick = (random >> 8) % count;
			struct slab *s = held[pick];

			held[pick] = held[--count];
			slab_put(random & 64 ? here : there, s);
		}
		if (step % 100 == 0) {
			slab_pool_flush(there);
			slab_pool_drain(here);
			cr_assert_eq(stats_of(here).in_use, count, "step %d", step);
		}
		if (step % 500 == 0)
			slab_pool_trim(here);
	}
	while (count > 0)
		slab_put(here, held[--count]);
}

Test(slab, refuses_a_config_out_of_range)
{
	static const struct {
		const char *name;
		struct slab_pool_config config;
	} rows[] = {
		{ "no slabs", { 0, 0, 0 } },
		{ "too many slabs", { SLAB_MAX_SLABS + 1, 0, 0 } },
		{ "index past the last pool", { 1, 0, SLAB_MAX_POOLS } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slab_pool *p = here;

		cr_expect_eq(slab_pool_create(&p, &rows[i].config), -EINVAL, "%s", rows[i].name);
		cr_expect_null(p, "%s", rows[i].name);
	}
}

Test(slab, create_survives_every_single_failure)
{
	struct slab_pool_config config = { 8, 0, 0 };
	struct slab_pool *p;
	int faults = 0;
	int err = -ENOMEM;

	for (; err == -ENOMEM; faults++) {
		fault_after(faults);
		err = slab_pool_create(&p, &config);
		fault_after(-1);
		cr_expect(err == 0 || p == NULL, "fault %d", faults);
	}
	cr_expect_eq(err, 0);
	cr_expect_eq(faults, 6, "the pool, three arrays, the mapping, then success");
	slab_pool_destroy(p);
}

Test(slab, put_twice_aborts, .signal = SIGABRT)
{
	struct slab *s = slab_get(here);

	slab_put(here, s);
	slab_put(here, s);
}

Test(slab, put_twice_abroad_aborts, .signal = SIGABRT)
{
	struct slab *s = slab_get(here);

	slab_put(there, s);
	slab_put(there, s);
}

Test(slab, a_slab_that_never_came_home_aborts_the_destroy, .signal = SIGABRT)
{
	cr_assert_not_null(slab_get(here));
	slab_pool_destroy(here);
}

/* Under AddressSanitizer the write itself is reported, which ends the process another way. */
#if defined(SLUICE_DEBUG) && !defined(__SANITIZE_ADDRESS__)
Test(slab, a_write_after_the_put_aborts_the_next_get, .signal = SIGABRT)
{
	struct slab *s = slab_get(here);

	slab_put(here, s);
	s->data[SLAB_DATA_BYTES - 1] = 1;
	slab_get(here);
}
#endif
