/* media/rtcp.h - RTCP, compound and reduced-size: walked with bounds, and built.
 *
 * Source:  RFC 3550 section 6, RFC 4585 (NACK, PLI), RFC 5104 (FIR), RFC 5506 (reduced size),
 *          RFC 3611 (XR RRTR, DLRR), draft-alvestrand-rmcat-remb-03,
 *          draft-holmer-rmcat-transport-wide-cc-extensions-01.
 * Sans-IO: bytes and values in, values and bytes out. Nothing calls back.
 * Thread:  any; cursors and writers belong to their caller.
 * Memory:  none. Cursors and spans point into the caller's bytes and live as long as these.
 *
 * Reading: rtcp_cursor_next() gives members; each parser below reads one member and never beyond
 * its own length. A parser that says false found a member that contradicts itself: drop it.
 */
#ifndef MEDIA_RTCP_H
#define MEDIA_RTCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RTCP_HEADER_BYTES = 4,
	RTCP_REPORT_BYTES = 24,
	RTCP_MAX_REPORTS = 31, /* of one SR or RR: 5 bits */
	RTCP_CNAME_MAX_BYTES = 255,
	RTCP_SDES_CNAME = 1, /* SDES item type */
	RTCP_XR_RRTR = 4,    /* XR block types */
	RTCP_XR_DLRR = 5,
};

enum rtcp_kind {
	RTCP_SR,
	RTCP_RR,
	RTCP_SDES,
	RTCP_BYE,
	RTCP_APP,
	RTCP_NACK,
	RTCP_TRANSPORT_CC,
	RTCP_PLI,
	RTCP_FIR,
	RTCP_REMB,
	RTCP_XR,
	RTCP_OTHER, /* well-formed, meaning unknown here: skip */
	RTCP_KINDS,
};

struct rtcp_member {
	enum rtcp_kind kind;
	uint8_t type;        /* PT on the wire */
	uint8_t count;       /* RC, SC or FMT: 5 bits */
	const uint8_t *body; /* after the 4-byte header */
	size_t body_bytes;   /* padding taken off */
};

struct rtcp_cursor {
	const uint8_t *at, *end;
};

enum rtcp_next {
	RTCP_NEXT_MEMBER,
	RTCP_NEXT_END,
	RTCP_NEXT_MALFORMED, /* version, length or padding wrong: nothing after it can be found */
};

void rtcp_cursor_init(struct rtcp_cursor *c, const uint8_t *bytes, size_t len);

/** After RTCP_NEXT_MALFORMED the cursor is at its end. */
enum rtcp_next rtcp_cursor_next(struct rtcp_cursor *c, struct rtcp_member *out);

/* ---- Sender and receiver reports ---- */

struct rtcp_sender_info {
	uint64_t ntp; /* Q32.32 s since 1900 */
	uint32_t rtp_timestamp;
	uint32_t packets;
	uint32_t bytes; /* payload octets, modulo 2^32 */
};

struct rtcp_report {
	uint32_t ssrc;         /* the stream reported on */
	uint8_t fraction_lost; /* of 256 since the last report */
	int32_t lost_pkts;     /* 24 bits signed, cumulative */
	uint32_t highest_seq;  /* extended */
	uint32_t jitter_ticks;
	uint32_t last_sr;     /* middle 32 bits of that SR's NTP; 0 = none yet */
	uint32_t delay_q16_s; /* since that SR, unit 1/65536 s */
};

/** @return false: body cut off, or more reports counted than there are */
bool rtcp_parse_sr(const struct rtcp_member *m, uint32_t *ssrc, struct rtcp_sender_info *out);
bool rtcp_parse_rr(const struct rtcp_member *m, uint32_t *ssrc);

/** Report i of an SR or RR that its parser accepted. @param i below m->count */
void rtcp_report_read(const struct rtcp_member *m, size_t i, struct rtcp_report *out);

/* ---- SDES and BYE ---- */

struct rtcp_sdes_item {
	uint32_t ssrc;
	uint8_t type;     /* RTCP_SDES_CNAME, ... */
	const char *text; /* not terminated, any bytes */
	uint8_t bytes;
};

