#include "net/dtls_identity.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <strings.h>

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include "net/digest.h"

struct dtls_identity {
	_Atomic uint32_t refs;
	EVP_PKEY *key;
	X509 *certificate;
	SSL_CTX *context[2]; /* by enum dtls_role */
	char fingerprint[DTLS_FINGERPRINT_BYTES];
};

enum {
	MAX_CERT_LIST_BYTES = 4096, /* half-open handshakes must not hold more for a stranger */
	SERIAL_BITS = 63,
	DAY_S = 24 * 60 * 60,
};

#define ECDSA_CIPHERS                                                                              \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:"                             \
	"ECDHE-ECDSA-AES256-GCM-SHA384"

/* We own a P-256 key, so RSA suites matter only where the other side is the server. */
static const char *const ciphers[] = {
	[DTLS_SERVER] = ECDSA_CIPHERS,
	[DTLS_CLIENT] = ECDSA_CIPHERS ":ECDHE-RSA-AES128-GCM-SHA256",
};

static const char groups[] = "X25519:P-256:P-384";

/* In our order of preference; the server's order decides. */
static const char profiles[] = "SRTP_AEAD_AES_128_GCM:SRTP_AEAD_AES_256_GCM:SRTP_AES128_CM_SHA1_80";

static _Atomic uint32_t live;

uint32_t dtls_identity_live(void)
{
	return atomic_load_explicit(&live, memory_order_relaxed);
}

/* The peer's certificate is self-signed: neither chain nor dates mean anything. Its fingerprint
 * does, and is compared when the handshake has proved that the peer owns the key. */
static int accept_any_chain(X509_STORE_CTX *store, void *arg)
{
	(void)store;
	(void)arg;
	return 1;
}

static bool set_name(X509 *x)
{
	X509_NAME *name = X509_get_subject_name(x);

	return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)"WebRTC", -1,
					  -1, 0) &&
	       X509_set_issuer_name(x, name);
}

static bool set_serial(X509 *x)
{
	BIGNUM *n = BN_new();
	bool ok = n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
		  BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));

	BN_free(n);
	return ok;
}

static bool make_certificate(struct dtls_identity *id)
{
	X509 *x;

	id->key = EVP_EC_gen("P-256");
	id->certificate = x = X509_new();
	if (!id->key || !x)
		return false;
	/* A day back: the peer's clock may be slow. */
	return X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
	       X509_gmtime_adj(X509_getm_notBefore(x), -DAY_S) &&
	       X509_gmtime_adj(X509_getm_notAfter(x), (long)DTLS_IDENTITY_DAYS * DAY_S) &&
	       set_name(x) && X509_set_pubkey(x, id->key) && X509_sign(x, id->key, EVP_sha256());
}

static SSL_CTX *make_context(const struct dtls_identity *id, enum dtls_role role)
{
	SSL_CTX *c = SSL_CTX_new(DTLS_method());

	if (!c)
		return NULL;
	SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_QUERY_MTU |
				   SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_cert_list(c, MAX_CERT_LIST_BYTES);
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_cert_verify_callback(c, accept_any_chain, NULL);
	if (!SSL_CTX_set_min_proto_version(c, DTLS1_2_VERSION) ||
	    !SSL_CTX_set_max_proto_version(c, DTLS1_2_VERSION) ||
	    !SSL_CTX_set_cipher_list(c, ciphers[role]) || !SSL_CTX_set1_groups_list(c, groups) ||
	    SSL_CTX_set_tlsext_use_srtp(c, profiles) != 0 || /* 0 is success, for this one */
	    SSL_CTX_use_certificate(c, id->certificate) != 1 ||
	    SSL_CTX_use_PrivateKey(c, id->key) != 1) {
		SSL_CTX_free(c);
		return NULL;
	}
	return c;
}

static void format_hex(char *out, const uint8_t *digest, size_t n)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t i;

	for (i = 0; i < n; i++) {
		*out++ = digits[digest[i] >> 4];
		*out++ = digits[digest[i] & 15];
		*out++ = i + 1 < n ? ':' : '\0';
	}
}

static bool set_fingerprint(struct dtls_identity *id)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (!X509_digest(id->certificate, EVP_sha256(), digest, &n))
		return false;
	format_hex(id->fingerprint, digest, n);
	return true;
}

