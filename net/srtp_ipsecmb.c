/* net/srtp_ipsecmb.c - the fast engine: Intel's multi-buffer library, AES-GCM packet by packet,
 * AES-CM with HMAC-SHA1 in bursts over many packets at once. */
#if SLUICE_IPSECMB

#include <assert.h>
#include <errno.h>
#include <intel-ipsec-mb.h>
#include <stdlib.h>
#include <string.h>

#include "net/digest.h"
#include "net/srtp_internal.h"
#include "pool/bytes.h"

enum {
	BURST_JOBS = 64,     /* four times the SHA-1 lanes of the widest code */
	HASH_TAG_BYTES = 12, /* the library knows 12 and 20; SRTP takes the first 10 */
	KEY_ALIGN = 64,
	AHEAD_JOBS = 8,                  /* of a key's use it is asked for: two messages of video */
	CM_KEY_SCHEDULE_BYTES = 11 * 16, /* AES-128 */
};

struct mb_gcm_key {
	struct seal_key base;
	struct gcm_key_data data; /* its hash keys, 240 bytes in, then start a cache line */
};
_Static_assert(offsetof(struct mb_gcm_key, data.ghash_keys) % KEY_ALIGN == 0, "see above");

struct mb_cm_key {
	struct seal_cm_key cm;
	_Alignas(16) uint8_t schedule[CM_KEY_SCHEDULE_BYTES];
};

union mb_key {
	struct mb_gcm_key gcm;
	struct mb_cm_key cm;
};

struct mb_engine {
	struct seal_engine base;
	IMB_MGR *mgr;
	size_t burst_count;
	const struct seal_job *burst[BURST_JOBS];
	IMB_JOB jobs[BURST_JOBS];
	uint8_t ivs[BURST_JOBS][16];
	uint8_t tags[BURST_JOBS][16];
	_Alignas(KEY_ALIGN) union mb_key scratch;
};

static struct mb_engine *engine_of(struct seal_engine *e)
{
	return (struct mb_engine *)e;
}

static const struct gcm_key_data *gcm_data(const struct seal_key *k)
{
	return &((const struct mb_gcm_key *)k)->data;
}

static size_t mb_key_size(enum seal_profile profile)
{
	return seal_is_gcm(profile) ? sizeof(struct mb_gcm_key) : sizeof(struct mb_cm_key);
}

static void key_expand(struct mb_engine *e, struct seal_key *k, enum seal_profile profile,
		       const struct seal_session *session)
{
	memcpy(k->salt, session->salt, sizeof(session->salt));
	k->profile = (uint8_t)profile;
	if (profile == SEAL_AEAD_AES_128_GCM) {
		IMB_AES128_GCM_PRE(e->mgr, session->key, &((struct mb_gcm_key *)k)->data);
	} else if (profile == SEAL_AEAD_AES_256_GCM) {
		IMB_AES256_GCM_PRE(e->mgr, session->key, &((struct mb_gcm_key *)k)->data);
	} else {
		struct mb_cm_key *cm = (struct mb_cm_key *)k;
		_Alignas(16) uint8_t decrypt[CM_KEY_SCHEDULE_BYTES]; /* computed, never used */

		IMB_AES_KEYEXP_128(e->mgr, session->key, cm->schedule, decrypt);
		explicit_bzero(decrypt, sizeof(decrypt));
		seal_hmac_init(&cm->cm.hmac, session->auth);
	}
}

static int mb_key_create(struct seal_key **out, struct seal_engine *e, enum seal_profile profile,
			 const struct seal_session *session)
{
	size_t size = (mb_key_size(profile) + KEY_ALIGN - 1) / KEY_ALIGN * KEY_ALIGN;
	struct seal_key *k = aligned_alloc(KEY_ALIGN, size);

	if (!k)
		return -ENOMEM;
	key_expand(engine_of(e), k, profile, session);
	*out = k;
	return 0;
}

static void mb_key_destroy(struct seal_key *k)
{
	if (!k)
		return;
	explicit_bzero(k, mb_key_size(k->profile));
	free(k);
}

static struct seal_key *mb_key_borrow(struct seal_engine *engine, enum seal_profile profile,
				      const struct seal_session *session)
{
	struct mb_engine *e = engine_of(engine);
	struct seal_key *k = &e->scratch.gcm.base;

	key_expand(e, k, profile, session);
	return k;
}

