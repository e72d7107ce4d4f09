#include "net/dtls_bio.h"

#include <pthread.h>

#include "net/dtls_handshake.h"

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

/* Our close_notify continues the numbers of the records that the SSL object sent. */
static void note_sent(struct dtls_handshake *h, const uint8_t *bytes, size_t len)
{
	struct dtls_record r;

	while (dtls_record_next(&r, &bytes, &len)) {
		if (r.epoch != 1 || r.body_len < sizeof(h->last_sent.explicit_nonce))
			continue;
		h->last_sent.number = r.number;
		memcpy(h->last_sent.explicit_nonce, r.body, sizeof(h->last_sent.explicit_nonce));
	}
}

/* A full queue loses the datagram as the network might: the timer repeats it. */
static int bio_write(BIO *bio, const char *data, int len)
{
	struct dtls_handshake *h = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (len <= 0)
		return 0;
	note_sent(h, (const uint8_t *)data, (size_t)len);
	dtls_queue_put(&h->out, (const uint8_t *)data, (size_t)len);
	return len;
}

static int bio_read(BIO *bio, char *out, int cap)
{
	struct dtls_handshake *h = BIO_get_data(bio);
	size_t n = h->reading_len;

	BIO_clear_retry_flags(bio);
	if (!h->reading) {
		BIO_set_retry_read(bio);
		return -1;
	}
	if (cap < 0)
		return -1;
	if (n > (size_t)cap)
		n = (size_t)cap; /* the rest of a datagram is lost, as on a socket */
	memcpy(out, h->reading, n);
	h->reading = NULL;
	return (int)n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	switch (command) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_DGRAM_QUERY_MTU:
	case BIO_CTRL_DGRAM_GET_FALLBACK_MTU:
		return DTLS_MTU_BYTES;
	default:
		return 0;
	}
}

static void make_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagram queue");

	if (m && (!BIO_meth_set_write(m, bio_write) || !BIO_meth_set_read(m, bio_read) ||
		  !BIO_meth_set_ctrl(m, bio_ctrl))) {
		BIO_meth_free(m);
		m = NULL;
	}
	method = m;
}

BIO *dtls_bio_create(struct dtls_handshake *h)
{
	BIO *bio;

	pthread_once(&method_once, make_method);
	bio = method ? BIO_new(method) : NULL;
	if (!bio)
		return NULL;
	BIO_set_data(bio, h);
	BIO_set_init(bio, 1);
	return bio;
}
