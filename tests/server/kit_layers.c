#include "tests/server/kit_layers.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/clock.h"
#include "media/rtcp.h"
#include "net/random.h"
#include "pool/bytes.h"

enum {
	PARTS_MAX = 4,
	PAYLOAD_BYTES = 100,
	EXT_BLOCK_BYTES = 8,
	SERIALS = 8,
	SERIAL_SHIFT = 24,
	EXT_RID_ID = 10,
	EXT_REPAIRED_RID_ID = 11,
};

static const char *const rids[KIT_ENCODINGS] = { "q", "h", "f", "z" };

/* Publishers alive, by serial: a decoder finds facts by a packet's number. */
static struct kit_layers *alive[SERIALS];

uint32_t kit_dice(uint64_t *seed, uint32_t sides)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % sides;
}

/* --- joining ------------------------------------------------------------------------------ */

static void replace(char *text, const char *from, const char *to)
{
	for (char *at = text; (at = strstr(at, from)) != NULL; at += strlen(to)) {
		memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
		memcpy(at, to, strlen(to));
	}
}

static void cut_lines(char *text, const char *begin)
{
	for (char *at = text; (at = strstr(at, begin)) != NULL;) {
		char *end = strchr(at, '\n');

		assert(end);
		memmove(at, end + 1, strlen(end + 1) + 1);
	}
}

__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text + strlen(text), OFFER_MAX_BYTES - strlen(text), format, args);
	va_end(args);
}

static void append_groups(const struct kit_layers *l, char *text)
{
	append(text, "a=ssrc-group:SIM");
	for (unsigned e = 0; e < l->config.encodings; e++)
		append(text, " %u",
		       l->encodings[l->config.by_both ? l->config.encodings - 1 - e : e].ssrc);
	append(text, "\r\n");
	for (unsigned e = 0; e < l->config.encodings; e++) {
		const struct kit_encoding *c = &l->encodings[e];

		append(text,
		       "a=ssrc-group:FID %u %u\r\na=ssrc:%u cname:kit\r\na=ssrc:%u cname:kit\r\n",
		       c->ssrc, c->rtx_ssrc, c->ssrc, c->rtx_ssrc);
	}
}

/* a=simulcast names the preferred one first. */
static void append_rids(const struct kit_layers *l, char *text)
{
	unsigned n = l->config.encodings;

	append(text, "a=extmap:%u %s\r\na=extmap:%u %s\r\n", EXT_RID_ID, ext_uri(EXT_RID),
	       EXT_REPAIRED_RID_ID, ext_uri(EXT_REPAIRED_RID));
	for (unsigned e = 0; e < n; e++)
		append(text, "a=rid:%s send\r\n", rids[e]);
	append(text, "a=simulcast:send ");
	for (unsigned e = 0; e < n; e++)
		append(text, "%s%s", e ? ";" : "", rids[l->config.is_reversed ? e : n - 1 - e]);
	append(text, "\r\n");
}

static void edit_offer(void *arg, char *text)
{
	const struct kit_layers *l = arg;
	char name[64];

	snprintf(name, sizeof(name), "96 %s/90000", codec_name(l->config.codec));
	replace(text, "96 VP8/90000", name);
	if (l->config.codec == CODEC_H264)
		replace(text, "96 H264/90000\r\n",
			"96 H264/90000\r\na=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;"
			"profile-level-id=42e01f\r\n");
	cut_lines(text, "a=ssrc");
	if (l->config.by_ssrc || l->config.by_both)
		append_groups(l, text);
	if (l->config.encodings > 1 && !l->config.by_ssrc)
		append_rids(l, text);
}

/* Our own offer, which the kit reads answers by, is of VP8. */
static void edit_answer(void *arg, char *text)
{
	const struct kit_layers *l = arg;
	char name[64];

	snprintf(name, sizeof(name), " %s/90000", codec_name(l->config.codec));
	replace(text, name, " VP8/90000");
	cut_lines(text, "a=fmtp:96");
}

