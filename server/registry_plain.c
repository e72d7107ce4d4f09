/* server/registry_plain.c - streams fed by plain RTP: from a description to a plan and its ports. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/random.h"
#include "server/registry_inner.h"

struct plan *registry_plain_input(const struct registry *r, const char *stream)
{
	for (struct plan *p = r->oldest; p; p = p->newer)
		if (p->plain && p->role == PLAN_PUBLISHER && !p->is_over &&
		    strcmp(p->stream->name, stream) == 0)
			return p;
	return NULL;
}

uint32_t registry_plain_count(const struct registry *r, enum plan_role role)
{
	uint32_t count = 0;

	for (const struct plan *p = r->oldest; p; p = p->newer)
		count += p->plain && p->role == role && !p->is_over;
	return count;
}

/* --- addresses --------------------------------------------------------------------------- */

static struct net_addr addr_of(const struct sdp_address *a)
{
	struct net_addr addr = { .port = 0 };

	if (a->family == 4) {
		memset(addr.ip + 10, 0xff, 2);
		memcpy(addr.ip + 12, a->ip, 4);
	} else if (a->family == 6) {
		memcpy(addr.ip, a->ip, sizeof(addr.ip));
	}
	return addr;
}

static struct sdp_address sdp_of(const struct net_addr *a)
{
	struct sdp_address address = { .family = net_addr_is_v4(a) ? 4 : 6 };

	memcpy(address.ip, net_addr_is_v4(a) ? a->ip + 12 : a->ip, net_addr_is_v4(a) ? 4 : 16);
	return address;
}

static bool is_multicast(const struct net_addr *a)
{
	return net_addr_is_v4(a) ? a->ip[12] >> 4 == 14 : a->ip[0] == 0xff;
}

static bool is_ours(const struct registry *r, const struct net_addr *a)
{
	for (size_t i = 0; i < r->candidates.count; i++) {
		struct net_addr own = addr_of(&r->candidates.items[i]);

		if (net_addr_is_same_ip(&own, a))
			return true;
	}
	return false;
}

/* Who may send. A c= line names where packets go: FFmpeg writes the relay's address there. Where it is
 * another's it is the sender's, who writes his own into an offer; and on loopback it is either's. */
static bool find_source(const struct registry *r, const struct registry_input *ask,
			const struct plain_terms *terms, struct net_addr *source,
			struct registry_reply *reply)
{
	*source = addr_of(&terms->source);
	if (ask->source) {
		if (net_addr_parse_ip(source, ask->source) == 0 && !net_addr_is_any(source))
			return true;
		registry_refuse(reply, REGISTRY_UNACCEPTABLE,
				"source is not an IP address, as 192.0.2.1 or 2001:db8::1");
		return false;
	}
	if (terms->source.family && !net_addr_is_any(source) && !is_multicast(source) &&
	    (terms->is_filtered || net_addr_is_loopback(source) || !is_ours(r, source)))
		return true;
	memset(source->ip, 0, sizeof(source->ip));
	if (terms->source.family != 6)
		memset(source->ip + 10, 0xff, 2);
	if (r->config->rtp.latch)
		return true;
	registry_refuse(
	    reply, REGISTRY_UNACCEPTABLE,
	    "nothing says from which address the packets come: name it as \"source\", in "
	    "a=source-filter or in c=, or set rtp.latch");
	return false;
}

struct net_addr registry_plain_bind(const struct registry *r, bool v4)
{
	struct net_addr any = { .port = 0 };

	if (v4)
		memset(any.ip + 10, 0xff, 2);
	for (size_t i = 0; i < r->config->udp.listen.count; i++) {
		const struct config_address *a = &r->config->udp.listen.items[i];

		if (a->is_both || a->is_v4 != v4)
			continue;
		memcpy(any.ip, a->ip, sizeof(any.ip));
		return any;
	}
	return any;
}

/* What a sender is told to send to. */
static struct net_addr advertised(const struct registry *r, const struct net_addr *bind,
				  const struct net_addr *peer)
{
	uint8_t family = net_addr_is_v4(bind) ? 4 : 6;

	if (!net_addr_is_any(bind))
		return *bind;
	if (net_addr_is_loopback(peer))
		return *peer;
	for (size_t i = 0; i < r->candidates.count; i++)
		if (r->candidates.items[i].family == family)
			return addr_of(&r->candidates.items[i]);
	return *bind;
}

