#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/egress.h"
#include "tests/net/kit_send.h"

static struct egress *e;
static struct net_path paths[128];

static void setup(void)
{
	static const struct kit_send_step all_taken[1];

	cr_assert_eq(egress_create(&e, -1, true, true), 0);
	for (unsigned i = 0; i < 128; i++) {
		cr_assert_eq(net_addr_parse(&paths[i].remote, "127.0.0.1:1"), 0);
		paths[i].remote.port = (uint16_t)(1000 + i);
	}
	kit_send_script(all_taken, 0);
}

static void teardown(void)
{
	kit_send_script(NULL, 0);
	egress_destroy(e);
}

TestSuite(egress, .init = setup, .fini = teardown, .timeout = 10);

/* A datagram whose first bytes say which it is. */
static void append(unsigned path, size_t len, uint8_t mark)
{
	uint8_t *place = egress_append(e, &paths[path], len, path);

	cr_assert(place);
	memset(place, mark, len);
}

static unsigned messages(void)
{
	return (unsigned)egress_stats(e)->messages;
}

Test(egress, equal_datagrams_for_one_path_form_one_message)
{
	for (uint8_t i = 0; i < 5; i++)
		append(0, 1200, i);
	cr_assert_eq(egress_flush(e, 1), EGRESS_DONE);
	cr_expect_eq(messages(), 1);
	cr_assert_eq(kit_send_count(), 5);
	for (uint8_t i = 0; i < 5; i++)
		cr_expect_eq(kit_send_datagram(i)->head[0], i);
}

static const struct {
	const char *name;
	size_t sizes[6]; /* 0 ends */
	unsigned messages;
} cuts[] = {
	{ "a shorter last one rides along", { 1200, 1200, 300 }, 1 },
	{ "a longer one begins anew", { 300, 1200, 1200 }, 2 },
	{ "nothing behind a shorter one", { 1200, 300, 300 }, 2 },
	{ "nor an equal one of the first size", { 1200, 300, 1200 }, 2 },
	{ "one alone", { 90 }, 1 },
};

Test(egress, messages_are_cut_where_segments_would_not_be_equal)
{
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		size_t n = 0;

		teardown();
		setup();
		for (; n < 6 && cuts[i].sizes[n]; n++)
			append(0, cuts[i].sizes[n], (uint8_t)n);
		cr_expect_eq(egress_flush(e, 1), EGRESS_DONE);
		cr_expect_eq(messages(), cuts[i].messages, "%s: %u", cuts[i].name, messages());
		cr_expect_eq(kit_send_count(), n, "%s", cuts[i].name);
		for (size_t k = 0; k < n && k < kit_send_count(); k++)
			cr_expect_eq(kit_send_datagram(k)->len, cuts[i].sizes[k], "%s",
				     cuts[i].name);
	}
}

Test(egress, another_path_owner_or_a_cut_begins_a_message)
{
	append(0, 100, 0);
	append(1, 100, 1);
	egress_cut(e);
	append(1, 100, 2);
	cr_expect(egress_append(e, &paths[1], 100, 99));
	egress_flush(e, 1);
	cr_expect_eq(messages(), 4);
}

Test(egress, a_message_holds_at_most_64_segments_and_65507_bytes)
{
	for (unsigned i = 0; i < EGRESS_SEGMENTS + 1; i++)
		append(0, 100, 0);
	for (unsigned i = 0; i < 60; i++)
		append(1, 1200, 0);
	egress_flush(e, 1);
	/* 64 + 1, and 54 (64,800 bytes) + 6. */
	cr_expect_eq(messages(), 4);
	cr_expect_eq(kit_send_count(), EGRESS_SEGMENTS + 1 + 60);
}

Test(egress, appending_stops_when_messages_or_arena_are_full)
{
	unsigned n = 0;

	while (n < 128 && egress_append(e, &paths[n], 100, n))
		n++;
	cr_expect_eq(n, EGRESS_MESSAGES);
	egress_flush(e, 1);
	for (n = 0; egress_append(e, &paths[0], 1200, 0); n++)
		;
	cr_expect_eq(n, EGRESS_ARENA_BYTES / 1200);
	egress_flush(e, 1);
	cr_expect(egress_is_empty(e));
}

