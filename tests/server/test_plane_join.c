#include <criterion/criterion.h>

#include "net/random.h"
#include "net/stun.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_join, .timeout = 120);

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };

static struct kit_peer *start_stream(struct kit_plane *p)
{
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);

	kit_plane_advance(p, 10000);
	kit_peer_send_frame(source, true, 2, 500, NULL);
	kit_plane_advance(p, 10000);
	return source;
}

Test(plane_join, media_arrives_in_the_viewers_own_terms)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = start_stream(p);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	const struct negotiated_media *video = &v->terms.media[MEDIA_VIDEO];
	const struct negotiated_media *audio = &v->terms.media[MEDIA_AUDIO];
	size_t videos = 0, audios = 0;

	for (unsigned frame = 0; frame < 10; frame++) {
		kit_peer_send_frame(source, frame == 0, 3, 1000, NULL);
		kit_peer_send_audio(source);
		kit_plane_advance(p, 33333);
	}
	cr_assert_eq(v->packet_count, 40);
	for (size_t i = 0; i < v->packet_count; i++) {
		const struct kit_packet *k = &v->packets[i];
		bool is_video = k->kind == MEDIA_VIDEO;

		cr_expect_eq(k->payload_bytes, is_video ? 1000 : 100);
		cr_expect_eq(k->payload_type, is_video ? OFFER_PT_VP8 : OFFER_PT_OPUS);
		cr_expect_eq(k->ssrc, is_video ? video->remote_ssrc : audio->remote_ssrc);
		cr_expect_neq(k->ssrc, source->ssrc[k->kind], "the publisher's SSRC stays its own");
		if (is_video)
			cr_expect_eq(k->marker, videos % 3 == 2);
		videos += is_video;
		audios += !is_video;
	}
	cr_expect_eq(videos, 30);
	cr_expect_eq(audios, 10);
	/* In order, without a hole, timestamps a frame apart. */
	for (size_t i = 0, last[2] = { SIZE_MAX, SIZE_MAX }; i < v->packet_count; i++) {
		const struct kit_packet *k = &v->packets[i];
		const struct kit_packet *before =
		    last[k->kind] == SIZE_MAX ? NULL : &v->packets[last[k->kind]];

		last[k->kind] = i;
		if (!before)
			continue;
		cr_expect_eq(k->index, before->index + 1);
		if (k->kind == MEDIA_AUDIO)
			cr_expect_eq(k->timestamp, before->timestamp + 960);
		else
			cr_expect_eq(k->timestamp, before->timestamp + (before->marker ? 3000 : 0));
	}
	kit_plane_close(p);
}

Test(plane_join, a_viewer_without_a_publisher_is_refused_or_waits)
{
	static const struct {
		const char *yaml;
		enum registry_status status;
	} rows[] = {
		{ "", REGISTRY_NO_PUBLISHER },
		{ "streams:\n  wait_for_publisher: true\n", REGISTRY_OK },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kit_plane *p = kit_plane_open(rows[i].yaml, 1);
		struct kit_peer *v = kit_peer_open(p, "live", &viewer);
		struct kit_peer *source;

		cr_expect_eq(v->status, rows[i].status);
		if (v->status == REGISTRY_OK) {
			kit_plane_advance(p, 500000);
			cr_assert(v->is_connected);
			source = start_stream(p);
			kit_plane_advance(p, 50000);
			cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 2);
			cr_expect_eq(source->plis, 1);
		}
		cr_expect_eq(p->registry->stream_count, v->status == REGISTRY_OK);
		kit_plane_close(p);
	}
}

