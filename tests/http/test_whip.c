#include <criterion/criterion.h>
#include <unistd.h>

#include "tests/http/kit_registry.h"
#include "tests/http/kit_relay.h"

#define HOST "Host: localhost\r\n"
#define ID   "0123456789abcdefABCD_-"
#define SDP  "Content-Type: application/sdp\r\nContent-Length: 1\r\n"
#define FRAG "Content-Type: application/trickle-ice-sdpfrag\r\nContent-Length: 1\r\n"

static void answers(enum registry_status status, const char *reason)
{
	registry_double = (struct registry_double){ .is_ready = true, .has_sessions = true };
	registry_double.next =
	    (struct registry_reply){ .status = status, .session_id = ID, .etag = "tag-2" };
	registry_double.next.body = status == REGISTRY_OK ? "v=0\r\n" : NULL;
	snprintf(registry_double.next.reason, REGISTRY_REASON_BYTES, "%s", reason);
}

TestSuite(whip, .timeout = 30);

static const char *post(const char *path, const char *fields)
{
	char request[1024];

	snprintf(request, sizeof(request), "POST %s HTTP/1.1\r\n" HOST SDP "%s\r\nv", path, fields);
	return relay_ask(request);
}

static const char *patch(const char *fields)
{
	char request[1024];

	snprintf(request, sizeof(request), "PATCH /session/" ID " HTTP/1.1\r\n" HOST FRAG "%s\r\na",
		 fields);
	return relay_ask(request);
}

Test(whip, each_verdict_of_the_registry_has_its_status_and_its_reason)
{
	static const struct {
		enum registry_status verdict;
		int status;
	} rows[] = {
		{ REGISTRY_UNPARSABLE, 400 },
		{ REGISTRY_UNACCEPTABLE, 422 },
		{ REGISTRY_NO_COMMON_CODEC, 406 },
		{ REGISTRY_NO_PUBLISHER, 409 },
		{ REGISTRY_FULL, 503 },
		{ REGISTRY_DRAINING, 503 },
		{ REGISTRY_NOT_FOUND, 404 },
		{ REGISTRY_STALE, 412 },
		{ REGISTRY_TAG_MISSING, 428 },
	};

	relay_start("");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *answer;
		char status[32];

		answers(rows[i].verdict, "because of \"x\"\nand \xff more");
		answer = post("/whep/cam", "");
		snprintf(status, sizeof(status), "\"status\":%d,", rows[i].status);
		cr_expect_eq(relay_status(answer), rows[i].status, "%s", answer);
		cr_expect(strstr(answer, status), "%s", answer);
		cr_expect(strstr(answer, "\"detail\":\"because of \\\"x\\\"?and ? more\""), "%s",
			  answer);
		cr_expect_null(relay_field(answer, "Location"));
		cr_expect_eq(rows[i].status == 503, relay_field(answer, "Retry-After") != NULL);
	}
	relay_stop();
}

Test(whip, a_publisher_says_in_the_query_that_payloads_are_opaque)
{
	static const struct {
		const char *path;
		int status;
		bool is_opaque;
	} rows[] = {
		{ "/whip/cam", 201, false },
		{ "/whip/cam?opaque=1", 201, true },
		{ "/whip/cam?x=y&opaque=1", 201, true },
		{ "/whip/cam?opaque=0", 201, false },
		{ "/whip/cam?opaque=yes", 400, false },
		{ "/whip/cam?opaque=", 400, false },
		{ "/whip/cam?opaque", 400, false },
		{ "/whep/cam?opaque=yes", 201, false },
	};

	relay_start("");
	answers(REGISTRY_OK, "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *answer;

		registry_double.is_opaque = false;
		answer = post(rows[i].path, "");
		cr_expect_eq(relay_status(answer), rows[i].status, "%s: %s", rows[i].path, answer);
		cr_expect_eq(registry_double.is_opaque, rows[i].is_opaque, "%s", rows[i].path);
		cr_expect_eq(rows[i].status == 400,
			     strstr(answer, "opaque in the query is 1") != NULL, "%s", answer);
	}
	relay_stop();
}

