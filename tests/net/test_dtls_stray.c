/* What strangers and accidents do to a handshake: each captured ClientHello in every order, and
 * forged records at every flight. The tables name what a handshake survives, and what it does not. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "net/dtls_record.h"
#include "pool/bytes.h"
#include "tests/net/kit_dtls_pump.h"
#include "tests/net/kit_wall_clock.h"

enum { START_US = 1000000, PATIENCE_US = 10000000, STRAY_BYTES = 1500 };

static struct dtls_identity *identity;
static struct dtls_fingerprint own;
static uint64_t now_us;

static void set_now(uint64_t us)
{
	now_us = us;
	wall_clock_set_us(us);
}

static void setup(void)
{
	set_now(START_US);
	cr_assert_eq(dtls_identity_create(&identity), 0);
	cr_assert_eq(dtls_fingerprint_parse(&own, "sha-256", dtls_identity_fingerprint(identity)),
		     0);
}

static void teardown(void)
{
	struct dtls_live live;

	dtls_identity_unref(identity);
	dtls_live(&live);
	cr_expect_eq(live.handshakes, 0);
	cr_expect_eq(live.ssl_objects, 0);
	wall_clock_set_us(0);
}

TestSuite(dtls_stray, .init = setup, .fini = teardown, .timeout = 60);

static struct dtls *make(enum dtls_role role)
{
	struct dtls *d;

	cr_assert_eq(dtls_create(&d, identity, role, &own), 0);
	return d;
}

/* --- captured ClientHellos -------------------------------------------------------------- */

struct datagram {
	uint8_t bytes[STRAY_BYTES];
	size_t len;
};

static void load(struct datagram *d, const char *stack, int number)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "tests/fixtures/packets/%s.dtls-22-hs1.%d.bin", stack, number);
	f = fopen(path, "rb");
	cr_assert_not_null(f, "%s", path);
	d->len = fread(d->bytes, 1, sizeof(d->bytes), f);
	fclose(f);
}

static const struct {
	const char *stack;
	bool is_split; /* over two datagrams; else the second is a repetition */
} stacks[] = {
	{ "aiortc", false },
	{ "chrome-datachannel", true },
	{ "chrome-recvonly", true },
	{ "chrome-simulcast", true },
	{ "firefox-datachannel", true },
	{ "firefox-recvonly", true },
	{ "gst-whep-client", true },
	{ "gst-whip-client", true },
	{ "obs", false },
	{ "pion", false },
};

/* Is the first datagram of output a ServerHello? */
static bool answers(struct dtls *d)
{
	struct dtls_record r;
	const uint8_t *bytes;
	size_t len;

	bytes = dtls_next_datagram(d, &len);
	return bytes && dtls_record_next(&r, &bytes, &len) &&
	       dtls_record_messages(&r) == 1u << DTLS_SERVER_HELLO;
}

static void feed(struct dtls *d, const struct datagram *g)
{
	cr_expect_eq(dtls_on_datagram(d, g->bytes, g->len), DTLS_QUEUED);
	dtls_pump_step(now_us, d);
}

/* Orders as strings: which of the two datagrams arrive, one after the other. */
static const char *const orders[] = { "12", "21", "112", "1112", "221", "12121" };

Test(dtls_stray, each_captured_hello_is_answered_in_any_order)
{
	struct datagram pair[2];
	struct dtls_status status;
	struct dtls *d;
	size_t i, o;
	const char *c;

	for (i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		load(&pair[0], stacks[i].stack, 1);
		load(&pair[1], stacks[i].stack, 2);
		for (o = 0; o < sizeof(orders) / sizeof(orders[0]); o++) {
			d = make(DTLS_SERVER);
			for (c = orders[o]; *c; c++)
				feed(d, &pair[*c - '1']);
			cr_expect(answers(d), "%s in order %s", stacks[i].stack, orders[o]);
			dtls_status(d, &status);
			cr_expect_eq(status.rebuilds, 0, "%s", stacks[i].stack);
			dtls_destroy(d);
		}
	}
}

