/* The first datagrams of real clients (tests/fixtures/packets), met by a transport that has the
 * credentials of the answer each of them got: check, then ClientHello, as they come and as they may. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/dtls_record.h"
#include "net/stun.h"
#include "tests/fixture.h"
#include "tests/net/kit_transport.h"

TestSuite(transport_packets, .timeout = 60);

enum { MAX_CLIENTS = 16, SECOND_US = 1000000 };

struct packet {
	uint8_t *bytes;
	size_t len;
};

struct capture {
	char name[64];
	struct packet check, hello[2];
	bool is_split; /* the hello, over both; else the second is the first again */
	struct ice_credentials local, remote;
};

static struct packet load(const char *client, const char *what)
{
	struct packet p;
	char name[128];

	snprintf(name, sizeof(name), "%s.%s.bin", client, what);
	p.bytes = (uint8_t *)fixture_read("packets", name, &p.len);
	return p;
}

static void take(const char *sdp, const char *prefix, char *out, size_t cap)
{
	const char *at = strstr(sdp, prefix);
	size_t n;

	cr_assert(at, "%s", prefix);
	n = strcspn(at + strlen(prefix), "\r\n");
	cr_assert_lt(n, cap);
	memcpy(out, at + strlen(prefix), n);
	out[n] = '\0';
}

static void open_capture(struct capture *c, const char *client)
{
	static const char pwd[] = "0123456789012345678901";
	const char *ours, *theirs;
	size_t ours_bytes, theirs_bytes, len;
	struct stun_message m;
	char name[128], sdp[8192], *answer;

	*c = (struct capture){ .check = load(client, "stun-0001.1"),
			       .hello = { load(client, "dtls-22-hs1.1"),
					  load(client, "dtls-22-hs1.2") } };
	snprintf(c->name, sizeof(c->name), "%s", client);
	snprintf(name, sizeof(name), "%s.answer.sdp", client);
	answer = fixture_read("packets", name, &len);
	snprintf(sdp, sizeof(sdp), "%.*s", (int)len, answer);
	free(answer);
	take(sdp, "a=ice-ufrag:", c->local.ufrag, sizeof(c->local.ufrag));
	take(sdp, "a=ice-pwd:", c->local.pwd, sizeof(c->local.pwd));
	cr_assert_eq(stun_parse(&m, c->check.bytes, c->check.len), STUN_OK);
	cr_assert(stun_username_split(&m, &ours, &ours_bytes, &theirs, &theirs_bytes));
	cr_assert_lt(theirs_bytes, sizeof(c->remote.ufrag));
	memcpy(c->remote.ufrag, theirs, theirs_bytes);
	memcpy(c->remote.pwd, pwd, sizeof(pwd));
	c->is_split = c->hello[0].len != c->hello[1].len;
}

static void close_capture(struct capture *c)
{
	free(c->check.bytes);
	free(c->hello[0].bytes);
	free(c->hello[1].bytes);
}

/* For every "<client>.answer.sdp". @return how many */
static unsigned each_client(void (*visit)(const struct capture *c))
{
	DIR *dir = opendir("tests/fixtures/packets");
	struct dirent *entry;
	unsigned n = 0;

	cr_assert_not_null(dir, "run from the top of the tree");
	while ((entry = readdir(dir)) != NULL) {
		char *end = strstr(entry->d_name, ".answer.sdp");
		struct capture c;

		if (!end)
			continue;
		*end = '\0';
		open_capture(&c, entry->d_name);
		visit(&c);
		close_capture(&c);
		n++;
	}
	closedir(dir);
	return n;
}

static void open_net(struct kit_net *net, const struct capture *c)
{
	kit_net_init(net);
	net->config[KIT_RELAY].local = c->local;
	net->config[KIT_RELAY].remote = c->remote;
	cr_assert_eq(transport_create(&net->end[KIT_RELAY].t, net->now_us, &net->config[KIT_RELAY]),
		     0);
}

/* What it is, then what came back: how many datagrams. */
static int deliver(struct kit_net *net, const struct packet *p, enum transport_verdict want,
		   const char *name)
{
	int before = net->flying_count;
	enum transport_verdict verdict = kit_deliver(net, KIT_RELAY, NULL, p->bytes, p->len);

	cr_expect_eq(verdict, want, "%s: %s", name, transport_verdict_text(verdict));
	kit_net_poll(net, KIT_RELAY);
	return net->flying_count - before;
}

