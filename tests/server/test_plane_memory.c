#include <criterion/criterion.h>

#include "tests/fault.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_memory, .timeout = 120);

enum { MOST_CALLS = 2000 };

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};
static const struct kit_peer_config viewer = {
	.audio = true, .video = true, .rtx = true, .worker = 1
};

static size_t write_offer(char *out, const struct kit_plane *p, bool publishes)
{
	struct offer_config offer = {
		.role = publishes ? OFFER_PUBLISH : OFFER_WATCH,
		.audio = true,
		.video = true,
		.rtx = true,
		.ufrag = "abcd",
		.pwd = "a-password-of-the-kit-long",
		.fingerprint = dtls_identity_fingerprint(p->identity),
		.session_id = 1,
		.cname = "kit",
		.msid = "kit",
		.ssrc = { 1, 2 },
		.rtx_ssrc = { 3, 4 },
	};
	int len = offer_write(&offer, out, OFFER_MAX_BYTES);

	cr_assert_gt(len, 0);
	return (size_t)len;
}

/* Each allocation of a POST fails once: the offer is refused or accepted, and nothing is left of one
 * that was refused. */
static void post_without_memory(bool publishes)
{
	static const uint8_t client[16] = { 1 };
	static char text[OFFER_MAX_BYTES];
	struct registry_reply reply = { .status = REGISTRY_FULL };

	for (int calls = 0; reply.status != REGISTRY_OK && calls < MOST_CALLS; calls++) {
		struct kit_plane *p = kit_plane_open("streams:\n  wait_for_publisher: true\n", 1);
		size_t len = write_offer(text, p, publishes);

		fault_after(calls);
		if (publishes)
			registry_publish(p->registry, "live",
					 &(struct registry_offer){ text, len, false }, client,
					 &reply);
		else
			registry_watch(p->registry, "live", text, len, client, &reply);
		fault_after(-1);
		if (reply.status == REGISTRY_OK) {
			cr_expect_gt(calls, 4);
		} else {
			cr_expect_eq(reply.status, REGISTRY_FULL, "call %d", calls);
			cr_expect_null(reply.body);
			cr_expect_eq(p->registry->plan_count, 0, "call %d", calls);
			cr_expect_eq(p->registry->stream_count, 0, "call %d", calls);
			cr_expect_eq(directory_count(p->shared.directory), 0, "call %d", calls);
		}
		free(reply.body);
		kit_plane_close(p);
	}
	cr_expect_eq(reply.status, REGISTRY_OK);
}

Test(plane_memory, an_offer_without_memory_is_refused_and_leaves_nothing)
{
	post_without_memory(true);
	post_without_memory(false);
}

/* Each allocation between the first datagram and the first packet of media fails once: whoever it
 * hits may be refused or late, all others are served, and nothing is left in the end. */
Test(plane_memory, joins_survive_every_failed_allocation)
{
	unsigned made = MOST_CALLS;

	for (unsigned calls = 0; calls < made; calls++) {
		struct kit_plane *p = kit_plane_open("streams:\n  wait_for_publisher: true\n", 2);
		struct kit_peer *source = kit_peer_open(p, "live", &publisher);
		struct kit_peer *v = kit_peer_open(p, "live", &viewer);
		unsigned before = fault_calls();

		fault_after((int)calls);
		kit_plane_advance(p, 700000);
		fault_after(-1);
		if (calls == 0)
			made = fault_calls() - before + 20;
		if (source->is_connected && !source->is_closed) {
			kit_peer_send_frame(source, true, 2, 300, NULL);
			kit_plane_advance(p, 1500000);
			kit_peer_send_frame(source, true, 2, 300, NULL);
			kit_plane_advance(p, 50000);
		}
		if (source->is_connected && v->is_connected && !v->is_closed && !source->is_closed)
			cr_expect_gt(v->packet_count, 0, "call %u", calls);
		kit_peer_leave(source);
		kit_peer_leave(v);
		kit_plane_advance(p, 50000);
		cr_expect_eq(registry_sessions_open(p->registry), 0, "call %u", calls);
		cr_expect_eq(p->registry->stream_count, 0, "call %u", calls);
		kit_plane_close(p);
	}
	cr_expect_gt(made, 50);
}
