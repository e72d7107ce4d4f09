/* media/choice.h - which option of a layer table a viewer is to get.
 *
 * Audio comes first; what is left of the available bitrate is for video. The machine goes down as
 * soon as its option no longer fits and up only with margin, after a while, and more reluctantly
 * each time an attempt failed, so that a steady link sees at most one change a minute; only where far
 * more is available than what failed takes it forgets the failure. Options that are not sent are
 * passed over; when the one in use stops, it is left at once. When even the cheapest does not fit,
 * video is paused.
 *
 * It says what is wanted; the viewer's side switches when a packet allows it.
 *
 * Sans-IO: time is an argument: microseconds of the worker's monotonic clock.
 * Thread:  the viewer's worker.
 * Memory:  caller's storage, a plain value.
 */
#ifndef MEDIA_CHOICE_H
#define MEDIA_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "media/layer_table.h"

enum {
	CHOICE_ANY = -1,
	CHOICE_DOWN_PCT = 95, /* of an option's bitrate: with less available it does not fit */
	CHOICE_UP_PCT = 120,  /* of an option's bitrate: with this available it may be tried, ... */
	CHOICE_UP_HOLD_US = 3000000,  /* ... for this long without a break */
	CHOICE_FAIL_US = 10000000,    /* left within this: the attempt failed */
	CHOICE_BACKOFF_US = 30000000, /* after the first failure; doubles with each */
	CHOICE_BACKOFF_MAX_US = 480000000,
	CHOICE_ANEW_PCT = 170, /* of what failed: with so much it is another link, tried at once */
	CHOICE_STEADY_US = 60000000,    /* held for this long: earlier failures are forgotten */
	CHOICE_DOWN_BURST = 4,          /* after so many downs it still goes up at will, ... */
	CHOICE_DOWN_COST_US = 60000000, /* ... then after one in this time */
	CHOICE_PAUSE_HOLD_US = 500000,  /* nothing fits for this long before video is paused */
	CHOICE_RESUME_PCT = 130,
};

/** What the viewer asked for. CHOICE_ANY: left to the machine. */
struct choice_wish {
	/* By hand: followed whatever the network says, as long as it is sent. Of several that match
	 * the one that fits is taken. Where none is sent: the nearest below, else above. */
	int8_t encoding, spatial_id, temporal_id;
	uint16_t max_width,
	    max_height; /* pixels; 0: no limit. Where all are larger, the smallest */
	uint8_t spatial_layers, temporal_layers; /* at most so many of each; 0: no limit */
};

struct choice_pick {
	bool is_paused;
	uint8_t encoding, target; /* while paused: where it will resume */
};

struct choice {
	struct choice_wish wish;
	struct choice_pick pick;
	bool has_pick;
	bool is_free;            /* the wish changed: whatever fits is taken at once */
	uint32_t pick_bps;       /* as of the last decision */
	uint64_t fits_since_us;  /* something better fits since then; 0: nothing does */
	uint64_t tight_since_us; /* nothing fits since then; 0: something does */
	uint64_t up_us;          /* last time it went up or resumed; 0: never */
	uint64_t retry_us;       /* nothing as costly as failed_bps before then */
	uint64_t backoff_us;     /* after the next failure */
	uint64_t credit_us;      /* downs are paid for up to then */
	uint32_t failed_bps;
	uint64_t due_us;
	uint32_t ups, downs, pauses; /* so far */
};

void choice_init(struct choice *c);

/** Another wish: followed with the next decision, with no regard to what was tried before. */
void choice_set_wish(struct choice *c, const struct choice_wish *wish);

/**
 * Decide. To be called when table or estimate changed, and at choice_due_us().
 *
 * @param t             of at least one option
 * @param available_bps what the viewer's link takes, audio included; UINT32_MAX: no limit known
 * @param audio_bps     what its audio takes of that
 */
struct choice_pick choice_update(struct choice *c, const struct layer_table *t,
				 uint32_t available_bps, uint32_t audio_bps, uint64_t now_us);

/** What an estimate has to show for what failed to be tried again; 0: nothing waits for that. */
uint64_t choice_anew_bps(const struct choice *c, uint64_t now_us);

/** When choice_update() is to be called again though nothing changed; UINT64_MAX: no need. */
uint64_t choice_due_us(const struct choice *c);

#endif