static void expect_check_answered(struct kit_net *net, const struct capture *c)
{
	const struct kit_flying *f = &net->flying[net->flying_count];
	struct stun_message asked, m;

	cr_assert_geq(deliver(net, &c->check, TRANSPORT_CONSUMED, c->name), 1, "%s", c->name);
	cr_assert_eq(stun_parse(&asked, c->check.bytes, c->check.len), STUN_OK);
	cr_assert_eq(stun_parse(&m, f->bytes, f->len), STUN_OK, "%s", c->name);
	cr_expect_eq(m.class, STUN_SUCCESS, "%s", c->name);
	cr_expect(memcmp(m.transaction, asked.transaction, STUN_TRANSACTION_BYTES) == 0);
	cr_expect(stun_is_authentic(&m, c->local.pwd), "%s", c->name);
	cr_expect(m.has_mapped && net_addr_is_equal(&m.mapped, &net->end[KIT_CLIENT].addr));
	cr_expect_eq(net->end[KIT_RELAY].events[TRANSPORT_VALIDATED], 1, "%s", c->name);
}

/* From `first` on: a ServerHello, and each datagram no larger than the MTU (the kit sees to that). */
static bool is_server_flight(const struct kit_net *net, int first)
{
	const uint8_t *bytes = net->flying[first].bytes;
	size_t len = net->flying[first].len;
	struct dtls_record r;

	return first < net->flying_count && dtls_record_next(&r, &bytes, &len) &&
	       dtls_record_messages(&r) == 1u << DTLS_SERVER_HELLO;
}

/* --- the tests --------------------------------------------------------------------------- */

static void hello_in_each_order(const struct capture *c)
{
	/* As sent; swapped; the second lost, so both again; each twice. */
	static const char *const orders[] = { "12", "21", "112", "1122" };

	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct kit_net net;
		int first;

		open_net(&net, c);
		expect_check_answered(&net, c);
		first = net.flying_count;
		for (const char *o = orders[i]; *o; o++)
			deliver(&net, &c->hello[*o - '1'], TRANSPORT_CONSUMED, c->name);
		cr_expect(is_server_flight(&net, first), "%s in order %s", c->name, orders[i]);
		cr_expect_eq(net.end[KIT_RELAY].astray, 0, "%s", c->name);
		kit_net_fini(&net);
	}
}

Test(transport_packets, each_client_is_led_from_its_check_to_our_first_flight)
{
	cr_assert_eq(each_client(hello_in_each_order), 10);
}

static unsigned split_hellos;

static void second_lost_and_repeated(const struct capture *c)
{
	struct kit_net net;
	int first;

	if (!c->is_split)
		return;
	split_hellos++;
	open_net(&net, c);
	expect_check_answered(&net, c);
	cr_expect_eq(deliver(&net, &c->hello[0], TRANSPORT_CONSUMED, c->name), 0,
		     "%s: half a hello is answered by nothing", c->name);
	kit_net_run(&net, net.now_us + SECOND_US); /* until the client repeats */
	cr_expect_eq(net.end[KIT_RELAY].events[TRANSPORT_CLOSED], 0);
	first = net.flying_count;
	deliver(&net, &c->hello[0], TRANSPORT_CONSUMED, c->name);
	deliver(&net, &c->hello[1], TRANSPORT_CONSUMED, c->name);
	cr_expect(is_server_flight(&net, first), "%s", c->name);
	kit_net_fini(&net);
}

Test(transport_packets, a_second_half_that_was_lost_comes_with_the_repetition)
{
	(void)each_client(second_lost_and_repeated);
	cr_expect_eq(split_hellos, 7, "Chromium, Firefox, GStreamer");
}

/* Before its check, or from elsewhere, a hello is a stranger's, and the real one still gets through. */
static void hello_without_check(const struct capture *c)
{
	struct net_addr elsewhere;
	struct kit_net net;
	int first;

	open_net(&net, c);
	cr_assert_eq(net_addr_parse(&elsewhere, "203.0.113.9:4000"), 0);
	cr_expect_eq(deliver(&net, &c->hello[0], TRANSPORT_DROP_UNVALIDATED, c->name), 0);
	expect_check_answered(&net, c);
	cr_expect_eq(kit_deliver(&net, KIT_RELAY, &elsewhere, c->hello[0].bytes, c->hello[0].len),
		     TRANSPORT_DROP_UNVALIDATED, "%s", c->name);
	first = net.flying_count;
	deliver(&net, &c->hello[0], TRANSPORT_CONSUMED, c->name);
	deliver(&net, &c->hello[1], TRANSPORT_CONSUMED, c->name);
	cr_expect(is_server_flight(&net, first), "%s", c->name);
	kit_net_fini(&net);
}

Test(transport_packets, a_hello_counts_only_from_where_a_check_came)
{
	cr_assert_eq(each_client(hello_without_check), 10);
}
