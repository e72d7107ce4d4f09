#include "server/metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include "net/loop.h"
#include "server/log.h"

static void family(struct text *out, const char *name, const char *type, const char *help)
{
	text_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void counter(struct text *out, const char *name, const char *help, uint64_t value)
{
	family(out, name, "counter", help);
	text_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void gauge(struct text *out, const char *name, const char *help, double value)
{
	family(out, name, "gauge", help);
	text_printf(out, "%s %.17g\n", name, value);
}

static double resident_bytes(void)
{
	unsigned long size = 0;
	unsigned long resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n > 3 ? n - 3 : 0; /* ".", ".." and the directory itself */
}

static void process(const struct http_context *ctx, struct text *out)
{
	struct rusage ru = { 0 };

	getrusage(RUSAGE_SELF, &ru);
	family(out, "sluice_build_info", "gauge", "Version of the relay.");
	text_printf(out, "sluice_build_info{version=\"%s\"} 1\n", SLUICE_VERSION);
	gauge(out, "sluice_uptime_seconds", "Time since start.",
	      (double)(clock_now_us() - ctx->started_us) / 1e6);
	family(out, "sluice_cpu_seconds_total", "counter", "Processor time of all threads.");
	text_printf(out, "sluice_cpu_seconds_total{mode=\"user\"} %.6f\n",
		    (double)ru.ru_utime.tv_sec + (double)ru.ru_utime.tv_usec / 1e6);
	text_printf(out, "sluice_cpu_seconds_total{mode=\"system\"} %.6f\n",
		    (double)ru.ru_stime.tv_sec + (double)ru.ru_stime.tv_usec / 1e6);
	gauge(out, "sluice_resident_memory_bytes", "Resident memory.", resident_bytes());
	gauge(out, "sluice_open_fds", "Open descriptors.", open_fds());
	counter(out, "sluice_log_dropped_lines_total",
		"Log lines lost because their reader did not keep up.", log_dropped_lines());
}

static void requests(const struct http_counters *c, struct text *out)
{
	family(out, "sluice_http_requests_total", "counter", "Requests answered.");
	for (int route = 0; route < HTTP_ROUTES; route++) {
		for (int class = 1; class < HTTP_STATUS_CLASSES; class ++) {
			if (c->requests[route][class] == 0)
				continue;
			text_printf(out,
				    "sluice_http_requests_total{route=\"%s\",status=\"%dxx\"} "
				    "%llu\n",
				    http_route_name((enum http_route_kind)route), class,
				    (unsigned long long)c->requests[route][class]);
		}
	}
}

void metrics_write(const struct http_context *ctx, struct text *out)
{
	const struct http_counters *c = &ctx->counters;

	process(ctx, out);
	requests(c, out);
	gauge(out, "sluice_http_connections", "HTTP connections open.",
	      (double)c->connections_open);
	gauge(out, "sluice_http_event_readers", "HTTP connections that read an event stream.",
	      (double)c->event_readers);
	gauge(out, "sluice_http_limited_clients", "Addresses the limits keep count of.",
	      limits_clients(ctx->limits, clock_now_us()));
	family(out, "sluice_http_refused_total", "counter", "Requests refused, by cause.");
	text_printf(out, "sluice_http_refused_total{cause=\"token\"} %llu\n",
		    (unsigned long long)c->refused_token);
	text_printf(out, "sluice_http_refused_total{cause=\"client_rate\"} %llu\n",
		    (unsigned long long)c->refused_client_rate);
	text_printf(out, "sluice_http_refused_total{cause=\"node_rate\"} %llu\n",
		    (unsigned long long)c->refused_node_rate);
	family(out, "sluice_http_closed_total", "counter",
	       "Connections closed by the relay, by cause.");
	text_printf(out, "sluice_http_closed_total{cause=\"too_many_of_address\"} %llu\n",
		    (unsigned long long)c->refused_connections_ip);
	text_printf(out, "sluice_http_closed_total{cause=\"slow_request\"} %llu\n",
		    (unsigned long long)c->closed_slow);
	text_printf(out, "sluice_http_closed_total{cause=\"idle\"} %llu\n",
		    (unsigned long long)c->closed_idle);
}
