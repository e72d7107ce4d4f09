/* tests/tools/swarm.c - many clients of one stream that join, leave, vanish and move on command.
 *
 * swarm BASE_URL STREAM [FPS VIDEO_BPS]
 *
 * Lines on stdin, each answered by one line of JSON when it is done; at the end of stdin all that
 * is left vanishes. Times are those of CLOCK_MONOTONIC.
 *   prepare        draw and encode what "publish" sends
 *   publish        {"asked_us": when the offer left}
 *   watch N RATE   N viewers join, RATE a second, and stay: {}
 *   stats          of all viewers that stay; join_us is from the offer to the first packet
 *   mark           arrivals count anew: the first ones, joins, and gaps of those who are there: {}
 *   churn N WIDTH  N viewers come and go, WIDTH at a time, each in its way (struct manner)
 *   rebind         the first viewer gets another port, and answers when both media and a packet
 *                  that it asked for again came there: {"us": how long that took}
 *   leave          all that stay and the publisher, by DELETE: {}
 *
 * Every viewer asks for nothing by itself, so each gap in its numbers is a loss; of every tenth
 * each packet is decrypted as well.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loadgen/emitter.h"
#include "loadgen/histogram.h"
#include "loadgen/peer.h"
#include "media/rtcp.h"
#include "media/rtp.h"
#include "media/rtx.h"
#include "net/random.h"

enum {
	MAX_CLIENTS = 16384,
	MAX_STAYING = 4096,
	MAX_WIDTH = 64,
	PUBLISHER = MAX_CLIENTS - 1, /* its number: never one of a viewer's socket */
	TICK_US = 2000,
	OPENED = 10, /* every so many-th viewer decrypts */
	ASK_AGAIN_US = 20000,
	GIVE_UP_US = 60000000,
	REBIND_LIMIT_US = 10000000,
	LINE_BYTES = 256,
	RTCP_BYTES = 256,
	HELPERS = 2,
};

/* One media SSRC as a viewer got it. */
struct flow {
	uint32_t ssrc, rtx_ssrc, timestamp;
	uint64_t highest, pkts, last_us;
	uint64_t first_us;   /* since the last mark; 0: none */
	bool is_first_key;   /* that packet began a key frame */
	bool is_first_known; /* it was decrypted, so that is_first_key means something */
	uint8_t pt;
};

struct tally {
	uint64_t pkts, lost, repeated, seq_back, timestamp_back, ssrc_changes, bad_auth, repairs;
	struct histogram audio_gap_us, join_us;
};

/* How a visitor behaves: what it waits for, and how it ends. */
struct manner {
	enum stage { STAGE_ASKED, STAGE_CHECKED, STAGE_HELLO, STAGE_MEDIA, STAGES } until;
	bool is_polite; /* DELETE; else not another word */
};

static const struct manner manners[] = {
	{ STAGE_MEDIA, true },   { STAGE_MEDIA, false }, { STAGE_CHECKED, false },
	{ STAGE_HELLO, false },  { STAGE_MEDIA, true },  { STAGE_HELLO, true },
	{ STAGE_CHECKED, true }, { STAGE_ASKED, false },
};
enum { MANNERS = sizeof(manners) / sizeof(manners[0]) };

struct client {
	struct swarm *swarm;
	struct peer *peer;
	const struct manner *manner; /* NULL: stays */
	struct flow flows[NEGOTIATED_KINDS];
	uint64_t began_us;
	bool is_opened, is_marked;
};

struct rebind {
	uint64_t began_us, asked_us; /* the first 0: none under way */
	bool has_media;
};

struct churn {
	unsigned wanted, begun, ended, width;
	unsigned left_at[STAGES], deleted, vanished, failed;
	bool is_running;
	struct client *at_work[MAX_WIDTH];
};

struct swarm {
	struct peer_ground ground;
	struct loop_timer *timer;
	struct loop_watch *input;
	char whip[SIGNAL_URL_BYTES], whep[SIGNAL_URL_BYTES];
	struct source_config source_config;
	struct source *source;
	struct emitter *emitter;
	bool is_publish_asked, is_leave_asked, is_over;

	struct client *staying[MAX_STAYING];
	unsigned staying_count, wanted, rate_per_s;
	uint64_t watch_us;
	unsigned watch_from;
	uint32_t next_number;
	struct tally tally;
	struct churn churn;
	struct rebind rebind;
	char line[LINE_BYTES];
	size_t line_bytes;
};

