/* server/pass_send.c - one packet for one viewer: header, place in the arena, sealing job. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "media/red.h"
#include "media/rtx.h"
#include "server/adapt.h"
#include "server/pass_inner.h"
#include "server/plain.h"

enum {
	BATCH_JOBS = 64,
	TEMPLATE_ENCODING_SHIFT = 56, /* indices have fewer bits than that */
	TEMPLATE_STRIDE = BRANCH_TEMPLATE_PKTS / STREAM_ENCODINGS, /* encodings count alike */
	SUBSTITUTE_BYTES = 16, /* padding in place of a packet that is not wanted */
	LEAD_BYTES = RED_MAX_HEADER_BYTES,
};
_Static_assert((int)LEAD_BYTES >= (int)NUMBERING_LEAD_BYTES, "a lead of either kind");

struct pass_batch {
	unsigned count;
	struct seal_job jobs[BATCH_JOBS];
	uint8_t leads[BATCH_JOBS][RTX_OSN_BYTES + LEAD_BYTES];
	uint8_t headers[BATCH_JOBS][MAPPING_HEADER_MAX_BYTES + 3];
};

int pass_batch_create(struct pass_batch **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void pass_batch_destroy(struct pass_batch *b)
{
	free(b);
}

void pass_finish(struct worker *w)
{
	struct pass_batch *batch = w->batch;

	if (batch->count == 0)
		return;
	seal_rtp(w->engine, batch->jobs, batch->count);
	batch->count = 0;
}

/* A copy of the packet's header as this mapping writes it. @return its length */
static size_t copy_header(struct templates *t, const struct slab *slab, uint8_t *out)
{
	const struct media_packet *p = packet_of_const(slab);
	uint64_t key = p->index | (uint64_t)p->encoding << TEMPLATE_ENCODING_SHIFT;
	struct header_template *entry =
	    &t->entries[(p->index + p->encoding * TEMPLATE_STRIDE) % BRANCH_TEMPLATE_PKTS];
	size_t bytes;

	if (entry->key == key) {
		memcpy(out, entry->header, entry->bytes);
		return entry->bytes;
	}
	bytes = mapping_write_header(&t->mapping, slab, out);
	if (bytes <= BRANCH_TEMPLATE_BYTES) {
		memcpy(entry->header, out, bytes);
		entry->key = key;
		entry->bytes = (uint8_t)bytes;
	}
	return bytes;
}

/* How a track's packets reach the viewer. */
struct way {
	struct worker_socket *socket; /* NULL: not, just now */
	const struct net_path *path;
	struct seal_tx *tx;
};

static struct way find_way(struct viewer *v, const struct viewer_track *t)
{
	struct session *s = v->session;
	struct way way = { .path = &s->transport->path, .tx = s->transport->tx };

	if (s->plain)
		way.socket = plain_route(s, (unsigned)(t - v->tracks), &way.path, &way.tx);
	else
		way.socket = session_socket(s);
	return way;
}

/* A place in the arena; sends what is there when it is full. @return NULL: blocked */
static uint8_t *take_room(struct viewer *v, const struct way *way, size_t len)
{
	struct worker_socket *socket = way->socket;
	struct session *s = v->session;
	uint8_t *place = NULL;

	if (!socket->is_blocked)
		place = egress_append(socket->egress, way->path, len, s->slot);
	if (!place && !socket->is_blocked && worker_flush(s->worker, socket))
		place = egress_append(socket->egress, way->path, len, s->slot);
	return place;
}

/* Make the packet what it is to a viewer with layers: a pure function of the packet and its place, so
 * that a repeat is the same. @return bytes written to `lead` */
static size_t shape(const struct viewer_track *t, const struct slab *slab,
		    const struct numbering_place *place, struct seal_job *job, uint8_t *header,
		    uint8_t *lead)
{
	static const uint8_t padding[SUBSTITUTE_BYTES] = { [SUBSTITUTE_BYTES - 1] =
							       SUBSTITUTE_BYTES };
	const struct media_packet *p = packet_of_const(slab);
	size_t bytes;

	if (!pass_is_wanted(t, p, place->target)) {
		mapping_set_padding(header);
		job->payload = padding;
		job->payload_bytes = SUBSTITUTE_BYTES;
		return 0;
	}
	if (place->target != NUMBERING_ALL && p->ends >> place->target & 1)
		mapping_set_marker(header);
	if (place->shift.frame)
		mapping_shift_frame(&t->templates->mapping, slab, header, place->shift.frame);
	bytes = numbering_lead(slab, &place->shift, lead);
	job->payload += bytes;
	job->payload_bytes = (uint16_t)(job->payload_bytes - bytes);
	return bytes;
}

/* Redundant audio as this viewer knows it. The blocks name the codec by its payload type, which is
 * the publisher's. @return bytes written to `lead` */
static size_t shape_red(const struct mapping *m, struct seal_job *job, uint8_t *lead)
{
	size_t skip = 0, bytes = 0;

	if (mapping_unpacks(m, CODEC_RED))
		skip = red_primary_offset(job->payload);
	else if ((job->payload[0] & 0x7f) != m->types[CODEC_OPUS])
		skip = bytes = red_write_header(job->payload, m->types[CODEC_OPUS], lead);
	job->payload += skip;
	job->payload_bytes = (uint16_t)(job->payload_bytes - skip);
	return bytes;
}

static uint32_t timestamp_of(const struct viewer *v, const struct viewer_track *t,
			     const struct media_packet *p, const struct numbering_place *place)
{
	if (!place)
		return squeeze_timestamp(&t->squeeze, p->index, p->timestamp);
	if (place->encoding != v->layers->first_encoding)
		return p->timestamp + place->shift.timestamp;
	return squeeze_timestamp(&t->squeeze, p->index, p->timestamp) + place->shift.timestamp;
}

static size_t datagram_bytes(const struct seal_job *job)
{
	return job->header_bytes + (size_t)job->lead_bytes + job->payload_bytes +
	       seal_tag_bytes(seal_tx_profile(job->tx));
}

/* Making room sealed and emptied the batch: a job that was not its first is now. */
static struct seal_job *move_to_front(struct pass_batch *batch, const struct seal_job *job)
{
	struct seal_job *first = &batch->jobs[0];

	memcpy(batch->headers[0], job->header, job->header_bytes);
	memcpy(batch->leads[0], job->lead, job->lead_bytes);
	*first = *job;
	first->header = batch->headers[0];
	first->lead = batch->leads[0];
	return first;
}

bool pass_queue(struct viewer *v, struct viewer_track *t, struct slab *slab,
		const struct numbering_place *place, bool as_rtx)
{
	struct worker *w = v->session->worker;
	struct pass_batch *batch = w->batch;
	struct way way = find_way(v, t);
	const struct media_packet *p = packet_of_const(slab);
	uint64_t number = place ? place->number : resend_number(&t->resend, p->index);
	uint32_t timestamp = timestamp_of(v, t, p, place);
	struct seal_job *job;
	uint8_t *header, *lead;

	if (!way.socket)
		return true; /* no way to it just now: as if lost on the wire */
	if (batch->count >= BATCH_JOBS)
		pass_finish(w);
	assert(batch->count < BATCH_JOBS);
	job = &batch->jobs[batch->count];
	header = batch->headers[batch->count];
	lead = batch->leads[batch->count];
	*job = (struct seal_job){
		.tx = way.tx,
		.index = number,
		.header = header,
		.lead = lead,
		.payload = packet_payload(slab),
		.header_bytes = (uint16_t)copy_header(t->templates, slab, header),
		.payload_bytes = p->payload_bytes,
	};
	if (as_rtx) {
		be16_write(lead, (uint16_t)number);
		job->lead_bytes = RTX_OSN_BYTES;
	}
	if (place)
		job->lead_bytes = (uint16_t)(job->lead_bytes + shape(t, slab, place, job, header,
								     lead + job->lead_bytes));
	else if (p->codec == CODEC_RED && !packet_has(p, PACKET_PADDING_ONLY))
		job->lead_bytes = (uint16_t)shape_red(&t->templates->mapping, job, lead);
	job->out = take_room(v, &way, datagram_bytes(job));
	if (!job->out)
		return false;
	if (batch->count == 0 && job != &batch->jobs[0])
		job = move_to_front(batch, job);
	header = batch->headers[batch->count];
	if (as_rtx) {
		job->index = resend_next_rtx(&t->resend);
		mapping_make_rtx(&t->templates->mapping, header, p->codec);
	}
	mapping_patch(header, (uint16_t)job->index, timestamp, as_rtx ? t->rtx_ssrc : t->ssrc);
	if (v->adapt)
		adapt_on_send(v, t, header, datagram_bytes(job));
	batch->count++;
	v->packets++;
	v->bytes += p->payload_bytes;
	return true;
}

bool pass_resend(struct viewer *v, unsigned track, struct slab *slab,
		 const struct numbering_place *place)
{
	struct viewer_track *t = &v->tracks[track];
	const struct media_packet *p = packet_of_const(slab);
	struct worker_counters *c = &v->session->worker->counters;
	bool as_rtx = t->rtx_ssrc && mapping_has_rtx(&t->templates->mapping, p->codec);

	if (!mapping_has_codec(&t->templates->mapping, p->codec))
		return false;
	if (!pass_queue(v, t, slab, place, as_rtx))
		return false;
	counter_add(as_rtx ? &c->resent_rtx : &c->resent_plain, 1);
	return true;
}

bool pass_probe(struct viewer *v, struct slab *slab, const struct numbering_place *place)
{
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	uint64_t before = v->packets;

	if (!mapping_has_codec(&t->templates->mapping, packet_of_const(slab)->codec) ||
	    !pass_queue(v, t, slab, place, true) || v->packets == before)
		return false;
	counter_add(&v->session->worker->counters.probe_packets, 1);
	return true;
}

/* Any packet of the video that is still held: what a header of the viewer looks like. */
static struct slab *any_video(struct viewer *v)
{
	const struct history *h = branch_video(v->branch, branch_best_encoding(v->branch))->history;

	return h ? history_get(h, history_newest_index(h)) : NULL;
}

bool pass_pad(struct viewer *v)
{
	static const uint8_t padding[UINT8_MAX] = { [UINT8_MAX - 1] = UINT8_MAX };
	struct viewer_track *t = &v->tracks[MEDIA_VIDEO];
	struct way way = find_way(v, t);
	struct pass_batch *batch = v->session->worker->batch;
	struct seal_job *job = &batch->jobs[0];
	struct slab *slab = any_video(v);
	uint8_t *header = batch->headers[0];
	size_t bytes;

	if (!slab || !way.socket ||
	    !mapping_has_rtx(&t->templates->mapping, packet_of_const(slab)->codec))
		return false;
	pass_finish(v->session->worker);
	*job = (struct seal_job){
		.tx = way.tx,
		.header = header,
		.payload = padding,
		.header_bytes = (uint16_t)copy_header(t->templates, slab, header),
		.payload_bytes = sizeof(padding),
	};
	bytes = datagram_bytes(job);
	job->out = take_room(v, &way, bytes);
	if (!job->out)
		return false;
	job->index = resend_next_rtx(&t->resend);
	mapping_make_rtx(&t->templates->mapping, header, packet_of_const(slab)->codec);
	mapping_set_padding(header);
	mapping_patch(header, (uint16_t)job->index, packet_of_const(slab)->timestamp, t->rtx_ssrc);
	adapt_on_send(v, t, header, bytes);
	batch->count = 1;
	v->packets++;
	counter_add(&v->session->worker->counters.probe_packets, 1);
	return true;
}
