/* server/plan.c - see plan.h for the contract. */
#include "server/plan.h"

#include <stdlib.h>
#include <string.h>

static _Atomic uint32_t live;

struct plan *plan_create(enum plan_role role)
{
	struct plan *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	atomic_init(&p->refs, 1);
	pthread_mutex_init(&p->lock, NULL);
	p->role = role;
	atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	return p;
}

struct plan *plan_ref(struct plan *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void plan_unref(struct plan *p)
{
	/* Each holder's last use happens before the free. */
	if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&p->lock);
	stream_unref(p->stream);
	dtls_identity_unref(p->identity);
	plain_setup_destroy(p->plain);
	free(p->negotiated);
	explicit_bzero(&p->local, sizeof(p->local));
	explicit_bzero(&p->remote, sizeof(p->remote));
	explicit_bzero(p->id, sizeof(p->id));
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
	free(p);
}

uint32_t plan_live(void)
{
	return atomic_load_explicit(&live, memory_order_relaxed);
}
