/* loadgen/emitter.h - one publishing client: a peer that sends the generated media.
 *
 * Thread: the loop's.
 * Memory: about 30 KB each.
 */
#ifndef LOADGEN_EMITTER_H
#define LOADGEN_EMITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "loadgen/latency.h"
#include "loadgen/peer.h"
#include "loadgen/publisher.h"

struct emitter_config {
	uint32_t number; /* of the peer */
	const char *url;
	const char *token;
	uint64_t give_up_us;
	const struct source *source; /* outlives the emitter */
	enum publisher_pacing pacing;
	struct latency *latency[NEGOTIATED_KINDS]; /* told what was sent; NULL: not wanted */
};

struct emitter;

/** @return as peer_create() */
int emitter_create(struct emitter **out, struct peer_ground *g,
		   const struct emitter_config *config);
void emitter_destroy(struct emitter *e); /* NULL is allowed */
void emitter_start(struct emitter *e);

/** When its media began; 0: not yet. */
uint64_t emitter_began_us(const struct emitter *e);
struct peer *emitter_peer(const struct emitter *e);

#endif