Test(plane_join, an_offer_that_is_refused_leaves_no_stream_behind)
{
	struct kit_plane *p = kit_plane_open("streams:\n  wait_for_publisher: true\n", 1);
	static const char text[] = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n";
	static const uint8_t client[16] = { 1 };
	struct registry_reply reply;

	registry_watch(p->registry, "a", text, sizeof(text) - 1, client, &reply);
	cr_expect_neq(reply.status, REGISTRY_OK);
	registry_publish(p->registry, "b",
			 &(struct registry_offer){ text, sizeof(text) - 1, false }, client, &reply);
	cr_expect_neq(reply.status, REGISTRY_OK);
	cr_expect_eq(p->registry->stream_count, 0);
	kit_plane_close(p);
}

Test(plane_join, a_joiner_gets_a_key_frame_asked_for_once_it_is_connected)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = start_stream(p);
	struct kit_peer *v;
	unsigned before;

	kit_plane_advance(p, 3000000);
	before = source->plis;
	v = kit_peer_open(p, "live", &viewer);
	v->is_mute = true;
	kit_plane_advance(p, 1000000);
	cr_expect_eq(source->plis, before, "nothing is asked for a viewer that is not there");
	v->is_mute = false;
	kit_plane_advance(p, 2000000);
	cr_assert(v->is_connected);
	cr_expect_gt(source->plis, before);
	/* Nothing is sent to it before it can begin. */
	kit_peer_send_frame(source, false, 2, 500, NULL);
	kit_plane_advance(p, 10000);
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 0);
	kit_peer_send_frame(source, true, 2, 500, NULL);
	kit_plane_advance(p, 10000);
	cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 2);
	/* It has what it wanted: nobody asks again. */
	before = source->plis;
	kit_plane_advance(p, 3000000);
	cr_expect_eq(source->plis, before);
	kit_plane_close(p);
}

Test(plane_join, joiners_come_back_later_while_too_many_handshakes_wait)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct worker *w = kit_plane_worker(p, 0);
	struct kit_peer *v;

	kit_peer_join(p, "live", &publisher);
	counter_set(&w->counters.handshakes_waiting, REGISTRY_BUSY_STEPS - 1);
	kit_peer_open(p, "live", &viewer);
	counter_set(&w->counters.handshakes_waiting, REGISTRY_BUSY_STEPS);
	v = kit_peer_open(p, "live", &viewer);
	cr_expect_eq(v->status, REGISTRY_FULL);
	counter_set(&w->counters.handshakes_waiting, 0);
	v = kit_peer_open(p, "live", &viewer);
	cr_expect_eq(v->status, REGISTRY_OK);
	kit_plane_close(p);
}

Test(plane_join, a_plan_that_nobody_claims_expires)
{
	struct kit_plane *p = kit_plane_open("session:\n  plan_timeout_ms: 3000\n", 1);
	struct kit_peer *source = kit_peer_open(p, "live", &publisher);

	source->is_mute = true;
	kit_plane_advance(p, 2500000);
	cr_expect_eq(registry_sessions_open(p->registry), 1);
	kit_plane_advance(p, 2500000);
	cr_expect_eq(registry_sessions_open(p->registry), 0);
	cr_expect_eq(p->registry->plans_expired, 1);
	cr_expect_eq(p->registry->stream_count, 0);
	cr_expect_eq(directory_count(p->shared.directory), 0);
	/* Too late. */
	source->is_mute = false;
	kit_plane_advance(p, 2000000);
	cr_expect_eq(KIT_SUM(p, sessions_opened), 0);
	cr_expect_gt(KIT_SUM(p, strangers_unknown), 0);
	kit_plane_close(p);
}

/* How far a session has come when it is deleted. */
enum stage { PLANNED, CLAIMED, STEP_RUNNING, CONNECTED, PLAYING, STAGES };

