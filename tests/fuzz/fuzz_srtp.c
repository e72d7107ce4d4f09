/* The input is a history of datagrams at one receiver: genuine packets whole, changed, cut or
 * repeated, and bytes made up. Nothing forged may open, nothing may open twice, and no byte
 * outside a packet is touched (each lies in a block of its exact size). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/srtp.h"
#include "pool/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENGINES = 3, PROFILES = 3, INDICES = 4096, SSRCS = 20, MAX_BYTES = 512 };

static const enum seal_engine_kind kinds[ENGINES] = { SEAL_ENGINE_AUTO, SEAL_ENGINE_EVP,
						      SEAL_ENGINE_LIBSRTP };
static const enum seal_profile profiles[PROFILES] = { SEAL_AES_CM_128_HMAC_SHA1_80,
						      SEAL_AEAD_AES_128_GCM,
						      SEAL_AEAD_AES_256_GCM };

static struct seal_engine *engines[ENGINES];

struct history {
	struct seal_engine *e;
	struct seal_tx *tx;
	struct seal_rx *rx;
	bool opened[SSRCS][INDICES];
};

static const struct seal_keys *keys_of(enum seal_profile profile)
{
	static struct seal_keys keys;

	keys.profile = profile;
	memset(keys.key, 0x17, sizeof(keys.key));
	memset(keys.salt, 0x2b, sizeof(keys.salt));
	return &keys;
}

/** A copy with nothing around it, so that a stray access is seen. */
static uint8_t *exact(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	assert(copy);
	memcpy(copy, bytes, n);
	return copy;
}

/* Few bits tell SSRC, index and size, so that the fuzzer meets repeats and full tables. */
static size_t make_rtp(struct history *h, uint16_t seed, uint8_t *out)
{
	uint8_t header[12] = { 0x80, 96 }, payload[64];
	uint32_t ssrc = seed % SSRCS;
	struct seal_job job = { .tx = h->tx,
				.index = seed % INDICES,
				.header = header,
				.header_bytes = sizeof(header),
				.payload = payload,
				.payload_bytes = seed % sizeof(payload),
				.out = out };

	be16_write(header + 2, (uint16_t)job.index);
	be32_write(header + 8, ssrc);
	memset(payload, seed & 0x7f, sizeof(payload));
	seal_rtp(h->e, &job, 1);
	return sizeof(header) + job.payload_bytes + seal_tag_bytes(seal_tx_profile(h->tx));
}

static void open_rtp(struct history *h, const uint8_t *bytes, size_t n, bool genuine)
{
	uint8_t *copy = exact(bytes, n);
	uint64_t index = UINT64_MAX;
	size_t len = n;
	enum seal_verdict verdict = seal_open_rtp(h->e, h->rx, copy, &len, &index);

	assert(verdict < SEAL_VERDICTS);
	if (verdict == SEAL_OK) {
		uint32_t ssrc = be32_read(bytes + 8);

		assert(genuine);
		assert(len == n - seal_tag_bytes(seal_tx_profile(h->tx)));
		assert(index < INDICES && (uint16_t)index == be16_read(bytes + 2));
		assert(ssrc < SSRCS && !h->opened[ssrc][index]);
		h->opened[ssrc][index] = true;
	} else {
		assert(len == n && index == UINT64_MAX);
	}
	free(copy);
}

static void open_rtcp(struct history *h, const uint8_t *bytes, size_t n, bool genuine)
{
	uint8_t *copy = exact(bytes, n);
	size_t len = n;
	enum seal_verdict verdict = seal_open_rtcp(h->e, h->rx, copy, &len);

	assert(verdict < SEAL_VERDICTS);
	if (verdict == SEAL_OK) {
		assert(genuine);
		assert(len == n - seal_tag_bytes(seal_tx_profile(h->tx)) - 4);
	} else {
		assert(len == n);
	}
	free(copy);
}

/** What happens to a genuine packet on its way; returns whether it is still genuine. */
static bool disturb(uint8_t *bytes, size_t *n, const uint8_t op[5])
{
	switch (op[0] >> 4 & 3) {
	case 0:
		return true;
	case 1: /* one byte changed, or none */
		bytes[op[3] % *n] ^= op[4];
		return op[4] == 0;
	case 2: { /* cut, or not */
		size_t cut = op[3] % *n;

		*n -= cut;
		return cut == 0;
	}
	default: /* bytes added behind */
		memset(bytes + *n, op[4], 4);
		*n += 4;
		return false;
	}
}

static void step(struct history *h, const uint8_t op[5])
{
	uint8_t bytes[MAX_BYTES];
	uint16_t seed = be16_read(op + 1);
	bool genuine;
	size_t n;

	if (op[0] & 1) {
		n = make_rtp(h, seed, bytes);
		genuine = disturb(bytes, &n, op);
		open_rtp(h, bytes, n, genuine);
		return;
	}
	n = 8 + 4 * (size_t)(seed % 32);
	memset(bytes, op[4], n);
	bytes[0] = 0x80;
	be32_write(bytes + 4, seed % SSRCS);
	n = (size_t)seal_rtcp(h->e, h->tx, bytes, n, sizeof(bytes));
	genuine = disturb(bytes, &n, op);
	open_rtcp(h, bytes, n, genuine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct history h;
	size_t kind, profile;

	if (size < 2)
		return 0;
	kind = data[0] % ENGINES;
	profile = data[0] / ENGINES % PROFILES;
	memset(&h, 0, sizeof(h));
	if (!engines[kind] && seal_engine_create(&engines[kind], kinds[kind]))
		abort();
	h.e = engines[kind];
	if (seal_tx_create(&h.tx, h.e, keys_of(profiles[profile])) ||
	    seal_rx_create(&h.rx, h.e, keys_of(profiles[profile])))
		abort();
	data++;
	size--;
	/* Half of the inputs are histories; the other half is one datagram made up. */
	if (data[0] & 0x80) {
		open_rtp(&h, data + 1, size - 1, false);
		open_rtcp(&h, data + 1, size - 1, false);
	} else {
		for (; size >= 5; data += 5, size -= 5)
			step(&h, data);
	}
	seal_tx_destroy(h.tx);
	seal_rx_destroy(h.rx);
	return 0;
}
