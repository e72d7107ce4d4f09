/* What one context promises, in every engine and profile. */
#include "net/srtp.h"

#include <signal.h>

#include "net/srtp_internal.h"
#include "net/srtp_record.h"
#include "tests/net/srtp_kit.h"

TestSuite(srtp, .timeout = 30);

/* Run a check for every engine and profile; the pair is fresh each time. */
static void for_all(void (*check)(struct kit_pair *p, enum seal_profile profile))
{
	for (int i = 0; i < KIT_ENGINES; i++) {
		for (int k = 0; k < KIT_PROFILES; k++) {
			struct kit_pair p;

			if (!kit_pair_init(&p, kit_kinds[i], kit_kinds[i], kit_profiles[k]))
				continue;
			check(&p, kit_profiles[k]);
			kit_pair_fini(&p);
		}
	}
}

#define WHERE(more) "%s, profile %d" more, seal_engine_name(p->sealer), (int)profile

Test(srtp, auto_picks_ipsecmb_where_it_runs_else_evp)
{
	struct seal_engine *e, *best;

	cr_assert(kit_engine(&e, SEAL_ENGINE_AUTO));
	if (kit_engine(&best, SEAL_ENGINE_IPSECMB)) {
		cr_expect_str_eq(seal_engine_name(e), "ipsecmb");
		seal_engine_destroy(best);
	} else {
		cr_expect_str_eq(seal_engine_name(e), "evp");
	}
	seal_engine_destroy(e);
}

Test(srtp, an_unknown_profile_is_refused)
{
	struct seal_keys keys = { .profile = (enum seal_profile)2 };

	for (int i = 0; i < KIT_ENGINES; i++) {
		struct seal_engine *e;
		struct seal_tx *tx;
		struct seal_rx *rx;

		if (!kit_engine(&e, kit_kinds[i]))
			continue;
		cr_expect_eq(seal_tx_create(&tx, e, &keys), -EINVAL);
		cr_expect_eq(seal_rx_create(&rx, e, &keys), -EINVAL);
		cr_expect_null(tx);
		cr_expect_null(rx);
		seal_engine_destroy(e);
	}
	cr_expect_not(seal_profile_is_known(0));
	cr_expect_not(seal_profile_is_known(2));
}

Test(srtp, profiles_have_the_names_of_the_registry)
{
	cr_expect_str_eq(seal_profile_text(1), "AES128_CM_HMAC_SHA1_80");
	cr_expect_str_eq(seal_profile_text(7), "AEAD_AES_128_GCM");
	cr_expect_str_eq(seal_profile_text(8), "AEAD_AES_256_GCM");
	cr_expect_null(seal_profile_text(0));
	cr_expect_null(seal_profile_text(2));
}

static void check_rtp_tampering(struct kit_pair *p, enum seal_profile profile)
{
	uint8_t out[KIT_PACKET_BYTES];
	size_t len = kit_seal(p, 9, 100, 60, out);

	for (size_t at = 0; at < len; at++) {
		for (int bit = 0; bit < 8; bit++) {
			out[at] ^= (uint8_t)(1 << bit);
			cr_expect_neq(kit_open(p, out, len), SEAL_OK, WHERE(""));
			out[at] ^= (uint8_t)(1 << bit);
		}
	}
	for (size_t n = 0; n < len; n++)
		cr_expect_neq(kit_open(p, out, n), SEAL_OK, WHERE(""));
	out[len] = 0;
	cr_expect_eq(kit_open(p, out, len + 1), SEAL_AUTH_FAILED, WHERE(""));
	/* None of it counted as seen, nor moved the window. */
	cr_expect_eq(kit_open(p, out, len), SEAL_OK, WHERE(""));
}

Test(srtp, rtp_changed_in_any_bit_or_cut_anywhere_does_not_open)
{
	for_all(check_rtp_tampering);
}

static void check_rtcp_tampering(struct kit_pair *p, enum seal_profile profile)
{
	uint8_t out[128];
	size_t len = kit_seal_rtcp(p, 9, 32, out, sizeof(out));

	for (size_t at = 0; at < len; at++) {
		for (int bit = 0; bit < 8; bit++) {
			out[at] ^= (uint8_t)(1 << bit);
			cr_expect_neq(kit_open_rtcp(p, out, len), SEAL_OK, WHERE(""));
			out[at] ^= (uint8_t)(1 << bit);
		}
	}
	for (size_t n = 0; n < len; n++)
		cr_expect_neq(kit_open_rtcp(p, out, n), SEAL_OK, WHERE(""));
	cr_expect_eq(kit_open_rtcp(p, out, len), SEAL_OK, WHERE(""));
	cr_expect_eq(kit_open_rtcp(p, out, len), SEAL_REPLAYED, WHERE(""));
}

