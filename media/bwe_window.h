/* media/bwe_window.h - how many bits a second over the last fraction of a second.
 *
 * Bytes are summed in bins of BWE_BIN_US. Times may come slightly out of order; what is older than the
 * window is left out.
 *
 * Sans-IO: time is an argument, of any clock.
 * Thread:  one worker.
 * Memory:  caller's storage, plain values; all-zero is empty.
 */
#ifndef MEDIA_BWE_WINDOW_H
#define MEDIA_BWE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
	BWE_BIN_US = 25000,
	BWE_BINS = 40,              /* one second */
	BWE_WINDOW_MIN_US = 100000, /* less than that tells nothing */
};

struct bwe_window {
	int64_t first_us, newest_us;
	bool is_used;
	uint32_t bytes[BWE_BINS]; /* of bin number time/BWE_BIN_US, modulo BWE_BINS */
};

void bwe_window_add(struct bwe_window *w, int64_t time_us, uint32_t bytes);

/**
 * The rate over the last span before the newest time added.
 *
 * @param span_us BWE_WINDOW_MIN_US to BWE_BINS * BWE_BIN_US
 * @return 0 while less than BWE_WINDOW_MIN_US was seen
 */
uint64_t bwe_window_bps(const struct bwe_window *w, int64_t span_us);

/** The same, where nothing came since: up to now_us, of the same clock. */
uint64_t bwe_window_bps_at(struct bwe_window *w, int64_t now_us, int64_t span_us);

#endif
