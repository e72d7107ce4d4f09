/* floor: the yardstick, what forwarding costs when nothing but the work itself is done.
 *
 * See --help. Two processes: one runs the bare loop and is measured, the other feeds it and receives
 * for all viewers through the load generator's own sockets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/floor_constants.h"
#include "tests/bench/floor_run.h"

static const char usage[] =
    "floor [OPTIONS]            replay a trace of messages to viewers, print CPU per packet\n"
    "floor record [OPTIONS]     write the trace of what one viewer gets from a relay on loopback\n"
    "\n"
    "  --viewers N              1000\n"
    "  --trace FILE             else VP8 at 30 frames/s of 5 packets, and 50 Opus packets/s\n"
    "  --srtp gcm128|gcm256|cm80\n"
    "  --engine auto|ipsecmb|evp|libsrtp2\n"
    "  --pacing frame|browser   how source packets come: frames whole, or bursts every 5 ms\n"
    "  --no-gro                 receive as remote viewers would\n"
    "  --modes gso,sendto       phases to alternate: the bare loop; plain sendto of each packet\n"
    "  --rounds N, --seconds S  5 phases of each mode, 2 seconds each\n"
    "  --cores SENDER,RECEIVER  pin them\n"
    "  --json\n"
    "\n"
    "record: --port RELAY --to ADDRESS --seconds S --srtp PROFILE --output FILE\n";

/* --- clocks ------------------------------------------------------------------------------ */

static uint64_t busy_ns(int core)
{
	char name[16], line[256];
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
	uint64_t ticks = 0;
	FILE *f = core >= 0 ? fopen("/proc/stat", "r") : NULL;

	snprintf(name, sizeof(name), "cpu%d ", core);
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0 &&
		    sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &user,
			   &nice, &system, &idle, &iowait, &irq, &softirq, &steal) == 8)
			ticks = user + nice + system + irq + softirq;
	if (f)
		fclose(f);
	return ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

