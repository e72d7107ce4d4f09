#include "tests/http/kit_registry.h"

#include "server/text.h"

struct registry_double registry_double;

static struct registry_double *const d = &registry_double;

static void reply_fill(struct registry_reply *reply)
{
	*reply = d->next;
	reply->body = d->next.body ? strdup(d->next.body) : NULL;
	reply->body_bytes = reply->body ? strlen(reply->body) : 0;
}

static void (*settled)(void *arg, const uint8_t client[16]);
static void *settled_arg;

static void note(char out[DOUBLE_TEXT_BYTES], const char *text)
{
	snprintf(out, DOUBLE_TEXT_BYTES, "%s", text);
}

void registry_publish(struct registry *r, const char *stream, const struct registry_offer *offer,
		      const uint8_t client[16], struct registry_reply *reply)
{
	(void)r;
	(void)client;
	d->publishes++;
	d->body_bytes = offer->len;
	d->is_opaque = offer->is_opaque;
	note(d->stream, stream);
	reply_fill(reply);
}

void registry_watch(struct registry *r, const char *stream, const char *offer, size_t len,
		    const uint8_t client[16], struct registry_reply *reply)
{
	(void)r;
	(void)offer;
	(void)client;
	d->watches++;
	d->body_bytes = len;
	note(d->stream, stream);
	reply_fill(reply);
}

void registry_patch(struct registry *r, const char *id, const char *frag, size_t len,
		    const char *if_match, bool strict, struct registry_reply *reply)
{
	(void)r;
	(void)frag;
	d->patches++;
	d->body_bytes = len;
	d->is_strict = strict;
	note(d->id, id);
	note(d->if_match, if_match ? if_match : "(none)");
	reply_fill(reply);
}

void registry_open_input(struct registry *r, const char *stream, const struct registry_input *ask,
			 struct registry_reply *reply)
{
	(void)r;
	d->inputs++;
	d->body_bytes = ask->sdp_bytes;
	note(d->stream, stream);
	note(d->source, ask->source ? ask->source : "(none)");
	reply_fill(reply);
}

enum registry_status registry_close_input(struct registry *r, const char *stream)
{
	(void)r;
	d->ends++;
	note(d->stream, stream);
	return d->has_sessions ? REGISTRY_OK : REGISTRY_NOT_FOUND;
}

void registry_open_output(struct registry *r, const char *stream, const struct registry_output *ask,
			  struct registry_reply *reply)
{
	(void)r;
	d->outputs++;
	d->output = *ask;
	d->output.address = NULL;
	note(d->stream, stream);
	note(d->source, ask->address);
	reply_fill(reply);
}

enum registry_status registry_close_output(struct registry *r, const char *stream, uint64_t number)
{
	(void)r;
	d->ends++;
	d->number = number;
	note(d->stream, stream);
	return d->has_sessions ? REGISTRY_OK : REGISTRY_NOT_FOUND;
}

json_t *registry_output_json(struct registry *r, const char *stream, uint64_t number)
{
	(void)r;
	(void)stream;
	return d->has_sessions ? json_pack("{s:I}", "number", (json_int_t)number) : NULL;
}

json_t *registry_outputs_json(struct registry *r, const char *stream)
{
	(void)r;
	return json_pack("[s]", stream);
}

json_t *registry_input_json(struct registry *r, const char *stream)
{
	(void)r;
	return d->has_sessions ? json_pack("{s:s}", "stream", stream) : NULL;
}

enum registry_status registry_end(struct registry *r, const char *id)
{
	(void)r;
	d->ends++;
	note(d->id, id);
	return d->has_sessions ? REGISTRY_OK : REGISTRY_NOT_FOUND;
}

enum registry_status registry_kick(struct registry *r, uint64_t number)
{
	(void)r;
	d->kicks++;
	d->number = number;
	return d->has_sessions ? REGISTRY_OK : REGISTRY_NOT_FOUND;
}

void registry_drain(struct registry *r)
{
	(void)r;
	d->is_ready = false;
}

bool registry_is_ready(const struct registry *r)
{
	(void)r;
	return d->is_ready;
}

