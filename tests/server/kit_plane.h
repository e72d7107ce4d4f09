/* tests/server/kit_plane.h - a whole relay and its peers on one thread, without sockets or clock.
 *
 * The real registry and real workers over the loops and wires of kit_loop.h and kit_wire.h; peers
 * are real transports in client role that join with real offers. Everything between them is ICE,
 * DTLS and SRTP as on the wire; time passes only in kit_plane_advance(), and the same seed gives
 * the same run but for the handshakes' keys.
 */
#ifndef TESTS_SERVER_KIT_PLANE_H
#define TESTS_SERVER_KIT_PLANE_H

#include "media/offer.h"
#include "media/rtcp.h"
#include "media/rtp.h"
#include "server/registry.h"
#include "server/registry_inner.h"
#include "server/registry_life.h"
#include "server/worker_inner.h"
#include "tests/server/kit_loop.h"
#include "tests/server/kit_wire.h"

enum {
	KIT_PORT = 8189,
	KIT_HEAD_BYTES = 24, /* of each received payload that are kept */
	KIT_NUMBER_AT = 16,  /* where a payload carries its sender's number, 4 bytes */
	KIT_MIN_BYTES = 20,  /* shortest payload */
	KIT_NACKS = 4096,    /* remembered */
	KIT_TOLD = 4096,     /* likewise */
	KIT_PLIS = 1024,     /* likewise */
	KIT_CLOCK_START_US = 1000000000,
};

struct kit_plane {
	struct config *config;
	struct worker_shared shared;
	struct candidates candidates;
	struct loop *loop; /* control's */
	struct registry *registry;
	struct seal_engine *engine; /* the peers' */
	struct dtls_identity *identity;
	struct kit_peer *peers;
	uint64_t now_us;
	uint32_t next_host;
	/* Sees each datagram that leaves, whomever it is for; NULL: nobody does. */
	void (*on_datagram)(void *arg, const struct kit_datagram *d);
	void *on_datagram_arg;
	bool is_stopped;
};

/* What a peer got. */
struct kit_packet {
	uint64_t index; /* as SRTP counted it */
	uint64_t at_us;
	uint32_t ssrc, timestamp, message;
	uint16_t seq, osn; /* osn: of RTX, the number it repeats */
	uint16_t payload_bytes, wire_bytes;
	uint16_t segments;
	uint32_t number; /* what the publisher numbered it */
	uint8_t payload_type;
	bool marker, is_rtx;
	bool is_padding; /* and nothing else: as RTX, it repeats nothing */
	enum media_kind kind;
	struct ext_values ext;
	uint8_t head[KIT_HEAD_BYTES];
};

/* What lies between the relay and a peer, on the way to it. */
struct kit_between {
	/* A datagram of the relay's; kit_peer_receive() once it is through. */
	void (*take)(void *arg, const struct kit_datagram *d);
	/* Whatever is due. @return false: nothing was */
	bool (*run)(void *arg);
	uint64_t (*due_us)(const void *arg);
	void *arg;
};

struct kit_peer_config {
	bool publishes, audio, video, rtx, transport_cc, remb, is_opaque;
	unsigned worker; /* where the kernel lands its datagrams */
	/* Change the offer's text, of OFFER_MAX_BYTES, before it is sent, and the answer's before it is
	 * read; NULL: as they are. */
	void (*edit_offer)(void *arg, char *text);
	void (*edit_answer)(void *arg, char *text);
	/* Change a datagram of its transport, of len bytes with room for KIT_WIRE_BYTES, on the way to the
	 * relay. NULL: as it is. @return its length, 0: it is not sent */
	size_t (*edit_sent)(void *arg, struct kit_peer *peer, uint8_t *bytes, size_t len);
	void *edit_arg;
};

struct kit_peer {
	struct kit_plane *plane;
	struct kit_peer *next;
	struct kit_peer_config config;
	const struct kit_between *between; /* NULL: a wire that takes no time */
	char stream[65];
	struct net_addr addr; /* may be changed at any time: a NAT that moves */
	unsigned worker;
	struct transport *transport; /* NULL: refused, or torn down */
	struct kit_stream *tcp;      /* instead of datagrams (kit_stream.h) */
	struct ice_credentials local;
	struct negotiated terms;
	char id[REGISTRY_ID_BYTES], etag[REGISTRY_ETAG_BYTES];
	enum registry_status status;
	uint64_t due_us;
	bool is_connected, is_closed, is_mute,
	    is_deaf; /* nothing of it reaches the relay; nor it */
	enum transport_reason reason;

