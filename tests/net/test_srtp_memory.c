/* What SRTP contexts cost, and what happens when there is none left to have. */
#include <openssl/crypto.h>
#include <srtp2/srtp.h>

#include "tests/fault.h"
#include "tests/net/srtp_kit.h"

#if SLUICE_IPSECMB
#include <intel-ipsec-mb.h>
#endif

TestSuite(srtp_memory, .timeout = 30);

/* Where a library allocates inside, its entry point fails instead. */
srtp_err_status_t __real_srtp_create(srtp_t *session, const srtp_policy_t *policy);
srtp_err_status_t __wrap_srtp_create(srtp_t *session, const srtp_policy_t *policy);
srtp_err_status_t __wrap_srtp_create(srtp_t *session, const srtp_policy_t *policy)
{
	return fault_is_due() ? srtp_err_status_alloc_fail : __real_srtp_create(session, policy);
}

#if SLUICE_IPSECMB
static uint64_t mgr_flags; /* what this CPU lacks for a while */

IMB_MGR *__real_alloc_mb_mgr(uint64_t flags);
IMB_MGR *__wrap_alloc_mb_mgr(uint64_t flags);
IMB_MGR *__wrap_alloc_mb_mgr(uint64_t flags)
{
	return fault_is_due() ? NULL : __real_alloc_mb_mgr(flags | mgr_flags);
}

Test(srtp_memory, a_cpu_without_aes_instructions_is_served_by_evp)
{
	struct seal_engine *e;

	mgr_flags = IMB_FLAG_AESNI_OFF;
	cr_expect_eq(seal_engine_create(&e, SEAL_ENGINE_IPSECMB), -ENOTSUP);
	cr_expect_null(e);
	cr_assert_eq(seal_engine_create(&e, SEAL_ENGINE_AUTO), 0);
	cr_expect_str_eq(seal_engine_name(e), "evp");
	seal_engine_destroy(e);
}
#endif

/* OpenSSL lets its allocations be led through here, as long as it has made none: before main().
 * They count, and fail, only in the tests that ask for it. */
static bool openssl_counts;

void *__real_malloc(size_t n);
void *__real_realloc(void *old, size_t n);

static void *lib_malloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return openssl_counts ? malloc(n) : __real_malloc(n);
}

static void *lib_realloc(void *old, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return openssl_counts ? realloc(old, n) : __real_realloc(old, n);
}

static void lib_free(void *at, const char *file, int line)
{
	(void)file;
	(void)line;
	free(at);
}

static int openssl_led;

__attribute__((constructor)) static void lead_openssl(void)
{
	openssl_led = CRYPTO_set_mem_functions(lib_malloc, lib_realloc, lib_free);
}

static void count_openssl(void)
{
	cr_assert_eq(openssl_led, 1);
	openssl_counts = true;
}

static int create_all(enum seal_engine_kind kind, enum seal_profile profile)
{
	struct seal_keys keys = kit_keys(profile, 3);
	struct seal_engine *e;
	struct seal_tx *tx = NULL;
	struct seal_rx *rx = NULL;
	int err = seal_engine_create(&e, kind);

	cr_expect(err == 0 || e == NULL);
	if (err)
		return err;
	err = seal_tx_create(&tx, e, &keys);
	cr_expect(err == 0 || tx == NULL);
	if (!err) {
		err = seal_rx_create(&rx, e, &keys);
		cr_expect(err == 0 || rx == NULL);
	}
	seal_tx_destroy(tx);
	seal_rx_destroy(rx);
	seal_engine_destroy(e);
	return err;
}

static void check_faults(enum seal_engine_kind kind, enum seal_profile profile)
{
	int faults = 0;
	int err = create_all(kind, profile);

	/* The first run lets OpenSSL load what it keeps for good. */
	if (err == -ENOTSUP && kind == SEAL_ENGINE_IPSECMB)
		return;
	cr_assert_eq(err, 0);
	do {
		unsigned before = fault_calls();

		fault_after(faults);
		err = create_all(kind, profile);
		fault_after(-1);
		cr_expect(err == 0 || err == -ENOMEM, "fault %d: %d", faults, err);
		/* OpenSSL forgives a few failures; the series ends when none was left to fail. */
		if (err == 0 && fault_calls() - before <= (unsigned)faults)
			break;
		faults++;
	} while (faults < 1000);
	cr_expect_gt(faults, 3, "engine %d", (int)kind);
	cr_expect_lt(faults, 1000, "engine %d", (int)kind);
}

