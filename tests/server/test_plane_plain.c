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

static int open_input(struct kit_plane *p, const char *source, struct registry_reply *reply)
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
