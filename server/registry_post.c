/* server/registry_post.c - from an offer to a plan and its answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/random.h"
#include "server/registry_inner.h"

/* --- POST -------------------------------------------------------------------------------- */

/* Handshake steps that wait for a helper now: what a joiner would wait behind. */
static uint64_t steps_queued(const struct registry *r)
{
	uint64_t steps = 0;

	for (unsigned i = 0; i < r->shared->workers; i++) {
		const struct worker_counters *c = worker_counters(r->shared->team[i]);

		steps += counter_read(&c->handshakes) + counter_read(&c->handshakes_waiting);
	}
	return steps;
}

static bool may_admit(struct registry *r, struct registry_reply *reply)
{
	const struct config *c = r->config;
	uint32_t open = r->plan_count - r->over_count;

	if (r->is_draining)
		registry_refuse(reply, REGISTRY_DRAINING, "the server is shutting down");
	else if (r->unclaimed >= c->limits.unclaimed_plans ||
		 (c->limits.sessions && open >= c->limits.sessions))
		registry_refuse(reply, REGISTRY_FULL, "the server is full");
	else if (steps_queued(r) >= REGISTRY_BUSY_STEPS)
		registry_refuse(reply, REGISTRY_FULL, "too many others are just connecting");
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
		registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
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
	is_listed = registry_list_plan(r, p);
	for (int err = -EEXIST; is_listed && err;) {
		registry_draw_credentials(&p->local);
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
		registry_withdraw(r, p, TRANSPORT_CLOSED_NO_MEMORY);
		r->unclaimed--;
		registry_unlist_plan(r, p);
	} else {
		registry_leave_stream(r, p->stream);
	}
	registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
	return false;
}

/* An answered session is half open from here on; a stream made for a refused offer goes. */
static void finish_post(struct registry *r, const char *stream, const uint8_t client[16],
			const struct registry_reply *reply)
{
	if (reply->status == REGISTRY_OK) {
		memcpy(r->newest->client, client, sizeof(r->newest->client));
		r->newest->is_half_open = true;
	} else {
		registry_drop_unused_stream(r, stream);
	}
}

static void plan_publisher(struct registry *r, struct stream_entry *e, const struct sdp *offer,
			   const struct negotiated *n, bool is_opaque, struct registry_reply *reply)
{
	struct plan *p = plan_create(PLAN_PUBLISHER);

	if (p)
		p->negotiated = malloc(sizeof(*p->negotiated));
	if (!p || !p->negotiated) {
		plan_unref(p);
		registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return;
	}
	*p->negotiated = *n;
	p->is_opaque = is_opaque;
	if (!copy_remote(p, n)) {
		registry_refuse(reply, REGISTRY_UNACCEPTABLE,
				"ice-ufrag is longer than 32 or ice-pwd longer than 64 characters");
		plan_unref(p);
		return;
	}
	if (!admit(r, e, p, offer, n, reply))
		plan_unref(p);
}

/* Of an opaque stream nothing may depend on payloads: RED's blocks cannot be told apart, and without
 * descriptors there is no way to change between encodings. */
static enum answer_verdict negotiate_opaque(const struct sdp *sdp, struct answer_policy *policy,
					    struct negotiated *n, char reason[ANSWER_REASON_BYTES])
{
	enum answer_verdict verdict;

	policy->red = false;
	verdict = answer_negotiate(sdp, policy, n, reason);
	if (verdict != ANSWER_OK ||
	    n->media[MEDIA_VIDEO].extensions.id_of[EXT_DEPENDENCY_DESCRIPTOR] != 0)
		return verdict;
	policy->max_encodings = 1;
	return answer_negotiate(sdp, policy, n, reason);
}

