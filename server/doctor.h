/* server/doctor.h - "sluice doctor": would the relay run here, and run well, with this configuration?
 *
 * What it finds out it tries: ports are bound, segmented messages sent, packets sealed.
 *
 * Thread: main, before anything else runs.
 */
#ifndef SERVER_DOCTOR_H
#define SERVER_DOCTOR_H

#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"

enum { DOCTOR_MAX = 32, DOCTOR_TEXT_BYTES = 400 };

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_WARN, /* it runs, but not as well as it might */
	DOCTOR_FAIL, /* it would not start, or nobody could connect */
};

struct doctor_line {
	const char *name; /* stable word: "udp_port" */
	enum doctor_level level;
	char found[DOCTOR_TEXT_BYTES];
	char advice[DOCTOR_TEXT_BYTES]; /* what to change; "" when there is nothing to */
};

struct doctor {
	struct doctor_line lines[DOCTOR_MAX];
	unsigned count;
};

/** One more line. @param found printf's, of what is in `advice` nothing is formatted */
__attribute__((format(printf, 5, 6))) void doctor_say(struct doctor *d, const char *name,
						      enum doctor_level level, const char *advice,
						      const char *found, ...);

/** Everything there is to look at. */
void doctor_examine(struct doctor *d, const struct config *config);

/* doctor_net.c, doctor_host.c: its parts. */
void doctor_examine_net(struct doctor *d, const struct config *config);
void doctor_examine_host(struct doctor *d, const struct config *config);

/** A line each for people, or one JSON object: {"ok": bool, "checks": [{"name", "level", "found",
 *  "advice"}]}. */
void doctor_print(const struct doctor *d, bool as_json, FILE *out);

/** Whether something would not work. */
bool doctor_has_failed(const struct doctor *d);

#endif
