/* server/directory.h - from an ICE ufrag of ours to the session that was planned under it.
 *
 * The one structure that control and workers share under locks: asked only for STUN requests
 * from addresses a worker does not know, so never on the way of media.
 *
 * Thread: any. 64 stripes by ufrag, each with its own mutex, held for one tree look-up.
 * Memory: an entry holds a reference on its plan.
 */
#ifndef SERVER_DIRECTORY_H
#define SERVER_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include "server/plan.h"

struct directory;

/** @return 0 or -ENOMEM */
int directory_create(struct directory **out);
/** Drops what is left in it. NULL is allowed. */
void directory_destroy(struct directory *d);

/** Enter `plan` under these credentials. @return 0, -ENOMEM, or -EEXIST (draw another ufrag) */
int directory_add(struct directory *d, const struct ice_credentials *local, struct plan *plan);

/** Remove the entry of a ufrag, if any. */
void directory_remove(struct directory *d, const char *ufrag);

/**
 * Find the plan behind a ufrag taken from a datagram.
 *
 * @param pwd receives the password that goes with it
 * @return the plan with a reference for the caller, or NULL
 */
struct plan *directory_find(struct directory *d, const char *ufrag, size_t ufrag_bytes,
			    char pwd[ICE_PWD_MAX_BYTES + 1]);

/** Entries now. */
uint32_t directory_count(const struct directory *d);

#endif
