/* loadgen/run.h - one run of the program: publish, join, measure, leave.
 *
 * Thread: the caller's runs the loop.
 */
#ifndef LOADGEN_RUN_H
#define LOADGEN_RUN_H

#include "loadgen/options.h"

enum {
	RUN_OK = 0,
	RUN_NOT_OK = 1,
	RUN_UNREACHABLE = 3,
};

/** Prints progress and errors on stderr, the result on stdout. @return exit status, RUN_ */
int run(const struct options *options);

#endif
