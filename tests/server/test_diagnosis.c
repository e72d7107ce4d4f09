#include <criterion/criterion.h>
#include <string.h>

#include "server/diagnosis.h"

TestSuite(diagnosis, .timeout = 10);

enum { S = 1000000 };

#define CHECKED .checks = 7, .peer = { .ip = { [10] = 0xff, 0xff, 192, 0, 2, 9 }, .port = 40000 }

/* What is known, the code, and the words a person needs. */
static const struct {
	const char *name;
	struct diagnosis_facts facts;
	const char *code; /* NULL: nothing to say */
	const char *words[3];
} rows[] = {
	{ "just asked for", { .age_us = S }, NULL, { "" } },
	{ "waits", { .age_us = 4 * S }, "no_check", { "4 s", "udp 192.0.2.1:8189", "firewall" } },
	{ "never came",
	  { .reason = TRANSPORT_CLOSED_NO_ICE, .age_us = 10 * S, .is_private_only = true },
	  "no_check",
	  { "10 s", "udp 192.0.2.1:8189", "--advertise" } },
	{ "wrong password",
	  { .reason = TRANSPORT_CLOSED_NO_ICE, .seen = { .bad_checks = 12 } },
	  "bad_credentials",
	  { "12 connectivity checks", "credentials" } },
	{ "one-way path",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS, .seen = { CHECKED } },
	  "answers_lost",
	  { "7 connectivity checks arrived from 192.0.2.9:40000", "not to reach the client" } },
	{ "keys without a proof",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS,
	    .seen = { CHECKED, .has_handshake = true, .progress = DTLS_PROGRESS_DONE } },
	  "answers_lost",
	  { "192.0.2.9:40000" } },
	{ "no hello",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS, .seen = { CHECKED, .is_proven = true } },
	  "no_client_hello",
	  { "192.0.2.9:40000 pass", "a=setup:passive" } },
	{ "no hello, over TCP",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS,
	    .seen = { CHECKED, .is_proven = true, .is_over_tcp = true } },
	  "no_client_hello",
	  { "over TCP only" } },
	{ "nobody answers ours",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS,
	    .is_dtls_client = true,
	    .seen = { CHECKED, .is_proven = true, .has_handshake = true,
		      .progress = DTLS_PROGRESS_ANSWERED } },
	  "no_client_hello",
	  { "The relay's DTLS ClientHello", "setup:passive" } },
	{ "half a hello",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS, .seen = { CHECKED, .has_handshake = true } },
	  "handshake_unfinished",
	  { "ClientHello did not arrive whole" } },
	{ "our flight lost",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS,
	    .seen = { CHECKED, .has_handshake = true, .progress = DTLS_PROGRESS_ANSWERED } },
	  "handshake_unfinished",
	  { "the relay's flight got no answer", "1,200 bytes" } },
	{ "their last flight lost",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS,
	    .seen = { CHECKED, .has_handshake = true, .progress = DTLS_PROGRESS_BEGUN } },
	  "handshake_unfinished",
	  { "the client's last flight" } },
	{ "no version in common",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS,
	    .seen = { CHECKED, .has_handshake = true, .error = "no shared cipher" } },
	  "handshake_unfinished",
	  { "no shared cipher" } },
	{ "an alert nobody signed",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS,
	    .seen = { CHECKED, .has_handshake = true, .has_alert = true, .alert = 42 } },
	  "dtls_alert",
	  { "alert 42 (bad_certificate, unauthenticated)", "fingerprint" } },
	{ "an alert",
	  { .reason = TRANSPORT_CLOSED_ALERT,
	    .seen = { CHECKED, .has_alert = true, .is_alert_authentic = true, .alert = 40 } },
	  "dtls_alert",
	  { "alert 40 (handshake_failure)" } },
	{ "another certificate",
	  { .reason = TRANSPORT_CLOSED_FINGERPRINT, .seen = { CHECKED } },
	  "fingerprint_mismatch",
	  { "fingerprint", "offer" } },
	{ "another certificate, once more",
	  { .reason = TRANSPORT_CLOSED_NO_DTLS, .seen = { CHECKED, .mismatches = 1 } },
	  "fingerprint_mismatch",
	  { "fingerprint" } },
	{ "no profile", { .reason = TRANSPORT_CLOSED_NO_PROFILE }, "no_srtp_profile", { "SRTP" } },
	{ "wrong keys",
	  { .reason = TRANSPORT_CLOSED_NO_MEDIA,
	    .is_publisher = true,
	    .is_connected = true,
	    .srtp_failures = 31 },
	  "srtp_failures",
	  { "31 media packets", "authenticated" } },
	{ "never sent",
	  { .reason = TRANSPORT_CLOSED_NO_MEDIA,
	    .is_publisher = true,
	    .is_connected = true,
	    .idle_us = 15 * S },
	  "no_media",
	  { "no media arrived for 15 s", "payload types" } },
	{ "stopped",
	  { .is_publisher = true, .is_connected = true, .idle_us = 4 * S, .packets = 900 },
	  "no_media",
	  { "for 4 s", "900 packets" } },
	{ "sends",
	  { .is_publisher = true, .is_connected = true, .packets = 1, .age_us = 9 * S },
	  NULL,
	  { "" } },
	{ "watches nobody",
	  { .is_connected = true, .age_us = 9 * S },
	  "no_publisher",
	  { "nobody publishes" } },
	{ "waits for a key frame",
	  { .is_connected = true, .age_us = 9 * S, .has_publisher = true },
	  "no_media",
	  { "key frame" } },
	{ "watches", { .is_connected = true, .age_us = 9 * S, .packets = 5 }, NULL, { "" } },
	{ "watches over TCP",
	  { .is_connected = true, .packets = 5, .seen = { CHECKED, .is_over_tcp = true } },
	  "tcp_only",
	  { "Open the UDP port" } },
	{ "gone",
	  { .reason = TRANSPORT_CLOSED_SILENT, .is_connected = true },
	  "silent",
	  { "30 s" } },
	{ "does not read", { .reason = TRANSPORT_CLOSED_STUCK }, "stuck", { "10 s" } },
	{ "taken over", { .reason = TRANSPORT_CLOSED_REPLACED }, "replaced", { "newer" } },
	{ "other codec", { .reason = TRANSPORT_CLOSED_CODEC }, "other_codec", { "codec" } },
	{ "no memory", { .reason = TRANSPORT_CLOSED_NO_MEMORY }, "out_of_memory", { "memory" } },
	{ "gave up",
	  { .reason = TRANSPORT_CLOSED_BY_CLIENT, .age_us = 8 * S },
	  "no_check",
	  { "8 s" } },
	{ "changed its mind", { .reason = TRANSPORT_CLOSED_BY_CLIENT, .age_us = S }, NULL, { "" } },
	{ "was there and left",
	  { .reason = TRANSPORT_CLOSED_BY_PEER, .is_connected = true, .age_us = 99 * S },
	  NULL,
	  { "" } },
	{ "kicked", { .reason = TRANSPORT_CLOSED_BY_ADMIN, .age_us = 99 * S }, NULL, { "" } },
};

