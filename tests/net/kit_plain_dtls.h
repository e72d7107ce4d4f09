/* tests/net/kit_plain_dtls.h - a DTLS peer made of the library's public calls and memory BIOs alone:
 * an independent check of net/dtls. */
#ifndef TESTS_NET_KIT_PLAIN_DTLS_H
#define TESTS_NET_KIT_PLAIN_DTLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "net/dtls.h"

struct plain_dtls {
	SSL_CTX *context;
	SSL *ssl;
	EVP_PKEY *key;
	X509 *certificate;
	BIO *in, *out;
	struct dtls_fingerprint fingerprint; /* SHA-256 of its certificate */
	bool is_done, is_dead, is_closed;
};

/** `key`: "P-256" or "RSA". `ciphers`, `profiles`: NULL for a usual choice; "" of profiles: none. */
void plain_dtls_init(struct plain_dtls *p, enum dtls_role role, const char *key,
		     const char *ciphers, const char *profiles);
void plain_dtls_fini(struct plain_dtls *p);

/** Feed one datagram (NULL: just start or go on). */
void plain_dtls_input(struct plain_dtls *p, const uint8_t *bytes, size_t len);
/** Take one record off the output. @return its length, 0: none */
size_t plain_dtls_output(struct plain_dtls *p, uint8_t *out, size_t cap);
/** Keys by the exporter, from this peer's point of view. */
void plain_dtls_keys(const struct plain_dtls *p, struct seal_keys *tx, struct seal_keys *rx);

#endif
