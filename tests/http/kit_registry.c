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

void registry_publish(struct registry *r, const char *stream, const char *offer, size_t len,
		      const uint8_t client[16], struct registry_reply *reply)
{
	(void)r;
	(void)offer;
	(void)client;
	d->publishes++;
	d->body_bytes = len;
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