	/* A publisher's next numbers. */
	uint32_t ssrc[NEGOTIATED_KINDS], rtx_ssrc[NEGOTIATED_KINDS];
	uint64_t next_index[NEGOTIATED_KINDS], next_rtx;
	uint32_t timestamp[NEGOTIATED_KINDS];
	uint32_t next_number;
	uint16_t picture_id;

	/* What came. */
	unsigned loss_percent, lost; /* of datagrams that the relay sends it */
	uint64_t loss_seed;
	struct kit_packet *packets;
	size_t packet_count, packet_cap;
	uint64_t verdicts[TRANSPORT_VERDICTS];
	unsigned plis, firs, reports, sender_reports, byes, rembs;
	uint64_t last_pli_us;
	unsigned feedbacks; /* transport-wide ... */
	struct rtcp_twcc_status told[KIT_TOLD];
	size_t told_count;
	unsigned reference_times, answers; /* XR: RRTR and DLRR */
	uint64_t last_reference_ntp;
	struct rtcp_dlrr last_answer;
	uint32_t pli_ssrcs[KIT_PLIS]; /* of the last ones: plis counts them */
	uint16_t nacks[KIT_NACKS];
	uint32_t nack_ssrcs[KIT_NACKS];
	size_t nack_count;
};

/* Where peers reach the relay. */
extern const struct net_addr kit_relay_addr;

/** @param yaml settings on top of the defaults */
struct kit_plane *kit_plane_open(const char *yaml, unsigned workers);
/** Ends all sessions, stops the workers, and asserts that nothing is left of anything. */
void kit_plane_close(struct kit_plane *p);

/** Until nobody has anything to do at this moment. */
void kit_plane_settle(struct kit_plane *p);
/** Let time pass, from deadline to deadline, settling at each. */
void kit_plane_advance(struct kit_plane *p, uint64_t us);

struct worker *kit_plane_worker(struct kit_plane *p, unsigned i);
/** Sum of a counter over all workers; `offset` by offsetof(struct worker_counters, ...). */
uint64_t kit_plane_sum(const struct kit_plane *p, size_t offset);
#define KIT_SUM(plane, member) kit_plane_sum(plane, offsetof(struct worker_counters, member))

/** POST an offer; nothing is sent yet. peer->status tells what the registry said. */
struct kit_peer *kit_peer_open(struct kit_plane *p, const char *stream,
			       const struct kit_peer_config *config);
/** The same, and let it connect. Asserts that it did. */
struct kit_peer *kit_peer_join(struct kit_plane *p, const char *stream,
			       const struct kit_peer_config *config);
/** A datagram reaches the peer. */
void kit_peer_receive(struct kit_peer *peer, const struct kit_datagram *d);

/** Whatever its transport has to say, on the way. @return false: nothing */
bool kit_peer_poll(struct kit_peer *peer);
/** Gone without a word. */
void kit_peer_drop(struct kit_peer *peer);
/** DELETE. */
void kit_peer_leave(struct kit_peer *peer);
/** PATCH with new credentials, applied on this side too. @return what the registry said */
enum registry_status kit_peer_restart(struct kit_peer *peer);

/** Any bytes, from the peer's address. */
void kit_peer_send_raw(struct kit_peer *peer, const uint8_t *bytes, size_t len);

struct kit_rtp {
	enum media_kind kind;
	uint64_t index;
	uint32_t timestamp, number;
	uint16_t bytes, picture_id;
	bool marker, is_keyframe, is_start;
};

/** One media packet, sealed; again with as_rtx: repaired. */
void kit_peer_send(struct kit_peer *peer, const struct kit_rtp *rtp, bool as_rtx);
/** A frame of so many packets, each with so many payload bytes; what it was goes to `first` (may be
 *  NULL), the others follow with index, number + 1. */
void kit_peer_send_frame(struct kit_peer *peer, bool is_keyframe, unsigned packets, uint16_t bytes,
			 struct kit_rtp *first);
void kit_peer_send_audio(struct kit_peer *peer);
/** Any RTP packet under a 48-bit index, whose low 16 bits become its sequence number.
 *  @return false: what it has for a header is none */
bool kit_peer_send_plain(struct kit_peer *peer, const uint8_t *bytes, size_t len, uint64_t index);

void kit_peer_send_rtcp(struct kit_peer *peer, const uint8_t *bytes, size_t len);
void kit_peer_pli(struct kit_peer *peer);
void kit_peer_nack(struct kit_peer *peer, enum media_kind kind, const uint16_t *seqs, size_t n);

/** Forget the packets received so far. */
void kit_peer_forget(struct kit_peer *peer);
/** Packets of one kind received, RTX and media together or apart. */
size_t kit_peer_count(const struct kit_peer *peer, enum media_kind kind, bool is_rtx);

#endif
