/* media/round_trip.c - see round_trip.h for the contract. */
#include "media/round_trip.h"

#include "media/reports.h"

static void add(struct round_trip *r, uint32_t sample_us)
{
	uint32_t off_us;

	if (sample_us == 0)
		sample_us = 1;
	if (r->smoothed_us == 0) {
		r->smoothed_us = sample_us;
		r->deviation_us = sample_us / 2;
		return;
	}
	off_us =
	    sample_us > r->smoothed_us ? sample_us - r->smoothed_us : r->smoothed_us - sample_us;
	r->deviation_us = (3 * r->deviation_us + off_us) / 4;
	r->smoothed_us = (7 * r->smoothed_us + sample_us + 4) / 8;
}

bool round_trip_on_dlrr(struct round_trip *r, const struct rtcp_dlrr *dlrr, uint64_t now_ntp,
			uint64_t now_us)
{
	/* The same arithmetic as for a report block about a sender report. */
	struct rtcp_report report = { .last_sr = dlrr->last_rr, .delay_q16_s = dlrr->delay_q16_s };
	uint32_t rtt_us;

	if (!reports_rtt(&report, now_ntp, &rtt_us))
		return false;
	if (!r->is_exact)
		r->smoothed_us = 0;
	r->is_exact = true;
	r->exact_us = now_us;
	add(r, rtt_us);
	return true;
}

void round_trip_on_repair(struct round_trip *r, uint32_t took_us, uint64_t now_us)
{
	if (took_us > ROUND_TRIP_MAX_US ||
	    (r->is_exact && now_us - r->exact_us < ROUND_TRIP_EXACT_US))
		return;
	r->is_exact = false;
	add(r, took_us);
}

uint32_t round_trip_patience_us(const struct round_trip *r)
{
	uint32_t slack_us = 2 * r->deviation_us;

	if (r->smoothed_us == 0)
		return 0;
	return r->smoothed_us + (slack_us > ROUND_TRIP_SLACK_US ? slack_us : ROUND_TRIP_SLACK_US);
}

void reference_times_note(struct reference_times *t, uint32_t ssrc, uint64_t ntp, uint64_t now_us)
{
	unsigned at = 0;

	while (at < t->count && t->items[at].ssrc != ssrc)
		at++;
	if (at == REFERENCE_TIMES) {
		at = t->next;
		t->next = (uint8_t)((t->next + 1) % REFERENCE_TIMES);
	} else if (at == t->count) {
		t->count++;
	}
	t->items[at].ssrc = ssrc;
	t->items[at].last_rr = (uint32_t)(ntp >> 16);
	t->items[at].arrival_us = now_us;
}

size_t reference_times_take(struct reference_times *t, uint64_t now_us,
			    struct rtcp_dlrr out[REFERENCE_TIMES])
{
	size_t n = t->count;

	for (size_t i = 0; i < n; i++) {
		uint64_t held_us = now_us - t->items[i].arrival_us;

		out[i] = (struct rtcp_dlrr){
			.ssrc = t->items[i].ssrc,
			.last_rr = t->items[i].last_rr,
			.delay_q16_s = (uint32_t)(held_us / 1000000 << 16 |
						  (held_us % 1000000 << 16) / 1000000),
		};
	}
	t->count = t->next = 0;
	return n;
}