Test(srtp_memory, create_survives_every_single_failure)
{
	count_openssl();
	for (int i = 0; i < KIT_ENGINES; i++)
		for (int k = 0; k < KIT_PROFILES; k++)
			check_faults(kit_kinds[i], kit_profiles[k]);
}

Test(srtp_memory, an_ssrc_that_finds_no_memory_is_dropped_and_may_come_again)
{
	struct kit_pair p;
	uint8_t out[KIT_PACKET_BYTES];
	size_t len;

	cr_assert(kit_pair_init(&p, SEAL_ENGINE_EVP, SEAL_ENGINE_EVP, SEAL_AEAD_AES_128_GCM));
	len = kit_seal(&p, 1, 10, 100, out);
	cr_expect_eq(kit_open(&p, out, len), SEAL_OK);
	len = kit_seal(&p, 2, 10, 100, out);
	fault_after(1); /* the copy is the first call */
	cr_expect_eq(kit_open(&p, out, len), SEAL_TOO_MANY_SSRCS);
	fault_after(-1);
	cr_expect_eq(kit_open(&p, out, len), SEAL_OK);
	kit_pair_fini(&p);
}

/* The key of a receiver is expanded for good with the first packet; that may fail as well. */
Test(srtp_memory, opening_goes_on_with_a_borrowed_key)
{
	for (int k = 0; k < KIT_PROFILES; k++) {
		struct kit_pair p;
		uint8_t out[KIT_PACKET_BYTES];
		size_t before;

		cr_assert(kit_pair_init(&p, SEAL_ENGINE_EVP, SEAL_ENGINE_AUTO, kit_profiles[k]));
		before = seal_rx_bytes(p.rx);
		fault_after(1);
		cr_expect_eq(kit_open(&p, out, kit_seal(&p, 1, 10, 100, out)), SEAL_OK);
		fault_after(-1);
		cr_expect_lt(seal_rx_bytes(p.rx), before + 250, "a source, no key");
		cr_expect_eq(kit_open(&p, out, kit_seal(&p, 1, 11, 100, out)), SEAL_OK);
		cr_expect_gt(seal_rx_bytes(p.rx), before + 250);
		cr_expect_eq(kit_open(&p, out, kit_seal(&p, 1, 12, 100, out)), SEAL_OK);
		kit_pair_fini(&p);
	}
}

Test(srtp_memory, a_viewer_costs_at_most_two_and_a_half_kilobytes)
{
	struct kit_pair p;
	uint8_t out[64];

	if (!kit_pair_init(&p, SEAL_ENGINE_IPSECMB, SEAL_ENGINE_IPSECMB, SEAL_AEAD_AES_128_GCM))
		return;
	cr_expect_eq(kit_open_rtcp(&p, out, kit_seal_rtcp(&p, 1, 32, out, sizeof(out))), SEAL_OK);
	cr_expect_leq(seal_tx_bytes(p.tx) + seal_rx_bytes(p.rx), 2560, "%zu + %zu",
		      seal_tx_bytes(p.tx), seal_rx_bytes(p.rx));
	kit_pair_fini(&p);
}

static void run_packets(struct kit_pair *p, uint64_t first, unsigned n)
{
	uint8_t rtp[KIT_PACKET_BYTES], rtcp[128];

	for (unsigned i = 0; i < n; i++) {
		size_t len = kit_seal(p, 1, first + i, 1000, rtp);
		uint64_t index;

		cr_assert_eq(seal_open_rtp(p->opener, p->rx, rtp, &len, &index), SEAL_OK);
		len = kit_seal_rtcp(p, 1, 64, rtcp, sizeof(rtcp));
		cr_assert_eq(seal_open_rtcp(p->opener, p->rx, rtcp, &len), SEAL_OK);
		rtp[20] ^= 1;
		len = 900;
		cr_assert_neq(seal_open_rtp(p->opener, p->rx, rtp, &len, &index), SEAL_OK);
	}
}

Test(srtp_memory, sealing_and_opening_allocate_nothing)
{
	count_openssl();
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < KIT_PROFILES; k++) {
			struct kit_pair p;
			unsigned before;

			if (!kit_pair_init(&p, kit_kinds[i], kit_kinds[i], kit_profiles[k]))
				continue;
			run_packets(&p, 0, 2);
			before = fault_calls();
			run_packets(&p, 2, 1000);
			cr_expect_eq(fault_calls(), before, "%s, profile %d: %u",
				     seal_engine_name(p.sealer), (int)kit_profiles[k],
				     fault_calls() - before);
			kit_pair_fini(&p);
		}
	}
}