Test(dtls_stray, half_a_hello_waits_for_its_other_half)
{
	struct datagram pair[2];
	struct dtls *d;
	size_t i;
	int half;

	for (i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		for (half = 1; half <= 2 && stacks[i].is_split; half++) {
			load(&pair[0], stacks[i].stack, half);
			load(&pair[1], stacks[i].stack, 3 - half);
			d = make(DTLS_SERVER);
			feed(d, &pair[0]);
			feed(d, &pair[0]);
			cr_expect_not(answers(d), "%s", stacks[i].stack);
			feed(d, &pair[1]);
			cr_expect(answers(d), "%s: the lost half is repeated", stacks[i].stack);
			dtls_destroy(d);
		}
	}
}

/* --- strays ----------------------------------------------------------------------------- */

static void begin_record(struct datagram *g, uint8_t content, uint16_t epoch, uint16_t body)
{
	memset(g, 0, sizeof(*g));
	g->bytes[0] = content;
	be16_write(g->bytes + 1, 0xfefd);
	be16_write(g->bytes + 3, epoch);
	be32_write(g->bytes + 7, 4000); /* a record number that nobody used yet */
	be16_write(g->bytes + 11, body);
	g->len = (size_t)DTLS_RECORD_HEADER_BYTES + body;
}

/* One whole handshake message of `bytes` times 0x5a. */
static void make_message(struct datagram *g, uint8_t type, uint16_t number, uint16_t bytes)
{
	uint8_t *p = g->bytes + DTLS_RECORD_HEADER_BYTES;

	begin_record(g, DTLS_HANDSHAKE_MESSAGE, 0, (uint16_t)(DTLS_FRAGMENT_HEADER_BYTES + bytes));
	p[0] = type;
	be24_write(p + 1, bytes);
	be16_write(p + 4, number);
	be24_write(p + 9, bytes);
	memset(p + DTLS_FRAGMENT_HEADER_BYTES, 0x5a, bytes);
}

static void make_null_hello(struct datagram *g)
{
	static const uint8_t rest[] = {
		0, 0, 0, 2, 0, 0, 1, 0
	}; /* cipher TLS_NULL_WITH_NULL_NULL */
	uint8_t *p = g->bytes + DTLS_RECORD_HEADER_BYTES + DTLS_FRAGMENT_HEADER_BYTES;

	make_message(g, DTLS_CLIENT_HELLO, 0, 34 + sizeof(rest));
	be16_write(p, 0xfefd);
	memcpy(p + 34, rest, sizeof(rest));
}

static void make_garbage_hello(struct datagram *g)
{
	make_message(g, DTLS_CLIENT_HELLO, 0, 60);
}

static void make_pion_hello(struct datagram *g)
{
	load(g, "pion", 1);
}

static void make_half_hello(struct datagram *g)
{
	load(g, "chrome-recvonly", 1);
}

static void make_other_half_hello(struct datagram *g)
{
	load(g, "chrome-recvonly", 2);
}

static void make_alert(struct datagram *g)
{
	begin_record(g, DTLS_ALERT, 0, 2);
	g->bytes[DTLS_RECORD_HEADER_BYTES] = 2;
	g->bytes[DTLS_RECORD_HEADER_BYTES + 1] = 40;
}

static void make_protected_alert(struct datagram *g)
{
	begin_record(g, DTLS_ALERT, 1, 26);
}

static void make_protected_finished(struct datagram *g)
{
	begin_record(g, DTLS_HANDSHAKE_MESSAGE, 1, 48);
}

static void make_clear_data(struct datagram *g)
{
	begin_record(g, DTLS_APPLICATION_DATA, 0, 40);
}

static void make_change_cipher_spec(struct datagram *g)
{
	begin_record(g, DTLS_CHANGE_CIPHER_SPEC, 0, 1);
	g->bytes[DTLS_RECORD_HEADER_BYTES] = 1;
}

static void make_certificate(struct datagram *g)
{
	make_message(g, DTLS_CERTIFICATE, 1, 200);
}

static void make_client_key(struct datagram *g)
{
	make_message(g, DTLS_CLIENT_KEY_EXCHANGE, 2, 33);
}

