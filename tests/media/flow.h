/* tests/media/flow.h - packets as they arrive, for tests of what is done with them.
 *
 * Each helper writes real bytes and lets the real readers describe them.
 */
#ifndef TESTS_MEDIA_FLOW_H
#define TESTS_MEDIA_FLOW_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/codec.h"
#include "media/packet.h"
#include "media/rtp.h"
#include "media/track.h"
#include "pool/slab.h"

/* The numbers between which sequence numbers wrap or change sign. */
static const uint16_t flow_starts[] = { 0, 1, 32767, 32768, 65534, 65535 };
enum { FLOW_STARTS = sizeof(flow_starts) / sizeof(flow_starts[0]), FLOW_SSRC = 0x5eed };

struct flow_packet {
	uint64_t arrival_us;
	uint32_t timestamp;
	uint16_t seq;
	uint16_t payload_bytes;
	const uint8_t *payload; /* NULL: zeros */
	uint8_t padding_bytes;  /* the publisher's own */
	enum media_codec codec;
	bool marker, is_repaired, is_unwanted;
};

static inline struct slab_pool *flow_pool(uint32_t capacity_slabs)
{
	struct slab_pool_config config = { .capacity_slabs = capacity_slabs,
					   .high_water_slabs = capacity_slabs };
	struct slab_pool *pool;

	cr_assert_eq(slab_pool_create(&pool, &config), 0);
	return pool;
}

static inline struct slab *flow_write(struct slab_pool *pool, const struct flow_packet *in)
{
	struct rtp_header header = {
		.timestamp = in->timestamp,
		.ssrc = FLOW_SSRC,
		.seq = in->seq,
		.payload_type = 96,
		.marker = in->marker,
		.has_padding = in->padding_bytes > 0,
	};
	struct slab *s = slab_get(pool);

	cr_assert(s, "the test's pool is too small");
	rtp_header_write(s->data, &header);
	if (in->payload)
		memcpy(s->data + RTP_HEADER_BYTES, in->payload, in->payload_bytes);
	else
		memset(s->data + RTP_HEADER_BYTES, 0, in->payload_bytes);
	if (in->padding_bytes > 0)
		rtp_padding_write(s->data + RTP_HEADER_BYTES + in->payload_bytes,
				  in->padding_bytes);
	s->len = (uint16_t)(RTP_HEADER_BYTES + in->payload_bytes + in->padding_bytes);
	return s;
}

static inline struct slab *flow_read(struct slab_pool *pool, const struct flow_packet *in,
				     struct rtp_packet *rtp, struct codec_info *info)
{
	struct slab *s = flow_write(pool, in);

	cr_assert_eq(rtp_parse(s->data, s->len, rtp), RTP_OK);
	codec_inspect(in->codec, s->data + rtp->payload_offset, rtp->payload_bytes, info);
	packet_describe(s, rtp, NULL, in->codec, info, in->arrival_us);
	return s;
}

/* Write the packet into a fresh slab and describe it. */
static inline struct slab *flow_slab(struct slab_pool *pool, const struct flow_packet *in)
{
	struct codec_info info;
	struct rtp_packet rtp;

	return flow_read(pool, in, &rtp, &info);
}

/* flow_slab(), then track_on_packet(). The slab is the caller's. */
static inline enum track_verdict flow_feed(struct track *t, struct slab_pool *pool,
					   const struct flow_packet *in, struct slab **out)
{
	struct codec_info info;
	struct rtp_packet rtp;
	struct track_input input = {
		.rtp = &rtp,
		.codec = &info,
		.is_repaired = in->is_repaired,
		.is_unwanted = in->is_unwanted,
	};

	*out = flow_read(pool, in, &rtp, &info);
	return track_on_packet(t, *out, &input);
}

/* A small deterministic generator (splitmix64): the same numbers in every run. */
static inline uint32_t flow_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ z >> 31) >> 32);
}

#endif