Test(srtp, rtcp_changed_in_any_bit_or_cut_anywhere_does_not_open)
{
	for_all(check_rtcp_tampering);
}

static void check_malformed(struct kit_pair *p, enum seal_profile profile)
{
	uint8_t out[KIT_PACKET_BYTES];
	size_t tag = seal_tag_bytes(profile);
	size_t len = kit_seal(p, 9, 100, 20, out);

	cr_expect_eq(kit_open(p, out, 0), SEAL_MALFORMED, WHERE(""));
	cr_expect_eq(kit_open(p, out, 12 + tag - 1), SEAL_MALFORMED, WHERE(""));
	cr_expect_eq(kit_open(p, out, 12 + tag), SEAL_AUTH_FAILED, WHERE(""));
	out[0] = 0x40;
	cr_expect_eq(kit_open(p, out, len), SEAL_MALFORMED, WHERE(" (version 1)"));
	out[0] = 0x8f; /* 60 bytes of CSRCs do not fit */
	cr_expect_eq(kit_open(p, out, len), SEAL_MALFORMED, WHERE(" (CSRCs)"));
	out[0] = 0x90;
	be16_write(out + 14, 5); /* an extension of 24 bytes in 20 */
	cr_expect_eq(kit_open(p, out, len), SEAL_MALFORMED, WHERE(" (extension)"));
	be16_write(out + 14, 4);
	cr_expect_eq(kit_open(p, out, len), SEAL_AUTH_FAILED, WHERE(" (extension fits)"));
	len = kit_seal_rtcp(p, 9, 8, out, sizeof(out));
	cr_expect_eq(kit_open_rtcp(p, out, len - 1), SEAL_MALFORMED, WHERE(""));
	out[0] ^= 0x40;
	cr_expect_eq(kit_open_rtcp(p, out, len), SEAL_MALFORMED, WHERE(""));
}

Test(srtp, what_cannot_be_a_packet_is_malformed)
{
	for_all(check_malformed);
}

/* Age in packets below the highest index when the packet comes for the first time. */
static const struct {
	uint64_t age;
	enum seal_verdict want;
} ages[] = {
	{ 1, SEAL_OK },
	{ 63, SEAL_OK },
	{ 64, SEAL_OK },
	{ SEAL_REPLAY_WINDOW_PKTS - 1, SEAL_OK },
	{ SEAL_REPLAY_WINDOW_PKTS, SEAL_REPLAYED },
	{ SEAL_REPLAY_WINDOW_PKTS + 1, SEAL_REPLAYED },
	{ 20000, SEAL_REPLAYED },
};

static void check_replay(struct kit_pair *p, enum seal_profile profile)
{
	static const uint64_t tops[] = { 30000, 65535, 65536, 65537, 66000, 98304 };
	static uint8_t old[7][KIT_PACKET_BYTES];
	uint8_t out[KIT_PACKET_BYTES];
	size_t len = 0;

	for (uint32_t t = 0; t < 6; t++) {
		/* Lead the receiver up to the wrap in steps whose index it can guess. */
		for (uint64_t index = 1; index < tops[t]; index += 25000) {
			len = kit_seal(p, t, index, 50, out);
			cr_assert_eq(kit_open(p, out, len), SEAL_OK, WHERE(""));
		}
		for (size_t i = 7; i-- > 0;)
			kit_seal(p, t, tops[t] - ages[i].age, 50, old[i]);
		kit_seal(p, t, tops[t], 50, out);
		cr_assert_eq(kit_open(p, out, len), SEAL_OK, WHERE(""));
		cr_expect_eq(kit_open(p, out, len), SEAL_REPLAYED, WHERE(""));
		for (size_t i = 0; i < 7; i++) {
			cr_expect_eq(kit_open(p, old[i], len), ages[i].want,
				     WHERE(", age %lu of %lu"), ages[i].age, tops[t]);
			cr_expect_eq(kit_open(p, old[i], len), SEAL_REPLAYED, WHERE(""));
		}
	}
}

Test(srtp, each_packet_opens_once_and_only_within_the_window)
{
	for_all(check_replay);
}

