#include <criterion/criterion.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/schema.h"
#include "tests/fault.h"

TestSuite(config, .timeout = 10);

static struct config *c;
static enum config_action action;
static char error[CONFIG_ERROR_BYTES];

static int parse(const char *yaml)
{
	return config_parse(&c, yaml, strlen(yaml), "relay.yaml", error);
}

/* argv[0] and up to seven flags, ends with NULL. */
static int args(const char *const argv[8])
{
	int argc = 0;

	while (argc < 8 && argv[argc])
		argc++;
	return config_from_args(&c, &action, argc, (char *const *)argv, error);
}

static void file_write(char path[32], const char *yaml, mode_t mode)
{
	int fd;

	memcpy(path, "/tmp/test_config.XXXXXX", 24);
	fd = mkstemp(path);
	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

Test(config, defaults_are_those_of_the_schema)
{
	cr_assert_eq(parse(""), 0, "%s", error);
	cr_expect_str_eq(c->http.listen.text, "127.0.0.1:8080");
	cr_expect_eq(c->http.listen.port, 8080);
	cr_expect(config_address_is_loopback(&c->http.listen));
	cr_assert_eq(c->udp.listen.count, 1);
	cr_expect(c->udp.listen.items[0].is_both);
	cr_expect_eq(c->udp.listen.items[0].port, 8189);
	cr_expect(c->tcp.enabled);
	cr_expect_eq(c->tcp.listen.count, 0, "as UDP");
	cr_expect_eq(c->media.hold_min_viewers, 200);
	cr_expect_eq(c->media.hold_us, 15000);
	cr_expect_eq(c->media.slice_us, 1000);
	cr_expect_eq(c->media.pad_bytes, 16);
	cr_expect_eq(c->limits.posts_per_s, 50);
	cr_expect_eq(c->limits.posts_burst, 1000);
	cr_expect_eq(c->limits.node_posts_per_s, 2000);
	cr_expect_eq(c->limits.node_posts_burst, 4000);
	cr_expect_eq(c->limits.unclaimed_plans, 16384);
	cr_expect_eq(c->limits.sdp_bytes, 65536);
	cr_expect_eq(c->session.plan_timeout_ms, 10000);
	cr_expect_eq(c->srtp.engine, CONFIG_SRTP_AUTO);
	cr_expect_eq(c->http.admin.text[0], '\0');
	config_destroy(c);
}

Test(config, file_sets_scalars_lists_and_mappings)
{
	cr_assert_eq(parse("http: {listen: '[::1]:9000', trusted_proxies: [10.0.0.0/8]}\n"
			   "udp:\n  listen:\n    - 192.0.2.1:5000\n    - '[2001:db8::1]:5000'\n"
			   "advertise: [203.0.113.7, '[2001:db8::2]:99', 2001:db8::3]\n"
			   "workers: 3\npin: true\n"
			   "tokens:\n  publish: [abc, d.e~f]\n"
			   "srtp: {engine: evp}\nlog: {format: json, level: warn}\n"
			   "ice:\n  servers:\n    - url: stun:s.example:3478\n"
			   "    - url: turn:t.example\n      username: u\n      credential: p\n"
			   "    - {url: 'turns:r.example', secret: 'any text'}\n"
			   "  credentials_ttl_s: 600\n"),
		     0, "%s", error);
	cr_expect_eq(c->http.listen.port, 9000);
	cr_expect(config_address_is_loopback(&c->http.listen));
	cr_assert_eq(c->udp.listen.count, 2, "the file's list replaces the default");
	cr_expect(c->udp.listen.items[0].is_v4);
	cr_expect_eq(c->udp.listen.items[0].ip[12], 192);
	cr_expect_not(c->udp.listen.items[1].is_v4);
	cr_assert_eq(c->advertise.count, 3);
	cr_expect_eq(c->advertise.items[0].port, 0);
	cr_expect_eq(c->advertise.items[1].port, 99);
	cr_expect_eq(c->advertise.items[2].ip[15], 3);
	cr_expect_eq(c->workers, 3);
	cr_expect(c->pin);
	cr_assert_eq(c->tokens.publish.count, 2);
	cr_expect_str_eq(c->tokens.publish.items[1], "d.e~f");
	cr_expect_eq(c->srtp.engine, CONFIG_SRTP_EVP);
	cr_expect_eq(c->log.format, CONFIG_LOG_JSON);
	cr_expect_eq(c->log.level, CONFIG_LOG_WARN);
	cr_assert_eq(c->ice.servers.count, 3);
	cr_expect_null(c->ice.servers.items[0].username);
	cr_expect_str_eq(c->ice.servers.items[1].credential, "p");
	cr_expect_null(c->ice.servers.items[1].secret);
	cr_expect_str_eq(c->ice.servers.items[2].secret, "any text");
	cr_expect_null(c->ice.servers.items[2].credential);
	cr_expect_eq(c->ice.credentials_ttl_s, 600);
	config_destroy(c);
}

/* What is wrong, and the words the line must have. */
static const struct {
	const char *yaml;
	const char *want[3];
} wrong[] = {
	{ "http:\n  listen: 127.0.0.1:1\n  bogus: 3\n",
	  { "line 3", "unknown key http.bogus", "listen, cert, key" } },
	{ "# x\nworker: 2\n", { "line 2", "unknown key worker", "http, udp, tcp, advertise" } },
	{ "ice:\n  servers:\n    - url: stun:a\n      user: b\n",
	  { "line 4", "unknown key ice.servers.user", "url, username, credential, secret" } },
	{ "workers: 1\nhttp: {open: true}\nworkers: 2\n", { "line 3", "workers is set twice" } },
	{ "workers: 257\n", { "line 1", "workers", "0 to 64" } },
	{ "workers: -1\n", { "line 1", "workers", "0 to 64" } },
	{ "workers: 1.5\n", { "line 1", "workers", "0 to 64" } },
	{ "workers: 0x10\n", { "line 1", "workers", "0 to 64" } },
	{ "workers: 99999999999\n", { "line 1", "workers", "0 to 64" } },
	{ "workers:\n", { "line 1", "workers", "0 to 64" } },
	{ "workers: [1]\n", { "line 1", "workers", "0 to 64" } },
	{ "\nmedia:\n  hold_us: 100\n  pad_bytes: 3\n", { "line 4", "pad_bytes", "power of two" } },
	{ "pin: yes\n", { "line 1", "pin", "true or false" } },
	{ "log:\n  format: xml\n",
	  { "line 2", "log.format: wrong value \"xml\"", "text or json" } },
	{ "srtp: {engine: openssl}\n", { "line 1", "auto, ipsecmb, evp or libsrtp2" } },
	{ "http: {listen: 'example.org:80'}\n", { "line 1", "http.listen", "ADDR:PORT" } },
	{ "http: {listen: 127.0.0.1}\n", { "line 1", "http.listen", "ADDR:PORT" } },
	{ "http: {listen: '127.0.0.1:65536'}\n", { "line 1", "http.listen", "ADDR:PORT" } },
	{ "http: {listen: '[127.0.0.1]:80'}\n", { "line 1", "http.listen", "ADDR:PORT" } },
	{ "http: {listen: '::1:80:'}\n", { "line 1", "http.listen", "ADDR:PORT" } },
	{ "http: {listen: '[::1]80'}\n", { "line 1", "http.listen", "ADDR:PORT" } },
	{ "udp:\n  listen:\n    - :1\n    - :2\n    - here\n",
	  { "line 5", "udp.listen: wrong value \"here\"", "[ADDR]:PORT" } },
	{ "udp: {listen: ':1'}\n", { "line 1", "udp.listen", "a list of" } },
	{ "udp: {listen: []}\n", { "line 1", "udp.listen must be a list" } },
	{ "udp: {listen: [':5', ':5']}\n", { "udp.listen names :5 twice" } },
	{ "tcp: {listen: [':5', ':5']}\n", { "tcp.listen names :5 twice" } },
	{ "tcp: {listen: [':5'], enabled: false}\n", { "tcp.enabled is false" } },
	{ "advertise: [0.0.0.0]\n", { "line 1", "advertise", "IP[:PORT]" } },
	{ "advertise: ['192.0.2.1:0']\n", { "line 1", "advertise", "IP[:PORT]" } },
	{ "limits: {trusted: [10.0.0.0/33]}\n", { "line 1", "limits.trusted", "IP[/BITS]" } },
	{ "http: 8080\n", { "line 1", "http", "a mapping of keys" } },
	{ "- http\n", { "line 1", "the file", "a mapping of keys" } },
	{ "http:\n\t- x\n", { "line 2", "token" } },
	{ "pin: *x\n", { "line 1", "alias" } },
	{ "ice: {servers: [{username: a}]}\n", { "line 1", "ice.servers", "url: stun:" } },
	{ "ice: {servers: [{url: 'http://x'}]}\n", { "line 1", "ice.servers", "url: stun:" } },
	{ "ice: {servers: [{url: 'stun:a\\r\\nSet-Cookie: x'}]}\n", { "line 1", "ice.servers" } },
	{ "ice: {servers: [{url: 'turn:a', username: b}]}\n", { "line 1", "ice.servers" } },
	{ "ice: {servers: [{url: 'stun:a'}, {url: 'turn:a'}]}\n", { "line 1", "ice.servers" } },
	{ "ice: {servers: [{url: 'turn:a', username: b, credential: c, secret: d}]}\n",
	  { "line 1", "ice.servers", "secret: SHARED" } },
	{ "ice: {servers: [{url: 'turn:a', secret: ''}]}\n", { "line 1", "ice.servers" } },
	{ "ice: {servers: [{url: 'stun:a', secret: d}]}\n", { "line 1", "ice.servers" } },
	{ "ice: {credentials_ttl_s: 59}\n", { "line 1", "ice.credentials_ttl_s", "60 to" } },
	{ "workers: 1\n---\nworkers: 2\n", { "line 2", "second YAML document" } },
	{ "http: {public_url: 'ftp://a'}\n", { "line 1", "http.public_url", "http[s]://HOST" } },
	{ "http: {public_url: 'https://'}\n", { "http.public_url" } },
	{ "http: {public_url: 'https:///a'}\n", { "http.public_url" } },
	{ "http: {public_url: 'https://a/'}\n", { "http.public_url" } },
	{ "http: {public_url: 'https://a b'}\n", { "http.public_url" } },
	{ "http: {public_url: 'https://a>b'}\n", { "http.public_url" } },
	{ "http: {public_url: \"https://a\\r\\nX: y\"}\n", { "http.public_url" } },
	{ "http: {cert: a.pem}\n", { "http.cert is set and http.key is not" } },
	{ "http: {listen: '127.0.0.1:80', admin: '127.0.0.1:80'}\n", { "same address" } },
	{ "http: {listen: ':80'}\n", { "tokens.publish is empty", "--open" } },
	{ "http: {listen: ':80'}\ntokens: {publish: [x]}\n",
	  { "tokens.watch is empty", "--open" } },
};

Test(config, a_wrong_file_is_refused_with_key_line_and_what_is_allowed)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_expect_eq(parse(wrong[i].yaml), -EINVAL, "%s", wrong[i].yaml);
		cr_expect_null(c);
		cr_expect_null(strchr(error, '\n'), "one line: %s", error);
		for (size_t w = 0; w < 3 && wrong[i].want[w]; w++)
			cr_expect(strstr(error, wrong[i].want[w]), "want \"%s\" in \"%s\"",
				  wrong[i].want[w], error);
	}
}

