#include <criterion/criterion.h>

#include "loadgen/options.h"

enum { MAX_ARGS = 13 };

static struct options o;
static char error[OPTIONS_ERROR_BYTES];

static enum options_verdict parse(const char *const *args)
{
	char *argv[MAX_ARGS + 2] = { "sluice-load" };
	int argc = 1;

	while (args[argc - 1]) {
		argv[argc] = (char *)(uintptr_t)args[argc - 1];
		argc++;
	}
	return options_parse(&o, argc, argv, error);
}

TestSuite(options, .timeout = 10);

Test(options, of_a_bench_have_defaults)
{
	cr_assert_eq(parse((const char *[]){ "bench", "--url", "http://[::1]:80/", NULL }),
		     OPTIONS_RUN, "%s", error);
	cr_expect_eq(o.mode, OPTIONS_BENCH);
	cr_expect_str_eq(o.whip, "http://[::1]:80/whip/{stream}");
	cr_expect_str_eq(o.whep, "http://[::1]:80/whep/{stream}");
	cr_expect_eq(o.streams, 1);
	cr_expect_eq(o.subscribers, 100);
	cr_expect_eq(o.join_timeout_s, 60);
	cr_expect_eq(o.duration_s, 10);
	cr_expect_eq(o.verify, 50);
	cr_expect_eq(o.keyframe_interval_s, 4);
	cr_expect_eq(o.temporal_layers, 1);
	cr_expect(!o.transport_cc);
	cr_expect(o.gro && !o.json && !o.tcp && !o.token && !o.pid);
	cr_expect_eq(o.max_loss_percent, 0);
}

Test(options, are_all_understood)
{
	cr_assert_eq(parse((const char *[]){ "bench", "--whip", "https://a/{stream}/whip", "--whep",
					     "http://b/x?s={stream}", "--streams", "3", "-n", "7",
					     "--token", "t", NULL }),
		     OPTIONS_RUN, "%s", error);
	cr_expect_str_eq(o.whip, "https://a/{stream}/whip");
	cr_expect_str_eq(o.whep, "http://b/x?s={stream}");
	cr_expect_eq(o.streams, 3);
	cr_expect_eq(o.subscribers, 7);
	cr_expect_str_eq(o.token, "t");
	cr_assert_eq(parse((const char *[]){ "bench", "--url", "http://a", "--no-gro", "--json",
					     "--tcp", "--pacing", "frame", "--max-loss", "0.5",
					     "--pid", "12", NULL }),
		     OPTIONS_RUN, "%s", error);
	cr_expect(o.json && o.tcp && !o.gro);
	cr_expect_eq(o.pacing, PUBLISHER_PACING_FRAME);
	cr_expect_float_eq(o.max_loss_percent, 0.5, 1e-9);
	cr_expect_eq(o.pid, 12);
	cr_assert_eq(parse((const char *[]){ "bench", "--url", "http://a", "--rate", "9",
					     "--join-timeout", "8", "--duration", "7", "--verify",
					     "0", "--keyframe-interval", "10", NULL }),
		     OPTIONS_RUN, "%s", error);
	cr_expect_eq(o.rate_per_s, 9);
	cr_expect_eq(o.join_timeout_s, 8);
	cr_expect_eq(o.duration_s, 7);
	cr_expect_eq(o.verify, 0);
	cr_expect_eq(o.keyframe_interval_s, 10);
	cr_assert_eq(parse((const char *[]){ "bench", "--url", "http://a", "--temporal-layers", "3",
					     "--transport-cc", NULL }),
		     OPTIONS_RUN, "%s", error);
	cr_expect_eq(o.temporal_layers, 3);
	cr_expect(o.transport_cc);
}

Test(options, of_publish_and_subscribe_run_until_interrupted)
{
	cr_assert_eq(parse((const char *[]){ "publish", "http://a/whip/x", NULL }), OPTIONS_RUN);
	cr_expect_eq(o.mode, OPTIONS_PUBLISH);
	cr_expect_str_eq(o.whip, "http://a/whip/x");
	cr_expect_str_eq(o.whep, "");
	cr_expect_eq(o.subscribers, 0);
	cr_expect_eq(o.duration_s, 0);
	cr_assert_eq(parse((const char *[]){ "subscribe", "http://a/whep/x", "-n", "5", NULL }),
		     OPTIONS_RUN);
	cr_expect_eq(o.mode, OPTIONS_SUBSCRIBE);
	cr_expect_str_eq(o.whep, "http://a/whep/x");
	cr_expect_str_eq(o.whip, "");
	cr_expect_eq(o.subscribers, 5);
}

