#include <criterion/criterion.h>
#include <string.h>

#include "server/session.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_plain, .timeout = 120);

enum { VIDEO_TYPE = 96, AUDIO_TYPE = 97, PORT = 20000, SSRC = 0x1234, PAYLOAD_BYTES = 40 };

static const char description[] =
    "v=0\r\no=- 0 0 IN IP4 203.0.113.9\r\ns=x\r\nc=IN IP4 203.0.113.9\r\nt=0 0\r\n"
    "m=video 20000 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n"
    "m=audio 20002 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\n";

static const struct kit_peer_config viewer = { .audio = true, .video = true, .rtx = true };
static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};

struct feeder {
	struct kit_plane *plane;
	struct net_addr addr; /* of its video: audio one above 2, RTCP one above each */
	uint16_t seq[2];
	uint32_t timestamp;
	unsigned plis, reports; /* that came to where RTCP comes from */
};

static enum registry_status open_input(struct kit_plane *p, const char *source,
				       struct registry_reply *reply)
{
	struct registry_input ask = { description, strlen(description), source };

	registry_open_input(p->registry, "live", &ask, reply);
	free(reply->body);
	reply->body = NULL;
	kit_plane_settle(p);
	return reply->status;
}

static void on_datagram(void *arg, const struct kit_datagram *d)
{
	struct feeder *f = arg;
	struct rtcp_cursor cursor;
	struct rtcp_member m;

	if (!net_addr_is_same_ip(&d->path.remote, &f->addr))
		return;
	rtcp_cursor_init(&cursor, d->bytes, d->len);
	while (rtcp_cursor_next(&cursor, &m) == RTCP_NEXT_MEMBER) {
		f->plis += m.kind == RTCP_PLI && d->path.remote.port == f->addr.port + 1;
		f->reports += m.kind == RTCP_RR;
	}
}

static void feeder_init(struct feeder *f, struct kit_plane *p)
{
	*f = (struct feeder){ .plane = p, .timestamp = 1000 };
	cr_assert_eq(net_addr_parse(&f->addr, "203.0.113.9:40000"), 0);
	p->on_datagram = on_datagram;
	p->on_datagram_arg = f;
}

/* Sockets are opened in this order: the workers', then audio, its RTCP, video, its RTCP. */
static int fd_of(const struct feeder *f, enum media_kind kind, bool is_rtcp)
{
	return kit_wire_fd(f->plane->shared.workers + 2 * (unsigned)kind + is_rtcp);
}

static void arrive(struct feeder *f, enum media_kind kind, bool is_rtcp, const uint8_t *bytes,
		   size_t len)
{
	struct net_path path = { .remote = f->addr, .local = kit_relay_addr };

	path.remote.port = (uint16_t)(f->addr.port + (kind == MEDIA_AUDIO ? 2 : 0) + is_rtcp);
	cr_assert(kit_wire_arrive(fd_of(f, kind, is_rtcp), &path, bytes, len));
	kit_plane_settle(f->plane);
}

static void send_rtp(struct feeder *f, enum media_kind kind, bool is_keyframe)
{
	uint8_t bytes[12 + PAYLOAD_BYTES] = { 0x80 };

	bytes[1] = kind == MEDIA_AUDIO ? AUDIO_TYPE : 0x80 | VIDEO_TYPE;
	be16_write(bytes + 2, f->seq[kind]++);
	be32_write(bytes + 4, f->timestamp);
	be32_write(bytes + 8, SSRC + (uint32_t)kind);
	if (kind == MEDIA_VIDEO) {
		bytes[12] = 0x10; /* VP8: start of a partition */
		bytes[13] = is_keyframe ? 0x00 : 0x01;
		memcpy(bytes + 16, "\x9d\x01\x2a\x40\x01\xb4\x00", 7);
	}
	arrive(f, kind, false, bytes, sizeof(bytes));
}

static void send_frames(struct feeder *f, unsigned count, bool starts_with_keyframe)
{
	for (unsigned i = 0; i < count; i++) {
		f->timestamp += 3000;
		send_rtp(f, MEDIA_VIDEO, i == 0 && starts_with_keyframe);
		send_rtp(f, MEDIA_AUDIO, false);
		kit_plane_advance(f->plane, 33333);
	}
}

static void send_report(struct feeder *f)
{
	uint8_t bytes[200];
	struct rtcp_writer w;
	struct rtcp_sender_info info = { .ntp = 1, .rtp_timestamp = f->timestamp };

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_sr(&w, SSRC + MEDIA_VIDEO, &info, NULL, 0);
	arrive(f, MEDIA_VIDEO, true, bytes, w.len_bytes);
}

