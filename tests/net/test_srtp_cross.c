/* Each engine checks the others: the same packets sealed by all, opened by all, after loss,
 * reordering, repeats and wraps, against a model that keeps the true index of everything. */
#include "tests/net/srtp_kit.h"

TestSuite(srtp_cross, .timeout = 120);

enum {
	RTP_PACKETS = 100000,
	RTCP_STEPS = 33334, /* each of three engines seals, so 10^5 packets */
	SSRCS = 3,
	HELD = 32, /* packets that wait to arrive late */
	MAX_INDEX = 1 << 20,
};

/* What a receiver must make of an index: the rule of RFC 3711 3.3.2, without any guessing. */
struct model {
	uint64_t top;
	bool started;
	uint8_t seen[MAX_INDEX / 8];
};

struct arrival {
	uint64_t index;
	size_t len, plain_len;
	uint8_t ssrc_at;
	bool used;
	uint8_t plain[KIT_PACKET_BYTES];
	uint8_t sealed[KIT_PACKET_BYTES];
};

struct field {
	enum seal_profile profile;
	uint64_t seed;
	size_t engines_count;
	struct seal_engine *engines[KIT_ENGINES];
	struct seal_tx *tx[KIT_ENGINES];
	struct seal_rx *rx[KIT_ENGINES];
	uint64_t next[SSRCS];
	unsigned verdicts[SEAL_VERDICTS];
	struct model models[SSRCS];
	struct arrival held[HELD];
};

static struct field b;

static void field_init(enum seal_profile profile)
{
	struct seal_keys keys = kit_keys(profile, 99);

	memset(&b, 0, sizeof(b));
	b.profile = profile;
	b.seed = 0x5eed + (uint64_t)profile;
	for (int i = 0; i < KIT_ENGINES; i++) {
		size_t at = b.engines_count;

		if (!kit_engine(&b.engines[at], kit_kinds[i]))
			continue;
		cr_assert_eq(seal_tx_create(&b.tx[at], b.engines[at], &keys), 0);
		cr_assert_eq(seal_rx_create(&b.rx[at], b.engines[at], &keys), 0);
		b.engines_count++;
	}
	/* Close to the first wrap on both sides, and far from it. */
	b.next[0] = 0xff00;
	b.next[1] = 5;
	b.next[2] = 0x7ff0;
}

static void field_fini(void)
{
	for (size_t i = 0; i < b.engines_count; i++) {
		cr_expect_eq(seal_engine_failures(b.engines[i]), 0);
		seal_tx_destroy(b.tx[i]);
		seal_rx_destroy(b.rx[i]);
		seal_engine_destroy(b.engines[i]);
	}
}

static bool bit_test(const uint8_t *bits, uint64_t at)
{
	return bits[at / 8] >> at % 8 & 1;
}

static enum seal_verdict model_expect(struct model *m, uint64_t index)
{
	cr_assert_lt(index, MAX_INDEX);
	if (m->started && m->top >= index + SEAL_REPLAY_WINDOW_PKTS)
		return SEAL_REPLAYED;
	if (bit_test(m->seen, index))
		return SEAL_REPLAYED;
	m->seen[index / 8] |= (uint8_t)(1 << index % 8);
	if (!m->started || index > m->top)
		m->top = index;
	m->started = true;
	return SEAL_OK;
}

/** A header with CSRCs or an extension now and then; returns its length. */
static size_t make_header(uint8_t *out, uint32_t ssrc, uint64_t index)
{
	size_t n = 12;

	kit_header(out, ssrc, index);
	if (kit_below(&b.seed, 4) == 0) {
		uint32_t csrcs = kit_below(&b.seed, 16);

		out[0] |= (uint8_t)csrcs;
		kit_fill(&b.seed, out + n, 4 * csrcs);
		n += 4 * csrcs;
	}
	if (kit_below(&b.seed, 2) == 0) {
		uint32_t words = kit_below(&b.seed, 8);

		out[0] |= 0x10;
		be16_write(out + n, 0xbede);
		be16_write(out + n + 2, (uint16_t)words);
		kit_fill(&b.seed, out + n + 4, 4 * words);
		n += 4 + 4 * words;
	}
	return n;
}

