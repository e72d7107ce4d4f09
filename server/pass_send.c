/* server/pass_send.c - one packet for one viewer: header, place in the arena, sealing job. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "media/rtx.h"
#include "server/pass_inner.h"

enum { BATCH_JOBS = 64 };

struct pass_batch {
	unsigned count;
	struct seal_job jobs[BATCH_JOBS];
	uint8_t leads[BATCH_JOBS][RTX_OSN_BYTES];
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
	uint64_t index = packet_of_const(slab)->index;
	struct header_template *entry = &t->entries[index % BRANCH_TEMPLATE_PKTS];
	size_t bytes;

	if (entry->index == index) {
		memcpy(out, entry->header, entry->bytes);
		return entry->bytes;
	}
	bytes = mapping_write_header(&t->mapping, slab, out);
	if (bytes <= BRANCH_TEMPLATE_BYTES) {
		memcpy(entry->header, out, bytes);
		entry->index = index;
		entry->bytes = (uint8_t)bytes;
	}
	return bytes;
}

/* A place in the arena; sends what is there when it is full. @return NULL: blocked */
static uint8_t *take_room(struct viewer *v, struct worker_socket *socket, size_t len)
{
	struct session *s = v->session;
	uint8_t *place = NULL;

	if (!socket->is_blocked)
		place = egress_append(socket->egress, &s->transport->path, len, s->slot);
	if (!place && !socket->is_blocked && worker_flush(s->worker, socket))
		place = egress_append(socket->egress, &s->transport->path, len, s->slot);
	return place;
}

/* One packet for one viewer: header, place, job. @return false: blocked, nothing was done */
bool pass_queue(struct viewer *v, struct viewer_track *t, struct slab *slab, bool as_rtx)
{
	struct worker *w = v->session->worker;
	struct pass_batch *batch = w->batch;
	struct worker_socket *socket = session_socket(v->session);
	const struct media_packet *p = packet_of_const(slab);
	uint64_t number = resend_number(&t->resend, p->index);
	struct seal_job *job;
	uint8_t *header;

	if (!socket)
		return true; /* no way to it just now: as if lost on the wire */
	if (batch->count >= BATCH_JOBS)
		pass_finish(w);
	assert(batch->count < BATCH_JOBS);
	job = &batch->jobs[batch->count];
	header = batch->headers[batch->count];
	*job = (struct seal_job){
		.tx = v->session->transport->tx,
		.index = number,
		.header = header,
		.payload = packet_payload(slab),
		.header_bytes = (uint16_t)copy_header(t->templates, slab, header),
		.payload_bytes = p->payload_bytes,
	};
	if (as_rtx) {
		job->lead = batch->leads[batch->count];
		job->lead_bytes = RTX_OSN_BYTES;
	}
	job->out = take_room(v, socket,
			     job->header_bytes + (size_t)job->lead_bytes + job->payload_bytes +
				 seal_tag_bytes(seal_tx_profile(job->tx)));
	if (!job->out)
		return false;
	if (batch->count == 0 && header != batch->headers[0]) {
		/* Making room sealed and emptied the batch: this job is its first now. */
		memcpy(batch->headers[0], header, job->header_bytes);
		batch->jobs[0] = *job;
		job = &batch->jobs[0];
		header = batch->headers[0];
		job->header = header;
		if (as_rtx)
			job->lead = batch->leads[0];
	}
	if (as_rtx) {
		be16_write(batch->leads[batch->count], (uint16_t)number);
		job->index = resend_next_rtx(&t->resend);
		mapping_make_rtx(&t->templates->mapping, header, p->codec);
	}
	mapping_patch(header, (uint16_t)job->index,
		      squeeze_timestamp(&t->squeeze, p->index, p->timestamp),
		      as_rtx ? t->rtx_ssrc : t->ssrc);
	batch->count++;
	v->packets++;
	v->bytes += p->payload_bytes;
	return true;
}

bool pass_resend(struct viewer *v, unsigned track, struct slab *slab)
{
	struct viewer_track *t = &v->tracks[track];
	const struct media_packet *p = packet_of_const(slab);
	struct worker_counters *c = &v->session->worker->counters;
	bool as_rtx = t->rtx_ssrc && mapping_has_rtx(&t->templates->mapping, p->codec);

	if (!mapping_has_codec(&t->templates->mapping, p->codec))
		return false;
	if (!pass_queue(v, t, slab, as_rtx))
		return false;
	counter_add(as_rtx ? &c->resent_rtx : &c->resent_plain, 1);
	return true;
}
