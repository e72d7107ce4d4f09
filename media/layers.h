/* media/layers.h - which decode targets a packet of one encoding serves.
 *
 * A decode target is a way of receiving an encoding: up to this spatial and that temporal layer. Its
 * number is LAYERS_ROW times the spatial id plus the temporal id, whichever codec or descriptor told
 * of it, so that numbers stay right over changes of structure. One reader per encoding looks at
 * each packet between packet_describe() and track_on_packet() and says in the packet who needs it
 * and who may begin with it; fan-out then needs no knowledge of codecs:
 *
 *     needs it:            packet->targets >> target & 1
 *     may go up with it:   packet_may_enter()
 *     may go down anywhere between frames: layers_target()->contains >> lower & 1
 *
 * What tells of layers: for VP8 the payload descriptor, for VP9 the dependency descriptor and, where
 * there is none, the payload descriptor, for all others the dependency descriptor alone. A number
 * that the encoding does not have stands for the nearest one it has, so a viewer with an old number
 * goes on seeing a picture.
 *
 * Source:  RFC 7741 section 4.2 (TID, Y), RFC 9628 section 4.2 (SID, TID, U, D, P, Z, SS), AV1 RTP
 *          payload specification 1.0 appendix A.
 * Sans-IO: no time involved.
 * Thread:  the publisher's worker.
 * Memory:  one allocation, in layers_create(); none after it.
 */
#ifndef MEDIA_LAYERS_H
#define MEDIA_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/codec.h"
#include "media/dd.h"
#include "pool/slab.h"

enum {
	LAYERS_ROW = 8,      /* temporal ids 0..7 */
	LAYERS_SPATIAL = 4,  /* spatial ids 0..3; a higher one counts as 3 */
	LAYERS_TARGETS = 32, /* numbers of targets */
};

static inline unsigned layers_number(unsigned spatial_id, unsigned temporal_id)
{
	return spatial_id * LAYERS_ROW + temporal_id;
}

struct layers_target {
	/* Bit t: all packets of target t are packets of this one too (it contains itself). Not so
	 * where lower spatial layers serve upper ones at key pictures only. */
	uint32_t contains;
	uint16_t width, height; /* pixels; 0 as long as nothing said it */
	uint8_t spatial_id, temporal_id;
};

struct layers;

/**
 * @param is_opaque payloads are encrypted end to end: what the codec's reader made of them counts
 *                  for nothing, key frames and frame limits too come from the dependency descriptor
 * @return 0 or -ENOMEM
 */
int layers_create(struct layers **out, bool is_opaque);

/** NULL is allowed. */
void layers_destroy(struct layers *l);

/** Another source: nothing is known any more. */
void layers_start(struct layers *l);

/**
 * Fill in targets, switches, ends, spatial_id, temporal_id and the flags FRAME_START, FRAME_END, KEYFRAME,
 * DISCARDABLE and ENTRY. Reordered, repeated and repaired packets are welcome. Where nothing tells
 * of layers they stay as packet_describe() left them: needed by all.
 *
 * @param s    as packet_describe() left it; a padding-only packet is left alone
 * @param info of the payload, by codec_inspect()
 * @return what dd_parse() made of the dependency descriptor, DD_OK where there is none
 */
enum dd_verdict layers_on_packet(struct layers *l, struct slab *s, const struct codec_info *info);

/** Bit t: target t exists. Target 0 alone where nothing tells of layers; 0 before any packet. */
uint32_t layers_targets(const struct layers *l);

/** Those of them the sender says it sends; all where it does not say. */
uint32_t layers_active(const struct layers *l);

/** @param target one of layers_targets(); valid until the next call on l */
const struct layers_target *layers_target(const struct layers *l, unsigned target);

size_t layers_bytes(void);

#endif
