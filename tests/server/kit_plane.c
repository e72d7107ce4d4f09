#include "tests/server/kit_plane.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtcp.h"
#include "net/random.h"
#include "pool/bytes.h"
#include "server/log.h"
#include "tests/server/kit_stream.h"

enum { ROUNDS_MAX = 100000, STEP_MIN_US = 1000, PACKETS = 4096, JOIN_US = 3000000 };

/* --- the plane ---------------------------------------------------------------------------- */

const struct net_addr kit_relay_addr = {
	.ip = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
	.port = KIT_PORT,
};

static void tell_stopped(void *arg)
{
	struct kit_plane *p = arg;

	p->is_stopped = true;
}

struct kit_plane *kit_plane_open(const char *yaml, unsigned workers)
{
	struct kit_plane *p = calloc(1, sizeof(*p));
	struct net_addr bound = { .ip = { [10] = 0xff, 0xff }, .port = KIT_PORT };
	char error[CONFIG_ERROR_BYTES];
	int err;

	assert(p);
	log_open(CONFIG_LOG_TEXT, CONFIG_LOG_ERROR);
	kit_wire_reset();
	kit_random_seed(1);
	kit_clock_step(0);
	p->now_us = KIT_CLOCK_START_US;
	kit_clock_set(p->now_us);
	err = config_parse(&p->config, yaml, strlen(yaml), "kit", error);
	if (err)
		fprintf(stderr, "%s\n", error);
	assert(err == 0);
	p->shared.config = p->config;
	p->shared.workers = workers;
	p->shared.has_tcp = true;
	p->shared.tcp_connections = UINT32_MAX;
	err = directory_create(&p->shared.directory);
	assert(err == 0);
	err = loop_create(&p->loop);
	assert(err == 0);
	p->candidates.count = 1;
	p->candidates.items[0].port = KIT_PORT;
	p->candidates.items[0].family = 4;
	memcpy(p->candidates.items[0].ip, kit_relay_addr.ip + 12, 4);
	err = registry_create(&p->registry, p->loop, &p->shared, &p->candidates);
	assert(err == 0);
	for (unsigned i = 0; i < workers; i++) {
		struct worker *w;

		err = worker_create(&w, &p->shared, i, &bound, 1, error);
		assert(err == 0);
	}
	err = seal_engine_create(&p->engine, SEAL_ENGINE_AUTO);
	assert(err == 0);
	err = dtls_identity_create(&p->identity);
	assert(err == 0);
	return p;
}

static void check_nothing_left(void)
{
	struct transport_live transports;
	struct dtls_live dtls;

	transport_live(&transports);
	dtls_live(&dtls);
	assert(plan_live() == 0);
	assert(stream_live() == 0);
	assert(plain_setup_live() == 0);
	assert(transports.transports == 0 && transports.zombies == 0);
	assert(dtls.handshakes == 0 && dtls.ssl_objects == 0 && dtls.identities == 0);
	assert(kit_wire_lost() == 0);
}

void kit_plane_close(struct kit_plane *p)
{
	struct worker_shared *shared = &p->shared;

	kit_clock_step(0);
	kit_wire_on_send(NULL, NULL);
	kit_wire_unblock();
	while (p->peers)
		kit_peer_drop(p->peers);
	for (unsigned i = 0; i < shared->workers; i++)
		kit_loop_hold_work(shared->team[i]->loop, false);
	registry_stop(p->registry, TRANSPORT_CLOSED_SHUTDOWN, tell_stopped, p);
	kit_plane_settle(p);
	assert(p->is_stopped);
	for (unsigned i = 0; i < shared->workers; i++) {
		const struct worker *w = shared->team[i];

		assert(w->session_count == 0 && w->works_running == 0 && !w->want_work);
		assert(counter_read(&w->counters.viewers) == 0);
		assert(counter_read(&w->counters.branches) == 0);
		assert(counter_read(&w->counters.handshakes_waiting) == 0);
		worker_join(shared->team[i]);
	}
	registry_destroy(p->registry);
	for (unsigned i = 0; i < shared->workers; i++)
		worker_drain_rings(shared->team[i]);
	for (unsigned i = 0; i < shared->workers; i++) {
		struct slab_pool_stats slabs;

		slab_pool_drain(shared->team[i]->pool);
		slab_pool_stats(shared->team[i]->pool, &slabs);
		assert(slabs.gets == slabs.puts && slabs.in_use == 0);
	}
	for (unsigned i = 0; i < shared->workers; i++)
		worker_destroy(shared->team[i]);
	directory_destroy(shared->directory);
	loop_destroy(p->loop);
	seal_engine_destroy(p->engine);
	dtls_identity_unref(p->identity);
	config_destroy(p->config);
	free(p);
	check_nothing_left();
	kit_wire_reset();
}

