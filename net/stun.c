/* The plain SHA-1 calls are called deprecated; see stun_hmac_sha1(). */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "net/stun.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "pool/bytes.h"

enum {
	COOKIE = 0x2112a442,
	ATTRIBUTE_HEADER_BYTES = 4,
	INTEGRITY_BYTES = ATTRIBUTE_HEADER_BYTES + STUN_HMAC_BYTES,
	FINGERPRINT_BYTES = ATTRIBUTE_HEADER_BYTES + 4,
	FINGERPRINT_XOR = 0x5354554e, /* RFC 8489 14.7 */
	FAMILY_V4 = 1,
	FAMILY_V6 = 2,
};

/* RFC 2104 over the plain SHA-1 calls: they keep their state on the stack, where the EVP interface
 * of OpenSSL 3 allocates for every hash it starts, also with a context that is used again. */
void stun_hmac_sha1(struct stun_span key, struct stun_span head, struct stun_span tail,
		    uint8_t out[STUN_HMAC_BYTES])
{
	uint8_t block[SHA_CBLOCK] = { 0 };
	SHA_CTX sha;

	if (key.n > sizeof(block))
		SHA1(key.at, key.n, block);
	else if (key.n)
		memcpy(block, key.at, key.n);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36;
	SHA1_Init(&sha);
	SHA1_Update(&sha, block, sizeof(block));
	SHA1_Update(&sha, head.at, head.n);
	SHA1_Update(&sha, tail.at, tail.n);
	SHA1_Final(out, &sha);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36 ^ 0x5c;
	SHA1_Init(&sha);
	SHA1_Update(&sha, block, sizeof(block));
	SHA1_Update(&sha, out, STUN_HMAC_BYTES);
	SHA1_Final(out, &sha);
	OPENSSL_cleanse(block, sizeof(block));
	OPENSSL_cleanse(&sha, sizeof(sha));
}

/* CRC-32 of ITU V.42, four bits at a time: the table stays in one cache line. */
static uint32_t crc32_of(const uint8_t *bytes, size_t len)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

bool stun_is_message(const uint8_t *bytes, size_t len)
{
	return len >= STUN_HEADER_BYTES && stun_is_first_byte(bytes[0]) &&
	       be32_read(bytes + 4) == COOKIE;
}

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* The method's bits surround the two class bits: RFC 8489 section 5. */
static void read_type(struct stun_message *m, uint16_t type)
{
	m->class = (enum stun_class)((type >> 7 & 2) | (type >> 4 & 1));
	m->method = (uint16_t)((type & 0xf) | (type >> 1 & 0x70) | (type >> 2 & 0xf80));
}

static bool read_mapped(struct stun_message *m, const uint8_t *value, size_t n)
{
	static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *pad = m->bytes + 4; /* cookie, then transaction id */
	size_t ip_bytes = n - 4;
	uint8_t *ip;

	if (n < 4 || ip_bytes != (value[1] == FAMILY_V4 ? 4 : 16) ||
	    (value[1] != FAMILY_V4 && value[1] != FAMILY_V6))
		return false;
	if (m->has_mapped)
		return true;
	ip = m->mapped.ip + sizeof(m->mapped.ip) - ip_bytes;
	if (value[1] == FAMILY_V4)
		memcpy(m->mapped.ip, v4_prefix, sizeof(v4_prefix));
	for (size_t i = 0; i < ip_bytes; i++)
		ip[i] = value[4 + i] ^ pad[i];
	m->mapped.port = (uint16_t)(be16_read(value + 2) ^ (COOKIE >> 16));
	m->has_mapped = true;
	return true;
}

static bool read_username(struct stun_message *m, const uint8_t *value, size_t n)
{
	if (n > STUN_USERNAME_MAX_BYTES)
		return false;
	if (!m->username) {
		m->username = value;
		m->username_bytes = (uint16_t)n;
	}
	return true;
}

