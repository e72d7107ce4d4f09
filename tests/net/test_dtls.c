#include "net/dtls.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "pool/bytes.h"
#include "tests/fault.h"
#include "tests/net/kit_dtls_pump.h"
#include "tests/net/kit_wall_clock.h"

enum { START_US = 1000000, RECORD_BYTES = 2048 };

static struct dtls_identity *identity;
static struct dtls_fingerprint own; /* of `identity` */
static uint64_t now_us;

static void set_now(uint64_t us)
{
	now_us = us;
	wall_clock_set_us(us);
}

static void setup(void)
{
	set_now(START_US);
	cr_assert_eq(dtls_identity_create(&identity), 0);
	cr_assert_eq(dtls_fingerprint_parse(&own, "sha-256", dtls_identity_fingerprint(identity)),
		     0);
}

static void teardown(void)
{
	struct dtls_live live;

	dtls_identity_unref(identity);
	dtls_live(&live);
	cr_expect_eq(live.handshakes, 0);
	cr_expect_eq(live.ssl_objects, 0);
	cr_expect_eq(live.identities, 0);
	wall_clock_set_us(0);
}

TestSuite(dtls, .init = setup, .fini = teardown, .timeout = 20);

static struct dtls *make(enum dtls_role role, const struct dtls_fingerprint *remote)
{
	struct dtls *d;

	cr_assert_eq(dtls_create(&d, identity, role, remote), 0);
	return d;
}

static void expect_same_keys(const struct seal_keys *a, const struct seal_keys *b)
{
	cr_expect_eq(a->profile, b->profile);
	cr_expect_arr_eq(a->key, b->key, seal_key_bytes(a->profile));
	cr_expect_arr_eq(a->salt, b->salt, seal_salt_bytes(a->profile));
}

/* --- fingerprints ---------------------------------------------------------------------- */

Test(dtls, fingerprint_is_read_in_either_case_and_refused_when_odd)
{
	static const char right[] = "AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:"
				    "ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89";
	static const struct {
		const char *name, *hash, *hex;
		int want;
	} rows[] = {
		{ "plain", "sha-256", right, 0 },
		{ "hash in capitals", "SHA-256", right, 0 },
		{ "too short for its hash", "sha-384", right, -EINVAL },
		{ "one octet missing", "sha-256", right + 3, -EINVAL },
		{ "sha-1", "sha-1", right, -ENOTSUP },
		{ "no hash", "", right, -ENOTSUP },
		{ "empty", "sha-256", "", -EINVAL },
		{ "no colons", "sha-256",
		  "AB-CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:"
		  "ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89",
		  -EINVAL },
		{ "not hexadecimal", "sha-256",
		  "GB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:"
		  "ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89",
		  -EINVAL },
	};
	struct dtls_fingerprint f;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(dtls_fingerprint_parse(&f, rows[i].hash, rows[i].hex), rows[i].want,
			     "%s", rows[i].name);
	cr_assert_eq(dtls_fingerprint_parse(&f, "sha-256", right), 0);
	cr_expect_eq(f.digest[0], 0xab);
	cr_expect_eq(f.digest[31], 0x89);
}

/* --- handshakes ------------------------------------------------------------------------ */

Test(dtls, both_roles_of_ours_agree_on_crossed_keys)
{
	struct dtls *server = make(DTLS_SERVER, &own), *client = make(DTLS_CLIENT, &own);
	struct seal_keys stx, srx, ctx, crx;

	cr_expect_eq(dtls_keys(server, &stx, &srx), -EAGAIN);
	dtls_pump(now_us, client, server);
	cr_assert_eq(dtls_state(server), DTLS_CONNECTED);
	cr_assert_eq(dtls_state(client), DTLS_CONNECTED);
	cr_assert_eq(dtls_keys(server, &stx, &srx), 0);
	cr_assert_eq(dtls_keys(client, &ctx, &crx), 0);
	cr_expect_eq(stx.profile, SEAL_AEAD_AES_128_GCM);
	expect_same_keys(&stx, &crx);
	expect_same_keys(&srx, &ctx);
	cr_expect_neq(memcmp(stx.key, srx.key, 16), 0);
	dtls_destroy(server);
	dtls_destroy(client);
}

