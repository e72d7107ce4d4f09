#include <assert.h>

#include "net/ice_agent.h"
#include "pool/bytes.h"

static int8_t index_of(const struct ice_agent *a, const struct ice_pair *p)
{
	return (int8_t)(p - a->pairs);
}

struct ice_pair *ice_pair_find(struct ice_agent *a, const struct net_path *path)
{
	for (int i = 0; i < ICE_MAX_PAIRS; i++) {
		struct ice_pair *p = &a->pairs[i];

		if (p->is_used && net_addr_is_equal(&p->path.remote, &path->remote) &&
		    (a->is_lite || net_addr_is_any(&p->path.local) ||
		     net_addr_is_same_ip(&p->path.local, &path->local)))
			return p;
	}
	return NULL;
}

static struct ice_pair *oldest_unused(struct ice_agent *a)
{
	struct ice_pair *oldest = NULL;

	for (int i = 0; i < ICE_MAX_PAIRS; i++)
		if (i != a->selected && i != a->wanted &&
		    (!oldest || a->pairs[i].heard_us < oldest->heard_us))
			oldest = &a->pairs[i];
	return oldest;
}

struct ice_pair *ice_pair_claim(struct ice_agent *a, const struct net_path *path)
{
	struct ice_pair *p = NULL;

	for (int i = 0; i < ICE_MAX_PAIRS && !p; i++)
		if (!a->pairs[i].is_used)
			p = &a->pairs[i];
	if (!p && !a->is_lite)
		return NULL;
	if (!p) {
		p = oldest_unused(a);
		a->dropped_path = p->path;
		a->is_dropped_unannounced = true;
	}
	*p = (struct ice_pair){ .path = *path, .is_used = true };
	return p;
}

void ice_pair_validate(struct ice_pair *p)
{
	if (!p->is_validated)
		p->is_unannounced = true;
	p->is_validated = true;
	if (p->path.remote.connection)
		p->is_proven = true; /* its handshake went there and back */
}

void ice_check_start(struct ice_agent *a, struct ice_pair *p)
{
	p->check = ICE_CHECK_DUE;
	p->sends = 0;
	p->is_awaited = false;
	p->next_us = a->now_us;
}

void ice_check_stop(struct ice_pair *p)
{
	p->check = ICE_CHECK_NONE;
	p->is_awaited = false;
}

void ice_check_start_all(struct ice_agent *a)
{
	a->is_settled = false;
	a->nominate_us = UINT64_MAX;
	for (int i = 0; i < ICE_MAX_PAIRS; i++) {
		struct ice_pair *p = &a->pairs[i];

		if (!p->is_used)
			continue;
		p->has_answered = false;
		p->is_nominating = false;
		p->is_nominated = false;
		ice_check_start(a, p);
	}
}

static void select_pair(struct ice_agent *a, struct ice_pair *p)
{
	bool is_new = a->selected != index_of(a, p);

	if (is_new || !a->is_settled)
		a->is_selected_unannounced = true;
	a->is_settled = !a->has_old_keys; /* what old credentials nominate, the new ones confirm */
	a->selected = index_of(a, p);
}

/* Of one host, and q is behind a connection. */
static bool is_first_choice(const struct ice_pair *p, const struct ice_pair *q)
{
	return q->path.remote.connection && !p->path.remote.connection &&
	       net_addr_is_same_ip(&p->path.remote, &q->path.remote);
}

/* Lite: selected or wanted addresses alone are asked, one of each kind at a time; and one that was left
 * for a connection before it could answer, to which the path returns when it does. */
static void select_lite(struct ice_agent *a, struct ice_pair *p)
{
	struct ice_pair *former = ice_selected(a);

	if (former && net_addr_is_same_ip(&former->path.remote, &p->path.remote))
		p->is_proven |= former->is_proven;
	p->is_nominated = false;
	if (former && is_first_choice(former, p) && former->check != ICE_CHECK_NONE)
		former->is_nominated = true;
	else if (former)
		ice_check_stop(former);
	if (a->wanted != ICE_NONE)
		ice_check_stop(&a->pairs[a->wanted]);
	a->wanted = ICE_NONE;
	select_pair(a, p);
	if (!p->is_proven)
		ice_check_start(a, p);
}

