/* server/keyasks.h - when a source is asked for a key frame.
 *
 * Requests of viewers, of those who join and of the relay itself fold into one per interval. Beyond
 * that, key frames may take only a share of what the source sends (media/keyframe_share.h): a
 * request that would exceed it is held back, at most KEYASKS_WAIT_US; one of somebody who has no
 * picture at all no longer than KEYASKS_URGENT_US, so that the key frame is there within a second. A
 * key frame answers all that were asked before it came, also those not passed on yet. A request that
 * brings none is repeated.
 *
 * Sans-IO: time is an argument. The owner arms a timer for keyasks_due_us().
 * Thread:  the owner's.
 * Memory:  a plain value, one for each encoding of a source.
 */
#ifndef SERVER_KEYASKS_H
#define SERVER_KEYASKS_H

#include "media/keyframe_share.h"
#include "net/trigger.h"

enum {
	KEYASKS_URGENT_US = 700000, /* since asked; the interval comes on top where it is longer */
	KEYASKS_WAIT_US = 4000000,
	KEYASKS_TRIES = 5, /* requests in a row without a key frame */
	KEYASKS_RETRY_MIN_US = 500000,
};

struct keyasks {
	struct trigger trigger;
	struct keyframe_share share;
	uint64_t urgent_us;  /* when the oldest unserved urgent request came; UINT64_MAX: none */
	uint64_t held_to_us; /* 0 while nothing is held back */
	uint64_t retry_us;   /* UINT64_MAX: nothing to repeat */
	uint32_t retry_reasons;
	unsigned tries; /* since the last key frame, or request of somebody else */
};

/** @param percent share of key frames, 1..100 */
void keyasks_init(struct keyasks *k, uint64_t interval_us, uint32_t percent);

/** No key frame of this source can be recognised: a request is not repeated for want of one. */
void keyasks_assume_answered(struct keyasks *k);

/** Somebody wants a key frame.
 *  @param reasons not 0; @param folds requests this one stands for, at least 1
 *  @param is_urgent who asks shows no picture without it */
void keyasks_want(struct keyasks *k, uint64_t now_us, uint32_t reasons, uint32_t folds,
		  bool is_urgent);

enum keyasks_verdict {
	KEYASKS_IDLE, /* nothing to do before keyasks_due_us() */
	KEYASKS_HELD, /* the share holds back what would be due: told once for each such request */
	KEYASKS_ASK,  /* send a request; *run says for whom */
};

/** To be called after keyasks_want() and at the deadline. */
enum keyasks_verdict keyasks_poll(struct keyasks *k, uint64_t now_us, struct trigger_run *run);

/** UINT64_MAX: idle. */
uint64_t keyasks_due_us(const struct keyasks *k);

/** A media packet of the source.
 *  @param begins_keyframe one may begin with it, or with one of the same frame
 *  @param answered receives how many requests waited to be passed on that it answers
 *  @return whether a key frame begins with it */
bool keyasks_on_packet(struct keyasks *k, uint32_t timestamp, uint32_t bytes, bool begins_keyframe,
		       uint64_t now_us, uint32_t *answered);

/** Nothing more is asked. */
void keyasks_stop(struct keyasks *k);

#endif
