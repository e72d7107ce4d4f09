/* tests/loadgen/kit_wire.h - a publisher, and libsrtp2 as the peer that opens what it sends.
 *
 * Every datagram is opened when it is sent and held against what an RTP receiver expects: numbers
 * without a gap, timestamps, MID, sizes. Frames are put together by a reader of RFC 7741 of its own.
 */
#ifndef TESTS_LOADGEN_KIT_WIRE_H
#define TESTS_LOADGEN_KIT_WIRE_H

#include <srtp2/srtp.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/publisher.h"
#include "media/rtp.h"
#include "tests/loadgen/kit_media.h"

enum {
	KIT_AUDIO_SSRC = 0x11111111,
	KIT_VIDEO_SSRC = 0x22222222,
	KIT_RTX_SSRC = 0x33333333,
	KIT_OPUS_PT = 111,
	KIT_VP8_PT = 96,
	KIT_RTX_PT = 97,
	KIT_MID_ID = 4,
	KIT_START_US = 1000000,
	KIT_UNIX_MINUS_US = 1700000000, /* the Unix time of clock 0, in us: 28 minutes of 1970 */
	KIT_FRAME_ROOM_BYTES = 65536,
	KIT_KEPT = 1024, /* video packets by sequence number */
};

struct kit_sealed {
	uint8_t bytes[PUBLISHER_DATAGRAM_BYTES]; /* as sent */
	uint8_t plain[PUBLISHER_DATAGRAM_BYTES];
	size_t len, plain_len;
};

struct kit_wire {
	struct source *source;
	struct seal_engine *engine;
	struct transport transport;
	struct negotiated negotiated;
	struct publisher *publisher;
	srtp_t opener;
	enum publisher_pacing pacing;
	bool decodes; /* video and audio are decoded */
	bool is_deaf; /* the socket takes nothing */
	uint64_t now_us, due_us;

	struct kit_vp8 *vp8;
	struct kit_opus *opus;
	uint64_t video_pkts, audio_pkts, frames, repeats, reports;
	uint64_t payload_bytes[2]; /* by enum media_kind */
	uint16_t next_seq[2], next_rtx_seq;
	uint32_t timestamp[2], first_timestamp[2];
	uint16_t picture_id;
	uint8_t tl0picidx;
	uint8_t temporal_id; /* of the latest frame */
	bool is_sync;
	uint64_t frame_us;            /* when the frame's first packet came */
	uint64_t last_bytes, last_us; /* of video at one instant */
	uint8_t frame[KIT_FRAME_ROOM_BYTES];
	size_t frame_bytes;
	bool is_in_frame;
	int number;        /* drawn in the latest frame; -1 before */
	bool was_keyframe; /* the latest frame */
	uint64_t keyframes;
	struct kit_sealed kept[KIT_KEPT];
	struct kit_sealed repeat; /* the latest */
	uint8_t report[2][256];   /* the latest by enum media_kind */
	size_t report_bytes[2];
};

/** Another loop of this many temporal layers; before kit_wire_start(). */
void kit_wire_set_layers(struct kit_wire *w, uint32_t temporal_layers);
/** Zeroed but for the small loop, the negotiation (both kinds, RTX, MID) and pacing by frame. */
void kit_wire_init(struct kit_wire *w, enum seal_profile profile);
/** Create and start the publisher, after what the test changed. */
void kit_wire_start(struct kit_wire *w, uint64_t seed);
void kit_wire_fini(struct kit_wire *w);

/** Let time pass from due to due, up to and including until_us. */
void kit_wire_run(struct kit_wire *w, uint64_t until_us);
/** Until this many video frames have been completed in all. */
void kit_wire_run_frames(struct kit_wire *w, uint64_t frames);

#endif
