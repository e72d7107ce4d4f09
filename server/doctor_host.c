/* server/doctor_host.c - the crypto engine, limits, CPUs, memory and clock. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "net/loop.h"
#include "net/srtp.h"
#include "pool/slab.h"
#include "server/doctor.h"
#include "server/listen.h"

enum {
	PAYLOAD_BYTES = 1150,
	PACKET_BYTES = 1200,
	HEADER_BYTES = 12,
	BATCH_PKTS = 64,
	ROUNDS = 64,
	CLOCK_CALLS = 20000,
	CLOCK_SLOW_NS = 250, /* where it is read from a device instead of the CPU */
	FILES_NEEDED = 4096,
};

/* --- crypto ------------------------------------------------------------------------------ */

struct bench {
	struct seal_engine *engine, *other; /* the one to be used, and OpenSSL's to check it by */
	struct seal_tx *tx;
	struct seal_rx *rx;
	uint8_t header[BATCH_PKTS][HEADER_BYTES], payload[PAYLOAD_BYTES];
	uint8_t out[BATCH_PKTS][PACKET_BYTES];
	uint64_t index;
};

static void seal_batch(struct bench *b)
{
	struct seal_job jobs[BATCH_PKTS];

	for (unsigned i = 0; i < BATCH_PKTS; i++) {
		uint64_t index = ++b->index;

		memcpy(b->header[i], (const uint8_t[HEADER_BYTES]){ 0x80, 96, [11] = 7 },
		       HEADER_BYTES);
		b->header[i][2] = (uint8_t)(index >> 8);
		b->header[i][3] = (uint8_t)index;
		jobs[i] = (struct seal_job){ .tx = b->tx,
					     .index = index,
					     .header = b->header[i],
					     .payload = b->payload,
					     .header_bytes = HEADER_BYTES,
					     .payload_bytes = PAYLOAD_BYTES,
					     .out = b->out[i] };
	}
	seal_rtp(b->engine, jobs, BATCH_PKTS);
}

/* What one engine sealed, another opens to the same. */
static bool opens_again(struct bench *b)
{
	size_t len = HEADER_BYTES + PAYLOAD_BYTES + seal_tag_bytes(SEAL_AEAD_AES_128_GCM);
	uint64_t index = 0;

	return seal_open_rtp(b->other, b->rx, b->out[0], &len, &index) == SEAL_OK && index == 1 &&
	       len == HEADER_BYTES + PAYLOAD_BYTES &&
	       memcmp(b->out[0] + HEADER_BYTES, b->payload, PAYLOAD_BYTES) == 0;
}

static int bench_open(struct bench *b, enum seal_engine_kind kind)
{
	struct seal_keys keys = { .profile = SEAL_AEAD_AES_128_GCM, .key = { 1, 2, 3 } };
	int err = seal_engine_create(&b->engine, kind);

	for (unsigned i = 0; i < PAYLOAD_BYTES; i++)
		b->payload[i] = (uint8_t)i;
	if (!err)
		err = seal_engine_create(&b->other, SEAL_ENGINE_EVP);
	if (!err)
		err = seal_tx_create(&b->tx, b->engine, &keys);
	if (!err)
		err = seal_rx_create(&b->rx, b->other, &keys);
	return err;
}

static void bench_close(struct bench *b)
{
	seal_tx_destroy(b->tx);
	seal_rx_destroy(b->rx);
	seal_engine_destroy(b->engine);
	seal_engine_destroy(b->other);
	free(b);
}

static void examine_bench(struct doctor *d, const struct config *c, struct bench *b)
{
	const char *name = seal_engine_name(b->engine);
	bool is_slow = strcmp(name, "ipsecmb") != 0;
	uint64_t began_us;
	unsigned ns;

	seal_batch(b);
	if (!opens_again(b)) {
		doctor_say(d, "crypto", DOCTOR_FAIL, "srtp.engine: evp",
			   "what %s seals is not what OpenSSL opens", name);
		return;
	}
	began_us = clock_now_us();
	for (unsigned i = 0; i < ROUNDS; i++)
		seal_batch(b);
	ns = (unsigned)((clock_now_us() - began_us) * 1000 / (ROUNDS * BATCH_PKTS));
	doctor_say(d, "crypto", is_slow ? DOCTOR_WARN : DOCTOR_OK,
		   !is_slow ? ""
		   : c->srtp.engine == CONFIG_SRTP_AUTO
		       ? "Intel's multi-buffer library (libipsec-mb, a CPU with AES-NI) is faster"
		       : "srtp.engine: auto",
		   "%s seals and OpenSSL opens; %u ns for a packet of %d bytes", name, ns,
		   PACKET_BYTES);
}

