/* server/registry_layers.c - what a stream's viewers can choose from, and what one of them asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/registry_inner.h"

/* --- tables ------------------------------------------------------------------------------ */

void registry_on_layers(struct registry *r, const struct stream *stream,
			const struct layer_table *table)
{
	struct stream_entry *e = r->streams[stream->slot];

	if (!e || e->stream != stream || !e->publisher)
		return;
	e->layers = *table;
	registry_events_push(r, stream, EVENT_LAYERS);
}

void registry_forget_layers(struct registry *r, struct stream_entry *e)
{
	if (e->layers.count == 0)
		return;
	e->layers.count = 0;
	registry_events_push(r, e->stream, EVENT_LAYERS);
}

bool registry_has_layers(const struct stream_entry *e)
{
	return e->layers.count > 0;
}

static const struct negotiated_media *video_of(const struct stream_entry *e)
{
	return e->publisher ? &e->publisher->negotiated->media[MEDIA_VIDEO] : NULL;
}

/* An encoding without a rid is known by its number. */
static const char *encoding_name(const struct stream_entry *e, unsigned encoding, char out[12])
{
	const struct negotiated_media *m = video_of(e);

	if (m && encoding < m->encoding_count && m->encodings[encoding].rid[0])
		return m->encodings[encoding].rid;
	snprintf(out, 12, "%u", encoding);
	return out;
}

json_t *registry_layer_json(const struct stream_entry *e, const struct layer_option *o)
{
	char number[12];
	const char *rid = encoding_name(e, o->encoding, number);

	return json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:i, s:i}", "rid", rid, "encodingId", rid,
			 "spatialLayerId", o->spatial_id, "temporalLayerId", o->temporal_id,
			 "bitrate", (json_int_t)(o->is_active ? o->bitrate_bps : 0), "width",
			 o->width, "height", o->height, "fps", o->fps);
}

json_t *registry_layers_json(const struct stream_entry *e)
{
	json_t *list = json_array();

	for (unsigned i = e->layers.count; i-- > 0;)
		json_array_append_new(list, registry_layer_json(e, &e->layers.options[i]));
	return list;
}

json_t *registry_layers_event(const struct plan *p, const struct stream_entry *e)
{
	json_t *event = json_object();
	char line[12];

	snprintf(line, sizeof(line), "%u", p->video_line);
	json_object_set_new(event, line, registry_layers_json(e));
	return event;
}

/* The option, or of an encoding whose targets are not told apart the best. */
static const struct layer_option *option_of(const struct stream_entry *e, struct plan_layer layer)
{
	const struct layer_option *o = layer_table_find(&e->layers, layer.encoding, layer.target);

	for (unsigned i = e->layers.count; !o && i-- > 0;)
		if (e->layers.options[i].encoding == layer.encoding)
			o = &e->layers.options[i];
	return o;
}

static bool is_by_hand(struct plan *p)
{
	struct choice_wish wish;

	pthread_mutex_lock(&p->lock);
	wish = p->wish;
	pthread_mutex_unlock(&p->lock);
	return wish.encoding != CHOICE_ANY || wish.spatial_id != CHOICE_ANY ||
	       wish.temporal_id != CHOICE_ANY;
}

json_t *registry_viewer_layer_json(const struct registry *r, struct plan *p)
{
	uint64_t word = counter_read(&p->stats.layer);
	const struct stream_entry *e = p->is_over ? NULL : r->streams[p->stream->slot];
	struct plan_layer layer = plan_layer_unpack(word);
	const struct layer_option *o = word && e ? option_of(e, layer) : NULL;
	json_t *json;

	if (!o)
		return json_null();
	json = registry_layer_json(e, o);
	json_object_set_new(json, "paused", json_boolean(layer.is_paused));
	json_object_set_new(json, "by_hand", json_boolean(is_by_hand(p)));
	return json;
}

/* --- wishes ------------------------------------------------------------------------------ */

static bool is_video_of(const struct plan *p, const char *media)
{
	char line[12];

	snprintf(line, sizeof(line), "%u", p->video_line);
	return !media[0] || strcmp(media, line) == 0 || strcmp(media, p->video_mid) == 0;
}

static int find_encoding(const struct stream_entry *e, const char *rid)
{
	const struct negotiated_media *m = video_of(e);
	char number[12];

	for (unsigned i = 0; m && i < m->encoding_count; i++)
		if (strcmp(encoding_name(e, i, number), rid) == 0)
			return (int)i;
	return REGISTRY_LAYER_ANY;
}

static void tell_worker(struct registry *r, struct plan *p)
{
	uint64_t claim = atomic_load_explicit(&p->claim, memory_order_acquire);
	struct letter *letter;

	if (claim == 0 || claim == PLAN_GONE)
		return; /* whoever claims it reads the wish */
	letter = calloc(1, sizeof(*letter));
	if (!letter)
		return;
	letter->kind = LETTER_WISH;
	letter->to = session_ref_unpack(claim);
	letter->wish = p->wish;
	worker_post(r->shared->team[letter->to.worker], letter);
}

enum registry_status registry_select_layer(struct registry *r, const char *id,
					   const struct registry_layer *layer,
					   char reason[REGISTRY_REASON_BYTES])
{
	struct plan *p = registry_plan_by_id(r, id);
	struct choice_wish wish;
	int encoding = REGISTRY_LAYER_ANY;

	if (!p || p->is_over || p->role != PLAN_VIEWER)
		return REGISTRY_NOT_FOUND;
	if (!p->tracks[MEDIA_VIDEO].is_used || !is_video_of(p, layer->media)) {
		snprintf(reason, REGISTRY_REASON_BYTES,
			 "mediaId does not name the session's video");
		return REGISTRY_UNACCEPTABLE;
	}
	if (layer->rid[0]) {
		encoding = find_encoding(r->streams[p->stream->slot], layer->rid);
		if (encoding == REGISTRY_LAYER_ANY) {
			snprintf(reason, REGISTRY_REASON_BYTES,
				 "the stream has no encoding of this rid now");
			return REGISTRY_UNACCEPTABLE;
		}
	}
	wish = (struct choice_wish){
		.encoding = (int8_t)encoding,
		.spatial_id = (int8_t)layer->spatial,
		.temporal_id = (int8_t)layer->temporal,
		.max_width = (uint16_t)layer->max_width,
		.max_height = (uint16_t)layer->max_height,
		.spatial_layers = (uint8_t)(layer->max_spatial + 1),
		.temporal_layers = (uint8_t)(layer->max_temporal + 1),
	};
	pthread_mutex_lock(&p->lock);
	p->wish = wish;
	pthread_mutex_unlock(&p->lock);
	tell_worker(r, p);
	return REGISTRY_OK;
}
