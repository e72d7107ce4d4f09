#include "server/plain_api.h"

#include <criterion/criterion.h>

#include "tests/http/kit_registry.h"
#include "tests/http/kit_relay.h"

#define HOST "Host: localhost\r\n"
#define PATH "/api/streams/cam/rtp-in"
#define OUTS "/api/streams/cam/rtp-out"
#define OUT  OUTS "/12"
#define JSON "application/json"

static void setup(void)
{
	registry_double = (struct registry_double){ .is_ready = true };
	registry_double.next.body = "v=0\r\n";
	relay_start("");
}

TestSuite(plain_api, .init = setup, .fini = relay_stop, .timeout = 30);

static const char *ask_at(const char *path, const char *method, const char *type, const char *body)
{
	char request[4096];

	snprintf(request, sizeof(request),
		 "%s %s HTTP/1.1\r\n" HOST "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n%s",
		 method, path, type, strlen(body), body);
	return relay_ask(request);
}

static const char *ask(const char *method, const char *type, const char *body)
{
	return ask_at(PATH, method, type, body);
}

Test(plain_api, a_description_opens_ports)
{
	const char *answer = ask("POST", "application/sdp", "v=0");

	cr_expect_eq(relay_status(answer), 201);
	cr_expect_str_eq(relay_field(answer, "Location"), PATH);
	cr_expect_str_eq(relay_field(answer, "Content-Type"), "application/sdp");
	cr_expect(strstr(answer, "\r\n\r\nv=0\r\n"), "%s", answer);
	cr_expect_str_eq(registry_double.stream, "cam");
	cr_expect_str_eq(registry_double.source, "(none)");
	cr_expect_eq(registry_double.body_bytes, 3);
	answer =
	    ask("POST", "application/json", "{\"sdp\":\"v=0\\r\\n\",\"source\":\"192.0.2.7\"}");
	cr_expect_eq(relay_status(answer), 201);
	cr_expect_str_eq(registry_double.source, "192.0.2.7");
	cr_expect_eq(registry_double.body_bytes, 5);
}

Test(plain_api, json_that_says_nothing_is_400)
{
	static const char *const bodies[] = { "",
					      "{",
					      "[]",
					      "{}",
					      "{\"sdp\":1}",
					      "{\"sdp\":null}",
					      "{\"sdp\":\"v\",\"source\":7}",
					      "{\"sdp\":\"a\\u0000b\"}",
					      "{\"sdp\":\"a\",\"sdp\":\"b\"}" };

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		cr_expect_eq(relay_status(ask("POST", "application/json", bodies[i])), 400, "%s",
			     bodies[i]);
	cr_expect_eq(registry_double.inputs, 0);
}

Test(plain_api, refusals_have_their_status)
{
	static const struct {
		enum registry_status status;
		int http;
	} rows[] = { { REGISTRY_UNPARSABLE, 400 },
		     { REGISTRY_UNACCEPTABLE, 422 },
		     { REGISTRY_NO_COMMON_CODEC, 406 },
		     { REGISTRY_TAKEN, 409 },
		     { REGISTRY_FULL, 503 },
		     { REGISTRY_DRAINING, 503 } };

	registry_double.next.body = NULL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		registry_double.next.status = rows[i].status;
		cr_expect_eq(relay_status(ask("POST", "application/sdp", "v")), rows[i].http);
	}
}

Test(plain_api, it_is_shown_and_ended_once_it_is_there)
{
	cr_expect_eq(relay_status(ask("GET", "a/b", "")), 404);
	cr_expect_eq(relay_status(ask("DELETE", "a/b", "")), 404);
	registry_double.has_sessions = true;
	cr_expect(strstr(ask("GET", "a/b", ""), "{\"stream\":\"cam\"}"));
	cr_expect_eq(relay_status(ask("DELETE", "a/b", "")), 200);
	cr_expect_eq(relay_status(ask("PATCH", "a/b", "")), 405);
	cr_expect_eq(relay_status(ask("POST", "text/plain", "v=0")), 415);
}

