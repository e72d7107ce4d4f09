/* tests/http/kit_registry.h - answers of server/registry.h chosen by the test, so that the HTTP
 * side can be driven to every one of them. */
#ifndef TESTS_HTTP_KIT_REGISTRY_H
#define TESTS_HTTP_KIT_REGISTRY_H

#include "server/registry.h"

enum { DOUBLE_TEXT_BYTES = 128 };

/* Written by the server's thread during a request, read by the test after its answer. */
struct registry_double {
	struct registry_reply next; /* what POST and PATCH answer; body is copied */
	bool has_sessions;          /* sessions asked for by id or number exist */
	bool is_ready;
	unsigned publishes, watches, patches, ends, kicks;
	char stream[DOUBLE_TEXT_BYTES];
	char id[DOUBLE_TEXT_BYTES];
	char if_match[DOUBLE_TEXT_BYTES]; /* "(none)" when absent */
	size_t body_bytes;
	uint64_t number;
	bool is_strict;
};

/** Call what registry_on_settled() was given. */
void registry_double_settle(const uint8_t client[16]);

extern struct registry_double registry_double;

#endif
