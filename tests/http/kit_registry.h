/* tests/http/kit_registry.h - answers of server/registry.h chosen by the test, so that the HTTP
 * side can be driven to every one of them. */
#ifndef TESTS_HTTP_KIT_REGISTRY_H
#define TESTS_HTTP_KIT_REGISTRY_H

#include "server/events.h"
#include "server/registry.h"

enum { DOUBLE_TEXT_BYTES = 128 };

/* Written by the server's thread during a request, read by the test after its answer. */
struct registry_double {
	struct registry_reply next; /* what POST and PATCH answer; body is copied */
	bool has_sessions;          /* sessions asked for by id or number exist */
	bool is_ready;
	unsigned publishes, watches, patches, ends, kicks, inputs, outputs;
	struct registry_output output; /* asked for; its address is `source` */
	char stream[DOUBLE_TEXT_BYTES];
	char source[DOUBLE_TEXT_BYTES]; /* of plain RTP; "(none)" when absent */
	char id[DOUBLE_TEXT_BYTES];
	char if_match[DOUBLE_TEXT_BYTES]; /* "(none)" when absent */
	size_t body_bytes;
	uint64_t number;
	bool is_strict, is_opaque;
	struct registry_layer layer;       /* asked for */
	enum registry_status layer_status; /* what a choice of layer is answered */
	uint32_t wanted;                   /* kinds of event asked for */
	bool is_full;                      /* of event streams */
	bool has_stream;                   /* event stream 1 exists */
	unsigned event_reads, readers;
};

/** Call what registry_on_settled() was given. */
void registry_double_settle(const uint8_t client[16]);

/** An event for whoever reads event stream 1, and its end; in the relay's thread. */
void registry_double_event(const char *text);
void registry_double_events_end(void);

extern struct registry_double registry_double;

#endif
