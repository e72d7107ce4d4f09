/* server/registry_json.c - the registry as the API shows it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "net/addr.h"
#include "server/registry_inner.h"

static const char *const role_texts[] = { "publisher", "viewer" };
static const char *const state_texts[] = { "waiting", "connecting", "connected", "closed" };

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* Upper bound of the 99th percentile of how long turns took. */
static double lag_p99_ms(const struct worker_counters *c)
{
	uint64_t total = 0, seen = 0;

	for (unsigned i = 0; i < WORKER_LAG_SLOTS; i++)
		total += counter_read(&c->lag_slots[i]);
	for (unsigned i = 0; i < WORKER_LAG_SLOTS; i++) {
		seen += counter_read(&c->lag_slots[i]);
		if (seen * 100 >= total * 99)
			return (double)(UINT64_C(1) << i) / 1000.0;
	}
	return 0;
}

static json_t *workers_json(const struct registry *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < r->shared->workers; i++) {
		const struct worker_counters *c = worker_counters(r->shared->team[i]);

		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:o, s:o, s:f}", "sessions",
						number(counter_read(&c->sessions)), "viewers",
						number(counter_read(&c->viewers)), "packets_in",
						number(counter_read(&c->packets_in)), "packets_out",
						number(counter_read(&c->egress_datagrams)),
						"loop_lag_ms_p99", lag_p99_ms(c)));
	}
	return list;
}

static json_t *objects_json(const struct registry *r)
{
	uint64_t sessions = 0, branches = 0, forwards = 0, handshakes = 0;
	struct transport_live transports;
	struct dtls_live dtls;

	for (unsigned i = 0; i < r->shared->workers; i++) {
		const struct worker_counters *c = worker_counters(r->shared->team[i]);

		sessions += counter_read(&c->sessions);
		branches += counter_read(&c->branches);
		forwards += counter_read(&c->forwards);
		handshakes += counter_read(&c->handshakes) + counter_read(&c->handshakes_waiting);
	}
	transport_live(&transports);
	dtls_live(&dtls);
	return json_pack(
	    "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sessions",
	    number(sessions), "plans", number(plan_live()), "streams", number(stream_live()),
	    "branches", number(branches), "forwards", number(forwards), "directory_entries",
	    number(directory_count(r->shared->directory)), "transports",
	    number(transports.transports), "zombies", number(transports.zombies), "dtls_handshakes",
	    number(dtls.handshakes), "ssl_objects", number(dtls.ssl_objects), "handshake_steps",
	    number(handshakes), "plain_rtp", number(plain_setup_live()));
}

json_t *registry_info(struct registry *r)
{
	return json_pack("{s:s, s:o, s:b, s:s, s:o, s:o}", "version", SLUICE_VERSION, "uptime_s",
			 number((clock_now_us() - r->started_us) / 1000000), "draining",
			 r->is_draining, "srtp_engine", worker_engine_name(r->shared->team[0]),
			 "workers", workers_json(r), "objects", objects_json(r));
}

/* --- sessions ---------------------------------------------------------------------------- */

/* Where the peer is and how media are protected: null before it connected. */
static void connection_json(struct plan *p, json_t **addresses, const char **srtp)
{
	char remote[NET_ADDR_TEXT_BYTES], local[NET_ADDR_TEXT_BYTES];
	struct net_path path;

	pthread_mutex_lock(&p->lock);
	path = p->path;
	*srtp = seal_profile_text(p->profile);
	pthread_mutex_unlock(&p->lock);
	*addresses =
	    path.remote.port == 0
		? json_null()
		: json_pack("{s:s, s:s, s:s}", "remote", net_addr_format(&path.remote, remote),
			    "local", net_addr_format(&path.local, local), "protocol",
			    p->plain                 ? "rtp"
			    : path.remote.connection ? "tcp"
						     : "udp");
}

/* A viewer's by its reports; a publisher's by its answers to reference times, or by its repairs. */
static json_t *rtt_json(const struct plan *p)
{
	uint64_t rtt_us = counter_read(&p->stats.rtt_us);

	return rtt_us ? json_real((double)rtt_us / 1000.0) : json_null();
}

/* Of viewers whose link is looked after. */
static json_t *estimate_json(const struct plan *p)
{
	uint64_t estimate_bps = counter_read(&p->stats.estimate_bps);

	return estimate_bps ? number(estimate_bps) : json_null();
}

json_t *registry_session_json(const struct registry *r, struct plan *p)
{
	char detail[DIAGNOSIS_BYTES];
	enum diagnosis d = registry_diagnose(r, p, detail);
	uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire);
	uint32_t reason = atomic_load_explicit(&p->reason, memory_order_relaxed);
	uint64_t claim = atomic_load_explicit(&p->claim, memory_order_relaxed);
	json_t *worker = claim == 0 || claim == PLAN_GONE
			     ? json_null()
			     : json_integer(session_ref_unpack(claim).worker);
	json_t *addresses;
	const char *srtp;
	json_t *json;

	connection_json(p, &addresses, &srtp);
	json = json_pack(
	    "{s:o, s:s, s:s, s:s, s:s?, s:s?, s:s?, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, "
	    "s:f, s:o}",
	    "number", number(p->number), "role", role_texts[p->role], "stream", p->stream->name,
	    "state", state_texts[state], "reason",
	    state == PLAN_CLOSED ? transport_reason_text(reason) : NULL, "code", diagnosis_code(d),
	    "detail", d ? detail : NULL, "worker", worker, "addresses", addresses, "srtp", srtp,
	    "bytes", number(counter_read(&p->stats.bytes)), "packets",
	    number(counter_read(&p->stats.packets)), "lost", number(counter_read(&p->stats.lost)),
	    "nacked", number(counter_read(&p->stats.nacked)), "resent",
	    number(counter_read(&p->stats.resent)), "rtt_ms", rtt_json(p), "jitter_ms",
	    (double)counter_read(&p->stats.jitter_us) / 1000.0, "keyframe_requests",
	    number(counter_read(&p->stats.keyframe_requests)));
	if (p->role == PLAN_VIEWER) {
		json_object_set_new(json, "layer", registry_viewer_layer_json(r, p));
		json_object_set_new(json, "estimate_bps", estimate_json(p));
	}
	return json;
}

