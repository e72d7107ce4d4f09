/* server/registry_plans.c - the list of sessions: their names, their way in and out. */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/random.h"
#include "server/log.h"
#include "server/registry_inner.h"

enum {
	UFRAG_CHARS = 16, /* of 36: 82 bits */
	PWD_CHARS = 32,
	ETAG_CHARS = 16,
	RETRY_AFTER_S = 2,
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* --- trees ------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct plan *)a)->id, ((const struct plan *)b)->id);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t left = ((const struct plan *)a)->number;
	uint64_t right = ((const struct plan *)b)->number;

	return (left > right) - (left < right);
}

struct plan *registry_plan_by_id(struct registry *r, const char *id)
{
	struct plan key = { 0 };
	struct plan **node;

	if (strlen(id) >= sizeof(key.id))
		return NULL;
	memcpy(key.id, id, strlen(id) + 1);
	node = tfind(&key, &r->plans_by_id, compare_ids);
	return node ? *node : NULL;
}

struct plan *registry_plan_by_number(struct registry *r, uint64_t number)
{
	struct plan key = { .number = number };
	struct plan **node = tfind(&key, &r->plans_by_number, compare_numbers);

	return node ? *node : NULL;
}

/* --- random names ------------------------------------------------------------------------ */

static void draw(char *out, size_t chars, const char *alphabet, unsigned size)
{
	uint8_t bytes[PWD_CHARS * 2];
	size_t at = 0;

	while (at < chars) {
		random_bytes(bytes, sizeof(bytes));
		for (size_t i = 0; i < sizeof(bytes) && at < chars; i++)
			if (bytes[i] <
			    256 / size * size) /* no character more likely than another */
				out[at++] = alphabet[bytes[i] % size];
	}
	out[chars] = '\0';
	explicit_bzero(bytes, sizeof(bytes));
}

void registry_draw_credentials(struct ice_credentials *c)
{
	draw(c->ufrag, UFRAG_CHARS, letters, 36);
	draw(c->pwd, PWD_CHARS, letters, 36);
}

void registry_draw_etag(struct plan *p)
{
	draw(p->etag, ETAG_CHARS, base64url, 64);
}

/* --- a plan's way in and out ------------------------------------------------------------- */

void registry_refuse(struct registry_reply *reply, enum registry_status status, const char *reason)
{
	reply->status = status;
	snprintf(reply->reason, sizeof(reply->reason), "%s", reason);
	if (status == REGISTRY_FULL || status == REGISTRY_NO_PUBLISHER)
		reply->retry_after_s = RETRY_AFTER_S;
}

bool registry_list_plan(struct registry *r, struct plan *p)
{
	struct plan **by_id;

	p->number = ++r->next_number;
	draw(p->id, REGISTRY_ID_BYTES - 2, base64url, 64);
	registry_draw_etag(p);
	by_id = tsearch(p, &r->plans_by_id, compare_ids);
	if (!by_id || *by_id != p)
		return false;
	if (!tsearch(p, &r->plans_by_number, compare_numbers)) {
		tdelete(p, &r->plans_by_id, compare_ids);
		return false;
	}
	p->is_listed_by_id = true;
	p->older = r->newest;
	if (r->newest)
		r->newest->newer = p;
	else
		r->oldest = p;
	r->newest = p;
	r->plan_count++;
	r->unclaimed++;
	return true;
}

void registry_hide_id(struct registry *r, struct plan *p)
{
	if (p->is_listed_by_id)
		tdelete(p, &r->plans_by_id, compare_ids);
	p->is_listed_by_id = false;
}

static void leave_directory(struct registry *r, struct plan *p)
{
	if (p->ufrag[0])
		directory_remove(r->shared->directory, p->ufrag);
	if (p->former_ufrag[0])
		directory_remove(r->shared->directory, p->former_ufrag);
}

void registry_settle(struct registry *r, struct plan *p)
{
	if (p->is_half_open && r->on_settled)
		r->on_settled(r->on_settled_arg, p->client);
	p->is_half_open = false;
}

/* Ended: nobody can reach it any more; its owner may still ask why. */
void registry_plan_over(struct registry *r, struct plan *p)
{
	if (p->is_over)
		return;
	registry_settle(r, p);
	registry_events_end(p);
	p->is_over = true;
	p->over_us = clock_now_us();
	r->over_count++;
	leave_directory(r, p);
	registry_leave_stream(r, p->stream);
}

void registry_unlist_plan(struct registry *r, struct plan *p)
{
	registry_plan_over(r, p);
	r->over_count--;
	registry_hide_id(r, p);
	tdelete(p, &r->plans_by_number, compare_numbers);
	if (p->older)
		p->older->newer = p->newer;
	else
		r->oldest = p->newer;
	if (p->newer)
		p->newer->older = p->older;
	else
		r->newest = p->older;
	r->plan_count--;
	plan_unref(p);
}

void registry_log_session(const struct registry *r, const char *event, struct plan *p)
{
	char peer[NET_ADDR_TEXT_BYTES], detail[DIAGNOSIS_BYTES];
	enum diagnosis d = registry_diagnose(r, p, detail);
	struct net_addr addr;

	pthread_mutex_lock(&p->lock);
	addr = p->path.remote.port ? p->path.remote : p->seen.peer;
	pthread_mutex_unlock(&p->lock);
	log_event(CONFIG_LOG_INFO, event, log_number("session", (int64_t)p->number),
		  log_text("role", p->role == PLAN_PUBLISHER ? "publisher" : "viewer"),
		  log_text("stream", p->stream->name),
		  log_text("peer", addr.port ? net_addr_format(&addr, peer) : ""),
		  log_text("reason", transport_reason_text(atomic_load(&p->reason))),
		  log_number("seconds", (int64_t)((clock_now_us() - p->created_us) / 1000000)),
		  log_text("code", diagnosis_code(d)), log_text("detail", detail));
}

/* Nobody claimed it, and now nobody can. @return false: somebody has */
bool registry_withdraw(struct registry *r, struct plan *p, uint32_t reason)
{
	uint64_t unclaimed = 0;

	if (!atomic_compare_exchange_strong(&p->claim, &unclaimed, PLAN_GONE))
		return false;
	atomic_store(&p->reason, reason);
	atomic_store(&p->state, PLAN_CLOSED);
	r->sessions_ended[reason % TRANSPORT_REASONS]++;
	registry_log_session(r, "session_end", p);
	registry_plan_over(r, p);
	return true;
}

void registry_close_plan(struct registry *r, struct plan *plan, enum transport_reason reason)
{
	struct letter *letter;
	struct session_ref ref;

	if (registry_withdraw(r, plan, reason))
		return;
	letter = calloc(1, sizeof(*letter));
	if (!letter)
		return; /* it will end by itself when its peer is gone */
	ref = session_ref_unpack(atomic_load_explicit(&plan->claim, memory_order_acquire));
	letter->kind = LETTER_CLOSE;
	letter->to = ref;
	letter->reason = reason;
	if (atomic_load(&plan->claim) == PLAN_GONE)
		free(letter);
	else
		worker_post(r->shared->team[ref.worker], letter);
}
