/* server/pass.h - the egress pass: for each viewer of a branch, each packet behind its cursor.
 *
 * Thread: the worker's.
 */
#ifndef SERVER_PASS_H
#define SERVER_PASS_H

#include "media/numbering.h"
#include "server/viewer.h"

struct pass_batch;

/** What one worker's passes share: sealing jobs and their headers. @return 0 or -ENOMEM */
int pass_batch_create(struct pass_batch **out);
void pass_batch_destroy(struct pass_batch *b);

enum pass_status {
	PASS_DONE,    /* every viewer was visited */
	PASS_SLICED,  /* the slice is over: call again */
	PASS_BLOCKED, /* a socket is full: call again when it is writable */
};

/** Run the branch's pass, from where it stopped, until `until_us`. */
enum pass_status pass_run(struct branch *b, uint64_t until_us);

/** Send one packet again: as RTX where negotiated, else the same bytes once more.
 *  @param place of viewers with layers, of the video; else NULL
 *  @return false when there was no room for it */
bool pass_resend(struct viewer *v, unsigned track, struct slab *slab,
		 const struct numbering_place *place);

/** Repeat a packet as RTX for the sake of its bytes. @return false when there was no room for it, or no
 *  way to the viewer */
bool pass_probe(struct viewer *v, struct slab *slab, const struct numbering_place *place);

/** Padding as RTX, likewise: where there is nothing to repeat. */
bool pass_pad(struct viewer *v);

/** Seal what the two above gathered: before anything may be evicted from a history, and before
 *  the arena is sent. */
void pass_finish(struct worker *w);

#endif
