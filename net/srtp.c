/* net/srtp.c - see srtp.h: profiles, engines, and the way into each engine's table. */
#include "net/srtp.h"

#include <assert.h>
#include <errno.h>

#include "net/srtp_internal.h"
#include "net/srtp_record.h"
#include "pool/bytes.h"

bool seal_profile_is_known(unsigned profile)
{
	return profile == SEAL_AES_CM_128_HMAC_SHA1_80 || profile == SEAL_AEAD_AES_128_GCM ||
	       profile == SEAL_AEAD_AES_256_GCM;
}

const char *seal_profile_text(unsigned profile)
{
	switch (profile) {
	case SEAL_AES_CM_128_HMAC_SHA1_80:
		return "AES128_CM_HMAC_SHA1_80";
	case SEAL_AEAD_AES_128_GCM:
		return "AEAD_AES_128_GCM";
	case SEAL_AEAD_AES_256_GCM:
		return "AEAD_AES_256_GCM";
	default:
		return NULL;
	}
}

size_t seal_key_bytes(enum seal_profile profile)
{
	return profile == SEAL_AEAD_AES_256_GCM ? 32 : 16;
}

size_t seal_salt_bytes(enum seal_profile profile)
{
	return seal_is_gcm(profile) ? 12 : 14;
}

size_t seal_tag_bytes(enum seal_profile profile)
{
	if ((int)profile == (int)SEAL_PLAIN)
		return 0;
	return seal_is_gcm(profile) ? SEAL_GCM_TAG_BYTES : SEAL_SHA1_TAG_BYTES;
}

int seal_engine_create(struct seal_engine **out, enum seal_engine_kind kind)
{
	*out = NULL;
	switch (kind) {
	case SEAL_ENGINE_EVP:
		return seal_ops_evp.create(out);
	case SEAL_ENGINE_LIBSRTP:
		return seal_ops_libsrtp.create(out);
	case SEAL_ENGINE_IPSECMB:
#if SLUICE_IPSECMB
		return seal_ops_ipsecmb.create(out);
#else
		return -ENOTSUP;
#endif
	case SEAL_ENGINE_AUTO: {
		int err = seal_engine_create(out, SEAL_ENGINE_IPSECMB);

		return err == -ENOTSUP ? seal_ops_evp.create(out) : err;
	}
	}
	return -ENOTSUP;
}

void seal_engine_destroy(struct seal_engine *e)
{
	if (e)
		e->ops->destroy(e);
}

const char *seal_engine_name(const struct seal_engine *e)
{
	return e->ops->name;
}

uint64_t seal_engine_failures(const struct seal_engine *e)
{
	return e->failures;
}

int seal_tx_create(struct seal_tx **out, struct seal_engine *e, const struct seal_keys *keys)
{
	int err;

	*out = NULL;
	if (!seal_profile_is_known(keys->profile))
		return -EINVAL;
	err = e->ops->tx_create(out, e, keys);
	if (err)
		return err;
	(*out)->ops = e->ops;
	(*out)->profile = keys->profile;
#ifdef SLUICE_DEBUG
	err = seal_record_create(&(*out)->record);
	if (err) {
		seal_tx_destroy(*out);
		*out = NULL;
	}
#endif
	return err;
}

void seal_tx_destroy(struct seal_tx *tx)
{
	if (!tx)
		return;
#ifdef SLUICE_DEBUG
	seal_record_destroy(tx->record);
#endif
	tx->ops->tx_destroy(tx);
}

size_t seal_tx_bytes(const struct seal_tx *tx)
{
	return tx->ops->tx_bytes(tx);
}

enum seal_profile seal_tx_profile(const struct seal_tx *tx)
{
	return tx->profile;
}

int seal_rx_create(struct seal_rx **out, struct seal_engine *e, const struct seal_keys *keys)
{
	int err;

	*out = NULL;
	if (!seal_profile_is_known(keys->profile))
		return -EINVAL;
	err = e->ops->rx_create(out, e, keys);
	if (err)
		return err;
	(*out)->ops = e->ops;
	(*out)->profile = keys->profile;
	return 0;
}

void seal_rx_destroy(struct seal_rx *rx)
{
	if (!rx)
		return;
	seal_sources_destroy(rx);
	rx->ops->rx_destroy(rx);
}

size_t seal_rx_bytes(const struct seal_rx *rx)
{
	return rx->ops->rx_bytes(rx) + seal_sources_bytes(rx);
}

#ifdef SLUICE_DEBUG
static void check_jobs(const struct seal_engine *e, const struct seal_job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(jobs[i].tx->ops == e->ops || jobs[i].tx->ops == &seal_ops_plain);
		assert(jobs[i].header_bytes >= SEAL_RTP_MIN_BYTES);
		assert(jobs[i].index >> 48 == 0);
		assert(be16_read(jobs[i].header + 2) == (uint16_t)jobs[i].index);
		assert(seal_record_is_consistent(jobs[i].tx->record, &jobs[i]));
	}
}
#endif

/* Runs of jobs that are alike. */
static void seal_mixed(struct seal_engine *e, const struct seal_job *jobs, size_t n)
{
	for (size_t run, at = 0; at < n; at += run) {
		const struct seal_ops *ops = jobs[at].tx->ops;

		run = 1;
		while (at + run < n && jobs[at + run].tx->ops == ops)
			run++;
		ops->seal_rtp(e, jobs + at, run);
	}
}

void seal_rtp(struct seal_engine *e, const struct seal_job *jobs, size_t n)
{
#ifdef SLUICE_DEBUG
	check_jobs(e, jobs, n);
#endif
	if (e->has_plain)
		seal_mixed(e, jobs, n);
	else
		e->ops->seal_rtp(e, jobs, n);
}

int seal_rtcp(struct seal_engine *e, struct seal_tx *tx, uint8_t *bytes, size_t len, size_t cap)
{
	size_t extra = seal_tag_bytes(tx->profile) + SEAL_RTCP_WORD_BYTES;

	if ((int)tx->profile == (int)SEAL_PLAIN)
		return (int)len;
	assert(tx->ops == e->ops);
	assert(len >= SEAL_RTCP_MIN_BYTES && len <= UINT16_MAX);
	if (cap < len + extra)
		return -ENOSPC;
	if (tx->rtcp_index > SEAL_RTCP_INDEX_MAX)
		return -EOVERFLOW;
	if (!e->ops->seal_rtcp(e, tx, bytes, len))
		return -ENOMEM;
	tx->rtcp_index++;
	return (int)(len + extra);
}
