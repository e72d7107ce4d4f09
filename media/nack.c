/* media/nack.c - see nack.h for the contract.
 *
 * What is missing is a short list in ascending order, oldest first. Arrivals in order touch nothing
 * but `newest`; a late one is found by binary search. Memory follows what may be missing at once, not
 * the window, since a load generator holds thousands of trackers.
 */
#include "media/nack.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtp.h"

enum { MAX_BEHIND_PKTS = 1 << 14 }; /* so that the list stays in serial order */

struct gap {
	uint32_t noticed_us; /* low bits of the clock: ages stay far below 2^31 us */
	uint32_t at_us;      /* when it is to be asked for; after that, when it last was */
	uint16_t seq;
	uint8_t tries;
};

struct nack {
	struct nack_config config;
	struct nack_stats stats;
	uint64_t next_due_us; /* no gap is due earlier */
	uint32_t answer_us;
	uint32_t reorder_us; /* wait now: at most the configured one */
	uint16_t newest;     /* valid once started */
	uint16_t count;
	bool is_started;
	struct gap gaps[];
};

int nack_create(struct nack **out, const struct nack_config *config)
{
	struct nack *n;

	*out = NULL;
	if (config->rtt_us == 0 || config->max_age_us == 0 || config->max_age_us > INT32_MAX / 2 ||
	    config->reorder_us > config->max_age_us || config->max_missing == 0 ||
	    config->max_missing > NACK_WINDOW_PKTS)
		return -EINVAL;
	n = calloc(1, sizeof(*n) + config->max_missing * sizeof(n->gaps[0]));
	if (!n)
		return -ENOMEM;
	n->config = *config;
	n->next_due_us = UINT64_MAX;
	n->reorder_us = config->reorder_us;
	*out = n;
	return 0;
}

void nack_destroy(struct nack *n)
{
	free(n);
}

void nack_reset(struct nack *n)
{
	n->stats.given_up += n->count;
	n->count = 0;
	n->next_due_us = UINT64_MAX;
	n->is_started = false;
}

static uint32_t retry_us(const struct nack *n)
{
	if (n->config.rtt_us < NACK_MIN_RETRY_US)
		return NACK_MIN_RETRY_US;
	if (n->config.rtt_us > NACK_MAX_RETRY_US)
		return NACK_MAX_RETRY_US;
	return n->config.rtt_us;
}

static uint32_t due_us_of(const struct nack *n, const struct gap *g)
{
	return g->tries > 0 ? g->at_us + retry_us(n) : g->at_us;
}

void nack_set_rtt(struct nack *n, uint32_t rtt_us, uint64_t now_us)
{
	int32_t next_in_us = INT32_MAX;

	assert(rtt_us > 0);
	n->config.rtt_us = rtt_us;
	for (size_t i = 0; i < n->count; i++) {
		int32_t in_us = (int32_t)(due_us_of(n, &n->gaps[i]) - (uint32_t)now_us);

		next_in_us = in_us < next_in_us ? in_us : next_in_us;
	}
	if (n->count > 0)
		n->next_due_us = now_us + (uint64_t)(next_in_us > 0 ? next_in_us : 0);
}

static void remove_at(struct nack *n, size_t at, size_t count)
{
	memmove(&n->gaps[at], &n->gaps[at + count], (n->count - at - count) * sizeof(n->gaps[0]));
	n->count = (uint16_t)(n->count - count);
	if (n->count == 0)
		n->next_due_us = UINT64_MAX;
}

/* What comes by itself tells how long to wait; what had to be repaired, that waiting was in vain. */
static void follow_reordering(struct nack *n, const struct gap *g, uint64_t now_us)
{
	uint32_t late_us = ((uint32_t)now_us - g->noticed_us) / 4 * 5;
	/* Sooner than a repair can come. */
	bool is_by_itself =
	    g->tries == 0 || (g->tries == 1 && (uint32_t)now_us - g->at_us < n->config.rtt_us / 2);

	if (!is_by_itself)
		late_us = n->reorder_us - n->reorder_us / 8;
	else if (late_us < n->reorder_us)
		return;
	if (late_us < NACK_REORDER_MIN_US)
		late_us = NACK_REORDER_MIN_US;
	n->reorder_us = late_us < n->config.reorder_us ? late_us : n->config.reorder_us;
}

/* A missing number came after all. */
static void on_late(struct nack *n, uint16_t seq, uint64_t now_us)
{
	size_t low = 0, high = n->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (rtp_seq_is_newer(seq, n->gaps[mid].seq))
			low = mid + 1;
		else
			high = mid;
	}
	if (low == n->count || n->gaps[low].seq != seq)
		return;
	if (n->gaps[low].tries == 1)
		n->answer_us = (uint32_t)now_us - n->gaps[low].at_us;
	if (n->gaps[low].tries > 0)
		n->stats.recovered++;
	else
		n->stats.reordered++;
	follow_reordering(n, &n->gaps[low], now_us);
	remove_at(n, low, 1);
}

