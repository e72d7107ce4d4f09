/* What viewers are told over their event streams, with whole relays and their peers in memory. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/events.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_events, .timeout = 30);

enum { HEARD_BYTES = 4096, S = 1000000 };

static const struct kit_peer_config publisher = { .publishes = true, .audio = true, .video = true };
static const struct kit_peer_config viewer = { .audio = true, .video = true };

/* Reads whatever comes, at once. */
struct listener {
	struct event_stream *stream;
	uint64_t number;
	char heard[HEARD_BYTES]; /* names of events, or their whole text */
	bool is_ready, is_over, is_whole;
};

static void on_ready(void *arg)
{
	struct listener *l = arg;

	l->is_ready = true;
}

static void listen_to(struct listener *l, struct kit_plane *p, const struct kit_peer *peer,
		      uint32_t wanted)
{
	memset(l, 0, sizeof(*l));
	cr_assert_eq(registry_events_open(p->registry, peer->id, wanted, &l->number), REGISTRY_OK);
	l->stream = registry_events_attach(p->registry, peer->id, l->number, on_ready, l);
	cr_assert(l->stream);
}

/* What came since the last time: "active viewercount ". */
static const char *hear(struct listener *l)
{
	size_t len, at = 0;
	char *text;

	l->is_ready = false;
	l->heard[0] = '\0';
	while ((text = event_stream_read(l->stream, l, &len)) != NULL) {
		const char *name = text + strlen("event: ");
		int bytes = l->is_whole ? (int)len : (int)strcspn(name, "\n");

		cr_assert(strncmp(text, "event: ", 7) == 0 && strcmp(text + len - 2, "\n\n") == 0);
		cr_assert_eq(strlen(text), len);
		at += (size_t)snprintf(l->heard + at, HEARD_BYTES - at, "%.*s ", bytes,
				       l->is_whole ? text : name);
		free(text);
	}
	l->is_over = event_stream_is_over(l->stream, l);
	return l->heard;
}

static void leave(struct listener *l)
{
	event_stream_detach(l->stream, l);
}

Test(plane_events, a_viewer_hears_of_its_publisher_and_of_other_viewers)
{
	struct kit_plane *p = kit_plane_open("streams: {wait_for_publisher: true}\n", 2);
	struct kit_peer *first = kit_peer_join(p, "live", &viewer);
	struct kit_peer *source, *second;
	struct listener l;

	listen_to(&l, p, first, EVENTS_ALL);
	cr_expect_str_eq(hear(&l), "viewercount ", "no inactive at first");
	source = kit_peer_join(p, "live", &publisher);
	cr_expect(l.is_ready);
	cr_expect_str_eq(hear(&l), "active ");
	second = kit_peer_join(p, "live", &viewer);
	kit_plane_advance(p, 2 * S);
	l.is_whole = true;
	cr_expect_str_eq(hear(&l), "event: viewercount\ndata: {\"viewercount\":2}\n\n ");
	l.is_whole = false;
	kit_peer_leave(second);
	kit_peer_leave(source);
	kit_plane_advance(p, 2 * S);
	cr_expect_str_eq(hear(&l), "inactive viewercount ");
	kit_plane_advance(p, 5 * S);
	cr_expect_not(l.is_ready, "nothing happened");
	leave(&l);
	kit_plane_close(p);
}

Test(plane_events, what_waits_is_as_of_when_it_is_read_and_each_kind_waits_once)
{
	struct kit_plane *p = kit_plane_open("streams: {wait_for_publisher: true}\n", 1);
	struct kit_peer *first = kit_peer_join(p, "live", &viewer);
	struct kit_peer *other = NULL;
	struct listener l;

	listen_to(&l, p, first, EVENTS_ALL);
	for (unsigned i = 0; i < 5; i++) {
		struct kit_peer *source = kit_peer_join(p, "live", &publisher);

		other = kit_peer_join(p, "live", &viewer);
		kit_plane_advance(p, 2 * S);
		kit_peer_leave(source);
		kit_plane_advance(p, 2 * S);
	}
	cr_assert(other);
	cr_expect_str_eq(hear(&l), "active inactive viewercount ");
	leave(&l);
	kit_plane_close(p);
}