/* RFC 3711 3.3.1: an index is guessed right as long as it lies less than half a cycle ahead. */
static void check_guess(struct kit_pair *p, enum seal_profile profile)
{
	static const uint64_t starts[] = { 0, 1, 32767, 32768, 32769, 40000, 65534, 65535 };
	static const uint64_t steps[] = { 1, 600, 32766, 32767 };
	struct seal_keys keys = kit_keys(profile, 7);
	uint8_t out[KIT_PACKET_BYTES];

	for (uint32_t s = 0; s < 8; s++) {
		for (size_t i = 0; i < 4; i++) {
			struct kit_pair fresh = *p;
			uint64_t index = starts[s];

			cr_assert_eq(seal_rx_create(&fresh.rx, p->opener, &keys), 0);
			for (int n = 0; n < 5; n++, index += steps[i]) {
				size_t len = kit_seal(&fresh, s * 4 + (uint32_t)i, index, 20, out);

				cr_expect_eq(kit_open(&fresh, out, len), SEAL_OK,
					     WHERE(", %lu by %lu"), index, steps[i]);
			}
			seal_rx_destroy(fresh.rx);
		}
	}
}

Test(srtp, the_index_is_guessed_up_to_half_a_cycle_ahead)
{
	for_all(check_guess);
}

static void check_rtcp_window(struct kit_pair *p, enum seal_profile profile)
{
	enum { SEALS = SEAL_RTCP_WINDOW_PKTS + 3 };
	uint8_t out[SEALS][64];
	size_t len = 0;

	for (int i = 0; i < SEALS; i++)
		len = kit_seal_rtcp(p, 9, 16, out[i], sizeof(out[i]));
	cr_expect_eq(kit_open_rtcp(p, out[2], len), SEAL_OK, WHERE(""));
	cr_expect_eq(kit_open_rtcp(p, out[SEALS - 1], len), SEAL_OK, WHERE(""));
	cr_expect_eq(kit_open_rtcp(p, out[2], len), SEAL_REPLAYED, WHERE(""));
	cr_expect_eq(kit_open_rtcp(p, out[1], len), SEAL_REPLAYED, WHERE(""));
	for (int i = 3; i < SEALS - 1; i++) {
		cr_expect_eq(kit_open_rtcp(p, out[i], len), SEAL_OK, WHERE(""));
		cr_expect_eq(kit_open_rtcp(p, out[i], len), SEAL_REPLAYED, WHERE(""));
	}
	cr_expect_eq(kit_open_rtcp(p, out[SEALS - 1], len), SEAL_REPLAYED, WHERE(""));
}

Test(srtp, rtcp_opens_once_and_only_within_its_window)
{
	for_all(check_rtcp_window);
}

static void check_ssrcs(struct kit_pair *p, enum seal_profile profile)
{
	uint8_t out[KIT_PACKET_BYTES];
	size_t before, len = 0;

	/* Forged SSRCs take neither memory nor a place. */
	before = seal_rx_bytes(p->rx);
	for (uint32_t i = 0; i < 1000; i++) {
		len = kit_seal(p, i, 1, 50, out);
		out[20] ^= 1;
		cr_expect_eq(kit_open(p, out, len), SEAL_AUTH_FAILED, WHERE(""));
	}
	cr_expect_eq(seal_rx_bytes(p->rx), before, WHERE(""));
	for (uint32_t i = 0; i < SEAL_MAX_SSRCS; i++) {
		kit_seal(p, i, 2, 50, out);
		cr_expect_eq(kit_open(p, out, len), SEAL_OK, WHERE(""));
	}
	before = seal_rx_bytes(p->rx);
	for (uint32_t i = 0; i < 100; i++) {
		kit_seal(p, SEAL_MAX_SSRCS + i, 2, 50, out);
		cr_expect_eq(kit_open(p, out, len), SEAL_TOO_MANY_SSRCS, WHERE(""));
	}
	len = kit_seal_rtcp(p, 0xffff, 16, out, sizeof(out));
	cr_expect_eq(kit_open_rtcp(p, out, len), SEAL_TOO_MANY_SSRCS, WHERE(""));
	cr_expect_eq(seal_rx_bytes(p->rx), before, WHERE(""));
	/* RTCP shares the places of RTP; those who have one go on. */
	for (uint32_t i = 0; i < SEAL_MAX_SSRCS; i++) {
		len = kit_seal_rtcp(p, i, 16, out, sizeof(out));
		cr_expect_eq(kit_open_rtcp(p, out, len), SEAL_OK, WHERE(""));
		len = kit_seal(p, i, 3, 50, out);
		cr_expect_eq(kit_open(p, out, len), SEAL_OK, WHERE(""));
	}
}

Test(srtp, at_most_sixteen_ssrcs_that_authenticated_have_state)
{
	for_all(check_ssrcs);
}

