#include "media/answer_parts.h"

/* Order of what decoders include. A WebRTC encoder is progressive and uses neither flexible macroblock
 * order nor slice groups, which is all that Baseline has over Constrained Baseline and most of what
 * High has over Constrained High: neighbours of one rank serve each other, as the second choice. */
enum h264_rank {
	H264_UNKNOWN,
	H264_RANK_BASELINE,
	H264_RANK_MAIN,
	H264_RANK_HIGH,
	H264_RANK_HIGH_10,
	H264_RANK_HIGH_422,
	H264_RANK_HIGH_444,
};

/* RFC 6184 section 8.1, table 5: profile_idc and the bits of profile-iop that count. */
static const struct {
	uint8_t idc, iop_mask, iop;
	uint8_t profile; /* a number for each of the table's rows that mean the same */
	uint8_t rank;
} h264_profiles[] = {
	{ 0x42, 0x4f, 0x40, 1, H264_RANK_BASELINE }, /* Constrained Baseline */
	{ 0x4d, 0x8f, 0x80, 1, H264_RANK_BASELINE }, { 0x58, 0xcf, 0xc0, 1, H264_RANK_BASELINE },
	{ 0x42, 0x4f, 0x00, 2, H264_RANK_BASELINE }, /* Baseline */
	{ 0x58, 0xcf, 0x80, 2, H264_RANK_BASELINE }, { 0x4d, 0xaf, 0x00, 3, H264_RANK_MAIN },
	{ 0x58, 0xcf, 0x00, 4, H264_RANK_MAIN }, /* Extended */
	{ 0x64, 0xff, 0x0c, 5, H264_RANK_HIGH }, /* Constrained High */
	{ 0x64, 0xff, 0x00, 6, H264_RANK_HIGH },     { 0x6e, 0xff, 0x00, 7, H264_RANK_HIGH_10 },
	{ 0x7a, 0xff, 0x00, 8, H264_RANK_HIGH_422 }, { 0xf4, 0xff, 0x00, 9, H264_RANK_HIGH_444 },
};

struct h264 {
	uint32_t profile_level_id;
	uint8_t profile; /* of h264_profiles; 0: none of them */
	uint8_t rank;
	uint32_t mode; /* packetization-mode */
};

/* RFC 7587 section 6.1 */
enum { OPUS_MIN_BPS = 6000, OPUS_MAX_BPS = 510000 };

enum { MULTIOPUS_MIN = 3, MULTIOPUS_MAX = 8, MULTIOPUS_PARTS = 3, MULTIOPUS_MAPPING_BYTES = 15 };

/* RFC 6184 section 8.1: without the parameter, Baseline at level 1. */
enum { H264_DEFAULT_PROFILE_LEVEL_ID = 0x42000a };

static bool read_hex24(struct sdp_span text, uint32_t *out)
{
	char copy[7];
	char *end;

	if (text.len != 6 || !sdp_span_copy(text, copy, sizeof(copy)))
		return false;
	for (unsigned i = 0; i < 6; i++) {
		if (!strchr("0123456789abcdefABCDEF", copy[i]))
			return false;
	}
	*out = (uint32_t)strtoul(copy, &end, 16);
	return true;
}

static uint32_t parameter(struct sdp_span fmtp, const char *name, uint32_t missing)
{
	struct sdp_span value;
	uint32_t number;

	if (!sdp_fmtp_get(fmtp, name, &value))
		return missing;
	return sdp_span_number(sdp_span_trim(value), UINT16_MAX, &number) ? number : UINT32_MAX;
}

static struct h264 h264_read(struct sdp_span fmtp)
{
	struct h264 h = { .profile_level_id = H264_DEFAULT_PROFILE_LEVEL_ID };
	struct sdp_span value;