/* --- the plan ---------------------------------------------------------------------------- */

static void allow_types(const struct negotiated *n, unsigned kinds,
			uint8_t types[DIRECT_TYPE_BYTES])
{
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		const struct negotiated_media *m = &n->media[kind];

		if (!m->is_accepted || !(kinds >> kind & 1))
			continue;
		types[m->codecs[0].pt / 8] |= (uint8_t)(1u << m->codecs[0].pt % 8);
		if (m->codecs[0].red_pt != NEGOTIATED_NO_PT)
			types[m->codecs[0].red_pt / 8] |= (uint8_t)(1u << m->codecs[0].red_pt % 8);
	}
}

bool registry_plain_open(struct registry *r, struct plain_setup *setup,
			 struct registry_reply *reply)
{
	uint16_t port = 0;
	int err = plain_setup_open(setup, r->config, &r->next_pair, &port);

	if (err == 0)
		return true;
	if (err == -EADDRINUSE) {
		reply->status = REGISTRY_TAKEN;
		snprintf(reply->reason, sizeof(reply->reason),
			 "port %u or the one above it is in use", port);
	} else if (err == -ENOSPC) {
		registry_refuse(reply, REGISTRY_FULL,
				"no pair of ports from rtp.port_min to rtp.port_max is free");
	} else {
		reply->status = REGISTRY_FULL;
		snprintf(reply->reason, sizeof(reply->reason), "a port cannot be opened: %s",
			 strerror(-err));
	}
	return false;
}

/* The worker that has least to do. */
static unsigned choose_worker(const struct registry *r)
{
	unsigned best = 0;

	for (unsigned i = 1; i < r->shared->workers; i++)
		if (counter_read(&worker_counters(r->shared->team[i])->sessions) <
		    counter_read(&worker_counters(r->shared->team[best])->sessions))
			best = i;
	return best;
}

bool registry_plain_serve(struct registry *r, struct stream_entry *e, struct plan *p)
{
	struct letter *letter = calloc(1, sizeof(*letter));

	if (!letter)
		return false;
	p->stream = stream_ref(e->stream);
	e->plans++;
	p->created_us = clock_now_us();
	if (!registry_list_plan(r, p)) {
		registry_leave_stream(r, p->stream);
		free(letter);
		return false;
	}
	letter->kind = LETTER_SERVE;
	letter->plan = plan_ref(p);
	worker_post(r->shared->team[choose_worker(r)], letter);
	return true;
}

static struct plan *create_input(const struct negotiated *n, const struct plain_setup *setup)
{
	struct plan *p = plan_create(PLAN_PUBLISHER);

	if (!p)
		return NULL;
	p->negotiated = malloc(sizeof(*p->negotiated));
	p->plain = p->negotiated ? plain_setup_create(setup) : NULL;
	if (p->plain) {
		*p->negotiated = *n;
		return p;
	}
	plan_unref(p);
	return NULL;
}

bool registry_plain_describe(const struct plan *p, const struct net_addr *at, const char *direction,
			     const struct negotiated_codec *const codecs[NEGOTIATED_KINDS],
			     struct registry_reply *reply)
{
	struct plain_text text = {
		.name = p->stream->name,
		.session_id = random_u64() >> 2,
		.address = sdp_of(at),
		.direction = direction,
		.terms = &p->plain->terms,
	};
	int len;

	memcpy(text.codecs, codecs, sizeof(text.codecs));
	reply->body = malloc(PLAIN_MAX_BYTES);
	len = reply->body ? plain_write(&text, reply->body, PLAIN_MAX_BYTES) : -ENOMEM;
	if (len < 0)
		return false;
	reply->body_bytes = (size_t)len;
	return true;
}

static bool write_input(const struct registry *r, const struct plan *p,
			struct registry_reply *reply)
{
	const struct plain_setup *setup = p->plain;
	const struct negotiated_codec *codecs[NEGOTIATED_KINDS] = { NULL };
	struct net_addr at = advertised(r, &setup->bind, &setup->legs[0].source);

	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		if (p->negotiated->media[kind].is_accepted)
			codecs[kind] = &p->negotiated->media[kind].codecs[0];
	return registry_plain_describe(p, &at, "recvonly", codecs, reply);
}

