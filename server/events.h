/* server/events.h - event streams: what the player of a session is told of the stream it watches.
 *
 * Source:  draft-ietf-wish-whep, core extensions: server-sent events. Text as WHATWG HTML, section
 *          "Server-sent events", reads it.
 * Thread:  control only.
 * Memory:  a stream holds no text and no list that grows: each kind waits at most once, and what it
 *          says is written when it is read, so a reader that comes late gets what holds by then.
 *          A session has at most EVENTS_MAX_STREAMS; they end with it.
 */
#ifndef SERVER_EVENTS_H
#define SERVER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/registry.h"

enum { EVENTS_MAX_STREAMS = 4 };

enum event_kind {
	EVENT_ACTIVE,      /* somebody publishes; also first, when somebody does already */
	EVENT_INACTIVE,    /* nobody does any more */
	EVENT_LAYERS,      /* what can be chosen from, at first and when it changed */
	EVENT_RECONNECT,   /* the session will end: the player should begin another one */
	EVENT_VIEWERCOUNT, /* at first and when it changed, at most once a second */
	EVENT_KINDS,
};

enum {
	EVENTS_ALL = (1 << EVENT_KINDS) - 1,
};

/** "active,inactive,layers,reconnect,viewercount": the names, in the order of the kinds. */
extern const char events_names[];

const char *event_kind_name(enum event_kind kind);

/** The kind of a name, EVENT_KINDS: not one of ours. */
enum event_kind event_kind_of(const char *name);

struct event_stream;

/**
 * Open a stream of a viewer's session.
 *
 * @param wanted  1u << enum event_kind for each kind
 * @param number  names it among the session's streams
 * @return REGISTRY_OK, REGISTRY_NOT_FOUND (no viewer has that id, or it has ended), REGISTRY_FULL
 *         (the session has EVENTS_MAX_STREAMS, or no memory)
 */
enum registry_status registry_events_open(struct registry *r, const char *id, uint32_t wanted,
					  uint64_t *number);

/** End it, with what waits in it. @return REGISTRY_OK or REGISTRY_NOT_FOUND */
enum registry_status registry_events_close(struct registry *r, const char *id, uint64_t number);

/**
 * Begin to read. The reader before, if there is one, is told that it is over.
 *
 * @param on_ready  called when there is something to read, or it is over; not from within the calls
 *                  below. The reader then asks event_stream_read() and event_stream_is_over().
 * @return a stream that must be given back with event_stream_detach(), or NULL: there is none
 */
struct event_stream *registry_events_attach(struct registry *r, const char *id, uint64_t number,
					    void (*on_ready)(void *arg), void *arg);

/** The next event's text, the caller's (free()); NULL: nothing waits. A reader that another one
 *  replaced gets nothing. */
char *event_stream_read(struct event_stream *s, const void *arg, size_t *len);

/** It has ended, or another reader has begun: nothing more will come. */
bool event_stream_is_over(const struct event_stream *s, const void *arg);

void event_stream_detach(struct event_stream *s, const void *arg);

#endif
