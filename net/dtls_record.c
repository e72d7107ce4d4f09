#include "net/dtls_record.h"

#include "pool/bytes.h"

enum {
	VERSION_1_0 = 0xfeff, /* of the first ClientHello's record, RFC 6347 section 4.1 */
	VERSION_1_2 = 0xfefd,
	HELLO_VERSION_BYTES = 2,
};

bool dtls_record_next(struct dtls_record *out, const uint8_t **bytes, size_t *len)
{
	const uint8_t *p = *bytes;
	uint16_t version;
	size_t body;

	if (*len < DTLS_RECORD_HEADER_BYTES)
		return false;
	version = be16_read(p + 1);
	body = be16_read(p + 11);
	if (version != VERSION_1_0 && version != VERSION_1_2)
		return false;
	if (p[0] < DTLS_CHANGE_CIPHER_SPEC || p[0] > DTLS_APPLICATION_DATA)
		return false;
	if (body == 0 || body > *len - DTLS_RECORD_HEADER_BYTES)
		return false;
	out->bytes = p;
	out->len = DTLS_RECORD_HEADER_BYTES + body;
	out->content = p[0];
	out->epoch = be16_read(p + 3);
	out->number = (uint64_t)be16_read(p + 5) << 32 | be32_read(p + 7);
	out->body = p + DTLS_RECORD_HEADER_BYTES;
	out->body_len = body;
	*bytes += out->len;
	*len -= out->len;
	return true;
}

/* Bytes that the fragment at p takes, 0 when it does not fit or claims too much. */
static size_t fragment_bytes(const uint8_t *p, size_t left)
{
	size_t message, offset, bytes;

	if (left < DTLS_FRAGMENT_HEADER_BYTES)
		return 0;
	message = be24_read(p + 1);
	offset = be24_read(p + 6);
	bytes = be24_read(p + 9);
	if (message > DTLS_MESSAGE_BYTES || be16_read(p + 4) >= DTLS_MESSAGES)
		return 0;
	if (offset + bytes > message || bytes > left - DTLS_FRAGMENT_HEADER_BYTES)
		return 0;
	/* CVE-2022-29190: an empty fragment of a message that is not empty moves nothing on. */
	if (bytes == 0 && message != 0)
		return 0;
	return DTLS_FRAGMENT_HEADER_BYTES + bytes;
}

uint32_t dtls_record_messages(const struct dtls_record *r)
{
	uint32_t mask = 0;
	size_t at, bytes;

	for (at = 0; at < r->body_len; at += bytes) {
		bytes = fragment_bytes(r->body + at, r->body_len - at);
		if (bytes == 0 || r->body[at] > 31)
			return 0;
		mask |= 1u << r->body[at];
	}
	return mask;
}

const uint8_t *dtls_record_hello_random(const struct dtls_record *r)
{
	const uint8_t *p = r->body;

	if (r->epoch != 0 || r->content != DTLS_HANDSHAKE_MESSAGE ||
	    r->body_len < DTLS_FRAGMENT_HEADER_BYTES + HELLO_VERSION_BYTES + DTLS_RANDOM_BYTES)
		return NULL;
	if (p[0] != DTLS_CLIENT_HELLO || be24_read(p + 6) != 0)
		return NULL;
	return p + DTLS_FRAGMENT_HEADER_BYTES + HELLO_VERSION_BYTES;
}