Test(config, an_error_never_shows_a_secret)
{
	cr_expect_eq(parse("tokens: {publish: [good, 'canary secret']}\n"), -EINVAL);
	cr_expect_null(strstr(error, "canary"), "%s", error);
	cr_expect(strstr(error, "tokens.publish"), "%s", error);
	cr_expect_eq(
	    parse("ice: {servers: [{url: 'turn:a', username: u, credential: 'canary '}]}\n"),
	    -EINVAL);
	cr_expect_null(strstr(error, "canary"), "%s", error);
	cr_expect_eq(parse("ice: {servers: [{url: 'stun:a', secret: canary}]}\n"), -EINVAL);
	cr_expect_null(strstr(error, "canary"), "%s", error);
}

Test(config, open_waives_missing_tokens_and_tokens_make_it_unnecessary)
{
	cr_expect_eq(parse("http: {listen: ':80', open: true}\n"), 0, "%s", error);
	config_destroy(c);
	cr_expect_eq(parse("http: {listen: '0.0.0.0:80'}\ntokens: {publish: [a], watch: [b]}\n"), 0,
		     "%s", error);
	config_destroy(c);
}

Test(config, flags_win_over_the_file)
{
	char path[32];

	file_write(path, "http: {listen: '127.0.0.1:1'}\nudp: {listen: [':1', ':2']}\nworkers: 2\n",
		   0644);
	cr_assert_eq(args((const char *const[8]){ "sluice", "-c", path, "--udp", ":7",
						  "--http=127.0.0.1:9", "--log", "json" }),
		     0, "%s", error);
	cr_expect_eq(action, CONFIG_RUN);
	cr_expect_eq(c->http.listen.port, 9);
	cr_assert_eq(c->udp.listen.count, 1);
	cr_expect_eq(c->udp.listen.items[0].port, 7);
	cr_expect_eq(c->workers, 2);
	cr_expect_eq(c->log.format, CONFIG_LOG_JSON);
	cr_expect_not(c->is_secret_readable, "there is no secret in it");
	config_destroy(c);
	unlink(path);
}

