/* tests/net/kit_wall_clock.h - the wall clock that the DTLS library reads, under the test's control.
 *
 * The test program's own gettimeofday() stands before libc's for every library it loads. It tells
 * real time until wall_clock_set_us() was called.
 */
#ifndef TESTS_NET_KIT_WALL_CLOCK_H
#define TESTS_NET_KIT_WALL_CLOCK_H

#include <stdint.h>

/** 0: real time again. */
void wall_clock_set_us(uint64_t now_us);

#endif
