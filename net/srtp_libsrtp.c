/* net/srtp_libsrtp.c - the engine over libsrtp2: slow, but written by others.
 *
 * libsrtp2 counts indices by itself, and repeats only within a window. Here the index is the
 * caller's, so the roll-over counter is set before every packet. */
#include <errno.h>
#include <pthread.h>
#include <srtp2/srtp.h>
#include <stdlib.h>
#include <string.h>

#include "net/srtp_internal.h"
#include "pool/bytes.h"

enum {
	GCM_BYTES = 9000, /* a context with one stream, as measured */
	CM_BYTES = 15000,
};

struct lib_tx {
	struct seal_tx base;
	srtp_t session;
	struct seal_keys keys; /* for the streams of SSRCs to come */
};

struct lib_rx {
	struct seal_rx base;
	srtp_t session;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static srtp_err_status_t init_status;

/* Never shut down: libsrtp2 may serve other engines and threads until the process ends. */
static void init_library(void)
{
	init_status = srtp_init();
}

static struct lib_tx *tx_of(const struct seal_tx *tx)
{
	return (struct lib_tx *)tx;
}

static struct lib_rx *rx_of(const struct seal_rx *rx)
{
	return (struct lib_rx *)rx;
}

static int lib_create(struct seal_engine **out)
{
	struct seal_engine *e;

	pthread_once(&once, init_library);
	if (init_status != srtp_err_status_ok)
		return -ENOTSUP;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->ops = &seal_ops_libsrtp;
	*out = e;
	return 0;
}

static void lib_destroy(struct seal_engine *e)
{
	free(e);
}

static srtp_policy_t policy_of(enum seal_profile profile)
{
	srtp_policy_t policy = { 0 };

	switch (profile) {
	case SEAL_AES_CM_128_HMAC_SHA1_80:
		srtp_crypto_policy_set_rtp_default(&policy.rtp);
		srtp_crypto_policy_set_rtcp_default(&policy.rtcp);
		break;
	case SEAL_AEAD_AES_128_GCM:
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp);
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp);
		break;
	case SEAL_AEAD_AES_256_GCM:
		srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp);
		srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp);
		break;
	}
	return policy;
}

/* libsrtp2 wants key and salt in one piece. */
static void join_keys(uint8_t joined[SEAL_MAX_KEY_BYTES + SEAL_MAX_SALT_BYTES],
		      const struct seal_keys *keys)
{
	size_t key_bytes = seal_key_bytes(keys->profile);

	memcpy(joined, keys->key, key_bytes);
	memcpy(joined + key_bytes, keys->salt, seal_salt_bytes(keys->profile));
}

static int lib_tx_create(struct seal_tx **out, struct seal_engine *e, const struct seal_keys *keys)
{
	struct lib_tx *tx = calloc(1, sizeof(*tx));

	(void)e;
	if (!tx)
		return -ENOMEM;
	if (srtp_create(&tx->session, NULL) != srtp_err_status_ok) {
		free(tx);
		return -ENOMEM;
	}
	tx->keys = *keys;
	*out = &tx->base;
	return 0;
}

static void lib_tx_destroy(struct seal_tx *base)
{
	struct lib_tx *tx = tx_of(base);

	srtp_dealloc(tx->session);
	explicit_bzero(tx, sizeof(*tx));
	free(tx);
}

static size_t lib_tx_bytes(const struct seal_tx *tx)
{
	return sizeof(struct lib_tx) + (seal_is_gcm(tx->profile) ? GCM_BYTES : CM_BYTES);
}

static int lib_rx_create(struct seal_rx **out, struct seal_engine *e, const struct seal_keys *keys)
{
	uint8_t joined[SEAL_MAX_KEY_BYTES + SEAL_MAX_SALT_BYTES];
	srtp_policy_t policy = policy_of(keys->profile);
	struct lib_rx *rx = calloc(1, sizeof(*rx));
	srtp_err_status_t status;

	(void)e;
	if (!rx)
		return -ENOMEM;
	join_keys(joined, keys);
	policy.key = joined;
	policy.ssrc.type = ssrc_any_inbound;
	policy.window_size = SEAL_REPLAY_WINDOW_PKTS;
	status = srtp_create(&rx->session, &policy);
	explicit_bzero(joined, sizeof(joined));
	if (status != srtp_err_status_ok) {
		free(rx);
		return -ENOMEM;
	}
	*out = &rx->base;
	return 0;
}

