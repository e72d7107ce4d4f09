#include "tests/net/kit_plain_dtls.h"

#include <criterion/criterion.h>
#include <openssl/rsa.h>
#include <openssl/srtp.h>
#include <string.h>

#include "pool/bytes.h"

static int accept_all(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	(void)store;
	return 1;
}

static void make_certificate(struct plain_dtls *p, const char *key)
{
	unsigned n;

	p->key = strcmp(key, "RSA") == 0 ? EVP_RSA_gen(2048) : EVP_EC_gen(key);
	p->certificate = X509_new();
	X509_set_version(p->certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(p->certificate), 7);
	X509_gmtime_adj(X509_getm_notBefore(p->certificate), -60);
	X509_gmtime_adj(X509_getm_notAfter(p->certificate), 3600);
	X509_set_pubkey(p->certificate, p->key);
	cr_assert_gt(X509_sign(p->certificate, p->key, EVP_sha256()), 0);
	p->fingerprint.hash = DTLS_SHA_256;
	X509_digest(p->certificate, EVP_sha256(), p->fingerprint.digest, &n);
}

void plain_dtls_init(struct plain_dtls *p, enum dtls_role role, const char *key,
		     const char *ciphers, const char *profiles)
{
	memset(p, 0, sizeof(*p));
	make_certificate(p, key);
	p->context = SSL_CTX_new(DTLS_method());
	SSL_CTX_use_certificate(p->context, p->certificate);
	SSL_CTX_use_PrivateKey(p->context, p->key);
	SSL_CTX_set_verify(p->context, SSL_VERIFY_PEER, accept_all);
	if (ciphers)
		cr_assert_eq(SSL_CTX_set_cipher_list(p->context, ciphers), 1);
	if (!profiles)
		profiles = "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80";
	if (profiles[0])
		cr_assert_eq(SSL_CTX_set_tlsext_use_srtp(p->context, profiles), 0);
	p->ssl = SSL_new(p->context);
	p->in = BIO_new(BIO_s_mem());
	p->out = BIO_new(BIO_s_mem());
	BIO_set_mem_eof_return(p->in, -1);
	SSL_set_bio(p->ssl, p->in, p->out);
	SSL_set_options(p->ssl, SSL_OP_NO_QUERY_MTU);
	SSL_set_mtu(p->ssl, 1200);
	if (role == DTLS_SERVER)
		SSL_set_accept_state(p->ssl);
	else
		SSL_set_connect_state(p->ssl);
}

void plain_dtls_fini(struct plain_dtls *p)
{
	SSL_free(p->ssl);
	SSL_CTX_free(p->context);
	X509_free(p->certificate);
	EVP_PKEY_free(p->key);
}

void plain_dtls_input(struct plain_dtls *p, const uint8_t *bytes, size_t len)
{
	uint8_t data[64];
	int n;

	if (bytes)
		BIO_write(p->in, bytes, (int)len);
	if (p->is_dead)
		return;
	n = p->is_done ? SSL_read(p->ssl, data, sizeof(data)) : SSL_do_handshake(p->ssl);
	if (n == 1 && !p->is_done) {
		p->is_done = true;
		return;
	}
	switch (SSL_get_error(p->ssl, n)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		break;
	case SSL_ERROR_ZERO_RETURN:
		p->is_closed = true;
		break;
	default:
		p->is_dead = true;
	}
}

size_t plain_dtls_output(struct plain_dtls *p, uint8_t *out, size_t cap)
{
	int n = BIO_read(p->out, out, 13);
	size_t body;

	if (n <= 0)
		return 0;
	cr_assert_eq(n, 13);
	body = be16_read(out + 11);
	cr_assert_leq(13 + body, cap);
	cr_assert_eq(BIO_read(p->out, out + 13, (int)body), (int)body);
	return 13 + body;
}

void plain_dtls_keys(const struct plain_dtls *p, struct seal_keys *tx, struct seal_keys *rx)
{
	SRTP_PROTECTION_PROFILE *chosen = SSL_get_selected_srtp_profile(p->ssl);
	struct seal_keys *client = SSL_is_server(p->ssl) ? rx : tx;
	struct seal_keys *server = SSL_is_server(p->ssl) ? tx : rx;
	size_t key, salt;
	uint8_t block[92];

	cr_assert_not_null(chosen);
	memset(tx, 0, sizeof(*tx));
	memset(rx, 0, sizeof(*rx));
	tx->profile = rx->profile = (enum seal_profile)chosen->id;
	/* RFC 5764 4.1.2 and RFC 7714 12.1, 14.2: sizes of key and salt. */
	key = chosen->id == 8 ? 32 : 16;
	salt = chosen->id == 1 ? 14 : 12;
	cr_assert_eq(SSL_export_keying_material(p->ssl, block, 2 * (key + salt),
						"EXTRACTOR-dtls_srtp", 19, NULL, 0, 0),
		     1);
	memcpy(client->key, block, key);
	memcpy(server->key, block + key, key);
	memcpy(client->salt, block + 2 * key, salt);
	memcpy(server->salt, block + 2 * key + salt, salt);
}