static void mb_key_return(struct seal_engine *e, struct seal_key *k)
{
	explicit_bzero(&engine_of(e)->scratch, mb_key_size(k->profile));
}

static void gcm_seal(struct seal_engine *engine, struct seal_key *k, const struct seal_gcm *g)
{
	IMB_MGR *mgr = engine_of(engine)->mgr;
	struct gcm_context_data ctx;

	if (k->profile == SEAL_AEAD_AES_128_GCM)
		IMB_AES128_GCM_ENC(mgr, gcm_data(k), &ctx, g->bytes, g->bytes, g->len, g->iv,
				   g->aad, g->aad_bytes, g->tag, SEAL_GCM_TAG_BYTES);
	else
		IMB_AES256_GCM_ENC(mgr, gcm_data(k), &ctx, g->bytes, g->bytes, g->len, g->iv,
				   g->aad, g->aad_bytes, g->tag, SEAL_GCM_TAG_BYTES);
}

static bool gcm_open(struct seal_engine *engine, struct seal_key *k, const struct seal_gcm *g)
{
	IMB_MGR *mgr = engine_of(engine)->mgr;
	struct gcm_context_data ctx;
	uint8_t tag[SEAL_GCM_TAG_BYTES];

	if (k->profile == SEAL_AEAD_AES_128_GCM)
		IMB_AES128_GCM_DEC(mgr, gcm_data(k), &ctx, g->bytes, g->bytes, g->len, g->iv,
				   g->aad, g->aad_bytes, tag, sizeof(tag));
	else
		IMB_AES256_GCM_DEC(mgr, gcm_data(k), &ctx, g->bytes, g->bytes, g->len, g->iv,
				   g->aad, g->aad_bytes, tag, sizeof(tag));
	return digest_is_equal(tag, g->tag, sizeof(tag));
}

/* The payload in pieces: what differs per viewer, then what is shared. */
static void seal_gcm_led(struct mb_engine *e, const struct seal_job *job, const struct seal_key *k,
			 const uint8_t iv[12])
{
	const struct gcm_key_data *data = gcm_data(k);
	struct gcm_context_data ctx;
	uint8_t *lead = job->out + job->header_bytes;
	uint8_t *payload = lead + job->lead_bytes;
	uint8_t *tag = payload + job->payload_bytes;

	if (k->profile == SEAL_AEAD_AES_128_GCM) {
		IMB_AES128_GCM_INIT(e->mgr, data, &ctx, iv, job->header, job->header_bytes);
		IMB_AES128_GCM_ENC_UPDATE(e->mgr, data, &ctx, lead, job->lead, job->lead_bytes);
		IMB_AES128_GCM_ENC_UPDATE(e->mgr, data, &ctx, payload, job->payload,
					  job->payload_bytes);
		IMB_AES128_GCM_ENC_FINALIZE(e->mgr, data, &ctx, tag, SEAL_GCM_TAG_BYTES);
	} else {
		IMB_AES256_GCM_INIT(e->mgr, data, &ctx, iv, job->header, job->header_bytes);
		IMB_AES256_GCM_ENC_UPDATE(e->mgr, data, &ctx, lead, job->lead, job->lead_bytes);
		IMB_AES256_GCM_ENC_UPDATE(e->mgr, data, &ctx, payload, job->payload,
					  job->payload_bytes);
		IMB_AES256_GCM_ENC_FINALIZE(e->mgr, data, &ctx, tag, SEAL_GCM_TAG_BYTES);
	}
}

static void seal_gcm_job(struct mb_engine *e, const struct seal_job *job, const struct seal_key *k)
{
	struct gcm_context_data ctx;
	uint8_t *body = job->out + job->header_bytes;
	uint8_t iv[12];

	memcpy(job->out, job->header, job->header_bytes);
	seal_gcm_iv(iv, k->salt, be32_read(job->header + 8), job->index);
	if (job->lead_bytes > 0)
		seal_gcm_led(e, job, k, iv);
	else if (k->profile == SEAL_AEAD_AES_128_GCM)
		IMB_AES128_GCM_ENC(e->mgr, gcm_data(k), &ctx, body, job->payload,
				   job->payload_bytes, iv, job->header, job->header_bytes,
				   body + job->payload_bytes, SEAL_GCM_TAG_BYTES);
	else
		IMB_AES256_GCM_ENC(e->mgr, gcm_data(k), &ctx, body, job->payload,
				   job->payload_bytes, iv, job->header, job->header_bytes,
				   body + job->payload_bytes, SEAL_GCM_TAG_BYTES);
}