static void make_hello_request(struct datagram *g)
{
	make_message(g, 0, 0, 0);
}

static void make_hello_one(struct datagram *g)
{
	make_null_hello(g);
	be16_write(g->bytes + DTLS_RECORD_HEADER_BYTES + 4, 1);
}

static void make_server_hello(struct datagram *g)
{
	make_message(g, DTLS_SERVER_HELLO, 0, 70);
}

static void make_server_certificate(struct datagram *g)
{
	make_message(g, DTLS_CERTIFICATE, 1, 200);
}

static void make_cookie(struct datagram *g)
{
	static const uint8_t body[] = { 0xfe, 0xff, 4, 1, 2, 3, 4 };

	make_message(g, DTLS_HELLO_VERIFY_REQUEST, 0, sizeof(body));
	memcpy(g->bytes + DTLS_RECORD_HEADER_BYTES + DTLS_FRAGMENT_HEADER_BYTES, body,
	       sizeof(body));
}

/* Where the stray arrives. */
enum point {
	BEFORE_HELLO,
	AFTER_HELLO,          /* at the server; its flight is under way */
	FLIGHT_LOST,          /* the same, and that flight is lost */
	BEFORE_SECOND_FLIGHT, /* the peer has our flight */
	IN_SECOND_FLIGHT,     /* one record of it arrived */
	AFTER_FINISHED,
	POINTS,
};

static void inject(struct dtls *victim, const struct datagram *g)
{
	dtls_on_datagram(victim, g->bytes, g->len);
	dtls_pump_step(now_us, victim);
}

/* Deliver the peer's flight, its first record ahead of the stray. */
static void deliver_around(struct dtls *from, struct dtls *to, const struct datagram *stray)
{
	struct datagram flight[4];
	struct dtls_record r;
	const uint8_t *bytes;
	size_t n = 0, i, len;

	for (; n < 4 && (bytes = dtls_next_datagram(from, &len)) != NULL; n++) {
		memcpy(flight[n].bytes, bytes, len);
		flight[n].len = len;
	}
	cr_assert_gt(n, 0);
	bytes = flight[0].bytes;
	len = flight[0].len;
	cr_assert(dtls_record_next(&r, &bytes, &len));
	dtls_on_datagram(to, r.bytes, r.len);
	dtls_pump_step(now_us, to);
	inject(to, stray);
	dtls_on_datagram(to, bytes, len);
	for (i = 1; i < n; i++)
		dtls_on_datagram(to, flight[i].bytes, flight[i].len);
	dtls_pump_step(now_us, to);
}

/* From here on no more strays, only time. */
static bool recover(struct dtls *a, struct dtls *b)
{
	uint64_t end_us = now_us + PATIENCE_US, next_us;

	for (;;) {
		dtls_pump(now_us, a, b);
		if (dtls_state(a) != DTLS_HANDSHAKE && dtls_state(b) != DTLS_HANDSHAKE)
			break;
		next_us = dtls_deadline_us(a) < dtls_deadline_us(b) ? dtls_deadline_us(a)
								    : dtls_deadline_us(b);
		if (next_us > end_us)
			break;
		set_now(next_us > now_us ? next_us : now_us + 1000);
	}
	return dtls_state(a) == DTLS_CONNECTED && dtls_state(b) == DTLS_CONNECTED;
}

static bool server_survives(enum point point, const struct datagram *stray)
{
	struct dtls *server = make(DTLS_SERVER), *client = make(DTLS_CLIENT);
	bool ok;

	if (point == BEFORE_HELLO)
		inject(server, stray);
	dtls_pump_move(now_us, client, server);
	dtls_pump_step(now_us, server);
	if (point == FLIGHT_LOST)
		dtls_pump_lose(server);
	if (point == AFTER_HELLO || point == FLIGHT_LOST)
		inject(server, stray);
	dtls_pump_move(now_us, server, client);
	dtls_pump_step(now_us, client);
	if (point == BEFORE_SECOND_FLIGHT)
		inject(server, stray);
	if (point == IN_SECOND_FLIGHT)
		deliver_around(client, server, stray);
	dtls_pump_move(now_us, client, server);
	if (point == AFTER_FINISHED) {
		dtls_pump_step(now_us, server);
		inject(server, stray);
	}
	ok = recover(server, client);
	dtls_destroy(server);
	dtls_destroy(client);
	return ok;
}