/* Note the numbers first..last as missing; where the list is full, the oldest are given up. */
static void add_gaps(struct nack *n, uint16_t first, size_t count, uint64_t now_us)
{
	size_t cap = n->config.max_missing;
	size_t skipped = count > cap ? count - cap : 0;
	uint64_t due_us = now_us + n->reorder_us;

	n->stats.missing += count;
	n->stats.given_up += skipped;
	count -= skipped;
	if (n->count + count > cap) {
		size_t out = n->count + count - cap;

		n->stats.given_up += out;
		remove_at(n, 0, out);
	}
	for (size_t i = 0; i < count; i++)
		n->gaps[n->count++] = (struct gap){
			.noticed_us = (uint32_t)now_us,
			.at_us = (uint32_t)due_us,
			.seq = (uint16_t)(first + skipped + i),
		};
	if (due_us < n->next_due_us)
		n->next_due_us = due_us;
}

/* What has fallen NACK_REORDER_PKTS behind is lost, not late: due at once. */
static void hasten(struct nack *n, uint64_t now_us)
{
	for (size_t i = n->count; i-- > 0;) {
		struct gap *g = &n->gaps[i];

		if (rtp_seq_diff(n->newest, g->seq) < NACK_REORDER_PKTS)
			continue;
		if (g->tries > 0 || (int32_t)(g->at_us - (uint32_t)now_us) <= 0)
			return; /* and so are all older ones */
		g->at_us = (uint32_t)now_us;
		n->next_due_us = now_us;
	}
}

int nack_on_packet(struct nack *n, uint16_t seq, uint64_t now_us)
{
	int ahead = rtp_seq_diff(seq, n->newest);

	n->answer_us = 0;
	if (!n->is_started) {
		n->is_started = true;
		n->newest = seq;
		return 0;
	}
	if (ahead <= 0) {
		on_late(n, seq, now_us);
		return 0;
	}
	if (ahead > NACK_WINDOW_PKTS) {
		nack_reset(n);
		n->is_started = true;
		n->newest = seq;
		return -ERANGE;
	}
	if (ahead > 1)
		add_gaps(n, (uint16_t)(n->newest + 1), (size_t)ahead - 1, now_us);
	n->newest = seq;
	while (n->count > 0 && rtp_seq_diff(seq, n->gaps[0].seq) > MAX_BEHIND_PKTS) {
		n->stats.given_up++;
		remove_at(n, 0, 1);
	}
	hasten(n, now_us);
	return ahead - 1;
}

static bool is_hopeless(const struct nack *n, const struct gap *g, uint64_t now_us)
{
	return (uint32_t)now_us - g->noticed_us > n->config.max_age_us;
}

size_t nack_poll(struct nack *n, uint64_t now_us, uint16_t *seqs, size_t cap)
{
	int32_t next_in_us = INT32_MAX;
	size_t written = 0, kept = 0;

	if (now_us < n->next_due_us)
		return 0;
	for (size_t i = 0; i < n->count; i++) {
		struct gap g = n->gaps[i];
		bool is_due = (int32_t)(due_us_of(n, &g) - (uint32_t)now_us) <= 0;
		int32_t in_us;

		if (is_hopeless(n, &g, now_us) || (is_due && g.tries == NACK_MAX_TRIES)) {
			n->stats.given_up++;
			continue;
		}
		if (is_due && written < cap) {
			seqs[written++] = g.seq;
			if (g.tries++ == 0)
				n->stats.requested++;
			else
				n->stats.repeated++;
			g.at_us = (uint32_t)now_us;
		}
		in_us = (int32_t)(due_us_of(n, &g) - (uint32_t)now_us);
		next_in_us = in_us < next_in_us ? in_us : next_in_us;
		n->gaps[kept++] = g;
	}
	n->count = (uint16_t)kept;
	n->next_due_us =
	    kept == 0 ? UINT64_MAX : now_us + (uint64_t)(next_in_us > 0 ? next_in_us : 0);
	return written;
}

uint64_t nack_deadline_us(const struct nack *n)
{
	return n->next_due_us;
}

uint32_t nack_answer_us(const struct nack *n)
{
	return n->answer_us;
}

size_t nack_missing(const struct nack *n)
{
	return n->count;
}

void nack_stats(const struct nack *n, struct nack_stats *out)
{
	*out = n->stats;
}
