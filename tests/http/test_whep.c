#include "server/whep.h"

#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/http/kit_registry.h"
#include "tests/http/kit_relay.h"

#define HOST   "Host: localhost\r\n"
#define ID     "0123456789abcdefABCD_-"
#define EVENTS "/session/" ID "/events"
#define LAYER  "/session/" ID "/layer"
#define ALL    EVENTS_ALL

static void setup(void)
{
	registry_double = (struct registry_double){ .is_ready = true, .has_sessions = true };
	registry_double.next = (struct registry_reply){ .session_id = ID, .etag = "tag" };
	registry_double.next.body = "v=0\r\n";
	relay_start("");
}

TestSuite(whep, .init = setup, .fini = relay_stop, .timeout = 30);

static const char *ask(const char *method, const char *path, const char *body)
{
	char request[8192];

	snprintf(request, sizeof(request),
		 "%s %s HTTP/1.1\r\n" HOST
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 method, path, strlen(body), body);
	return relay_ask(request);
}

Test(whep, the_answer_to_a_viewer_announces_the_extensions)
{
	static const char events[] =
	    "\r\nLink: <" EVENTS "; rel=\"urn:ietf:params:whep:ext:core:server-sent-events\"; "
	    "events=\"active,inactive,layers,reconnect,viewercount\"\r\n";
	static const char layer[] =
	    "\r\nLink: <" LAYER "; rel=\"urn:ietf:params:whep:ext:core:layer\"\r\n";
	static const char request[] = "POST /%s/cam HTTP/1.1\r\n" HOST
				      "Content-Type: application/sdp\r\nContent-Length: 1\r\n\r\nv";
	char text[256], want[256];
	const char *answer;

	snprintf(text, sizeof(text), request, "whep");
	answer = relay_ask(text);
	cr_expect_eq(relay_status(answer), 201);
	snprintf(want, sizeof(want), "%.*s>%s", (int)(strchr(events, ';') - events), events,
		 strchr(events, ';'));
	cr_expect(strstr(answer, want), "%s", answer);
	snprintf(want, sizeof(want), "%.*s>%s", (int)(strchr(layer, ';') - layer), layer,
		 strchr(layer, ';'));
	cr_expect(strstr(answer, want), "%s", answer);
	snprintf(text, sizeof(text), request, "whip");
	answer = relay_ask(text);
	cr_expect_eq(relay_status(answer), 201);
	cr_expect_null(strstr(answer, "Link:"), "nothing for a publisher");
}

