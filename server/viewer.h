/* server/viewer.h - the watching side of a session: cursors, numbers, RTCP.
 *
 * Thread: the worker's.
 */
#ifndef SERVER_VIEWER_H
#define SERVER_VIEWER_H

#include "media/reports.h"
#include "media/resend.h"
#include "media/round_trip.h"
#include "media/squeeze.h"
#include "pool/lines.h"
#include "server/branch.h"

enum { VIEWER_NO_KEYFRAME = 0xff };

struct adapt;
struct viewer_layers;

/* What a pass reads comes first, in two cache lines: pass.c asks for them ahead. */
struct viewer_track {
	_Alignas(LINES_BYTES) struct templates *templates; /* NULL: it has no such track */
	uint64_t cursor;                                   /* newest index sent */
	uint32_t late_seen;
	uint32_t ssrc, rtx_ssrc;
	bool is_started;         /* else it waits for a packet to start with */
	bool is_undecided;       /* may yet begin in the past ... */
	bool is_asked;           /* ... though a key frame was asked for meanwhile */
	struct squeeze squeeze;  /* of what is from before it joined */
	uint64_t paced_to;       /* a large frame leaves in parts until the cursor is here ... */
	uint64_t paced_until_us; /* ... and the next one not before */
	struct reports_tx sent;
	struct resend resend;             /* its numbers first, then what was sent again */
	uint64_t wait_from;               /* waiting: a start must have a higher index */
	uint16_t first_number, first_rtx; /* drawn when it joined, used when it starts */
};

struct viewer {
	struct session *session;
	struct branch *branch;
	uint32_t at; /* in the branch's list */
	struct resend_share share;
	uint64_t bytes, packets;      /* sent, repeats included */
	struct viewer_layers *layers; /* NULL: no choice, it gets encoding 0 of the video whole */
	struct adapt *adapt;          /* NULL: nothing to choose from */
	struct viewer_track tracks[STREAM_TRACKS];
	struct choice_wish wish;
	uint64_t joined_us;
	bool asks;         /* it has sent feedback: it asks for what it needs */
	uint8_t waits_for; /* an encoding's key frame, or VIEWER_NO_KEYFRAME */
	uint64_t report_due_us;
	uint32_t reports; /* sent so far */
	uint32_t rtt_us;  /* the shortest of late */
	struct reference_times reference_times;
};

/** @return 0 or -ENOMEM */
int viewer_create(struct viewer **out, struct session *session);
void viewer_destroy(struct viewer *v);

/** It can show nothing, or not what it is to get, before a key frame of that encoding: one is asked
 *  for, and again while it waits. VIEWER_NO_KEYFRAME: it waits for none. */
void viewer_wait_for(struct viewer *v, uint8_t encoding);

/** The viewer wishes for another layer. */
void viewer_set_wish(struct viewer *v, const struct choice_wish *wish);

/** What is next: arms the session. */
void viewer_arm(struct viewer *v);

/** Memory it holds. */
size_t viewer_bytes(const struct viewer *v);

void viewer_on_rtcp(struct viewer *v, const uint8_t *bytes, size_t len);
/** Its time has come: reports, its link; arms the session again. */
void viewer_on_due(struct viewer *v);
/** It is reached over another path. A browser that misses more than it was sent again waits 3 s
 *  before it asks for a key frame. */
void viewer_on_moved(struct viewer *v);

/** A sender report for each track that has a clock, and the name that binds them together: one
 *  compound packet, or of plain RTP one for each leg. */
void viewer_send_reports(struct viewer *v);

/** Say goodbye to the peer: BYE for all sources. */
void viewer_say_bye(struct viewer *v);

#endif
