/* tests/bench/floor_receive.c - the other end: one thread that feeds and receives, as sluice-load is
 * one, through the same sockets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loadgen/sockets.h"
#include "net/loop.h"
#include "pool/bytes.h"
#include "tests/bench/floor_run.h"

enum {
	SENT = 4096,        /* source packets of each kind whose time is remembered */
	LINGER_US = 300000, /* after the last packet, for what is still under way */
	START_US = 200000,  /* before the first */
	READY_WAIT_US = 5000,
	TYPE_MASK = 0x7f,
	AUDIO_TYPE = 111,
};

struct sent {
	uint64_t at_us;
	struct floor_phase *phase; /* NULL: not measured */
};

struct receiver {
	struct floor_shared *shared;
	const struct floor_options *options;
	const struct trace *trace;
	struct loop *loop;
	struct loop_timer *timer;
	struct sockets *sockets;
	int feed_fd;
	uint64_t now_us; /* of the batch being received */
	bool is_over, sender_is_done;
	int error;

	uint64_t cycle_us; /* when this repetition of the trace began */
	uint32_t at;       /* next event */
	uint32_t next_number[TRACE_KINDS];
	/* By segment: its number in this repetition, given when the repetition begins. */
	uint32_t numbers[TRACE_SEGMENTS];

	unsigned phase;
	uint64_t phase_us, measured_us; /* when it began; when measuring began, 0: not yet */
	struct floor_cpu start;
	struct sent sent[TRACE_KINDS][SENT];
};

/* --- receiving --------------------------------------------------------------------------- */

static void on_batch(void *arg)
{
	struct receiver *r = arg;

	r->now_us = clock_now_us();
}

static void on_datagram(void *arg, uint32_t viewer, const struct net_path *path, uint8_t *bytes,
			size_t len)
{
	struct receiver *r = arg;
	bool is_audio;
	const struct sent *sent;

	(void)viewer;
	(void)path;
	if (len < 12)
		return;
	is_audio = (bytes[1] & TYPE_MASK) == AUDIO_TYPE;
	sent = &r->sent[is_audio ? TRACE_AUDIO : TRACE_VIDEO][be16_read(bytes + 2) % SENT];
	if (!sent->phase)
		return;
	sent->phase->received++;
	if (is_audio)
		histogram_add(&sent->phase->audio_us, r->now_us - sent->at_us);
	else if (bytes[1] & 0x80)
		histogram_add(&sent->phase->frame_us, r->now_us - sent->at_us);
}

/* --- phases ------------------------------------------------------------------------------ */

static void end_phase(struct receiver *r, uint64_t now_us)
{
	struct floor_phase *phase = &r->shared->phases[r->phase];

	floor_read_cpu(&phase->received_cpu, r->options->receive_core);
	floor_subtract_cpu(&phase->received_cpu, &r->start);
	phase->elapsed_us = now_us - r->measured_us;
	r->measured_us = 0;
	r->phase++;
	r->phase_us = now_us;
}

/* Between two passes of the same kind of work: phases change here only. */
static void advance_phase(struct receiver *r, uint64_t now_us)
{
	uint64_t length_us = (uint64_t)(r->options->seconds * 1e6);

	if (r->phase_us == 0)
		r->phase_us = now_us;
	if (now_us - r->phase_us >= length_us)
		end_phase(r, now_us);
	if (!r->measured_us && now_us - r->phase_us >= length_us * FLOOR_WARM_PERCENT / 100) {
		r->measured_us = now_us;
		floor_read_cpu(&r->start, r->options->receive_core);
	}
}

/* --- feeding ----------------------------------------------------------------------------- */

static void begin_cycle(struct receiver *r)
{
	r->at = 0;
	for (uint32_t i = 0; i < r->trace->segment_count; i++)
		r->numbers[i] = r->next_number[r->trace->segments[i].kind]++;
}

/* A pass belongs to the phase in which its last packet was fed, as the sender has it. */
static void complete_pass(struct receiver *r, const struct trace_pass *pass,
			  struct floor_packet *packet)
{
	for (uint32_t i = pass->first + pass->count; i-- > pass->first;) {
		uint8_t kind = r->trace->segments[i].kind;

		packet->first[kind] = r->numbers[i];
		r->sent[kind][r->numbers[i] % SENT].phase =
		    packet->is_measured ? &r->shared->phases[r->phase] : NULL;
	}
}

static void feed(struct receiver *r, const struct trace_event *event)
{
	const struct trace_segment *segment = &r->trace->segments[event->segment];
	uint8_t bytes[TRACE_MAX_PAYLOAD_BYTES] = { 0 };
	uint32_t number = r->numbers[event->segment];
	struct floor_packet packet = {
		.pass = event->pass,
		.number = number,
		.kind = segment->kind,
		.mode = (uint8_t)r->shared->phases[r->phase].mode,
		.phase = (uint8_t)r->phase,
		.is_measured = r->measured_us != 0,
		.runs_pass = event->runs_pass,
	};

	r->sent[segment->kind][number % SENT] = (struct sent){ .at_us = clock_now_us() };
	if (event->runs_pass)
		complete_pass(r, &r->trace->passes[event->pass], &packet);
	memcpy(bytes, &packet, sizeof(packet));
	(void)send(r->feed_fd, bytes, segment->payload_bytes, 0);
}

