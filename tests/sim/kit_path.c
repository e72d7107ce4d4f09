/* tests/sim/kit_path.c - see kit_path.h for the contract. */
#include "tests/sim/kit_path.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "media/pacer.h"
#include "media/twcc_arrivals.h"
#include "pool/bytes.h"

enum {
	PACKET_BYTES = 1200, /* the largest */
	MAX_QUEUED = 4096,
	KEYFRAME_FRAMES = 6,
	REPORT_US = 1000000,
	REMB_US = 500000,
	RTCP_BYTES = 1200,
	LAYER_HOLD_US =
	    1000000, /* an estimate has to last so long before a larger layer is taken */
	KIND_MEDIA = 1,
	KIND_PADDING = 2,
};
static const double layer_margin = 1.1;

struct path {
	const struct sim_path_config *config;
	struct sim_link *forward, *back;
	struct bwe *bwe;
	struct pacer pacer;
	struct twcc_arrivals *arrivals;
	struct sim_path_result *result;
	uint64_t now_us;
	/* Sender. */
	uint64_t frame_due_us, frames;
	uint32_t queue[MAX_QUEUED]; /* sizes of packets that wait for the pacer */
	size_t queued, queue_at;
	uint64_t queued_bytes;
	size_t layer;
	uint64_t better_since_us; /* a larger layer fits since; 0: does not */
	/* Receiver. */
	uint64_t report_due_us;
	uint64_t arrived, arrived_before, sent_before;
	uint64_t arrived_bytes, remb_bytes;
	/* Of the running sample. */
	struct sim_sample sample;
	uint64_t sent_bytes, received_bytes, media_bytes;
};

/* --- sender -------------------------------------------------------------------------------- */

static void send_packet(struct path *p, uint32_t bytes, uint8_t kind)
{
	uint8_t packet[PACKET_BYTES] = { 0 };
	uint16_t seq = bwe_on_sent(p->bwe, bytes, p->now_us);

	be16_write(packet, seq);
	packet[2] = kind;
	pacer_on_sent(&p->pacer, bytes, p->now_us);
	p->result->sent++;
	p->sent_bytes += bytes;
	switch (sim_link_send(p->forward, p->now_us, packet, bytes)) {
	case IMPAIR_LOST:
		p->result->lost++;
		break;
	case IMPAIR_OVERFLOW:
		p->result->overflowed++;
		break;
	default:
		break;
	}
}

static void drain_pacer(struct path *p)
{
	pacer_set_rate(&p->pacer, bwe_target_bps(p->bwe), p->queued_bytes);
	while (p->queued > 0 && pacer_may_send(&p->pacer, p->now_us)) {
		uint32_t bytes = p->queue[p->queue_at];

		p->queue_at = (p->queue_at + 1) % MAX_QUEUED;
		p->queued--;
		p->queued_bytes -= bytes;
		send_packet(p, bytes, KIND_MEDIA);
	}
}

static void enqueue_frame(struct path *p, uint32_t bytes)
{
	uint32_t packets = (bytes + PACKET_BYTES - 1) / PACKET_BYTES;

	for (uint32_t i = 0; i < packets && p->queued < MAX_QUEUED; i++) {
		uint32_t size = bytes / packets < 100 ? 100 : bytes / packets;

		p->queue[(p->queue_at + p->queued++) % MAX_QUEUED] = size;
		p->queued_bytes += size;
	}
}

static bool fits(const struct path *p, size_t layer)
{
	return (double)bwe_target_bps(p->bwe) >= layer_margin * p->config->layers_bps[layer];
}

/* Down at once, up when it has lasted: the simplest choice that can be made. */
static void choose_layer(struct path *p)
{
	const struct sim_path_config *c = p->config;
	size_t before = p->layer;
	size_t best = 0;

	while (best + 1 < c->layers && fits(p, best + 1))
		best++;
	if (best <= p->layer)
		p->better_since_us = 0;
	else if (p->better_since_us == 0)
		p->better_since_us = p->now_us;
	if (bwe_target_bps(p->bwe) < c->layers_bps[p->layer])
		p->layer = best;
	else if (p->better_since_us && p->now_us - p->better_since_us >= LAYER_HOLD_US)
		p->layer = best;
	p->result->switches += p->layer != before;
	bwe_set_goal(p->bwe, p->layer + 1 == c->layers
				 ? (uint64_t)(1.2 * c->layers_bps[p->layer])
				 : (uint64_t)(1.2 * c->layers_bps[p->layer + 1]));
}