static void answer(const char *json)
{
	puts(json);
	fflush(stdout);
}

/* --- what arrives ------------------------------------------------------------------------ */

static struct flow *flow_of(struct client *c, const struct rtp_packet *rtp, bool *is_rtx)
{
	const struct negotiated *n = peer_negotiated(c->peer);

	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		struct flow *f = &c->flows[kind];

		if (!n->media[kind].is_accepted ||
		    !negotiated_by_pt(&n->media[kind], rtp->payload_type, is_rtx))
			continue;
		if (*is_rtx)
			return f;
		if (f->pkts && (f->ssrc != rtp->ssrc || f->pt != rtp->payload_type))
			c->swarm->tally.ssrc_changes++;
		f->ssrc = rtp->ssrc;
		f->pt = rtp->payload_type;
		return f;
	}
	return NULL;
}

/* Nothing was asked for again and nothing overtakes on this host: numbers only rise, by one. */
static void judge_order(struct client *c, struct flow *f, const struct rtp_packet *rtp)
{
	struct tally *t = &c->swarm->tally;
	uint64_t number;

	if (f->pkts == 0) {
		f->highest = (uint64_t)RTP_SEQ_CYCLE + rtp->seq;
		return;
	}
	number = rtp_seq_unwrap(f->highest, rtp->seq);
	if (number == f->highest)
		t->repeated++;
	else if (number < f->highest)
		t->seq_back++;
	else
		t->lost += number - f->highest - 1;
	if (number > f->highest && rtp_timestamp_diff(rtp->timestamp, f->timestamp) < 0)
		t->timestamp_back++;
	if (number > f->highest)
		f->highest = number;
}

static void note_first(struct client *c, struct flow *f, const uint8_t *bytes,
		       const struct rtp_packet *rtp)
{
	struct codec_info info;

	f->first_us = c->swarm->ground.now_us;
	f->is_first_known = c->is_opened;
	f->is_first_key =
	    c->is_opened &&
	    codec_inspect(CODEC_VP8, bytes + rtp->payload_offset, rtp->payload_bytes, &info) &&
	    info.flags & CODEC_KEYFRAME_START;
}

static void on_media(struct client *c, struct flow *f, const uint8_t *bytes,
		     const struct rtp_packet *rtp)
{
	uint64_t now_us = c->swarm->ground.now_us;
	bool is_audio = f == &c->flows[MEDIA_AUDIO];

	if (!c->flows[MEDIA_AUDIO].pkts && !c->flows[MEDIA_VIDEO].pkts)
		histogram_add(&c->swarm->tally.join_us, now_us - peer_asked_us(c->peer));
	judge_order(c, f, rtp);
	c->swarm->tally.pkts++;
	if (is_audio && c->is_marked && f->first_us)
		histogram_add(&c->swarm->tally.audio_gap_us, now_us - f->last_us);
	if (!f->first_us)
		note_first(c, f, bytes, rtp);
	f->pkts++;
	f->last_us = now_us;
	f->timestamp = rtp->timestamp;
}

static void ask_again(struct swarm *s)
{
	struct client *c = s->staying[0];
	struct flow *f = &c->flows[MEDIA_VIDEO];
	uint8_t bytes[RTCP_BYTES];
	uint16_t seq = (uint16_t)f->highest;
	struct rtcp_writer w;

	s->rebind.asked_us = s->ground.now_us;
	rtcp_writer_init(&w, bytes, sizeof(bytes) - SEAL_RTCP_MAX_EXTRA_BYTES);
	if (rtcp_write_nack(&w, 1, f->ssrc, &seq, 1) > 0)
		peer_send_rtcp(c->peer, bytes, w.len_bytes, sizeof(bytes));
}

static void on_repair(struct client *c)
{
	struct swarm *s = c->swarm;
	char text[LINE_BYTES];

	s->tally.repairs++;
	if (c != s->staying[0] || !s->rebind.began_us || !s->rebind.has_media)
		return;
	snprintf(text, sizeof(text), "{\"us\": %" PRIu64 "}",
		 s->ground.now_us - s->rebind.began_us);
	s->rebind.began_us = 0;
	answer(text);
}

