#include "tests/loadgen/kit_wire.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "media/ext.h"
#include "media/rtcp.h"
#include "pool/bytes.h"

static void check_mid(const struct kit_wire *w, const uint8_t *bytes, const struct rtp_packet *rtp,
		      enum media_kind kind)
{
	const struct negotiated_media *media = &w->negotiated.media[kind];
	struct ext_values values;

	ext_read(&media->extensions, bytes, rtp, &values);
	if (media->extensions.id_of[EXT_MID] == 0) {
		cr_assert_eq(rtp->ext_bytes, 0);
		return;
	}
	cr_assert(ext_has(&values, EXT_MID));
	cr_assert_eq(values.span[EXT_MID].bytes, strlen(media->mid));
	cr_assert_eq(memcmp(bytes + values.span[EXT_MID].offset, media->mid, strlen(media->mid)),
		     0);
}

static void end_frame(struct kit_wire *w)
{
	struct picture picture;

	w->was_keyframe = (w->frame[0] & 1) == 0;
	w->keyframes += w->was_keyframe;
	w->frames++;
	w->is_in_frame = false;
	if (!w->decodes)
		return;
	kit_vp8_decode(w->vp8, w->frame, w->frame_bytes, &picture);
	w->number = picture_read_number(&picture);
	cr_assert_geq(w->number, 0, "the picture is whole");
}

/* RFC 7741 section 4.2, read anew here. */
static void on_vp8(struct kit_wire *w, const struct rtp_packet *rtp, const uint8_t *d, size_t len)
{
	bool starts = !w->is_in_frame;
	uint16_t picture_id;

	cr_assert_gt(len, 6);
	cr_assert_eq(d[0] & 0x8f, 0x80, "X is set, R is not, partition 0");
	cr_assert_eq(d[1], 0xe0, "I, L and T");
	cr_assert(d[2] & 0x80, "15 bits of PictureID");
	picture_id = be16_read(d + 2) & 0x7fff;
	cr_assert_eq((d[0] & 0x10) != 0, starts, "S marks a frame's first packet");
	if (starts) {
		if (w->frames > 0) {
			cr_assert_eq(picture_id, (w->picture_id + 1) & 0x7fff);
			cr_assert_eq(d[4], (uint8_t)(w->tl0picidx + (d[5] >> 6 == 0)),
				     "counts frames of the base layer");
			cr_assert_neq(rtp->timestamp, w->timestamp[MEDIA_VIDEO]);
		}
		w->is_in_frame = true;
		w->frame_bytes = 0;
		w->frame_us = w->now_us;
		w->picture_id = picture_id;
		w->tl0picidx = d[4];
		w->temporal_id = d[5] >> 6;
		w->is_sync = d[5] & 0x20;
		w->timestamp[MEDIA_VIDEO] = rtp->timestamp;
		if (w->frames == 0)
			w->first_timestamp[MEDIA_VIDEO] = rtp->timestamp;
	}
	cr_assert_eq(picture_id, w->picture_id);
	cr_assert_eq(d[4], w->tl0picidx);
	cr_assert_eq(d[5], w->temporal_id << 6 | w->is_sync << 5);
	cr_assert_eq(rtp->timestamp, w->timestamp[MEDIA_VIDEO]);
	cr_assert_leq(w->frame_bytes + len - 6, sizeof(w->frame));
	memcpy(w->frame + w->frame_bytes, d + 6, len - 6);
	w->frame_bytes += len - 6;
	if (rtp->marker)
		end_frame(w);
}

static void on_opus(struct kit_wire *w, const struct rtp_packet *rtp, const uint8_t *bytes)
{
	int16_t samples[2 * KIT_OPUS_SAMPLES];
	double energy = 0;

	cr_assert_not(rtp->marker);
	if (w->audio_pkts == 0)
		w->first_timestamp[MEDIA_AUDIO] = rtp->timestamp;
	w->timestamp[MEDIA_AUDIO] = rtp->timestamp;
	w->audio_pkts++;
	if (!w->decodes)
		return;
	kit_opus_decode(w->opus, bytes + rtp->payload_offset, rtp->payload_bytes, samples);
	for (size_t i = 0; i < 2 * KIT_OPUS_SAMPLES; i++)
		energy += fabs((double)samples[i]);
	cr_assert_gt(energy / (2 * KIT_OPUS_SAMPLES), 500, "it sounds");
}