/* The latest nomination is for the path in use. */
static void confirm_lite(struct ice_agent *a, struct ice_pair *p, bool is_moved)
{
	if (a->wanted != ICE_NONE)
		ice_check_stop(&a->pairs[a->wanted]);
	a->wanted = ICE_NONE;
	if (is_moved)
		a->is_selected_unannounced = true;
	if (!a->is_settled)
		select_pair(a, p);
	if (!p->is_proven && p->check == ICE_CHECK_NONE)
		ice_check_start(a, p);
}

/* Who nominates every pair that works (Firefox) would end on the last one, which is the connection. It
 * is left to wait while datagrams go both ways and still come. */
static bool is_second_choice(struct ice_agent *a, const struct ice_pair *p)
{
	const struct ice_pair *selected = ice_selected(a);

	return selected && a->is_settled && is_first_choice(selected, p) && selected->is_proven &&
	       a->now_us - selected->heard_us < ICE_FRESH_US;
}

void ice_nominate_lite(struct ice_agent *a, struct ice_pair *p, const struct net_path *path)
{
	const struct ice_pair *selected = ice_selected(a);
	bool is_moved = !net_addr_is_equal(&p->path.local, &path->local);

	p->path.local = path->local;
	if (selected == p) {
		confirm_lite(a, p, is_moved);
		return;
	}
	if (is_second_choice(a, p))
		return;
	if (!selected || p->path.remote.connection ||
	    net_addr_is_same_ip(&selected->path.remote, &p->path.remote)) {
		select_lite(a, p);
		return;
	}
	if (a->wanted != ICE_NONE && a->wanted != index_of(a, p))
		ice_check_stop(&a->pairs[a->wanted]);
	a->wanted = index_of(a, p);
	if (p->check == ICE_CHECK_NONE)
		ice_check_start(a, p);
}

/* Bytes that nobody can foretell without the seed: HMAC-SHA1 of a counter. */
static void draw(struct ice_agent *a, uint8_t out[STUN_HMAC_BYTES])
{
	uint8_t counter[8];

	be64_write(counter, a->draws++);
	stun_hmac_sha1((struct stun_span){ a->seed, sizeof(a->seed) },
		       (struct stun_span){ counter, sizeof(counter) }, (struct stun_span){ 0 },
		       out);
}

static uint64_t consent_interval_us(uint32_t random)
{
	return ICE_CONSENT_MIN_US + random % (ICE_CONSENT_MAX_US - ICE_CONSENT_MIN_US + 1);
}

static bool is_consent(const struct ice_agent *a, const struct ice_pair *p)
{
	return !a->is_lite && a->is_settled && a->selected == index_of(a, p);
}

/* Full: this is the path. Only consent checks go on. */
static void settle_on(struct ice_agent *a, struct ice_pair *p)
{
	uint8_t random[STUN_HMAC_BYTES];

	for (int i = 0; i < ICE_MAX_PAIRS; i++) {
		ice_check_stop(&a->pairs[i]);
		a->pairs[i].is_nominating = false;
		a->pairs[i].is_nominated = false;
	}
	a->nominate_us = UINT64_MAX;
	select_pair(a, p);
	a->is_settled = true;
	draw(a, random);
	p->check = ICE_CHECK_DUE;
	p->next_us = ice_later(a->now_us, consent_interval_us(be32_read(random)));
}

void ice_nominate_controlled(struct ice_agent *a, struct ice_pair *p)
{
	if (p->has_answered && !is_consent(a, p)) {
		settle_on(a, p);
	} else if (!p->has_answered) {
		p->is_nominated = true;
		if (p->check == ICE_CHECK_NONE)
			ice_check_start(a, p);
	}
}

void ice_check_succeeded(struct ice_agent *a, struct ice_pair *p)
{
	uint64_t nominate_us = a->now_us;

	ice_pair_validate(p);
	p->is_proven = true;
	if (a->is_lite) {
		ice_check_stop(p);
		if (a->wanted == index_of(a, p) || p->is_nominated)
			select_lite(a, p);
		return;
	}
	p->has_answered = true;
	if (is_consent(a, p))
		return;
	ice_check_stop(p);
	if (p->is_nominating || p->is_nominated) {
		settle_on(a, p);
		return;
	}
	if (!a->is_controlling || a->is_settled)
		return;
	if (index_of(a, p) != 0)
		nominate_us = ice_later(a->now_us, ICE_BETTER_WAIT_US);
	if (nominate_us < a->nominate_us)
		a->nominate_us = nominate_us;
}

