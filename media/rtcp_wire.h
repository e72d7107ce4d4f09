/* media/rtcp_wire.h - numbers of the RTCP wire format, shared by the files of media/rtcp.h only.
 *
 * Source: RFC 3550 section 12.1, RFC 4585 section 6, RFC 5104 section 4.3.1, RFC 3611 section 4.
 */
#ifndef MEDIA_RTCP_WIRE_H
#define MEDIA_RTCP_WIRE_H

#include <stdint.h>

enum {
	RTCP_VERSION = 2,
	RTCP_FLAG_PADDING = 0x20,

	PT_SR = 200,
	PT_RR = 201,
	PT_SDES = 202,
	PT_BYE = 203,
	PT_APP = 204,
	PT_RTPFB = 205,
	PT_PSFB = 206,
	PT_XR = 207,

	FMT_NACK = 1,
	FMT_TRANSPORT_CC = 15,
	FMT_PLI = 1,
	FMT_FIR = 4,
	FMT_AFB = 15,

	SSRC_BYTES = 4,
	SENDER_INFO_BYTES = 20,
	FEEDBACK_BYTES = 8, /* two SSRCs */
	SDES_ITEM_BYTES = 2,
	NACK_FCI_BYTES = 4,
	FIR_FCI_BYTES = 8,
	REMB_NAME = 0x52454d42, /* "REMB" */
	REMB_FIXED_BYTES = 8,   /* name, count, exponent and mantissa */
	TWCC_FIXED_BYTES = 8,
	XR_BLOCK_BYTES = 4, /* its header */
	RRTR_BYTES = 8,
	DLRR_BYTES = 12,
};

/* Transport-cc symbols. Of two bits; the one-bit form has the first two only. */
enum {
	TWCC_NOT_RECEIVED = 0,
	TWCC_SMALL_DELTA = 1, /* 8 bits unsigned */
	TWCC_LARGE_DELTA = 2, /* 16 bits signed */
	TWCC_RESERVED = 3,

	TWCC_CHUNK_BYTES = 2,
	TWCC_RUN_MAX = 8191,
	TWCC_ONE_BIT_SYMBOLS = 14,
	TWCC_TWO_BIT_SYMBOLS = 7,
	TWCC_DELTA_US = 250,
	TWCC_REFERENCE_US = 64000,
};

static inline int32_t signed24(uint32_t v)
{
	return (int32_t)(v << 8) >> 8;
}

#endif
