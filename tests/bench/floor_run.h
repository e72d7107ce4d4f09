/* tests/bench/floor_run.h - what the floor's two processes share: the sender that is measured, and
 * the feeder and receiver at its other end.
 *
 * A run is a row of phases, each in one mode, each with a part at its beginning that is not
 * measured. The feeder alone decides when a phase ends, and says so in every packet.
 */
#ifndef BENCH_FLOOR_RUN_H
#define BENCH_FLOOR_RUN_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/histogram.h"
#include "net/srtp.h"
#include "tests/bench/floor_trace.h"

enum {
	FLOOR_MAX_VIEWERS = 16384,
	FLOOR_MAX_PHASES = 64,
	FLOOR_WARM_PERCENT = 15, /* of a phase, not measured */
};

enum floor_mode { FLOOR_GSO, FLOOR_SENDTO, FLOOR_MODES };

struct floor_options {
	uint32_t viewers;
	enum seal_profile profile;
	enum seal_engine_kind engine;
	bool gro, as_browser, json;
	bool modes[FLOOR_MODES];
	unsigned rounds;
	double seconds;              /* of a phase */
	int send_core, receive_core; /* -1: anywhere */
	const char *trace_path;
};

/* The first bytes of each source packet's payload; both ends are this program. */
struct floor_packet {
	uint32_t pass;
	uint32_t number;             /* of its kind, from 0 */
	uint32_t first[TRACE_KINDS]; /* with runs_pass: numbers of the pass's first segments */
	uint16_t segment_bytes;
	uint8_t kind, mode, phase;
	bool is_measured, runs_pass, is_last; /* is_last: of the run */
};
_Static_assert(sizeof(struct floor_packet) <= TRACE_MIN_PAYLOAD_BYTES, "fits any payload");

enum floor_state {
	FLOOR_OPENING,
	FLOOR_OPEN,    /* the receiver's sockets are there, and their addresses */
	FLOOR_SENDING, /* the sender has its sessions */
	FLOOR_SENT,    /* all it will ever send */
	FLOOR_FAILED,
};

struct floor_cpu {
	uint64_t thread_ns;    /* CLOCK_THREAD_CPUTIME_ID */
	uint64_t schedstat_ns; /* /proc/thread-self/schedstat, time on a CPU */
	uint64_t core_ns;      /* not idle, of the core it is pinned to; 0 where it is not */
};

struct floor_phase {
	enum floor_mode mode;
	/* The sender's: */
	struct floor_cpu sent_cpu;
	uint64_t packets, messages, blocked, missing;
	/* The receiver's: */
	struct floor_cpu received_cpu;
	uint64_t received, elapsed_us;
	struct histogram frame_us, audio_us;
};

/* Lies in memory that both processes map. Each field has one writer, and is read by the other side
 * once `state`, or the end of the process, says that it is written. */
struct floor_shared {
	_Atomic uint32_t state; /* enum floor_state */
	struct sockaddr_in viewers[FLOOR_MAX_VIEWERS];
	uint64_t kernel_drops;
	unsigned phase_count;
	struct floor_phase phases[FLOOR_MAX_PHASES];
};

/** Of the calling thread. */
void floor_read_cpu(struct floor_cpu *out, int core);
void floor_subtract_cpu(struct floor_cpu *from, const struct floor_cpu *start);
void floor_pin(int core);

/** Send until the feeder says that it was the last packet. @param fd bound, IPv4
 *  @return 0 or a negative errno */
int floor_send(struct floor_shared *shared, const struct floor_options *options,
	       const struct trace *trace, int fd);

/** Feed, receive, until all phases are over. @param to where the sender receives
 *  @return 0 or a negative errno */
int floor_receive(struct floor_shared *shared, const struct floor_options *options,
		  const struct trace *trace, const struct sockaddr_in *to);

/** Write the trace of what one address gets from a port of this host, seen on the loopback device.
 *  @return 0 or a negative errno: -EPERM without the right to look */
int floor_record(uint16_t port, struct in_addr viewer, double seconds, unsigned tag_bytes,
		 FILE *out);

#endif