/** Seal one random packet in every engine, in pieces of random sizes; the bytes must agree. */
static void seal_everywhere(struct arrival *a)
{
	uint8_t others[KIT_PACKET_BYTES + 1];
	size_t header = make_header(a->plain, 0x1000u + a->ssrc_at, a->index);
	size_t payload = 1 + kit_below(&b.seed, 1300);
	size_t lead = kit_below(&b.seed, 3) == 0 ? kit_below(&b.seed, 40) : 0;
	struct seal_job job = { .index = a->index, .header = a->plain };

	if (lead > payload)
		lead = payload;
	kit_fill(&b.seed, a->plain + header, payload);
	job.header_bytes = (uint16_t)header;
	job.lead = a->plain + header;
	job.lead_bytes = (uint16_t)lead;
	job.payload = job.lead + lead;
	job.payload_bytes = (uint16_t)(payload - lead);
	a->plain_len = header + payload;
	a->len = a->plain_len + seal_tag_bytes(b.profile);
	for (size_t i = 0; i < b.engines_count; i++) {
		job.tx = b.tx[i];
		job.out = i == 0 ? a->sealed : others;
		job.out[a->len] = 0xa5;
		seal_rtp(b.engines[i], &job, 1);
		cr_assert_eq(job.out[a->len], 0xa5, "%s writes too much",
			     seal_engine_name(b.engines[i]));
		if (i > 0)
			cr_assert_arr_eq(others, a->sealed, a->len, "%s, index %lu",
					 seal_engine_name(b.engines[i]), a->index);
	}
}

static void open_everywhere(const struct arrival *a)
{
	enum seal_verdict want = model_expect(&b.models[a->ssrc_at], a->index);

	b.verdicts[want]++;
	for (size_t i = 0; i < b.engines_count; i++) {
		uint8_t copy[KIT_PACKET_BYTES];
		size_t len = a->len;
		uint64_t index = 0;
		enum seal_verdict got;

		memcpy(copy, a->sealed, len);
		got = seal_open_rtp(b.engines[i], b.rx[i], copy, &len, &index);
		cr_assert_eq(got, want, "%s, index %lu: %d, not %d", seal_engine_name(b.engines[i]),
			     a->index, (int)got, (int)want);
		if (want != SEAL_OK)
			continue;
		cr_assert_eq(index, a->index);
		cr_assert_eq(len, a->plain_len);
		cr_assert_arr_eq(copy, a->plain, len);
	}
}

/* One packet leaves; it is lost, arrives, arrives twice, or waits for a random later turn. */
static void step(void)
{
	static struct arrival fresh;
	struct arrival *slot = &b.held[kit_below(&b.seed, HELD)];
	uint32_t fate = kit_below(&b.seed, 100);

	if (slot->used && kit_below(&b.seed, 20) == 0) {
		/* Half a cycle late the index can no longer be guessed. */
		if (slot->index + 0x8000 > b.models[slot->ssrc_at].top)
			open_everywhere(slot);
		slot->used = false;
	}
	fresh.ssrc_at = (uint8_t)kit_below(&b.seed, SSRCS);
	fresh.index = b.next[fresh.ssrc_at];
	/* A gap now and then is a long loss: up to what the index of RFC 3711 can bridge. */
	b.next[fresh.ssrc_at] +=
	    kit_below(&b.seed, 2000) == 0 ? kit_below(&b.seed, 20000) : 1 + kit_below(&b.seed, 3);
	seal_everywhere(&fresh);
	if (fate < 8 && !slot->used) {
		*slot = fresh;
		slot->used = true;
	} else if (fate >= 15) {
		open_everywhere(&fresh);
		if (fate >= 96)
			open_everywhere(&fresh);
	}
}

