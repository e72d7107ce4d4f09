/* net/srtp_open.c - opening, as far as all engines share it: bounds, the index of a packet,
 * replays, and how many SSRCs a peer may have. Nothing here changes before a packet has
 * authenticated (RFC 3711 3.3). */
#include <assert.h>
#include <stdlib.h>

#include "net/srtp_internal.h"
#include "pool/bytes.h"

enum { SEQ_HALF = 1 << 15 };

static struct seal_source *source_find(const struct seal_rx *rx, uint32_t ssrc)
{
	struct seal_source *s = rx->sources;

	while (s && s->ssrc != ssrc)
		s = s->next;
	return s;
}

static struct seal_source *source_add(struct seal_rx *rx, uint32_t ssrc)
{
	struct seal_source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ssrc = ssrc;
	s->next = rx->sources;
	rx->sources = s;
	rx->sources_count++;
	return s;
}

size_t seal_sources_bytes(const struct seal_rx *rx)
{
	return rx->sources_count * sizeof(struct seal_source);
}

void seal_sources_destroy(struct seal_rx *rx)
{
	while (rx->sources) {
		struct seal_source *s = rx->sources;

		rx->sources = s->next;
		free(s);
	}
	rx->sources_count = 0;
}

/* RFC 3711 appendix A. Before the first wrap there is no earlier roll-over counter to guess. */
static uint64_t index_guess(uint64_t top, uint16_t seq)
{
	uint64_t roc = top >> 16;
	int ahead = (int)seq - (int)(uint16_t)top;

	if (ahead > SEQ_HALF && roc > 0)
		roc--;
	else if (ahead < -SEQ_HALF)
		roc = (roc + 1) & UINT32_MAX;
	return roc << 16 | seq;
}

static bool window_is_fresh(uint64_t top, const uint64_t *seen, uint64_t bits, uint64_t index)
{
	if (index > top)
		return true;
	if (top - index >= bits)
		return false;
	return !(seen[index % bits / 64] >> index % 64 & 1);
}

static void window_mark(uint64_t *top, uint64_t *seen, uint64_t bits, uint64_t index)
{
	if (index > *top) {
		/* Places of the indices skipped still tell of a window ago. */
		uint64_t skipped = index - *top < bits ? index - *top : bits;

		for (uint64_t i = 0; i < skipped; i++)
			seen[(index - i) % bits / 64] &= ~(UINT64_C(1) << (index - i) % 64);
		*top = index;
	}
	seen[index % bits / 64] |= UINT64_C(1) << index % 64;
}

/** Bytes of the header with CSRCs and extension, or 0: it does not fit into n. */
static size_t rtp_header_bytes(const uint8_t *bytes, size_t n)
{
	size_t header = SEAL_RTP_MIN_BYTES + 4 * (size_t)(bytes[0] & 0x0f);

	if (bytes[0] & 0x10) {
		if (header + 4 > n)
			return 0;
		header += 4 + 4 * (size_t)be16_read(bytes + header + 2);
	}
	return header <= n ? header : 0;
}

enum seal_verdict seal_open_rtp(struct seal_engine *e, struct seal_rx *rx, uint8_t *bytes,
				size_t *len, uint64_t *index)
{
	size_t tag = seal_tag_bytes(rx->profile);
	struct seal_packet p = { .bytes = bytes, .len = *len };
	struct seal_source *s;

	assert(rx->ops == e->ops);
	if (p.len < SEAL_RTP_MIN_BYTES + tag || p.len > UINT16_MAX || bytes[0] >> 6 != 2)
		return SEAL_MALFORMED;
	p.header_bytes = rtp_header_bytes(bytes, p.len - tag);
	if (p.header_bytes == 0)
		return SEAL_MALFORMED;
	p.ssrc = be32_read(bytes + 8);
	p.index = be16_read(bytes + 2);
	s = source_find(rx, p.ssrc);
	if (!s && rx->sources_count == SEAL_MAX_SSRCS)
		return SEAL_TOO_MANY_SSRCS;
	if (s && s->has_rtp) {
		p.index = index_guess(s->rtp_top, (uint16_t)p.index);
		if (!window_is_fresh(s->rtp_top, s->rtp_seen, SEAL_REPLAY_WINDOW_PKTS, p.index))
			return SEAL_REPLAYED;
	}
	if (!e->ops->open_rtp(e, rx, &p))
		return SEAL_AUTH_FAILED;
	if (!s)
		s = source_add(rx, p.ssrc);
	if (!s)
		return SEAL_TOO_MANY_SSRCS;
	s->has_rtp = true;
	window_mark(&s->rtp_top, s->rtp_seen, SEAL_REPLAY_WINDOW_PKTS, p.index);
	*len = p.len - tag;
	*index = p.index;
	return SEAL_OK;
}

/* Where the index word of an SRTCP packet lies: GCM puts it last, AES-CM before the tag. */
static size_t rtcp_word_offset(enum seal_profile profile, size_t len)
{
	return len - SEAL_RTCP_WORD_BYTES - (seal_is_gcm(profile) ? 0 : SEAL_SHA1_TAG_BYTES);
}

enum seal_verdict seal_open_rtcp(struct seal_engine *e, struct seal_rx *rx, uint8_t *bytes,
				 size_t *len)
{
	size_t extra = seal_tag_bytes(rx->profile) + SEAL_RTCP_WORD_BYTES;
	struct seal_packet p = { .bytes = bytes, .len = *len, .header_bytes = SEAL_RTCP_MIN_BYTES };
	struct seal_source *s;
	uint32_t word;

	assert(rx->ops == e->ops);
	if (p.len < SEAL_RTCP_MIN_BYTES + extra || p.len > UINT16_MAX || bytes[0] >> 6 != 2)
		return SEAL_MALFORMED;
	word = be32_read(bytes + rtcp_word_offset(rx->profile, p.len));
	/* No profile of ours was negotiated with UNENCRYPTED_SRTCP. */
	if (!(word & SEAL_RTCP_E_FLAG))
		return SEAL_MALFORMED;
	p.index = word & SEAL_RTCP_INDEX_MAX;
	p.ssrc = be32_read(bytes + 4);
	s = source_find(rx, p.ssrc);
	if (!s && rx->sources_count == SEAL_MAX_SSRCS)
		return SEAL_TOO_MANY_SSRCS;
	if (s && s->has_rtcp &&
	    !window_is_fresh(s->rtcp_top, s->rtcp_seen, SEAL_RTCP_WINDOW_PKTS, p.index))
		return SEAL_REPLAYED;
	if (!e->ops->open_rtcp(e, rx, &p))
		return SEAL_AUTH_FAILED;
	if (!s)
		s = source_add(rx, p.ssrc);
	if (!s)
		return SEAL_TOO_MANY_SSRCS;
	s->has_rtcp = true;
	window_mark(&s->rtcp_top, s->rtcp_seen, SEAL_RTCP_WINDOW_PKTS, p.index);
	*len = p.len - extra;
	return SEAL_OK;
}
