/* loadgen/publisher_inner.h - what the parts of the publisher share; included by publisher*.c only.
 *
 * publisher.c decides what is sent when, publisher_packet.c makes packets of it and seals them.
 */
#ifndef LOADGEN_PUBLISHER_INNER_H
#define LOADGEN_PUBLISHER_INNER_H

#include "loadgen/publisher.h"
#include "media/reports.h"
#include "media/resend.h"

enum {
	/* RFC 7741 section 4.2 with X, I, L and T: 15-bit PictureID, TL0PICIDX, TID and Y. */
	VP8_DESCRIPTOR_BYTES = 6,
	EXT_ROOM_BYTES = 40, /* MID of SDP_MAX_MID_BYTES in the two-byte form */
	HEADER_ROOM_BYTES = RTP_HEADER_BYTES + EXT_ROOM_BYTES,
	LEAD_ROOM_BYTES = 8, /* OSN and descriptor */
	BATCH_PKTS = 16,
};

/* What a packet was: enough to make it again, byte for byte. */
struct sent {
	uint64_t index;
	uint64_t unit;
	uint32_t timestamp;
	uint32_t at;    /* place of the unit in the loop */
	uint16_t chunk; /* of the unit's chunks */
	uint16_t chunks;
	uint8_t base_frame; /* of video: TL0PICIDX */
};

struct track {
	bool is_used;
	bool has_rtx;
	enum media_kind kind;
	uint8_t payload_type, rtx_payload_type;
	uint8_t ext_bytes;
	uint8_t ext[EXT_ROOM_BYTES]; /* the same in every packet */
	uint32_t ssrc, rtx_ssrc;
	uint32_t clock_hz;
	uint32_t units_per_s;
	uint32_t first_timestamp;
	uint16_t chunk_bytes; /* most payload of one packet */
	uint64_t slot;        /* of the next unit: slot / units_per_s seconds after the start */
	uint64_t units;       /* begun */
	uint64_t next_index;
	uint64_t report_due_us;
	struct resend resend;
	struct reports_tx reports;
	struct sent kept[PUBLISHER_KEPT_PKTS]; /* by index */
};

struct publisher {
	struct publisher_config config;
	char cname[PUBLISHER_CNAME_BYTES + 1];
	bool is_started;
	uint64_t start_us;
	struct track tracks[NEGOTIATED_KINDS]; /* by enum media_kind */
	struct resend_share share;
	uint16_t first_picture_id;
	uint8_t tl0picidx; /* of the last frame of the base layer */

	/* The video frame being sent: chunk == chunks when there is none. */
	struct sent frame;
	uint32_t next_frame; /* in the loop */
	bool wants_keyframe;

	/* Browser pacing */
	int64_t budget_bytes;
	uint64_t tick_us; /* when the budget grows next */

	bool has_fir;
	uint8_t fir_command;
	struct publisher_stats stats;
};

/* Packets on their way through the seal. Lives on the stack of one call. */
struct batch {
	struct publisher *p;
	size_t n;
	struct seal_job jobs[BATCH_PKTS];
	struct publisher_datagram datagrams[BATCH_PKTS];
	uint8_t headers[BATCH_PKTS][HEADER_ROOM_BYTES];
	uint8_t leads[BATCH_PKTS][LEAD_ROOM_BYTES];
	uint8_t out[BATCH_PKTS][PUBLISHER_DATAGRAM_BYTES];
};

/** Packets that a unit of len bytes takes. */
uint32_t packet_chunks(const struct track *t, uint32_t len);

/** The extension block of every packet, and the room it leaves for payload. */
void packet_init(struct track *t, const struct negotiated_media *media);

void batch_init(struct batch *b, struct publisher *p);
/** Add a packet for the first time. @return bytes of its datagram */
size_t batch_add(struct batch *b, struct track *t, const struct sent *what);
/** Add it once more, by RTX where negotiated. */
void batch_repeat(struct batch *b, struct track *t, const struct sent *what);
/** Bytes of the datagram that batch_repeat() makes. */
size_t batch_repeat_bytes(const struct publisher *p, const struct track *t,
			  const struct sent *what);
/** Seal and send what was added. */
void batch_flush(struct batch *b);

/** Seal and send an RTCP packet. @param cap bytes there are at `bytes` */
void packet_send_rtcp(struct publisher *p, uint8_t *bytes, size_t len, size_t cap);

#endif
