#include "loadgen/viewer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "loadgen/account.h"
#include "loadgen/feedback.h"
#include "loadgen/verify.h"
#include "media/nack.h"
#include "media/reports.h"
#include "media/rtx.h"
#include "net/random.h"

enum {
	FRAMES = 4, /* of one track that may be incomplete at once */
	NACK_BATCH = 64,
	RTCP_BYTES = 512,
	FEEDBACK_ROOM_BYTES = 1200,
	GUESSED_RTT_US = 50000, /* receivers do not learn it */
	REORDER_US = 10000,
	MAX_AGE_US = 1000000,
};

struct frame {
	uint32_t timestamp;
	uint32_t pkts;
	uint16_t key_seq, end_seq;
	size_t end_bytes;
	bool is_used, is_key, has_end;
};

struct track {
	enum media_kind kind;
	uint32_t ssrc, rtx_ssrc;
	bool has_ssrc, has_rtx_ssrc;
	uint8_t pt; /* of the last packet */
	enum media_codec codec;
	struct account account;
	struct reports_rx reports;
	struct nack *nack; /* NULL: not negotiated */
	uint64_t last_us;
	uint64_t given_up; /* when last looked */
	struct frame frames[FRAMES];
	unsigned newest, next;
};

struct viewer {
	struct viewer_config config;
	struct viewer_tally *tally;
	struct peer *peer;
	struct verify *verify;
	struct feedback *feedback; /* NULL: not negotiated */
	struct track tracks[NEGOTIATED_KINDS];
	struct lateness lateness;
	uint32_t ssrc; /* ours, in what we send */
	bool is_joined, has_keyframe, wants_pli;
	uint64_t connected_us, frozen_us;
	uint64_t report_us, pli_us, due_us;
};

/* What is known of a packet when it is counted. */
struct arrival {
	const struct rtp_packet *rtp;
	const uint8_t *bytes;
	size_t len; /* as it came, tag included */
	uint64_t came_us;
	bool is_repair, is_plain;
};

/* --- frames and latency ---------------------------------------------------------------- */

static struct frame *frame_of(struct track *t, uint32_t timestamp)
{
	struct frame *f = &t->frames[t->newest];

	if (f->is_used && f->timestamp == timestamp)
		return f;
	for (unsigned i = 0; i < FRAMES; i++)
		if (t->frames[i].is_used && t->frames[i].timestamp == timestamp)
			return &t->frames[i];
	t->newest = t->next;
	t->next = (t->next + 1) % FRAMES;
	f = &t->frames[t->newest];
	*f = (struct frame){ .is_used = true, .timestamp = timestamp };
	return f;
}

static void tell_latency(struct viewer *v, struct track *t, struct frame *f, uint64_t came_us)
{
	struct latency_unit unit = { v->config.number, f->timestamp, f->pkts, f->end_bytes,
				     came_us };
	enum latency_verdict verdict;
	uint64_t us;

	if (!v->config.latency[t->kind] || came_us - v->connected_us < VIEWER_SETTLE_US)
		return;
	verdict = latency_on_unit(v->config.latency[t->kind], &unit, &us);
	if (verdict == LATENCY_INCOMPLETE)
		return;
	f->is_used = false;
	if (verdict != LATENCY_MATCHED || !v->tally->is_measuring)
		return;
	histogram_add(t->kind == MEDIA_VIDEO ? &v->tally->frame_us : &v->tally->audio_us, us);
	lateness_add(&v->lateness, us);
}

static void look_for_keyframe(struct viewer *v, struct frame *f, const struct track *t,
			      const struct arrival *a)
{
	struct codec_info info;

	if (codec_inspect(t->codec, a->bytes + a->rtp->payload_offset, a->rtp->payload_bytes,
			  &info) &&
	    info.flags & CODEC_KEYFRAME_START && !f->is_key) {
		f->is_key = true;
		f->key_seq = a->rtp->seq;
	}
	if (!f->is_key || !f->has_end ||
	    f->pkts < (uint32_t)(uint16_t)(f->end_seq - f->key_seq) + 1)
		return;
	v->has_keyframe = true;
	histogram_add(&v->tally->keyframe_us, a->came_us - peer_asked_us(v->peer));
}