Test(config, a_repeated_list_flag_adds_up)
{
	cr_assert_eq(args((const char *const[8]){ "sluice", "--advertise", "192.0.2.1",
						  "--advertise", "192.0.2.2:5", "--udp", ":0" }),
		     0, "%s", error);
	cr_assert_eq(c->advertise.count, 2);
	cr_expect_eq(c->advertise.items[1].port, 5);
	config_destroy(c);
}

static const struct {
	const char *argv[4];
	const char *want[2];
} wrong_flags[] = {
	{ { "--workers", "many" }, { "--workers: wrong value \"many\"", "0 to 64" } },
	{ { "--workers" }, { "--workers needs a value", "N" } },
	{ { "--open=1" }, { "--open takes no value" } },
	{ { "--htpp", ":1" }, { "--htpp: unknown flag" } },
	{ { "relay.yaml" }, { "relay.yaml: not a flag" } },
	{ { "--log", "xml" }, { "--log: wrong value", "text or json" } },
	{ { "--udp", "8189" }, { "--udp: wrong value", "[ADDR]:PORT" } },
	{ { "--http", "0.0.0.0:80" }, { "http.listen 0.0.0.0:80", "--open" } },
	{ { "-c", "/nowhere/x.yaml" }, { "/nowhere/x.yaml: No such file" } },
	{ { "-c", "/" }, { "/: Is a directory" } },
	{ { "-c" }, { "-c needs a value: FILE" } },
	{ { "--http", "x\ny" }, { "--http: wrong value \"x?y\"" } },
};

