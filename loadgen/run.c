#include "loadgen/run.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loadgen/emitter.h"
#include "loadgen/report.h"
#include "loadgen/usage.h"
#include "loadgen/viewer.h"

enum {
	TICK_US = 10000,
	SETTLE_US = 500000,  /* of media, before the first viewer comes */
	REPAIR_US = 1000000, /* after the end: what is on its way may come, or be asked for */
	LEAVE_US = 5000000,  /* the longest that saying goodbye may take */
	PROGRESS_US = 1000000,
	HELPERS = 2,
	SHOWN_ERRORS = 5,
};

enum phase { PUBLISHING, JOINING, MEASURING, REPAIRING, LEAVING };

/* What is read at both ends of the measurement. */
struct reading {
	uint64_t at_us, pkts, bytes, own_cpu_us;
	struct usage server;
	bool has_server;
};

struct stream {
	char whip[OPTIONS_URL_BYTES], whep[OPTIONS_URL_BYTES];
	struct emitter *emitter;
	struct latency *latency[NEGOTIATED_KINDS];
};

struct run {
	const struct options *options;
	struct peer_ground ground;
	struct loop_timer *timer;
	struct source *source;
	struct stream *streams;
	struct viewer **viewers;
	uint32_t started; /* viewers */
	struct viewer_tally tally;
	enum phase phase;
	uint64_t phase_us; /* when it began */
	uint64_t progress_us, progress_pkts;
	struct reading begin, end;
	uint64_t first_rss_bytes; /* of the server, before the first viewer */
	unsigned shown_errors;
	bool is_interrupted, is_broken, is_unreachable, is_terminal;
	bool has_explained;
};

/* --- words for people ------------------------------------------------------------------ */

static void progress(struct run *r)
{
	static const char *const phases[] = { "publishing", "joining", "measuring", "repairing",
					      "leaving" };
	uint64_t now_us = r->ground.now_us, past_us = now_us - r->progress_us;

	if (past_us < PROGRESS_US || r->options->subscribers == 0)
		return; /* who only publishes counts nothing */
	fprintf(stderr, "%s%-10s %" PRIu64 " of %u joined, %" PRIu64 " failed, %.0f packets/s%s",
		r->is_terminal ? "\r" : "", phases[r->phase], r->tally.joined,
		r->options->subscribers, r->tally.failed,
		(double)(r->tally.pkts - r->progress_pkts) * 1e6 / (double)past_us,
		r->is_terminal ? "\033[K" : "\n");
	r->progress_us = now_us;
	r->progress_pkts = r->tally.pkts;
}

/* What keeps everybody waiting is said at once and not when the time to join is over. */
static void explain_wait(struct run *r)
{
	if (r->has_explained || r->started == 0 || r->tally.joined > 0 ||
	    !peer_error(viewer_peer(r->viewers[0]))[0])
		return;
	r->has_explained = true;
	fprintf(stderr, "%sviewer 1: %s\n", r->is_terminal ? "\n" : "",
		peer_error(viewer_peer(r->viewers[0])));
}

static void complain(struct run *r, const char *who, uint32_t number, const struct peer *p)
{
	if (r->shown_errors++ < SHOWN_ERRORS)
		fprintf(stderr, "%s%s %u: %s\n", r->is_terminal ? "\n" : "", who, number + 1,
			peer_error(p));
}

static void show_errors(struct run *r)
{
	for (uint32_t i = 0; i < r->started; i++)
		if (peer_error(viewer_peer(r->viewers[i]))[0])
			complain(r, "viewer", i, viewer_peer(r->viewers[i]));
	if (r->shown_errors > SHOWN_ERRORS)
		fprintf(stderr, "and %u more\n", r->shown_errors - SHOWN_ERRORS);
}

/* --- phases ---------------------------------------------------------------------------- */

