/* server/plan.h - a session as control and its worker share it: what was agreed by offer and
 * answer, who serves it, and what it counts.
 *
 * A POST makes only this. The worker on which the kernel lands the first authentic STUN request
 * claims it and builds the session; until then nothing of it exists but these bytes. That of plain
 * RTP is claimed by the worker that it is posted to.
 *
 * Thread: the agreed part is fixed before the plan enters the directory; only the credentials and
 *         the wish may change until the claim, under `lock`, which the claimer takes once. `claim`
 *         moves once, 0 → session_ref or 0 → PLAN_GONE, by compare-and-swap. State and statistics
 *         are written by the owning worker, read by control.
 * Memory: counted references; the last one frees.
 */
#ifndef SERVER_PLAN_H
#define SERVER_PLAN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "media/answer.h"
#include "media/choice.h"
#include "media/mapping.h"
#include "net/dtls.h"
#include "net/ice.h"
#include "server/counter.h"
#include "server/diagnosis.h"
#include "server/plain.h"
#include "server/registry.h"
#include "server/stream.h"

#define PLAN_GONE UINT64_MAX /* value of `claim`: expired or deleted before anyone came */

enum plan_role { PLAN_PUBLISHER, PLAN_VIEWER };

enum plan_state {
	PLAN_WAITING,    /* no valid STUN request yet */
	PLAN_CONNECTING, /* claimed: ICE and DTLS */
	PLAN_CONNECTED,
	PLAN_CLOSED,
};

/* A viewer's side of one track. */
struct plan_track {
	bool is_used;
	uint32_t ssrc, rtx_ssrc; /* rtx_ssrc 0: no RTX */
	struct mapping mapping;
	/* Extensions with a value of its own for each sending, as far as agreed; 0: not. They are used
	 * where there is a layer to choose. */
	uint8_t transport_cc_id, send_time_id;
};

struct plan_stats {
	counter bytes, packets;             /* publisher: received; viewer: sent */
	counter track_bytes[STREAM_TRACKS]; /* publisher: of each track */
	counter lost, nacked, resent, keyframe_requests;
	counter rtt_us, jitter_us;
	counter estimate_bps; /* of a viewer's link; 0: nobody looks after it */
	counter send_failures;
	counter srtp_failures; /* packets of the peer whose authentication failed */
	counter layer;         /* of a viewer's video, plan_layer_pack(); 0: nothing to choose */
};

/* What of the video a viewer gets. */
struct plan_layer {
	uint8_t encoding, target;
	bool is_paused;
};

static inline uint64_t plan_layer_pack(struct plan_layer l)
{
	return UINT64_C(1) << 17 | (uint64_t)l.is_paused << 16 | (uint64_t)l.encoding << 8 |
	       l.target;
}

static inline struct plan_layer plan_layer_unpack(uint64_t word)
{
	return (struct plan_layer){
		.encoding = (uint8_t)(word >> 8),
		.target = (uint8_t)word,
		.is_paused = word >> 16 & 1,
	};
}

struct plan {
	_Atomic uint32_t refs;
	_Atomic uint64_t claim; /* 0, a session_ref, or PLAN_GONE */
	enum plan_role role;
	bool is_opaque;  /* publishers: payloads are encrypted end to end */
	uint64_t number; /* public */
	char id[REGISTRY_ID_BYTES];
	struct stream *stream;
	pthread_mutex_t lock; /* of the credentials, the wish, the path, the profile and `seen` */
	struct ice_credentials local, remote;
	struct choice_wish wish; /* viewers: which layer they asked for */
	struct net_path
	    path; /* where the peer is, ours and its address; zero before it connected */
	enum seal_profile profile;  /* 0 before it connected */
	struct diagnosis_seen seen; /* on the way there */
	struct dtls_fingerprint fingerprint;
	enum dtls_role dtls_role;
	struct dtls_identity *identity;
	struct plain_setup *plain;     /* NULL: ICE and DTLS */
	struct negotiated *negotiated; /* publishers only */
	/* Publishers: which of the codecs agreed on it sends, by enum media_kind: its place among them
	 * and 1 more, 0 while nothing came. Written by its worker. */
	_Atomic uint8_t codec_sent[STREAM_TRACKS];
	_Atomic bool is_codec_mailed; /* control has a letter about it that it has not read */
	struct plan_track tracks[STREAM_TRACKS]; /* viewers only; by enum media_kind */
	uint64_t created_us;

	_Atomic uint32_t state;  /* enum plan_state */
	_Atomic uint32_t reason; /* enum transport_reason, once closed */
	_Atomic bool has_connected;
	_Atomic uint64_t bad_checks; /* by any worker: checks from strangers that named it */
	struct plan_stats stats;

	/* Control's own. */
	char etag[REGISTRY_ETAG_BYTES];
	uint8_t client[16]; /* who asked for it */
	bool is_half_open;  /* answered, but not connected yet */
	bool is_over;       /* ended: kept a little, for its owner to ask why */
	bool is_listed_by_id;
	uint64_t over_us;
	char first_mid[SDP_MAX_MID_BYTES + 1]; /* of the first bundled m-line, and its kind */
	enum media_kind first_kind;
	uint8_t video_line; /* of the offer; of viewers with video */
	char video_mid[SDP_MAX_MID_BYTES + 1];
	struct event_stream *events; /* open ones */
	uint64_t events_opened;
	char former_ufrag[ICE_UFRAG_MAX_BYTES + 1]; /* in the directory too, after a restart */
	char ufrag[ICE_UFRAG_MAX_BYTES + 1];        /* the current one of ours */
	char remote_ufrag[ICE_UFRAG_MAX_BYTES + 1];
	struct plan *older, *newer;       /* by age */
	uint64_t heard_packets, heard_us; /* publishers: when packets last became more */
	uint64_t measured_us;             /* when the bytes below were read */
	uint64_t measured_bytes[STREAM_TRACKS];
	uint64_t bitrate_bps[STREAM_TRACKS]; /* of a publisher's tracks, over about a second */
};

/** One reference, all zero but that. @return NULL without memory */
struct plan *plan_create(enum plan_role role);
struct plan *plan_ref(struct plan *p);
/** Wipes the credentials with the last reference. NULL is allowed. */
void plan_unref(struct plan *p);
uint32_t plan_live(void);

#endif