Test(whip, who_was_redirected_here_gets_whole_urls)
{
	const char *answer;

	relay_start("http: {listen: '127.0.0.1:0', public_url: 'https://relay2.example:8443/x'}\n");
	answers(REGISTRY_OK, "");
	answer = post("/whep/cam", "");
	cr_expect_eq(relay_status(answer), 201);
	cr_expect_str_eq(relay_field(answer, "Location"),
			 "https://relay2.example:8443/x/session/" ID);
	cr_expect(
	    strstr(answer, "\r\nLink: <https://relay2.example:8443/x/session/" ID "/events>; "));
	cr_expect(
	    strstr(answer, "\r\nLink: <https://relay2.example:8443/x/session/" ID "/layer>; "));
	relay_stop();
}

Test(whip, a_body_comes_after_100_continue_where_the_client_waits_for_it)
{
	static const char request[] =
	    "POST /whip/cam HTTP/1.1\r\n" HOST SDP "Expect: 100-continue\r\n\r\n";
	char answer[RELAY_ANSWER_BYTES];
	int fd;

	relay_start("");
	answers(REGISTRY_OK, "");
	fd = relay_connect(relay_port());
	answer[0] = '\0';
	relay_send(fd, request, strlen(request));
	relay_read(fd, answer, 1);
	cr_expect_eq(relay_status(answer), 100, "%s", answer);
	relay_send(fd, "v", 1);
	relay_read(fd, answer, 0);
	cr_expect_eq(relay_status(answer), 201, "%s", answer);
	close(fd);
	relay_stop();
}

Test(whip, a_retry_time_of_the_registry_is_passed_on)
{
	relay_start("");
	answers(REGISTRY_NO_PUBLISHER, "nobody publishes");
	registry_double.next.retry_after_s = 7;
	cr_expect_str_eq(relay_field(post("/whep/cam", ""), "Retry-After"), "7");
	relay_stop();
}

Test(whip, patch_answers_204_for_candidates_and_a_fragment_for_a_restart)
{
	const char *answer;

	relay_start("");
	answers(REGISTRY_OK, "");
	registry_double.next.body = NULL;
	answer = patch("If-Match: \"tag-1\"\r\n");
	cr_expect_eq(relay_status(answer), 204);
	cr_expect_null(relay_field(answer, "ETag"), "RFC 9725: not on a trickle answer");
	cr_expect_str_eq(registry_double.if_match, "\"tag-1\"");
	cr_expect_str_eq(registry_double.id, ID);
	cr_expect_not(registry_double.is_strict);
	registry_double.next.body = "a=ice-ufrag:x\r\n";
	answer = patch("");
	cr_expect_eq(relay_status(answer), 200);
	cr_expect_str_eq(relay_field(answer, "Content-Type"), "application/trickle-ice-sdpfrag");
	cr_expect_str_eq(relay_field(answer, "ETag"), "\"tag-2\"");
	cr_expect_str_eq(registry_double.if_match, "(none)");
	relay_stop();
}

Test(whip, strict_etags_are_a_switch)
{
	relay_start("whip: {strict_etags: true}\n");
	answers(REGISTRY_OK, "");
	patch("");
	cr_expect(registry_double.is_strict);
	relay_stop();
}

Test(whip, sessions_that_do_not_exist_are_404)
{
	relay_start("");
	answers(REGISTRY_OK, "");
	registry_double.has_sessions = false;
	cr_expect_eq(relay_status(relay_ask("DELETE /session/" ID " HTTP/1.1\r\n" HOST "\r\n")),
		     404);
	cr_expect_eq(relay_status(relay_ask("GET /session/" ID " HTTP/1.1\r\n" HOST "\r\n")), 404);
	cr_expect_eq(relay_status(relay_ask("GET /session/" ID "/status HTTP/1.1\r\n" HOST "\r\n")),
		     404);
	cr_expect_eq(relay_status(relay_ask("DELETE /api/sessions/3 HTTP/1.1\r\n" HOST "\r\n")),
		     404);
	cr_expect_eq(registry_double.number, 3);
	relay_stop();
}

