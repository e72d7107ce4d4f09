#include "net/ice.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "net/ice_agent.h"

enum { UFRAG_MIN_BYTES = 4, PWD_MIN_BYTES = 22 }; /* RFC 8839 section 5.4 */

static bool is_usable(const struct ice_credentials *c)
{
	size_t ufrag_bytes = strnlen(c->ufrag, sizeof(c->ufrag));
	size_t pwd_bytes = strnlen(c->pwd, sizeof(c->pwd));

	return ufrag_bytes >= UFRAG_MIN_BYTES && ufrag_bytes <= ICE_UFRAG_MAX_BYTES &&
	       pwd_bytes >= PWD_MIN_BYTES && pwd_bytes <= ICE_PWD_MAX_BYTES;
}

int ice_agent_create(struct ice_agent **out, uint64_t now_us, const struct ice_config *config)
{
	struct ice_agent *a;

	*out = NULL;
	if (!is_usable(&config->local) || !is_usable(&config->remote))
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->is_lite = config->role == ICE_LITE;
	a->is_controlling = config->role == ICE_CONTROLLING;
	a->keys.local = config->local;
	a->keys.remote = config->remote;
	a->tie_breaker = config->tie_breaker;
	memcpy(a->seed, config->seed, sizeof(a->seed));
	a->connect_limit_us = config->connect_limit_us;
	a->now_us = now_us;
	a->heard_us = now_us;
	a->nominate_us = UINT64_MAX;
	a->selected = ICE_NONE;
	a->wanted = ICE_NONE;
	*out = a;
	return 0;
}

void ice_agent_destroy(struct ice_agent *a)
{
	if (!a)
		return;
	explicit_bzero(a, sizeof(*a));
	free(a);
}

static void tick(struct ice_agent *a, uint64_t now_us)
{
	if (now_us > a->now_us)
		a->now_us = now_us;
}

int ice_agent_add_remote(struct ice_agent *a, uint64_t now_us, const struct net_path *path)
{
	struct ice_pair *p;

	if (a->is_lite)
		return -ENOTSUP;
	tick(a, now_us);
	if (ice_pair_find(a, path))
		return 0;
	p = ice_pair_claim(a, path);
	if (!p)
		return -ENOSPC;
	if (!a->is_settled)
		ice_check_start(a, p);
	return 0;
}

int ice_agent_recheck(struct ice_agent *a, uint64_t now_us)
{
	if (a->is_lite)
		return -ENOTSUP;
	tick(a, now_us);
	if (a->is_settled && a->selected != ICE_NONE) {
		ice_check_start(a, &a->pairs[a->selected]);
		a->pace_us = a->now_us; /* nothing else is under way that it could crowd */
	}
	return 0;
}

enum ice_verdict ice_agent_on_stun(struct ice_agent *a, uint64_t now_us,
				   const struct net_path *path, const uint8_t *bytes, size_t len)
{
	enum ice_verdict verdict = ICE_OVER;

	tick(a, now_us);
	if (!a->is_over) {
		verdict = ice_receive(a, path, bytes, len);
		ice_settle(a);
	}
	a->counts[verdict]++;
	return verdict;
}

void ice_agent_on_authenticated(struct ice_agent *a, uint64_t now_us, const struct net_path *path)
{
	struct ice_pair *p = ice_selected(a);

	tick(a, now_us);
	if (!p || !net_addr_is_equal(&p->path.remote, &path->remote))
		p = ice_pair_find(a, path);
	if (!p || !p->is_validated)
		return;
	p->heard_us = a->now_us;
	if (!a->is_lite)
		return;
	a->heard_us = a->now_us;
}

void ice_agent_on_proven(struct ice_agent *a, const struct net_addr *remote)
{
	for (int i = 0; i < ICE_MAX_PAIRS; i++) {
		struct ice_pair *p = &a->pairs[i];

		if (!p->is_validated || !net_addr_is_equal(&p->path.remote, remote))
			continue;
		p->is_proven = true;
		/* Asking a selected address served only this; a wanted one is still asked. */
		if (a->is_lite && i == a->selected)
			ice_check_stop(p);
	}
}

void ice_agent_on_lost(struct ice_agent *a, uint64_t now_us, const struct net_addr *remote)
{
	assert(a->is_lite);
	tick(a, now_us);
	for (int i = 0; i < ICE_MAX_PAIRS; i++) {
		struct ice_pair *p = &a->pairs[i];

		if (!p->is_used || !net_addr_is_equal(&p->path.remote, remote))
			continue;
		if (i == a->selected) {
			a->selected = ICE_NONE;
			a->is_settled = false;
			a->is_selected_unannounced = false;
		}
		if (i == a->wanted)
			a->wanted = ICE_NONE;
		*p = (struct ice_pair){ 0 };
	}
}

static uint64_t expiry_us(const struct ice_agent *a)
{
	if (a->has_heard)
		return ice_later(a->heard_us, ICE_EXPIRY_US);
	return a->connect_limit_us ? ice_later(a->heard_us, a->connect_limit_us) : UINT64_MAX;
}

void ice_agent_on_timeout(struct ice_agent *a, uint64_t now_us)
{
	tick(a, now_us);
	if (a->is_over)
		return;
	if (a->now_us >= expiry_us(a)) {
		a->is_over = true;
		a->is_over_unannounced = true;
		a->response_bytes = 0;
		return;
	}
	ice_settle(a);
}

