/* tests/tools/impair_model.c - see impair_model.h for the contract. */
#include "tests/tools/impair_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool/bytes.h"

struct entry {
	uint64_t due_us;
	uint64_t order; /* breaks ties, so that equal times keep their order */
	struct impair_item item;
};

/* A binary heap: the earliest departure is entries[0]. */
struct impair_queue {
	struct entry *entries;
	uint32_t count, max;
	uint64_t pushed;
};

/* --- Profiles ------------------------------------------------------------------------------ */

enum unit { UNIT_PPM, UNIT_US, UNIT_KBPS, UNIT_BYTES, UNIT_PKTS };

static const struct {
	const char *name;
	enum unit unit;
	size_t offset;
} settings[] = {
	{ "loss", UNIT_PPM, offsetof(struct impair_profile, loss_ppm) },
	{ "burst", UNIT_PKTS, offsetof(struct impair_profile, burst_pkts) },
	{ "delay-ms", UNIT_US, offsetof(struct impair_profile, delay_us) },
	{ "jitter-ms", UNIT_US, offsetof(struct impair_profile, jitter_us) },
	{ "rate-kbps", UNIT_KBPS, offsetof(struct impair_profile, rate_kbps) },
	{ "queue-kb", UNIT_BYTES, offsetof(struct impair_profile, queue_bytes) },
	{ "reorder", UNIT_PPM, offsetof(struct impair_profile, reorder_ppm) },
	{ "dup", UNIT_PPM, offsetof(struct impair_profile, dup_ppm) },
	{ "corrupt", UNIT_PPM, offsetof(struct impair_profile, corrupt_ppm) },
};

static const struct {
	double factor, max; /* stored = written * factor; the largest written value */
} units[] = {
	[UNIT_PPM] = { IMPAIR_PPM / 100.0, 100 }, /* written in per cent */
	[UNIT_US] = { 1000, 60000 },              /* written in milliseconds */
	[UNIT_KBPS] = { 1, 10000000 },
	[UNIT_BYTES] = { 1000, 1000000 }, /* written in kilobytes */
	[UNIT_PKTS] = { 1, 1000000 },
};

/* "delay" is understood for "delay-ms". */
static bool is_named(const char *full, const char *name)
{
	size_t len = strlen(name);

	return len > 0 && strncmp(full, name, len) == 0 && (full[len] == '\0' || full[len] == '-');
}

int impair_profile_set(struct impair_profile *p, const char *name, const char *value)
{
	size_t count = sizeof(settings) / sizeof(settings[0]);
	size_t i = 0;
	double written, stored;
	char *end;

	while (i < count && !is_named(settings[i].name, name))
		i++;
	if (i == count)
		return -ENOENT;
	written = strtod(value, &end);
	/* Written so that "not a number" is refused as well. */
	if (end == value || *end != '\0' ||
	    !(written >= 0 && written <= units[settings[i].unit].max))
		return -EINVAL;
	stored = written * units[settings[i].unit].factor + 0.5;
	if (settings[i].unit == UNIT_US)
		*(uint64_t *)(void *)((char *)p + settings[i].offset) = (uint64_t)stored;
	else
		*(uint32_t *)(void *)((char *)p + settings[i].offset) = (uint32_t)stored;
	return 0;
}

/* --- Flows --------------------------------------------------------------------------------- */

