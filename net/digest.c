#include "net/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

void digest_sha256(const void *bytes, size_t n, uint8_t out[DIGEST_SHA256_BYTES])
{
	if (EVP_Digest(bytes, n, out, NULL, EVP_sha256(), NULL) != 1)
		abort();
}

bool digest_is_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}
