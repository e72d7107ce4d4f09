#include <criterion/criterion.h>
#include <unistd.h>

#include "tests/http/kit_registry.h"
#include "tests/http/kit_relay.h"

#define HOST "Host: localhost\r\n"
#define ID   "0123456789abcdefABCD_-"
#define END  "\r\n"

static void setup(void)
{
	registry_double = (struct registry_double){ .is_ready = true, .has_sessions = true };
	registry_double.next = (struct registry_reply){
		.status = REGISTRY_OK, .session_id = ID, .etag = "tag-1", .body = "v=0\r\n"
	};
	relay_start("");
}

TestSuite(http, .init = setup, .fini = relay_stop, .timeout = 30);

/* Sent as they are. `fields`: "Name: value" that the answer has; a leading "!" forbids the name. */
static const struct {
	const char *name;
	const char *request;
	int status;
	const char *fields[5];
} rows[] = {
	{ "publish",
	  "POST /whip/cam HTTP/1.1\r\n" HOST "Content-Type: application/sdp\r\n"
	  "Content-Length: 5\r\n\r\nv=0\r\n",
	  201,
	  { "Content-Type: application/sdp", "Location: /session/" ID, "ETag: \"tag-1\"",
	    "Access-Control-Allow-Origin: *", "Content-Length: 5" } },
	{ "publish in chunks",
	  "POST /whip/cam HTTP/1.1\r\n" HOST "Content-Type: application/sdp\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n3\r\nv=0\r\n2\r\n\r\n\r\n0\r\n\r\n",
	  201,
	  { "Location: /session/" ID } },
	{ "watch, media type with parameters and in capitals",
	  "POST /whep/a.b_c~d-e HTTP/1.1\r\n" HOST
	  "Content-Type: Application/SDP; charset=utf-8\r\n"
	  "Content-Length: 1\r\n\r\nv",
	  201,
	  { "Access-Control-Expose-Headers: Location, Link, ETag, Accept-Post, Accept-Patch, "
	    "Retry-After, WWW-Authenticate, Access-Control-Allow-Methods" } },
	{ "other media type",
	  "POST /whip/cam HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
	  "Content-Length: 2\r\n\r\n{}",
	  415,
	  { "Accept-Post: application/sdp", "Content-Type: application/problem+json",
	    "Access-Control-Allow-Origin: *" } },
	{ "no media type",
	  "POST /whip/cam HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
	  415,
	  { NULL } },
	{ "media type that only begins alike",
	  "POST /whip/cam HTTP/1.1\r\n" HOST "Content-Type: application/sdpx\r\n"
	  "Content-Length: 0\r\n\r\n",
	  415,
	  { NULL } },
	{ "name with a slash", "GET /whip/a/b HTTP/1.1\r\n" HOST END, 404, { NULL } },
	{ "name with an escape", "GET /whip/a%62 HTTP/1.1\r\n" HOST END, 404, { NULL } },
	{ "name cut by an escaped zero", "GET /whip/a%00b HTTP/1.1\r\n" HOST END, 404, { NULL } },
	{ "no name", "GET /whip/ HTTP/1.1\r\n" HOST END, 404, { NULL } },
	{ "name of 64",
	  "GET /whip/0123456789012345678901234567890123456789012345678901234567890123 "
	  "HTTP/1.1\r\n" HOST END,
	  204,
	  { NULL } },
	{ "name of 65",
	  "GET /whip/01234567890123456789012345678901234567890123456789012345678901234 "
	  "HTTP/1.1\r\n" HOST END,
	  404,
	  { NULL } },
	{ "endpoint GET",
	  "GET /whep/cam HTTP/1.1\r\n" HOST END,
	  204,
	  { "Accept-Post: application/sdp", "Access-Control-Allow-Origin: *" } },
	{ "endpoint HEAD",
	  "HEAD /whep/cam HTTP/1.1\r\n" HOST END,
	  200,
	  { "Content-Type: application/sdp" } },
	{ "query is ignored", "GET /whep/cam?x=/../ HTTP/1.1\r\n" HOST END, 204, { NULL } },
	{ "absolute target", "GET http://localhost/whep/cam HTTP/1.1\r\n" HOST END, 204, { NULL } },
	{ "preflight",
	  "OPTIONS /whip/cam HTTP/1.1\r\n" HOST "Origin: https://a.example\r\n"
	  "Access-Control-Request-Method: POST\r\n"
	  "Access-Control-Request-Headers: authorization,content-type\r\n\r\n",
	  200,
	  { "Access-Control-Allow-Methods: POST, PATCH, DELETE, OPTIONS",
	    "Access-Control-Allow-Headers: Authorization, Content-Type, If-Match, ETag",
	    "Access-Control-Allow-Origin: *", "Accept-Post: application/sdp",
	    "!Access-Control-Allow-Credentials" } },
	{ "session options",
	  "OPTIONS /session/" ID " HTTP/1.1\r\n" HOST END,
	  200,
	  { "Accept-Patch: application/trickle-ice-sdpfrag", "Access-Control-Allow-Origin: *" } },
	{ "PUT on an endpoint",
	  "PUT /whip/cam HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
	  405,
	  { "Allow: GET, HEAD, OPTIONS, POST", "Access-Control-Allow-Origin: *" } },
	{ "PATCH on an endpoint",
	  "PATCH /whip/cam HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
	  405,
	  { NULL } },
	{ "POST on a session",
	  "POST /session/" ID " HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
	  405,
	  { "Allow: DELETE, GET, HEAD, OPTIONS, PATCH" } },
	{ "DELETE with an old tag",
	  "DELETE /session/" ID " HTTP/1.1\r\n" HOST "If-Match: \"x\"\r\n\r\n",
	  200,
	  { "Access-Control-Allow-Origin: *" } },
	{ "session GET", "GET /session/" ID " HTTP/1.1\r\n" HOST END, 204, { NULL } },
	{ "session status",
	  "GET /session/" ID "/status HTTP/1.1\r\n" HOST END,
	  200,
	  { "Content-Type: application/json", "Cache-Control: no-store" } },
	{ "session id too short", "GET /session/0123 HTTP/1.1\r\n" HOST END, 404, { NULL } },
	{ "session id too long", "GET /session/" ID "x HTTP/1.1\r\n" HOST END, 404, { NULL } },
	{ "PATCH of JSON",
	  "PATCH /session/" ID " HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
	  "Content-Length: 2\r\n\r\n{}",
	  415,
	  { "Accept-Patch: application/trickle-ice-sdpfrag" } },
	{ "API",
	  "GET /api/info HTTP/1.1\r\n" HOST END,
	  200,
	  { "Content-Type: application/json", "!Access-Control-Allow-Origin" } },
	{ "API HEAD", "HEAD /api/streams HTTP/1.1\r\n" HOST END, 200, { NULL } },
	{ "API POST",
	  "POST /api/info HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
	  405,
	  { "Allow: GET, HEAD" } },
	{ "API session", "GET /api/sessions/7 HTTP/1.1\r\n" HOST END, 200, { NULL } },
	{ "API session, no number", "GET /api/sessions/x HTTP/1.1\r\n" HOST END, 404, { NULL } },
	{ "API session, huge number",
	  "GET /api/sessions/9999999999999999999 HTTP/1.1\r\n" HOST END,
	  404,
	  { NULL } },
	{ "metrics",
	  "GET /metrics HTTP/1.1\r\n" HOST END,
	  200,
	  { "Content-Type: text/plain; version=0.0.4; charset=utf-8" } },
	{ "alive", "GET /healthz HTTP/1.1\r\n" HOST END, 200, { NULL } },
	{ "ready", "GET /readyz HTTP/1.1\r\n" HOST END, 200, { NULL } },
	{ "page",
	  "GET /watch/cam HTTP/1.1\r\n" HOST END,
	  200,
	  { "Content-Type: text/html; charset=utf-8", "X-Content-Type-Options: nosniff",
	    "Referrer-Policy: no-referrer" } },
	{ "page file",
	  "GET /pages/watch.js HTTP/1.1\r\n" HOST END,
	  200,
	  { "Content-Type: text/javascript; charset=utf-8" } },
	{ "no such page file", "GET /pages/nothing.js HTTP/1.1\r\n" HOST END, 404, { NULL } },
	{ "page POST",
	  "POST /watch/cam HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
	  405,
	  { NULL } },
	{ "nothing there",
	  "GET /nowhere HTTP/1.1\r\n" HOST END,
	  404,
	  { "Content-Type: application/problem+json" } },
};

