/* net/dtls_closer.h - reading and writing alerts of a finished handshake without its SSL object.
 *
 * Source:  RFC 5246 section 6.3 (key block), RFC 5288 (GCM records), RFC 7905 (ChaCha20-Poly1305),
 *          RFC 6347 section 4.1.2.1 (epoch and number in place of the sequence number).
 * Sans-IO: bytes in, bytes out. Thread: one at a time. Memory: the 96 bytes of the struct.
 */
#ifndef NET_DTLS_CLOSER_H
#define NET_DTLS_CLOSER_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "net/dtls_record.h"

enum dtls_aead { DTLS_AEAD_NONE, DTLS_AES_128_GCM, DTLS_AES_256_GCM, DTLS_CHACHA20_POLY1305 };

enum { DTLS_KEY_BYTES = 32, DTLS_IV_BYTES = 12 };

struct dtls_closer {
	uint8_t key_tx[DTLS_KEY_BYTES];
	uint8_t key_rx[DTLS_KEY_BYTES];
	uint8_t iv_tx[DTLS_IV_BYTES]; /* GCM: 4 implicit bytes, then the next explicit nonce */
	uint8_t iv_rx[DTLS_IV_BYTES]; /* GCM: 4 implicit bytes */
	uint64_t number;              /* of the next record we send in epoch 1 */
};
_Static_assert(sizeof(struct dtls_closer) < 100, "held for each session of a whole relay");

/* The last record in epoch 1 that the SSL object sent: ours must continue after it. */
struct dtls_last_sent {
	uint64_t number;
	uint8_t explicit_nonce[8];
};

/**
 * Derive from a finished handshake.
 *
 * @param last   record number and nonce to continue from
 * @return the record protection agreed on, or DTLS_AEAD_NONE: not one of ours, or the library
 *         failed; then nothing is derived
 */
enum dtls_aead dtls_closer_init(struct dtls_closer *c, const SSL *ssl,
				const struct dtls_last_sent *last);

/** One close_notify record. @return its length, or 0 when `cap` is too small */
size_t dtls_closer_seal(struct dtls_closer *c, enum dtls_aead aead, uint8_t *out, size_t cap);

/** Authenticate an alert record. @return 0, or -EBADMSG: not an alert of this peer */
int dtls_closer_open(const struct dtls_closer *c, enum dtls_aead aead, const struct dtls_record *r,
		     uint8_t alert[2]);

#endif
