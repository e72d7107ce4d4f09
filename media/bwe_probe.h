/* media/bwe_probe.h - a short burst of known rate, and the rate at which it came through.
 *
 * One probe at a time. While it is sent, all packets to the peer count, media and padding alike; the
 * caller fills up with padding so that the burst has its rate. What the link carries shows in the
 * distances of arrival.
 *
 * Source:  the method is common to senders of draft-ietf-rmcat-gcc-02; there is no document of it.
 * Sans-IO: time is an argument.
 * Thread:  one worker.
 * Memory:  caller's storage, plain values; all-zero is ready.
 */
#ifndef MEDIA_BWE_PROBE_H
#define MEDIA_BWE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	BWE_PROBE_US = 20000,           /* length of the burst, unless ... */
	BWE_PROBE_TICK_US = 5000,       /* its parts are so far apart */
	BWE_PROBE_MIN_PKTS = 5,         /* ... that are fewer packets than this */
	BWE_PROBE_TIMEOUT_US = 1000000, /* for sending it, and again for its arrivals */
};

enum bwe_probe_state { BWE_PROBE_IDLE, BWE_PROBE_SENDING, BWE_PROBE_WAITING };

struct bwe_probe {
	enum bwe_probe_state state;
	uint8_t id; /* of this probe or the last one: 1..255; 0: there was none */
	double rate_bps;
	uint64_t begun_us;
	uint32_t sent_pkts, sent_bytes;
	int64_t first_sent_us, last_sent_us;
	uint32_t last_sent_bytes; /* at last_sent_us: their time on the way is not in between */
	uint32_t got_pkts, got_bytes;
	int64_t first_arrival_us, last_arrival_us;
	uint32_t first_got_bytes;
};

/** Begin. @param rate_bps above 0; no other probe may be under way */
void bwe_probe_begin(struct bwe_probe *p, double rate_bps, uint64_t now_us);

/** Bytes that are missing at now_us for the burst to have its rate; 0 when none are. */
uint32_t bwe_probe_due_bytes(const struct bwe_probe *p, uint64_t now_us);

/** A packet was sent. @return the probe it belongs to, 0: none */
uint8_t bwe_probe_on_sent(struct bwe_probe *p, uint32_t bytes, uint64_t now_us);

/** A packet of probe `id` arrived, in the order of departure. */
void bwe_probe_on_arrival(struct bwe_probe *p, uint8_t id, uint32_t bytes, int64_t arrival_us);

enum bwe_probe_result {
	BWE_PROBE_PENDING, /* or none under way */
	BWE_PROBE_MEASURED,
	BWE_PROBE_FAILED, /* too few arrived in time, or at times that tell nothing */
};

/** How it went. After MEASURED and FAILED it is idle. @param bps set with MEASURED */
enum bwe_probe_result bwe_probe_poll(struct bwe_probe *p, uint64_t now_us, double *bps);

#endif
