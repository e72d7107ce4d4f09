/* media/bwe.c - see bwe.h for the contract. */
#include "media/bwe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "media/bwe_aimd.h"
#include "media/bwe_loss.h"
#include "media/bwe_probe.h"
#include "media/bwe_trend.h"
#include "media/bwe_window.h"

enum {
	RTT_US = 100000, /* while none was measured */
	STEADY_US = 500000,
	RECENT_US = 200000,  /* windows of what arrived */
	SILENT_US = 2000000, /* unanswered for so long from the start: no feedback will come */
	SILENT_PKTS = 20,
	UNHEARD_US = 4000000, /* and then so long without any report */
	IDLE_US = 2000000,
	MUTE_US = 1000000, /* feedback that did come stops: the way is blocked */
	REMB_VALID_US = 10000000,
	PROBE_AFTER_US = 2000000, /* first wait after a probe that brought nothing, or overuse */
	PROBE_AFTER_MAX_US = 4000000,
	SENT_US = 1000000,
};

static const double probe_first = 3, probe_next = 2; /* times the estimate */
static const double probe_gain_min = 1.05;           /* less is no gain */
static const double mute_factor = 0.7;
/* A queue above the first leaves less than the whole rate, one of their sum the least share. */
static const double drain_from_ms = 100, drain_over_ms = 600, drain_min = 0.5;
static const double blind_growth_per_s = 1.15; /* of the reports only that loss is known */
static const double blind_low = 0.02, blind_high = 0.1;
static const double remb_is_bound = 1.3; /* times what is sent */

enum fate { FATE_UNKNOWN, FATE_LOST, FATE_ARRIVED };

struct sent {
	uint32_t at_us; /* low bits of the clock */
	uint16_t bytes;
	uint8_t probe;
	uint8_t fate;
};
_Static_assert(sizeof(struct sent) == 8, "a thousand packets of a thousand viewers");
_Static_assert((BWE_HISTORY_PKTS & (BWE_HISTORY_PKTS - 1)) == 0, "a ring of numbers that wrap");

struct bwe {
	/* What every packet and every visit looks at, side by side. */
	uint64_t target_bps; /* by all that is below */
	uint64_t unanswered_us;
	uint32_t unanswered; /* packets since the last feedback; the first of them, when */
	uint32_t held;       /* entries of the ring that were sent */
	uint16_t next_seq;
	bool is_silent;  /* no feedback came, though much was sent */
	bool is_unheard; /* nor anything else */
	bool has_limit;  /* something showed, or may have shown, what does not fit */
	struct bwe_probe probe;
	struct bwe_config config;
	struct bwe_trend trend;
	struct bwe_aimd aimd;
	struct bwe_loss loss;
	struct bwe_window acked;       /* by the peer's clock */
	struct bwe_window sent_lately; /* kept while no feedback comes */
	uint64_t goal_bps;
	uint32_t rtt_us, feedback_rtt_us;
	uint64_t silent_us; /* when that was noticed */
	uint64_t heard_us;  /* the last feedback */
	/* Receiver's clock, unwrapped. */
	int64_t reference_64ms;
	bool has_reference;
	uint64_t remb_us; /* of the last one; 0: none lately */
	double blind_bps; /* the rate without feedback */
	uint64_t groped_us;
	bool has_reports;
	double sent_bps[2];    /* sent one and two seconds ago, about */
	uint64_t sent_us;      /* when the first was taken */
	uint64_t probe_due_us; /* not before */
	uint32_t probe_wait_us;
	struct bwe_stats stats;
	struct sent sent[BWE_HISTORY_PKTS];
};

static void settle(struct bwe *b);

int bwe_create(struct bwe **out, const struct bwe_config *config)
{
	struct bwe *b;

	*out = NULL;
	if (config->min_bps == 0 || config->start_bps < config->min_bps ||
	    config->max_bps < config->start_bps)
		return -EINVAL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->config = *config;
	b->blind_bps = config->start_bps;
	b->probe_wait_us = PROBE_AFTER_US;
	bwe_trend_init(&b->trend);
	bwe_aimd_init(&b->aimd, config->start_bps, config->now_us);
	settle(b);
	*out = b;
	return 0;
}

