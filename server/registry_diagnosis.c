/* server/registry_diagnosis.c - why sessions do not run, and the memory of those that ended. */
#include "server/registry_inner.h"

enum { ADDRESSES_BYTES = 320 };

static uint64_t idle_us_of(const struct plan *p, uint64_t now_us)
{
	return p->heard_us && now_us > p->heard_us ? now_us - p->heard_us : 0;
}

static bool has_publisher(const struct registry *r, const struct plan *p)
{
	const struct stream_entry *e = registry_find_stream(r, p->stream->name);

	return e && e->publisher;
}

enum diagnosis registry_diagnose(const struct registry *r, struct plan *p,
				 char detail[DIAGNOSIS_BYTES])
{
	uint64_t now_us = p->is_over ? p->over_us : clock_now_us();
	uint64_t strangers = atomic_load_explicit(&p->bad_checks, memory_order_relaxed);
	char addresses[ADDRESSES_BYTES];
	struct diagnosis_facts facts = {
		.is_publisher = p->role == PLAN_PUBLISHER,
		.is_connected = atomic_load_explicit(&p->has_connected, memory_order_relaxed),
		.is_dtls_client = p->dtls_role == DTLS_CLIENT,
		.has_publisher = has_publisher(r, p),
		.is_private_only = r->candidates.is_private_only,
		.age_us = now_us - p->created_us,
		.idle_us = idle_us_of(p, now_us),
		.packets = counter_read(&p->stats.packets),
		.srtp_failures = counter_read(&p->stats.srtp_failures),
	};
	enum diagnosis d;

	if (atomic_load_explicit(&p->state, memory_order_acquire) == PLAN_CLOSED)
		facts.reason = atomic_load_explicit(&p->reason, memory_order_relaxed);
	pthread_mutex_lock(&p->lock);
	facts.seen = p->seen;
	pthread_mutex_unlock(&p->lock);
	/* Some were seen by both, by strangers' rules and by the session's own. */
	if (facts.seen.bad_checks < strangers)
		facts.seen.bad_checks = strangers;
	/* Plain RTP connects to nobody: it is media that comes or not. */
	d = p->plain && !facts.is_connected ? DIAGNOSIS_NONE : diagnosis_of(&facts);
	if (d == DIAGNOSIS_NO_CHECK)
		facts.addresses = candidates_write(&r->candidates, addresses, sizeof(addresses));
	diagnosis_write(detail, d, &facts);
	return d;
}

void registry_hear(struct plan *p, uint64_t now_us)
{
	uint64_t packets = counter_read(&p->stats.packets);

	if (!atomic_load_explicit(&p->has_connected, memory_order_relaxed))
		return;
	if (packets != p->heard_packets || p->heard_us == 0)
		p->heard_us = now_us;
	p->heard_packets = packets;
}

/* --- ended ------------------------------------------------------------------------------- */

void registry_remember(struct registry *r, struct plan *p)
{
	struct registry_ended *slot = &r->ended[r->ended_next];

	/* Those behind it alone fill the memory. */
	if (r->over_count > REGISTRY_ENDED_SESSIONS)
		return;
	json_decref(slot->json);
	explicit_bzero(slot->id, sizeof(slot->id));
	slot->number = p->number;
	slot->json = registry_session_json(r, p);
	if (p->is_listed_by_id)
		memcpy(slot->id, p->id, sizeof(slot->id));
	r->ended_next = (r->ended_next + 1) % REGISTRY_ENDED_SESSIONS;
}

const json_t *registry_ended_by_number(const struct registry *r, uint64_t number)
{
	for (unsigned i = 0; i < REGISTRY_ENDED_SESSIONS; i++)
		if (r->ended[i].json && r->ended[i].number == number)
			return r->ended[i].json;
	return NULL;
}

const json_t *registry_ended_by_id(const struct registry *r, const char *id)
{
	for (unsigned i = 0; i < REGISTRY_ENDED_SESSIONS; i++)
		if (r->ended[i].json && id[0] && strcmp(r->ended[i].id, id) == 0)
			return r->ended[i].json;
	return NULL;
}

void registry_forget_ended(struct registry *r)
{
	for (unsigned i = 0; i < REGISTRY_ENDED_SESSIONS; i++)
		json_decref(r->ended[i].json);
	explicit_bzero(r->ended, sizeof(r->ended));
}
