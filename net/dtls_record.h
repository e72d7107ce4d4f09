/* net/dtls_record.h - reading DTLS records and handshake fragments, without any key.
 *
 * Source:  RFC 6347 section 4.1 (record) and 4.2.2 (handshake header), RFC 5246 section 7.4.
 * Sans-IO: pure functions of bytes. Thread: any. Memory: none.
 */
#ifndef NET_DTLS_RECORD_H
#define NET_DTLS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DTLS_RECORD_HEADER_BYTES = 13,
	DTLS_FRAGMENT_HEADER_BYTES = 12,
	DTLS_RANDOM_BYTES = 32,
	DTLS_MESSAGE_BYTES = 8192, /* claims of larger handshake messages are refused */
	DTLS_MESSAGES = 16,        /* message numbers of a handshake stay below */
};

enum dtls_content {
	DTLS_CHANGE_CIPHER_SPEC = 20,
	DTLS_ALERT = 21,
	DTLS_HANDSHAKE_MESSAGE = 22,
	DTLS_APPLICATION_DATA = 23,
};

enum dtls_message {
	DTLS_CLIENT_HELLO = 1,
	DTLS_SERVER_HELLO = 2,
	DTLS_HELLO_VERIFY_REQUEST = 3,
	DTLS_CERTIFICATE = 11,
	DTLS_SERVER_KEY_EXCHANGE = 12,
	DTLS_CERTIFICATE_REQUEST = 13,
	DTLS_SERVER_HELLO_DONE = 14,
	DTLS_CERTIFICATE_VERIFY = 15,
	DTLS_CLIENT_KEY_EXCHANGE = 16,
};

struct dtls_record {
	const uint8_t *bytes; /* header included */
	size_t len;
	enum dtls_content content;
	uint16_t epoch;
	uint64_t number;     /* 48 bits */
	const uint8_t *body; /* clear in epoch 0 */
	size_t body_len;
};

/** Read the record at *bytes and move past it. @return false: no complete record of DTLS 1.0 to
 *  1.2 with a known content type (a ClientHello may carry the version number of 1.0) */
bool dtls_record_next(struct dtls_record *out, const uint8_t **bytes, size_t *len);

/** The handshake messages that fragments of an epoch 0 handshake record belong to, as a bit mask
 *  (bit n = message type n). 0 when any of them is malformed or claims more than the caps. */
uint32_t dtls_record_messages(const struct dtls_record *r);

/** Where the record begins a ClientHello: its client random, else NULL. */
const uint8_t *dtls_record_hello_random(const struct dtls_record *r);

#endif
