/* server/registry_inner.h - the registry as its own parts see it.
 *
 * Thread: control.
 */
#ifndef SERVER_REGISTRY_INNER_H
#define SERVER_REGISTRY_INNER_H

#include "media/layer_table.h"
#include "net/loop.h"
#include "server/candidates.h"
#include "server/events.h"
#include "server/registry.h"
#include "server/worker.h"

enum {
	REGISTRY_TICK_US = 1000000,
	/* Handshake steps in the queue above which a joiner is told to come back: each takes about
	 * 0.5 ms of a helper, and one that waits too long is given up by its peer for nothing. */
	REGISTRY_BUSY_STEPS = 256,
	REGISTRY_MEMORY_US = 5000000,    /* how long an ended session can still be asked about */
	REGISTRY_MEMORY_SESSIONS = 4096, /* and how many of them at most */
	REGISTRY_ENDED_SESSIONS = 256, /* of the last that ended the API's words are kept longer */
};

/* A stream as control knows it. */
struct stream_entry {
	struct stream *stream;
	struct plan *publisher;    /* connected and feeding, or about to; a reference */
	struct plan *incoming;     /* connected, waits for the one before to give the feed back */
	struct feed *feed;         /* at home while nobody feeds */
	bool is_feed_away;         /* with the publisher, or on its way from or to it */
	uint32_t plans;            /* sessions that name it */
	struct layer_table layers; /* of its publisher's video; empty: nothing to choose */
};

/* What is left of a session: a few hundred bytes of JSON. */
struct registry_ended {
	uint64_t number;
	char id[REGISTRY_ID_BYTES]; /* "": its owner has deleted it */
	json_t *json;               /* as /api/sessions/{number} shows it; NULL: none */
};

struct registry {
	struct loop *loop;
	struct loop_waker *waker;
	struct loop_timer *timer;
	struct mailbox mailbox;
	struct worker_shared *shared;
	const struct config *config;
	struct candidates candidates;
	struct dtls_identity *identity;
	uint64_t identity_us; /* when it was made */
	uint64_t started_us;
	uint64_t changes_seen, trim_due_us; /* of the heap, after sessions came and went */

	void *streams_by_name;         /* tree of struct stream_entry */
	struct stream_entry **streams; /* by slot, NULL: free */
	uint32_t *generations;
	uint32_t stream_cap, stream_count;

	void *plans_by_id, *plans_by_number;
	struct plan *oldest, *newest;
	uint32_t plan_count, over_count, unclaimed;
	uint64_t next_number;

	struct event_stream *oldest_events, *newest_events;
	uint32_t event_streams;
	uint64_t events_sent;

	void (*on_settled)(void *arg, const uint8_t client[16]);
	void *on_settled_arg;

	unsigned workers_stopped;
	bool is_draining;
	void (*on_stopped)(void *arg);
	void *on_stopped_arg;

	uint16_t next_pair; /* of ports for plain RTP: where to look for a free one */

	uint64_t sessions_ended[TRANSPORT_REASONS];
	uint64_t plans_expired;

	struct registry_ended ended[REGISTRY_ENDED_SESSIONS]; /* a ring */
	unsigned ended_next;
};

/** NULL when no session has that id, or its owner has deleted it. */
struct plan *registry_plan_by_id(struct registry *r, const char *id);
struct plan *registry_plan_by_number(struct registry *r, uint64_t number);

/* registry_plans.c: sessions */
void registry_draw_credentials(struct ice_credentials *c);
void registry_draw_etag(struct plan *p);
void registry_refuse(struct registry_reply *reply, enum registry_status status, const char *reason);
/** Number, id and etag are drawn; takes over the reference. @return false without memory */
bool registry_list_plan(struct registry *r, struct plan *p);
/** Its owner's id leads to it no more. */
void registry_hide_id(struct registry *r, struct plan *p);
/** Ended: nobody can reach it any more; its owner may still ask why. Idempotent. */
void registry_plan_over(struct registry *r, struct plan *p);
/** It is half open no more. Idempotent. */
void registry_settle(struct registry *r, struct plan *p);
/** Off the list; the list's reference goes. */
void registry_unlist_plan(struct registry *r, struct plan *p);
/** Nobody claimed it, and from now on nobody can. @return false: somebody has */
bool registry_withdraw(struct registry *r, struct plan *p, uint32_t reason);
void registry_log_session(const struct registry *r, const char *event, struct plan *p);

/* registry.c */
/** The certificate of new sessions, a fresh one each day. @return 0 or -ENOMEM: there is none */
int registry_renew_identity(struct registry *r);

/** The codec a kind of the stream has now: what its publisher sends, or most likely will; NULL: none. */
const struct negotiated_codec *stream_entry_codec(const struct stream_entry *e,
						  enum media_kind kind);
