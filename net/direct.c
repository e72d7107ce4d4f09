/* net/direct.c - see direct.h for the contract. */
#include "net/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	RTP_MIN_BYTES = 12,
	RTCP_MIN_BYTES = 8,
	VERSION_2 = 2,
	RTCP_FIRST_TYPE = 192, /* RFC 5761 section 4 */
	RTCP_LAST_TYPE = 223,
};

struct leg {
	struct direct_leg out;
	struct direct_leg_config config;
	uint64_t heard_us; /* RTP that counted, last; 0: never */
};

struct direct {
	struct transport t; /* first: what callers hold */
	bool sends;
	bool wants_connected, has_moved, has_told_closed;
	uint64_t connected_us, authentic_us;
	uint8_t leg_count;
	struct leg legs[DIRECT_LEGS];
};

static struct direct *of(struct transport *t)
{
	return (struct direct *)t;
}

static const struct direct *of_const(const struct transport *t)
{
	return (const struct direct *)t;
}

int direct_create(struct transport **out, const struct direct_config *config)
{
	struct direct *d = calloc(1, sizeof(*d));
	int err = d ? 0 : -ENOMEM;

	*out = NULL;
	if (!d)
		return err;
	lifetime_init(&d->t.life);
	transport_count_direct(1);
	d->t.is_direct = true;
	d->sends = config->sends;
	d->wants_connected = config->sends;
	d->leg_count = config->leg_count;
	for (unsigned i = 0; i < d->leg_count && !err; i++) {
		struct leg *leg = &d->legs[i];

		leg->config = config->legs[i];
		leg->out.rtp.remote = leg->config.rtp_to;
		leg->out.rtcp.remote = leg->config.rtcp_to;
		err = seal_tx_create_plain(&leg->out.tx, config->engine);
	}
	if (err) {
		direct_destroy(&d->t);
		return err;
	}
	d->t.tx = d->legs[0].out.tx;
	d->t.path = d->legs[0].out.rtp;
	*out = &d->t;
	return 0;
}

void direct_destroy(struct transport *t)
{
	struct direct *d = of(t);

	for (unsigned i = 0; i < d->leg_count; i++)
		seal_tx_destroy(d->legs[i].out.tx);
	transport_count_direct(-1);
	free(d);
}

/* --- input ----------------------------------------------------------------------------- */

static bool is_from(const struct leg *leg, const struct net_path *path)
{
	return net_addr_is_any(&leg->config.source) ||
	       net_addr_is_same_ip(&leg->config.source, &path->remote);
}

static bool may_fix(const struct leg *leg, const uint8_t *bytes)
{
	unsigned type = bytes[1] & 0x7f;

	return leg->config.types[type / 8] >> type % 8 & 1;
}

/* The source's port is known, or becomes known by this packet. */
static bool follow_source(struct direct *d, struct leg *leg, uint64_t now_us,
			  const struct net_path *path, const uint8_t *bytes)
{
	struct net_path *known = &leg->out.rtp;

	if (d->sends)
		return false; /* a target sends reports, no media */
	if (known->remote.port && net_addr_is_equal(&known->remote, &path->remote))
		return true;
	if (!may_fix(leg, bytes) || (known->remote.port && now_us - leg->heard_us < DIRECT_MOVE_US))
		return false;
	d->has_moved = known->remote.port != 0;
	*known = *path;
	leg->config.source = path->remote;
	for (unsigned i = 0; i < d->leg_count; i++) /* all legs are one sender's */
		if (net_addr_is_any(&d->legs[i].config.source))
			d->legs[i].config.source = path->remote;
	if (leg->config.rtcp_mux)
		leg->out.rtcp = *path;
	if (leg == &d->legs[0] || d->t.path.remote.port == 0) {
		d->t.path = *path;
		d->t.path_serial++;
	}
	d->wants_connected = d->connected_us == 0;
	return true;
}

static enum transport_verdict on_rtcp(struct leg *leg, const struct net_path *path)
{
	/* The first valid media decides who the source is. */
	if (net_addr_is_any(&leg->config.source) || !is_from(leg, path))
		return TRANSPORT_DROP_WRONG_SOURCE;
	if (leg->config.rtcp_to.port == 0)
		leg->out.rtcp = *path;
	return TRANSPORT_RTCP;
}

enum transport_verdict direct_on_datagram(struct transport *t, uint64_t now_us,
					  struct direct_port port, const struct net_path *path,
					  const uint8_t *bytes, size_t len)
{
	struct direct *d = of(t);
	struct leg *leg = &d->legs[port.leg];
	enum transport_verdict verdict = TRANSPORT_RTP;

	if (lifetime_is_closed(&t->life))
		return TRANSPORT_DROP_CLOSED;
	if (len < RTCP_MIN_BYTES || bytes[0] >> 6 != VERSION_2)
		return TRANSPORT_DROP_UNKNOWN_PROTOCOL;
	if (port.is_rtcp || (bytes[1] >= RTCP_FIRST_TYPE && bytes[1] <= RTCP_LAST_TYPE))
		verdict = on_rtcp(leg, path);
	else if (len < RTP_MIN_BYTES)
		verdict = TRANSPORT_DROP_UNKNOWN_PROTOCOL;
	else if (!is_from(leg, path) || !follow_source(d, leg, now_us, path, bytes))
		verdict = TRANSPORT_DROP_WRONG_SOURCE;
	if (verdict == TRANSPORT_RTP)
		leg->heard_us = now_us;
	if (verdict == TRANSPORT_RTP || verdict == TRANSPORT_RTCP)
		d->authentic_us = now_us;
	return verdict;
}

const struct direct_leg *direct_leg(const struct transport *t, unsigned leg)
{
	return &of_const(t)->legs[leg].out;
}

unsigned direct_leg_count(const struct transport *t)
{
	return of_const(t)->leg_count;
}

/* --- output ---------------------------------------------------------------------------- */

static void notify(struct direct *d, struct transport_output *out, enum transport_event event)
{
	out->kind = TRANSPORT_NOTIFY;
	out->event = event;
	out->path = d->t.path;
}

void direct_poll(struct transport *t, struct transport_output *out)
{
	struct direct *d = of(t);

	out->kind = TRANSPORT_IDLE;
	out->deadline_us = UINT64_MAX;
	if (lifetime_is_closed(&t->life)) {
		if (d->has_told_closed)
			return;
		d->has_told_closed = true;
		lifetime_acknowledge(&t->life);
		notify(d, out, TRANSPORT_CLOSED);
		out->reason = (enum transport_reason)lifetime_reason(&t->life);
	} else if (d->wants_connected) {
		d->wants_connected = false;
		d->connected_us = d->authentic_us ? d->authentic_us : 1;
		notify(d, out, TRANSPORT_CONNECTED);
	} else if (d->has_moved) {
		d->has_moved = false;
		notify(d, out, TRANSPORT_PATH_CHANGED);
	}
}

void direct_status(const struct transport *t, struct transport_status *out)
{
	const struct direct *d = of_const(t);

	if (lifetime_is_closed(&t->life))
		out->state = TRANSPORT_STATE_CLOSED;
	else if (d->connected_us)
		out->state = TRANSPORT_STATE_CONNECTED;
	out->reason = (enum transport_reason)lifetime_reason(&t->life);
	out->last_authentic_us = d->authentic_us;
	out->connected_us = d->connected_us;
	out->bytes = sizeof(*d);
	for (unsigned i = 0; i < d->leg_count; i++)
		out->bytes += seal_tx_bytes(d->legs[i].out.tx);
}
