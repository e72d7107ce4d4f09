/* media/answer_simulcast.c - the encodings of an offered track, and what the answer says of them.
 *
 * An answer to simulcast names the offered streams again, their direction turned round (RFC 8853
 * section 5.3.2). OBS counts them and gives up when one is missing, so all are kept that we can keep
 * apart. Of alternatives ("1,4") the first one is taken, and a stream that begins paused ("~1") is one
 * like any other: it may begin whenever it likes.
 */
#include "media/answer_parts.h"

/* "send 1,~4;2 recv 5": the streams of one direction; NULL: none */
static struct sdp_span streams_of(struct sdp_span simulcast, const char *direction)
{
	struct sdp_span word, streams;

	for (word = sdp_span_word(&simulcast); word.at; word = sdp_span_word(&simulcast)) {
		streams = sdp_span_word(&simulcast);
		if (sdp_span_is(word, direction))
			return streams;
	}
	return (struct sdp_span){ NULL, 0 };
}

static bool is_accepted_pt(const struct negotiated_media *m, struct sdp_span text)
{
	bool is_rtx;
	uint32_t pt;

	return sdp_span_number(text, 127, &pt) && negotiated_by_pt(m, (uint8_t)pt, &is_rtx);
}

/* RFC 8851 section 5: a rid may be bound to payload types, and those to ones that we did not take. */
static bool has_accepted_pt(const struct negotiated_media *m, const struct sdp_rid *rid)
{
	struct sdp_span pts;

	if (!sdp_fmtp_get(rid->restrictions, "pt", &pts))
		return true;
	while (pts.len) {
		if (is_accepted_pt(m, sdp_span_cut(&pts, ',')))
			return true;
	}
	return false;
}

static const struct sdp_rid *find_rid(const struct sdp *s, const struct sdp_media *m,
				      struct sdp_span id)
{
	for (unsigned i = 0; i < m->rids; i++) {
		const struct sdp_rid *rid = &s->rids[m->first_rid + i];

		if (rid->direction == SDP_SENDONLY && sdp_span_equal(rid->id, id))
			return rid;
	}
	return NULL;
}

/* The first alternative that has an a=rid line, codecs of ours and a name short enough. */
static bool pick(const struct negotiated_media *out, const struct sdp *s, const struct sdp_media *m,
		 struct sdp_span alternatives, char rid[NEGOTIATED_RID_BYTES])
{
	while (alternatives.len) {
		struct sdp_span id = sdp_span_cut(&alternatives, ',');
		const struct sdp_rid *found;

		if (id.len && id.at[0] == '~')
			id.at++, id.len--;
		found = find_rid(s, m, id);
		if (found && has_accepted_pt(out, found) &&
		    sdp_span_copy(id, rid, NEGOTIATED_RID_BYTES))
			return true;
	}
	return false;
}

/* Which of the encodings has that name. @return -1: none */
static int encoding_of(const struct negotiated_media *m, const char *rid)
{
	for (unsigned i = 0; i < m->encoding_count; i++) {
		if (strcmp(m->encodings[i].rid, rid) == 0)
			return (int)i;
	}
	return -1;
}

static void take_rids(struct negotiated_media *out, const struct sdp *s, const struct sdp_media *m,
		      unsigned max)
{
	struct sdp_span streams = streams_of(m->simulcast, "send");
	char rid[NEGOTIATED_RID_BYTES];

	while (streams.len && out->encoding_count < max) {
		struct sdp_span alternatives = sdp_span_cut(&streams, ';');

		if (pick(out, s, m, alternatives, rid) && encoding_of(out, rid) < 0)
			memcpy(out->encodings[out->encoding_count++].rid, rid, sizeof(rid));
	}
}

/* Sources are announced in the order of the rids, one each, or not at all. */
static void take_ssrcs(struct negotiated_media *out, const struct sdp *s, const struct sdp_media *m)
{
	uint32_t ssrcs[NEGOTIATED_MAX_ENCODINGS];

	if (sdp_primary_ssrcs(s, m, ssrcs, NEGOTIATED_MAX_ENCODINGS) != out->encoding_count)
		return;
	for (unsigned i = 0; i < out->encoding_count; i++) {
		out->encodings[i].ssrc = ssrcs[i];
		out->encodings[i].rtx_ssrc = sdp_rtx_ssrc(s, m, ssrcs[i]);
	}
}

/* Some write "l, m, h", others "q, h, f": where every name begins with a letter of one of these, that
 * says more than the order. @return false: the names say nothing */
static bool ranks_of(const struct negotiated_media *out, int ranks[NEGOTIATED_MAX_ENCODINGS])
{
	static const char *const ladders[] = { "lmh", "qhf" };

	for (unsigned i = 0; i < sizeof(ladders) / sizeof(ladders[0]); i++) {
		unsigned seen = 0, known = 0;

		for (unsigned e = 0; e < out->encoding_count; e++) {
			const char *step = strchr(ladders[i], out->encodings[e].rid[0] | 0x20);

			ranks[e] = step && *step ? (int)(step - ladders[i]) : -1;
			known += ranks[e] >= 0 && !(seen >> ranks[e] & 1);
			seen |= ranks[e] >= 0 ? 1u << ranks[e] : 0;
		}
		if (known == out->encoding_count)
			return true;
	}
	return false;
}