Test(dtls, plain_peer_agrees_in_every_role_profile_and_cipher)
{
	static const char *const profiles[] = { "SRTP_AEAD_AES_128_GCM", "SRTP_AEAD_AES_256_GCM",
						"SRTP_AES128_CM_SHA1_80" };
	static const enum seal_profile ids[] = { 7, 8, 1 };
	static const char *const ciphers[] = { "ECDHE-ECDSA-AES128-GCM-SHA256",
					       "ECDHE-ECDSA-CHACHA20-POLY1305",
					       "ECDHE-ECDSA-AES256-GCM-SHA384" };
	struct seal_keys tx, rx, ptx, prx;
	struct dtls_status status;
	struct plain_dtls p;
	struct dtls *d;
	int i, role;

	for (i = 0; i < 6; i++) {
		role = i / 3;
		plain_dtls_init(&p, role == 0 ? DTLS_CLIENT : DTLS_SERVER, "P-256", ciphers[i % 3],
				profiles[i % 3]);
		d = make(role == 0 ? DTLS_SERVER : DTLS_CLIENT, &p.fingerprint);
		dtls_pump_plain(now_us, d, &p);
		cr_assert(p.is_done, "row %d", i);
		cr_assert_eq(dtls_keys(d, &tx, &rx), 0, "row %d", i);
		plain_dtls_keys(&p, &ptx, &prx);
		cr_expect_eq(tx.profile, ids[i % 3]);
		expect_same_keys(&tx, &prx);
		expect_same_keys(&rx, &ptx);
		dtls_status(d, &status);
		cr_expect_str_eq(status.cipher, ciphers[i % 3]);
		cr_expect_eq(status.rebuilds, 0);
		cr_expect_eq(status.strays, 0);
		dtls_destroy(d);
		plain_dtls_fini(&p);
	}
}

Test(dtls, our_order_of_profiles_decides)
{
	struct seal_keys tx, rx;
	struct plain_dtls p;
	struct dtls *d;

	/* As Chrome offers them. */
	plain_dtls_init(&p, DTLS_CLIENT, "P-256", NULL,
			"SRTP_AES128_CM_SHA1_80:SRTP_AEAD_AES_256_GCM:SRTP_AEAD_AES_128_GCM");
	d = make(DTLS_SERVER, &p.fingerprint);
	dtls_pump_plain(now_us, d, &p);
	cr_assert_eq(dtls_keys(d, &tx, &rx), 0);
	cr_expect_eq(tx.profile, SEAL_AEAD_AES_128_GCM);
	dtls_destroy(d);
	plain_dtls_fini(&p);
}

Test(dtls, limited_identity_agrees_on_its_one_profile_in_both_roles)
{
	static const enum seal_profile profiles[] = { SEAL_AEAD_AES_256_GCM,
						      SEAL_AES_CM_128_HMAC_SHA1_80,
						      SEAL_AEAD_AES_128_GCM };

	for (int i = 0; i < 6; i++) {
		enum dtls_role role = i < 3 ? DTLS_SERVER : DTLS_CLIENT;
		struct seal_keys tx, rx;
		struct plain_dtls p;
		struct dtls *d;

		cr_assert_eq(dtls_identity_limit(identity, profiles[i % 3]), 0);
		plain_dtls_init(&p, role == DTLS_SERVER ? DTLS_CLIENT : DTLS_SERVER, "P-256", NULL,
				"SRTP_AEAD_AES_128_GCM:SRTP_AEAD_AES_256_GCM:"
				"SRTP_AES128_CM_SHA1_80");
		d = make(role, &p.fingerprint);
		dtls_pump_plain(now_us, d, &p);
		cr_assert_eq(dtls_keys(d, &tx, &rx), 0);
		cr_expect_eq(tx.profile, profiles[i % 3], "row %d", i);
		dtls_destroy(d);
		plain_dtls_fini(&p);
	}
	cr_expect_eq(dtls_identity_limit(identity, (enum seal_profile)2), -EINVAL);
}

