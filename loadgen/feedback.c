#include "loadgen/feedback.h"

#include <errno.h>
#include <stdlib.h>

#include "media/twcc_arrivals.h"

struct feedback {
	struct twcc_arrivals *arrivals;
	uint64_t due_us, beat_us;
	uint64_t measured_us, bytes; /* since when, and what came since */
};

int feedback_create(struct feedback **out)
{
	struct feedback *f = calloc(1, sizeof(*f));

	*out = NULL;
	if (!f || twcc_arrivals_create(&f->arrivals) != 0) {
		free(f);
		return -ENOMEM;
	}
	f->due_us = UINT64_MAX;
	f->beat_us = FEEDBACK_FIRST_US;
	*out = f;
	return 0;
}

void feedback_destroy(struct feedback *f)
{
	if (!f)
		return;
	twcc_arrivals_destroy(f->arrivals);
	free(f);
}

static void measure(struct feedback *f, uint64_t now_us)
{
	uint64_t passed_us = now_us - f->measured_us;

	if (passed_us < FEEDBACK_RATE_US)
		return;
	/* So long do the bytes of one feedback take at the share of what comes. */
	f->beat_us = f->bytes ? FEEDBACK_BYTES * UINT64_C(100) * passed_us /
				    (FEEDBACK_SHARE_PERCENT * f->bytes)
			      : FEEDBACK_MAX_US;
	if (f->beat_us < FEEDBACK_MIN_US)
		f->beat_us = FEEDBACK_MIN_US;
	if (f->beat_us > FEEDBACK_MAX_US)
		f->beat_us = FEEDBACK_MAX_US;
	f->measured_us = now_us;
	f->bytes = 0;
}

void feedback_on_packet(struct feedback *f, uint16_t seq, uint32_t bytes, uint64_t now_us)
{
	if (f->due_us == UINT64_MAX) {
		f->measured_us = now_us;
		f->due_us = now_us + f->beat_us;
	}
	f->bytes += bytes;
	twcc_arrivals_on_packet(f->arrivals, seq, now_us);
}

uint64_t feedback_due_us(const struct feedback *f)
{
	return f->due_us;
}

int feedback_write(struct feedback *f, struct rtcp_writer *w, uint32_t sender_ssrc,
		   uint32_t media_ssrc, uint64_t now_us)
{
	int told;

	if (now_us < f->due_us)
		return 0;
	told = twcc_arrivals_write(f->arrivals, w, sender_ssrc, media_ssrc);
	if (told > 0 && twcc_arrivals_deadline_us(f->arrivals) != UINT64_MAX)
		return told;
	measure(f, now_us);
	/* After a pause the beat goes on from here. */
	f->due_us += f->beat_us;
	if (f->due_us <= now_us)
		f->due_us = now_us + f->beat_us;
	return told > 0 ? told : 0;
}