/* splitmix64: every seed is good, and one addition is its whole state. */
static uint64_t random_next(struct impair_flow *f)
{
	uint64_t z = f->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 0..bound - 1; the bias of a remainder of 2^64 is far below what a test can see. */
static uint64_t random_below(struct impair_flow *f, uint64_t bound)
{
	return random_next(f) % bound;
}

static bool happens(struct impair_flow *f, uint64_t ppm)
{
	return random_below(f, IMPAIR_PPM) < ppm;
}

void impair_flow_init(struct impair_flow *f, const struct impair_profile *profile, uint64_t seed)
{
	*f = (struct impair_flow){ .profile = *profile, .random = seed };
}

/* Gilbert: runs end with probability 1/burst, and begin so often that the mean is loss_ppm. */
static bool is_lost(struct impair_flow *f)
{
	const struct impair_profile *p = &f->profile;

	if (p->burst_pkts <= 1 || p->loss_ppm == 0 || p->loss_ppm >= IMPAIR_PPM)
		f->losing = happens(f, p->loss_ppm);
	else if (f->losing)
		f->losing = !happens(f, IMPAIR_PPM / p->burst_pkts);
	else
		f->losing = happens(f, (uint64_t)p->loss_ppm * IMPAIR_PPM / p->burst_pkts /
					   (IMPAIR_PPM - p->loss_ppm));
	return f->losing;
}

/* Time at which the bottleneck has sent this datagram, or 0 when its queue has no room. */
static uint64_t pass_bottleneck(struct impair_flow *f, uint64_t now_us, size_t len)
{
	uint64_t now_ns = now_us * 1000;
	uint64_t start_ns = f->free_ns > now_ns ? f->free_ns : now_ns;
	uint64_t wire_bits = (len + IMPAIR_OVERHEAD_BYTES) * 8;
	/* What lies before us: a rate of 1 kbit/s is one bit in a million ns. */
	uint64_t queued_bytes = (start_ns - now_ns) * f->profile.rate_kbps / 8000000;

	if (queued_bytes > 0 && queued_bytes + len > f->profile.queue_bytes)
		return 0;
	f->free_ns = start_ns + wire_bits * 1000000 / f->profile.rate_kbps;
	return (f->free_ns + 999) / 1000;
}

struct impair_fate impair_flow_on_datagram(struct impair_flow *f, uint64_t now_us, size_t len)
{
	const struct impair_profile *p = &f->profile;
	struct impair_fate fate = { .flip_bit = UINT32_MAX, .due_us = now_us };

	if (is_lost(f)) {
		fate.verdict = IMPAIR_LOST;
		return fate;
	}
	if (p->rate_kbps > 0) {
		fate.due_us = pass_bottleneck(f, now_us, len);
		if (fate.due_us == 0) {
			fate.verdict = IMPAIR_OVERFLOW;
			return fate;
		}
	}
	fate.due_us += p->delay_us + random_below(f, p->jitter_us + 1);
	if (fate.due_us < f->newest_us)
		fate.due_us = f->newest_us;
	fate.is_reordered = happens(f, p->reorder_ppm);
	if (fate.is_reordered)
		fate.due_us += IMPAIR_REORDER_MIN_US +
			       random_below(f, IMPAIR_REORDER_MAX_US - IMPAIR_REORDER_MIN_US);
	else
		f->newest_us = fate.due_us;
	fate.is_copied = happens(f, p->dup_ppm);
	if (happens(f, p->corrupt_ppm) && len > 0)
		fate.flip_bit = (uint32_t)random_below(f, len * 8);
	return fate;
}

/* --- The queue ----------------------------------------------------------------------------- */

int impair_queue_create(struct impair_queue **out, uint32_t max_items)
{
	struct impair_queue *q = calloc(1, sizeof(*q));

	*out = NULL;
	if (!q)
		return -ENOMEM;
	q->max = max_items;
	q->entries = calloc(max_items, sizeof(*q->entries));
	if (!q->entries) {
		impair_queue_destroy(q);
		return -ENOMEM;
	}
	*out = q;
	return 0;
}

void impair_queue_destroy(struct impair_queue *q)
{
	if (!q)
		return;
	for (uint32_t i = 0; i < q->count; i++)
		free(q->entries[i].item.bytes);
	free(q->entries);
	free(q);
}

static bool is_before(const struct entry *a, const struct entry *b)
{
	return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

static void swap(struct entry *a, struct entry *b)
{
	struct entry kept = *a;

	*a = *b;
	*b = kept;
}

int impair_queue_push(struct impair_queue *q, uint64_t due_us, void *owner, const uint8_t *bytes,
		      size_t len)
{
	uint32_t at = q->count;
	uint8_t *copy;

	if (q->count == q->max)
		return -ENOBUFS;
	copy = malloc(len ? len : 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, len);
	q->entries[q->count++] = (struct entry){ due_us, q->pushed++, { owner, copy, len } };
	for (; at > 0 && is_before(&q->entries[at], &q->entries[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&q->entries[at], &q->entries[(at - 1) / 2]);
	return 0;
}

bool impair_queue_pop(struct impair_queue *q, uint64_t now_us, struct impair_item *out)
{
	uint32_t at = 0;

	if (q->count == 0 || q->entries[0].due_us > now_us)
		return false;
	*out = q->entries[0].item;
	q->entries[0] = q->entries[--q->count];
	for (;;) {
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < q->count && is_before(&q->entries[child], &q->entries[least]))
				least = child;
		if (least == at)
			return true;
		swap(&q->entries[at], &q->entries[least]);
		at = least;
	}
}

uint64_t impair_queue_deadline_us(const struct impair_queue *q)
{
	return q->count ? q->entries[0].due_us : UINT64_MAX;
}

/* --- STUN, just enough to know a link by name ------------------------------------------------ */

enum {
	STUN_HEADER_BYTES = 20,
	STUN_BINDING_REQUEST = 0x0001,
	STUN_MAGIC_COOKIE = 0x2112a442,
	STUN_USERNAME = 0x0006,
};

static bool split_username(const uint8_t *name, size_t len, char *server, char *client)
{
	const uint8_t *colon = memchr(name, ':', len);
	size_t left, right;

	if (!colon)
		return false;
	left = (size_t)(colon - name);
	right = len - left - 1;
	if (left == 0 || right == 0 || left >= IMPAIR_UFRAG_BYTES || right >= IMPAIR_UFRAG_BYTES)
		return false;
	memcpy(server, name, left);
	server[left] = '\0';
	memcpy(client, colon + 1, right);
	client[right] = '\0';
	return true;
}

bool impair_stun_ufrags(const uint8_t *bytes, size_t len, char server[IMPAIR_UFRAG_BYTES],
			char client[IMPAIR_UFRAG_BYTES])
{
	size_t at = STUN_HEADER_BYTES;

	if (len < STUN_HEADER_BYTES || be16_read(bytes) != STUN_BINDING_REQUEST ||
	    be32_read(bytes + 4) != STUN_MAGIC_COOKIE)
		return false;
	while (at + 4 <= len) {
		size_t value_bytes = be16_read(bytes + at + 2);

		if (value_bytes > len - at - 4)
			return false;
		if (be16_read(bytes + at) == STUN_USERNAME)
			return split_username(bytes + at + 4, value_bytes, server, client);
		at += 4 + ((value_bytes + 3) & ~(size_t)3);
	}
	return false;
}
