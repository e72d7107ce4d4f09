/* media/dd.h - the dependency descriptor: which frame a packet belongs to, and who needs it.
 *
 * Source:  AV1 RTP payload specification 1.0, appendix A. Used with any codec.
 * Sans-IO: bytes in, values out.
 * Thread:  a structure belongs to the worker that receives the stream.
 * Memory:  none. A structure is kept by the caller, one a stream; frames refer to the latest one.
 */
#ifndef MEDIA_DD_H
#define MEDIA_DD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DD_MIN_BYTES = 3,
	DD_MAX_TEMPLATES = 64,
	DD_MAX_TARGETS = 32,
	DD_MAX_CHAINS = 32,
	DD_MAX_SPATIAL = 4,
	DD_MAX_TEMPORAL = 8,
	DD_MAX_FDIFFS = 16, /* references of one frame that are kept; more is refused */
};

/** Decode target indication: what a frame is to one decode target. */
enum dd_indication {
	DD_NOT_PRESENT,
	DD_DISCARDABLE,
	DD_SWITCH, /* a receiver may switch to the target at this frame */
	DD_REQUIRED,
};

/** Layers, indications, references and chains, of a template or a frame. */
struct dd_dependencies {
	uint64_t indications;           /* 2 bits a target, target 0 lowest: dd_indication_of() */
	uint16_t fdiffs[DD_MAX_FDIFFS]; /* frame_number minus this = a frame referred to; above 0 */
	uint8_t chain_fdiffs[DD_MAX_CHAINS]; /* distance to the chain's previous frame; 0 = none */
	uint8_t fdiff_count;
	uint8_t spatial_id;
	uint8_t temporal_id;
};

struct dd_resolution {
	uint32_t width; /* pixels, 1..65536 */
	uint32_t height;
};

/** A template dependency structure, sent with key frames. template_count = 0: none yet. */
struct dd_structure {
	struct dd_dependencies templates[DD_MAX_TEMPLATES];
	struct dd_resolution resolutions[DD_MAX_SPATIAL]; /* by spatial id */
	uint8_t target_spatial_id[DD_MAX_TARGETS];        /* highest one a target needs */
	uint8_t target_temporal_id[DD_MAX_TARGETS];
	uint8_t target_chain[DD_MAX_TARGETS]; /* the chain that protects it, where chains exist */
	uint8_t template_id_offset;
	uint8_t template_count;
	uint8_t target_count;
	uint8_t chain_count;
	uint8_t max_spatial_id;
	bool has_resolutions;
};

struct dd_info {
	struct dd_dependencies frame; /* valid with has_frame */
	uint32_t active_targets;      /* bit a target; valid with has_active_targets */
	uint16_t frame_number;
	uint8_t template_id; /* as sent */
	bool is_frame_start;
	bool is_frame_end;
	bool has_structure;      /* this packet carried a new one */
	bool has_active_targets; /* sent, or all of a new structure's */
	bool has_frame;          /* false where no structure is known: layers cannot be told */
};

enum dd_verdict {
	DD_OK,
	DD_MALFORMED,        /* cut off, or out of the bounds above */
	DD_UNKNOWN_TEMPLATE, /* the structure does not have it: a newer structure was missed */
	DD_VERDICTS,
};

/**
 * Parse one descriptor.
 *
 * @param structure the stream's; replaced where the packet carries a new one and the whole
 *                  descriptor is DD_OK, else left as it was
 * @param out       filled on DD_OK; on DD_UNKNOWN_TEMPLATE the first, fixed fields only
 */
enum dd_verdict dd_parse(const uint8_t *bytes, size_t len, struct dd_structure *structure,
			 struct dd_info *out);

/** @param target below the structure's target_count */
static inline enum dd_indication dd_indication_of(const struct dd_dependencies *d, unsigned target)
{
	return (enum dd_indication)(d->indications >> (2 * target) & 3);
}

#endif
