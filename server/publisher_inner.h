/* server/publisher_inner.h - a publisher as its own parts see it.
 *
 * Thread: the worker's. Nothing outside server/publisher* includes this.
 */
#ifndef SERVER_PUBLISHER_INNER_H
#define SERVER_PUBLISHER_INNER_H

#include "media/clock.h"
#include "media/nack.h"
#include "media/reports.h"
#include "net/trigger.h"
#include "server/publisher.h"

enum { PUBLISHER_PAYLOAD_TYPES = 128 };

/* What a payload type means here. */
struct type_entry {
	bool is_known, is_rtx, is_unwanted;
	uint8_t kind;       /* enum media_kind */
	uint8_t codec;      /* enum media_codec; of RTX: of what it repeats */
	uint8_t media_type; /* of RTX: payload type of what it repeats */
};

/* The SSRC that carries one kind. */
struct source {
	bool is_started;
	uint32_t ssrc, former_ssrc;
	uint64_t former_until_us;
	uint64_t given_up; /* of the tracker's statistics, as last seen */
	struct reports_rx reports;
	struct nack *nack; /* NULL where the peer does not answer NACK */
};

struct publisher {
	struct session *session;
	struct feed *feed; /* NULL until control handed it over */
	struct source sources[STREAM_TRACKS];
	struct type_entry types[PUBLISHER_PAYLOAD_TYPES];
	struct clock clock;
	struct trigger keyframe;
	unsigned keyframe_tries; /* requests since the last key frame came */
	uint64_t keyframe_retry_us;
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

/** What is due next: arms the session. */
void publisher_arm(struct publisher *p);

/** The key frame trigger runs if its time has come and there is somebody to ask. */
void publisher_run_keyframes(struct publisher *p);

/** Number a packet and give it to the branches; takes over the slab. */
void publisher_feed_packet(struct publisher *p, struct slab *slab, const struct track_input *in,
			   const struct type_entry *type, const struct ext_values *ext);

/* RTCP to the peer. */
void publisher_send_report(struct publisher *p);
/** What is missing and due. */
void publisher_send_nacks(struct publisher *p, struct source *source);
void publisher_send_keyframe_request(struct publisher *p);

#endif
