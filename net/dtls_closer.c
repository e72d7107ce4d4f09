#include "net/dtls_closer.h"

#include <errno.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include "pool/bytes.h"

enum {
	MASTER_BYTES = 48,
	TAG_BYTES = 16,
	NONCE_BYTES = 8, /* explicit part, GCM only */
	SALT_BYTES = 4,  /* implicit part, GCM only */
	AAD_BYTES = 13,
	ALERT_BYTES = 2,
	EPOCH = 1, /* one handshake, no renegotiation */
	BLOCK_BYTES = 2 * (DTLS_KEY_BYTES + DTLS_IV_BYTES),
};

static const char label[] = "key expansion";

struct seed {
	uint8_t label[sizeof(label) - 1];
	uint8_t server_random[DTLS_RANDOM_BYTES];
	uint8_t client_random[DTLS_RANDOM_BYTES];
};

static enum dtls_aead aead_of(const SSL_CIPHER *cipher)
{
	switch (SSL_CIPHER_get_cipher_nid(cipher)) {
	case NID_aes_128_gcm:
		return DTLS_AES_128_GCM;
	case NID_aes_256_gcm:
		return DTLS_AES_256_GCM;
	case NID_chacha20_poly1305:
		return DTLS_CHACHA20_POLY1305;
	default:
		return DTLS_AEAD_NONE;
	}
}

static size_t key_bytes(enum dtls_aead aead)
{
	return aead == DTLS_AES_128_GCM ? 16 : 32;
}

static size_t fixed_iv_bytes(enum dtls_aead aead)
{
	return aead == DTLS_CHACHA20_POLY1305 ? DTLS_IV_BYTES : SALT_BYTES;
}

static const EVP_CIPHER *cipher_of(enum dtls_aead aead)
{
	return aead == DTLS_AES_128_GCM   ? EVP_aes_128_gcm()
	       : aead == DTLS_AES_256_GCM ? EVP_aes_256_gcm()
					  : EVP_chacha20_poly1305();
}

static bool expand(uint8_t *block, size_t n, const EVP_MD *md, uint8_t *master, struct seed *seed)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
						 (char *)EVP_MD_get0_name(md), 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, master, MASTER_BYTES),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof(*seed)),
		OSSL_PARAM_construct_end(),
	};
	bool ok = ctx && EVP_KDF_derive(ctx, block, n, params) == 1;

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok;
}

/* RFC 5246 section 6.3: client key, server key, client IV, server IV (no MAC keys with AEAD). */
static void deal(struct dtls_closer *c, enum dtls_aead aead, bool is_server, const uint8_t *block)
{
	size_t key = key_bytes(aead), iv = fixed_iv_bytes(aead);
	const uint8_t *ivs = block + 2 * key;

	memcpy(c->key_tx, block + (is_server ? key : 0), key);
	memcpy(c->key_rx, block + (is_server ? 0 : key), key);
	memcpy(c->iv_tx, ivs + (is_server ? iv : 0), iv);
	memcpy(c->iv_rx, ivs + (is_server ? 0 : iv), iv);
}

enum dtls_aead dtls_closer_init(struct dtls_closer *c, const SSL *ssl,
				const struct dtls_last_sent *last)
{
	const SSL_CIPHER *cipher = SSL_get_current_cipher(ssl);
	enum dtls_aead aead = cipher ? aead_of(cipher) : DTLS_AEAD_NONE;
	uint8_t master[MASTER_BYTES], block[BLOCK_BYTES];
	struct seed seed;

	memset(c, 0, sizeof(*c));
	if (aead == DTLS_AEAD_NONE || SSL_SESSION_get_master_key(SSL_get0_session(ssl), master,
								 sizeof(master)) != sizeof(master))
		return DTLS_AEAD_NONE;
	memcpy(seed.label, label, sizeof(seed.label));
	SSL_get_server_random(ssl, seed.server_random, sizeof(seed.server_random));
	SSL_get_client_random(ssl, seed.client_random, sizeof(seed.client_random));
	if (!expand(block, 2 * (key_bytes(aead) + fixed_iv_bytes(aead)),
		    SSL_CIPHER_get_handshake_digest(cipher), master, &seed))
		aead = DTLS_AEAD_NONE;
	else
		deal(c, aead, SSL_is_server(ssl), block);
	OPENSSL_cleanse(master, sizeof(master));
	OPENSSL_cleanse(block, sizeof(block));
	c->number = last->number + 1;
	/* The library starts its explicit nonces at random and counts up; so do we, after it. */
	if (aead == DTLS_AES_128_GCM || aead == DTLS_AES_256_GCM)
		be64_write(c->iv_tx + SALT_BYTES, be64_read(last->explicit_nonce) + 1);
	return aead;
}

static void write_aad(uint8_t aad[AAD_BYTES], uint64_t number, size_t plain)
{
	be64_write(aad, (uint64_t)EPOCH << 48 | number);
	aad[8] = DTLS_ALERT;
	be16_write(aad + 9, DTLS1_2_VERSION);
	be16_write(aad + 11, (uint16_t)plain);
}

