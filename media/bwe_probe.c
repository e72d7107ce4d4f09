/* media/bwe_probe.c - see bwe_probe.h for the contract. */
#include "media/bwe_probe.h"

#include <assert.h>
#include <math.h>

static const double enough = 0.8;      /* of what was sent must arrive */
static const double saturated = 0.9;   /* arriving slower than that: the link was full ... */
static const double below_full = 0.95; /* ... and is not to be filled again */

void bwe_probe_begin(struct bwe_probe *p, double rate_bps, uint64_t now_us)
{
	uint8_t id = p->id == UINT8_MAX ? 1 : (uint8_t)(p->id + 1);

	assert(p->state == BWE_PROBE_IDLE && rate_bps > 0);
	*p = (struct bwe_probe){
		.state = BWE_PROBE_SENDING,
		.id = id,
		.rate_bps = rate_bps,
		.begun_us = now_us,
	};
}

uint32_t bwe_probe_due_bytes(const struct bwe_probe *p, uint64_t now_us)
{
	double due_bytes;

	if (p->state != BWE_PROBE_SENDING)
		return 0;
	/* What belongs into the coming tick leaves at its beginning: else the rate between the first and
	 * the last packet would be too low. */
	due_bytes = p->rate_bps / 8e6 * (double)(now_us - p->begun_us + BWE_PROBE_TICK_US);
	return due_bytes > p->sent_bytes ? (uint32_t)ceil(due_bytes - p->sent_bytes) : 0;
}

uint8_t bwe_probe_on_sent(struct bwe_probe *p, uint32_t bytes, uint64_t now_us)
{
	if (p->state != BWE_PROBE_SENDING)
		return 0;
	if (p->sent_pkts == 0)
		p->first_sent_us = (int64_t)now_us;
	if (p->sent_pkts == 0 || p->last_sent_us != (int64_t)now_us)
		p->last_sent_bytes = 0;
	p->last_sent_us = (int64_t)now_us;
	p->last_sent_bytes += bytes;
	p->sent_pkts++;
	p->sent_bytes += bytes;
	if (p->sent_pkts >= BWE_PROBE_MIN_PKTS &&
	    p->sent_bytes >= p->rate_bps / 8e6 * BWE_PROBE_US && p->last_sent_us > p->first_sent_us)
		p->state = BWE_PROBE_WAITING;
	return p->id;
}

void bwe_probe_on_arrival(struct bwe_probe *p, uint8_t id, uint32_t bytes, int64_t arrival_us)
{
	if (p->state == BWE_PROBE_IDLE || id != p->id)
		return;
	if (p->got_pkts == 0) {
		p->first_arrival_us = p->last_arrival_us = arrival_us;
		p->first_got_bytes = bytes;
	}
	if (arrival_us > p->last_arrival_us)
		p->last_arrival_us = arrival_us;
	p->got_pkts++;
	p->got_bytes += bytes;
}

/* What came through, in bit/s; 0: cannot be said. */
static double measure(const struct bwe_probe *p)
{
	double sent_us = (double)(p->last_sent_us - p->first_sent_us);
	double got_us = (double)(p->last_arrival_us - p->first_arrival_us);
	double sent_bps = (p->sent_bytes - p->last_sent_bytes) * 8e6 / sent_us;
	double got_bps;

	if (got_us <= 0)
		return 0;
	got_bps = (p->got_bytes - p->first_got_bytes) * 8e6 / got_us;
	if (got_bps < saturated * sent_bps)
		return below_full * got_bps;
	return fmin(sent_bps, got_bps);
}

enum bwe_probe_result bwe_probe_poll(struct bwe_probe *p, uint64_t now_us, double *bps)
{
	bool is_complete = p->state == BWE_PROBE_WAITING && p->got_pkts >= enough * p->sent_pkts &&
			   p->got_bytes >= enough * p->sent_bytes;
	uint64_t limit_us =
	    p->state == BWE_PROBE_SENDING ? BWE_PROBE_TIMEOUT_US : 2 * BWE_PROBE_TIMEOUT_US;

	if (p->state == BWE_PROBE_IDLE || (!is_complete && now_us - p->begun_us < limit_us))
		return BWE_PROBE_PENDING;
	p->state = BWE_PROBE_IDLE;
	*bps = is_complete ? measure(p) : 0;
	return *bps > 0 ? BWE_PROBE_MEASURED : BWE_PROBE_FAILED;
}
