/* media/bwe_window.c - see bwe_window.h for the contract. */
#include "media/bwe_window.h"

#include <assert.h>
#include <string.h>

enum { CLOCK_JUMP_US = 3000000 }; /* back by so much: the clock was set, begin anew */

static int64_t bin_of(int64_t time_us)
{
	return time_us / BWE_BIN_US;
}

static uint32_t *bytes_of(struct bwe_window *w, int64_t bin)
{
	return &w->bytes[(uint64_t)bin % BWE_BINS];
}

/* Empty bins up to that of time_us. */
static void advance(struct bwe_window *w, int64_t time_us)
{
	int64_t bin = bin_of(w->newest_us);
	int64_t last = bin_of(time_us);

	if (last - bin > BWE_BINS)
		bin = last - BWE_BINS;
	while (bin < last)
		*bytes_of(w, ++bin) = 0;
	w->newest_us = time_us;
}

void bwe_window_add(struct bwe_window *w, int64_t time_us, uint32_t bytes)
{
	if (!w->is_used || w->newest_us - time_us > CLOCK_JUMP_US) {
		memset(w->bytes, 0, sizeof(w->bytes));
		w->is_used = true;
		w->first_us = w->newest_us = time_us;
	} else if (time_us > w->newest_us) {
		advance(w, time_us);
	} else if (bin_of(w->newest_us) - bin_of(time_us) >= BWE_BINS) {
		return;
	}
	*bytes_of(w, bin_of(time_us)) += bytes;
}

uint64_t bwe_window_bps(const struct bwe_window *w, int64_t span_us)
{
	int64_t newest = bin_of(w->newest_us);
	int64_t oldest = newest - span_us / BWE_BIN_US + 1;
	int64_t begin_us;
	uint64_t bytes = 0;

	assert(span_us >= BWE_WINDOW_MIN_US && span_us <= BWE_BINS * BWE_BIN_US);
	if (oldest < bin_of(w->first_us))
		oldest = bin_of(w->first_us);
	begin_us = oldest * BWE_BIN_US > w->first_us ? oldest * BWE_BIN_US : w->first_us;
	if (!w->is_used || w->newest_us - begin_us < BWE_WINDOW_MIN_US - BWE_BIN_US)
		return 0;
	for (int64_t bin = oldest; bin <= newest; bin++)
		bytes += w->bytes[(uint64_t)bin % BWE_BINS];
	return bytes * 8 * 1000000 / (uint64_t)(w->newest_us - begin_us);
}

uint64_t bwe_window_bps_at(struct bwe_window *w, int64_t now_us, int64_t span_us)
{
	if (w->is_used && now_us > w->newest_us)
		advance(w, now_us);
	return bwe_window_bps(w, span_us);
}
