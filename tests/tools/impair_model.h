/* tests/tools/impair_model.h - what a bad network does to datagrams: loss, delay, rate and worse.
 *
 * Source:  bursts after Gilbert (1960): a good state that loses nothing, a bad one that loses all.
 * Sans-IO: time and seed are arguments. The same seed and the same calls give the same fates.
 * Thread:  an object belongs to one thread.
 */
#ifndef TESTS_TOOLS_IMPAIR_MODEL_H
#define TESTS_TOOLS_IMPAIR_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	IMPAIR_PPM = 1000000,         /* all of the datagrams */
	IMPAIR_OVERHEAD_BYTES = 28,   /* IPv4 and UDP headers also take time on the wire */
	IMPAIR_REORDER_MIN_US = 1000, /* how long a reordered datagram is held back */
	IMPAIR_REORDER_MAX_US = 20000,
	IMPAIR_MAX_BYTES = 65507, /* the largest UDP payload */
};

/* One direction of a link. All zero: a perfect network. */
struct impair_profile {
	uint32_t loss_ppm;
	uint32_t burst_pkts; /* mean length of a run of losses; 0 and 1: each datagram for itself */
	uint64_t delay_us;
	uint64_t jitter_us;   /* added to the delay, 0..jitter_us, without changing the order */
	uint32_t rate_kbps;   /* of the bottleneck; 0 = no bottleneck */
	uint32_t queue_bytes; /* waiting before the bottleneck; what does not fit is dropped */
	uint32_t reorder_ppm; /* held back a little longer, so that later ones overtake */
	uint32_t dup_ppm;
	uint32_t corrupt_ppm; /* one bit flipped */
};

/**
 * Set one field by its name and a value as people write it: loss, reorder, dup, corrupt in per
 * cent (fractions allowed), delay-ms, jitter-ms, rate-kbps, queue-kb, burst. The unit may be left
 * out of the name.
 *
 * @return 0, -ENOENT (no such name) or -EINVAL (not a number, or out of range)
 */
int impair_profile_set(struct impair_profile *p, const char *name, const char *value);

/* One direction of one link, with its memory of the past. */
struct impair_flow {
	struct impair_profile profile; /* may be changed between calls */
	uint64_t random;
	uint64_t free_ns;   /* when the bottleneck has sent all it was given */
	uint64_t newest_us; /* latest departure given to a datagram that keeps its order */
	bool losing;        /* the bad state */
};

enum impair_verdict {
	IMPAIR_PASSED,
	IMPAIR_LOST,     /* by loss_ppm */
	IMPAIR_OVERFLOW, /* the queue before the bottleneck was full */
	IMPAIR_VERDICTS,
};

struct impair_fate {
	enum impair_verdict verdict;
	/* Of a datagram that passed: */
	uint64_t due_us;   /* when it leaves, and its copy with it */
	uint32_t flip_bit; /* which bit of the payload is wrong, or UINT32_MAX */
	bool is_copied;
	bool is_reordered;
};

void impair_flow_init(struct impair_flow *f, const struct impair_profile *profile, uint64_t seed);

/** Decide about one datagram of `len` payload bytes that arrives at now_us. */
struct impair_fate impair_flow_on_datagram(struct impair_flow *f, uint64_t now_us, size_t len);

/* Datagrams on their way, of any number of flows, in the order of their departure; those due at
 * the same time leave in the order they came. */
struct impair_queue;

struct impair_item {
	void *owner; /* the caller's */
	uint8_t *bytes;
	size_t len;
};

/** @return 0 or -ENOMEM */
int impair_queue_create(struct impair_queue **out, uint32_t max_items);
/** Drops what is still on its way. NULL is allowed. */
void impair_queue_destroy(struct impair_queue *q);

/** Copies the bytes. @return 0, -ENOMEM or -ENOBUFS (max_items are on their way) */
int impair_queue_push(struct impair_queue *q, uint64_t due_us, void *owner, const uint8_t *bytes,
		      size_t len);

/** Take the next datagram that is due; its bytes are the caller's to free().
 *  @return false: nothing is due */
bool impair_queue_pop(struct impair_queue *q, uint64_t now_us, struct impair_item *out);

/** When the next datagram is due; UINT64_MAX when none is on its way. */
uint64_t impair_queue_deadline_us(const struct impair_queue *q);

/**
 * The two halves of the USERNAME in a STUN Binding request (RFC 8489 section 14.3, RFC 8445
 * section 7.2.2): a link is known by either.
 *
 * @return false: no such request, or a name that does not fit
 */
enum { IMPAIR_UFRAG_BYTES = 257 };
bool impair_stun_ufrags(const uint8_t *bytes, size_t len, char server[IMPAIR_UFRAG_BYTES],
			char client[IMPAIR_UFRAG_BYTES]);

#endif
