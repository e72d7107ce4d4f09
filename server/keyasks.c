/* server/keyasks.c - see keyasks.h for the contract. */
#include "server/keyasks.h"

enum { HELD_STEP_US = 20000 }; /* how often the source's rate is looked at anew */

void keyasks_init(struct keyasks *k, uint64_t interval_us, uint32_t percent)
{
	*k = (struct keyasks){ .urgent_us = UINT64_MAX, .retry_us = UINT64_MAX };
	trigger_init(&k->trigger, interval_us);
	keyframe_share_init(&k->share, percent);
}

void keyasks_want(struct keyasks *k, uint64_t now_us, uint32_t reasons, uint32_t folds,
		  bool is_urgent)
{
	if (trigger_request(&k->trigger, now_us, reasons, folds))
		return;
	k->tries = 0;
	if (is_urgent && k->urgent_us == UINT64_MAX)
		k->urgent_us = now_us;
}

/* The latest moment at which what is asked now may still be held back. */
static uint64_t limit_us(const struct keyasks *k)
{
	uint64_t limit = k->trigger.first_us + KEYASKS_WAIT_US;

	if (k->urgent_us != UINT64_MAX && k->urgent_us + KEYASKS_URGENT_US < limit)
		limit = k->urgent_us + KEYASKS_URGENT_US;
	return limit;
}

/* @return until when the share holds it back; now_us or earlier: not at all */
static uint64_t hold_us(const struct keyasks *k, uint64_t now_us)
{
	uint64_t limit = limit_us(k);
	uint64_t wait_us = keyframe_share_wait_us(&k->share);

	if (limit <= now_us || wait_us == 0)
		return now_us;
	if (wait_us < HELD_STEP_US)
		wait_us = HELD_STEP_US;
	return limit - now_us < wait_us ? limit : now_us + wait_us;
}

static uint64_t retry_after_us(const struct keyasks *k)
{
	return k->trigger.interval_us > KEYASKS_RETRY_MIN_US ? k->trigger.interval_us
							     : KEYASKS_RETRY_MIN_US;
}

enum keyasks_verdict keyasks_poll(struct keyasks *k, uint64_t now_us, struct trigger_run *run)
{
	bool was_held = k->held_to_us != 0;

	if (k->retry_us <= now_us) {
		k->retry_us = UINT64_MAX;
		if (k->trigger.pending == 0) /* else that is repetition enough */
			(void)trigger_request(&k->trigger, now_us, k->retry_reasons, 1);
	}
	if (trigger_due_us(&k->trigger) > now_us)
		return KEYASKS_IDLE;
	k->held_to_us = hold_us(k, now_us);
	if (k->held_to_us > now_us)
		return was_held ? KEYASKS_IDLE : KEYASKS_HELD;
	k->held_to_us = 0;
	k->urgent_us = UINT64_MAX;
	if (!trigger_begin(&k->trigger, now_us, run))
		return KEYASKS_IDLE;
	trigger_end(&k->trigger);
	k->retry_reasons = run->reasons;
	k->tries++;
	k->retry_us = k->tries < KEYASKS_TRIES ? now_us + retry_after_us(k) : UINT64_MAX;
	return KEYASKS_ASK;
}

void keyasks_assume_answered(struct keyasks *k)
{
	k->retry_us = UINT64_MAX;
	k->tries = 0;
}

uint64_t keyasks_due_us(const struct keyasks *k)
{
	uint64_t due_us = trigger_due_us(&k->trigger);

	if (due_us != UINT64_MAX && k->held_to_us > due_us)
		due_us = k->held_to_us;
	return k->retry_us < due_us ? k->retry_us : due_us;
}

bool keyasks_on_packet(struct keyasks *k, uint32_t timestamp, uint32_t bytes, bool begins_keyframe,
		       uint64_t now_us, uint32_t *answered)
{
	*answered = 0;
	if (!keyframe_share_on_packet(&k->share, timestamp, bytes, begins_keyframe, now_us))
		return false;
	k->tries = 0;
	k->retry_us = UINT64_MAX;
	k->urgent_us = UINT64_MAX;
	k->held_to_us = 0;
	*answered = trigger_withdraw(&k->trigger);
	return true;
}

void keyasks_stop(struct keyasks *k)
{
	trigger_stop(&k->trigger, TRIGGER_DROP);
	k->retry_us = UINT64_MAX;
}
