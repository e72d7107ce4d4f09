/* media/stretch.c - see stretch.h for the contract.
 *
 * Without a key frame the history holds the packets of one frame only, the newest: parameter sets come
 * ahead of the packet that shows what they begin.
 */
#include "media/stretch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "media/history.h"
#include "media/packet.h"
#include "media/start.h"

struct stretch {
	struct stretch_config config;
	struct history *history;
	bool has_keyframe;
	uint64_t first; /* of the key frame */
	uint64_t first_us;
	uint32_t frame_timestamp; /* without a key frame: of what is held */
};

int stretch_create(struct stretch **out, const struct stretch_config *config,
		   struct slab_pool *pool)
{
	struct history_config history = { .capacity_pkts = config->max_pkts };
	struct stretch *st = calloc(1, sizeof(*st));
	int err;

	*out = NULL;
	if (!st)
		return -ENOMEM;
	st->config = *config;
	err = history_create(&st->history, &history, pool);
	if (err) {
		free(st);
		return err;
	}
	*out = st;
	return 0;
}

void stretch_destroy(struct stretch *st)
{
	if (!st)
		return;
	history_destroy(st->history);
	free(st);
}

static void let_go(struct stretch *st)
{
	history_clear(st->history);
	st->has_keyframe = false;
}

void stretch_expire(struct stretch *st, uint64_t now_us)
{
	if (st->has_keyframe && now_us - st->first_us > st->config.max_age_us)
		let_go(st);
}

static void begin_at(struct stretch *st, const struct slab *s)
{
	uint64_t first = start_of_frame(st->history, s, 0);

	if (st->has_keyframe && first <= st->first)
		return; /* another packet of the same one */
	st->has_keyframe = true;
	st->first = first;
	st->first_us = packet_of_const(s)->arrival_us;
	history_drop_below(st->history, first);
}

void stretch_on_packet(struct stretch *st, struct slab *s, uint64_t now_us)
{
	const struct media_packet *p = packet_of_const(s);
	enum history_verdict verdict;

	stretch_expire(st, now_us);
	if (!st->has_keyframe && p->timestamp != st->frame_timestamp) {
		history_clear(st->history);
		st->frame_timestamp = p->timestamp;
	}
	verdict = history_put(st->history, s, now_us);
	if (verdict != HISTORY_NEWEST && verdict != HISTORY_LATE)
		return; /* the reference is gone, and perhaps the packet */
	if (st->has_keyframe && history_oldest_index(st->history) > st->first)
		let_go(st);
	else if (packet_has(p, PACKET_KEYFRAME))
		begin_at(st, s);
}

struct slab *stretch_next(const struct stretch *st, uint64_t cursor)
{
	return st->has_keyframe ? history_next(st->history, cursor) : NULL;
}

size_t stretch_bytes(const struct stretch *st)
{
	return sizeof(*st) + history_bytes(st->history);
}