void floor_read_cpu(struct floor_cpu *out, int core)
{
	struct timespec t;
	unsigned long long ns = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (f && fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	out->thread_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	out->schedstat_ns = ns;
	out->core_ns = busy_ns(core);
}

void floor_subtract_cpu(struct floor_cpu *from, const struct floor_cpu *start)
{
	from->thread_ns -= start->thread_ns;
	from->schedstat_ns -= start->schedstat_ns;
	from->core_ns -= start->core_ns;
}

void floor_pin(int core)
{
	cpu_set_t set;

	if (core < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("floor: cannot pin");
}

/* --- results ----------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct spread {
	double median, min, max;
};

typedef double phase_value(const struct floor_phase *phase);

static double thread_ns(const struct floor_phase *p)
{
	return (double)p->sent_cpu.thread_ns / (double)p->packets;
}

static double schedstat_ns(const struct floor_phase *p)
{
	return (double)p->sent_cpu.schedstat_ns / (double)p->packets;
}

static double core_ns(const struct floor_phase *p)
{
	return (double)p->sent_cpu.core_ns / (double)p->packets;
}

static double receiver_ns(const struct floor_phase *p)
{
	return (double)p->received_cpu.thread_ns / (double)p->received;
}

static double receiver_busy(const struct floor_phase *p)
{
	return (double)p->received_cpu.thread_ns / 1e3 / (double)p->elapsed_us;
}

static double packets_per_s(const struct floor_phase *p)
{
	return (double)p->packets / ((double)p->elapsed_us / 1e6);
}

static double packets_per_message(const struct floor_phase *p)
{
	return (double)p->packets / (double)p->messages;
}

static double frame_p50(const struct floor_phase *p)
{
	return (double)histogram_quantile(&p->frame_us, 500);
}

static double frame_p99(const struct floor_phase *p)
{
	return (double)histogram_quantile(&p->frame_us, 990);
}

static double audio_p50(const struct floor_phase *p)
{
	return (double)histogram_quantile(&p->audio_us, 500);
}

static double audio_p99(const struct floor_phase *p)
{
	return (double)histogram_quantile(&p->audio_us, 990);
}

static double lost(const struct floor_phase *p)
{
	return (double)p->packets - (double)p->received;
}

static double missing(const struct floor_phase *p)
{
	return (double)p->missing;
}

static const struct column {
	const char *name;
	phase_value *value;
} columns[] = {
	{ "cpu_ns_per_packet", thread_ns }, { "schedstat_ns_per_packet", schedstat_ns },
	{ "core_ns_per_packet", core_ns },  { "packets_per_message", packets_per_message },
	{ "packets_per_s", packets_per_s }, { "receiver_ns_per_packet", receiver_ns },
	{ "receiver_busy", receiver_busy }, { "frame_us_p50", frame_p50 },
	{ "frame_us_p99", frame_p99 },      { "audio_us_p50", audio_p50 },
	{ "audio_us_p99", audio_p99 },      { "lost", lost },
	{ "passes_skipped", missing },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static const char *const mode_names[FLOOR_MODES] = { "gso", "sendto" };

static struct spread over_rounds(const struct floor_shared *s, enum floor_mode mode,
				 phase_value *value)
{
	double values[FLOOR_MAX_PHASES];
	unsigned n = 0;

	for (unsigned i = 0; i < s->phase_count; i++)
		if (s->phases[i].mode == mode)
			values[n++] = value(&s->phases[i]);
	qsort(values, n, sizeof(values[0]), by_value);
	return n % 2 ? (struct spread){ values[n / 2], values[0], values[n - 1] }
		     : (struct spread){ (values[n / 2 - 1] + values[n / 2]) / 2, values[0],
					values[n - 1] };
}

struct check {
	bool is_possible, holds;
	double expected_ns, measured_ns;
};

static struct check check_floor(const struct floor_shared *s, const struct floor_options *o)
{
	struct check c = { .is_possible = o->gro && o->modes[FLOOR_GSO] && o->modes[FLOOR_SENDTO] &&
					  o->profile != SEAL_AES_CM_128_HMAC_SHA1_80 };
	double messages;

	if (!c.is_possible)
		return c;
	messages = 1 / over_rounds(s, FLOOR_GSO, packets_per_message).median;
	c.measured_ns = over_rounds(s, FLOOR_GSO, thread_ns).median;
	c.expected_ns = over_rounds(s, FLOOR_SENDTO, thread_ns).median *
			(FLOOR_SENDTO_PER_MESSAGE * messages + FLOOR_SENDTO_PER_PACKET);
	c.holds = c.measured_ns >= c.expected_ns * (1 - FLOOR_TOLERANCE) &&
		  c.measured_ns <= c.expected_ns * (1 + FLOOR_TOLERANCE);
	return c;
}

static void print_json(const struct floor_shared *s, const struct floor_options *o,
		       const char *engine)
{
	struct check c = check_floor(s, o);

	printf("{\"viewers\":%u,\"profile\":%d,\"engine\":\"%s\",\"gro\":%s,\"kernel_drops\":%llu",
	       o->viewers, (int)o->profile, engine, o->gro ? "true" : "false",
	       (unsigned long long)s->kernel_drops);
	for (unsigned m = 0; m < FLOOR_MODES; m++) {
		if (!o->modes[m])
			continue;
		printf(",\"%s\":{", mode_names[m]);
		for (unsigned i = 0; i < COLUMNS; i++) {
			struct spread v = over_rounds(s, (enum floor_mode)m, columns[i].value);

			printf("%s\"%s\":{\"median\":%.6g,\"min\":%.6g,\"max\":%.6g}", i ? "," : "",
			       columns[i].name, v.median, v.min, v.max);
		}
		printf("}");
	}
	if (c.is_possible)
		printf(",\"check\":{\"expected_ns\":%.6g,\"measured_ns\":%.6g,\"holds\":%s}",
		       c.expected_ns, c.measured_ns, c.holds ? "true" : "false");
	printf("}\n");
}

static void print_table(const struct floor_shared *s, const struct floor_options *o,
			const char *engine)
{
	struct check c = check_floor(s, o);

	printf("%u viewers, profile %d by %s, GRO %s, %u rounds of %g s; median (min to max)\n\n",
	       o->viewers, (int)o->profile, engine, o->gro ? "on" : "off", o->rounds, o->seconds);
	printf("%-26s", "");
	for (unsigned m = 0; m < FLOOR_MODES; m++)
		if (o->modes[m])
			printf("%32s", mode_names[m]);
	printf("\n");
	for (unsigned i = 0; i < COLUMNS; i++) {
		printf("%-26s", columns[i].name);
		for (unsigned m = 0; m < FLOOR_MODES; m++) {
			struct spread v;
			char cell[64];

			if (!o->modes[m])
				continue;
			v = over_rounds(s, (enum floor_mode)m, columns[i].value);
			snprintf(cell, sizeof(cell), "%.5g (%.5g to %.5g)", v.median, v.min, v.max);
			printf("%32s", cell);
		}
		printf("\n");
	}
	printf("kernel drops at the receiver: %llu\n", (unsigned long long)s->kernel_drops);
	if (c.is_possible)
		printf(
		    "self-check: sendto x (%.2f x messages + %.2f x packets) / packets = %.0f ns "
		    "expected, %.0f measured, %+.0f %%: %s\n",
		    FLOOR_SENDTO_PER_MESSAGE, FLOOR_SENDTO_PER_PACKET, c.expected_ns, c.measured_ns,
		    100 * (c.measured_ns / c.expected_ns - 1), c.holds ? "holds" : "DOES NOT HOLD");
}

/* --- the run ----------------------------------------------------------------------------- */

static void plan_phases(struct floor_shared *s, const struct floor_options *o)
{
	for (unsigned round = 0; round < o->rounds; round++)
		for (unsigned m = 0; m < FLOOR_MODES; m++)
			if (o->modes[m] && s->phase_count < FLOOR_MAX_PHASES)
				s->phases[s->phase_count++].mode = (enum floor_mode)m;
}

static int open_socket(struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), bytes = 8 << 20;
	int mtu = IP_PMTUDISC_OMIT;
	socklen_t len = sizeof(*name);

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)name, sizeof(*name)) ||
	    getsockname(fd, (struct sockaddr *)name, &len) ||
	    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &mtu, sizeof(mtu)))
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	return fd;
}

