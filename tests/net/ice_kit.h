/* tests/net/ice_kit.h - requests a peer would send, and what an agent says to them. */
#ifndef TESTS_NET_ICE_KIT_H
#define TESTS_NET_ICE_KIT_H

#include <criterion/criterion.h>

#include "net/ice.h"
#include "net/stun.h"

enum { KIT_MESSAGE_BYTES = 256, KIT_MAX = 16, KIT_S = 1000000 };

static const struct ice_credentials kit_relay = { "relayUfrag01",
						  "relay/password+of/32+characters0" };
static const struct ice_credentials kit_client = { "cl+/", "client/password+of/24+ch" };

/* A Binding request as the client sends it; pointers left NULL take the right value. */
struct kit_request {
	const char *ours, *theirs; /* halves of USERNAME as the receiver reads it */
	const char *pwd;
	uint64_t controlled, controlling; /* tie-breaker; 0 = attribute absent */
	bool use_candidate;
	bool no_integrity;
	bool no_fingerprint;
	uint16_t unknown; /* one such attribute, empty; 0 = none */
	uint8_t id;       /* makes the transaction id */
};

static inline size_t kit_build(uint8_t out[KIT_MESSAGE_BYTES], struct kit_request r)
{
	uint8_t transaction[STUN_TRANSACTION_BYTES] = { [11] = r.id };
	struct stun_writer w;

	stun_write_begin(&w, out, KIT_MESSAGE_BYTES, STUN_REQUEST, transaction);
	stun_write_username(&w, r.ours ? r.ours : kit_relay.ufrag,
			    r.theirs ? r.theirs : kit_client.ufrag);
	if (r.controlling)
		stun_write_u64(&w, STUN_ICE_CONTROLLING, r.controlling);
	if (r.controlled)
		stun_write_u64(&w, STUN_ICE_CONTROLLED, r.controlled);
	if (r.unknown)
		stun_write(&w, r.unknown, NULL, 0);
	if (r.use_candidate)
		stun_write(&w, STUN_USE_CANDIDATE, NULL, 0);
	return stun_write_end(&w,
			      r.no_integrity ? NULL
			      : r.pwd        ? r.pwd
					     : kit_relay.pwd,
			      !r.no_fingerprint);
}

/** Success response to the request in `bytes`, as `pwd`'s owner sends it. */
static inline size_t kit_respond(uint8_t out[KIT_MESSAGE_BYTES], const uint8_t *bytes, size_t len,
				 const struct net_addr *mapped, const char *pwd)
{
	struct stun_message m;
	struct stun_writer w;

	cr_assert_eq(stun_parse(&m, bytes, len), STUN_OK);
	stun_write_begin(&w, out, KIT_MESSAGE_BYTES, STUN_SUCCESS, m.transaction);
	stun_write_mapped(&w, mapped);
	return stun_write_end(&w, pwd, true);
}

/* Everything an agent had to say until it was idle. */
struct kit_log {
	size_t sent, events;
	struct kit_datagram {
		struct net_path path;
		size_t len;
		uint8_t bytes[KIT_MESSAGE_BYTES];
	} out[KIT_MAX];
	struct {
		enum ice_event event;
		struct net_path path;
	} event[KIT_MAX];
	uint64_t deadline_us;
};

/** Poll until idle. */
static inline struct kit_log kit_drain(struct ice_agent *a)
{
	struct kit_log log = { 0 };

	for (;;) {
		struct ice_output o = ice_agent_poll(a);

		if (o.kind == ICE_IDLE) {
			log.deadline_us = o.deadline_us;
			return log;
		}
		if (o.kind == ICE_TRANSMIT) {
			struct kit_datagram *d = &log.out[log.sent++];

			cr_assert(log.sent <= KIT_MAX && o.transmit.len <= sizeof(d->bytes));
			d->path = o.transmit.path;
			d->len = o.transmit.len;
			memcpy(d->bytes, o.transmit.bytes, d->len);
			continue;
		}
		cr_assert(log.events < KIT_MAX);
		log.event[log.events].event = o.notify.event;
		log.event[log.events++].path = o.notify.path;
	}
}

/** Feed a request over `path`, then drain. */
static inline enum ice_verdict kit_send(struct ice_agent *a, uint64_t now_us,
					const struct net_path *path, struct kit_request r,
					struct kit_log *log)
{
	uint8_t bytes[KIT_MESSAGE_BYTES];
	size_t len = kit_build(bytes, r);
	enum ice_verdict verdict = ice_agent_on_stun(a, now_us, path, bytes, len);

	*log = kit_drain(a);
	return verdict;
}

/** "1.2.3.4:5" as the remote, the relay's fixed address as the local end. */
static inline struct net_path kit_path(const char *remote)
{
	struct net_path path;

	cr_assert_eq(net_addr_parse(&path.remote, remote), 0, "%s", remote);
	cr_assert_eq(net_addr_parse(&path.local, "10.0.0.1:8189"), 0);
	return path;
}

/** How many of the log's events are `event`. */
static inline size_t kit_count(const struct kit_log *log, enum ice_event event)
{
	size_t n = 0;

	for (size_t i = 0; i < log->events; i++)
		n += log->event[i].event == event;
	return n;
}

#endif