void registry_publish(struct registry *r, const char *stream, const struct registry_offer *offer,
		      const uint8_t client[16], struct registry_reply *reply)
{
	struct answer_policy policy;
	struct negotiated *n = NULL;
	struct sdp *sdp = NULL;
	struct stream_entry *e;
	enum answer_verdict verdict;

	*reply = (struct registry_reply){ .status = REGISTRY_OK };
	if (!may_admit(r, reply))
		return;
	sdp = parse_offer(offer->text, offer->len, reply);
	if (!sdp)
		return;
	n = malloc(sizeof(*n));
	e = registry_get_stream(r, stream);
	if (!n || !e || registry_renew_identity(r)) {
		registry_refuse(reply, REGISTRY_FULL,
				e ? "the server is out of memory"
				  : "the server carries as many streams as it may");
		goto out;
	}
	answer_policy_init(&policy, ANSWER_INGEST);
	answer_policy_layers(&policy);
	policy.max_codecs = (uint8_t)r->config->policy.max_codecs;
	policy.feedback |= SDP_FB_TRANSPORT_CC | SDP_FB_REMB;
	for (unsigned kind = 0; kind < STREAM_TRACKS; kind++)
		policy.extensions[kind] |= 1u << EXT_TRANSPORT_CC;
	verdict = offer->is_opaque ? negotiate_opaque(sdp, &policy, n, reply->reason)
				   : answer_negotiate(sdp, &policy, n, reply->reason);
	if (verdict == ANSWER_OK)
		plan_publisher(r, e, sdp, n, offer->is_opaque, reply);
	else
		reply->status = status_of(verdict);
out:
	finish_post(r, stream, client, reply);
	free(n);
	free(sdp);
}

/* --- viewers ----------------------------------------------------------------------------- */

uint32_t registry_draw_ssrc(void)
{
	uint32_t ssrc = (uint32_t)random_u64();

	return ssrc ? ssrc : 1;
}

/* What the stream has of a kind, or may turn out to have: the viewer's answer names nothing else. */
static void allow_codecs(struct answer_policy *policy, const struct stream_entry *e,
			 enum media_kind kind)
{
	const struct negotiated_codec *c = stream_entry_possible(e, kind, 0);
	bool red = false;

	if (!c)
		policy->codec_count[kind] = 0;
	for (unsigned i = 0; c; c = stream_entry_possible(e, kind, ++i)) {
		red |= c->red_pt != NEGOTIATED_NO_PT;
		answer_policy_only(policy, c->codec, c->fmtp);
	}
	if (kind == MEDIA_AUDIO)
		policy->red = red;
}

static void egress_policy(struct answer_policy *policy, const struct stream_entry *e)
{
	answer_policy_init(policy, ANSWER_EGRESS);
	policy->feedback |= SDP_FB_TRANSPORT_CC | SDP_FB_REMB;
	policy->extensions[MEDIA_VIDEO] |= 1u << EXT_TRANSPORT_CC | 1u << EXT_ABS_SEND_TIME;
	for (unsigned kind = 0; kind < STREAM_TRACKS; kind++) {
		/* SSRCs are signalled: a mid in each packet would only cost bytes. */
		policy->extensions[kind] &= ~(1u << EXT_MID);
		policy->ssrc[kind] = registry_draw_ssrc();
		policy->rtx_ssrc[kind] = registry_draw_ssrc();
		if (e && e->publisher)
			allow_codecs(policy, e, (enum media_kind)kind);
	}
}

/* By config, who cannot take the video's codec may still listen: its video m-line is refused. */
static enum answer_verdict negotiate_viewer(const struct registry *r, const struct sdp *sdp,
					    struct answer_policy *policy, struct negotiated *n,
					    char reason[ANSWER_REASON_BYTES])
{
	enum answer_verdict verdict = answer_negotiate(sdp, policy, n, reason);
	char why[ANSWER_REASON_BYTES];

	if (verdict != ANSWER_NO_COMMON_CODEC || !r->config->policy.audio_only)
		return verdict;
	memcpy(why, reason, sizeof(why));
	policy->codec_count[MEDIA_VIDEO] = 0;
	if (answer_negotiate(sdp, policy, n, reason) == ANSWER_OK)
		return ANSWER_OK;
	memcpy(reason, why, sizeof(why)); /* the first one says what is missing */
	return verdict;
}

