/* pool/slab.c - see slab.h for the contract.
 *
 * One mapping holds all slabs, two to a page. Free slabs whose memory is in use by the process
 * ("warm") are a stack of numbers beside the mapping, so that trimming reaches its bottom, where
 * the longest unused lie, without walking a list. Pages without memory ("cold") are a second
 * stack; those never touched yet are only counted.
 */
#include "pool/slab.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pool/poison.h"

enum {
	PAGE_BYTES = 4096, /* what is given back at a time; a kernel with larger pages keeps them */
	PAGE_SLABS = PAGE_BYTES / SLAB_BYTES,
};

/* Odd patterns, so that a stray byte does not make one of the other. */
enum slab_state {
	STATE_HOME = 0x0000, /* also what untouched memory reads as */
	STATE_OUT = 0x5a17,
	STATE_ABROAD = 0x3c2b,
};

/* Slabs of one home put on a foreign thread. While they travel, the meta of the first slab says
 * what the chain holds. */
struct batch {
	struct slab *first, *last;
	uint32_t count;
};

struct chain {
	struct slab *next_chain;
	uint32_t count;
};
_Static_assert(sizeof(struct chain) <= SLAB_META_BYTES, "a chain is described in a slab's meta");

struct slab_pool {
	struct slab *slabs; /* the mapping */
	uint32_t *warm;     /* free slabs with memory, by number; the last is taken first */
	uint32_t *cold;     /* pages given back, by number */
	uint8_t *idle;      /* per page: how many of its slabs the running trim may take */
	uint32_t warm_count;
	uint32_t warm_low;   /* least warm_count since note_low(): all that a get keeps of levels */
	uint32_t unused_low; /* the same since the last trim: so many stayed unused */
	uint32_t cold_count;
	uint32_t fresh_page; /* first page never touched */
	struct slab_pool_config config;
	struct slab_pool_stats stats;

	/* Bit i is set while away[i] holds anything, so that a flush looks at those only. */
	uint64_t away_homes;
	struct batch away[SLAB_MAX_POOLS];

	/* The one field other threads write. */
	_Alignas(64) struct slab *_Atomic arrived;
};
_Static_assert(SLAB_MAX_POOLS == 64, "away_homes has a bit for each pool");

/* Slabs with memory that are not at home are in use: neither they nor the puts need counting. */
static uint32_t in_use(const struct slab_pool *p)
{
	return p->stats.touched - p->warm_count;
}

static uint32_t in_use_high(const struct slab_pool *p)
{
	uint32_t high = p->stats.touched - p->warm_low;

	return high > p->stats.in_use_high ? high : p->stats.in_use_high;
}

/* Before `touched` changes, or the trim asks. The caller begins a new low. */
static void note_low(struct slab_pool *p)
{
	p->stats.in_use_high = in_use_high(p);
	if (p->warm_low < p->unused_low)
		p->unused_low = p->warm_low;
}

static uint32_t page_count(const struct slab_pool *p)
{
	return (p->config.capacity_slabs + PAGE_SLABS - 1) / PAGE_SLABS;
}

static size_t map_bytes(const struct slab_pool *p)
{
	return (size_t)page_count(p) * PAGE_BYTES;
}

