/* net/srtp_evp.c - the engine that runs anywhere: AES by OpenSSL's EVP, one context per key. */
#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "net/srtp_internal.h"
#include "pool/bytes.h"

enum {
	PROFILES = 3,
	CTX_BYTES = 1164, /* an EVP_CIPHER_CTX of AES-GCM with what it holds, as measured */
};

struct evp_key {
	struct seal_cm_key cm; /* its hmac for AES-CM only */
	EVP_CIPHER_CTX *ctx;
};

struct evp_engine {
	struct seal_engine base;
	EVP_CIPHER *ciphers[PROFILES]; /* fetched once: a fetch per use takes a lock */
	struct evp_key scratch[PROFILES];
};

static const struct {
	enum seal_profile profile;
	const char *cipher;
} kinds[PROFILES] = {
	{ SEAL_AES_CM_128_HMAC_SHA1_80, "AES-128-CTR" },
	{ SEAL_AEAD_AES_128_GCM, "AES-128-GCM" },
	{ SEAL_AEAD_AES_256_GCM, "AES-256-GCM" },
};

/* Calls that fail only for a wrong argument or without memory for what was held before. */
static void must(int result)
{
	if (result != 1)
		abort();
}

static struct evp_engine *engine_of(struct seal_engine *e)
{
	return (struct evp_engine *)e;
}

static struct evp_key *key_of(struct seal_key *k)
{
	return (struct evp_key *)k;
}

static size_t kind_of(enum seal_profile profile)
{
	size_t i = 0;

	while (kinds[i].profile != profile)
		i++;
	return i;
}

/** With a cipher of NULL the context keeps the one it has. */
static bool key_expand(struct evp_key *k, const EVP_CIPHER *cipher, enum seal_profile profile,
		       const struct seal_session *session)
{
	memcpy(k->cm.base.salt, session->salt, sizeof(session->salt));
	k->cm.base.profile = (uint8_t)profile;
	if (!seal_is_gcm(profile))
		seal_hmac_init(&k->cm.hmac, session->auth);
	return EVP_EncryptInit_ex(k->ctx, cipher, NULL, session->key, NULL) == 1;
}

static void key_free(struct evp_key *k)
{
	if (!k)
		return;
	EVP_CIPHER_CTX_free(k->ctx); /* wipes what it holds */
	explicit_bzero(k, sizeof(*k));
	free(k);
}

static void evp_key_destroy(struct seal_key *k)
{
	key_free(key_of(k));
}

static int evp_key_create(struct seal_key **out, struct seal_engine *e, enum seal_profile profile,
			  const struct seal_session *session)
{
	struct evp_key *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->ctx = EVP_CIPHER_CTX_new();
	if (!k->ctx || !key_expand(k, engine_of(e)->ciphers[kind_of(profile)], profile, session)) {
		key_free(k);
		return -ENOMEM;
	}
	*out = &k->cm.base;
	return 0;
}

static size_t evp_key_size(enum seal_profile profile)
{
	(void)profile;
	return sizeof(struct evp_key) + CTX_BYTES;
}

static struct seal_key *evp_key_borrow(struct seal_engine *e, enum seal_profile profile,
				       const struct seal_session *session)
{
	struct evp_key *k = &engine_of(e)->scratch[kind_of(profile)];

	/* Its context has this cipher already; naming it again would allocate. */
	must(key_expand(k, NULL, profile, session));
	return &k->cm.base;
}

static void evp_key_return(struct seal_engine *e, struct seal_key *k)
{
	static const struct seal_session zero;

	evp_key_borrow(e, k->profile, &zero);
}

static void gcm_seal(struct seal_engine *e, struct seal_key *key, const struct seal_gcm *g)
{
	EVP_CIPHER_CTX *ctx = key_of(key)->ctx;
	int n;

	(void)e;
	must(EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, g->iv));
	must(EVP_EncryptUpdate(ctx, NULL, &n, g->aad, (int)g->aad_bytes));
	if (g->len > 0)
		must(EVP_EncryptUpdate(ctx, g->bytes, &n, g->bytes, (int)g->len));
	must(EVP_EncryptFinal_ex(ctx, g->tag, &n));
	must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_GCM_TAG_BYTES, g->tag));
}

static bool gcm_open(struct seal_engine *e, struct seal_key *key, const struct seal_gcm *g)
{
	EVP_CIPHER_CTX *ctx = key_of(key)->ctx;
	uint8_t end[SEAL_GCM_TAG_BYTES];
	int n;

	(void)e;
	must(EVP_DecryptInit_ex(ctx, NULL, NULL, NULL, g->iv));
	must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_GCM_TAG_BYTES, g->tag));
	must(EVP_DecryptUpdate(ctx, NULL, &n, g->aad, (int)g->aad_bytes));
	if (g->len > 0)
		must(EVP_DecryptUpdate(ctx, g->bytes, &n, g->bytes, (int)g->len));
	return EVP_DecryptFinal_ex(ctx, end, &n) == 1;
}

