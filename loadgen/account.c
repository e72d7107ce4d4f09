#include "loadgen/account.h"

#include <string.h>

#include "media/rtp.h"

void account_init(struct account *a)
{
	memset(a, 0, sizeof(*a));
	a->last = UINT64_MAX;
}

static uint64_t *word_of(struct account *a, uint64_t number)
{
	return &a->seen[number % ACCOUNT_WINDOW_PKTS / 64];
}

static uint64_t bit_of(uint64_t number)
{
	return UINT64_C(1) << number % 64;
}

static void advance(struct account *a, uint64_t number)
{
	uint64_t step = number - a->highest;

	if (step >= ACCOUNT_WINDOW_PKTS)
		memset(a->seen, 0, sizeof(a->seen));
	else
		for (uint64_t n = a->highest + 1; n <= number; n++)
			*word_of(a, n) &= ~bit_of(n);
	a->highest = number;
}

static uint64_t place(struct account *a, uint16_t seq)
{
	if (!a->is_started) {
		a->is_started = true;
		a->first = a->highest = (uint64_t)RTP_SEQ_CYCLE + seq;
		return a->first;
	}
	return rtp_seq_unwrap(a->highest, seq);
}

enum account_arrival account_on_packet(struct account *a, uint16_t seq, bool is_repair)
{
	uint64_t number = place(a, seq);

	if (number < a->first || number > a->last)
		return ACCOUNT_OUTSIDE;
	if (number > a->highest)
		advance(a, number);
	else if (a->highest - number >= ACCOUNT_WINDOW_PKTS)
		return ACCOUNT_OUTSIDE;
	if (*word_of(a, number) & bit_of(number)) {
		a->duplicated++;
		return ACCOUNT_DUPLICATE;
	}
	*word_of(a, number) |= bit_of(number);
	a->received++;
	a->repaired += is_repair;
	return ACCOUNT_NEW;
}

void account_freeze(struct account *a)
{
	a->last = a->highest;
}

uint64_t account_expected(const struct account *a)
{
	return a->is_started ? a->highest - a->first + 1 : 0;
}

uint64_t account_lost(const struct account *a)
{
	return account_expected(a) - a->received;
}
