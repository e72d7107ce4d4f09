#include <criterion/criterion.h>
#include <string.h>

#include "tests/server/kit_stream.h"

TestSuite(plane_diagnosis, .timeout = 30);

static const struct kit_peer_config publisher = { .publishes = true, .audio = true, .video = true };
static const struct kit_peer_config viewer = { .audio = true, .video = true };

/* The API's word on a session: its code, and whether the sentence has these words. */
static void expect_word(struct kit_plane *p, uint64_t number, const char *state, const char *code,
			const char *words)
{
	json_t *json = registry_session(p->registry, number);
	const char *got = json_string_value(json_object_get(json, "code"));
	const char *detail = json_string_value(json_object_get(json, "detail"));

	cr_assert(json, "session %d is known", (int)number);
	cr_expect_str_eq(json_string_value(json_object_get(json, "state")), state);
	cr_expect_str_eq(got ? got : "", code, "%s, not %s: %s", code, got ? got : "nothing",
			 detail ? detail : "");
	cr_expect(strstr(detail ? detail : "", words), "\"%s\" in \"%s\"", words,
		  detail ? detail : "");
	json_decref(json);
}

/* One line further: what stands behind `key` in an SDP is turned into something else. */
static void spoil(char *text, const char *key, char with)
{
	char *at = strstr(text, key);

	cr_assert(at);
	at += strlen(key);
	*at = *at == with ? (char)(with + 1) : with;
}

static void spoil_password(void *arg, char *text)
{
	(void)arg;
	spoil(text, "a=ice-pwd:", 'a');
}

static void spoil_fingerprint(void *arg, char *text)
{
	(void)arg;
	spoil(text, "a=fingerprint:sha-256 ", '0');
}

static void answer_active(void *arg, char *text)
{
	char *at = strstr(text, "a=setup:passive");

	(void)arg;
	cr_assert(at);
	memcpy(at, "a=setup:active ", strlen("a=setup:passive"));
	memmove(at + strlen("a=setup:active"), at + strlen("a=setup:passive"),
		strlen(at + strlen("a=setup:passive")) + 1);
}

/* What a session that ended within twelve seconds says then, and half a minute later. */
static void expect_end(struct kit_plane *p, const char *code, const char *words)
{
	kit_plane_advance(p, 21000000);
	expect_word(p, 1, "closed", code, words);
	kit_plane_advance(p, 30000000);
	expect_word(p, 1, "closed", code, words);
	cr_expect_eq(plan_live(), 0, "what is remembered is no session any more");
	kit_plane_close(p);
}

Test(plane_diagnosis, no_check_arrives)
{
	struct kit_plane *p = kit_plane_open("", 1);

	kit_peer_open(p, "live", &publisher)->is_mute = true;
	kit_plane_advance(p, 1000000);
	expect_word(p, 1, "waiting", "", "");
	kit_plane_advance(p, 3000000);
	expect_word(p, 1, "waiting", "no_check", "8189");
	expect_end(p, "no_check", "Addresses the answer named: udp ");
}

Test(plane_diagnosis, checks_have_a_wrong_password)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer_config config = publisher;

	config.edit_answer = spoil_password;
	kit_peer_open(p, "live", &config);
	kit_plane_advance(p, 4000000);
	expect_word(p, 1, "waiting", "bad_credentials", "connectivity checks arrived, none under");
	expect_end(p, "bad_credentials", "credentials");
}

Test(plane_diagnosis, answers_do_not_reach_the_peer)
{
	struct kit_plane *p = kit_plane_open("", 1);

	kit_peer_open(p, "live", &publisher)->is_deaf = true;
	kit_plane_advance(p, 4000000);
	expect_word(p, 1, "connecting", "answers_lost", "arrived from 10.0.");
	expect_end(p, "answers_lost", "not to reach the client");
}

Test(plane_diagnosis, the_peer_begins_no_handshake)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer_config config = publisher;

	config.edit_answer = answer_active;
	kit_peer_open(p, "live", &config);
	kit_plane_advance(p, 4000000);
	expect_word(p, 1, "connecting", "no_client_hello", "began no DTLS handshake");
	expect_end(p, "no_client_hello", "a=setup:passive");
}

Test(plane_diagnosis, the_certificate_is_another)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer_config config = publisher;

	config.edit_offer = spoil_fingerprint;
	kit_peer_open(p, "live", &config);
	expect_end(p, "fingerprint_mismatch", "whose fingerprint its offer names");
}

/* A way to the peer that carries no DTLS. */
static void lose_dtls(void *arg, const struct kit_datagram *d)
{
	if (d->bytes[0] < 20 || d->bytes[0] > 63)
		kit_peer_receive(arg, d);
}

static bool run_nothing(void *arg)
{
	(void)arg;
	return false;
}

static uint64_t due_never(const void *arg)
{
	(void)arg;
	return UINT64_MAX;
}

