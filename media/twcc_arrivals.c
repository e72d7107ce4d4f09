/* media/twcc_arrivals.c - see twcc_arrivals.h for the contract.
 *
 * Arrival times lie in one array by ascending number, which is the form rtcp_write_twcc() takes. When
 * it is full, what was told long ago is moved out at its front: a few kilobytes, once in more than a
 * thousand packets.
 */
#include "media/twcc_arrivals.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtp.h"

struct twcc_arrivals {
	uint64_t due_us;
	uint64_t untold;
	uint16_t newest;
	uint16_t count;                             /* entries; the last one is newest's */
	uint16_t told;                              /* entries before it were told */
	uint8_t feedbacks;                          /* so far, modulo 256 */
	bool has_moved;                             /* the next one begins anew */
	int64_t arrival_us[TWCC_ARRIVALS_CAP_PKTS]; /* or RTCP_TWCC_MISSING */
};

_Static_assert((int)TWCC_ARRIVALS_CAP_PKTS <= (int)RTCP_TWCC_MAX_STATUSES,
	       "the newest arrival is within reach of each feedback");
_Static_assert(2 * TWCC_ARRIVALS_JUMP_PKTS <= TWCC_ARRIVALS_CAP_PKTS,
	       "room for the largest gap without dropping the arrival before it");

int twcc_arrivals_create(struct twcc_arrivals **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->due_us = UINT64_MAX;
	return 0;
}

void twcc_arrivals_destroy(struct twcc_arrivals *a)
{
	free(a);
}

static void count_untold(struct twcc_arrivals *a, size_t end)
{
	for (size_t i = a->told; i < end; i++)
		a->untold += a->arrival_us[i] != RTCP_TWCC_MISSING;
}

static void make_room(struct twcc_arrivals *a, size_t pkts)
{
	size_t needed = a->count + pkts;
	size_t drop;

	if (needed <= TWCC_ARRIVALS_CAP_PKTS)
		return;
	drop = a->told > TWCC_ARRIVALS_BACK_PKTS ? (size_t)a->told - TWCC_ARRIVALS_BACK_PKTS : 0;
	if (needed - drop > TWCC_ARRIVALS_CAP_PKTS)
		drop = needed - TWCC_ARRIVALS_CAP_PKTS / 2;
	count_untold(a, drop);
	memmove(a->arrival_us, a->arrival_us + drop, (a->count - drop) * sizeof(a->arrival_us[0]));
	a->count = (uint16_t)(a->count - drop);
	a->told = (uint16_t)(a->told > drop ? a->told - drop : 0);
}

static enum twcc_arrivals_verdict on_late(struct twcc_arrivals *a, uint16_t seq, uint64_t now_us)
{
	int at = a->count - 1 + rtp_seq_diff(seq, a->newest);

	if (at < 0 || at + TWCC_ARRIVALS_BACK_PKTS < a->told)
		return TWCC_ARRIVALS_LATE;
	if (a->arrival_us[at] != RTCP_TWCC_MISSING)
		return TWCC_ARRIVALS_DUPLICATE;
	a->arrival_us[at] = (int64_t)now_us;
	if (at < a->told)
		a->told = (uint16_t)at;
	return TWCC_ARRIVALS_NEW;
}

enum twcc_arrivals_verdict twcc_arrivals_on_packet(struct twcc_arrivals *a, uint16_t seq,
						   uint64_t now_us)
{
	int ahead = a->count ? rtp_seq_diff(seq, a->newest) : 1;
	bool is_restart = ahead > TWCC_ARRIVALS_JUMP_PKTS || ahead < -TWCC_ARRIVALS_JUMP_PKTS;
	enum twcc_arrivals_verdict verdict = TWCC_ARRIVALS_NEW;

	is_restart = is_restart || (a->has_moved && ahead > 1);
	a->has_moved = a->has_moved && ahead < 1;
	if (is_restart) {
		count_untold(a, a->count);
		a->count = a->told = 0;
		ahead = 1;
	}
	if (ahead > 0) {
		make_room(a, (size_t)ahead);
		for (; ahead > 1; ahead--)
			a->arrival_us[a->count++] = RTCP_TWCC_MISSING;
		a->arrival_us[a->count++] = (int64_t)now_us;
		a->newest = seq;
	} else {
		verdict = on_late(a, seq, now_us);
	}
	if (verdict == TWCC_ARRIVALS_NEW && a->due_us == UINT64_MAX)
		a->due_us = now_us + TWCC_ARRIVALS_INTERVAL_US;
	return is_restart ? TWCC_ARRIVALS_RESTART : verdict;
}

void twcc_arrivals_on_moved(struct twcc_arrivals *a)
{
	a->has_moved = true;
}

uint64_t twcc_arrivals_deadline_us(const struct twcc_arrivals *a)
{
	return a->due_us;
}

int twcc_arrivals_write(struct twcc_arrivals *a, struct rtcp_writer *w, uint32_t sender_ssrc,
			uint32_t media_ssrc)
{
	struct rtcp_twcc_report report = {
		.sender_ssrc = sender_ssrc,
		.media_ssrc = media_ssrc,
		.base_seq = (uint16_t)(a->newest - (a->count - 1 - a->told)),
		.feedback_count = a->feedbacks,
		.arrival_us = a->arrival_us + a->told,
		.n = (size_t)(a->count - a->told),
	};
	int covered;

	if (report.n == 0)
		return 0;
	covered = rtcp_write_twcc(w, &report);
	assert(covered != -ENODATA); /* the last entry is an arrival */
	if (covered < 0)
		return covered;
	a->feedbacks++;
	a->told = (uint16_t)(a->told + covered);
	if (a->told == a->count)
		a->due_us = UINT64_MAX;
	return covered;
}

uint64_t twcc_arrivals_untold(const struct twcc_arrivals *a)
{
	return a->untold;
}