struct worker *kit_plane_worker(struct kit_plane *p, unsigned i)
{
	assert(i < p->shared.workers);
	return p->shared.team[i];
}

uint64_t kit_plane_sum(const struct kit_plane *p, size_t offset)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->shared.workers; i++) {
		const char *counters = (const char *)worker_counters(p->shared.team[i]);

		sum += counter_read((const counter *)(const void *)(counters + offset));
	}
	return sum;
}

/* --- what a peer gets --------------------------------------------------------------------- */

static void on_rtp(struct kit_peer *peer, const struct kit_datagram *d, const uint8_t *bytes,
		   size_t len, uint64_t index)
{
	struct kit_packet *packet;
	struct rtp_packet rtp;

	assert(rtp_parse(bytes, len, &rtp) == RTP_OK);
	if (peer->packet_count == peer->packet_cap) {
		peer->packet_cap *= 2;
		peer->packets = realloc(peer->packets, peer->packet_cap * sizeof(*packet));
		assert(peer->packets);
	}
	packet = &peer->packets[peer->packet_count++];
	*packet = (struct kit_packet){
		.index = index,
		.at_us = peer->plane->now_us,
		.ssrc = rtp.ssrc,
		.timestamp = rtp.timestamp,
		.message = d->message,
		.segments = d->segments,
		.wire_bytes = d->len,
		.seq = rtp.seq,
		.payload_type = rtp.payload_type,
		.marker = rtp.marker,
		.kind = MEDIA_AUDIO,
	};
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		const struct negotiated_media *m = &peer->terms.media[kind];

		if (m->remote_ssrc == rtp.ssrc || m->remote_rtx_ssrc == rtp.ssrc)
			packet->kind = (enum media_kind)kind;
		packet->is_rtx |= m->remote_rtx_ssrc && m->remote_rtx_ssrc == rtp.ssrc;
	}
	ext_read(&peer->terms.media[packet->kind].extensions, bytes, &rtp, &packet->ext);
	packet->is_padding = rtp.payload_bytes == 0;
	if (packet->is_rtx && !packet->is_padding) {
		assert(rtp.payload_bytes >= 2);
		packet->osn = be16_read(bytes + rtp.payload_offset);
		rtp.payload_offset += 2;
		rtp.payload_bytes -= 2;
	}
	packet->payload_bytes = rtp.payload_bytes;
	memcpy(packet->head, bytes + rtp.payload_offset,
	       rtp.payload_bytes < KIT_HEAD_BYTES ? rtp.payload_bytes : KIT_HEAD_BYTES);
	if (rtp.payload_bytes >= KIT_MIN_BYTES)
		packet->number = be32_read(packet->head + KIT_NUMBER_AT);
}

static void on_nack(struct kit_peer *peer, const struct rtcp_member *m)
{
	struct rtcp_feedback fb;
	struct rtcp_nack_cursor cursor;
	uint16_t seq;

	assert(rtcp_parse_feedback(m, &fb));
	rtcp_nack_init(&cursor, &fb);
	while (rtcp_nack_next(&cursor, &seq))
		if (peer->nack_count < KIT_NACKS)
			peer->nack_ssrcs[peer->nack_count] = fb.media_ssrc;
	peer->nacks[peer->nack_count++] = seq;
}

