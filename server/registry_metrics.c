/* server/registry_metrics.c - what workers and registry count, as Prometheus text. */
#include <stddef.h>

#include "pool/slab.h"
#include "server/registry_inner.h"
#include "server/text.h"

struct metric {
	const char *name, *type, *help;
	size_t offset; /* of the counter in struct worker_counters */
};

#define WORKER_METRIC(member) offsetof(struct worker_counters, member)

static const struct metric metrics[] = {
	{ "sluice_worker_sessions", "gauge", "Sessions the worker serves.",
	  WORKER_METRIC(sessions) },
	{ "sluice_worker_viewers", "gauge", "Connected viewers.", WORKER_METRIC(viewers) },
	{ "sluice_worker_branches", "gauge", "Streams with viewers here.",
	  WORKER_METRIC(branches) },
	{ "sluice_worker_forwards", "gauge", "Addresses forwarded to another worker.",
	  WORKER_METRIC(forwards) },
	{ "sluice_worker_handshakes", "gauge", "DTLS steps running on helper threads.",
	  WORKER_METRIC(handshakes) },
	{ "sluice_worker_handshakes_waiting", "gauge", "DTLS steps waiting for the limit.",
	  WORKER_METRIC(handshakes_waiting) },
	{ "sluice_sessions_opened_total", "counter", "Sessions claimed.",
	  WORKER_METRIC(sessions_opened) },
	{ "sluice_rtp_packets_in_total", "counter", "RTP packets from publishers.",
	  WORKER_METRIC(packets_in) },
	{ "sluice_rtp_bytes_in_total", "counter", "Bytes of them.", WORKER_METRIC(bytes_in) },
	{ "sluice_datagrams_in_total", "counter", "Datagrams received.",
	  WORKER_METRIC(socket_datagrams) },
	{ "sluice_datagrams_out_total", "counter", "Datagrams sent.",
	  WORKER_METRIC(egress_datagrams) },
	{ "sluice_bytes_out_total", "counter", "Bytes of them.", WORKER_METRIC(egress_bytes) },
	{ "sluice_messages_out_total", "counter", "Send messages, each of one or more datagrams.",
	  WORKER_METRIC(egress_messages) },
	{ "sluice_send_calls_total", "counter", "System calls that sent them.",
	  WORKER_METRIC(egress_calls) },
	{ "sluice_send_blocked_total", "counter", "Times a socket's send buffer was full.",
	  WORKER_METRIC(egress_blocked) },
	{ "sluice_gso_refused_total", "counter",
	  "Messages sent datagram by datagram after a refusal.",
	  WORKER_METRIC(egress_gso_refused) },
	{ "sluice_passes_total", "counter", "Egress passes over a stream's viewers.",
	  WORKER_METRIC(passes) },
	{ "sluice_slices_total", "counter", "Passes interrupted to receive in between.",
	  WORKER_METRIC(slices) },
	{ "sluice_descriptors_unusable_total", "counter",
	  "Dependency descriptors that were malformed, or of a structure that was missed.",
	  WORKER_METRIC(descriptors_unusable) },
	{ "sluice_layer_switches_total", "counter", "Times a viewer went to another encoding.",
	  WORKER_METRIC(layer_switches) },
	{ "sluice_layer_pauses_total", "counter", "Times a viewer's video was paused.",
	  WORKER_METRIC(layer_pauses) },
	{ "sluice_layer_packets_left_out_total", "counter",
	  "Packets of layers that a viewer was not to get.", WORKER_METRIC(layer_drops) },
	{ "sluice_handed_over_total", "counter", "Media packets passed to other workers.",
	  WORKER_METRIC(handed_over) },
	{ "sluice_forwarded_total", "counter", "Datagrams passed to the session's worker.",
	  WORKER_METRIC(forwarded) },
	{ "sluice_wakeups_sent_total", "counter", "Wake-ups of other workers.",
	  WORKER_METRIC(wakeups_sent) },
	{ "sluice_receive_batches_total", "counter",
	  "Reads of a socket that gave datagrams; a wake-up of another worker follows at most one.",
	  WORKER_METRIC(receive_batches) },
	{ "sluice_codecs_settled_total", "counter",
	  "Times that the first packet of a codec told which of several a publisher sends.",
	  WORKER_METRIC(codecs_settled) },
	{ "sluice_nacks_sent_total", "counter", "Packets asked of publishers again.",
	  WORKER_METRIC(publisher_nacks) },
	{ "sluice_transport_feedback_sent_total", "counter",
	  "Feedback to publishers on when their packets arrived.",
	  WORKER_METRIC(publisher_feedbacks) },
	{ "sluice_transport_feedback_untold_total", "counter",
	  "Packets of publishers that came too late for feedback.",
	  WORKER_METRIC(arrivals_untold) },
	{ "sluice_keyframes_asked_total", "counter",
	  "Key frame requests of viewers and of the relay.", WORKER_METRIC(keyframes_asked) },
	{ "sluice_keyframes_folded_total", "counter", "Of these, answered by another's request.",
	  WORKER_METRIC(keyframes_folded) },
	{ "sluice_keyframes_suppressed_total", "counter",
	  "Of these, answered by a key frame that came before they were passed on.",
	  WORKER_METRIC(keyframes_suppressed) },
	{ "sluice_keyframes_held_total", "counter",
	  "Times that requests waited since key frames had taken their share.",
	  WORKER_METRIC(keyframes_held) },
	{ "sluice_keyframe_requests_sent_total", "counter", "PLI and FIR sent to publishers.",
	  WORKER_METRIC(publisher_plis) },
	{ "sluice_keyframes_received_total", "counter", "Key frames of publishers.",
	  WORKER_METRIC(keyframes_received) },
	{ "sluice_fast_start_hits_total", "counter",
	  "Viewers that began with a key frame from before they joined.",
	  WORKER_METRIC(fast_start_hits) },
	{ "sluice_fast_start_misses_total", "counter",
	  "Viewers for whom none, or too old a one, was held.", WORKER_METRIC(fast_start_misses) },
	{ "sluice_fast_start_refused_total", "counter",
	  "Viewers for whom what followed it had holes, or was too much.",
	  WORKER_METRIC(fast_start_refused) },
	{ "sluice_nacks_received_total", "counter", "Packets viewers asked for again.",
	  WORKER_METRIC(nacks_received) },
	{ "sluice_adaptive_viewers", "gauge", "Viewers whose link is estimated, to choose layers.",
	  WORKER_METRIC(adaptive_viewers) },
	{ "sluice_link_feedback_total", "counter",
	  "Transport-wide feedback of viewers that was used.", WORKER_METRIC(feedback_received) },
	{ "sluice_link_feedback_unusable_total", "counter",
	  "Transport-wide feedback that was malformed, or about nothing that was sent.",
	  WORKER_METRIC(feedback_unusable) },
	{ "sluice_probe_packets_total", "counter",
	  "Packets sent again as RTX to find out what a link carries.",
	  WORKER_METRIC(probe_packets) },
	{ "sluice_resent_rtx_total", "counter", "Packets sent again as RTX.",
	  WORKER_METRIC(resent_rtx) },
	{ "sluice_resent_plain_total", "counter", "Packets sent again as they were.",
	  WORKER_METRIC(resent_plain) },
	{ "sluice_resend_refused_total", "counter", "Repeats refused by spacing or share.",
	  WORKER_METRIC(resend_refused) },
	{ "sluice_resend_gone_total", "counter", "Repeats of packets that are not held.",
	  WORKER_METRIC(resend_gone) },
	{ "sluice_resend_parked_total", "counter",
	  "Repeats of packets that the relay misses too: sent when they come.",
	  WORKER_METRIC(resend_parked) },
	{ "sluice_tcp_connections", "gauge", "ICE-TCP connections.",
	  WORKER_METRIC(tcp_connections) },
	{ "sluice_tcp_half_open", "gauge", "Of these, without a session yet.",
	  WORKER_METRIC(tcp_half_open) },
	{ "sluice_tcp_accepted_total", "counter", "ICE-TCP connections accepted.",
	  WORKER_METRIC(tcp_accepted) },
	{ "sluice_tcp_accept_failed_total", "counter",
	  "Times that descriptors or memory were missing for one.",
	  WORKER_METRIC(tcp_accept_failed) },
	{ "sluice_tcp_moved_total", "counter", "Connections given to the session's worker.",
	  WORKER_METRIC(tcp_moved) },
	{ "sluice_tcp_packets_in_total", "counter", "Packets received over connections.",
	  WORKER_METRIC(tcp_packets_in) },
	{ "sluice_slabs_in_use", "gauge", "Packet buffers out.", WORKER_METRIC(slabs_in_use) },
	{ "sluice_slabs_high_water", "gauge", "Most packet buffers ever out.",
	  WORKER_METRIC(slabs_high) },
	{ "sluice_slabs_capacity", "gauge", "Packet buffers there are.",
	  WORKER_METRIC(slabs_capacity) },
	{ "sluice_slabs_exhausted_total", "counter", "Packet buffers asked for when none was left.",
	  WORKER_METRIC(slabs_exhausted) },
	{ "sluice_slabs_relieved_total", "counter",
	  "Times that histories were cut short since packet buffers ran out.",
	  WORKER_METRIC(slabs_relieved) },
	{ "sluice_slabs_trimmed_bytes_total", "counter", "Memory given back by trimming.",
	  WORKER_METRIC(slabs_trimmed_bytes) },
	{ "sluice_socket_receive_buffer_bytes", "gauge", "As the kernel granted it.",
	  WORKER_METRIC(rcvbuf_bytes) },
	{ "sluice_socket_send_buffer_bytes", "gauge", "As the kernel granted it.",
	  WORKER_METRIC(sndbuf_bytes) },
};

