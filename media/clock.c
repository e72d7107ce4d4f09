/* media/clock.c - see clock.h for the contract.
 *
 * A report that travelled fast shows the least offset, so a smaller offset is believed at once and a
 * larger one only slowly: it is queueing, until it lasts, and then it is drift.
 */
#include "media/clock.h"

#include <assert.h>
#include <string.h>

static const uint64_t unix_epoch_s = 2208988800u; /* 1970 in seconds since 1900 */

void clock_init(struct clock *c)
{
	memset(c, 0, sizeof(*c));
}

uint64_t clock_us_of_ntp(uint64_t ntp)
{
	return (ntp >> 32) * 1000000 + (((ntp & UINT32_MAX) * 1000000 + (1u << 31)) >> 32);
}

uint64_t clock_ntp_of_us(uint64_t us_since_1900)
{
	return us_since_1900 / 1000000 << 32 | (us_since_1900 % 1000000 << 32) / 1000000;
}

uint64_t clock_ntp_of_unix_us(uint64_t unix_us)
{
	return clock_ntp_of_us(unix_us + unix_epoch_s * 1000000);
}

static void follow(struct clock *c, int64_t offset_us)
{
	int64_t excess_us = offset_us - c->offset_us;

	if (!c->has_offset) {
		c->offset_us = offset_us;
		c->has_offset = true;
	} else if (excess_us > CLOCK_STEP_US || excess_us < -CLOCK_STEP_US) {
		/* The wall clock was set: reports from before it pair with nothing any more. */
		memset(c->sources, 0, sizeof(c->sources));
		c->offset_us = offset_us;
	} else {
		c->offset_us += excess_us < 0 ? excess_us : excess_us / CLOCK_FOLLOW_DIVISOR;
	}
}

void clock_on_sr(struct clock *c, unsigned source, uint64_t ntp, uint32_t rtp, uint32_t clock_hz,
		 uint64_t arrival_us)
{
	uint64_t ntp_us = clock_us_of_ntp(ntp);

	assert(source < CLOCK_TRACKS && clock_hz > 0);
	follow(c, (int64_t)(arrival_us - ntp_us));
	c->sources[source] = (struct clock_source){
		.ntp_us = ntp_us,
		.rtp = rtp,
		.clock_hz = clock_hz,
	};
}

bool clock_anchor(const struct clock *c, unsigned source, uint32_t timestamp_offset,
		  struct clock_anchor *out)
{
	const struct clock_source *from = &c->sources[source];

	assert(source < CLOCK_TRACKS);
	*out = (struct clock_anchor){
		.at_us = from->ntp_us + (uint64_t)c->offset_us,
		.rtp = from->rtp + timestamp_offset,
		.clock_hz = from->clock_hz,
	};
	return from->clock_hz != 0;
}

uint32_t clock_anchor_rtp(const struct clock_anchor *a, uint64_t now_us)
{
	bool is_past = now_us < a->at_us;
	uint64_t us = is_past ? a->at_us - now_us : now_us - a->at_us;
	uint64_t ticks = us / 1000000 * a->clock_hz + us % 1000000 * a->clock_hz / 1000000;

	return is_past ? a->rtp - (uint32_t)ticks : a->rtp + (uint32_t)ticks;
}
