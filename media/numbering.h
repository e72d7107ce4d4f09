/* media/numbering.h - under which numbers one viewer gets the packets of a track that has a choice.
 *
 * A viewer that drops layers, or changes from one encoding to another, needs sequence numbers, picture
 * ids and timestamps of its own that go on as if nothing had been left out. What it was sent is kept as
 * runs: in a run index and number rise in step, so that a number leads back to (encoding, index), and
 * every repeat of it is built from the same shift: the same bytes. A packet that is left out ends a run
 * and the numbers close up. A packet that is missing keeps its number, since nobody knows yet whether
 * the viewer wants it: where it turns up late and is not wanted, padding goes in its place.
 *
 * Picture ids (RFC 7741, RFC 9628) and frame numbers of the dependency descriptor continue behind the
 * newest sent at each change of encoding. Within an encoding they stay as they are, with gaps, but for
 * VP8: there receivers take a gap for a lost picture, so it is closed.
 *
 * Sans-IO: packets in, values out; time comes with each packet.
 * Thread:  one worker.
 * Memory:  caller's storage, about 8 KB, for a viewer with a choice only (else: media/resend.h). Runs
 *          beyond NUMBERING_RUNS are forgotten, oldest first.
 */
#ifndef MEDIA_NUMBERING_H
#define MEDIA_NUMBERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/packet.h"

enum {
	NUMBERING_RUNS = 256,     /* power of two; a run a picture at most */
	NUMBERING_MAX_GAP = 1024, /* more missing packets in a row than that get no numbers */
	NUMBERING_LEAD_BYTES = 8, /* enough for the descriptor up to the last id in it */
	NUMBERING_ALL = 0xff,     /* target of a viewer that gets every packet of the encoding */
};

/* What to add to a packet's own values, modulo their sizes. */
struct numbering_shift {
	uint32_t timestamp;
	uint16_t picture;
	uint16_t frame; /* number of the dependency descriptor */
	uint8_t tl0;
};

struct numbering_run {
	uint64_t number, index; /* of its first packet */
	struct numbering_shift shift;
	uint8_t encoding, target;
};

/* Where a packet stands in what the viewer gets. */
struct numbering_place {
	uint64_t number; /* roll-over count and sequence number, for SRTP */
	uint64_t index;
	struct numbering_shift shift;
	uint8_t encoding;
	uint8_t target; /* what the viewer was to get then; whether it wants a late packet */
};

struct numbering {
	uint64_t next_number;
	uint64_t cursor;    /* newest index considered, of the current encoding */
	uint32_t run_count; /* made so far; the last NUMBERING_RUNS of them are kept */
	bool is_open;       /* the newest run goes on: cursor is part of it */
	bool is_switching;  /* the next packet begins anew, whatever came before */
	uint8_t encoding, target;
	struct numbering_shift shift; /* of the next run */

	/* The newest packet sent, as sent, or left out, as it would have been. */
	bool has_sent, has_picture, has_tl0, has_frame;
	uint8_t tl0;
	uint16_t picture, frame;
	uint32_t timestamp;
	uint64_t arrival_us;
	/* The newest packet left out, as it came. */
	bool has_dropped;
	uint16_t dropped_picture;
	uint8_t dropped_spatial_id;
	uint32_t dropped_timestamp;

	struct numbering_run runs[NUMBERING_RUNS];
};

/** Nothing was sent yet; numbering_switch() comes next. */
void numbering_init(struct numbering *n, uint64_t first_number);

/**
 * Take over from a constant offset: everything of `encoding` from first_index to newest_index was sent,
 * as it is.
 *
 * @param first_number of first_index
 * @param newest       the packet of newest_index or one shortly before it; NULL: none is known
 */
void numbering_adopt(struct numbering *n, uint8_t encoding, uint64_t first_index,
		     uint64_t first_number, uint64_t newest_index, const struct slab *newest);

/** The next packet taken is the first of another encoding, or of this one after a pause. */
void numbering_switch(struct numbering *n, uint8_t encoding, uint8_t target);

/** Everything missing above the newest and below `index` keeps its number: before a change of encoding
 *  that cannot wait for it, so that the viewer knows of it. Nothing before the first packet. */
void numbering_keep(struct numbering *n, uint64_t index);

/** From `index` (the next to be taken or dropped) on the viewer gets another target. */
void numbering_retarget(struct numbering *n, uint8_t target, uint64_t index);

/**
 * The viewer gets this packet, of the current encoding; those missing before it keep numbers. Once
 * more for the newest packet: the same place.
 */
void numbering_take(struct numbering *n, const struct slab *s, struct numbering_place *out);

/** The viewer does not get this packet, which lies above all before. */
void numbering_drop(struct numbering *n, const struct slab *s);

/** The place of a packet that came late. @return false: no number was kept for it */
bool numbering_find_index(const struct numbering *n, uint8_t encoding, uint64_t index,
			  struct numbering_place *out);

/** What lies behind a number that the viewer names. @return false: unknown, or forgotten */
bool numbering_find_number(const struct numbering *n, uint16_t seq, struct numbering_place *out);

/**
 * The payload's first bytes with ids as this viewer gets them.
 *
 * @return how many of the payload's bytes `lead` replaces; 0: the payload goes as it is
 */
size_t numbering_lead(const struct slab *s, const struct numbering_shift *shift,
		      uint8_t lead[NUMBERING_LEAD_BYTES]);

#endif