static uint32_t wait_for_receiver(struct floor_shared *s)
{
	struct timespec pause = { .tv_nsec = 2000000 };
	uint32_t state;

	while ((state = atomic_load_explicit(&s->state, memory_order_acquire)) == FLOOR_OPENING)
		nanosleep(&pause, NULL);
	return state;
}

static int run(struct floor_shared *shared, const struct floor_options *o, struct trace *trace)
{
	struct sockaddr_in name;
	int fd = open_socket(&name), err = 0, status;
	pid_t child;

	if (fd < 0)
		return fd;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		floor_pin(o->receive_core);
		_exit(floor_receive(shared, o, trace, &name) ? 1 : 0);
	}
	floor_pin(o->send_core);
	if (wait_for_receiver(shared) == FLOOR_OPEN)
		err = floor_send(shared, o, trace, fd);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
		err = err ? err : -EIO;
	close(fd);
	return err;
}

static const char *engine_name(const struct floor_options *o)
{
	struct seal_engine *e;
	const char *name;

	if (seal_engine_create(&e, o->engine))
		return NULL;
	name = seal_engine_name(e);
	seal_engine_destroy(e);
	return name;
}

static int measure(const struct floor_options *o)
{
	struct floor_shared *shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FILE *file = o->trace_path ? fopen(o->trace_path, "r") : NULL;
	struct trace *trace = file ? trace_create_from(file) : NULL;
	const char *engine = engine_name(o);
	int err;

	if (!o->trace_path)
		trace = trace_create_default();
	if (file)
		fclose(file);
	if (shared == MAP_FAILED || !trace || !engine) {
		fprintf(stderr, "floor: no memory, no such trace or no such engine\n");
		return 1;
	}
	trace_schedule(trace, o->as_browser);
	plan_phases(shared, o);
	err = run(shared, o, trace);
	if (err)
		fprintf(stderr, "floor: %s\n", strerror(-err));
	else if (o->json)
		print_json(shared, o, engine);
	else
		print_table(shared, o, engine);
	trace_destroy(trace);
	munmap(shared, sizeof(*shared));
	return err ? 1 : 0;
}

/* --- options ----------------------------------------------------------------------------- */

struct record_options {
	unsigned long port;
	const char *to, *output;
};

/* @return the position of `word` in a list that ends with NULL, or -1 */
static int find(const char *const *words, const char *word)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return -1;
}