static void take_reading(struct run *r, struct reading *out)
{
	struct rusage own;

	getrusage(RUSAGE_SELF, &own);
	out->at_us = clock_now_us();
	out->pkts = r->tally.pkts;
	out->bytes = r->tally.bytes;
	out->own_cpu_us = (uint64_t)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) * 1000000 +
			  (uint64_t)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
	out->has_server = r->options->pid && usage_read(r->options->pid, &out->server) == 0;
}

static void enter(struct run *r, enum phase phase)
{
	r->phase = phase;
	r->phase_us = r->ground.now_us;
}

static void leave(struct run *r)
{
	if (r->phase == LEAVING)
		return;
	enter(r, LEAVING);
	for (uint32_t i = 0; i < r->started; i++)
		peer_leave(viewer_peer(r->viewers[i]));
	for (uint32_t i = 0; r->streams && i < r->options->streams; i++)
		if (r->streams[i].emitter)
			peer_leave(emitter_peer(r->streams[i].emitter));
}

static void on_publishing(struct run *r)
{
	struct usage server;

	for (uint32_t i = 0; i < r->options->streams && r->options->whip[0]; i++) {
		uint64_t began_us = emitter_began_us(r->streams[i].emitter);

		if (began_us == 0 || r->ground.now_us - began_us < SETTLE_US)
			return;
	}
	if (r->options->pid && usage_read(r->options->pid, &server) == 0)
		r->first_rss_bytes = server.rss_bytes;
	if (r->options->mode == OPTIONS_PUBLISH)
		fprintf(stderr, "publishing %s\n", r->streams[0].whip);
	enter(r, JOINING);
}

static void on_joining(struct run *r)
{
	const struct options *o = r->options;
	uint64_t past_us = r->ground.now_us - r->phase_us;
	uint64_t due = past_us * o->rate_per_s / 1000000 + 1;

	while (r->started < o->subscribers && r->started < due)
		viewer_start(r->viewers[r->started++]);
	if (r->tally.joined + r->tally.failed < o->subscribers &&
	    past_us < o->join_timeout_s * UINT64_C(1000000))
		return;
	take_reading(r, &r->begin);
	r->tally.is_measuring = true;
	enter(r, MEASURING);
}

static void stop_measuring(struct run *r)
{
	take_reading(r, &r->end);
	r->tally.is_measuring = false;
	for (uint32_t i = 0; i < r->started; i++)
		viewer_freeze(r->viewers[i]);
	enter(r, REPAIRING);
}

/* Nobody is left who could receive anything. */
static bool is_all_over(const struct run *r)
{
	for (uint32_t i = 0; i < r->started; i++)
		if (peer_state(viewer_peer(r->viewers[i])) < PEER_FAILED)
			return false;
	return r->started > 0;
}

static bool is_all_received(const struct run *r)
{
	struct viewer_result result;

	for (uint32_t i = 0; i < r->started; i++) {
		viewer_result(r->viewers[i], &result);
		if (result.received < result.expected)
			return false;
	}
	return true;
}

static bool is_all_gone(const struct run *r)
{
	if (r->ground.works > 0)
		return false;
	for (uint32_t i = 0; i < r->ground.peer_count; i++)
		if (r->ground.peers[i] && peer_state(r->ground.peers[i]) == PEER_LEAVING)
			return false;
	return true;
}

/* A run without its publishers is over. */
static void watch_publishers(struct run *r)
{
	for (uint32_t i = 0; i < r->options->streams && r->options->whip[0]; i++) {
		struct peer *p = emitter_peer(r->streams[i].emitter);

		if (peer_state(p) != PEER_FAILED)
			continue;
		complain(r, "publisher", i, p);
		r->is_broken = true;
		r->is_unreachable |= peer_is_unreachable(p);
	}
	if (r->is_broken)
		leave(r);
}

