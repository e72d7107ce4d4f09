#include "net/dtls_handshake.h"

#include <stdatomic.h>
#include <sys/time.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/srtp.h>

#include "net/dtls_bio.h"
#include "net/dtls_identity.h"
#include "pool/bytes.h"

enum {
	SECOND_US = 1000 * 1000,
	TIMER_FIRST_US = 200 * 1000, /* RFC 6347 4.2.4.1 lets real-time uses go below 1 s */
	TIMER_MAX_US = 3200 * 1000,
	RIVAL_US = 500 * 1000,
	EXPORT_BYTES = 2 * (SEAL_MAX_KEY_BYTES + SEAL_MAX_SALT_BYTES),
};

static const char export_label[] = "EXTRACTOR-dtls_srtp"; /* RFC 5764 section 4.2 */

/* Messages each side may receive in the clear after the hello. */
static const uint32_t from_server = 1u << DTLS_SERVER_HELLO | 1u << DTLS_HELLO_VERIFY_REQUEST |
				    1u << DTLS_CERTIFICATE | 1u << DTLS_SERVER_KEY_EXCHANGE |
				    1u << DTLS_CERTIFICATE_REQUEST | 1u << DTLS_SERVER_HELLO_DONE;
static const uint32_t from_client =
    1u << DTLS_CERTIFICATE | 1u << DTLS_CERTIFICATE_VERIFY | 1u << DTLS_CLIENT_KEY_EXCHANGE;

static _Atomic uint32_t live;

uint32_t dtls_handshake_live(void)
{
	return atomic_load_explicit(&live, memory_order_relaxed);
}

struct dtls_handshake *dtls_handshake_create(struct dtls_identity *id, enum dtls_role role,
					     const struct dtls_fingerprint *remote)
{
	struct dtls_handshake *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->identity = id;
	h->role = role;
	h->remote = remote;
	h->timer_us = UINT64_MAX;
	h->waiting = &h->queue[0];
	h->in = &h->queue[1];
	h->error = "";
	atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	return h;
}