static void draw_encodings(struct kit_layers *l)
{
	for (unsigned e = 0; e < KIT_ENCODINGS; e++) {
		struct kit_encoding *c = &l->encodings[e];

		c->ssrc = (uint32_t)random_u64() | 1;
		c->rtx_ssrc = c->ssrc ^ 0x80000000;
		c->timestamp_base = (uint32_t)random_u64();
		c->next_index = random_u64() & 0x7fff;
		c->next_rtx = random_u64() & 0x7fff;
		c->picture_id = random_u64() & 0x7fff;
		c->tl0 = (uint8_t)random_u64();
		c->wants_key = true;
	}
}

struct kit_layers *kit_layers_join(struct kit_plane *p, const char *stream,
				   const struct kit_layers_config *config, uint64_t seed)
{
	struct kit_layers *l = calloc(1, sizeof(*l));
	struct kit_peer_config peer = {
		.publishes = true,
		.audio = true,
		.video = true,
		.rtx = true,
		.worker = config->worker,
		.edit_offer = edit_offer,
		.edit_answer = edit_answer,
		.edit_arg = l,
	};

	assert(l);
	l->config = *config;
	if (l->config.payload_bytes == 0)
		l->config.payload_bytes = PAYLOAD_BYTES;
	l->seed = seed;
	l->facts = calloc(KIT_FACTS, sizeof(*l->facts));
	assert(l->facts);
	while (alive[l->serial])
		l->serial++;
	assert(l->serial < SERIALS);
	alive[l->serial] = l;
	draw_encodings(l);
	l->peer = kit_peer_join(p, stream, &peer);
	kit_plane_advance(p, 10000);
	return l;
}

void kit_layers_drop(struct kit_layers *l)
{
	kit_peer_drop(l->peer);
	alive[l->serial] = NULL;
	free(l->facts);
	free(l);
}

struct viewer *kit_viewer_of(struct kit_plane *p, const struct kit_peer *peer)
{
	const struct worker *w = kit_plane_worker(p, peer->worker);

	for (uint32_t i = 0; i < w->session_cap; i++) {
		const struct session *s = w->sessions[i].session;

		if (s && strcmp(s->plan->id, peer->id) == 0)
			return s->viewer;
	}
	return NULL;
}

/* --- packets ------------------------------------------------------------------------------ */

/* Behind each descriptor a key frame's beginning, or something that is none. */
static void write_vp8(uint8_t *out, const struct kit_fact *f)
{
	static const uint8_t key[10] = { 0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01 };

	out[0] = f->part == 0 ? 0x90 : 0x80;
	out[1] = 0xe0; /* picture id, TL0PICIDX, TID */
	be16_write(out + 2, (uint16_t)(0x8000 | f->picture_id));
	out[4] = f->tl0;
	out[5] = (uint8_t)(f->temporal_id << 6 | (f->is_synced ? 0x20 : 0));
	memcpy(out + 6, key, sizeof(key));
	if (!f->is_key)
		out[6] |= 1;
}

static void write_vp9(const struct kit_layers *l, uint8_t *out, const struct kit_fact *f)
{
	static const uint8_t key[8] = { 0x82, 0x49, 0x83, 0x42, 0x20, 0x27, 0xf0, 0x16 };
	bool has_structure = f->is_key && f->spatial_id == 0 && f->part == 0;
	uint8_t *at = out + 5;

	out[0] = (uint8_t)(0xa0 | (f->is_key ? 0 : 0x40) | (f->part == 0 ? 0x08 : 0) |
			   (f->part + 1 == f->parts ? 0x04 : 0) | (has_structure ? 0x02 : 0) |
			   (f->spatial_id + 1u == l->config.spatial ? 0x01 : 0));
	be16_write(out + 1, (uint16_t)(0x8000 | f->picture_id));
	out[3] = (uint8_t)(f->temporal_id << 5 | (f->is_synced ? 0x10 : 0) | f->spatial_id << 1 |
			   (f->spatial_id ? 1 : 0));
	out[4] = f->tl0;
	if (has_structure)
		*at++ = (uint8_t)((l->config.spatial - 1) << 5);
	if (f->part == 0 && f->spatial_id == 0 && f->is_key)
		memcpy(at, key, sizeof(key));
	else
		*at = 0xff;
}

