/* Sequence numbers that wrap, with losses at each wrap, on the publisher's leg and the viewers'. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "net/random.h"
#include "tests/server/kit_plane.h"

TestSuite(plane_wraps, .timeout = 250);

enum {
	WRAPS = 3,
	PACKETS = WRAPS * 65536 + 2000,
	LOSSY_PKTS = 40,  /* on either side of a wrap */
	SLOW_PKTS = 1000, /* around it, one by one */
	LOOK_BACK_PKTS = 500,
	BATCH_PKTS = 16,
	ASK_MOST = 100,
};

static const struct kit_peer_config publisher = {
	.publishes = true, .audio = true, .video = true, .rtx = true
};

struct watcher {
	struct kit_peer *peer;
	uint64_t first_index;
	unsigned lost, repaired;
	bool has[PACKETS];
};

static struct watcher watchers[2];
static struct kit_rtp lost[1024]; /* by sequence number */
static unsigned lost_count;

/* How far an index is from the nearest wrap of its sequence number. */
static unsigned from_wrap(uint64_t index)
{
	unsigned low = (unsigned)(index & 0xffff);

	return low < 0x8000 ? low : 0x10000 - low;
}

static void send_packet(struct kit_plane *p, struct kit_peer *source, uint32_t n)
{
	struct kit_rtp rtp = {
		.kind = MEDIA_VIDEO,
		.index = source->next_index[MEDIA_VIDEO]++,
		.timestamp = source->timestamp[MEDIA_VIDEO] + n * 90,
		.number = n,
		.bytes = 40,
		.picture_id = (uint16_t)(n & 0x7fff),
		.is_keyframe = n == 0,
		.is_start = true,
		.marker = true,
	};

	if (n > 0 && from_wrap(rtp.index) < LOSSY_PKTS && random_u64() % 10 < 3) {
		lost[rtp.index % 1024] = rtp;
		lost_count++;
	} else {
		kit_peer_send(source, &rtp, false);
	}
	(void)p;
}

static void answer_nacks(struct kit_peer *source)
{
	for (size_t i = 0; i < source->nack_count; i++) {
		const struct kit_rtp *rtp = &lost[source->nacks[i] % 1024];

		cr_assert_eq((uint16_t)rtp->index, source->nacks[i], "was not lost");
		kit_peer_send(source, rtp, rtp->number % 2); /* as RTX, or as it was */
	}
	source->nack_count = 0;
}

static void collect(struct watcher *w)
{
	for (size_t i = 0; i < w->peer->packet_count; i++) {
		const struct kit_packet *k = &w->peer->packets[i];

		if (!w->first_index)
			w->first_index = k->index;
		cr_assert_lt(k->number, PACKETS);
		cr_assert_not(w->has[k->number], "packet %u came twice", k->number);
		if (k->is_rtx)
			cr_assert_eq(k->osn, (uint16_t)(w->first_index + k->number));
		else
			cr_assert_eq(k->index, w->first_index + k->number);
		w->has[k->number] = true;
		w->repaired += k->is_rtx;
	}
	kit_peer_forget(w->peer);
}

static void ask(struct watcher *w, uint32_t n)
{
	uint32_t from = n > LOOK_BACK_PKTS ? n - LOOK_BACK_PKTS : 0;
	uint16_t seqs[ASK_MOST];
	size_t count = 0;

	for (uint32_t i = from; i < n && count < ASK_MOST; i++)
		if (!w->has[i])
			seqs[count++] = (uint16_t)(w->first_index + i);
	if (count)
		kit_peer_nack(w->peer, MEDIA_VIDEO, seqs, count);
}

/* @return whether a wrap is near on any leg: packets go one by one then */
static bool is_slow(const struct kit_peer *source, uint32_t n)
{
	bool slow = from_wrap(source->next_index[MEDIA_VIDEO]) < SLOW_PKTS;

	for (unsigned i = 0; i < 2; i++)
		slow |= from_wrap(watchers[i].first_index + n) < SLOW_PKTS;
	return slow || n > PACKETS - SLOW_PKTS;
}

static void step(struct kit_plane *p, struct kit_peer *source, uint32_t n)
{
	for (unsigned i = 0; i < 2; i++) {
		struct watcher *w = &watchers[i];

		w->peer->is_deaf =
		    from_wrap(w->first_index + n) < LOSSY_PKTS && n > 0 && random_u64() % 10 < 3;
		w->lost += w->peer->is_deaf;
	}
	send_packet(p, source, n);
	kit_plane_settle(p);
	for (unsigned i = 0; i < 2; i++)
		watchers[i].peer->is_deaf = false;
	kit_plane_advance(p, 1000);
	answer_nacks(source);
	for (unsigned i = 0; i < 2; i++) {
		collect(&watchers[i]);
		if (n % 20 == 0)
			ask(&watchers[i], n > 20 ? n - 20 : 0);
	}
}

Test(plane_wraps, repair_and_roll_over_counts_hold_over_three_wraps_with_losses)
{
	struct kit_plane *p = kit_plane_open("", 1);
	struct kit_peer *source = kit_peer_join(p, "live", &publisher);
	uint64_t first;

	for (unsigned i = 0; i < 2; i++) {
		struct kit_peer_config config = { .audio = true, .video = true, .rtx = i == 0 };

		watchers[i].peer = kit_peer_join(p, "live", &config);
	}
	first = source->next_index[MEDIA_VIDEO];
	for (uint32_t n = 0; n < PACKETS; n++) {
		if (n == 0 || is_slow(source, n)) {
			step(p, source, n);
			continue;
		}
		send_packet(p, source, n);
		if (n % BATCH_PKTS == 0)
			kit_plane_advance(p, 1000);
		if (n % 1024 == 0)
			for (unsigned i = 0; i < 2; i++)
				collect(&watchers[i]);
	}
	for (unsigned i = 0; i < 100; i++) {
		kit_plane_advance(p, 30000);
		for (unsigned k = 0; k < 2; k++) {
			collect(&watchers[k]);
			ask(&watchers[k], PACKETS);
		}
	}
	cr_expect_geq((source->next_index[MEDIA_VIDEO] >> 16) - (first >> 16), WRAPS);
	cr_expect_gt(lost_count, WRAPS * LOSSY_PKTS / 4);
	for (unsigned i = 0; i < 2; i++) {
		const struct watcher *w = &watchers[i];
		unsigned missing = 0;

		cr_expect_geq((w->first_index + PACKETS) >> 16, WRAPS);
		cr_expect_gt(w->lost, WRAPS * LOSSY_PKTS / 4);
		for (unsigned k = 0; k < PACKETS; k++)
			missing += !w->has[k];
		cr_expect_eq(missing, 0, "viewer %u: %u never came", i, missing);
		cr_expect_eq(w->peer->verdicts[TRANSPORT_DROP_SRTP_AUTH], 0);
		printf("%s RTX: %u packets, %u lost at wraps, all there\n",
		       w->peer->config.rtx ? "with" : "without", PACKETS, w->lost);
	}
	cr_expect_gt(watchers[0].repaired, 0);
	cr_expect_eq(KIT_SUM(p, verdicts[TRANSPORT_DROP_SRTP_AUTH]), 0);
	printf("%u lost at the publisher's wraps, all repaired\n", lost_count);
	kit_plane_close(p);
}