Test(http, each_request_has_its_answer)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *answer = relay_ask(rows[i].request);

		cr_expect_eq(relay_status(answer), rows[i].status, "%s: %s", rows[i].name, answer);
		for (size_t f = 0; f < 5 && rows[i].fields[f]; f++) {
			const char *want = rows[i].fields[f];
			char name[64];
			const char *got;

			snprintf(name, sizeof(name), "%.*s", (int)strcspn(want, ":"),
				 want + (want[0] == '!'));
			got = relay_field(answer, name);
			if (want[0] == '!')
				cr_expect_null(got, "%s: %s", rows[i].name, name);
			else
				cr_expect(got && strcmp(got, want + strlen(name) + 2) == 0,
					  "%s: %s is \"%s\"", rows[i].name, want, got ? got : "");
		}
	}
}

/* Two readers could frame these in two ways: 400, and nothing after them is read. */
static const struct {
	const char *name;
	const char *fields;
} smuggled[] = {
	{ "length and encoding", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" },
	{ "encoding and length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" },
	{ "encoding in capitals", "Content-Length: 5\r\nTRANSFER-ENCODING: CHUNKED\r\n" },
	{ "encoding behind a tab", "Content-Length: 5\r\nTransfer-Encoding:\tchunked\r\n" },
	{ "two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n" },
	{ "two equal lengths", "Content-Length: 5\r\nContent-Length: 5\r\n" },
	{ "length list", "Content-Length: 5, 5\r\n" },
	{ "length with a sign", "Content-Length: +5\r\n" },
	{ "negative length", "Content-Length: -5\r\n" },
	{ "length in hex", "Content-Length: 0x5\r\n" },
	{ "empty length", "Content-Length: \r\n" },
	{ "length beyond 64 bits", "Content-Length: 18446744073709551621\r\n" },
	{ "unknown encoding", "Transfer-Encoding: gzip\r\n" },
	{ "encoding list", "Transfer-Encoding: gzip, chunked\r\n" },
	{ "two encodings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" },
	{ "identity", "Transfer-Encoding: identity\r\n" },
	{ "space before the colon", "Transfer-Encoding : chunked\r\n" },
	{ "behind an empty name", ": x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" },
	{ "an empty name behind it", "Content-Length: 5\r\n: x\r\n" },
	{ "folded", "Content-Length: 5\r\nX: a\r\n b\r\n" },
	{ "folded, with more behind it", "X: a\r\n b\r\nContent-Length: 5\r\n" },
	{ "folded with a tab", "X: a\r\n\tContent-Length: 9\r\nContent-Length: 5\r\n" },
	{ "a line ended by LF alone", "X: a\nContent-Length: 5\r\n" },
	{ "the last line ended by LF alone", "Content-Length: 5\n" },
	{ "CR within a value", "X: a\rContent-Length: 9\r\nContent-Length: 5\r\n" },
	{ "CR CR LF", "Content-Length: 5\r\r\n" },
	{ "another control byte within a value", "X: a\x0b\r\nContent-Length: 5\r\n" },
	{ "DEL within a value", "X: a\x7f\r\nContent-Length: 5\r\n" },
	{ "a second host", "Host: other.example\r\nContent-Length: 5\r\n" },
};

Test(http, ambiguous_framing_is_refused_and_nothing_behind_it_is_served)
{
	for (size_t i = 0; i < sizeof(smuggled) / sizeof(smuggled[0]); i++) {
		static char answer[RELAY_ANSWER_BYTES];
		char request[1024];
		int fd = relay_connect(relay_port());

		snprintf(request, sizeof(request),
			 "POST /whip/cam HTTP/1.1\r\n" HOST
			 "Content-Type: application/sdp\r\n%s\r\n"
			 "0\r\n\r\nDELETE /session/" ID " HTTP/1.1\r\n" HOST "\r\n",
			 smuggled[i].fields);
		relay_send(fd, request, strlen(request));
		relay_read(fd, answer, 0);
		cr_expect(relay_status(answer) == 400 || relay_status(answer) == 413, "%s: %s",
			  smuggled[i].name, answer);
		relay_read(fd, answer, 0);
		cr_expect_eq(relay_status(answer), 0, "%s: a second answer", smuggled[i].name);
		close(fd);
	}
	cr_expect_eq(registry_double.publishes, 0);
	cr_expect_eq(registry_double.ends, 0);
}

/* Where a text ends at a zero byte, there is less of it than was sent. */
static const struct {
	const char *name;
	const char *request; /* "@" stands for the zero byte */
} cut[] = {
	{ "in the target", "GET /healthz@x HTTP/1.1\r\n" HOST END },
	{ "behind the target", "GET /healthz@ HTTP/1.1\r\n" HOST END },
	{ "in the query", "GET /healthz?a@b HTTP/1.1\r\n" HOST END },
	{ "behind the version", "GET /healthz HTTP/1.1@\r\n" HOST END },
	{ "in a name", "GET /healthz HTTP/1.1\r\nX@Y: a\r\n" HOST END },
	{ "in a value", "GET /healthz HTTP/1.1\r\nContent-Length: 0@7\r\n" HOST END },
	{ "behind a value", "GET /healthz HTTP/1.1\r\nContent-Length: 0@\r\n" HOST END },
	{ "behind the last value", "GET /healthz HTTP/1.1\r\nHost: localhost@\r\n\r\n" },
	{ "in the last value", "GET /healthz HTTP/1.1\r\nHost: localhost@.example\r\n\r\n" },
};

Test(http, a_zero_byte_in_a_head_is_refused)
{
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		static char answer[RELAY_ANSWER_BYTES];
		char request[256];
		size_t len = strlen(cut[i].request);
		int fd = relay_connect(relay_port());

		memcpy(request, cut[i].request, len);
		*(char *)memchr(request, '@', len) = '\0';
		relay_send(fd, request, len);
		relay_read(fd, answer, 0);
		cr_expect_eq(relay_status(answer), 400, "%s: %s", cut[i].name, answer);
		close(fd);
	}
}