	if (sdp_fmtp_get(fmtp, "profile-level-id", &value))
		read_hex24(sdp_span_trim(value), &h.profile_level_id);
	h.mode = parameter(fmtp, "packetization-mode", 0);
	for (unsigned i = 0; i < sizeof(h264_profiles) / sizeof(h264_profiles[0]); i++) {
		if (h.profile_level_id >> 16 == h264_profiles[i].idc &&
		    (h.profile_level_id >> 8 & h264_profiles[i].iop_mask) == h264_profiles[i].iop) {
			h.profile = h264_profiles[i].profile;
			h.rank = h264_profiles[i].rank;
			break;
		}
	}
	return h;
}

/* Levels do not decide: whoever offered level-asymmetry-allowed says so, and encoders that name one
 * level and send another are common. */
static int h264_profile_fit(const struct h264 *stream, const struct h264 *receiver)
{
	bool same_bytes = stream->profile_level_id >> 8 == receiver->profile_level_id >> 8;

	if (same_bytes || (stream->profile && stream->profile == receiver->profile))
		return 3;
	if (!stream->profile || !receiver->profile || receiver->rank < stream->rank)
		return 0;
	return receiver->rank == stream->rank ? 2 : 1;
}

/* RFC 6184 section 6.2: who takes mode 1 takes single NAL unit packets too. Mode 2 is interleaved. */
static int h264_fit(struct sdp_span stream_fmtp, struct sdp_span receiver_fmtp)
{
	struct h264 stream, receiver = h264_read(receiver_fmtp);
	int fit;

	if (receiver.mode > 1)
		return 0;
	if (!stream_fmtp.at)
		return 1;
	stream = h264_read(stream_fmtp);
	fit = h264_profile_fit(&stream, &receiver);
	if (!fit || stream.mode > receiver.mode)
		return 0;
	return 2 * fit + (stream.mode == receiver.mode);
}

static int equal_fit(struct sdp_span stream, struct sdp_span receiver, const char *name,
		     uint32_t missing)
{
	return parameter(stream, name, missing) == parameter(receiver, name, missing);
}

/* Which channel lies in which stream, where it is written as libwebrtc does: "0,4,1,2,3,5". */
static bool multiopus_part(struct sdp_span fmtp, unsigned part, struct sdp_span *out)
{
	static const char *const names[] = { "channel_mapping", "num_streams", "coupled_streams" };

	if (!sdp_fmtp_get(fmtp, names[part], out))
		return false;
	*out = sdp_span_trim(*out);
	for (uint32_t i = 0; i < out->len; i++)
		if (!strchr("0123456789,", out->at[i]))
			return false;
	return out->len > 0 && out->len <= (part ? 1 : MULTIOPUS_MAPPING_BYTES);
}

static int multiopus_fit(struct sdp_span stream, struct sdp_span receiver)
{
	struct sdp_span have, can;

	for (unsigned part = 0; part < MULTIOPUS_PARTS; part++)
		if (!multiopus_part(receiver, part, &can) ||
		    (stream.at &&
		     (!multiopus_part(stream, part, &have) || !sdp_span_equal(have, can))))
			return 0;
	return 1;
}

int codec_fit(enum media_codec codec, struct sdp_span stream, struct sdp_span receiver)
{
	uint32_t have, can;

	switch (codec) {
	case CODEC_MULTIOPUS:
		return multiopus_fit(stream, receiver);
	case CODEC_H264:
		return h264_fit(stream, receiver);
	case CODEC_VP9:
		return !stream.at || equal_fit(stream, receiver, "profile-id", 0);
	case CODEC_H265:
		return !stream.at || equal_fit(stream, receiver, "profile-id", 1);
	case CODEC_AV1:
		/* Main is part of High, High of Professional (AV1 specification, annex A.2). */
		if (!stream.at)
			return 1;
		have = parameter(stream, "profile", 0);
		can = parameter(receiver, "profile", 0);
		if (have > 2 || can > 2 || can < have)
			return 0;
		return can == have ? 2 : 1;
	default:
		return 1;
	}
}

static bool is_one(struct sdp_span fmtp, const char *name)
{
	return parameter(fmtp, name, 0) == 1;
}

