/* Any packets, from any publishers, all the way to viewers' headers: parsed, described, numbered,
 * kept, written; and what layers they serve. No index is given twice or goes back over a restart, nothing leaves the slab, and
 * what a viewer would get is a well-formed packet with the same payload each time. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "media/history.h"
#include "media/layers.h"
#include "media/mapping.h"
#include "media/packet.h"
#include "media/rtx.h"
#include "media/track.h"
#include "pool/bytes.h"

enum {
	HISTORY_PKTS = 2 * TRACK_WINDOW_PKTS, /* all that may still come finds its slot */
	HEADER_BYTES = 40,
	CLOCK_HZ = 90000,
};

/* What each record begins with: flags, codec, length of the packet that follows. */
enum { RECORD_BYTES = 4, IS_RTX = 1, IS_REPAIRED = 2, IS_UNWANTED = 4, IS_START = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct slab_pool *pool;
static struct ext_map ids;
static struct mapping mappings[2]; /* one-byte and two-byte */

static void set_up(void)
{
	struct slab_pool_config config = { .capacity_slabs = HISTORY_PKTS + 8,
					   .high_water_slabs = HISTORY_PKTS };

	assert(slab_pool_create(&pool, &config) == 0);
	for (unsigned k = 0; k < EXT_KINDS; k++)
		assert(ext_map_set(&ids, (enum ext_kind)k, k + 1) == 0);
	for (unsigned i = 0; i < 2; i++) {
		struct mapping *m = &mappings[i];

		mapping_init(m);
		memset(m->types, 96, sizeof(m->types));
		for (uint8_t k = 0; k < MAPPING_DESCRIPTOR + i; k++)
			m->ext_ids[k] = (uint8_t)(k + 1);
		assert(mapping_set_mid(m, "0", 1) == 0);
		mapping_seal(m);
	}
}

/* The packet as a viewer of that mapping gets it. */
static void check_written(const struct mapping *m, const struct slab *s)
{
	const struct media_packet *p = packet_of_const(s);
	uint8_t datagram[MAPPING_HEADER_MAX_BYTES + SLAB_DATA_BYTES];
	size_t bytes = mapping_write_header(m, s, datagram);
	struct rtp_packet rtp;

	assert(bytes <= MAPPING_HEADER_MAX_BYTES);
	if (!packet_has(p, PACKET_DESCRIPTOR) || m->ext_ids[MAPPING_DESCRIPTOR] == 0)
		assert(bytes == mapping_header_bytes(m));
	memcpy(datagram + bytes, packet_payload(s), p->payload_bytes);
	assert(rtp_parse(datagram, bytes + p->payload_bytes, &rtp) == RTP_OK);
	assert(rtp.seq == (uint16_t)p->index && rtp.timestamp == p->timestamp);
	assert(rtp.payload_offset == bytes);
	assert(rtp.padding_bytes == p->padding_bytes);
	assert(rtp.payload_bytes + rtp.padding_bytes == p->payload_bytes);
}

static void check_forwarded(const struct slab *s, size_t came_bytes, uint64_t floor)
{
	const struct media_packet *p = packet_of_const(s);
	size_t limit = came_bytes > TRACK_DATAGRAM_BYTES ? came_bytes : TRACK_DATAGRAM_BYTES;

	assert(p->index >= floor);
	assert(p->payload_offset + p->payload_bytes == s->len && s->len <= SLAB_DATA_BYTES);
	assert(packet_has(p, PACKET_PADDED) == (p->padding_bytes > 0));
	if (packet_has(p, PACKET_PADDING_ONLY))
		assert(p->payload_bytes == p->padding_bytes);
	else if (p->padding_bytes > 0)
		assert(p->payload_bytes + (size_t)HEADER_BYTES <= limit);
	check_written(&mappings[0], s);
	check_written(&mappings[1], s);
}

struct run {
	struct track *track;
	struct layers *layers;
	struct history *history;
	uint64_t now_us;
	uint64_t floor;      /* no index below it may come any more */
	uint64_t first_kept; /* by the history; 0: nothing yet */
};

/* Somebody needs every packet; who may begin with one gets it; targets contain themselves. */
static void check_layers(struct layers *l, struct slab *s, const struct codec_info *info)
{
	const struct media_packet *p = packet_of_const(s);

	layers_on_packet(l, s, info);
	if (p->payload_bytes == 0)
		return;
	assert(p->switches == 0 || packet_has(p, PACKET_FRAME_START));
	assert(!packet_has(p, PACKET_KEYFRAME) || p->switches == UINT32_MAX);
	assert((layers_active(l) & ~layers_targets(l)) == 0);
	assert(layers_targets(l) != 0);
	for (unsigned t = 0; t < LAYERS_TARGETS; t++)
		if (layers_targets(l) >> t & 1)
			assert(layers_target(l, t)->contains >> t & 1);
}

/* Number the packet; one reference of `s` is used up. */
static void feed(struct run *run, struct slab *s, const uint8_t *record)
{
	enum media_codec codec = (enum media_codec)(record[1] % CODECS);
	struct ext_values ext;
	struct codec_info info;
	struct rtp_packet rtp;
	struct track_input in = { .rtp = &rtp,
				  .codec = &info,
				  .is_repaired = record[0] & (IS_RTX | IS_REPAIRED),
				  .is_unwanted = record[0] & IS_UNWANTED || codec == CODEC_NONE };
	size_t came_bytes = s->len;
	uint64_t newest_before = track_newest_index(run->track);
	enum history_verdict kept;

	if (rtp_parse(s->data, s->len, &rtp) != RTP_OK ||
	    (record[0] & IS_RTX && !rtx_unwrap(&rtp, s->data, rtp.ssrc, 96))) {
		slab_put(pool, s);
		return;
	}
	ext_read(&ids, s->data, &rtp, &ext);
	codec_inspect(codec, s->data + rtp.payload_offset, rtp.payload_bytes, &info);
	packet_describe(s, &rtp, &ext, codec, &info, run->now_us);
	check_layers(run->layers, s, &info);
	if (track_on_packet(run->track, s, &in) != TRACK_FORWARD) {
		slab_put(pool, s);
		return;
	}
	check_forwarded(s, came_bytes, run->floor);
	/* Numbers that a restart swallowed or has still to see lie below its first packet, but above
	 * all that was numbered before it. */
	if (packet_has(packet_of(s), PACKET_RESTART))
		run->floor = newest_before + 1;
	assert(track_newest_index(run->track) >= packet_of(s)->index);
	if (run->first_kept == 0)
		run->first_kept = packet_of(s)->index;
	slab_ref(s, 1);
	kept = history_put(run->history, s, run->now_us);
	/* A history begins with its first packet: what a restart had still to see lies below. */
	assert(kept <= HISTORY_LATE ||
	       (kept == HISTORY_TOO_OLD && packet_of(s)->index < run->first_kept));
	slab_put(pool, s);
}

static void run_records(struct run *run, const uint8_t *data, size_t size)
{
	size_t len;

	for (size_t at = 0; at + RECORD_BYTES <= size; at += RECORD_BYTES + len) {
		struct slab *s = slab_get(pool);

		len = be16_read(data + at + 2) % (SLAB_DATA_BYTES + 1);
		if (len > size - at - RECORD_BYTES)
			len = size - at - RECORD_BYTES;
		assert(s);
		memcpy(s->data, data + at + RECORD_BYTES, len);
		s->len = (uint16_t)len;
		run->now_us += data[at + 1] * 100u;
		if (data[at] & IS_START) {
			track_start(run->track, CLOCK_HZ);
			layers_start(run->layers);
			run->floor = track_newest_index(run->track) + 1;
		}
		feed(run, s, data + at);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct track_config track_config = { .is_video = true,
					     .pad_bytes = 16,
					     .header_bytes = HEADER_BYTES };
	struct history_config history_config = { .capacity_pkts = HISTORY_PKTS };
	struct run run = { .floor = TRACK_FIRST_INDEX };
	struct slab_pool_stats stats;

	if (!pool)
		set_up();
	assert(track_create(&run.track, &track_config) == 0);
	assert(layers_create(&run.layers, size > 0 && data[0] & IS_START) == 0);
	assert(history_create(&run.history, &history_config, pool) == 0);
	track_start(run.track, CLOCK_HZ);
	run_records(&run, data, size);
	track_destroy(run.track);
	layers_destroy(run.layers);
	history_destroy(run.history);
	slab_pool_stats(pool, &stats);
	assert(stats.in_use == 0);
	return 0;
}
