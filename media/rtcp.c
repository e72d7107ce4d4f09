/* media/rtcp.c - see rtcp.h for the contract. Reading; transport-cc is in rtcp_twcc.c. */
#include "media/rtcp.h"

#include <assert.h>

#include "media/rtcp_wire.h"
#include "pool/bytes.h"

void rtcp_cursor_init(struct rtcp_cursor *c, const uint8_t *bytes, size_t len)
{
	c->at = bytes;
	c->end = bytes + len;
}

static enum rtcp_kind psfb_kind(const struct rtcp_member *m)
{
	switch (m->count) {
	case FMT_PLI:
		return RTCP_PLI;
	case FMT_FIR:
		return RTCP_FIR;
	case FMT_AFB: /* application layer feedback; REMB names itself */
		if (m->body_bytes >= FEEDBACK_BYTES + REMB_FIXED_BYTES &&
		    be32_read(m->body + FEEDBACK_BYTES) == REMB_NAME)
			return RTCP_REMB;
		return RTCP_OTHER;
	default:
		return RTCP_OTHER;
	}
}

static enum rtcp_kind kind_of(const struct rtcp_member *m)
{
	switch (m->type) {
	case PT_SR:
		return RTCP_SR;
	case PT_RR:
		return RTCP_RR;
	case PT_SDES:
		return RTCP_SDES;
	case PT_BYE:
		return RTCP_BYE;
	case PT_APP:
		return RTCP_APP;
	case PT_RTPFB:
		if (m->count == FMT_NACK)
			return RTCP_NACK;
		return m->count == FMT_TRANSPORT_CC ? RTCP_TRANSPORT_CC : RTCP_OTHER;
	case PT_PSFB:
		return psfb_kind(m);
	case PT_XR:
		return RTCP_XR;
	default:
		return RTCP_OTHER;
	}
}

/* RFC 3550 section 6.4.1: the last octet counts the padding, itself included. "It will be a multiple of
 * four", but libwebrtc fills the last word of its transport-wide feedback with one to three. */
static bool strip_padding(struct rtcp_member *m)
{
	uint8_t count;

	if (m->body_bytes == 0)
		return false;
	count = m->body[m->body_bytes - 1];
	if (count == 0 || count > m->body_bytes)
		return false;
	m->body_bytes -= count;
	return true;
}

static bool read_member(const struct rtcp_cursor *c, struct rtcp_member *m)
{
	size_t left = (size_t)(c->end - c->at);

	if (left < RTCP_HEADER_BYTES || c->at[0] >> 6 != RTCP_VERSION)
		return false;
	m->count = c->at[0] & 0x1f;
	m->type = c->at[1];
	m->body = c->at + RTCP_HEADER_BYTES;
	m->body_bytes = (size_t)be16_read(c->at + 2) * 4;
	if (m->body_bytes > left - RTCP_HEADER_BYTES)
		return false;
	return true;
}

enum rtcp_next rtcp_cursor_next(struct rtcp_cursor *c, struct rtcp_member *out)
{
	struct rtcp_member m;
	const uint8_t *next;

	if (c->at == c->end)
		return RTCP_NEXT_END;
	if (!read_member(c, &m))
		goto malformed;
	next = m.body + m.body_bytes;
	if (c->at[0] & RTCP_FLAG_PADDING && !strip_padding(&m))
		goto malformed;
	m.kind = kind_of(&m);
	c->at = next;
	*out = m;
	return RTCP_NEXT_MEMBER;

malformed:
	c->at = c->end;
	return RTCP_NEXT_MALFORMED;
}

/* ---- Sender and receiver reports ---- */

static size_t before_reports(const struct rtcp_member *m)
{
	return m->kind == RTCP_SR ? SSRC_BYTES + SENDER_INFO_BYTES : SSRC_BYTES;
}

static bool reports_fit(const struct rtcp_member *m)
{
	return m->body_bytes >= before_reports(m) + (size_t)m->count * RTCP_REPORT_BYTES;
}

