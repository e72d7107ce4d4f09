/* net/digest.h - SHA-256, and comparing secrets without telling by time where they differ.
 *
 * Source: FIPS 180-4.
 * Thread: any.
 */
#ifndef NET_DIGEST_H
#define NET_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_SHA256_BYTES = 32 };

/** Ends the process when the library cannot hash (out of memory). */
void digest_sha256(const void *bytes, size_t n, uint8_t out[DIGEST_SHA256_BYTES]);

/** Takes the same time wherever the n bytes of `a` and `b` differ. */
bool digest_is_equal(const void *a, const void *b, size_t n);

#endif