static int map_slabs(struct slab_pool *p)
{
	void *map = mmap(NULL, map_bytes(p), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	p->slabs = map;
	/* A huge page is touched whole and is split when a part of it goes back; what the pool
	 * holds would then depend on the kernel's mood. Advice only: refusal changes nothing. */
	(void)madvise(map, map_bytes(p), MADV_NOHUGEPAGE);
	return 0;
}

static bool is_config_valid(const struct slab_pool_config *config)
{
	return config->capacity_slabs >= 1 && config->capacity_slabs <= SLAB_MAX_SLABS &&
	       config->index < SLAB_MAX_POOLS;
}

static void pool_free(struct slab_pool *p)
{
	if (!p)
		return;
	if (p->slabs) {
		poison_lift(p->slabs, map_bytes(p));
		munmap(p->slabs, map_bytes(p));
	}
	free(p->warm);
	free(p->cold);
	free(p->idle);
	free(p);
}

int slab_pool_create(struct slab_pool **out, const struct slab_pool_config *config)
{
	struct slab_pool *p;

	*out = NULL;
	if (!is_config_valid(config))
		return -EINVAL;
	p = aligned_alloc(64, sizeof(*p));
	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->warm = calloc(config->capacity_slabs, sizeof(*p->warm));
	p->cold = calloc(page_count(p), sizeof(*p->cold));
	p->idle = calloc(page_count(p), sizeof(*p->idle));
	if (!p->warm || !p->cold || !p->idle || map_slabs(p)) {
		pool_free(p);
		return -ENOMEM;
	}
	*out = p;
	return 0;
}

void slab_pool_destroy(struct slab_pool *p)
{
	if (!p)
		return;
	slab_pool_drain(p);
	assert(p->away_homes == 0);
	assert(in_use(p) == 0);
	pool_free(p);
}

/* Memory for two more slabs: a page given back earlier, else the next one never touched. */
static bool warm_up(struct slab_pool *p)
{
	uint32_t page;

	note_low(p);
	if (p->cold_count > 0)
		page = p->cold[--p->cold_count];
	else if (p->fresh_page < page_count(p))
		page = p->fresh_page++;
	else
		return false;
	for (uint32_t i = PAGE_SLABS; i-- > 0;) {
		uint32_t number = page * PAGE_SLABS + i;

		if (number >= p->config.capacity_slabs)
			continue;
		p->slabs[number].home = p;
		poison_lay(p->slabs[number].data, SLAB_DATA_BYTES);
		p->warm[p->warm_count++] = number;
		p->stats.touched++;
	}
	p->warm_low = p->warm_count;
	return true;
}

struct slab *slab_get(struct slab_pool *p)
{
	struct slab *s;

	if (p->warm_count == 0 && !warm_up(p)) {
		p->stats.exhausted++;
		return NULL;
	}
	s = &p->slabs[p->warm[--p->warm_count]];
	if (p->warm_count < p->warm_low)
		p->warm_low = p->warm_count;
	assert(s->state == STATE_HOME);
	poison_take(s->data, SLAB_DATA_BYTES);
	s->state = STATE_OUT;
	s->next = NULL;
	s->len = 0;
	memset(s->meta, 0, sizeof(s->meta));
	/* Relaxed: whoever hands the slab to another thread orders that by the hand-over. */
	atomic_store_explicit(&s->refs, 1, memory_order_relaxed);
	p->stats.gets++;
	return s;
}

static void come_home(struct slab_pool *p, struct slab *s)
{
	s->state = STATE_HOME;
	p->warm[p->warm_count++] = (uint32_t)(s - p->slabs);
}

static void send_home(struct slab_pool *mine, uint32_t index)
{
	struct batch *b = &mine->away[index];
	struct slab_pool *home = b->first->home;
	struct chain *chain = (struct chain *)(void *)b->first->meta;
	struct slab *before = atomic_load_explicit(&home->arrived, memory_order_relaxed);

	chain->count = b->count;
	do {
		chain->next_chain = before;
		/* R1, pairs with A1: the chain and all use of its slabs before it is seen. */
	} while (!atomic_compare_exchange_weak_explicit(
	    &home->arrived, &before, b->first, memory_order_release, memory_order_relaxed));
	*b = (struct batch){ 0 };
	mine->away_homes &= ~(UINT64_C(1) << index);
}

static void put_abroad(struct slab_pool *mine, struct slab *s)
{
	uint32_t index = s->home->config.index;
	struct batch *b = &mine->away[index];

	s->state = STATE_ABROAD;
	s->next = b->first;
	b->first = s;
	mine->away_homes |= UINT64_C(1) << index;
	if (++b->count == SLAB_BATCH)
		send_home(mine, index);
}

/* True when the caller's was the last reference: the slab is then the caller's alone. */
static bool drop_reference(struct slab *s)
{
	uint32_t before;

	/* A2, pairs with R2. A sole holder has nobody to race with, and saves a locked
	 * instruction: the common case of a slab that never left its worker. */
	if (atomic_load_explicit(&s->refs, memory_order_acquire) == 1) {
		atomic_store_explicit(&s->refs, 0, memory_order_relaxed);
		return true;
	}
	/* R2, pairs with A2 and with itself: each holder's use of the slab is over before the
	 * last one recycles it. */
	before = atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel);
	assert(before != 0); /* put twice */
	return before == 1;
}

void slab_put(struct slab_pool *mine, struct slab *s)
{
	if (!drop_reference(s))
		return;
	assert(s->state == STATE_OUT); /* else put twice, or not a slab */
	poison_lay(s->data, SLAB_DATA_BYTES);
	if (s->home == mine)
		come_home(mine, s);
	else
		put_abroad(mine, s);
}