int ice_agent_restart(struct ice_agent *a, uint64_t now_us, const struct ice_credentials *local,
		      const struct ice_credentials *remote)
{
	if (!is_usable(local) || !is_usable(remote))
		return -EINVAL;
	tick(a, now_us);
	/* Of two restarts in a row the peer may never have used the first: what it used stays. */
	if (!a->has_old_keys)
		a->old_keys = a->keys;
	a->has_old_keys = true;
	a->keys.local = *local;
	a->keys.remote = *remote;
	a->is_settled = false;
	if (!a->is_lite)
		ice_check_start_all(a);
	return 0;
}

static bool next_event(struct ice_agent *a, struct ice_output *out)
{
	out->kind = ICE_NOTIFY;
	if (a->is_dropped_unannounced) {
		a->is_dropped_unannounced = false;
		out->notify.event = ICE_EVENT_DROPPED;
		out->notify.path = a->dropped_path;
		return true;
	}
	for (int i = 0; i < ICE_MAX_PAIRS; i++) {
		if (!a->pairs[i].is_unannounced)
			continue;
		a->pairs[i].is_unannounced = false;
		out->notify.event = ICE_EVENT_VALIDATED;
		out->notify.path = a->pairs[i].path;
		return true;
	}
	if (a->is_selected_unannounced) {
		a->is_selected_unannounced = false;
		out->notify.event = ICE_EVENT_SELECTED;
		out->notify.path = a->pairs[a->selected].path;
		return true;
	}
	if (a->is_over_unannounced) {
		a->is_over_unannounced = false;
		out->notify.event = ICE_EVENT_EXPIRED;
		return true;
	}
	return false;
}

static uint64_t deadline_us(const struct ice_agent *a)
{
	uint64_t check_us = ice_check_deadline_us(a), end_us = expiry_us(a);

	return check_us < end_us ? check_us : end_us;
}

struct ice_output ice_agent_poll(struct ice_agent *a)
{
	struct ice_output out = { .kind = ICE_TRANSMIT };

	if (a->response_bytes) {
		out.transmit.path = a->response_path;
		out.transmit.bytes = a->message;
		out.transmit.len = a->response_bytes;
		a->response_bytes = 0;
		return out;
	}
	if (next_event(a, &out))
		return out;
	out.kind = ICE_TRANSMIT;
	out.transmit.bytes = a->message;
	out.transmit.len = a->is_over ? 0 : ice_check_next(a, &out.transmit.path);
	if (out.transmit.len)
		return out;
	return (struct ice_output){ .kind = ICE_IDLE,
				    .deadline_us = a->is_over ? UINT64_MAX : deadline_us(a) };
}

bool ice_agent_is_validated(const struct ice_agent *a, const struct net_addr *remote)
{
	for (int i = 0; i < ICE_MAX_PAIRS; i++)
		if (a->pairs[i].is_validated && net_addr_is_equal(&a->pairs[i].path.remote, remote))
			return true;
	return false;
}

static const struct ice_pair *current(const struct ice_agent *a)
{
	const struct ice_pair *best = NULL;

	if (a->selected != ICE_NONE)
		return &a->pairs[a->selected];
	for (int i = 0; i < ICE_MAX_PAIRS; i++)
		if (a->pairs[i].is_validated && (!best || a->pairs[i].heard_us > best->heard_us))
			best = &a->pairs[i];
	return best;
}

const struct net_path *ice_agent_path(const struct ice_agent *a)
{
	const struct ice_pair *p = current(a);

	return p ? &p->path : NULL;
}

bool ice_agent_is_proven(const struct ice_agent *a)
{
	const struct ice_pair *p = current(a);

	return p && p->is_proven;
}

bool ice_agent_is_selected(const struct ice_agent *a)
{
	return a->selected != ICE_NONE;
}

uint64_t ice_agent_heard_us(const struct ice_agent *a)
{
	return a->heard_us;
}

uint32_t ice_agent_count(const struct ice_agent *a, enum ice_verdict verdict)
{
	assert(verdict < ICE_VERDICTS);
	return a->counts[verdict];
}

const char *ice_verdict_name(enum ice_verdict verdict)
{
	static const char *const names[ICE_VERDICTS] = {
		[ICE_ACCEPTED] = "accepted",
		[ICE_INDICATION] = "indication",
		[ICE_MALFORMED] = "malformed",
		[ICE_BAD_FINGERPRINT] = "bad_fingerprint",
		[ICE_UNEXPECTED_METHOD] = "unexpected_method",
		[ICE_UNKNOWN_USER] = "unknown_user",
		[ICE_NO_INTEGRITY] = "no_integrity",
		[ICE_BAD_INTEGRITY] = "bad_integrity",
		[ICE_UNKNOWN_ATTRIBUTE] = "unknown_attribute",
		[ICE_ROLE_CONFLICT] = "role_conflict",
		[ICE_UNMATCHED] = "unmatched",
		[ICE_WRONG_SOURCE] = "wrong_source",
		[ICE_ERROR_RESPONSE] = "error_response",
		[ICE_OVER] = "over",
	};

	assert(verdict < ICE_VERDICTS);
	return names[verdict];
}

size_t ice_agent_bytes(void)
{
	return sizeof(struct ice_agent);
}
