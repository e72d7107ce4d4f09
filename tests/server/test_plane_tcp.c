#include <criterion/criterion.h>
#include <unistd.h>

#include "server/worker_tcp.h"
#include "tests/server/kit_stream.h"

static const struct kit_peer_config publisher = { .publishes = true, .audio = true, .video = true };
static const struct kit_peer_config viewer = { .audio = true, .video = true };

TestSuite(plane_tcp, .timeout = 20);

static uint64_t closed(struct kit_plane *p, enum worker_tcp_cause cause)
{
	return kit_plane_sum(p, offsetof(struct worker_counters, tcp_closed) +
				    cause * sizeof(counter));
}

static struct kit_peer *join_over_tcp(struct kit_plane *p, const struct kit_peer_config *config,
				      unsigned worker)
{
	struct kit_peer *peer = kit_peer_open(p, "live", config);

	kit_stream_open(peer, worker);
	kit_plane_advance(p, 1500000);
	cr_assert(peer->is_connected);
	return peer;
}

/* How many of so many pictures of three packets arrive. */
static size_t watch(struct kit_plane *p, struct kit_peer *source, struct kit_peer *v, unsigned n)
{
	kit_peer_forget(v);
	for (unsigned i = 0; i < n; i++) {
		kit_peer_send_frame(source, i == 0, 3, 1000, NULL);
		kit_plane_advance(p, 33000);
	}
	return kit_peer_count(v, MEDIA_VIDEO, false);
}

Test(plane_tcp, media_go_both_ways_over_connections)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = join_over_tcp(p, &publisher, 0);
	struct kit_peer *v = join_over_tcp(p, &viewer, 0);
	struct kit_peer *udp = kit_peer_join(p, "live", &viewer);

	cr_expect_eq(watch(p, source, v, 30), 90);
	cr_expect_eq(kit_peer_count(udp, MEDIA_VIDEO, false), 90);
	cr_expect_eq(KIT_SUM(p, tcp_connections), 2);
	cr_expect_eq(KIT_SUM(p, tcp_half_open), 0);
	kit_peer_leave(v);
	kit_plane_settle(p);
	cr_expect_eq(closed(p, WORKER_TCP_SESSION), 1);
	cr_expect(v->is_closed && v->reason == TRANSPORT_CLOSED_BY_PEER, "its last word came");
	cr_expect(kit_stream_is_ended(v));
	kit_plane_close(p);
}

Test(plane_tcp, a_connection_goes_to_the_worker_that_serves_its_session)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);

	kit_stream_open(v, 1);
	kit_plane_advance(p, 7000000);
	cr_expect_eq(KIT_SUM(p, tcp_moved), 1);
	cr_expect_eq(counter_read(&kit_plane_worker(p, 0)->counters.tcp_connections), 1);
	cr_expect_eq(counter_read(&kit_plane_worker(p, 1)->counters.tcp_connections), 0);
	cr_expect_eq(watch(p, source, v, 10), 30);
	kit_plane_close(p);
}

Test(plane_tcp, one_on_its_way_to_a_session_that_ends_is_closed)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *v;

	(void)kit_peer_join(p, "live", &publisher);
	v = kit_peer_join(p, "live", &viewer);
	kit_stream_open(v, 1);
	p->now_us += 6500000;
	kit_clock_set(p->now_us);
	transport_on_timeout(v->transport, p->now_us);
	kit_peer_poll(v);
	kit_loop_round(kit_plane_worker(p, 1)->loop);
	cr_assert_eq(KIT_SUM(p, tcp_moved), 1);
	kit_peer_leave(v);
	kit_loop_round(p->loop);
	kit_plane_advance(p, 100000);
	cr_expect_eq(closed(p, WORKER_TCP_REFUSED) + closed(p, WORKER_TCP_SESSION), 1);
	cr_expect_eq(KIT_SUM(p, tcp_connections), 0);
	kit_plane_close(p);
}

Test(plane_tcp, a_lost_connection_leaves_the_session_waiting_for_the_next)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = join_over_tcp(p, &viewer, 0);

	cr_expect_eq(watch(p, source, v, 2), 6);
	v->is_mute = true;
	kit_stream_close(v);
	cr_expect_eq(watch(p, source, v, 10), 0);
	cr_expect_eq(closed(p, WORKER_TCP_PEER), 1);
	cr_expect_eq(KIT_SUM(p, viewers), 1);
	v->is_mute = false;
	kit_stream_open(v, 0);
	kit_plane_advance(p, 7000000);
	cr_expect_eq(watch(p, source, v, 10), 30);
	kit_plane_close(p);
}

Test(plane_tcp, a_peer_that_does_not_read_is_ended_and_others_miss_nothing)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = join_over_tcp(p, &viewer, 0);
	struct kit_peer *stuck = join_over_tcp(p, &viewer, 0);

	kit_stream_stall(stuck);
	cr_expect_eq(watch(p, source, v, 400), 1200);
	cr_expect_gt(KIT_SUM(p, tcp_queue_drops), 0);
	cr_expect_eq(KIT_SUM(p, viewers), 1, "it took nothing for 10 s");
	cr_expect_eq(closed(p, WORKER_TCP_STUCK), 1);
	cr_expect_eq(p->registry->sessions_ended[TRANSPORT_CLOSED_STUCK], 1);
	kit_plane_close(p);
}

Test(plane_tcp, strangers_wait_in_small_numbers_and_not_for_long)
{
	struct kit_plane *p = kit_plane_open("limits: {tcp_half_open_per_ip: 5}\n", 1);
	struct net_addr here, elsewhere;
	int fds[9];

	net_addr_parse(&here, "198.51.100.1:1");
	net_addr_parse(&elsewhere, "198.51.100.2:1");
	for (int i = 0; i < 9; i++)
		fds[i] = kit_stream_stranger(p, 0, i < 8 ? &here : &elsewhere, "\0\100", 2);
	kit_plane_settle(p);
	cr_expect_eq(closed(p, WORKER_TCP_LIMITED), 3);
	cr_expect_eq(KIT_SUM(p, tcp_half_open), 6);
	kit_plane_advance(p, WORKER_TCP_HALF_OPEN_US - 1000000);
	cr_expect_eq(KIT_SUM(p, tcp_half_open), 6);
	kit_plane_advance(p, 2000000);
	cr_expect_eq(closed(p, WORKER_TCP_LATE), 6);
	cr_expect_eq(KIT_SUM(p, tcp_connections), 0);
	for (int i = 0; i < 9; i++)
		close(fds[i]);
	kit_plane_close(p);
}

Test(plane_tcp, what_names_no_session_closes_its_connection)
{
	static const struct {
		const char *name, *bytes;
		size_t len;
		enum worker_tcp_cause cause;
	} rows[] = {
		{ "HTTP", "GET / HTTP/1.1\r\n", 16, WORKER_TCP_OVERSIZED },
		{ "a ClientHello", "\0\4\x16\xfe\xfd\0", 6, WORKER_TCP_STRANGER },
	};
	struct kit_plane *p = kit_plane_open("", 1);
	struct net_addr here;

	net_addr_parse(&here, "198.51.100.1:1");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t before = closed(p, rows[i].cause);
		int fd = kit_stream_stranger(p, 0, &here, rows[i].bytes, rows[i].len);

		kit_plane_settle(p);
		cr_expect_eq(closed(p, rows[i].cause) - before, 1, "%s", rows[i].name);
		close(fd);
	}
	kit_plane_close(p);
}