void dtls_handshake_destroy(struct dtls_handshake *h)
{
	if (!h)
		return;
	SSL_free(h->ssl);
	OPENSSL_cleanse(h, sizeof(*h));
	free(h);
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

static unsigned timer_length(SSL *ssl, unsigned previous_us)
{
	(void)ssl;
	if (previous_us == 0)
		return TIMER_FIRST_US;
	return previous_us >= TIMER_MAX_US / 2 ? TIMER_MAX_US : previous_us * 2;
}

/* Plain alerts never get as far as here: what the library reports is authenticated. */
static void on_info(const SSL *ssl, int where, int value)
{
	struct dtls_handshake *h = SSL_get_app_data(ssl);

	if (where != SSL_CB_READ_ALERT)
		return;
	h->alert = (uint8_t)(value & 0xff);
	h->has_alert = true;
	h->is_alert_fatal = value >> 8 == SSL3_AL_FATAL;
}

/* One second's allowance; a broken try before its first build costs nothing. */
static bool may_rebuild(struct dtls_handshake *h)
{
	if (!h->has_built)
		return true;
	if (h->now_us - h->window_us >= SECOND_US) {
		h->window_us = h->now_us;
		h->window_rebuilds = 0;
	}
	return h->window_rebuilds < DTLS_REBUILDS_PER_S;
}

static void discard(struct dtls_handshake *h)
{
	SSL_free(h->ssl);
	h->ssl = NULL;
	h->phase = DTLS_PHASE_HELLO;
	h->has_random = false;
	h->rival_us = 0;
	h->clear_records = 0;
	h->timer_us = UINT64_MAX;
}

static bool build(struct dtls_handshake *h)
{
	BIO *bio;

	h->ssl = SSL_new(dtls_identity_context(h->identity, h->role));
	bio = h->ssl ? dtls_bio_create(h) : NULL;
	if (!bio) {
		discard(h);
		return false;
	}
	SSL_set_bio(h->ssl, bio, bio);
	SSL_set_app_data(h->ssl, h);
	SSL_set_info_callback(h->ssl, on_info);
	SSL_set_mtu(h->ssl, DTLS_MTU_BYTES);
	DTLS_set_timer_cb(h->ssl, timer_length);
	if (h->role == DTLS_SERVER)
		SSL_set_accept_state(h->ssl);
	else
		SSL_set_connect_state(h->ssl);
	if (h->has_built) {
		h->rebuilds++;
		h->window_rebuilds++;
	}
	h->has_built = true;
	return true;
}

/* --- what may reach the library -------------------------------------------------------- */

static bool start_over(struct dtls_handshake *h)
{
	if (!may_rebuild(h))
		return false;
	discard(h);
	return build(h);
}

/* We answered one ClientHello and here is another one, from a stranger or from the peer that began
 * anew. The peer's second flight takes a round trip, so whoever was answered first gets that long;
 * a hello that still comes after it shows that the answer went to the wrong one. */
static bool yields_to_rival(struct dtls_handshake *h)
{
	if (h->phase != DTLS_PHASE_ANSWERED)
		return false;
	if (h->rival_us == 0)
		h->rival_us = h->now_us;
	return h->now_us - h->rival_us >= RIVAL_US;
}

static bool admit_hello(struct dtls_handshake *h, const struct dtls_record *r)
{
	const uint8_t *random = dtls_record_hello_random(r);
	bool is_other =
	    random && h->has_random && memcmp(random, h->hello_random, DTLS_RANDOM_BYTES) != 0;

	if (h->phase != DTLS_PHASE_HELLO && !(is_other && yields_to_rival(h)))
		return false;
	if ((is_other || !h->ssl) && !start_over(h))
		return false;
	if (random) {
		memcpy(h->hello_random, random, DTLS_RANDOM_BYTES);
		h->has_random = true;
	}
	return true;
}

static bool admit_clear(struct dtls_handshake *h, const struct dtls_record *r)
{
	uint32_t mask;

	if (r->content == DTLS_CHANGE_CIPHER_SPEC)
		return h->phase == DTLS_PHASE_BEGUN && r->body_len == 1;
	if (r->content != DTLS_HANDSHAKE_MESSAGE)
		return false;
	mask = dtls_record_messages(r);
	if (mask == 0)
		return false;
	if (h->role == DTLS_SERVER && mask == 1u << DTLS_CLIENT_HELLO)
		return admit_hello(h, r);
	if (h->phase != DTLS_PHASE_ANSWERED && h->phase != DTLS_PHASE_BEGUN)
		return false;
	if (mask & ~(h->role == DTLS_SERVER ? from_client : from_server))
		return false;
	h->phase = DTLS_PHASE_BEGUN;
	return true;
}

/* Protected records that come before ChangeCipherSpec would at best be kept for later, and they
 * may be anybody's; once there are keys the library drops a forged one without a trace. */
static bool admit_protected(const struct dtls_handshake *h)
{
	OSSL_HANDSHAKE_STATE state;

	if (!h->ssl)
		return false;
	state = SSL_get_state(h->ssl);
	return h->phase == DTLS_PHASE_DONE || state == TLS_ST_SR_CHANGE ||
	       state == TLS_ST_CR_CHANGE;
}

/* --- running the library ---------------------------------------------------------------- */

static void fail(struct dtls_handshake *h, enum dtls_failure failure)
{
	h->state = DTLS_FAILED;
	h->failure = failure;
	dtls_queue_clear(&h->out);
}

static void deal_keys(struct dtls_handshake *h, enum seal_profile profile, const uint8_t *block)
{
	struct seal_keys *client = h->role == DTLS_CLIENT ? &h->tx : &h->rx;
	struct seal_keys *server = h->role == DTLS_CLIENT ? &h->rx : &h->tx;
	size_t key = seal_key_bytes(profile), salt = seal_salt_bytes(profile);

	client->profile = server->profile = profile;
	memcpy(client->key, block, key);
	memcpy(server->key, block + key, key);
	memcpy(client->salt, block + 2 * key, salt);
	memcpy(server->salt, block + 2 * key + salt, salt);
}

static bool export_keys(struct dtls_handshake *h)
{
	const SRTP_PROTECTION_PROFILE *chosen = SSL_get_selected_srtp_profile(h->ssl);
	uint8_t block[EXPORT_BYTES];
	enum seal_profile profile;
	size_t n;

	if (!chosen || !seal_profile_is_known((unsigned)chosen->id))
		return false;
	profile = (enum seal_profile)chosen->id;
	n = 2 * (seal_key_bytes(profile) + seal_salt_bytes(profile));
	if (SSL_export_keying_material(h->ssl, block, n, export_label, sizeof(export_label) - 1,
				       NULL, 0, 0) != 1)
		return false;
	deal_keys(h, profile, block);
	OPENSSL_cleanse(block, sizeof(block));
	return true;
}

/* The handshake proved that the peer owns the key of its certificate; is it the right one? Our
 * last flight leaves only then. */
static void finish(struct dtls_handshake *h)
{
	X509 *certificate = SSL_get1_peer_certificate(h->ssl);
	bool is_right = certificate && dtls_fingerprint_is_of(h->remote, certificate);

	X509_free(certificate);
	h->phase = DTLS_PHASE_DONE;
	if (!is_right) {
		h->mismatches++;
		fail(h, DTLS_FAILURE_FINGERPRINT);
	} else if (!export_keys(h)) {
		fail(h, DTLS_FAILURE_PROFILE);
	} else {
		h->state = DTLS_CONNECTED;
		h->error = "";
		SSL_free_buffers(h->ssl);
	}
}

/* The library gave up. What it wrote in doing so is an alert in the clear, which would end the
 * peer's handshake as well: take it back, and let the next record begin a new try. */
static void on_broken(struct dtls_handshake *h, uint8_t count, uint16_t used)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	h->error = why ? why : "unknown";
	h->out.count = count;
	h->out.used = used;
	if (h->has_alert && h->is_alert_fatal) {
		fail(h, DTLS_FAILURE_ALERT);
		return;
	}
	discard(h);
}