Test(whep, an_event_stream_is_opened_for_the_events_asked_for)
{
	static const struct {
		const char *body;
		int status;
		uint32_t wanted;
	} rows[] = {
		{ "", 201, ALL },
		{ "[\"layers\"]", 201, 1 << EVENT_LAYERS },
		{ "[\"active\",\"inactive\",\"layers\",\"reconnect\",\"viewercount\"]", 201, ALL },
		{ "[\"active\",\"active\"]", 201, 1 << EVENT_ACTIVE },
		{ "[\"active\",\"scte35\"]", 400, 0 },
		{ "[]", 400, 0 },
		{ "[1]", 400, 0 },
		{ "[null]", 400, 0 },
		{ "{\"active\":true}", 400, 0 },
		{ "\"active\"", 400, 0 },
		{ "[\"active\"", 400, 0 },
		{ "[\"active\"] x", 400, 0 },
		{ "[\"active\\u0000\"]", 400, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *answer;

		registry_double.wanted = 0;
		answer = ask("POST", EVENTS, rows[i].body);
		cr_expect_eq(relay_status(answer), rows[i].status, "%s: %s", rows[i].body, answer);
		cr_expect_eq(registry_double.wanted, rows[i].wanted, "%s", rows[i].body);
		cr_expect_str_eq(relay_field(answer, "Access-Control-Allow-Origin"), "*");
		if (rows[i].status == 201)
			cr_expect_str_eq(relay_field(answer, "Location"), EVENTS "/1");
	}
	cr_expect_str_eq(registry_double.id, ID);
}

Test(whep, an_event_stream_is_refused_with_a_reason)
{
	char body[5000];

	registry_double.is_full = true;
	cr_expect_eq(relay_status(ask("POST", EVENTS, "")), 429);
	registry_double.has_sessions = false;
	cr_expect_eq(relay_status(ask("POST", EVENTS, "")), 404);
	cr_expect_eq(relay_status(ask("DELETE", EVENTS "/1", "")), 404);
	cr_expect_eq(relay_status(ask("GET", EVENTS "/1", "")), 404);
	cr_expect_eq(relay_status(ask("GET", EVENTS, "")), 405);
	cr_expect_eq(relay_status(ask("POST", EVENTS "/1", "")), 405);
	cr_expect_eq(relay_status(ask("GET", EVENTS "/x", "")), 404);
	cr_expect_eq(relay_status(ask("GET", EVENTS "/", "")), 404);
	cr_expect_eq(relay_status(relay_ask("POST " EVENTS " HTTP/1.1\r\n" HOST
					    "Content-Type: text/plain\r\nContent-Length: "
					    "2\r\n\r\n[]")),
		     415);
	memset(body, ' ', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	cr_expect_eq(relay_status(ask("POST", EVENTS, body)), 413);
}

Test(whep, a_preflight_lets_pages_of_other_sites_in)
{
	static const char *const paths[] = { EVENTS, EVENTS "/1", LAYER };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *answer = ask("OPTIONS", paths[i], "");

		cr_expect_eq(relay_status(answer), 200, "%s", answer);
		cr_expect(strstr(relay_field(answer, "Access-Control-Allow-Methods"), "DELETE"));
		cr_expect(strstr(relay_field(answer, "Access-Control-Allow-Headers"),
				 "Authorization, Content-Type"));
	}
}

/* --- reading ----------------------------------------------------------------------------- */

static char received[64 * 1024];

/* Read on until `text` has come, or the end. */
static bool comes(int fd, const char *text)
{
	size_t n = strlen(received);

	while (!strstr(received, text)) {
		ssize_t got = recv(fd, received + n, sizeof(received) - 1 - n, 0);

		if (got <= 0)
			return false;
		n += (size_t)got;
		received[n] = '\0';
	}
	return true;
}

static int open_reader(void)
{
	static const char request[] = "GET " EVENTS "/1 HTTP/1.1\r\n" HOST "\r\n";
	int fd = relay_connect(relay_port());

	received[0] = '\0';
	relay_send(fd, request, strlen(request));
	/* The first sign of life: the stream is there. */
	cr_assert(comes(fd, "\r\n:\n\n\r\n"), "%s", received);
	return fd;
}

static void event_a(void)
{
	registry_double_event("event: a\ndata: {}\n\n");
}

static void event_b_and_end(void)
{
	registry_double_event("event: b\ndata: {}\n\n");
	registry_double_events_end();
}

Test(whep, events_come_as_they_happen_until_the_stream_ends)
{
	int fd;

	ask("POST", EVENTS, "");
	fd = open_reader();
	cr_expect_eq(relay_status(received), 200);
	cr_expect_str_eq(relay_field(received, "Content-Type"), "text/event-stream");
	cr_expect_str_eq(relay_field(received, "Cache-Control"), "no-store");
	cr_expect_str_eq(relay_field(received, "Access-Control-Allow-Origin"), "*");
	relay_do(event_a);
	cr_expect(comes(fd, "\r\nevent: a\ndata: {}\n\n\r\n"), "%s", received);
	relay_do(event_b_and_end);
	cr_expect(comes(fd, "\r\nevent: b\ndata: {}\n\n\r\n0\r\n\r\n"), "%s", received);
	close(fd);
}

Test(whep, a_second_reader_takes_over)
{
	int first, second;

	ask("POST", EVENTS, "");
	first = open_reader();
	second = open_reader();
	received[0] = '\0';
	cr_expect(comes(first, "0\r\n\r\n"), "%s", received);
	relay_do(event_a);
	received[0] = '\0';
	cr_expect(comes(second, "event: a\n"), "%s", received);
	close(first);
	close(second);
}

Test(whep, a_deleted_stream_ends_and_is_gone)
{
	int fd;

	ask("POST", EVENTS, "");
	fd = open_reader();
	cr_expect_eq(relay_status(ask("DELETE", EVENTS "/1", "")), 200);
	cr_expect(comes(fd, "0\r\n\r\n"), "%s", received);
	cr_expect_eq(relay_status(ask("GET", EVENTS "/1", "")), 404);
	close(fd);
}

enum { FLOOD = 4000, LINE_BYTES = 4000 };
static char long_line[LINE_BYTES + 1];

static void flood(void)
{
	for (unsigned i = 0; i < FLOOD; i++)
		registry_double_event(long_line);
}

Test(whep, what_a_slow_reader_does_not_take_is_not_read_from_the_stream)
{
	int fd, small = 4096;

	memset(long_line, 'x', LINE_BYTES);
	memcpy(long_line + LINE_BYTES - 2, "\n\n", 2);
	ask("POST", EVENTS, "");
	fd = open_reader();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	relay_do(flood);
	/* Others are served meanwhile. */
	for (unsigned i = 0; i < 10; i++)
		cr_expect_eq(relay_status(ask("OPTIONS", EVENTS, "")), 200);
	cr_expect_lt(registry_double.event_reads, FLOOD, "16 MB do not fit a socket");
	cr_expect_gt(registry_double.event_reads, 0);
	close(fd);
}

Test(whep, an_open_stream_does_not_keep_the_relay_from_stopping)
{
	ask("POST", EVENTS, "");
	open_reader();
}

/* --- layers ------------------------------------------------------------------------------ */

#define ANY REGISTRY_LAYER_ANY
#define REFUSED                                                                                    \
	{                                                                                          \
		"", "", 0, 0, 0, 0, 0, 0                                                           \
	}

static const struct {
	const char *body;
	bool is_good;
	struct registry_layer want;
} choices[] = {
	{ "{}", true, { "", "", ANY, ANY, ANY, ANY, 0, 0 } },
	{ "{\"mediaId\":\"1\"}", true, { "1", "", ANY, ANY, ANY, ANY, 0, 0 } },
	{ "{\"mediaId\":1,\"rid\":\"hi\"}", true, { "1", "hi", ANY, ANY, ANY, ANY, 0, 0 } },
	{ "{\"encodingId\":\"hi\"}", true, { "", "hi", ANY, ANY, ANY, ANY, 0, 0 } },
	{ "{\"spatialLayerId\":1,\"temporalLayerId\":0}", true, { "", "", 1, 0, ANY, ANY, 0, 0 } },
	{ "{\"maxSpatialLayerId\":0,\"maxTemporalLayerId\":900}",
	  true,
	  { "", "", ANY, ANY, 0, REGISTRY_LAYER_MAX, 0, 0 } },
	{ "{\"maxWidth\":640,\"maxHeight\":100000}",
	  true,
	  { "", "", ANY, ANY, ANY, ANY, 640, UINT16_MAX } },
	{ "{\"rid\":null,\"spatialLayerId\":null,\"x\":[1]}",
	  true,
	  { "", "", ANY, ANY, ANY, ANY, 0, 0 } },
	{ "", false, REFUSED },
	{ "[]", false, REFUSED },
	{ "{\"rid\":1}", false, REFUSED },
	{ "{\"rid\":\"a\",\"rid\":\"b\"}", false, REFUSED },
	{ "{\"rid\":\"0123456789012345678901234567890123456789\"}", false, REFUSED },
	{ "{\"rid\":\"a\\u0000b\"}", false, REFUSED },
	{ "{\"spatialLayerId\":-1}", false, REFUSED },
	{ "{\"spatialLayerId\":1.5}", false, REFUSED },
	{ "{\"maxWidth\":\"640\"}", false, REFUSED },
	{ "{\"maxWidth\":99999999999999999999999}", false, REFUSED },
};

Test(whep, a_layer_is_chosen_by_what_the_body_says)
{
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct registry_layer layer;
		char reason[REGISTRY_REASON_BYTES] = "";
		bool is_good =
		    whep_read_layer(choices[i].body, strlen(choices[i].body), &layer, reason);

		cr_expect_eq(is_good, choices[i].is_good, "%s: %s", choices[i].body, reason);
		if (!is_good) {
			cr_expect(reason[0], "%s", choices[i].body);
			continue;
		}
		cr_expect_str_eq(layer.media, choices[i].want.media, "%s", choices[i].body);
		cr_expect_str_eq(layer.rid, choices[i].want.rid, "%s", choices[i].body);
		cr_expect_eq(layer.spatial, choices[i].want.spatial, "%s", choices[i].body);
		cr_expect_eq(layer.temporal, choices[i].want.temporal, "%s", choices[i].body);
		cr_expect_eq(layer.max_spatial, choices[i].want.max_spatial, "%s", choices[i].body);
		cr_expect_eq(layer.max_temporal, choices[i].want.max_temporal, "%s",
			     choices[i].body);
		cr_expect_eq(layer.max_width, choices[i].want.max_width, "%s", choices[i].body);
		cr_expect_eq(layer.max_height, choices[i].want.max_height, "%s", choices[i].body);
	}
}

Test(whep, a_choice_of_layer_is_answered_by_the_registry)
{
	cr_expect_eq(relay_status(ask("POST", LAYER, "{\"rid\":\"hi\"}")), 200);
	cr_expect_str_eq(registry_double.layer.rid, "hi");
	cr_expect_str_eq(registry_double.id, ID);
	cr_expect_eq(relay_status(ask("DELETE", LAYER, "")), 200, "back to automatic");
	cr_expect_str_eq(registry_double.layer.rid, "");
	cr_expect_eq(registry_double.layer.spatial, ANY);
	cr_expect_eq(relay_status(ask("POST", LAYER, "{")), 400);
	registry_double.layer_status = REGISTRY_UNACCEPTABLE;
	cr_expect_eq(relay_status(ask("POST", LAYER, "{\"rid\":\"x\"}")), 422);
	registry_double.has_sessions = false;
	cr_expect_eq(relay_status(ask("POST", LAYER, "{}")), 404);
}

Test(whep, requests_to_a_session_have_a_rate)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < 40; i++)
		refused += relay_status(ask("POST", LAYER, "{}")) == 429;
	cr_expect_gt(refused, 0);
	cr_expect_lt(refused, 30);
}
