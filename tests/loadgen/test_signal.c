#include <criterion/criterion.h>
#include <errno.h>

#include "loadgen/signal.h"

TestSuite(signal, .timeout = 10);

Test(signal, location_is_made_absolute_by_the_url_it_answers)
{
	static const struct {
		const char *base, *location, *want; /* NULL: refused */
	} rows[] = {
		{ "http://h:80/whip/a", "/session/1", "http://h:80/session/1" },
		{ "http://h:8080/whip/a", "/session/1?x=y", "http://h:8080/session/1?x=y" },
		{ "http://h/whip/a", "b", "http://h/whip/b" },
		{ "http://h/whip/a/", "b", "http://h/whip/a/b" },
		{ "http://h/whip/a", "../s/b", "http://h/s/b" },
		{ "http://h/whip/a", "https://other/s", "https://other/s" },
		{ "https://h/whip/a", "//other/s", "https://other/s" },
		{ "http://[::1]:8080/whip/a", "/s", "http://[::1]:8080/s" },
		{ "http://h/whip/a", "?id=1", "http://h/whip/a?id=1" },
		{ "http://h/whip/a", "ftp://h/s", NULL },
		{ "http://h/whip/a", "file:///etc/passwd", NULL },
	};
	char out[SIGNAL_URL_BYTES];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool ok = signal_resolve(rows[i].base, rows[i].location, out);

		cr_expect_eq(ok, rows[i].want != NULL, "%s", rows[i].location);
		if (ok && rows[i].want)
			cr_expect_str_eq(out, rows[i].want);
	}
}

Test(signal, a_location_too_long_is_refused)
{
	static char location[SIGNAL_URL_BYTES + 100];
	char out[SIGNAL_URL_BYTES];

	memset(location, 'a', sizeof(location) - 1);
	location[0] = '/';
	cr_expect_not(signal_resolve("http://h/", location, out));
}

Test(signal, a_url_is_split_into_host_and_port)
{
	static const struct {
		const char *url, *host, *port; /* NULL: refused */
	} rows[] = {
		{ "http://127.0.0.1:8080/x", "127.0.0.1", "8080" },
		{ "http://h", "h", "80" },
		{ "https://h/", "h", "443" },
		{ "HTTP://h/", "h", "80" },
		{ "http://[::1]:81/", "::1", "81" },
		{ "ftp://h/", NULL, NULL },
		{ "h:80", NULL, NULL },
		{ "", NULL, NULL },
	};
	char host[64], port[8];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int err = signal_split(rows[i].url, host, sizeof(host), port);

		cr_expect_eq(err, rows[i].host ? 0 : -EINVAL, "%s", rows[i].url);
		if (err || !rows[i].host)
			continue;
		cr_expect_str_eq(host, rows[i].host);
		cr_expect_str_eq(port, rows[i].port);
	}
}
