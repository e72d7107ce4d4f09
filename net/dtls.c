#include "net/dtls.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include <openssl/crypto.h>

#include "net/dtls_closer.h"
#include "net/dtls_handshake.h"
#include "net/dtls_identity.h"

struct dtls {
	struct dtls_handshake *handshake; /* NULL once released */
	struct dtls_identity *identity;
	struct dtls_fingerprint remote;
	enum dtls_role role;
	enum dtls_state state;
	enum dtls_failure failure;
	bool is_lent;  /* between submit and complete the handshake is another thread's */
	bool is_begun; /* a client's first step was taken */

	struct seal_keys tx, rx;
	enum dtls_aead aead;
	struct dtls_closer closer;
	const char *cipher;

	uint8_t alert;
	bool has_alert, is_alert_authentic;
	struct dtls_status last; /* before it was lent, or released */
};

enum {
	SSL_ESTIMATE_BYTES = 76 * 1024, /* measured: half-open, its buffers included */
	SSL_SLIM_BYTES = 39 * 1024,     /* finished, buffers given back */
};

static _Atomic uint32_t live;

int dtls_create(struct dtls **out, struct dtls_identity *id, enum dtls_role role,
		const struct dtls_fingerprint *remote)
{
	struct dtls *d;

	*out = NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->handshake = dtls_handshake_create(id, role, &d->remote);
	if (!d->handshake) {
		free(d);
		return -ENOMEM;
	}
	d->identity = dtls_identity_ref(id);
	d->role = role;
	d->remote = *remote;
	d->cipher = "";
	d->last.error = "";
	d->last.cipher = "";
	atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	*out = d;
	return 0;
}

