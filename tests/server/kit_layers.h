/* tests/server/kit_layers.h - a publisher of several encodings and layers, and a decoder that tells
 * whether what a viewer got can be decoded.
 *
 * The publisher sends a picture in each encoding every KIT_PICTURE_US, in temporal layers 0 2 1 2 (or
 * 0 only) and as many spatial ones, loses what it is told to lose, answers NACKs by RTX and PLIs by key
 * frames. Each packet carries a number under which the kit keeps what it is. The decoder sees only
 * what reached the viewer; from the kept facts it knows what each picture refers to.
 */
#ifndef TESTS_SERVER_KIT_LAYERS_H
#define TESTS_SERVER_KIT_LAYERS_H

#include "server/viewer_layers.h"
#include "tests/server/kit_plane.h"

enum {
	KIT_ENCODINGS = 4,
	KIT_PICTURE_US = 33333,
	KIT_PICTURE_TICKS = 3000,
	KIT_FACTS = 1 << 17, /* packets of one publisher */
	KIT_LOST = 1 << 14,
};

struct kit_layers_config {
	enum media_codec codec; /* VP8, VP9, H264 */
	unsigned encodings;     /* 1: no simulcast is offered */
	unsigned spatial, temporal;
	/* Of the lowest encoding, each higher one has twice as many; 0: 100. */
	unsigned payload_bytes;
	bool by_ssrc;     /* an SSRC group, and no rids */
	bool by_both;     /* rids, and an SSRC group in another order */
	bool is_reversed; /* the offer names the smallest first */
	unsigned loss_percent;
	unsigned worker;
};

/* What a packet is. */
struct kit_fact {
	uint64_t picture;   /* of the publisher: the same instant in all encodings */
	uint64_t order;     /* among the pictures of its encoding, from 1 */
	uint64_t reference; /* the order of the picture that it needs; 0: none */
	uint64_t index;     /* its sequence number, extended */
	uint32_t timestamp;
	uint16_t picture_id;
	uint8_t encoding, spatial_id, temporal_id, tl0;
	uint8_t part, parts; /* of the layer frame */
	bool is_key;
	bool is_synced; /* refers to the lowest temporal layer only */
	bool is_last;   /* of the picture */
};

struct kit_encoding {
	uint32_t ssrc, rtx_ssrc, timestamp_base;
	uint64_t next_index, next_rtx;
	uint64_t order;     /* pictures sent */
	uint64_t since_key; /* likewise */
	uint16_t picture_id;
	uint8_t tl0;
	bool is_silent, wants_key;
	unsigned plis, keyframes;
};

struct kit_layers {
	struct kit_layers_config config;
	struct kit_peer *peer;
	struct kit_encoding encodings[KIT_ENCODINGS];
	uint64_t picture;
	uint64_t seed;
	size_t nacks_seen;
	unsigned plis_seen;
	uint32_t serial; /* of the publisher: the high bits of its packets' numbers */
	uint32_t fact_count;
	struct kit_fact *facts;
};

struct kit_layers *kit_layers_join(struct kit_plane *p, const char *stream,
				   const struct kit_layers_config *config, uint64_t seed);
/** Gone without a word. */
void kit_layers_drop(struct kit_layers *l);

/** One picture of each encoding, what was asked for again, and its time. */
void kit_layers_picture(struct kit_layers *l);
void kit_layers_pictures(struct kit_layers *l, unsigned count);

/** A sender report of each encoding, all at one instant. */
void kit_layers_report(struct kit_layers *l);

/** What the packet of that number is. NULL: no publisher that is alive sent it */
const struct kit_fact *kit_layers_fact(uint32_t number);

/** The viewer behind a peer, as its worker knows it. */
struct viewer *kit_viewer_of(struct kit_plane *p, const struct kit_peer *peer);

uint32_t kit_dice(uint64_t *seed, uint32_t sides);

/* --- the decoder -------------------------------------------------------------------------- */

enum { KIT_SEEN = 1 << 14, KIT_DECODED = 64 };

struct kit_seen {
	struct kit_packet packet;
	uint64_t asked_us; /* last NACK for it */
	bool is_here;
};

struct kit_decoder {
	struct kit_peer *viewer;
	bool may_skip_pictures; /* picture ids may have gaps: of layers lost before the relay */
	size_t taken;           /* of the viewer's packets */
	bool has_first;
	uint64_t next, newest; /* indices: next to decode, newest that came */
	struct kit_seen *seen; /* by index */

	/* The picture that is being put together, and the one before. */
	bool is_open, has_picture;
	const struct kit_fact *last; /* packet */
	uint32_t timestamp;
	uint16_t picture_id;
	uint8_t tl0;
	/* Pictures decoded since the key frame, by spatial layer: their order. */
	uint64_t decoded[4][KIT_DECODED];

	/* What was counted. */
	unsigned pictures, keyframes, switches, paddings;
	unsigned of_encoding[KIT_ENCODINGS], of_spatial[4], of_temporal[3];
	uint64_t newest_us;  /* when the newest picture was complete */
	uint64_t longest_us; /* between two of them */
	char error[256];     /* the first thing that could not be decoded; "" so far */
};

struct kit_decoder *kit_decoder_create(struct kit_peer *viewer);
void kit_decoder_destroy(struct kit_decoder *d);

/** Take what came, decode what is complete, ask again for what is missing. */
void kit_decoder_run(struct kit_decoder *d);
/** Packets that came, or should have, and are not decoded. */
uint64_t kit_decoder_missing(const struct kit_decoder *d);

#endif
