/* server/registry.c - see registry.h for the contract: sessions from their POST to their end. */
#include "server/registry.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/sdpfrag.h"
#include "net/random.h"
#include "server/log.h"
#include "server/registry_inner.h"
#include "server/registry_life.h"

enum {
	UFRAG_CHARS = 16, /* of 36: 82 bits */
	PWD_CHARS = 32,
	ID_BYTES = 16,
	RETRY_AFTER_S = 2,
	IDENTITY_LIFE_S = 86400, /* new sessions get a fresh certificate each day */
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

static void draw_credentials(struct ice_credentials *c)
{
	draw(c->ufrag, UFRAG_CHARS, letters, 36);
	draw(c->pwd, PWD_CHARS, letters, 36);
}

/* --- a plan's way in and out ------------------------------------------------------------- */

static void refuse(struct registry_reply *reply, enum registry_status status, const char *reason)
{
	reply->status = status;
	snprintf(reply->reason, sizeof(reply->reason), "%s", reason);
	if (status == REGISTRY_FULL || status == REGISTRY_NO_PUBLISHER)
		reply->retry_after_s = RETRY_AFTER_S;
}

static bool list_plan(struct registry *r, struct plan *p)
{
	struct plan **by_id;

	p->number = ++r->next_number;
	draw(p->id, REGISTRY_ID_BYTES - 2, base64url, 64);
	draw(p->etag, ID_BYTES, base64url, 64);
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

static void hide_id(struct registry *r, struct plan *p)
{
	if (p->is_listed_by_id)
		tdelete(p, &r->plans_by_id, compare_ids);
	p->is_listed_by_id = false;
}

static void leave_directory(struct registry *r, struct plan *p)
{
	directory_remove(r->shared->directory, p->ufrag);
	if (p->former_ufrag[0])
		directory_remove(r->shared->directory, p->former_ufrag);
}

/* Ended: nobody can reach it any more; its owner may still ask why. */
static void plan_over(struct registry *r, struct plan *p)
{
	if (p->is_over)
		return;
	p->is_over = true;
	p->over_us = clock_now_us();
	r->over_count++;
	leave_directory(r, p);
	registry_leave_stream(r, p->stream);
}

static void unlist_plan(struct registry *r, struct plan *p)
{
	plan_over(r, p);
	r->over_count--;
	hide_id(r, p);
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

static void log_session(const char *event, const struct plan *p)
{
	char peer[NET_ADDR_TEXT_BYTES];
	struct plan *locked = (struct plan *)p; /* the lock alone is touched */
	struct net_addr addr;

	pthread_mutex_lock(&locked->lock);
	addr = p->path.remote;
	pthread_mutex_unlock(&locked->lock);
	log_event(CONFIG_LOG_INFO, event, log_number("session", (int64_t)p->number),
		  log_text("role", p->role == PLAN_PUBLISHER ? "publisher" : "viewer"),
		  log_text("stream", p->stream->name),
		  log_text("peer", addr.port ? net_addr_format(&addr, peer) : ""),
		  log_text("reason", transport_reason_text(atomic_load(&p->reason))),
		  log_number("seconds", (int64_t)((clock_now_us() - p->created_us) / 1000000)));
}

/* Nobody claimed it, and now nobody can. @return false: somebody has */
static bool withdraw(struct registry *r, struct plan *p, uint32_t reason)
{
	uint64_t unclaimed = 0;

	if (!atomic_compare_exchange_strong(&p->claim, &unclaimed, PLAN_GONE))
		return false;
	atomic_store(&p->reason, reason);
	atomic_store(&p->state, PLAN_CLOSED);
	r->sessions_ended[reason % TRANSPORT_REASONS]++;
	log_session("session_end", p);
	plan_over(r, p);
	return true;
}

void registry_close_plan(struct registry *r, struct plan *plan, enum transport_reason reason)
{
	struct letter *letter;
	struct session_ref ref;

	if (withdraw(r, plan, reason))
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

/* --- POST -------------------------------------------------------------------------------- */

static bool may_admit(struct registry *r, struct registry_reply *reply)
{
	const struct config *c = r->config;
	uint32_t open = r->plan_count - r->over_count;

	if (r->is_draining)
		refuse(reply, REGISTRY_DRAINING, "the server is shutting down");
	else if (r->unclaimed >= c->limits.unclaimed_plans ||
		 (c->limits.sessions && open >= c->limits.sessions))
		refuse(reply, REGISTRY_FULL, "the server is full");
	else
		return true;
	return false;
}

static enum registry_status status_of(enum answer_verdict verdict)
{
	return verdict == ANSWER_NO_COMMON_CODEC ? REGISTRY_NO_COMMON_CODEC : REGISTRY_UNACCEPTABLE;
}

/* @return the parsed offer, the caller's, or NULL with the reply filled */
static struct sdp *parse_offer(const char *offer, size_t len, struct registry_reply *reply)
{
	struct sdp *sdp = malloc(sizeof(*sdp));
	struct sdp_error error;

	if (!sdp) {
		refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return NULL;
	}
	if (sdp_parse(sdp, offer, len, &error) == SDP_OK)
		return sdp;
	reply->status = REGISTRY_UNPARSABLE;
	snprintf(reply->reason, sizeof(reply->reason), "%s", error.text);
	free(sdp);
	return NULL;
}

static bool copy_remote(struct plan *p, const struct negotiated *n)
{
	if (strlen(n->remote_ufrag) > ICE_UFRAG_MAX_BYTES ||
	    strlen(n->remote_pwd) > ICE_PWD_MAX_BYTES)
		return false;
	memcpy(p->remote.ufrag, n->remote_ufrag, strlen(n->remote_ufrag) + 1);
	memcpy(p->remote.pwd, n->remote_pwd, strlen(n->remote_pwd) + 1);
	memcpy(p->remote_ufrag, p->remote.ufrag, sizeof(p->remote_ufrag));
	p->dtls_role = n->dtls_role == NEGOTIATED_DTLS_CLIENT ? DTLS_CLIENT : DTLS_SERVER;
	return dtls_fingerprint_parse(&p->fingerprint, n->fingerprints[0].hash,
				      n->fingerprints[0].digest) == 0;
}

static void note_first_line(struct plan *p, const struct sdp *offer, const struct negotiated *n)
{
	for (unsigned i = 0; i < offer->media_count; i++) {
		if (n->lines[i] == NEGOTIATED_REJECTED)
			continue;
		sdp_span_copy(offer->media[i].mid, p->first_mid, sizeof(p->first_mid));
		p->first_kind = offer->media[i].kind == SDP_VIDEO ? MEDIA_VIDEO : MEDIA_AUDIO;
		return;
	}
}

static int renew_identity(struct registry *r)
{
	uint64_t now_us = clock_now_us();
	struct dtls_identity *fresh;
	int err;

	if (r->identity && now_us - r->identity_us < IDENTITY_LIFE_S * UINT64_C(1000000))
		return 0;
	err = dtls_identity_create(&fresh);
	if (err)
		return r->identity ? 0 : err; /* yesterday's is still good */
	dtls_identity_unref(r->identity);
	r->identity = fresh;
	r->identity_us = now_us;
	return 0;
}

static bool write_answer(struct registry *r, const struct sdp *offer, const struct negotiated *n,
			 const struct plan *p, struct registry_reply *reply)
{
	struct answer_local local = {
		.ufrag = p->local.ufrag,
		.pwd = p->local.pwd,
		.fingerprint = dtls_identity_fingerprint(p->identity),
		.session_id = random_u64() >> 2,
		.cname = p->stream->name,
		.msid = p->stream->name,
		.candidates = r->candidates.items,
		.candidate_count = r->candidates.count,
	};
	int len;

	reply->body = malloc(ANSWER_MAX_BYTES);
	if (!reply->body)
		return false;
	len = answer_write(offer, n, &local, reply->body, ANSWER_MAX_BYTES);
	if (len < 0)
		return false;
	reply->body_bytes = (size_t)len;
	return true;
}

/* What publisher and viewer have in common: names, credentials, lists, the answer. */
static bool admit(struct registry *r, struct stream_entry *e, struct plan *p,
		  const struct sdp *offer, const struct negotiated *n, struct registry_reply *reply)
{
	bool is_listed;

	p->stream = stream_ref(e->stream);
	e->plans++;
	p->identity = dtls_identity_ref(r->identity);
	p->created_us = clock_now_us();
	note_first_line(p, offer, n);
	is_listed = list_plan(r, p);
	for (int err = -EEXIST; is_listed && err;) {
		draw_credentials(&p->local);
		err = directory_add(r->shared->directory, &p->local, p);
		is_listed = err != -ENOMEM;
	}
	memcpy(p->ufrag, p->local.ufrag, sizeof(p->ufrag));
	if (is_listed && write_answer(r, offer, n, p, reply)) {
		memcpy(reply->session_id, p->id, sizeof(reply->session_id));
		memcpy(reply->etag, p->etag, sizeof(reply->etag));
		return true;
	}
	free(reply->body);
	reply->body = NULL;
	reply->body_bytes = 0;
	if (p->is_listed_by_id) {
		plan_ref(p);
		withdraw(r, p, TRANSPORT_CLOSED_NO_MEMORY);
		r->unclaimed--;
		unlist_plan(r, p);
	} else {
		registry_leave_stream(r, p->stream);
	}
	refuse(reply, REGISTRY_FULL, "the server is out of memory");
	return false;
}

static void plan_publisher(struct registry *r, struct stream_entry *e, const struct sdp *offer,
			   const struct negotiated *n, struct registry_reply *reply)
{
	struct plan *p = plan_create(PLAN_PUBLISHER);

	if (p)
		p->negotiated = malloc(sizeof(*p->negotiated));
	if (!p || !p->negotiated) {
		plan_unref(p);
		refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return;
	}
	*p->negotiated = *n;
	if (!copy_remote(p, n)) {
		refuse(reply, REGISTRY_UNACCEPTABLE,
		       "ice-ufrag is longer than 32 or ice-pwd longer than 64 characters");
		plan_unref(p);
		return;
	}
	if (!admit(r, e, p, offer, n, reply))
		plan_unref(p);
}

void registry_publish(struct registry *r, const char *stream, const char *offer, size_t len,
		      struct registry_reply *reply)
{
	struct answer_policy policy;
	struct negotiated *n = NULL;
	struct sdp *sdp = NULL;
	struct stream_entry *e;
	enum answer_verdict verdict;

	*reply = (struct registry_reply){ .status = REGISTRY_OK };
	if (!may_admit(r, reply))
		return;
	sdp = parse_offer(offer, len, reply);
	if (!sdp)
		return;
	n = malloc(sizeof(*n));
	e = registry_get_stream(r, stream);
	if (!n || !e || renew_identity(r)) {
		refuse(reply, REGISTRY_FULL,
		       e ? "the server is out of memory"
			 : "the server carries as many streams as it may");
		goto out;
	}
	answer_policy_init(&policy, ANSWER_INGEST);
	policy.max_codecs = 1; /* one codec a kind: viewers can be told which before it flows */
	policy.feedback |= SDP_FB_REMB;
	verdict = answer_negotiate(sdp, &policy, n, reply->reason);
	if (verdict == ANSWER_OK)
		plan_publisher(r, e, sdp, n, reply);
	else
		reply->status = status_of(verdict);
out:
	if (e && e->plans == 0 && !e->publisher) {
		e->plans = 1; /* made for this offer alone */
		registry_leave_stream(r, e->stream);
	}
	free(n);
	free(sdp);
}

/* --- viewers ----------------------------------------------------------------------------- */

static uint32_t draw_ssrc(void)
{
	uint32_t ssrc = (uint32_t)random_u64();

	return ssrc ? ssrc : 1;
}

static void egress_policy(struct answer_policy *policy, const struct stream_entry *e)
{
	answer_policy_init(policy, ANSWER_EGRESS);
	for (unsigned kind = 0; kind < STREAM_TRACKS; kind++) {
		const struct negotiated_codec *c =
		    e ? stream_entry_codec(e, (enum media_kind)kind) : NULL;

		/* SSRCs are signalled: a mid in each packet would only cost bytes. */
		policy->extensions[kind] &= ~(1u << EXT_MID);
		policy->ssrc[kind] = draw_ssrc();
		policy->rtx_ssrc[kind] = draw_ssrc();
		if (c)
			answer_policy_only(policy, c->codec, c->fmtp);
		else if (e && e->publisher)
			policy->codec_count[kind] = 0;
	}
}

static const enum ext_kind forwarded[MAPPING_EXTS] = {
	[MAPPING_MID] = EXT_MID,
	[MAPPING_AUDIO_LEVEL] = EXT_AUDIO_LEVEL,
	[MAPPING_ORIENTATION] = EXT_VIDEO_ORIENTATION,
	[MAPPING_PLAYOUT_DELAY] = EXT_PLAYOUT_DELAY,
	[MAPPING_CAPTURE_TIME] = EXT_ABS_CAPTURE_TIME,
	[MAPPING_DESCRIPTOR] = EXT_DEPENDENCY_DESCRIPTOR,
};

static void fill_mapping(struct mapping *m, const struct negotiated_media *media)
{
	mapping_init(m);
	for (unsigned i = 0; i < media->codec_count; i++) {
		const struct negotiated_codec *c = &media->codecs[i];

		if (m->types[c->codec] != MAPPING_NO_TYPE)
			continue; /* the first variant that the peer prefers */
		m->types[c->codec] = c->pt;
		if (c->rtx_pt != NEGOTIATED_NO_PT)
			m->rtx_types[c->codec] = c->rtx_pt;
	}
	for (unsigned i = 0; i < MAPPING_EXTS; i++)
		m->ext_ids[i] = media->extensions.id_of[forwarded[i]];
	if (m->ext_ids[MAPPING_MID] && mapping_set_mid(m, media->mid, strlen(media->mid)))
		m->ext_ids[MAPPING_MID] = 0;
	mapping_seal(m);
}

static void plan_viewer(struct registry *r, struct stream_entry *e, const struct sdp *offer,
			const struct negotiated *n, struct registry_reply *reply)
{
	struct plan *p = plan_create(PLAN_VIEWER);

	if (!p) {
		refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return;
	}
	for (unsigned kind = 0; kind < STREAM_TRACKS; kind++) {
		const struct negotiated_media *m = &n->media[kind];

		p->tracks[kind].is_used = m->is_accepted;
		p->tracks[kind].ssrc = m->local_ssrc;
		p->tracks[kind].rtx_ssrc = m->local_rtx_ssrc;
		if (m->is_accepted)
			fill_mapping(&p->tracks[kind].mapping, m);
	}
	if (!copy_remote(p, n)) {
		refuse(reply, REGISTRY_UNACCEPTABLE,
		       "ice-ufrag is longer than 32 or ice-pwd longer than 64 characters");
		plan_unref(p);
		return;
	}
	if (!admit(r, e, p, offer, n, reply))
		plan_unref(p);
}

void registry_watch(struct registry *r, const char *stream, const char *offer, size_t len,
		    struct registry_reply *reply)
{
	struct stream_entry *e = registry_find_stream(r, stream);
	struct answer_policy policy;
	struct negotiated *n = NULL;
	struct sdp *sdp;
	enum answer_verdict verdict;

	*reply = (struct registry_reply){ .status = REGISTRY_OK };
	if (!may_admit(r, reply))
		return;
	if ((!e || !e->publisher) && !r->config->streams.wait_for_publisher) {
		refuse(reply, REGISTRY_NO_PUBLISHER, "nobody publishes this stream now");
		return;
	}
	sdp = parse_offer(offer, len, reply);
	if (!sdp)
		return;
	n = malloc(sizeof(*n));
	if (!n || renew_identity(r)) {
		refuse(reply, REGISTRY_FULL, "the server is out of memory");
		goto out;
	}
	egress_policy(&policy, e);
	verdict = answer_negotiate(sdp, &policy, n, reply->reason);
	if (verdict != ANSWER_OK) {
		reply->status = status_of(verdict);
		goto out;
	}
	if (!e)
		e = registry_get_stream(r, stream);
	if (e)
		plan_viewer(r, e, sdp, n, reply);
	else
		refuse(reply, REGISTRY_FULL, "the server carries as many streams as it may");
out:
	free(n);
	free(sdp);
}

/* --- PATCH and DELETE -------------------------------------------------------------------- */

/* Is `tag` in an If-Match list, as "tag", bare, or * ? */
static bool tag_matches(const char *if_match, const char *tag)
{
	const char *at;

	if (strchr(if_match, '*'))
		return true;
	at = strstr(if_match, tag);
	return at != NULL;
}

static bool check_tag(const struct plan *p, const char *if_match, bool strict,
		      struct registry_reply *reply)
{
	if (!strict)
		return true;
	if (!if_match)
		refuse(reply, REGISTRY_TAG_MISSING, "If-Match is missing");
	else if (!tag_matches(if_match, p->etag))
		refuse(reply, REGISTRY_STALE, "If-Match names an earlier ICE session");
	else
		return true;
	return false;
}

/* Give the session new credentials, wherever it is by now. */
static bool apply_restart(struct registry *r, struct plan *p, const struct ice_credentials *local,
			  const struct ice_credentials *remote)
{
	struct letter *letter = calloc(1, sizeof(*letter));
	uint64_t claim;

	if (!letter)
		return false;
	pthread_mutex_lock(&p->lock);
	claim = atomic_load(&p->claim);
	if (claim == 0) {
		p->local = *local;
		p->remote = *remote;
	}
	pthread_mutex_unlock(&p->lock);
	if (claim == 0 || claim == PLAN_GONE) {
		free(letter);
		return true;
	}
	letter->kind = LETTER_RESTART;
	letter->to = session_ref_unpack(claim);
	letter->restart.local = *local;
	letter->restart.remote = *remote;
	worker_post(r->shared->team[letter->to.worker], letter);
	return true;
}

static bool write_restart(struct registry *r, const struct plan *p,
			  const struct ice_credentials *local, struct registry_reply *reply)
{
	struct sdpfrag_reply frag = {
		.ufrag = local->ufrag,
		.pwd = local->pwd,
		.mid = p->first_mid,
		.media = p->first_kind == MEDIA_VIDEO ? "video" : "audio",
		.candidates = r->candidates.items,
		.candidate_count = r->candidates.count,
	};
	int len;

	reply->body = malloc(SDPFRAG_REPLY_BYTES);
	if (!reply->body)
		return false;
	len = sdpfrag_write_reply(&frag, reply->body, SDPFRAG_REPLY_BYTES);
	reply->body_bytes = len > 0 ? (size_t)len : 0;
	return len > 0;
}

static void restart(struct registry *r, struct plan *p, const struct sdpfrag *frag,
		    struct registry_reply *reply)
{
	struct ice_credentials local = { 0 }, remote = { 0 };
	int err = -EEXIST;

	if (strlen(frag->ufrag) > ICE_UFRAG_MAX_BYTES || strlen(frag->pwd) > ICE_PWD_MAX_BYTES) {
		refuse(reply, REGISTRY_UNACCEPTABLE,
		       "ice-ufrag is longer than 32 or ice-pwd longer than 64 characters");
		return;
	}
	memcpy(remote.ufrag, frag->ufrag, strlen(frag->ufrag) + 1);
	memcpy(remote.pwd, frag->pwd, strlen(frag->pwd) + 1);
	while (err == -EEXIST) {
		draw_credentials(&local);
		err = directory_add(r->shared->directory, &local, p);
	}
	if (err || !write_restart(r, p, &local, reply) || !apply_restart(r, p, &local, &remote)) {
		if (!err)
			directory_remove(r->shared->directory, local.ufrag);
		free(reply->body);
		reply->body = NULL;
		refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return;
	}
	if (p->former_ufrag[0])
		directory_remove(r->shared->directory, p->former_ufrag);
	memcpy(p->former_ufrag, p->ufrag, sizeof(p->former_ufrag));
	memcpy(p->ufrag, local.ufrag, sizeof(p->ufrag));
	memcpy(p->remote_ufrag, remote.ufrag, sizeof(p->remote_ufrag));
	draw(p->etag, ID_BYTES, base64url, 64);
	memcpy(reply->etag, p->etag, sizeof(reply->etag));
}

void registry_patch(struct registry *r, const char *id, const char *text, size_t len,
		    const char *if_match, bool strict, struct registry_reply *reply)
{
	struct plan *p = registry_plan_by_id(r, id);
	struct sdpfrag *frag;
	struct sdp_error error;
	bool is_restart;

	*reply = (struct registry_reply){ .status = REGISTRY_OK };
	if (!p || p->is_over) {
		refuse(reply, REGISTRY_NOT_FOUND, "there is no such session");
		return;
	}
	frag = malloc(sizeof(*frag));
	if (!frag) {
		refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return;
	}
	if (sdpfrag_parse(frag, text, len, &error) != SDP_OK) {
		reply->status = REGISTRY_UNPARSABLE;
		snprintf(reply->reason, sizeof(reply->reason), "%s", error.text);
	} else {
		is_restart = frag->ufrag[0] && strcmp(frag->ufrag, p->remote_ufrag) != 0;
		/* Trickled candidates need no answer: an ICE-lite agent waits to be checked. */
		if (check_tag(p, if_match, strict, reply) && is_restart)
			restart(r, p, frag, reply);
	}
	free(frag);
}

enum registry_status registry_end(struct registry *r, const char *id)
{
	struct plan *p = registry_plan_by_id(r, id);

	if (!p || p->is_over)
		return REGISTRY_NOT_FOUND;
	hide_id(r, p);
	registry_close_plan(r, p, TRANSPORT_CLOSED_BY_CLIENT);
	return REGISTRY_OK;
}

enum registry_status registry_kick(struct registry *r, uint64_t number)
{
	struct plan *p = registry_plan_by_number(r, number);

	if (!p || p->is_over)
		return REGISTRY_NOT_FOUND;
	registry_close_plan(r, p, TRANSPORT_CLOSED_BY_ADMIN);
	return REGISTRY_OK;
}

/* --- mail and time ----------------------------------------------------------------------- */

static void on_ended(struct registry *r, struct letter *letter)
{
	struct plan *plan = letter->plan;

	if (plan && !plan->is_over) {
		log_session("session_end", plan);
		r->sessions_ended[atomic_load(&plan->reason) % TRANSPORT_REASONS]++;
		plan_ref(plan);
		if (plan->role == PLAN_PUBLISHER)
			registry_on_feed(r, plan, letter->feed);
		plan_over(r, plan);
		plan_unref(plan);
	} else if (letter->feed) {
		registry_on_feed(r, plan, letter->feed);
	}
	plan_unref(plan);
}

static void read_letter(struct registry *r, struct letter *letter)
{
	switch (letter->kind) {
	case LETTER_CONNECTED:
		log_session("publisher_connected", letter->plan);
		registry_on_connected(r, letter->plan);
		plan_unref(letter->plan);
		break;
	case LETTER_ENDED:
		on_ended(r, letter);
		break;
	case LETTER_STOPPED:
		/* The worker's own memory: not to be freed. */
		if (++r->workers_stopped == r->shared->workers && r->on_stopped)
			r->on_stopped(r->on_stopped_arg);
		return;
	default:
		break;
	}
	free(letter);
}

static void read_letters(struct registry *r)
{
	struct mail *mail = mailbox_take(&r->mailbox);

	while (mail) {
		struct letter *letter = (struct letter *)(void *)mail;

		mail = mail->next;
		read_letter(r, letter);
	}
}

static void on_wake(void *arg)
{
	read_letters(arg);
}

/* A session ended, but its letter could not be written for lack of memory. */
static void note_silent_end(struct registry *r, struct plan *p)
{
	plan_ref(p);
	if (p->role == PLAN_PUBLISHER)
		registry_on_feed(r, p, NULL);
	plan_over(r, p);
	plan_unref(p);
}

static void measure(struct plan *p, uint64_t now_us)
{
	uint64_t elapsed_us = now_us - p->measured_us;

	for (unsigned i = 0; i < STREAM_TRACKS; i++) {
		uint64_t bytes = counter_read(&p->stats.track_bytes[i]);

		if (p->measured_us && elapsed_us)
			p->bitrate_bps[i] = (bytes - p->measured_bytes[i]) * 8000000 / elapsed_us;
		p->measured_bytes[i] = bytes;
	}
	p->measured_us = now_us;
}

/* Once a second: what has expired, what has ended unheard, what may be forgotten. May free p. */
static void review(struct registry *r, struct plan *p, uint64_t now_us)
{
	uint64_t age_us = now_us - p->created_us;
	uint64_t claim = atomic_load_explicit(&p->claim, memory_order_relaxed);

	if (p->is_over) {
		if (now_us - p->over_us >= REGISTRY_MEMORY_US ||
		    r->over_count > REGISTRY_MEMORY_SESSIONS)
			unlist_plan(r, p);
		return;
	}
	if (claim == 0) {
		if (age_us >= r->config->session.plan_timeout_ms * UINT64_C(1000) &&
		    withdraw(r, p, TRANSPORT_CLOSED_NO_ICE))
			r->plans_expired++;
		else
			r->unclaimed++;
		return;
	}
	if (p->role == PLAN_PUBLISHER)
		measure(p, now_us);
	/* Two rounds of grace for the letter. */
	if (atomic_load(&p->state) == PLAN_CLOSED) {
		if (p->over_us == 0)
			p->over_us = now_us;
		else if (now_us - p->over_us > 2 * REGISTRY_TICK_US)
			note_silent_end(r, p);
	}
}

static void on_tick(void *arg)
{
	struct registry *r = arg;
	uint64_t now_us = clock_now_us();

	read_letters(r);
	r->unclaimed = 0;
	for (struct plan *p = r->oldest, *newer; p; p = newer) {
		newer = p->newer;
		review(r, p, now_us);
	}
	loop_timer_arm(r->timer, now_us + REGISTRY_TICK_US);
}

/* --- life -------------------------------------------------------------------------------- */

int registry_create(struct registry **out, struct loop *loop, struct worker_shared *shared,
		    const struct candidates *candidates)
{
	struct registry *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->loop = loop;
	r->shared = shared;
	r->config = shared->config;
	r->candidates = *candidates;
	r->started_us = clock_now_us();
	mailbox_init(&r->mailbox);
	shared->control = &r->mailbox;
	err = renew_identity(r);
	if (!err)
		err = loop_waker_open(loop, &r->waker, on_wake, r);
	if (!err)
		err = loop_timer_open(loop, &r->timer, on_tick, r);
	if (err) {
		registry_destroy(r);
		return err;
	}
	shared->control_waker = r->waker;
	loop_timer_arm(r->timer, r->started_us + REGISTRY_TICK_US);
	*out = r;
	return 0;
}

void registry_drain(struct registry *r)
{
	r->is_draining = true;
}

bool registry_is_ready(const struct registry *r)
{
	const struct config *c = r->config;

	return !r->is_draining && r->unclaimed < c->limits.unclaimed_plans &&
	       (c->limits.sessions == 0 || r->plan_count - r->over_count < c->limits.sessions);
}

uint32_t registry_sessions_open(const struct registry *r)
{
	return r->plan_count - r->over_count;
}

void registry_stop(struct registry *r, uint32_t reason, void (*on_stopped)(void *arg), void *arg)
{
	r->is_draining = true;
	r->on_stopped = on_stopped;
	r->on_stopped_arg = arg;
	for (unsigned i = 0; i < r->shared->workers; i++) {
		struct letter *letter = calloc(1, sizeof(*letter));

		if (!letter)
			abort(); /* cannot even end: nothing better is left */
		letter->kind = LETTER_STOP;
		letter->reason = reason;
		worker_post(r->shared->team[i], letter);
	}
}

void registry_destroy(struct registry *r)
{
	if (!r)
		return;
	read_letters(r);
	while (r->oldest)
		unlist_plan(r, r->oldest);
	registry_free_streams(r);
	dtls_identity_unref(r->identity);
	loop_waker_close(r->waker);
	loop_timer_close(r->timer);
	free(r);
}