static void on_new_packet(struct viewer *v, struct track *t, const struct arrival *a)
{
	struct frame *f;

	if (t->kind == MEDIA_AUDIO) {
		struct frame unit = { .timestamp = a->rtp->timestamp,
				      .pkts = 1,
				      .end_bytes = a->len };

		tell_latency(v, t, &unit, a->came_us);
		return;
	}
	f = frame_of(t, a->rtp->timestamp);
	f->pkts++;
	if (a->rtp->marker) {
		f->has_end = true;
		f->end_bytes = a->len;
		f->end_seq = a->rtp->seq;
	}
	if (!v->has_keyframe && a->is_plain)
		look_for_keyframe(v, f, t, a);
	if (f->has_end)
		tell_latency(v, t, f, a->came_us);
}

/* --- counting -------------------------------------------------------------------------- */

static void arm_sooner(struct viewer *v, uint64_t due_us)
{
	if (due_us >= v->due_us)
		return;
	v->due_us = due_us;
	peer_arm(v->peer, due_us);
}

/* @return true: it had been asked for */
static bool tell_nack(struct viewer *v, struct track *t, const struct arrival *a)
{
	bool is_late =
	    t->account.is_started && !rtp_seq_is_newer(a->rtp->seq, (uint16_t)t->account.highest);
	struct nack_stats before, after;

	if (!t->nack)
		return a->is_repair;
	if (is_late)
		nack_stats(t->nack, &before);
	if (nack_on_packet(t->nack, a->rtp->seq, a->came_us) == -ERANGE)
		v->wants_pli = true;
	arm_sooner(v, nack_deadline_us(t->nack));
	if (!is_late || a->is_repair)
		return a->is_repair;
	nack_stats(t->nack, &after);
	return after.recovered != before.recovered;
}

static void count(struct viewer *v, struct track *t, const struct arrival *a)
{
	bool is_repair;

	if (!v->is_joined) {
		v->is_joined = true;
		v->tally->joined++;
		histogram_add(&v->tally->join_us, a->came_us - peer_asked_us(v->peer));
	}
	t->last_us = a->came_us;
	if (!a->is_repair)
		reports_rx_on_packet(&t->reports, a->rtp->seq, a->rtp->timestamp, (uint32_t)a->len,
				     a->came_us);
	is_repair = tell_nack(v, t, a);
	if (account_on_packet(&t->account, a->rtp->seq, is_repair) == ACCOUNT_NEW)
		on_new_packet(v, t, a);
}

/* --- opening --------------------------------------------------------------------------- */

static struct track *track_of_pt(struct viewer *v, const struct rtp_packet *rtp, bool *is_rtx)
{
	const struct negotiated *n = peer_negotiated(v->peer);

	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		struct track *t = &v->tracks[kind];
		const struct negotiated_codec *c =
		    n->media[kind].is_accepted
			? negotiated_by_pt(&n->media[kind], rtp->payload_type, is_rtx)
			: NULL;

		if (!c || (*is_rtx ? t->has_rtx_ssrc : t->has_ssrc))
			continue;
		if (*is_rtx) {
			t->rtx_ssrc = rtp->ssrc;
			t->has_rtx_ssrc = true;
			return t;
		}
		t->ssrc = rtp->ssrc;
		t->has_ssrc = true;
		t->codec = c->codec;
		t->pt = rtp->payload_type;
		reports_rx_init(&t->reports, rtp->ssrc, c->clock_hz);
		return t;
	}
	return NULL;
}

static struct track *track_of(struct viewer *v, const struct rtp_packet *rtp, bool *is_rtx)
{
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		struct track *t = &v->tracks[kind];

		*is_rtx = t->has_rtx_ssrc && t->rtx_ssrc == rtp->ssrc;
		if (*is_rtx || (t->has_ssrc && t->ssrc == rtp->ssrc))
			return t;
	}
	return track_of_pt(v, rtp, is_rtx);
}

