/* server/main.c - the relay's process: start, signals, drain, end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config/config.h"
#include "server/candidates.h"
#include "server/directory.h"
#include "server/doctor.h"
#include "server/http.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/registry_life.h"
#include "server/worker.h"

enum {
	EXIT_CANNOT_START = 1,
	EXIT_BAD_CONFIG = 2,
	DRAIN_POLL_US = 200000,
	OLD_CONFIGS = 64, /* reloads that are kept track of */
};

struct relay {
	int argc;
	char **argv;
	struct config *config;
	struct config *old[OLD_CONFIGS]; /* others may still read them */
	unsigned old_count;
	struct loop *loop;
	struct loop_timer *drain_timer;
	uint64_t drain_until_us;
	bool is_draining, is_stopping;
	int status;
	struct listen_set listen, listen_tcp;
	struct worker_shared shared;
	struct registry *registry;
	struct http *http;
};

/* --- the end ----------------------------------------------------------------------------- */

static void on_stopped(void *arg)
{
	struct relay *relay = arg;

	loop_stop(relay->loop);
}

static void stop(struct relay *relay, int status)
{
	if (relay->is_stopping)
		return;
	relay->is_stopping = true;
	relay->status = status;
	registry_stop(relay->registry, TRANSPORT_CLOSED_SHUTDOWN, on_stopped, relay);
}

static void on_drain_timer(void *arg)
{
	struct relay *relay = arg;
	uint64_t now_us = clock_now_us();

	if (registry_sessions_open(relay->registry) == 0 || now_us >= relay->drain_until_us)
		stop(relay, EXIT_SUCCESS);
	else
		loop_timer_arm(relay->drain_timer, now_us + DRAIN_POLL_US);
}

static void on_end_signal(void *arg, int signo)
{
	struct relay *relay = arg;

	if (relay->is_draining) {
		log_event(CONFIG_LOG_WARN, "stop", log_number("signal", signo));
		stop(relay, EXIT_CANNOT_START);
		return;
	}
	relay->is_draining = true;
	relay->drain_until_us = clock_now_us() + relay->config->drain_ms * UINT64_C(1000);
	log_event(CONFIG_LOG_INFO, "drain", log_number("signal", signo),
		  log_number("sessions", registry_sessions_open(relay->registry)),
		  log_number("deadline_ms", relay->config->drain_ms));
	registry_drain(relay->registry);
	on_drain_timer(relay);
}

/* --- reload ------------------------------------------------------------------------------ */

/* Tokens, limits and ICE servers change; what is bound and what workers were given stays. */
static void on_reload_signal(void *arg, int signo)
{
	struct relay *relay = arg;
	char error[CONFIG_ERROR_BYTES];
	enum config_action action;
	struct config *fresh;

	(void)signo;
	if (relay->old_count == OLD_CONFIGS ||
	    config_from_args(&fresh, &action, relay->argc, relay->argv, error)) {
		log_event(CONFIG_LOG_ERROR, "reload_refused",
			  log_text("error", relay->old_count == OLD_CONFIGS
						? "too many reloads, restart the server"
						: error));
		return;
	}
	if (http_reload(relay->http, fresh)) {
		config_destroy(fresh);
		log_event(CONFIG_LOG_ERROR, "reload_refused", log_text("error", "out of memory"));
		return;
	}
	relay->old[relay->old_count++] = fresh;
	log_event(CONFIG_LOG_INFO, "reload", log_number("count", relay->old_count));
}

/* --- the start --------------------------------------------------------------------------- */

static unsigned cpu_count(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus > 0 ? (unsigned)cpus : 1;
}

static unsigned clamp(unsigned value, unsigned low, unsigned high)
{
	return value < low ? low : value > high ? high : value;
}

/* Thousands of viewers need their HTTP connections; the hard limit is there to be used. */
static void raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int start_workers(struct relay *relay, char error[HTTP_ERROR_BYTES])
{
	struct worker_shared *shared = &relay->shared;
	char detail[128];

	for (unsigned i = 0; i < shared->workers; i++) {
		struct worker *w;
		int err =
		    worker_create(&w, shared, i, relay->listen.items, relay->listen.count, detail);

		if (err) {
			snprintf(error, HTTP_ERROR_BYTES, "worker %u: %s", i, detail);
			return err;
		}
	}
	for (unsigned i = 0; i < shared->workers; i++) {
		int err = worker_start(shared->team[i]);

		if (err) {
			snprintf(error, HTTP_ERROR_BYTES, "worker %u: cannot start a thread: %s", i,
				 strerror(-err));
			return err;
		}
	}
	return 0;
}

