#include <criterion/criterion.h>

#include "net/random.h"
#include "server/branch.h"
#include "server/session.h"
#include "tests/fault.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_workers, .timeout = 120);

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config here = { .audio = true, .video = true, .rtx = true };
static const struct kit_peer_config there = {
	.audio = true, .video = true, .rtx = true, .worker = 1
};

Test(plane_workers, packets_for_viewers_elsewhere_travel_by_ring)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *near = kit_peer_join(p, "live", &here);
	struct kit_peer *far[3];
	uint64_t wakes, handed, batches;

	for (unsigned i = 0; i < 3; i++)
		far[i] = kit_peer_join(p, "live", &there);
	kit_peer_send_frame(source, true, 1, 500, NULL);
	kit_plane_advance(p, 100000);
	wakes = KIT_SUM(p, wakeups_sent);
	handed = KIT_SUM(p, handed_over);
	batches = KIT_SUM(p, receive_batches);
	for (unsigned i = 0; i < 10; i++) {
		kit_peer_send_frame(source, false, 20, 500, NULL);
		kit_plane_advance(p, 30000);
	}
	cr_expect_eq(KIT_SUM(p, handed_over) - handed, 200, "once a worker, not once a viewer");
	cr_expect_eq(KIT_SUM(p, wakeups_sent) - wakes, 10, "once a batch, not once a packet");
	batches = KIT_SUM(p, receive_batches) - batches;
	cr_expect(batches >= 10 && batches < 200, "%lu", batches);
	cr_expect_eq(near->packet_count, 201);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(far[i]->packet_count, 201);
		kit_peer_leave(far[i]);
	}
	kit_plane_advance(p, 30000);
	handed = KIT_SUM(p, handed_over);
	kit_peer_send_frame(source, false, 20, 500, NULL);
	kit_plane_advance(p, 30000);
	cr_expect_eq(KIT_SUM(p, handed_over), handed, "nobody there wants it any more");
	cr_expect_eq(near->packet_count, 221);
	kit_plane_close(p);
}

Test(plane_workers, a_worker_that_lags_loses_packets_and_is_waited_for_by_nobody)
{
	struct kit_plane *p = kit_plane_open("media:\n  history_ms: 5000\n", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *near = kit_peer_join(p, "live", &here);
	struct kit_peer *far = kit_peer_join(p, "live", &there);
	struct worker *w = kit_plane_worker(p, 0);

	kit_peer_send_frame(source, true, 1, 500, NULL);
	kit_plane_advance(p, 100000);
	for (unsigned i = 0; i < 450; i++) {
		kit_peer_send_frame(source, false, 20, 100, NULL);
		kit_loop_round(w->loop);
	}
	cr_expect_gt(KIT_SUM(p, handed_over_drops), 500);
	kit_plane_advance(p, 1000000); /* what is left there leaves in parts */
	cr_expect_eq(near->packet_count, 9001);
	kit_peer_forget(far);
	kit_peer_send_frame(source, true, 20, 100, NULL);
	kit_plane_advance(p, 100000);
	cr_expect_eq(far->packet_count, 20);
	kit_plane_close(p);
}

Test(plane_workers, a_port_that_changes_lands_elsewhere_a_thousand_times)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &here);
	uint64_t most = 0;

	kit_peer_send_frame(source, true, 1, 500, NULL);
	kit_plane_advance(p, 10000);
	kit_peer_forget(v);
	for (unsigned i = 0; i < 1000; i++) {
		v->addr.port = (uint16_t)(1024 + i);
		v->worker = i % 3 != 0;
		/* Consent checks, with USE-CANDIDATE, follow within six seconds: sooner by a timer
		 * that is asked early. */
		kit_plane_advance(p, 6100000);
		kit_peer_send_frame(source, false, 1, 500, NULL);
		kit_peer_send_audio(source);
		kit_plane_advance(p, 10000);
		most = KIT_SUM(p, forwards) > most ? KIT_SUM(p, forwards) : most;
		cr_assert_not(v->is_closed);
		cr_assert_eq(v->packet_count, 2, "change %u", i);
		kit_peer_forget(v);
	}
	cr_expect_gt(KIT_SUM(p, forwarded), 500);
	cr_expect_leq(most, 8, "a session has eight addresses at most");
	cr_expect_gt(most, 0);
	kit_peer_leave(v);
	kit_plane_advance(p, 100000);
	cr_expect_eq(KIT_SUM(p, forwards), 0);
	cr_expect_eq(addrtable_count(kit_plane_worker(p, 0)->addrs), 1, "the publisher's");
	cr_expect_eq(addrtable_count(kit_plane_worker(p, 1)->addrs), 0);
	kit_plane_close(p);
}

/* A session whose address another worker forwards ends: what still comes there is dropped, and the
 * entry goes. */
