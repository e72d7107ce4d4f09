/* server/plain.c - see plain.h for the contract: the worker's side. */
#include "server/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/session.h"

enum {
	RECEIVE_BATCHES = 8, /* of UDP_BATCH_PKTS a socket and turn, then the others' turn */
	HELD_PKTS = 512,     /* a first key frame and what follows, while the feed is on its way */
	SOCKETS = 2 * DIRECT_LEGS,
};

struct plain_socket {
	struct worker_socket socket; /* udp NULL: there is none */
	struct plain_io *io;
	struct direct_port port;
};

struct plain_io {
	struct plain_io *next, *prev; /* of the worker's */
	struct session *session;
	struct plain_socket sockets[SOCKETS]; /* of leg i: 2 i, and 2 i + 1 for RTCP alone */
	uint8_t kinds[DIRECT_LEGS];
	uint16_t held_first, held_count;
	struct slab *held[HELD_PKTS];
};

/* --- packets in -------------------------------------------------------------------------- */

/* @return false: the session is gone */
static bool take_batch(struct plain_socket *p, struct udp_packet *packets, unsigned n)
{
	struct worker *w = p->socket.worker;
	struct session *s = p->io->session;
	struct session_ref ref = session_ref_of(s);
	struct direct_port port = p->port;

	for (unsigned i = 0; i < n; i++) {
		s = worker_session(w, ref);
		if (s)
			session_on_plain(s, port, &packets[i].path, packets[i].slab);
		else
			slab_put(w->pool, packets[i].slab);
	}
	return worker_session(w, ref) != NULL;
}

static void on_socket(void *arg, unsigned events)
{
	struct plain_socket *p = arg;
	struct worker *w = p->socket.worker;
	struct udp_packet packets[UDP_BATCH_PKTS];
	bool drained = false;

	worker_begin(w);
	if (events & LOOP_WRITABLE)
		worker_flush(w, &p->socket);
	for (unsigned i = 0; i < RECEIVE_BATCHES && !drained; i++) {
		unsigned n = udp_receive(p->socket.udp, w->pool, packets, &drained);

		counter_add(&w->counters.receive_batches, n > 0);
		if (!take_batch(p, packets, n))
			return;
	}
}

void plain_hold(struct session *s, struct slab *slab)
{
	struct plain_io *io = s->plain;

	if (io->held_count == HELD_PKTS) {
		counter_add(&s->worker->counters.rtp_unfed, 1);
		slab_put(s->worker->pool, slab);
		return;
	}
	io->held[(io->held_first + io->held_count++) % HELD_PKTS] = slab;
}

struct slab *plain_release(struct session *s)
{
	struct plain_io *io = s->plain;
	struct slab *slab;

	if (!io || io->held_count == 0)
		return NULL;
	slab = io->held[io->held_first];
	io->held_first = (uint16_t)((io->held_first + 1) % HELD_PKTS);
	io->held_count--;
	return slab;
}

/* --- packets out ------------------------------------------------------------------------- */

static unsigned leg_of(const struct plain_io *io, unsigned kind)
{
	return io->kinds[0] >> kind & 1 ? 0 : 1;
}

struct worker_socket *plain_route(struct session *s, unsigned kind, const struct net_path **path,
				  struct seal_tx **tx)
{
	unsigned leg = leg_of(s->plain, kind);
	struct worker_socket *socket = &s->plain->sockets[2 * leg].socket;
	const struct direct_leg *way = direct_leg(s->transport, leg);

	*path = &way->rtp;
	*tx = way->tx;
	if (!socket->is_blocked)
		return socket;
	/* Nobody else waits for this one's socket: what it does not take is lost. */
	counter_add(&s->worker->counters.plain_blocked_drops, 1);
	return NULL;
}

void plain_send_rtcp(struct session *s, unsigned kinds, const uint8_t *bytes, size_t len)
{
	struct plain_io *io = s->plain;

	for (unsigned i = 0; i < direct_leg_count(s->transport); i++) {
		const struct net_path *path = &direct_leg(s->transport, i)->rtcp;
		struct plain_socket *p = &io->sockets[2 * i + 1];

		if (!(io->kinds[i] & kinds))
			continue;
		if (!p->socket.udp)
			p = &io->sockets[2 * i];
		if (path->remote.port)
			worker_send_over(s->worker, &p->socket, path, bytes, len, s->slot);
		else
			counter_add(&s->worker->counters.plain_unaddressed, 1);
	}
}