static bool set_choice(struct floor_options *o, int option, const char *word)
{
	static const char *const profiles[] = { "gcm128", "gcm256", "cm80", NULL };
	static const enum seal_profile profile_of[] = { SEAL_AEAD_AES_128_GCM,
							SEAL_AEAD_AES_256_GCM,
							SEAL_AES_CM_128_HMAC_SHA1_80 };
	static const char *const engines[] = { "auto", "ipsecmb", "evp", "libsrtp2", NULL };
	static const char *const pacings[] = { "frame", "browser", NULL };
	static const char *const modes[] = { "gso,sendto", "gso", "sendto", NULL };
	int i;

	switch (option) {
	case 's':
		i = find(profiles, word);
		o->profile = profile_of[i < 0 ? 0 : i];
		return i >= 0;
	case 'e':
		i = find(engines, word);
		o->engine = (enum seal_engine_kind)i;
		return i >= 0;
	case 'p':
		i = find(pacings, word);
		o->as_browser = i == 1;
		return i >= 0;
	default:
		i = find(modes, word);
		o->modes[FLOOR_GSO] = i != 2;
		o->modes[FLOOR_SENDTO] = i != 1;
		return i >= 0;
	}
}

static bool set_option(struct floor_options *o, struct record_options *record, int option)
{
	switch (option) {
	case 'n':
		o->viewers = (uint32_t)strtoul(optarg, NULL, 10);
		return o->viewers > 0 && o->viewers <= FLOOR_MAX_VIEWERS;
	case 't':
		o->trace_path = optarg;
		return true;
	case 'g':
		o->gro = false;
		return true;
	case 'j':
		o->json = true;
		return true;
	case 'r':
		o->rounds = (unsigned)strtoul(optarg, NULL, 10);
		return o->rounds > 0 && o->rounds <= FLOOR_MAX_PHASES / FLOOR_MODES;
	case 'd':
		o->seconds = strtod(optarg, NULL);
		return o->seconds > 0 && o->seconds <= 3600;
	case 'c':
		return sscanf(optarg, "%d,%d", &o->send_core, &o->receive_core) == 2;
	case 'P':
		record->port = strtoul(optarg, NULL, 10);
		return record->port > 0 && record->port <= UINT16_MAX;
	case 'T':
		record->to = optarg;
		return true;
	case 'o':
		record->output = optarg;
		return true;
	default:
		return set_choice(o, option, optarg);
	}
}

static int record(const struct floor_options *o, const struct record_options *r)
{
	struct in_addr viewer;
	FILE *out;
	int err;

	if (!r->port || !r->to || !r->output || inet_pton(AF_INET, r->to, &viewer) != 1) {
		fputs(usage, stderr);
		return 2;
	}
	out = fopen(r->output, "w");
	if (!out) {
		perror(r->output);
		return 1;
	}
	err = floor_record((uint16_t)r->port, viewer, o->seconds,
			   (unsigned)seal_tag_bytes(o->profile), out);
	fclose(out);
	if (err)
		fprintf(stderr, "floor record: %s\n", strerror(-err));
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "viewers", 1, NULL, 'n' }, { "trace", 1, NULL, 't' },
		{ "srtp", 1, NULL, 's' },    { "engine", 1, NULL, 'e' },
		{ "pacing", 1, NULL, 'p' },  { "no-gro", 0, NULL, 'g' },
		{ "modes", 1, NULL, 'm' },   { "rounds", 1, NULL, 'r' },
		{ "seconds", 1, NULL, 'd' }, { "cores", 1, NULL, 'c' },
		{ "json", 0, NULL, 'j' },    { "port", 1, NULL, 'P' },
		{ "to", 1, NULL, 'T' },      { "output", 1, NULL, 'o' },
		{ "help", 0, NULL, 'h' },    { 0 },
	};
	struct floor_options o = {
		.viewers = 1000,
		.profile = SEAL_AEAD_AES_128_GCM,
		.gro = true,
		.modes = { true, true },
		.rounds = 5,
		.seconds = 2,
		.send_core = -1,
		.receive_core = -1,
	};
	struct record_options r = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (option == '?' || !set_option(&o, &r, option)) {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc && strcmp(argv[optind], "record") == 0)
		return record(&o, &r);
	if (optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	return measure(&o);
}
