/* media/reports.h - what RTCP's sender and receiver reports say, counted per SSRC.
 *
 * Source:  RFC 3550 sections 6.4.1, A.1 (sequence), A.3 (loss), A.8 (jitter).
 * Sans-IO: time is an argument. Times in microseconds are of one clock, any origin, unless named
 *          NTP: then Q32.32 seconds since 1900.
 * Thread:  one worker.
 * Memory:  caller's storage, plain values.
 */
#ifndef MEDIA_REPORTS_H
#define MEDIA_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "media/rtcp.h"

enum {
	REPORTS_MAX_DROPOUT_PKTS = 3000, /* RFC 3550 A.1: a larger step ahead is a restart */
	REPORTS_MAX_MISORDER_PKTS = 100,
};

/* What arrived of one SSRC. */
struct reports_rx {
	uint64_t highest;                        /* extended number, cycle 1 at the start */
	uint64_t base;                           /* extended number of the first */
	uint64_t received_pkts;                  /* duplicates included, as A.3 counts */
	uint64_t received_bytes;                 /* whole packets */
	uint64_t expected_prior, received_prior; /* at the last report */
	uint64_t sr_arrival_us;
	uint32_t ssrc;
	uint32_t clock_hz;
	uint32_t transit_ticks;
	uint32_t jitter_q4_ticks; /* jitter times 16 */
	uint32_t last_sr;         /* middle 32 bits of its NTP, 0: none yet */
	uint16_t bad_seq;         /* a jump is believed when the next one follows it */
	bool has_bad_seq;
	bool is_started;
};

/** @param clock_hz above 0 */
void reports_rx_init(struct reports_rx *r, uint32_t ssrc, uint32_t clock_hz);

/** A packet of the SSRC arrived (not one repaired by RTX: that is not on this SSRC's wire). */
void reports_rx_on_packet(struct reports_rx *r, uint16_t seq, uint32_t timestamp, uint32_t bytes,
			  uint64_t arrival_us);

/** Its sender report arrived. */
void reports_rx_on_sr(struct reports_rx *r, uint64_t ntp, uint64_t arrival_us);

/** Lost so far by RFC 3550's count: expected minus received, negative with duplicates. */
int64_t reports_rx_lost(const struct reports_rx *r);

/** Mean deviation of transit, in microseconds. */
uint32_t reports_rx_jitter_us(const struct reports_rx *r);

/** The report block for the next SR or RR; starts a new interval. Before the first packet there is
 *  nothing to say. @return false then */
bool reports_rx_block(struct reports_rx *r, uint64_t now_us, struct rtcp_report *out);

/* What was sent of one SSRC. */
struct reports_tx {
	uint64_t pkts;
	uint64_t bytes; /* payload octets, padding and headers apart (RFC 3550 6.4.1) */
};

static inline void reports_tx_on_packet(struct reports_tx *r, uint32_t payload_bytes)
{
	r->pkts++;
	r->bytes += payload_bytes;
}

/** For rtcp_write_sr(). @param rtp_timestamp the instant `ntp` on the SSRC's own RTP clock */
void reports_tx_sender_info(const struct reports_tx *r, uint64_t ntp, uint32_t rtp_timestamp,
			    struct rtcp_sender_info *out);

/**
 * Round trip by a report block about what we sent: now - LSR - DLSR.
 *
 * @param now_ntp the clock that our sender reports carry
 * @return false: the block answers no SR of ours, or the result makes no sense (negative, or above
 *         10 s)
 */
bool reports_rtt(const struct rtcp_report *block, uint64_t now_ntp, uint32_t *rtt_us);

#endif
