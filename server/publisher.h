/* server/publisher.h - the publishing side of a session: what arrives goes to the branches.
 *
 * Thread: the worker's.
 */
#ifndef SERVER_PUBLISHER_H
#define SERVER_PUBLISHER_H

#include "server/feed.h"
#include "server/session.h"

enum publisher_keyframe_reason {
	PUBLISHER_KEYFRAME_VIEWER = 1 << 0, /* PLI or FIR of a viewer */
	PUBLISHER_KEYFRAME_JOIN = 1 << 1,
	PUBLISHER_KEYFRAME_START = 1 << 2,  /* the feed is new */
	PUBLISHER_KEYFRAME_LOSS = 1 << 3,   /* a gap that repair gave up */
	PUBLISHER_KEYFRAME_SWITCH = 1 << 4, /* a viewer goes to another layer */
	PUBLISHER_KEYFRAME_MOVE = 1 << 5,   /* an address changed: nobody knows what was lost */
};

/** @return 0 or -ENOMEM */
int publisher_create(struct publisher **out, struct session *session);
/** @return the feed it held, now the caller's; NULL when it held none */
struct feed *publisher_destroy(struct publisher *p);

/** It is reached over another path. What was lost meanwhile may be more than repair can bring, and would be
 *  seconds late: viewers' browsers take such packets for a slower clock and hold back what follows. A new
 *  key frame replaces it. */
void publisher_on_moved(struct publisher *p);

/** From now on this publisher feeds the stream; takes over `feed`. */
void publisher_take_feed(struct publisher *p, struct feed *feed);

/** It has the feed: packets go on from here. */
bool publisher_is_fed(const struct publisher *p);

/** Memory it holds, the feed apart. */
size_t publisher_bytes(const struct publisher *p);

/** One decrypted RTP packet; takes over the slab. */
void publisher_on_rtp(struct publisher *p, struct slab *slab);
void publisher_on_rtcp(struct publisher *p, const uint8_t *bytes, size_t len);

/** Viewers want a key frame of an encoding: `folds` requests of one reason. */
void publisher_want_keyframe(struct publisher *p, unsigned encoding, uint32_t reasons,
			     uint32_t folds);

/** Let go of packets that are too old at now_us. */
void publisher_expire(struct publisher *p, uint64_t now_us);

/** Its time has come; arms the session again. */
void publisher_on_due(struct publisher *p);

#endif
