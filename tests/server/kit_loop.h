/* tests/server/kit_loop.h - event loops without threads, sockets or a clock of their own.
 *
 * Defines net/loop.h and net/random.h anew, so that the linker leaves the real ones out: time is
 * what the test says, randomness is seeded, and a loop runs only inside kit_loop_round(). Sockets
 * come from kit_wire.h.
 */
#ifndef TESTS_SERVER_KIT_LOOP_H
#define TESTS_SERVER_KIT_LOOP_H

#include "net/loop.h"

/** What clock_now_us() answers. */
void kit_clock_set(uint64_t now_us);
uint64_t kit_clock(void);
/** Let each reading of the clock advance it: passes come to the end of their slices. */
void kit_clock_step(uint64_t us_a_reading);

void kit_random_seed(uint64_t seed);

/** Whatever is due, ready or woken, once each, then the turn. @return false: nothing was */
bool kit_loop_round(struct loop *l);

/** When the loop's next timer is due; UINT64_MAX: none is armed. */
uint64_t kit_loop_due_us(const struct loop *l);

/** Keep submitted work from being run until this is called with false. */
void kit_loop_hold_work(struct loop *l, bool is_held);
/** Work that waits. */
unsigned kit_loop_works(const struct loop *l);

/** Rounds in which loop_wake() had been called, and the calls. */
unsigned kit_loop_wakes(const struct loop *l);
unsigned kit_loop_wake_calls(const struct loop *l);

bool kit_loop_is_stopped(const struct loop *l);

#endif