void ice_settle(struct ice_agent *a)
{
	struct ice_pair *best = NULL;

	if (a->nominate_us > a->now_us || a->nominate_us == UINT64_MAX)
		return;
	a->nominate_us = UINT64_MAX;
	for (int i = 0; i < ICE_MAX_PAIRS; i++) {
		if (a->pairs[i].has_answered && !best)
			best = &a->pairs[i];
		ice_check_stop(&a->pairs[i]);
	}
	assert(best); /* nominate_us is set by an answer alone */
	best->is_nominating = true;
	ice_check_start(a, best);
}

static void give_up(struct ice_agent *a, struct ice_pair *p)
{
	ice_check_stop(p);
	if (a->wanted == index_of(a, p))
		a->wanted = ICE_NONE;
	if (a->is_lite || a->is_settled)
		return; /* the peer's next request may start it anew */
	if (p->is_nominating)
		ice_check_start_all(a);
	else
		ice_check_start(a, p); /* the owner's limit ends a vain search, not this */
}

/* A new transaction, or the next copy of the one that is out. */
static void advance(struct ice_agent *a, struct ice_pair *p)
{
	uint8_t random[STUN_HMAC_BYTES] = { 0 };
	uint64_t wait_us;

	if (p->check == ICE_CHECK_DUE) {
		draw(a, random);
		memcpy(p->transaction, random, sizeof(p->transaction));
		p->is_awaited = true;
		p->sends = 0;
	}
	if (is_consent(a, p)) { /* not repeated, RFC 7675 5.1: the next one is a new transaction */
		wait_us = consent_interval_us(be32_read(random + STUN_TRANSACTION_BYTES));
	} else {
		p->check = ICE_CHECK_SENT;
		p->sends++;
		wait_us = p->sends == 1 ? ICE_RTO_US : ICE_RTO_MAX_US;
	}
	p->next_us = ice_later(a->now_us, wait_us);
	a->pace_us = ice_later(a->now_us, ICE_PACING_US);
}

static size_t build(struct ice_agent *a, const struct ice_pair *p)
{
	const struct ice_keys *keys = a->is_lite && a->has_old_keys ? &a->old_keys : &a->keys;
	struct stun_writer w;

	stun_write_begin(&w, a->message, sizeof(a->message), STUN_REQUEST, p->transaction);
	stun_write_username(&w, keys->remote.ufrag, keys->local.ufrag);
	/* As of a peer-reflexive candidate, RFC 8445 7.1.1: preference 110, component 1. */
	stun_write_u32(&w, STUN_PRIORITY,
		       110U << 24 | (uint32_t)(UINT16_MAX - index_of(a, p)) << 8 | 255);
	stun_write_u64(&w, a->is_controlling ? STUN_ICE_CONTROLLING : STUN_ICE_CONTROLLED,
		       a->tie_breaker);
	if (a->is_controlling && (p->is_nominating || is_consent(a, p)))
		stun_write(&w, STUN_USE_CANDIDATE, NULL, 0);
	return stun_write_end(&w, keys->remote.pwd, true);
}

/* Earliest of those due; the most preferred of equals. */
static struct ice_pair *next_due(struct ice_agent *a)
{
	struct ice_pair *due = NULL;

	for (int i = 0; i < ICE_MAX_PAIRS; i++) {
		struct ice_pair *p = &a->pairs[i];

		if (p->check != ICE_CHECK_NONE && p->next_us <= a->now_us &&
		    (!due || p->next_us < due->next_us))
			due = p;
	}
	return due;
}

size_t ice_check_next(struct ice_agent *a, struct net_path *path)
{
	uint8_t max_sends = a->is_lite ? ICE_MAX_SENDS_LITE : ICE_MAX_SENDS;
	struct ice_pair *p;

	if (a->pace_us > a->now_us)
		return 0;
	while ((p = next_due(a)) != NULL) {
		if (p->check == ICE_CHECK_SENT && p->sends >= max_sends) {
			give_up(a, p);
			continue;
		}
		advance(a, p);
		*path = p->path;
		return build(a, p);
	}
	return 0;
}

uint64_t ice_check_deadline_us(const struct ice_agent *a)
{
	uint64_t first_us = UINT64_MAX;

	for (int i = 0; i < ICE_MAX_PAIRS; i++)
		if (a->pairs[i].check != ICE_CHECK_NONE && a->pairs[i].next_us < first_us)
			first_us = a->pairs[i].next_us;
	if (first_us < a->pace_us)
		first_us = a->pace_us;
	return first_us < a->nominate_us ? first_us : a->nominate_us;
}