static void put_number(struct sdp_writer *w, struct sdp_span fmtp, const char *name)
{
	uint32_t value = parameter(fmtp, name, UINT32_MAX);

	if (value != UINT32_MAX)
		sdp_put(w, "%s%s=%u", w->len ? ";" : "", name, value);
}

static void put_h264(struct sdp_writer *w, struct sdp_span offered)
{
	struct h264 h = h264_read(offered);
	struct sdp_span value;

	put_number(w, offered, "level-asymmetry-allowed");
	put_number(w, offered, "packetization-mode");
	if (sdp_fmtp_get(offered, "profile-level-id", &value))
		sdp_put(w, "%sprofile-level-id=%06x", w->len ? ";" : "", h.profile_level_id);
}

static void put_h265(struct sdp_writer *w, struct sdp_span offered)
{
	struct sdp_span value;

	put_number(w, offered, "level-id");
	put_number(w, offered, "profile-id");
	put_number(w, offered, "tier-flag");
	if (sdp_fmtp_get(offered, "tx-mode", &value) && sdp_span_is(value, "SRST"))
		sdp_put(w, "%stx-mode=SRST", w->len ? ";" : "");
}

/* RFC 7587 section 7.1 makes most parameters the receiver's wish: a sender does what it is asked for.
 * So what it offers itself for is asked of it. */
static void put_opus(struct sdp_writer *w, struct sdp_span offered)
{
	struct sdp_span value;
	uint32_t bps;

	sdp_put(w, "minptime=10;useinbandfec=1");
	if (is_one(offered, "stereo") || is_one(offered, "sprop-stereo"))
		sdp_put(w, ";stereo=1;sprop-stereo=1");
	if (sdp_fmtp_get(offered, "maxaveragebitrate", &value) &&
	    sdp_span_number(sdp_span_trim(value), OPUS_MAX_BPS, &bps) && bps >= OPUS_MIN_BPS)
		sdp_put(w, ";maxaveragebitrate=%u", bps);
	if (is_one(offered, "usedtx"))
		sdp_put(w, ";usedtx=1");
	if (is_one(offered, "cbr"))
		sdp_put(w, ";cbr=1");
}

static void put_multiopus(struct sdp_writer *w, struct sdp_span offered)
{
	struct sdp_span parts[MULTIOPUS_PARTS];

	for (unsigned part = 0; part < MULTIOPUS_PARTS; part++)
		if (!multiopus_part(offered, part, &parts[part]))
			return;
	sdp_put(w, "channel_mapping=%.*s;num_streams=%.*s;coupled_streams=%.*s", (int)parts[0].len,
		parts[0].at, (int)parts[1].len, parts[1].at, (int)parts[2].len, parts[2].at);
}

void codec_carry_stereo(const char *stream, char fmtp[NEGOTIATED_FMTP_BYTES])
{
	size_t len = strlen(fmtp);

	if (is_one((struct sdp_span){ stream, (uint32_t)strlen(stream) }, "sprop-stereo") &&
	    !strstr(fmtp, "sprop-stereo"))
		snprintf(fmtp + len, NEGOTIATED_FMTP_BYTES - len, ";sprop-stereo=1");
}

void codec_write_fmtp(enum media_codec codec, struct sdp_span offered,
		      char out[NEGOTIATED_FMTP_BYTES])
{
	struct sdp_writer w;

	sdp_writer_init(&w, out, NEGOTIATED_FMTP_BYTES);
	switch (codec) {
	case CODEC_OPUS:
		put_opus(&w, offered);
		break;
	case CODEC_MULTIOPUS:
		put_multiopus(&w, offered);
		break;
	case CODEC_H264:
		put_h264(&w, offered);
		break;
	case CODEC_VP9:
		put_number(&w, offered, "profile-id");
		break;
	case CODEC_AV1:
		put_number(&w, offered, "level-idx");
		put_number(&w, offered, "profile");
		put_number(&w, offered, "tier");
		break;
	case CODEC_H265:
		put_h265(&w, offered);
		break;
	default:
		break;
	}
}

