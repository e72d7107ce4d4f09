/* media/pacer.c - see pacer.h for the contract. */
#include "media/pacer.h"

#include <assert.h>

void pacer_init(struct pacer *p, uint64_t target_bps)
{
	*p = (struct pacer){ 0 };
	pacer_set_rate(p, target_bps, 0);
}

void pacer_set_rate(struct pacer *p, uint64_t target_bps, uint64_t backlog_bytes)
{
	double needed = (double)backlog_bytes / PACER_MAX_DELAY_US;
	double bytes_per_us = (double)target_bps * PACER_FACTOR_PERCENT / 100 / 8e6;

	assert(target_bps > 0);
	if (backlog_bytes == 0 || needed > p->needed_per_us)
		p->needed_per_us = needed;
	if (p->needed_per_us > bytes_per_us)
		bytes_per_us = p->needed_per_us;
	p->us_per_byte = 1 / bytes_per_us;
}

void pacer_on_sent(struct pacer *p, uint32_t bytes, uint64_t now_us)
{
	if (p->free_us < now_us)
		p->free_us = now_us;
	p->free_us += (uint64_t)(bytes * p->us_per_byte);
	if (p->free_us > now_us + PACER_BURST_US)
		p->resume_us = p->free_us - PACER_BURST_US + PACER_PART_US;
}