/* RFC 7905 section 2: the padded record number, exclusive-or the IV. */
static void chacha_nonce(uint8_t nonce[DTLS_IV_BYTES], const uint8_t *iv, uint64_t number)
{
	uint8_t padded[DTLS_IV_BYTES] = { 0 };
	size_t i;

	be64_write(padded + 4, (uint64_t)EPOCH << 48 | number);
	for (i = 0; i < DTLS_IV_BYTES; i++)
		nonce[i] = iv[i] ^ padded[i];
}

static bool seal_alert(enum dtls_aead aead, const uint8_t *key, const uint8_t *nonce,
		       const uint8_t aad[AAD_BYTES], uint8_t *out)
{
	static const uint8_t close_notify[ALERT_BYTES] = { SSL3_AL_WARNING, SSL3_AD_CLOSE_NOTIFY };
	EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
	int n = 0;
	bool ok = x && EVP_EncryptInit_ex(x, cipher_of(aead), NULL, key, nonce) == 1 &&
		  EVP_EncryptUpdate(x, NULL, &n, aad, AAD_BYTES) == 1 &&
		  EVP_EncryptUpdate(x, out, &n, close_notify, ALERT_BYTES) == 1 &&
		  EVP_EncryptFinal_ex(x, out + ALERT_BYTES, &n) == 1 &&
		  EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, out + ALERT_BYTES) == 1;

	EVP_CIPHER_CTX_free(x);
	return ok;
}

size_t dtls_closer_seal(struct dtls_closer *c, enum dtls_aead aead, uint8_t *out, size_t cap)
{
	bool is_chacha = aead == DTLS_CHACHA20_POLY1305;
	size_t explicit_bytes = is_chacha ? 0 : NONCE_BYTES;
	size_t body = explicit_bytes + ALERT_BYTES + TAG_BYTES;
	uint8_t aad[AAD_BYTES], nonce[DTLS_IV_BYTES];

	if (aead == DTLS_AEAD_NONE || cap < DTLS_RECORD_HEADER_BYTES + body)
		return 0;
	write_aad(aad, c->number, ALERT_BYTES);
	if (is_chacha)
		chacha_nonce(nonce, c->iv_tx, c->number);
	else
		memcpy(nonce, c->iv_tx, sizeof(nonce));
	out[0] = DTLS_ALERT;
	be16_write(out + 1, DTLS1_2_VERSION);
	memcpy(out + 3, aad, 8);
	be16_write(out + 11, (uint16_t)body);
	memcpy(out + DTLS_RECORD_HEADER_BYTES, nonce + SALT_BYTES, explicit_bytes);
	c->number++;
	if (!is_chacha)
		be64_write(c->iv_tx + SALT_BYTES, be64_read(c->iv_tx + SALT_BYTES) + 1);
	if (!seal_alert(aead, c->key_tx, nonce, aad,
			out + DTLS_RECORD_HEADER_BYTES + explicit_bytes))
		return 0;
	return DTLS_RECORD_HEADER_BYTES + body;
}

static bool open_alert(enum dtls_aead aead, const uint8_t *key, const uint8_t *nonce,
		       const uint8_t aad[AAD_BYTES], const uint8_t *sealed, uint8_t *out)
{
	EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
	uint8_t tag[TAG_BYTES];
	int n = 0;
	bool ok;

	memcpy(tag, sealed + ALERT_BYTES, sizeof(tag));
	ok = x && EVP_DecryptInit_ex(x, cipher_of(aead), NULL, key, nonce) == 1 &&
	     EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) == 1 &&
	     EVP_DecryptUpdate(x, NULL, &n, aad, AAD_BYTES) == 1 &&
	     EVP_DecryptUpdate(x, out, &n, sealed, ALERT_BYTES) == 1 &&
	     EVP_DecryptFinal_ex(x, out + ALERT_BYTES, &n) == 1;
	EVP_CIPHER_CTX_free(x);
	return ok;
}

int dtls_closer_open(const struct dtls_closer *c, enum dtls_aead aead, const struct dtls_record *r,
		     uint8_t alert[2])
{
	bool is_chacha = aead == DTLS_CHACHA20_POLY1305;
	size_t explicit_bytes = is_chacha ? 0 : NONCE_BYTES;
	uint8_t aad[AAD_BYTES], nonce[DTLS_IV_BYTES];

	if (aead == DTLS_AEAD_NONE || r->content != DTLS_ALERT || r->epoch != EPOCH ||
	    r->body_len != explicit_bytes + ALERT_BYTES + TAG_BYTES)
		return -EBADMSG;
	write_aad(aad, r->number, ALERT_BYTES);
	memcpy(nonce, c->iv_rx, sizeof(nonce));
	if (is_chacha)
		chacha_nonce(nonce, c->iv_rx, r->number);
	else
		memcpy(nonce + SALT_BYTES, r->body, NONCE_BYTES);
	if (!open_alert(aead, c->key_rx, nonce, aad, r->body + explicit_bytes, alert))
		return -EBADMSG;
	return 0;
}