static void set_cipher(IMB_JOB *j, const struct mb_cm_key *k, const uint8_t *iv, uint8_t *bytes,
		       size_t len)
{
	j->cipher_mode = IMB_CIPHER_CNTR;
	j->cipher_direction = IMB_DIR_ENCRYPT;
	j->enc_keys = k->schedule;
	j->dec_keys = k->schedule;
	j->key_len_in_bytes = IMB_KEY_128_BYTES;
	j->iv = iv;
	j->iv_len_in_bytes = 16;
	j->src = bytes;
	j->dst = bytes;
	j->cipher_start_src_offset_in_bytes = 0;
	j->msg_len_to_cipher_in_bytes = len;
}

static void ctr(struct seal_engine *engine, struct seal_key *k, const uint8_t iv[16],
		uint8_t *bytes, size_t len)
{
	struct mb_engine *e = engine_of(engine);

	assert(e->burst_count == 0);
	if (len == 0)
		return;
	set_cipher(&e->jobs[0], (const struct mb_cm_key *)k, iv, bytes, len);
	IMB_SUBMIT_CIPHER_BURST_NOCHECK(e->mgr, e->jobs, 1, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT,
					IMB_KEY_128_BYTES);
	assert(e->jobs[0].status == IMB_STATUS_COMPLETED);
}

/* A chained job would hash its source, which out of place is the plain text. So the packet is
 * copied first, the roll-over counter behind it, where the tag comes at the end. */
static void burst_add(struct mb_engine *e, const struct seal_job *job, const struct mb_cm_key *k)
{
	size_t at = e->burst_count++;
	uint8_t *body = job->out + job->header_bytes;
	uint8_t *end = body + job->lead_bytes + job->payload_bytes;

	memcpy(job->out, job->header, job->header_bytes);
	if (job->lead_bytes > 0)
		memcpy(body, job->lead, job->lead_bytes);
	if (job->payload_bytes > 0)
		memcpy(body + job->lead_bytes, job->payload, job->payload_bytes);
	be32_write(end, (uint32_t)(job->index >> 16));
	seal_cm_iv(e->ivs[at], k->cm.base.salt, be32_read(job->header + 8), job->index);
	e->burst[at] = job;
	set_cipher(&e->jobs[at], k, e->ivs[at], body, (size_t)(end - body));
}

static void set_hash(IMB_JOB *j, const struct seal_job *job, const struct seal_hmac *h,
		     uint8_t *tag)
{
	j->hash_alg = IMB_AUTH_HMAC_SHA_1;
	j->src = job->out;
	j->hash_start_src_offset_in_bytes = 0;
	j->msg_len_to_hash_in_bytes =
	    (size_t)job->header_bytes + job->lead_bytes + job->payload_bytes + 4;
	j->auth_tag_output = tag;
	j->auth_tag_output_len_in_bytes = HASH_TAG_BYTES;
	j->u.HMAC._hashed_auth_key_xor_ipad = (const uint8_t *)h->inner;
	j->u.HMAC._hashed_auth_key_xor_opad = (const uint8_t *)h->outer;
}

static void burst_run(struct mb_engine *e)
{
	uint32_t n = (uint32_t)e->burst_count;
	uint32_t done;

	if (n == 0)
		return;
	done = IMB_SUBMIT_CIPHER_BURST_NOCHECK(e->mgr, e->jobs, n, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT,
					       IMB_KEY_128_BYTES);
	assert(done == n);
	for (size_t i = 0; i < n; i++)
		set_hash(&e->jobs[i], e->burst[i], seal_key_hmac(seal_rtp_key(e->burst[i]->tx)),
			 e->tags[i]);
	done = IMB_SUBMIT_HASH_BURST_NOCHECK(e->mgr, e->jobs, n, IMB_AUTH_HMAC_SHA_1);
	assert(done == n);
	for (size_t i = 0; i < n; i++) {
		const struct seal_job *job = e->burst[i];

		memcpy(job->out + job->header_bytes + job->lead_bytes + job->payload_bytes,
		       e->tags[i], SEAL_SHA1_TAG_BYTES);
	}
	e->burst_count = 0;
}

