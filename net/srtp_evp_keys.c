/* net/srtp_evp_keys.c - key derivation and HMAC-SHA1 over OpenSSL, used by two engines. */

/* The one-shot SHA-1 interface is deprecated, yet only it hands out the chaining value after the
 * key block. EVP_MAC would hold some 500 bytes per key and allocate once per packet. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <string.h>

#include "net/srtp_internal.h"

/* AES counter mode from (master salt xor label * 2^48) * 2^16. */
bool seal_prf(const uint8_t *key, size_t key_bytes, const uint8_t salt[SEAL_MAX_SALT_BYTES],
	      uint8_t label, uint8_t *out, size_t n)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t iv[16] = { 0 };
	int written;
	bool ok;

	memcpy(iv, salt, SEAL_MAX_SALT_BYTES);
	iv[7] ^= label;
	memset(out, 0, n);
	ok = ctx &&
	     EVP_EncryptInit_ex(ctx, key_bytes == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr(), NULL,
				key, iv) == 1 &&
	     EVP_EncryptUpdate(ctx, out, &written, out, (int)n) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return ok;
}

int seal_derive(struct seal_session *out, const struct seal_keys *keys, enum seal_purpose purpose)
{
	size_t key_bytes = seal_key_bytes(keys->profile);
	size_t salt_bytes = seal_salt_bytes(keys->profile);
	uint8_t salt[SEAL_MAX_SALT_BYTES] = { 0 }; /* RFC 7714 section 11 pads on the right */
	uint8_t label = (uint8_t)purpose;
	bool ok;

	memcpy(salt, keys->salt, salt_bytes);
	memset(out, 0, sizeof(*out));
	ok = seal_prf(keys->key, key_bytes, salt, label, out->key, key_bytes) &&
	     seal_prf(keys->key, key_bytes, salt, (uint8_t)(label + 1), out->auth,
		      sizeof(out->auth)) &&
	     seal_prf(keys->key, key_bytes, salt, (uint8_t)(label + 2), out->salt, salt_bytes);
	explicit_bzero(salt, sizeof(salt));
	return ok ? 0 : -ENOMEM;
}

static void state_write(SHA_CTX *sha, const uint32_t chain[5])
{
	memset(sha, 0, sizeof(*sha));
	sha->h0 = chain[0];
	sha->h1 = chain[1];
	sha->h2 = chain[2];
	sha->h3 = chain[3];
	sha->h4 = chain[4];
	sha->Nl = SHA_CBLOCK * 8; /* bits so far: the key block */
}

static void chain_after_key(uint32_t chain[5], const uint8_t *key, uint8_t pad)
{
	uint8_t block[SHA_CBLOCK];
	SHA_CTX sha;

	memset(block, pad, sizeof(block));
	for (size_t i = 0; i < SEAL_AUTH_KEY_BYTES; i++)
		block[i] ^= key[i];
	SHA1_Init(&sha);
	SHA1_Update(&sha, block, sizeof(block));
	chain[0] = sha.h0;
	chain[1] = sha.h1;
	chain[2] = sha.h2;
	chain[3] = sha.h3;
	chain[4] = sha.h4;
	explicit_bzero(block, sizeof(block));
	explicit_bzero(&sha, sizeof(sha));
}

void seal_hmac_init(struct seal_hmac *h, const uint8_t key[SEAL_AUTH_KEY_BYTES])
{
	chain_after_key(h->inner, key, 0x36);
	chain_after_key(h->outer, key, 0x5c);
}

void seal_hmac_tag(const struct seal_hmac *h, const uint8_t *bytes, size_t n, const uint8_t *roc,
		   uint8_t tag[SEAL_SHA1_TAG_BYTES])
{
	uint8_t hash[SHA_DIGEST_LENGTH];
	SHA_CTX sha;

	state_write(&sha, h->inner);
	SHA1_Update(&sha, bytes, n);
	if (roc)
		SHA1_Update(&sha, roc, 4);
	SHA1_Final(hash, &sha);
	state_write(&sha, h->outer);
	SHA1_Update(&sha, hash, sizeof(hash));
	SHA1_Final(hash, &sha);
	memcpy(tag, hash, SEAL_SHA1_TAG_BYTES);
}