json_t *registry_plain_json(const struct registry *r, struct plan *p)
{
	const struct plain_setup *setup = p->plain;
	json_t *json = registry_session_json(r, p), *ports = json_object();

	for (unsigned kind = 0; kind < STREAM_TRACKS; kind++)
		for (unsigned i = 0; i < setup->terms.leg_count; i++)
			if (setup->terms.legs[i].kinds >> kind & 1)
				json_object_set_new(ports, kind == MEDIA_AUDIO ? "audio" : "video",
						    json_pack("{s:i, s:i}", "rtp",
							      setup->terms.legs[i].port, "rtcp",
							      setup->terms.legs[i].rtcp_port));
	json_object_set_new(json, "ports", ports);
	return json;
}

json_t *registry_input_json(struct registry *r, const char *stream)
{
	struct plan *p = registry_plain_input(r, stream);

	return p ? registry_plain_json(r, p) : NULL;
}

static bool is_output(const struct plan *p, const char *stream)
{
	return p->plain && p->role == PLAN_VIEWER && !p->is_over &&
	       strcmp(p->stream->name, stream) == 0;
}

json_t *registry_output_json(struct registry *r, const char *stream, uint64_t wanted)
{
	struct plan *p = registry_plan_by_number(r, wanted);

	return p && is_output(p, stream) ? registry_plain_json(r, p) : NULL;
}

json_t *registry_outputs_json(struct registry *r, const char *stream)
{
	json_t *list = json_array();

	for (struct plan *p = r->oldest; p; p = p->newer)
		if (is_output(p, stream))
			json_array_append_new(list, registry_plain_json(r, p));
	return list;
}

json_t *registry_sessions(struct registry *r)
{
	json_t *list = json_array();

	for (struct plan *p = r->oldest; p; p = p->newer)
		if (!p->is_over)
			json_array_append_new(list, registry_session_json(r, p));
	return list;
}

json_t *registry_session(struct registry *r, uint64_t wanted)
{
	struct plan *p = registry_plan_by_number(r, wanted);

	return p ? registry_session_json(r, p)
		 : json_deep_copy(registry_ended_by_number(r, wanted));
}

/* What its owner sees of a session that is long over. */
static json_t *ended_status(const json_t *session)
{
	static const char *const keys[] = { "state", "reason", "code", "detail" };
	json_t *json = session ? json_object() : NULL;

	for (size_t i = 0; json && i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_set(json, keys[i], json_object_get(session, keys[i]));
	return json;
}

json_t *registry_session_status(struct registry *r, const char *id)
{
	struct plan *p = registry_plan_by_id(r, id);
	char detail[DIAGNOSIS_BYTES];
	enum diagnosis d;
	uint32_t state;

	if (!p)
		return ended_status(registry_ended_by_id(r, id));
	state = atomic_load_explicit(&p->state, memory_order_acquire);
	d = registry_diagnose(r, p, detail);
	return json_pack("{s:s, s:s?, s:s?, s:s?}", "state", state_texts[state], "reason",
			 state == PLAN_CLOSED ? transport_reason_text(atomic_load(&p->reason))
					      : NULL,
			 "code", diagnosis_code(d), "detail", d ? detail : NULL);
}

/* --- streams ----------------------------------------------------------------------------- */

static json_t *tracks_json(const struct stream_entry *e)
{
	static const char *const kinds[] = { "audio", "video" };
	const struct plan *publisher = e->publisher;
	json_t *list = json_array();

	for (unsigned kind = 0; publisher && kind < STREAM_TRACKS; kind++) {
		const struct negotiated_codec *c = stream_entry_codec(e, (enum media_kind)kind);

		if (c)
			json_array_append_new(
			    list,
			    json_pack(
				"{s:s, s:s, s:s, s:i, s:o, s:o}", "kind", kinds[kind], "codec",
				codec_name(c->codec), "parameters", c->fmtp, "layers",
				kind == MEDIA_VIDEO && e->layers.count ? e->layers.count : 1,
				"bitrate_bps", number(publisher->bitrate_bps[kind]), "layer_list",
				kind == MEDIA_VIDEO ? registry_layers_json(e) : json_array()));
	}
	return list;
}

json_t *registry_streams(struct registry *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->stream_cap; i++) {
		const struct stream_entry *e = r->streams[i];

		if (!e)
			continue;
		json_array_append_new(
		    list,
		    json_pack("{s:s, s:o, s:o, s:o}", "name", e->stream->name, "publisher",
			      e->publisher ? registry_session_json(r, e->publisher) : json_null(),
			      "viewers", number(atomic_load(&e->stream->viewers)), "tracks",
			      tracks_json(e)));
	}
	return list;
}