json_t *registry_info(struct registry *r)
{
	(void)r;
	return json_pack("{s:s}", "version", "test");
}

json_t *registry_streams(struct registry *r)
{
	(void)r;
	return json_array();
}

json_t *registry_sessions(struct registry *r)
{
	(void)r;
	return json_array();
}

json_t *registry_session(struct registry *r, uint64_t number)
{
	(void)r;
	return d->has_sessions ? json_pack("{s:I}", "number", (json_int_t)number) : NULL;
}

json_t *registry_session_status(struct registry *r, const char *id)
{
	(void)r;
	note(d->id, id);
	return d->has_sessions ? json_pack("{s:s}", "state", "connected") : NULL;
}

void registry_metrics(struct registry *r, struct text *out)
{
	(void)r;
	text_printf(out, "# registry\n");
}

void registry_on_settled(struct registry *r,
			 void (*on_settled)(void *arg, const uint8_t client[16]), void *arg)
{
	(void)r;
	settled = on_settled;
	settled_arg = arg;
}

void registry_double_settle(const uint8_t client[16])
{
	settled(settled_arg, client);
}

/* --- event streams ----------------------------------------------------------------------- */

enum { WAITING_MAX = 4096 };

static struct event_stream {
	void (*on_ready)(void *arg);
	void *arg;
	const char *waiting[WAITING_MAX];
	unsigned read, written;
	bool is_over;
} events;

enum registry_status registry_select_layer(struct registry *r, const char *id,
					   const struct registry_layer *layer,
					   char reason[REGISTRY_REASON_BYTES])
{
	(void)r;
	note(d->id, id);
	d->layer = *layer;
	if (!d->has_sessions)
		return REGISTRY_NOT_FOUND;
	if (d->layer_status != REGISTRY_OK)
		snprintf(reason, REGISTRY_REASON_BYTES, "no such layer");
	return d->layer_status;
}

enum registry_status registry_events_open(struct registry *r, const char *id, uint32_t wanted,
					  uint64_t *number)
{
	(void)r;
	note(d->id, id);
	d->wanted = wanted;
	*number = 1;
	if (!d->has_sessions)
		return REGISTRY_NOT_FOUND;
	d->has_stream = !d->is_full;
	return d->is_full ? REGISTRY_FULL : REGISTRY_OK;
}

enum registry_status registry_events_close(struct registry *r, const char *id, uint64_t number)
{
	(void)r;
	(void)id;
	if (!d->has_stream || number != 1)
		return REGISTRY_NOT_FOUND;
	d->has_stream = false;
	registry_double_events_end();
	return REGISTRY_OK;
}

struct event_stream *registry_events_attach(struct registry *r, const char *id, uint64_t number,
					    void (*on_ready)(void *arg), void *arg)
{
	void (*former)(void *arg) = events.on_ready;
	void *former_arg = events.arg;

	(void)r;
	(void)id;
	if (!d->has_stream || number != 1)
		return NULL;
	events = (struct event_stream){ .on_ready = on_ready, .arg = arg };
	d->readers++;
	if (former)
		former(former_arg);
	return &events;
}

char *event_stream_read(struct event_stream *s, const void *arg, size_t *len)
{
	char *text;

	if (s->arg != arg || s->read == s->written)
		return NULL;
	text = strdup(s->waiting[s->read++ % WAITING_MAX]);
	*len = strlen(text);
	d->event_reads++;
	return text;
}

bool event_stream_is_over(const struct event_stream *s, const void *arg)
{
	return s->arg != arg || (s->is_over && s->read == s->written);
}

void event_stream_detach(struct event_stream *s, const void *arg)
{
	d->readers--;
	if (s->arg == arg)
		*s = (struct event_stream){ .is_over = true };
}

void registry_double_event(const char *text)
{
	events.waiting[events.written++ % WAITING_MAX] = text;
	if (events.on_ready)
		events.on_ready(events.arg);
}

void registry_double_events_end(void)
{
	events.is_over = true;
	if (events.on_ready)
		events.on_ready(events.arg);
}