Test(dtls, rsa_certificates_are_served_as_client_and_as_server)
{
	enum dtls_role role;
	struct plain_dtls p;
	struct dtls *d;

	for (role = DTLS_SERVER; role <= DTLS_CLIENT; role++) {
		plain_dtls_init(&p, role == DTLS_SERVER ? DTLS_CLIENT : DTLS_SERVER, "RSA", NULL,
				NULL);
		d = make(role, &p.fingerprint);
		dtls_pump_plain(now_us, d, &p);
		cr_expect(p.is_done, "role %d", role);
		cr_expect_eq(dtls_state(d), DTLS_CONNECTED, "role %d", role);
		dtls_destroy(d);
		plain_dtls_fini(&p);
	}
}

/* --- whom we refuse -------------------------------------------------------------------- */

Test(dtls, another_certificate_gets_no_keys_and_no_last_flight)
{
	enum dtls_role role;
	struct seal_keys tx, rx;
	struct dtls_fingerprint wrong;
	struct dtls_status status;
	struct plain_dtls p;
	struct dtls *d;

	for (role = DTLS_SERVER; role <= DTLS_CLIENT; role++) {
		plain_dtls_init(&p, role == DTLS_SERVER ? DTLS_CLIENT : DTLS_SERVER, "P-256", NULL,
				NULL);
		wrong = p.fingerprint;
		wrong.digest[31] ^= 1;
		d = make(role, &wrong);
		dtls_pump_plain(now_us, d, &p);
		cr_expect_eq(dtls_state(d), DTLS_FAILED);
		cr_expect_eq(dtls_failure(d), DTLS_FAILURE_FINGERPRINT);
		memset(&tx, 0, sizeof(tx));
		cr_expect_eq(dtls_keys(d, &tx, &rx), -EAGAIN);
		cr_expect_eq(tx.profile, 0);
		dtls_status(d, &status);
		cr_expect_eq(status.fingerprint_mismatches, 1);
		if (role == DTLS_SERVER)
			cr_expect_not(p.is_done, "the peer must not believe in this handshake");
		dtls_destroy(d);
		plain_dtls_fini(&p);
	}
}

Test(dtls, peer_without_common_profile_fails_and_exports_nothing)
{
	static const char *const profiles[] = { "", "SRTP_AES128_CM_SHA1_32" };
	struct seal_keys tx, rx;
	struct plain_dtls p;
	struct dtls *d;
	size_t i;

	for (i = 0; i < 2; i++) {
		plain_dtls_init(&p, DTLS_CLIENT, "P-256", NULL, profiles[i]);
		d = make(DTLS_SERVER, &p.fingerprint);
		dtls_pump_plain(now_us, d, &p);
		cr_expect_eq(dtls_state(d), DTLS_FAILED, "row %zu", i);
		cr_expect_eq(dtls_failure(d), DTLS_FAILURE_PROFILE, "row %zu", i);
		cr_expect_eq(dtls_keys(d, &tx, &rx), -EAGAIN);
		dtls_destroy(d);
		plain_dtls_fini(&p);
	}
}

Test(dtls, client_without_certificate_is_never_connected)
{
	struct plain_dtls p;
	struct dtls *d;
	SSL_CTX *bare = SSL_CTX_new(DTLS_method());

	plain_dtls_init(&p, DTLS_CLIENT, "P-256", NULL, NULL);
	SSL_set_SSL_CTX(p.ssl, bare);
	SSL_certs_clear(p.ssl);
	d = make(DTLS_SERVER, &p.fingerprint);
	dtls_pump_plain(now_us, d, &p);
	cr_expect_eq(dtls_state(d), DTLS_HANDSHAKE);
	cr_expect_not(p.is_done);
	dtls_destroy(d);
	plain_dtls_fini(&p);
	SSL_CTX_free(bare);
}

