/* RTCP: every member lies within the packet and every reader within its member; what can be built
 * is built from what was read, and reads the same. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtcp.h"

enum { OUT_BYTES = 1 << 17, MAX_SEQS = 4096, MAX_STATUSES = 65535 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t out[OUT_BYTES];

static struct rtcp_member read_back(const struct rtcp_writer *w, enum rtcp_kind kind)
{
	struct rtcp_cursor c;
	struct rtcp_member m;

	assert(w->len_bytes <= w->cap_bytes && w->len_bytes % 4 == 0);
	rtcp_cursor_init(&c, w->out, w->len_bytes);
	assert(rtcp_cursor_next(&c, &m) == RTCP_NEXT_MEMBER && m.kind == kind);
	return m;
}

static void check_reports(const struct rtcp_member *m)
{
	struct rtcp_report reports[RTCP_MAX_REPORTS];
	struct rtcp_sender_info info = { 0 };
	struct rtcp_writer w;
	struct rtcp_member again;
	uint32_t ssrc;

	if (m->kind == RTCP_SR ? !rtcp_parse_sr(m, &ssrc, &info) : !rtcp_parse_rr(m, &ssrc))
		return;
	for (size_t i = 0; i < m->count; i++)
		rtcp_report_read(m, i, &reports[i]);
	rtcp_writer_init(&w, out, sizeof(out));
	if (m->kind == RTCP_SR)
		assert(rtcp_write_sr(&w, ssrc, &info, reports, m->count) == 0);
	else
		assert(rtcp_write_rr(&w, ssrc, reports, m->count) == 0);
	again = read_back(&w, m->kind);
	/* Only profile-specific extensions, after the reports, may be missing. */
	assert(again.body_bytes <= m->body_bytes && again.count == m->count);
	assert(memcmp(again.body, m->body, again.body_bytes) == 0);
}

static void check_sdes(const struct rtcp_member *m)
{
	struct rtcp_sdes_cursor c;
	struct rtcp_sdes_item item;
	size_t total = 0;

	rtcp_sdes_init(&c, m);
	while (rtcp_sdes_next(&c, &item)) {
		assert((const uint8_t *)item.text >= m->body);
		assert((const uint8_t *)item.text + item.bytes <= m->body + m->body_bytes);
		total += 2u + item.bytes;
	}
	assert(total <= m->body_bytes);
}

static void check_bye(const struct rtcp_member *m)
{
	uint32_t ssrc;
	size_t n = 0;

	while (rtcp_bye_ssrc(m, n, &ssrc))
		n++;
	assert(n <= m->count && n * 4 <= m->body_bytes);
}

static void check_nack(const struct rtcp_feedback *fb)
{
	static uint16_t seqs[MAX_SEQS];
	struct rtcp_nack_cursor c;
	struct rtcp_feedback again;
	struct rtcp_member m;
	struct rtcp_writer w;
	uint16_t seq;
	size_t n = 0, given = 0;

	rtcp_nack_init(&c, fb);
	for (; rtcp_nack_next(&c, &seq); given++)
		/* The builder takes ascending numbers: keep those that ascend. */
		if (n < MAX_SEQS &&
		    (n == 0 || ((uint16_t)(seq - seqs[0]) < 0x8000 &&
				(uint16_t)(seq - seqs[0]) > (uint16_t)(seqs[n - 1] - seqs[0]))))
			seqs[n++] = seq;
	assert(given <= fb->fci_bytes / 4 * 17);
	if (n == 0)
		return;
	rtcp_writer_init(&w, out, sizeof(out));
	assert(rtcp_write_nack(&w, fb->sender_ssrc, fb->media_ssrc, seqs, n) == (int)n);
	m = read_back(&w, RTCP_NACK);
	assert(rtcp_parse_feedback(&m, &again));
	rtcp_nack_init(&c, &again);
	for (size_t i = 0; i < n; i++)
		assert(rtcp_nack_next(&c, &seq) && seq == seqs[i]);
	assert(!rtcp_nack_next(&c, &seq));
}

static void check_remb(const struct rtcp_feedback *fb)
{
	uint32_t ssrcs[UINT8_MAX];
	struct rtcp_remb remb, again;
	struct rtcp_feedback fb_again;
	struct rtcp_member m;
	struct rtcp_writer w;

	if (!rtcp_parse_remb(fb, &remb))
		return;
	for (size_t i = 0; i < remb.ssrc_count; i++)
		ssrcs[i] = rtcp_remb_ssrc(&remb, i);
	rtcp_writer_init(&w, out, sizeof(out));
	assert(rtcp_write_remb(&w, fb->sender_ssrc, remb.bitrate_bps, ssrcs, remb.ssrc_count) == 0);
	m = read_back(&w, RTCP_REMB);
	assert(rtcp_parse_feedback(&m, &fb_again) && rtcp_parse_remb(&fb_again, &again));
	assert(again.ssrc_count == remb.ssrc_count);
	assert(again.bitrate_bps == remb.bitrate_bps || remb.bitrate_bps == UINT64_MAX);
}

