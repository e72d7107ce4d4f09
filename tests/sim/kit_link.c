/* tests/sim/kit_link.c - see kit_link.h for the contract. */
#include "tests/sim/kit_link.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "pool/bytes.h"

enum { MAX_ON_THE_WAY = 65536, STAMP_BYTES = 8 };

struct sim_link {
	const struct sim_step *steps;
	size_t step_count;
	struct impair_flow flow;
	struct impair_queue *queue;
	struct sim_link_stats stats;
};

struct sim_link *sim_link_create(const struct sim_step *steps, size_t n, uint64_t seed)
{
	struct sim_link *l = calloc(1, sizeof(*l));

	cr_assert(l && n > 0 && steps[0].from_us == 0);
	l->steps = steps;
	l->step_count = n;
	impair_flow_init(&l->flow, &steps[0].profile, seed);
	cr_assert_eq(impair_queue_create(&l->queue, MAX_ON_THE_WAY), 0);
	return l;
}

void sim_link_destroy(struct sim_link *l)
{
	if (!l)
		return;
	impair_queue_destroy(l->queue);
	free(l);
}

const struct impair_profile *sim_link_profile(const struct sim_link *l, uint64_t now_us)
{
	size_t i = 0;

	while (i + 1 < l->step_count && l->steps[i + 1].from_us <= now_us)
		i++;
	return &l->steps[i].profile;
}

/* A datagram travels behind a stamp of its departure. */
static void push(struct sim_link *l, uint64_t now_us, const struct impair_fate *fate,
		 const void *bytes, size_t len)
{
	uint8_t stamped[STAMP_BYTES + sizeof(((struct sim_datagram *)0)->bytes)];

	be64_write(stamped, now_us);
	memcpy(stamped + STAMP_BYTES, bytes, len);
	if (fate->flip_bit != UINT32_MAX)
		stamped[STAMP_BYTES + fate->flip_bit / 8] ^= (uint8_t)(1u << fate->flip_bit % 8);
	for (int copies = 1 + fate->is_copied; copies > 0; copies--)
		cr_assert_eq(
		    impair_queue_push(l->queue, fate->due_us, NULL, stamped, STAMP_BYTES + len), 0);
}

enum impair_verdict sim_link_send(struct sim_link *l, uint64_t now_us, const void *bytes,
				  size_t len)
{
	struct impair_fate fate;

	cr_assert_leq(len, sizeof(((struct sim_datagram *)0)->bytes));
	l->flow.profile = *sim_link_profile(l, now_us);
	fate = impair_flow_on_datagram(&l->flow, now_us, len);
	l->stats.sent++;
	l->stats.lost += fate.verdict == IMPAIR_LOST;
	l->stats.overflowed += fate.verdict == IMPAIR_OVERFLOW;
	if (fate.verdict == IMPAIR_PASSED)
		push(l, now_us, &fate, bytes, len);
	return fate.verdict;
}

bool sim_link_receive(struct sim_link *l, uint64_t now_us, struct sim_datagram *out)
{
	struct impair_item item;

	if (!impair_queue_pop(l->queue, now_us, &item))
		return false;
	out->sent_us = be64_read(item.bytes);
	out->len = item.len - STAMP_BYTES;
	memcpy(out->bytes, item.bytes + STAMP_BYTES, out->len);
	free(item.bytes);
	l->stats.delivered++;
	l->stats.delivered_bytes += out->len;
	return true;
}

uint64_t sim_link_deadline_us(const struct sim_link *l)
{
	return impair_queue_deadline_us(l->queue);
}

const struct sim_link_stats *sim_link_stats(const struct sim_link *l)
{
	return &l->stats;
}
