/* loadgen/publisher_packet.c - RTP packets made from the loop and from what a publisher counts. */
#include <assert.h>
#include <string.h>

#include "loadgen/publisher_inner.h"
#include "media/ext.h"
#include "pool/bytes.h"

enum {
	VP8_X = 0x80,
	VP8_S = 0x10,
	VP8_EXT_I_L_T = 0xe0,
	VP8_PICTURE_ID_M = 0x8000,
	VP8_TID_SHIFT = 6,
	VP8_Y = 0x20,
};

void packet_init(struct track *t, const struct negotiated_media *media)
{
	struct ext_element mid = {
		.data = (const uint8_t *)media->mid,
		.bytes = (uint8_t)strlen(media->mid),
		.id = media->extensions.id_of[EXT_MID],
	};
	size_t n = mid.id != 0 && mid.bytes > 0;
	size_t bytes = ext_block_bytes(&mid, n);

	assert(bytes <= sizeof(t->ext));
	if (n > 0)
		ext_block_write(t->ext, bytes, &mid, n);
	t->ext_bytes = (uint8_t)bytes;
	t->chunk_bytes = (uint16_t)(PUBLISHER_DATAGRAM_BYTES - RTP_HEADER_BYTES - bytes -
				    LEAD_ROOM_BYTES - SEAL_MAX_TAG_BYTES);
}

uint32_t packet_chunks(const struct track *t, uint32_t len)
{
	return (len + t->chunk_bytes - 1) / t->chunk_bytes;
}

/* Chunks of a unit are of one size but for a shorter last one, so that they segment well. */
static struct source_unit chunk_of(const struct source *source, const struct track *t,
				   const struct sent *what)
{
	struct source_unit unit = t->kind == MEDIA_VIDEO ? source_frame(source, what->at)
							 : source_audio(source, what->at);
	uint32_t size = (unit.len + what->chunks - 1) / what->chunks;
	uint32_t offset = what->chunk * size;
	uint32_t left = unit.len - offset;

	assert(offset < unit.len);
	return (struct source_unit){ unit.bytes + offset, left < size ? left : size };
}

static size_t write_descriptor(const struct publisher *p, const struct sent *what, uint8_t *out)
{
	uint16_t picture_id = (uint16_t)(p->first_picture_id + what->unit) & 0x7fff;
	struct source_layer layer = source_layer(p->config.source, what->at);

	out[0] = what->chunk == 0 ? VP8_X | VP8_S : VP8_X;
	out[1] = VP8_EXT_I_L_T;
	be16_write(out + 2, VP8_PICTURE_ID_M | picture_id);
	out[4] = what->base_frame;
	out[5] = (uint8_t)(layer.temporal_id << VP8_TID_SHIFT | (layer.is_sync ? VP8_Y : 0));
	return VP8_DESCRIPTOR_BYTES;
}

static bool is_last(const struct sent *what)
{
	return what->chunk + 1 == what->chunks;
}

static size_t job_bytes(const struct seal_job *job)
{
	return (size_t)job->header_bytes + job->lead_bytes + job->payload_bytes +
	       seal_tag_bytes(seal_tx_profile(job->tx));
}

void batch_init(struct batch *b, struct publisher *p)
{
	b->p = p;
	b->n = 0;
}

/* `h` is complete but for the marker and what is the same in all packets. */
static size_t add(struct batch *b, const struct track *t, const struct sent *what,
		  struct rtp_header *h, uint64_t number)
{
	struct publisher *p = b->p;
	uint8_t *header = b->headers[b->n], *lead = b->leads[b->n];
	struct seal_job *job = &b->jobs[b->n];
	struct source_unit chunk = chunk_of(p->config.source, t, what);
	size_t lead_bytes = 0;