static void delete_at(enum stage stage, bool publishes)
{
	struct kit_plane *p = kit_plane_open("limits:\n  handshakes_per_worker: 1\n", 1);
	struct loop *loop = kit_plane_worker(p, 0)->loop;
	struct kit_peer *source = start_stream(p);
	struct kit_peer *waiting = NULL, *peer;

	if (stage == STEP_RUNNING)
		kit_loop_hold_work(loop, true);
	peer = kit_peer_open(p, publishes ? "other" : "live", publishes ? &publisher : &viewer);
	if (stage == CLAIMED) {
		kit_loop_round(kit_plane_worker(p, 0)->loop);
		kit_plane_settle(p);
		peer->is_mute = true;
	} else if (stage == STEP_RUNNING) {
		/* One step runs, one waits for its turn. */
		waiting = kit_peer_open(p, "live", &viewer);
		kit_plane_advance(p, 500000);
		cr_assert_eq(kit_loop_works(loop), 1);
		cr_assert_eq(KIT_SUM(p, handshakes_waiting), 1);
	} else if (stage >= CONNECTED) {
		kit_plane_advance(p, 500000);
		cr_assert(peer->is_connected);
		if (stage == PLAYING)
			kit_peer_send_frame(publishes ? peer : source, true, 2, 500, NULL);
	}
	kit_peer_leave(peer);
	if (waiting)
		kit_peer_leave(waiting);
	kit_plane_advance(p, 100000);
	cr_expect_eq(registry_sessions_open(p->registry), 1, "stage %d", stage);
	cr_expect_eq(KIT_SUM(p, sessions), 1, "stage %d", stage);
	kit_loop_hold_work(loop, false);
	kit_plane_advance(p, 100000);
	cr_expect_eq(KIT_SUM(p, handshakes_waiting), 0);
	cr_expect_eq(p->registry->stream_count, 1);
	/* The stream lives on. */
	peer = kit_peer_join(p, "live", &viewer);
	kit_peer_send_frame(source, true, 2, 500, NULL);
	kit_plane_advance(p, 50000);
	cr_expect_eq(kit_peer_count(peer, MEDIA_VIDEO, false), 2, "stage %d", stage);
	kit_plane_close(p);
}

Test(plane_join, a_session_can_be_deleted_at_every_stage)
{
	for (enum stage stage = PLANNED; stage < STAGES; stage++) {
		delete_at(stage, false);
		delete_at(stage, true);
	}
}

Test(plane_join, a_session_that_is_deleted_hears_that_it_is_over)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *v;

	start_stream(p);
	v = kit_peer_join(p, "live", &viewer);
	kit_peer_leave(v);
	kit_plane_settle(p);
	cr_expect_eq(v->byes, 1);
	cr_expect(v->is_closed);
	cr_expect_eq(v->reason, TRANSPORT_CLOSED_BY_PEER);
	kit_plane_close(p);
}

Test(plane_join, nobody_joins_a_worker_that_is_stopping)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct worker *w = kit_plane_worker(p, 0);
	struct kit_peer *source = kit_peer_open(p, "a", &publisher);
	struct kit_peer *late;

	/* A step runs, so that the thread cannot end yet. */
	kit_loop_hold_work(w->loop, true);
	kit_plane_advance(p, 100000);
	cr_assert_eq(kit_loop_works(w->loop), 1);
	late = kit_peer_open(p, "b", &publisher);
	late->is_mute = true;
	kit_plane_advance(p, 100000);
	registry_stop(p->registry, TRANSPORT_CLOSED_SHUTDOWN, NULL, NULL);
	kit_plane_settle(p);
	late->is_mute = false;
	kit_plane_advance(p, 600000);
	cr_expect_eq(KIT_SUM(p, sessions), 0);
	cr_expect_not(source->is_connected);
	cr_expect_not(late->is_connected);
	/* kit_plane_close() stops once more. */
	p->registry->workers_stopped = 0;
	kit_plane_close(p);
}

