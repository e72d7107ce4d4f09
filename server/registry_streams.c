/* server/registry_streams.c - streams by name, who publishes them, and the feed that goes from one
 * publisher to the next. */
#include <assert.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "server/registry_inner.h"

static int compare_names(const void *a, const void *b)
{
	const struct stream_entry *left = a;
	const struct stream_entry *right = b;

	return strcmp(left->stream->name, right->stream->name);
}

struct stream_entry *registry_find_stream(const struct registry *r, const char *name)
{
	struct stream stream = { 0 };
	struct stream_entry key = { .stream = &stream };
	struct stream_entry **node;

	if (strlen(name) >= sizeof(stream.name))
		return NULL;
	memcpy(stream.name, name, strlen(name) + 1);
	node = tfind(&key, &r->streams_by_name, compare_names);
	return node ? *node : NULL;
}

static bool grow(struct registry *r)
{
	uint32_t cap = r->stream_cap ? r->stream_cap * 2 : 64;
	struct stream_entry **streams = realloc(r->streams, cap * sizeof(struct stream_entry *));
	uint32_t *generations;

	if (!streams)
		return false;
	r->streams = streams;
	generations = realloc(r->generations, cap * sizeof(*generations));
	if (!generations)
		return false;
	r->generations = generations;
	for (uint32_t i = r->stream_cap; i < cap; i++) {
		streams[i] = NULL;
		generations[i] = 0;
	}
	r->stream_cap = cap;
	return true;
}

static uint32_t free_slot(struct registry *r)
{
	for (uint32_t i = 0; i < r->stream_cap; i++)
		if (!r->streams[i])
			return i;
	return grow(r) ? r->stream_cap / 2 : UINT32_MAX;
}

struct stream_entry *registry_get_stream(struct registry *r, const char *name)
{
	struct stream_entry *e = registry_find_stream(r, name);
	uint32_t slot;

	if (e)
		return e;
	if (r->stream_count >= r->config->streams.max)
		return NULL;
	slot = r->stream_cap == 0 ? (grow(r) ? 0 : UINT32_MAX) : free_slot(r);
	if (slot == UINT32_MAX)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->stream = stream_create(name, slot, ++r->generations[slot]);
	if (!e->stream || !tsearch(e, &r->streams_by_name, compare_names)) {
		stream_unref(e->stream);
		free(e);
		return NULL;
	}
	r->streams[slot] = e;
	r->stream_count++;
	return e;
}

static void free_entry(struct registry *r, struct stream_entry *e)
{
	tdelete(e, &r->streams_by_name, compare_names);
	r->streams[e->stream->slot] = NULL;
	r->stream_count--;
	plan_unref(e->publisher);
	plan_unref(e->incoming);
	feed_destroy(e->feed);
	stream_unref(e->stream);
	free(e);
}

static void free_if_unused(struct registry *r, struct stream_entry *e)
{
	if (e->plans == 0 && !e->publisher && !e->incoming)
		free_entry(r, e);
}

void registry_leave_stream(struct registry *r, struct stream *stream)
{
	struct stream_entry *e = r->streams[stream->slot];

	if (!e || e->stream != stream)
		return;
	e->plans--;
	free_if_unused(r, e);
}

void registry_drop_unused_stream(struct registry *r, const char *name)
{
	struct stream_entry *e = registry_find_stream(r, name);

	if (e)
		free_if_unused(r, e);
}

void registry_free_streams(struct registry *r)
{
	for (uint32_t i = 0; i < r->stream_cap; i++)
		if (r->streams[i])
			free_entry(r, r->streams[i]);
	free(r->streams);
	free(r->generations);
}

const struct negotiated_codec *stream_entry_codec(const struct stream_entry *e,
						  enum media_kind kind)
{
	return stream_entry_possible(e, kind, 0);
}

const struct negotiated_codec *stream_entry_possible(const struct stream_entry *e,
						     enum media_kind kind, unsigned index)
{
	const struct negotiated_media *m =
	    e->publisher ? &e->publisher->negotiated->media[kind] : NULL;
	uint8_t sent;

	if (!m || !m->is_accepted)
		return NULL;
	sent = atomic_load(&e->publisher->codec_sent[kind]);
	if (sent)
		return index ? NULL : &m->codecs[sent - 1];
	return index < m->codec_count ? &m->codecs[index] : NULL;
}

/* --- another publisher ------------------------------------------------------------------- */

/* What comes, or while nothing has come, something of what may. */
static bool can_take_kind(const struct plan *viewer, const struct stream_entry *e,
			  enum media_kind kind)
{
	const struct negotiated_codec *c = stream_entry_possible(e, kind, 0);

