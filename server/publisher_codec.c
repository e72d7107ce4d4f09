/* server/publisher_codec.c - which of the codecs agreed on a publisher sends.
 *
 * The answer names several, and peers do not send what they prefer but what their encoder makes: the
 * packets say. It may change at any packet, when an encoder fails and another takes over. */
#include <stdlib.h>

#include "server/publisher_inner.h"

/* At most one letter is on its way: control reads what is true by then. */
static void tell_control(struct publisher *p)
{
	struct plan *plan = p->session->plan;
	struct letter *letter;

	if (atomic_exchange(&plan->is_codec_mailed, true))
		return;
	letter = calloc(1, sizeof(*letter));
	if (!letter) {
		atomic_store(&plan->is_codec_mailed, false);
		return; /* viewers who cannot take it see nothing, and leave by themselves */
	}
	letter->kind = LETTER_CODEC;
	letter->plan = plan_ref(plan);
	worker_tell_control(publisher_worker(p), letter);
}

/* Timestamps count otherwise from here on. */
static void restart_clock(struct publisher *p, struct source *source)
{
	uint32_t clock_hz = publisher_clock_hz(p, source->kind);

	if (p->feed)
		track_start(p->feed->tracks[stream_lane(source->kind, source->encoding)], clock_hz);
	if (source->is_started)
		reports_rx_init(&source->reports, source->ssrc, clock_hz);
}

void publisher_change_codec(struct publisher *p, struct source *source, uint8_t place)
{
	uint32_t before_hz = publisher_clock_hz(p, source->kind);

	p->codecs[source->kind] = place;
	if (publisher_clock_hz(p, source->kind) != before_hz)
		restart_clock(p, source);
	atomic_store(&p->session->plan->codec_sent[source->kind], place);
	if (publisher_terms(p, source->kind)->codec_count > 1) {
		counter_add(&publisher_worker(p)->counters.codecs_settled, 1);
		tell_control(p);
	}
}
