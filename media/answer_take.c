#include "media/answer_parts.h"

static char upper(char c)
{
	return (char)(c >= 'a' && c <= 'z' ? c & ~0x20 : c);
}

bool media_is_disabled(const struct sdp_media *m)
{
	return m->port == 0 && !m->bundle_only;
}

static int line_of_mid(const struct sdp *s, struct sdp_span mid)
{
	for (int i = 0; i < s->media_count; i++) {
		if (sdp_span_equal(s->media[i].mid, mid) && !media_is_disabled(&s->media[i]))
			return i;
	}
	return -1;
}

/* A mid that no m-line has is skipped: FFmpeg always writes "BUNDLE 0 1". */
struct bundle bundle_find(const struct sdp *s)
{
	for (unsigned g = 0; g < s->bundle_count; g++) {
		struct sdp_span rest = s->bundles[g], mid;

		for (mid = sdp_span_word(&rest); mid.at; mid = sdp_span_word(&rest)) {
			int line = line_of_mid(s, mid);

			if (line >= 0)
				return (struct bundle){ s->bundles[g], line };
		}
	}
	return (struct bundle){ { NULL, 0 }, -1 };
}

uint8_t negotiated_take_fingerprints(struct negotiated *n, const struct sdp_attributes *a)
{
	static const char *const known[] = { "sha-256", "sha-384", "sha-512" };

	n->fingerprint_count = 0;
	for (unsigned i = 0; i < a->fingerprint_count; i++) {
		const struct sdp_fingerprint *from = &a->fingerprints[i];
		struct negotiated_fingerprint *to = &n->fingerprints[n->fingerprint_count];

		for (unsigned k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
			if (!sdp_span_is_nocase(from->hash, known[k]))
				continue;
			memcpy(to->hash, known[k], strlen(known[k]) + 1);
			sdp_span_copy(from->digest, to->digest, sizeof(to->digest));
			for (char *c = to->digest; *c; c++)
				*c = upper(*c);
			n->fingerprint_count++;
			break;
		}
	}
	return n->fingerprint_count;
}

void negotiated_take_candidates(struct negotiated *n, const struct sdp *s,
				const struct sdp_media *m)
{
	n->candidate_count = 0;
	for (unsigned i = 0; i < m->candidates; i++) {
		const struct sdp_candidate *c = &s->candidates[m->first_candidate + i];

		if (n->candidate_count == NEGOTIATED_MAX_CANDIDATES)
			return;
		if (sdp_candidate_is_usable(c))
			n->candidates[n->candidate_count++] = c->address;
	}
}

const struct sdp_extension *media_extension(const struct sdp *s, const struct sdp_media *m,
					    unsigned index)
{
	if (index < m->extensions)
		return &s->extensions[m->first_extension + index];
	index -= m->extensions;
	return index < s->session_extensions ? &s->extensions[index] : NULL;
}

void negotiated_take_extensions(struct negotiated_media *out, const struct sdp *s,
				const struct sdp_media *m, uint32_t allowed,
				enum sdp_direction peer_must)
{
	unsigned max = m->attributes.extmap_allow_mixed ? EXT_MAX_ID : EXT_ONE_BYTE_MAX_ID;
	const struct sdp_extension *e;

	for (unsigned i = 0; (e = media_extension(s, m, i)) != NULL; i++) {
		enum ext_kind kind = ext_kind_of_uri(e->uri.at, e->uri.len);

		if (kind == EXT_KINDS || !(allowed >> kind & 1) || e->id > max ||
		    !(e->direction & peer_must))
			continue;
		/* A repeated kind or id: the first one holds, the other is not answered. */
		(void)ext_map_set(&out->extensions, kind, e->id);
	}
}

void negotiated_take_media(struct negotiated_media *out, const struct sdp *s, unsigned line)
{
	const struct sdp_media *m = &s->media[line];

	out->m_line = (uint8_t)line;
	out->rtcp_rsize = m->rtcp_rsize;
	out->rcvr_rtt = m->rcvr_rtt;
	sdp_span_copy(m->mid, out->mid, sizeof(out->mid));
	sdp_span_copy(m->msid_stream, out->msid_stream, sizeof(out->msid_stream));
	sdp_span_copy(m->msid_track, out->msid_track, sizeof(out->msid_track));
	if (sdp_primary_ssrcs(s, m, &out->remote_ssrc, 1) > 0)
		out->remote_rtx_ssrc = sdp_rtx_ssrc(s, m, out->remote_ssrc);
}