static void on_phase(struct run *r)
{
	uint64_t past_us = r->ground.now_us - r->phase_us;
	uint64_t duration_us = r->options->duration_s * UINT64_C(1000000);

	switch (r->phase) {
	case PUBLISHING:
		on_publishing(r);
		break;
	case JOINING:
		on_joining(r);
		break;
	case MEASURING:
		if ((duration_us && past_us >= duration_us) || is_all_over(r))
			stop_measuring(r);
		break;
	case REPAIRING:
		if (past_us >= REPAIR_US || is_all_received(r))
			leave(r);
		break;
	case LEAVING:
		/* A step that still runs on a helper is waited for in any case. */
		if (is_all_gone(r) || (past_us >= LEAVE_US && r->ground.works == 0))
			loop_stop(r->ground.loop);
		break;
	}
}

static void on_tick(void *arg)
{
	struct run *r = arg;

	r->ground.now_us = clock_now_us();
	progress(r);
	if (r->phase == JOINING)
		explain_wait(r);
	if (r->phase < LEAVING)
		watch_publishers(r);
	on_phase(r);
	loop_timer_arm(r->timer, r->ground.now_us + TICK_US);
}

static void on_signal(void *arg, int signo)
{
	struct run *r = arg;

	(void)signo;
	r->ground.now_us = clock_now_us();
	/* Asked to run until interrupted, this is the end that was wanted. */
	r->is_interrupted = r->options->duration_s > 0 || r->phase < MEASURING;
	if (r->phase == LEAVING)
		loop_stop(r->ground.loop);
	else if (r->phase == MEASURING)
		stop_measuring(r);
	else
		leave(r);
}

/* --- building -------------------------------------------------------------------------- */

/* Our address towards the server: nothing is sent for it. */
static int find_local(const char *url, struct net_addr *out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *list, *best;
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	char host[256], port[8];
	int fd, err;

	if (signal_split(url, host, sizeof(host), port) != 0)
		return -EINVAL;
	if (getaddrinfo(host, port, &hints, &list) != 0 || !list)
		return -EHOSTUNREACH;
	best = list;
	for (struct addrinfo *at = list; at; at = at->ai_next)
		if (at->ai_family == AF_INET && best->ai_family != AF_INET)
			best = at;
	fd = socket(best->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	err = fd < 0 || connect(fd, best->ai_addr, best->ai_addrlen) != 0 ||
		      getsockname(fd, (struct sockaddr *)&name, &len) != 0
		  ? -errno
		  : net_addr_from_sockaddr(out, (struct sockaddr *)&name);
	if (fd >= 0)
		close(fd);
	freeaddrinfo(list);
	return err;
}

static int add_stream(struct run *r, uint32_t i)
{
	const struct options *o = r->options;
	struct stream *s = &r->streams[i];
	struct emitter_config config = {
		.number = i,
		.url = s->whip,
		.token = o->token,
		.source = r->source,
		.pacing = o->pacing,
		.give_up_us = r->ground.now_us + o->join_timeout_s * UINT64_C(1000000),
	};
	int err = 0;

	options_url(o->whip, i, s->whip);
	options_url(o->whep, i, s->whep);
	if (!o->whip[0])
		return 0;
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS && !err; kind++) {
		err = latency_create(&s->latency[kind]);
		config.latency[kind] = s->latency[kind];
	}
	return err ? err : emitter_create(&s->emitter, &r->ground, &config);
}

static int add_viewer(struct run *r, uint32_t i)
{
	const struct options *o = r->options;
	struct stream *s = &r->streams[i % o->streams];
	struct viewer_config config = {
		.number = o->streams + i,
		.url = s->whep,
		.token = o->token,
		.is_verified = o->verify && i % o->verify == 0,
		.transport_cc = o->transport_cc,
		.give_up_us = UINT64_MAX, /* the join timeout ends it */
		.tally = &r->tally,
	};

	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		config.latency[kind] = s->latency[kind];
	return viewer_create(&r->viewers[i], &r->ground, &config);
}

static int build_source(struct run *r)
{
	struct source_config config;

	if (!r->options->whip[0])
		return 0;
	source_config_init(&config);
	config.loop_ms = r->options->keyframe_interval_s * 1000;
	config.temporal_layers = r->options->temporal_layers;
	return source_create(&r->source, &config);
}