/* @return false: it is to be dropped */
static bool open_packet(struct viewer *v, uint8_t *bytes, size_t *len, bool is_rtx)
{
	if (v->verify) {
		enum verify_verdict verdict = verify_open(v->verify, bytes, len);

		v->tally->verified += verdict == VERIFY_OK;
		v->tally->bad_auth += verdict == VERIFY_BAD;
		return verdict == VERIFY_OK;
	}
	if (is_rtx) {
		enum seal_verdict verdict = peer_open_rtp(v->peer, bytes, len);

		v->tally->bad_auth += verdict == SEAL_AUTH_FAILED || verdict == SEAL_MALFORMED;
		return verdict == SEAL_OK;
	}
	return true;
}

/* Of the transport: whatever it is, it counts when it comes. */
static void tell_feedback(struct viewer *v, const struct rtp_packet *rtp, const struct arrival *a)
{
	const struct negotiated *n = peer_negotiated(v->peer);
	struct ext_values values;

	ext_read(&n->media[MEDIA_VIDEO].extensions, a->bytes, rtp, &values);
	if (!ext_has(&values, EXT_TRANSPORT_CC))
		return;
	feedback_on_packet(v->feedback, values.transport_seq, (uint32_t)a->len, a->came_us);
	arm_sooner(v, feedback_due_us(v->feedback));
}

static void on_rtp(void *arg, uint64_t came_us, uint8_t *bytes, size_t len)
{
	struct viewer *v = arg;
	struct rtp_packet rtp;
	struct arrival a = { &rtp, bytes, len, came_us, false, false };
	struct track *t;
	bool is_rtx;

	if (rtp_parse_header(bytes, len, &rtp) != RTP_OK)
		return;
	v->tally->pkts++;
	v->tally->bytes += len;
	if (v->feedback)
		tell_feedback(v, &rtp, &a);
	t = track_of(v, &rtp, &is_rtx);
	if (!t)
		return;
	a.is_repair = is_rtx;
	a.is_plain = is_rtx || v->verify;
	if (a.is_plain &&
	    (!open_packet(v, bytes, &len, is_rtx) || rtp_parse(bytes, len, &rtp) != RTP_OK)) {
		/* A repeat that the replay check stopped is one all the same. */
		t->account.duplicated += !is_rtx && v->frozen_us == 0;
		return;
	}
	if (is_rtx && !rtx_unwrap(&rtp, bytes, t->ssrc, t->pt))
		return;
	count(v, t, &a);
}

static void on_rtcp(void *arg, uint8_t *bytes, size_t len)
{
	struct viewer *v = arg;
	struct rtcp_cursor cursor;
	struct rtcp_member m;
	struct rtcp_sender_info info;
	uint32_t ssrc;

	rtcp_cursor_init(&cursor, bytes, len);
	while (rtcp_cursor_next(&cursor, &m) == RTCP_NEXT_MEMBER) {
		if (m.kind != RTCP_SR || !rtcp_parse_sr(&m, &ssrc, &info))
			continue;
		for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
			if (v->tracks[kind].has_ssrc && v->tracks[kind].ssrc == ssrc)
				reports_rx_on_sr(&v->tracks[kind].reports, info.ntp,
						 peer_ground(v->peer)->now_us);
	}
}

static void on_forged(void *arg)
{
	struct viewer *v = arg;

	v->tally->bad_auth++;
}

/* --- feedback -------------------------------------------------------------------------- */

static void send_nacks(struct viewer *v, struct track *t, uint64_t now_us)
{
	uint8_t bytes[RTCP_BYTES];
	uint16_t seqs[NACK_BATCH];
	struct rtcp_writer w;
	size_t n;

	while (t->nack && nack_deadline_us(t->nack) <= now_us) {
		n = nack_poll(t->nack, now_us, seqs, NACK_BATCH);
		if (n == 0)
			return;
		v->tally->nacked_pkts += n;
		rtcp_writer_init(&w, bytes, sizeof(bytes) - SEAL_RTCP_MAX_EXTRA_BYTES);
		/* 64 numbers take at most 64 times 4 bytes: they all fit. */
		if (rtcp_write_nack(&w, v->ssrc, t->ssrc, seqs, n) > 0)
			peer_send_rtcp(v->peer, bytes, w.len_bytes, sizeof(bytes));
	}
}

