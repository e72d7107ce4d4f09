/* tests/net/srtp_kit.h - packets, seeds and engines that the SRTP tests share. */
#ifndef TESTS_NET_SRTP_KIT_H
#define TESTS_NET_SRTP_KIT_H

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "net/srtp.h"
#include "pool/bytes.h"

enum { KIT_ENGINES = 3, KIT_PROFILES = 3, KIT_PACKET_BYTES = 1600 };

static const enum seal_engine_kind kit_kinds[KIT_ENGINES] = {
	SEAL_ENGINE_IPSECMB,
	SEAL_ENGINE_EVP,
	SEAL_ENGINE_LIBSRTP,
};

static const enum seal_profile kit_profiles[KIT_PROFILES] = {
	SEAL_AES_CM_128_HMAC_SHA1_80,
	SEAL_AEAD_AES_128_GCM,
	SEAL_AEAD_AES_256_GCM,
};

/* xorshift64*: the same history in every run. */
static inline uint64_t kit_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t kit_below(uint64_t *state, uint32_t bound)
{
	return (uint32_t)((kit_random(state) >> 32) % bound);
}

static inline void kit_fill(uint64_t *state, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(kit_random(state) >> 32);
}

static inline struct seal_keys kit_keys(enum seal_profile profile, uint64_t seed)
{
	struct seal_keys keys = { .profile = profile };

	kit_fill(&seed, keys.key, sizeof(keys.key));
	kit_fill(&seed, keys.salt, sizeof(keys.salt));
	return keys;
}

/** False where this machine has no such engine; only ipsecmb may be missing. */
static inline bool kit_engine(struct seal_engine **out, enum seal_engine_kind kind)
{
	int err = seal_engine_create(out, kind);

	if (err == -ENOTSUP && kind == SEAL_ENGINE_IPSECMB)
		return false;
	cr_assert_eq(err, 0, "engine %d: %d", (int)kind, err);
	return true;
}

/* A context of each direction under the same keys, in engines of their own. */
struct kit_pair {
	struct seal_engine *sealer, *opener;
	struct seal_tx *tx;
	struct seal_rx *rx;
};

static inline bool kit_pair_init(struct kit_pair *p, enum seal_engine_kind sealer,
				 enum seal_engine_kind opener, enum seal_profile profile)
{
	struct seal_keys keys = kit_keys(profile, 7);

	if (!kit_engine(&p->sealer, sealer))
		return false;
	if (!kit_engine(&p->opener, opener)) {
		seal_engine_destroy(p->sealer);
		return false;
	}
	cr_assert_eq(seal_tx_create(&p->tx, p->sealer, &keys), 0);
	cr_assert_eq(seal_rx_create(&p->rx, p->opener, &keys), 0);
	return true;
}

static inline void kit_pair_fini(struct kit_pair *p)
{
	seal_tx_destroy(p->tx);
	seal_rx_destroy(p->rx);
	seal_engine_destroy(p->sealer);
	seal_engine_destroy(p->opener);
}

static inline void kit_header(uint8_t header[12], uint32_t ssrc, uint64_t index)
{
	header[0] = 0x80;
	header[1] = 96;
	be16_write(header + 2, (uint16_t)index);
	be32_write(header + 4, (uint32_t)index * 90);
	be32_write(header + 8, ssrc);
}

/** Seal a packet of n payload bytes, which follow from SSRC and index; returns its length. */
static inline size_t kit_seal(struct kit_pair *p, uint32_t ssrc, uint64_t index, size_t n,
			      uint8_t *out)
{
	uint8_t payload[KIT_PACKET_BYTES];
	uint8_t header[12];
	uint64_t seed = index << 20 ^ ssrc ^ 1;
	struct seal_job job = {
		.tx = p->tx,
		.index = index,
		.header = header,
		.payload = payload,
		.header_bytes = sizeof(header),
		.payload_bytes = (uint16_t)n,
		.out = out,
	};

	kit_header(header, ssrc, index);
	kit_fill(&seed, payload, n);
	seal_rtp(p->sealer, &job, 1);
	return sizeof(header) + n + seal_tag_bytes(seal_tx_profile(p->tx));
}

/** Open a copy, so that the packet can be used again. */
static inline enum seal_verdict kit_open(struct kit_pair *p, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len + 1);
	enum seal_verdict verdict;
	uint64_t index;

	memcpy(copy, bytes, len);
	verdict = seal_open_rtp(p->opener, p->rx, copy, &len, &index);
	free(copy);
	return verdict;
}

static inline enum seal_verdict kit_open_rtcp(struct kit_pair *p, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len + 1);
	enum seal_verdict verdict;

	memcpy(copy, bytes, len);
	verdict = seal_open_rtcp(p->opener, p->rx, copy, &len);
	free(copy);
	return verdict;
}

/** A receiver report of n bytes from ssrc, sealed; returns its length. */
static inline size_t kit_seal_rtcp(struct kit_pair *p, uint32_t ssrc, size_t n, uint8_t *out,
				   size_t cap)
{
	int len;

	memset(out, 0x5a, n);
	out[0] = 0x80;
	out[1] = 201;
	be16_write(out + 2, (uint16_t)(n / 4 - 1));
	be32_write(out + 4, ssrc);
	len = seal_rtcp(p->sealer, p->tx, out, n, cap);
	cr_assert_gt(len, 0);
	return (size_t)len;
}

#endif