static void check_repeats(struct kit_pair *p, enum seal_profile profile)
{
	static const uint64_t behind[] = { 0, 1, 500, 1023, 5000, SEAL_REPEAT_PKTS - 1 };
	uint8_t first[6][KIT_PACKET_BYTES], again[KIT_PACKET_BYTES];
	uint64_t top = UINT64_C(0x12345) << 16 | 3;
	size_t len = 0;

	for (size_t i = 6; i-- > 0;)
		len = kit_seal(p, 9, top - behind[i], 200, first[i]);
	for (size_t i = 0; i < 6; i++) {
		memset(again, 0, sizeof(again));
		kit_seal(p, 9, top - behind[i], 200, again);
		cr_expect_arr_eq(again, first[i], len, WHERE(", %lu behind"), behind[i]);
	}
	cr_expect_eq(seal_engine_failures(p->sealer), 0);
}

Test(srtp, sealing_again_gives_the_same_bytes)
{
	for_all(check_repeats);
}

static void check_empty(struct kit_pair *p, enum seal_profile profile)
{
	uint8_t out[64], other[64];
	size_t len = kit_seal(p, 9, 1, 0, out);
	struct kit_pair o;

	cr_expect_eq(len, 12 + seal_tag_bytes(profile));
	cr_assert(kit_pair_init(&o, SEAL_ENGINE_EVP, SEAL_ENGINE_EVP, profile));
	kit_seal(&o, 9, 1, 0, other);
	cr_expect_arr_eq(out, other, len, WHERE(""));
	cr_expect_eq(kit_open(p, out, len), SEAL_OK, WHERE(""));
	kit_pair_fini(&o);
}

Test(srtp, a_packet_without_payload_is_sealed_and_opened)
{
	for_all(check_empty);
}

static void check_rtcp_room(struct kit_pair *p, enum seal_profile profile)
{
	uint8_t out[64] = { 0x80, 201, 0, 1 };
	size_t extra = seal_tag_bytes(profile) + 4;

	cr_expect_leq(extra, SEAL_RTCP_MAX_EXTRA_BYTES);
	cr_expect_eq(seal_rtcp(p->sealer, p->tx, out, 8, 8 + extra - 1), -ENOSPC, WHERE(""));
	cr_expect_eq(out[0], 0x80, "nothing written");
	out[8 + extra] = 0xa5;
	cr_expect_eq(seal_rtcp(p->sealer, p->tx, out, 8, 8 + extra), 8 + (int)extra, WHERE(""));
	cr_expect_eq(out[8 + extra], 0xa5, WHERE(""));
	cr_expect_eq(kit_open_rtcp(p, out, 8 + extra), SEAL_OK, WHERE(""));
}

Test(srtp, rtcp_is_sealed_into_just_the_room_it_needs)
{
	for_all(check_rtcp_room);
}

static void check_used_up(struct kit_pair *p, enum seal_profile profile)
{
	uint8_t out[64] = { 0x80, 201, 0, 1 };

	p->tx->rtcp_index = SEAL_RTCP_INDEX_MAX;
	cr_expect_gt(seal_rtcp(p->sealer, p->tx, out, 8, sizeof(out)), 8, WHERE(""));
	cr_expect_eq(seal_rtcp(p->sealer, p->tx, out, 8, sizeof(out)), -EOVERFLOW, WHERE(""));
	cr_expect_eq(seal_rtcp(p->sealer, p->tx, out, 8, sizeof(out)), -EOVERFLOW, WHERE(""));
}

Test(srtp, a_used_up_rtcp_index_never_starts_again)
{
	for_all(check_used_up);
}

/* One batch over many contexts, profiles and sizes, against the same jobs one by one. */
static void check_batch(struct seal_engine *e, uint64_t *seed)
{
	enum { CONTEXTS = 12, JOBS = 300 };
	static uint8_t headers[JOBS][12], payload[1400], together[JOBS][1500], alone[1500];
	static struct seal_job jobs[JOBS];
	struct seal_tx *tx[CONTEXTS];

	kit_fill(seed, payload, sizeof(payload));
	for (size_t i = 0; i < CONTEXTS; i++) {
		struct seal_keys keys = kit_keys(kit_profiles[i % KIT_PROFILES], i + 1);

		cr_assert_eq(seal_tx_create(&tx[i], e, &keys), 0);
	}
	for (size_t i = 0; i < JOBS; i++) {
		jobs[i] = (struct seal_job){ .tx = tx[kit_below(seed, CONTEXTS)],
					     .index = i,
					     .header = headers[i],
					     .header_bytes = 12,
					     .lead = payload,
					     .lead_bytes = (uint16_t)(2 * kit_below(seed, 2)),
					     .payload = payload + 2,
					     .payload_bytes = (uint16_t)kit_below(seed, 1300),
					     .out = together[i] };
		kit_header(headers[i], 7, i);
	}
	seal_rtp(e, jobs, JOBS);
	for (size_t i = 0; i < JOBS; i++) {
		size_t len = 12u + jobs[i].lead_bytes + jobs[i].payload_bytes +
			     seal_tag_bytes(seal_tx_profile(jobs[i].tx));

		jobs[i].out = alone;
		seal_rtp(e, &jobs[i], 1);
		cr_expect_arr_eq(alone, together[i], len, "%s, job %zu", seal_engine_name(e), i);
	}
	for (size_t i = 0; i < CONTEXTS; i++)
		seal_tx_destroy(tx[i]);
}

