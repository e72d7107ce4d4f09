/* media/keyframe_share.h - how much of what a source sends may be key frames.
 *
 * A key frame costs many times what other frames cost; an encoder that has to make one for every
 * request pays for them with the quality of all others. So key frames get an account: whatever the
 * source sends earns it a share, each byte of a key frame draws on it. When full, which the first
 * key frame makes it, KEYFRAME_SHARE_BURST may follow each other at any pace; beyond, they wait until
 * their share has been earned. Key frames that nobody asked for draw on it too, but never deeper than
 * the price of one.
 *
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  a plain value.
 */
#ifndef MEDIA_KEYFRAME_SHARE_H
#define MEDIA_KEYFRAME_SHARE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	KEYFRAME_SHARE_BURST = 2,
	KEYFRAME_SHARE_WINDOW_US = 500000, /* over which the source's rate is measured */
};

struct keyframe_share {
	int64_t balance_percent; /* in 1/100 bytes */
	uint32_t percent;        /* what key frames may take */
	uint32_t keyframe_bytes; /* of the newest key frame, as far as it came */
	uint32_t former_bytes;   /* of the one before it */
	uint32_t timestamp;      /* the newest one's, in RTP ticks */
	uint32_t window_bytes;   /* of the source since window_us */
	uint64_t window_us;      /* 0: nothing came yet */
	uint64_t bytes_per_s;    /* of the source, key frames included */
};

/** @param percent 1..100; 100: no bound */
void keyframe_share_init(struct keyframe_share *k, uint32_t percent);

/** A packet of the source.
 *  @param begins_keyframe one may begin with it, or with one of the same frame
 *  @return whether a key frame begins with it */
bool keyframe_share_on_packet(struct keyframe_share *k, uint32_t timestamp, uint32_t bytes,
			      bool begins_keyframe, uint64_t now_us);

/** How long from now the next key frame has to wait, as far as the source's rate tells; 0: not at
 *  all, UINT64_MAX: the source is silent. */
uint64_t keyframe_share_wait_us(const struct keyframe_share *k);

#endif
