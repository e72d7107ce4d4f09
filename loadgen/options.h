/* loadgen/options.h - the command line of sluice-load.
 *
 * Sans-IO: arguments in, values out.
 * Memory:  strings are those of argv, but for the two URLs.
 */
#ifndef LOADGEN_OPTIONS_H
#define LOADGEN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/publisher.h"

enum {
	OPTIONS_URL_BYTES = 1024,
	OPTIONS_ERROR_BYTES = 256,
	OPTIONS_MAX_STREAMS = 1000,
	OPTIONS_MAX_KEYFRAME_INTERVAL_S = 60,
	OPTIONS_MAX_SUBSCRIBERS = 100000,
};

enum options_mode { OPTIONS_BENCH, OPTIONS_PUBLISH, OPTIONS_SUBSCRIBE };

struct options {
	enum options_mode mode;
	char
	    whip[OPTIONS_URL_BYTES]; /* with {stream} where the name goes; "" when not publishing */
	char whep[OPTIONS_URL_BYTES]; /* likewise, for watching */
	const char *token;            /* NULL: none */
	uint32_t streams, subscribers;
	uint32_t rate_per_s; /* joins */
	uint32_t join_timeout_s;
	uint32_t duration_s;          /* 0: until interrupted (publish, subscribe) */
	uint32_t verify;              /* every so many-th viewer, the first one included; 0: none */
	uint32_t keyframe_interval_s; /* that the publisher keeps by itself */
	uint32_t temporal_layers;     /* of what is published */
	enum publisher_pacing pacing;
	unsigned srtp; /* enum seal_profile to agree on; 0: any */
	bool gro, json;
	bool tcp;          /* all peers: no UDP */
	bool transport_cc; /* viewers tell when packets arrived */
	double max_loss_percent;
	int pid; /* of the server; 0: not known */
};

enum options_verdict {
	OPTIONS_RUN,
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_WRONG, /* error says what, in one line */
};

enum options_verdict options_parse(struct options *out, int argc, char *const *argv,
				   char error[OPTIONS_ERROR_BYTES]);

/** Text of --help. Static. */
const char *options_help(void);

/** The URL with {stream} replaced by the name of the i-th stream, from 0.
 *  @return false: it does not fit */
bool options_url(const char *pattern, uint32_t i, char out[OPTIONS_URL_BYTES]);

#endif
