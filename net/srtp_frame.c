/* net/srtp_frame.c - the packet formats of RFC 3711 section 3 and RFC 7714 sections 8 and 9, over
 * any cipher. Sealing RTP is the hot path and each engine's own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/digest.h"
#include "net/srtp_internal.h"
#include "pool/bytes.h"
#include "pool/lines.h"

void seal_gcm_iv(uint8_t iv[12], const uint8_t *salt, uint32_t ssrc, uint64_t index)
{
	be16_write(iv, be16_read(salt));
	be32_write(iv + 2, be32_read(salt + 2) ^ ssrc);
	be32_write(iv + 6, be32_read(salt + 6) ^ (uint32_t)(index >> 16));
	be16_write(iv + 10, (uint16_t)(be16_read(salt + 10) ^ index));
}

void seal_cm_iv(uint8_t iv[16], const uint8_t *salt, uint32_t ssrc, uint64_t index)
{
	be32_write(iv, be32_read(salt));
	be32_write(iv + 4, be32_read(salt + 4) ^ ssrc);
	be32_write(iv + 8, be32_read(salt + 8) ^ (uint32_t)(index >> 16));
	be16_write(iv + 12, (uint16_t)(be16_read(salt + 12) ^ index));
	be16_write(iv + 14, 0);
}

static void framed_tx_free(struct seal_framed_tx *f)
{
	f->base.ops->cipher->key_destroy(f->rtp);
	explicit_bzero(f, sizeof(*f));
	free(f);
}

void seal_framed_tx_destroy(struct seal_tx *tx)
{
	framed_tx_free((struct seal_framed_tx *)tx);
}

int seal_framed_tx_create(struct seal_tx **out, struct seal_engine *e, const struct seal_keys *keys)
{
	struct seal_framed_tx *tx = lines_calloc(sizeof(*tx));
	struct seal_session rtp;
	int err;

	if (!tx)
		return -ENOMEM;
	tx->base.ops = e->ops;
	err = seal_derive(&rtp, keys, SEAL_FOR_RTP);
	if (err)
		goto fail;
	err = e->ops->cipher->key_create(&tx->rtp, e, keys->profile, &rtp);
	explicit_bzero(&rtp, sizeof(rtp));
	if (err)
		goto fail;
	err = seal_derive(&tx->rtcp, keys, SEAL_FOR_RTCP);
	if (err)
		goto fail;
	*out = &tx->base;
	return 0;

fail:
	framed_tx_free(tx);
	return err;
}

size_t seal_framed_tx_bytes(const struct seal_tx *tx)
{
	return sizeof(struct seal_framed_tx) + tx->ops->cipher->key_size(tx->profile);
}

static void framed_rx_free(struct seal_framed_rx *f)
{
	f->base.ops->cipher->key_destroy(f->rtp);
	explicit_bzero(f, sizeof(*f));
	free(f);
}

void seal_framed_rx_destroy(struct seal_rx *rx)
{
	framed_rx_free((struct seal_framed_rx *)rx);
}

int seal_framed_rx_create(struct seal_rx **out, struct seal_engine *e, const struct seal_keys *keys)
{
	struct seal_framed_rx *rx = calloc(1, sizeof(*rx));
	int err;

	if (!rx)
		return -ENOMEM;
	rx->base.ops = e->ops;
	err = seal_derive(&rx->rtp_session, keys, SEAL_FOR_RTP);
	if (err)
		goto fail;
	err = seal_derive(&rx->rtcp, keys, SEAL_FOR_RTCP);
	if (err)
		goto fail;
	*out = &rx->base;
	return 0;

fail:
	framed_rx_free(rx);
	return err;
}

size_t seal_framed_rx_bytes(const struct seal_rx *rx)
{
	const struct seal_framed_rx *f = (const struct seal_framed_rx *)rx;

	return sizeof(*f) + (f->rtp ? rx->ops->cipher->key_size(rx->profile) : 0);
}

/* header | ciphertext | tag | E and index. The word is authenticated right after the header. */
static void rtcp_gcm(struct seal_gcm *g, uint8_t aad[12], uint8_t iv[12],
		     const struct seal_packet *p, const struct seal_key *k)
{
	memcpy(aad, p->bytes, SEAL_RTCP_MIN_BYTES);
	be32_write(aad + SEAL_RTCP_MIN_BYTES, SEAL_RTCP_E_FLAG | (uint32_t)p->index);
	/* 00 00 | SSRC | 00 00 | index: as for RTP, the 48-bit index having 31 bits. */
	seal_gcm_iv(iv, k->salt, p->ssrc, p->index);
	*g = (struct seal_gcm){
		.iv = iv,
		.aad = aad,
		.aad_bytes = SEAL_RTCP_MIN_BYTES + SEAL_RTCP_WORD_BYTES,
		.bytes = p->bytes + SEAL_RTCP_MIN_BYTES,
		.len = p->len - SEAL_RTCP_MIN_BYTES - SEAL_GCM_TAG_BYTES - SEAL_RTCP_WORD_BYTES,
		.tag = p->bytes + p->len - SEAL_GCM_TAG_BYTES - SEAL_RTCP_WORD_BYTES,
	};
}

