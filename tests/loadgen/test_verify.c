#include <criterion/criterion.h>
#include <errno.h>

#include "loadgen/verify.h"

static const enum seal_profile profiles[] = { SEAL_AES_CM_128_HMAC_SHA1_80, SEAL_AEAD_AES_128_GCM,
					      SEAL_AEAD_AES_256_GCM };

enum { PROFILES = sizeof(profiles) / sizeof(profiles[0]), PLAIN = 112 };

static struct seal_engine *engine;
static struct seal_tx *tx;
static struct verify *v;

static struct seal_keys keys_of(enum seal_profile profile)
{
	struct seal_keys keys = { .profile = profile };

	for (unsigned i = 0; i < sizeof(keys.key); i++)
		keys.key[i] = (uint8_t)(i * 3 + 1);
	for (unsigned i = 0; i < sizeof(keys.salt); i++)
		keys.salt[i] = (uint8_t)(i * 5 + 2);
	return keys;
}

static void open_both(enum seal_profile profile)
{
	struct seal_keys keys = keys_of(profile);

	cr_assert_eq(seal_engine_create(&engine, SEAL_ENGINE_EVP), 0);
	cr_assert_eq(seal_tx_create(&tx, engine, &keys), 0);
	cr_assert_eq(verify_create(&v, &keys), 0);
}

static void close_both(void)
{
	verify_destroy(v);
	seal_tx_destroy(tx);
	seal_engine_destroy(engine);
}

static size_t seal(uint16_t seq, uint8_t *out)
{
	uint8_t header[12] = {
		0x80, 96, (uint8_t)(seq >> 8), (uint8_t)seq, 0, 0, 0, 0, 1, 2, 3, 4
	};
	uint8_t payload[PLAIN - 12];
	struct seal_job job = { .tx = tx,
				.index = seq,
				.header = header,
				.header_bytes = sizeof(header),
				.payload = payload,
				.payload_bytes = sizeof(payload),
				.out = out };

	memset(payload, seq & 0xff, sizeof(payload));
	seal_rtp(engine, &job, 1);
	return PLAIN + seal_tag_bytes(seal_tx_profile(tx));
}

TestSuite(verify, .timeout = 10);

Test(verify, opens_what_the_keys_sealed_in_every_profile)
{
	uint8_t bytes[PLAIN + SEAL_MAX_TAG_BYTES];

	for (unsigned i = 0; i < PROFILES; i++) {
		size_t len;

		open_both(profiles[i]);
		len = seal(7, bytes);
		cr_expect_eq(verify_open(v, bytes, &len), VERIFY_OK, "profile %d", profiles[i]);
		cr_expect_eq(len, PLAIN);
		cr_expect_eq(bytes[PLAIN - 1], 7);
		close_both();
	}
}

Test(verify, tells_a_repeat_from_a_forgery)
{
	uint8_t bytes[PLAIN + SEAL_MAX_TAG_BYTES];

	for (unsigned i = 0; i < PROFILES; i++) {
		size_t len;

		open_both(profiles[i]);
		len = seal(7, bytes);
		cr_expect_eq(verify_open(v, bytes, &len), VERIFY_OK);
		len = seal(7, bytes);
		cr_expect_eq(verify_open(v, bytes, &len), VERIFY_REPEATED);
		len = seal(8, bytes);
		bytes[20] ^= 1;
		cr_expect_eq(verify_open(v, bytes, &len), VERIFY_BAD, "payload");
		len = seal(9, bytes);
		bytes[5] ^= 1;
		cr_expect_eq(verify_open(v, bytes, &len), VERIFY_BAD, "header");
		close_both();
	}
}

Test(verify, refuses_a_profile_it_does_not_know)
{
	struct seal_keys keys = keys_of((enum seal_profile)99);

	cr_expect_eq(verify_create(&v, &keys), -EINVAL);
	cr_expect_null(v);
}
