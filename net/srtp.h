/* net/srtp.h - sealing and opening the RTP and RTCP packets of one peer, by one of three engines.
 *
 * Source:  RFC 3711 (SRTP, SRTCP, key derivation), RFC 7714 (AES-GCM), RFC 6188 (derivation with
 *          256-bit keys). No MKI, key derivation rate 0, SRTCP always encrypted.
 * Sans-IO: bytes in, bytes out; the only state is keys, counters and replay windows.
 * Thread:  an engine belongs to one thread; so does every context made with it, and a context is
 *          used only with the engine that made it.
 * Memory:  seal_rtp(), seal_rtcp() and opening allocate nothing per packet in the engines
 *          SEAL_ENGINE_IPSECMB and SEAL_ENGINE_EVP. Opening allocates once when a new SSRC
 *          authenticates. libsrtp2 allocates as it likes. Keys are wiped when released.
 */
#ifndef NET_SRTP_H
#define NET_SRTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of IANA's DTLS-SRTP protection profiles (RFC 5764 4.1.2, RFC 7714 14.2). */
enum seal_profile {
	SEAL_AES_CM_128_HMAC_SHA1_80 = 1,
	SEAL_AEAD_AES_128_GCM = 7,
	SEAL_AEAD_AES_256_GCM = 8,
};

/* As a profile: none of IANA's, so nothing that a handshake agrees on; of seal_tx_create_plain() alone. */
enum { SEAL_PLAIN = 0x100 };

enum seal_engine_kind {
	SEAL_ENGINE_AUTO,    /* IPSECMB where it runs, else EVP */
	SEAL_ENGINE_IPSECMB, /* Intel's multi-buffer library, x86-64 with AES-NI */
	SEAL_ENGINE_EVP,     /* OpenSSL, anywhere */
	SEAL_ENGINE_LIBSRTP, /* libsrtp2, whose cost grows with the number of live contexts */
};

enum {
	SEAL_MAX_KEY_BYTES = 32,
	SEAL_MAX_SALT_BYTES = 14,
	SEAL_MAX_TAG_BYTES = 16,
	SEAL_RTCP_MAX_EXTRA_BYTES = 20, /* what seal_rtcp() adds at most: tag, E flag and index */
	SEAL_REPLAY_WINDOW_PKTS = 1024, /* RTP, per SSRC */
	SEAL_RTCP_WINDOW_PKTS = 128,    /* RTCP, per SSRC */
	SEAL_MAX_SSRCS = 16,            /* that one receive context keeps state for */
	SEAL_REPEAT_PKTS = 16384,       /* how far below an SSRC's highest index a repeat may lie */
};

/* Master key and master salt of one direction; the tail beyond the profile's sizes is ignored. */
struct seal_keys {
	enum seal_profile profile;
	uint8_t key[SEAL_MAX_KEY_BYTES];
	uint8_t salt[SEAL_MAX_SALT_BYTES];
};

struct seal_engine; /* one per thread */
struct seal_tx;     /* sends to one peer, any number of SSRCs */
struct seal_rx;     /* receives from one peer, at most SEAL_MAX_SSRCS SSRCs */

/* One packet to seal. Nothing but `out` is written. `out` receives header_bytes + lead_bytes +
 * payload_bytes + seal_tag_bytes(), not a byte more, and overlaps none of the inputs. */
struct seal_job {
	struct seal_tx *tx;
	uint64_t index;         /* 48 bits: roll-over counter << 16 | sequence number */
	const uint8_t *header;  /* complete RTP header with extensions: authenticated, in clear */
	const uint8_t *lead;    /* first payload bytes that differ per viewer; NULL with 0 bytes */
	const uint8_t *payload; /* the rest of the payload, shared between viewers */
	uint16_t header_bytes;  /* at least 12 */
	uint16_t lead_bytes;
	uint16_t payload_bytes;
	uint8_t *out;
};

