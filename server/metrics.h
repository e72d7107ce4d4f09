/* server/metrics.h - the process and the control plane in Prometheus' text format.
 *
 * Source: Prometheus text format 0.0.4 with OpenMetrics' naming (unit in the name, _total).
 * Thread: control only.
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "server/http_request.h"

/** Append build, process, HTTP and limits; registry_metrics() adds streams and workers. */
void metrics_write(const struct http_context *ctx, struct text *out);

#endif
