#include <criterion/criterion.h>

#include "server/auth.h"
#include "server/http_text.h"
#include "tests/fault.h"

TestSuite(auth, .timeout = 10);

static struct auth *auth_of(const char *yaml)
{
	char error[CONFIG_ERROR_BYTES];
	struct config *c;
	struct auth *a;

	cr_assert_eq(config_parse(&c, yaml, strlen(yaml), "test", error), 0, "%s", error);
	cr_assert_eq(auth_create(&a, c), 0);
	config_destroy(c); /* only digests are kept */
	return a;
}

Test(auth, a_role_without_tokens_is_open_to_this_host_only)
{
	struct auth *a = auth_of("");

	cr_expect_eq(auth_check(a, AUTH_PUBLISH, true, NULL), AUTH_OK);
	cr_expect_eq(auth_check(a, AUTH_WATCH, true, NULL), AUTH_OK);
	cr_expect_eq(auth_check(a, AUTH_ADMIN, true, NULL), AUTH_OK);
	cr_expect_eq(auth_check(a, AUTH_PUBLISH, false, NULL), AUTH_FORBIDDEN);
	cr_expect_eq(auth_check(a, AUTH_WATCH, false, "Bearer x"), AUTH_FORBIDDEN);
	cr_expect_eq(auth_check(a, AUTH_ADMIN, false, "Bearer x"), AUTH_FORBIDDEN);
	auth_destroy(a);
}

Test(auth, a_role_with_tokens_asks_this_host_too)
{
	struct auth *a = auth_of("tokens: {publish: [one, two]}");

	cr_expect_eq(auth_check(a, AUTH_PUBLISH, true, NULL), AUTH_MISSING);
	cr_expect_eq(auth_check(a, AUTH_PUBLISH, true, "Bearer one"), AUTH_OK);
	cr_expect_eq(auth_check(a, AUTH_PUBLISH, false, "Bearer two"), AUTH_OK);
	cr_expect_eq(auth_check(a, AUTH_PUBLISH, false, "Bearer three"), AUTH_INVALID);
	cr_expect_eq(auth_check(a, AUTH_WATCH, true, NULL), AUTH_OK, "no token for watching");
	auth_destroy(a);
}

Test(auth, open_waives_only_tokens_that_are_not_set)
{
	struct auth *a = auth_of("http: {open: true}\ntokens: {publish: [one]}");

	cr_expect_eq(auth_check(a, AUTH_PUBLISH, false, NULL), AUTH_MISSING);
	cr_expect_eq(auth_check(a, AUTH_WATCH, false, NULL), AUTH_OK);
	cr_expect_eq(auth_check(a, AUTH_ADMIN, false, NULL), AUTH_FORBIDDEN);
	auth_destroy(a);
}

Test(auth, privileges_need_peer_name_and_no_proxy)
{
	static const struct {
		uint8_t ip[16];
		const char *host;
		bool is_forwarded;
		bool want;
	} rows[] = {
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 }, "localhost", false, true },
		{ { [10] = 0xff, [11] = 0xff, 127, 9, 9, 9 }, "LOCALHOST:8080", false, true },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 }, "127.0.0.1:8080", false, true },
		{ { [15] = 1 }, "[::1]:8080", false, true },
		{ { [15] = 1 }, "[::1]", false, true },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 }, "localhost", true, false },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 }, NULL, false, false },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 }, "", false, false },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 },
		  "localhost.evil.example",
		  false,
		  false },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 },
		  "127.0.0.1.evil.example",
		  false,
		  false },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 }, "128.0.0.1", false, false },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 }, "localhost:80:80", false, false },
		{ { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 }, "localhost:x", false, false },
		{ { [15] = 1 }, "[::1].evil.example", false, false },
		{ { [15] = 1 }, "[::2]", false, false },
		{ { [10] = 0xff, [11] = 0xff, 192, 0, 2, 1 }, "localhost", false, false },
		{ { [12] = 127, [15] = 1 }, "localhost", false, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(auth_is_privileged(rows[i].ip, rows[i].host, rows[i].is_forwarded),
			     rows[i].want, "row %zu", i);
}

Test(auth, running_out_of_memory_is_reported)
{
	char error[CONFIG_ERROR_BYTES];
	struct config *c;
	struct auth *a;

	cr_assert_eq(config_parse(&c, "", 0, "test", error), 0);
	fault_after(0);
	cr_expect_neq(auth_create(&a, c), 0);
	fault_after(-1);
	cr_expect_null(a);
	config_destroy(c);
}