/* A key picture: parameter sets in a packet of their own, then the slices. */
static void write_h264(uint8_t *out, const struct kit_fact *f)
{
	if (f->is_key && f->parts > 1 && f->part == 0) {
		out[0] = 0x67;
		return;
	}
	out[0] = f->is_key ? 0x65 : 0x41;
	out[1] = f->part == (f->is_key && f->parts > 1) ? 0x88 : 0x40; /* first_mb_in_slice */
}

static size_t write_rid(const struct kit_layers *l, const struct kit_fact *f, bool as_rtx,
			uint8_t *out)
{
	const struct ext_element rid = {
		.data = (const uint8_t *)rids[f->encoding],
		.bytes = 1,
		.id = as_rtx ? EXT_REPAIRED_RID_ID : EXT_RID_ID,
	};

	if (l->config.encodings < 2 || l->config.by_ssrc)
		return 0;
	assert(ext_block_write(out, EXT_BLOCK_BYTES, &rid, 1) == 0);
	return EXT_BLOCK_BYTES;
}

static void send_packet(struct kit_layers *l, uint32_t number, bool as_rtx)
{
	const struct kit_fact *f = &l->facts[number];
	struct kit_encoding *c = &l->encodings[f->encoding];
	uint8_t bytes[KIT_WIRE_BYTES] = { 0 };
	size_t ext = write_rid(l, f, as_rtx, bytes + RTP_HEADER_BYTES);
	uint8_t *payload = bytes + RTP_HEADER_BYTES + ext + (as_rtx ? 2 : 0);
	struct rtp_header header = {
		.timestamp = f->timestamp,
		.ssrc = as_rtx ? c->rtx_ssrc : c->ssrc,
		.payload_type = as_rtx ? OFFER_PT_VP8_RTX : OFFER_PT_VP8,
		.marker = f->is_last,
		.has_extension = ext > 0,
	};

	rtp_header_write(bytes, &header);
	if (as_rtx)
		be16_write(payload - 2, (uint16_t)f->index);
	if (l->config.codec == CODEC_VP8)
		write_vp8(payload, f);
	else if (l->config.codec == CODEC_VP9)
		write_vp9(l, payload, f);
	else
		write_h264(payload, f);
	be32_write(payload + KIT_NUMBER_AT, l->serial << SERIAL_SHIFT | number);
	assert(kit_peer_send_plain(l->peer, bytes,
				   (size_t)(payload - bytes) +
				       ((size_t)l->config.payload_bytes << f->encoding),
				   as_rtx ? c->next_rtx++ : f->index));
}

/* --- pictures ----------------------------------------------------------------------------- */

static void set_layer(const struct kit_layers *l, const struct kit_encoding *c, struct kit_fact *f)
{
	static const uint8_t ids[4][4] = { { 0 }, { 0 }, { 0, 1, 0, 1 }, { 0, 2, 1, 2 } };
	static const uint8_t back[4][4] = { { 0 }, { 1, 1, 1, 1 }, { 2, 1, 2, 1 }, { 4, 1, 2, 1 } };
	unsigned at = c->since_key % 4;

	f->temporal_id = ids[l->config.temporal][at];
	f->is_key = c->since_key == 0;
	f->reference = f->is_key ? 0 : f->order - back[l->config.temporal][at];
	f->is_synced = f->temporal_id > 0 && !(l->config.temporal == 3 && at == 3);
}

static void send_frame(struct kit_layers *l, struct kit_fact *f)
{
	struct kit_encoding *c = &l->encodings[f->encoding];

	f->parts = (uint8_t)(1 + kit_dice(&l->seed, PARTS_MAX));
	for (f->part = 0; f->part < f->parts; f->part++) {
		f->is_last = f->spatial_id + 1u == l->config.spatial && f->part + 1 == f->parts;
		f->index = c->next_index++;
		assert(l->fact_count < KIT_FACTS);
		l->facts[l->fact_count++] = *f;
		if (kit_dice(&l->seed, 100) >= l->config.loss_percent)
			send_packet(l, l->fact_count - 1, false);
	}
}