static void examine_crypto(struct doctor *d, const struct config *c)
{
	static const enum seal_engine_kind kinds[] = {
		[CONFIG_SRTP_AUTO] = SEAL_ENGINE_AUTO,
		[CONFIG_SRTP_IPSECMB] = SEAL_ENGINE_IPSECMB,
		[CONFIG_SRTP_EVP] = SEAL_ENGINE_EVP,
		[CONFIG_SRTP_LIBSRTP2] = SEAL_ENGINE_LIBSRTP,
	};
	struct bench *b = calloc(1, sizeof(*b));
	int err = b ? bench_open(b, kinds[c->srtp.engine]) : -ENOMEM;

	if (err)
		doctor_say(d, "crypto", DOCTOR_FAIL, "srtp.engine: auto",
			   "the engine does not run here: %s", strerror(-err));
	else
		examine_bench(d, c, b);
	if (b)
		bench_close(b);
}

/* --- limits ------------------------------------------------------------------------------ */

static unsigned usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

static unsigned worker_count(const struct config *c)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	return c->workers ? c->workers : online > 0 ? (unsigned)online : 1;
}

static void examine_files(struct doctor *d, const struct config *c)
{
	struct rlimit limit = { 0 };
	uint64_t need = FILES_NEEDED;

	if (c->tcp.enabled && c->tcp.connections)
		need += c->tcp.connections;
	if (c->limits.connections)
		need += c->limits.connections;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= need)
		doctor_say(d, "open_files", DOCTOR_OK, "", "%llu allowed",
			   (unsigned long long)limit.rlim_max);
	else
		doctor_say(d, "open_files", DOCTOR_WARN,
			   "ulimit -Hn 65536, or LimitNOFILE=65536 in the systemd unit",
			   "%llu allowed, %llu may be needed for HTTP and TCP connections",
			   (unsigned long long)limit.rlim_max, (unsigned long long)need);
}

static void examine_cpus(struct doctor *d, const struct config *c)
{
	unsigned cpus = usable_cpus(), workers = worker_count(c);

	if (workers > cpus)
		doctor_say(d, "cpus", DOCTOR_WARN, "--workers as many as CPUs",
			   "%u workers share the %u CPUs this process may use", workers, cpus);
	else
		doctor_say(d, "cpus", DOCTOR_OK, "", "%u workers on %u CPUs%s", workers, cpus,
			   c->pin ? ", pinned" : "");
}

static void examine_memory(struct doctor *d, const struct config *c)
{
	uint64_t need_kb = (uint64_t)worker_count(c) * c->pool.packets * SLAB_BYTES / 1024;
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long free_kb = 0;
	char line[128];

	while (f && !free_kb && fgets(line, sizeof(line), f))
		if (strncmp(line, "MemAvailable:", 13) == 0)
			free_kb = strtoull(line + 13, NULL, 10);
	if (f)
		fclose(f);
	if (free_kb == 0 || need_kb <= free_kb)
		doctor_say(d, "memory", DOCTOR_OK, "",
			   "%llu MB free, packet buffers take up to %llu MB", free_kb / 1024,
			   (unsigned long long)(need_kb / 1024));
	else
		doctor_say(d, "memory", DOCTOR_WARN, "lower pool.packets",
			   "%llu MB free, and packet buffers may take %llu MB", free_kb / 1024,
			   (unsigned long long)(need_kb / 1024));
}

static void examine_clock(struct doctor *d)
{
	static const time_t built_s = 1704067200; /* 2024: no clock that is right shows less */
	uint64_t began_us = clock_now_us();
	unsigned ns;

	for (unsigned i = 0; i < CLOCK_CALLS; i++)
		(void)clock_now_us();
	ns = (unsigned)((clock_now_us() - began_us) * 1000 / CLOCK_CALLS);
	if (time(NULL) < built_s)
		doctor_say(d, "clock", DOCTOR_WARN, "set it (NTP)",
			   "the date is wrong: certificates and TURN credentials go by it");
	else if (ns > CLOCK_SLOW_NS)
		doctor_say(d, "clock", DOCTOR_WARN,
			   "see /sys/devices/system/clocksource/clocksource0, prefer tsc",
			   "reading it takes %u ns", ns);
	else
		doctor_say(d, "clock", DOCTOR_OK, "", "reading it takes %u ns", ns);
}

void doctor_examine_host(struct doctor *d, const struct config *c)
{
	examine_crypto(d, c);
	examine_files(d, c);
	examine_cpus(d, c);
	examine_memory(d, c);
	examine_clock(d);
}