static void send_feedback(struct viewer *v, uint64_t now_us)
{
	uint8_t bytes[FEEDBACK_ROOM_BYTES];
	uint32_t media_ssrc = v->tracks[MEDIA_VIDEO].ssrc;
	struct rtcp_writer w;

	while (feedback_due_us(v->feedback) <= now_us) {
		rtcp_writer_init(&w, bytes, sizeof(bytes) - SEAL_RTCP_MAX_EXTRA_BYTES);
		if (feedback_write(v->feedback, &w, v->ssrc, media_ssrc, now_us) > 0)
			peer_send_rtcp(v->peer, bytes, w.len_bytes, sizeof(bytes));
	}
}

static void send_report(struct viewer *v, uint64_t now_us)
{
	struct rtcp_report reports[NEGOTIATED_KINDS];
	uint8_t bytes[RTCP_BYTES];
	struct rtcp_writer w;
	size_t n = 0;

	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		if (v->tracks[kind].has_ssrc &&
		    reports_rx_block(&v->tracks[kind].reports, now_us, &reports[n]))
			n++;
	rtcp_writer_init(&w, bytes, sizeof(bytes) - SEAL_RTCP_MAX_EXTRA_BYTES);
	if (rtcp_write_rr(&w, v->ssrc, reports, n) == 0 &&
	    rtcp_write_sdes_cname(&w, v->ssrc, "sluice-load", 11) == 0)
		peer_send_rtcp(v->peer, bytes, w.len_bytes, sizeof(bytes));
}

static void send_pli(struct viewer *v, uint64_t now_us)
{
	struct track *t = &v->tracks[MEDIA_VIDEO];
	uint8_t bytes[RTCP_BYTES];
	struct rtcp_writer w;

	v->wants_pli = false;
	if (!t->has_ssrc || now_us - v->pli_us < VIEWER_PLI_US)
		return;
	v->pli_us = now_us;
	v->tally->plis++;
	rtcp_writer_init(&w, bytes, sizeof(bytes) - SEAL_RTCP_MAX_EXTRA_BYTES);
	if (rtcp_write_pli(&w, v->ssrc, t->ssrc) == 0)
		peer_send_rtcp(v->peer, bytes, w.len_bytes, sizeof(bytes));
}

/* A decoder would stand still: something is lost for good, or there was never a key frame. */
static void judge_picture(struct viewer *v, uint64_t now_us)
{
	struct track *t = &v->tracks[MEDIA_VIDEO];
	struct nack_stats stats;

	if (t->nack) {
		nack_stats(t->nack, &stats);
		v->wants_pli |= stats.given_up > t->given_up;
		t->given_up = stats.given_up;
	}
	v->wants_pli |= v->verify && !v->has_keyframe && now_us - v->connected_us > VIEWER_PLI_US;
}

static void on_due(void *arg)
{
	struct viewer *v = arg;
	uint64_t now_us = peer_ground(v->peer)->now_us;

	v->due_us = UINT64_MAX;
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		send_nacks(v, &v->tracks[kind], now_us);
	if (v->feedback) {
		send_feedback(v, now_us);
		arm_sooner(v, feedback_due_us(v->feedback));
	}
	if (now_us >= v->report_us) {
		send_report(v, now_us);
		judge_picture(v, now_us);
		v->report_us = now_us + VIEWER_REPORT_US;
	}
	if (v->wants_pli)
		send_pli(v, now_us);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		if (v->tracks[kind].nack)
			arm_sooner(v, nack_deadline_us(v->tracks[kind].nack));
	arm_sooner(v, v->report_us);
}

/* --- life ------------------------------------------------------------------------------ */

