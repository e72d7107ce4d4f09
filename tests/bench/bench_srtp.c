/* bench_srtp [SECONDS]: CPU ns to seal, and to open, one 1,200-byte packet, for each engine and
 * profile, with 1 and with 1,000 sessions. Nothing is judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/srtp.h"
#include "pool/bytes.h"

enum {
	HEADER_BYTES = 20, /* with an extension of 4 bytes */
	PAYLOAD_BYTES = 1200 - HEADER_BYTES,
	SLOT_BYTES = 1280,
	BURST = 64, /* packets per call, each to another session where there are that many */
	MAX_SESSIONS = 1000,
	ROUNDS = 5,
};

struct session {
	struct seal_tx *tx;
	struct seal_rx *rx;
	uint64_t index;
};

static struct session sessions[MAX_SESSIONS];
static uint8_t headers[BURST][HEADER_BYTES];
static uint8_t payload[PAYLOAD_BYTES];
static uint8_t arena[BURST][SLOT_BYTES];
static struct seal_job jobs[BURST];

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fill_burst(size_t sessions_count, size_t *cursor, uint16_t lead_bytes)
{
	for (size_t i = 0; i < BURST; i++) {
		struct session *s = &sessions[*cursor];

		*cursor = (*cursor + 1) % sessions_count;
		headers[i][0] = 0x90;
		be16_write(headers[i] + 2, (uint16_t)s->index);
		be16_write(headers[i] + 14, 1);
		jobs[i] =
		    (struct seal_job){ .tx = s->tx,
				       .index = s->index++,
				       .header = headers[i],
				       .lead = payload,
				       .lead_bytes = lead_bytes,
				       .payload = payload + lead_bytes,
				       .header_bytes = HEADER_BYTES,
				       .payload_bytes = (uint16_t)(PAYLOAD_BYTES - lead_bytes),
				       .out = arena[i] };
	}
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct cost {
	double seal_ns, open_ns;
};

static struct cost run_round(struct seal_engine *e, size_t sessions_count, uint64_t budget_ns,
			     uint16_t lead_bytes)
{
	uint64_t seal_ns = 0, open_ns = 0, packets = 0;
	size_t cursor = 0;

	while (seal_ns + open_ns < budget_ns) {
		size_t first = cursor;
		uint64_t start;

		fill_burst(sessions_count, &cursor, lead_bytes);
		start = cpu_ns();
		seal_rtp(e, jobs, BURST);
		seal_ns += cpu_ns() - start;
		start = cpu_ns();
		for (size_t i = 0; i < BURST; i++) {
			struct session *s = &sessions[(first + i) % sessions_count];
			size_t len = 1200 + seal_tag_bytes(seal_tx_profile(s->tx));
			uint64_t index;

			if (seal_open_rtp(e, s->rx, arena[i], &len, &index) != SEAL_OK)
				abort();
		}
		open_ns += cpu_ns() - start;
		packets += BURST;
	}
	return (struct cost){ (double)seal_ns / (double)packets,
			      (double)open_ns / (double)packets };
}

static void run(struct seal_engine *e, enum seal_profile profile, size_t sessions_count,
		double seconds)
{
	double seal_ns[ROUNDS], open_ns[ROUNDS], led_ns[ROUNDS];
	size_t bytes;

	for (size_t i = 0; i < sessions_count; i++) {
		struct seal_keys keys = { .profile = profile };

		be32_write(keys.key, (uint32_t)i + 1);
		if (seal_tx_create(&sessions[i].tx, e, &keys) ||
		    seal_rx_create(&sessions[i].rx, e, &keys))
			abort();
		sessions[i].index = 0;
	}
	bytes = seal_tx_bytes(sessions[0].tx) + seal_rx_bytes(sessions[0].rx);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t budget_ns = (uint64_t)(seconds * 1e9 / ROUNDS);
		struct cost whole = run_round(e, sessions_count, budget_ns, 0);

		seal_ns[i] = whole.seal_ns;
		open_ns[i] = whole.open_ns;
		led_ns[i] = run_round(e, sessions_count, budget_ns / 4, 2).seal_ns;
	}
	qsort(seal_ns, ROUNDS, sizeof(double), compare);
	qsort(open_ns, ROUNDS, sizeof(double), compare);
	qsort(led_ns, ROUNDS, sizeof(double), compare);
	printf("%-9s %7d %8zu %9.0f %9.0f %9.0f %9zu\n", seal_engine_name(e), (int)profile,
	       sessions_count, seal_ns[ROUNDS / 2], led_ns[ROUNDS / 2], open_ns[ROUNDS / 2], bytes);
	for (size_t i = 0; i < sessions_count; i++) {
		seal_tx_destroy(sessions[i].tx);
		seal_rx_destroy(sessions[i].rx);
	}
}

int main(int argc, char **argv)
{
	static const enum seal_profile profiles[] = { SEAL_AEAD_AES_128_GCM, SEAL_AEAD_AES_256_GCM,
						      SEAL_AES_CM_128_HMAC_SHA1_80 };
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;

	memset(payload, 0x33, sizeof(payload));
	printf("CPU ns per 1,200-byte packet, median of %d rounds, %d packets a call\n", ROUNDS,
	       BURST);
	printf("engine    profile sessions      seal with lead      open bytes tx+rx at start\n");
	for (int kind = SEAL_ENGINE_IPSECMB; kind <= SEAL_ENGINE_LIBSRTP; kind++) {
		struct seal_engine *e;

		if (seal_engine_create(&e, (enum seal_engine_kind)kind))
			continue;
		for (size_t i = 0; i < 3; i++)
			for (size_t n = 1; n <= MAX_SESSIONS; n *= 1000)
				run(e, profiles[i], n, seconds);
		seal_engine_destroy(e);
	}
	return 0;
}