Test(plane_events, only_what_was_asked_for_comes)
{
	struct kit_plane *p = kit_plane_open("streams: {wait_for_publisher: true}\n", 1);
	struct kit_peer *first = kit_peer_join(p, "live", &viewer);
	struct kit_peer *source;
	struct listener l;

	listen_to(&l, p, first, 1 << EVENT_INACTIVE);
	source = kit_peer_join(p, "live", &publisher);
	kit_plane_advance(p, 2 * S);
	cr_expect_str_eq(hear(&l), "");
	kit_peer_leave(source);
	kit_plane_advance(p, 2 * S);
	cr_expect_str_eq(hear(&l), "inactive ");
	leave(&l);
	kit_plane_close(p);
}

Test(plane_events, other_streams_are_not_heard_of)
{
	struct kit_plane *p = kit_plane_open("streams: {wait_for_publisher: true}\n", 1);
	struct kit_peer *first = kit_peer_join(p, "live", &viewer);
	struct listener l;

	listen_to(&l, p, first, EVENTS_ALL);
	hear(&l);
	kit_peer_join(p, "other", &publisher);
	kit_peer_join(p, "other", &viewer);
	kit_plane_advance(p, 2 * S);
	cr_expect_str_eq(hear(&l), "");
	leave(&l);
	kit_plane_close(p);
}

Test(plane_events, a_stream_is_over_with_its_session_however_that_ends)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *gone[3];
	struct listener l[3];

	kit_peer_join(p, "live", &publisher);
	for (unsigned i = 0; i < 3; i++) {
		gone[i] = kit_peer_join(p, "live", &viewer);
		listen_to(&l[i], p, gone[i], EVENTS_ALL);
		hear(&l[i]);
	}
	kit_peer_leave(gone[0]);
	gone[1]->is_mute = true;
	kit_plane_advance(p, 2 * S);
	hear(&l[0]);
	cr_expect(l[0].is_over, "deleted");
	hear(&l[1]);
	cr_expect_not(l[1].is_over);
	kit_plane_advance(p, 60 * S);
	hear(&l[1]);
	cr_expect(l[1].is_over, "silent");
	registry_drain(p->registry);
	cr_expect(strstr(hear(&l[2]), "reconnect "), "%s", l[2].heard);
	cr_expect_not(l[2].is_over);
	for (unsigned i = 0; i < 3; i++)
		leave(&l[i]);
	cr_expect_eq(p->registry->event_streams, 1);
	kit_plane_close(p);
}

Test(plane_events, streams_and_readers_are_bounded)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	struct listener first, second;
	uint64_t number;

	cr_expect_eq(registry_events_open(p->registry, source->id, EVENTS_ALL, &number),
		     REGISTRY_NOT_FOUND, "a publisher has none");
	cr_expect_eq(registry_events_open(p->registry, "nobody", EVENTS_ALL, &number),
		     REGISTRY_NOT_FOUND);
	listen_to(&first, p, v, EVENTS_ALL);
	second = (struct listener){ .number = first.number };
	second.stream = registry_events_attach(p->registry, v->id, first.number, on_ready, &second);
	cr_assert(second.stream);
	cr_expect(first.is_ready);
	cr_expect_str_eq(hear(&first), "");
	cr_expect(first.is_over, "another one reads");
	cr_expect_str_eq(hear(&second), "active viewercount ");
	leave(&first);
	for (unsigned i = 1; i < EVENTS_MAX_STREAMS; i++)
		cr_expect_eq(registry_events_open(p->registry, v->id, EVENTS_ALL, &number),
			     REGISTRY_OK);
	cr_expect_eq(registry_events_open(p->registry, v->id, EVENTS_ALL, &number), REGISTRY_FULL);
	cr_expect_eq(registry_events_close(p->registry, v->id, second.number), REGISTRY_OK);
	cr_expect_eq(registry_events_close(p->registry, v->id, second.number), REGISTRY_NOT_FOUND);
	hear(&second);
	cr_expect(second.is_over);
	cr_expect_null(registry_events_attach(p->registry, v->id, second.number, on_ready, &first));
	cr_expect_eq(registry_events_open(p->registry, v->id, EVENTS_ALL, &number), REGISTRY_OK);
	leave(&second);
	kit_plane_close(p);
}
