#include "tests/net/ice_kit.h"

#include <criterion/criterion.h>

const struct ice_credentials kit_relay = { "relayUfrag01", "relay/password+of/32+characters0" };
const struct ice_credentials kit_client = { "cl+/", "client/password+of/24+ch" };

size_t kit_build(uint8_t out[KIT_MESSAGE_BYTES], struct kit_request r)
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

size_t kit_respond(uint8_t out[KIT_MESSAGE_BYTES], const uint8_t *bytes, size_t len,
		   const struct net_addr *mapped, const char *pwd)
{
	struct stun_message m;
	struct stun_writer w;

	cr_assert_eq(stun_parse(&m, bytes, len), STUN_OK);
	stun_write_begin(&w, out, KIT_MESSAGE_BYTES, STUN_SUCCESS, m.transaction);
	stun_write_mapped(&w, mapped);
	return stun_write_end(&w, pwd, true);
}

struct kit_log kit_drain(struct ice_agent *a)
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

enum ice_verdict kit_send(struct ice_agent *a, uint64_t now_us, const struct net_path *path,
			  struct kit_request r, struct kit_log *log)
{
	uint8_t bytes[KIT_MESSAGE_BYTES];
	size_t len = kit_build(bytes, r);
	enum ice_verdict verdict = ice_agent_on_stun(a, now_us, path, bytes, len);

	*log = kit_drain(a);
	return verdict;
}

struct net_path kit_path(const char *remote)
{
	struct net_path path;

	cr_assert_eq(net_addr_parse(&path.remote, remote), 0, "%s", remote);
	cr_assert_eq(net_addr_parse(&path.local, "10.0.0.1:8189"), 0);
	return path;
}

size_t kit_count(const struct kit_log *log, enum ice_event event)
{
	size_t n = 0;

	for (size_t i = 0; i < log->events; i++)
		n += log->event[i].event == event;
	return n;
}