/* Every drop has its cause: one metric with a label. */
static const struct {
	const char *cause;
	size_t offset;
} drops[] = {
	{ "kernel_receive_buffer", WORKER_METRIC(socket_kernel_drops) },
	{ "datagram_oversized", WORKER_METRIC(socket_oversized) },
	{ "pool_exhausted", WORKER_METRIC(socket_pool_drops) },
	{ "stranger_not_stun", WORKER_METRIC(strangers_not_stun) },
	{ "stranger_unknown_ufrag", WORKER_METRIC(strangers_unknown) },
	{ "stranger_bad_integrity", WORKER_METRIC(strangers_bad_integrity) },
	{ "stranger_limited", WORKER_METRIC(strangers_limited) },
	{ "rtp_malformed", WORKER_METRIC(rtp_malformed) },
	{ "rtp_unknown_payload_type", WORKER_METRIC(rtp_unknown_type) },
	{ "rtp_unknown_encoding", WORKER_METRIC(rtp_unknown_source) },
	{ "rtp_before_feed", WORKER_METRIC(rtp_unfed) },
	{ "rtcp_malformed", WORKER_METRIC(rtcp_malformed) },
	{ "red_malformed", WORKER_METRIC(red_malformed) },
	{ "padding_only", WORKER_METRIC(track_swallowed) },
	{ "duplicate", WORKER_METRIC(track_duplicate) },
	{ "too_old", WORKER_METRIC(track_too_old) },
	{ "gone_before_sent", WORKER_METRIC(passed_over) },
	{ "hand_over_ring_full", WORKER_METRIC(handed_over_drops) },
	{ "forward_ring_full", WORKER_METRIC(forwarded_drops) },
	{ "tcp_queue_full", WORKER_METRIC(tcp_queue_drops) },
	{ "tcp_connection_gone", WORKER_METRIC(tcp_gone_drops) },
	{ "tcp_pool_exhausted", WORKER_METRIC(tcp_pool_drops) },
	{ "plain_socket_full", WORKER_METRIC(plain_blocked_drops) },
	{ "plain_rtcp_unaddressed", WORKER_METRIC(plain_unaddressed) },
	{ "control_egress_full", WORKER_METRIC(egress_control_drops) },
	{ "send_error", WORKER_METRIC(egress_failed) },
};