Test(whip, ice_servers_are_one_link_line_each)
{
	static const char want_turn[] =
	    "\r\nLink: <turn:t.example:3478?transport=udp>; rel=\"ice-server\"; "
	    "username=\"u\"; credential=\"p\"; credential-type=\"password\"\r\n";
	static const char want_stun[] = "\r\nLink: <stun:s.example>; rel=\"ice-server\"\r\n";
	const char *answer;

	relay_start(
	    "ice:\n  servers:\n    - url: stun:s.example\n"
	    "    - {url: 'turn:t.example:3478?transport=udp', username: u, credential: p}\n");
	answers(REGISTRY_OK, "");
	answer = post("/whip/cam", "");
	cr_expect(strstr(answer, want_stun) && strstr(answer, want_turn), "%s", answer);
	answer = relay_ask("OPTIONS /whip/cam HTTP/1.1\r\n" HOST "\r\n");
	cr_expect(strstr(answer, want_stun) && strstr(answer, want_turn), "%s", answer);
	answer = relay_ask("OPTIONS /whip/cam HTTP/1.1\r\n" HOST
			   "Access-Control-Request-Method: POST\r\n\r\n");
	cr_expect_null(strstr(answer, "Link:"), "not in a preflight's answer");
	relay_stop();
}

/* Tokens configured: publish P, watch W, admin A. */
static const struct {
	const char *request;
	const char *authorization;
	int status;
	const char *challenge; /* NULL: no WWW-Authenticate */
} doors[] = {
	{ "POST /whip/cam", "", 401, "Bearer realm=\"sluice\"" },
	{ "POST /whip/cam", "Authorization: Bearer P\r\n", 201, NULL },
	{ "POST /whip/cam", "authorization: bearer   P\r\n", 201, NULL },
	{ "POST /whip/cam", "Authorization: Bearer PP\r\n", 401,
	  "Bearer realm=\"sluice\", error=\"invalid_token\"" },
	{ "POST /whip/cam", "Authorization: Bearer \r\n", 401,
	  "Bearer realm=\"sluice\", error=\"invalid_token\"" },
	{ "POST /whip/cam", "Authorization: Basic P\r\n", 401,
	  "Bearer realm=\"sluice\", error=\"invalid_token\"" },
	{ "POST /whip/cam", "Authorization: Bearer P P\r\n", 401,
	  "Bearer realm=\"sluice\", error=\"invalid_token\"" },
	{ "POST /whip/cam", "Authorization: Bearer W\r\n", 403,
	  "Bearer realm=\"sluice\", error=\"insufficient_scope\"" },
	{ "POST /whip/cam", "Authorization: Bearer A\r\n", 403,
	  "Bearer realm=\"sluice\", error=\"insufficient_scope\"" },
	{ "POST /whep/cam", "Authorization: Bearer W\r\n", 201, NULL },
	{ "POST /whep/cam", "Authorization: Bearer P\r\n", 403,
	  "Bearer realm=\"sluice\", error=\"insufficient_scope\"" },
	/* Loopback administers without a token, unless a proxy may be in between. */
	{ "GET /api/info", "", 200, NULL },
	{ "GET /metrics", "", 200, NULL },
	{ "GET /api/info", "Via: 1.1 proxy\r\n", 401, "Bearer realm=\"sluice\"" },
	{ "GET /api/info", "Forwarded: for=192.0.2.1\r\n", 401, "Bearer realm=\"sluice\"" },
	{ "GET /metrics", "X-Forwarded-Proto: https\r\n", 401, "Bearer realm=\"sluice\"" },
	{ "GET /api/info", "Via: 1.1 proxy\r\nAuthorization: Bearer A\r\n", 200, NULL },
	{ "GET /api/info", "Via: 1.1 proxy\r\nAuthorization: Bearer P\r\n", 403,
	  "Bearer realm=\"sluice\", error=\"insufficient_scope\"" },
	{ "GET /healthz", "Via: 1.1 proxy\r\n", 200, NULL },
	{ "GET /watch/cam", "Via: 1.1 proxy\r\n", 200, NULL },
	/* A preflight carries no token. */
	{ "OPTIONS /whip/cam", "", 200, NULL },
};