/* The stamps are left out: viewers without a choice pay nothing for them. */
static const enum ext_kind forwarded[MAPPING_EXTS] = {
	[MAPPING_TRANSPORT_CC] = EXT_KINDS,
	[MAPPING_SEND_TIME] = EXT_KINDS,
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
		if (c->red_pt != NEGOTIATED_NO_PT)
			m->types[CODEC_RED] = c->red_pt;
	}
	for (unsigned i = 0; i < MAPPING_EXTS; i++)
		if (forwarded[i] != EXT_KINDS)
			m->ext_ids[i] = media->extensions.id_of[forwarded[i]];
	if (m->ext_ids[MAPPING_MID] && mapping_set_mid(m, media->mid, strlen(media->mid)))
		m->ext_ids[MAPPING_MID] = 0;
	mapping_seal(m);
}

/* How the peer can be told when a packet left, so that it tells in turn how the packet fared: by
 * transport-wide feedback, else by REMB. */
static void fill_stamps(struct plan_track *t, const struct negotiated_media *media)
{
	if (media->feedback & SDP_FB_TRANSPORT_CC)
		t->transport_cc_id = media->extensions.id_of[EXT_TRANSPORT_CC];
	if (!t->transport_cc_id && media->feedback & SDP_FB_REMB)
		t->send_time_id = media->extensions.id_of[EXT_ABS_SEND_TIME];
}

static void plan_viewer(struct registry *r, struct stream_entry *e, const struct sdp *offer,
			const struct negotiated *n, struct registry_reply *reply)
{
	struct plan *p = plan_create(PLAN_VIEWER);

	if (!p) {
		registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
		return;
	}
	for (unsigned kind = 0; kind < STREAM_TRACKS; kind++) {
		const struct negotiated_media *m = &n->media[kind];

		p->tracks[kind].is_used = m->is_accepted;
		p->tracks[kind].ssrc = m->local_ssrc;
		p->tracks[kind].rtx_ssrc = m->local_rtx_ssrc;
		if (!m->is_accepted)
			continue;
		fill_mapping(&p->tracks[kind].mapping, m);
		fill_stamps(&p->tracks[kind], m);
	}
	p->wish = (struct choice_wish){ CHOICE_ANY, CHOICE_ANY, CHOICE_ANY, 0, 0, 0, 0 };
	p->video_line = n->media[MEDIA_VIDEO].m_line;
	memcpy(p->video_mid, n->media[MEDIA_VIDEO].mid, sizeof(p->video_mid));
	if (!copy_remote(p, n)) {
		registry_refuse(reply, REGISTRY_UNACCEPTABLE,
				"ice-ufrag is longer than 32 or ice-pwd longer than 64 characters");
		plan_unref(p);
		return;
	}
	if (!admit(r, e, p, offer, n, reply))
		plan_unref(p);
}

void registry_watch(struct registry *r, const char *stream, const char *offer, size_t len,
		    const uint8_t client[16], struct registry_reply *reply)
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
		registry_refuse(reply, REGISTRY_NO_PUBLISHER, "nobody publishes this stream now");
		return;
	}
	sdp = parse_offer(offer, len, reply);
	if (!sdp)
		return;
	n = malloc(sizeof(*n));
	if (!n || registry_renew_identity(r)) {
		registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
		goto out;
	}
	egress_policy(&policy, e);
	verdict = negotiate_viewer(r, sdp, &policy, n, reply->reason);
	if (verdict != ANSWER_OK) {
		reply->status = status_of(verdict);
		goto out;
	}
	if (!e)
		e = registry_get_stream(r, stream);
	if (e)
		plan_viewer(r, e, sdp, n, reply);
	else
		registry_refuse(reply, REGISTRY_FULL,
				"the server carries as many streams as it may");
out:
	finish_post(r, stream, client, reply);
	free(n);
	free(sdp);
}
