/* loadgen/publisher.c - see publisher.h for the contract. */
#include "loadgen/publisher.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/publisher_inner.h"
#include "media/clock.h"
#include "media/rtcp.h"

enum {
	US_PER_S = 1000000,
	AUDIO_UNITS_PER_S = US_PER_S / SOURCE_AUDIO_PACKET_US,
	MAX_CATCH_UP_TICKS = 6, /* browser pacing: after a late wake-up, while a frame waits */
	REPORT_ROOM_BYTES = 128,
};

/* splitmix64: independent first values from one seed. */
static uint64_t draw(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static const struct negotiated_codec *find_codec(const struct negotiated_media *media,
						 enum media_codec codec)
{
	for (size_t i = 0; media->is_accepted && i < media->codec_count; i++) {
		if (media->codecs[i].codec == codec)
			return &media->codecs[i];
	}
	return NULL;
}

static void track_setup(struct track *t, const struct publisher_config *config,
			enum media_kind kind, uint64_t *seed)
{
	const struct negotiated_media *media = &config->negotiated->media[kind];
	const struct negotiated_codec *codec =
	    find_codec(media, kind == MEDIA_VIDEO ? CODEC_VP8 : CODEC_OPUS);

	if (!codec)
		return;
	t->is_used = true;
	t->kind = kind;
	t->payload_type = codec->pt;
	t->rtx_payload_type = codec->rtx_pt;
	t->ssrc = media->local_ssrc;
	t->rtx_ssrc = media->local_rtx_ssrc;
	t->has_rtx = codec->rtx_pt != NEGOTIATED_NO_PT && media->local_rtx_ssrc != 0;
	t->clock_hz = codec_clock_hz(codec->codec);
	t->units_per_s = kind == MEDIA_VIDEO ? source_fps(config->source) : AUDIO_UNITS_PER_S;
	t->first_timestamp = (uint32_t)draw(seed);
	packet_init(t, media);
	resend_init(&t->resend, 0, (uint16_t)(draw(seed) % RESEND_FIRST_NUMBER_MAX),
		    (uint16_t)(draw(seed) % RESEND_FIRST_NUMBER_MAX));
}

int publisher_create(struct publisher **out, const struct publisher_config *config)
{
	struct publisher *p;
	uint64_t seed = config->seed;

	*out = NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->config = *config;
	p->config.negotiated = NULL; /* the caller's, gone after this call */
	p->config.cname = p->cname;
	snprintf(p->cname, sizeof(p->cname), "%s", config->cname);
	p->first_picture_id = (uint16_t)draw(&seed);
	p->tl0picidx = (uint8_t)draw(&seed);
	for (int kind = 0; kind < NEGOTIATED_KINDS; kind++)
		track_setup(&p->tracks[kind], config, (enum media_kind)kind, &seed);
	if (!p->tracks[MEDIA_AUDIO].is_used && !p->tracks[MEDIA_VIDEO].is_used) {
		publisher_destroy(p);
		return -ENOTSUP;
	}
	resend_share_init(&p->share);
	*out = p;
	return 0;
}

void publisher_destroy(struct publisher *p)
{
	free(p);
}

void publisher_start(struct publisher *p, uint64_t now_us)
{
	assert(!p->is_started && p->config.transport->tx);
	p->is_started = true;
	p->start_us = p->tick_us = now_us;
	for (int kind = 0; kind < NEGOTIATED_KINDS; kind++)
		p->tracks[kind].report_due_us = now_us;
}

/* ---- media ---- */

static uint64_t slot_us(const struct publisher *p, const struct track *t)
{
	return p->start_us + t->slot * US_PER_S / t->units_per_s;
}

/* Leave out what nobody waits for any more. @return slots left out */
static uint64_t skip_late(const struct publisher *p, struct track *t, uint64_t now_us)
{
	uint64_t before = t->slot;

	if (now_us > slot_us(p, t) + PUBLISHER_MAX_LATE_US)
		t->slot = (now_us - p->start_us) * t->units_per_s / US_PER_S;
	return t->slot - before;
}

/* The next unit, in the next slot. */
static struct sent begin_unit(struct track *t, uint32_t at, uint32_t len)
{
	uint64_t ticks = t->slot * t->clock_hz / t->units_per_s;
	struct sent first = {
		.unit = t->units,
		.timestamp = (uint32_t)(t->first_timestamp + ticks),
		.at = at,
		.chunks = (uint16_t)packet_chunks(t, len),
	};

	t->slot++;
	t->units++;
	return first;
}

/* Send the next chunk of *unit. @return bytes of the datagram */
static size_t send_chunk(struct batch *b, struct track *t, struct sent *unit)
{
	size_t bytes;

	unit->index = t->next_index++;
	t->kept[unit->index % PUBLISHER_KEPT_PKTS] = *unit;
	bytes = batch_add(b, t, unit);
	unit->chunk++;
	return bytes;
}

static void send_audio(struct batch *b, uint64_t now_us)
{
	struct publisher *p = b->p;
	struct track *t = &p->tracks[MEDIA_AUDIO];

	p->stats.skipped_audio_pkts += skip_late(p, t, now_us);
	while (slot_us(p, t) <= now_us) {
		uint32_t at = (uint32_t)(t->units % source_audio_packets(p->config.source));
		struct sent packet = begin_unit(t, at, source_audio(p->config.source, at).len);

		send_chunk(b, t, &packet);
		p->stats.audio_pkts++;
	}
}

static bool has_frame(const struct publisher *p)
{
	return p->frame.chunk < p->frame.chunks;
}

/* @return false: no frame is due */
static bool begin_frame(struct publisher *p, uint64_t now_us)
{
	struct track *t = &p->tracks[MEDIA_VIDEO];
	uint32_t at;

	p->stats.skipped_frames += skip_late(p, t, now_us);
	if (slot_us(p, t) > now_us)
		return false;
	at = p->wants_keyframe ? 0 : p->next_frame;
	p->wants_keyframe = false;
	p->next_frame = (at + 1) % source_frames(p->config.source);
	p->frame = begin_unit(t, at, source_frame(p->config.source, at).len);
	if (source_layer(p->config.source, at).temporal_id == 0)
		p->tl0picidx++;
	p->frame.base_frame = p->tl0picidx;
	p->stats.frames++;
	p->stats.keyframes += at == 0;
	return true;
}

static int64_t bytes_per_tick(const struct publisher *p)
{
	uint64_t bps = (uint64_t)source_video_bps(p->config.source) * PUBLISHER_BURST_PERCENT / 100;

	return (int64_t)(bps / 8 * PUBLISHER_TICK_US / US_PER_S);
}

/* What a wake-up may send: saved up only while a frame waits. */
static void grow_budget(struct publisher *p, uint64_t now_us)
{
	uint64_t ticks, counted, saved;

	if (now_us < p->tick_us)
		return;
	ticks = (now_us - p->tick_us) / PUBLISHER_TICK_US + 1;
	counted = ticks < MAX_CATCH_UP_TICKS ? ticks : MAX_CATCH_UP_TICKS;
	saved = has_frame(p) ? counted : 1;
	p->tick_us += ticks * PUBLISHER_TICK_US;
	p->budget_bytes += (int64_t)counted * bytes_per_tick(p);
	if (p->budget_bytes > (int64_t)saved * bytes_per_tick(p))
		p->budget_bytes = (int64_t)saved * bytes_per_tick(p);
}

static void send_video(struct batch *b, uint64_t now_us)
{
	struct publisher *p = b->p;
	bool is_paced = p->config.pacing == PUBLISHER_PACING_BROWSER;

	if (is_paced)
		grow_budget(p, now_us);
	while (!is_paced || p->budget_bytes > 0) {
		if (!has_frame(p) && !begin_frame(p, now_us))
			return;
		p->budget_bytes -= (int64_t)send_chunk(b, &p->tracks[MEDIA_VIDEO], &p->frame);
		p->stats.video_pkts++;
	}
}

/* ---- reports ---- */

static uint64_t ntp_now(const struct publisher *p, uint64_t now_us)
{
	return clock_ntp_of_unix_us(now_us + (uint64_t)p->config.unix_minus_us);
}

static void send_report(struct publisher *p, struct track *t, uint64_t now_us)
{
	uint8_t bytes[REPORT_ROOM_BYTES];
	struct rtcp_writer w;
	struct rtcp_sender_info info;
	uint64_t ticks = (now_us - p->start_us) * t->clock_hz / US_PER_S;
	int err;

	reports_tx_sender_info(&t->reports, ntp_now(p, now_us),
			       (uint32_t)(t->first_timestamp + ticks), &info);
	rtcp_writer_init(&w, bytes, sizeof(bytes) - SEAL_RTCP_MAX_EXTRA_BYTES);
	err = rtcp_write_sr(&w, t->ssrc, &info, NULL, 0);
	assert(err == 0);
	err = rtcp_write_sdes_cname(&w, t->ssrc, p->cname, strlen(p->cname));
	assert(err == 0);
	packet_send_rtcp(p, bytes, w.len_bytes, sizeof(bytes));
	p->stats.reports++;
	t->report_due_us = now_us + PUBLISHER_REPORT_US;
}

/* ---- time ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t video_due_us(const struct publisher *p, uint64_t now_us)
{
	uint64_t next_us = slot_us(p, &p->tracks[MEDIA_VIDEO]);

	/* With a frame half sent, or one due that the budget is too short for. */
	if (has_frame(p) || next_us <= now_us)
		return p->tick_us;
	return next_us;
}