	h->timestamp = what->timestamp;
	h->seq = (uint16_t)number;
	h->marker = t->kind == MEDIA_VIDEO && is_last(what);
	h->has_extension = t->ext_bytes > 0;
	rtp_header_write(header, h);
	memcpy(header + RTP_HEADER_BYTES, t->ext, t->ext_bytes);
	if (h->ssrc != t->ssrc) {
		be16_write(lead, (uint16_t)resend_number(&t->resend, what->index));
		lead_bytes = 2;
	}
	if (t->kind == MEDIA_VIDEO)
		lead_bytes += write_descriptor(p, what, lead + lead_bytes);
	*job = (struct seal_job){
		.tx = p->config.transport->tx,
		.index = number,
		.header = header,
		.lead = lead_bytes > 0 ? lead : NULL,
		.payload = chunk.bytes,
		.header_bytes = (uint16_t)(RTP_HEADER_BYTES + t->ext_bytes),
		.lead_bytes = (uint16_t)lead_bytes,
		.payload_bytes = (uint16_t)chunk.len,
		.out = b->out[b->n],
	};
	b->datagrams[b->n] = (struct publisher_datagram){
		.bytes = job->out,
		.len = job_bytes(job),
		.content = t->kind == MEDIA_VIDEO ? PUBLISHER_VIDEO : PUBLISHER_AUDIO,
		.timestamp = what->timestamp,
		.unit = what->unit,
		.is_last = is_last(what),
		.is_keyframe = t->kind == MEDIA_VIDEO && what->at == 0,
	};
	assert(b->datagrams[b->n].len <= PUBLISHER_DATAGRAM_BYTES);
	return b->datagrams[b->n++].len;
}

size_t batch_add(struct batch *b, struct track *t, const struct sent *what)
{
	struct rtp_header h = { .ssrc = t->ssrc, .payload_type = t->payload_type };
	const struct seal_job *job = &b->jobs[b->n];
	size_t bytes = add(b, t, what, &h, resend_number(&t->resend, what->index));

	reports_tx_on_packet(&t->reports, (uint32_t)job->lead_bytes + job->payload_bytes);
	resend_share_earn(&b->p->share, (uint32_t)bytes);
	if (b->n == BATCH_PKTS)
		batch_flush(b);
	return bytes;
}

void batch_repeat(struct batch *b, struct track *t, const struct sent *what)
{
	struct rtp_header h = { .ssrc = t->ssrc, .payload_type = t->payload_type };
	uint64_t number = resend_number(&t->resend, what->index);

	if (t->has_rtx) {
		h.ssrc = t->rtx_ssrc;
		h.payload_type = t->rtx_payload_type;
		number = resend_next_rtx(&t->resend);
	}
	add(b, t, what, &h, number);
	b->datagrams[b->n - 1].content = PUBLISHER_REPEAT;
	if (b->n == BATCH_PKTS)
		batch_flush(b);
}

size_t batch_repeat_bytes(const struct publisher *p, const struct track *t, const struct sent *what)
{
	size_t bytes = RTP_HEADER_BYTES + (size_t)t->ext_bytes +
		       chunk_of(p->config.source, t, what).len +
		       seal_tag_bytes(seal_tx_profile(p->config.transport->tx));

	bytes += t->has_rtx ? 2 : 0;
	return bytes + (t->kind == MEDIA_VIDEO ? VP8_DESCRIPTOR_BYTES : 0);
}

static void hand_over(struct publisher *p, struct publisher_datagram *d)
{
	d->path = &p->config.transport->path;
	if (p->config.send(p->config.send_arg, d))
		p->stats.datagram_bytes += d->len;
	else
		p->stats.unsent++;
}

void batch_flush(struct batch *b)
{
	if (b->n > 0)
		seal_rtp(b->p->config.engine, b->jobs, b->n);
	for (size_t i = 0; i < b->n; i++)
		hand_over(b->p, &b->datagrams[i]);
	b->n = 0;
}

void packet_send_rtcp(struct publisher *p, uint8_t *bytes, size_t len, size_t cap)
{
	struct publisher_datagram d = { .bytes = bytes, .content = PUBLISHER_REPORT };
	int sealed = seal_rtcp(p->config.engine, p->config.transport->tx, bytes, len, cap);

	if (sealed < 0) { /* the key is used up, or libsrtp2 has no memory */
		p->stats.unsent++;
		return;
	}
	d.len = (size_t)sealed;
	hand_over(p, &d);
}
