/* tests/sim/kit_link.h - one direction of a network link in memory, on the test's clock.
 *
 * The model is that of tests/tools/impair; its settings may change over time.
 */
#ifndef TESTS_SIM_KIT_LINK_H
#define TESTS_SIM_KIT_LINK_H

#include "tests/tools/impair_model.h"

struct sim_link;

/* From from_us on the link is like this. */
struct sim_step {
	uint64_t from_us;
	struct impair_profile profile;
};

struct sim_link_stats {
	uint64_t sent, lost, overflowed, delivered; /* datagrams; copies are delivered as well */
	uint64_t delivered_bytes;
};

struct sim_datagram {
	uint64_t sent_us;
	size_t len;
	uint8_t bytes[2048];
};

/** @param steps ascending, the first from 0; borrowed for the link's life. Never NULL: no memory ends
 *               the test. */
struct sim_link *sim_link_create(const struct sim_step *steps, size_t n, uint64_t seed);
void sim_link_destroy(struct sim_link *l);

/** @param len at most sizeof(((struct sim_datagram *)0)->bytes) */
enum impair_verdict sim_link_send(struct sim_link *l, uint64_t now_us, const void *bytes,
				  size_t len);

/** The next datagram that has arrived. @return false: none */
bool sim_link_receive(struct sim_link *l, uint64_t now_us, struct sim_datagram *out);

/** When the next one arrives; UINT64_MAX when none is on its way. */
uint64_t sim_link_deadline_us(const struct sim_link *l);

/** The settings that hold at now_us. */
const struct impair_profile *sim_link_profile(const struct sim_link *l, uint64_t now_us);

const struct sim_link_stats *sim_link_stats(const struct sim_link *l);

#endif
