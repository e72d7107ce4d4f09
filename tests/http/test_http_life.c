#include <criterion/criterion.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "server/http.h"
#include "tests/fault.h"
#include "tests/http/kit_cert.h"
#include "tests/http/kit_registry.h"
#include "tests/http/kit_relay.h"

#define ALIVE "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define PUBLISH                                                                                    \
	"POST /whip/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sdp\r\n"            \
	"Content-Length: 1\r\n"

TestSuite(http_life, .timeout = 60);

Test(http_life, a_request_that_never_ends_is_cut_and_others_are_served_meanwhile)
{
	static char answer[RELAY_ANSWER_BYTES];
	static const char half[] = "GET /healthz HTTP/1.1\r\nHost: loc";
	const char *metrics;
	int fd;

	relay_start("");
	fd = relay_connect(relay_port());
	relay_send(fd, half, strlen(half));
	cr_expect_eq(relay_status(relay_ask(ALIVE)), 200);
	cr_expect_eq(relay_status(relay_read(fd, answer, 0)), 0, "%s", answer);
	close(fd);
	metrics = relay_ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
	cr_expect(strstr(metrics, "sluice_http_closed_total{cause=\"slow_request\"} 1\n"));
	relay_stop();
}

Test(http_life, idle_connections_make_room_for_new_ones)
{
	enum { ROUNDS = 60 };
	static char answer[RELAY_ANSWER_BYTES];
	int fds[ROUNDS];

	relay_start("limits: {connections: 32}\n");
	for (int i = 0; i < ROUNDS; i++) {
		fds[i] = relay_connect(relay_port());
		relay_send(fds[i], ALIVE, strlen(ALIVE));
		cr_expect_eq(relay_status(relay_read(fds[i], answer, 0)), 200, "connection %d", i);
	}
	cr_expect_eq(relay_status(relay_read(fds[0], answer, 0)), 0, "the oldest was closed");
	for (int i = 0; i < ROUNDS; i++)
		close(fds[i]);
	relay_stop();
}

/* The library stops listening at the limit; nothing but the end of a connection can wake it. */
Test(http_life, connections_are_taken_again_after_all_of_a_full_house_ended)
{
	relay_start("limits: {connections: 1}\n");
	for (int i = 0; i < 3; i++)
		cr_expect_eq(relay_status(relay_ask(ALIVE)), 200, "connection %d", i);
	relay_stop();
}

Test(http_life, a_reload_changes_tokens_and_limits_while_connections_stay)
{
	static char answer[RELAY_ANSWER_BYTES];
	int fd;

	registry_double.next = (struct registry_reply){ .status = REGISTRY_OK, .body = "v=0\r\n" };
	relay_start("");
	fd = relay_connect(relay_port());
	relay_send(fd, PUBLISH "\r\nv", strlen(PUBLISH "\r\nv"));
	cr_expect_eq(relay_status(relay_read(fd, answer, 0)), 201);
	relay_reload("tokens: {publish: [new]}\n");
	relay_send(fd, PUBLISH "\r\nv", strlen(PUBLISH "\r\nv"));
	cr_expect_eq(relay_status(relay_read(fd, answer, 0)), 401);
	cr_expect_eq(relay_status(relay_ask(PUBLISH "Authorization: Bearer new\r\n\r\nv")), 201);
	close(fd);
	relay_stop();
}

Test(http_life, tls_is_1_2_or_1_3)
{
	struct cert_files files;
	char yaml[256];

	cert_files_init(&files);
	snprintf(yaml, sizeof(yaml), "http: {listen: '127.0.0.1:0', cert: %s, key: %s}\n",
		 files.cert, files.key);
	relay_start(yaml);
	cr_expect_eq(relay_status(relay_ask_tls(ALIVE, TLS1_3_VERSION)), 200);
	cr_expect_eq(relay_status(relay_ask_tls(ALIVE, TLS1_2_VERSION)), 200);
	cr_expect_eq(relay_status(relay_ask_tls(ALIVE, TLS1_1_VERSION)), 0);
	cr_expect_neq(relay_status(relay_ask(ALIVE)), 200, "plain HTTP to a TLS port");
	cr_expect_eq(relay_status(relay_ask_tls(ALIVE, TLS1_3_VERSION)), 200);
	relay_stop();
	cert_files_fini(&files);
}

/* http_create() with this configuration; its error line in `why`. */
static int create(const char *yaml, char why[HTTP_ERROR_BYTES])
{
	char error[CONFIG_ERROR_BYTES];
	struct config *c;
	struct loop *loop;
	struct http *h;
	int err;

	cr_assert_eq(config_parse(&c, yaml, strlen(yaml), "test", error), 0, "%s", error);
	cr_assert_eq(loop_create(&loop), 0);
	err = http_create(&h, loop, c, NULL, why);
	cr_expect((err == 0) == (h != NULL));
	http_destroy(h);
	loop_destroy(loop);
	config_destroy(c);
	return err;
}

Test(http_life, what_keeps_it_from_starting_is_said)
{
	struct cert_files files;
	char why[HTTP_ERROR_BYTES];
	char yaml[256];

	cert_files_init(&files);
	relay_start("");
	snprintf(yaml, sizeof(yaml), "http: {listen: '127.0.0.1:%u'}", relay_port());
	cr_expect_eq(create(yaml, why), -EADDRINUSE);
	cr_expect(strstr(why, "http.listen: cannot listen on 127.0.0.1:"), "%s", why);
	snprintf(yaml, sizeof(yaml), "http: {listen: '127.0.0.1:0', admin: '127.0.0.1:%u'}",
		 relay_port());
	cr_expect_eq(create(yaml, why), -EADDRINUSE);
	cr_expect(strstr(why, "http.admin: cannot listen"), "%s", why);
	snprintf(yaml, sizeof(yaml), "http: {listen: '127.0.0.1:0', cert: /nowhere, key: %s}",
		 files.key);
	cr_expect_eq(create(yaml, why), -ENOENT);
	cr_expect(strstr(why, "http.cert: cannot read /nowhere"), "%s", why);
	snprintf(yaml, sizeof(yaml), "http: {listen: '127.0.0.1:0', cert: %s, key: %s}", files.cert,
		 files.cert);
	cr_expect_eq(create(yaml, why), -EINVAL);
	cr_expect(strstr(why, "not a certificate with its key"), "%s", why);
	snprintf(yaml, sizeof(yaml), "http: {listen: '192.0.2.77:0', open: true}");
	cr_expect_eq(create(yaml, why), -EADDRNOTAVAIL);
	relay_stop();
	cert_files_fini(&files);
}

Test(http_life, running_out_of_memory_while_starting_is_reported_and_leaks_nothing)
{
	char why[HTTP_ERROR_BYTES];
	char error[CONFIG_ERROR_BYTES];
	static const char yaml[] = "http: {listen: '127.0.0.1:0', admin: '127.0.0.1:0'}";
	struct config *c;
	struct loop *loop;
	int err = -ENOMEM;

	cr_assert_eq(config_parse(&c, yaml, strlen(yaml), "test", error), 0, "%s", error);
	cr_assert_eq(loop_create(&loop), 0);
	for (int nth = 0; err == -ENOMEM; nth++) {
		struct http *h;

		cr_assert_lt(nth, 100);
		fault_after(nth);
		err = http_create(&h, loop, c, NULL, why);
		fault_after(-1);
		cr_expect(err == 0 || (err == -ENOMEM && !h), "allocation %d: %d %s", nth, err,
			  why);
		http_destroy(h);
	}
	cr_expect_eq(err, 0);
	loop_destroy(loop);
	config_destroy(c);
}
