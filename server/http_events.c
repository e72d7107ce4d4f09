#include "server/http_events.h"

#include <string.h>

#include "server/events.h"

enum { BLOCK_BYTES = 4096 };

struct http_reader {
	struct http_reader *prev, *next; /* of the HTTP side */
	struct http_listener *listener;
	struct MHD_Connection *con;
	struct http_connection *connection;
	struct event_stream *stream;
	bool is_suspended;
	bool is_ending;
	uint64_t keep_us; /* when a sign of life is due */
	char *text;       /* being sent; NULL: nothing */
	size_t text_bytes, sent_bytes;
};

static void resume(struct http_reader *r)
{
	if (!r->is_suspended)
		return;
	r->is_suspended = false;
	MHD_resume_connection(r->con);
	http_listener_wake(r->listener);
}

static void on_ready(void *arg)
{
	resume(arg);
}

static bool has_text(struct http_reader *r)
{
	if (r->text && r->sent_bytes < r->text_bytes)
		return true;
	free(r->text);
	r->sent_bytes = 0;
	r->text = event_stream_read(r->stream, r, &r->text_bytes);
	return r->text != NULL;
}

/* libmicrohttpd has room: what came before is with the kernel. */
static ssize_t on_room(void *cls, uint64_t at, char *out, size_t cap)
{
	static const char sign_of_life[] = ":\n\n";
	struct http_reader *r = cls;
	uint64_t now_us = clock_now_us();
	size_t n;

	(void)at;
	http_connection_enter(r->listener->http, r->connection, HTTP_PHASE_EVENTS);
	if (has_text(r)) {
		n = r->text_bytes - r->sent_bytes < cap ? r->text_bytes - r->sent_bytes : cap;
		memcpy(out, r->text + r->sent_bytes, n);
		r->sent_bytes += n;
	} else if (r->is_ending || event_stream_is_over(r->stream, r)) {
		return MHD_CONTENT_READER_END_OF_STREAM;
	} else if (now_us >= r->keep_us && cap >= strlen(sign_of_life)) {
		n = strlen(sign_of_life);
		memcpy(out, sign_of_life, n);
	} else {
		r->is_suspended = true;
		MHD_suspend_connection(r->con);
		return 0;
	}
	r->keep_us = now_us + HTTP_EVENTS_KEEP_US;
	return (ssize_t)n;
}

static void on_free(void *cls)
{
	struct http_reader *r = cls;
	struct http *h = r->listener->http;

	if (r->prev)
		r->prev->next = r->next;
	else
		h->readers = r->next;
	if (r->next)
		r->next->prev = r->prev;
	h->ctx.counters.event_readers--;
	event_stream_detach(r->stream, r);
	free(r->text);
	free(r);
}

struct MHD_Response *http_events_response(struct http_listener *l, struct MHD_Connection *con,
					  const char *session_id, uint64_t number)
{
	struct http *h = l->http;
	struct http_reader *r = calloc(1, sizeof(*r));
	struct MHD_Response *response;

	if (!r)
		return NULL;
	r->stream = registry_events_attach(h->ctx.registry, session_id, number, on_ready, r);
	if (!r->stream) {
		free(r);
		return NULL;
	}
	r->listener = l;
	r->con = con;
	r->connection = http_connection_of(con);
	r->next = h->readers;
	if (r->next)
		r->next->prev = r;
	h->readers = r;
	h->ctx.counters.event_readers++;
	response =
	    MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_room, r, on_free);
	if (!response)
		on_free(r);
	return response;
}

void http_events_tick(struct http *h, uint64_t now_us)
{
	for (struct http_reader *r = h->readers; r; r = r->next)
		if (now_us >= r->keep_us)
			resume(r);
}

void http_events_end(struct http *h)
{
	for (struct http_reader *r = h->readers; r; r = r->next) {
		r->is_ending = true;
		resume(r);
	}
}