/* What a strict reader of heads must still take. */
static const char *const plain_heads[] = {
	"GET /healthz HTTP/1.1\r\nHost:localhost\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: \t localhost\r\nX: a b\tc\r\n\r\n",
	"GET /healthz HTTP/1.1\r\n" HOST "X: a  \r\nY: b\t\r\n\r\n",
	"GET /healthz HTTP/1.1\r\n" HOST "X:\r\nY: \r\nZ: \xc3\xa9\r\n\r\n",
	"GET /healthz?a=b&c&d=%20 HTTP/1.1\r\n" HOST END,
	"GET /healthz HTTP/1.1\r\nCookie: a=b; c=\"d\"\r\n" HOST END,
	"\r\nGET /healthz HTTP/1.1\r\n" HOST END,
	"GET /healthz HTTP/1.0\r\n\r\n",
};

Test(http, an_ordinary_head_is_taken_however_it_is_spaced)
{
	for (size_t i = 0; i < sizeof(plain_heads) / sizeof(plain_heads[0]); i++)
		cr_expect_eq(relay_status(relay_ask(plain_heads[i])), 200, "row %zu", i);
}

/* Not HTTP as RFC 9112 writes it: no answer of ours but a 4xx or the end of the connection. */
static const char *const malformed[] = {
	"GET /whep/cam HTTP/1.1\r\n\r\n", /* no Host */
	"GET /whep/cam HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET /healthz HTTP/1.1\r\n" HOST ": empty\r\n\r\n",
	"GET /healthz HTTP/1.1\r\n" HOST "Na me: x\r\n\r\n",
	"GET /healthz HTTP/3.7\r\n" HOST "\r\n",
	"POST /whip/a HTTP/1.1\r\n" HOST "Content-Type: application/sdp\r\n"
	"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx\r\n0\r\n\r\n",
	"POST /whip/a HTTP/1.1\r\n" HOST "Content-Type: application/sdp\r\n"
	"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
	"POST /whip/a HTTP/1.1\r\n" HOST "Content-Type: application/sdp\r\n"
	"Transfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n0\r\n\r\n",
};