static void on_rtp(void *arg, uint64_t came_us, uint8_t *bytes, size_t len)
{
	struct client *c = arg;
	struct rebind *rebind = &c->swarm->rebind;
	struct rtp_packet rtp;
	struct flow *f;
	bool is_rtx;

	(void)came_us;
	if (rtp_parse_header(bytes, len, &rtp) != RTP_OK)
		return;
	f = flow_of(c, &rtp, &is_rtx);
	if (!f)
		return;
	if ((c->is_opened || is_rtx) && (peer_open_rtp(c->peer, bytes, &len) != SEAL_OK ||
					 rtp_parse(bytes, len, &rtp) != RTP_OK)) {
		c->swarm->tally.bad_auth++;
		return;
	}
	if (is_rtx) {
		on_repair(c);
		return;
	}
	on_media(c, f, bytes, &rtp);
	if (c == c->swarm->staying[0] && rebind->began_us && !rebind->has_media) {
		rebind->has_media = true;
		ask_again(c->swarm);
	}
}

static void on_forged(void *arg)
{
	struct client *c = arg;

	c->swarm->tally.bad_auth++;
}

static void on_rtcp(void *arg, uint8_t *bytes, size_t len)
{
	(void)arg;
	(void)bytes;
	(void)len;
}

static void on_nothing(void *arg)
{
	(void)arg;
}

static const struct peer_handlers handlers = { on_nothing, on_rtp,     on_rtcp,
					       on_forged,  on_nothing, on_nothing };

/* --- joining ----------------------------------------------------------------------------- */

static struct client *join(struct swarm *s, const struct manner *manner)
{
	struct client *c = calloc(1, sizeof(*c));
	struct peer_config config = {
		.number = s->next_number++,
		.role = OFFER_WATCH,
		.url = s->whep,
		.give_up_us = s->ground.now_us + GIVE_UP_US,
		.handlers = &handlers,
		.arg = c,
	};

	if (!c || config.number >= PUBLISHER || peer_create(&c->peer, &s->ground, &config) != 0) {
		fprintf(stderr, "swarm: no more clients\n");
		exit(1);
	}
	c->swarm = s;
	c->manner = manner;
	c->is_opened = config.number % OPENED == 0;
	c->began_us = s->ground.now_us;
	peer_start(c->peer);
	return c;
}

static void destroy(struct client *c)
{
	peer_destroy(c->peer);
	free(c);
}

static bool has_media(const struct client *c)
{
	return c->flows[MEDIA_AUDIO].pkts && c->flows[MEDIA_VIDEO].pkts;
}

static void join_due(struct swarm *s)
{
	uint64_t past_us = s->ground.now_us - s->watch_us;
	uint64_t due = s->watch_from + past_us * s->rate_per_s / 1000000 + 1;

	if (s->staying_count == s->wanted)
		return;
	while (s->staying_count < s->wanted && s->staying_count < due)
		s->staying[s->staying_count++] = join(s, NULL);
	if (s->staying_count == s->wanted)
		answer("{}");
}

/* --- coming and going -------------------------------------------------------------------- */

static enum stage stage_of(const struct client *c)
{
	struct transport_status status;

	if (has_media(c))
		return STAGE_MEDIA;
	if (peer_state(c->peer) < PEER_CONNECTING)
		return STAGE_ASKED;
	transport_status(peer_transport(c->peer), &status);
	return status.state >= TRANSPORT_STATE_HANDSHAKE ? STAGE_HELLO : STAGE_CHECKED;
}

static bool has_failed(const struct client *c)
{
	return peer_state(c->peer) == PEER_FAILED ||
	       c->swarm->ground.now_us - c->began_us > GIVE_UP_US;
}

/* @return true: it is gone */
static bool advance(struct churn *churn, struct client *c)
{
	enum stage stage;

	if (peer_state(c->peer) == PEER_LEAVING)
		return false;
	if (peer_state(c->peer) == PEER_GONE)
		return true;
	if (has_failed(c)) {
		if (churn->failed++ == 0)
			fprintf(stderr, "swarm: %s\n", peer_error(c->peer));
		return true;
	}
	stage = stage_of(c);
	if (stage < c->manner->until)
		return false;
	churn->left_at[stage]++;
	churn->deleted += c->manner->is_polite;
	churn->vanished += !c->manner->is_polite;
	if (!c->manner->is_polite)
		return true;
	peer_leave(c->peer);
	return false;
}

