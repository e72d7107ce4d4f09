/* server/strangers.h - how much an address nobody vouches for may make us do.
 *
 * Only what failed is charged: look-ups of unknown ufrags and integrity checks that did not hold.
 * A fixed table keyed by address (an IPv6 /64 is one): colliding addresses share a budget.
 *
 * Sans-IO: time is an argument. Thread: one worker. Memory: fixed.
 */
#ifndef SERVER_STRANGERS_H
#define SERVER_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/addr.h"

struct strangers;

/** @param per_s failures an address gets back a second @param burst most it may save up, both at
 *  least 1 @return 0 or -ENOMEM */
int strangers_create(struct strangers **out, uint32_t per_s, uint32_t burst, uint64_t seed);
void strangers_destroy(struct strangers *s);

/** May this address try at all? */
bool strangers_may_try(struct strangers *s, const struct net_addr *addr, uint64_t now_us);
/** It failed. */
void strangers_charge(struct strangers *s, const struct net_addr *addr, uint64_t now_us);

#endif