Test(plane_join, a_client_may_use_its_port_for_a_new_session)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = start_stream(p);

	/* On the same worker, and on another one. */
	for (unsigned worker = 0; worker < 2; worker++) {
		struct kit_peer_config config = viewer;
		struct kit_peer *first = kit_peer_join(p, "live", &config);
		struct kit_peer *second;

		config.worker = worker;
		first->is_mute = true;
		second = kit_peer_open(p, "live", &config);
		second->addr = first->addr;
		transport_destroy(first->transport);
		first->transport = NULL;
		transport_add_remote(
		    second->transport, p->now_us,
		    &(struct net_path){
			.remote = { .ip = { [10] = 0xff, 0xff, 192, 0, 2, 1 }, .port = KIT_PORT },
			.local = second->addr });
		kit_plane_advance(p, 1500000);
		cr_assert(second->is_connected, "worker %u", worker);
		kit_peer_send_frame(source, true, 2, 500, NULL);
		kit_plane_advance(p, 50000);
		cr_expect_eq(kit_peer_count(second, MEDIA_VIDEO, false), 2);
		/* The end of the old one takes nothing from the new one. */
		kit_peer_leave(first);
		kit_plane_advance(p, 50000);
		kit_peer_forget(second);
		kit_peer_send_frame(source, true, 2, 500, NULL);
		kit_plane_advance(p, 50000);
		cr_expect_eq(kit_peer_count(second, MEDIA_VIDEO, false), 2);
		kit_peer_pli(second);
		kit_plane_advance(p, 50000);
		kit_peer_leave(second);
		kit_plane_advance(p, 50000);
	}
	cr_expect_eq(KIT_SUM(p, forwards), 0);
	kit_plane_close(p);
}

Test(plane_join, ice_restarts_before_and_after_the_claim)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = start_stream(p);
	struct kit_peer *v = kit_peer_open(p, "live", &viewer);

	v->is_mute = true;
	kit_plane_advance(p, 200000);
	cr_assert_eq(kit_peer_restart(v), REGISTRY_OK);
	v->is_mute = false;
	kit_plane_advance(p, 1500000);
	cr_assert(v->is_connected, "restart before the claim");
	for (unsigned i = 0; i < 3; i++) {
		v->addr.port++;
		cr_assert_eq(kit_peer_restart(v), REGISTRY_OK);
		kit_plane_advance(p, 1500000);
		kit_peer_forget(v);
		kit_peer_send_frame(source, true, 2, 500, NULL);
		kit_plane_advance(p, 50000);
		cr_expect_eq(kit_peer_count(v, MEDIA_VIDEO, false), 2, "restart %u", i);
	}
	cr_expect_eq(directory_count(p->shared.directory), 3, "former credentials: one set");
	kit_plane_close(p);
}

static size_t forge_check(uint8_t *out, const struct kit_peer *peer, const char *ufrag,
			  const char *pwd)
{
	struct stun_writer w;
	uint8_t transaction[STUN_TRANSACTION_BYTES];

	random_bytes(transaction, sizeof(transaction));
	stun_write_begin(&w, out, KIT_WIRE_BYTES, STUN_REQUEST, transaction);
	stun_write_username(&w, ufrag, peer->local.ufrag);
	stun_write(&w, STUN_USE_CANDIDATE, NULL, 0);
	return stun_write_end(&w, pwd, true);
}

