/* server/registry.h - the streams and sessions that exist, seen from the control plane.
 *
 * Thread: control only. What workers own is reached by mail; what they count is read from
 *         relaxed atomics.
 * Memory: replies own their body; JSON values are the caller's reference.
 */
#ifndef SERVER_REGISTRY_H
#define SERVER_REGISTRY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registry;
struct text; /* server/text.h: a growing text buffer */

enum registry_status {
	REGISTRY_OK,
	REGISTRY_UNPARSABLE,      /* 400 */
	REGISTRY_UNACCEPTABLE,    /* 422: well-formed, but not something we can do */
	REGISTRY_NO_COMMON_CODEC, /* 406 */
	REGISTRY_NO_PUBLISHER,    /* 409, retry_after_s set */
	REGISTRY_FULL,            /* 503, retry_after_s set */
	REGISTRY_DRAINING,        /* 503 */
	REGISTRY_NOT_FOUND,       /* 404 */
	REGISTRY_STALE,           /* 412: If-Match names another ICE session */
	REGISTRY_FORBIDDEN,       /* 403: the configuration does not allow it */
	REGISTRY_TAKEN,           /* 409: somebody else has it */
	REGISTRY_TAG_MISSING,     /* 428: strict mode only */
};

enum {
	REGISTRY_REASON_BYTES = 256,
	REGISTRY_ID_BYTES = 24,   /* 128 bits as base64url, terminated */
	REGISTRY_ETAG_BYTES = 24, /* without the quotes */
};

/** A choice of layer as a player writes it; REGISTRY_LAYER_ANY and "" leave it to the relay. */
enum { REGISTRY_LAYER_ANY = -1, REGISTRY_LAYER_MAX = 7, REGISTRY_NAME_BYTES = 33 };
struct registry_layer {
	char media[REGISTRY_NAME_BYTES]; /* m-line of the answer, or mid; "": the video */
	char rid[REGISTRY_NAME_BYTES];
	int spatial, temporal;         /* this layer by hand, 0 to REGISTRY_LAYER_MAX */
	int max_spatial, max_temporal; /* none above it */
	int max_width, max_height;     /* pixels; 0: no limit */
};

struct registry_reply {
	enum registry_status status;
	char reason[REGISTRY_REASON_BYTES]; /* for a person, when status is not OK */
	char session_id[REGISTRY_ID_BYTES];
	char etag[REGISTRY_ETAG_BYTES]; /* empty: no ETag header */
	char *body;                     /* SDP or sdpfrag; the caller frees; NULL: none (204) */
	size_t body_bytes;
	unsigned retry_after_s; /* 0: none */
	uint64_t number;        /* public, of what was made; plain RTP only */
};

/* What a publisher brings. */
struct registry_offer {
	const char *text;
	size_t len;
	bool is_opaque; /* payloads are encrypted end to end: nothing may depend on them */
};

/** WHIP: an offer to send `stream`. The name has been validated.
 *  @param client who asks, for registry_on_settled(): the layout of struct net_addr */
void registry_publish(struct registry *r, const char *stream, const struct registry_offer *offer,
		      const uint8_t client[16], struct registry_reply *reply);

/** WHEP: an offer to receive `stream`. */
void registry_watch(struct registry *r, const char *stream, const char *offer, size_t len,
		    const uint8_t client[16], struct registry_reply *reply);

/* Plain RTP that is to feed a stream. */
struct registry_input {
	const char *sdp; /* what will be sent, and to which port as far as that is ours to give */
	size_t sdp_bytes;
	const char *source; /* IP address that it comes from; NULL: as the SDP says */
};

/** Open ports for it; with the first packet it becomes the stream's publisher. The reply's body is an
 *  SDP with the ports. */
void registry_open_input(struct registry *r, const char *stream, const struct registry_input *ask,
			 struct registry_reply *reply);
/** @return REGISTRY_OK or REGISTRY_NOT_FOUND */
enum registry_status registry_close_input(struct registry *r, const char *stream);
/** NULL: there is none. */
json_t *registry_input_json(struct registry *r, const char *stream);

/* Where a stream is to be sent as plain RTP. */
struct registry_output {
	const char *address; /* IP */
	uint16_t audio,
	    video;     /* ports, RTCP one above; 0: not that kind. One for both: they share it */
	bool rtcp_mux; /* RTCP on RTP's port */
};

/** Send the stream there from now on. The reply has an SDP for whoever receives it, and the number. */
void registry_open_output(struct registry *r, const char *stream, const struct registry_output *ask,
			  struct registry_reply *reply);
/** @return REGISTRY_OK or REGISTRY_NOT_FOUND */
enum registry_status registry_close_output(struct registry *r, const char *stream, uint64_t number);
/** One; NULL: there is none. */
json_t *registry_output_json(struct registry *r, const char *stream, uint64_t number);
/** All of a stream; an empty list when it has none. */
json_t *registry_outputs_json(struct registry *r, const char *stream);

/** Have `on_settled` called once for each session that was answered REGISTRY_OK: when it is no
 *  longer half open, because it connected or because it ended. NULL: none. */
void registry_on_settled(struct registry *r,
			 void (*on_settled)(void *arg, const uint8_t client[16]), void *arg);

/** Trickle (no body in the reply) or ICE restart (an sdpfrag in the reply, new etag).
 *  @param if_match the header's value as sent, NULL when absent
 *  @param strict   missing and stale tags are refused */
void registry_patch(struct registry *r, const char *id, const char *frag, size_t len,
		    const char *if_match, bool strict, struct registry_reply *reply);

/** Have a viewer's video sent in another way from now on.
 *  @param reason  filled unless REGISTRY_OK and REGISTRY_NOT_FOUND
 *  @return REGISTRY_OK, REGISTRY_NOT_FOUND (no viewer has that id) or REGISTRY_UNACCEPTABLE */
enum registry_status registry_select_layer(struct registry *r, const char *id,
					   const struct registry_layer *layer,
					   char reason[REGISTRY_REASON_BYTES]);

/** DELETE by the session's owner. @return REGISTRY_OK or REGISTRY_NOT_FOUND */
enum registry_status registry_end(struct registry *r, const char *id);

/** DELETE by an admin, by public number. @return REGISTRY_OK or REGISTRY_NOT_FOUND */
enum registry_status registry_kick(struct registry *r, uint64_t number);

/** Refuse new sessions from now on. */
void registry_drain(struct registry *r);

/** Accepting sessions: workers run, not draining, not full. */
bool registry_is_ready(const struct registry *r);

/** JSON of the API; NULL where there is no such thing (404) or memory ran out. */
json_t *registry_info(struct registry *r);
json_t *registry_streams(struct registry *r);
json_t *registry_sessions(struct registry *r);
json_t *registry_session(struct registry *r, uint64_t number);
/** State and reason for the holder of the session's id. */
json_t *registry_session_status(struct registry *r, const char *id);

/** Append the Prometheus text of streams, sessions, workers. */
void registry_metrics(struct registry *r, struct text *out);

#endif