static struct kit_peer *without_dtls(struct kit_plane *p, struct kit_between *between)
{
	struct kit_peer *peer = kit_peer_open(p, "live", &publisher);

	*between = (struct kit_between){ lose_dtls, run_nothing, due_never, peer };
	peer->between = between;
	return peer;
}

Test(plane_diagnosis, the_relays_flight_is_lost)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_between between;

	without_dtls(p, &between);
	kit_plane_advance(p, 4000000);
	expect_word(p, 1, "connecting", "handshake_unfinished", "flight got no answer");
	expect_end(p, "handshake_unfinished", "flight got no answer");
}

Test(plane_diagnosis, the_peer_sends_an_alert)
{
	/* RFC 6347: alert, DTLS 1.2, epoch 0, number 9, two bytes: fatal, bad_certificate. */
	static const uint8_t alert[] = { 21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 42 };
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_between between;
	struct kit_peer *peer = without_dtls(p, &between);

	kit_plane_advance(p, 1000000);
	kit_peer_send_raw(peer, alert, sizeof(alert));
	expect_end(p, "dtls_alert", "alert 42 (bad_certificate, unauthenticated)");
}

Test(plane_diagnosis, media_does_not_authenticate)
{
	static const uint8_t forged[60] = { 0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7 };
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *peer = kit_peer_join(p, "live", &publisher);

	for (int i = 0; i < 12; i++) {
		kit_peer_send_raw(peer, forged, sizeof(forged));
		kit_plane_advance(p, 500000);
	}
	expect_word(p, 1, "connected", "srtp_failures", "12 media packets");
	expect_end(p, "srtp_failures", "12 media packets");
}

Test(plane_diagnosis, a_publisher_sends_nothing_or_stops)
{
	struct kit_plane *p = kit_plane_open("session: {media_timeout_ms: 8000}\n", 1);
	struct kit_peer *peer = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);

	kit_plane_advance(p, 5000000);
	expect_word(p, 1, "connected", "no_media", "Connected, but no media arrived for ");
	expect_word(p, 2, "connected", "no_media", "no key frame");
	kit_peer_send_frame(peer, true, 3, 1000, NULL);
	kit_plane_advance(p, 2500000);
	expect_word(p, 1, "connected", "", "");
	kit_plane_advance(p, 5000000);
	expect_word(p, 1, "connected", "no_media", "after 3 packets");
	kit_peer_drop(v);
	expect_end(p, "no_media", "after 3 packets");
}

Test(plane_diagnosis, a_viewer_waits_for_a_publisher_over_tcp)
{
	struct kit_plane *p = kit_plane_open("streams: {wait_for_publisher: true}\n", 1);
	struct kit_peer *v = kit_peer_open(p, "live", &viewer);
	struct kit_peer *source;

	kit_stream_open(v, 0);
	kit_plane_advance(p, 1500000);
	cr_assert(v->is_connected);
	kit_plane_advance(p, 4000000);
	expect_word(p, 1, "connected", "no_publisher", "nobody publishes");
	source = kit_peer_join(p, "live", &publisher);
	for (int i = 0; i < 200; i++) {
		kit_peer_send_frame(source, i == 0, 3, 1000, NULL);
		kit_plane_advance(p, 33000);
	}
	expect_word(p, 1, "connected", "tcp_only", "Open the UDP port");
	expect_word(p, 2, "connected", "", "");
	kit_plane_close(p);
}

Test(plane_diagnosis, only_the_last_that_ended_are_remembered)
{
	enum { MORE = 20, ALL = REGISTRY_ENDED_SESSIONS + MORE };
	struct kit_plane *p = kit_plane_open("", 1);
	char last_id[REGISTRY_ID_BYTES], deleted_id[REGISTRY_ID_BYTES];
	json_t *json;

	for (unsigned i = 0; i < ALL; i++) {
		struct kit_peer *peer = kit_peer_open(p, "live", &publisher);

		peer->is_mute = true;
		cr_assert_eq(peer->status, REGISTRY_OK);
		memcpy(last_id, peer->id, sizeof(last_id));
		if (i == ALL - 2) {
			memcpy(deleted_id, peer->id, sizeof(deleted_id));
			cr_expect_eq(registry_end(p->registry, peer->id), REGISTRY_OK);
		}
		kit_plane_advance(p, 100000);
	}
	kit_plane_advance(p, 30000000);
	cr_expect_null(registry_session(p->registry, MORE));
	for (unsigned i = MORE + 1; i <= ALL; i++)
		if (i != ALL - 1)
			expect_word(p, i, "closed", "no_check", "No connectivity check");
	expect_word(p, ALL - 1, "closed", "", "");
	json = registry_session_status(p->registry, last_id);
	cr_expect_str_eq(json_string_value(json_object_get(json, "code")), "no_check");
	cr_expect_eq(json_object_size(json), 4);
	json_decref(json);
	cr_expect_null(registry_session_status(p->registry, deleted_id), "its owner's id is void");
	kit_plane_close(p);
}
