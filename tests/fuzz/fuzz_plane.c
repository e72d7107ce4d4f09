/* A whole relay: registry, two workers, and up to a dozen peers, driven by a list of steps. Peers come
 * by offer, move, restart, leave and vanish; they send media, feedback, rubbish sealed under their own
 * keys and rubbish that is not; handshake steps take their time, the kernel refuses to send, and time
 * passes. Whatever the order:
 *   - an address that never sent authentic STUN gets nothing,
 *   - a viewer opens every packet, gets no index twice, and in each only what some publisher sent,
 *   - a sealed index never has two contents (asserted by the record of seals),
 *   - in the end no session, stream, buffer, letter or handshake is left (asserted by the kit). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtp.h"
#include "net/random.h"
#include "pool/bytes.h"
#include "server/registry.h"
#include "tests/server/kit_plane.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	PEERS = 12,
	STEPS = 400,
	RAW_BYTES = 200,
	INDEX_BITS = 12, /* of a viewer's last packets, remembered to find repeats */
};

struct input {
	const uint8_t *at, *end;
};

struct fuzz {
	struct kit_plane *p;
	struct kit_peer *peers[PEERS];
	uint64_t index[PEERS]; /* of sealed rubbish: each is used once */
	unsigned is_troubled;
};

static uint8_t take(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* The step's own bytes, at an exact-size place. */
static uint8_t *take_bytes(struct input *in, size_t *len)
{
	size_t left = (size_t)(in->end - in->at);
	uint8_t *bytes;

	*len = take(in) % RAW_BYTES;
	left -= left > 0;
	*len = *len < left ? *len : left;
	bytes = malloc(*len ? *len : 1);
	assert(bytes);
	memcpy(bytes, in->at, *len);
	in->at += *len;
	return bytes;
}

static struct kit_wire_answer refuse(void *arg, unsigned offered)
{
	static const int errors[] = { EAGAIN, ENOBUFS, EINVAL, EPERM };
	struct fuzz *f = arg;
	uint64_t draw = random_u64() % 8;

	if (draw < 3)
		return (struct kit_wire_answer){ 0, errors[f->is_troubled % 4] };
	return (struct kit_wire_answer){ draw < 5 ? 1 : offered, 0 };
}

static void open_peer(struct fuzz *f, unsigned i, uint8_t flags)
{
	static const char *const streams[] = { "a", "b" };
	struct kit_peer_config config = {
		.publishes = flags & 1,
		.audio = (flags & 6) != 2,
		.video = (flags & 6) != 4,
		.rtx = flags & 8,
		.worker = flags >> 4 & 1,
	};

	if (f->peers[i])
		return;
	f->peers[i] = kit_peer_open(f->p, streams[flags >> 5 & 1], &config);
	f->index[i] = 1 << 16;
}

static void end_peer(struct fuzz *f, unsigned i, uint8_t how)
{
	struct kit_peer *peer = f->peers[i];

	if (how & 1)
		kit_peer_leave(peer);
	if (how & 2)
		registry_kick(f->p->registry, f->p->registry->next_number - (how >> 3) % 4);
	if (how & 4) {
		kit_peer_drop(peer);
		f->peers[i] = NULL;
	}
}

static bool may_send(const struct kit_peer *peer)
{
	return peer->transport && peer->transport->tx && !peer->is_closed;
}

static void send_sealed(struct fuzz *f, unsigned i, struct input *in, bool as_rtcp)
{
	struct kit_peer *peer = f->peers[i];
	size_t len;
	uint8_t *bytes;

	f->index[i] += 1u + (take(in) & 0x80 ? 1000u : 0u);
	bytes = take_bytes(in, &len);
	if (!may_send(peer)) {
		kit_peer_send_raw(peer, bytes, len);
	} else if (as_rtcp) {
		if (len >= 8 && bytes[0] >> 6 == 2) {
			bytes[1] = (uint8_t)(192 + bytes[1] % 32);
			kit_peer_send_rtcp(peer, bytes, len);
		}
	} else if (len >= RTP_HEADER_BYTES) {
		bool is_known = bytes[1] & 1;
		unsigned kind = bytes[1] >> 1 & 1;

		bytes[0] = (uint8_t)(0x80 | (bytes[0] & 0x3f));
		/* Often a type that was agreed on, and an SSRC of its own. */
		if (is_known && peer->terms.media[kind].is_accepted)
			bytes[1] =
			    (uint8_t)((bytes[1] & 0x80) | peer->terms.media[kind].codecs[0].pt);
		be32_write(bytes + 8, 0xabc00000 | bytes[8] % 4);
		(void)kit_peer_send_plain(peer, bytes, len, f->index[i]);
	}
	free(bytes);
}

static void send_media(struct fuzz *f, unsigned i, uint8_t flags)
{
	struct kit_peer *peer = f->peers[i];

	if (!may_send(peer))
		return;
	if (!peer->config.publishes) {
		uint16_t seq =
		    (uint16_t)(peer->packet_count
				   ? peer->packets[peer->packet_count - 1].seq - flags % 32
				   : flags);

		if (flags & 1 && peer->terms.media[MEDIA_VIDEO].is_accepted)
			kit_peer_pli(peer);
		if (peer->terms.media[MEDIA_VIDEO].is_accepted)
			kit_peer_nack(peer, MEDIA_VIDEO, &seq, 1);
		return;
	}
	if (peer->terms.media[MEDIA_VIDEO].is_accepted) {
		if (flags & 2)
			peer->next_index[MEDIA_VIDEO] += flags >> 4; /* lost */
		kit_peer_send_frame(peer, flags & 1, 1 + flags % 40, 200, NULL);
	}
	if (peer->terms.media[MEDIA_AUDIO].is_accepted && flags & 4)
		kit_peer_send_audio(peer);
}

static void patch(struct fuzz *f, unsigned i, struct input *in)
{
	struct registry_reply reply;
	size_t len;
	uint8_t *bytes;

	if (take(in) % 4 && f->peers[i]->transport && !f->peers[i]->is_closed) {
		(void)kit_peer_restart(f->peers[i]);
		return;
	}
	bytes = take_bytes(in, &len);
	registry_patch(f->p->registry, f->peers[i]->id, (char *)bytes, len, NULL, false, &reply);
	free(reply.body);
	free(bytes);
}

static void send_raw(struct fuzz *f, unsigned i, struct input *in)
{
	size_t len;
	uint8_t *bytes = take_bytes(in, &len);

	kit_peer_send_raw(f->peers[i], bytes, len);
	free(bytes);
}

static void move(struct kit_peer *peer, uint8_t how)
{
	if (how & 1)
		peer->worker ^= 1;
	if (how & 2)
		peer->addr.port++;
	if (how & 4)
		peer->is_mute = !peer->is_mute;
}

static void surround(struct fuzz *f, uint8_t what, uint8_t how)
{
	switch (what % 4) {
	case 0:
		kit_plane_advance(f->p, how < 200 ? how * 1000u : (how - 199u) * 500000u);
		return;
	case 1:
		kit_loop_round(f->p->shared.team[how & 1]->loop);
		return;
	case 2:
		kit_loop_hold_work(f->p->shared.team[how & 1]->loop, how & 2);
		return;
	default:
		f->is_troubled = how;
		kit_wire_on_send(how & 1 ? refuse : NULL, f);
		kit_wire_unblock();
		kit_clock_step(how & 2 ? 20 : 0);
	}
}

static void step(struct fuzz *f, struct input *in)
{
	uint8_t op = take(in);
	uint8_t arg = take(in);
	unsigned i = (op >> 4) % PEERS;

	if ((op & 15) >= 12) {
		surround(f, op & 3, arg);
		return;
	}
	if (!f->peers[i]) {
		open_peer(f, i, arg);
		return;
	}
	switch (op & 15) {
	case 0:
		end_peer(f, i, arg);
		break;
	case 1:
		patch(f, i, in);
		break;
	case 2:
		send_raw(f, i, in);
		break;
	case 3:
	case 4:
		send_sealed(f, i, in, false);
		break;
	case 5:
	case 6:
		send_sealed(f, i, in, true);
		break;
	case 7:
		move(f->peers[i], arg);
		break;
	default:
		send_media(f, i, arg);
	}
}

/* No index twice; the kit has opened and parsed each packet already. */
static void check_viewers(const struct fuzz *f)
{
	static uint64_t seen[NEGOTIATED_KINDS][1 << INDEX_BITS];

	for (unsigned i = 0; i < PEERS; i++) {
		struct kit_peer *v = f->peers[i];

		if (!v || v->config.publishes || v->packet_count < 1000)
			continue;
		memset(seen, 0, sizeof(seen));
		for (size_t k = 0; k < v->packet_count; k++) {
			const struct kit_packet *packet = &v->packets[k];
			uint64_t *at = &seen[packet->kind][packet->index & ((1 << INDEX_BITS) - 1)];

			if (packet->is_rtx)
				continue;
			assert(*at != packet->index + 1);
			*at = packet->index + 1;
		}
		kit_peer_forget(v);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	struct fuzz f = { 0 };
	uint8_t flags = take(&in);
	static const char *const settings[] = {
		"streams:\n  wait_for_publisher: true\n",
		"media:\n  hold_min_viewers: 1\n",
		"pool:\n  packets: 1024\nmedia:\n  history_ms: 10000\n  slice_us: 100\n",
		"limits:\n  handshakes_per_worker: 1\nmedia:\n  pad_bytes: 0\n",
	};

	f.p = kit_plane_open(settings[flags & 3], 2);
	open_peer(&f, 0, 0x0f);
	if (flags & 4) {
		kit_plane_advance(f.p, 100000);
		open_peer(&f, 1, 0x0e);
		open_peer(&f, 2, 0x16);
		kit_plane_advance(f.p, 100000);
	}
	for (unsigned i = 0; i < STEPS && in.at < in.end; i++) {
		step(&f, &in);
		check_viewers(&f);
	}
	kit_plane_close(f.p);
	return 0;
}
