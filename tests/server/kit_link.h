/* tests/server/kit_link.h - a bad link between the relay and a viewer, which answers as browsers do.
 *
 * The model is that of tests/tools/impair, on the plane's clock. The viewer behind it sends
 * transport-wide feedback (or REMB) about what came through, and receiver reports once a second.
 */
#ifndef TESTS_SERVER_KIT_LINK_H
#define TESTS_SERVER_KIT_LINK_H

#include "tests/server/kit_plane.h"
#include "tests/tools/impair_model.h"

enum { KIT_LINK_DELAYS = 1 << 16 };

struct kit_link;

/** Lay it before the peer, whose offer named its feedback; owned by the caller. */
struct kit_link *kit_link_create(struct kit_peer *viewer, const struct impair_profile *profile,
				 uint64_t seed);
/** The peer is reached directly again. */
void kit_link_destroy(struct kit_link *l);

void kit_link_set(struct kit_link *l, const struct impair_profile *profile);
/** No feedback any more: as a peer that agreed to it and does not keep its word. */
void kit_link_silence(struct kit_link *l);

/** How long packets queued since the last call, beyond the link's delay: what `percent` of them did not
 *  exceed. 0 without packets */
uint32_t kit_link_queued_us(struct kit_link *l, unsigned percent);
/** Datagrams that came through since then, in bit/s. */
uint64_t kit_link_rate_bps(struct kit_link *l);

#endif