static int build(struct run *r)
{
	const struct options *o = r->options;
	struct net_addr local;
	int err = find_local(o->whip[0] ? o->whip : o->whep, &local);

	if (err) {
		r->is_unreachable = err != -EINVAL;
		return err;
	}
	err = peer_ground_open(&r->ground, &local, o->streams + o->subscribers, o->gro);
	r->ground.is_tcp = o->tcp;
	if (!err && o->srtp)
		err = dtls_identity_limit(r->ground.identity, (enum seal_profile)o->srtp);
	if (!err)
		err = build_source(r);
	r->streams = calloc(o->streams, sizeof(struct stream));
	r->viewers = calloc(o->subscribers + 1, sizeof(struct viewer *));
	if (!err && (!r->streams || !r->viewers))
		err = -ENOMEM;
	r->ground.now_us = clock_now_us();
	for (uint32_t i = 0; !err && i < o->streams; i++)
		err = add_stream(r, i);
	for (uint32_t i = 0; !err && i < o->subscribers; i++)
		err = add_viewer(r, i);
	if (!err)
		err = loop_timer_open(r->ground.loop, &r->timer, on_tick, r);
	if (!err)
		err = loop_on_signal(r->ground.loop, SIGINT, on_signal, r);
	if (!err)
		err = loop_on_signal(r->ground.loop, SIGTERM, on_signal, r);
	return err;
}

static void take_down(struct run *r)
{
	for (uint32_t i = 0; r->viewers && i < r->options->subscribers; i++)
		viewer_destroy(r->viewers[i]);
	for (uint32_t i = 0; r->streams && i < r->options->streams; i++) {
		emitter_destroy(r->streams[i].emitter);
		for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
			latency_destroy(r->streams[i].latency[kind]);
	}
	if (r->timer)
		loop_timer_close(r->timer);
	if (r->ground.loop)
		peer_ground_close(&r->ground);
	source_destroy(r->source);
	free(r->viewers);
	free(r->streams);
}

/* --- the result ------------------------------------------------------------------------ */

static struct report_quantiles quantiles_of(const struct histogram *h, uint64_t divisor)
{
	return (struct report_quantiles){
		(histogram_quantile(h, 500) + divisor - 1) / divisor,
		(histogram_quantile(h, 990) + divisor - 1) / divisor,
		(histogram_quantile(h, 999) + divisor - 1) / divisor,
		(h->max + divisor - 1) / divisor,
	};
}

static void sum_viewers(const struct run *r, struct report *out)
{
	struct viewer_result result;

	for (uint32_t i = 0; i < r->started; i++) {
		viewer_result(r->viewers[i], &result);
		out->joined += result.is_joined;
		out->incomplete += result.is_joined && !result.is_complete;
		out->expected += result.expected;
		out->received += result.received;
		out->repaired += result.repaired;
		out->duplicated += result.duplicated;
	}
	out->failed = out->asked - out->joined;
	out->lost = out->expected - out->received;
}

static void sum_lateness(const struct run *r, struct report *out)
{
	struct lateness all = { 0 };
	unsigned bound;

	for (uint32_t i = 0; i < r->started; i++)
		lateness_merge(&all, viewer_lateness(r->viewers[i]));
	bound = lateness_bound(&all);
	out->late_us = lateness_bound_us(bound);
	out->late_share_mean = lateness_share(&all, bound);
	for (uint32_t i = 0; i < r->started; i++) {
		double share = lateness_share(viewer_lateness(r->viewers[i]), bound);

		out->late_share_max = share > out->late_share_max ? share : out->late_share_max;
	}
}