static int open_loop(struct relay *relay)
{
	int err = loop_create(&relay->loop);

	if (!err)
		err = loop_timer_open(relay->loop, &relay->drain_timer, on_drain_timer, relay);
	if (!err)
		err = loop_on_signal(relay->loop, SIGTERM, on_end_signal, relay);
	if (!err)
		err = loop_on_signal(relay->loop, SIGINT, on_end_signal, relay);
	if (!err)
		err = loop_on_signal(relay->loop, SIGHUP, on_reload_signal, relay);
	return err;
}

static int resolve_ports(struct relay *relay, char error[HTTP_ERROR_BYTES])
{
	struct listen_set *tcp = &relay->listen_tcp;
	int err = listen_resolve(&relay->listen, relay->config, error);

	if (!err)
		err = listen_resolve_tcp(tcp, relay->config, &relay->listen, error);
	if (err)
		return err;
	memcpy(relay->shared.tcp, tcp->items, sizeof(relay->shared.tcp));
	relay->shared.tcp_count = tcp->count;
	relay->shared.has_tcp = tcp->count > 0;
	relay->shared.tcp_connections =
	    listen_tcp_connections(relay->config) / relay->shared.workers;
	return 0;
}

/* @return 0, or a negative errno with `error` saying what a person can do about it */
static int start(struct relay *relay, char error[HTTP_ERROR_BYTES])
{
	const struct config *c = relay->config;
	unsigned helpers = c->crypto.threads ? c->crypto.threads : clamp(cpu_count() / 2, 1, 64);
	struct candidates candidates;
	int err;

	raise_open_files();
	loop_set_helpers(helpers);
	relay->shared.config = c;
	relay->shared.workers = clamp(c->workers ? c->workers : cpu_count(), 1, STREAM_MAX_WORKERS);
	err = open_loop(relay);
	if (!err)
		err = directory_create(&relay->shared.directory);
	if (err) {
		snprintf(error, HTTP_ERROR_BYTES, "cannot start: %s", strerror(-err));
		return err;
	}
	err = resolve_ports(relay, error);
	if (err)
		return err;
	err = candidates_collect(&candidates, c, relay->listen.items, relay->listen.count);
	if (!err)
		err = candidates_add_tcp(&candidates, c, relay->listen_tcp.items,
					 relay->listen_tcp.count);
	if (!err)
		err = registry_create(&relay->registry, relay->loop, &relay->shared, &candidates);
	if (err) {
		snprintf(error, HTTP_ERROR_BYTES, "cannot start: %s", strerror(-err));
		return err;
	}
	err = start_workers(relay, error);
	if (err)
		return err;
	err = http_create(&relay->http, relay->loop, c, relay->registry, error);
	/* After all that can fail: a relay that does not start says only why. */
	if (!err && relay->listen_tcp.is_taken)
		log_event(CONFIG_LOG_WARN, "tcp_port_taken",
			  log_text("hint", "no media over TCP: choose another port with --tcp"));
	if (!err && candidates.is_private_only)
		log_event(CONFIG_LOG_WARN, "private_addresses_only",
			  log_text("hint", "peers elsewhere cannot reach them: --advertise IP"));
	return err;
}

static void report_buffers(const struct relay *relay)
{
	const struct config *c = relay->config;
	struct udp_options options = { .bind = relay->listen.items[0],
				       .shared = true,
				       .rcvbuf_bytes = c->udp.receive_buffer_bytes,
				       .sndbuf_bytes = c->udp.send_buffer_bytes };
	struct udp_socket *socket;
	struct udp_stats stats;

	options.bind.port = 0;
	if (udp_open(&socket, &options))
		return;
	udp_stats(socket, &stats);
	udp_close(socket, NULL);
	if (stats.rcvbuf_bytes < c->udp.receive_buffer_bytes ||
	    stats.sndbuf_bytes < c->udp.send_buffer_bytes)
		log_event(CONFIG_LOG_WARN, "socket_buffers_small",
			  log_number("receive_bytes", stats.rcvbuf_bytes),
			  log_number("send_bytes", stats.sndbuf_bytes),
			  log_text("hint", "raise net.core.rmem_max and net.core.wmem_max"));
}

