/* net/ticker.c - see ticker.h for the contract. */
#include "net/ticker.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void ticker_init(struct ticker *t)
{
	*t = (struct ticker){ 0 };
}

void ticker_fini(struct ticker *t)
{
	assert(t->count == 0);
	free(t->heap);
	*t = (struct ticker){ 0 };
}

void ticker_item_init(struct ticker_item *item,
		      void (*on_due)(struct ticker_item *item, uint64_t now_us))
{
	*item = (struct ticker_item){ .due_us = UINT64_MAX, .on_due = on_due };
}

int ticker_reserve(struct ticker *t, uint32_t items)
{
	struct ticker_item **heap;
	uint32_t cap = t->cap ? t->cap : 16;

	if (items <= t->cap)
		return 0;
	while (cap < items)
		cap *= 2;
	heap = realloc(t->heap, cap * sizeof(struct ticker_item *));
	if (!heap)
		return -ENOMEM;
	t->heap = heap;
	t->cap = cap;
	return 0;
}

static void place(struct ticker *t, uint32_t at, struct ticker_item *item)
{
	t->heap[at] = item;
	item->at = at + 1;
}

static void sift_up(struct ticker *t, uint32_t at, struct ticker_item *item)
{
	while (at > 0) {
		uint32_t parent = (at - 1) / 2;

		if (t->heap[parent]->due_us <= item->due_us)
			break;
		place(t, at, t->heap[parent]);
		at = parent;
	}
	place(t, at, item);
}

static void sift_down(struct ticker *t, uint32_t at, struct ticker_item *item)
{
	for (;;) {
		uint32_t child = at * 2 + 1;

		if (child >= t->count)
			break;
		if (child + 1 < t->count && t->heap[child + 1]->due_us < t->heap[child]->due_us)
			child++;
		if (t->heap[child]->due_us >= item->due_us)
			break;
		place(t, at, t->heap[child]);
		at = child;
	}
	place(t, at, item);
}

static void disarm(struct ticker *t, struct ticker_item *item)
{
	uint32_t at = item->at - 1;
	struct ticker_item *last;

	item->at = 0;
	item->due_us = UINT64_MAX;
	last = t->heap[--t->count];
	if (last == item)
		return;
	if (at > 0 && t->heap[(at - 1) / 2]->due_us > last->due_us)
		sift_up(t, at, last);
	else
		sift_down(t, at, last);
}

void ticker_arm(struct ticker *t, struct ticker_item *item, uint64_t due_us)
{
	uint64_t was_us = item->due_us;

	if (due_us == UINT64_MAX) {
		if (item->at)
			disarm(t, item);
		return;
	}
	if (due_us < t->floor_us)
		due_us = t->floor_us;
	item->due_us = due_us;
	if (!item->at) {
		assert(t->count < t->cap);
		sift_up(t, t->count++, item);
	} else if (due_us < was_us) {
		sift_up(t, item->at - 1, item);
	} else if (due_us > was_us) {
		sift_down(t, item->at - 1, item);
	}
}

void ticker_arm_sooner(struct ticker *t, struct ticker_item *item, uint64_t due_us)
{
	if (due_us < item->due_us)
		ticker_arm(t, item, due_us);
}

uint64_t ticker_due_us(const struct ticker *t)
{
	return t->count ? t->heap[0]->due_us : UINT64_MAX;
}

void ticker_run(struct ticker *t, uint64_t now_us)
{
	uint64_t horizon_us = now_us + TICKER_GRAIN_US / 2;

	/* What arms itself meanwhile waits for the next run: nothing can keep a turn from ending. */
	t->floor_us = horizon_us + 1;
	while (ticker_due_us(t) <= horizon_us) {
		struct ticker_item *item = t->heap[0];

		disarm(t, item);
		item->on_due(item, now_us);
	}
	t->floor_us = 0;
}