static void on_pli(struct kit_peer *peer, const struct rtcp_member *m)
{
	struct rtcp_feedback fb;

	assert(rtcp_parse_feedback(m, &fb));
	peer->pli_ssrcs[peer->plis++ % KIT_PLIS] = fb.media_ssrc;
	peer->last_pli_us = peer->plane->now_us;
}

static void on_extended_report(struct kit_peer *peer, const struct rtcp_member *m)
{
	struct rtcp_xr_cursor cursor;
	struct rtcp_xr_block block;

	assert(rtcp_xr_init(&cursor, m));
	while (rtcp_xr_next(&cursor, &block)) {
		peer->reference_times += rtcp_xr_rrtr(&block, &peer->last_reference_ntp);
		for (size_t i = 0; rtcp_xr_dlrr(&block, i, &peer->last_answer); i++)
			peer->answers++;
	}
}

static void on_transport_feedback(struct kit_peer *peer, const struct rtcp_member *m)
{
	struct rtcp_twcc_status status;
	struct rtcp_twcc_cursor cursor;
	struct rtcp_feedback fb;

	assert(rtcp_parse_feedback(m, &fb) && rtcp_twcc_init(&cursor, &fb));
	peer->feedbacks++;
	while (rtcp_twcc_next(&cursor, &status))
		if (peer->told_count < KIT_TOLD)
			peer->told[peer->told_count++] = status;
}

static void on_rtcp(struct kit_peer *peer, const uint8_t *bytes, size_t len)
{
	struct rtcp_cursor cursor;
	struct rtcp_member m;
	enum rtcp_next next;

	rtcp_cursor_init(&cursor, bytes, len);
	while ((next = rtcp_cursor_next(&cursor, &m)) == RTCP_NEXT_MEMBER) {
		peer->sender_reports += m.kind == RTCP_SR;
		peer->reports += m.kind == RTCP_RR;
		peer->byes += m.kind == RTCP_BYE;
		peer->firs += m.kind == RTCP_FIR;
		peer->rembs += m.kind == RTCP_REMB;
		if (m.kind == RTCP_PLI)
			on_pli(peer, &m);
		if (m.kind == RTCP_NACK)
			on_nack(peer, &m);
		if (m.kind == RTCP_TRANSPORT_CC)
			on_transport_feedback(peer, &m);
		if (m.kind == RTCP_XR)
			on_extended_report(peer, &m);
	}
	assert(next == RTCP_NEXT_END);
}

void kit_peer_receive(struct kit_peer *peer, const struct kit_datagram *d)
{
	struct net_path path = { .remote = kit_relay_addr, .local = peer->addr };
	uint8_t bytes[KIT_WIRE_BYTES];
	size_t len = d->len;
	uint64_t index = 0;
	enum transport_verdict verdict;

	if (peer->is_deaf)
		return;
	memcpy(bytes, d->bytes, len);
	verdict =
	    transport_on_datagram(peer->transport, peer->plane->now_us, &path, bytes, &len, &index);
	peer->verdicts[verdict]++;
	if (verdict == TRANSPORT_RTP)
		on_rtp(peer, d, bytes, len, index);
	else if (verdict == TRANSPORT_RTCP)
		on_rtcp(peer, bytes, len);
}

/* --- time --------------------------------------------------------------------------------- */

static void transmit(struct kit_peer *peer, const uint8_t *bytes, size_t len)
{
	uint8_t copy[KIT_WIRE_BYTES];

	assert(len <= sizeof(copy));
	memcpy(copy, bytes, len);
	if (peer->config.edit_sent)
		len = peer->config.edit_sent(peer->config.edit_arg, peer, copy, len);
	if (len)
		kit_peer_send_raw(peer, copy, len);
}

