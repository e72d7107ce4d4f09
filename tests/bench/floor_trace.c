/* tests/bench/floor_trace.c - see floor_trace.h for the contract. */
#include "tests/bench/floor_trace.h"

#include <stdlib.h>
#include <string.h>

enum {
	DEFAULT_HEADER_BYTES = 20,
	DEFAULT_VIDEO_BYTES = 1200 - 16 - DEFAULT_HEADER_BYTES,
	DEFAULT_AUDIO_BYTES = 160,
	DEFAULT_FRAME_PKTS = 5,
	DEFAULT_FPS = 30,
	DEFAULT_AUDIO_PER_S = 50,
	AUDIO_PHASE_US = 7000, /* no audio falls together with a frame */
};

static bool add_pass(struct trace *t, uint64_t at_us)
{
	if (t->pass_count == TRACE_PASSES)
		return false;
	if (t->pass_count && at_us < t->passes[t->pass_count - 1].at_us)
		return false;
	t->passes[t->pass_count++] =
	    (struct trace_pass){ .at_us = at_us, .first = t->segment_count };
	return true;
}

static bool add_segment(struct trace *t, struct trace_segment segment)
{
	struct trace_pass *pass;

	if (t->pass_count == 0 || t->segment_count == TRACE_SEGMENTS)
		return false;
	pass = &t->passes[t->pass_count - 1];
	if (pass->count == TRACE_PASS_SEGMENTS || segment.header_bytes < 12 ||
	    segment.header_bytes > TRACE_MAX_HEADER_BYTES || segment.header_bytes % 4 ||
	    segment.payload_bytes < TRACE_MIN_PAYLOAD_BYTES ||
	    segment.payload_bytes > TRACE_MAX_PAYLOAD_BYTES)
		return false;
	if (pass->count == 0)
		segment.begins_message = true;
	t->message_count += segment.begins_message;
	t->segments[t->segment_count++] = segment;
	pass->count++;
	return true;
}

static void add_default_frame(struct trace *t, uint64_t at_us)
{
	(void)add_pass(t, at_us);
	for (unsigned i = 0; i < DEFAULT_FRAME_PKTS; i++)
		(void)add_segment(
		    t, (struct trace_segment){ .header_bytes = DEFAULT_HEADER_BYTES,
					       .payload_bytes = DEFAULT_VIDEO_BYTES,
					       .kind = TRACE_VIDEO,
					       .ends_frame = i + 1 == DEFAULT_FRAME_PKTS });
}

static void add_default_audio(struct trace *t, uint64_t at_us)
{
	(void)add_pass(t, at_us);
	(void)add_segment(t, (struct trace_segment){ .header_bytes = DEFAULT_HEADER_BYTES,
						     .payload_bytes = DEFAULT_AUDIO_BYTES,
						     .kind = TRACE_AUDIO });
}

struct trace *trace_create_default(void)
{
	struct trace *t = calloc(1, sizeof(*t));
	unsigned frame = 0, audio = 0;

	if (!t)
		return NULL;
	t->period_us = 1000000;
	while (frame < DEFAULT_FPS || audio < DEFAULT_AUDIO_PER_S) {
		uint64_t frame_us = t->period_us * frame / DEFAULT_FPS;
		uint64_t audio_us = t->period_us * audio / DEFAULT_AUDIO_PER_S + AUDIO_PHASE_US;

		if (audio == DEFAULT_AUDIO_PER_S || (frame < DEFAULT_FPS && frame_us <= audio_us)) {
			add_default_frame(t, frame_us);
			frame++;
		} else {
			add_default_audio(t, audio_us);
			audio++;
		}
	}
	return t;
}