static uint64_t read_at(const struct worker_counters *c, size_t offset)
{
	return counter_read((const counter *)(const void *)((const char *)c + offset));
}

static void head(struct text *out, const char *name, const char *type, const char *help)
{
	text_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void worker_metrics(const struct registry *r, struct text *out)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		head(out, metrics[i].name, metrics[i].type, metrics[i].help);
		for (unsigned w = 0; w < r->shared->workers; w++)
			text_printf(out, "%s{worker=\"%u\"} %llu\n", metrics[i].name, w,
				    (unsigned long long)read_at(worker_counters(r->shared->team[w]),
								metrics[i].offset));
	}
	head(out, "sluice_drops_total", "counter", "Datagrams and packets dropped, by cause.");
	for (size_t i = 0; i < sizeof(drops) / sizeof(drops[0]); i++)
		for (unsigned w = 0; w < r->shared->workers; w++)
			text_printf(out, "sluice_drops_total{worker=\"%u\",cause=\"%s\"} %llu\n", w,
				    drops[i].cause,
				    (unsigned long long)read_at(worker_counters(r->shared->team[w]),
								drops[i].offset));
	head(out, "sluice_tcp_closed_total", "counter", "ICE-TCP connections closed, by cause.");
	for (unsigned i = 0; i < WORKER_TCP_CAUSES; i++)
		for (unsigned w = 0; w < r->shared->workers; w++)
			text_printf(out,
				    "sluice_tcp_closed_total{worker=\"%u\",cause=\"%s\"} %llu\n", w,
				    worker_tcp_cause_text((enum worker_tcp_cause)i),
				    (unsigned long long)counter_read(
					&worker_counters(r->shared->team[w])->tcp_closed[i]));
	head(out, "sluice_session_datagrams_total", "counter",
	     "Datagrams of known addresses, by verdict.");
	for (unsigned v = 0; v < TRANSPORT_VERDICTS; v++)
		for (unsigned w = 0; w < r->shared->workers; w++)
			text_printf(
			    out,
			    "sluice_session_datagrams_total{worker=\"%u\",verdict=\"%s\"} %llu\n",
			    w, transport_verdict_text((enum transport_verdict)v),
			    (unsigned long long)counter_read(
				&worker_counters(r->shared->team[w])->verdicts[v]));
}