void bwe_destroy(struct bwe *b)
{
	free(b);
}

size_t bwe_bytes(void)
{
	return sizeof(struct bwe);
}

/* --- The estimate ---------------------------------------------------------------------------- */

static double clamped(const struct bwe *b, double bps)
{
	if (bps < b->config.min_bps)
		return b->config.min_bps;
	return bps > b->config.max_bps ? b->config.max_bps : bps;
}

/* What is left of the rate while a long queue has to drain. */
static double drained(const struct bwe *b)
{
	double share = 1 - (bwe_trend_queue_ms(&b->trend) - drain_from_ms) / drain_over_ms;

	return share < drain_min ? drain_min : share > 1 ? 1 : share;
}

static double steady_bps(const struct bwe *b)
{
	double bps = b->aimd.bps;

	if (b->loss.bound_bps > 0 && b->loss.bound_bps < bps)
		bps = b->loss.bound_bps;
	return clamped(b, bps);
}

static double feedback_bps(const struct bwe *b)
{
	return clamped(b, steady_bps(b) * drained(b));
}

static enum bwe_source source_of(const struct bwe *b)
{
	if (!b->is_silent)
		return BWE_FROM_FEEDBACK;
	if (b->is_unheard)
		return BWE_FROM_NOTHING;
	return b->remb_us ? BWE_FROM_REMB : BWE_FROM_REPORTS;
}

static uint64_t compute_target_bps(const struct bwe *b)
{
	switch (source_of(b)) {
	case BWE_FROM_REMB:
	case BWE_FROM_REPORTS:
		return (uint64_t)clamped(b, b->blind_bps);
	case BWE_FROM_NOTHING:
		return b->config.max_bps;
	case BWE_FROM_FEEDBACK:
		break;
	}
	return (uint64_t)feedback_bps(b);
}

/* After whatever may have changed it. */
static void settle(struct bwe *b)
{
	b->target_bps = compute_target_bps(b);
}

uint64_t bwe_target_bps(const struct bwe *b)
{
	return b->target_bps;
}

static uint32_t rtt_of(const struct bwe *b)
{
	if (b->rtt_us)
		return b->rtt_us;
	return b->feedback_rtt_us ? b->feedback_rtt_us : RTT_US;
}

/* --- Sending --------------------------------------------------------------------------------- */

uint16_t bwe_on_sent(struct bwe *b, uint32_t bytes, uint64_t now_us)
{
	uint16_t seq = b->next_seq++;

	b->sent[seq % BWE_HISTORY_PKTS] = (struct sent){
		.at_us = (uint32_t)now_us,
		.bytes = bytes > UINT16_MAX ? UINT16_MAX : (uint16_t)bytes,
		.probe = bwe_probe_on_sent(&b->probe, bytes, now_us),
	};
	if (b->is_silent)
		bwe_window_add(&b->sent_lately, (int64_t)now_us, bytes);
	if (b->held < BWE_HISTORY_PKTS)
		b->held++;
	if (b->unanswered++ == 0)
		b->unanswered_us = now_us;
	return seq;
}

static struct sent *sent_of(struct bwe *b, uint16_t seq)
{
	uint16_t back = (uint16_t)(b->next_seq - seq);

	return back >= 1 && back <= b->held ? &b->sent[seq % BWE_HISTORY_PKTS] : NULL;
}

/* --- Probing --------------------------------------------------------------------------------- */

/* From when on a probe is of use; UINT64_MAX: of none. A queue that was growing when the last packet
 * was answered has drained a while later. */