static bool read_priority(struct stun_message *m, const uint8_t *value, size_t n)
{
	if (n != 4)
		return false;
	if (!m->has_priority)
		m->priority = be32_read(value);
	m->has_priority = true;
	return true;
}

/* `is_set`: has_controlling or has_controlled of `m`. */
static bool read_role(struct stun_message *m, bool *is_set, const uint8_t *value, size_t n)
{
	if (n != 8)
		return false;
	if (!m->has_controlling && !m->has_controlled) {
		m->tie_breaker = be64_read(value);
		*is_set = true;
	}
	return true;
}

static bool read_error(struct stun_message *m, const uint8_t *value, size_t n)
{
	if (n < 4 || (value[2] & 7) < 3 || (value[2] & 7) > 6 || value[3] > 99)
		return false;
	if (!m->error_code)
		m->error_code = (uint16_t)((value[2] & 7) * 100 + value[3]);
	return true;
}

static void note_unknown(struct stun_message *m, uint16_t type)
{
	/* 0x8000 and above: "comprehension-optional", RFC 8489 section 14 */
	if (type < 0x8000 && m->unknown_count < STUN_MAX_UNKNOWN)
		m->unknown[m->unknown_count++] = type;
}

/* One attribute in front of any integrity. @return false: its size is impossible */
static bool read_attribute(struct stun_message *m, uint16_t type, const uint8_t *value, size_t n)
{
	switch (type) {
	case STUN_USERNAME:
		return read_username(m, value, n);
	case STUN_XOR_MAPPED_ADDRESS:
		return read_mapped(m, value, n);
	case STUN_PRIORITY:
		return read_priority(m, value, n);
	case STUN_ICE_CONTROLLING:
		return read_role(m, &m->has_controlling, value, n);
	case STUN_ICE_CONTROLLED:
		return read_role(m, &m->has_controlled, value, n);
	case STUN_ERROR_CODE:
		return read_error(m, value, n);
	case STUN_USE_CANDIDATE:
		m->has_use_candidate = true;
		return n == 0;
	case STUN_MAPPED_ADDRESS: /* understood, and of no use to ICE */
	case STUN_UNKNOWN_ATTRIBUTES:
	case STUN_REALM:
	case STUN_NONCE:
		return true;
	default:
		note_unknown(m, type);
		return true;
	}
}

static bool is_fingerprint_right(const struct stun_message *m, size_t offset)
{
	uint32_t want = crc32_of(m->bytes, offset) ^ FINGERPRINT_XOR;

	return be32_read(m->bytes + offset + ATTRIBUTE_HEADER_BYTES) == want;
}

/* FINGERPRINT "MUST be the last attribute" (RFC 8489 14.7). */
static enum stun_verdict read_fingerprint(struct stun_message *m, size_t offset, size_t n)
{
	if (n != 4 || offset + FINGERPRINT_BYTES != m->len)
		return STUN_MALFORMED;
	if (!is_fingerprint_right(m, offset))
		return STUN_BAD_FINGERPRINT;
	m->has_fingerprint = true;
	return STUN_OK;
}

static enum stun_verdict read_attributes(struct stun_message *m)
{
	bool is_sealed = false; /* past integrity: only FINGERPRINT is still read */
	size_t offset = STUN_HEADER_BYTES;

	while (offset < m->len) {
		const uint8_t *at = m->bytes + offset;
		uint16_t type = be16_read(at);
		size_t n = be16_read(at + 2);

		/* Lengths are multiples of four, so a header always fits what is left. */
		if (padded(n) > m->len - offset - ATTRIBUTE_HEADER_BYTES)
			return STUN_MALFORMED;
		if (type == STUN_FINGERPRINT)
			return read_fingerprint(m, offset, n);
		if (!is_sealed && type == STUN_MESSAGE_INTEGRITY) {
			if (n != STUN_HMAC_BYTES)
				return STUN_MALFORMED;
			m->integrity_offset = (uint16_t)offset;
			is_sealed = true;
		} else if (!is_sealed && type == STUN_MESSAGE_INTEGRITY_SHA256) {
			/* ICE's short-term credentials are SHA-1; what follows is not ours. */
			is_sealed = true;
		} else if (!is_sealed && !read_attribute(m, type, at + ATTRIBUTE_HEADER_BYTES, n)) {
			return STUN_MALFORMED;
		}
		offset += ATTRIBUTE_HEADER_BYTES + padded(n);
	}
	return STUN_OK;
}