/* One letter a point: s survives, x does not (the deadline ends it). What cannot be saved is a
 * forged message of the peer's second flight itself: the SSL object takes it for the peer's, and
 * the peer, which holds our flight, will not begin anew. */
static const struct {
	const char *name;
	void (*make)(struct datagram *g);
	const char want[POINTS + 1];
} server_rows[] = {
	{ "ClientHello with the null cipher", make_null_hello, "ssssss" },
	{ "ClientHello of rubbish", make_garbage_hello, "ssssss" },
	{ "somebody else's ClientHello", make_pion_hello, "ssssss" },
	{ "half of somebody's ClientHello", make_half_hello, "ssssss" },
	{ "the other half of it", make_other_half_hello, "ssssss" },
	{ "second ClientHello", make_hello_one, "ssssss" },
	{ "HelloRequest", make_hello_request, "ssssss" },
	{ "alert in the clear", make_alert, "ssssss" },
	{ "alert under no key", make_protected_alert, "ssssss" },
	{ "Finished under no key", make_protected_finished, "ssssss" },
	{ "application data in the clear", make_clear_data, "ssssss" },
	{ "ChangeCipherSpec", make_change_cipher_spec, "ssssss" },
	{ "forged certificate", make_certificate, "sxsxss" },
	{ "forged key exchange", make_client_key, "sxxxxs" },
	{ "ServerHello", make_server_hello, "ssssss" },
};

Test(dtls_stray, server_survives_strays_at_each_flight_as_tabled)
{
	struct datagram stray;
	bool ok;
	size_t i;
	int point;

	for (i = 0; i < sizeof(server_rows) / sizeof(server_rows[0]); i++) {
		server_rows[i].make(&stray);
		for (point = 0; point < POINTS; point++) {
			ok = server_survives((enum point)point, &stray);
			cr_expect_eq(ok ? 's' : 'x', server_rows[i].want[point],
				     "%s at point %d: %s", server_rows[i].name, point,
				     ok ? "survived" : "did not survive");
		}
	}
}

/* Twelve such datagrams alone would make the library, left to its defaults, hold 1.2 MB. */
Test(dtls_stray, forged_fragments_and_early_records_hold_little_memory)
{
	static const uint8_t types[] = { DTLS_CERTIFICATE, DTLS_CERTIFICATE_VERIFY,
					 DTLS_CLIENT_KEY_EXCHANGE };
	struct dtls *server = make(DTLS_SERVER), *client = make(DTLS_CLIENT);
	size_t before, after;
	struct datagram g;
	int i;

	dtls_pump_move(now_us, client, server);
	dtls_pump_step(now_us, server);
	before = mallinfo2().uordblks;
	for (i = 0; i < 1000; i++) {
		make_message(&g, types[i % 3], (uint16_t)(1 + i % 20), 1);
		/* One byte of a message that claims to be long. */
		be24_write(g.bytes + DTLS_RECORD_HEADER_BYTES + 1, i % 2 ? 8192 : 16000);
		inject(server, &g);
		make_protected_finished(&g);
		be32_write(g.bytes + 7, (uint32_t)i); /* it would drop a repeated number */
		inject(server, &g);
	}
	after = mallinfo2().uordblks;
	cr_expect_lt(after - before, 100 * 1024);
	dtls_destroy(server);
	dtls_destroy(client);
}