static void tell_churn(const struct churn *churn)
{
	char text[LINE_BYTES];

	snprintf(text, sizeof(text),
		 "{\"deleted\": %u, \"vanished\": %u, \"failed\": %u, \"asked\": %u, "
		 "\"checked\": %u, \"hello\": %u, \"media\": %u}",
		 churn->deleted, churn->vanished, churn->failed, churn->left_at[STAGE_ASKED],
		 churn->left_at[STAGE_CHECKED], churn->left_at[STAGE_HELLO],
		 churn->left_at[STAGE_MEDIA]);
	answer(text);
}

static void go_round(struct swarm *s)
{
	struct churn *churn = &s->churn;

	for (unsigned i = 0; i < churn->width && churn->is_running; i++) {
		struct client **at = &churn->at_work[i];

		if (*at && advance(churn, *at)) {
			destroy(*at);
			*at = NULL;
			churn->ended++;
		}
		if (!*at && churn->begun < churn->wanted)
			*at = join(s, &manners[churn->begun++ % MANNERS]);
	}
	if (churn->is_running && churn->ended == churn->wanted) {
		churn->is_running = false;
		tell_churn(churn);
	}
}

/* --- words ------------------------------------------------------------------------------- */

/* Of the flows since the last mark: how many began, when the last of them did. */
struct beginnings {
	unsigned flows, keys, opened;
	uint64_t last_us;
};

static void add_beginnings(const struct client *c, struct beginnings *b)
{
	const struct flow *video = &c->flows[MEDIA_VIDEO];

	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		if (!c->flows[kind].first_us)
			continue;
		b->flows++;
		if (c->flows[kind].first_us > b->last_us)
			b->last_us = c->flows[kind].first_us;
	}
	b->opened += video->first_us && video->is_first_known;
	b->keys += video->first_us && video->is_first_known && video->is_first_key;
}

static void put_quantiles(const char *name, const struct histogram *h)
{
	printf(", \"%s\": {\"count\": %" PRIu64 ", \"p50\": %" PRIu64 ", \"p99\": %" PRIu64
	       ", \"p999\": %" PRIu64 ", \"max\": %" PRIu64 "}",
	       name, h->count, histogram_quantile(h, 500), histogram_quantile(h, 990),
	       histogram_quantile(h, 999), h->max);
}

static void tell_stats(struct swarm *s)
{
	const struct tally *t = &s->tally;
	unsigned joined = 0, failed = 0;
	struct beginnings b = { 0 };
	struct sockets_stats sockets;
	uint64_t last_us = 0;

	for (unsigned i = 0; i < s->staying_count; i++) {
		const struct client *c = s->staying[i];

		joined += has_media(c);
		failed += peer_state(c->peer) == PEER_FAILED;
		add_beginnings(c, &b);
		for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
			if (c->flows[kind].last_us > last_us)
				last_us = c->flows[kind].last_us;
		if (peer_state(c->peer) == PEER_FAILED && failed == 1)
			fprintf(stderr, "swarm: %s\n", peer_error(c->peer));
	}
	sockets_stats(s->ground.sockets, &sockets);
	printf("{\"now_us\": %" PRIu64 ", \"joined\": %u, \"failed\": %u, \"pkts\": %" PRIu64
	       ", \"lost\": %" PRIu64 ", \"repeated\": %" PRIu64 ", \"seq_back\": %" PRIu64
	       ", \"timestamp_back\": %" PRIu64 ", \"ssrc_changes\": %" PRIu64
	       ", \"bad_auth\": %" PRIu64 ", \"repairs\": %" PRIu64 ", \"last_us\": %" PRIu64,
	       clock_now_us(), joined, failed, t->pkts, t->lost, t->repeated, t->seq_back,
	       t->timestamp_back, t->ssrc_changes, t->bad_auth, t->repairs, last_us);
	printf(", \"begun\": %u, \"begun_keys\": %u, \"begun_opened\": %u, \"begun_us\": %" PRIu64,
	       b.flows, b.keys, b.opened, b.last_us);
	put_quantiles("gap_us", &t->audio_gap_us);
	put_quantiles("join_us", &t->join_us);
	printf(", \"kernel_drops\": %" PRIu64 "}", sockets.kernel_drops);
	answer("");
}

