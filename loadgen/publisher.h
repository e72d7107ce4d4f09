/* loadgen/publisher.h - the media side of one publishing peer: the loop as RTP, and its feedback.
 *
 * Packetises the shared loop, numbers and stamps it without a break (also where the loop starts
 * over), sends sender reports, repeats what is NACKed and jumps to the loop's key frame when asked.
 * What is repeated is made again from the loop: a publisher keeps no packet, only what it was.
 *
 * Source:  RFC 7741 (VP8: 15-bit PictureID, TL0PICIDX), RFC 7587 (Opus), RFC 4588 (RTX), RFC 4585
 *          (NACK, PLI), RFC 5104 (FIR), RFC 3550 section 6.4.1 (SR).
 * Sans-IO: time is an argument; sealed datagrams leave through the caller's function.
 * Thread:  the worker that owns the transport.
 * Memory:  allocated at creation, about 36 KB; none after it.
 */
#ifndef LOADGEN_PUBLISHER_H
#define LOADGEN_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/source.h"
#include "media/answer.h"
#include "net/transport.h"

enum {
	PUBLISHER_DATAGRAM_BYTES = 1200, /* none is longer, tag included */
	PUBLISHER_TICK_US = 5000,        /* browser pacing: one burst a tick */
	PUBLISHER_BURST_PERCENT = 250,   /* browser pacing: this rate, of the video's bitrate */
	PUBLISHER_REPORT_US = 1000000,   /* between two sender reports of one track */
	PUBLISHER_MAX_LATE_US = 500000,  /* later than this, media is skipped and not caught up */
	PUBLISHER_KEPT_PKTS = 512,       /* of each track that may be asked for again */
	PUBLISHER_CNAME_BYTES = 32,
};

enum publisher_pacing {
	PUBLISHER_PACING_FRAME,   /* all packets of a frame at once */
	PUBLISHER_PACING_BROWSER, /* as browsers do: a burst every 5 ms, audio ahead of video */
};

/** One sealed datagram, valid during the call. */
struct publisher_datagram {
	const struct net_path *path;
	const uint8_t *bytes;
	size_t len;
	enum publisher_content {
		PUBLISHER_AUDIO,
		PUBLISHER_VIDEO,
		PUBLISHER_REPEAT, /* of either, by RTX or under its first number */
		PUBLISHER_REPORT, /* RTCP */
	} content;
	/* Of audio, video and repeats: */
	uint32_t timestamp; /* RTP ticks as sent */
	uint64_t unit;      /* audio packet or frame, counted from the first as 0, none left out */
	bool is_last;       /* of its unit */
	bool is_keyframe;   /* of a key frame */
};

/** Send, or queue a copy. It may not call the publisher.
 *  @return false: it could not; counted as unsent, lost like a packet on the wire */
typedef bool publisher_send(void *arg, const struct publisher_datagram *datagram);

struct publisher_config {
	const struct source *source;         /* outlives the publisher */
	struct transport *transport;         /* outlives the publisher; tx and path are used */
	struct seal_engine *engine;          /* that transport's */
	const struct negotiated *negotiated; /* of offer_read_answer(); copied as far as needed */
	const char *cname;                   /* copied, cut at PUBLISHER_CNAME_BYTES */
	enum publisher_pacing pacing;
	publisher_send *send;
	void *send_arg;
	uint64_t seed;         /* first numbers, timestamps and picture ids follow from it */
	int64_t unix_minus_us; /* Unix time minus the clock of now_us, both in microseconds */
};

struct publisher;

/** Sends an m-line that the answer accepted, whichever of the two.
 *  @return 0, -ENOMEM or -ENOTSUP: neither VP8 nor Opus was accepted */
int publisher_create(struct publisher **out, const struct publisher_config *config);
void publisher_destroy(struct publisher *p); /* NULL is allowed */

/** Begin with a key frame at now_us; the transport is connected. Call publisher_on_due() then. */
void publisher_start(struct publisher *p, uint64_t now_us);

/** Send what is due. Early calls send nothing.
 *  @return when to call again; UINT64_MAX before the start and once the transport is closed */
uint64_t publisher_on_due(struct publisher *p, uint64_t now_us);

/** An opened RTCP packet of the peer. Repeats leave at once; a key frame at the next frame's time. */
void publisher_on_rtcp(struct publisher *p, uint64_t now_us, const uint8_t *bytes, size_t len);

struct publisher_stats {
	uint64_t audio_pkts, video_pkts; /* first sends */
	uint64_t datagram_bytes;         /* all that left, repeats and reports included */
	uint64_t frames, keyframes;
	uint64_t skipped_frames; /* their time had passed by more than PUBLISHER_MAX_LATE_US */
	uint64_t skipped_audio_pkts;
	uint64_t nacked_pkts;   /* asked for */
	uint64_t repeated_pkts; /* sent again */
	uint64_t unknown_pkts;  /* asked for, but never sent or no longer kept */
	uint64_t refused_pkts;  /* asked for too soon after the last time, or beyond the share */
	uint64_t plis, firs;    /* requests for our video, FIR without repetitions */
	uint64_t reports;       /* sender reports sent */
	uint64_t bad_rtcp;      /* packets with a member that is malformed */
	uint64_t unsent;        /* datagrams that publisher_send refused */
	uint32_t rtt_us;        /* by the latest report block that tells; 0: none yet */
};
void publisher_stats(const struct publisher *p, struct publisher_stats *out);

#endif