	if (!c || !viewer->tracks[kind].is_used)
		return true;
	for (unsigned i = 0; c; c = stream_entry_possible(e, kind, ++i))
		if (mapping_has_codec(&viewer->tracks[kind].mapping, (uint8_t)c->codec))
			return true;
	return false;
}

static bool can_take(const struct plan *viewer, const struct stream_entry *e)
{
	return can_take_kind(viewer, e, MEDIA_AUDIO) && can_take_kind(viewer, e, MEDIA_VIDEO);
}

/* Those who cannot show what is published now are told to come again, which gets them an answer in
 * the codecs of now. */
static void dismiss_unfit(struct registry *r, const struct stream_entry *e)
{
	for (struct plan *p = r->oldest, *newer; p; p = newer) {
		newer = p->newer;
		if (p->stream != e->stream || p->role != PLAN_VIEWER || p->is_over ||
		    can_take(p, e))
			continue;
		registry_events_push_plan(p, EVENT_RECONNECT);
		registry_close_plan(r, p, TRANSPORT_CLOSED_CODEC);
	}
}

static void begin_publisher(struct registry *r, struct stream_entry *e)
{
	registry_events_push(r, e->stream, EVENT_ACTIVE);
	dismiss_unfit(r, e);
}

void registry_on_codec(struct registry *r, struct plan *plan)
{
	struct stream_entry *e = r->streams[plan->stream->slot];

	atomic_store(&plan->is_codec_mailed, false); /* before reading what it sends */
	if (e && e->publisher == plan)
		dismiss_unfit(r, e);
}

/* --- the feed ---------------------------------------------------------------------------- */

/* The publisher may feed: hand it the stream's numbers, new ones with the first publisher. */
static void send_feed(struct registry *r, struct stream_entry *e)
{
	uint64_t claim = atomic_load_explicit(&e->publisher->claim, memory_order_acquire);
	struct letter *letter = calloc(1, sizeof(*letter));

	if (!letter ||
	    (!e->feed && feed_create(&e->feed, e->stream, (uint16_t)r->config->media.pad_bytes))) {
		free(letter);
		registry_close_plan(r, e->publisher, TRANSPORT_CLOSED_NO_MEMORY);
		return;
	}
	letter->kind = LETTER_FEED;
	letter->to = session_ref_unpack(claim);
	letter->feed = e->feed;
	e->feed = NULL;
	e->is_feed_away = true;
	worker_post(r->shared->team[letter->to.worker], letter);
}

void registry_on_connected(struct registry *r, struct plan *plan)
{
	struct stream_entry *e = r->streams[plan->stream->slot];

	if (atomic_load_explicit(&plan->state, memory_order_acquire) == PLAN_CLOSED)
		return; /* its end is in the mail */
	if (!e->publisher) {
		e->publisher = plan_ref(plan);
		begin_publisher(r, e);
		send_feed(r, e);
		return;
	}
	/* The newest authorised publisher wins; the one before gives the feed back as it ends. */
	if (e->incoming) {
		registry_close_plan(r, e->incoming, TRANSPORT_CLOSED_REPLACED);
		plan_unref(e->incoming);
	}
	e->incoming = plan_ref(plan);
	registry_close_plan(r, e->publisher, TRANSPORT_CLOSED_REPLACED);
}

static void next_publisher(struct registry *r, struct stream_entry *e)
{
	plan_unref(e->publisher);
	e->publisher = e->incoming;
	e->incoming = NULL;
	registry_forget_layers(r, e);
	if (e->publisher) {
		begin_publisher(r, e);
		send_feed(r, e);
	} else {
		registry_events_push(r, e->stream, EVENT_INACTIVE);
	}
}

void registry_on_feed(struct registry *r, struct plan *plan, struct feed *feed)
{
	struct stream *stream = feed ? feed->stream : plan ? plan->stream : NULL;
	struct stream_entry *e = stream ? r->streams[stream->slot] : NULL;

	if (!e || e->stream != stream) {
		feed_destroy(feed);
		return;
	}
	if (feed) {
		assert(!e->feed);
		e->feed = feed;
		e->is_feed_away = false;
	}
	if (plan && e->incoming == plan) {
		plan_unref(e->incoming);
		e->incoming = NULL;
	}
	/* The next one waits until the feed is home, which a publisher that ended before it got the
	 * feed does not bring along: a second feed would number other packets alike, and SRTP must
	 * never see that. */
	if (e->publisher && !e->is_feed_away &&
	    atomic_load_explicit(&e->publisher->state, memory_order_acquire) == PLAN_CLOSED)
		next_publisher(r, e);
	free_if_unused(r, e);
}
