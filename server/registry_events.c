/* server/registry_events.c - see events.h for the contract. */
#include "server/events.h"

#include <stdlib.h>

#include "server/registry_inner.h"
#include "server/text.h"

struct event_stream {
	struct event_stream *next;          /* of the same session */
	struct event_stream *older, *newer; /* of all sessions */
	struct registry *registry;
	struct plan *plan; /* NULL: it is over */
	uint64_t number;
	uint32_t refs; /* the session's, and one a reader */
	uint32_t viewers_told;
	uint32_t wanted; /* 1u << enum event_kind */
	uint8_t waiting[EVENT_KINDS];
	uint8_t waiting_count;
	void (*on_ready)(void *arg);
	void *arg;
};

/* --- what waits -------------------------------------------------------------------------- */

static void drop(struct event_stream *s, enum event_kind kind)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < s->waiting_count; i++)
		if (s->waiting[i] != kind)
			s->waiting[kept++] = s->waiting[i];
	s->waiting_count = (uint8_t)kept;
}

static void push(struct event_stream *s, enum event_kind kind)
{
	if (!(s->wanted >> kind & 1))
		return;
	drop(s, kind);
	s->waiting[s->waiting_count++] = (uint8_t)kind;
	if (s->on_ready)
		s->on_ready(s->arg);
}

static struct stream_entry *entry_of(const struct event_stream *s)
{
	return s->registry->streams[s->plan->stream->slot];
}

static void write_layers(const struct event_stream *s, struct text *out)
{
	json_t *layers = registry_layers_event(s->plan, entry_of(s));
	char *text = layers ? json_dumps(layers, JSON_COMPACT) : NULL;

	json_decref(layers);
	text_printf(out, "event: layers\ndata: %s\n\n", text ? text : "{}");
	free(text);
}

/* Of a session that is over, only what needs nothing of it. */
static void write_event(struct event_stream *s, enum event_kind kind, struct text *out)
{
	if (kind == EVENT_VIEWERCOUNT && s->plan) {
		s->viewers_told =
		    atomic_load_explicit(&s->plan->stream->viewers, memory_order_relaxed);
		text_printf(out, "event: viewercount\ndata: {\"viewercount\":%u}\n\n",
			    s->viewers_told);
	} else if (kind == EVENT_LAYERS && s->plan) {
		write_layers(s, out);
	} else if (kind < EVENT_LAYERS || kind == EVENT_RECONNECT) {
		text_printf(out, "event: %s\ndata: {}\n\n", event_kind_name(kind));
	}
}

char *event_stream_read(struct event_stream *s, const void *arg, size_t *len)
{
	struct text out = { 0 };

	if (s->arg != arg)
		return NULL;
	while (s->waiting_count && !out.len) {
		enum event_kind kind = s->waiting[0];

		drop(s, kind);
		write_event(s, kind, &out);
	}
	if (!out.len) {
		text_free(&out);
		return NULL;
	}
	s->registry->events_sent++;
	return text_take(&out, len);
}

/* --- life -------------------------------------------------------------------------------- */

static void unref(struct event_stream *s)
{
	if (--s->refs == 0)
		free(s);
}

bool event_stream_is_over(const struct event_stream *s, const void *arg)
{
	return s->arg != arg || (!s->plan && !s->waiting_count);
}

void event_stream_detach(struct event_stream *s, const void *arg)
{
	if (s->arg == arg) {
		s->on_ready = NULL;
		s->arg = NULL;
	}
	unref(s);
}

/* Tell the reader, who cannot be told anything else from then on when it is replaced. */
static void end_reader(struct event_stream *s)
{
	void (*on_ready)(void *arg) = s->on_ready;
	void *arg = s->arg;

	s->on_ready = NULL;
	s->arg = NULL;
	if (on_ready)
		on_ready(arg);
}

static void unlist(struct event_stream *s)
{
	struct registry *r = s->registry;
	struct event_stream **at = &s->plan->events;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (s->older)
		s->older->newer = s->newer;
	else
		r->oldest_events = s->newer;
	if (s->newer)
		s->newer->older = s->older;
	else
		r->newest_events = s->older;
	s->plan = NULL;
	r->event_streams--;
	if (s->on_ready)
		s->on_ready(s->arg);
	unref(s);
}

void registry_events_end(struct plan *p)
{
	while (p->events)
		unlist(p->events);
}

static struct plan *viewer_of(struct registry *r, const char *id)
{
	struct plan *p = registry_plan_by_id(r, id);

	return p && !p->is_over && p->role == PLAN_VIEWER ? p : NULL;
}

static struct event_stream *find(struct registry *r, const char *id, uint64_t number)
{
	struct plan *p = viewer_of(r, id);
	struct event_stream *s = p ? p->events : NULL;

	while (s && s->number != number)
		s = s->next;
	return s;
}

static void list(struct registry *r, struct event_stream *s)
{
	s->next = s->plan->events;
	s->plan->events = s;
	s->older = r->newest_events;
	if (r->newest_events)
		r->newest_events->newer = s;
	else
		r->oldest_events = s;
	r->newest_events = s;
	r->event_streams++;
}

enum registry_status registry_events_open(struct registry *r, const char *id, uint32_t wanted,
					  uint64_t *number)
{
	struct plan *p = viewer_of(r, id);
	struct event_stream *s;
	unsigned count = 0;

	if (!p)
		return REGISTRY_NOT_FOUND;
	for (s = p->events; s; s = s->next)
		count++;
	s = count < EVENTS_MAX_STREAMS ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return REGISTRY_FULL;
	s->registry = r;
	s->plan = p;
	s->refs = 1;
	s->wanted = wanted;
	s->number = *number = ++p->events_opened;
	list(r, s);
	/* No initial "inactive": the draft forbids it. */
	if (entry_of(s)->publisher)
		push(s, EVENT_ACTIVE);
	if (registry_has_layers(entry_of(s)))
		push(s, EVENT_LAYERS);
	push(s, EVENT_VIEWERCOUNT);
	return REGISTRY_OK;
}

enum registry_status registry_events_close(struct registry *r, const char *id, uint64_t number)
{
	struct event_stream *s = find(r, id, number);

	if (!s)
		return REGISTRY_NOT_FOUND;
	s->waiting_count = 0;
	unlist(s);
	return REGISTRY_OK;
}

struct event_stream *registry_events_attach(struct registry *r, const char *id, uint64_t number,
					    void (*on_ready)(void *arg), void *arg)
{
	struct event_stream *s = find(r, id, number);

	if (!s)
		return NULL;
	end_reader(s);
	s->refs++;
	s->on_ready = on_ready;
	s->arg = arg;
	return s;
}

/* --- what happens ------------------------------------------------------------------------ */

void registry_events_push(struct registry *r, const struct stream *stream, enum event_kind kind)
{
	for (struct event_stream *s = r->oldest_events; s; s = s->newer)
		if (!stream || s->plan->stream == stream)
			push(s, kind);
}

void registry_events_push_plan(struct plan *p, enum event_kind kind)
{
	for (struct event_stream *s = p->events; s; s = s->next)
		push(s, kind);
}

void registry_events_tick(struct registry *r)
{
	for (struct event_stream *s = r->oldest_events; s; s = s->newer)
		if (atomic_load_explicit(&s->plan->stream->viewers, memory_order_relaxed) !=
		    s->viewers_told)
			push(s, EVENT_VIEWERCOUNT);
}
