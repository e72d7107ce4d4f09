/* server/viewer_layers.h - a viewer that has a choice: what it is to get of the video, and what it gets.
 *
 * Exists for viewers of streams with several encodings, and for those whom somebody chose a target
 * for; all others get encoding 0 whole, under a constant offset, and pay for nothing here. What is
 * wanted is followed by the passes (server/pass_layers.c) where packets allow it.
 *
 * Thread: the worker's.
 */
#ifndef SERVER_VIEWER_LAYERS_H
#define SERVER_VIEWER_LAYERS_H

#include "media/layers.h"
#include "media/numbering.h"
#include "server/viewer.h"

enum {
	VIEWER_TOP = LAYERS_TARGETS - 1, /* target: whatever the encoding has to offer */
	VIEWER_PAUSED = 1 << 8,          /* with a target: no video for now */
};

struct viewer_goal {
	uint8_t encoding, target;
	bool is_paused;
};

struct viewer_layers {
	bool is_chosen; /* else the best that is sent */
	struct viewer_goal wish;
	/* The wish, or what stands in for it while its encoding is silent. */
	struct viewer_goal goal;
	uint64_t goal_us; /* since when */
	bool has_goal;

	/* What it gets now. */
	uint8_t encoding, target;
	uint8_t first_encoding; /* it began with: to which the track's squeeze applies */
	bool is_paused;
	uint32_t complete; /* bit t: it has got everything that target t needs */
	bool has_seen;
	uint32_t seen_timestamp; /* of the newest packet, sent or not */
	bool has_ended;          /* the newest picture that was begun is sent to its end */
	uint32_t late_seen[STREAM_ENCODINGS];
	struct numbering numbering;
};

/**
 * From now on the viewer is to get this target of that encoding: at once where the codec allows, else
 * from a key frame on, which is asked for. An encoding that is silent is replaced by the nearest one
 * that is not, for as long as it is.
 *
 * @param encoding below STREAM_ENCODINGS
 * @param target   below LAYERS_TARGETS; with VIEWER_PAUSED: video stops behind the picture that is on
 *                 its way, and goes on with a key frame
 * @return 0, -ENOMEM, or -ENOENT: the viewer has no video
 */
int viewer_want(struct viewer *v, unsigned encoding, unsigned target);

/** From now on the viewer, which has layers, is to get the best that is sent. */
void viewer_want_best(struct viewer *v);

/** The viewer's stream turned out to have a choice. @return 0 or -ENOMEM */
int viewer_open_layers(struct viewer *v);

/** Tell control what the viewer gets now. */
void viewer_tell_layer(struct viewer *v);

/** Find the goal anew: before each visit of a viewer with layers. */
void viewer_aim(struct viewer *v);

/** Of the encoding aimed at nothing can be sent but from a key frame on. */
bool viewer_needs_keyframe(const struct viewer *v);

#endif
