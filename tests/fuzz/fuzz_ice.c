/* An agent of either role, fed a list of steps: raw datagrams from anywhere, authentic requests of
 * its peer, answers to its checks, media, restarts and time. Whatever the order, it speaks to
 * nobody but addresses its peer proved to know (or its owner named), says no more than it was
 * asked for, and comes to rest. */
#include <assert.h>
#include <stdlib.h>

#include "net/ice.h"
#include "net/stun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRESSES = 16, MAX_OUTPUTS = 64 };

struct world {
	struct ice_agent *agent;
	uint64_t now_us;
	bool is_lite, is_over;
	bool is_known[ADDRESSES]; /* may be spoken to */
	unsigned generation;      /* of credentials */
	uint8_t check[256];       /* the last one the agent sent */
	size_t check_bytes;
	struct net_path check_path;
	struct net_addr selected; /* port 0: none */
};

struct input {
	const uint8_t *at, *end;
};

static uint8_t next_byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* Four IPs, two of each family, with four ports each; the local end varies as well. */
static struct net_path path_of(unsigned index, unsigned local)
{
	struct net_path path = { .remote = { .port = (uint16_t)(1000 + index % 4) },
				 .local = { .port = 8189 } };

	if (index / 8 == 0)
		path.remote.ip[10] = path.remote.ip[11] = path.local.ip[10] = path.local.ip[11] =
		    0xff;
	path.remote.ip[12] = 192;
	path.remote.ip[15] = (uint8_t)(1 + index / 4 % 2);
	path.local.ip[12] = 10;
	path.local.ip[15] = (uint8_t)local;
	return path;
}

static unsigned index_of(const struct net_addr *a)
{
	unsigned index = a->port - 1000U + (a->ip[15] - 1U) * 4 + (a->ip[10] ? 0 : 8);

	assert(index < ADDRESSES);
	return index;
}

static struct ice_credentials credentials(bool is_local, unsigned generation)
{
	struct ice_credentials c = { .ufrag = "ufrag", .pwd = "password+of/22+charact" };

	c.ufrag[0] = is_local ? 'L' : 'R';
	c.pwd[0] = c.ufrag[0];
	c.ufrag[1] = c.pwd[1] = (char)('a' + generation % 26);
	return c;
}

static void note_event(struct world *w, const struct ice_output *o, bool was_answered)
{
	const struct net_addr *remote = &o->notify.path.remote;

	switch (o->notify.event) {
	case ICE_EVENT_VALIDATED:
		assert(w->is_known[index_of(remote)] && ice_agent_is_validated(w->agent, remote));
		return;
	case ICE_EVENT_SELECTED:
		assert(ice_agent_is_selected(w->agent) && ice_agent_is_validated(w->agent, remote));
		assert(net_addr_is_equal(&ice_agent_path(w->agent)->remote, remote));
		/* To another IP only by an answer from there. */
		assert(!w->is_lite || !w->selected.port || was_answered ||
		       net_addr_is_same_ip(&w->selected, remote));
		w->selected = *remote;
		return;
	case ICE_EVENT_DROPPED:
		assert(w->is_lite && !net_addr_is_equal(&w->selected, remote));
		return;
	case ICE_EVENT_EXPIRED:
		assert(!w->is_over);
		w->is_over = true;
		return;
	}
	abort();
}

/* `response_cap`: how long a response may be, 0 = none is due. */
static void drain(struct world *w, size_t response_cap, bool was_answered)
{
	struct ice_output o = ice_agent_poll(w->agent);

	for (unsigned n = 0; o.kind != ICE_IDLE; n++, o = ice_agent_poll(w->agent)) {
		struct stun_message m;

		assert(n < MAX_OUTPUTS);
		if (o.kind == ICE_NOTIFY) {
			note_event(w, &o, was_answered);
			continue;
		}
		assert(!w->is_over && w->is_known[index_of(&o.transmit.path.remote)]);
		assert(stun_parse(&m, o.transmit.bytes, o.transmit.len) == STUN_OK);
		assert(m.integrity_offset);
		if (m.class != STUN_REQUEST) {
			assert(o.transmit.len <= response_cap);
			response_cap = 0; /* one */
			continue;
		}
		assert(m.len <= sizeof(w->check));
		memcpy(w->check, m.bytes, m.len);
		w->check_bytes = m.len;
		w->check_path = o.transmit.path;
	}
	assert(!w->is_over || o.deadline_us == UINT64_MAX);
	assert(!ice_agent_is_proven(w->agent) || ice_agent_path(w->agent));
}

static bool is_authentic(enum ice_verdict verdict)
{
	return verdict == ICE_ACCEPTED || verdict == ICE_ROLE_CONFLICT ||
	       verdict == ICE_UNKNOWN_ATTRIBUTE;
}

static void raw(struct world *w, struct input *in)
{
	unsigned where = next_byte(in);
	struct net_path path = path_of(where % ADDRESSES, where / ADDRESSES);
	size_t n = next_byte(in), left = (size_t)(in->end - in->at);
	uint8_t *bytes;
	enum ice_verdict verdict;

	n = n < left ? n : left;
	bytes = malloc(n ? n : 1);
	assert(bytes);
	if (n)
		memcpy(bytes, in->at, n);
	in->at += n;
	verdict = ice_agent_on_stun(w->agent, w->now_us, &path, bytes, n);
	free(bytes);
	assert(!is_authentic(verdict));
	drain(w, 0, false);
}

