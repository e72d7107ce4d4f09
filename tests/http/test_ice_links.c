#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "server/ice_links.h"
#include "tests/http/kit_registry.h"
#include "tests/http/kit_relay.h"

TestSuite(ice_links, .timeout = 30);

#define HOST "Host: localhost\r\n"

/* Worked out by Python's hmac, hashlib and base64, the way a TURN server's manual says it. */
static const struct {
	const char *secret, *user;
	uint64_t expires_s;
	const char *username, *credential;
} vectors[] = {
	{ "north", "stream-1", 1700086400, "1700086400:stream-1", "pJzTu6H2gKOUBqhyW4gr1qbeY0k=" },
	{ "a secret longer than one block of the hash, which is sixty-four bytes", "u", 4102444800,
	  "4102444800:u", "G7hQc25TjGAszQIqZIqRCixgR7o=" },
	{ "k", "", 1, "1:", "HZPgCVvF8Q50P37PT0VXODTDtmw=" },
};

Test(ice_links, expiring_credentials_are_what_a_turn_server_works_out)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct turn_credentials made;

		turn_credentials_make(&made, vectors[i].secret, vectors[i].user,
				      vectors[i].expires_s);
		cr_expect_str_eq(made.username, vectors[i].username);
		cr_expect_str_eq(made.credential, vectors[i].credential);
	}
}

static const char servers[] = "ice:\n"
			      "  credentials_ttl_s: 86400\n"
			      "  servers:\n"
			      "    - url: stun:s.example\n"
			      "    - {url: 'turn:t.example', username: u, credential: p}\n"
			      "    - {url: 'turn:r.example?transport=tcp', secret: north}\n"
			      "    - {url: 'turns:r.example', secret: k, username: named}\n";

/* The Link fields for a stream of this name at second 1,700,000,000, one a line. */
static const char *links_at_noon(const char *stream, bool is_admitted)
{
	static char text[2048];
	char error[CONFIG_ERROR_BYTES];
	struct http_reply reply = { 0 };
	struct config *c;
	size_t used = 0;

	cr_assert_eq(config_parse(&c, servers, strlen(servers), "test", error), 0, "%s", error);
	ice_links_write(c, stream, is_admitted, 1700000000, &reply);
	text[0] = '\0';
	for (size_t at = 0; at < reply.fields.len;) {
		const char *name = reply.fields.bytes + at;
		const char *value = name + strlen(name) + 1;

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s: %s\n", name, value);
		at = (size_t)(value - reply.fields.bytes) + strlen(value) + 1;
	}
	http_reply_fini(&reply);
	config_destroy(c);
	return text;
}

Test(ice_links, each_server_is_a_field_with_parameters_in_order)
{
	cr_expect_str_eq(
	    links_at_noon("stream-1", true),
	    "Link: <stun:s.example>; rel=\"ice-server\"\n"
	    "Link: <turn:t.example>; rel=\"ice-server\"; username=\"u\"; credential=\"p\"; "
	    "credential-type=\"password\"\n"
	    "Link: <turn:r.example?transport=tcp>; rel=\"ice-server\"; "
	    "username=\"1700086400:stream-1\"; credential=\"pJzTu6H2gKOUBqhyW4gr1qbeY0k=\"; "
	    "credential-type=\"password\"\n"
	    "Link: <turns:r.example>; rel=\"ice-server\"; username=\"1700086400:named\"; "
	    "credential=\"8t+rwhqEwdI85h8j8nfMbCTrsJs=\"; credential-type=\"password\"\n");
	cr_expect_str_eq(links_at_noon("stream-1", false),
			 "Link: <stun:s.example>; rel=\"ice-server\"\n");
}

/* The expiry in a Link field of an answer; 0 when there is none. */
static uint64_t expiry_in(const char *answer)
{
	const char *at = strstr(answer, "<turns:r.example>; rel=\"ice-server\"; username=\"");

	return at ? strtoull(strchr(at, '=') + strlen("\"ice-server\"; username=\"") + 1, NULL, 10)
		  : 0;
}

static const char *ask(const char *line, const char *fields)
{
	char request[512];

	snprintf(request, sizeof(request), "%s HTTP/1.1\r\n" HOST "%s\r\n%s", line, fields,
		 strncmp(line, "POST", 4) == 0 ? "v" : "");
	return relay_ask(request);
}

#define SDP "Content-Type: application/sdp\r\nContent-Length: 1\r\n"

static const struct {
	const char *line, *fields;
	bool has_stun, has_turn;
} doors[] = {
	{ "POST /whip/cam", "Authorization: Bearer P\r\n" SDP, true, true },
	{ "POST /whep/cam", "Authorization: Bearer W\r\n" SDP, true, true },
	{ "POST /whip/cam", SDP, false, false },
	{ "OPTIONS /whip/cam", "Authorization: Bearer P\r\n", true, true },
	{ "OPTIONS /whep/cam", "Authorization: Bearer W\r\n", true, true },
	{ "OPTIONS /whip/cam", "Authorization: Bearer W\r\n", true, false },
	{ "OPTIONS /whep/cam", "Authorization: Bearer X\r\n", true, false },
	{ "OPTIONS /whip/cam", "", true, false },
	{ "OPTIONS /whip/cam", "Authorization: Bearer P\r\nAccess-Control-Request-Method: POST\r\n",
	  false, false },
	{ "HEAD /whep/cam", "Authorization: Bearer W\r\n", false, false },
};

Test(ice_links, credentials_are_told_to_those_alone_who_were_admitted)
{
	char yaml[1024];

	snprintf(yaml, sizeof(yaml), "tokens: {publish: [P], watch: [W]}\n%s", servers);
	relay_start(yaml);
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		const char *answer;
		uint64_t before_s = (uint64_t)time(NULL), expires_s;

		registry_double = (struct registry_double){ .is_ready = true };
		registry_double.next = (struct registry_reply){ .body = "v=0\r\n" };
		answer = ask(doors[i].line, doors[i].fields);
		expires_s = expiry_in(answer);
		cr_expect_eq(strstr(answer, "stun:s.example") != NULL, doors[i].has_stun, "%s %s",
			     doors[i].line, doors[i].fields);
		cr_expect_eq(strstr(answer, "turn:t.example") != NULL, doors[i].has_turn, "%s %s",
			     doors[i].line, doors[i].fields);
		cr_expect_null(strstr(answer, "north"), "the secret itself is never told");
		if (doors[i].has_turn) {
			cr_expect_geq(expires_s, before_s + 86400);
			cr_expect_leq(expires_s, (uint64_t)time(NULL) + 86400);
			cr_expect(
			    strstr(relay_field(answer, "Access-Control-Expose-Headers"), "Link"));
		} else {
			cr_expect_eq(expires_s, 0);
		}
	}
	relay_stop();
}