enum stun_verdict stun_parse(struct stun_message *m, const uint8_t *bytes, size_t len)
{
	if (!stun_is_message(bytes, len))
		return STUN_NOT_STUN;
	if (len % 4 != 0 || len > UINT16_MAX || be16_read(bytes + 2) != len - STUN_HEADER_BYTES)
		return STUN_MALFORMED;
	memset(m, 0, sizeof(*m));
	m->bytes = bytes;
	m->len = len;
	m->transaction = bytes + 8;
	read_type(m, be16_read(bytes));
	return read_attributes(m);
}

/* Header with the length the sender had when it computed the integrity: up to and including
 * that attribute (RFC 8489 14.5), whatever follows it. */
static void integrity_of(const uint8_t *bytes, size_t offset, const char *pwd,
			 uint8_t out[STUN_HMAC_BYTES])
{
	uint8_t header[STUN_HEADER_BYTES];

	memcpy(header, bytes, sizeof(header));
	be16_write(header + 2, (uint16_t)(offset + INTEGRITY_BYTES - STUN_HEADER_BYTES));
	stun_hmac_sha1(
	    (struct stun_span){ pwd, strlen(pwd) }, (struct stun_span){ header, sizeof(header) },
	    (struct stun_span){ bytes + STUN_HEADER_BYTES, offset - STUN_HEADER_BYTES }, out);
}

bool stun_is_authentic(const struct stun_message *m, const char *pwd)
{
	uint8_t want[STUN_HMAC_BYTES];

	if (!m->integrity_offset)
		return false;
	integrity_of(m->bytes, m->integrity_offset, pwd, want);
	return CRYPTO_memcmp(m->bytes + m->integrity_offset + ATTRIBUTE_HEADER_BYTES, want,
			     sizeof(want)) == 0;
}

bool stun_username_split(const struct stun_message *m, const char **ours, size_t *ours_bytes,
			 const char **theirs, size_t *theirs_bytes)
{
	const uint8_t *colon;

	if (!m->username || !m->username_bytes)
		return false;
	colon = memchr(m->username, ':', m->username_bytes);
	if (!colon)
		return false;
	*ours = (const char *)m->username;
	*ours_bytes = (size_t)(colon - m->username);
	*theirs = (const char *)colon + 1;
	*theirs_bytes = m->username_bytes - *ours_bytes - 1;
	return *ours_bytes > 0 && *theirs_bytes > 0;
}

bool stun_peek_username(const uint8_t *bytes, size_t len, const char **local_ufrag, size_t *n)
{
	struct stun_message m;
	const char *theirs;
	size_t theirs_bytes;

	return stun_parse(&m, bytes, len) == STUN_OK && m.class == STUN_REQUEST &&
	       m.method == STUN_BINDING &&
	       stun_username_split(&m, local_ufrag, n, &theirs, &theirs_bytes);
}

bool stun_check_integrity(const uint8_t *bytes, size_t len, const char *pwd)
{
	struct stun_message m;

	return stun_parse(&m, bytes, len) == STUN_OK && stun_is_authentic(&m, pwd);
}

void stun_write_begin(struct stun_writer *w, uint8_t *bytes, size_t cap, enum stun_class class,
		      const uint8_t transaction[STUN_TRANSACTION_BYTES])
{
	unsigned bits = (unsigned)class;

	*w = (struct stun_writer){ .bytes = bytes, .cap = cap };
	if (cap < STUN_HEADER_BYTES) {
		w->is_full = true;
		return;
	}
	be16_write(bytes, (uint16_t)((bits & 2) << 7 | (bits & 1) << 4 | STUN_BINDING));
	be16_write(bytes + 2, 0);
	be32_write(bytes + 4, COOKIE);
	memcpy(bytes + 8, transaction, STUN_TRANSACTION_BYTES);
	w->len = STUN_HEADER_BYTES;
}

