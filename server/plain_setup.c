/* server/plain_setup.c - see plain.h for the contract: control's side, the ports. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "server/plain.h"

static _Atomic uint32_t live;

static int open_port(struct udp_socket **out, const struct plain_setup *setup,
		     const struct config *config, uint16_t port)
{
	struct udp_options options = {
		.bind = setup->bind,
		.rcvbuf_bytes = config->udp.receive_buffer_bytes,
		.sndbuf_bytes = config->udp.send_buffer_bytes,
	};

	options.bind.port = port;
	return udp_open(out, &options);
}

static bool is_in_range(const struct config *config, unsigned port)
{
	return port >= config->rtp.port_min && port <= config->rtp.port_max;
}

static void close_ports(struct plain_ports *ports)
{
	udp_close(ports->rtp, NULL);
	udp_close(ports->rtcp, NULL);
	*ports = (struct plain_ports){ 0 };
}

/* RTP on `port`, RTCP on its own, one above. */
static int open_pair(struct plain_setup *setup, unsigned leg, const struct config *config,
		     uint16_t port)
{
	struct plain_ports *ports = &setup->ports[leg];
	bool is_mux = setup->terms.legs[leg].rtcp_mux;
	int err;

	if (!is_in_range(config, port) || (!is_mux && !is_in_range(config, port + 1u)))
		return -ENOSPC;
	err = open_port(&ports->rtp, setup, config, port);
	if (!err && !is_mux)
		err = open_port(&ports->rtcp, setup, config, (uint16_t)(port + 1));
	if (err)
		close_ports(ports);
	return err;
}

/* RFC 3550 section 11: RTP on an even port. */
static int open_any(struct plain_setup *setup, unsigned leg, const struct config *config,
		    uint16_t *next)
{
	unsigned first = (config->rtp.port_min + 1u) & ~1u;
	unsigned pairs = config->rtp.port_max < first ? 0 : (config->rtp.port_max - first) / 2 + 1;
	int err = -ENOSPC;

	for (unsigned i = 0; i < pairs; i++) {
		unsigned port = first + 2 * (*next % pairs);

		*next = (uint16_t)((*next + 1) % pairs);
		err = open_pair(setup, leg, config, (uint16_t)port);
		if (err != -EADDRINUSE && err != -ENOSPC)
			return err;
	}
	return err == 0 ? 0 : -ENOSPC;
}

int plain_setup_open(struct plain_setup *setup, const struct config *config, uint16_t *next,
		     uint16_t *port)
{
	int err = 0;

	for (unsigned i = 0; i < setup->terms.leg_count && !err; i++) {
		struct plain_leg *leg = &setup->terms.legs[i];

		*port = leg->port;
		if (!setup->sends && is_in_range(config, leg->port))
			err = open_pair(setup, i, config, leg->port);
		else
			err = open_any(setup, i, config, next);
		if (err || setup->sends)
			continue;
		leg->port = udp_local(setup->ports[i].rtp)->port;
		leg->rtcp_port = leg->rtcp_mux ? leg->port : (uint16_t)(leg->port + 1);
	}
	if (err)
		plain_setup_close(setup);
	return err;
}

struct plain_setup *plain_setup_create(const struct plain_setup *from)
{
	struct plain_setup *setup = malloc(sizeof(*setup));

	if (!setup)
		return NULL;
	*setup = *from;
	atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	return setup;
}

uint32_t plain_setup_live(void)
{
	return atomic_load_explicit(&live, memory_order_relaxed);
}

void plain_setup_close(struct plain_setup *setup)
{
	for (unsigned i = 0; i < DIRECT_LEGS; i++)
		close_ports(&setup->ports[i]);
}

void plain_setup_destroy(struct plain_setup *setup)
{
	if (!setup)
		return;
	plain_setup_close(setup);
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
	free(setup);
}