Test(plane_workers, a_forward_to_a_session_that_ended_is_forgotten)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &here);
	uint8_t bytes[50] = { 0x80, 200 };

	kit_peer_send_frame(source, true, 1, 500, NULL);
	v->worker = 1;
	v->addr.port++;
	kit_plane_advance(p, 7000000);
	cr_assert_eq(KIT_SUM(p, forwards), 1);
	for (unsigned i = 0; i < 2000; i++) {
		kit_peer_send_raw(v, bytes, sizeof(bytes));
		kit_loop_round(kit_plane_worker(p, 1)->loop);
	}
	cr_expect_gt(KIT_SUM(p, forwarded_drops), 900, "the ring is full");
	kit_peer_leave(v);
	kit_loop_round(p->loop);
	kit_plane_advance(p, 100000);
	cr_expect_eq(KIT_SUM(p, forwards), 0);
	kit_plane_close(p);
}

/* The first datagram from a new address is on its way when the session ends. */
Test(plane_workers, a_forward_that_its_owner_never_saw_is_forgotten)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *v;
	struct session_ref ref;

	(void)kit_peer_join(p, "live", &publisher);
	v = kit_peer_join(p, "live", &here);
	ref = session_ref_unpack(atomic_load(&p->registry->newest->claim));
	v->worker = 1;
	v->addr.port++;
	p->now_us += 6500000;
	kit_clock_set(p->now_us);
	transport_on_timeout(v->transport, p->now_us);
	kit_peer_poll(v);
	kit_loop_round(kit_plane_worker(p, 1)->loop);
	cr_assert_eq(KIT_SUM(p, forwards), 1);
	session_end(worker_session(kit_plane_worker(p, 0), ref), TRANSPORT_CLOSED_SILENT);
	kit_plane_settle(p);
	cr_expect_eq(KIT_SUM(p, forwards), 0);
	kit_plane_close(p);
}

Test(plane_workers, an_address_whose_owner_cannot_hear_of_it_is_not_kept)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &here);
	struct kit_peer *w = kit_peer_join(p, "live", &here);
	struct loop *other = kit_plane_worker(p, 1)->loop;
	uint8_t bytes[50] = { 0x80, 200 };

	kit_peer_send_frame(source, true, 1, 500, NULL);
	v->worker = w->worker = 1;
	v->addr.port++;
	kit_plane_advance(p, 7000000);
	cr_assert_eq(KIT_SUM(p, forwards), 2);
	for (unsigned i = 0; i < 1100; i++) {
		kit_peer_send_raw(v, bytes, sizeof(bytes));
		kit_loop_round(other);
	}
	w->addr.port++;
	p->now_us += 6500000;
	kit_clock_set(p->now_us);
	transport_on_timeout(w->transport, p->now_us);
	kit_peer_poll(w);
	kit_loop_round(other);
	cr_expect_eq(KIT_SUM(p, forwards), 2);
	kit_plane_close(p);
}

Test(plane_workers, a_dry_pool_drops_and_recovers)
{
	struct kit_plane *p =
	    kit_plane_open("pool:\n  packets: 1024\nmedia:\n  history_ms: 1000\n", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &here);
	struct kit_peer *late;

	kit_peer_send_frame(source, true, 1, 500, NULL);
	for (unsigned i = 0; i < 100; i++) {
		kit_peer_send_frame(source, false, 20, 100, NULL);
		kit_plane_advance(p, 1000);
	}
	worker_publish(kit_plane_worker(p, 0));
	cr_expect_gt(KIT_SUM(p, socket_pool_drops), 100);
	cr_expect_gt(KIT_SUM(p, slabs_relieved), 1);
	cr_expect_lt(KIT_SUM(p, slabs_in_use), 1024);
	late = kit_peer_join(p, "live", &here);
	kit_plane_advance(p, 500000); /* what is left leaves in parts */
	kit_peer_forget(v);
	kit_peer_send_frame(source, true, 5, 100, NULL);
	kit_plane_advance(p, 20000);
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 5);
	cr_expect_eq(kit_peer_count(late, MEDIA_VIDEO, false), 5);
	kit_plane_close(p);
}

Test(plane_workers, media_makes_no_allocation_and_takes_no_lock)
{
	struct kit_plane *p = kit_plane_open("media:\n  hold_min_viewers: 4\n", 2);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *viewers[10];
	unsigned allocations, locks;
	size_t got = 0;

	for (unsigned i = 0; i < 10; i++)
		viewers[i] = kit_peer_join(p, "live", i % 2 ? &there : &here);
	/* The first packets of each SSRC make state. */
	kit_peer_send_frame(source, true, 8, 1000, NULL);
	kit_peer_send_audio(source);
	kit_plane_advance(p, 100000);
	for (unsigned i = 0; i < 10; i++) {
		uint16_t seq = viewers[i]->packets[0].seq;

		kit_peer_nack(viewers[i], MEDIA_VIDEO, &seq, 1);
		kit_peer_pli(viewers[i]);
	}
	kit_plane_advance(p, 1000000);
	allocations = fault_calls();
	locks = kit_wire_locks();
	for (unsigned frame = 0; frame < 15; frame++) {
		kit_peer_send_frame(source, false, 1 + frame % 40, 1000, NULL);
		kit_peer_send_audio(source);
		for (unsigned i = 0; i < 10; i++) {
			uint16_t seq = viewers[i]->packets[2].seq;

			kit_peer_nack(viewers[i], MEDIA_VIDEO, &seq, 1);
		}
		kit_plane_advance(p, 30000);
	}
	cr_expect_eq(fault_calls() - allocations, 0);
	cr_expect_eq(kit_wire_locks() - locks, 0);
	for (unsigned i = 0; i < 10; i++)
		got += viewers[i]->packet_count;
	cr_expect_gt(got, 1000);
	kit_plane_close(p);
}

