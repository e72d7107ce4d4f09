/* server/publisher_layers.c - what a publisher's video offers: its layers, and what each of them takes. */
#include <stdlib.h>

#include "media/layers.h"
#include "media/vla.h"
#include "server/branch.h"
#include "server/publisher_inner.h"

int publisher_open_layers(struct publisher *p)
{
	int err = layer_meter_create(&p->meter);

	for (unsigned e = 0; e < publisher_encodings(p, MEDIA_VIDEO) && !err; e++)
		err = layers_create(&publisher_source(p, MEDIA_VIDEO, e)->layers,
				    p->session->plan->is_opaque);
	return err;
}

void publisher_close_layers(struct publisher *p)
{
	for (unsigned e = 0; e < STREAM_ENCODINGS; e++)
		layers_destroy(publisher_source(p, MEDIA_VIDEO, e)->layers);
	layer_meter_destroy(p->meter);
}

size_t publisher_layers_bytes(const struct publisher *p)
{
	return p->meter ? layer_meter_bytes() + publisher_encodings(p, MEDIA_VIDEO) * layers_bytes()
			: 0;
}

void publisher_read_layers(struct publisher *p, struct source *source, struct slab *slab,
			   const struct codec_info *info)
{
	if (layers_on_packet(source->layers, slab, info) != DD_OK)
		counter_add(&publisher_worker(p)->counters.descriptors_unusable, 1);
}

/* --- tables ------------------------------------------------------------------------------ */

static void post_table(struct publisher *p, unsigned worker)
{
	struct letter *letter = calloc(1, sizeof(*letter));

	if (!letter)
		return; /* the next table will do */
	letter->kind = LETTER_LAYERS;
	letter->stream = stream_ref(p->feed->stream);
	letter->layers = p->table;
	worker_post(publisher_worker(p)->shared->team[worker], letter);
}

void publisher_tell_table(struct publisher *p, uint64_t workers)
{
	struct worker *w = publisher_worker(p);
	const struct stream *stream = p->feed->stream;

	for (unsigned i = 0; workers; i++, workers >>= 1) {
		struct branch *here = worker_branch(w, stream->slot, stream->generation);

		if (!(workers & 1))
			continue;
		if (i != w->index)
			post_table(p, i);
		else if (here)
			branch_set_table(here, &p->table);
	}
}

static void tell_control(struct publisher *p)
{
	struct letter *letter = calloc(1, sizeof(*letter));

	if (!letter)
		return;
	letter->kind = LETTER_LAYERS;
	letter->stream = stream_ref(p->feed->stream);
	letter->layers = p->table;
	worker_tell_control(publisher_worker(p), letter);
}

static bool has_choice(const struct publisher *p, const struct source *source)
{
	uint32_t targets = layers_targets(source->layers);

	return publisher_encodings(p, MEDIA_VIDEO) > 1 || (targets & (targets - 1)) != 0;
}

void publisher_poll_table(struct publisher *p)
{
	const struct layers *layers[LAYER_ENCODINGS];

	for (unsigned e = 0; e < LAYER_ENCODINGS; e++)
		layers[e] = publisher_source(p, MEDIA_VIDEO, e)->layers;
	if (!layer_meter_poll(p->meter, layers, publisher_worker(p)->now_us, &p->table))
		return;
	publisher_tell_table(p,
			     atomic_load_explicit(&p->feed->stream->wanted, memory_order_relaxed));
	tell_control(p);
}

void publisher_measure(struct publisher *p, struct source *source, const struct slab *slab,
		       const struct ext_values *ext)
{
	struct vla vla;

	if (!has_choice(p, source))
		return;
	layer_meter_on_packet(p->meter, packet_of_const(slab));
	if (ext_has(ext, EXT_VIDEO_LAYERS_ALLOCATION) &&
	    vla_parse(slab->data + ext->span[EXT_VIDEO_LAYERS_ALLOCATION].offset,
		      ext->span[EXT_VIDEO_LAYERS_ALLOCATION].bytes, &vla))
		layer_meter_on_vla(p->meter, source->encoding, &vla);
	if (layer_meter_due_us(p->meter) <= publisher_worker(p)->now_us)
		publisher_poll_table(p);
	publisher_arm(p);
}