static void on_media(struct kit_wire *w, const struct publisher_datagram *d,
		     const struct kit_sealed *s)
{
	struct rtp_packet rtp;
	enum media_kind kind = d->content == PUBLISHER_VIDEO ? MEDIA_VIDEO : MEDIA_AUDIO;
	bool is_first = kind == MEDIA_VIDEO ? w->video_pkts == 0 : w->audio_pkts == 0;

	cr_assert_eq(rtp_parse(s->plain, s->plain_len, &rtp), RTP_OK);
	cr_assert_eq(rtp.ssrc, kind == MEDIA_VIDEO ? KIT_VIDEO_SSRC : KIT_AUDIO_SSRC);
	cr_assert_eq(rtp.payload_type, kind == MEDIA_VIDEO ? KIT_VP8_PT : KIT_OPUS_PT);
	cr_assert_eq(rtp.timestamp, d->timestamp);
	if (!is_first)
		cr_assert_eq(rtp.seq, w->next_seq[kind], "no number is left out");
	w->next_seq[kind] = (uint16_t)(rtp.seq + 1);
	w->payload_bytes[kind] += rtp.payload_bytes;
	check_mid(w, s->plain, &rtp, kind);
	if (kind == MEDIA_AUDIO) {
		cr_assert_eq(d->unit, w->audio_pkts);
		cr_assert(d->is_last);
		on_opus(w, &rtp, s->plain);
		return;
	}
	cr_assert_eq(d->unit, w->frames);
	cr_assert_eq(d->is_last, rtp.marker);
	w->last_bytes = w->last_us == w->now_us ? w->last_bytes + d->len : d->len;
	w->last_us = w->now_us;
	w->video_pkts++;
	w->kept[rtp.seq % KIT_KEPT] = *s;
	on_vp8(w, &rtp, s->plain + rtp.payload_offset, rtp.payload_bytes);
	cr_assert(!rtp.marker || d->is_keyframe == w->was_keyframe);
}

static void on_report(struct kit_wire *w, struct kit_sealed *s)
{
	int len = (int)s->len;
	enum media_kind kind;

	cr_assert_eq(srtp_unprotect_rtcp(w->opener, s->plain, &len), srtp_err_status_ok);
	kind = be32_read(s->plain + 4) == KIT_VIDEO_SSRC ? MEDIA_VIDEO : MEDIA_AUDIO;
	cr_assert_leq((size_t)len, sizeof(w->report[kind]));
	memcpy(w->report[kind], s->plain, (size_t)len);
	w->report_bytes[kind] = (size_t)len;
	w->reports++;
}

static void on_repeat(struct kit_wire *w, const struct kit_sealed *s, srtp_err_status_t status)
{
	bool is_rtx = be32_read(s->bytes + 8) == KIT_RTX_SSRC;

	cr_assert_eq(status, is_rtx ? srtp_err_status_ok : srtp_err_status_replay_fail);
	w->repeat = *s;
	w->repeats++;
}

static bool on_datagram(void *arg, const struct publisher_datagram *d)
{
	struct kit_wire *w = arg;
	struct kit_sealed s = { .len = d->len };
	srtp_err_status_t status;
	int len = (int)d->len;

	cr_assert_eq(d->path, &w->transport.path);
	cr_assert_leq(d->len, PUBLISHER_DATAGRAM_BYTES);
	if (w->is_deaf)
		return false;
	memcpy(s.bytes, d->bytes, d->len);
	memcpy(s.plain, d->bytes, d->len);
	if (d->content == PUBLISHER_REPORT) {
		on_report(w, &s);
		return true;
	}
	status = srtp_unprotect(w->opener, s.plain, &len);
	s.plain_len = (size_t)len;
	if (d->content == PUBLISHER_REPEAT) {
		on_repeat(w, &s, status);
		return true;
	}
	cr_assert_eq(status, srtp_err_status_ok, "libsrtp2 opens it: %d", (int)status);
	on_media(w, d, &s);
	return true;
}

static void open_by_libsrtp(struct kit_wire *w, const struct seal_keys *keys)
{
	uint8_t key[SEAL_MAX_KEY_BYTES + SEAL_MAX_SALT_BYTES];
	size_t key_bytes = seal_key_bytes(keys->profile);
	srtp_policy_t policy = { .ssrc = { ssrc_any_inbound, 0 }, .key = key };

	memcpy(key, keys->key, key_bytes);
	memcpy(key + key_bytes, keys->salt, seal_salt_bytes(keys->profile));
	if (keys->profile == SEAL_AES_CM_128_HMAC_SHA1_80) {
		srtp_crypto_policy_set_rtp_default(&policy.rtp);
		srtp_crypto_policy_set_rtcp_default(&policy.rtcp);
	} else {
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp);
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp);
	}
	cr_assert_eq(srtp_init(), srtp_err_status_ok);
	cr_assert_eq(srtp_create(&w->opener, &policy), srtp_err_status_ok);
}