Test(plane_plain, what_a_plain_sender_sends_is_watched_from_its_first_key_frame)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct registry_reply reply;
	struct feeder f;
	struct kit_peer *v;

	feeder_init(&f, p);
	cr_assert_eq(open_input(p, NULL, &reply), REGISTRY_OK, "%s", reply.reason);
	cr_expect_eq(registry_sessions_open(p->registry), 0, "nobody waits for its end");
	send_frames(&f, 3, true);
	cr_expect_eq(KIT_SUM(p, rtp_unfed), 0, "held until the feed was there");
	v = kit_peer_join(p, "live", &viewer);
	send_frames(&f, 10, false);
	cr_expect_geq(kit_peer_count(v, MEDIA_VIDEO, false), 12u, "the first key frame was kept");
	cr_expect_geq(kit_peer_count(v, MEDIA_AUDIO, false), 9u);
	cr_expect_eq(registry_close_input(p->registry, "live"), REGISTRY_OK);
	kit_plane_settle(p);
	cr_expect_eq(registry_close_input(p->registry, "live"), REGISTRY_NOT_FOUND);
	kit_plane_close(p);
}

Test(plane_plain, a_source_with_an_address_for_rtcp_is_asked_for_key_frames)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct registry_reply reply;
	struct feeder f;
	struct kit_peer *v;

	feeder_init(&f, p);
	cr_assert_eq(open_input(p, NULL, &reply), REGISTRY_OK);
	send_frames(&f, 90, true);
	v = kit_peer_join(p, "live", &viewer);
	kit_peer_pli(v);
	kit_plane_advance(p, 1000000);
	cr_expect_eq(f.plis + f.reports, 0);
	cr_expect_gt(KIT_SUM(p, plain_unaddressed), 0);
	send_report(&f);
	kit_peer_pli(v);
	kit_plane_advance(p, 2000000);
	cr_expect_gt(f.plis, 0);
	cr_expect_gt(f.reports, 0);
	kit_plane_close(p);
}

Test(plane_plain, packets_from_elsewhere_change_nothing)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct registry_reply reply;
	struct feeder f, stranger;

	feeder_init(&f, p);
	cr_assert_eq(open_input(p, NULL, &reply), REGISTRY_OK);
	stranger = f;
	stranger.addr.ip[15]++;
	send_frames(&stranger, 5, true);
	cr_expect_null(registry_find_stream(p->registry, "live")->publisher);
	cr_expect_eq(KIT_SUM(p, verdicts[TRANSPORT_DROP_WRONG_SOURCE]), 10);
	send_frames(&f, 5, true);
	cr_expect_not_null(registry_find_stream(p->registry, "live")->publisher);
	send_frames(&stranger, 5, true);
	cr_expect_eq(KIT_SUM(p, packets_in), 10);
	kit_plane_close(p);
}

Test(plane_plain, after_silence_the_ports_wait_again)
{
	struct kit_plane *p = kit_plane_open("session:\n  media_timeout_ms: 1000\n", 1);
	struct registry_reply reply;
	struct plan *first;
	struct feeder f;
	uint64_t number;

	feeder_init(&f, p);
	cr_assert_eq(open_input(p, NULL, &reply), REGISTRY_OK);
	number = reply.number;
	send_frames(&f, 5, true);
	first = registry_plain_input(p->registry, "live");
	cr_assert(first && first->number == number);
	kit_plane_advance(p, 5000000);
	first = registry_plain_input(p->registry, "live");
	cr_assert(first && first->number != number);
	cr_expect_eq(atomic_load(&first->state), PLAN_CONNECTING);
	cr_expect_eq(first->plain->terms.legs[1].port, PORT);
	kit_plane_close(p);
}

Test(plane_plain, a_publisher_that_takes_over_ends_it)
{
	struct kit_plane *p = kit_plane_open("", 2);
	struct registry_reply reply;
	struct kit_peer *other;
	struct feeder f;

	feeder_init(&f, p);
	cr_assert_eq(open_input(p, NULL, &reply), REGISTRY_OK);
	cr_expect_eq(open_input(p, NULL, &reply), REGISTRY_TAKEN, "one a stream");
	send_frames(&f, 5, true);
	other = kit_peer_join(p, "live", &publisher);
	kit_plane_advance(p, 1000000);
	cr_expect_null(registry_plain_input(p->registry, "live"));
	cr_expect(other->is_connected && !other->is_closed);
	kit_plane_close(p);
}

Test(plane_plain, limits_are_kept)
{
	struct kit_plane *p = kit_plane_open("rtp:\n  inputs: 0\n", 1);
	struct registry_reply reply;

	cr_expect_eq(open_input(p, NULL, &reply), REGISTRY_FULL);
	cr_expect_null(registry_find_stream(p->registry, "live"));
	kit_plane_close(p);
	p = kit_plane_open("rtp:\n  port_min: 30000\n  port_max: 30001\n", 1);
	cr_expect_eq(open_input(p, NULL, &reply), REGISTRY_FULL, "one pair for two legs");
	cr_expect_eq(open_input(p, "nonsense", &reply), REGISTRY_UNACCEPTABLE);
	kit_plane_close(p);
}

