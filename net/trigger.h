/* net/trigger.h - many requests, one run: the folded trigger behind keyframe requests and stats.
 *
 * A request on an idle trigger runs at once (leading edge). Requests during the interval that
 * follows fold into one run at its end (trailing edge); start-to-start spacing is never below the
 * interval, a trigger nobody asked never runs, and every request is answered by exactly one run
 * or counted as dropped.
 *
 * Sans-IO: time is an argument. The owner arms one timer for trigger_due_us().
 * Thread:  the owner's. Other threads fold on their own side and mail one request.
 * Memory:  a plain value.
 */
#ifndef NET_TRIGGER_H
#define NET_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

enum trigger_stop { TRIGGER_DRAIN, TRIGGER_DROP };

struct trigger {
	uint64_t interval_us;
	uint64_t earliest_us; /* no run may start before */
	uint64_t first_us;    /* when the oldest unserved request came */
	uint32_t pending;     /* requests since the last run began */
	uint32_t reasons;     /* their reasons together */
	bool running, stopped, draining;
	uint64_t requests, runs, dropped; /* for metrics; folds of all runs + dropped = requests */
};

struct trigger_run {
	uint32_t reasons;
	uint32_t folds;      /* requests this run answers, at least 1 */
	uint64_t latency_us; /* since the first of them */
};

void trigger_init(struct trigger *t, uint64_t interval_us);

/** Ask for a run. @param reasons bits of the caller's choosing, not 0
 *  @param folds how many requests this one stands for, at least 1
 *  @return 0 or -ESHUTDOWN after trigger_stop() */
int trigger_request(struct trigger *t, uint64_t now_us, uint32_t reasons, uint32_t folds);

/** When trigger_begin() will have work; UINT64_MAX while nothing is asked or a run is on. */
uint64_t trigger_due_us(const struct trigger *t);

/** Begin a run if one is due. @return false: nothing to do, *run untouched. True: the caller acts
 *  and then calls trigger_end(); requests made meanwhile belong to the next run. */
bool trigger_begin(struct trigger *t, uint64_t now_us, struct trigger_run *run);
void trigger_end(struct trigger *t);

/** What is pending needs no run any more: it was answered otherwise, and counts as dropped.
 *  @return how many requests that were */
uint32_t trigger_withdraw(struct trigger *t);

/** No further requests. What is pending runs once more, without waiting (TRIGGER_DRAIN), or is
 *  counted as dropped. Idempotent: the first call decides. */
void trigger_stop(struct trigger *t, enum trigger_stop how);

#endif