Test(http, malformed_requests_are_never_served)
{
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		int status = relay_status(relay_ask(malformed[i]));

		cr_expect(status == 0 || (status >= 400 && status < 600), "row %zu: %d", i, status);
	}
	cr_expect_eq(registry_double.publishes, 0);
	cr_expect_eq(relay_status(relay_ask("GET /healthz HTTP/1.1\r\n" HOST END)), 200);
}

static int status_of_body(size_t bytes, int is_chunked, const char *type, const char *line)
{
	static char answer[RELAY_ANSWER_BYTES];
	char head[512];
	char *body = malloc(bytes + 1);
	int fd = relay_connect(relay_port());

	cr_assert_not_null(body);
	memset(body, 'a', bytes);
	snprintf(head, sizeof(head), "%s HTTP/1.1\r\n" HOST "Content-Type: %s\r\n", line, type);
	relay_send(fd, head, strlen(head));
	if (is_chunked)
		snprintf(head, sizeof(head), "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", bytes);
	else
		snprintf(head, sizeof(head), "Content-Length: %zu\r\n\r\n", bytes);
	relay_send(fd, head, strlen(head));
	relay_send(fd, body, bytes);
	if (is_chunked)
		relay_send(fd, "\r\n0\r\n\r\n", 7);
	relay_read(fd, answer, 0);
	close(fd);
	free(body);
	return relay_status(answer);
}