Test(plain_api, a_target_is_read_from_json)
{
	static const struct {
		const char *body;
		uint16_t audio, video;
		bool mux;
	} rows[] = {
		{ "{\"address\":\"192.0.2.7\",\"video\":5004}", 0, 5004, false },
		{ "{\"address\":\"192.0.2.7\",\"audio\":1,\"video\":65535,\"rtcp_mux\":true}", 1,
		  65535, true },
		{ "{\"address\":\"192.0.2.7\",\"audio\":null,\"rtcp_mux\":false}", 0, 0, false },
	};
	static const char *const wrong[] = {
		"",
		"[]",
		"{\"video\":5004}",
		"{\"address\":7}",
		"{\"address\":\"a\",\"video\":0}",
		"{\"address\":\"a\",\"video\":65536}",
		"{\"address\":\"a\",\"video\":\"5004\"}",
		"{\"address\":\"a\",\"audio\":5004.5}",
		"{\"address\":\"a\",\"rtcp_mux\":1}",
	};
	const char *answer;

	registry_double.next.number = 12;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		answer = ask_at(OUTS, "POST", JSON, rows[i].body);
		cr_expect_eq(relay_status(answer), 201, "%s", rows[i].body);
		cr_expect_str_eq(relay_field(answer, "Location"), OUT);
		cr_expect_eq(registry_double.output.audio, rows[i].audio);
		cr_expect_eq(registry_double.output.video, rows[i].video);
		cr_expect_eq(registry_double.output.rtcp_mux, rows[i].mux);
		cr_expect_str_eq(registry_double.source, "192.0.2.7");
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(relay_status(ask_at(OUTS, "POST", JSON, wrong[i])), 400, "%s",
			     wrong[i]);
	cr_expect_eq(registry_double.outputs, 3);
	registry_double.next = (struct registry_reply){ .status = REGISTRY_FORBIDDEN };
	cr_expect_eq(relay_status(ask_at(OUTS, "POST", JSON, rows[0].body)), 403);
	registry_double.next =
	    (struct registry_reply){ .status = REGISTRY_NO_PUBLISHER, .retry_after_s = 2 };
	answer = ask_at(OUTS, "POST", JSON, rows[0].body);
	cr_expect_eq(relay_status(answer), 409);
	cr_expect_str_eq(relay_field(answer, "Retry-After"), "2");
}

Test(plain_api, targets_are_shown_and_ended)
{
	cr_expect(strstr(ask_at(OUTS, "GET", JSON, ""), "[\"cam\"]"));
	cr_expect_eq(relay_status(ask_at(OUT, "GET", JSON, "")), 404);
	cr_expect_eq(relay_status(ask_at(OUT, "DELETE", JSON, "")), 404);
	registry_double.has_sessions = true;
	cr_expect(strstr(ask_at(OUT, "GET", JSON, ""), "{\"number\":12}"));
	cr_expect_eq(relay_status(ask_at(OUT, "DELETE", JSON, "")), 200);
	cr_expect_eq(registry_double.number, 12);
	cr_expect_eq(relay_status(ask_at(OUTS, "DELETE", JSON, "")), 405);
	cr_expect_eq(relay_status(ask_at(OUT, "POST", JSON, "{}")), 405);
	cr_expect_eq(relay_status(ask_at(OUTS, "POST", "application/sdp", "v=0")), 415);
}

Test(plain_api, it_is_the_administrators)
{
	static const char request[] = "POST " PATH " HTTP/1.1\r\nHost: relay.example\r\n"
				      "Content-Type: application/sdp\r\nContent-Length: 0\r\n\r\n";

	cr_expect_eq(relay_status(relay_ask(request)), 403, "a browser led here by another name");
	relay_stop();
	relay_start("tokens:\n  admin: [secret]\n");
	cr_expect_eq(relay_status(relay_ask(request)), 401);
	cr_expect_eq(registry_double.inputs, 0);
}
