/* A worker that lends handshake steps to a helper thread, feeds datagrams meanwhile, and closes
 * some transports under the helper's hands: nothing is touched by two threads at once. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "net/transport.h"

enum {
	PAIRS = 60,
	MAX_TURNS = 20000000,
	DATAGRAM_BYTES = 1500,
	QUEUE = 32,
	ABANDON_EACH = 4, /* every fourth relay end is destroyed while its step runs */
};

static struct dtls_identity *identity;
static struct dtls_fingerprint own;
static struct seal_engine *engine;

/* One job at a time, handed over and back by one atomic word each way. */
static struct {
	_Atomic(struct transport *) todo; /* S1: released by the worker, acquired by the helper */
	_Atomic(struct transport *) done; /* S2: the other way round */
	_Atomic bool is_over;
} helper;

static void *help(void *arg)
{
	struct transport *t;

	(void)arg;
	while (!atomic_load_explicit(&helper.is_over, memory_order_acquire)) {
		t = atomic_exchange_explicit(&helper.todo, NULL, memory_order_acquire);
		if (!t) {
			sched_yield();
			continue;
		}
		transport_work_run(t);
		while (atomic_load_explicit(&helper.done, memory_order_relaxed))
			sched_yield();
		atomic_store_explicit(&helper.done, t, memory_order_release);
	}
	return NULL;
}

struct end {
	struct transport *t;
	struct net_path path; /* as its datagrams arrive */
	uint8_t bytes[QUEUE][DATAGRAM_BYTES];
	size_t len[QUEUE];
	int queued; /* towards it */
	bool is_gone, is_working;
};

struct pair {
	struct end end[2];
	bool wants_abandon;
};

static uint64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void enqueue(struct end *to, const struct transport_output *o)
{
	if (to->queued == QUEUE || to->is_gone)
		return;
	memcpy(to->bytes[to->queued], o->bytes, o->len);
	to->len[to->queued++] = o->len;
}

static void submit(struct pair *p, int i)
{
	struct end *e = &p->end[i];

	e->is_working = true;
	while (atomic_load_explicit(&helper.todo, memory_order_relaxed))
		sched_yield();
	atomic_store_explicit(&helper.todo, e->t, memory_order_release);
	if (i == 0 && p->wants_abandon) {
		transport_destroy(e->t);
		e->is_gone = true;
	}
}

static void poll_end(struct pair *p, int i)
{
	struct end *e = &p->end[i];
	struct transport_output o;

	do {
		if (e->is_gone)
			return;
		transport_poll(e->t, clock_us(), &o);
		if (o.kind == TRANSPORT_TRANSMIT)
			enqueue(&p->end[!i], &o);
		if (o.kind == TRANSPORT_WORK)
			submit(p, i);
	} while (o.kind != TRANSPORT_IDLE);
}

static void turn(struct pair *p, int i)
{
	struct end *e = &p->end[i];
	uint64_t index;
	int k, n = e->queued;

	if (e->is_gone)
		return;
	for (k = 0; k < n; k++)
		transport_on_datagram(e->t, clock_us(), &e->path, e->bytes[k], &e->len[k], &index);
	e->queued = 0;
	transport_on_timeout(e->t, clock_us());
	poll_end(p, i);
}

/* @return true when a step came back */
static bool collect(struct pair *p)
{
	struct transport *t = atomic_exchange_explicit(&helper.done, NULL, memory_order_acquire);
	int i;

	if (!t)
		return false;
	for (i = 0; i < 2; i++) {
		if (p->end[i].t != t)
			continue;
		p->end[i].is_working = false;
		if (transport_work_done(t, clock_us()))
			poll_end(p, i);
		else
			assert(p->end[i].is_gone);
	}
	return true;
}

static void open_pair(struct pair *p)
{
	struct transport_config c = { .identity = identity, .engine = engine, .fingerprint = own };
	static const struct ice_credentials credentials[2] = {
		{ "relayUfrag01", "relay/password+of/32+characters0" },
		{ "cl+/", "client/password+of/24+ch" },
	};
	struct net_path *to_relay = &p->end[1].path;
	int i, err;

	p->end[0].path.remote.port = 5000;
	p->end[0].path.local.port = 8189;
	to_relay->remote.port = 8189;
	to_relay->local.port = 5000;
	for (i = 0; i < 2; i++) {
		c.ice_role = i ? ICE_CONTROLLING : ICE_LITE;
		c.dtls_role = i ? DTLS_CLIENT : DTLS_SERVER;
		c.local = credentials[i];
		c.remote = credentials[!i];
		err = transport_create(&p->end[i].t, clock_us(), &c);
		assert(err == 0);
	}
	err = transport_add_remote(p->end[1].t, clock_us(), to_relay);
	assert(err == 0);
}

static bool is_up(const struct pair *p)
{
	return p->wants_abandon ? p->end[0].is_gone : p->end[0].t->tx && p->end[1].t->tx;
}

static void run_pair(struct pair *p)
{
	int turns;

	open_pair(p);
	for (turns = 0; !is_up(p) && turns < MAX_TURNS; turns++) {
		turn(p, 0);
		turn(p, 1);
		collect(p);
	}
	assert(is_up(p));
	while (p->end[0].is_working || p->end[1].is_working)
		collect(p);
	if (!p->end[0].is_gone)
		transport_destroy(p->end[0].t);
	transport_destroy(p->end[1].t);
}

static void prepare(void)
{
	int err = dtls_identity_create(&identity);

	assert(err == 0);
	err = dtls_fingerprint_parse(&own, "sha-256", dtls_identity_fingerprint(identity));
	assert(err == 0);
	err = seal_engine_create(&engine, SEAL_ENGINE_EVP);
	assert(err == 0);
}

int main(void)
{
	struct transport_live live;
	pthread_t thread;
	struct pair *p;
	int n;

	prepare();
	pthread_create(&thread, NULL, help, NULL);
	for (n = 0; n < PAIRS; n++) {
		p = calloc(1, sizeof(*p));
		assert(p);
		p->wants_abandon = n % ABANDON_EACH == 0;
		run_pair(p);
		free(p);
	}
	atomic_store_explicit(&helper.is_over, true, memory_order_release);
	pthread_join(thread, NULL);
	dtls_identity_unref(identity);
	seal_engine_destroy(engine);
	transport_live(&live);
	assert(live.transports == 0 && live.zombies == 0);
	printf("%d pairs, one in %d abandoned to its helper\n", PAIRS, ABANDON_EACH);
	return 0;
}
