#include <criterion/criterion.h>
#include <errno.h>

#include "server/http_text.h"
#include "server/problem.h"

TestSuite(http_text, .timeout = 10);

Test(http_text, the_client_is_the_last_address_that_no_trusted_proxy_has)
{
	static const char yaml[] = "http: {trusted_proxies: [10.0.0.0/8, '2001:db8::/32']}";
	static const struct {
		uint8_t peer[4];
		const char *field;
		const char *want;
	} rows[] = {
		{ { 10, 0, 0, 1 }, NULL, "10.0.0.1" },
		{ { 10, 0, 0, 1 }, "192.0.2.1", "192.0.2.1" },
		{ { 10, 0, 0, 1 }, "192.0.2.1:4711", "192.0.2.1" },
		{ { 10, 0, 0, 1 }, "8.8.8.8, 192.0.2.1", "192.0.2.1" },
		{ { 10, 0, 0, 1 }, "8.8.8.8,192.0.2.1 , 10.2.2.2", "192.0.2.1" },
		{ { 10, 0, 0, 1 }, "10.3.3.3, 10.2.2.2", "10.3.3.3" },
		{ { 10, 0, 0, 1 }, "192.0.2.1, [2001:db8::5]:80", "192.0.2.1" },
		{ { 10, 0, 0, 1 }, "192.0.2.1, unknown", "10.0.0.1" },
		{ { 10, 0, 0, 1 }, "192.0.2.1,", "10.0.0.1" },
		{ { 10, 0, 0, 1 }, "", "10.0.0.1" },
		{ { 10, 0, 0, 1 }, " , ,", "10.0.0.1" },
		{ { 192, 0, 2, 9 }, "8.8.8.8", "192.0.2.9" },
	};
	char error[CONFIG_ERROR_BYTES];
	struct config *c;

	cr_assert_eq(config_parse(&c, yaml, strlen(yaml), "test", error), 0, "%s", error);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t peer[16] = { [10] = 0xff, [11] = 0xff };
		uint8_t got[16];
		char text[16];

		memcpy(peer + 12, rows[i].peer, 4);
		http_client_ip(got, peer, rows[i].field, &c->http.trusted_proxies);
		snprintf(text, sizeof(text), "%d.%d.%d.%d", got[12], got[13], got[14], got[15]);
		cr_expect_str_eq(text, rows[i].want, "row %zu", i);
	}
	config_destroy(c);
}

