/* media/reports.c - see reports.h for the contract. */
#include "media/reports.h"

#include <assert.h>
#include <string.h>

#include "media/rtp.h"

enum {
	LOST_MAX_PKTS = 0x7fffff, /* 24 bits, signed */
	LOST_MIN_PKTS = -0x800000,
	RTT_MAX_US = 10000000,
};

static uint32_t middle_of_ntp(uint64_t ntp)
{
	return (uint32_t)(ntp >> 16);
}

void reports_rx_init(struct reports_rx *r, uint32_t ssrc, uint32_t clock_hz)
{
	assert(clock_hz > 0);
	memset(r, 0, sizeof(*r));
	r->ssrc = ssrc;
	r->clock_hz = clock_hz;
}

static void restart_at(struct reports_rx *r, uint16_t seq)
{
	r->base = r->highest = RTP_SEQ_CYCLE + (uint64_t)seq;
	r->received_pkts = 0;
	r->expected_prior = r->received_prior = 0;
	r->jitter_q4_ticks = 0;
	r->transit_ticks = 0;
	r->has_bad_seq = false;
	r->is_started = false;
}

/* RFC 3550 A.1. @return false: not believed yet */
static bool follow(struct reports_rx *r, uint16_t seq)
{
	int ahead = rtp_seq_diff(seq, (uint16_t)r->highest);

	if (ahead <= REPORTS_MAX_DROPOUT_PKTS && ahead >= -REPORTS_MAX_MISORDER_PKTS) {
		if (ahead > 0)
			r->highest += (uint64_t)ahead;
		r->has_bad_seq = false;
		return true;
	}
	if (!r->has_bad_seq || r->bad_seq != seq) {
		r->has_bad_seq = true;
		r->bad_seq = (uint16_t)(seq + 1);
		return false;
	}
	restart_at(r, seq);
	return true;
}

static uint32_t ticks_of_us(const struct reports_rx *r, uint64_t us)
{
	return (uint32_t)(us / 1000000 * r->clock_hz + us % 1000000 * r->clock_hz / 1000000);
}

void reports_rx_on_packet(struct reports_rx *r, uint16_t seq, uint32_t timestamp, uint32_t bytes,
			  uint64_t arrival_us)
{
	uint32_t transit = ticks_of_us(r, arrival_us) - timestamp;
	int32_t off;

	r->received_bytes += bytes;
	if (r->highest == 0)
		restart_at(r, seq);
	else if (!follow(r, seq))
		return;
	r->received_pkts++;
	off = (int32_t)(transit - r->transit_ticks);
	r->transit_ticks = transit;
	if (!r->is_started) {
		r->is_started = true; /* one transit time is no difference of two */
		return;
	}
	/* A.8: J += (|D| - J) / 16, kept times 16 with rounding. */
	r->jitter_q4_ticks +=
	    (uint32_t)(off < 0 ? -(int64_t)off : off) - ((r->jitter_q4_ticks + 8) >> 4);
}

void reports_rx_on_sr(struct reports_rx *r, uint64_t ntp, uint64_t arrival_us)
{
	r->last_sr = middle_of_ntp(ntp);
	r->sr_arrival_us = arrival_us;
}

static uint64_t expected_pkts(const struct reports_rx *r)
{
	return r->highest - r->base + 1;
}

int64_t reports_rx_lost(const struct reports_rx *r)
{
	return r->highest == 0 ? 0 : (int64_t)(expected_pkts(r) - r->received_pkts);
}

uint32_t reports_rx_jitter_us(const struct reports_rx *r)
{
	return (uint32_t)((uint64_t)(r->jitter_q4_ticks >> 4) * 1000000 / r->clock_hz);
}

/* A.3: the share lost since the report before, in 256ths. */
static uint8_t fraction_lost(struct reports_rx *r)
{
	uint64_t expected = expected_pkts(r) - r->expected_prior;
	uint64_t received = r->received_pkts - r->received_prior;

	r->expected_prior += expected;
	r->received_prior += received;
	if (received >= expected)
		return 0;
	/* Below 256: where `highest` moved, at least one packet was received. */
	return (uint8_t)((expected - received) * 256 / expected);
}

bool reports_rx_block(struct reports_rx *r, uint64_t now_us, struct rtcp_report *out)
{
	int64_t lost = reports_rx_lost(r);
	uint64_t delay_us = now_us > r->sr_arrival_us ? now_us - r->sr_arrival_us : 0;

	if (r->highest == 0)
		return false;
	if (lost > LOST_MAX_PKTS)
		lost = LOST_MAX_PKTS;
	if (lost < LOST_MIN_PKTS)
		lost = LOST_MIN_PKTS;
	*out = (struct rtcp_report){
		.ssrc = r->ssrc,
		.fraction_lost = fraction_lost(r),
		.lost_pkts = (int32_t)lost,
		.highest_seq = (uint32_t)(r->highest - RTP_SEQ_CYCLE),
		.jitter_ticks = r->jitter_q4_ticks >> 4,
		.last_sr = r->last_sr,
	};
	if (r->last_sr != 0)
		out->delay_q16_s =
		    (uint32_t)(delay_us / 1000000 << 16 | (delay_us % 1000000 << 16) / 1000000);
	return true;
}

void reports_tx_sender_info(const struct reports_tx *r, uint64_t ntp, uint32_t rtp_timestamp,
			    struct rtcp_sender_info *out)
{
	*out = (struct rtcp_sender_info){
		.ntp = ntp,
		.rtp_timestamp = rtp_timestamp,
		.packets = (uint32_t)r->pkts,
		.bytes = (uint32_t)r->bytes,
	};
}

bool reports_rtt(const struct rtcp_report *block, uint64_t now_ntp, uint32_t *rtt_us)
{
	uint32_t rtt_q16_s = middle_of_ntp(now_ntp) - block->last_sr - block->delay_q16_s;
	uint64_t us = (uint64_t)rtt_q16_s * 1000000 >> 16;

	/* A negative result is a huge one here. */
	if (block->last_sr == 0 || us > RTT_MAX_US)
		return false;
	*rtt_us = (uint32_t)us;
	return true;
}
