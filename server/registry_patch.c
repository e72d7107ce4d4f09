/* server/registry_patch.c - what a session's owner may do to it: trickle, restart, end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/sdpfrag.h"
#include "server/registry_inner.h"

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
		registry_refuse(reply, REGISTRY_TAG_MISSING, "If-Match is missing");
	else if (!tag_matches(if_match, p->etag))
		registry_refuse(reply, REGISTRY_STALE, "If-Match names an earlier ICE session");
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

/* Those of the transport that the session uses: the whip-whep player takes several lines for one, so a
 * UDP and a TCP candidate of one address would end what a restart is to save. */
static size_t candidates_of(const struct registry *r, struct plan *p,
			    struct sdp_address out[CANDIDATES_MAX])
{
	size_t count = 0;
	bool is_tcp;

	pthread_mutex_lock(&p->lock);
	is_tcp = p->path.remote.connection != 0;
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < r->candidates.count; i++)
		if ((r->candidates.items[i].transport == SDP_TCP) == is_tcp)
			out[count++] = r->candidates.items[i];
	return count;
}

static bool write_restart(struct registry *r, struct plan *p, const struct ice_credentials *local,
			  struct registry_reply *reply)
{
	struct sdp_address candidates[CANDIDATES_MAX];
	struct sdpfrag_reply frag = {
		.ufrag = local->ufrag,
		.pwd = local->pwd,
		.mid = p->first_mid,
		.media = p->first_kind == MEDIA_VIDEO ? "video" : "audio",
		.candidates = candidates,
		.candidate_count = candidates_of(r, p, candidates),
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
		registry_refuse(reply, REGISTRY_UNACCEPTABLE,
				"ice-ufrag is longer than 32 or ice-pwd longer than 64 characters");
		return;
	}
	memcpy(remote.ufrag, frag->ufrag, strlen(frag->ufrag) + 1);
	memcpy(remote.pwd, frag->pwd, strlen(frag->pwd) + 1);
	while (err == -EEXIST) {
		registry_draw_credentials(&local);
		err = directory_add(r->shared->directory, &local, p);
	}
	if (err || !write_restart(r, p, &local, reply) || !apply_restart(r, p, &local, &remote)) {
		if (!err)
			directory_remove(r->shared->directory, local.ufrag);
		free(reply->body);
		reply->body = NULL;
		registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return;
	}
	if (p->former_ufrag[0])
		directory_remove(r->shared->directory, p->former_ufrag);
	memcpy(p->former_ufrag, p->ufrag, sizeof(p->former_ufrag));
	memcpy(p->ufrag, local.ufrag, sizeof(p->ufrag));
	memcpy(p->remote_ufrag, remote.ufrag, sizeof(p->remote_ufrag));
	registry_draw_etag(p);
	memcpy(reply->etag, p->etag, sizeof(reply->etag));
}

/* Trickled candidates need no answer: an ICE-lite agent waits to be checked. */
static void apply_fragment(struct registry *r, struct plan *p, const struct sdpfrag *frag,
			   struct registry_reply *reply)
{
	if (frag->ufrag[0] && strcmp(frag->ufrag, p->remote_ufrag) != 0)
		restart(r, p, frag, reply);
}

/* NOLINTNEXTLINE(readability-function-size): one parameter a part of the request */
void registry_patch(struct registry *r, const char *id, const char *text, size_t len,
		    const char *if_match, bool strict, struct registry_reply *reply)
{
	struct plan *p = registry_plan_by_id(r, id);
	struct sdpfrag *frag;
	struct sdp_error error;

	*reply = (struct registry_reply){ .status = REGISTRY_OK };
	if (!p || p->is_over) {
		registry_refuse(reply, REGISTRY_NOT_FOUND, "there is no such session");
		return;
	}
	frag = malloc(sizeof(*frag));
	if (!frag) {
		registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return;
	}
	if (sdpfrag_parse(frag, text, len, &error) != SDP_OK) {
		reply->status = REGISTRY_UNPARSABLE;
		snprintf(reply->reason, sizeof(reply->reason), "%s", error.text);
	} else if (check_tag(p, if_match, strict, reply)) {
		apply_fragment(r, p, frag, reply);
	}
	free(frag);
}

enum registry_status registry_end(struct registry *r, const char *id)
{
	struct plan *p = registry_plan_by_id(r, id);

	if (!p || p->is_over)
		return REGISTRY_NOT_FOUND;
	registry_hide_id(r, p);
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