Test(config, a_wrong_flag_is_refused_with_one_line)
{
	for (size_t i = 0; i < sizeof(wrong_flags) / sizeof(wrong_flags[0]); i++) {
		const char *argv[8] = { "sluice", wrong_flags[i].argv[0], wrong_flags[i].argv[1],
					wrong_flags[i].argv[2] };

		cr_expect_neq(args(argv), 0, "%s", argv[1]);
		cr_expect_null(c);
		cr_expect_null(strchr(error, '\n'));
		for (size_t w = 0; w < 2 && wrong_flags[i].want[w]; w++)
			cr_expect(strstr(error, wrong_flags[i].want[w]), "want \"%s\" in \"%s\"",
				  wrong_flags[i].want[w], error);
	}
}

Test(config, help_and_version_come_before_any_complaint_behind_them)
{
	cr_expect_eq(args((const char *const[8]){ "sluice", "--help", "--bogus" }), 0);
	cr_expect_eq(action, CONFIG_HELP);
	cr_expect_null(c);
	cr_expect_eq(args((const char *const[8]){ "sluice", "--version" }), 0);
	cr_expect_eq(action, CONFIG_VERSION);
	cr_expect_eq(args((const char *const[8]){ "sluice", "--check" }), 0);
	cr_expect_eq(action, CONFIG_CHECK);
	cr_assert_not_null(c);
	config_destroy(c);
}