Test(diagnosis, each_cause_has_its_code_and_says_what_to_do)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct diagnosis_facts facts = rows[i].facts;
		char text[DIAGNOSIS_BYTES];
		enum diagnosis d;

		facts.addresses = "udp 192.0.2.1:8189";
		d = diagnosis_of(&facts);
		if (rows[i].code)
			cr_assert(d != DIAGNOSIS_NONE, "%s", rows[i].name);
		cr_expect_eq(d == DIAGNOSIS_NONE, rows[i].code == NULL, "%s", rows[i].name);
		if (rows[i].code)
			cr_expect_str_eq(diagnosis_code(d), rows[i].code, "%s", rows[i].name);
		diagnosis_write(text, d, &facts);
		cr_expect_eq(text[0] == '\0', rows[i].code == NULL, "%s: %s", rows[i].name, text);
		cr_expect_null(strchr(text, '\n'), "one line");
		for (size_t w = 0; w < 3 && rows[i].words[w]; w++)
			cr_expect(strstr(text, rows[i].words[w]), "%s: \"%s\" in \"%s\"",
				  rows[i].name, rows[i].words[w], text);
	}
}

/* Addresses of any number and texts of any length fit, and are never written beyond. */
Test(diagnosis, the_longest_words_fit_their_place)
{
	char addresses[400];
	struct diagnosis_facts facts = { .age_us = UINT64_MAX, .addresses = addresses };

	memset(addresses, 'a', sizeof(addresses) - 1);
	addresses[sizeof(addresses) - 1] = '\0';
	for (int d = DIAGNOSIS_NONE; d < DIAGNOSES; d++) {
		struct {
			char text[DIAGNOSIS_BYTES];
			char guard;
		} out;

		out.guard = '#';
		diagnosis_write(out.text, (enum diagnosis)d, &facts);
		cr_expect_eq(out.guard, '#');
		cr_expect_lt(strlen(out.text), DIAGNOSIS_BYTES);
		cr_expect_eq(diagnosis_code((enum diagnosis)d) == NULL, d == DIAGNOSIS_NONE);
	}
}