static void run_rtp(enum seal_profile profile)
{
	field_init(profile);
	for (int i = 0; i < RTP_PACKETS; i++)
		step();
	for (size_t i = 0; i < SSRCS; i++)
		cr_expect_gt(b.models[i].top, 65536, "SSRC %zu wrapped", i);
	cr_expect_gt(b.verdicts[SEAL_OK], RTP_PACKETS / 2);
	cr_expect_gt(b.verdicts[SEAL_REPLAYED], 1000);
	field_fini();
}

Test(srtp_cross, rtp_under_aes_cm_agrees_in_every_engine)
{
	run_rtp(SEAL_AES_CM_128_HMAC_SHA1_80);
}

Test(srtp_cross, rtp_under_aes_128_gcm_agrees_in_every_engine)
{
	run_rtp(SEAL_AEAD_AES_128_GCM);
}

Test(srtp_cross, rtp_under_aes_256_gcm_agrees_in_every_engine)
{
	run_rtp(SEAL_AEAD_AES_256_GCM);
}

/* RTCP: libsrtp2 counts its indices from 1 and we from 0, so each sealer has receivers of its own. */
static void open_rtcp(struct seal_engine *e, struct seal_rx *rx, const uint8_t *sealed, size_t len,
		      const uint8_t *plain, size_t plain_len)
{
	uint8_t copy[KIT_PACKET_BYTES];

	memcpy(copy, sealed, len);
	cr_assert_eq(seal_open_rtcp(e, rx, copy, &len), SEAL_OK, "%s", seal_engine_name(e));
	cr_assert_eq(len, plain_len);
	cr_assert_arr_eq(copy, plain, len);
}

static void rtcp_step(struct seal_rx *rx[KIT_ENGINES][KIT_ENGINES])
{
	uint8_t plain[KIT_PACKET_BYTES], sealed[KIT_PACKET_BYTES];
	size_t n = 8 + 4 * (size_t)kit_below(&b.seed, 300);

	kit_fill(&b.seed, plain, n);
	plain[0] = (uint8_t)(0x80 | (plain[0] & 0x1f));
	plain[1] = (uint8_t)(200 + plain[1] % 8);
	be32_write(plain + 4, 0x1000u + kit_below(&b.seed, SSRCS));
	for (size_t from = 0; from < b.engines_count; from++) {
		bool lost = kit_below(&b.seed, 10) == 0;
		int len;

		memcpy(sealed, plain, n);
		len = seal_rtcp(b.engines[from], b.tx[from], sealed, n, sizeof(sealed));
		cr_assert_eq((size_t)len, n + seal_tag_bytes(b.profile) + 4);
		for (size_t to = 0; to < b.engines_count && !lost; to++) {
			size_t again = (size_t)len;

			open_rtcp(b.engines[to], rx[from][to], sealed, (size_t)len, plain, n);
			cr_assert_eq(seal_open_rtcp(b.engines[to], rx[from][to], sealed, &again),
				     SEAL_REPLAYED);
		}
	}
}

static void run_rtcp(enum seal_profile profile)
{
	struct seal_rx *rx[KIT_ENGINES][KIT_ENGINES] = { 0 };
	struct seal_keys keys = kit_keys(profile, 99);

	field_init(profile);
	for (size_t from = 0; from < b.engines_count; from++)
		for (size_t to = 0; to < b.engines_count; to++)
			cr_assert_eq(seal_rx_create(&rx[from][to], b.engines[to], &keys), 0);
	for (int i = 0; i < RTCP_STEPS; i++)
		rtcp_step(rx);
	for (size_t i = 0; i < KIT_ENGINES * KIT_ENGINES; i++)
		seal_rx_destroy(rx[i / KIT_ENGINES][i % KIT_ENGINES]);
	field_fini();
}

Test(srtp_cross, rtcp_under_aes_cm_opens_in_every_engine)
{
	run_rtcp(SEAL_AES_CM_128_HMAC_SHA1_80);
}

Test(srtp_cross, rtcp_under_aes_128_gcm_opens_in_every_engine)
{
	run_rtcp(SEAL_AEAD_AES_128_GCM);
}

Test(srtp_cross, rtcp_under_aes_256_gcm_opens_in_every_engine)
{
	run_rtcp(SEAL_AEAD_AES_256_GCM);
}