/* Whatever the kernel takes a call, everything leaves once and in order. */
static const struct {
	const char *bound, *local;
	bool names_source;
} sources[] = {
	{ "127.0.0.1", "127.0.0.1", false },
	{ "0.0.0.0", "127.0.0.1", true },
	{ "0.0.0.0", "0.0.0.0", false },
};

Test(egress, the_source_is_named_unless_the_socket_has_but_one)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);
		struct sockaddr_storage name;
		struct net_addr bound;
		socklen_t len;

		cr_assert_eq(net_addr_parse_ip(&bound, sources[i].bound), 0);
		cr_assert_eq(net_addr_parse_ip(&paths[0].local, sources[i].local), 0);
		len = net_addr_to_sockaddr(&bound, AF_INET, &name);
		cr_assert_eq(bind(fd, (struct sockaddr *)&name, len), 0);
		egress_destroy(e);
		cr_assert_eq(egress_create(&e, fd, true, true), 0);
		for (uint8_t k = 0; k < 3; k++)
			append(0, 1200, k);
		cr_expect_eq(egress_flush(e, 1), EGRESS_DONE);
		cr_assert_eq(kit_send_count(), 3 * (i + 1));
		cr_expect_eq(kit_send_datagram(3 * i)->names_source, sources[i].names_source,
			     "%s, %s", sources[i].bound, sources[i].local);
		close(fd);
	}
}

Test(egress, short_counts_resume_without_loss_repeat_or_reorder)
{
	static const struct kit_send_step steps[] = { { 1, 0 }, { 0, EINTR }, { 3, 0 }, { 2, 0 } };

	kit_send_script(steps, 4);
	for (uint8_t i = 0; i < 20; i++)
		append(i, 200, i);
	cr_assert_eq(egress_flush(e, 1), EGRESS_DONE);
	cr_assert_eq(kit_send_count(), 20);
	for (uint8_t i = 0; i < 20; i++)
		cr_expect_eq(kit_send_datagram(i)->head[0], i);
}

static const struct {
	int error;
	enum egress_status want;
} fulls[] = { { EAGAIN, EGRESS_BLOCKED }, { ENOBUFS, EGRESS_STARVED }, { ENOMEM, EGRESS_STARVED } };

Test(egress, a_full_socket_keeps_the_rest_for_the_next_flush)
{
	for (size_t k = 0; k < 3; k++) {
		struct kit_send_step steps[] = { { 2, 0 }, { 0, fulls[k].error } };

		teardown();
		setup();
		kit_send_script(steps, 2);
		for (uint8_t i = 0; i < 6; i++)
			append(i, 200, i);
		cr_expect_eq(egress_flush(e, 1), fulls[k].want, "%s", strerror(fulls[k].error));
		cr_expect_eq(kit_send_count(), 2);
		cr_expect_eq(kit_send_calls(), 2, "one refusal, no spinning");
		append(0, 200, 6); /* also while blocked */
		cr_expect_eq(egress_flush(e, 2), EGRESS_DONE);
		cr_assert_eq(kit_send_count(), 7);
		for (uint8_t i = 0; i < 7; i++)
			cr_expect_eq(kit_send_datagram(i)->head[0], i);
	}
}

Test(egress, any_other_error_costs_exactly_one_message_and_names_its_owner)
{
	static const struct kit_send_step steps[] = { { 1, 0 }, { 0, EPERM } };
	struct egress_failure failure;

	kit_send_script(steps, 2);
	for (uint8_t i = 0; i < 4; i++)
		append(i, 200, i);
	cr_assert_eq(egress_flush(e, 1), EGRESS_DONE);
	cr_assert_eq(kit_send_count(), 3);
	cr_expect_eq(kit_send_datagram(0)->head[0], 0);
	cr_expect_eq(kit_send_datagram(1)->head[0], 2);
	cr_assert(egress_take_failure(e, &failure));
	cr_expect_eq(failure.owner, 1);
	cr_expect_eq(failure.error, -EPERM);
	cr_expect_not(egress_take_failure(e, &failure));
	cr_expect_eq(egress_stats(e)->failed, 1);
}