Test(plane_join, strangers_get_silence_and_a_budget)
{
	struct kit_plane *p = kit_plane_open("limits:\n  stun_failures_per_s: 1\n"
					     "  stun_failures_burst: 5\n",
					     1);
	struct kit_peer *v;
	uint8_t bytes[KIT_WIRE_BYTES];
	unsigned checks = 20;
	size_t len;

	start_stream(p);
	v = kit_peer_open(p, "live", &viewer);
	for (unsigned i = 0; i < 300; i++) {
		random_bytes(bytes, sizeof(bytes));
		kit_peer_send_raw(v, bytes, random_u64() % 1400);
	}
	kit_loop_round(kit_plane_worker(p, 0)->loop);
	kit_loop_round(kit_plane_worker(p, 0)->loop);
	cr_expect_eq(KIT_SUM(p, strangers_not_stun), 300);
	/* A right name with a wrong password, a wrong name; more than the budget allows. */
	for (unsigned i = 0; i < checks; i++) {
		len = forge_check(bytes, v, i % 2 ? v->terms.remote_ufrag : "nobody",
				  "not-the-password-of-anybody");
		kit_peer_send_raw(v, bytes, len);
	}
	kit_loop_round(kit_plane_worker(p, 0)->loop);
	cr_expect_eq(KIT_SUM(p, strangers_unknown) + KIT_SUM(p, strangers_bad_integrity), 5);
	cr_expect_eq(KIT_SUM(p, strangers_limited), checks - 5);
	cr_expect_eq(KIT_SUM(p, sessions_opened), 1, "the publisher's");
	cr_expect_null(kit_wire_take(), "silence");
	/* Another address is not punished, and this one not for long. */
	kit_plane_advance(p, 6000000);
	cr_expect(v->is_connected);
	kit_plane_close(p);
}

Test(plane_join, forged_media_moves_counters_alone)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = start_stream(p);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	uint64_t plis = source->plis;
	uint8_t bytes[200] = { 0 };

	for (unsigned i = 0; i < 2000; i++) {
		static const uint8_t types[] = { OFFER_PT_VP8, OFFER_PT_OPUS, 200, 201, 205, 206 };

		random_bytes(bytes, sizeof(bytes));
		bytes[0] = 0x80;
		bytes[1] = types[i % sizeof(types)];
		kit_peer_send_raw(i % 4 < 2 ? source : v, bytes, 20 + i % 180);
		kit_plane_settle(p);
	}
	cr_expect_eq(KIT_SUM(p, verdicts[TRANSPORT_DROP_SRTP_AUTH]) +
			 KIT_SUM(p, verdicts[TRANSPORT_DROP_SRTP_MALFORMED]),
		     2000);
	cr_expect_eq(source->plis, plis);
	cr_expect_eq(v->packet_count, 0);
	kit_peer_send_frame(source, true, 2, 500, NULL);
	kit_plane_advance(p, 50000);
	cr_expect_eq(v->packet_count, 2);
	kit_plane_close(p);
}

/* Whoever can write another client's address on its datagrams may take its place in the table, but
 * not keep it: the next check of the true one takes it back. */
Test(plane_join, an_address_that_another_session_claims_comes_back)
{
	for (unsigned worker = 0; worker < 2; worker++) {
		struct kit_plane *p = kit_plane_open("", 2);
		struct kit_peer *source = start_stream(p);
		struct kit_peer *v = kit_peer_join(p, "live", &viewer);
		struct kit_peer_config config = viewer;
		struct kit_peer *thief;

		config.worker = worker;
		thief = kit_peer_join(p, "live", &config);
		thief->addr = source->addr;
		thief->worker = source->worker;
		source->is_mute = true;
		kit_plane_advance(p, 6100000);
		source->is_mute = false;
		thief->is_mute = true;
		cr_assert_not(source->is_closed);
		kit_peer_send_frame(source, true, 2, 500, NULL);
		kit_plane_advance(p, 10000);
		cr_expect_eq(v->packet_count, 0, "worker %u: it was taken", worker);
		kit_plane_advance(p, 6100000);
		kit_peer_send_frame(source, true, 2, 500, NULL);
		kit_plane_advance(p, 50000);
		cr_expect_geq(v->packet_count, 2, "worker %u", worker);
		kit_plane_close(p);
	}
}

