#include <assert.h>

#include "net/digest.h"
#include "net/ice_agent.h"

static bool is_ufrag(const char *ufrag, const char *got, size_t got_bytes)
{
	return strlen(ufrag) == got_bytes && digest_is_equal(ufrag, got, got_bytes);
}

/* The credentials a request was made for; NULL when it is not for us. */
static const struct ice_keys *keys_of(const struct ice_agent *a, const struct stun_message *m)
{
	const struct ice_keys *keys = &a->keys;
	const char *ours, *theirs;
	size_t ours_bytes, theirs_bytes;

	if (!stun_username_split(m, &ours, &ours_bytes, &theirs, &theirs_bytes))
		return NULL;
	if (!is_ufrag(keys->local.ufrag, ours, ours_bytes)) {
		keys = &a->old_keys;
		if (!a->has_old_keys || !is_ufrag(keys->local.ufrag, ours, ours_bytes))
			return NULL;
	}
	return is_ufrag(keys->remote.ufrag, theirs, theirs_bytes) ? keys : NULL;
}

/* Success when `code` is 0. FINGERPRINT answers a FINGERPRINT, so that no response outgrows a
 * request by more than an IPv6 address takes. */
static void answer(struct ice_agent *a, const struct net_path *path, const struct stun_message *m,
		   const char *pwd, uint16_t code)
{
	struct stun_writer w;
	uint8_t unknown[2 * STUN_MAX_UNKNOWN];

	stun_write_begin(&w, a->message, sizeof(a->message), code ? STUN_ERROR : STUN_SUCCESS,
			 m->transaction);
	if (code)
		stun_write_error(&w, code);
	else
		stun_write_mapped(&w, &path->remote);
	if (code == STUN_CODE_UNKNOWN_ATTRIBUTE) {
		for (size_t i = 0; i < m->unknown_count; i++) {
			unknown[2 * i] = (uint8_t)(m->unknown[i] >> 8);
			unknown[2 * i + 1] = (uint8_t)m->unknown[i];
		}
		stun_write(&w, STUN_UNKNOWN_ATTRIBUTES, unknown, 2 * (size_t)m->unknown_count);
	}
	a->response_bytes = (uint8_t)stun_write_end(&w, pwd, m->has_fingerprint);
	assert(a->response_bytes > 0); /* the longest of them is half of `message` */
	a->response_path = *path;
}

/* The first valid message under new credentials ends the old ones. */
static void retire_old_keys(struct ice_agent *a)
{
	if (!a->has_old_keys)
		return;
	a->has_old_keys = false;
	explicit_bzero(&a->old_keys, sizeof(a->old_keys));
	if (!a->is_lite)
		return;
	for (int i = 0; i < ICE_MAX_PAIRS; i++) /* what they signed is asked again */
		if (a->pairs[i].check != ICE_CHECK_NONE)
			ice_check_start(a, &a->pairs[i]);
}

static void switch_role(struct ice_agent *a)
{
	a->is_controlling = !a->is_controlling;
	ice_check_start_all(a);
}

/* RFC 8445 7.3.1.1. @return true: answer 487, the peer has to switch */
static bool is_role_conflict(struct ice_agent *a, const struct stun_message *m)
{
	if (a->is_lite) /* "the full agent MUST take the controlling role": 6.1.1 */
		return m->has_controlled;
	if (a->is_controlling ? !m->has_controlling : !m->has_controlled)
		return false;
	/* In either case the larger tie-breaker ends up controlling. */
	if ((a->tie_breaker >= m->tie_breaker) == a->is_controlling)
		return true;
	switch_role(a);
	return false;
}

static void lite_on_request(struct ice_agent *a, const struct net_path *path,
			    const struct stun_message *m)
{
	const struct ice_pair *selected = ice_selected(a);
	struct ice_pair *p = ice_pair_find(a, path);
	bool is_stale = selected && selected != p && a->now_us - selected->heard_us >= ICE_STALE_US;

	if (!p)
		p = ice_pair_claim(a, path);
	ice_pair_validate(p);
	p->heard_us = a->now_us;
	a->heard_us = a->now_us;
	a->has_heard = true;
	if (m->has_use_candidate || is_stale)
		ice_nominate_lite(a, p, path);
	else if (p != selected)
		p->path.local = path->local;
}