static void negotiate(struct negotiated_media *media, enum media_codec codec, uint8_t pt,
		      uint32_t ssrc, const char *mid)
{
	media->is_accepted = true;
	media->codec_count = 1;
	media->codecs[0].codec = codec;
	media->codecs[0].pt = pt;
	media->codecs[0].rtx_pt = NEGOTIATED_NO_PT;
	media->local_ssrc = ssrc;
	snprintf(media->mid, sizeof(media->mid), "%s", mid);
	cr_assert_eq(ext_map_set(&media->extensions, EXT_MID, KIT_MID_ID), 0);
}

void kit_wire_init(struct kit_wire *w, enum seal_profile profile)
{
	struct seal_keys keys = { .profile = profile };
	struct source_config config;

	memset(w, 0, sizeof(*w));
	for (size_t i = 0; i < sizeof(keys.key); i++)
		keys.key[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < sizeof(keys.salt); i++)
		keys.salt[i] = (uint8_t)(i * 5 + 2);
	kit_small_config(&config);
	cr_assert_eq(source_create(&w->source, &config), 0);
	cr_assert_eq(seal_engine_create(&w->engine, SEAL_ENGINE_AUTO), 0);
	cr_assert_eq(seal_tx_create(&w->transport.tx, w->engine, &keys), 0);
	lifetime_init(&w->transport.life);
	open_by_libsrtp(w, &keys);
	w->vp8 = kit_vp8_create();
	w->opus = kit_opus_create();
	w->decodes = true;
	w->number = -1;
	negotiate(&w->negotiated.media[MEDIA_AUDIO], CODEC_OPUS, KIT_OPUS_PT, KIT_AUDIO_SSRC, "0");
	negotiate(&w->negotiated.media[MEDIA_VIDEO], CODEC_VP8, KIT_VP8_PT, KIT_VIDEO_SSRC, "1");
	w->negotiated.media[MEDIA_VIDEO].codecs[0].rtx_pt = KIT_RTX_PT;
	w->negotiated.media[MEDIA_VIDEO].local_rtx_ssrc = KIT_RTX_SSRC;
}

void kit_wire_set_layers(struct kit_wire *w, uint32_t temporal_layers)
{
	struct source_config config;

	kit_small_config(&config);
	config.temporal_layers = temporal_layers;
	source_destroy(w->source);
	cr_assert_eq(source_create(&w->source, &config), 0);
}

void kit_wire_start(struct kit_wire *w, uint64_t seed)
{
	struct publisher_config config = {
		.source = w->source,
		.transport = &w->transport,
		.engine = w->engine,
		.negotiated = &w->negotiated,
		.cname = "publisher@loop",
		.pacing = w->pacing,
		.send = on_datagram,
		.send_arg = w,
		.seed = seed,
		.unix_minus_us = KIT_UNIX_MINUS_US,
	};

	cr_assert_eq(publisher_create(&w->publisher, &config), 0);
	w->now_us = w->due_us = KIT_START_US;
	cr_assert_eq(publisher_on_due(w->publisher, w->now_us), UINT64_MAX, "not before the start");
	publisher_start(w->publisher, w->now_us);
}

void kit_wire_fini(struct kit_wire *w)
{
	publisher_destroy(w->publisher);
	srtp_dealloc(w->opener);
	srtp_shutdown();
	seal_tx_destroy(w->transport.tx);
	seal_engine_destroy(w->engine);
	source_destroy(w->source);
	kit_vp8_destroy(w->vp8);
	kit_opus_destroy(w->opus);
}

static void step(struct kit_wire *w)
{
	w->now_us = w->due_us;
	w->due_us = publisher_on_due(w->publisher, w->now_us);
	cr_assert_gt(w->due_us, w->now_us, "time goes on");
}

void kit_wire_run(struct kit_wire *w, uint64_t until_us)
{
	while (w->due_us <= until_us)
		step(w);
}

void kit_wire_run_frames(struct kit_wire *w, uint64_t frames)
{
	while (w->frames < frames)
		step(w);
}