/* After the handshake: a repeated Finished makes the library repeat our last flight, an alert
 * ends the session, application data is nobody's. */
static void drain(struct dtls_handshake *h)
{
	uint8_t ignored[256];
	int n;

	ERR_clear_error();
	do
		n = SSL_read(h->ssl, ignored, sizeof(ignored));
	while (n > 0);
	if (h->has_alert && h->is_alert_fatal)
		fail(h, DTLS_FAILURE_ALERT);
	else if (SSL_get_error(h->ssl, n) == SSL_ERROR_ZERO_RETURN)
		h->state = DTLS_CLOSED;
}

static void advance(struct dtls_handshake *h)
{
	uint8_t count = h->out.count;
	uint16_t used = h->out.used;
	int result, error;

	ERR_clear_error();
	result = SSL_do_handshake(h->ssl);
	if (result == 1) {
		finish(h);
		return;
	}
	error = SSL_get_error(h->ssl, result);
	if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
		on_broken(h, count, used);
	else if (h->phase == DTLS_PHASE_HELLO && h->out.count > count)
		h->phase = DTLS_PHASE_ANSWERED;
}

/* Nothing protects a record number in the clear, yet the library's replay window would follow a
 * forged one and shut out the honest ones below it (CVE-2016-2181). So records in the clear are
 * numbered as they come; duplicates are told by their message numbers. */
static void renumber(struct dtls_handshake *h, uint8_t *record)
{
	be16_write(record + 5, 0);
	be32_write(record + 7, h->clear_records++);
}

static void on_record(struct dtls_handshake *h, const struct dtls_record *r)
{
	uint8_t record[DTLS_DATAGRAM_BYTES];
	bool ok = r->epoch == 0 ? admit_clear(h, r) : r->epoch == 1 && admit_protected(h);

	if (!ok) {
		h->strays++;
		return;
	}
	memcpy(record, r->bytes, r->len);
	if (r->epoch == 0)
		renumber(h, record);
	h->reading = record;
	h->reading_len = r->len;
	if (h->phase == DTLS_PHASE_DONE)
		drain(h);
	else
		advance(h);
	h->reading = NULL;
}

static void on_timer(struct dtls_handshake *h)
{
	uint8_t count = h->out.count;
	uint16_t used = h->out.used;

	ERR_clear_error();
	if (h->ssl && DTLSv1_handle_timeout(h->ssl) < 0)
		on_broken(h, count, used);
}

/* The timer's value means something only when the call returns 1. */
static void arm_timer(struct dtls_handshake *h)
{
	struct timeval left;

	if (!h->ssl)
		return; /* waits for a hello, or for its rebuild */
	h->timer_us = UINT64_MAX;
	if (h->phase != DTLS_PHASE_DONE && DTLSv1_get_timeout(h->ssl, &left) == 1)
		h->timer_us =
		    h->now_us + (uint64_t)left.tv_sec * SECOND_US + (uint64_t)left.tv_usec;
}

void dtls_handshake_run(struct dtls_handshake *h)
{
	struct dtls_record r;
	const uint8_t *bytes;
	size_t len;

	if (h->timer_us <= h->now_us)
		on_timer(h);
	while (h->state <= DTLS_CONNECTED && (bytes = dtls_queue_take(h->in, &len)) != NULL) {
		while (h->state <= DTLS_CONNECTED && dtls_record_next(&r, &bytes, &len))
			on_record(h, &r);
	}
	dtls_queue_clear(h->in);
	/* A client speaks first, also in a new try. */
	if (h->role == DTLS_CLIENT && !h->ssl && h->state == DTLS_HANDSHAKE) {
		if (may_rebuild(h) && build(h))
			advance(h);
		else
			h->timer_us = h->now_us + SECOND_US / DTLS_REBUILDS_PER_S;
	}
	arm_timer(h);
}
