/* server/publisher_inner.h - a publisher as its own parts see it.
 *
 * Thread: the worker's. Nothing outside server/publisher* includes this.
 */
#ifndef SERVER_PUBLISHER_INNER_H
#define SERVER_PUBLISHER_INNER_H

#include "media/clock.h"
#include "media/layer_table.h"
#include "media/nack.h"
#include "media/reports.h"
#include "media/round_trip.h"
#include "media/stretch.h"
#include "media/twcc_arrivals.h"
#include "server/keyasks.h"
#include "server/publisher.h"

enum { PUBLISHER_PAYLOAD_TYPES = 128 };

/* What a payload type means here. */
struct type_entry {
	bool is_known, is_rtx, is_unwanted;
	uint8_t kind;       /* enum media_kind */
	uint8_t codec;      /* enum media_codec; of RTX: of what it repeats */
	uint8_t place;      /* among the codecs agreed on, from 1; of RTX and RED likewise */
	uint8_t media_type; /* of RTX and RED: payload type of what it repeats, or carries */
};

/* The SSRC that carries the audio, or one encoding of the video. */
struct source {
	uint8_t kind, encoding;
	bool is_started;
	uint32_t ssrc, former_ssrc;
	uint32_t rtx_ssrc;         /* 0: not known yet */
	uint32_t newest_timestamp; /* as it came; of an opaque source */
	bool has_timestamp;
	uint64_t former_until_us;
	uint64_t given_up; /* of the tracker's statistics, as last seen */
	struct reports_rx reports;
	struct nack *nack; /* NULL where the peer does not answer NACK */

	/* Video. */
	struct layers *layers;
	struct stretch *stretch; /* for branches that begin; NULL: no fast start */
	struct keyasks keyasks;
};

struct publisher {
	struct session *session;
	struct feed *feed; /* NULL until control handed it over */
	struct source sources[STREAM_LANES];
	struct type_entry types[PUBLISHER_PAYLOAD_TYPES];
	uint8_t codecs
	    [STREAM_TRACKS]; /* what comes, by enum media_kind: type_entry.place; 0: nothing */
	struct clock clock;
	struct layer_meter *meter; /* NULL without video */
	struct layer_table table;  /* the last one told */
	uint64_t seeded;           /* bit i: worker i was handed what was there when it came */
	struct round_trip rtt;
	struct twcc_arrivals *arrivals; /* NULL where the peer does not number its packets */
	uint64_t report_due_us;
	uint64_t last_media_us;
	uint8_t fir_command;
};

static inline struct worker *publisher_worker(const struct publisher *p)
{
	return p->session->worker;
}

static inline const struct negotiated_media *publisher_terms(const struct publisher *p,
							     unsigned kind)
{
	return &p->session->plan->negotiated->media[kind];
}

/* Of what comes; before anything came, of what the peer likes best. */
static inline uint32_t publisher_clock_hz(const struct publisher *p, unsigned kind)
{
	return publisher_terms(p, kind)->codecs[p->codecs[kind] ? p->codecs[kind] - 1 : 0].clock_hz;
}

/* Encodings that the peer may send of a kind: 1 for audio. */
static inline unsigned publisher_encodings(const struct publisher *p, unsigned kind)
{
	unsigned count = kind == MEDIA_VIDEO ? publisher_terms(p, kind)->encoding_count : 1;

	return count < 1 ? 1 : count < STREAM_ENCODINGS ? count : STREAM_ENCODINGS;
}

static inline struct source *publisher_source(struct publisher *p, unsigned kind, unsigned encoding)
{
	return &p->sources[stream_lane(kind, encoding)];
}

/** What is due next: arms the session. */
void publisher_arm(struct publisher *p);

/** A packet of another codec than those before it, or the first: control judges viewers by it. */
void publisher_change_codec(struct publisher *p, struct source *source, uint8_t place);

/** A video source is asked for a key frame if that is due and there is somebody to ask. */
void publisher_run_keyframes(struct publisher *p, struct source *source);

/** The round trip was measured anew: NACKs wait as long for their answers. */
void publisher_follow_round_trip(struct publisher *p);

/** Number a packet and give it to the branches; takes over the slab. */
void publisher_feed_packet(struct publisher *p, struct slab *slab, const struct track_input *in,
			   struct source *source, enum media_codec codec,
			   const struct ext_values *ext);

/* Layers of the video. */
/** @return 0 or -ENOMEM; what was made goes with publisher_close_layers() */
int publisher_open_layers(struct publisher *p);
void publisher_close_layers(struct publisher *p);
size_t publisher_layers_bytes(const struct publisher *p);
/** Say in the packet who needs it: between packet_describe() and track_on_packet(). */
void publisher_read_layers(struct publisher *p, struct source *source, struct slab *slab,
			   const struct codec_info *info);
/** A packet goes to viewers: it counts for the table. */
void publisher_measure(struct publisher *p, struct source *source, const struct slab *slab,
		       const struct ext_values *ext);
/** The meter's time has come. */
void publisher_poll_table(struct publisher *p);
/** The table, to the branches of these workers (bit i: worker i). */
void publisher_tell_table(struct publisher *p, uint64_t workers);

/* RTCP to the peer. */
void publisher_send_report(struct publisher *p);
/** What is missing and due. */
void publisher_send_nacks(struct publisher *p, struct source *source);
/** When packets arrived, as far as it is due. */
void publisher_send_arrivals(struct publisher *p);
void publisher_send_keyframe_request(struct publisher *p, const struct source *source);

#endif
