#include "loadgen/usage.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 320, LINE_BYTES = 512 };

static uint64_t thread_ns(int pid, const char *tid)
{
	char path[PATH_BYTES];
	uint64_t ns = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0; /* it ended this moment */
	if (fscanf(f, "%" SCNu64, &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

static int read_threads(int pid, struct usage *out)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	uint64_t ns = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ns += thread_ns(pid, entry->d_name);
	closedir(dir);
	out->cpu_us = ns / 1000;
	return 0;
}

static void read_rss(int pid, struct usage *out)
{
	char path[PATH_BYTES], line[LINE_BYTES];
	uint64_t kib;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %" SCNu64, &kib) == 1)
			out->rss_bytes = kib * 1024;
	if (f)
		fclose(f);
}

static bool only_core(int pid, unsigned *core)
{
	cpu_set_t theirs, ours;

	if (sched_getaffinity(pid, sizeof(theirs), &theirs) != 0 || CPU_COUNT(&theirs) != 1 ||
	    sched_getaffinity(0, sizeof(ours), &ours) != 0)
		return false;
	for (*core = 0; !CPU_ISSET(*core, &theirs);)
		(*core)++;
	return !CPU_ISSET(*core, &ours);
}

/* user, nice, system, idle, iowait, irq, softirq, steal: all but the two that idle and the one that
 * another machine took. */
static void read_core(unsigned core, struct usage *out)
{
	char line[LINE_BYTES], name[16];
	uint64_t ticks[7];
	FILE *f = fopen("/proc/stat", "re");
	int length;

	snprintf(name, sizeof(name), "cpu%u ", core);
	while (f && fgets(line, sizeof(line), f)) {
		length = (int)strlen(name);
		if (strncmp(line, name, (size_t)length) != 0 ||
		    sscanf(line + length,
			   "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64,
			   &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5],
			   &ticks[6]) != 7)
			continue;
		out->has_core = true;
		out->core_us = (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) * 1000000 /
			       (uint64_t)sysconf(_SC_CLK_TCK);
	}
	if (f)
		fclose(f);
}

int usage_read(int pid, struct usage *out)
{
	unsigned core;
	int err;

	memset(out, 0, sizeof(*out));
	err = read_threads(pid, out);
	if (err)
		return err;
	read_rss(pid, out);
	if (only_core(pid, &core))
		read_core(core, out);
	return 0;
}

uint64_t usage_cpu_us(const struct usage *a, const struct usage *b)
{
	uint64_t threads = b->cpu_us > a->cpu_us ? b->cpu_us - a->cpu_us : 0;
	uint64_t core =
	    a->has_core && b->has_core && b->core_us > a->core_us ? b->core_us - a->core_us : 0;

	return threads > core ? threads : core;
}
