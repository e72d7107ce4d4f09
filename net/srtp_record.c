/* net/srtp_record.c - see srtp_record.h. A ring of seals, oldest first, with hash chains. */
#include "net/srtp_record.h"

#include <errno.h>
#include <stdlib.h>

#include "pool/bytes.h"

struct seal_entry {
	uint64_t index;
	uint64_t content; /* hash of header, lead and payload */
	uint32_t ssrc;
	uint16_t next; /* 1 + place of the next entry of this chain, 0 at its end */
};

struct seal_record {
	uint32_t count, oldest;
	uint16_t chain[SEAL_RECORD_SEALS]; /* 1 + place of its newest entry, 0 when empty */
	struct seal_entry ring[SEAL_RECORD_SEALS];
};

int seal_record_create(struct seal_record **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void seal_record_destroy(struct seal_record *r)
{
	free(r);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t hash_bytes(uint64_t h, const uint8_t *bytes, size_t n)
{
	h = mix(h, n);
	for (; n >= 8; bytes += 8, n -= 8)
		h = mix(h, be64_read(bytes));
	for (; n > 0; bytes++, n--)
		h = mix(h, *bytes);
	return h;
}

static uint16_t *chain_of(struct seal_record *r, uint32_t ssrc, uint64_t index)
{
	return &r->chain[mix(ssrc, index) % SEAL_RECORD_SEALS];
}

/* The oldest entry is the last of its chain, because new ones go in front. */
static void forget_oldest(struct seal_record *r)
{
	const struct seal_entry *e = &r->ring[r->oldest];
	uint16_t *link = chain_of(r, e->ssrc, e->index);

	while (*link != r->oldest + 1)
		link = &r->ring[*link - 1].next;
	*link = 0;
	r->oldest = (r->oldest + 1) % SEAL_RECORD_SEALS;
	r->count--;
}

bool seal_record_is_consistent(struct seal_record *r, const struct seal_job *job)
{
	uint32_t ssrc = be32_read(job->header + 8);
	uint64_t content = hash_bytes(1, job->header, job->header_bytes);
	uint16_t *chain = chain_of(r, ssrc, job->index);
	uint32_t place;

	/* Where the lead ends is no part of the content: a packet may be sealed in other pieces. */
	if (job->lead_bytes == 0) {
		content = hash_bytes(content, job->payload, job->payload_bytes);
	} else {
		uint8_t joined[2 * UINT16_MAX];

		memcpy(joined, job->lead, job->lead_bytes);
		memcpy(joined + job->lead_bytes, job->payload, job->payload_bytes);
		content = hash_bytes(content, joined, (size_t)job->lead_bytes + job->payload_bytes);
	}
	for (uint16_t at = *chain; at != 0; at = r->ring[at - 1].next)
		if (r->ring[at - 1].index == job->index && r->ring[at - 1].ssrc == ssrc)
			return r->ring[at - 1].content == content;
	if (r->count == SEAL_RECORD_SEALS)
		forget_oldest(r);
	place = (r->oldest + r->count++) % SEAL_RECORD_SEALS;
	r->ring[place] = (struct seal_entry){ job->index, content, ssrc, *chain };
	*chain = (uint16_t)(place + 1);
	return true;
}