void slab_pool_flush(struct slab_pool *mine)
{
	while (mine->away_homes != 0)
		send_home(mine, (uint32_t)__builtin_ctzll(mine->away_homes));
}

void slab_pool_drain(struct slab_pool *mine)
{
	struct slab *first;

	/* Reading first keeps the line shared while nothing arrives. */
	if (!atomic_load_explicit(&mine->arrived, memory_order_relaxed))
		return;
	/* A1, pairs with R1: every chain is complete before it is read. */
	first = atomic_exchange_explicit(&mine->arrived, NULL, memory_order_acquire);
	while (first) {
		const struct chain *chain = (const struct chain *)(const void *)first->meta;
		struct slab *next_chain = chain->next_chain;
		struct slab *s = first;

		for (uint32_t left = chain->count; left > 0; left--) {
			struct slab *next = s->next;

			assert(s->home == mine && s->state == STATE_ABROAD);
			come_home(mine, s);
			s = next;
		}
		mine->stats.foreign_batches++;
		first = next_chain;
	}
}

/* Mark the pages of which all slabs are among the `count` longest unused; unmark the others. */
static void mark_idle_pages(struct slab_pool *p, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		p->idle[p->warm[i] / PAGE_SLABS]++;
	for (uint32_t i = 0; i < count; i++)
		if (p->idle[p->warm[i] / PAGE_SLABS] != PAGE_SLABS)
			p->idle[p->warm[i] / PAGE_SLABS] = 0;
}

static bool release_pages(struct slab_pool *p, uint32_t first, uint32_t end)
{
	uint8_t *start = (uint8_t *)p->slabs + (size_t)first * PAGE_BYTES;
	size_t bytes = (size_t)(end - first) * PAGE_BYTES;

	if (madvise(start, bytes, MADV_DONTNEED) != 0)
		return false; /* locked memory, or pages larger than ours: they stay in use */
	poison_lift(start, bytes);
	return true;
}

/* Give marked pages back, neighbours in one call, up to the limit; unmark those that stay.
 * Returns how many went; they are the last entries of the cold stack. */
static uint32_t release_idle_pages(struct slab_pool *p)
{
	uint32_t left = SLAB_TRIM_MAX_BYTES / PAGE_BYTES;
	uint32_t first = 0;

	while (first < p->fresh_page) {
		uint32_t end = first;

		while (end < p->fresh_page && p->idle[end] != 0 && end - first < left)
			end++;
		if (end == first) {
			p->idle[first++] = 0;
			continue;
		}
		if (!release_pages(p, first, end)) {
			memset(&p->idle[first], 0, end - first);
			first = end;
			continue;
		}
		left -= end - first;
		while (first < end)
			p->cold[p->cold_count++] = first++;
	}
	return SLAB_TRIM_MAX_BYTES / PAGE_BYTES - left;
}

/* Close the gaps that the released slabs leave in the stack, and clear the marks. */
static void forget_released(struct slab_pool *p, uint32_t count, uint32_t released_pages)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (p->idle[p->warm[i] / PAGE_SLABS] == 0)
			p->warm[kept++] = p->warm[i];
	memmove(&p->warm[kept], &p->warm[count], (p->warm_count - count) * sizeof(*p->warm));
	p->warm_count -= count - kept;
	for (uint32_t i = p->cold_count - released_pages; i < p->cold_count; i++)
		p->idle[p->cold[i]] = 0;
}

void slab_pool_trim(struct slab_pool *mine)
{
	uint32_t unused, count, released_pages;

	note_low(mine);
	unused = mine->unused_low;
	if (unused > mine->config.high_water_slabs) {
		count = unused - mine->config.high_water_slabs;
		mark_idle_pages(mine, count);
		released_pages = release_idle_pages(mine);
		forget_released(mine, count, released_pages);
		mine->stats.touched -= released_pages * PAGE_SLABS;
		mine->stats.trimmed_bytes += (uint64_t)released_pages * PAGE_BYTES;
	}
	mine->warm_low = mine->unused_low = mine->warm_count;
}

void slab_pool_stats(const struct slab_pool *p, struct slab_pool_stats *out)
{
	*out = p->stats;
	out->in_use = in_use(p);
	out->in_use_high = in_use_high(p);
	out->puts = out->gets - out->in_use;
	out->capacity = p->config.capacity_slabs;
}