/* CVE-2022-29222: whoever copies a certificate has its fingerprint, but not its key. */
Test(dtls, right_certificate_without_its_key_is_never_connected)
{
	EVP_PKEY *other = EVP_EC_gen("P-256");
	struct seal_keys tx, rx;
	struct dtls_status status;
	struct plain_dtls p;
	struct dtls *d;
	unsigned n;

	plain_dtls_init(&p, DTLS_CLIENT, "P-256", NULL, NULL);
	X509_set_pubkey(p.certificate, other); /* the SSL object holds this very certificate */
	cr_assert_gt(X509_sign(p.certificate, other, EVP_sha256()), 0);
	X509_digest(p.certificate, EVP_sha256(), p.fingerprint.digest, &n);
	d = make(DTLS_SERVER, &p.fingerprint);
	dtls_pump_plain(now_us, d, &p);
	cr_expect_eq(dtls_state(d), DTLS_HANDSHAKE);
	cr_expect_eq(dtls_keys(d, &tx, &rx), -EAGAIN);
	cr_expect_not(p.is_done);
	dtls_status(d, &status);
	cr_expect_str_eq(status.error, "bad signature");
	dtls_destroy(d);
	plain_dtls_fini(&p);
	EVP_PKEY_free(other);
}

/* --- close_notify without the SSL object ------------------------------------------------ */

static const char *const close_ciphers[] = { "ECDHE-ECDSA-AES128-GCM-SHA256",
					     "ECDHE-ECDSA-CHACHA20-POLY1305",
					     "ECDHE-ECDSA-AES256-GCM-SHA384" };

Test(dtls, plain_peer_accepts_the_close_notify_we_build)
{
	uint8_t record[DTLS_CLOSE_NOTIFY_BYTES];
	struct plain_dtls p;
	struct dtls *d;
	size_t len;
	int i;

	for (i = 0; i < 6; i++) {
		plain_dtls_init(&p, i < 3 ? DTLS_CLIENT : DTLS_SERVER, "P-256",
				close_ciphers[i % 3], NULL);
		d = make(i < 3 ? DTLS_SERVER : DTLS_CLIENT, &p.fingerprint);
		cr_expect_eq(dtls_close_notify(d, record, sizeof(record)), 0, "nothing to close");
		dtls_pump_plain(now_us, d, &p);
		cr_assert(p.is_done);
		dtls_release(d);
		len = dtls_close_notify(d, record, sizeof(record));
		cr_assert_gt(len, 0, "row %d", i);
		/* A damaged one first: that the peer drops it shows that it does check. */
		record[len - 1] ^= 1;
		plain_dtls_input(&p, record, len);
		cr_expect_not(p.is_closed, "row %d", i);
		record[len - 1] ^= 1;
		plain_dtls_input(&p, record, len);
		cr_expect(p.is_closed, "row %d", i);
		cr_expect_not(p.is_dead, "row %d", i);
		dtls_destroy(d);
		plain_dtls_fini(&p);
	}
}

Test(dtls, peers_close_notify_is_read_with_and_without_the_ssl_object)
{
	uint8_t record[RECORD_BYTES];
	struct plain_dtls p;
	struct dtls *d;
	size_t len;
	int i;

	for (i = 0; i < 6; i++) {
		plain_dtls_init(&p, DTLS_CLIENT, "P-256", close_ciphers[i % 3], NULL);
		d = make(DTLS_SERVER, &p.fingerprint);
		dtls_pump_plain(now_us, d, &p);
		if (i < 3)
			dtls_release(d);
		SSL_shutdown(p.ssl);
		len = plain_dtls_output(&p, record, sizeof(record));
		cr_assert_gt(len, 0);
		record[len - 1] ^= 1;
		dtls_on_datagram(d, record, len);
		dtls_pump_step(now_us, d);
		cr_expect_eq(dtls_state(d), DTLS_CONNECTED, "row %d: forged", i);
		record[len - 1] ^= 1;
		cr_expect_eq(dtls_on_datagram(d, record, len), DTLS_QUEUED);
		dtls_pump_step(now_us, d);
		cr_expect_eq(dtls_state(d), DTLS_CLOSED, "row %d", i);
		dtls_destroy(d);
		plain_dtls_fini(&p);
	}
}

Test(dtls, close_notifies_never_repeat_a_record_number_or_nonce)
{
	uint8_t first[DTLS_CLOSE_NOTIFY_BYTES], second[DTLS_CLOSE_NOTIFY_BYTES];
	struct dtls *server = make(DTLS_SERVER, &own), *client = make(DTLS_CLIENT, &own);

	dtls_pump(now_us, client, server);
	cr_assert_eq(dtls_close_notify(server, first, sizeof(first)),
		     dtls_close_notify(server, second, sizeof(second)));
	cr_expect_eq(be64_read(second + 3), be64_read(first + 3) + 1);
	cr_expect_eq(be64_read(second + 13), be64_read(first + 13) + 1);
	cr_expect_gt(be64_read(first + 3), (uint64_t)1 << 48, "Finished had the first number");
	dtls_destroy(server);
	dtls_destroy(client);
}