static void mark(struct swarm *s)
{
	histogram_init(&s->tally.audio_gap_us);
	histogram_init(&s->tally.join_us);
	for (unsigned i = 0; i < s->staying_count; i++) {
		struct client *c = s->staying[i];

		c->is_marked = has_media(c);
		for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++)
			c->flows[kind].first_us = 0;
	}
	answer("{}");
}

static void prepare(struct swarm *s)
{
	if (!s->source && source_create(&s->source, &s->source_config) != 0) {
		fprintf(stderr, "swarm: no picture\n");
		exit(1);
	}
}

static void publish(struct swarm *s)
{
	struct emitter_config config = {
		.number = PUBLISHER,
		.url = s->whip,
		.give_up_us = s->ground.now_us + GIVE_UP_US,
		.pacing = PUBLISHER_PACING_FRAME,
	};

	prepare(s);
	config.source = s->source;
	s->ground.now_us = clock_now_us();
	if (s->emitter || emitter_create(&s->emitter, &s->ground, &config) != 0)
		exit(1);
	emitter_start(s->emitter);
	s->is_publish_asked = true;
}

static void watch_publisher(struct swarm *s)
{
	char text[LINE_BYTES];
	struct peer *p;

	if (!s->is_publish_asked)
		return;
	p = emitter_peer(s->emitter);
	if (peer_state(p) < PEER_CONNECTED)
		return;
	s->is_publish_asked = false;
	snprintf(text, sizeof(text), "{\"asked_us\": %" PRIu64 ", \"error\": \"%s\"}",
		 peer_asked_us(p), peer_error(p));
	answer(text);
}

static void begin_rebind(struct swarm *s)
{
	if (s->staying_count == 0 || !has_media(s->staying[0])) {
		answer("{\"error\": \"no viewer\"}");
		return;
	}
	s->rebind = (struct rebind){ .began_us = s->ground.now_us };
	if (peer_rebind(s->staying[0]->peer) != 0)
		exit(1);
}

static void watch_rebind(struct swarm *s)
{
	struct rebind *r = &s->rebind;

	if (!r->began_us)
		return;
	if (s->ground.now_us - r->began_us > REBIND_LIMIT_US) {
		answer(r->has_media ? "{\"error\": \"nothing was sent again\"}"
				    : "{\"error\": \"no media\"}");
		r->began_us = 0;
	} else if (r->has_media && s->ground.now_us - r->asked_us > ASK_AGAIN_US) {
		ask_again(s);
	}
}

static void leave(struct swarm *s)
{
	for (unsigned i = 0; i < s->staying_count; i++)
		peer_leave(s->staying[i]->peer);
	if (s->emitter)
		peer_leave(emitter_peer(s->emitter));
	s->is_leave_asked = true;
}

static void watch_leavers(struct swarm *s)
{
	if (!s->is_leave_asked ||
	    (s->emitter && peer_state(emitter_peer(s->emitter)) == PEER_LEAVING))
		return;
	for (unsigned i = 0; i < s->staying_count; i++)
		if (peer_state(s->staying[i]->peer) == PEER_LEAVING)
			return;
	for (unsigned i = 0; i < s->staying_count; i++)
		destroy(s->staying[i]);
	s->staying_count = s->wanted = 0;
	emitter_destroy(s->emitter);
	s->emitter = NULL;
	s->is_leave_asked = false;
	answer("{}");
}

static bool obey_numbers(struct swarm *s, const char *line)
{
	unsigned n, m;

	if (sscanf(line, "watch %u %u", &n, &m) == 2 && n <= MAX_STAYING - s->staying_count && m) {
		s->wanted = s->staying_count + n;
		s->rate_per_s = m;
		s->watch_from = s->staying_count;
		s->watch_us = s->ground.now_us;
		return true;
	}
	if (sscanf(line, "churn %u %u", &n, &m) == 2 && n && m && m <= MAX_WIDTH) {
		s->churn = (struct churn){ .wanted = n, .width = m, .is_running = true };
		return true;
	}
	return false;
}