/* Hundreds of sessions come and go on both workers, some in the middle of their handshake. */
Test(plane_workers, sessions_that_come_and_go_leave_nothing)
{
	struct kit_plane *p = kit_plane_open("streams:\n  wait_for_publisher: true\n"
					     "limits:\n  handshakes_per_worker: 2\n",
					     2);
	static const char *const names[] = { "a", "b", "c" };

	for (unsigned step = 0; step < 300; step++) {
		struct kit_peer_config config = step % 5 ? here : publisher;
		struct kit_peer *peer;
		unsigned count = 0;

		config.worker = (unsigned)(random_u64() % 2);
		kit_loop_hold_work(kit_plane_worker(p, 0)->loop, random_u64() % 4 == 0);
		peer = kit_peer_open(p, names[random_u64() % 3], &config);
		cr_assert(peer->status == REGISTRY_OK);
		kit_plane_advance(p, random_u64() % 60000);
		for (peer = p->peers; peer; peer = peer->next)
			count++;
		while (count > 20) {
			unsigned skip = (unsigned)(random_u64() % count--);

			for (peer = p->peers; skip--;)
				peer = peer->next;
			if (random_u64() % 3)
				kit_peer_leave(peer);
			if (random_u64() % 2)
				kit_peer_send_raw(peer, (const uint8_t *)"\x16\xfe\xfd", 3);
			kit_peer_drop(peer);
		}
		for (peer = p->peers; peer; peer = peer->next) {
			if (!peer->is_connected || peer->is_closed)
				continue;
			if (peer->config.publishes)
				kit_peer_send_frame(peer, random_u64() % 2, 2, 300, NULL);
			else if (random_u64() % 4 == 0)
				kit_peer_pli(peer);
			if (random_u64() % 16 == 0)
				peer->worker ^= 1;
		}
	}
	kit_plane_close(p);
}

static uint64_t sum_of(const counter *slots, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += counter_read(&slots[i]);
	return sum;
}

Test(plane_workers, holds_visits_and_memory_are_counted_and_memory_goes_back_to_nothing)
{
	struct kit_plane *p = kit_plane_open("media:\n  hold_min_viewers: 2\n", 1);
	struct worker_counters *c = &kit_plane_worker(p, 0)->counters;
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *a = kit_peer_join(p, "live", &here);
	struct kit_peer *b = kit_peer_join(p, "live", &here);

	kit_peer_send_frame(source, true, 4, 500, NULL);
	kit_plane_advance(p, 6000000);
	cr_expect_eq(sum_of(c->hold_slots, WORKER_LAG_SLOTS), 1, "one frame of several packets");
	cr_expect_eq(counter_read(&c->visit_slots[2]), 2, "4 packets at once for each of two");
	cr_expect_gt(counter_read(&c->session_bytes), 3 * sizeof(struct session));
	cr_expect_gt(counter_read(&c->branch_bytes), sizeof(struct branch));
	kit_peer_leave(a);
	kit_peer_leave(b);
	kit_peer_leave(source);
	kit_plane_advance(p, 2000000);
	cr_expect_eq(counter_read(&c->session_bytes), 0);
	cr_expect_eq(counter_read(&c->branch_bytes), 0);
	kit_plane_close(p);
}

Test(plane_workers, whoever_changes_its_address_gets_a_key_frame)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct kit_peer *v = kit_peer_join(p, "live", &here);
	unsigned before;

	for (unsigned i = 0; i < 2; i++) {
		struct kit_peer *mover = i ? source : v;

		kit_peer_send_frame(source, true, 1, 500, NULL);
		kit_plane_advance(p, 3000000);
		before = source->plis;
		kit_plane_advance(p, 7000000);
		cr_assert_eq(source->plis, before, "nothing is asked while nobody moves");
		kit_peer_send_frame(source, false, 1, 500, NULL);
		kit_plane_advance(p, 1000);
		mover->addr.port++;
		kit_plane_advance(p, 7000000);
		cr_expect_gt(source->plis, before, "%s", i ? "publisher" : "viewer");
	}
	kit_plane_close(p);
}