enum media_codec format_codec(enum media_kind kind, const struct sdp_format *f)
{
	enum media_codec codec;
	uint8_t channels = 1;

	if (!f->name.at) {
		for (codec = CODEC_NONE + 1; codec < CODECS; codec++) {
			if (codec_kind(codec) == kind && codec_static_payload_type(codec) == f->pt)
				return codec;
		}
		return CODEC_NONE;
	}
	codec = codec_of_name(kind, f->name.at, f->name.len);
	if (codec == CODEC_OPUS || codec == CODEC_RED)
		channels = 2; /* RFC 7587 section 7: "opus/48000/2" always */
	if (codec == CODEC_MULTIOPUS && f->channels >= MULTIOPUS_MIN &&
	    f->channels <= MULTIOPUS_MAX)
		channels = f->channels;
	if (codec == CODEC_NONE || codec_clock_hz(codec) != f->clock_hz || f->channels != channels)
		return CODEC_NONE;
	return codec;
}

uint8_t format_rtx(const struct sdp *s, const struct sdp_media *m, uint8_t pt)
{
	for (unsigned i = 0; i < m->formats; i++) {
		const struct sdp_format *f = &s->formats[m->first_format + i];

		if (sdp_span_is_nocase(f->name, "rtx") && parameter(f->fmtp, "apt", 256) == pt)
			return f->pt;
	}
	return NEGOTIATED_NO_PT;
}

/* RFC 2198 section 5: the payload types of the blocks, "111/111". */
static bool red_blocks_are(struct sdp_span fmtp, uint8_t pt)
{
	struct sdp_span rest = sdp_span_trim(fmtp);
	uint32_t number;

	while (rest.at && rest.len) {
		struct sdp_span word = rest;
		const char *slash = memchr(rest.at, '/', rest.len);

		if (slash)
			word.len = (uint32_t)(slash - rest.at);
		if (!sdp_span_number(word, UINT8_MAX, &number) || number != pt)
			return false;
		if (!slash)
			return true;
		rest.at = slash + 1;
		rest.len -= word.len + 1;
	}
	return false;
}

uint8_t format_red(const struct sdp *s, const struct sdp_media *m, uint8_t pt, bool *is_first)
{
	*is_first = true;
	for (unsigned i = 0; i < m->formats; i++) {
		const struct sdp_format *f = &s->formats[m->first_format + i];

		if (f->pt == pt)
			*is_first = false;
		else if (format_codec(MEDIA_AUDIO, f) == CODEC_RED && red_blocks_are(f->fmtp, pt))
			return f->pt;
	}
	*is_first = false;
	return NEGOTIATED_NO_PT;
}

const struct negotiated_codec *negotiated_match(const struct negotiated_media *m,
						enum media_codec codec, const char *fmtp)
{
	const struct negotiated_codec *best = NULL;
	struct sdp_span stream = { NULL, 0 }, receiver;
	int fit, best_fit = 0;

	if (fmtp && fmtp[0])
		stream = (struct sdp_span){ fmtp, (uint32_t)strlen(fmtp) };
	for (unsigned i = 0; i < m->codec_count; i++) {
		if (m->codecs[i].codec != codec)
			continue;
		receiver =
		    (struct sdp_span){ m->codecs[i].fmtp, (uint32_t)strlen(m->codecs[i].fmtp) };
		fit = codec_fit(codec, stream, receiver);
		if (fit > best_fit) {
			best_fit = fit;
			best = &m->codecs[i];
		}
	}
	return best;
}

const struct negotiated_codec *negotiated_by_pt(const struct negotiated_media *m, uint8_t pt,
						bool *is_rtx)
{
	for (unsigned i = 0; i < m->codec_count; i++) {
		*is_rtx = m->codecs[i].rtx_pt == pt && pt != NEGOTIATED_NO_PT;
		if (*is_rtx || m->codecs[i].pt == pt)
			return &m->codecs[i];
	}
	*is_rtx = false;
	return NULL;
}