Test(http_text, routes_are_told_apart)
{
	static const struct {
		const char *path;
		enum http_route_kind kind;
		const char *name;
	} rows[] = {
		{ "/", HTTP_ROUTE_PAGE_DASHBOARD, "" },
		{ "", HTTP_ROUTE_NONE, "" },
		{ "*", HTTP_ROUTE_NONE, "" },
		{ "//", HTTP_ROUTE_NONE, "" },
		{ "/whip/a", HTTP_ROUTE_WHIP, "a" },
		{ "/whip/..", HTTP_ROUTE_WHIP, ".." },
		{ "/whip/a/", HTTP_ROUTE_NONE, "" },
		{ "/whip/a b", HTTP_ROUTE_NONE, "" },
		{ "/WHIP/a", HTTP_ROUTE_NONE, "" },
		{ "/whep/a", HTTP_ROUTE_WHEP, "a" },
		{ "/publish/a", HTTP_ROUTE_PAGE_PUBLISH, "a" },
		{ "/watch/a", HTTP_ROUTE_PAGE_WATCH, "a" },
		{ "/pages/style.css", HTTP_ROUTE_PAGE_FILE, "style.css" },
		{ "/session/0123456789abcdefghijkl", HTTP_ROUTE_SESSION, "0123456789abcdefghijkl" },
		{ "/session/0123456789abcdefghijkl/status", HTTP_ROUTE_SESSION_STATUS,
		  "0123456789abcdefghijkl" },
		{ "/session/0123456789abcdefghijkl/events", HTTP_ROUTE_SESSION_EVENTS,
		  "0123456789abcdefghijkl" },
		{ "/session/0123456789abcdefghijkl/events/7", HTTP_ROUTE_EVENT_STREAM,
		  "0123456789abcdefghijkl" },
		{ "/session/0123456789abcdefghijkl/layer", HTTP_ROUTE_SESSION_LAYER,
		  "0123456789abcdefghijkl" },
		{ "/session/0123456789abcdefghijkl/events/", HTTP_ROUTE_NONE, "" },
		{ "/session/0123456789abcdefghijkl/events/-7", HTTP_ROUTE_NONE, "" },
		{ "/session/0123456789abcdefghijkl/events/7/", HTTP_ROUTE_NONE, "" },
		{ "/session/0123456789abcdefghijkl/events/1234567890123456789", HTTP_ROUTE_NONE,
		  "" },
		{ "/session/0123456789abcdefghijkl/", HTTP_ROUTE_NONE, "" },
		{ "/session/0123456789abcdefghijk", HTTP_ROUTE_NONE, "" },
		{ "/session/0123456789abcdefghij.l", HTTP_ROUTE_NONE, "" },
		{ "/api/sessions", HTTP_ROUTE_API_SESSIONS, "" },
		{ "/api/sessions/12", HTTP_ROUTE_API_SESSION, "" },
		{ "/api/sessions/-12", HTTP_ROUTE_NONE, "" },
		{ "/api/sessions/", HTTP_ROUTE_NONE, "" },
		{ "/api/streams/a.b/rtp-in", HTTP_ROUTE_RTP_IN, "a.b" },
		{ "/api/streams/a.b/rtp-out", HTTP_ROUTE_RTP_OUTS, "a.b" },
		{ "/api/streams/a.b/rtp-out/7", HTTP_ROUTE_RTP_OUT, "a.b" },
		{ "/api/streams/a.b/rtp-out/", HTTP_ROUTE_NONE, "" },
		{ "/api/streams/a.b/rtp-out/x", HTTP_ROUTE_NONE, "" },
		{ "/api/streams//rtp-out/7", HTTP_ROUTE_NONE, "" },
		{ "/api/streams/a.b", HTTP_ROUTE_NONE, "" },
		{ "/api/streams//rtp-in", HTTP_ROUTE_NONE, "" },
		{ "/api/streams/a/rtp-in/1", HTTP_ROUTE_NONE, "" },
		{ "HTTP://host:1/whip/a", HTTP_ROUTE_WHIP, "a" },
		{ "http://host", HTTP_ROUTE_PAGE_DASHBOARD, "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_route r = http_route_of(rows[i].path);

		cr_expect_eq(r.kind, rows[i].kind, "%s", rows[i].path);
		if (r.kind != HTTP_ROUTE_NONE)
			cr_expect_str_eq(r.name, rows[i].name);
	}
	cr_expect_eq(http_route_of("/api/sessions/18").number, 18);
	cr_expect_eq(http_route_of("/session/0123456789abcdefghijkl/events/18").number, 18);
}

Test(http_text, every_route_has_a_name_for_metrics)
{
	for (int kind = 0; kind < HTTP_ROUTES; kind++)
		cr_expect_not_null(http_route_name((enum http_route_kind)kind), "%d", kind);
}

Test(http_text, a_length_is_digits_only)
{
	uint64_t n = 7;

	cr_expect_eq(http_length_of(&n, "0"), 0);
	cr_expect_eq(n, 0);
	cr_expect_eq(http_length_of(&n, "123456789012345678"), 0);
	cr_expect_eq(n, 123456789012345678);
	cr_expect_eq(http_length_of(&n, "1234567890123456789"), -EINVAL);
	cr_expect_eq(http_length_of(&n, ""), -EINVAL);
	cr_expect_eq(http_length_of(&n, " 1"), -EINVAL);
	cr_expect_eq(http_length_of(&n, "1 "), -EINVAL);
	cr_expect_eq(http_length_of(&n, "1,1"), -EINVAL);
}

Test(http_text, a_problem_is_whole_json_however_long_its_reason)
{
	char detail[4096];
	char out[PROBLEM_BYTES];
	size_t n;
	json_t *json;

	for (int c = 1; c < 256; c++) {
		memset(detail, c, sizeof(detail) - 1);
		detail[sizeof(detail) - 1] = '\0';
		n = problem_write(out, 422, detail);
		cr_expect_lt(n, PROBLEM_BYTES);
		json = json_loadb(out, n, 0, NULL);
		cr_expect_not_null(json, "byte %d", c);
		cr_expect_eq(json_integer_value(json_object_get(json, "status")), 422);
		json_decref(json);
	}
}