/* --- loss, and the helper --------------------------------------------------------------- */

Test(dtls, lost_flights_are_repeated_by_the_timer)
{
	struct dtls *server = make(DTLS_SERVER, &own), *client = make(DTLS_CLIENT, &own);

	dtls_pump_step(now_us, client);
	dtls_pump_lose(client);
	cr_expect_eq(dtls_deadline_us(client), START_US + 200000);
	cr_expect_not(dtls_wants_step(client, START_US + 199999));
	set_now(START_US + 200000);
	cr_expect_gt(dtls_pump_move(now_us, client, server), 0);
	dtls_pump_step(now_us, server);
	dtls_pump_lose(server);
	set_now(START_US + 400000);
	cr_expect_gt(dtls_pump_move(now_us, server, client), 0);
	dtls_pump(now_us, client, server);
	cr_expect_eq(dtls_state(server), DTLS_CONNECTED);
	cr_expect_eq(dtls_state(client), DTLS_CONNECTED);
	cr_expect_eq(dtls_deadline_us(server), UINT64_MAX);
	dtls_destroy(server);
	dtls_destroy(client);
}

Test(dtls, last_flight_is_repeated_until_the_release)
{
	struct dtls *server = make(DTLS_SERVER, &own), *client = make(DTLS_CLIENT, &own);

	dtls_pump_move(now_us, client, server);
	dtls_pump_move(now_us, server, client);
	dtls_pump_move(now_us, client, server);
	dtls_pump_step(now_us, server);
	cr_assert_eq(dtls_state(server), DTLS_CONNECTED);
	dtls_pump_lose(server);
	set_now(dtls_deadline_us(client));
	cr_expect_gt(dtls_pump_move(now_us, client, server), 0, "the client repeats its Finished");
	cr_expect_gt(dtls_pump_move(now_us, server, client), 0);
	dtls_pump_step(now_us, client);
	cr_expect_eq(dtls_state(client), DTLS_CONNECTED);
	dtls_destroy(server);
	dtls_destroy(client);
}

Test(dtls, datagrams_wait_while_a_helper_has_the_handshake)
{
	struct dtls *server = make(DTLS_SERVER, &own), *client = make(DTLS_CLIENT, &own);
	const uint8_t *hello;
	size_t len;
	int i;

	dtls_pump_step(now_us, client);
	hello = dtls_next_datagram(client, &len);
	cr_assert_not_null(hello);
	cr_expect_eq(dtls_on_datagram(server, hello, len), DTLS_QUEUED);
	cr_expect(dtls_is_step_heavy(server));
	dtls_submit(server, now_us);
	for (i = 0; i < DTLS_QUEUE_PKTS; i++)
		cr_expect_eq(dtls_on_datagram(server, hello, len), DTLS_QUEUED);
	cr_expect_eq(dtls_on_datagram(server, hello, len), DTLS_QUEUE_FULL);
	dtls_work(server);
	dtls_complete(server);
	cr_expect_gt(dtls_pump_move(now_us, server, client), 0);
	dtls_pump(now_us, client, server);
	cr_expect_eq(dtls_state(server), DTLS_CONNECTED);
	dtls_destroy(server);
	dtls_destroy(client);
}

Test(dtls, creation_survives_each_failing_allocation)
{
	struct dtls_identity *id;
	struct dtls *d;
	int err = -ENOMEM, faults;

	for (faults = 0; err == -ENOMEM; faults++) {
		fault_after(faults);
		err = dtls_create(&d, identity, DTLS_SERVER, &own);
		fault_after(-1);
		cr_expect(err == 0 || d == NULL, "fault %d", faults);
	}
	cr_expect_eq(faults, 3, "two allocations");
	dtls_destroy(d);
	fault_after(0);
	cr_expect_eq(dtls_identity_create(&id), -ENOMEM);
	fault_after(-1);
	cr_expect_null(id);
}