bool seal_framed_rtcp(struct seal_engine *e, struct seal_tx *tx, uint8_t *bytes, size_t len)
{
	const struct seal_cipher *cipher = e->ops->cipher;
	struct seal_framed_tx *f = (struct seal_framed_tx *)tx;
	struct seal_key *k = cipher->key_borrow(e, tx->profile, &f->rtcp);
	struct seal_packet p = {
		.bytes = bytes,
		.len = len + seal_tag_bytes(tx->profile) + SEAL_RTCP_WORD_BYTES,
		.ssrc = be32_read(bytes + 4),
		.index = tx->rtcp_index,
	};

	if (seal_is_gcm(tx->profile)) {
		uint8_t aad[12], iv[12];
		struct seal_gcm g;

		rtcp_gcm(&g, aad, iv, &p, k);
		cipher->gcm_seal(e, k, &g);
		memcpy(bytes + p.len - SEAL_RTCP_WORD_BYTES, aad + SEAL_RTCP_MIN_BYTES,
		       SEAL_RTCP_WORD_BYTES);
	} else {
		uint8_t iv[16];

		seal_cm_iv(iv, k->salt, p.ssrc, p.index);
		cipher->ctr(e, k, iv, bytes + SEAL_RTCP_MIN_BYTES, len - SEAL_RTCP_MIN_BYTES);
		be32_write(bytes + len, SEAL_RTCP_E_FLAG | tx->rtcp_index);
		seal_hmac_tag(seal_key_hmac(k), bytes, len + SEAL_RTCP_WORD_BYTES, NULL,
			      bytes + len + SEAL_RTCP_WORD_BYTES);
	}
	cipher->key_return(e, k);
	return true;
}

static bool cm_is_authentic(const struct seal_key *k, const struct seal_packet *p,
			    const uint8_t *roc)
{
	uint8_t tag[SEAL_SHA1_TAG_BYTES];
	size_t covered = p->len - SEAL_SHA1_TAG_BYTES;

	seal_hmac_tag(seal_key_hmac(k), p->bytes, covered, roc, tag);
	return digest_is_equal(tag, p->bytes + covered, sizeof(tag));
}

static bool open_rtp_with(struct seal_engine *e, struct seal_key *k, const struct seal_packet *p)
{
	size_t tag_bytes = seal_tag_bytes(k->profile);
	uint8_t *payload = p->bytes + p->header_bytes;
	size_t payload_bytes = p->len - p->header_bytes - tag_bytes;
	uint8_t iv[16], roc[4];

	if (seal_is_gcm(k->profile)) {
		struct seal_gcm g = {
			.iv = iv,
			.aad = p->bytes,
			.aad_bytes = p->header_bytes,
			.bytes = payload,
			.len = payload_bytes,
			.tag = p->bytes + p->len - tag_bytes,
		};

		seal_gcm_iv(iv, k->salt, p->ssrc, p->index);
		return e->ops->cipher->gcm_open(e, k, &g);
	}
	be32_write(roc, (uint32_t)(p->index >> 16));
	if (!cm_is_authentic(k, p, roc))
		return false;
	seal_cm_iv(iv, k->salt, p->ssrc, p->index);
	e->ops->cipher->ctr(e, k, iv, payload, payload_bytes);
	return true;
}

bool seal_framed_open_rtp(struct seal_engine *e, struct seal_rx *rx, const struct seal_packet *p)
{
	const struct seal_cipher *cipher = e->ops->cipher;
	struct seal_framed_rx *f = (struct seal_framed_rx *)rx;
	struct seal_key *k;
	bool ok;

	if (f->rtp)
		return open_rtp_with(e, f->rtp, p);
	k = cipher->key_borrow(e, rx->profile, &f->rtp_session);
	ok = open_rtp_with(e, k, p);
	cipher->key_return(e, k);
	/* Without memory the borrowed key goes on to serve, and the next packet tries again. */
	if (ok && cipher->key_create(&f->rtp, e, rx->profile, &f->rtp_session))
		f->rtp = NULL;
	return ok;
}

bool seal_framed_open_rtcp(struct seal_engine *e, struct seal_rx *rx, const struct seal_packet *p)
{
	const struct seal_cipher *cipher = e->ops->cipher;
	struct seal_framed_rx *f = (struct seal_framed_rx *)rx;
	struct seal_key *k = cipher->key_borrow(e, rx->profile, &f->rtcp);
	bool ok;

	if (seal_is_gcm(rx->profile)) {
		uint8_t aad[12], iv[12];
		struct seal_gcm g;

		rtcp_gcm(&g, aad, iv, p, k);
		ok = cipher->gcm_open(e, k, &g);
	} else {
		uint8_t iv[16];

		ok = cm_is_authentic(k, p, NULL);
		seal_cm_iv(iv, k->salt, p->ssrc, p->index);
		if (ok)
			cipher->ctr(e, k, iv, p->bytes + SEAL_RTCP_MIN_BYTES,
				    p->len - SEAL_RTCP_MIN_BYTES - SEAL_RTCP_WORD_BYTES -
					SEAL_SHA1_TAG_BYTES);
	}
	cipher->key_return(e, k);
	return ok;
}
