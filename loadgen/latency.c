#include "loadgen/latency.h"

#include <errno.h>
#include <stdlib.h>

struct sent {
	uint64_t sent_us;
	uint32_t timestamp;
	uint32_t pkts;
	size_t end_bytes;
};

struct latency {
	struct sent sent[LATENCY_UNITS];
	uint64_t sent_count;
	struct sent open; /* pkts 0: none */

	struct latency_unit got[LATENCY_LEARN_UNITS];
	unsigned got_count;
	uint32_t offset; /* what the relay adds */
	bool has_offset;
	unsigned misses;
};

int latency_create(struct latency **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void latency_destroy(struct latency *l)
{
	free(l);
}

void latency_on_sent(struct latency *l, uint32_t timestamp, size_t bytes, bool is_end,
		     uint64_t now_us)
{
	if (l->open.pkts == 0 || l->open.timestamp != timestamp)
		l->open = (struct sent){ .timestamp = timestamp };
	l->open.pkts++;
	if (!is_end)
		return;
	l->open.sent_us = now_us;
	l->open.end_bytes = bytes;
	l->sent[l->sent_count++ % LATENCY_UNITS] = l->open;
	l->open.pkts = 0;
}

/* @param nth 1 is the newest */
static const struct sent *sent_back(const struct latency *l, unsigned nth)
{
	return &l->sent[(l->sent_count - nth) % LATENCY_UNITS];
}

static unsigned sent_kept(const struct latency *l)
{
	return l->sent_count < LATENCY_UNITS ? (unsigned)l->sent_count : LATENCY_UNITS;
}

/* Newest first: what arrives was sent a moment ago. */
static const struct sent *find(const struct latency *l, uint32_t timestamp)
{
	unsigned kept = sent_kept(l);

	for (unsigned nth = 1; nth <= kept; nth++)
		if (sent_back(l, nth)->timestamp == timestamp)
			return sent_back(l, nth);
	return NULL;
}

/* How many units differ in size by about as much as most do, when `offset` is right; 0: it is not,
 * since one came before it was sent. */
static unsigned agreement(const struct latency *l, uint32_t offset)
{
	long differences[LATENCY_LEARN_UNITS];
	unsigned count = 0, best = 0;

	for (unsigned i = 0; i < l->got_count; i++) {
		const struct latency_unit *got = &l->got[i];
		const struct sent *s = find(l, got->timestamp - offset);

		if (!s)
			continue;
		if (s->sent_us > got->now_us)
			return 0;
		if (s->pkts == got->pkts)
			differences[count++] = (long)got->end_bytes - (long)s->end_bytes;
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned same = 0;

		for (unsigned j = 0; j < count; j++)
			same += differences[j] >= differences[i] &&
				differences[j] <= differences[i] + LATENCY_PADDING_BYTES;
		best = same > best ? same : best;
	}
	return best;
}

static void learn(struct latency *l)
{
	unsigned kept = sent_kept(l), best = 0;
	const struct latency_unit *last = &l->got[l->got_count - 1];

	/* From the newest on, so that of equal ones the smallest delay stays. */
	for (unsigned nth = 1; nth <= kept; nth++) {
		uint32_t offset = last->timestamp - sent_back(l, nth)->timestamp;
		unsigned score = agreement(l, offset);

		if (score > best) {
			best = score;
			l->offset = offset;
		}
	}
	l->has_offset = best * 2 > l->got_count;
	l->misses = 0;
	l->got_count = 0;
}

static void on_unlearnt(struct latency *l, const struct latency_unit *unit)
{
	if (l->got_count > 0 && l->got[0].viewer != unit->viewer) {
		/* A viewer that left teaches nothing more. */
		if (unit->now_us - l->got[l->got_count - 1].now_us < 1000000)
			return;
		l->got_count = 0;
	}
	l->got[l->got_count++] = *unit;
	if (l->got_count == LATENCY_LEARN_UNITS)
		learn(l);
}

enum latency_verdict latency_on_unit(struct latency *l, const struct latency_unit *unit,
				     uint64_t *latency_us)
{
	const struct sent *s;

	if (!l->has_offset) {
		on_unlearnt(l, unit);
		return LATENCY_LEARNING;
	}
	s = find(l, unit->timestamp - l->offset);
	if (!s || s->sent_us > unit->now_us) {
		if (++l->misses >= LATENCY_FORGET_UNITS)
			l->has_offset = false;
		return LATENCY_UNKNOWN;
	}
	l->misses = 0;
	if (unit->pkts < s->pkts)
		return LATENCY_INCOMPLETE;
	*latency_us = unit->now_us - s->sent_us;
	return LATENCY_MATCHED;
}
