/* server/branch.h - one worker's copy of a stream: its last packets, and the viewers served here.
 *
 * Thread: the worker's.
 */
#ifndef SERVER_BRANCH_H
#define SERVER_BRANCH_H

#include "media/clock.h"
#include "media/history.h"
#include "media/layer_table.h"
#include "net/trigger.h"
#include "server/session.h"
#include "server/stream.h"

struct viewer;

enum { BRANCH_TEMPLATE_PKTS = 64, BRANCH_TEMPLATE_BYTES = 72 };

/* Headers as one mapping writes them, kept for the packets of the running passes. A packet's
 * header never changes, so an entry is right whenever its key is. */
struct header_template {
	uint64_t key; /* index and encoding; 0: empty */
	uint8_t bytes;
	uint8_t header[BRANCH_TEMPLATE_BYTES];
};

struct templates {
	struct templates *next;
	struct mapping mapping;
	uint32_t viewers; /* with this mapping */
	uint8_t track;
	struct header_template entries[BRANCH_TEMPLATE_PKTS];
};

/* One lane: the audio, or an encoding of the video. */
struct branch_track {
	struct history *history; /* NULL: of an encoding that has sent nothing yet */
	uint64_t release;        /* newest index that passes may send */
	uint32_t held_timestamp;
	bool is_holding; /* part of a frame waits for its rest */
	uint64_t held_from_us, hold_due_us;

	/* Video. */
	uint64_t newest_us; /* when its newest packet came here; 0: none did */
	uint32_t newest_timestamp;
	uint32_t interval_us; /* between its frames, smoothed */
	uint32_t waiting;     /* viewers that wait for a key frame of it */
	uint64_t keyframe_due_us;
	struct trigger keyframe; /* requests of this worker's viewers, folded before they travel */
};

struct branch {
	struct worker *worker;
	struct stream *stream; /* a reference */
	struct branch_track tracks[STREAM_LANES];
	unsigned lanes;    /* of these, those that may have something to send */
	uint64_t video_us; /* when the newest packet of any encoding came here */
	struct clock_anchor anchors[STREAM_TRACKS];
	struct layer_table *table; /* what there is to choose from; NULL: nothing */
	struct viewer **viewers;
	uint32_t viewer_count, viewer_cap;
	struct templates *templates;

	/* The pass. */
	bool is_ready; /* on the worker's list */
	bool is_passing, wants_pass;
	uint32_t pass_start, pass_at; /* first viewer of the pass; how many are done */
	uint64_t pass_to[STREAM_LANES];
	bool is_pacing; /* a viewer got only a part: again a little later */
	struct branch *next_ready;

	struct ticker_item timer; /* end of a hold, next paced part, repeated key frame request */
	uint64_t pace_due_us;
};

/** The branch of a stream on this worker, made if there is none. @return NULL without memory */
struct branch *branch_get(struct worker *w, struct stream *stream);

/** Takes the viewer in or out; the last one out ends the branch. @return 0 or -ENOMEM */
int branch_join(struct branch *b, struct viewer *v);
void branch_leave(struct branch *b, struct viewer *v);

/** A packet of the stream; takes over one reference of the slab. */
void branch_on_packet(struct branch *b, struct slab *slab);

/** Let go of packets that are too old at now_us. */
void branch_expire(struct branch *b, uint64_t now_us);

void branch_set_anchors(struct branch *b, const struct clock_anchor anchors[STREAM_TRACKS]);

/** There is something to send: a pass at the end of this turn. */
void branch_want_pass(struct branch *b);

/** A viewer of this branch wants a key frame of that encoding. */
void branch_want_keyframe(struct branch *b, unsigned encoding, uint32_t reason);
/** What of that is due. */
void branch_run_keyframes(struct branch *b);

/** What the publisher sends now; copied. Without memory, and where it has no option, there is none. */
void branch_set_table(struct branch *b, const struct layer_table *table);

/** Do packets of that encoding come? It is silent when others go on without it. */
bool branch_is_live(const struct branch *b, unsigned encoding);
/** The nearest one that is live, lower ones first; `encoding` itself when none is. */
unsigned branch_live_encoding(const struct branch *b, unsigned encoding);
/** The best one that is live; 0 when none is. */
unsigned branch_best_encoding(const struct branch *b);

/** The video's lane of an encoding. */
static inline struct branch_track *branch_video(struct branch *b, unsigned encoding)
{
	return &b->tracks[stream_lane(MEDIA_VIDEO, encoding)];
}

/** The templates of a mapping, shared by all its viewers. @return NULL without memory */
struct templates *branch_templates(struct branch *b, const struct mapping *mapping, uint8_t track);
void branch_release_templates(struct branch *b, struct templates *t);

/** What is next: arms the branch's timer. */
void branch_arm(struct branch *b);

/** Memory it holds, slabs apart. */
size_t branch_bytes(const struct branch *b);

#endif
