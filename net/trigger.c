/* net/trigger.c - see trigger.h for the contract. */
#include "net/trigger.h"

#include <assert.h>
#include <errno.h>

void trigger_init(struct trigger *t, uint64_t interval_us)
{
	*t = (struct trigger){ .interval_us = interval_us };
}

int trigger_request(struct trigger *t, uint64_t now_us, uint32_t reasons, uint32_t folds)
{
	assert(reasons != 0 && folds != 0);
	if (t->stopped)
		return -ESHUTDOWN;
	if (t->pending == 0)
		t->first_us = now_us;
	t->pending += folds;
	t->requests += folds;
	t->reasons |= reasons;
	return 0;
}

uint64_t trigger_due_us(const struct trigger *t)
{
	if (t->pending == 0 || t->running)
		return UINT64_MAX;
	if (t->draining)
		return t->first_us; /* shutdown interrupts the wait */
	return t->earliest_us > t->first_us ? t->earliest_us : t->first_us;
}

bool trigger_begin(struct trigger *t, uint64_t now_us, struct trigger_run *run)
{
	if (trigger_due_us(t) > now_us)
		return false;
	*run = (struct trigger_run){
		.reasons = t->reasons,
		.folds = t->pending,
		.latency_us = now_us - t->first_us,
	};
	t->pending = 0;
	t->reasons = 0;
	t->running = true;
	t->earliest_us = now_us + t->interval_us;
	t->runs++;
	return true;
}

void trigger_end(struct trigger *t)
{
	assert(t->running);
	t->running = false;
}

uint32_t trigger_withdraw(struct trigger *t)
{
	uint32_t withdrawn = t->pending;

	t->dropped += withdrawn;
	t->pending = 0;
	t->reasons = 0;
	return withdrawn;
}

void trigger_stop(struct trigger *t, enum trigger_stop how)
{
	if (t->stopped)
		return;
	t->stopped = true;
	if (how == TRIGGER_DRAIN) {
		t->draining = true;
		return;
	}
	(void)trigger_withdraw(t);
}