Test(options, ask_for_help_anywhere)
{
	cr_expect_eq(parse((const char *[]){ "--help", NULL }), OPTIONS_HELP);
	cr_expect_eq(parse((const char *[]){ "bench", "--bogus", "--help", NULL }), OPTIONS_HELP);
	cr_expect_eq(parse((const char *[]){ "--version", NULL }), OPTIONS_VERSION);
	cr_expect_not_null(strstr(options_help(), "--max-loss"));
}

Test(options, that_are_wrong_are_named_in_one_line)
{
	static const struct {
		const char *args[MAX_ARGS];
		const char *named;
	} rows[] = {
		{ { NULL }, "bench" },
		{ { "dance" }, "dance" },
		{ { "bench" }, "--url" },
		{ { "bench", "--url", "ftp://a" }, "ftp://a" },
		{ { "bench", "--whip", "http://a" }, "--whep" },
		{ { "bench", "--url", "http://a", "--whip", "http://a" }, "--whip" },
		{ { "bench", "--whip", "http://a", "--whep", "http://a", "--streams", "2" },
		  "{stream}" },
		{ { "bench", "--url", "http://a", "--rate" }, "--rate" },
		{ { "bench", "--url", "http://a", "--rate", "0" }, "--rate" },
		{ { "bench", "--url", "http://a", "--rate", "-1" }, "--rate" },
		{ { "bench", "--url", "http://a", "--rate", "5x" }, "5x" },
		{ { "bench", "--url", "http://a", "-n", "99999999999999999999" }, "-n" },
		{ { "bench", "--url", "http://a", "--streams", "0" }, "--streams" },
		{ { "bench", "--url", "http://a", "--keyframe-interval", "0" },
		  "--keyframe-interval" },
		{ { "bench", "--url", "http://a", "--keyframe-interval", "61" },
		  "--keyframe-interval" },
		{ { "bench", "--url", "http://a", "--duration", "0" }, "--duration" },
		{ { "bench", "--url", "http://a", "--temporal-layers", "0" }, "--temporal-layers" },
		{ { "bench", "--url", "http://a", "--temporal-layers", "4" }, "--temporal-layers" },
		{ { "bench", "--url", "http://a", "--max-loss", "101" }, "--max-loss" },
		{ { "bench", "--url", "http://a", "--max-loss", "nan" }, "--max-loss" },
		{ { "bench", "--url", "http://a", "--pacing", "fast" }, "fast" },
		{ { "bench", "--url", "http://a", "--bogus", "1" }, "--bogus" },
		{ { "bench", "--url", "http://a", "stray" }, "stray" },
		{ { "publish" }, "publish" },
		{ { "publish", "http://a", "http://b" }, "http://b" },
		{ { "publish", "http://a", "--streams", "2" }, "--streams" },
		{ { "subscribe", "--url", "http://a" }, "subscribe" },
		{ { "subscribe", "a" }, "a is not" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(parse(rows[i].args), OPTIONS_WRONG, "row %u", i);
		cr_expect_not_null(strstr(error, rows[i].named), "row %u: %s", i, error);
		cr_expect_null(strchr(error, '\n'), "row %u", i);
	}
}

Test(options, a_url_too_long_is_refused)
{
	char url[OPTIONS_URL_BYTES + 1] = "http://";

	memset(url + 7, 'a', sizeof(url) - 8);
	url[sizeof(url) - 1] = '\0';
	cr_expect_eq(parse((const char *[]){ "publish", url, NULL }), OPTIONS_WRONG);
	url[OPTIONS_URL_BYTES - 33] = '\0';
	cr_expect_eq(parse((const char *[]){ "publish", url, NULL }), OPTIONS_RUN, "%s", error);
}

Test(options, name_each_stream_in_its_place)
{
	char url[OPTIONS_URL_BYTES];

	cr_expect(options_url("http://a/{stream}/x", 0, url));
	cr_expect_str_eq(url, "http://a/load-1/x");
	cr_expect(options_url("http://a/{stream}", 41, url));
	cr_expect_str_eq(url, "http://a/load-42");
	cr_expect(options_url("http://a/s", 7, url));
	cr_expect_str_eq(url, "http://a/s");
}