Test(config, a_file_with_secrets_that_others_may_read_is_noted)
{
	static const struct {
		mode_t mode;
		bool want;
	} rows[] = { { 0600, false }, { 0640, true }, { 0644, true }, { 0400, false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[32];

		file_write(path, "tokens: {publish: [x]}\n", rows[i].mode);
		cr_assert_eq(args((const char *const[8]){ "sluice", "-c", path }), 0, "%s", error);
		cr_expect_eq(c->is_secret_readable, rows[i].want, "%o", rows[i].mode);
		config_destroy(c);
		unlink(path);
	}
}

Test(config, networks_match_by_prefix_in_both_families)
{
	static const struct {
		const char *net;
		uint8_t ip[16];
		bool want;
	} rows[] = {
		{ "10.0.0.0/8", { [10] = 0xff, [11] = 0xff, 10, 200, 3, 4 }, true },
		{ "10.0.0.0/8", { [10] = 0xff, [11] = 0xff, 11, 0, 0, 1 }, false },
		{ "10.1.2.3", { [10] = 0xff, [11] = 0xff, 10, 1, 2, 3 }, true },
		{ "10.1.2.3", { [10] = 0xff, [11] = 0xff, 10, 1, 2, 4 }, false },
		{ "192.168.64.0/18", { [10] = 0xff, [11] = 0xff, 192, 168, 127, 1 }, true },
		{ "192.168.64.0/18", { [10] = 0xff, [11] = 0xff, 192, 168, 128, 1 }, false },
		{ "0.0.0.0/0", { [10] = 0xff, [11] = 0xff, 8, 8, 8, 8 }, true },
		{ "0.0.0.0/0", { 0x20, 1 }, false },
		{ "2001:db8::/33", { 0x20, 0x01, 0x0d, 0xb8, 0x7f }, true },
		{ "2001:db8::/33", { 0x20, 0x01, 0x0d, 0xb8, 0x80 }, false },
		{ "::/0", { 0x20, 1 }, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char yaml[80];

		snprintf(yaml, sizeof(yaml), "limits: {trusted: ['%s']}", rows[i].net);
		cr_assert_eq(parse(yaml), 0, "%s", error);
		cr_expect_eq(config_networks_have(&c->limits.trusted, rows[i].ip), rows[i].want,
			     "row %zu: %s", i, rows[i].net);
		config_destroy(c);
	}
}

Test(config, every_key_takes_its_ends_and_refuses_what_lies_beyond)
{
	size_t count;
	const struct config_key *keys = config_schema(&count);
	struct config *own = calloc(1, sizeof(*own));

	cr_assert_not_null(own);
	for (size_t i = 0; i < count; i++) {
		char text[16];

		if (keys[i].type != CONFIG_TYPE_COUNT)
			continue;
		snprintf(text, sizeof(text), "%u", keys[i].min);
		cr_expect_eq(config_value_set(own, &keys[i], text), 0, "%s", keys[i].name);
		snprintf(text, sizeof(text), "%u", keys[i].max);
		cr_expect_eq(config_value_set(own, &keys[i], text), 0, "%s", keys[i].name);
		cr_expect_eq(*(uint32_t *)((char *)own + keys[i].offset), keys[i].max);
		snprintf(text, sizeof(text), "%lu", keys[i].max + 1ul);
		cr_expect_eq(config_value_set(own, &keys[i], text), -EINVAL, "%s", keys[i].name);
		if (keys[i].min == 0)
			continue;
		snprintf(text, sizeof(text), "%u", keys[i].min - 1);
		cr_expect_eq(config_value_set(own, &keys[i], text), -EINVAL, "%s", keys[i].name);
	}
	config_destroy(own);
}

static char *printed(void (*print)(FILE *), size_t *bytes)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, bytes);

	cr_assert_not_null(f);
	print(f);
	fclose(f);
	return text;
}

Test(config, help_names_every_key_and_every_flag)
{
	size_t bytes;
	char *text = printed(config_print_help, &bytes);
	size_t count;
	const struct config_key *keys = config_schema(&count);

	for (size_t i = 0; i < count; i++)
		cr_expect(strstr(text, keys[i].name), "%s", keys[i].name);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		cr_expect_leq(strcspn(line, "\n"), 100);
	free(text);
}

Test(config, the_reference_page_is_what_the_schema_prints)
{
	size_t bytes;
	char *text = printed(config_print_reference, &bytes);
	char *page = calloc(1, CONFIG_FILE_BYTES);
	FILE *f = fopen("docs/config.md", "r");

	cr_assert_not_null(page);
	cr_assert_not_null(f, "run from the top of the tree");
	cr_expect_eq(fread(page, 1, CONFIG_FILE_BYTES - 1, f), bytes);
	cr_expect(strcmp(page, text) == 0, "docs/config.md is old: make docs/config.md");
	fclose(f);
	free(page);
	free(text);
}

Test(config, running_out_of_memory_anywhere_is_reported_and_leaks_nothing)
{
	static const char yaml[] = "tokens: {publish: [a, b]}\nhttp: {cert: a, key: b}\n"
				   "ice: {servers: [{url: 'turn:a', username: u, credential: p}, "
				   "{url: 'turn:b', secret: s}]}\n"
				   "limits: {trusted: [10.0.0.0/8]}\n";
	int err = -ENOMEM;

	for (int nth = 0; err == -ENOMEM; nth++) {
		cr_assert_lt(nth, 1000);
		fault_after(nth);
		err = parse(yaml);
		fault_after(-1);
		cr_expect(err == 0 || (err == -ENOMEM && !c), "allocation %d: %d", nth, err);
		if (err)
			cr_expect(strstr(error, "memory"), "%s", error);
	}
	cr_expect_eq(err, 0, "%s", error);
	config_destroy(c);
}