/* --- targets ------------------------------------------------------------------------------ */

enum { TARGET_VIDEO = 6000, TARGET_AUDIO = 6002 };

struct target {
	struct net_addr addr;
	bool is_mux;
	unsigned rtp[NEGOTIATED_KINDS], sender_reports, byes, elsewhere;
	uint32_t ssrc[NEGOTIATED_KINDS];
	uint16_t first, last; /* of the video */
};

static void note_media(struct target *t, const struct kit_datagram *d, unsigned kind)
{
	struct rtp_packet rtp;

	cr_assert_eq(rtp_parse(d->bytes, d->len, &rtp), RTP_OK);
	cr_expect_eq(rtp.payload_type, kind == MEDIA_AUDIO ? AUDIO_TYPE : VIDEO_TYPE);
	cr_expect(t->rtp[kind] == 0 || t->ssrc[kind] == rtp.ssrc);
	if (kind == MEDIA_VIDEO) {
		cr_expect(t->rtp[kind] == 0 || rtp.seq == (uint16_t)(t->last + 1) ||
			      rtp.seq == t->first,
			  "in order, or the one asked for again");
		if (t->rtp[kind] == 0)
			t->first = rtp.seq;
		t->last = rtp.seq > t->last || t->rtp[kind] == 0 ? rtp.seq : t->last;
	}
	t->ssrc[kind] = rtp.ssrc;
	t->rtp[kind]++;
}

static void on_target(void *arg, const struct kit_datagram *d)
{
	struct target *t = arg;
	struct rtcp_cursor cursor;
	struct rtcp_member m;

	if (!net_addr_is_same_ip(&d->path.remote, &t->addr))
		return;
	if (d->bytes[1] < 192 || d->bytes[1] > 223) {
		note_media(t, d, d->path.remote.port == TARGET_AUDIO ? MEDIA_AUDIO : MEDIA_VIDEO);
		return;
	}
	t->elsewhere += d->path.remote.port != (t->is_mux ? TARGET_VIDEO : TARGET_VIDEO + 1) &&
			d->path.remote.port != TARGET_AUDIO + 1;
	rtcp_cursor_init(&cursor, d->bytes, d->len);
	while (rtcp_cursor_next(&cursor, &m) == RTCP_NEXT_MEMBER) {
		t->sender_reports += m.kind == RTCP_SR;
		t->byes += m.kind == RTCP_BYE;
	}
}

static enum registry_status open_output(struct kit_plane *p, const struct registry_output *ask,
					struct registry_reply *reply)
{
	registry_open_output(p->registry, "live", ask, reply);
	free(reply->body);
	reply->body = NULL;
	kit_plane_settle(p);
	return reply->status;
}

static void target_init(struct target *t, struct kit_plane *p)
{
	*t = (struct target){ .rtp = { 0 } };
	cr_assert_eq(net_addr_parse_ip(&t->addr, "198.51.100.5"), 0);
	p->on_datagram = on_target;
	p->on_datagram_arg = t;
}

static const char allowed[] = "rtp:\n  allow_out: [198.51.100.0/24]\n";
static const struct registry_output both = { "198.51.100.5", TARGET_AUDIO, TARGET_VIDEO, false };

static void publish_second(struct kit_plane *p, struct kit_peer *source, bool starts)
{
	for (unsigned i = 0; i < 30; i++) {
		kit_peer_send_frame(source, starts && i == 0, 2, 700, NULL);
		kit_peer_send_audio(source);
		kit_plane_advance(p, 33333);
	}
}

/* The target's RTCP of its video reaches the last socket that was opened. */
static void target_sends(struct kit_plane *p, const struct target *t, const struct rtcp_writer *w)
{
	struct net_path path = { .remote = t->addr, .local = kit_relay_addr };

	path.remote.port = TARGET_VIDEO + 1;
	cr_assert(kit_wire_arrive(kit_wire_fd(p->shared.workers + 3), &path, w->out, w->len_bytes));
	kit_plane_settle(p);
}