static void lib_rx_destroy(struct seal_rx *rx)
{
	srtp_dealloc(rx_of(rx)->session);
	free(rx);
}

static size_t lib_rx_bytes(const struct seal_rx *rx)
{
	return sizeof(struct lib_rx) + (seal_is_gcm(rx->profile) ? GCM_BYTES : CM_BYTES);
}

static bool stream_add(struct lib_tx *tx, uint32_t ssrc)
{
	uint8_t joined[SEAL_MAX_KEY_BYTES + SEAL_MAX_SALT_BYTES];
	srtp_policy_t policy = policy_of(tx->keys.profile);
	srtp_err_status_t status;

	join_keys(joined, &tx->keys);
	policy.key = joined;
	policy.ssrc.type = ssrc_specific;
	policy.ssrc.value = ssrc;
	policy.window_size = SEAL_REPEAT_PKTS;
	policy.allow_repeat_tx = 1;
	status = srtp_add_stream(tx->session, &policy);
	explicit_bzero(joined, sizeof(joined));
	return status == srtp_err_status_ok;
}

static bool stream_aim(struct lib_tx *tx, uint32_t ssrc, uint32_t roc)
{
	if (srtp_set_stream_roc(tx->session, ssrc, roc) == srtp_err_status_ok)
		return true;
	return stream_add(tx, ssrc) &&
	       srtp_set_stream_roc(tx->session, ssrc, roc) == srtp_err_status_ok;
}

static bool seal_one(const struct seal_job *job)
{
	struct lib_tx *tx = tx_of(job->tx);
	uint8_t *body = job->out + job->header_bytes;
	int len = job->header_bytes + job->lead_bytes + job->payload_bytes;

	memcpy(job->out, job->header, job->header_bytes);
	if (job->lead_bytes > 0)
		memcpy(body, job->lead, job->lead_bytes);
	if (job->payload_bytes > 0)
		memcpy(body + job->lead_bytes, job->payload, job->payload_bytes);
	return stream_aim(tx, be32_read(job->header + 8), (uint32_t)(job->index >> 16)) &&
	       srtp_protect(tx->session, job->out, &len) == srtp_err_status_ok;
}

static void lib_seal_rtp(struct seal_engine *e, const struct seal_job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct seal_job *job = &jobs[i];

		if (seal_one(job))
			continue;
		/* Never let plain text out, nor what may be half sealed. */
		memset(job->out, 0,
		       (size_t)job->header_bytes + job->lead_bytes + job->payload_bytes +
			   seal_tag_bytes(job->tx->profile));
		e->failures++;
	}
}

static bool lib_seal_rtcp(struct seal_engine *e, struct seal_tx *base, uint8_t *bytes, size_t len)
{
	struct lib_tx *tx = tx_of(base);
	int sealed = (int)len;

	(void)e;
	/* libsrtp2 counts per SSRC from 1 and has no stream for one that sent nothing yet. */
	if (srtp_protect_rtcp(tx->session, bytes, &sealed) == srtp_err_status_ok)
		return true;
	sealed = (int)len;
	return stream_add(tx, be32_read(bytes + 4)) &&
	       srtp_protect_rtcp(tx->session, bytes, &sealed) == srtp_err_status_ok;
}

static bool lib_open_rtp(struct seal_engine *e, struct seal_rx *rx, const struct seal_packet *p)
{
	int len = (int)p->len;

	(void)e;
	return srtp_unprotect(rx_of(rx)->session, p->bytes, &len) == srtp_err_status_ok;
}

static bool lib_open_rtcp(struct seal_engine *e, struct seal_rx *rx, const struct seal_packet *p)
{
	int len = (int)p->len;

	(void)e;
	return srtp_unprotect_rtcp(rx_of(rx)->session, p->bytes, &len) == srtp_err_status_ok;
}

const struct seal_ops seal_ops_libsrtp = {
	.name = "libsrtp2",
	.create = lib_create,
	.destroy = lib_destroy,
	.tx_create = lib_tx_create,
	.tx_destroy = lib_tx_destroy,
	.tx_bytes = lib_tx_bytes,
	.rx_create = lib_rx_create,
	.rx_destroy = lib_rx_destroy,
	.rx_bytes = lib_rx_bytes,
	.seal_rtp = lib_seal_rtp,
	.seal_rtcp = lib_seal_rtcp,
	.open_rtp = lib_open_rtp,
	.open_rtcp = lib_open_rtcp,
};
