/* A relay whose publisher sends several encodings and layers, and viewers that choose among them,
 * driven by a list of steps. Encodings fall silent and come back, packets are lost on both legs, the
 * kernel refuses to send, viewers come, go, want another layer or none, move, and send feedback that
 * nobody meant. Whatever the order:
 *   - what a viewer gets can be decoded: numbers, timestamps and picture ids go on over each change, no
 *     picture lacks a part or refers to one that was not sent,
 *   - a sealed index never has two contents (asserted by the record of seals),
 *   - in the end nothing is left of anything (asserted by the kit). */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server/kit_layers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	VIEWERS = 4,
	STEPS = 120,
	PICTURES = 16,         /* of one step, at most */
	FACTS_SPARE = 1 << 14, /* no step sends more packets than that */
	RTCP_BYTES = 200,
	MISSING_MAX = 2000, /* packets behind the newest */
	WORKERS = 2,
};

struct input {
	const uint8_t *at, *end;
};

struct watcher {
	struct kit_peer *peer; /* NULL: nobody */
	struct kit_decoder *decoder;
};

struct fuzz {
	struct kit_plane *p;
	struct kit_layers *source;
	struct watcher watchers[VIEWERS];
	uint64_t dice;
};

static uint8_t take(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static const struct kit_layers_config kinds[] = {
	{ .codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 3 },
	{ .codec = CODEC_VP8, .encodings = 2, .spatial = 1, .temporal = 2, .by_ssrc = true },
	{ .codec = CODEC_H264, .encodings = 3, .spatial = 1, .temporal = 1 },
	{ .codec = CODEC_VP9, .encodings = 1, .spatial = 3, .temporal = 3 },
	{ .codec = CODEC_VP9, .encodings = 2, .spatial = 2, .temporal = 2 },
	{ .codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 1, .by_both = true },
	{ .codec = CODEC_VP8, .encodings = 3, .spatial = 1, .temporal = 3, .is_reversed = true },
	{ .codec = CODEC_VP8, .encodings = 1, .spatial = 1, .temporal = 3 },
};

static bool is_connected(const struct kit_peer *peer)
{
	return peer->transport && peer->transport->tx && !peer->is_closed;
}

/* A step that names an empty place fills it. */
static void arrive(struct fuzz *f, struct watcher *w, uint8_t how)
{
	const struct kit_peer_config config = {
		.audio = how & 1,
		.video = true,
		.rtx = how & 2,
		.transport_cc = how & 4,
		.remb = how & 8,
		.worker = how >> 4 & 1,
	};

	w->peer = kit_peer_open(f->p, "live", &config);
	w->decoder = kit_decoder_create(w->peer);
	w->decoder->may_skip_pictures = true;
	kit_plane_advance(f->p, how & 0x20 ? 0 : 20000);
}

static void leave(struct watcher *w, bool politely)
{
	if (politely)
		kit_peer_leave(w->peer);
	kit_peer_drop(w->peer);
	kit_decoder_destroy(w->decoder);
	*w = (struct watcher){ 0 };
}

/* As a player does that cannot go on: from the next key frame, which it asks for. */
static void begin_anew(struct watcher *w)
{
	kit_decoder_destroy(w->decoder);
	w->decoder = kit_decoder_create(w->peer);
	w->decoder->may_skip_pictures = true;
	if (is_connected(w->peer))
		kit_peer_pli(w->peer);
}

/* Where the first picture's beginning was lost for good, or something that neither leg repairs, a
 * player begins anew; anything else that cannot be decoded is the relay's fault. */
static void decode(struct fuzz *f)
{
	for (unsigned i = 0; i < VIEWERS; i++) {
		struct watcher *w = &f->watchers[i];

		if (!w->peer)
			continue;
		kit_decoder_run(w->decoder);
		if (w->decoder->error[0] && w->decoder->pictures > 0) {
			fprintf(stderr, "viewer %u: %s\n", i, w->decoder->error);
			abort();
		}
		if (w->decoder->error[0] || kit_decoder_missing(w->decoder) > MISSING_MAX)
			begin_anew(w);
	}
}

static void send_pictures(struct fuzz *f, unsigned count)
{
	while (count-- && f->source->fact_count < KIT_FACTS - FACTS_SPARE) {
		kit_layers_picture(f->source);
		decode(f);
	}
}

/* Any layer, also such as there are none of. */
static void want(struct fuzz *f, const struct watcher *w, uint8_t what)
{
	struct viewer *v = kit_viewer_of(f->p, w->peer);
	unsigned target = what >> 2 & (LAYERS_TARGETS - 1);

	if (!v)
		return;
	if (what == 0xff) {
		if (v->layers)
			viewer_want_best(v);
		return;
	}
	(void)viewer_want(v, what % STREAM_ENCODINGS, target | (what >> 7 ? VIEWER_PAUSED : 0));
}

/* Sealed, and of a type and length that RTCP knows; the rest is the input's. */
static void send_feedback(const struct watcher *w, struct input *in)
{
	size_t left = (size_t)(in->end - in->at);
	size_t words = 2 + take(in) % (RTCP_BYTES / 4 - 2);
	uint8_t bytes[RTCP_BYTES] = { 0 };

	left -= left > 0;
	if (!is_connected(w->peer))
		return;
	left = left < words * 4 ? left : words * 4;
	memcpy(bytes, in->at, left);
	in->at += left;
	bytes[0] = (uint8_t)(0x80 | (bytes[0] & 0x1f));
	bytes[1] = (uint8_t)(200 + bytes[1] % 8);
	bytes[2] = 0;
	bytes[3] = (uint8_t)(words - 1);
	kit_peer_send_rtcp(w->peer, bytes, words * 4);
}

static struct kit_wire_answer stumble(void *arg, unsigned offered)
{
	static const int errors[] = { EAGAIN, EINVAL, ENOBUFS };
	uint32_t draw = kit_dice(arg, 16);

	if (draw < 3)
		return (struct kit_wire_answer){ 0, errors[draw] };
	return (struct kit_wire_answer){ draw < 6 ? 1 : offered, 0 };
}

static void of_viewer(struct fuzz *f, struct watcher *w, unsigned op, struct input *in)
{
	uint8_t arg = take(in);

	if (!w->peer) {
		arrive(f, w, arg);
		return;
	}
	switch (op) {
	case 0:
		leave(w, arg & 1);
		break;
	case 1:
		w->peer->loss_percent = arg % 20;
		break;
	case 2:
		w->peer->addr.port++;
		w->peer->worker ^= arg & 1;
		break;
	case 3:
		send_feedback(w, in);
		break;
	default:
		want(f, w, arg);
	}
}

static void of_source(struct fuzz *f, unsigned op, uint8_t arg)
{
	struct kit_layers *l = f->source;

	switch (op) {
	case 0:
		l->encodings[arg % l->config.encodings].is_silent ^= true;
		break;
	case 1:
		l->config.loss_percent = arg % 10;
		break;
	case 2:
		kit_layers_report(l);
		break;
	case 3:
		kit_plane_advance(f->p, arg * 2000u);
		break;
	case 4:
		kit_wire_on_send(arg & 1 ? stumble : NULL, &f->dice);
		kit_wire_unblock();
		break;
	default:
		send_pictures(f, 1 + arg % PICTURES);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	struct fuzz f = { .dice = size };
	uint8_t kind = take(&in);

	f.p = kit_plane_open(kind & 0x80 ? "media:\n  fast_start: false\n" : "", WORKERS);
	f.source = kit_layers_join(f.p, "live", &kinds[kind % 8], kind);
	send_pictures(&f, 1 + (kind >> 3) % PICTURES);
	for (unsigned i = 0; i < STEPS && in.at < in.end; i++) {
		uint8_t op = take(&in);

		if (op & 0x80)
			of_source(&f, op % 8, take(&in));
		else
			of_viewer(&f, &f.watchers[op >> 4 & 3], op % 8, &in);
	}
	decode(&f);
	kit_wire_on_send(NULL, NULL);
	kit_wire_unblock();
	for (unsigned i = 0; i < VIEWERS; i++)
		if (f.watchers[i].peer)
			leave(&f.watchers[i], true);
	kit_layers_drop(f.source);
	kit_plane_close(f.p);
	return 0;
}
