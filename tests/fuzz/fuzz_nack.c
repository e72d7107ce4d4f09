/* Any order of arrivals and polls: a request is only ever for a number that is missing, each number
 * is accounted for once, and the deadline never oversleeps work. */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "media/nack.h"
#include "media/rtp.h"
#include "pool/bytes.h"

enum { RECORD_BYTES = 4, CAP = 8, REORDER_US = 5000, MAX_AGE_US = 700000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was seen since the tracker last started anew, by sequence number. */
struct model {
	bool is_here[RTP_SEQ_CYCLE];
	uint16_t newest;
	bool is_started;
};

static void arrive(struct nack *n, struct model *m, uint16_t seq, uint64_t now_us)
{
	int ahead = rtp_seq_diff(seq, m->newest);
	int got = nack_on_packet(n, seq, now_us);

	if (!m->is_started) {
		assert(got == 0);
		m->newest = seq;
	} else if (ahead > NACK_WINDOW_PKTS) {
		assert(got == -ERANGE && nack_missing(n) == 0);
		m->newest = seq;
	} else if (ahead > 0) {
		assert(got == ahead - 1);
		for (; m->newest != seq; m->newest++)
			m->is_here[(uint16_t)(m->newest + 1)] = false;
	} else {
		assert(got == 0);
	}
	m->is_here[seq] = true;
	m->is_started = true;
}

static void poll_all(struct nack *n, const struct model *m, uint64_t now_us)
{
	uint16_t seqs[CAP];
	size_t count;

	do {
		count = nack_poll(n, now_us, seqs, CAP);
		for (size_t i = 0; i < count; i++) {
			assert(!m->is_here[seqs[i]]);
			assert(rtp_seq_is_newer(m->newest, seqs[i]));
			assert(i == 0 || rtp_seq_is_newer(seqs[i], seqs[i - 1]));
		}
	} while (count == CAP);
	assert(nack_deadline_us(n) > now_us);
}

static void check(const struct nack *n, uint16_t max_missing)
{
	struct nack_stats s;

	nack_stats(n, &s);
	assert(nack_missing(n) <= max_missing);
	assert(s.missing == s.recovered + s.reordered + s.given_up + nack_missing(n));
	assert(s.recovered <= s.requested && s.requested <= s.missing);
	assert((nack_missing(n) == 0) == (nack_deadline_us(n) == UINT64_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model m;
	struct nack_config config = { .rtt_us = 30000,
				      .reorder_us = REORDER_US,
				      .max_age_us = MAX_AGE_US };
	uint64_t now_us = 0;
	struct nack *n;

	if (size < RECORD_BYTES)
		return 0;
	m = (struct model){ 0 };
	config.max_missing = (uint16_t)(1 + be16_read(data) % NACK_WINDOW_PKTS);
	m.newest = be16_read(data + 2);
	assert(nack_create(&n, &config) == 0);
	for (size_t at = RECORD_BYTES; at + RECORD_BYTES <= size; at += RECORD_BYTES) {
		/* Small steps mostly; the top bit makes one that goes anywhere. */
		uint16_t step = be16_read(data + at);

		step = step & 0x8000 ? (uint16_t)(step << 1) : (uint16_t)(step % 64 - 16);
		now_us += (uint64_t)data[at + 2] * data[at + 2] * 16;
		arrive(n, &m, (uint16_t)(m.newest + step), now_us);
		check(n, config.max_missing);
		if (data[at + 3] & 1)
			poll_all(n, &m, now_us);
		if (data[at + 3] & 2)
			nack_set_rtt(n, 1u + data[at + 3] * 4000u, now_us);
		check(n, config.max_missing);
	}
	nack_destroy(n);
	return 0;
}