static void open_track(struct viewer *v, unsigned kind)
{
	static const struct nack_config config = { GUESSED_RTT_US, REORDER_US, MAX_AGE_US,
						   NACK_WINDOW_PKTS };
	const struct negotiated_media *m = &peer_negotiated(v->peer)->media[kind];
	struct track *t = &v->tracks[kind];

	if (m->is_accepted && m->feedback & SDP_FB_NACK)
		(void)nack_create(&t->nack, &config); /* without: a viewer that asks for nothing */
}

/* The number counts all of the transport, but only the video's feedback makes use of it. */
static void open_feedback(struct viewer *v)
{
	const struct negotiated_media *m = &peer_negotiated(v->peer)->media[MEDIA_VIDEO];

	if (m->is_accepted && m->feedback & SDP_FB_TRANSPORT_CC &&
	    m->extensions.id_of[EXT_TRANSPORT_CC])
		(void)feedback_create(&v->feedback); /* without: a viewer that sends none */
}

static void on_connected(void *arg)
{
	struct viewer *v = arg;
	struct seal_keys keys;

	v->connected_us = peer_ground(v->peer)->now_us;
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		open_track(v, kind);
	open_feedback(v);
	if (v->config.is_verified) {
		int err = transport_kept_keys(peer_transport(v->peer), &keys);

		assert(err == 0);
		err = verify_create(&v->verify, &keys);
		memset(&keys, 0, sizeof(keys));
		if (err) {
			peer_fail(v->peer, "libsrtp2 refuses the keys");
			return;
		}
	}
	/* Spread, so that 1,000 viewers who joined together do not report together. */
	v->report_us = v->connected_us + random_u64() % VIEWER_REPORT_US;
	arm_sooner(v, v->report_us);
}

static void on_failed(void *arg)
{
	struct viewer *v = arg;

	v->tally->failed += !v->is_joined;
}

static const struct peer_handlers handlers = { on_connected, on_rtp, on_rtcp,
					       on_forged,    on_due, on_failed };

int viewer_create(struct viewer **out, struct peer_ground *g, const struct viewer_config *config)
{
	struct peer_config peer = {
		.number = config->number,
		.role = OFFER_WATCH,
		.url = config->url,
		.token = config->token,
		.keep_keys = config->is_verified,
		.transport_cc = config->transport_cc,
		.give_up_us = config->give_up_us,
		.handlers = &handlers,
	};
	struct viewer *v = calloc(1, sizeof(*v));
	int err;

	*out = NULL;
	if (!v)
		return -ENOMEM;
	v->config = *config;
	v->tally = config->tally;
	v->due_us = UINT64_MAX;
	v->ssrc = (uint32_t)random_u64() | 1;
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		v->tracks[kind].kind = (enum media_kind)kind;
		account_init(&v->tracks[kind].account);
	}
	peer.arg = v;
	err = peer_create(&v->peer, g, &peer);
	if (err) {
		free(v);
		return err;
	}
	*out = v;
	return 0;
}

void viewer_destroy(struct viewer *v)
{
	if (!v)
		return;
	peer_destroy(v->peer);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		nack_destroy(v->tracks[kind].nack);
	verify_destroy(v->verify);
	feedback_destroy(v->feedback);
	free(v);
}

void viewer_start(struct viewer *v)
{
	peer_start(v->peer);
}

void viewer_freeze(struct viewer *v)
{
	v->frozen_us = peer_ground(v->peer)->now_us;
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		account_freeze(&v->tracks[kind].account);
}

void viewer_result(const struct viewer *v, struct viewer_result *out)
{
	const struct negotiated *n = peer_negotiated(v->peer);

	*out = (struct viewer_result){ .is_joined = v->is_joined, .is_complete = v->is_joined };
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		const struct track *t = &v->tracks[kind];

		if (n->media[kind].is_accepted && t->last_us + VIEWER_ALIVE_US < v->frozen_us)
			out->is_complete = false;
		out->expected += account_expected(&t->account);
		out->received += t->account.received;
		out->repaired += t->account.repaired;
		out->duplicated += t->account.duplicated;
	}
}

const struct lateness *viewer_lateness(const struct viewer *v)
{
	return &v->lateness;
}

struct peer *viewer_peer(const struct viewer *v)
{
	return v->peer;
}