static void finish(struct receiver *r, uint64_t now_us)
{
	uint8_t bytes[TRACE_MIN_PAYLOAD_BYTES] = { 0 };
	struct floor_packet packet = { .is_last = true };

	memcpy(bytes, &packet, sizeof(packet));
	for (unsigned i = 0; i < 3; i++)
		(void)send(r->feed_fd, bytes, sizeof(bytes), 0);
	r->is_over = true;
	loop_timer_arm(r->timer, now_us + LINGER_US);
}

/* A sender that is behind has its queue to work off; what it sent last is still to be received. */
static void linger(struct receiver *r, uint64_t now_us)
{
	uint32_t state = atomic_load_explicit(&r->shared->state, memory_order_acquire);

	if (r->sender_is_done) {
		loop_stop(r->loop);
		return;
	}
	r->sender_is_done = state != FLOOR_SENDING;
	loop_timer_arm(r->timer, now_us + LINGER_US);
}

/* The sender gets its sessions ready meanwhile. */
static void wait_for_sender(struct receiver *r, uint64_t now_us)
{
	uint32_t state = atomic_load_explicit(&r->shared->state, memory_order_acquire);

	if (state == FLOOR_FAILED) {
		loop_stop(r->loop);
	} else if (state == FLOOR_SENDING) {
		begin_cycle(r);
		r->cycle_us = now_us + START_US;
		loop_timer_arm(r->timer, r->cycle_us);
	} else {
		loop_timer_arm(r->timer, now_us + READY_WAIT_US);
	}
}

static void on_timer(void *arg)
{
	struct receiver *r = arg;
	uint64_t now_us = clock_now_us();

	if (r->is_over) {
		linger(r, now_us);
		return;
	}
	if (!r->cycle_us) {
		wait_for_sender(r, now_us);
		return;
	}
	while (r->cycle_us + r->trace->events[r->at].at_us <= now_us) {
		const struct trace_event *event = &r->trace->events[r->at++];

		if (event->runs_pass)
			advance_phase(r, now_us);
		if (r->phase == r->shared->phase_count) {
			finish(r, now_us);
			return;
		}
		feed(r, event);
		if (r->at == r->trace->segment_count) {
			r->cycle_us += r->trace->period_us;
			begin_cycle(r);
		}
	}
	loop_timer_arm(r->timer, r->cycle_us + r->trace->events[r->at].at_us);
}

/* --- opening ----------------------------------------------------------------------------- */

static int open_feed(struct receiver *r, const struct sockaddr_in *to)
{
	r->feed_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (r->feed_fd < 0 || connect(r->feed_fd, (const struct sockaddr *)to, sizeof(*to)))
		return -errno;
	return 0;
}

static int open_viewers(struct receiver *r)
{
	struct sockets_config config = {
		.loop = r->loop,
		.gro = r->options->gro,
		.peers = r->options->viewers,
		.on_datagram = on_datagram,
		.on_batch = on_batch,
		.arg = r,
	};
	int err = net_addr_parse_ip(&config.local, "127.0.0.1");

	if (!err)
		err = sockets_create(&r->sockets, &config);
	for (uint32_t v = 0; v < r->options->viewers && !err; v++) {
		struct net_addr addr;
		struct sockaddr_storage name;

		err = sockets_add(r->sockets, v, &addr);
		if (err)
			break;
		(void)net_addr_to_sockaddr(&addr, AF_INET, &name);
		memcpy(&r->shared->viewers[v], &name, sizeof(struct sockaddr_in));
	}
	return err;
}

static int open_all(struct receiver *r, const struct sockaddr_in *to)
{
	int err = loop_create(&r->loop);

	if (!err)
		err = loop_timer_open(r->loop, &r->timer, on_timer, r);
	if (!err)
		err = open_feed(r, to);
	return err ? err : open_viewers(r);
}

int floor_receive(struct floor_shared *shared, const struct floor_options *options,
		  const struct trace *trace, const struct sockaddr_in *to)
{
	struct receiver *r = calloc(1, sizeof(*r));
	struct sockets_stats stats;
	int err;

	if (!r)
		return -ENOMEM;
	r->shared = shared;
	r->options = options;
	r->trace = trace;
	err = open_all(r, to);
	atomic_store_explicit(&shared->state, err ? FLOOR_FAILED : FLOOR_OPEN,
			      memory_order_release);
	if (!err) {
		loop_timer_arm(r->timer, clock_now_us());
		loop_run(r->loop);
		sockets_stats(r->sockets, &stats);
		shared->kernel_drops = stats.kernel_drops;
	}
	sockets_destroy(r->sockets);
	if (r->timer)
		loop_timer_close(r->timer);
	if (r->loop)
		loop_destroy(r->loop);
	if (r->feed_fd > 0)
		close(r->feed_fd);
	free(r);
	return err;
}
