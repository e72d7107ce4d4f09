/* server/directory.c - see directory.h for the contract. */
#include "server/directory.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { STRIPES = 64 };

struct directory_entry {
	struct ice_credentials local;
	struct plan *plan;
};

struct stripe {
	pthread_mutex_t lock;
	void *tree; /* of struct directory_entry, by ufrag */
};

struct directory {
	struct stripe stripes[STRIPES];
	_Atomic uint32_t count;
};

/* Ufrags are random: any mix of their characters spreads them. */
static struct stripe *stripe_of(struct directory *d, const char *ufrag)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *ufrag; ufrag++)
		hash = (hash ^ (uint8_t)*ufrag) * 16777619u;
	return &d->stripes[hash % STRIPES];
}

static int compare(const void *a, const void *b)
{
	const struct directory_entry *left = a;
	const struct directory_entry *right = b;

	return strcmp(left->local.ufrag, right->local.ufrag);
}

int directory_create(struct directory **out)
{
	struct directory *d = calloc(1, sizeof(*d));

	*out = d;
	if (!d)
		return -ENOMEM;
	for (unsigned i = 0; i < STRIPES; i++)
		pthread_mutex_init(&d->stripes[i].lock, NULL);
	return 0;
}

static void entry_free(void *node)
{
	struct directory_entry *e = node;

	plan_unref(e->plan);
	explicit_bzero(&e->local, sizeof(e->local));
	free(e);
}

void directory_destroy(struct directory *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < STRIPES; i++) {
		tdestroy(d->stripes[i].tree, entry_free);
		pthread_mutex_destroy(&d->stripes[i].lock);
	}
	free(d);
}

int directory_add(struct directory *d, const struct ice_credentials *local, struct plan *plan)
{
	struct stripe *stripe = stripe_of(d, local->ufrag);
	struct directory_entry *e = calloc(1, sizeof(*e));
	struct directory_entry **node;
	int err = 0;

	if (!e)
		return -ENOMEM;
	e->local = *local;
	e->plan = plan_ref(plan);
	pthread_mutex_lock(&stripe->lock);
	node = tsearch(e, &stripe->tree, compare);
	if (!node)
		err = -ENOMEM;
	else if (*node != e)
		err = -EEXIST;
	pthread_mutex_unlock(&stripe->lock);
	if (err)
		entry_free(e);
	else
		atomic_fetch_add_explicit(&d->count, 1, memory_order_relaxed);
	return err;
}

static struct directory_entry *find_locked(const struct stripe *stripe,
					   const struct directory_entry *key)
{
	struct directory_entry **node = tfind(key, &stripe->tree, compare);

	return node ? *node : NULL;
}

void directory_remove(struct directory *d, const char *ufrag)
{
	struct stripe *stripe = stripe_of(d, ufrag);
	struct directory_entry key = { 0 };
	struct directory_entry *e;

	if (strlen(ufrag) >= sizeof(key.local.ufrag))
		return;
	memcpy(key.local.ufrag, ufrag, strlen(ufrag) + 1);
	pthread_mutex_lock(&stripe->lock);
	e = find_locked(stripe, &key);
	if (e)
		tdelete(e, &stripe->tree, compare);
	pthread_mutex_unlock(&stripe->lock);
	if (!e)
		return;
	entry_free(e);
	atomic_fetch_sub_explicit(&d->count, 1, memory_order_relaxed);
}

struct plan *directory_find(struct directory *d, const char *ufrag, size_t ufrag_bytes,
			    char pwd[ICE_PWD_MAX_BYTES + 1])
{
	struct directory_entry key = { 0 };
	struct plan *plan = NULL;
	struct stripe *stripe;
	struct directory_entry *e;

	if (ufrag_bytes >= sizeof(key.local.ufrag))
		return NULL;
	memcpy(key.local.ufrag, ufrag, ufrag_bytes);
	stripe = stripe_of(d, key.local.ufrag);
	pthread_mutex_lock(&stripe->lock);
	e = find_locked(stripe, &key);
	if (e) {
		plan = plan_ref(e->plan);
		memcpy(pwd, e->local.pwd, sizeof(e->local.pwd));
	}
	pthread_mutex_unlock(&stripe->lock);
	return plan;
}

uint32_t directory_count(const struct directory *d)
{
	return atomic_load_explicit(&d->count, memory_order_relaxed);
}