static void check_twcc_built(const struct rtcp_twcc_report *report)
{
	struct rtcp_twcc_cursor c;
	struct rtcp_twcc_status s;
	struct rtcp_feedback fb;
	struct rtcp_member m;
	struct rtcp_writer w;
	int covered;

	rtcp_writer_init(&w, out, 1200);
	covered = rtcp_write_twcc(&w, report);
	if (covered < 0) {
		assert(w.len_bytes == 0);
		return;
	}
	m = read_back(&w, RTCP_TRANSPORT_CC);
	assert(rtcp_parse_feedback(&m, &fb) && rtcp_twcc_init(&c, &fb));
	assert(c.statuses == covered && covered > 0 && (size_t)covered <= report->n);
	for (int i = 0; i < covered; i++) {
		int64_t want = report->arrival_us[i];

		assert(rtcp_twcc_next(&c, &s));
		assert(s.is_received == (want != RTCP_TWCC_MISSING));
		assert(!s.is_received || s.arrival_us == want / 250 * 250);
	}
}

static void check_twcc(const struct rtcp_feedback *fb)
{
	static int64_t arrival_us[MAX_STATUSES];
	struct rtcp_twcc_cursor c;
	struct rtcp_twcc_status s;
	size_t n = 0;

	if (!rtcp_twcc_init(&c, fb))
		return;
	/* Deltas may lead before time 0, which the builder is never asked for, and the reference
	 * time wraps at 24 bits: keep to what lies between. */
	for (; rtcp_twcc_next(&c, &s); n++) {
		assert(n < c.statuses && s.seq == (uint16_t)(c.base_seq + n));
		arrival_us[n] =
		    s.is_received && s.arrival_us >= 0 ? s.arrival_us : RTCP_TWCC_MISSING;
	}
	if (n > 0 && c.reference_64ms < 0x7f0000)
		check_twcc_built(&(struct rtcp_twcc_report){ .sender_ssrc = fb->sender_ssrc,
							     .base_seq = c.base_seq,
							     .arrival_us = arrival_us,
							     .n = n });
}

static void check_xr(const struct rtcp_member *m)
{
	struct rtcp_xr_cursor c;
	struct rtcp_xr_block b;
	struct rtcp_dlrr dlrr;
	uint64_t ntp;
	size_t total = 4;

	if (!rtcp_xr_init(&c, m))
		return;
	while (rtcp_xr_next(&c, &b)) {
		size_t n = 0;

		assert(b.data >= m->body && b.data + b.bytes <= m->body + m->body_bytes);
		assert(!rtcp_xr_rrtr(&b, &ntp) || b.type == RTCP_XR_RRTR);
		while (rtcp_xr_dlrr(&b, n, &dlrr))
			n++;
		assert(n * 12 <= b.bytes);
		total += 4 + b.bytes;
	}
	assert(total <= m->body_bytes);
}

static void check_feedback(const struct rtcp_member *m)
{
	struct rtcp_feedback fb;
	uint32_t ssrc;
	uint8_t command;
	size_t n = 0;

	if (!rtcp_parse_feedback(m, &fb))
		return;
	assert(fb.fci + fb.fci_bytes == m->body + m->body_bytes);
	if (m->kind == RTCP_NACK)
		check_nack(&fb);
	if (m->kind == RTCP_REMB)
		check_remb(&fb);
	if (m->kind == RTCP_TRANSPORT_CC)
		check_twcc(&fb);
	if (m->kind == RTCP_FIR)
		while (rtcp_fir_entry(&fb, n, &ssrc, &command))
			n++;
	assert(n * 8 <= fb.fci_bytes);
}

static void check_member(const struct rtcp_member *m)
{
	switch (m->kind) {
	case RTCP_SR:
	case RTCP_RR:
		check_reports(m);
		break;
	case RTCP_SDES:
		check_sdes(m);
		break;
	case RTCP_BYE:
		check_bye(m);
		break;
	case RTCP_XR:
		check_xr(m);
		break;
	case RTCP_NACK:
	case RTCP_TRANSPORT_CC:
	case RTCP_PLI:
	case RTCP_FIR:
	case RTCP_REMB:
		check_feedback(m);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);
	struct rtcp_cursor c;
	struct rtcp_member m;
	size_t total = 0;

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	rtcp_cursor_init(&c, bytes, size);
	while (rtcp_cursor_next(&c, &m) == RTCP_NEXT_MEMBER) {
		assert(m.body >= bytes && m.body + m.body_bytes <= bytes + size);
		total += 4 + m.body_bytes;
		assert(total <= size);
		check_member(&m);
	}
	assert(rtcp_cursor_next(&c, &m) == RTCP_NEXT_END);
	free(bytes);
	return 0;
}
