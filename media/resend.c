/* media/resend.c - see resend.h for the contract. */
#include "media/resend.h"

#include <assert.h>
#include <string.h>

#include "media/rtp.h"

void resend_share_init(struct resend_share *share)
{
	share->credit_fifths = RESEND_START_CREDIT_BYTES * RESEND_SHARE_DIVISOR;
}

void resend_init(struct resend *r, uint64_t first_index, uint16_t first_number, uint16_t first_rtx)
{
	assert(first_number <= RESEND_FIRST_NUMBER_MAX && first_rtx <= RESEND_FIRST_NUMBER_MAX);
	memset(r, 0, sizeof(*r));
	r->first_index = first_index;
	r->offset = first_number - first_index;
	r->rtx_number = first_rtx;
}

bool resend_index(const struct resend *r, uint64_t newest_index, uint16_t seq, uint64_t *index)
{
	uint64_t newest = resend_number(r, newest_index);
	uint64_t number = newest - (uint16_t)(newest - seq);

	if (number > newest) /* below 0: before the very first */
		return false;
	*index = number - r->offset;
	return *index >= r->first_index && *index <= newest_index;
}

static bool is_spent(const struct resend_slot *slot, uint64_t now_us, uint32_t rtt_us)
{
	uint32_t spacing_us = rtt_us > RESEND_MIN_SPACING_US ? rtt_us : RESEND_MIN_SPACING_US;

	return !slot->is_used || (uint32_t)now_us - slot->sent_us >= spacing_us;
}

/* @return a slot of no use any more; NULL: all are in use, or (*is_known) the number has one */
static struct resend_slot *find_slot(struct resend *r, uint16_t seq, uint64_t now_us,
				     uint32_t rtt_us, bool *is_known)
{
	struct resend_slot *set = r->slots[seq % RESEND_SETS];
	struct resend_slot *spent = NULL;

	*is_known = false;
	for (size_t i = 0; i < RESEND_WAYS && !*is_known; i++) {
		if (is_spent(&set[i], now_us, rtt_us))
			spent = &set[i];
		else
			*is_known = set[i].seq == seq;
	}
	return *is_known ? NULL : spent;
}

void resend_note(struct resend *r, uint16_t seq, uint64_t now_us, uint32_t rtt_us)
{
	bool is_known;
	struct resend_slot *slot = find_slot(r, seq, now_us, rtt_us, &is_known);

	if (slot)
		*slot =
		    (struct resend_slot){ .sent_us = (uint32_t)now_us, .seq = seq, .is_used = 1 };
}

enum resend_verdict resend_allow(struct resend *r, struct resend_share *share, uint16_t seq,
				 uint32_t bytes, uint64_t now_us, uint32_t rtt_us)
{
	bool is_known;
	struct resend_slot *slot = find_slot(r, seq, now_us, rtt_us, &is_known);

	if (!slot)
		return is_known ? RESEND_TOO_SOON : RESEND_BUSY;
	if (bytes > share->credit_fifths / RESEND_SHARE_DIVISOR)
		return RESEND_OVER_SHARE;
	share->credit_fifths -= bytes * RESEND_SHARE_DIVISOR;
	*slot = (struct resend_slot){ .sent_us = (uint32_t)now_us, .seq = seq, .is_used = 1 };
	return RESEND_SEND;
}
