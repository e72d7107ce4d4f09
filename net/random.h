/* net/random.h - unpredictable numbers from the system, for the shell code.
 *
 * Sans-IO: protocol code takes its random numbers as arguments instead, so that it can be
 *          replayed; only shells and session set-up call this.
 * Thread:  any.
 */
#ifndef NET_RANDOM_H
#define NET_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/** Fill `out` with n bytes fit for keys and identifiers. Ends the process when the system has no
 *  randomness: nothing safe can be done without it. */
void random_bytes(void *out, size_t n);

uint64_t random_u64(void);

#endif