static uint64_t probe_due_us(const struct bwe *b)
{
	uint64_t idle_us = b->heard_us + IDLE_US;

	if (b->held == 0 || bwe_target_bps(b) >= b->goal_bps)
		return UINT64_MAX;
	if (bwe_trend_usage(&b->trend) == BWE_NORMAL || idle_us < b->probe_due_us)
		return b->probe_due_us;
	return idle_us;
}

static void begin_probe(struct bwe *b, uint64_t now_us)
{
	double factor = b->stats.probes == 0 ? probe_first : probe_next;
	double rate_bps = clamped(b, factor * (double)bwe_target_bps(b));

	if (rate_bps > (double)b->goal_bps)
		rate_bps = (double)b->goal_bps;
	if (bwe_trend_usage(&b->trend) != BWE_NORMAL) {
		bwe_trend_init(&b->trend); /* of another time */
		settle(b);
	}
	bwe_probe_begin(&b->probe, rate_bps, now_us);
	b->stats.probes++;
}

uint32_t bwe_probe_bytes(struct bwe *b, uint64_t now_us)
{
	if (b->probe.state == BWE_PROBE_IDLE && now_us >= probe_due_us(b))
		begin_probe(b, now_us);
	return bwe_probe_due_bytes(&b->probe, now_us);
}

static void postpone_probe(struct bwe *b, uint64_t now_us)
{
	b->probe_due_us = now_us + b->probe_wait_us;
	b->probe_wait_us *= 2;
	if (b->probe_wait_us > PROBE_AFTER_MAX_US)
		b->probe_wait_us = PROBE_AFTER_MAX_US;
}

static void judge_probe(struct bwe *b, uint64_t now_us)
{
	enum bwe_probe_result result;
	double bps;

	result = bwe_probe_poll(&b->probe, now_us, &bps);
	if (result == BWE_PROBE_PENDING)
		return;
	if (result == BWE_PROBE_FAILED || bps < probe_gain_min * (double)bwe_target_bps(b)) {
		postpone_probe(b, now_us);
		return;
	}
	b->stats.probes_measured++;
	b->probe_wait_us = PROBE_AFTER_US;
	b->probe_due_us = now_us;
	bwe_aimd_raise(&b->aimd, bps, now_us);
	bwe_loss_raise(&b->loss, bps);
	settle(b);
}

/* --- Feedback -------------------------------------------------------------------------------- */

/* From the reference of this feedback to the same in a count that does not wrap, and is never
 * negative. */
static int64_t unwrap_us(struct bwe *b, int32_t reference_64ms)
{
	enum { CYCLE = 1 << 24, HALF = 1 << 23, UNIT_US = 64000 };
	int64_t step = (reference_64ms - b->reference_64ms) & (CYCLE - 1);

	if (!b->has_reference)
		b->reference_64ms = (reference_64ms & (CYCLE - 1)) + CYCLE;
	else
		b->reference_64ms += step >= HALF ? step - CYCLE : step;
	b->has_reference = true;
	return (b->reference_64ms - reference_64ms) * UNIT_US;
}

static void on_lost(struct bwe *b, struct sent *s)
{
	if (s->fate != FATE_UNKNOWN)
		return;
	s->fate = FATE_LOST;
	b->stats.packets_lost++;
	bwe_loss_on_packets(&b->loss, 1, 1);
}

static void on_arrived(struct bwe *b, struct sent *s, int64_t arrival_us, uint64_t now_us)
{
	uint32_t age_us = (uint32_t)now_us - s->at_us;

	if (s->fate == FATE_ARRIVED)
		return;
	if (s->fate == FATE_LOST) {
		b->stats.packets_lost--;
		bwe_loss_on_packets(&b->loss, 0, -1);
	} else {
		bwe_loss_on_packets(&b->loss, 1, 0);
	}
	s->fate = FATE_ARRIVED;
	b->stats.packets_acked++;
	b->feedback_rtt_us = age_us;
	bwe_window_add(&b->acked, arrival_us, s->bytes);
	bwe_trend_on_packet(&b->trend, (int64_t)(now_us - age_us), arrival_us);
	if (s->probe)
		bwe_probe_on_arrival(&b->probe, s->probe, s->bytes, arrival_us);
}