struct rtcp_sdes_cursor {
	const uint8_t *body, *at, *end;
	uint32_t ssrc;
	uint8_t chunks_left;
	bool in_chunk;
};

void rtcp_sdes_init(struct rtcp_sdes_cursor *c, const struct rtcp_member *m);
/** @return false at the end and where an item or chunk is cut off */
bool rtcp_sdes_next(struct rtcp_sdes_cursor *c, struct rtcp_sdes_item *out);

/** Source i of a BYE. @return false when there is no such source */
bool rtcp_bye_ssrc(const struct rtcp_member *m, size_t i, uint32_t *ssrc);

/* ---- Feedback ---- */

struct rtcp_feedback {
	uint32_t sender_ssrc;
	uint32_t media_ssrc; /* 0 in FIR and REMB: their SSRCs are in the FCI */
	const uint8_t *fci;
	size_t fci_bytes;
};

/** For NACK, PLI, FIR, REMB, TRANSPORT_CC. @return false: shorter than two SSRCs */
bool rtcp_parse_feedback(const struct rtcp_member *m, struct rtcp_feedback *out);

struct rtcp_nack_cursor {
	const uint8_t *at, *end;
	uint16_t pid;
	uint32_t pending; /* bit i: pid + i not yet given */
};

void rtcp_nack_init(struct rtcp_nack_cursor *c, const struct rtcp_feedback *fb);
/** Each requested sequence number in wire order; at most 17 per 4 bytes of FCI. */
bool rtcp_nack_next(struct rtcp_nack_cursor *c, uint16_t *seq);

/** FIR entry i (the media SSRC lies here, not in the header). @return false past the last */
bool rtcp_fir_entry(const struct rtcp_feedback *fb, size_t i, uint32_t *ssrc, uint8_t *command);

struct rtcp_remb {
	uint64_t bitrate_bps; /* saturates at UINT64_MAX */
	uint8_t ssrc_count;
	const uint8_t *ssrcs; /* read by rtcp_remb_ssrc() */
};

/** @return false: fewer SSRCs than counted */
bool rtcp_parse_remb(const struct rtcp_feedback *fb, struct rtcp_remb *out);
/** @param i below ssrc_count */
uint32_t rtcp_remb_ssrc(const struct rtcp_remb *remb, size_t i);

struct rtcp_twcc_cursor {
	uint16_t base_seq;
	uint16_t statuses;      /* counted by the packet */
	int32_t reference_64ms; /* 24 bits signed, unit 64 ms */
	uint8_t feedback_count;
	/* private */
	const uint8_t *chunk, *delta, *end;
	uint16_t given;
	uint16_t run_left;
	uint16_t symbols; /* current chunk */
	int64_t arrival_us;
	bool is_cut; /* a delta was promised that is not there */
};

struct rtcp_twcc_status {
	uint16_t seq;
	bool is_received;
	int64_t arrival_us; /* reference time plus all deltas so far; received ones only */
};

/** @return false: fixed part cut off, no status, or chunks that do not cover the statuses */
bool rtcp_twcc_init(struct rtcp_twcc_cursor *c, const struct rtcp_feedback *fb);
/** Statuses in order, at most c->statuses; false at the end or where a delta is missing. */
bool rtcp_twcc_next(struct rtcp_twcc_cursor *c, struct rtcp_twcc_status *out);

/* ---- Extended reports ---- */

struct rtcp_xr_block {
	uint8_t type; /* RTCP_XR_RRTR, RTCP_XR_DLRR, ... */
	const uint8_t *data;
	size_t bytes;
};

struct rtcp_xr_cursor {
	const uint8_t *at, *end;
	uint32_t ssrc; /* who sent it */
};

/** @return false: no SSRC */
bool rtcp_xr_init(struct rtcp_xr_cursor *c, const struct rtcp_member *m);
bool rtcp_xr_next(struct rtcp_xr_cursor *c, struct rtcp_xr_block *out);

