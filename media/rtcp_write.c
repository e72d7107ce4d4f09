/* media/rtcp_write.c - see rtcp.h for the contract. Building; transport-cc is in rtcp_twcc.c. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "media/rtcp.h"
#include "media/rtcp_wire.h"
#include "pool/bytes.h"

void rtcp_writer_init(struct rtcp_writer *w, uint8_t *out, size_t cap_bytes)
{
	w->out = out;
	w->cap_bytes = cap_bytes;
	w->len_bytes = 0;
}

/* Reserves a member of body_bytes (multiple of 4) and writes its header.
 * Returns its body, or NULL with the writer unchanged. */
static uint8_t *begin_member(struct rtcp_writer *w, uint8_t type, size_t count, size_t body_bytes)
{
	uint8_t *at = w->out + w->len_bytes;

	assert(count <= 0x1f && body_bytes % 4 == 0 && body_bytes / 4 <= UINT16_MAX);
	if (w->cap_bytes - w->len_bytes < RTCP_HEADER_BYTES + body_bytes)
		return NULL;
	at[0] = (uint8_t)(RTCP_VERSION << 6 | count);
	at[1] = type;
	be16_write(at + 2, (uint16_t)(body_bytes / 4));
	w->len_bytes += RTCP_HEADER_BYTES + body_bytes;
	return at + RTCP_HEADER_BYTES;
}

static uint8_t *begin_feedback(struct rtcp_writer *w, uint8_t type, uint8_t fmt,
			       const uint32_t ssrcs[2], size_t fci_bytes)
{
	uint8_t *body = begin_member(w, type, fmt, FEEDBACK_BYTES + fci_bytes);

	if (!body)
		return NULL;
	be32_write(body, ssrcs[0]);
	be32_write(body + 4, ssrcs[1]);
	return body + FEEDBACK_BYTES;
}

static void write_reports(uint8_t *p, const struct rtcp_report *reports, size_t n)
{
	for (size_t i = 0; i < n; i++, p += RTCP_REPORT_BYTES) {
		const struct rtcp_report *r = &reports[i];
		int32_t lost = r->lost_pkts;

		/* 24 bits: RFC 3550 A.3 clamps at 0x7fffff and 0x800000. */
		if (lost > 0x7fffff)
			lost = 0x7fffff;
		if (lost < -0x800000)
			lost = -0x800000;
		be32_write(p, r->ssrc);
		p[4] = r->fraction_lost;
		be24_write(p + 5, (uint32_t)lost & 0xffffff);
		be32_write(p + 8, r->highest_seq);
		be32_write(p + 12, r->jitter_ticks);
		be32_write(p + 16, r->last_sr);
		be32_write(p + 20, r->delay_q16_s);
	}
}

int rtcp_write_sr(struct rtcp_writer *w, uint32_t ssrc, const struct rtcp_sender_info *info,
		  const struct rtcp_report *reports, size_t n)
{
	uint8_t *p =
	    begin_member(w, PT_SR, n, SSRC_BYTES + SENDER_INFO_BYTES + n * RTCP_REPORT_BYTES);

	if (!p)
		return -ENOSPC;
	be32_write(p, ssrc);
	be64_write(p + 4, info->ntp);
	be32_write(p + 12, info->rtp_timestamp);
	be32_write(p + 16, info->packets);
	be32_write(p + 20, info->bytes);
	write_reports(p + SSRC_BYTES + SENDER_INFO_BYTES, reports, n);
	return 0;
}

int rtcp_write_rr(struct rtcp_writer *w, uint32_t ssrc, const struct rtcp_report *reports, size_t n)
{
	uint8_t *p = begin_member(w, PT_RR, n, SSRC_BYTES + n * RTCP_REPORT_BYTES);

	if (!p)
		return -ENOSPC;
	be32_write(p, ssrc);
	write_reports(p + SSRC_BYTES, reports, n);
	return 0;
}

int rtcp_write_sdes_cname(struct rtcp_writer *w, uint32_t ssrc, const char *cname, size_t len)
{
	/* One null octet at least ends the chunk. */
	size_t body_bytes = (SSRC_BYTES + SDES_ITEM_BYTES + len + 1 + 3) / 4 * 4;
	uint8_t *p;

	assert(len <= RTCP_CNAME_MAX_BYTES);
	p = begin_member(w, PT_SDES, 1, body_bytes);
	if (!p)
		return -ENOSPC;
	memset(p, 0, body_bytes);
	be32_write(p, ssrc);
	p[4] = RTCP_SDES_CNAME;
	p[5] = (uint8_t)len;
	memcpy(p + 6, cname, len);
	return 0;
}

int rtcp_write_bye(struct rtcp_writer *w, const uint32_t *ssrcs, size_t n)
{
	uint8_t *p = begin_member(w, PT_BYE, n, n * SSRC_BYTES);

	assert(n > 0);
	if (!p)
		return -ENOSPC;
	for (size_t i = 0; i < n; i++)
		be32_write(p + i * SSRC_BYTES, ssrcs[i]);
	return 0;
}

