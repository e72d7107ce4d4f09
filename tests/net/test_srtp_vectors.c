/* The published vectors: RFC 3711 appendix B, RFC 6188 section 7, RFC 7714 sections 16 and 17.
 * Those of RFC 7714 give session keys, which only the engines with our framing can take. */
#include "net/srtp_internal.h"
#include "tests/net/srtp_kit.h"

TestSuite(srtp_vectors, .timeout = 10);

static size_t unhex(const char *text, uint8_t *out, size_t cap)
{
	size_t n = 0;

	for (; text[0] && text[1]; text += 2) {
		char pair[3] = { text[0], text[1], 0 };

		cr_assert_lt(n, cap);
		out[n++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n;
}

static void expect_hex(const uint8_t *got, const char *want, const char *what)
{
	uint8_t bytes[256];
	size_t n = unhex(want, bytes, sizeof(bytes));

	cr_expect_arr_eq(got, bytes, n, "%s", what);
}

Test(srtp_vectors, keys_derive_as_in_rfc_3711_appendix_b_3)
{
	struct seal_keys keys = { .profile = SEAL_AES_CM_128_HMAC_SHA1_80 };
	struct seal_session s;

	unhex("e1f97a0d3e018be0d64fa32c06de4139", keys.key, sizeof(keys.key));
	unhex("0ec675ad498afeebb6960b3aabe6", keys.salt, sizeof(keys.salt));
	cr_assert_eq(seal_derive(&s, &keys, SEAL_FOR_RTP), 0);
	expect_hex(s.key, "c61e7a93744f39ee10734afe3ff7a087", "cipher key");
	expect_hex(s.salt, "30cbbc08863d8c85d49db34a9ae1", "cipher salt");
	expect_hex(s.auth, "cebe321f6ff7716b6fd4ab49af256a156d38baa4", "auth key");
}

Test(srtp_vectors, long_keys_derive_as_in_rfc_6188_section_7)
{
	uint8_t key[32], salt[14], out[32];

	unhex("f0f04914b513f2763a1b1fa130f10e2998f6f6e43e4309d1e622a0e332b9f1b6", key, 32);
	unhex("3b04803de51ee7c96423ab5b78d2", salt, 14);
	cr_assert(seal_prf(key, 32, salt, 0, out, 32));
	expect_hex(out, "5ba1064e30ec51613cad926c5a28ef731ec7fb397f70a960653caf06554cd8c4",
		   "cipher key");
	cr_assert(seal_prf(key, 32, salt, 1, out, 20));
	expect_hex(out, "fd9c32d39ed5fbb5a9dc96b30818454d1313dc05", "auth key");
	cr_assert(seal_prf(key, 32, salt, 2, out, 14));
	expect_hex(out, "fa31791685ca444a9e07c6c64e93", "cipher salt");
}

/* A context whose session keys are replaced by those of a vector. */
static struct seal_tx *tx_with(struct seal_engine *e, enum seal_profile profile,
			       const struct seal_session *s)
{
	struct seal_keys keys = { .profile = profile };
	struct seal_framed_tx *f;
	struct seal_tx *tx;

	cr_assert_eq(seal_tx_create(&tx, e, &keys), 0);
	f = (struct seal_framed_tx *)tx;
	e->ops->cipher->key_destroy(f->rtp);
	cr_assert_eq(e->ops->cipher->key_create(&f->rtp, e, profile, s), 0);
	f->rtcp = *s;
	return tx;
}

static struct seal_rx *rx_with(struct seal_engine *e, enum seal_profile profile,
			       const struct seal_session *s)
{
	struct seal_keys keys = { .profile = profile };
	struct seal_framed_rx *f;
	struct seal_rx *rx;

	cr_assert_eq(seal_rx_create(&rx, e, &keys), 0);
	f = (struct seal_framed_rx *)rx;
	f->rtp_session = *s;
	f->rtcp = *s;
	return rx;
}

Test(srtp_vectors, aes_cm_key_stream_is_that_of_rfc_3711_appendix_b_2)
{
	static const uint8_t header[12] = { 0x80, 96 };
	static const uint8_t zeros[48];
	struct seal_session s = { 0 };

	unhex("2b7e151628aed2a6abf7158809cf4f3c", s.key, sizeof(s.key));
	unhex("f0f1f2f3f4f5f6f7f8f9fafbfcfd", s.salt, sizeof(s.salt));
	for (int i = 0; i < 2; i++) {
		uint8_t out[12 + 48 + 10];
		struct seal_engine *e;
		struct seal_job job = { .header = header,
					.header_bytes = 12,
					.payload = zeros,
					.payload_bytes = 48,
					.out = out };

		if (!kit_engine(&e, kit_kinds[i]))
			continue;
		job.tx = tx_with(e, SEAL_AES_CM_128_HMAC_SHA1_80, &s);
		seal_rtp(e, &job, 1);
		expect_hex(out + 12,
			   "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab"
			   "41e95b3bb0a2e8dd477901e4fca894c0",
			   seal_engine_name(e));
		seal_tx_destroy(job.tx);
		seal_engine_destroy(e);
	}
}

/* The packet that implementations of RFC 3711 commonly publish for the master key of B.3. */
Test(srtp_vectors, aes_cm_packets_agree_in_every_engine)
{
	struct seal_keys keys = { .profile = SEAL_AES_CM_128_HMAC_SHA1_80 };
	uint8_t plain[28], out[38];
	struct seal_job job = { .index = 0x1234,
				.header = plain,
				.header_bytes = 12,
				.payload = plain + 12,
				.payload_bytes = 16,
				.out = out };

	unhex("e1f97a0d3e018be0d64fa32c06de4139", keys.key, sizeof(keys.key));
	unhex("0ec675ad498afeebb6960b3aabe6", keys.salt, sizeof(keys.salt));
	unhex("800f1234decafbadcafebabeabababababababababababababababab", plain, sizeof(plain));
	for (int i = 0; i < KIT_ENGINES; i++) {
		struct seal_engine *e;

		if (!kit_engine(&e, kit_kinds[i]))
			continue;
		cr_assert_eq(seal_tx_create(&job.tx, e, &keys), 0);
		seal_rtp(e, &job, 1);
		expect_hex(out,
			   "800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402"
			   "b78d6acc99ea179b8dbb",
			   seal_engine_name(e));
		seal_tx_destroy(job.tx);
		seal_engine_destroy(e);
	}
}

static const struct {
	const char *name;
	enum seal_profile profile;
	const char *rtp, *rtcp; /* sealed */
} gcm[] = {
	{ "AES-128, RFC 7714 16.1.1 and 17.1", SEAL_AEAD_AES_128_GCM,
	  "8040f17b8041f8d35501a0b2f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b"
	  "36de3adf8833899d7f27beb16a9152cf765ee4390cce",
	  "81c8000d4d61727363e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b46"
	  "86303ded0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4" },
	{ "AES-256, RFC 7714 16.2.1 and 17.2", SEAL_AEAD_AES_256_GCM,
	  "8040f17b8041f8d35501a0b232b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f"
	  "1ba63799b87b7aa3db36dfffd6b0f9bb7878d7a76c13",
	  "81c8000d4d617273d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50a2eaa5c1110555be8415f658"
	  "c61de0476f1b6fad1d1eb30c4446839f57ff6f6cb26ac3be800005d4" },
};

static const char gcm_rtp_plain[] =
    "8040f17b8041f8d35501a0b247616c6c696120657374206f6d6e69732064697669736120696e20706172746573"
    "2074726573";
static const char gcm_rtcp_plain[] =
    "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeef"
    "deadbeefdeadbeef";

static struct seal_session gcm_session(void)
{
	struct seal_session s = { 0 };

	for (uint8_t i = 0; i < 32; i++)
		s.key[i] = i;
	unhex("517569642070726f2071756f", s.salt, sizeof(s.salt));
	return s;
}

static void check_gcm_seal(struct seal_engine *e, size_t row)
{
	struct seal_session s = gcm_session();
	uint8_t plain[128], out[128];
	size_t n = unhex(gcm_rtp_plain, plain, sizeof(plain));
	struct seal_job job = { .tx = tx_with(e, gcm[row].profile, &s),
				.index = 0xf17b,
				.header = plain,
				.header_bytes = 12,
				.out = out };

	/* Once in one piece and once with a piece of its own for the first bytes. */
	for (uint16_t lead = 0; lead < 8; lead += 7) {
		job.lead = plain + 12;
		job.lead_bytes = lead;
		job.payload = plain + 12 + lead;
		job.payload_bytes = (uint16_t)(n - 12 - lead);
		memset(out, 0, sizeof(out));
		seal_rtp(e, &job, 1);
		expect_hex(out, gcm[row].rtp, gcm[row].name);
	}
	n = unhex(gcm_rtcp_plain, out, sizeof(out));
	job.tx->rtcp_index = 0x5d4;
	cr_expect_eq(seal_rtcp(e, job.tx, out, n, sizeof(out)), (int)n + 20);
	expect_hex(out, gcm[row].rtcp, gcm[row].name);
	seal_tx_destroy(job.tx);
}

static void check_gcm_open(struct seal_engine *e, size_t row)
{
	struct seal_session s = gcm_session();
	struct seal_rx *rx = rx_with(e, gcm[row].profile, &s);
	uint8_t bytes[128];
	size_t len = unhex(gcm[row].rtp, bytes, sizeof(bytes));
	uint64_t index;

	cr_expect_eq(seal_open_rtp(e, rx, bytes, &len, &index), SEAL_OK, "%s", gcm[row].name);
	cr_expect_eq(len, 50);
	cr_expect_eq(index, 0xf17b);
	expect_hex(bytes, gcm_rtp_plain, gcm[row].name);
	len = unhex(gcm[row].rtcp, bytes, sizeof(bytes));
	cr_expect_eq(seal_open_rtcp(e, rx, bytes, &len), SEAL_OK, "%s", gcm[row].name);
	cr_expect_eq(len, 52);
	expect_hex(bytes, gcm_rtcp_plain, gcm[row].name);
	seal_rx_destroy(rx);
}

Test(srtp_vectors, aes_gcm_packets_are_those_of_rfc_7714)
{
	for (int i = 0; i < 2; i++) {
		struct seal_engine *e;

		if (!kit_engine(&e, kit_kinds[i]))
			continue;
		for (size_t row = 0; row < sizeof(gcm) / sizeof(gcm[0]); row++) {
			check_gcm_seal(e, row);
			check_gcm_open(e, row);
		}
		seal_engine_destroy(e);
	}
}

/* RFC 7714 17.3: authentic, but sent in clear, which was not negotiated. */
Test(srtp_vectors, rtcp_that_is_tagged_but_not_encrypted_is_refused)
{
	struct seal_session s = gcm_session();

	for (int i = 0; i < 2; i++) {
		uint8_t bytes[128];
		size_t len = unhex("81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e"
				   "61deadbeefdeadbeefdeadbeefdeadbeefdeadbeef841dd9683dd78ec92ae5"
				   "8790125f62b3000005d4",
				   bytes, sizeof(bytes));
		struct seal_engine *e;
		struct seal_rx *rx;

		if (!kit_engine(&e, kit_kinds[i]))
			continue;
		rx = rx_with(e, SEAL_AEAD_AES_128_GCM, &s);
		cr_expect_eq(seal_open_rtcp(e, rx, bytes, &len), SEAL_MALFORMED);
		seal_rx_destroy(rx);
		seal_engine_destroy(e);
	}
}