static void send_encoding(struct kit_layers *l, unsigned encoding)
{
	struct kit_encoding *c = &l->encodings[encoding];
	struct kit_fact f = {
		.picture = l->picture,
		.timestamp = c->timestamp_base + (uint32_t)l->picture * KIT_PICTURE_TICKS,
		.encoding = (uint8_t)encoding,
	};

	c->since_key = c->wants_key ? 0 : c->since_key + 1;
	c->keyframes += c->wants_key;
	c->wants_key = false;
	f.order = ++c->order;
	set_layer(l, c, &f);
	f.picture_id = ++c->picture_id & 0x7fff;
	c->tl0 = (uint8_t)(c->tl0 + (f.temporal_id == 0));
	f.tl0 = c->tl0;
	for (unsigned s = 0; s < l->config.spatial; s++) {
		f.spatial_id = (uint8_t)s;
		send_frame(l, &f);
	}
}

/* --- what the relay asks for -------------------------------------------------------------- */

static void answer_plis(struct kit_layers *l)
{
	for (; l->plis_seen < l->peer->plis; l->plis_seen++)
		for (unsigned e = 0; e < l->config.encodings; e++) {
			if (l->encodings[e].ssrc != l->peer->pli_ssrcs[l->plis_seen % KIT_PLIS])
				continue;
			l->encodings[e].wants_key = true;
			l->encodings[e].plis++;
		}
}

static bool repeat(struct kit_layers *l, uint32_t ssrc, uint16_t seq)
{
	for (uint32_t n = l->fact_count; n-- > 0;) {
		const struct kit_fact *f = &l->facts[n];

		if (l->encodings[f->encoding].ssrc != ssrc || (uint16_t)f->index != seq)
			continue;
		send_packet(l, n, true);
		return true;
	}
	return false;
}

static void answer_nacks(struct kit_layers *l)
{
	struct kit_peer *peer = l->peer;

	for (; l->nacks_seen < peer->nack_count; l->nacks_seen++)
		if (kit_dice(&l->seed, 100) >= l->config.loss_percent)
			(void)repeat(l, peer->nack_ssrcs[l->nacks_seen],
				     peer->nacks[l->nacks_seen]);
	if (peer->nack_count == KIT_NACKS)
		peer->nack_count = l->nacks_seen = 0;
}

void kit_layers_picture(struct kit_layers *l)
{
	answer_plis(l);
	answer_nacks(l);
	for (unsigned e = 0; e < l->config.encodings; e++)
		if (!l->encodings[e].is_silent)
			send_encoding(l, e);
	l->picture++;
	kit_plane_advance(l->peer->plane, KIT_PICTURE_US);
}

void kit_layers_pictures(struct kit_layers *l, unsigned count)
{
	while (count--)
		kit_layers_picture(l);
}

void kit_layers_report(struct kit_layers *l)
{
	for (unsigned e = 0; e < l->config.encodings; e++) {
		const struct kit_encoding *c = &l->encodings[e];
		struct rtcp_sender_info info = {
			.ntp = clock_ntp_of_unix_us(l->peer->plane->now_us),
			.rtp_timestamp =
			    c->timestamp_base + (uint32_t)l->picture * KIT_PICTURE_TICKS,
		};
		struct rtcp_writer w;
		uint8_t bytes[64];

		rtcp_writer_init(&w, bytes, sizeof(bytes));
		rtcp_write_sr(&w, c->ssrc, &info, NULL, 0);
		kit_peer_send_rtcp(l->peer, bytes, w.len_bytes);
	}
}

const struct kit_fact *kit_layers_fact(uint32_t number)
{
	const struct kit_layers *l =
	    number >> SERIAL_SHIFT < SERIALS ? alive[number >> SERIAL_SHIFT] : NULL;

	number &= (1u << SERIAL_SHIFT) - 1;
	return l && number < l->fact_count ? &l->facts[number] : NULL;
}
