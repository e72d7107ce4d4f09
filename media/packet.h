/* media/packet.h - what the publisher's worker found out about a packet, kept in its slab.
 *
 * The slab holds the packet as it arrived, decrypted; headers are never moved. What is forwarded
 * is payload_bytes from payload_offset, behind a header that each viewer's mapping writes anew
 * from the values here (media/mapping.h).
 *
 * Thread:  the publisher's worker fills it (packet_describe(), then track_on_packet()); from the
 *          moment the slab is handed to another worker, meta and data are read-only everywhere.
 * Memory:  lives in slab->meta, 64 bytes, zeroed by slab_get().
 */
#ifndef MEDIA_PACKET_H
#define MEDIA_PACKET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "media/codec.h"
#include "media/ext.h"
#include "media/rtp.h"
#include "pool/slab.h"

enum packet_flag {
	PACKET_VIDEO = 1 << 0,
	PACKET_KEYFRAME = 1 << 1, /* begins a frame that needs no other: a viewer may start here */
	PACKET_FRAME_START = 1 << 2, /* first packet of a frame, as far as the codec tells */
	PACKET_MARKER = 1 << 3, /* RTP marker: last packet of a video frame, start of a talkspurt */
	PACKET_PADDED = 1 << 4, /* payload_bytes ends with RTP padding: the P bit has to be set */
	PACKET_PADDING_ONLY =
	    1 << 5,               /* nothing but padding, forwarded so that no number is missing */
	PACKET_REPAIRED = 1 << 6, /* came by retransmission */
	PACKET_RESTART = 1 << 7,  /* first packet of a publisher, or behind a jump of its numbers */
	PACKET_DISCARDABLE = 1 << 8, /* no other packet depends on it */
	/* Which values of header extensions are present: */
	PACKET_AUDIO_LEVEL = 1 << 9,
	PACKET_ORIENTATION = 1 << 10,
	PACKET_PLAYOUT_DELAY = 1 << 11,
	PACKET_CAPTURE_TIME = 1 << 12,
	PACKET_DESCRIPTOR = 1 << 13, /* the AV1 dependency descriptor */
	PACKET_FRAME_END = 1 << 14,  /* video: last packet of a frame, in SVC of a layer frame */
	PACKET_ENTRY = 1 << 15, /* every viewer of the encoding has all that this frame refers to */
};

struct media_packet {
	uint64_t index;             /* number in the track's encoding, continuous over publishers */
	uint64_t arrival_us;        /* the worker's monotonic clock */
	uint32_t timestamp;         /* RTP ticks, continuous over publishers */
	uint32_t stream;            /* slot of the stream in its worker's table */
	uint32_t stream_generation; /* so that a reused slot is noticed */
	/* Decode targets within the encoding, numbered as media/layers.h says. What has no layers has
	 * all bits alike: needed by everyone, to be begun at key frames. */
	uint32_t targets;  /* bit t: a viewer of target t needs this packet */
	uint32_t switches; /* bit t: target t may be begun with this frame: packet_may_enter() */
	uint32_t ends;     /* bit t: the last packet of its picture that a viewer of target t needs:
	                    * gets the marker */
	uint16_t flags;    /* enum packet_flag */
	uint16_t payload_offset; /* into slab->data */
	uint16_t payload_bytes;  /* padding included */
	uint8_t padding_bytes;   /* of payload_bytes, the last ones; 0 unless PACKET_PADDED */
	uint8_t track;           /* m-line of the stream */
	uint8_t encoding;        /* of the track: 0 is the lowest; each has indices of its own */
	uint8_t codec;           /* enum media_codec */
	uint8_t spatial_id;      /* 0 where the codec or descriptor tells none */
	uint8_t temporal_id;
	uint8_t audio_level;      /* RFC 6464: V bit and -dBov, as on the wire */
	uint8_t orientation;      /* 3GPP TS 26.114 CVO octet, as on the wire */
	uint8_t descriptor_bytes; /* dependency descriptor, at descriptor_offset */
	uint8_t capture_bytes;    /* abs-capture-time, 8 or 16, at capture_offset */
	uint8_t playout_delay[3]; /* min and max, 12 bits each, as on the wire */
	bool is_opaque; /* encrypted end to end: nobody may read, or write into, the payload */
	uint16_t descriptor_offset; /* into slab->data */
	uint16_t capture_offset;    /* into slab->data */
};
_Static_assert(sizeof(struct media_packet) <= SLAB_META_BYTES, "a packet's facts fit its slab");

static inline struct media_packet *packet_of(struct slab *s)
{
	return (struct media_packet *)(void *)s->meta;
}

static inline const struct media_packet *packet_of_const(const struct slab *s)
{
	return (const struct media_packet *)(const void *)s->meta;
}

static inline const uint8_t *packet_payload(const struct slab *s)
{
	return s->data + packet_of_const(s)->payload_offset;
}

static inline bool packet_has(const struct media_packet *p, enum packet_flag flag)
{
	return (p->flags & flag) != 0;
}

/**
 * Whether a viewer that got all of target `from` so far may get target `to` of the same encoding
 * from this packet, the first of a frame, on. To a target that `from` contains (media/layers.h) it
 * may go between any two frames.
 */
static inline bool packet_may_enter(const struct media_packet *p, unsigned from, unsigned to)
{
	return p->switches >> to & 1 && (p->targets >> from & 1 || packet_has(p, PACKET_ENTRY));
}

/**
 * Fill in what the readers found: arrival, payload (the publisher's padding left out), codec, layers,
 * extension values, flags of the frame; encoding 0, and targets as for a stream without layers.
 * Numbering is track_on_packet()'s.
 *
 * @param rtp  of s->data; from RTX: after rtx_unwrap()
 * @param ext  of the same packet; NULL: none
 * @param info of the payload; NULL: nobody looked
 */
void packet_describe(struct slab *s, const struct rtp_packet *rtp, const struct ext_values *ext,
		     enum media_codec codec, const struct codec_info *info, uint64_t arrival_us);

#endif