bool kit_peer_poll(struct kit_peer *peer)
{
	struct transport_output out;
	bool any = false;

	for (; peer->transport; any = true) {
		transport_poll(peer->transport, peer->plane->now_us, &out);
		switch (out.kind) {
		case TRANSPORT_TRANSMIT:
			transmit(peer, out.bytes, out.len);
			break;
		case TRANSPORT_NOTIFY:
			peer->is_connected |= out.event == TRANSPORT_CONNECTED;
			peer->is_closed |= out.event == TRANSPORT_CLOSED;
			if (out.event == TRANSPORT_CLOSED)
				peer->reason = out.reason;
			break;
		case TRANSPORT_WORK:
			transport_work_run(peer->transport);
			transport_work_done(peer->transport, peer->plane->now_us);
			break;
		case TRANSPORT_IDLE:
			peer->due_us = out.deadline_us;
			return any;
		}
	}
	return any;
}

static bool take_stream(struct kit_peer *peer)
{
	const struct kit_datagram *d;
	bool any = false;

	for (; peer->tcp && (d = kit_stream_take(peer->tcp)) != NULL; any = true)
		if (peer->transport)
			kit_peer_receive(peer, d);
	return any;
}

static bool run_peers(struct kit_plane *p)
{
	bool any = false;

	for (struct kit_peer *peer = p->peers; peer; peer = peer->next) {
		any |= take_stream(peer);
		if (peer->transport && peer->due_us <= p->now_us)
			transport_on_timeout(peer->transport, p->now_us);
		if (peer->between)
			any |= peer->between->run(peer->between->arg);
		any |= kit_peer_poll(peer);
	}
	return any;
}

static bool is_lost(struct kit_peer *peer)
{
	if (peer->loss_percent == 0)
		return false;
	peer->loss_seed = peer->loss_seed * 6364136223846793005ULL + 1442695040888963407ULL;
	if ((peer->loss_seed >> 33) % 100 >= peer->loss_percent)
		return false;
	peer->lost++;
	return true;
}

static bool deliver(struct kit_plane *p)
{
	const struct kit_datagram *d;
	bool any = false;

	for (; (d = kit_wire_take()) != NULL; any = true) {
		if (p->on_datagram)
			p->on_datagram(p->on_datagram_arg, d);
		for (struct kit_peer *peer = p->peers; peer; peer = peer->next) {
			if (!peer->transport || !net_addr_is_equal(&peer->addr, &d->path.remote))
				continue;
			if (peer->between)
				peer->between->take(peer->between->arg, d);
			else if (!is_lost(peer))
				kit_peer_receive(peer, d);
			break;
		}
	}
	return any;
}

void kit_plane_settle(struct kit_plane *p)
{
	bool any = true;

	for (unsigned rounds = 0; any; rounds++) {
		assert(rounds < ROUNDS_MAX);
		p->now_us = kit_clock(); /* reading it may have moved it */
		any = kit_loop_round(p->loop);
		for (unsigned i = 0; i < p->shared.workers; i++)
			any |= kit_loop_round(p->shared.team[i]->loop);
		any |= deliver(p);
		any |= run_peers(p);
	}
}

static uint64_t next_due_us(const struct kit_plane *p)
{
	uint64_t due_us = kit_loop_due_us(p->loop);

	for (unsigned i = 0; i < p->shared.workers; i++) {
		uint64_t worker_us = kit_loop_due_us(p->shared.team[i]->loop);

		due_us = worker_us < due_us ? worker_us : due_us;
	}
	for (const struct kit_peer *peer = p->peers; peer; peer = peer->next) {
		if (peer->transport && peer->due_us < due_us)
			due_us = peer->due_us;
		if (peer->between && peer->between->due_us(peer->between->arg) < due_us)
			due_us = peer->between->due_us(peer->between->arg);
	}
	return due_us;
}

void kit_plane_advance(struct kit_plane *p, uint64_t us)
{
	uint64_t until_us = p->now_us + us;

	kit_plane_settle(p);
	while (p->now_us < until_us) {
		uint64_t due_us = next_due_us(p);

		if (due_us < p->now_us + STEP_MIN_US)
			due_us = p->now_us + STEP_MIN_US;
		p->now_us = due_us < until_us ? due_us : until_us;
		kit_clock_set(p->now_us);
		kit_plane_settle(p);
	}
}

/* --- joining ------------------------------------------------------------------------------ */