/* Room for an attribute with header and padding written; NULL when it does not fit. */
static uint8_t *reserve(struct stun_writer *w, uint16_t attribute, size_t n)
{
	uint8_t *at = w->bytes + w->len;
	size_t whole = ATTRIBUTE_HEADER_BYTES + padded(n);

	if (w->is_full || n > UINT16_MAX || whole > w->cap - w->len ||
	    w->len + whole > UINT16_MAX) {
		w->is_full = true;
		return NULL;
	}
	be16_write(at, attribute);
	be16_write(at + 2, (uint16_t)n);
	memset(at + ATTRIBUTE_HEADER_BYTES + n, 0, padded(n) - n);
	w->len += whole;
	return at + ATTRIBUTE_HEADER_BYTES;
}

void stun_write(struct stun_writer *w, uint16_t attribute, const void *value, size_t n)
{
	uint8_t *at = reserve(w, attribute, n);

	if (at && n)
		memcpy(at, value, n);
}

void stun_write_u32(struct stun_writer *w, uint16_t attribute, uint32_t value)
{
	uint8_t *at = reserve(w, attribute, 4);

	if (at)
		be32_write(at, value);
}

void stun_write_u64(struct stun_writer *w, uint16_t attribute, uint64_t value)
{
	uint8_t *at = reserve(w, attribute, 8);

	if (at)
		be64_write(at, value);
}

void stun_write_username(struct stun_writer *w, const char *theirs, const char *ours)
{
	size_t head = strlen(theirs), tail = strlen(ours);
	uint8_t *at = reserve(w, STUN_USERNAME, head + 1 + tail);

	if (!at)
		return;
	at = mempcpy(at, theirs, head);
	*at++ = ':';
	mempcpy(at, ours, tail);
}

void stun_write_mapped(struct stun_writer *w, const struct net_addr *a)
{
	size_t ip_bytes = net_addr_is_v4(a) ? 4 : 16;
	const uint8_t *ip = a->ip + sizeof(a->ip) - ip_bytes;
	const uint8_t *pad = w->bytes + 4;
	uint8_t *at = reserve(w, STUN_XOR_MAPPED_ADDRESS, 4 + ip_bytes);

	if (!at)
		return;
	at[0] = 0;
	at[1] = ip_bytes == 4 ? FAMILY_V4 : FAMILY_V6;
	be16_write(at + 2, (uint16_t)(a->port ^ (COOKIE >> 16)));
	for (size_t i = 0; i < ip_bytes; i++)
		at[4 + i] = ip[i] ^ pad[i];
}

void stun_write_error(struct stun_writer *w, uint16_t code)
{
	assert(code >= 300 && code <= 699);
	stun_write_u32(w, STUN_ERROR_CODE, (uint32_t)(code / 100) << 8 | code % 100);
}

/* Both checks cover the header's length field as it stands once they are part of the message. */
static void set_length(struct stun_writer *w)
{
	be16_write(w->bytes + 2, (uint16_t)(w->len - STUN_HEADER_BYTES));
}

size_t stun_write_end(struct stun_writer *w, const char *pwd, bool with_fingerprint)
{
	size_t offset = w->len;
	uint8_t *at;

	if (pwd) {
		at = reserve(w, STUN_MESSAGE_INTEGRITY, STUN_HMAC_BYTES);
		if (!at)
			return 0;
		integrity_of(w->bytes, offset, pwd, at);
	}
	offset = w->len;
	if (with_fingerprint) {
		at = reserve(w, STUN_FINGERPRINT, 4);
		if (!at)
			return 0;
		set_length(w);
		be32_write(at, crc32_of(w->bytes, offset) ^ FINGERPRINT_XOR);
	}
	if (w->is_full)
		return 0;
	set_length(w);
	return w->len;
}