static void serve_input(struct registry *r, const char *stream, const struct negotiated *n,
			struct plain_setup *setup, struct registry_reply *reply)
{
	struct stream_entry *e = registry_get_stream(r, stream);
	struct plan *p;

	if (!e) {
		registry_refuse(reply, REGISTRY_FULL,
				"the server carries as many streams as it may");
		return;
	}
	if (!registry_plain_open(r, setup, reply))
		return;
	p = create_input(n, setup);
	if (!p) {
		plain_setup_close(setup);
	} else if (!registry_plain_serve(r, e, p)) {
		plan_unref(p);
	} else {
		reply->number = p->number;
		if (write_input(r, p, reply))
			return;
		registry_close_plan(r, p, TRANSPORT_CLOSED_NO_MEMORY);
	}
	free(reply->body);
	reply->body = NULL;
	registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
}

static void fill_setup(const struct registry *r, const struct negotiated *n,
		       const struct plain_terms *terms, const struct net_addr *source,
		       struct plain_setup *setup)
{
	*setup = (struct plain_setup){ .terms = *terms };
	setup->bind = registry_plain_bind(r, net_addr_is_v4(source));
	for (unsigned i = 0; i < terms->leg_count; i++) {
		setup->legs[i].source = *source;
		setup->legs[i].rtcp_mux = terms->legs[i].rtcp_mux;
		allow_types(n, terms->legs[i].kinds, setup->legs[i].types);
	}
}

static enum registry_status read_input(const struct registry_input *ask, struct sdp *sdp,
				       struct negotiated *n, struct plain_terms *terms,
				       char reason[REGISTRY_REASON_BYTES])
{
	struct sdp_error error;
	enum answer_verdict verdict;

	if (sdp_parse(sdp, ask->sdp, ask->sdp_bytes, &error) != SDP_OK) {
		snprintf(reason, REGISTRY_REASON_BYTES, "%s", error.text);
		return REGISTRY_UNPARSABLE;
	}
	verdict = plain_read(sdp, n, terms, reason);
	if (verdict == ANSWER_OK)
		return REGISTRY_OK;
	return verdict == ANSWER_NO_COMMON_CODEC ? REGISTRY_NO_COMMON_CODEC : REGISTRY_UNACCEPTABLE;
}

void registry_open_input(struct registry *r, const char *stream, const struct registry_input *ask,
			 struct registry_reply *reply)
{
	struct sdp *sdp = malloc(sizeof(*sdp));
	struct negotiated *n = malloc(sizeof(*n));
	struct plain_terms terms = { .leg_count = 0 };
	struct plain_setup setup;
	struct net_addr source;

	*reply = (struct registry_reply){ .status = REGISTRY_OK };
	if (!sdp || !n)
		registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
	else if (r->is_draining)
		registry_refuse(reply, REGISTRY_DRAINING, "the server is shutting down");
	else if (registry_plain_input(r, stream))
		registry_refuse(reply, REGISTRY_TAKEN,
				"plain RTP feeds this stream already: DELETE ends that");
	else if (registry_plain_count(r, PLAN_PUBLISHER) >= r->config->rtp.inputs)
		registry_refuse(reply, REGISTRY_FULL, "as many as rtp.inputs allows are open");
	else
		reply->status = read_input(ask, sdp, n, &terms, reply->reason);
	if (reply->status == REGISTRY_OK && find_source(r, ask, &terms, &source, reply)) {
		fill_setup(r, n, &terms, &source, &setup);
		serve_input(r, stream, n, &setup, reply);
	}
	if (reply->status != REGISTRY_OK)
		registry_drop_unused_stream(r, stream);
	free(n);
	free(sdp);
}

void registry_renew_input(struct registry *r, const struct plan *ended)
{
	struct registry_reply reply = { .status = REGISTRY_OK };
	struct plain_setup setup = *ended->plain;

	memset(setup.ports, 0, sizeof(setup.ports));
	if (!r->is_draining)
		serve_input(r, ended->stream->name, ended->negotiated, &setup, &reply);
	free(reply.body);
}

enum registry_status registry_close_input(struct registry *r, const char *stream)
{
	struct plan *p = registry_plain_input(r, stream);

	if (!p)
		return REGISTRY_NOT_FOUND;
	registry_close_plan(r, p, TRANSPORT_CLOSED_BY_CLIENT);
	return REGISTRY_OK;
}
