/* Two handshakes of ours, a list of steps between them: datagrams delivered, lost, repeated,
 * damaged or made up, and time. Whatever the order: no key before the end, the same keys on both
 * sides, small datagrams, bounded retries, and nothing left afterwards. */
#include <assert.h>
#include <stdlib.h>
#include <sys/time.h>

#include "net/dtls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_MOVES = 64, STEP_US = 50000, START_US = 1000000 };

struct input {
	const uint8_t *at, *end;
};

struct world {
	struct dtls *side[2]; /* server, client */
	uint64_t now_us;
};

static struct dtls_identity *identity;
static struct dtls_fingerprint own;
static uint64_t wall_us = START_US;

/* The library's clock follows ours. */
int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	(void)tz;
	tv->tv_sec = (time_t)(wall_us / 1000000);
	tv->tv_usec = (suseconds_t)(wall_us % 1000000);
	return 0;
}

static uint8_t next_byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static void check(struct world *w, int i)
{
	struct seal_keys tx[2], rx[2];
	struct dtls *d = w->side[i];
	enum dtls_state state = dtls_state(d);
	struct dtls_status status;

	assert((dtls_keys(d, &tx[0], &rx[0]) == 0) == (state == DTLS_CONNECTED));
	assert((state == DTLS_FAILED) == (dtls_failure(d) != DTLS_FAILURE_NONE));
	dtls_status(d, &status);
	assert(status.rebuilds <= DTLS_REBUILDS_PER_S * (w->now_us / 1000000 + 1));
	if (dtls_keys(w->side[0], &tx[0], &rx[0]) || dtls_keys(w->side[1], &tx[1], &rx[1]))
		return;
	assert(memcmp(&tx[0], &rx[1], sizeof(tx[0])) == 0);
	assert(memcmp(&tx[1], &rx[0], sizeof(tx[0])) == 0);
}

static void step(struct world *w, int i)
{
	int turns = 0;

	while (dtls_wants_step(w->side[i], w->now_us)) {
		assert(++turns < MAX_MOVES);
		dtls_step(w->side[i], w->now_us);
	}
	check(w, i);
}

/* From memory of the exact size, so that a read past the end is seen. */
static void feed(struct world *w, int to, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	assert(copy);
	if (len)
		memcpy(copy, bytes, len);
	dtls_on_datagram(w->side[to], copy, len);
	free(copy);
}

enum fate { DELIVER, LOSE, TWICE, DAMAGE, FATES };

/* What one side has to say reaches the other, or does not; one fate for all of it. */
static void carry(struct world *w, int from, struct input *in)
{
	uint8_t damaged[DTLS_MTU_BYTES];
	const uint8_t *bytes;
	enum fate fate = next_byte(in) % FATES;
	size_t len;
	int moves = 0;

	step(w, from);
	for (; (bytes = dtls_next_datagram(w->side[from], &len)) != NULL; moves++) {
		assert(len > 0 && len <= DTLS_MTU_BYTES && moves < MAX_MOVES);
		memcpy(damaged, bytes, len);
		if (fate == DAMAGE)
			damaged[((size_t)next_byte(in) << 2 | 1) % len] ^= next_byte(in);
		if (fate != LOSE)
			feed(w, !from, damaged, len);
		if (fate == TWICE)
			feed(w, !from, damaged, len);
	}
	step(w, !from);
}

static void make_up(struct world *w, int to, struct input *in)
{
	size_t len = (size_t)(next_byte(in) << 4 | 15), left = (size_t)(in->end - in->at);

	len = len < left ? len : left;
	feed(w, to, in->at, len);
	in->at += len;
	step(w, to);
}

static void run(struct world *w, struct input *in)
{
	uint8_t op;

	while (in->at < in->end) {
		op = next_byte(in);
		switch (op % 4) {
		case 0:
			carry(w, op >> 7, in);
			break;
		case 1:
			make_up(w, op >> 7, in);
			break;
		case 2:
			w->now_us += (uint64_t)(op >> 2) * STEP_US;
			wall_us = w->now_us;
			break;
		case 3:
			if (op >> 2 == 0)
				return; /* destroyed in the middle */
			carry(w, 1, in);
			carry(w, 0, in);
			break;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	struct world w = { .now_us = START_US };
	struct dtls_live live;
	int i, err;

	wall_us = START_US;
	if (!identity) {
		err = dtls_identity_create(&identity);
		assert(err == 0);
		err = dtls_fingerprint_parse(&own, "sha-256", dtls_identity_fingerprint(identity));
		assert(err == 0);
	}
	for (i = 0; i < 2; i++) {
		err = dtls_create(&w.side[i], identity, i ? DTLS_CLIENT : DTLS_SERVER, &own);
		assert(err == 0);
	}
	run(&w, &in);
	dtls_destroy(w.side[0]);
	dtls_destroy(w.side[1]);
	dtls_live(&live);
	assert(live.handshakes == 0 && live.ssl_objects == 0);
	return 0;
}
