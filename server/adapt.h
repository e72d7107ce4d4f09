/* server/adapt.h - a viewer's link: what it carries, and which layer of the video goes over it.
 *
 * Exists for viewers of streams with something to choose from; for all others nothing of this runs.
 * Each packet of the video gets a transport-wide number or its time of departure, as far as the viewer
 * agreed to and gets repeats as RTX (a plain repeat has to be the same bytes, so it can carry neither).
 * What the viewer answers makes the estimate; that paces the video, decides on layers, and is probed
 * with repeats where a larger layer would need more than was ever sent.
 *
 * Thread: the worker's.
 */
#ifndef SERVER_ADAPT_H
#define SERVER_ADAPT_H

#include "media/rtcp.h"
#include "server/viewer.h"

struct adapt;

/** What a visit needs of it is asked of memory; a visit or two ahead. */
void adapt_prefetch(const struct adapt *a);

/** The viewer's stream has a table of layers. @return 0 or -ENOMEM */
int adapt_open(struct viewer *v);
/** NULL is allowed. */
void adapt_destroy(struct adapt *a);
size_t adapt_bytes(void);

/** Of a viewer with v->adapt, at the start of a visit in which so many packets wait for it. */
void adapt_on_visit(struct viewer *v, uint64_t backlog_pkts);
/** May the next packet of the video leave in this visit? If not, the branch's pass comes again. */
bool adapt_may_send(struct viewer *v);
/** A packet leaves: counts, and is stamped. @param header as the track's mapping wrote it
 *  @param bytes of the datagram */
void adapt_on_send(struct viewer *v, const struct viewer_track *t, uint8_t *header, size_t bytes);

/** Feedback of any kind that says how packets fared: transport-wide, or REMB. */
void adapt_on_feedback(struct viewer *v, const struct rtcp_member *m);
/** A receiver report on the video. */
void adapt_on_report(struct viewer *v, const struct rtcp_report *r);

/** What the viewer asked for changed. */
void adapt_on_wish(struct viewer *v);

/** When adapt_on_due() is to be called. */
uint64_t adapt_due_us(const struct adapt *a);
void adapt_on_due(struct viewer *v);

#endif