static void sort_by_name(struct negotiated_media *out, int ranks[NEGOTIATED_MAX_ENCODINGS])
{
	for (unsigned i = 1; i < out->encoding_count; i++) {
		for (unsigned j = i; j > 0 && ranks[j - 1] > ranks[j]; j--) {
			struct negotiated_encoding encoding = out->encodings[j];
			int rank = ranks[j];

			out->encodings[j] = out->encodings[j - 1];
			ranks[j] = ranks[j - 1];
			out->encodings[j - 1] = encoding;
			ranks[j - 1] = rank;
		}
	}
}

static void reverse(struct negotiated_media *out)
{
	for (unsigned i = 0, j = out->encoding_count; i + 1 < j; i++) {
		struct negotiated_encoding first = out->encodings[i];

		out->encodings[i] = out->encodings[--j];
		out->encodings[j] = first;
	}
}

static void sort(struct negotiated_media *out)
{
	int ranks[NEGOTIATED_MAX_ENCODINGS];

	if (ranks_of(out, ranks))
		sort_by_name(out, ranks);
	else
		reverse(out);
}

static void take_group(struct negotiated_media *out, const struct sdp *s, const struct sdp_media *m,
		       unsigned max)
{
	const struct sdp_ssrc_group *g = NULL;

	for (unsigned i = 0; i < m->groups && !g; i++) {
		if (sdp_span_is_nocase(s->groups[m->first_group + i].semantics, "SIM"))
			g = &s->groups[m->first_group + i];
	}
	for (unsigned i = 0; g && i < g->count && i < max; i++) {
		out->encodings[i].ssrc = g->ssrcs[i];
		out->encodings[i].rtx_ssrc = sdp_rtx_ssrc(s, m, g->ssrcs[i]);
		out->encoding_count++;
	}
}

void negotiated_take_encodings(struct negotiated_media *out, const struct sdp *s,
			       const struct sdp_media *m, unsigned max)
{
	if (max > NEGOTIATED_MAX_ENCODINGS)
		max = NEGOTIATED_MAX_ENCODINGS;
	if (max > 1) {
		take_rids(out, s, m, max);
		take_ssrcs(out, s, m);
		sort(out);
	}
	if (max > 1 && !out->encoding_count)
		take_group(out, s, m, max);
	if (out->encoding_count)
		return;
	out->encoding_count = 1;
	out->encodings[0].ssrc = out->remote_ssrc;
	out->encodings[0].rtx_ssrc = out->remote_rtx_ssrc;
}

bool negotiated_has_rids(const struct negotiated_media *m)
{
	return m->encoding_count && m->encodings[0].rid[0];
}

static void put_pts(struct sdp_writer *w, const struct negotiated_media *m, struct sdp_span pts)
{
	const char *before = "pt=";

	while (pts.len) {
		struct sdp_span pt = sdp_span_cut(&pts, ',');

		if (!is_accepted_pt(m, pt))
			continue;
		sdp_put(w, "%s%.*s", before, (int)pt.len, pt.at);
		before = ",";
	}
}

static void put_restrictions(struct sdp_writer *w, const struct negotiated_media *m,
			     struct sdp_span restrictions)
{
	const char *before = " ";

	while (restrictions.len) {
		struct sdp_span part = sdp_span_trim(sdp_span_cut(&restrictions, ';'));
		struct sdp_span value = part, name = sdp_span_cut(&value, '=');

		if (!part.len)
			continue;
		sdp_put(w, "%s", before);
		if (sdp_span_is_nocase(name, "pt"))
			put_pts(w, m, value);
		else
			sdp_put(w, "%.*s", (int)part.len, part.at);
		before = ";";
	}
}

/* The encodings in the order of the offer. */
static unsigned in_offered_order(const struct sdp *offer, const struct sdp_media *offered,
				 const struct negotiated_media *m,
				 const char *rids[NEGOTIATED_MAX_ENCODINGS])
{
	struct sdp_span streams = streams_of(offered->simulcast, "send");
	char rid[NEGOTIATED_RID_BYTES];
	unsigned seen = 0, count = 0;

	while (streams.len) {
		struct sdp_span alternatives = sdp_span_cut(&streams, ';');
		int e = pick(m, offer, offered, alternatives, rid) ? encoding_of(m, rid) : -1;

		if (e < 0 || seen >> e & 1)
			continue;
		seen |= 1u << e;
		rids[count++] = m->encodings[e].rid;
	}
	return count;
}

void answer_put_simulcast(struct sdp_writer *w, const struct sdp *offer,
			  const struct sdp_media *offered, const struct negotiated_media *m)
{
	const char *rids[NEGOTIATED_MAX_ENCODINGS];
	unsigned count;

	if (!negotiated_has_rids(m))
		return;
	count = in_offered_order(offer, offered, m, rids);
	for (unsigned i = 0; i < count; i++) {
		struct sdp_span id = { rids[i], (uint32_t)strlen(rids[i]) };
		const struct sdp_rid *rid = find_rid(offer, offered, id);

		sdp_put(w, "a=rid:%s recv", rids[i]);
		if (rid)
			put_restrictions(w, m, rid->restrictions);
		sdp_put(w, "\r\n");
	}
	sdp_put(w, "a=simulcast:recv");
	for (unsigned i = 0; i < count; i++)
		sdp_put(w, "%s%s", i ? ";" : " ", rids[i]);
	sdp_put(w, "\r\n");
}