static void send_frame(struct path *p)
{
	const struct sim_path_config *c = p->config;
	uint32_t fps = c->fps ? c->fps : 30;
	uint64_t rate_bps;
	double size = 1;

	if (c->layers) {
		choose_layer(p);
		rate_bps = c->layers_bps[p->layer];
	} else {
		rate_bps = bwe_target_bps(p->bwe);
		bwe_set_goal(p->bwe, 10000000);
	}
	/* The mean stays the rate. */
	if (c->keyframe_every_frames) {
		double n = c->keyframe_every_frames;

		size = n / (n - 1 + KEYFRAME_FRAMES);
		if (p->frames % c->keyframe_every_frames == 0)
			size *= KEYFRAME_FRAMES;
	}
	enqueue_frame(p, (uint32_t)(size * (double)rate_bps / 8 / fps));
	p->frames++;
	p->frame_due_us += 1000000 / fps;
}

static void send_probe(struct path *p)
{
	uint32_t bytes;

	while ((bytes = bwe_probe_bytes(p->bwe, p->now_us)) > 0)
		send_packet(p, bytes < 200 ? 200 : bytes < 1000 ? bytes : 1000, KIND_PADDING);
}

static void read_feedback(struct path *p, const struct sim_datagram *d)
{
	struct rtcp_cursor cursor;
	struct rtcp_feedback fb;
	struct rtcp_report report;
	struct rtcp_member m;
	struct rtcp_remb remb;

	rtcp_cursor_init(&cursor, d->bytes, d->len);
	while (rtcp_cursor_next(&cursor, &m) == RTCP_NEXT_MEMBER) {
		if (m.kind == RTCP_TRANSPORT_CC && rtcp_parse_feedback(&m, &fb)) {
			bwe_on_feedback(p->bwe, &fb, p->now_us);
		} else if (m.kind == RTCP_REMB && rtcp_parse_feedback(&m, &fb)) {
			cr_assert(rtcp_parse_remb(&fb, &remb));
			bwe_on_remb(p->bwe, remb.bitrate_bps, p->now_us);
		} else if (m.kind == RTCP_RR && m.count) {
			rtcp_report_read(&m, 0, &report);
			bwe_on_report(p->bwe, report.fraction_lost, p->now_us);
		}
	}
}

/* --- receiver ------------------------------------------------------------------------------ */

static void receive_packet(struct path *p, const struct sim_datagram *d)
{
	const struct impair_profile *profile = sim_link_profile(p->forward, d->sent_us);
	uint64_t delay_us = p->now_us - d->sent_us;
	uint64_t beyond_us = delay_us > profile->delay_us ? delay_us - profile->delay_us : 0;

	if (p->config->peer == SIM_PEER_FEEDBACK)
		twcc_arrivals_on_packet(p->arrivals, be16_read(d->bytes), p->now_us);
	p->arrived++;
	p->arrived_bytes += d->len;
	p->received_bytes += d->len;
	if (d->bytes[2] == KIND_MEDIA)
		p->media_bytes += d->len;
	if (beyond_us > p->sample.delay_us)
		p->sample.delay_us = (uint32_t)beyond_us;
}

static void send_report(struct path *p)
{
	uint64_t sent = p->result->sent - p->sent_before;
	uint64_t got = p->arrived - p->arrived_before;
	struct rtcp_report report = { .ssrc = 1 };
	uint8_t bytes[RTCP_BYTES];
	struct rtcp_writer w;
	uint32_t ssrc = 1;

	p->sent_before = p->result->sent;
	p->arrived_before = p->arrived;
	if (sent > got)
		report.fraction_lost = (uint8_t)((sent - got) * 255 / sent);
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_rr(&w, 2, &report, 1);
	if (p->config->peer == SIM_PEER_REMB)
		rtcp_write_remb(&w, 2, (p->arrived_bytes - p->remb_bytes) * 12, &ssrc, 1);
	p->remb_bytes = p->arrived_bytes;
	sim_link_send(p->back, p->now_us, bytes, w.len_bytes);
	p->report_due_us += REPORT_US;
}