/* Cumulative buckets whose upper bounds are powers of two. */
struct histogram {
	const char *name, *help;
	size_t offset; /* of the first slot in struct worker_counters */
	unsigned slots;
	double unit; /* upper bound of the first slot */
};

static void histogram(const struct registry *r, struct text *out, const struct histogram *h)
{
	head(out, h->name, "histogram", h->help);
	for (unsigned w = 0; w < r->shared->workers; w++) {
		const struct worker_counters *c = worker_counters(r->shared->team[w]);
		uint64_t sum = 0;

		for (unsigned i = 0; i < h->slots; i++) {
			sum += read_at(c, h->offset + i * sizeof(counter));
			if (i + 1 < h->slots)
				text_printf(out, "%s_bucket{worker=\"%u\",le=\"%g\"} %llu\n",
					    h->name, w, (double)(UINT64_C(1) << i) * h->unit,
					    (unsigned long long)sum);
		}
		text_printf(out, "%s_bucket{worker=\"%u\",le=\"+Inf\"} %llu\n", h->name, w,
			    (unsigned long long)sum);
		text_printf(out, "%s_count{worker=\"%u\"} %llu\n", h->name, w,
			    (unsigned long long)sum);
	}
}

static void registry_own(const struct registry *r, struct text *out)
{
	struct transport_live transports;
	struct dtls_live dtls;

	transport_live(&transports);
	dtls_live(&dtls);
	head(out, "sluice_streams", "gauge", "Streams with a publisher or viewers.");
	text_printf(out, "sluice_streams %u\n", r->stream_count);
	head(out, "sluice_sessions_open", "gauge", "Sessions planned or alive.");
	text_printf(out, "sluice_sessions_open %u\n", r->plan_count - r->over_count);
	head(out, "sluice_plans_unclaimed", "gauge", "Sessions nobody has come for yet.");
	text_printf(out, "sluice_plans_unclaimed %u\n", r->unclaimed);
	head(out, "sluice_event_streams", "gauge", "Event streams of viewers' sessions.");
	text_printf(out, "sluice_event_streams %u\n", r->event_streams);
	head(out, "sluice_events_sent_total", "counter", "Events that event streams delivered.");
	text_printf(out, "sluice_events_sent_total %llu\n", (unsigned long long)r->events_sent);
	head(out, "sluice_plain_rtp", "gauge", "Streams fed by plain RTP, and targets of it.");
	text_printf(out, "sluice_plain_rtp %u\n", plain_setup_live());
	head(out, "sluice_transports", "gauge", "Transports in memory.");
	text_printf(out, "sluice_transports %u\n", transports.transports);
	head(out, "sluice_ssl_objects", "gauge", "TLS library objects in memory.");
	text_printf(out, "sluice_ssl_objects %u\n", dtls.ssl_objects);
	head(out, "sluice_sessions_ended_total", "counter", "Sessions ended, by reason.");
	for (unsigned i = 1; i < TRANSPORT_REASONS; i++)
		text_printf(out, "sluice_sessions_ended_total{reason=\"%s\"} %llu\n",
			    transport_reason_text(i), (unsigned long long)r->sessions_ended[i]);
}

