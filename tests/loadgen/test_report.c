#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>

#include "loadgen/report.h"

static struct report good(void)
{
	return (struct report){
		.asked = 10,
		.joined = 10,
		.join_ms = { 1, 2, 3, 4 },
		.expected = 1000,
		.received = 1000,
		.repaired = 5,
		.duplicated = 6,
		.verified = 100,
		.wants_verified = true,
		.frame_us = { 11, 12, 13, 14 },
		.audio_us = { 21, 22, 23, 24 },
		.late_us = 26,
		.late_share_mean = 0.01,
		.late_share_max = 0.015,
		.keyframes_first_ms_p99 = 31,
		.packets_per_s = 5000.5,
		.mbit_per_s = 40.25,
		.has_server = true,
		.server_cpu_us_per_packet = 0.75,
		.server_rss_bytes = 30000000,
		.server_rss_bytes_per_subscriber = 10240.5,
		.client_cpu_us_per_packet = 0.5,
		.client_socket_drops = 7,
	};
}

TestSuite(report, .timeout = 10);

static json_t *json_of(const struct report *r)
{
	char *text = report_json(r);
	json_t *root;

	cr_assert_not_null(text);
	cr_expect_null(strchr(text, '\n'), "one line");
	root = json_loads(text, 0, NULL);
	cr_assert_not_null(root, "%s", text);
	free(text);
	return root;
}

static double value(json_t *root, const char *a, const char *b, const char *c)
{
	json_t *at = json_object_get(root, a);

	at = b ? json_object_get(at, b) : at;
	at = c ? json_object_get(at, c) : at;
	cr_assert(json_is_number(at), "%s.%s.%s", a, b ? b : "", c ? c : "");
	return json_number_value(at);
}

Test(report, has_every_key_of_its_contract_and_no_other)
{
	static const struct {
		const char *a, *b, *c;
		double want;
	} rows[] = {
		{ "subscribers", "asked", NULL, 10 },
		{ "subscribers", "joined", NULL, 10 },
		{ "subscribers", "failed", NULL, 0 },
		{ "join_ms", "p50", NULL, 1 },
		{ "join_ms", "p99", NULL, 2 },
		{ "join_ms", "max", NULL, 4 },
		{ "packets", "expected", NULL, 1000 },
		{ "packets", "received", NULL, 1000 },
		{ "packets", "lost", NULL, 0 },
		{ "packets", "repaired", NULL, 5 },
		{ "packets", "duplicated", NULL, 6 },
		{ "bad_auth", NULL, NULL, 0 },
		{ "verified", NULL, NULL, 100 },
		{ "latency_us", "frame", "p50", 11 },
		{ "latency_us", "frame", "p99", 12 },
		{ "latency_us", "frame", "p999", 13 },
		{ "latency_us", "frame", "max", 14 },
		{ "latency_us", "audio", "p50", 21 },
		{ "latency_us", "audio", "p99", 22 },
		{ "latency_us", "audio", "p999", 23 },
		{ "latency_us", "audio", "max", 24 },
		{ "late", "over_us", NULL, 26 },
		{ "late", "share_mean", NULL, 0.01 },
		{ "late", "share_max", NULL, 0.015 },
		{ "decode", "keyframes_first_ms_p99", NULL, 31 },
		{ "throughput", "packets_per_s", NULL, 5000.5 },
		{ "throughput", "mbit_per_s", NULL, 40.25 },
		{ "server", "cpu_us_per_packet", NULL, 0.75 },
		{ "server", "rss_bytes", NULL, 30000000 },
		{ "server", "rss_bytes_per_subscriber", NULL, 10240.5 },
		{ "client", "cpu_us_per_packet", NULL, 0.5 },
		{ "client", "socket_drops", NULL, 7 },
	};
	struct report r = good();
	json_t *root = json_of(&r);

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_float_eq(value(root, rows[i].a, rows[i].b, rows[i].c), rows[i].want, 1e-6,
				   "%s.%s", rows[i].a, rows[i].b ? rows[i].b : "");
	cr_expect(json_is_true(json_object_get(root, "ok")));
	cr_expect_eq(json_object_size(root), 12);
	json_decref(root);
}

Test(report, has_no_server_when_its_process_is_not_known)
{
	struct report r = good();
	json_t *root;

	r.has_server = false;
	root = json_of(&r);
	cr_expect(json_is_null(json_object_get(root, "server")));
	json_decref(root);
}

Test(report, is_ok_only_when_everything_held)
{
	struct report r = good();

	cr_expect(report_is_ok(&r));
	r.joined = 9;
	cr_expect_not(report_is_ok(&r), "one did not join");
	r = good();
	r.incomplete = 1;
	cr_expect_not(report_is_ok(&r), "a track ended early");
	r = good();
	r.bad_auth = 1;
	cr_expect_not(report_is_ok(&r), "forged");
	r = good();
	r.verified = 0;
	cr_expect_not(report_is_ok(&r), "nothing was verified");
	r.wants_verified = false;
	cr_expect(report_is_ok(&r), "and nothing was to be");
	r = good();
	r.is_interrupted = true;
	cr_expect_not(report_is_ok(&r), "interrupted");
}

Test(report, allows_the_loss_it_was_told_to)
{
	static const struct {
		uint64_t lost;
		double limit;
		bool ok;
	} rows[] = {
		{ 0, 0, true },   { 1, 0, false },  { 10, 1, true },
		{ 11, 1, false }, { 1, 0.1, true }, { 2, 0.1, false },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct report r = good();

		r.lost = rows[i].lost;
		r.received = r.expected - r.lost;
		r.max_loss_percent = rows[i].limit;
		cr_expect_eq(report_is_ok(&r), rows[i].ok, "row %u", i);
	}
}

Test(report, table_says_what_happened)
{
	struct report r = good();
	char *text = report_table(&r);

	cr_expect_not_null(strstr(text, "10 of 10 joined"));
	cr_expect_not_null(strstr(text, "0 lost"));
	cr_expect_not_null(strstr(text, "result           ok"));
	free(text);
	r.joined = 3;
	text = report_table(&r);
	cr_expect_not_null(strstr(text, "NOT OK"));
	free(text);
}
