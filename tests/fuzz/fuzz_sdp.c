/* Any text as an offer: parsed and answered in both roles, and read as an answer. What the relay
 * writes must parse, and fit the offer. */
#include <assert.h>

#include "media/answer.h"
#include "media/offer.h"
#include "media/plain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sdp offer, answer;
static struct negotiated agreed, again;
static char out[ANSWER_MAX_BYTES], reason[ANSWER_REASON_BYTES];

static const struct sdp_address candidates[] = {
	{ .family = 4, .ip = { 127, 0, 0, 1 }, .port = 8189 },
};

static const struct answer_local local = {
	.ufrag = "serverufrag",
	.pwd = "serverserverserverserver",
	.fingerprint = "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:"
		       "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF",
	.session_id = 1,
	.cname = "relay",
	.msid = "stream",
	.candidates = candidates,
	.candidate_count = 1,
};

static void check_text(const char *text)
{
	for (; *text; text++)
		assert((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_within(struct sdp_span span, const char *text, size_t size)
{
	assert(!span.at || (span.at >= text && span.at + span.len <= text + size));
}

static void check_parsed(const struct sdp *s, const char *text, size_t size)
{
	assert(s->media_count <= SDP_MAX_MEDIA && s->candidate_count <= SDP_MAX_CANDIDATES);
	for (unsigned i = 0; i < s->media_count; i++) {
		const struct sdp_media *m = &s->media[i];

		check_within(m->mid, text, size);
		check_within(m->formats_text, text, size);
		check_within(m->attributes.ufrag, text, size);
		check_within(m->msid_track, text, size);
		assert(m->first_format + m->formats <= s->format_count);
		assert(m->first_extension + m->extensions <= s->extension_count);
		assert(m->first_ssrc + m->ssrcs <= s->ssrc_count);
		assert(m->first_candidate + m->candidates <= s->candidate_count);
	}
	for (unsigned i = 0; i < s->format_count; i++) {
		assert(s->formats[i].pt <= 127);
		check_within(s->formats[i].name, text, size);
		check_within(s->formats[i].fmtp, text, size);
	}
}

static void check_media(const struct negotiated_media *m)
{
	assert(m->is_accepted == (m->codec_count > 0));
	assert(m->codec_count <= NEGOTIATED_MAX_CODECS);
	for (unsigned i = 0; i < m->codec_count; i++) {
		assert(m->codecs[i].codec != CODEC_NONE && m->codecs[i].pt <= 127);
		assert(m->codecs[i].rtx_pt <= 127 || m->codecs[i].rtx_pt == NEGOTIATED_NO_PT);
		assert(negotiated_match(m, m->codecs[i].codec, NULL));
		check_text(m->codecs[i].fmtp);
	}
	assert(m->encoding_count <= NEGOTIATED_MAX_ENCODINGS);
	for (unsigned i = 0; i < m->encoding_count; i++) {
		/* Either all have a name or none has, and no two have the same. */
		assert(!m->encodings[i].rid[0] == !m->encodings[0].rid[0]);
		check_text(m->encodings[i].rid);
		for (unsigned j = 0; j < i && m->encodings[i].rid[0]; j++)
			assert(strcmp(m->encodings[i].rid, m->encodings[j].rid) != 0);
	}
}

static void check_answer(enum answer_role role)
{
	int len = answer_write(&offer, &agreed, &local, out, sizeof(out));
	enum sdp_direction direction = role == ANSWER_INGEST ? SDP_RECVONLY : SDP_SENDONLY;

	/* Names of formats and extensions come from the offer, so a hostile one can outgrow the
	 * buffer; that is an error, never an overrun. */
	if (len < 0)
		return;
	assert(sdp_parse(&answer, out, (size_t)len, NULL) == SDP_OK);
	assert(answer.media_count == offer.media_count);
	for (unsigned i = 0; i < answer.media_count; i++) {
		const struct sdp_media *m = &answer.media[i];

		assert(sdp_span_equal(m->mid, offer.media[i].mid) || !m->mid.at);
		assert((m->port == 0) == (agreed.lines[i] == NEGOTIATED_REJECTED));
		if (agreed.lines[i] != NEGOTIATED_ACCEPTED)
			continue;
		assert(m->attributes.direction == direction && m->rtcp_mux);
		assert(sdp_span_is(m->attributes.ufrag, local.ufrag));
		if (m->kind == SDP_VIDEO)
			assert(m->rids == (agreed.media[MEDIA_VIDEO].encodings[0].rid[0]
					       ? agreed.media[MEDIA_VIDEO].encoding_count
					       : 0));
	}
}

static void answer_as(enum answer_role role, const char *stream)
{
	struct answer_policy policy;

	answer_policy_init(&policy, role);
	policy.ssrc[0] = policy.ssrc[1] = 1;
	policy.extensions[0] = policy.extensions[1] = UINT32_MAX;
	policy.feedback = UINT8_MAX;
	answer_policy_layers(&policy);
	if (stream)
		answer_policy_only(&policy, CODEC_H264, stream);
	if (answer_negotiate(&offer, &policy, &agreed, reason) != ANSWER_OK) {
		assert(reason[0]);
		check_text(reason);
		return;
	}
	assert(!reason[0] && agreed.fingerprint_count > 0 && agreed.remote_ufrag[0]);
	check_media(&agreed.media[MEDIA_AUDIO]);
	check_media(&agreed.media[MEDIA_VIDEO]);
	check_answer(role);
}

static void read_as_answer(void)
{
	struct offer_config config = {
		.role = OFFER_WATCH, .audio = true, .video = true, .rtx = true
	};

	if (offer_read_answer(&config, &offer, &again, reason) != OFFER_OK) {
		assert(reason[0]);
		return;
	}
	check_media(&again.media[MEDIA_AUDIO]);
	check_media(&again.media[MEDIA_VIDEO]);
}

/* What is read of plain RTP and written anew reads the same. */
static void read_as_plain(void)
{
	struct plain_terms terms, second;
	struct plain_text text = { .name = "x", .address = { .family = 4 }, .terms = &terms };
	int len;

	if (plain_read(&offer, &agreed, &terms, reason) != ANSWER_OK) {
		assert(reason[0]);
		check_text(reason);
		return;
	}
	assert(terms.leg_count >= 1 && terms.leg_count <= PLAIN_LEGS);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		check_media(&agreed.media[kind]);
		if (agreed.media[kind].is_accepted)
			text.codecs[kind] = &agreed.media[kind].codecs[0];
	}
	len = plain_write(&text, out, PLAIN_MAX_BYTES);
	assert(len > 0 && sdp_parse(&answer, out, (size_t)len, NULL) == SDP_OK);
	assert(plain_read(&answer, &again, &second, reason) == ANSWER_OK);
	assert(second.leg_count == terms.leg_count);
	for (unsigned i = 0; i < terms.leg_count; i++)
		assert(second.legs[i].kinds == terms.legs[i].kinds &&
		       second.legs[i].rtcp_mux == terms.legs[i].rtcp_mux);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	struct sdp_error error;

	assert(copy);
	memcpy(copy, data, size);
	if (sdp_parse(&offer, copy, size, &error) == SDP_OK) {
		assert(!error.text[0]);
		check_parsed(&offer, copy, size);
		answer_as(ANSWER_INGEST, NULL);
		answer_as(ANSWER_EGRESS, NULL);
		answer_as(ANSWER_EGRESS, "packetization-mode=1;profile-level-id=42e01f");
		read_as_answer();
		read_as_plain();
	} else {
		assert(error.text[0]);
	}
	free(copy);
	return 0;
}