static void sum_costs(const struct run *r, struct report *out)
{
	double pkts = (double)(r->end.pkts - r->begin.pkts);
	double seconds = (double)(r->end.at_us - r->begin.at_us) / 1e6;

	if (seconds > 0 && pkts > 0) {
		out->packets_per_s = pkts / seconds;
		out->mbit_per_s = (double)(r->end.bytes - r->begin.bytes) * 8 / seconds / 1e6;
		out->client_cpu_us_per_packet =
		    (double)(r->end.own_cpu_us - r->begin.own_cpu_us) / pkts;
	}
	out->has_server = r->begin.has_server && r->end.has_server;
	if (!out->has_server)
		return;
	out->server_rss_bytes = r->end.server.rss_bytes;
	if (pkts > 0)
		out->server_cpu_us_per_packet =
		    (double)usage_cpu_us(&r->begin.server, &r->end.server) / pkts;
	if (out->joined > 0 && out->server_rss_bytes > r->first_rss_bytes)
		out->server_rss_bytes_per_subscriber =
		    (double)(out->server_rss_bytes - r->first_rss_bytes) / out->joined;
}

static void make_report(const struct run *r, struct report *out)
{
	struct sockets_stats sockets;

	memset(out, 0, sizeof(*out));
	sockets_stats(r->ground.sockets, &sockets);
	out->asked = r->options->subscribers;
	out->wants_verified = r->options->verify > 0 && out->asked > 0;
	out->max_loss_percent = r->options->max_loss_percent;
	out->is_interrupted = r->is_interrupted || r->is_broken;
	out->bad_auth = r->tally.bad_auth;
	out->verified = r->tally.verified;
	out->join_ms = quantiles_of(&r->tally.join_us, 1000);
	out->frame_us = quantiles_of(&r->tally.frame_us, 1);
	out->audio_us = quantiles_of(&r->tally.audio_us, 1);
	out->keyframes_first_ms_p99 = quantiles_of(&r->tally.keyframe_us, 1000).p99;
	out->client_socket_drops = sockets.kernel_drops;
	sum_viewers(r, out);
	sum_lateness(r, out);
	sum_costs(r, out);
}

static int print_report(const struct run *r, const struct report *report)
{
	char *text = r->options->json ? report_json(report) : report_table(report);

	if (!text)
		return -ENOMEM;
	fputs(text, stdout);
	if (r->options->json)
		putchar('\n');
	free(text);
	return fflush(stdout) == 0 ? 0 : -EIO;
}

static bool is_every_viewer_unreachable(const struct run *r)
{
	for (uint32_t i = 0; i < r->started; i++)
		if (!peer_is_unreachable(viewer_peer(r->viewers[i])))
			return false;
	return r->started > 0;
}

static int finish(struct run *r)
{
	struct report report;

	if (r->is_terminal)
		fputc('\n', stderr);
	show_errors(r);
	if (r->is_unreachable || is_every_viewer_unreachable(r))
		return RUN_UNREACHABLE;
	if (r->options->mode == OPTIONS_PUBLISH)
		return r->is_broken ? RUN_NOT_OK : RUN_OK;
	make_report(r, &report);
	if (print_report(r, &report) != 0)
		return RUN_NOT_OK;
	return report_is_ok(&report) ? RUN_OK : RUN_NOT_OK;
}

/* Thousands of viewers may want a socket each. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const struct options *options)
{
	struct run *r = calloc(1, sizeof(*r));
	int err, status;

	if (!r)
		return RUN_NOT_OK;
	r->options = options;
	r->is_terminal = isatty(STDERR_FILENO);
	raise_descriptors();
	loop_set_helpers(HELPERS);
	err = build(r);
	if (err) {
		fprintf(stderr, "sluice-load: cannot start: %s\n", strerror(-err));
		status = r->is_unreachable ? RUN_UNREACHABLE : RUN_NOT_OK;
	} else {
		enter(r, PUBLISHING);
		r->progress_us = r->ground.now_us;
		for (uint32_t i = 0; i < options->streams; i++)
			if (r->streams[i].emitter)
				emitter_start(r->streams[i].emitter);
		loop_timer_arm(r->timer, r->ground.now_us);
		loop_run(r->ground.loop);
		status = finish(r);
	}
	take_down(r);
	free(r);
	return status;
}