uint64_t publisher_on_due(struct publisher *p, uint64_t now_us)
{
	struct track *audio = &p->tracks[MEDIA_AUDIO], *video = &p->tracks[MEDIA_VIDEO];
	uint64_t due_us = UINT64_MAX;
	struct batch batch;

	if (!p->is_started || lifetime_is_closed(&p->config.transport->life))
		return UINT64_MAX;
	batch_init(&batch, p);
	if (audio->is_used)
		send_audio(&batch, now_us);
	if (video->is_used)
		send_video(&batch, now_us);
	batch_flush(&batch);
	for (int kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		struct track *t = &p->tracks[kind];

		if (!t->is_used)
			continue;
		if (t->report_due_us <= now_us)
			send_report(p, t, now_us);
		due_us = earlier(due_us, t->report_due_us);
	}
	if (audio->is_used)
		due_us = earlier(due_us, slot_us(p, audio));
	if (video->is_used)
		due_us = earlier(due_us, video_due_us(p, now_us));
	return due_us;
}

/* ---- feedback ---- */

static struct track *track_of(struct publisher *p, uint32_t ssrc)
{
	for (int kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		if (p->tracks[kind].is_used && p->tracks[kind].ssrc == ssrc)
			return &p->tracks[kind];
	}
	return NULL;
}

