#include "tests/server/kit_link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtcp.h"
#include "media/twcc_arrivals.h"

enum { ON_THE_WAY = 8192, REPORT_US = 1000000, RTCP_BYTES = 1000 };

struct kit_link {
	struct kit_between between;
	struct kit_peer *viewer;
	struct impair_flow flow;
	struct impair_queue *queue;
	struct twcc_arrivals *arrivals;
	bool is_silent;
	uint64_t report_due_us;
	uint64_t received_bytes; /* since the last report */
	uint64_t measured_us, measured_bytes;
	uint32_t *delays_us;
	size_t delay_count;
};

/* A datagram travels with the time it was sent at in front. */
struct parcel {
	uint64_t sent_us;
	struct kit_datagram datagram;
};

static void take(void *arg, const struct kit_datagram *d)
{
	struct kit_link *l = arg;
	struct parcel parcel = { l->viewer->plane->now_us, *d };
	struct impair_fate fate = impair_flow_on_datagram(&l->flow, parcel.sent_us, d->len);

	if (fate.verdict == IMPAIR_PASSED)
		assert(impair_queue_push(l->queue, fate.due_us, NULL, (const uint8_t *)&parcel,
					 sizeof(parcel)) == 0);
}

static void deliver(struct kit_link *l, const struct parcel *parcel)
{
	size_t before = l->viewer->packet_count;
	uint64_t took_us = l->viewer->plane->now_us - parcel->sent_us;
	uint64_t way_us = l->flow.profile.delay_us;

	if (l->delay_count < KIT_LINK_DELAYS)
		l->delays_us[l->delay_count++] =
		    (uint32_t)(took_us > way_us ? took_us - way_us : 0);
	l->received_bytes += parcel->datagram.len;
	l->measured_bytes += parcel->datagram.len;
	kit_peer_receive(l->viewer, &parcel->datagram);
	for (size_t i = before; i < l->viewer->packet_count; i++) {
		const struct kit_packet *p = &l->viewer->packets[i];

		if (ext_has(&p->ext, EXT_TRANSPORT_CC))
			twcc_arrivals_on_packet(l->arrivals, p->ext.transport_seq, p->at_us);
	}
}

/* What fills the last word is counted as padding, as libwebrtc does it. */
static void count_fill(uint8_t *bytes, size_t len)
{
	struct rtcp_cursor members;
	struct rtcp_twcc_cursor cursor;
	struct rtcp_twcc_status status;
	struct rtcp_feedback fb;
	struct rtcp_member m;

	rtcp_cursor_init(&members, bytes, len);
	assert(rtcp_cursor_next(&members, &m) == RTCP_NEXT_MEMBER);
	assert(rtcp_parse_feedback(&m, &fb) && rtcp_twcc_init(&cursor, &fb));
	while (rtcp_twcc_next(&cursor, &status))
		;
	if (cursor.delta == bytes + len)
		return;
	bytes[0] |= 0x20;
	bytes[len - 1] = (uint8_t)(bytes + len - cursor.delta);
}

static bool send_feedback(struct kit_link *l)
{
	uint8_t bytes[RTCP_BYTES];
	struct rtcp_writer w;

	if (twcc_arrivals_deadline_us(l->arrivals) > l->viewer->plane->now_us)
		return false;
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	assert(twcc_arrivals_write(l->arrivals, &w, 2,
				   l->viewer->terms.media[MEDIA_VIDEO].remote_ssrc) > 0);
	count_fill(bytes, w.len_bytes);
	if (!l->is_silent)
		kit_peer_send_rtcp(l->viewer, bytes, w.len_bytes);
	return true;
}

static bool send_report(struct kit_link *l)
{
	uint32_t ssrc = l->viewer->terms.media[MEDIA_VIDEO].remote_ssrc;
	struct rtcp_report report = { .ssrc = ssrc };
	uint8_t bytes[RTCP_BYTES];
	struct rtcp_writer w;

	if (l->viewer->plane->now_us < l->report_due_us || !l->viewer->transport->tx)
		return false;
	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_rr(&w, 2, &report, 1);
	if (l->viewer->config.remb)
		rtcp_write_remb(&w, 2, l->received_bytes * 12, &ssrc, 1);
	kit_peer_send_rtcp(l->viewer, bytes, w.len_bytes);
	l->received_bytes = 0;
	l->report_due_us += REPORT_US;
	return true;
}

static bool run(void *arg)
{
	struct kit_link *l = arg;
	struct impair_item item;
	bool any = false;

	for (; impair_queue_pop(l->queue, l->viewer->plane->now_us, &item); any = true) {
		struct parcel parcel;

		memcpy(&parcel, item.bytes, sizeof(parcel));
		free(item.bytes);
		deliver(l, &parcel);
	}
	any |= send_feedback(l);
	any |= send_report(l);
	return any;
}

static uint64_t due_us(const void *arg)
{
	const struct kit_link *l = arg;
	uint64_t due = impair_queue_deadline_us(l->queue);

	if (twcc_arrivals_deadline_us(l->arrivals) < due)
		due = twcc_arrivals_deadline_us(l->arrivals);
	return l->report_due_us < due ? l->report_due_us : due;
}

struct kit_link *kit_link_create(struct kit_peer *viewer, const struct impair_profile *profile,
				 uint64_t seed)
{
	struct kit_link *l = calloc(1, sizeof(*l));
	int err;

	assert(l);
	l->viewer = viewer;
	l->between = (struct kit_between){ take, run, due_us, l };
	l->delays_us = calloc(KIT_LINK_DELAYS, sizeof(*l->delays_us));
	err = impair_queue_create(&l->queue, ON_THE_WAY);
	assert(l->delays_us && err == 0);
	err = twcc_arrivals_create(&l->arrivals);
	assert(err == 0);
	impair_flow_init(&l->flow, profile, seed);
	l->report_due_us = viewer->plane->now_us + REPORT_US;
	l->measured_us = viewer->plane->now_us;
	viewer->between = &l->between;
	return l;
}

void kit_link_destroy(struct kit_link *l)
{
	l->viewer->between = NULL;
	twcc_arrivals_destroy(l->arrivals);
	impair_queue_destroy(l->queue);
	free(l->delays_us);
	free(l);
}

void kit_link_set(struct kit_link *l, const struct impair_profile *profile)
{
	l->flow.profile = *profile;
}

void kit_link_silence(struct kit_link *l)
{
	l->is_silent = true;
}

static int by_size(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

uint32_t kit_link_queued_us(struct kit_link *l, unsigned percent)
{
	uint32_t delay_us = 0;

	qsort(l->delays_us, l->delay_count, sizeof(l->delays_us[0]), by_size);
	if (l->delay_count)
		delay_us = l->delays_us[(l->delay_count - 1) * percent / 100];
	l->delay_count = 0;
	return delay_us;
}

uint64_t kit_link_rate_bps(struct kit_link *l)
{
	uint64_t passed_us = l->viewer->plane->now_us - l->measured_us;
	uint64_t bps = passed_us ? l->measured_bytes * 8 * 1000000 / passed_us : 0;

	l->measured_us = l->viewer->plane->now_us;
	l->measured_bytes = 0;
	return bps;
}
