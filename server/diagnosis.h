/* server/diagnosis.h - from what a session saw to one sentence for whoever wonders why it does not
 * run, with what to do about it.
 *
 * Sans-IO: a pure function of facts. Thread: any. Memory: none.
 */
#ifndef SERVER_DIAGNOSIS_H
#define SERVER_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/transport.h"

enum {
	DIAGNOSIS_BYTES = 640,           /* longest sentence, terminated */
	DIAGNOSIS_PATIENCE_US = 3000000, /* connecting may take this long without a word about it */
};

/* What the worker saw of a session that is not connected yet; kept as it was last. */
struct diagnosis_seen {
	struct net_addr peer; /* where the relay would send; zero: no valid check */
	uint64_t checks;      /* Binding requests and responses with the right integrity */
	uint64_t bad_checks;
	uint32_t mismatches; /* handshakes that ended with another certificate */
	enum dtls_progress progress;
	const char *error; /* static text of the library, "" or NULL: none */
	bool has_handshake;
	bool is_proven;   /* the peer answered something sent to `peer` */
	bool is_over_tcp; /* and no check came over UDP */
	bool has_alert, is_alert_authentic;
	uint8_t alert;
};

struct diagnosis_facts {
	struct diagnosis_seen seen;
	bool is_publisher;
	bool is_connected;      /* it is, or was */
	bool is_dtls_client;    /* the relay speaks first */
	bool has_publisher;     /* viewers: somebody publishes the stream */
	bool is_private_only;   /* what the answer named cannot be reached from the Internet */
	uint32_t reason;        /* enum transport_reason; TRANSPORT_OPEN while it lives */
	uint64_t age_us;        /* since the answer, to now or to its end */
	uint64_t idle_us;       /* publishers that connected: since media came last */
	uint64_t packets;       /* received from a publisher, sent to a viewer */
	uint64_t srtp_failures; /* packets whose authentication failed */
	/* DIAGNOSIS_NO_CHECK: */
	const char *addresses; /* that the answer named: "udp 192.0.2.1:8189, tcp 192.0.2.1:8189" */
};

enum diagnosis {
	DIAGNOSIS_NONE, /* nothing to say */
	DIAGNOSIS_NO_CHECK,
	DIAGNOSIS_BAD_CREDENTIALS,
	DIAGNOSIS_ANSWERS_LOST,
	DIAGNOSIS_NO_HELLO,
	DIAGNOSIS_HANDSHAKE_UNFINISHED,
	DIAGNOSIS_DTLS_ALERT,
	DIAGNOSIS_FINGERPRINT,
	DIAGNOSIS_NO_PROFILE,
	DIAGNOSIS_SRTP_FAILURES,
	DIAGNOSIS_NO_MEDIA,
	DIAGNOSIS_NO_PUBLISHER,
	DIAGNOSIS_TCP_ONLY,
	DIAGNOSIS_SILENT,
	DIAGNOSIS_STUCK,
	DIAGNOSIS_REPLACED,
	DIAGNOSIS_OTHER_CODEC,
	DIAGNOSIS_NO_MEMORY,
	DIAGNOSES
};

enum diagnosis diagnosis_of(const struct diagnosis_facts *facts);

/** Stable word for programs: "no_check"; NULL for DIAGNOSIS_NONE. */
const char *diagnosis_code(enum diagnosis d);

/** The sentences for people, one line; "" for DIAGNOSIS_NONE. Returns `out`. */
const char *diagnosis_write(char out[DIAGNOSIS_BYTES], enum diagnosis d,
			    const struct diagnosis_facts *facts);

#endif