bool rtcp_parse_sr(const struct rtcp_member *m, uint32_t *ssrc, struct rtcp_sender_info *out)
{
	assert(m->kind == RTCP_SR);
	if (!reports_fit(m))
		return false;
	*ssrc = be32_read(m->body);
	out->ntp = be64_read(m->body + 4);
	out->rtp_timestamp = be32_read(m->body + 12);
	out->packets = be32_read(m->body + 16);
	out->bytes = be32_read(m->body + 20);
	return true;
}

bool rtcp_parse_rr(const struct rtcp_member *m, uint32_t *ssrc)
{
	assert(m->kind == RTCP_RR);
	if (!reports_fit(m))
		return false;
	*ssrc = be32_read(m->body);
	return true;
}

void rtcp_report_read(const struct rtcp_member *m, size_t i, struct rtcp_report *out)
{
	const uint8_t *p = m->body + before_reports(m) + i * RTCP_REPORT_BYTES;

	assert(i < m->count);
	out->ssrc = be32_read(p);
	out->fraction_lost = p[4];
	out->lost_pkts = signed24(be24_read(p + 5));
	out->highest_seq = be32_read(p + 8);
	out->jitter_ticks = be32_read(p + 12);
	out->last_sr = be32_read(p + 16);
	out->delay_q16_s = be32_read(p + 20);
}

/* ---- SDES and BYE ---- */

void rtcp_sdes_init(struct rtcp_sdes_cursor *c, const struct rtcp_member *m)
{
	assert(m->kind == RTCP_SDES);
	c->body = c->at = m->body;
	c->end = m->body + m->body_bytes;
	c->chunks_left = m->count;
	c->in_chunk = false;
	c->ssrc = 0;
}

/* Moves to the next item of any chunk. A chunk's list of items "MUST be terminated by one or more
 * null octets" up to a 32-bit boundary (RFC 3550 section 6.5), counted from the body's start. */
static bool find_item(struct rtcp_sdes_cursor *c)
{
	for (;;) {
		if (!c->in_chunk) {
			if (c->chunks_left == 0 || c->end - c->at < SSRC_BYTES)
				return false;
			c->chunks_left--;
			c->ssrc = be32_read(c->at);
			c->at += SSRC_BYTES;
			c->in_chunk = true;
		}
		if (c->at == c->end)
			return false;
		if (*c->at != 0)
			return true;
		c->at += 4 - (c->at - c->body) % 4;
		c->in_chunk = false;
	}
}

bool rtcp_sdes_next(struct rtcp_sdes_cursor *c, struct rtcp_sdes_item *out)
{
	if (!find_item(c) || c->end - c->at < SDES_ITEM_BYTES ||
	    c->end - c->at - SDES_ITEM_BYTES < c->at[1]) {
		c->at = c->end;
		c->chunks_left = 0;
		return false;
	}
	out->ssrc = c->ssrc;
	out->type = c->at[0];
	out->bytes = c->at[1];
	out->text = (const char *)c->at + SDES_ITEM_BYTES;
	c->at += SDES_ITEM_BYTES + out->bytes;
	return true;
}

bool rtcp_bye_ssrc(const struct rtcp_member *m, size_t i, uint32_t *ssrc)
{
	assert(m->kind == RTCP_BYE);
	if (i >= m->count || m->body_bytes < (i + 1) * SSRC_BYTES)
		return false;
	*ssrc = be32_read(m->body + i * SSRC_BYTES);
	return true;
}

/* ---- Feedback ---- */

bool rtcp_parse_feedback(const struct rtcp_member *m, struct rtcp_feedback *out)
{
	assert(m->type == PT_RTPFB || m->type == PT_PSFB);
	if (m->body_bytes < FEEDBACK_BYTES)
		return false;
	out->sender_ssrc = be32_read(m->body);
	out->media_ssrc = be32_read(m->body + 4);
	out->fci = m->body + FEEDBACK_BYTES;
	out->fci_bytes = m->body_bytes - FEEDBACK_BYTES;
	return true;
}

