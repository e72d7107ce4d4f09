/* net/stun.h - STUN messages as ICE uses them: parse, check, build.
 *
 * Source:  RFC 8489 (message format, short-term credentials, FINGERPRINT), RFC 8445 section 16.1
 *          (ICE attributes), RFC 7983 (which first byte is whose).
 * Sans-IO: pure functions of bytes. A parsed message points into the caller's bytes.
 * Thread:  any; no state is kept.
 * Memory:  none.
 */
#ifndef NET_STUN_H
#define NET_STUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"

enum {
	STUN_HEADER_BYTES = 20,
	STUN_TRANSACTION_BYTES = 12,
	STUN_HMAC_BYTES = 20,
	STUN_USERNAME_MAX_BYTES = 508, /* RFC 8489 14.3: "less than 509 bytes" */
	STUN_MAX_UNKNOWN = 4,          /* unknown attributes that a 420 names */
};

enum stun_class { STUN_REQUEST, STUN_INDICATION, STUN_SUCCESS, STUN_ERROR };

enum { STUN_BINDING = 0x001 }; /* the one method ICE uses */

enum stun_attribute {
	STUN_MAPPED_ADDRESS = 0x0001,
	STUN_USERNAME = 0x0006,
	STUN_MESSAGE_INTEGRITY = 0x0008,
	STUN_ERROR_CODE = 0x0009,
	STUN_UNKNOWN_ATTRIBUTES = 0x000a,
	STUN_REALM = 0x0014,
	STUN_NONCE = 0x0015,
	STUN_MESSAGE_INTEGRITY_SHA256 = 0x001c,
	STUN_XOR_MAPPED_ADDRESS = 0x0020,
	STUN_PRIORITY = 0x0024,
	STUN_USE_CANDIDATE = 0x0025,
	STUN_FINGERPRINT = 0x8028,
	STUN_ICE_CONTROLLED = 0x8029,
	STUN_ICE_CONTROLLING = 0x802a,
};

/* Error codes that ICE sends and reads. */
enum { STUN_CODE_UNKNOWN_ATTRIBUTE = 420, STUN_CODE_ROLE_CONFLICT = 487 };

enum stun_verdict {
	STUN_OK,
	STUN_NOT_STUN,        /* first byte, length or magic cookie of something else */
	STUN_MALFORMED,       /* an attribute leaves the message, or has an impossible size */
	STUN_BAD_FINGERPRINT, /* present, and wrong */
};

/* What a message says. Attributes behind MESSAGE-INTEGRITY are not seen (FINGERPRINT excepted);
 * of a repeated attribute the first counts. All pointers are into the parsed bytes. */
struct stun_message {
	const uint8_t *bytes;
	size_t len;
	const uint8_t *transaction; /* STUN_TRANSACTION_BYTES */
	const uint8_t *username;    /* not terminated; NULL when absent */
	uint64_t tie_breaker;       /* of ICE-CONTROLLED or ICE-CONTROLLING */
	struct net_addr mapped;     /* XOR-MAPPED-ADDRESS, decoded */
	uint32_t priority;
	enum stun_class class;
	uint16_t method;
	uint16_t username_bytes;
	uint16_t error_code;                /* 300 to 699; 0 = no ERROR-CODE */
	uint16_t integrity_offset;          /* of the MESSAGE-INTEGRITY attribute; 0 = absent */
	uint16_t unknown[STUN_MAX_UNKNOWN]; /* comprehension-required, not understood */
	uint8_t unknown_count;
	bool has_fingerprint; /* and it is right */
	bool has_mapped;
	bool has_priority;
	bool has_use_candidate;
	bool has_controlling;
	bool has_controlled;
};

/** RFC 7983: first byte 0 to 3. Says nothing about the rest. */
static inline bool stun_is_first_byte(uint8_t first)
{
	return first <= 3;
}

/** The cheap test a demultiplexer wants: first byte, size and magic cookie. */
bool stun_is_message(const uint8_t *bytes, size_t len);

/** Fill `m`, completely on STUN_OK; its content is undefined on any other verdict. */
enum stun_verdict stun_parse(struct stun_message *m, const uint8_t *bytes, size_t len);

/** Is MESSAGE-INTEGRITY present and right under `pwd`? Compared in constant time. */
bool stun_is_authentic(const struct stun_message *m, const char *pwd);

/** Split "ours:theirs" of a request sent to us at its first colon. False: absent, no colon, or
 *  an empty half. */
bool stun_username_split(const struct stun_message *m, const char **ours, size_t *ours_bytes,
			 const char **theirs, size_t *theirs_bytes);

/** For a datagram whose session is not known yet: the receiver's ufrag of a well-formed Binding
 *  request. `*local_ufrag` is into `bytes`, not terminated, at least one byte. */
bool stun_peek_username(const uint8_t *bytes, size_t len, const char **local_ufrag, size_t *n);

/** stun_parse() and stun_is_authentic() in one. */
bool stun_check_integrity(const uint8_t *bytes, size_t len, const char *pwd);

/* A message being built. Running out of room is remembered: stun_write_end() then returns 0. */
struct stun_writer {
	uint8_t *bytes;
	size_t cap, len;
	bool is_full;
};

/** Header of a Binding message. `bytes` stays the caller's. */
void stun_write_begin(struct stun_writer *w, uint8_t *bytes, size_t cap, enum stun_class class,
		      const uint8_t transaction[STUN_TRANSACTION_BYTES]);

/** One attribute, padded with zeroes. `n` may be 0 (then `value` may be NULL). */
void stun_write(struct stun_writer *w, uint16_t attribute, const void *value, size_t n);
void stun_write_u32(struct stun_writer *w, uint16_t attribute, uint32_t value);
void stun_write_u64(struct stun_writer *w, uint16_t attribute, uint64_t value);
/** USERNAME "theirs:ours" of a request that we send. */
void stun_write_username(struct stun_writer *w, const char *theirs, const char *ours);
/** XOR-MAPPED-ADDRESS; IPv4-mapped addresses go out as IPv4. */
void stun_write_mapped(struct stun_writer *w, const struct net_addr *a);
/** ERROR-CODE with an empty reason phrase. `code`: 300 to 699. */
void stun_write_error(struct stun_writer *w, uint16_t code);

/**
 * Add MESSAGE-INTEGRITY under `pwd` (NULL: none), then FINGERPRINT if asked for.
 *
 * @return bytes of the whole message; 0: it did not fit
 */
size_t stun_write_end(struct stun_writer *w, const char *pwd, bool with_fingerprint);

struct stun_span {
	const void *at; /* may be NULL when n is 0 */
	size_t n;
};

/** HMAC-SHA1 over two pieces. No allocation, no lock. */
void stun_hmac_sha1(struct stun_span key, struct stun_span head, struct stun_span tail,
		    uint8_t out[STUN_HMAC_BYTES]);

#endif