/* Each viewer's key is another kilobyte that was last read a pass ago. Inlined by force: gcc drops
 * calls of functions that only prefetch. */
__attribute__((always_inline)) static inline void look_ahead(const struct seal_job *jobs, size_t at)
{
	const struct seal_tx *tx = jobs[at].tx;
	const uint8_t *key;
	size_t bytes;

	if (at > 0 && jobs[at - 1].tx == tx)
		return;
	key = (const uint8_t *)seal_rtp_key(tx);
	bytes = mb_key_size(tx->profile);
	for (size_t i = 0; i < bytes; i += KEY_ALIGN)
		__builtin_prefetch(key + i);
}

static void mb_seal_rtp(struct seal_engine *engine, const struct seal_job *jobs, size_t n)
{
	struct mb_engine *e = engine_of(engine);

	for (size_t i = 0; i < n && i < AHEAD_JOBS; i++)
		look_ahead(jobs, i);
	for (size_t i = 0; i < n; i++) {
		const struct seal_key *k = seal_rtp_key(jobs[i].tx);

		if (i + AHEAD_JOBS < n)
			look_ahead(jobs, i + AHEAD_JOBS);
		if (seal_is_gcm(k->profile)) {
			seal_gcm_job(e, &jobs[i], k);
			continue;
		}
		burst_add(e, &jobs[i], (const struct mb_cm_key *)k);
		if (e->burst_count == BURST_JOBS)
			burst_run(e);
	}
	burst_run(e);
}

static void engine_free(struct mb_engine *e)
{
	if (e->mgr)
		free_mb_mgr(e->mgr);
	explicit_bzero(e, sizeof(*e));
	free(e);
}

static void mb_destroy(struct seal_engine *e)
{
	engine_free(engine_of(e));
}

static int mb_create(struct seal_engine **out)
{
	struct mb_engine *e =
	    aligned_alloc(KEY_ALIGN, (sizeof(*e) + KEY_ALIGN - 1) / KEY_ALIGN * KEY_ALIGN);
	IMB_ARCH arch;

	if (!e)
		return -ENOMEM;
	memset(e, 0, sizeof(*e));
	e->base.ops = &seal_ops_ipsecmb;
	/* Without AES-NI there is no manager, or one that emulates it, far slower than OpenSSL. */
	e->mgr = alloc_mb_mgr(0);
	if (!e->mgr) {
		engine_free(e);
		return imb_get_errno(NULL) == IMB_ERR_NO_AESNI_EMU ? -ENOTSUP : -ENOMEM;
	}
	init_mb_mgr_auto(e->mgr, &arch);
	if (imb_get_errno(e->mgr) != 0 || arch == IMB_ARCH_NONE || arch == IMB_ARCH_NOAESNI) {
		engine_free(e);
		return -ENOTSUP;
	}
	*out = &e->base;
	return 0;
}

static const struct seal_cipher mb_cipher = {
	.key_create = mb_key_create,
	.key_destroy = mb_key_destroy,
	.key_size = mb_key_size,
	.key_borrow = mb_key_borrow,
	.key_return = mb_key_return,
	.gcm_seal = gcm_seal,
	.gcm_open = gcm_open,
	.ctr = ctr,
};

const struct seal_ops seal_ops_ipsecmb = {
	.name = "ipsecmb",
	.create = mb_create,
	.destroy = mb_destroy,
	.tx_create = seal_framed_tx_create,
	.tx_destroy = seal_framed_tx_destroy,
	.tx_bytes = seal_framed_tx_bytes,
	.rx_create = seal_framed_rx_create,
	.rx_destroy = seal_framed_rx_destroy,
	.rx_bytes = seal_framed_rx_bytes,
	.seal_rtp = mb_seal_rtp,
	.seal_rtcp = seal_framed_rtcp,
	.open_rtp = seal_framed_open_rtp,
	.open_rtcp = seal_framed_open_rtcp,
	.cipher = &mb_cipher,
};

#else
/* ISO C wants a declaration in every file. */
extern const int seal_ipsecmb_is_absent;
#endif