static void full_on_request(struct ice_agent *a, const struct net_path *path,
			    const struct stun_message *m)
{
	struct ice_pair *p = ice_pair_find(a, path);

	if (!p)
		p = ice_pair_claim(a, path);
	if (!p)
		return;
	ice_pair_validate(p);
	p->heard_us = a->now_us;
	/* A triggered check, RFC 8445 7.3.1.4: the peer got through, so may we. */
	if (!a->is_settled && p->check == ICE_CHECK_NONE && !p->has_answered)
		ice_check_start(a, p);
	if (!a->is_controlling && m->has_use_candidate)
		ice_nominate_controlled(a, p);
}

static enum ice_verdict on_request(struct ice_agent *a, const struct net_path *path,
				   const struct stun_message *m)
{
	const struct ice_keys *keys = keys_of(a, m);
	const char *pwd;

	if (!keys)
		return ICE_UNKNOWN_USER;
	if (!m->integrity_offset)
		return ICE_NO_INTEGRITY;
	pwd = keys->local.pwd;
	if (!stun_is_authentic(m, pwd))
		return ICE_BAD_INTEGRITY;
	if (m->unknown_count) {
		answer(a, path, m, pwd, STUN_CODE_UNKNOWN_ATTRIBUTE);
		return ICE_UNKNOWN_ATTRIBUTE;
	}
	if (is_role_conflict(a, m)) {
		answer(a, path, m, pwd, STUN_CODE_ROLE_CONFLICT);
		return ICE_ROLE_CONFLICT;
	}
	answer(a, path, m, pwd, 0);
	if (keys == &a->keys)
		retire_old_keys(a);
	if (a->is_lite)
		lite_on_request(a, path, m);
	else
		full_on_request(a, path, m);
	return ICE_ACCEPTED;
}

static struct ice_pair *find_awaited(struct ice_agent *a, const uint8_t *transaction)
{
	for (int i = 0; i < ICE_MAX_PAIRS; i++)
		if (a->pairs[i].is_awaited &&
		    memcmp(a->pairs[i].transaction, transaction, STUN_TRANSACTION_BYTES) == 0)
			return &a->pairs[i];
	return NULL;
}

/* RFC 8445 7.2.5.2.1: the response takes the way of the request, in reverse. */
static bool is_symmetric(const struct ice_pair *p, const struct net_path *path)
{
	return net_addr_is_equal(&p->path.remote, &path->remote) &&
	       (net_addr_is_any(&p->path.local) ||
		net_addr_is_same_ip(&p->path.local, &path->local));
}

static enum ice_verdict on_error(struct ice_agent *a, const struct stun_message *m)
{
	if (m->error_code != STUN_CODE_ROLE_CONFLICT || a->is_lite)
		return ICE_ERROR_RESPONSE; /* the check goes on, and is given up in time */
	switch_role(a);
	return ICE_ROLE_CONFLICT;
}

static enum ice_verdict on_response(struct ice_agent *a, const struct net_path *path,
				    const struct stun_message *m)
{
	const struct ice_keys *keys = a->is_lite && a->has_old_keys ? &a->old_keys : &a->keys;
	struct ice_pair *p = find_awaited(a, m->transaction);

	if (!p)
		return ICE_UNMATCHED;
	if (!is_symmetric(p, path))
		return ICE_WRONG_SOURCE;
	if (!m->integrity_offset)
		return ICE_NO_INTEGRITY;
	if (!stun_is_authentic(m, keys->remote.pwd))
		return ICE_BAD_INTEGRITY;
	if (m->unknown_count)
		return ICE_UNKNOWN_ATTRIBUTE;
	if (m->class == STUN_ERROR)
		return on_error(a, m);
	if (!m->has_mapped)
		return ICE_MALFORMED;
	p->is_awaited = false;
	p->heard_us = a->now_us;
	a->heard_us = a->now_us;
	a->has_heard = true;
	if (!a->is_lite)
		retire_old_keys(a);
	ice_check_succeeded(a, p);
	return ICE_ACCEPTED;
}

enum ice_verdict ice_receive(struct ice_agent *a, const struct net_path *path, const uint8_t *bytes,
			     size_t len)
{
	struct stun_message m;
	enum stun_verdict parsed = stun_parse(&m, bytes, len);

	if (parsed == STUN_BAD_FINGERPRINT)
		return ICE_BAD_FINGERPRINT;
	if (parsed != STUN_OK)
		return ICE_MALFORMED;
	if (m.method != STUN_BINDING)
		return ICE_UNEXPECTED_METHOD;
	switch (m.class) {
	case STUN_REQUEST:
		return on_request(a, path, &m);
	case STUN_INDICATION:
		return ICE_INDICATION;
	case STUN_SUCCESS:
	case STUN_ERROR:
		break;
	}
	return on_response(a, path, &m);
}
