/* server/addrtable.h - from a peer's address to the session that it belongs to, here or elsewhere.
 *
 * Looked up for every datagram: open addressing, hashed with a secret so that nobody can choose
 * colliding addresses, at most half full.
 *
 * Thread: one worker.
 * Memory: grows by doubling when addresses are added; a look-up never allocates.
 */
#ifndef SERVER_ADDRTABLE_H
#define SERVER_ADDRTABLE_H

#include <stdint.h>

#include "net/addr.h"
#include "server/stream.h"

struct addrtable;

/** @param seed secret. @return 0 or -ENOMEM */
int addrtable_create(struct addrtable **out, uint64_t seed);
void addrtable_destroy(struct addrtable *t);

/** Whose address this is. @return false: nobody's */
bool addrtable_find(const struct addrtable *t, const struct net_addr *addr,
		    struct session_ref *owner);

/** Enter or overwrite. @return 0 or -ENOMEM (unchanged) */
int addrtable_set(struct addrtable *t, const struct net_addr *addr, struct session_ref owner);

/** Remove if it is (still) `owner`'s. */
void addrtable_remove(struct addrtable *t, const struct net_addr *addr, struct session_ref owner);

uint32_t addrtable_count(const struct addrtable *t);

#endif
