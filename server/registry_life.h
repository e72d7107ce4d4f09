/* server/registry_life.h - making and ending the registry; main's side of it.
 *
 * Thread: control.
 */
#ifndef SERVER_REGISTRY_LIFE_H
#define SERVER_REGISTRY_LIFE_H

#include "server/candidates.h"
#include "server/registry.h"
#include "server/worker.h"

/** @param shared filled but for the control mailbox and the team; outlives the registry
 *  @return 0 or a negative errno */
int registry_create(struct registry **out, struct loop *loop, struct worker_shared *shared,
		    const struct candidates *candidates);

/** Have every worker end its sessions for `reason` and stop; on_stopped runs on the loop once all
 *  have. Threads are then to be joined. */
void registry_stop(struct registry *r, uint32_t reason, void (*on_stopped)(void *arg), void *arg);

/** Sessions that are planned or alive. */
uint32_t registry_sessions_open(const struct registry *r);

/** After the workers were joined. NULL is allowed. */
void registry_destroy(struct registry *r);

#endif