static void offer_of(const struct kit_peer *peer, struct offer_config *out)
{
	const struct kit_peer_config *c = &peer->config;

	*out = (struct offer_config){
		.role = c->publishes ? OFFER_PUBLISH : OFFER_WATCH,
		.audio = c->audio,
		.video = c->video,
		.rtx = c->rtx,
		.transport_cc = c->transport_cc,
		.remb = c->remb,
		.ufrag = peer->local.ufrag,
		.pwd = peer->local.pwd,
		.fingerprint = dtls_identity_fingerprint(peer->plane->identity),
		.session_id = 1,
		.cname = "kit",
		.msid = "kit",
	};
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		out->ssrc[kind] = peer->ssrc[kind];
		out->rtx_ssrc[kind] = peer->rtx_ssrc[kind];
	}
}

static void draw_names(struct kit_peer *peer)
{
	registry_draw_credentials(&peer->local);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS && peer->config.publishes; kind++) {
		peer->ssrc[kind] = (uint32_t)random_u64() | 1;
		peer->rtx_ssrc[kind] = peer->ssrc[kind] ^ 0x80000000;
		/* A later cycle and number, so that nothing depends on beginning at 0. */
		peer->next_index[kind] = random_u64() & 0x7fff;
		peer->timestamp[kind] = (uint32_t)random_u64();
	}
	peer->next_rtx = random_u64() & 0x7fff;
}

static void open_transport(struct kit_peer *peer)
{
	struct transport_config config = {
		.ice_role = ICE_CONTROLLING,
		.dtls_role =
		    peer->terms.dtls_role == NEGOTIATED_DTLS_CLIENT ? DTLS_CLIENT : DTLS_SERVER,
		.local = peer->local,
		.identity = peer->plane->identity,
		.engine = peer->plane->engine,
		.tie_breaker = random_u64(),
	};
	struct net_path path = { .remote = kit_relay_addr, .local = peer->addr };
	int err;

	memcpy(config.remote.ufrag, peer->terms.remote_ufrag, strlen(peer->terms.remote_ufrag));
	memcpy(config.remote.pwd, peer->terms.remote_pwd, strlen(peer->terms.remote_pwd));
	random_bytes(config.seed, sizeof(config.seed));
	err = dtls_fingerprint_parse(&config.fingerprint, peer->terms.fingerprints[0].hash,
				     peer->terms.fingerprints[0].digest);
	assert(err == 0);
	err = transport_create(&peer->transport, peer->plane->now_us, &config);
	assert(err == 0);
	err = transport_add_remote(peer->transport, peer->plane->now_us, &path);
	assert(err == 0);
}

static void read_answer(struct kit_peer *peer, const struct offer_config *offer,
			const struct registry_reply *reply)
{
	struct sdp *sdp = malloc(sizeof(*sdp));
	char reason[ANSWER_REASON_BYTES];
	struct sdp_error error;

	char *text = calloc(1, OFFER_MAX_BYTES);

	assert(sdp && text && reply->body_bytes < OFFER_MAX_BYTES);
	memcpy(text, reply->body, reply->body_bytes);
	if (peer->config.edit_answer)
		peer->config.edit_answer(peer->config.edit_arg, text);
	assert(sdp_parse(sdp, text, strlen(text), &error) == SDP_OK);
	assert(offer_read_answer(offer, sdp, &peer->terms, reason) == OFFER_OK);
	free(sdp);
	free(text);
	memcpy(peer->id, reply->session_id, sizeof(peer->id));
	memcpy(peer->etag, reply->etag, sizeof(peer->etag));
}

static void post(struct kit_peer *peer)
{
	struct kit_plane *p = peer->plane;
	char *text = malloc(OFFER_MAX_BYTES);
	struct offer_config offer;
	struct registry_reply reply;
	int len;

	assert(text);
	offer_of(peer, &offer);
	len = offer_write(&offer, text, OFFER_MAX_BYTES);
	assert(len > 0);
	if (peer->config.edit_offer) {
		peer->config.edit_offer(peer->config.edit_arg, text);
		len = (int)strlen(text);
	}
	if (peer->config.publishes)
		registry_publish(
		    p->registry, peer->stream,
		    &(struct registry_offer){ text, (size_t)len, peer->config.is_opaque },
		    (const uint8_t[16]){ 0 }, &reply);
	else
		registry_watch(p->registry, peer->stream, text, (size_t)len,
			       (const uint8_t[16]){ 0 }, &reply);
	free(text);
	peer->status = reply.status;
	if (reply.status == REGISTRY_OK) {
		read_answer(peer, &offer, &reply);
		open_transport(peer);
	}
	free(reply.body);
}

