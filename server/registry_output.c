/* server/registry_output.c - streams sent to an address as plain RTP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/registry_inner.h"

/* Payload types that are not assigned (RFC 3551 section 6). */
enum { VIDEO_TYPE = 96, AUDIO_TYPE = 97 };

static bool read_target(const struct registry *r, const struct registry_output *ask,
			struct net_addr *target, struct registry_reply *reply)
{
	unsigned last = ask->rtcp_mux ? UINT16_MAX : UINT16_MAX - 1;

	if (net_addr_parse_ip(target, ask->address) || net_addr_is_any(target))
		registry_refuse(reply, REGISTRY_UNACCEPTABLE,
				"address is not an IP address, as 192.0.2.1 or 2001:db8::1");
	else if (!ask->audio && !ask->video)
		registry_refuse(reply, REGISTRY_UNACCEPTABLE,
				"neither an audio nor a video port is named");
	else if (ask->audio > last || ask->video > last)
		registry_refuse(
		    reply, REGISTRY_UNACCEPTABLE,
		    "there is no port above 65535 for RTCP: name a lower one, or rtcp_mux");
	else if (!config_networks_have(&r->config->rtp.allow_out, target->ip))
		registry_refuse(reply, REGISTRY_FORBIDDEN,
				"rtp.allow_out does not allow to send to this address");
	else
		return true;
	return false;
}

/* What is known to come, of the kinds that are wanted. */
static bool find_codecs(const struct stream_entry *e, const struct registry_output *ask,
			struct negotiated_codec codecs[NEGOTIATED_KINDS],
			struct registry_reply *reply)
{
	const uint16_t ports[NEGOTIATED_KINDS] = { ask->audio, ask->video };

	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		const struct negotiated_codec *c = NULL;

		if (!ports[kind])
			continue;
		if (e && e->publisher && !stream_entry_possible(e, (enum media_kind)kind, 1))
			c = stream_entry_codec(e, (enum media_kind)kind);
		if (!c) {
			registry_refuse(reply, REGISTRY_NO_PUBLISHER,
					kind == MEDIA_AUDIO
					    ? "nobody sends audio to this stream now"
					    : "nobody sends video to this stream now");
			return false;
		}
		codecs[kind] = *c;
		codecs[kind].pt = kind == MEDIA_AUDIO ? AUDIO_TYPE : VIDEO_TYPE;
		if (codec_static_payload_type(c->codec) >= 0)
			codecs[kind].pt = (uint8_t)codec_static_payload_type(c->codec);
		codecs[kind].feedback =
		    kind == MEDIA_VIDEO ? SDP_FB_NACK | SDP_FB_PLI : SDP_FB_NACK;
	}
	return true;
}

static void add_leg(struct plain_setup *setup, const struct registry_output *ask,
		    const struct net_addr *target, unsigned kind, uint16_t port)
{
	struct plain_terms *terms = &setup->terms;
	struct direct_leg_config *leg = &setup->legs[terms->leg_count];

	if (terms->leg_count && terms->legs[0].port == port) {
		terms->legs[0].kinds |= (uint8_t)(1u << kind);
		return;
	}
	leg->source = leg->rtp_to = leg->rtcp_to = *target;
	leg->rtp_to.port = port;
	leg->rtcp_to.port = (uint16_t)(ask->rtcp_mux ? port : port + 1);
	leg->rtcp_mux = ask->rtcp_mux;
	terms->legs[terms->leg_count++] = (struct plain_leg){
		.kinds = (uint8_t)(1u << kind),
		.port = port,
		.rtcp_port = leg->rtcp_to.port,
		.rtcp_mux = ask->rtcp_mux,
	};
}

static void fill_setup(const struct registry *r, const struct registry_output *ask,
		       const struct net_addr *target, struct plain_setup *setup)
{
	*setup = (struct plain_setup){ .sends = true };
	setup->bind = registry_plain_bind(r, net_addr_is_v4(target));
	if (ask->audio)
		add_leg(setup, ask, target, MEDIA_AUDIO, ask->audio);
	if (ask->video)
		add_leg(setup, ask, target, MEDIA_VIDEO, ask->video);
}

static struct plan *create_output(const struct negotiated_codec codecs[NEGOTIATED_KINDS],
				  const struct plain_setup *setup)
{
	struct plan *p = plan_create(PLAN_VIEWER);

	if (!p)
		return NULL;
	p->plain = plain_setup_create(setup);
	if (!p->plain) {
		plan_unref(p);
		return NULL;
	}
	p->wish = (struct choice_wish){ CHOICE_ANY, CHOICE_ANY, CHOICE_ANY, 0, 0, 0, 0 };
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		struct plan_track *t = &p->tracks[kind];

		if (codecs[kind].codec == CODEC_NONE)
			continue;
		t->is_used = true;
		t->ssrc = registry_draw_ssrc();
		mapping_init(&t->mapping);
		t->mapping.types[codecs[kind].codec] = codecs[kind].pt;
		mapping_seal(&t->mapping);
	}
	return p;
}

static void serve_output(struct registry *r, struct stream_entry *e, const struct net_addr *target,
			 const struct negotiated_codec codecs[NEGOTIATED_KINDS],
			 struct plain_setup *setup, struct registry_reply *reply)
{
	const struct negotiated_codec *described[NEGOTIATED_KINDS];
	struct plan *p = create_output(codecs, setup);

	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
		described[kind] = codecs[kind].codec == CODEC_NONE ? NULL : &codecs[kind];
	if (!p) {
		plain_setup_close(setup);
	} else if (!registry_plain_serve(r, e, p)) {
		plan_unref(p);
	} else {
		reply->number = p->number;
		if (registry_plain_describe(p, target, NULL, described, reply))
			return;
		registry_close_plan(r, p, TRANSPORT_CLOSED_NO_MEMORY);
	}
	free(reply->body);
	reply->body = NULL;
	registry_refuse(reply, REGISTRY_FULL, "the server is out of memory");
}

void registry_open_output(struct registry *r, const char *stream, const struct registry_output *ask,
			  struct registry_reply *reply)
{
	struct stream_entry *e = registry_find_stream(r, stream);
	struct negotiated_codec codecs[NEGOTIATED_KINDS] = { { .codec = CODEC_NONE } };
	struct plain_setup setup;
	struct net_addr target;

	*reply = (struct registry_reply){ .status = REGISTRY_OK };
	if (r->is_draining) {
		registry_refuse(reply, REGISTRY_DRAINING, "the server is shutting down");
		return;
	}
	if (!read_target(r, ask, &target, reply) || !find_codecs(e, ask, codecs, reply))
		return;
	if (registry_plain_count(r, PLAN_VIEWER) >= r->config->rtp.outputs) {
		registry_refuse(reply, REGISTRY_FULL, "as many as rtp.outputs allows are open");
		return;
	}
	fill_setup(r, ask, &target, &setup);
	if (registry_plain_open(r, &setup, reply))
		serve_output(r, e, &target, codecs, &setup, reply);
}

enum registry_status registry_close_output(struct registry *r, const char *stream, uint64_t number)
{
	struct plan *p = registry_plan_by_number(r, number);

	if (!p || !p->plain || p->role != PLAN_VIEWER || p->is_over ||
	    strcmp(p->stream->name, stream) != 0)
		return REGISTRY_NOT_FOUND;
	registry_close_plan(r, p, TRANSPORT_CLOSED_BY_CLIENT);
	return REGISTRY_OK;
}