Test(egress, a_refused_message_leaves_singly_and_its_address_stays_unsegmented)
{
	static const int errors[] = { EINVAL, EMSGSIZE, EIO };

	for (size_t k = 0; k < 3; k++) {
		static const struct kit_send_step none[1];

		teardown();
		setup();
		kit_send_script(none, 0);
		kit_send_refuse_segments(errors[k]);
		append(1, 200, 9);
		for (uint8_t i = 0; i < 4; i++)
			append(0, i == 3 ? 50 : 200, i);
		cr_assert_eq(egress_flush(e, 1), EGRESS_DONE);
		cr_assert_eq(kit_send_count(), 5, "%s", strerror(errors[k]));
		for (uint8_t i = 0; i < 4; i++)
			cr_expect_eq(kit_send_datagram(i + 1u)->head[0], i);
		cr_expect_eq(kit_send_datagram(4)->len, 50);
		cr_expect_eq(egress_stats(e)->gso_refused, 1);
		/* Within the minute the address gets single datagrams, refused by nobody. */
		for (uint8_t i = 0; i < 4; i++)
			append(0, 200, i);
		egress_flush(e, EGRESS_GSO_OFF_US);
		cr_expect_eq(egress_stats(e)->gso_refused, 1);
		cr_expect_eq(kit_send_count(), 9);
		/* After it, it is tried again. */
		egress_flush(e, EGRESS_GSO_OFF_US + 2);
		append(0, 200, 0);
		append(0, 200, 1);
		egress_flush(e, EGRESS_GSO_OFF_US + 2);
		cr_expect_eq(egress_stats(e)->gso_refused, 2);
	}
}

Test(egress, single_sends_resume_after_a_full_socket)
{
	static const struct kit_send_step steps[] = { { 1, 0 }, { 1, 0 }, { 0, EAGAIN } };

	kit_send_script(steps, 3);
	kit_send_refuse_segments(EINVAL);
	for (uint8_t i = 0; i < 5; i++)
		append(0, 200, i);
	cr_assert_eq(egress_flush(e, 1), EGRESS_BLOCKED);
	cr_expect_eq(kit_send_count(), 2);
	cr_assert_eq(egress_flush(e, 2), EGRESS_DONE);
	cr_assert_eq(kit_send_count(), 5);
	for (uint8_t i = 0; i < 5; i++)
		cr_expect_eq(kit_send_datagram(i)->head[0], i);
}

Test(egress, segmentation_is_given_up_when_many_addresses_refuse_and_none_takes_it)
{
	kit_send_refuse_segments(EIO);
	for (unsigned i = 0; i < 8; i++) {
		cr_expect(egress_has_gso(e));
		append(i, 200, 0);
		append(i, 200, 1);
		egress_flush(e, 1);
	}
	cr_expect_not(egress_has_gso(e));
}

Test(egress, one_success_keeps_segmentation_for_good)
{
	append(0, 200, 0);
	append(0, 200, 1);
	egress_flush(e, 1);
	kit_send_refuse_segments(EIO);
	for (unsigned i = 1; i < 40; i++) {
		append(i, 200, 0);
		append(i, 200, 1);
		egress_flush(e, 1);
	}
	cr_expect(egress_has_gso(e));
}

static struct egress_message sunk[8];
static unsigned sunk_count;

static void sink(void *arg, const struct egress_message *m)
{
	cr_assert_eq(arg, &sunk_count);
	cr_assert_lt(sunk_count, 8);
	sunk[sunk_count++] = *m;
}

Test(egress, a_sink_gets_messages_by_connection_and_takes_all)
{
	struct egress *s;

	cr_assert_eq(egress_create_sink(&s, sink, &sunk_count), 0);
	paths[0].remote.connection = 7;
	paths[1].remote.connection = 9;
	for (unsigned i = 0; i < 3; i++)
		memset(egress_append(s, &paths[0], i < 2 ? 1200 : 30, 5), 'a', i < 2 ? 1200 : 30);
	memset(egress_append(s, &paths[1], 40, 6), 'b', 40);
	cr_assert_eq(egress_flush(s, 1), EGRESS_DONE);
	cr_expect(egress_is_empty(s));
	cr_assert_eq(sunk_count, 2);
	cr_expect(sunk[0].connection == 7 && sunk[0].owner == 5 && sunk[0].segment_bytes == 1200);
	cr_expect(sunk[0].len == 2430 && sunk[0].bytes[0] == 'a');
	cr_expect(sunk[1].connection == 9 && sunk[1].len == 40 && sunk[1].bytes[0] == 'b');
	cr_expect_eq(egress_stats(s)->datagrams, 4);
	cr_expect_eq(kit_send_calls(), 0, "no socket has a part in it");
	egress_destroy(s);
}
