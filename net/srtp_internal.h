/* net/srtp_internal.h - what the parts of net/srtp share; included by net/srtp*.c only.
 *
 * An engine is a table of functions. Two of them (ipsecmb, evp) leave RTCP and opening to the
 * common framing in srtp_frame.c and supply ciphers; libsrtp2 brings a framing of its own.
 * Parsing, indices, replay windows and the SSRC cap (srtp_open.c) are common to all three.
 */
#ifndef NET_SRTP_INTERNAL_H
#define NET_SRTP_INTERNAL_H

#include "net/srtp.h"

enum {
	SEAL_RTP_MIN_BYTES = 12,
	SEAL_RTCP_MIN_BYTES = 8,
	SEAL_SHA1_TAG_BYTES = 10, /* HMAC-SHA1-80 */
	SEAL_GCM_TAG_BYTES = 16,
	SEAL_AUTH_KEY_BYTES = 20,
	SEAL_RTCP_WORD_BYTES = 4, /* E flag and index */
};

#define SEAL_RTCP_E_FLAG    UINT32_C(0x80000000)
#define SEAL_RTCP_INDEX_MAX UINT32_C(0x7fffffff)

struct seal_ops;

struct seal_engine {
	const struct seal_ops *ops;
	uint64_t failures;
	bool has_plain; /* jobs may be of seal_ops_plain too */
};

struct seal_tx {
	const struct seal_ops *ops;
	enum seal_profile profile;
	uint32_t rtcp_index; /* of the next packet; 2^31 when used up */
#ifdef SLUICE_DEBUG
	struct seal_record *record;
#endif
};

/* What is known of one SSRC that authenticated. */
struct seal_source {
	struct seal_source *next;
	uint32_t ssrc;
	bool has_rtp, has_rtcp;
	uint64_t rtp_top, rtcp_top;                      /* highest index that authenticated */
	uint64_t rtp_seen[SEAL_REPLAY_WINDOW_PKTS / 64]; /* bit index % window */
	uint64_t rtcp_seen[SEAL_RTCP_WINDOW_PKTS / 64];
};

struct seal_rx {
	const struct seal_ops *ops;
	enum seal_profile profile;
	uint32_t sources_count;
	struct seal_source *sources;
};

/* A packet to open, its bounds checked. */
struct seal_packet {
	uint8_t *bytes;
	size_t len;          /* with tag, and for RTCP with the index word */
	size_t header_bytes; /* clear and authenticated */
	uint32_t ssrc;
	uint64_t index;
};

struct seal_ops {
	const char *name;
	int (*create)(struct seal_engine **out);
	void (*destroy)(struct seal_engine *e);
	int (*tx_create)(struct seal_tx **out, struct seal_engine *e, const struct seal_keys *keys);
	void (*tx_destroy)(struct seal_tx *tx);
	size_t (*tx_bytes)(const struct seal_tx *tx);
	int (*rx_create)(struct seal_rx **out, struct seal_engine *e, const struct seal_keys *keys);
	void (*rx_destroy)(struct seal_rx *rx);
	size_t (*rx_bytes)(const struct seal_rx *rx);
	void (*seal_rtp)(struct seal_engine *e, const struct seal_job *jobs, size_t n);
	/* There is room, and tx->rtcp_index is valid and stays untouched. False: the library failed. */
	bool (*seal_rtcp)(struct seal_engine *e, struct seal_tx *tx, uint8_t *bytes, size_t len);
	/* True: authentic, and decrypted in place. */
	bool (*open_rtp)(struct seal_engine *e, struct seal_rx *rx, const struct seal_packet *p);
	bool (*open_rtcp)(struct seal_engine *e, struct seal_rx *rx, const struct seal_packet *p);
	const struct seal_cipher *cipher; /* of the common framing; NULL in libsrtp2 */
};

extern const struct seal_ops seal_ops_plain; /* of send contexts alone */
extern const struct seal_ops seal_ops_evp;
extern const struct seal_ops seal_ops_libsrtp;
#if SLUICE_IPSECMB
extern const struct seal_ops seal_ops_ipsecmb;
#endif

static inline bool seal_is_gcm(enum seal_profile profile)
{
	return profile != SEAL_AES_CM_128_HMAC_SHA1_80;
}

/* Session keys of RTP or of RTCP in one direction (RFC 3711 4.3). */
struct seal_session {
	uint8_t key[SEAL_MAX_KEY_BYTES];
	uint8_t auth[SEAL_AUTH_KEY_BYTES]; /* AES-CM only */
	uint8_t salt[SEAL_MAX_SALT_BYTES];
};

/** The pseudo-random function of RFC 3711 4.3.3, with 32-byte keys of RFC 6188 section 3.
 *  @return false: without memory */
bool seal_prf(const uint8_t *key, size_t key_bytes, const uint8_t salt[SEAL_MAX_SALT_BYTES],
	      uint8_t label, uint8_t *out, size_t n);