static void destroy(struct dtls_identity *id)
{
	SSL_CTX_free(id->context[DTLS_SERVER]);
	SSL_CTX_free(id->context[DTLS_CLIENT]);
	X509_free(id->certificate);
	EVP_PKEY_free(id->key);
	free(id);
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

int dtls_identity_create(struct dtls_identity **out)
{
	struct dtls_identity *id;

	*out = NULL;
	id = calloc(1, sizeof(*id));
	if (!id)
		return -ENOMEM;
	atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	atomic_init(&id->refs, 1);
	if (!make_certificate(id) || !set_fingerprint(id))
		goto fail;
	id->context[DTLS_SERVER] = make_context(id, DTLS_SERVER);
	id->context[DTLS_CLIENT] = make_context(id, DTLS_CLIENT);
	if (!id->context[DTLS_SERVER] || !id->context[DTLS_CLIENT])
		goto fail;
	*out = id;
	return 0;

fail:
	destroy(id);
	return -ENOMEM;
}

static const char *profile_name(enum seal_profile profile)
{
	switch (profile) {
	case SEAL_AEAD_AES_128_GCM:
		return "SRTP_AEAD_AES_128_GCM";
	case SEAL_AEAD_AES_256_GCM:
		return "SRTP_AEAD_AES_256_GCM";
	case SEAL_AES_CM_128_HMAC_SHA1_80:
		return "SRTP_AES128_CM_SHA1_80";
	}
	return NULL;
}

int dtls_identity_limit(struct dtls_identity *id, enum seal_profile profile)
{
	const char *name = profile_name(profile);

	/* 0 is success, for this one. */
	if (!name || SSL_CTX_set_tlsext_use_srtp(id->context[DTLS_SERVER], name) != 0 ||
	    SSL_CTX_set_tlsext_use_srtp(id->context[DTLS_CLIENT], name) != 0)
		return -EINVAL;
	return 0;
}

struct dtls_identity *dtls_identity_ref(struct dtls_identity *id)
{
	atomic_fetch_add_explicit(&id->refs, 1, memory_order_relaxed);
	return id;
}

void dtls_identity_unref(struct dtls_identity *id)
{
	/* Acquire and release: whoever frees sees all other users' last accesses. */
	if (id && atomic_fetch_sub_explicit(&id->refs, 1, memory_order_acq_rel) == 1)
		destroy(id);
}

const char *dtls_identity_fingerprint(const struct dtls_identity *id)
{
	return id->fingerprint;
}

SSL_CTX *dtls_identity_context(const struct dtls_identity *id, enum dtls_role role)
{
	return id->context[role];
}

static const struct {
	const char *name;
	size_t bytes;
} hashes[] = {
	[DTLS_SHA_256] = { "sha-256", 32 },
	[DTLS_SHA_384] = { "sha-384", 48 },
	[DTLS_SHA_512] = { "sha-512", 64 },
};

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_digest(uint8_t *digest, size_t bytes, const char *hex)
{
	size_t i;
	int high, low;

	if (strlen(hex) != bytes * 3 - 1)
		return -EINVAL;
	for (i = 0; i < bytes; i++, hex += 3) {
		high = hex_value(hex[0]);
		low = hex_value(hex[1]);
		if (high < 0 || low < 0 || (hex[2] != ':' && i + 1 < bytes))
			return -EINVAL;
		digest[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

int dtls_fingerprint_parse(struct dtls_fingerprint *out, const char *hash, const char *hex)
{
	size_t h;

	memset(out, 0, sizeof(*out));
	for (h = 0; h < sizeof(hashes) / sizeof(hashes[0]); h++) {
		if (strcasecmp(hash, hashes[h].name) == 0) {
			out->hash = (enum dtls_hash)h;
			return parse_digest(out->digest, hashes[h].bytes, hex);
		}
	}
	return -ENOTSUP;
}

bool dtls_fingerprint_is_of(const struct dtls_fingerprint *f, const X509 *certificate)
{
	const EVP_MD *md = f->hash == DTLS_SHA_256   ? EVP_sha256()
			   : f->hash == DTLS_SHA_384 ? EVP_sha384()
						     : EVP_sha512();
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	assert(f->hash <= DTLS_SHA_512);
	return X509_digest(certificate, md, digest, &n) && n == hashes[f->hash].bytes &&
	       digest_is_equal(digest, f->digest, n);
}