Test(whip, tokens_open_the_door_they_are_for)
{
	relay_start("tokens: {publish: [P, other], watch: [W], admin: [A]}\n");
	answers(REGISTRY_OK, "");
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		char request[512];
		bool is_post = strncmp(doors[i].request, "POST", 4) == 0;
		const char *answer;
		const char *challenge;

		snprintf(request, sizeof(request), "%s HTTP/1.1\r\n" HOST "%s%s\r\n%s",
			 doors[i].request, doors[i].authorization, is_post ? SDP : "",
			 is_post ? "v" : "");
		answer = relay_ask(request);
		cr_expect_eq(relay_status(answer), doors[i].status, "%s %s: %s", doors[i].request,
			     doors[i].authorization, answer);
		challenge = relay_field(answer, "WWW-Authenticate");
		cr_expect_eq(challenge != NULL, doors[i].challenge != NULL);
		if (challenge && doors[i].challenge)
			cr_expect_str_eq(challenge, doors[i].challenge);
	}
	relay_stop();
}

Test(whip, without_tokens_only_this_host_may_publish_and_not_through_a_proxy)
{
	relay_start("");
	answers(REGISTRY_OK, "");
	cr_expect_eq(relay_status(post("/whip/cam", "")), 201);
	cr_expect_eq(relay_status(post("/whip/cam", "X-Forwarded-For: 192.0.2.1\r\n")), 403);
	cr_expect_eq(relay_status(relay_ask("POST /whip/cam HTTP/1.1\r\nHost: evil.example\r\n" SDP
					    "\r\nv")),
		     403, "a name of another site that leads to 127.0.0.1");
	cr_expect_eq(relay_status(relay_ask("POST /whip/cam HTTP/1.1\r\nHost: 127.1.2.3:80\r\n" SDP
					    "\r\nv")),
		     201);
	relay_stop();
}

Test(whip, open_lets_anyone_publish_but_not_administer)
{
	relay_start("http: {listen: '127.0.0.1:0', open: true}\n");
	answers(REGISTRY_OK, "");
	cr_expect_eq(relay_status(post("/whip/cam", "Via: 1.1 x\r\n")), 201);
	cr_expect_eq(
	    relay_status(relay_ask("GET /api/info HTTP/1.1\r\n" HOST "Via: 1.1 x\r\n\r\n")), 403);
	relay_stop();
}

Test(whip, an_admin_listener_takes_the_api_with_it)
{
	static const struct {
		const char *path;
		int on_main;
		int on_admin;
	} rows[] = {
		{ "/api/info", 404, 200 },
		{ "/metrics", 404, 200 },
		{ "/healthz", 200, 200 },
		{ "/readyz", 200, 200 },
		{ "/", 200, 200 },
		{ "/watch/cam", 200, 404 },
		{ "/whep/cam", 204, 404 },
		{ "/pages/style.css", 200, 200 },
		{ "/session/" ID, 204, 404 },
	};

	relay_start("http: {listen: '127.0.0.1:0', admin: '127.0.0.1:0'}\n");
	answers(REGISTRY_OK, "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char request[128];

		snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n" HOST "\r\n", rows[i].path);
		cr_expect_eq(relay_status(relay_ask(request)), rows[i].on_main, "%s", rows[i].path);
		cr_expect_eq(relay_status(relay_ask_port(relay_admin_port(), request)),
			     rows[i].on_admin, "%s", rows[i].path);
	}
	relay_stop();
}