unsigned plain_leg_kinds(const struct session *s, unsigned leg)
{
	return leg < direct_leg_count(s->transport) ? s->plain->kinds[leg] : 0;
}

void plain_flush(struct worker *w)
{
	for (struct plain_io *io = w->plains; io; io = io->next)
		for (unsigned i = 0; i < SOCKETS; i++)
			if (io->sockets[i].socket.udp &&
			    !egress_is_empty(io->sockets[i].socket.egress))
				worker_flush(w, &io->sockets[i].socket);
}

/* --- life -------------------------------------------------------------------------------- */

static int open_socket(struct plain_io *io, unsigned at, struct udp_socket **udp)
{
	struct worker *w = io->session->worker;
	struct plain_socket *p = &io->sockets[at];
	int err;

	if (!*udp)
		return 0;
	p->io = io;
	p->port = (struct direct_port){ (uint8_t)(at / 2), at % 2 };
	p->socket.worker = w;
	p->socket.udp = *udp;
	*udp = NULL;
	err = egress_create(&p->socket.egress, udp_fd(p->socket.udp), udp_is_v4(p->socket.udp),
			    w->shared->config->udp.gso && udp_has_gso(p->socket.udp));
	if (!err)
		err =
		    loop_watch_open(w->loop, &p->socket.watch, udp_fd(p->socket.udp), on_socket, p);
	if (!err)
		loop_watch_set(p->socket.watch, LOOP_READABLE);
	return err;
}

static int open_direct(struct session *s, const struct plain_setup *setup)
{
	struct direct_config config = {
		.engine = s->worker->engine,
		.sends = setup->sends,
		.leg_count = setup->terms.leg_count,
	};

	memcpy(config.legs, setup->legs, sizeof(config.legs));
	return direct_create(&s->transport, &config);
}

int plain_open(struct session *s)
{
	struct plain_setup *setup = s->plan->plain;
	struct worker *w = s->worker;
	struct plain_io *io = calloc(1, sizeof(*io));
	int err = io ? open_direct(s, setup) : -ENOMEM;

	if (err) {
		free(io);
		return err;
	}
	io->session = s;
	s->plain = io;
	io->next = w->plains;
	if (io->next)
		io->next->prev = io;
	w->plains = io;
	for (unsigned i = 0; i < setup->terms.leg_count && !err; i++) {
		io->kinds[i] = setup->terms.legs[i].kinds;
		err = open_socket(io, 2 * i, &setup->ports[i].rtp);
		if (!err)
			err = open_socket(io, 2 * i + 1, &setup->ports[i].rtcp);
	}
	if (err) {
		plain_close(s);
		transport_destroy(s->transport);
		s->transport = NULL;
	}
	return err;
}

static void add_stats(struct plain_socket *p, struct udp_stats *in, struct egress_stats *out)
{
	struct udp_stats u;

	if (!p->socket.egress)
		return;
	udp_stats(p->socket.udp, &u);
	worker_add_received(in, &u);
	worker_add_sent(out, egress_stats(p->socket.egress));
}

static void close_socket(struct plain_socket *p)
{
	struct worker *w = p->socket.worker;

	if (!p->socket.udp)
		return;
	if (p->socket.watch)
		worker_flush(w, &p->socket);
	add_stats(p, &w->plain_received, &w->plain_sent);
	loop_watch_close(p->socket.watch);
	egress_destroy(p->socket.egress);
	udp_close(p->socket.udp, w->pool);
}

void plain_close(struct session *s)
{
	struct plain_io *io = s->plain;
	struct worker *w = s->worker;
	struct slab *slab;

	if (!io)
		return;
	while ((slab = plain_release(s)) != NULL)
		slab_put(w->pool, slab);
	for (unsigned i = 0; i < SOCKETS; i++)
		close_socket(&io->sockets[i]);
	if (io->prev)
		io->prev->next = io->next;
	else
		w->plains = io->next;
	if (io->next)
		io->next->prev = io->prev;
	free(io);
	s->plain = NULL;
}

void plain_stats(const struct worker *w, struct udp_stats *in, struct egress_stats *out)
{
	worker_add_received(in, &w->plain_received);
	worker_add_sent(out, &w->plain_sent);
	for (struct plain_io *io = w->plains; io; io = io->next)
		for (unsigned i = 0; i < SOCKETS; i++)
			add_stats(&io->sockets[i], in, out);
}
