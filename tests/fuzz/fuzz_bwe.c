/* Any feedback, REMB and reports in any order, at any time: the estimate stays within its bounds, time
 * never stands still, and the machine asks for no more padding than a probe has. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "media/bwe.h"
#include "pool/bytes.h"

enum { MIN_BPS = 30000, MAX_BPS = 20000000, HEAD_BYTES = 3, MAX_FCI_BYTES = 255 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct bwe *b)
{
	struct bwe_stats s;

	bwe_stats(b, &s);
	assert(bwe_target_bps(b) >= MIN_BPS && bwe_target_bps(b) <= MAX_BPS);
	assert(s.probes_measured <= s.probes);
	assert(s.loss_share >= 0 && s.loss_share <= 1);
}

static void send_probe(struct bwe *b, uint64_t now_us)
{
	uint32_t bytes;

	for (unsigned n = 0; (bytes = bwe_probe_bytes(b, now_us)) > 0; n++) {
		assert(n < 1000);
		bwe_on_sent(b, bytes < 1200 ? bytes : 1200, now_us);
	}
}

/* A record: what, how much time passes, a number; feedback is followed by its FCI. @return bytes used */
static size_t step(struct bwe *b, const uint8_t *at, size_t left, uint64_t *now_us)
{
	struct rtcp_feedback fb = { 0 };

	*now_us += (uint64_t)at[1] * at[1] * 40;
	switch (at[0] % 8) {
	case 0:
		fb.fci = at + HEAD_BYTES;
		fb.fci_bytes = at[2] < left - HEAD_BYTES ? at[2] : left - HEAD_BYTES;
		bwe_on_feedback(b, &fb, *now_us);
		return HEAD_BYTES + fb.fci_bytes;
	case 1:
		bwe_on_remb(b, UINT64_C(1) << at[2] % 64, *now_us);
		break;
	case 2:
		bwe_on_report(b, at[2], *now_us);
		break;
	case 3:
		bwe_set_goal(b, at[2] * UINT64_C(50000));
		break;
	case 4:
		bwe_set_rtt(b, at[2] * 5000u);
		break;
	case 5:
		bwe_on_timeout(b, *now_us);
		send_probe(b, *now_us);
		break;
	default:
		for (unsigned i = 0; i < at[2] % 32u; i++)
			bwe_on_sent(b, at[2] * 6u, *now_us);
		break;
	}
	return HEAD_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bwe_config config = { 300000, MIN_BPS, MAX_BPS, 1 };
	uint64_t now_us = 1;
	struct bwe *b;

	assert(bwe_create(&b, &config) == 0);
	for (size_t at = 0; at + HEAD_BYTES <= size;) {
		at += step(b, data + at, size - at, &now_us);
		check(b);
	}
	bwe_destroy(b);
	return 0;
}