Test(plane_join, without_fast_start_nobody_begins_with_a_key_frame_from_before_it_joined)
{
	struct kit_plane *p = kit_plane_open("media:\n  fast_start: false\n", 1);
	struct kit_peer *source = start_stream(p);
	struct kit_peer *v;

	kit_peer_send_frame(source, true, 2, 500, NULL);
	kit_peer_send_frame(source, false, 2, 500, NULL);
	kit_plane_settle(p);
	(void)kit_peer_join(p, "live", &viewer); /* so that there is a history */
	kit_peer_send_frame(source, true, 2, 500, NULL);
	kit_peer_send_frame(source, false, 2, 500, NULL);
	v = kit_peer_join(p, "live", &viewer);
	kit_peer_send_frame(source, false, 2, 500, NULL);
	kit_plane_advance(p, 10000);
	cr_expect_eq(v->packet_count, 0);
	kit_peer_send_frame(source, true, 2, 500, NULL);
	kit_plane_advance(p, 10000);
	cr_expect_eq(v->packet_count, 2);
	kit_plane_close(p);
}

/* The worker on which the datagrams land forwards for the old session still. */
Test(plane_join, a_port_that_is_forwarded_may_be_used_for_a_new_session)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct kit_peer *source = start_stream(p);
	struct kit_peer *first = kit_peer_join(p, "live", &viewer);
	struct kit_peer_config config = viewer;
	struct kit_peer *second;
	struct net_path path = { .remote = { .ip = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
					     .port = KIT_PORT } };

	first->worker = 1;
	first->addr.port++;
	kit_plane_advance(p, 6100000);
	cr_assert_eq(KIT_SUM(p, forwards), 1);
	first->is_mute = true;
	config.worker = 1;
	second = kit_peer_open(p, "live", &config);
	second->addr = path.local = first->addr;
	transport_destroy(first->transport);
	first->transport = NULL;
	transport_add_remote(second->transport, p->now_us, &path);
	kit_plane_advance(p, 1500000);
	cr_assert(second->is_connected);
	cr_expect_eq(counter_read(&kit_plane_worker(p, 1)->counters.sessions), 1);
	kit_peer_send_frame(source, true, 2, 500, NULL);
	kit_plane_advance(p, 50000);
	cr_expect_eq(kit_peer_count(second, MEDIA_VIDEO, false), 2);
	cr_expect_eq(KIT_SUM(p, forwards), 0);
	kit_plane_close(p);
}

Test(plane_join, header_extensions_are_forwarded_under_the_viewers_ids)
{
	struct kit_plane *p = kit_plane_open("media:\n  fast_start: false\n", 1);
	struct kit_peer *source = start_stream(p);
	struct kit_peer *v = kit_peer_join(p, "live", &viewer);
	const struct negotiated_media *terms = &source->terms.media[MEDIA_AUDIO];
	const struct ext_element levels[] = {
		{ (const uint8_t[]){ 0x80 | 30 }, 1, terms->extensions.id_of[EXT_AUDIO_LEVEL] },
	};
	uint8_t bytes[200] = { 0 };
	struct rtp_header header = {
		.timestamp = 1,
		.ssrc = source->ssrc[MEDIA_AUDIO],
		.payload_type = terms->codecs[0].pt,
		.has_extension = true,
	};

	cr_assert_neq(levels[0].id, 0);
	cr_assert_neq(v->terms.media[MEDIA_AUDIO].extensions.id_of[EXT_AUDIO_LEVEL], 0);
	for (unsigned i = 0; i < 3; i++) {
		rtp_header_write(bytes, &header);
		cr_assert_eq(ext_block_write(bytes + RTP_HEADER_BYTES, 8, levels, 1), 0);
		cr_assert(kit_peer_send_plain(source, bytes, 120, 1000 + i));
		kit_plane_advance(p, 20000);
	}
	cr_assert_eq(v->packet_count, 3);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect(ext_has(&v->packets[i].ext, EXT_AUDIO_LEVEL));
		cr_expect_eq(v->packets[i].ext.audio_level_dbov, 30);
		cr_expect(v->packets[i].ext.audio_is_voice);
		cr_expect_eq(v->packets[i].payload_bytes, 120 - 20);
		cr_expect_not(ext_has(&v->packets[i].ext, EXT_MID));
	}
	kit_plane_close(p);
}
