/* loadgen/verify.h - an independent check of what a viewer receives: libsrtp2 itself opens it.
 *
 * The relay's own SRTP code has no part in this, only the keys of the handshake.
 *
 * Thread:  one for all of them; no other part of the program may start libsrtp2.
 * Memory:  about 20 KB each; libsrtp2 allocates as it likes.
 */
#ifndef LOADGEN_VERIFY_H
#define LOADGEN_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "net/srtp.h"

struct verify;

enum verify_verdict { VERIFY_OK, VERIFY_REPEATED, VERIFY_BAD };

/** @param keys of what the peer sends. @return 0, -ENOMEM or -EINVAL (profile unknown) */
int verify_create(struct verify **out, const struct seal_keys *keys);
void verify_destroy(struct verify *v);

/** Decrypt one SRTP packet in place. @param len in: sealed; out, with VERIFY_OK: plain */
enum verify_verdict verify_open(struct verify *v, uint8_t *bytes, size_t *len);

#endif
