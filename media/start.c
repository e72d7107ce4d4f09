/* media/start.c - see start.h for the contract. */
#include "media/start.h"

#include "media/packet.h"
#include "media/rtp.h"

uint64_t start_of_frame(const struct history *h, const struct slab *slab, uint64_t after)
{
	uint64_t index = packet_of_const(slab)->index;
	uint32_t timestamp = packet_of_const(slab)->timestamp;

	while (index - 1 > after) {
		const struct slab *before = history_get(h, index - 1);

		if (!before || packet_of_const(before)->timestamp != timestamp)
			break;
		index--;
	}
	return index;
}

/* What a walk over the stretch has seen. */
struct walk {
	uint64_t now_us;
	uint32_t last, newest; /* timestamps */
	uint32_t least_gap;    /* between two frames that follow each other, ticks */
	bool is_in_hole, is_broken;
};

static void walk_on(struct walk *w, const struct media_packet *p, bool is_first)
{
	int32_t gap;

	/* In time order: what is younger than this packet follows it, and so does a repair. */
	if (w->is_in_hole && w->now_us - p->arrival_us > START_REPAIR_US)
		w->is_broken = true;
	w->is_in_hole = false;
	if (packet_has(p, PACKET_RESTART) && !is_first)
		w->is_broken = true;
	if (packet_has(p, PACKET_PADDING_ONLY))
		return;
	if (is_first)
		w->last = w->newest = p->timestamp;
	gap = rtp_timestamp_diff(p->timestamp, w->last);
	if (gap < 0)
		gap = -gap;
	if (gap > 0 && (uint32_t)gap < w->least_gap)
		w->least_gap = (uint32_t)gap;
	w->last = p->timestamp;
	if (rtp_timestamp_diff(p->timestamp, w->newest) > 0)
		w->newest = p->timestamp;
}

enum start_verdict start_find(const struct history *h, const struct start_limits *limits,
			      uint64_t now_us, struct start *out)
{
	const struct slab *keyframe = history_keyframe(h);
	struct walk walk = { .now_us = now_us, .least_gap = SQUEEZE_DIVISOR };
	uint64_t newest = history_newest_index(h);
	uint64_t first;

	if (!keyframe)
		return START_NO_KEYFRAME;
	if (now_us - packet_of_const(keyframe)->arrival_us > limits->max_age_us)
		return START_STALE;
	first = start_of_frame(h, keyframe, 0);
	if (newest - first >= limits->max_pkts)
		return START_LARGE;
	for (uint64_t index = first; index <= newest && !walk.is_broken; index++) {
		const struct slab *s = history_get(h, index);

		if (s)
			walk_on(&walk, packet_of_const(s), index == first);
		else
			walk.is_in_hole = true;
	}
	if (walk.is_broken)
		return START_BROKEN;
	*out = (struct start){
		.first_index = first,
		.squeeze = { .through_index = newest + SQUEEZE_MARGIN_PKTS,
			     .base = walk.newest,
			     .divisor = walk.least_gap },
	};
	return START_HIT;
}
