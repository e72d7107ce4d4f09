/* pool/ring.c - see ring.h for the contract. */
#include "pool/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ring_create(struct ring **out, uint32_t slots)
{
	struct ring *r;

	*out = NULL;
	if (slots == 0 || slots > RING_MAX_SLOTS || (slots & (slots - 1)) != 0)
		return -EINVAL;
	r = aligned_alloc(RING_LINE_BYTES, sizeof(*r));
	if (!r)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	r->slots = calloc(slots, sizeof(*r->slots));
	if (!r->slots) {
		ring_destroy(r);
		return -ENOMEM;
	}
	r->mask = slots - 1;
	*out = r;
	return 0;
}

void ring_destroy(struct ring *r)
{
	if (!r)
		return;
	free(r->slots);
	free(r);
}
