/* tests/net/kit_transport.h - a relay's transport and a client's, with a network of a test's own
 * choosing between them, on a fake clock. */
#ifndef TESTS_NET_KIT_TRANSPORT_H
#define TESTS_NET_KIT_TRANSPORT_H

#include "net/transport.h"

enum {
	KIT_START_US = 1000000,
	KIT_FLYING = 256,
	KIT_DATAGRAM_BYTES = 1500,
	KIT_RELAY = 0,
	KIT_CLIENT = 1,
};

struct kit_end {
	struct transport *t;
	struct net_addr addr;
	uint32_t verdicts[TRANSPORT_VERDICTS];
	uint32_t events[TRANSPORT_CLOSED + 1];
	uint32_t sent; /* datagrams */
	uint64_t sent_bytes;
	uint32_t astray;  /* sent to an address that is not the other end's */
	uint32_t works;   /* steps asked for */
	uint64_t idle_us; /* deadline of the last poll */
	enum transport_reason reason;
	bool is_working;                  /* a step waits for kit_work_finish() */
	uint8_t last[KIT_DATAGRAM_BYTES]; /* RTP or RTCP opened last */
	size_t last_len;
	uint64_t last_index;
};

struct kit_flying {
	uint64_t due_us;
	int to;
	struct net_path path; /* as the receiver sees it */
	size_t len;
	uint8_t bytes[KIT_DATAGRAM_BYTES];
};

struct kit_net {
	struct kit_end end[2];
	struct kit_flying flying[KIT_FLYING];
	int flying_count;
	uint64_t now_us;
	uint32_t random;
	int loss_pct, dup_pct, late_pct; /* late: 50 ms more than the others */
	uint64_t delay_us;
	bool is_work_held; /* steps wait for kit_work_finish() */
	struct dtls_identity *identity[2];
	struct seal_engine *engine;
	struct transport_config config[2];
};

/** Identities, engine and the two configurations; no transport yet. */
void kit_net_init(struct kit_net *n);
/** Both transports, the relay as the lite DTLS server; the client knows where the relay is. */
void kit_net_open(struct kit_net *n);
void kit_net_fini(struct kit_net *n);

/** Deliver, poll and let time pass until `until_us`. */
void kit_net_run(struct kit_net *n, uint64_t until_us);
/** The same, until both ends are connected. @return false: not by `until_us` */
bool kit_net_connect(struct kit_net *n, uint64_t until_us);
/** Poll one end until it is idle. */
void kit_net_poll(struct kit_net *n, int end);
/** Run and complete the step that `end` waits for. @return false: a zombie is gone */
bool kit_work_finish(struct kit_net *n, int end);
/** A datagram that arrives now, from `from` (NULL: the other end's address). */
enum transport_verdict kit_deliver(struct kit_net *n, int end, const struct net_addr *from,
				   const uint8_t *bytes, size_t len);
/** One RTP packet with `payload_bytes` of payload, sealed by `end`; returns its length. */
size_t kit_seal(struct kit_net *n, int end, uint64_t index, size_t payload_bytes, uint8_t *out);
/** Seal at `end` and deliver to the other. */
enum transport_verdict kit_send_media(struct kit_net *n, int end, uint64_t index);

#endif