enum seal_purpose { SEAL_FOR_RTP = 0, SEAL_FOR_RTCP = 3 }; /* first of three labels */

/** @return 0 or -ENOMEM */
int seal_derive(struct seal_session *out, const struct seal_keys *keys, enum seal_purpose purpose);

/* HMAC-SHA1 after its key block: the chaining values of the inner and the outer hash. */
struct seal_hmac {
	uint32_t inner[5], outer[5];
};

void seal_hmac_init(struct seal_hmac *h, const uint8_t key[SEAL_AUTH_KEY_BYTES]);
/** First 10 bytes of the HMAC of `bytes` and, unless NULL, four more (a roll-over counter). */
void seal_hmac_tag(const struct seal_hmac *h, const uint8_t *bytes, size_t n, const uint8_t *roc,
		   uint8_t tag[SEAL_SHA1_TAG_BYTES]);

/* An expanded session key. Each engine appends its own part; AES-CM keys start as seal_cm_key. */
struct seal_key {
	uint8_t salt[SEAL_MAX_SALT_BYTES];
	uint8_t profile;
	uint8_t unused; /* keeps what follows 16-byte aligned */
};

struct seal_cm_key {
	struct seal_key base;
	struct seal_hmac hmac;
};

static inline const struct seal_hmac *seal_key_hmac(const struct seal_key *k)
{
	return &((const struct seal_cm_key *)k)->hmac;
}

/* AES-GCM over `bytes`, in place. */
struct seal_gcm {
	const uint8_t *iv; /* 12 bytes */
	const uint8_t *aad;
	size_t aad_bytes;
	uint8_t *bytes;
	size_t len;
	uint8_t *tag; /* 16 bytes: written when sealing, read when opening */
};

struct seal_cipher {
	/* 0 or -ENOMEM */
	int (*key_create)(struct seal_key **out, struct seal_engine *e, enum seal_profile profile,
			  const struct seal_session *session);
	void (*key_destroy)(struct seal_key *k); /* wipes; NULL is allowed */
	size_t (*key_size)(enum seal_profile profile);
	/* Expand into the engine's one scratch key, for what is rare; no allocation. */
	struct seal_key *(*key_borrow)(struct seal_engine *e, enum seal_profile profile,
				       const struct seal_session *session);
	void (*key_return)(struct seal_engine *e, struct seal_key *k); /* wipes */
	void (*gcm_seal)(struct seal_engine *e, struct seal_key *k, const struct seal_gcm *g);
	bool (*gcm_open)(struct seal_engine *e, struct seal_key *k, const struct seal_gcm *g);
	/* AES counter mode in place; encrypts and decrypts. */
	void (*ctr)(struct seal_engine *e, struct seal_key *k, const uint8_t iv[16], uint8_t *bytes,
		    size_t len);
};

/* A send context of the common framing. RTCP is rare, so its keys stay packed. */
struct seal_framed_tx {
	struct seal_tx base;
	struct seal_key *rtp;
	struct seal_session rtcp;
};

/* A receive context of it. Viewers send no RTP: its key is expanded for good only when a packet
 * has authenticated. */
struct seal_framed_rx {
	struct seal_rx base;
	struct seal_key *rtp; /* NULL until then */
	struct seal_session rtp_session;
	struct seal_session rtcp;
};

static inline struct seal_key *seal_rtp_key(const struct seal_tx *tx)
{
	return ((const struct seal_framed_tx *)tx)->rtp;
}

int seal_framed_tx_create(struct seal_tx **out, struct seal_engine *e,
			  const struct seal_keys *keys);
void seal_framed_tx_destroy(struct seal_tx *tx);
size_t seal_framed_tx_bytes(const struct seal_tx *tx);
int seal_framed_rx_create(struct seal_rx **out, struct seal_engine *e,
			  const struct seal_keys *keys);
void seal_framed_rx_destroy(struct seal_rx *rx);
size_t seal_framed_rx_bytes(const struct seal_rx *rx);
bool seal_framed_rtcp(struct seal_engine *e, struct seal_tx *tx, uint8_t *bytes, size_t len);
bool seal_framed_open_rtp(struct seal_engine *e, struct seal_rx *rx, const struct seal_packet *p);
bool seal_framed_open_rtcp(struct seal_engine *e, struct seal_rx *rx, const struct seal_packet *p);

/** RFC 7714 8.1: 00 00 | SSRC | ROC | SEQ, xor salt. */
void seal_gcm_iv(uint8_t iv[12], const uint8_t *salt, uint32_t ssrc, uint64_t index);
/** RFC 3711 4.1.1: salt * 2^16 xor SSRC * 2^64 xor index * 2^16. */
void seal_cm_iv(uint8_t iv[16], const uint8_t *salt, uint32_t ssrc, uint64_t index);

/** Memory of the sources of a receive context, and their release. */
size_t seal_sources_bytes(const struct seal_rx *rx);
void seal_sources_destroy(struct seal_rx *rx);

#endif