Test(http, a_body_is_taken_up_to_its_cap_and_refused_beyond)
{
	static const struct {
		size_t bytes;
		int is_chunked;
		int want; /* 0: the connection just ends */
	} caps[] = {
		{ 65536, 0, 201 },   { 65537, 0, 413 },
		{ 65536, 1, 201 },   { 65537, 1, 413 },
		{ 131072, 1, 413 },  { 400000, 1, 0 },
		{ 1000000, 0, 413 }, { 10 * 1000 * 1000, 0, 413 },
	};
	static const char sdp[] = "application/sdp";
	static const char frag[] = "application/trickle-ice-sdpfrag";

	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		int got = status_of_body(caps[i].bytes, caps[i].is_chunked, sdp, "POST /whip/cam");

		/* Of a body nobody waits for the answer may be lost in the reset. */
		if (caps[i].bytes > 1024 * 1024 && got == 0)
			continue;
		cr_expect_eq(got, caps[i].want, "%zu bytes, chunked %d: %d", caps[i].bytes,
			     caps[i].is_chunked, got);
	}
	cr_expect_eq(registry_double.publishes, 2);
	cr_expect_eq(registry_double.body_bytes, 65536);
	registry_double.next.body = NULL;
	cr_expect_eq(status_of_body(16384, 0, frag, "PATCH /session/" ID), 204);
	cr_expect_eq(status_of_body(16385, 0, frag, "PATCH /session/" ID), 413);
	cr_expect_eq(registry_double.patches, 1);
}

Test(http, too_long_a_body_is_refused_before_it_is_sent_when_the_client_asks)
{
	const char *answer =
	    relay_ask("POST /whip/cam HTTP/1.1\r\n" HOST "Content-Type: application/sdp\r\n"
		      "Content-Length: 70000\r\nExpect: 100-continue\r\n\r\n");

	cr_expect_eq(relay_status(answer), 413, "%s", answer);
}