int rtcp_write_pli(struct rtcp_writer *w, uint32_t sender_ssrc, uint32_t media_ssrc)
{
	const uint32_t ssrcs[2] = { sender_ssrc, media_ssrc };

	return begin_feedback(w, PT_PSFB, FMT_PLI, ssrcs, 0) ? 0 : -ENOSPC;
}

int rtcp_write_fir(struct rtcp_writer *w, uint32_t sender_ssrc, uint32_t media_ssrc,
		   uint8_t command)
{
	/* RFC 5104 section 4.3.1.2: the header's "SSRC of media source" is not used, 0. */
	const uint32_t ssrcs[2] = { sender_ssrc, 0 };
	uint8_t *fci = begin_feedback(w, PT_PSFB, FMT_FIR, ssrcs, FIR_FCI_BYTES);

	if (!fci)
		return -ENOSPC;
	be32_write(fci, media_ssrc);
	be32_write(fci + 4, (uint32_t)command << 24);
	return 0;
}

int rtcp_write_remb(struct rtcp_writer *w, uint32_t sender_ssrc, uint64_t bitrate_bps,
		    const uint32_t *ssrcs, size_t n)
{
	const uint32_t header[2] = { sender_ssrc, 0 };
	uint32_t exponent = 0;
	uint8_t *fci;

	assert(n <= UINT8_MAX);
	fci = begin_feedback(w, PT_PSFB, FMT_AFB, header, REMB_FIXED_BYTES + n * SSRC_BYTES);
	if (!fci)
		return -ENOSPC;
	for (; bitrate_bps > 0x3ffff; bitrate_bps >>= 1)
		exponent++;
	be32_write(fci, REMB_NAME);
	fci[4] = (uint8_t)n;
	be24_write(fci + 5, exponent << 18 | (uint32_t)bitrate_bps);
	for (size_t i = 0; i < n; i++)
		be32_write(fci + REMB_FIXED_BYTES + i * SSRC_BYTES, ssrcs[i]);
	return 0;
}

int rtcp_write_nack(struct rtcp_writer *w, uint32_t sender_ssrc, uint32_t media_ssrc,
		    const uint16_t *seqs, size_t n)
{
	const uint32_t ssrcs[2] = { sender_ssrc, media_ssrc };
	uint8_t *header = begin_feedback(w, PT_RTPFB, FMT_NACK, ssrcs, NACK_FCI_BYTES);
	size_t taken = 0;

	assert(n > 0);
	if (!header)
		return -ENOSPC;
	w->len_bytes -= NACK_FCI_BYTES; /* each entry below takes its own */
	while (taken < n && w->cap_bytes - w->len_bytes >= NACK_FCI_BYTES) {
		uint16_t pid = seqs[taken++];
		uint32_t mask = 0;

		for (; taken < n && (uint16_t)(seqs[taken] - pid) <= 16; taken++)
			mask |= 1u << (uint16_t)(seqs[taken] - pid) >> 1;
		be16_write(w->out + w->len_bytes, pid);
		be16_write(w->out + w->len_bytes + 2, (uint16_t)mask);
		w->len_bytes += NACK_FCI_BYTES;
	}
	header -= RTCP_HEADER_BYTES + FEEDBACK_BYTES;
	be16_write(header + 2, (uint16_t)((size_t)(w->out + w->len_bytes - header) / 4 - 1));
	return (int)taken;
}

int rtcp_write_xr_rrtr(struct rtcp_writer *w, uint32_t ssrc, uint64_t ntp)
{
	uint8_t *p = begin_member(w, PT_XR, 0, SSRC_BYTES + XR_BLOCK_BYTES + RRTR_BYTES);

	if (!p)
		return -ENOSPC;
	be32_write(p, ssrc);
	be32_write(p + 4, (uint32_t)RTCP_XR_RRTR << 24 | RRTR_BYTES / 4);
	be64_write(p + 8, ntp);
	return 0;
}

int rtcp_write_xr_dlrr(struct rtcp_writer *w, uint32_t ssrc, const struct rtcp_dlrr *items,
		       size_t n)
{
	uint8_t *p = begin_member(w, PT_XR, 0, SSRC_BYTES + XR_BLOCK_BYTES + n * DLRR_BYTES);

	assert(n > 0);
	if (!p)
		return -ENOSPC;
	be32_write(p, ssrc);
	be32_write(p + 4, (uint32_t)RTCP_XR_DLRR << 24 | (uint32_t)(n * DLRR_BYTES / 4));
	p += SSRC_BYTES + XR_BLOCK_BYTES;
	for (size_t i = 0; i < n; i++, p += DLRR_BYTES) {
		be32_write(p, items[i].ssrc);
		be32_write(p + 4, items[i].last_rr);
		be32_write(p + 8, items[i].delay_q16_s);
	}
	return 0;
}