static void print_ready(const struct relay *relay)
{
	char text[NET_ADDR_TEXT_BYTES];
	struct net_addr http = http_bound(relay->http);

	printf("ready http=%s udp=", net_addr_format(&http, text));
	for (unsigned i = 0; i < relay->listen.count; i++)
		printf("%s%s", i ? "," : "", net_addr_format(&relay->listen.items[i], text));
	printf(" workers=%u", relay->shared.workers);
	http = http_bound_admin(relay->http);
	if (http.port)
		printf(" admin=%s", net_addr_format(&http, text));
	for (unsigned i = 0; i < relay->listen_tcp.count; i++)
		printf("%s%s",
		       i ? "," : " tcp=", net_addr_format(&relay->listen_tcp.items[i], text));
	printf("\n");
	fflush(stdout);
}

/* --- all of it --------------------------------------------------------------------------- */

static void finish(struct relay *relay)
{
	struct worker_shared *shared = &relay->shared;

	http_destroy(relay->http);
	for (unsigned i = 0; i < shared->workers; i++)
		if (shared->team[i])
			worker_join(shared->team[i]);
	registry_destroy(relay->registry);
	for (unsigned i = 0; i < shared->workers; i++)
		worker_drain_rings(shared->team[i]);
	for (unsigned i = 0; i < shared->workers; i++)
		worker_destroy(shared->team[i]);
	directory_destroy(shared->directory);
	loop_timer_close(relay->drain_timer);
	loop_destroy(relay->loop);
	for (unsigned i = 0; i < relay->old_count; i++)
		config_destroy(relay->old[i]);
	config_destroy(relay->config);
}

/* Whatever is opened next would be taken for a stream that the caller closed: log lines would go
 * into a socket. */
static void keep_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int serve(struct relay *relay)
{
	char error[HTTP_ERROR_BYTES] = "";

	if (start(relay, error)) {
		fprintf(stderr, "sluice: %s\n", error);
		return EXIT_CANNOT_START; /* the process ends: nothing outlives it */
	}
	report_buffers(relay);
	print_ready(relay);
	loop_run(relay->loop);
	finish(relay);
	return relay->status;
}

static int check(struct config *config)
{
	char error[HTTP_ERROR_BYTES] = "";
	int err = http_check(config, error);

	if (err)
		fprintf(stderr, "sluice: %s\n", error);
	config_destroy(config);
	return err ? EXIT_BAD_CONFIG : EXIT_SUCCESS;
}

/* Everything but the words that are its own goes to the configuration. */
static int examine(int argc, char **argv)
{
	char error[CONFIG_ERROR_BYTES];
	enum config_action action;
	struct config *config;
	static struct doctor doctor;
	bool as_json = false;
	int kept = 1;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			as_json = true;
		else
			argv[kept++] = argv[i];
	}
	argv[kept] = NULL;
	if (config_from_args(&config, &action, kept, argv, error))
		doctor_say(&doctor, "configuration", DOCTOR_FAIL, "see sluice --help", "%s", error);
	else if (config)
		doctor_examine(&doctor, config);
	else if (action == CONFIG_HELP)
		config_print_help(stdout);
	else
		config_print_version(stdout);
	config_destroy(config);
	if (doctor.count)
		doctor_print(&doctor, as_json, stdout);
	return doctor_has_failed(&doctor) ? EXIT_CANNOT_START : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct relay relay = { .argc = argc, .argv = argv };
	char error[CONFIG_ERROR_BYTES];
	enum config_action action;

	keep_standard_streams();
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && strcmp(argv[1], "doctor") == 0)
		return examine(argc, argv);
	if (config_from_args(&relay.config, &action, argc, argv, error)) {
		fprintf(stderr, "sluice: %s\n", error);
		return EXIT_BAD_CONFIG;
	}
	switch (action) {
	case CONFIG_HELP:
		config_print_help(stdout);
		return EXIT_SUCCESS;
	case CONFIG_VERSION:
		config_print_version(stdout);
		return EXIT_SUCCESS;
	case CONFIG_CHECK:
		return check(relay.config);
	case CONFIG_RUN:
		break;
	}
	log_open(relay.config->log.format, relay.config->log.level);
	return serve(&relay);
}