/* One line without its comment. @return false: not understood */
static bool read_line(struct trace *t, const char *line, bool *begins)
{
	unsigned long long number;
	unsigned header, payload;
	char kind[8], end[8] = "";

	if (sscanf(line, " period %llu", &number) == 1) {
		t->period_us = number;
		return number > 0;
	}
	if (sscanf(line, " pass %llu", &number) == 1)
		return add_pass(t, number);
	if (sscanf(line, " %7s %u %u %7s", kind, &header, &payload, end) >= 3) {
		bool is_video = strcmp(kind, "video") == 0, is_first = *begins;

		*begins = false;
		return (is_video || strcmp(kind, "audio") == 0) && header <= UINT16_MAX &&
		       payload <= UINT16_MAX &&
		       add_segment(
			   t, (struct trace_segment){ .header_bytes = (uint16_t)header,
						      .payload_bytes = (uint16_t)payload,
						      .kind = is_video ? TRACE_VIDEO : TRACE_AUDIO,
						      .begins_message = is_first,
						      .ends_frame = strcmp(end, "end") == 0 });
	}
	if (sscanf(line, " %7s", kind) != 1)
		return true;
	*begins = strcmp(kind, "message") == 0;
	return *begins;
}

static bool is_complete(const struct trace *t)
{
	if (t->segment_count == 0 || t->passes[t->pass_count - 1].at_us >= t->period_us)
		return false;
	for (uint32_t i = 0; i < t->pass_count; i++)
		if (t->passes[i].count == 0)
			return false;
	return true;
}

struct trace *trace_create_from(FILE *file)
{
	struct trace *t = calloc(1, sizeof(*t));
	char line[128];
	unsigned number = 0;
	bool begins = false;

	while (t && fgets(line, sizeof(line), file)) {
		number++;
		line[strcspn(line, "#\n")] = '\0';
		if (read_line(t, line, &begins))
			continue;
		fprintf(stderr, "trace: line %u: %s\n", number, line);
		trace_destroy(t);
		return NULL;
	}
	if (t && !is_complete(t)) {
		fprintf(stderr,
			"trace: no segments, an empty pass or a period that is too short\n");
		trace_destroy(t);
		return NULL;
	}
	return t;
}

void trace_destroy(struct trace *t)
{
	free(t);
}

static int by_time(const void *a, const void *b)
{
	const struct trace_event *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return x->segment < y->segment ? -1 : x->segment > y->segment;
}

/* Bytes of video that a browser sends in one tick. */
static uint64_t tick_bytes(const struct trace *t)
{
	uint64_t bytes = 0, burst;

	for (uint32_t i = 0; i < t->segment_count; i++)
		if (t->segments[i].kind == TRACE_VIDEO)
			bytes += t->segments[i].payload_bytes;
	burst = bytes * TRACE_TICK_US / t->period_us * TRACE_BURST_PERCENT / 100;
	return burst ? burst : 1;
}

/* A frame's packets come ahead of the one that ends it: the more ahead, the more bytes between. */
static void spread(struct trace *t, const struct trace_pass *pass, uint64_t burst_bytes)
{
	uint64_t behind_bytes = 0;

	for (uint32_t i = pass->first + pass->count; i-- > pass->first;) {
		uint64_t lead_us = behind_bytes / burst_bytes * TRACE_TICK_US;

		if (t->segments[i].kind != TRACE_VIDEO)
			continue;
		t->events[i].at_us -= lead_us < pass->at_us ? lead_us : pass->at_us;
		behind_bytes += t->segments[i].payload_bytes;
	}
}

void trace_schedule(struct trace *t, bool as_browser)
{
	uint64_t burst_bytes = tick_bytes(t);

	for (uint32_t p = 0; p < t->pass_count; p++) {
		const struct trace_pass *pass = &t->passes[p];

		for (uint32_t i = pass->first; i < pass->first + pass->count; i++)
			t->events[i] =
			    (struct trace_event){ .at_us = pass->at_us, .pass = p, .segment = i };
		/* Nothing of a pass comes later than its last segment, which stays where it is. */
		t->events[pass->first + pass->count - 1].runs_pass = true;
		if (as_browser)
			spread(t, pass, burst_bytes);
	}
	qsort(t->events, t->segment_count, sizeof(t->events[0]), by_time);
}