void dtls_destroy(struct dtls *d)
{
	if (!d)
		return;
	assert(!d->is_lent);
	dtls_handshake_destroy(d->handshake);
	dtls_identity_unref(d->identity);
	OPENSSL_cleanse(d, sizeof(*d));
	free(d);
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

static void note_alert(struct dtls *d, uint8_t description, bool is_authentic)
{
	d->alert = description;
	d->has_alert = true;
	d->is_alert_authentic = is_authentic;
}

/* Without the SSL object an authenticated alert is all that can still mean something. */
static enum dtls_verdict on_late_record(struct dtls *d, const struct dtls_record *r)
{
	uint8_t alert[2];

	if (d->state != DTLS_CONNECTED || dtls_closer_open(&d->closer, d->aead, r, alert) != 0)
		return DTLS_STRAY;
	note_alert(d, alert[1], true);
	if (alert[1] == SSL3_AD_CLOSE_NOTIFY) {
		d->state = DTLS_CLOSED;
	} else if (alert[0] == SSL3_AL_FATAL) {
		d->state = DTLS_FAILED;
		d->failure = DTLS_FAILURE_ALERT;
	}
	return DTLS_QUEUED;
}

/* What can be told without knowing how far the handshake is. */
static enum dtls_verdict judge(struct dtls *d, const struct dtls_record *r)
{
	if (r->epoch > 1)
		return DTLS_STRAY;
	if (r->epoch == 1)
		return d->handshake ? DTLS_QUEUED : on_late_record(d, r);
	if (r->content == DTLS_ALERT) {
		if (r->body_len >= 2 && !d->is_alert_authentic)
			note_alert(d, r->body[1], false);
		return DTLS_PLAIN_ALERT;
	}
	if (r->content == DTLS_APPLICATION_DATA || !d->handshake)
		return DTLS_STRAY;
	return r->content == DTLS_CHANGE_CIPHER_SPEC || dtls_record_messages(r) ? DTLS_QUEUED
										: DTLS_STRAY;
}

enum dtls_verdict dtls_on_datagram(struct dtls *d, const uint8_t *bytes, size_t len)
{
	uint8_t kept[DTLS_DATAGRAM_BYTES];
	enum dtls_verdict verdict = DTLS_MALFORMED, v;
	struct dtls_record r;
	size_t kept_len = 0;
	bool is_useful = false;

	if (len > DTLS_DATAGRAM_BYTES)
		return DTLS_MALFORMED;
	if (d->state > DTLS_CONNECTED)
		return DTLS_STRAY;
	while (dtls_record_next(&r, &bytes, &len)) {
		v = judge(d, &r);
		if (v != DTLS_QUEUED) {
			verdict = v;
			continue;
		}
		is_useful = true;
		memcpy(kept + kept_len, r.bytes, r.len);
		kept_len += r.len;
	}
	if (!is_useful)
		return verdict;
	if (d->handshake && !dtls_queue_put(d->handshake->waiting, kept, kept_len))
		return DTLS_QUEUE_FULL;
	return DTLS_QUEUED;
}

bool dtls_wants_step(const struct dtls *d, uint64_t now_us)
{
	assert(!d->is_lent);
	if (!d->handshake || d->state > DTLS_CONNECTED)
		return false;
	if (d->role == DTLS_CLIENT && !d->is_begun)
		return true;
	return d->handshake->waiting->count > 0 || d->handshake->timer_us <= now_us;
}

bool dtls_is_step_heavy(const struct dtls *d)
{
	assert(!d->is_lent);
	return d->handshake && d->state == DTLS_HANDSHAKE && d->handshake->waiting->count > 0;
}

uint64_t dtls_deadline_us(const struct dtls *d)
{
	assert(!d->is_lent);
	return d->handshake && d->state <= DTLS_CONNECTED ? d->handshake->timer_us : UINT64_MAX;
}

static void read_status(const struct dtls *d, struct dtls_status *out)
{
	const struct dtls_handshake *h = d->handshake;

	static const enum dtls_progress progress[] = {
		[DTLS_PHASE_HELLO] = DTLS_PROGRESS_NONE,
		[DTLS_PHASE_ANSWERED] = DTLS_PROGRESS_ANSWERED,
		[DTLS_PHASE_BEGUN] = DTLS_PROGRESS_BEGUN,
		[DTLS_PHASE_DONE] = DTLS_PROGRESS_DONE,
	};

	memset(out, 0, sizeof(*out));
	out->progress = progress[h->phase];
	out->cipher = d->cipher;
	out->error = h->error;
	out->rebuilds = h->rebuilds;
	out->strays = h->strays;
	out->fingerprint_mismatches = h->mismatches;
}

void dtls_submit(struct dtls *d, uint64_t now_us)
{
	struct dtls_handshake *h = d->handshake;
	struct dtls_queue *q = h->in;

	assert(!d->is_lent);
	read_status(d, &d->last);
	d->is_lent = true;
	d->is_begun = true;
	h->in = h->waiting;
	h->waiting = q;
	h->now_us = now_us;
	if (h->out.next == h->out.count)
		dtls_queue_clear(&h->out);
}

void dtls_work(struct dtls *d)
{
	dtls_handshake_run(d->handshake);
}

static void on_connected(struct dtls *d)
{
	struct dtls_handshake *h = d->handshake;

	d->tx = h->tx;
	d->rx = h->rx;
	d->cipher = SSL_get_cipher_name(h->ssl);
}

void dtls_complete(struct dtls *d)
{
	struct dtls_handshake *h = d->handshake;

	assert(d->is_lent);
	d->is_lent = false;
	if (d->state == DTLS_HANDSHAKE && h->phase == DTLS_PHASE_DONE && h->state != DTLS_FAILED)
		on_connected(d);
	d->state = h->state;
	d->failure = h->failure;
	if (h->has_alert)
		note_alert(d, h->alert, true);
}

void dtls_cancel(struct dtls *d)
{
	struct dtls_handshake *h = d->handshake;
	struct dtls_queue *newer = h->waiting;
	const uint8_t *bytes;
	size_t len;

	assert(d->is_lent);
	d->is_lent = false;
	h->waiting = h->in;
	h->in = newer;
	while ((bytes = dtls_queue_take(newer, &len)) != NULL)
		dtls_queue_put(h->waiting, bytes, len); /* or lost, as any datagram may be */
	dtls_queue_clear(newer);
}

void dtls_step(struct dtls *d, uint64_t now_us)
{
	dtls_submit(d, now_us);
	dtls_work(d);
	dtls_complete(d);
}

const uint8_t *dtls_next_datagram(struct dtls *d, size_t *len)
{
	assert(!d->is_lent);
	return d->handshake ? dtls_queue_take(&d->handshake->out, len) : NULL;
}

enum dtls_state dtls_state(const struct dtls *d)
{
	return d->state;
}

enum dtls_failure dtls_failure(const struct dtls *d)
{
	return d->failure;
}

int dtls_keys(const struct dtls *d, struct seal_keys *tx, struct seal_keys *rx)
{
	if (d->state != DTLS_CONNECTED || !d->handshake)
		return -EAGAIN;
	*tx = d->tx;
	*rx = d->rx;
	return 0;
}

void dtls_release(struct dtls *d)
{
	assert(!d->is_lent);
	if (!d->handshake || (d->state != DTLS_CONNECTED && d->state != DTLS_CLOSED))
		return;
	d->aead = dtls_closer_init(&d->closer, d->handshake->ssl, &d->handshake->last_sent);
	read_status(d, &d->last);
	dtls_handshake_destroy(d->handshake);
	d->handshake = NULL;
	OPENSSL_cleanse(&d->tx, sizeof(d->tx));
	OPENSSL_cleanse(&d->rx, sizeof(d->rx));
}

/* The SSL object goes first: it and the closer must never both use a record number. */
size_t dtls_close_notify(struct dtls *d, uint8_t *out, size_t cap)
{
	assert(!d->is_lent);
	dtls_release(d);
	return d->handshake ? 0 : dtls_closer_seal(&d->closer, d->aead, out, cap);
}

void dtls_status(const struct dtls *d, struct dtls_status *out)
{
	if (d->is_lent || !d->handshake)
		*out = d->last;
	else
		read_status(d, out);
	out->is_released = !d->handshake;
	out->bytes = sizeof(*d);
	if (d->handshake)
		out->bytes += sizeof(*d->handshake) +
			      (d->state == DTLS_HANDSHAKE ? SSL_ESTIMATE_BYTES : SSL_SLIM_BYTES);
	out->alert = d->alert;
	out->has_alert = d->has_alert;
	out->is_alert_authentic = d->is_alert_authentic;
}

/* RFC 8446 section 6, RFC 5246 section 7.2. */
static const char *const alerts[] = {
	[0] = "close_notify",
	[10] = "unexpected_message",
	[20] = "bad_record_mac",
	[22] = "record_overflow",
	[40] = "handshake_failure",
	[42] = "bad_certificate",
	[43] = "unsupported_certificate",
	[44] = "certificate_revoked",
	[45] = "certificate_expired",
	[46] = "certificate_unknown",
	[47] = "illegal_parameter",
	[48] = "unknown_ca",
	[49] = "access_denied",
	[50] = "decode_error",
	[51] = "decrypt_error",
	[70] = "protocol_version",
	[71] = "insufficient_security",
	[80] = "internal_error",
	[86] = "inappropriate_fallback",
	[90] = "user_canceled",
	[100] = "no_renegotiation",
	[109] = "missing_extension",
	[110] = "unsupported_extension",
	[112] = "unrecognized_name",
	[116] = "certificate_required",
	[120] = "no_application_protocol",
};

const char *dtls_alert_text(uint8_t description)
{
	const char *text =
	    description < sizeof(alerts) / sizeof(alerts[0]) ? alerts[description] : NULL;

	return text ? text : "unknown";
}

void dtls_live(struct dtls_live *out)
{
	out->handshakes = atomic_load_explicit(&live, memory_order_relaxed);
	out->ssl_objects = dtls_handshake_live();
	out->identities = dtls_identity_live();
}