static void repeat(struct batch *b, struct track *t, uint16_t seq, uint64_t now_us)
{
	struct publisher *p = b->p;
	const struct sent *what;
	uint64_t index;

	p->stats.nacked_pkts++;
	if (t->next_index == 0 || !resend_index(&t->resend, t->next_index - 1, seq, &index) ||
	    t->next_index - index > PUBLISHER_KEPT_PKTS) {
		p->stats.unknown_pkts++;
		return;
	}
	what = &t->kept[index % PUBLISHER_KEPT_PKTS];
	if (resend_allow(&t->resend, &p->share, seq, (uint32_t)batch_repeat_bytes(p, t, what),
			 now_us, p->stats.rtt_us) != RESEND_SEND) {
		p->stats.refused_pkts++;
		return;
	}
	batch_repeat(b, t, what);
	p->stats.repeated_pkts++;
}

static void on_nack(struct publisher *p, const struct rtcp_feedback *fb, uint64_t now_us)
{
	struct track *t = track_of(p, fb->media_ssrc);
	struct rtcp_nack_cursor cursor;
	struct batch batch;
	uint16_t seq;

	if (!t)
		return;
	batch_init(&batch, p);
	rtcp_nack_init(&cursor, fb);
	while (rtcp_nack_next(&cursor, &seq))
		repeat(&batch, t, seq, now_us);
	batch_flush(&batch);
}

static void on_pli(struct publisher *p, const struct rtcp_feedback *fb)
{
	if (track_of(p, fb->media_ssrc) != &p->tracks[MEDIA_VIDEO])
		return;
	p->stats.plis++;
	p->wants_keyframe = true;
}

/* RFC 5104 4.3.1.2: an unchanged command number repeats a request that was heard. */
static void on_fir(struct publisher *p, const struct rtcp_feedback *fb)
{
	uint32_t ssrc;
	uint8_t command;

	for (size_t i = 0; rtcp_fir_entry(fb, i, &ssrc, &command); i++) {
		if (track_of(p, ssrc) != &p->tracks[MEDIA_VIDEO])
			continue;
		if (p->has_fir && p->fir_command == command)
			continue;
		p->has_fir = true;
		p->fir_command = command;
		p->stats.firs++;
		p->wants_keyframe = true;
	}
}

static void on_reports(struct publisher *p, const struct rtcp_member *m, uint64_t now_us)
{
	struct rtcp_report block;

	for (size_t i = 0; i < m->count; i++) {
		rtcp_report_read(m, i, &block);
		if (track_of(p, block.ssrc))
			reports_rtt(&block, ntp_now(p, now_us), &p->stats.rtt_us);
	}
}

/* @return false: the member contradicts itself */
static bool on_member(struct publisher *p, const struct rtcp_member *m, uint64_t now_us)
{
	struct rtcp_sender_info info;
	struct rtcp_feedback fb;
	uint32_t ssrc;

	switch (m->kind) {
	case RTCP_SR:
	case RTCP_RR:
		if (!(m->kind == RTCP_SR ? rtcp_parse_sr(m, &ssrc, &info)
					 : rtcp_parse_rr(m, &ssrc)))
			return false;
		on_reports(p, m, now_us);
		return true;
	case RTCP_NACK:
	case RTCP_PLI:
	case RTCP_FIR:
		if (!rtcp_parse_feedback(m, &fb))
			return false;
		if (m->kind == RTCP_NACK)
			on_nack(p, &fb, now_us);
		else if (m->kind == RTCP_PLI)
			on_pli(p, &fb);
		else
			on_fir(p, &fb);
		return true;
	default: /* REMB and the like: the loop's rate is what it is */
		return true;
	}
}

void publisher_on_rtcp(struct publisher *p, uint64_t now_us, const uint8_t *bytes, size_t len)
{
	struct rtcp_cursor cursor;
	struct rtcp_member member;
	enum rtcp_next next;
	bool is_bad = false;

	if (!p->is_started || lifetime_is_closed(&p->config.transport->life))
		return;
	rtcp_cursor_init(&cursor, bytes, len);
	while ((next = rtcp_cursor_next(&cursor, &member)) == RTCP_NEXT_MEMBER)
		is_bad = !on_member(p, &member, now_us) || is_bad;
	p->stats.bad_rtcp += is_bad || next == RTCP_NEXT_MALFORMED;
}

void publisher_stats(const struct publisher *p, struct publisher_stats *out)
{
	*out = p->stats;
}