/** @return false: not an RRTR of 8 bytes */
bool rtcp_xr_rrtr(const struct rtcp_xr_block *b, uint64_t *ntp);

struct rtcp_dlrr {
	uint32_t ssrc;        /* the receiver whose RRTR is answered */
	uint32_t last_rr;     /* middle 32 bits of its NTP; 0 = none yet */
	uint32_t delay_q16_s; /* since then, unit 1/65536 s */
};

/** Sub-block i. @return false past the last or when not a DLRR */
bool rtcp_xr_dlrr(const struct rtcp_xr_block *b, size_t i, struct rtcp_dlrr *out);

/* ---- Building ----
 * Every rtcp_write_x() appends one whole member. It returns 0, or -ENOSPC with the writer
 * unchanged; the two that take what fits return how much that was.
 */

struct rtcp_writer {
	uint8_t *out;
	size_t cap_bytes;
	size_t len_bytes; /* written so far, multiple of 4 */
};

void rtcp_writer_init(struct rtcp_writer *w, uint8_t *out, size_t cap_bytes);

/** @param n at most RTCP_MAX_REPORTS */
int rtcp_write_sr(struct rtcp_writer *w, uint32_t ssrc, const struct rtcp_sender_info *info,
		  const struct rtcp_report *reports, size_t n);
int rtcp_write_rr(struct rtcp_writer *w, uint32_t ssrc, const struct rtcp_report *reports,
		  size_t n);
/** One chunk with a CNAME. @param len at most RTCP_CNAME_MAX_BYTES */
int rtcp_write_sdes_cname(struct rtcp_writer *w, uint32_t ssrc, const char *cname, size_t len);
/** @param n 1..31 */
int rtcp_write_bye(struct rtcp_writer *w, const uint32_t *ssrcs, size_t n);
int rtcp_write_pli(struct rtcp_writer *w, uint32_t sender_ssrc, uint32_t media_ssrc);
/** @param command the request's number, new for each new request to that SSRC */
int rtcp_write_fir(struct rtcp_writer *w, uint32_t sender_ssrc, uint32_t media_ssrc,
		   uint8_t command);
/** The bitrate is rounded down to what 18 bits and an exponent can say. @param n at most 255 */
int rtcp_write_remb(struct rtcp_writer *w, uint32_t sender_ssrc, uint64_t bitrate_bps,
		    const uint32_t *ssrcs, size_t n);

/**
 * @param seqs in ascending serial order, without repeats
 * @param n    at least 1
 * @return how many of them the member asks for (from the first on), or -ENOSPC: not even one fits
 */
int rtcp_write_nack(struct rtcp_writer *w, uint32_t sender_ssrc, uint32_t media_ssrc,
		    const uint16_t *seqs, size_t n);

enum {
	RTCP_TWCC_MISSING = -1,
	RTCP_TWCC_MAX_STATUSES = 4096, /* of one feedback we build */
};

struct rtcp_twcc_report {
	uint32_t sender_ssrc;
	uint32_t media_ssrc;
	uint16_t base_seq;
	uint8_t feedback_count;    /* one more for each feedback sent */
	const int64_t *arrival_us; /* of base_seq, base_seq + 1, ...; RTCP_TWCC_MISSING */
	size_t n;                  /* 1..65535 */
};

/**
 * Where packets are missing before the first received one, these are reported as missing.
 *
 * @return statuses covered, counted from base_seq: fewer than n where the space, the reach of a
 *         delta (8.19 s) or RTCP_TWCC_MAX_STATUSES ends, and the rest goes into a next feedback;
 *         or -ENOSPC: not one received packet fits; or -ENODATA: all (within the maximum) are
 *         missing
 */
int rtcp_write_twcc(struct rtcp_writer *w, const struct rtcp_twcc_report *report);

int rtcp_write_xr_rrtr(struct rtcp_writer *w, uint32_t ssrc, uint64_t ntp);
/** @param n at least 1 */
int rtcp_write_xr_dlrr(struct rtcp_writer *w, uint32_t ssrc, const struct rtcp_dlrr *items,
		       size_t n);

#endif
