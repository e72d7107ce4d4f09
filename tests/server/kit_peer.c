/* What a peer of the plane sends. */
#include "tests/server/kit_plane.h"

#include <assert.h>
#include <string.h>

#include "media/rtcp.h"
#include "pool/bytes.h"
#include "tests/server/kit_stream.h"

void kit_peer_send_raw(struct kit_peer *peer, const uint8_t *bytes, size_t len)
{
	struct net_path path = { .remote = peer->addr, .local = kit_relay_addr };

	if (peer->is_mute)
		return;
	if (peer->tcp)
		kit_stream_send(peer->tcp, bytes, len);
	else
		(void)kit_wire_arrive(kit_wire_fd(peer->worker), &path, bytes, len);
}

/* RFC 7741: X, I and a 15-bit picture id; then a frame tag whose first bit says "not a key frame",
 * and a key frame's start code and size. */
static void write_vp8(uint8_t *out, const struct kit_rtp *rtp)
{
	static const uint8_t key[10] = { 0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01 };

	out[0] = rtp->is_start ? 0x90 : 0x80;
	out[1] = 0x80;
	be16_write(out + 2, (uint16_t)(0x8000 | rtp->picture_id));
	memcpy(out + 4, key, sizeof(key));
	if (!rtp->is_keyframe)
		out[4] |= 1;
}

void kit_peer_send(struct kit_peer *peer, const struct kit_rtp *rtp, bool as_rtx)
{
	uint8_t plain[KIT_WIRE_BYTES] = { 0 };
	uint8_t sealed[KIT_WIRE_BYTES];
	uint8_t *payload = plain + RTP_HEADER_BYTES + (as_rtx ? 2 : 0);
	const struct negotiated_codec *codec = &peer->terms.media[rtp->kind].codecs[0];
	uint64_t index = as_rtx ? peer->next_rtx++ : rtp->index;
	struct rtp_header header = {
		.timestamp = rtp->timestamp,
		.ssrc = as_rtx ? peer->rtx_ssrc[rtp->kind] : peer->ssrc[rtp->kind],
		.seq = (uint16_t)index,
		.payload_type = as_rtx ? codec->rtx_pt : codec->pt,
		.marker = rtp->marker,
	};
	struct seal_job job = {
		.tx = peer->transport->tx,
		.index = index,
		.header = plain,
		.payload = plain + RTP_HEADER_BYTES,
		.header_bytes = RTP_HEADER_BYTES,
		.payload_bytes = (uint16_t)(rtp->bytes + (as_rtx ? 2 : 0)),
		.out = sealed,
	};

	assert(job.tx && rtp->bytes >= KIT_MIN_BYTES && rtp->bytes <= 1400);
	rtp_header_write(plain, &header);
	if (as_rtx)
		be16_write(plain + RTP_HEADER_BYTES, (uint16_t)rtp->index);
	for (uint16_t i = 0; i < rtp->bytes; i++)
		payload[i] = (uint8_t)(i + rtp->number);
	if (rtp->kind == MEDIA_VIDEO)
		write_vp8(payload, rtp);
	be32_write(payload + KIT_NUMBER_AT, rtp->number);
	seal_rtp(peer->plane->engine, &job, 1);
	kit_peer_send_raw(peer, sealed,
			  job.header_bytes + (size_t)job.payload_bytes +
			      seal_tag_bytes(seal_tx_profile(job.tx)));
}

bool kit_peer_send_plain(struct kit_peer *peer, const uint8_t *bytes, size_t len, uint64_t index)
{
	uint8_t plain[KIT_WIRE_BYTES], sealed[KIT_WIRE_BYTES];
	struct rtp_packet rtp;
	struct seal_job job;

	assert(peer->transport->tx && len + SEAL_MAX_TAG_BYTES <= sizeof(sealed));
	memcpy(plain, bytes, len);
	if (rtp_parse_header(plain, len, &rtp) != RTP_OK || rtp_is_rtcp(plain, len))
		return false;
	be16_write(plain + 2, (uint16_t)index);
	job = (struct seal_job){
		.tx = peer->transport->tx,
		.index = index,
		.header = plain,
		.payload = plain + rtp.payload_offset,
		.header_bytes = rtp.payload_offset,
		.payload_bytes = (uint16_t)(len - rtp.payload_offset),
		.out = sealed,
	};
	seal_rtp(peer->plane->engine, &job, 1);
	kit_peer_send_raw(peer, sealed, len + seal_tag_bytes(seal_tx_profile(job.tx)));
	return true;
}

void kit_peer_send_frame(struct kit_peer *peer, bool is_keyframe, unsigned packets, uint16_t bytes,
			 struct kit_rtp *first)
{
	struct kit_rtp rtp = {
		.kind = MEDIA_VIDEO,
		.timestamp = peer->timestamp[MEDIA_VIDEO],
		.bytes = bytes,
		.picture_id = peer->picture_id++ & 0x7fff,
		.is_keyframe = is_keyframe,
	};

	for (unsigned i = 0; i < packets; i++) {
		rtp.index = peer->next_index[MEDIA_VIDEO]++;
		rtp.number = peer->next_number++;
		rtp.is_start = i == 0;
		rtp.marker = i + 1 == packets;
		if (i == 0 && first)
			*first = rtp;
		kit_peer_send(peer, &rtp, false);
	}
	peer->timestamp[MEDIA_VIDEO] += 3000;
}

void kit_peer_send_audio(struct kit_peer *peer)
{
	struct kit_rtp rtp = {
		.kind = MEDIA_AUDIO,
		.index = peer->next_index[MEDIA_AUDIO]++,
		.timestamp = peer->timestamp[MEDIA_AUDIO],
		.number = peer->next_number++,
		.bytes = 100,
	};

	peer->timestamp[MEDIA_AUDIO] += 960;
	kit_peer_send(peer, &rtp, false);
}

void kit_peer_send_rtcp(struct kit_peer *peer, const uint8_t *bytes, size_t len)
{
	uint8_t sealed[KIT_WIRE_BYTES];
	int n;

	memcpy(sealed, bytes, len);
	n = seal_rtcp(peer->plane->engine, peer->transport->tx, sealed, len, sizeof(sealed));
	assert(n > 0);
	kit_peer_send_raw(peer, sealed, (size_t)n);
}

void kit_peer_pli(struct kit_peer *peer)
{
	uint8_t bytes[64];
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_rr(&w, 1, NULL, 0);
	rtcp_write_pli(&w, 1, peer->terms.media[MEDIA_VIDEO].remote_ssrc);
	kit_peer_send_rtcp(peer, bytes, w.len_bytes);
}

void kit_peer_nack(struct kit_peer *peer, enum media_kind kind, const uint16_t *seqs, size_t n)
{
	uint8_t bytes[1200];
	struct rtcp_writer w;

	rtcp_writer_init(&w, bytes, sizeof(bytes));
	rtcp_write_rr(&w, 1, NULL, 0);
	assert(rtcp_write_nack(&w, 1, peer->terms.media[kind].remote_ssrc, seqs, n) == (int)n);
	kit_peer_send_rtcp(peer, bytes, w.len_bytes);
}

void kit_peer_forget(struct kit_peer *peer)
{
	peer->packet_count = 0;
}

size_t kit_peer_count(const struct kit_peer *peer, enum media_kind kind, bool is_rtx)
{
	size_t n = 0;

	for (size_t i = 0; i < peer->packet_count; i++)
		n += peer->packets[i].kind == kind && peer->packets[i].is_rtx == is_rtx;
	return n;
}
