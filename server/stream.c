/* server/stream.c - see stream.h for the contract. */
#include "server/stream.h"

#include <stdio.h>
#include <stdlib.h>

static _Atomic uint32_t live;

struct stream *stream_create(const char *name, uint32_t slot, uint32_t generation)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->slot = slot;
	s->generation = generation;
	snprintf(s->name, sizeof(s->name), "%s", name);
	atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	return s;
}

struct stream *stream_ref(struct stream *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void stream_unref(struct stream *s)
{
	/* Each holder's last use happens before the free. */
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
	free(s);
}

uint32_t stream_live(void)
{
	return atomic_load_explicit(&live, memory_order_relaxed);
}