enum seal_verdict {
	SEAL_OK,
	SEAL_MALFORMED,      /* too short, not version 2, or SRTCP that is not encrypted */
	SEAL_AUTH_FAILED,    /* forged, damaged, or under another key or roll-over counter */
	SEAL_REPLAYED,       /* seen before, or older than the window */
	SEAL_TOO_MANY_SSRCS, /* a further SSRC, or no memory for its state */
	SEAL_VERDICTS,
};

bool seal_profile_is_known(unsigned profile);
/** As IANA writes it, without "SRTP_": "AEAD_AES_128_GCM"; NULL when it is not known. */
const char *seal_profile_text(unsigned profile);
size_t seal_key_bytes(enum seal_profile profile);
size_t seal_salt_bytes(enum seal_profile profile);
/** Bytes that sealing an RTP packet adds. */
size_t seal_tag_bytes(enum seal_profile profile);

/** @param out receives the engine, the caller's (seal_engine_destroy()); NULL on failure
 *  @return 0, -ENOMEM, or -ENOTSUP: not built in, or not possible on this CPU */
int seal_engine_create(struct seal_engine **out, enum seal_engine_kind kind);
/** All its contexts are gone. NULL is allowed. */
void seal_engine_destroy(struct seal_engine *e);
/** "ipsecmb", "evp" or "libsrtp2". */
const char *seal_engine_name(const struct seal_engine *e);
/** RTP packets that the engine's library failed to seal; each left `out` all zero. Only
 *  libsrtp2 can fail: without memory, or for an index beyond SEAL_REPEAT_PKTS. */
uint64_t seal_engine_failures(const struct seal_engine *e);

/** Keys are copied. @return 0, -ENOMEM, or -EINVAL: the profile is unknown */
int seal_tx_create(struct seal_tx **out, struct seal_engine *e, const struct seal_keys *keys);
/** A context that leaves packets as they are, for plain RTP. @return 0 or -ENOMEM */
int seal_tx_create_plain(struct seal_tx **out, struct seal_engine *e);
void seal_tx_destroy(struct seal_tx *tx);
/** Memory held, without the debug build's record of seals; libsrtp2's part is an estimate. */
size_t seal_tx_bytes(const struct seal_tx *tx);
enum seal_profile seal_tx_profile(const struct seal_tx *tx);

/** Keys are copied. @return 0, -ENOMEM, or -EINVAL: the profile is unknown */
int seal_rx_create(struct seal_rx **out, struct seal_engine *e, const struct seal_keys *keys);
void seal_rx_destroy(struct seal_rx *rx);
size_t seal_rx_bytes(const struct seal_rx *rx);

/**
 * Seal n packets, of any mix of contexts and profiles of this engine.
 *
 * The index is the caller's duty: one index of one SSRC never goes with two contents, because
 * AES-GCM gives its authentication key away then. Sealing the same content again gives the same
 * bytes. Debug builds remember each context's last 1,024 seals and assert it.
 */
void seal_rtp(struct seal_engine *e, const struct seal_job *jobs, size_t n);

/**
 * Seal one RTCP packet, compound or reduced-size, in place. The context counts the index.
 *
 * @param len of the plain packet, at least 8
 * @param cap bytes there are at `bytes`
 * @return the sealed length, -ENOSPC (nothing written), -EOVERFLOW: 2^31 packets were sealed,
 *         the key is used up; or -ENOMEM (libsrtp2 only; the bytes must be dropped)
 */
int seal_rtcp(struct seal_engine *e, struct seal_tx *tx, uint8_t *bytes, size_t len, size_t cap);

/**
 * Open one SRTP packet in place. State changes only when it authenticates.
 *
 * @param len   in: of the sealed packet; out, with SEAL_OK only: of the RTP packet
 * @param index receives with SEAL_OK the 48-bit index (RFC 3711 3.3.1)
 * @return otherwise the bytes may be garbled and must be dropped
 */
enum seal_verdict seal_open_rtp(struct seal_engine *e, struct seal_rx *rx, uint8_t *bytes,
				size_t *len, uint64_t *index);

/** The same for SRTCP. */
enum seal_verdict seal_open_rtcp(struct seal_engine *e, struct seal_rx *rx, uint8_t *bytes,
				 size_t *len);

#endif