void rtcp_nack_init(struct rtcp_nack_cursor *c, const struct rtcp_feedback *fb)
{
	c->at = fb->fci;
	c->end = fb->fci + fb->fci_bytes / NACK_FCI_BYTES * NACK_FCI_BYTES;
	c->pid = 0;
	c->pending = 0;
}

bool rtcp_nack_next(struct rtcp_nack_cursor *c, uint16_t *seq)
{
	unsigned bit;

	if (c->pending == 0) {
		if (c->at == c->end)
			return false;
		c->pid = be16_read(c->at);
		/* Bit i of BLP stands for PID + i + 1; bit 0 of pending is the PID itself. */
		c->pending = (uint32_t)be16_read(c->at + 2) << 1 | 1;
		c->at += NACK_FCI_BYTES;
	}
	bit = (unsigned)__builtin_ctz(c->pending);
	c->pending &= c->pending - 1;
	*seq = (uint16_t)(c->pid + bit);
	return true;
}

bool rtcp_fir_entry(const struct rtcp_feedback *fb, size_t i, uint32_t *ssrc, uint8_t *command)
{
	if (i >= fb->fci_bytes / FIR_FCI_BYTES)
		return false;
	*ssrc = be32_read(fb->fci + i * FIR_FCI_BYTES);
	*command = fb->fci[i * FIR_FCI_BYTES + 4];
	return true;
}

bool rtcp_parse_remb(const struct rtcp_feedback *fb, struct rtcp_remb *out)
{
	unsigned exponent;
	uint64_t mantissa;

	if (fb->fci_bytes < REMB_FIXED_BYTES ||
	    fb->fci_bytes < REMB_FIXED_BYTES + (size_t)fb->fci[4] * SSRC_BYTES)
		return false;
	exponent = fb->fci[5] >> 2;
	mantissa = be24_read(fb->fci + 5) & 0x3ffff;
	out->bitrate_bps = mantissa > UINT64_MAX >> exponent ? UINT64_MAX : mantissa << exponent;
	out->ssrc_count = fb->fci[4];
	out->ssrcs = fb->fci + REMB_FIXED_BYTES;
	return true;
}

uint32_t rtcp_remb_ssrc(const struct rtcp_remb *remb, size_t i)
{
	assert(i < remb->ssrc_count);
	return be32_read(remb->ssrcs + i * SSRC_BYTES);
}

/* ---- Extended reports ---- */

bool rtcp_xr_init(struct rtcp_xr_cursor *c, const struct rtcp_member *m)
{
	assert(m->kind == RTCP_XR);
	if (m->body_bytes < SSRC_BYTES)
		return false;
	c->ssrc = be32_read(m->body);
	c->at = m->body + SSRC_BYTES;
	c->end = m->body + m->body_bytes;
	return true;
}

bool rtcp_xr_next(struct rtcp_xr_cursor *c, struct rtcp_xr_block *out)
{
	size_t left = (size_t)(c->end - c->at);
	size_t bytes;

	if (left < XR_BLOCK_BYTES)
		return false;
	bytes = (size_t)be16_read(c->at + 2) * 4;
	if (bytes > left - XR_BLOCK_BYTES) {
		c->at = c->end;
		return false;
	}
	out->type = c->at[0];
	out->data = c->at + XR_BLOCK_BYTES;
	out->bytes = bytes;
	c->at += XR_BLOCK_BYTES + bytes;
	return true;
}

bool rtcp_xr_rrtr(const struct rtcp_xr_block *b, uint64_t *ntp)
{
	if (b->type != RTCP_XR_RRTR || b->bytes != RRTR_BYTES)
		return false;
	*ntp = be64_read(b->data);
	return true;
}

bool rtcp_xr_dlrr(const struct rtcp_xr_block *b, size_t i, struct rtcp_dlrr *out)
{
	if (b->type != RTCP_XR_DLRR || i >= b->bytes / DLRR_BYTES)
		return false;
	out->ssrc = be32_read(b->data + i * DLRR_BYTES);
	out->last_rr = be32_read(b->data + i * DLRR_BYTES + 4);
	out->delay_q16_s = be32_read(b->data + i * DLRR_BYTES + 8);
	return true;
}