static void memory_metrics(const struct registry *r, struct text *out)
{
	uint64_t slabs = 0, sessions = 0, branches = 0, connections = 0;

	for (unsigned w = 0; w < r->shared->workers; w++) {
		const struct worker_counters *c = worker_counters(r->shared->team[w]);

		slabs += counter_read(&c->slabs_in_use) * SLAB_BYTES;
		sessions += counter_read(&c->session_bytes);
		branches += counter_read(&c->branch_bytes);
		connections += counter_read(&c->tcp_bytes);
	}
	head(out, "sluice_memory_bytes", "gauge", "Memory by what it is for.");
	text_printf(out, "sluice_memory_bytes{type=\"packets\"} %llu\n", (unsigned long long)slabs);
	text_printf(out, "sluice_memory_bytes{type=\"sessions\"} %llu\n",
		    (unsigned long long)sessions);
	text_printf(out, "sluice_memory_bytes{type=\"branches\"} %llu\n",
		    (unsigned long long)branches);
	text_printf(out, "sluice_memory_bytes{type=\"connections\"} %llu\n",
		    (unsigned long long)connections);
	text_printf(out, "sluice_memory_bytes{type=\"plans\"} %llu\n",
		    (unsigned long long)plan_live() * sizeof(struct plan));
}

void registry_metrics(struct registry *r, struct text *out)
{
	static const struct histogram messages = {
		"sluice_message_datagrams",
		"Datagrams of a send message.",
		WORKER_METRIC(egress_histogram),
		7,
		1.0,
	};
	static const struct histogram turns = {
		"sluice_loop_turn_seconds",
		"How long turns of the event loop took.",
		WORKER_METRIC(lag_slots),
		WORKER_LAG_SLOTS,
		1e-6,
	};

	static const struct histogram visits = {
		"sluice_pass_packets",
		"Packets a viewer got in one pass.",
		WORKER_METRIC(visit_slots),
		WORKER_VISIT_SLOTS,
		1.0,
	};
	static const struct histogram holds = {
		"sluice_hold_seconds",
		"How long frames waited for their last packet.",
		WORKER_METRIC(hold_slots),
		WORKER_LAG_SLOTS,
		1e-6,
	};

	registry_own(r, out);
	worker_metrics(r, out);
	memory_metrics(r, out);
	histogram(r, out, &messages);
	histogram(r, out, &visits);
	histogram(r, out, &holds);
	histogram(r, out, &turns);
}