Test(srtp, a_mixed_batch_gives_what_its_packets_give_alone)
{
	uint64_t seed = 11;

	for (int i = 0; i < KIT_ENGINES; i++) {
		struct seal_engine *e;

		if (!kit_engine(&e, kit_kinds[i]))
			continue;
		seal_rtp(e, NULL, 0);
		check_batch(e, &seed);
		seal_engine_destroy(e);
	}
}

/* libsrtp2 refuses what lies too far back; then nothing readable may leave. */
Test(srtp, what_libsrtp2_cannot_seal_leaves_as_zeros)
{
	static const uint8_t zeros[KIT_PACKET_BYTES];
	uint8_t out[KIT_PACKET_BYTES];
	struct kit_pair p;
	size_t len;

	cr_assert(kit_pair_init(&p, SEAL_ENGINE_LIBSRTP, SEAL_ENGINE_EVP, SEAL_AEAD_AES_128_GCM));
	kit_seal(&p, 9, 200000, 50, out);
	len = kit_seal(&p, 9, 200000 - 2 * SEAL_REPEAT_PKTS, 50, out);
	cr_expect_arr_eq(out, zeros, len);
	cr_expect_eq(seal_engine_failures(p.sealer), 1);
	kit_pair_fini(&p);
}

static bool record(struct seal_record *r, uint32_t ssrc, uint64_t index, uint8_t content)
{
	uint8_t header[12];
	struct seal_job job = { .index = index,
				.header = header,
				.header_bytes = 12,
				.payload = &content,
				.payload_bytes = 1 };

	kit_header(header, ssrc, index);
	return seal_record_is_consistent(r, &job);
}

Test(srtp, the_record_remembers_the_last_1024_seals)
{
	struct seal_record *r;

	cr_assert_eq(seal_record_create(&r), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t oldest = i + 1 >= SEAL_RECORD_SEALS ? i + 1 - SEAL_RECORD_SEALS : 0;

		cr_assert(record(r, 3, i, (uint8_t)i), "first seal of %lu", i);
		cr_assert(record(r, 3, i, (uint8_t)i), "same again");
		cr_assert_not(record(r, 3, i, (uint8_t)(i + 1)), "changed");
		cr_assert_not(record(r, 3, oldest, (uint8_t)(oldest + 1)), "the oldest");
	}
	cr_expect(record(r, 4, 4999, 1), "another SSRC");
	cr_expect(record(r, 3, 4999 - SEAL_RECORD_SEALS, 0), "forgotten");
	seal_record_destroy(r);
}

Test(srtp, the_record_does_not_mind_where_the_lead_ends)
{
	static const uint8_t header[12] = { 0x80 }, payload[4] = { 1, 2, 3, 4 };
	struct seal_job job = {
		.header = header, .header_bytes = 12, .payload = payload, .payload_bytes = 4
	};
	struct seal_record *r;

	cr_assert_eq(seal_record_create(&r), 0);
	cr_expect(seal_record_is_consistent(r, &job));
	job.lead = payload;
	job.lead_bytes = 2;
	job.payload = payload + 2;
	job.payload_bytes = 2;
	cr_expect(seal_record_is_consistent(r, &job));
	job.lead = payload + 1;
	cr_expect_not(seal_record_is_consistent(r, &job));
	seal_record_destroy(r);
}

#ifdef SLUICE_DEBUG
Test(srtp, one_index_with_two_contents_ends_a_debug_build, .signal = SIGABRT)
{
	uint8_t out[KIT_PACKET_BYTES];
	struct kit_pair p;

	cr_assert(kit_pair_init(&p, SEAL_ENGINE_AUTO, SEAL_ENGINE_AUTO, SEAL_AEAD_AES_128_GCM));
	kit_seal(&p, 9, 5, 50, out);
	kit_seal(&p, 9, 5, 50, out); /* allowed */
	kit_seal(&p, 9, 5, 51, out);
}
#endif
