/* media/layer_table.h - what a viewer of a track can choose from, and what each choice costs.
 *
 * The publisher's worker keeps one meter per track. It is told of every packet that is forwarded and
 * measures each decode target of each encoding over a sliding second. From it comes, now and then,
 * a table: a plain value that travels to the workers with viewers and to control.
 *
 * Sans-IO: time is an argument: microseconds of the worker's monotonic clock.
 * Thread:  a meter belongs to the publisher's worker; tables are values.
 * Memory:  one allocation, in layer_meter_create(); none after it.
 */
#ifndef MEDIA_LAYER_TABLE_H
#define MEDIA_LAYER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "media/layers.h"
#include "media/packet.h"
#include "media/vla.h"

enum {
	LAYER_ENCODINGS = 4, /* of one track */
	LAYER_OPTIONS = 32,  /* of one table; the costliest beyond it are left out */
	LAYER_WINDOW_US = 1000000,
	/* A layer that is silent for this long, or for 2.5 times its usual interval between frames
	 * if that is longer, is inactive, as long as another layer of the track goes on. */
	LAYER_SILENCE_US = 350000,
	LAYER_TABLE_INTERVAL_US = 500000, /* between tables that only differ in figures */
};

struct layer_option {
	uint32_t bitrate_bps; /* of all packets a viewer of it gets; of an inactive one: the last */
	uint32_t contains;    /* struct layers_target: targets to which it may go down at once */
	uint16_t width, height; /* pixels; 0: not known */
	uint8_t fps;
	uint8_t encoding, target;
	uint8_t spatial_id, temporal_id;
	bool is_active; /* packets of its highest layers arrive */
};

/** What there is to choose from, cheapest first. count is 0 where there is nothing to choose. */
struct layer_table {
	uint8_t count;
	struct layer_option options[LAYER_OPTIONS];
};

/** The option of that name, or NULL. */
const struct layer_option *layer_table_find(const struct layer_table *t, unsigned encoding,
					    unsigned target);

/**
 * Whether a viewer's choice could turn out otherwise with the newer table: an option more, fewer,
 * (in)active, of another size, or with a bitrate or frame rate a sixth away.
 */
bool layer_table_differs(const struct layer_table *older, const struct layer_table *newer);

struct layer_meter;

/** @return 0 or -ENOMEM */
int layer_meter_create(struct layer_meter **out);

/** NULL is allowed. */
void layer_meter_destroy(struct layer_meter *m);

/** Another publisher: nothing is known any more. */
void layer_meter_start(struct layer_meter *m);

/** A packet of video that goes to viewers: after layers_on_packet() and track_on_packet(). */
void layer_meter_on_packet(struct layer_meter *m, const struct media_packet *p);

/** The sender said what it sends; came with a packet of that encoding. */
void layer_meter_on_vla(struct layer_meter *m, unsigned encoding, const struct vla *vla);

/**
 * A table is wanted when its content changed materially: at once where an option came or went,
 * else after LAYER_TABLE_INTERVAL_US. Call at layer_meter_due_us(), and at will in between.
 *
 * @param layers one reader per encoding, NULL for one that the track does not have
 * @return true: *out is to be published in place of the table before
 */
bool layer_meter_poll(struct layer_meter *m, const struct layers *const layers[LAYER_ENCODINGS],
		      uint64_t now_us, struct layer_table *out);

/** When layer_meter_poll() has to be called again; UINT64_MAX: not before the next packet. */
uint64_t layer_meter_due_us(const struct layer_meter *m);

size_t layer_meter_bytes(void);

#endif
