/* loadgen/usage.h - CPU time and memory of a process, as the kernel counts them.
 *
 * Source: /proc/PID/task/TID/schedstat and /proc/PID/status (proc(5)); /proc/stat.
 * Thread: any.
 */
#ifndef LOADGEN_USAGE_H
#define LOADGEN_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct usage {
	uint64_t cpu_us; /* run time of its threads that live */
	uint64_t rss_bytes;
	/* Where the process may run on one core only, and we may not: all that this core did, work
	 * in interrupts included that is nobody's run time. */
	bool has_core;
	uint64_t core_us;
};

/** @return 0 or -ESRCH */
int usage_read(int pid, struct usage *out);

/** CPU time from a to b: the larger of the two measures. */
uint64_t usage_cpu_us(const struct usage *a, const struct usage *b);

#endif
