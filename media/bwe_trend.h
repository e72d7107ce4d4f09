/* media/bwe_trend.h - is a queue growing on the way to a peer?
 *
 * Packets sent together form a group. From group to group, the time between arrivals is compared with
 * the time between departures; the differences sum up to the queueing delay (but for a constant), whose
 * slope is found by linear regression over the last groups. A slope above a threshold for long enough is
 * overuse. The threshold follows the slopes seen, so that a path that always trembles is not taken
 * for a congested one.
 *
 * Source:  draft-ietf-rmcat-gcc-02 sections 5.1 to 5.4, the Kalman filter replaced by the regression
 *          that later senders use.
 * Sans-IO: time is an argument; the two clocks need not agree.
 * Thread:  one worker.
 * Memory:  caller's storage, plain values.
 */
#ifndef MEDIA_BWE_TREND_H
#define MEDIA_BWE_TREND_H

#include <stdbool.h>
#include <stdint.h>

enum {
	BWE_TREND_GROUPS = 20,     /* of the regression */
	BWE_TREND_MIN_GROUPS = 10, /* fewer have no slope */
	BWE_GROUP_US = 5000,       /* sent within: one group */
	BWE_BASE_US = 10000000, /* the least delay of one or two such spans is that of no queue */
};

enum bwe_usage {
	BWE_NORMAL,
	BWE_OVERUSE,
	BWE_UNDERUSE, /* a queue drains */
};

struct bwe_group {
	int64_t first_sent_us, last_sent_us;
	int64_t first_arrival_us, last_arrival_us;
};

struct bwe_trend {
	struct bwe_group current, previous;
	bool has_current, has_previous;
	enum bwe_usage usage;
	uint32_t deltas; /* seen so far, at most 60 are told apart */
	uint32_t count;  /* entries of the window */
	uint32_t next;   /* its ring */
	int64_t origin_us;
	double accumulated_ms, smoothed_ms;
	double at_ms[BWE_TREND_GROUPS], delay_ms[BWE_TREND_GROUPS];
	double last_slope;
	double threshold_ms;
	int64_t adapted_us;             /* when the threshold was */
	double base_ms, base_before_ms; /* least smoothed_ms of this span and of the last one */
	int64_t base_us;                /* when this one began */
	double over_ms;                 /* for how long it has been exceeded; below 0: it is not */
	uint32_t overs;
};

void bwe_trend_init(struct bwe_trend *t);

/** One packet that arrived, in the order of departure; others are left out. */
void bwe_trend_on_packet(struct bwe_trend *t, int64_t sent_us, int64_t arrival_us);

/** The queue now, in ms of delay; what has stood for longer than BWE_BASE_US counts as distance. */
double bwe_trend_queue_ms(const struct bwe_trend *t);

static inline enum bwe_usage bwe_trend_usage(const struct bwe_trend *t)
{
	return t->usage;
}

#endif
