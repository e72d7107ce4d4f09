#include "loadgen/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

bool report_is_ok(const struct report *r)
{
	bool loss_is_ok = (double)r->lost * 100 <= (double)r->expected * r->max_loss_percent;

	return r->joined == r->asked && r->incomplete == 0 && loss_is_ok && r->bad_auth == 0 &&
	       (!r->wants_verified || r->verified > 0) && !r->is_interrupted;
}

static json_int_t n(uint64_t value)
{
	return (json_int_t)value;
}

static json_t *quantiles(const struct report_quantiles *q)
{
	return json_pack("{s:I,s:I,s:I,s:I}", "p50", n(q->p50), "p99", n(q->p99), "p999",
			 n(q->p999), "max", n(q->max));
}

static json_t *server(const struct report *r)
{
	if (!r->has_server)
		return json_null();
	return json_pack("{s:f,s:I,s:f}", "cpu_us_per_packet", r->server_cpu_us_per_packet,
			 "rss_bytes", n(r->server_rss_bytes), "rss_bytes_per_subscriber",
			 r->server_rss_bytes_per_subscriber);
}

char *report_json(const struct report *r)
{
	json_t *root = json_pack(
	    "{s:{s:i,s:i,s:i},s:{s:I,s:I,s:I},s:{s:I,s:I,s:I,s:I,s:I},s:I,s:I,"
	    "s:{s:o,s:o},s:{s:I,s:f,s:f},s:{s:I},s:{s:f,s:f},s:o,s:{s:f,s:I},s:b}",
	    "subscribers", "asked", (int)r->asked, "joined", (int)r->joined, "failed",
	    (int)r->failed, "join_ms", "p50", n(r->join_ms.p50), "p99", n(r->join_ms.p99), "max",
	    n(r->join_ms.max), "packets", "expected", n(r->expected), "received", n(r->received),
	    "lost", n(r->lost), "repaired", n(r->repaired), "duplicated", n(r->duplicated),
	    "bad_auth", n(r->bad_auth), "verified", n(r->verified), "latency_us", "frame",
	    quantiles(&r->frame_us), "audio", quantiles(&r->audio_us), "late", "over_us",
	    n(r->late_us), "share_mean", r->late_share_mean, "share_max", r->late_share_max,
	    "decode", "keyframes_first_ms_p99", n(r->keyframes_first_ms_p99), "throughput",
	    "packets_per_s", r->packets_per_s, "mbit_per_s", r->mbit_per_s, "server", server(r),
	    "client", "cpu_us_per_packet", r->client_cpu_us_per_packet, "socket_drops",
	    n(r->client_socket_drops), "ok", report_is_ok(r));
	char *text;

	if (!root)
		return NULL;
	text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6));
	json_decref(root);
	return text;
}

static void put_latency(FILE *f, const char *name, const struct report_quantiles *q)
{
	if (q->max == 0) { /* only who publishes too knows when a packet left */
		fprintf(f, "%-16s not measured\n", name);
		return;
	}
	fprintf(f, "%-16s p50 %.2f  p99 %.2f  p99.9 %.2f  max %.2f ms\n", name,
		(double)q->p50 / 1000, (double)q->p99 / 1000, (double)q->p999 / 1000,
		(double)q->max / 1000);
}

static void put_late(FILE *f, const struct report *r)
{
	if (r->late_us > 0)
		fprintf(f, "%-16s later than %.2f ms: %.2f %%, of the worst viewer %.2f %%\n",
			"late", (double)r->late_us / 1000, r->late_share_mean * 100,
			r->late_share_max * 100);
}

static void put_server(FILE *f, const struct report *r)
{
	if (!r->has_server)
		return;
	fprintf(f, "%-16s %.3f us/packet, %.1f MiB resident, %.1f KiB a viewer\n", "server",
		r->server_cpu_us_per_packet, (double)r->server_rss_bytes / 1048576,
		r->server_rss_bytes_per_subscriber / 1024);
}

char *report_table(const struct report *r)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "%-16s %u of %u joined, %u failed, %u incomplete\n", "viewers", r->joined,
		r->asked, r->failed, r->incomplete);
	fprintf(f, "%-16s p50 %" PRIu64 "  p99 %" PRIu64 "  max %" PRIu64 " ms\n", "join",
		r->join_ms.p50, r->join_ms.p99, r->join_ms.max);
	fprintf(f,
		"%-16s %" PRIu64 " expected, %" PRIu64 " received, %" PRIu64 " lost, %" PRIu64
		" repaired, %" PRIu64 " duplicated\n",
		"packets", r->expected, r->received, r->lost, r->repaired, r->duplicated);
	fprintf(f, "%-16s %" PRIu64 " packets verified by libsrtp2, %" PRIu64 " bad\n",
		"authentication", r->verified, r->bad_auth);
	put_latency(f, "frame latency", &r->frame_us);
	put_latency(f, "audio latency", &r->audio_us);
	put_late(f, r);
	fprintf(f, "%-16s p99 %" PRIu64 " ms\n", "first key frame", r->keyframes_first_ms_p99);
	fprintf(f, "%-16s %.0f packets/s, %.1f Mbit/s\n", "throughput", r->packets_per_s,
		r->mbit_per_s);
	put_server(f, r);
	fprintf(f, "%-16s %.3f us/packet, %" PRIu64 " socket drops\n", "client",
		r->client_cpu_us_per_packet, r->client_socket_drops);
	fprintf(f, "%-16s %s\n", "result", report_is_ok(r) ? "ok" : "NOT OK");
	return fclose(f) == 0 ? text : NULL;
}