/** The index-th codec the stream's kind may have: what its publisher sends, alone, or, while nothing
 *  came yet, each of those agreed with it; NULL behind the last one. */
const struct negotiated_codec *stream_entry_possible(const struct stream_entry *e,
						     enum media_kind kind, unsigned index);

/* registry_streams.c: streams, publishers and feeds */
struct stream_entry *registry_find_stream(const struct registry *r, const char *name);
/** Found or made. @return NULL without memory or above the limit */
struct stream_entry *registry_get_stream(struct registry *r, const char *name);
/** A session of it is gone: frees the stream when it was the last and nothing is left. */
void registry_leave_stream(struct registry *r, struct stream *stream);
/** An offer was refused: frees the stream, if there is one, when it was made for that offer alone. */
void registry_drop_unused_stream(struct registry *r, const char *name);
void registry_on_connected(struct registry *r, struct plan *plan);
/** A publisher sends another codec than before, or the first: who cannot take it comes again. */
void registry_on_codec(struct registry *r, struct plan *plan);
void registry_on_feed(struct registry *r, struct plan *plan, struct feed *feed);
void registry_free_streams(struct registry *r);

/* registry_events.c */
/** To all event streams of a stream; NULL: of all streams. */
void registry_events_push(struct registry *r, const struct stream *stream, enum event_kind kind);
/** To those of one session. */
void registry_events_push_plan(struct plan *p, enum event_kind kind);
/** The session has ended, and with it its event streams. */
void registry_events_end(struct plan *p);
void registry_events_tick(struct registry *r);

/* registry_json.c */
/** As /api/sessions/{number} shows it; NULL without memory. */
json_t *registry_session_json(const struct registry *r, struct plan *p);

/* registry_diagnosis.c */
/** Why it does not run, or ended; `detail` is "" for DIAGNOSIS_NONE. */
enum diagnosis registry_diagnose(const struct registry *r, struct plan *p,
				 char detail[DIAGNOSIS_BYTES]);
/** Once a second, of publishers: do packets still come? */
void registry_hear(struct plan *p, uint64_t now_us);
/** Keep what the API says of an ended session that is about to be unlisted, instead of the oldest. */
void registry_remember(struct registry *r, struct plan *p);
/** NULL: not one of the last that ended, or of that id its owner has deleted. */
const json_t *registry_ended_by_number(const struct registry *r, uint64_t number);
const json_t *registry_ended_by_id(const struct registry *r, const char *id);
void registry_forget_ended(struct registry *r);

/* registry_layers.c */
/** What the publisher sends now. */
void registry_on_layers(struct registry *r, const struct stream *stream,
			const struct layer_table *table);
/** Nobody publishes it any more. */
void registry_forget_layers(struct registry *r, struct stream_entry *e);
bool registry_has_layers(const struct stream_entry *e);
/** One layer as the API and the event show it; NULL without memory. */
json_t *registry_layer_json(const struct stream_entry *e, const struct layer_option *o);
/** A list of them, the costliest first. */
json_t *registry_layers_json(const struct stream_entry *e);
/** What a viewer gets of them: with "paused", and whether by hand; null where there is no choice. */
json_t *registry_viewer_layer_json(const struct registry *r, struct plan *p);
/** The same under the m-line of the viewer's video. */
json_t *registry_layers_event(const struct plan *p, const struct stream_entry *e);

/* registry_plain.c */
/** What feeds the stream by plain RTP, waiting or sending; NULL: nothing. */
struct plan *registry_plain_input(const struct registry *r, const char *stream);
/** Those of a role that are open. */
uint32_t registry_plain_count(const struct registry *r, enum plan_role role);
/** Where ports of a family are bound. */
struct net_addr registry_plain_bind(const struct registry *r, bool v4);
/** @return false: the reply says why */
bool registry_plain_open(struct registry *r, struct plain_setup *setup,
			 struct registry_reply *reply);
/** List the plan and have a worker claim it; takes over the reference. @return false without memory */
bool registry_plain_serve(struct registry *r, struct stream_entry *e, struct plan *p);
/** As in the list of sessions, with its ports. */
json_t *registry_plain_json(const struct registry *r, struct plan *p);
/** The description of what leaves or arrives, into the reply. @return false without memory */
bool registry_plain_describe(const struct plan *p, const struct net_addr *at, const char *direction,
			     const struct negotiated_codec *const codecs[NEGOTIATED_KINDS],
			     struct registry_reply *reply);
/** Random, not 0. */
uint32_t registry_draw_ssrc(void);
/** It ended since nothing came any more: wait on the same ports again. */
void registry_renew_input(struct registry *r, const struct plan *ended);

/** Post LETTER_CLOSE to whoever serves the plan. */
void registry_close_plan(struct registry *r, struct plan *plan, enum transport_reason reason);

#endif
