/* tests/sim/kit_path.h - a sender with an estimator, a link, and a receiver that sends feedback.
 *
 * The real machines with a network between them, on a clock that jumps from event to event. What the
 * sender sends is decided by the estimate: all of it, or the best of a ladder of layers.
 */
#ifndef TESTS_SIM_KIT_PATH_H
#define TESTS_SIM_KIT_PATH_H

#include "media/bwe.h"
#include "tests/sim/kit_link.h"

enum { SIM_MAX_LAYERS = 4, SIM_SAMPLE_US = 100000, SIM_MAX_SAMPLES = 3000 };

enum sim_peer {
	SIM_PEER_FEEDBACK, /* answers with transport-wide feedback */
	SIM_PEER_REMB,     /* answers with REMB of what arrives, half as much again */
	SIM_PEER_REPORTS,  /* receiver reports only */
};

struct sim_path_config {
	const struct sim_step *forward, *back;
	size_t forward_steps, back_steps;
	uint64_t seed;
	uint64_t end_us;
	uint32_t start_bps;
	/* Layers in ascending order; none: the source fills the estimate. */
	uint32_t layers_bps[SIM_MAX_LAYERS];
	size_t layers;
	uint32_t keyframe_every_frames; /* 0: none; a key frame is six ordinary ones */
	uint32_t fps;                   /* 0: 30 */
	enum sim_peer peer;
};

/* Means over SIM_SAMPLE_US. */
struct sim_sample {
	uint64_t at_us;
	uint64_t capacity_bps; /* 0: no bottleneck */
	uint64_t target_bps;
	uint64_t sent_bps, received_bps; /* probes included */
	uint64_t media_bps;              /* received media */
	uint32_t delay_us;               /* largest, beyond the link's own */
	uint32_t layer;                  /* sent; 1 is the lowest, 0 without layers */
};

struct sim_path_result {
	struct sim_sample samples[SIM_MAX_SAMPLES];
	size_t count;
	uint64_t sent, lost, overflowed; /* packets */
	uint32_t switches;               /* of layers */
	struct bwe_stats bwe;
};

/** Run it to its end. The result lives until the next run. */
const struct sim_path_result *sim_path_run(const struct sim_path_config *config);

/* Over the samples from from_us until before to_us: */
/** Received media in per cent of the capacity. */
double sim_path_use(const struct sim_path_result *r, uint64_t from_us, uint64_t to_us);
/** The delay that `percent` of the samples do not exceed. */
uint32_t sim_path_delay_us(const struct sim_path_result *r, uint64_t from_us, uint64_t to_us,
			   unsigned percent);
/** Lost or overflowed of what was sent, in per cent, over the whole run. */
double sim_path_loss(const struct sim_path_result *r);
/** When from from_us on the layer sent is `layer` for good until to_us; to_us: never. */
uint64_t sim_path_settled_us(const struct sim_path_result *r, uint32_t layer, uint64_t from_us,
			     uint64_t to_us);

/** Print the run as a picture to build/sim/NAME.svg, and in one line to the log. */
void sim_path_plot(const struct sim_path_result *r, const char *name, const char *title);

#endif
