#include <criterion/criterion.h>
#include <errno.h>

#include "pool/ring.h"
#include "tests/fault.h"

TestSuite(ring, .timeout = 10);

static int items[64];

Test(ring, takes_items_in_the_order_they_were_put)
{
	struct ring *r;

	cr_assert_eq(ring_create(&r, 4), 0);
	for (int i = 0; i < 4; i++)
		cr_assert(ring_put(r, &items[i]));
	for (int i = 0; i < 4; i++)
		cr_expect_eq(ring_take(r), &items[i], "item %d", i);
	cr_expect_null(ring_take(r));
	ring_destroy(r);
}

Test(ring, refuses_an_item_when_full_and_keeps_the_others)
{
	struct ring *r;

	cr_assert_eq(ring_create(&r, 2), 0);
	cr_assert(ring_put(r, &items[0]));
	cr_assert(ring_put(r, &items[1]));
	cr_expect_not(ring_put(r, &items[2]));
	cr_expect_eq(ring_take(r), &items[0]);
	cr_expect(ring_put(r, &items[3]), "one slot came free");
	cr_expect_eq(ring_take(r), &items[1]);
	cr_expect_eq(ring_take(r), &items[3]);
	ring_destroy(r);
}

Test(ring, tells_the_room_that_is_left)
{
	struct ring *r;

	cr_assert_eq(ring_create(&r, 4), 0);
	cr_expect_eq(ring_room(r), 4);
	cr_expect(ring_is_empty(r));
	cr_assert(ring_put(r, &items[0]));
	cr_assert(ring_put(r, &items[1]));
	cr_expect_eq(ring_room(r), 2);
	cr_expect_not(ring_is_empty(r));
	cr_assert_eq(ring_take(r), &items[0]);
	cr_expect_eq(ring_room(r), 3);
	ring_destroy(r);
}

/* A ring of one slot is full and empty in turn, which mixes up careless index arithmetic. */
Test(ring, works_with_a_single_slot_over_many_laps)
{
	struct ring *r;

	cr_assert_eq(ring_create(&r, 1), 0);
	for (int lap = 0; lap < 100; lap++) {
		cr_assert(ring_put(r, &items[lap % 64]));
		cr_assert_not(ring_put(r, &items[0]), "lap %d", lap);
		cr_assert_eq(ring_take(r), &items[lap % 64], "lap %d", lap);
		cr_assert_null(ring_take(r), "lap %d", lap);
	}
	ring_destroy(r);
}

Test(ring, survives_its_positions_wrapping_at_32_bits)
{
	struct ring *r;

	cr_assert_eq(ring_create(&r, 8), 0);
	atomic_store(&r->head, UINT32_MAX - 2);
	atomic_store(&r->tail, UINT32_MAX - 2);
	r->head_seen = r->tail_seen = UINT32_MAX - 2;
	for (int i = 0; i < 8; i++)
		cr_assert(ring_put(r, &items[i]), "item %d", i);
	cr_expect_not(ring_put(r, &items[8]));
	for (int i = 0; i < 8; i++)
		cr_expect_eq(ring_take(r), &items[i], "item %d", i);
	cr_expect_null(ring_take(r));
	ring_destroy(r);
}

Test(ring, accepts_only_powers_of_two_within_the_limit)
{
	static const struct {
		uint32_t slots;
		int want;
	} rows[] = {
		{ 0, -EINVAL },
		{ 1, 0 },
		{ 2, 0 },
		{ 3, -EINVAL },
		{ 1000, -EINVAL },
		{ 1024, 0 },
		{ RING_MAX_SLOTS, 0 },
		{ RING_MAX_SLOTS * 2u, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ring *r;
		int err = ring_create(&r, rows[i].slots);

		cr_expect_eq(err, rows[i].want, "%u slots: %d", rows[i].slots, err);
		cr_expect_eq(r == NULL, err != 0, "%u slots", rows[i].slots);
		ring_destroy(r);
	}
}

Test(ring, create_survives_every_single_failure)
{
	struct ring *r;
	int faults = 0;
	int err = -ENOMEM;

	for (; err == -ENOMEM; faults++) {
		fault_after(faults);
		err = ring_create(&r, 16);
		fault_after(-1);
		cr_expect(err == 0 || r == NULL, "fault %d", faults);
	}
	cr_expect_eq(err, 0);
	cr_expect_eq(faults, 3, "the ring, its slots, then success");
	ring_destroy(r);
}