Test(plane_plain, a_target_gets_the_stream_and_is_heard)
{
	struct kit_plane *p = kit_plane_open(allowed, 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct registry_reply reply;
	uint8_t bytes[100];
	struct rtcp_writer w;
	unsigned plis;
	struct target t;

	target_init(&t, p);
	publish_second(p, source, true);
	cr_assert_eq(open_output(p, &both, &reply), REGISTRY_OK, "%s", reply.reason);
	publish_second(p, source, true);
	cr_expect_geq(t.rtp[MEDIA_VIDEO], 55u);
	cr_expect_geq(t.rtp[MEDIA_AUDIO], 25u);
	cr_expect_eq(t.elsewhere, 0);

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_nack(&w, 7, t.ssrc[MEDIA_VIDEO], &t.first, 1);
	plis = t.rtp[MEDIA_VIDEO];
	kit_plane_advance(p, 200000);
	target_sends(p, &t, &w);
	cr_expect_eq(t.rtp[MEDIA_VIDEO], plis + 1, "what it missed comes again");
	plis = source->plis;
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_pli(&w, 7, t.ssrc[MEDIA_VIDEO]);
	target_sends(p, &t, &w);
	kit_plane_advance(p, 1000000);
	cr_expect_gt(source->plis, plis, "its wish for a key frame is passed on");

	cr_expect_eq(registry_close_output(p->registry, "other", reply.number), REGISTRY_NOT_FOUND);
	cr_expect_eq(registry_close_output(p->registry, "live", reply.number), REGISTRY_OK);
	kit_plane_settle(p);
	cr_expect_eq(t.byes, 2, "one a leg");
	plis = t.rtp[MEDIA_VIDEO];
	publish_second(p, source, true);
	cr_expect_eq(t.rtp[MEDIA_VIDEO], plis, "nothing more");
	kit_plane_close(p);
}

Test(plane_plain, a_target_that_cannot_ask_gets_key_frames_from_time_to_time)
{
	struct kit_plane *p = kit_plane_open(allowed, 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	struct registry_reply reply;
	struct target t;
	unsigned before;

	target_init(&t, p);
	publish_second(p, source, true);
	cr_assert_eq(open_output(p, &both, &reply), REGISTRY_OK);
	publish_second(p, source, true);
	before = source->plis;
	for (unsigned i = 0; i < 12; i++)
		publish_second(p, source, true);
	cr_expect_geq(source->plis, before + 2);
	kit_plane_close(p);
}

Test(plane_plain, nothing_goes_where_the_configuration_does_not_allow)
{
	static const struct {
		const char *name;
		struct registry_output ask;
		enum registry_status status;
	} rows[] = {
		{ "another network",
		  { "198.51.101.5", 0, TARGET_VIDEO, false },
		  REGISTRY_FORBIDDEN },
		{ "loopback", { "127.0.0.1", 0, TARGET_VIDEO, false }, REGISTRY_FORBIDDEN },
		{ "mapped", { "::ffff:127.0.0.1", 0, TARGET_VIDEO, false }, REGISTRY_FORBIDDEN },
		{ "any", { "0.0.0.0", 0, TARGET_VIDEO, false }, REGISTRY_UNACCEPTABLE },
		{ "a name", { "localhost", 0, TARGET_VIDEO, false }, REGISTRY_UNACCEPTABLE },
		{ "no port", { "198.51.100.5", 0, 0, false }, REGISTRY_UNACCEPTABLE },
		{ "no port for RTCP", { "198.51.100.5", 0, 65535, false }, REGISTRY_UNACCEPTABLE },
		{ "RTCP on the last", { "198.51.100.5", 0, 65535, true }, REGISTRY_OK },
	};
	struct kit_plane *p = kit_plane_open(allowed, 1);
	struct registry_reply reply;
	struct kit_peer *source;

	cr_expect_eq(open_output(p, &both, &reply), REGISTRY_NO_PUBLISHER);
	source = kit_peer_join(p, "live", &publisher);
	publish_second(p, source, true);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(open_output(p, &rows[i].ask, &reply), rows[i].status, "%s: %s",
			     rows[i].name, reply.reason);
	kit_plane_close(p);
	p = kit_plane_open("", 1);
	source = kit_peer_join(p, "live", &publisher);
	publish_second(p, source, true);
	cr_expect_eq(open_output(p, &both, &reply), REGISTRY_FORBIDDEN, "none by default");
	kit_plane_close(p);
}

Test(plane_plain, plain_in_goes_plain_out)
{
	struct kit_plane *p = kit_plane_open(allowed, 2);
	const struct registry_output one = { "198.51.100.5", 0, TARGET_VIDEO, true };
	struct registry_reply reply;
	struct feeder f;
	struct target t;

	feeder_init(&f, p);
	cr_assert_eq(open_input(p, NULL, &reply), REGISTRY_OK);
	send_frames(&f, 5, true);
	target_init(&t, p);
	t.is_mux = true;
	cr_assert_eq(open_output(p, &one, &reply), REGISTRY_OK, "%s", reply.reason);
	send_frames(&f, 20, true);
	cr_expect_geq(t.rtp[MEDIA_VIDEO], 20u);
	cr_expect_eq(t.rtp[MEDIA_AUDIO], 0, "it was not asked for");
	cr_expect_eq(t.elsewhere, 0);
	kit_plane_close(p);
}