static void estimate(struct bwe *b, uint64_t now_us)
{
	struct bwe_aimd_input in = {
		.usage = bwe_trend_usage(&b->trend),
		.acked_bps = bwe_window_bps(&b->acked, STEADY_US),
		.recent_bps = bwe_window_bps(&b->acked, RECENT_US),
		.queue_ms = bwe_trend_queue_ms(&b->trend),
		.rtt_us = rtt_of(b),
		.now_us = now_us,
	};
	uint64_t lowered_us = b->aimd.lowered_us;

	bwe_aimd_update(&b->aimd, &in);
	if (b->aimd.bps < b->config.min_bps)
		b->aimd.bps = b->config.min_bps;
	bwe_loss_update(&b->loss, &(struct bwe_loss_input){ .rate_bps = feedback_bps(b),
							    .delay_bps = b->aimd.bps,
							    .arrived_bps = (double)in.recent_bps,
							    .rtt_us = rtt_of(b),
							    .now_us = now_us });
	b->stats.acked_bps = in.acked_bps;
	if (b->aimd.lowered_us != lowered_us) {
		b->stats.decreases++;
		if (b->probe_due_us < now_us + PROBE_AFTER_US)
			b->probe_due_us = now_us + PROBE_AFTER_US;
	}
	settle(b);
	judge_probe(b, now_us);
}

enum bwe_verdict bwe_on_feedback(struct bwe *b, const struct rtcp_feedback *fb, uint64_t now_us)
{
	struct rtcp_twcc_cursor cursor;
	struct rtcp_twcc_status status;
	bool is_known = false;
	int64_t offset_us;

	if (!rtcp_twcc_init(&cursor, fb))
		return BWE_MALFORMED;
	offset_us = unwrap_us(b, cursor.reference_64ms);
	while (rtcp_twcc_next(&cursor, &status)) {
		struct sent *s = sent_of(b, status.seq);

		if (!s)
			continue;
		is_known = true;
		if (status.is_received)
			on_arrived(b, s, status.arrival_us + offset_us, now_us);
		else
			on_lost(b, s);
	}
	if (!is_known)
		return BWE_UNKNOWN;
	b->is_silent = b->is_unheard = false;
	b->has_limit = true;
	b->unanswered = 0;
	b->heard_us = now_us;
	b->stats.feedbacks++;
	estimate(b, now_us);
	return BWE_OK;
}

/* Without feedback the rate gropes its way up to where it is of use. */
static void grope(struct bwe *b, uint64_t now_us)
{
	double most_bps = (double)(b->goal_bps ? b->goal_bps : b->config.start_bps);
	double passed_s = (double)(now_us - b->groped_us) / 1e6;

	b->groped_us = now_us;
	if (b->blind_bps < most_bps)
		b->blind_bps *= pow(blind_growth_per_s, passed_s < 1 ? passed_s : 1);
	b->blind_bps = clamped(b, b->blind_bps);
}

/* What the peer's estimate can be about: it does not know yet what was sent in the last second or two. */
static double answered_bps(struct bwe *b, uint64_t now_us)
{
	double now_bps = (double)bwe_window_bps_at(&b->sent_lately, (int64_t)now_us, SENT_US);

	if (now_us - b->sent_us >= SENT_US) {
		b->sent_bps[1] = b->sent_bps[0];
		b->sent_bps[0] = now_bps;
		b->sent_us = now_us;
	}
	return fmin(now_bps, fmin(b->sent_bps[0], b->sent_bps[1]));
}

void bwe_on_remb(struct bwe *b, uint64_t bps, uint64_t now_us)
{
	double sent_bps;

	b->remb_us = now_us;
	b->is_unheard = false;
	b->has_limit = true;
	if (!b->is_silent)
		return;
	sent_bps = answered_bps(b, now_us);
	/* Receivers that see no congestion say half as much again as they get: no bound. */
	if ((double)bps < remb_is_bound * sent_bps)
		b->blind_bps = clamped(b, (double)bps);
	else
		grope(b, now_us);
	if (b->blind_bps < (double)bps)
		b->blind_bps = clamped(b, (double)bps);
	settle(b);
	judge_probe(b, now_us);
}

