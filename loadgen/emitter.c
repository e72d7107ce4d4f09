#include "loadgen/emitter.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "net/random.h"

struct emitter {
	struct emitter_config config;
	struct peer *peer;
	struct publisher *publisher;
	uint64_t began_us;
};

static bool send_datagram(void *arg, const struct publisher_datagram *d)
{
	struct emitter *e = arg;
	struct latency *latency = NULL;

	if (d->content == PUBLISHER_AUDIO)
		latency = e->config.latency[MEDIA_AUDIO];
	else if (d->content == PUBLISHER_VIDEO)
		latency = e->config.latency[MEDIA_VIDEO];
	/* Before it leaves: the relay may run within the call that sends. */
	if (latency)
		latency_on_sent(latency, d->timestamp, d->len, d->is_last, clock_now_us());
	return peer_send(e->peer, d->bytes, d->len);
}

static int64_t unix_minus_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - (int64_t)clock_now_us();
}

static void on_due(void *arg)
{
	struct emitter *e = arg;

	if (e->publisher)
		peer_arm(e->peer, publisher_on_due(e->publisher, peer_ground(e->peer)->now_us));
}

static void on_connected(void *arg)
{
	struct emitter *e = arg;
	struct peer_ground *g = peer_ground(e->peer);
	struct publisher_config config = {
		.source = e->config.source,
		.transport = peer_transport(e->peer),
		.engine = g->engine,
		.negotiated = peer_negotiated(e->peer),
		.cname = "sluice-load",
		.pacing = e->config.pacing,
		.send = send_datagram,
		.send_arg = e,
		.seed = random_u64(),
		.unix_minus_us = unix_minus_us(),
	};
	int err = publisher_create(&e->publisher, &config);

	if (err) {
		peer_fail(e->peer, err == -ENOTSUP ? "the server takes neither VP8 nor Opus"
						   : "out of memory");
		return;
	}
	e->began_us = g->now_us;
	publisher_start(e->publisher, g->now_us);
	on_due(e);
}

static void on_rtcp(void *arg, uint8_t *bytes, size_t len)
{
	struct emitter *e = arg;

	if (!e->publisher)
		return;
	publisher_on_rtcp(e->publisher, peer_ground(e->peer)->now_us, bytes, len);
	on_due(e);
}

/* A server has no reason to send RTP to a publisher. */
static void on_rtp(void *arg, uint64_t came_us, uint8_t *bytes, size_t len)
{
	(void)arg;
	(void)came_us;
	(void)bytes;
	(void)len;
}

static void on_nothing(void *arg)
{
	(void)arg;
}

static const struct peer_handlers handlers = { on_connected, on_rtp, on_rtcp,
					       on_nothing,   on_due, on_nothing };

int emitter_create(struct emitter **out, struct peer_ground *g, const struct emitter_config *config)
{
	struct peer_config peer = {
		.number = config->number,
		.role = OFFER_PUBLISH,
		.url = config->url,
		.token = config->token,
		.give_up_us = config->give_up_us,
		.handlers = &handlers,
	};
	struct emitter *e = calloc(1, sizeof(*e));
	int err;

	*out = NULL;
	if (!e)
		return -ENOMEM;
	e->config = *config;
	peer.arg = e;
	err = peer_create(&e->peer, g, &peer);
	if (err) {
		free(e);
		return err;
	}
	*out = e;
	return 0;
}

void emitter_destroy(struct emitter *e)
{
	if (!e)
		return;
	publisher_destroy(e->publisher);
	peer_destroy(e->peer);
	free(e);
}

void emitter_start(struct emitter *e)
{
	peer_start(e->peer);
}

uint64_t emitter_began_us(const struct emitter *e)
{
	return e->began_us;
}

struct peer *emitter_peer(const struct emitter *e)
{
	return e->peer;
}