struct kit_peer *kit_peer_open(struct kit_plane *p, const char *stream,
			       const struct kit_peer_config *config)
{
	struct kit_peer *peer = calloc(1, sizeof(*peer));
	uint32_t host = p->next_host++;

	assert(peer);
	peer->plane = p;
	peer->config = *config;
	peer->worker = config->worker;
	peer->due_us = UINT64_MAX;
	snprintf(peer->stream, sizeof(peer->stream), "%s", stream);
	peer->addr = (struct net_addr){
		.ip = { [10] = 0xff, 0xff, 10, 0, (uint8_t)(host >> 8), (uint8_t)host },
		.port = 40000
	};
	peer->packet_cap = PACKETS;
	peer->packets = calloc(PACKETS, sizeof(*peer->packets));
	assert(peer->packets);
	peer->next = p->peers;
	p->peers = peer;
	draw_names(peer);
	post(peer);
	return peer;
}

struct kit_peer *kit_peer_join(struct kit_plane *p, const char *stream,
			       const struct kit_peer_config *config)
{
	struct kit_peer *peer = kit_peer_open(p, stream, config);
	uint64_t until_us = p->now_us + JOIN_US;

	assert(peer->status == REGISTRY_OK);
	kit_plane_settle(p);
	while (!peer->is_connected && p->now_us < until_us)
		kit_plane_advance(p, STEP_MIN_US);
	assert(peer->is_connected && !peer->is_closed);
	kit_plane_advance(p, STEP_MIN_US);
	return peer;
}

void kit_peer_drop(struct kit_peer *peer)
{
	struct kit_peer **at = &peer->plane->peers;

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	kit_stream_close(peer);
	transport_destroy(peer->transport);
	free(peer->packets);
	free(peer);
}

void kit_peer_leave(struct kit_peer *peer)
{
	registry_end(peer->plane->registry, peer->id);
}

static bool take_line(const char *body, const char *name, char *out, size_t cap)
{
	const char *at = strstr(body, name);
	size_t n;

	if (!at)
		return false;
	at += strlen(name);
	n = strcspn(at, "\r\n");
	if (n >= cap)
		return false;
	memset(out, 0, cap);
	memcpy(out, at, n);
	return true;
}

enum registry_status kit_peer_restart(struct kit_peer *peer)
{
	struct kit_plane *p = peer->plane;
	struct ice_credentials remote = { 0 };
	struct registry_reply reply;
	char frag[512];
	int len;

	registry_draw_credentials(&peer->local);
	len = snprintf(frag, sizeof(frag), "a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", peer->local.ufrag,
		       peer->local.pwd);
	registry_patch(p->registry, peer->id, frag, (size_t)len, NULL, false, &reply);
	if (reply.status == REGISTRY_OK) {
		struct net_path path = { .remote = kit_relay_addr, .local = peer->addr };
		char *body = calloc(1, reply.body_bytes + 1);

		assert(body && reply.body);
		memcpy(body, reply.body, reply.body_bytes);
		assert(take_line(body, "a=ice-ufrag:", remote.ufrag, sizeof(remote.ufrag)));
		assert(take_line(body, "a=ice-pwd:", remote.pwd, sizeof(remote.pwd)));
		free(body);
		memcpy(peer->etag, reply.etag, sizeof(peer->etag));
		assert(transport_ice_restart(peer->transport, p->now_us, &peer->local, &remote) ==
		       0);
		(void)transport_add_remote(peer->transport, p->now_us, &path);
	}
	free(reply.body);
	return reply.status;
}
