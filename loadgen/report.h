/* loadgen/report.h - what a run found: the table for people, the JSON object for scripts.
 *
 * Thread: any.
 */
#ifndef LOADGEN_REPORT_H
#define LOADGEN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct report_quantiles {
	uint64_t p50, p99, p999, max;
};

struct report {
	uint32_t asked, joined, failed; /* subscribers */
	uint32_t incomplete;            /* joined, but a track did not come to the end */
	struct report_quantiles join_ms;
	uint64_t expected, received, lost, repaired, duplicated; /* packets */
	uint64_t bad_auth, verified;
	bool wants_verified; /* some viewers were to verify: then none verified is not good */
	struct report_quantiles frame_us, audio_us;
	uint64_t late_us; /* later is late: 1 in 100 of all units, rounded up (lateness.h) */
	double late_share_mean, late_share_max; /* of a viewer's units, 0 to 1 */
	uint64_t keyframes_first_ms_p99;
	double packets_per_s, mbit_per_s;
	bool has_server;
	double server_cpu_us_per_packet;
	uint64_t server_rss_bytes;
	double server_rss_bytes_per_subscriber;
	double client_cpu_us_per_packet;
	uint64_t client_socket_drops;
	double max_loss_percent;
	bool is_interrupted;
};

/** joined = asked, all complete, loss within the limit, nothing forged. */
bool report_is_ok(const struct report *r);

/** One line, compact, to be freed; NULL: no memory. Keys never change. */
char *report_json(const struct report *r);

/** Lines to be printed, to be freed; NULL: no memory. */
char *report_table(const struct report *r);

#endif
