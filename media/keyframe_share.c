/* media/keyframe_share.c - see keyframe_share.h for the contract. */
#include "media/keyframe_share.h"

#include <assert.h>

enum { WHOLE_PERCENT = 100 };

void keyframe_share_init(struct keyframe_share *k, uint32_t percent)
{
	assert(percent >= 1 && percent <= WHOLE_PERCENT);
	*k = (struct keyframe_share){ .percent = percent };
}

static void measure(struct keyframe_share *k, uint32_t bytes, uint64_t now_us)
{
	uint64_t elapsed_us = now_us - k->window_us;
	uint64_t rate;

	if (k->window_us == 0) {
		k->window_us = now_us;
		elapsed_us = 0;
	}
	if (elapsed_us >= KEYFRAME_SHARE_WINDOW_US) {
		rate = (uint64_t)k->window_bytes * 1000000 / elapsed_us;
		k->bytes_per_s = k->bytes_per_s ? (3 * k->bytes_per_s + rate) / 4 : rate;
		k->window_us = now_us;
		k->window_bytes = 0;
	}
	k->window_bytes += bytes;
}

bool keyframe_share_on_packet(struct keyframe_share *k, uint32_t timestamp, uint32_t bytes,
			      bool begins_keyframe, uint64_t now_us)
{
	bool is_known = k->keyframe_bytes && timestamp == k->timestamp;
	int64_t price, most;

	measure(k, bytes, now_us);
	k->balance_percent += (int64_t)bytes * k->percent;
	if (begins_keyframe && !is_known) {
		k->former_bytes = k->keyframe_bytes;
		k->keyframe_bytes = 0;
		k->timestamp = timestamp;
	}
	if (begins_keyframe || is_known) {
		k->keyframe_bytes += bytes;
		if (k->former_bytes)
			k->balance_percent -= (int64_t)bytes * WHOLE_PERCENT;
		else
			k->balance_percent += (int64_t)bytes * WHOLE_PERCENT;
	}
	price = (int64_t)WHOLE_PERCENT *
		(k->keyframe_bytes > k->former_bytes ? k->keyframe_bytes : k->former_bytes);
	most = (KEYFRAME_SHARE_BURST - 1) * price;
	if (k->balance_percent < -price)
		k->balance_percent = -price;
	if (k->balance_percent > most)
		k->balance_percent = most;
	/* Parameter sets and slices may each look like a beginning: the first one is it. */
	return begins_keyframe && !is_known;
}

uint64_t keyframe_share_wait_us(const struct keyframe_share *k)
{
	uint64_t earned_a_s = k->bytes_per_s * k->percent;

	if (k->percent == WHOLE_PERCENT || k->balance_percent >= 0)
		return 0;
	if (earned_a_s == 0)
		return UINT64_MAX;
	return (uint64_t)-k->balance_percent * 1000000 / earned_a_s + 1;
}
