/* server/letter.h - what threads tell each other outside the way of media.
 *
 * Thread: written by the sender, then the receiver's alone.
 * Memory: one allocation a letter, freed by the receiver; references in it pass with it.
 */
#ifndef SERVER_LETTER_H
#define SERVER_LETTER_H

#include "media/choice.h"
#include "media/clock.h"
#include "net/addr.h"
#include "net/mailbox.h"
#include "net/tcp.h"
#include "server/feed.h"
#include "server/plan.h"

enum letter_kind {
	/* To a worker. */
	LETTER_CLOSE,    /* to, reason: end a session */
	LETTER_RESTART,  /* to, local, remote: new ICE credentials */
	LETTER_FEED,     /* to, feed: this publisher feeds the stream from now on */
	LETTER_KEYFRAME, /* to, reason, ask: viewers elsewhere want a key frame of an encoding */
	LETTER_ANCHORS, /* stream (a reference), anchors: the publisher's clock for sender reports */
	LETTER_LAYERS, /* stream (a reference), layers: what its publisher sends; also to control */
	LETTER_FORGET, /* to, addr: forward this address no more */
	LETTER_WISH,   /* to, wish: another layer for this viewer */
	LETTER_CONNECTION, /* to, connection: its first packet named this session */
	LETTER_SERVE,      /* plan (a reference): claim it; of plain RTP */
	LETTER_STOP,       /* end all sessions for `reason`, then the thread */
	/* To control. */
	LETTER_CONNECTED, /* plan (a reference): a publisher may feed its stream */
	LETTER_CODEC,     /* plan (a reference): its publisher sends another codec than before */
	LETTER_ENDED,     /* plan (a reference), feed (of a publisher, or NULL) */
	LETTER_STOPPED,   /* worker: its thread is about to end */
};

struct letter {
	struct mail mail; /* first: a mail is a letter */
	enum letter_kind kind;
	uint32_t reason;
	struct session_ref to;
	struct plan *plan;
	struct stream *stream;
	struct feed *feed;
	union {
		struct {
			struct ice_credentials local, remote;
		} restart;
		struct {
			uint32_t folds;
			uint8_t encoding;
		} ask;
		struct choice_wish wish;
		struct layer_table layers;
		struct clock_anchor anchors[STREAM_TRACKS];
		struct net_addr addr;
		struct tcp_connection *connection;
		unsigned worker;
	};
};

#endif
