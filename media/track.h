/* media/track.h - an encoding of a stream's track as one endless sequence, whoever publishes it.
 *
 * Gives each packet of the publisher its place: `index`, which never repeats, never goes back over
 * a restart and has holes only where the publisher's packets are really missing; and a timestamp
 * that continues over restarts. A track outlives its publishers: track_start() at each change of
 * source, and the next packet continues behind the last one.
 *
 * Padding-only packets carry nothing for a viewer. One that is ahead of everything numbered so far
 * is swallowed and later numbers close up; one that comes late has its number reserved already and
 * is forwarded as padding, so that no viewer asks for it in vain.
 *
 * Source:  RFC 3550 sections 5.1 and A.1; RTX RFC 4588; VP8 picture ids RFC 7741 section 4.2.
 * Sans-IO: time comes with each packet.
 * Thread:  the publisher's worker.
 * Memory:  one allocation, in track_create(); none after it.
 */
#ifndef MEDIA_TRACK_H
#define MEDIA_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/codec.h"
#include "media/rtp.h"
#include "pool/slab.h"

enum {
	TRACK_WINDOW_PKTS = 1024, /* reordering and repair reach this far back; a jump ahead by more
	                              * leaves no hole */
	TRACK_FIRST_INDEX = 1 << 16, /* of a new track: arithmetic just below it does not wrap */
	TRACK_DATAGRAM_BYTES = 1200, /* padding takes no viewer's datagram (tag apart) above this */
	TRACK_MAX_PAD_BYTES = 64,
};

struct track;

struct track_config {
	bool is_video;         /* audio is never padded */
	uint16_t pad_bytes;    /* video payloads are rounded up to a multiple of this; 0 = off,
	                       * at most TRACK_MAX_PAD_BYTES */
	uint16_t header_bytes; /* largest header a viewer's mapping writes, and 2 for RTX's OSN */
	uint32_t stream, stream_generation; /* copied into each packet */
	uint8_t track;                      /* likewise: the m-line ... */
	uint8_t encoding;                   /* ... and the encoding of it */
};

/* The packet as its readers saw it. */
struct track_input {
	const struct rtp_packet *rtp;   /* of slab->data; from RTX: after rtx_unwrap() */
	const struct codec_info *codec; /* of its payload; NULL where nobody looked */
	bool is_repaired;               /* came by retransmission */
	bool is_unwanted; /* nobody is to get it (FEC, unknown payload type): as padding-only */
};

enum track_verdict {
	TRACK_FORWARD,   /* numbered: index, timestamp, padding and flags are set */
	TRACK_SWALLOWED, /* padding-only, no number spent: put the slab */
	TRACK_DUPLICATE, /* had it already: put the slab */
	TRACK_TOO_OLD,   /* from before the window or the restart: put the slab */
	TRACK_VERDICTS,
};

struct track_stats {
	uint64_t verdicts[TRACK_VERDICTS];
	uint64_t late;               /* forwarded behind a higher number: reordered or repaired */
	uint64_t late_padding;       /* of these, padding-only */
	uint64_t jumps;              /* changes of numbering within one source */
	uint64_t starts;             /* sources that sent at least one packet */
	uint64_t padding_sent_bytes; /* written by rounding up, once a packet */
};

/** @return 0, -ENOMEM, or -EINVAL (pad_bytes or header_bytes out of range) */
int track_create(struct track **out, const struct track_config *config);

/** NULL is allowed. */
void track_destroy(struct track *t);

/**
 * A new source: the next packet belongs to another publisher, session or SSRC. Its numbers and
 * timestamps continue behind the last packet of the source before; what is still on its way from
 * that one must not be given to this track any more.
 *
 * @param clock_hz RTP clock of the source's codec, above 0
 */
void track_start(struct track *t, uint32_t clock_hz);

/**
 * Number one packet of the current source, which packet_describe() has filled in. A payload of no
 * bytes is padding-only.
 *
 * Sets index, timestamp, stream, track, encoding, PACKET_VIDEO, _REPAIRED, _RESTART and the padding (the
 * publisher's own is dropped); slab->len becomes payload_offset + payload_bytes. VP8 and VP9 picture
 * ids, TL0PICIDX and the dependency descriptor's frame number are patched in place where the source
 * before ended with others.
 *
 * @return what to do with the slab; the reference stays the caller's in every case
 */
enum track_verdict track_on_packet(struct track *t, struct slab *s, const struct track_input *in);

/** Highest index given so far; TRACK_FIRST_INDEX - 1 before the first packet. */
uint64_t track_newest_index(const struct track *t);

/** What to add (modulo 2^32) to the current source's RTP timestamps; see media/clock.h. Changes only
 *  with a packet that begins a numbering (the next one forwarded has PACKET_RESTART): then take the
 *  track's clock anchor anew. */
uint32_t track_timestamp_offset(const struct track *t);

void track_stats(const struct track *t, struct track_stats *out);

#endif