void bwe_on_report(struct bwe *b, uint8_t fraction_lost, uint64_t now_us)
{
	double share = fraction_lost / 256.0;

	b->is_unheard = false;
	b->has_reports = true;
	b->has_limit |= share > blind_high;
	if (!b->is_silent)
		return;
	if (share > blind_high)
		b->blind_bps = clamped(b, b->blind_bps * (1 - share / 2));
	else if (share < blind_low && b->remb_us == 0)
		grope(b, now_us);
	settle(b);
	judge_probe(b, now_us);
}

void bwe_set_rtt(struct bwe *b, uint32_t rtt_us)
{
	if (rtt_us)
		b->rtt_us = rtt_us;
}

void bwe_set_goal(struct bwe *b, uint64_t bps)
{
	b->goal_bps = bps;
}

/* --- Time ------------------------------------------------------------------------------------ */

/* When the silence after the packets sent so far means something. */
static uint64_t silence_due_us(const struct bwe *b)
{
	if (b->is_silent || b->unanswered == 0)
		return UINT64_MAX;
	if (b->stats.feedbacks > 0)
		return b->unanswered_us + MUTE_US;
	return b->unanswered < SILENT_PKTS ? UINT64_MAX : b->unanswered_us + SILENT_US;
}

static uint64_t unheard_due_us(const struct bwe *b)
{
	if (!b->is_silent || b->is_unheard || b->has_reports || b->remb_us)
		return UINT64_MAX;
	return b->silent_us + UNHEARD_US;
}

static void on_silence(struct bwe *b, uint64_t now_us)
{
	if (b->stats.feedbacks == 0) {
		b->is_silent = true;
		b->silent_us = now_us;
		return;
	}
	b->aimd.bps = clamped(b, feedback_bps(b) * mute_factor);
	b->aimd.changed_us = b->aimd.lowered_us = now_us;
	b->unanswered_us = now_us;
	b->stats.decreases++;
}

void bwe_on_timeout(struct bwe *b, uint64_t now_us)
{
	if (now_us >= silence_due_us(b))
		on_silence(b, now_us);
	if (b->is_silent && b->remb_us && now_us - b->remb_us > REMB_VALID_US)
		b->remb_us = 0;
	if (now_us >= unheard_due_us(b))
		b->is_unheard = true;
	settle(b);
	judge_probe(b, now_us);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t bwe_deadline_us(const struct bwe *b)
{
	uint64_t due_us = silence_due_us(b);

	due_us = earlier(due_us, unheard_due_us(b));
	if (b->is_silent && b->remb_us)
		due_us = earlier(due_us, b->remb_us + REMB_VALID_US + 1);
	switch (b->probe.state) {
	case BWE_PROBE_SENDING:
		return earlier(due_us, b->probe.sent_pkts
					   ? (uint64_t)b->probe.last_sent_us + BWE_PROBE_TICK_US
					   : b->probe.begun_us);
	case BWE_PROBE_WAITING:
		return earlier(due_us, b->probe.begun_us + 2 * BWE_PROBE_TIMEOUT_US);
	case BWE_PROBE_IDLE:
		break;
	}
	return earlier(due_us, probe_due_us(b));
}

void bwe_stats(const struct bwe *b, struct bwe_stats *out)
{
	*out = b->stats;
	out->source = source_of(b);
	out->steady_bps =
	    out->source == BWE_FROM_FEEDBACK ? (uint64_t)steady_bps(b) : bwe_target_bps(b);
	out->rtt_us = b->rtt_us ? b->rtt_us : b->feedback_rtt_us;
	out->loss_share = b->loss.share;
	out->has_limit = b->has_limit;
}