Test(whip, a_client_behind_a_trusted_proxy_has_the_limit_of_its_own_address)
{
	static const char *const clients[] = { "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2" };
	static const int want[] = { 201, 201, 429, 201 };

	relay_start("http: {listen: '127.0.0.1:0', open: true, trusted_proxies: [127.0.0.0/8]}\n"
		    "limits: {posts_per_s: 1, posts_burst: 2}\n");
	answers(REGISTRY_OK, "");
	for (size_t i = 0; i < 4; i++) {
		char fields[96];
		const char *answer;

		snprintf(fields, sizeof(fields), "X-Forwarded-For: 10.9.9.9, %s\r\n", clients[i]);
		answer = post("/whip/cam", fields);
		cr_expect_eq(relay_status(answer), want[i], "%zu: %s", i, answer);
		if (want[i] == 429)
			cr_expect_not_null(relay_field(answer, "Retry-After"));
	}
	relay_stop();
}

Test(whip, the_node_has_a_limit_for_all_together)
{
	const char *answer;

	relay_start("limits: {node_posts_per_s: 1, node_posts_burst: 2}\n");
	answers(REGISTRY_OK, "");
	cr_expect_eq(relay_status(post("/whip/a", "")), 201);
	cr_expect_eq(relay_status(post("/whip/b", "")), 201);
	answer = post("/whip/c", "");
	cr_expect_eq(relay_status(answer), 503);
	cr_expect_not_null(relay_field(answer, "Retry-After"));
	cr_expect_eq(registry_double.publishes, 2);
	relay_stop();
}

Test(whip, a_session_takes_its_patches_at_a_rate)
{
	int refused = 0;

	relay_start("limits: {patches_per_s: 1}\n");
	answers(REGISTRY_OK, "");
	registry_double.next.body = NULL;
	for (int i = 0; i < 8; i++)
		refused += relay_status(patch("")) == 429;
	cr_expect_geq(refused, 3);
	cr_expect_leq(refused, 4);
	relay_stop();
}

Test(whip, readiness_follows_the_registry)
{
	const char *answer;

	relay_start("");
	answers(REGISTRY_OK, "");
	registry_double.is_ready = false;
	answer = relay_ask("GET /readyz HTTP/1.1\r\n" HOST "\r\n");
	cr_expect_eq(relay_status(answer), 503);
	cr_expect_not_null(relay_field(answer, "Retry-After"));
	cr_expect_eq(relay_status(relay_ask("GET /healthz HTTP/1.1\r\n" HOST "\r\n")), 200);
	relay_stop();
}

Test(whip, a_client_may_have_only_so_many_sessions_that_are_not_connected)
{
	static const uint8_t client[16] = { [10] = 0xff, 0xff, 198, 51, 100, 7 };
	const char *from = "X-Forwarded-For: 198.51.100.7\r\nAuthorization: Bearer w\r\n";

	relay_start("http: {listen: '127.0.0.1:0', trusted_proxies: [127.0.0.1/32]}\n"
		    "tokens: {watch: [w]}\nlimits: {half_open_per_ip: 2}\n");
	answers(REGISTRY_OK, "");
	cr_expect_eq(relay_status(post("/whep/cam", from)), 201);
	cr_expect_eq(relay_status(post("/whep/cam", from)), 201);
	cr_expect_eq(relay_status(post("/whep/cam", from)), 429);
	registry_double_settle(client); /* one of them connected, or ended */
	cr_expect_eq(relay_status(post("/whep/cam", from)), 201);
	answers(REGISTRY_FULL, "full"); /* a refused one counts no longer than its answer */
	registry_double_settle(client);
	cr_expect_eq(relay_status(post("/whep/cam", from)), 503);
	answers(REGISTRY_OK, "");
	cr_expect_eq(relay_status(post("/whep/cam", from)), 201);
	relay_stop();
}