Test(dtls_stray, rebuilds_are_limited_and_the_peer_still_gets_through)
{
	struct dtls *server = make(DTLS_SERVER), *client = make(DTLS_CLIENT);
	struct dtls_status status;
	struct datagram stray;
	int i;

	make_null_hello(&stray);
	for (i = 0; i < 1000; i++) {
		stray.bytes[DTLS_RECORD_HEADER_BYTES + DTLS_FRAGMENT_HEADER_BYTES + 2] = (uint8_t)i;
		inject(server, &stray);
	}
	dtls_status(server, &status);
	cr_expect_eq(status.rebuilds, DTLS_REBUILDS_PER_S);
	cr_expect_str_eq(status.error, "no shared cipher");
	cr_expect(recover(server, client));
	dtls_destroy(server);
	dtls_destroy(client);
}

Test(dtls_stray, junk_only_moves_counters)
{
	struct dtls *server = make(DTLS_SERVER), *client = make(DTLS_CLIENT);
	struct datagram g;
	uint32_t x = 1;
	size_t b;
	int i;

	for (i = 0; i < 100000; i++) {
		begin_record(&g, (uint8_t)(20 + i % 5), (uint16_t)(i % 3), (uint16_t)(1 + i % 90));
		for (b = DTLS_RECORD_HEADER_BYTES; b < g.len; b++) {
			x = x * 1664525 + 1013904223;
			g.bytes[b] = (uint8_t)(x >> 24);
		}
		if (i % 7 == 0)
			g.len -= 1;
		inject(server, &g);
	}
	cr_expect_eq(dtls_state(server), DTLS_HANDSHAKE);
	dtls_pump(now_us, server, client);
	cr_expect_eq(dtls_state(server), DTLS_CONNECTED);
	for (i = 0; i < 1000; i++)
		inject(server, &g);
	cr_expect_eq(dtls_state(server), DTLS_CONNECTED);
	dtls_destroy(server);
	dtls_destroy(client);
}

static bool client_survives(enum point point, const struct datagram *stray)
{
	struct dtls *server = make(DTLS_SERVER), *client = make(DTLS_CLIENT);
	bool ok;

	dtls_pump_move(now_us, client, server);
	dtls_pump_step(now_us, server);
	if (point == AFTER_HELLO)
		inject(client, stray);
	if (point == FLIGHT_LOST) {
		dtls_pump_lose(server);
		inject(client, stray);
	}
	if (point == BEFORE_SECOND_FLIGHT)
		deliver_around(server, client, stray);
	dtls_pump_move(now_us, server, client);
	if (point == IN_SECOND_FLIGHT) {
		dtls_pump_step(now_us, client);
		inject(client, stray);
	}
	dtls_pump_move(now_us, client, server);
	dtls_pump_move(now_us, server, client);
	if (point == AFTER_FINISHED)
		inject(client, stray);
	ok = recover(server, client);
	dtls_destroy(server);
	dtls_destroy(client);
	return ok;
}

/* The client's points: before the server's flight (twice), in it, after our second, at the end. */
static const struct {
	const char *name;
	void (*make)(struct datagram *g);
	const char want[POINTS + 1];
} client_rows[] = {
	{ "alert in the clear", make_alert, "ssssss" },
	{ "alert under no key", make_protected_alert, "ssssss" },
	{ "Finished under no key", make_protected_finished, "ssssss" },
	{ "ServerHello of rubbish", make_server_hello, "ssssss" },
	{ "forged certificate", make_server_certificate, "ssssss" },
	{ "cookie request", make_cookie, "ssssss" },
	{ "ChangeCipherSpec", make_change_cipher_spec, "ssssss" },
	{ "ClientHello", make_pion_hello, "ssssss" },
	{ "application data in the clear", make_clear_data, "ssssss" },
};

Test(dtls_stray, client_survives_strays_at_each_flight_as_tabled)
{
	struct datagram stray;
	bool ok;
	size_t i;
	int point;

	for (i = 0; i < sizeof(client_rows) / sizeof(client_rows[0]); i++) {
		client_rows[i].make(&stray);
		for (point = AFTER_HELLO; point < POINTS; point++) {
			ok = client_survives((enum point)point, &stray);
			cr_expect_eq(ok ? 's' : 'x', client_rows[i].want[point],
				     "%s at point %d: %s", client_rows[i].name, point,
				     ok ? "survived" : "did not survive");
		}
	}
}