static void ctr(struct seal_engine *e, struct seal_key *key, const uint8_t iv[16], uint8_t *bytes,
		size_t len)
{
	EVP_CIPHER_CTX *ctx = key_of(key)->ctx;
	int n;

	(void)e;
	must(EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, iv));
	if (len > 0)
		must(EVP_EncryptUpdate(ctx, bytes, &n, bytes, (int)len));
}

/** Encrypt lead and payload to `out`; returns the place behind them. */
static uint8_t *encrypt_parts(EVP_CIPHER_CTX *ctx, const struct seal_job *job, uint8_t *out)
{
	int n;

	if (job->lead_bytes > 0)
		must(EVP_EncryptUpdate(ctx, out, &n, job->lead, job->lead_bytes));
	out += job->lead_bytes;
	if (job->payload_bytes > 0)
		must(EVP_EncryptUpdate(ctx, out, &n, job->payload, job->payload_bytes));
	return out + job->payload_bytes;
}

static void seal_one(const struct seal_job *job, struct evp_key *k)
{
	uint32_t ssrc = be32_read(job->header + 8);
	uint8_t *end;
	uint8_t iv[16];
	int n;

	memcpy(job->out, job->header, job->header_bytes);
	if (seal_is_gcm(k->cm.base.profile)) {
		seal_gcm_iv(iv, k->cm.base.salt, ssrc, job->index);
		must(EVP_EncryptInit_ex(k->ctx, NULL, NULL, NULL, iv));
		must(EVP_EncryptUpdate(k->ctx, NULL, &n, job->header, job->header_bytes));
		end = encrypt_parts(k->ctx, job, job->out + job->header_bytes);
		must(EVP_EncryptFinal_ex(k->ctx, end, &n));
		must(EVP_CIPHER_CTX_ctrl(k->ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_GCM_TAG_BYTES, end));
	} else {
		uint8_t roc[4];

		seal_cm_iv(iv, k->cm.base.salt, ssrc, job->index);
		must(EVP_EncryptInit_ex(k->ctx, NULL, NULL, NULL, iv));
		end = encrypt_parts(k->ctx, job, job->out + job->header_bytes);
		be32_write(roc, (uint32_t)(job->index >> 16));
		seal_hmac_tag(&k->cm.hmac, job->out, (size_t)(end - job->out), roc, end);
	}
}

static void evp_seal_rtp(struct seal_engine *e, const struct seal_job *jobs, size_t n)
{
	(void)e;
	for (size_t i = 0; i < n; i++)
		seal_one(&jobs[i], key_of(seal_rtp_key(jobs[i].tx)));
}

static void engine_free(struct evp_engine *e)
{
	for (size_t i = 0; i < PROFILES; i++) {
		EVP_CIPHER_CTX_free(e->scratch[i].ctx);
		EVP_CIPHER_free(e->ciphers[i]);
	}
	explicit_bzero(e, sizeof(*e));
	free(e);
}

static void evp_destroy(struct seal_engine *e)
{
	engine_free(engine_of(e));
}

static int evp_create(struct seal_engine **out)
{
	static const struct seal_session zero;
	struct evp_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->base.ops = &seal_ops_evp;
	for (size_t i = 0; i < PROFILES; i++) {
		e->ciphers[i] = EVP_CIPHER_fetch(NULL, kinds[i].cipher, NULL);
		e->scratch[i].ctx = EVP_CIPHER_CTX_new();
		if (!e->ciphers[i] || !e->scratch[i].ctx ||
		    !key_expand(&e->scratch[i], e->ciphers[i], kinds[i].profile, &zero)) {
			engine_free(e);
			return -ENOMEM;
		}
	}
	*out = &e->base;
	return 0;
}

static const struct seal_cipher evp_cipher = {
	.key_create = evp_key_create,
	.key_destroy = evp_key_destroy,
	.key_size = evp_key_size,
	.key_borrow = evp_key_borrow,
	.key_return = evp_key_return,
	.gcm_seal = gcm_seal,
	.gcm_open = gcm_open,
	.ctr = ctr,
};

const struct seal_ops seal_ops_evp = {
	.name = "evp",
	.create = evp_create,
	.destroy = evp_destroy,
	.tx_create = seal_framed_tx_create,
	.tx_destroy = seal_framed_tx_destroy,
	.tx_bytes = seal_framed_tx_bytes,
	.rx_create = seal_framed_rx_create,
	.rx_destroy = seal_framed_rx_destroy,
	.rx_bytes = seal_framed_rx_bytes,
	.seal_rtp = evp_seal_rtp,
	.seal_rtcp = seal_framed_rtcp,
	.open_rtp = seal_framed_open_rtp,
	.open_rtcp = seal_framed_open_rtcp,
	.cipher = &evp_cipher,
};