static void request(struct world *w, struct input *in)
{
	unsigned where = next_byte(in), flags = next_byte(in);
	struct net_path path = path_of(where % ADDRESSES, where / ADDRESSES);
	unsigned generation = w->generation - (flags & 1);
	struct ice_credentials ours = credentials(true, generation);
	struct ice_credentials theirs = credentials(false, generation);
	uint8_t bytes[256], transaction[STUN_TRANSACTION_BYTES] = { next_byte(in) };
	struct stun_writer writer;
	enum ice_verdict verdict;
	bool is_forged;
	size_t len;

	stun_write_begin(&writer, bytes, sizeof(bytes), STUN_REQUEST, transaction);
	stun_write_username(&writer, ours.ufrag, theirs.ufrag);
	if (flags & 2)
		stun_write(&writer, STUN_USE_CANDIDATE, NULL, 0);
	if (flags & 4)
		stun_write_u64(&writer, STUN_ICE_CONTROLLING, flags);
	if (flags & 8)
		stun_write_u64(&writer, STUN_ICE_CONTROLLED, flags);
	for (unsigned i = 0; i < (flags >> 4 & 7); i++)
		stun_write(&writer, (uint16_t)(0x7000 + i), NULL, 0);
	is_forged = transaction[0] & 0x80;
	len = stun_write_end(&writer, is_forged ? theirs.pwd : ours.pwd, flags >> 7);
	verdict = ice_agent_on_stun(w->agent, w->now_us, &path, bytes, len);
	assert(!is_forged || !is_authentic(verdict));
	if (is_authentic(verdict))
		w->is_known[index_of(&path.remote)] = true;
	drain(w, is_forged ? 0 : len + ICE_MAX_RESPONSE_GROWTH_BYTES, false);
}

static void answer(struct world *w, struct input *in)
{
	unsigned where = next_byte(in), flags = next_byte(in);
	struct ice_credentials theirs = credentials(false, w->generation - (flags & 1));
	struct net_path path = w->check_path;
	struct stun_message m;
	struct stun_writer writer;
	uint8_t bytes[256];
	enum ice_verdict verdict;
	size_t len;

	if (!w->check_bytes)
		return;
	if (flags & 2)
		path = path_of(where % ADDRESSES, where / ADDRESSES);
	assert(stun_parse(&m, w->check, w->check_bytes) == STUN_OK);
	stun_write_begin(&writer, bytes, sizeof(bytes), flags & 4 ? STUN_ERROR : STUN_SUCCESS,
			 m.transaction);
	if (flags & 4)
		stun_write_error(&writer, flags & 8 ? STUN_CODE_ROLE_CONFLICT : 500);
	else
		stun_write_mapped(&writer, &path.local);
	len = stun_write_end(&writer, theirs.pwd, flags & 16);
	verdict = ice_agent_on_stun(w->agent, w->now_us, &path, bytes, len);
	assert(verdict != ICE_ACCEPTED || net_addr_is_equal(&path.remote, &w->check_path.remote));
	drain(w, 0, verdict == ICE_ACCEPTED);
}

static void own(struct world *w, struct input *in)
{
	unsigned where = next_byte(in), what = next_byte(in);
	struct net_path path = path_of(where % ADDRESSES, where / ADDRESSES);
	struct ice_credentials local, remote;

	switch (what % 4) {
	case 0:
		ice_agent_on_authenticated(w->agent, w->now_us, &path);
		break;
	case 1:
		ice_agent_on_proven(w->agent, &path.remote);
		break;
	case 2:
		if (ice_agent_add_remote(w->agent, w->now_us, &path) == 0)
			w->is_known[where % ADDRESSES] = true;
		break;
	default:
		w->generation++;
		local = credentials(true, w->generation);
		remote = credentials(false, w->generation);
		assert(ice_agent_restart(w->agent, w->now_us, &local, &remote) == 0);
	}
	drain(w, 0, false);
}

static void pass_time(struct world *w, struct input *in)
{
	uint64_t steps = next_byte(in);
	struct ice_output o;

	w->now_us += steps * steps * steps * 2; /* up to 33 s */
	ice_agent_on_timeout(w->agent, w->now_us);
	drain(w, 0, false);
	o = ice_agent_poll(w->agent);
	assert(o.kind == ICE_IDLE && o.deadline_us > w->now_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const steps[])(struct world *, struct input *) = { raw, request, answer, own,
									 pass_time };
	struct input in = { data, data + size };
	struct world w = { .now_us = 1 };
	unsigned first = next_byte(&in);
	struct ice_config config = { .role = first & 1 ? ICE_CONTROLLING : ICE_LITE,
				     .local = credentials(true, 0),
				     .remote = credentials(false, 0),
				     .tie_breaker = first,
				     .seed = { (uint8_t)first },
				     .connect_limit_us = first & 2 ? 10000000 : 0 };

	w.is_lite = config.role == ICE_LITE;
	assert(ice_agent_create(&w.agent, w.now_us, &config) == 0);
	while (in.at < in.end)
		steps[next_byte(&in) % (sizeof(steps) / sizeof(steps[0]))](&w, &in);
	ice_agent_destroy(w.agent);
	return 0;
}