Test(http, header_fields_are_bounded_in_size_and_number)
{
	static char request[64 * 1024];
	size_t n = (size_t)snprintf(request, sizeof(request), "GET /healthz HTTP/1.1\r\n" HOST);
	int status;

	for (int i = 0; i < 63; i++)
		n += (size_t)snprintf(request + n, sizeof(request) - n, "X-%d: y\r\n", i);
	snprintf(request + n, sizeof(request) - n, "\r\n");
	cr_expect_eq(relay_status(relay_ask(request)), 200);
	snprintf(request + n, sizeof(request) - n, "X-64: y\r\n\r\n");
	cr_expect_eq(relay_status(relay_ask(request)), 431);
	n = (size_t)snprintf(request, sizeof(request), "GET /healthz HTTP/1.1\r\n" HOST "X: ");
	memset(request + n, 'x', 40000);
	snprintf(request + n + 7900, sizeof(request) - n - 7900, "  \r\n\r\n");
	cr_expect_eq(relay_status(relay_ask(request)), 200, "8 KiB, and space behind a value");
	memset(request + n, 'x', 40000);
	snprintf(request + n + 9000, sizeof(request) - n - 9000, "\r\n\r\n");
	cr_expect_eq(relay_status(relay_ask(request)), 431);
	memset(request + n, 'x', 40000);
	snprintf(request + n + 40000, sizeof(request) - n - 40000, "\r\n\r\n");
	status = relay_status(relay_ask(request));
	cr_expect(status == 0 || status == 431, "%d", status);
}

Test(http, connections_are_kept_for_further_requests)
{
	static char answer[RELAY_ANSWER_BYTES];
	static const char publish[] = "POST /whip/cam HTTP/1.1\r\n" HOST
				      "Content-Type: application/sdp\r\nContent-Length: 1\r\n\r\nv";
	static const char refused[] = "POST /whip/cam HTTP/1.1\r\n" HOST
				      "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
	int fd = relay_connect(relay_port());

	for (int i = 0; i < 3; i++) {
		relay_send(fd, publish, strlen(publish));
		cr_expect_eq(relay_status(relay_read(fd, answer, 0)), 201, "round %d", i);
		relay_send(fd, refused, strlen(refused));
		cr_expect_eq(relay_status(relay_read(fd, answer, 0)), 415, "round %d", i);
	}
	close(fd);
}

Test(http, a_request_split_into_single_bytes_is_one_request)
{
	static char answer[RELAY_ANSWER_BYTES];
	static const char publish[] =
	    "POST /whip/cam HTTP/1.1\r\n" HOST
	    "Content-Type: application/sdp\r\nContent-Length: 3\r\n\r\nv=0";
	int fd = relay_connect(relay_port());

	for (size_t i = 0; i < strlen(publish); i++)
		relay_send(fd, publish + i, 1);
	cr_expect_eq(relay_status(relay_read(fd, answer, 0)), 201);
	cr_expect_eq(registry_double.body_bytes, 3);
	close(fd);
}

Test(http, metrics_count_requests_by_route_and_status)
{
	const char *answer;

	relay_ask("GET /nowhere HTTP/1.1\r\n" HOST END);
	relay_ask("GET /whep/cam HTTP/1.1\r\n" HOST END);
	answer = relay_ask("GET /metrics HTTP/1.1\r\n" HOST END);
	cr_expect(strstr(answer, "sluice_http_requests_total{route=\"none\",status=\"4xx\"} 1\n"));
	cr_expect(strstr(answer, "sluice_http_requests_total{route=\"whep\",status=\"2xx\"} 1\n"));
	cr_expect(strstr(answer, "# TYPE sluice_http_requests_total counter\n"));
	cr_expect(strstr(answer, "\n# registry\n"), "what the registry adds");
}

Test(http, pages_name_only_files_that_are_served)
{
	static const char *const pages[] = { "/", "/publish/cam", "/watch/cam" };

	for (size_t i = 0; i < 3; i++) {
		char request[128];
		char *page;

		snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n" HOST END, pages[i]);
		page = strdup(relay_ask(request));
		cr_assert_not_null(page);
		for (const char *at = strstr(page, "\"/pages/"); at;
		     at = strstr(at + 1, "\"/pages/")) {
			snprintf(request, sizeof(request), "GET %.*s HTTP/1.1\r\n" HOST END,
				 (int)strcspn(at + 1, "\""), at + 1);
			cr_expect_eq(relay_status(relay_ask(request)), 200, "%s", request);
		}
		cr_expect_null(strstr(page, "http://"), "nothing from elsewhere");
		cr_expect_null(strstr(page, "https://"), "nothing from elsewhere");
		free(page);
	}
}