static void obey(struct swarm *s, const char *line)
{
	if (strcmp(line, "prepare") == 0) {
		prepare(s);
		answer("{}");
	} else if (strcmp(line, "publish") == 0) {
		publish(s);
	} else if (strcmp(line, "stats") == 0) {
		tell_stats(s);
	} else if (strcmp(line, "mark") == 0) {
		mark(s);
	} else if (strcmp(line, "rebind") == 0) {
		begin_rebind(s);
	} else if (strcmp(line, "leave") == 0) {
		leave(s);
	} else if (!obey_numbers(s, line)) {
		answer("{\"error\": \"unknown command\"}");
	}
}

static void on_input(void *arg, unsigned events)
{
	struct swarm *s = arg;
	ssize_t n = read(STDIN_FILENO, s->line + s->line_bytes, sizeof(s->line) - s->line_bytes);
	char *end;

	(void)events;
	if (n <= 0) {
		s->is_over = true;
		loop_watch_set(s->input, 0);
		return;
	}
	s->ground.now_us = clock_now_us();
	s->line_bytes += (size_t)n;
	while ((end = memchr(s->line, '\n', s->line_bytes))) {
		*end = '\0';
		obey(s, s->line);
		s->line_bytes -= (size_t)(end + 1 - s->line);
		memmove(s->line, end + 1, s->line_bytes);
	}
}

/* --- the loop ---------------------------------------------------------------------------- */

static void on_tick(void *arg)
{
	struct swarm *s = arg;

	s->ground.now_us = clock_now_us();
	join_due(s);
	watch_publisher(s);
	watch_rebind(s);
	watch_leavers(s);
	if (s->is_over && s->ground.works == 0)
		loop_stop(s->ground.loop);
	else
		loop_timer_arm(s->timer, s->ground.now_us + TICK_US);
}

/* Visitors are looked at after every turn, so that they leave at the very stage they are to. */
static bool on_turn(void *arg)
{
	struct swarm *s = arg;

	if (s->churn.is_running)
		go_round(s);
	loop_timer_arm(s->ground.timer, ticker_due_us(&s->ground.ticker));
	return false;
}

static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int open_swarm(struct swarm *s)
{
	struct net_addr local;
	int err = net_addr_parse_ip(&local, "127.0.0.1");

	if (!err)
		err = peer_ground_open(&s->ground, &local, MAX_CLIENTS, true);
	if (!err)
		err = loop_timer_open(s->ground.loop, &s->timer, on_tick, s);
	if (!err)
		err = loop_watch_open(s->ground.loop, &s->input, STDIN_FILENO, on_input, s);
	if (err)
		return err;
	loop_on_turn(s->ground.loop, on_turn, s);
	loop_watch_set(s->input, LOOP_READABLE);
	loop_timer_arm(s->timer, s->ground.now_us);
	return 0;
}

static void close_swarm(struct swarm *s)
{
	for (unsigned i = 0; i < s->churn.width; i++)
		if (s->churn.at_work[i])
			destroy(s->churn.at_work[i]);
	for (unsigned i = 0; i < s->staying_count; i++)
		destroy(s->staying[i]);
	emitter_destroy(s->emitter);
	source_destroy(s->source);
	loop_watch_close(s->input);
	loop_timer_close(s->timer);
	peer_ground_close(&s->ground);
}

int main(int argc, char **argv)
{
	static struct swarm s;
	int err;

	if (argc != 3 && argc != 5) {
		fprintf(stderr, "usage: swarm BASE_URL STREAM [FPS VIDEO_BPS]\n");
		return 2;
	}
	snprintf(s.whip, sizeof(s.whip), "%s/whip/%s", argv[1], argv[2]);
	snprintf(s.whep, sizeof(s.whep), "%s/whep/%s", argv[1], argv[2]);
	source_config_init(&s.source_config);
	if (argc == 5) {
		s.source_config.width = 128;
		s.source_config.height = 96;
		if (sscanf(argv[3], "%" SCNu32, &s.source_config.fps) != 1 ||
		    sscanf(argv[4], "%" SCNu32, &s.source_config.video_bps) != 1)
			return 2;
	}
	raise_descriptors();
	loop_set_helpers(HELPERS);
	err = open_swarm(&s);
	if (err) {
		fprintf(stderr, "swarm: %s\n", strerror(-err));
		return 1;
	}
	loop_run(s.ground.loop);
	close_swarm(&s);
	return 0;
}