static void send_feedback(struct path *p)
{
	uint8_t bytes[RTCP_BYTES];
	struct rtcp_writer w;

	while (twcc_arrivals_deadline_us(p->arrivals) <= p->now_us) {
		rtcp_writer_init(&w, bytes, sizeof(bytes));
		cr_assert_gt(twcc_arrivals_write(p->arrivals, &w, 2, 1), 0);
		sim_link_send(p->back, p->now_us, bytes, w.len_bytes);
	}
}

/* --- the run ------------------------------------------------------------------------------- */

static void take_sample(struct path *p)
{
	struct sim_sample *s = &p->sample;
	uint64_t per_s = 8 * (1000000 / SIM_SAMPLE_US);

	cr_assert_lt(p->result->count, SIM_MAX_SAMPLES);
	s->capacity_bps = UINT64_C(1000) * sim_link_profile(p->forward, s->at_us)->rate_kbps;
	s->target_bps = bwe_target_bps(p->bwe);
	s->sent_bps = p->sent_bytes * per_s;
	s->received_bps = p->received_bytes * per_s;
	s->media_bps = p->media_bytes * per_s;
	s->layer = p->config->layers ? (uint32_t)p->layer + 1 : 0;
	p->result->samples[p->result->count++] = *s;
	*s = (struct sim_sample){ .at_us = p->now_us };
	p->sent_bytes = p->received_bytes = p->media_bytes = 0;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_event_us(const struct path *p)
{
	uint64_t at_us = min(p->frame_due_us, p->sample.at_us + SIM_SAMPLE_US);

	at_us = min(at_us, sim_link_deadline_us(p->forward));
	at_us = min(at_us, sim_link_deadline_us(p->back));
	at_us = min(at_us, twcc_arrivals_deadline_us(p->arrivals));
	at_us = min(at_us, bwe_deadline_us(p->bwe));
	at_us = min(at_us, p->report_due_us);
	if (p->queued > 0)
		at_us = min(at_us, pacer_due_us(&p->pacer));
	return at_us > p->now_us ? at_us : p->now_us + 100; /* a timer's grain */
}

static void step(struct path *p)
{
	struct sim_datagram d;

	while (sim_link_receive(p->forward, p->now_us, &d))
		receive_packet(p, &d);
	while (sim_link_receive(p->back, p->now_us, &d))
		read_feedback(p, &d);
	send_feedback(p);
	if (p->now_us >= p->report_due_us)
		send_report(p);
	bwe_on_timeout(p->bwe, p->now_us);
	if (p->now_us >= p->frame_due_us)
		send_frame(p);
	drain_pacer(p);
	send_probe(p);
	if (p->now_us - p->sample.at_us >= SIM_SAMPLE_US)
		take_sample(p);
}

const struct sim_path_result *sim_path_run(const struct sim_path_config *config)
{
	static struct sim_path_result result;
	static struct path path;
	struct bwe_config bwe = { .start_bps = config->start_bps ? config->start_bps : 300000,
				  .min_bps = 30000,
				  .max_bps = 20000000,
				  .now_us = 1 };

	result = (struct sim_path_result){ 0 };
	path = (struct path){ .config = config, .result = &result };
	path.forward = sim_link_create(config->forward, config->forward_steps, config->seed);
	path.back = sim_link_create(config->back, config->back_steps, config->seed + 1);
	cr_assert_eq(bwe_create(&path.bwe, &bwe), 0);
	cr_assert_eq(twcc_arrivals_create(&path.arrivals), 0);
	pacer_init(&path.pacer, bwe.start_bps);
	path.report_due_us = REPORT_US;
	for (; path.now_us < config->end_us; path.now_us = next_event_us(&path))
		step(&path);
	bwe_stats(path.bwe, &result.bwe);
	twcc_arrivals_destroy(path.arrivals);
	bwe_destroy(path.bwe);
	sim_link_destroy(path.back);
	sim_link_destroy(path.forward);
	return &result;
}
