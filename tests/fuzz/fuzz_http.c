/* Request targets, header fields and JSON bodies: the first byte chooses the reader. */
#include <assert.h>
#include <jansson.h>

#include "server/events.h"
#include "server/http_text.h"
#include "server/log.h"
#include "server/problem.h"
#include "server/whep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char name_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				 "._~-";

static void check_route(const char *text)
{
	struct http_route r = http_route_of(text);

	assert(r.kind < HTTP_ROUTES);
	assert(strlen(r.name) < HTTP_STREAM_BYTES);
	assert(r.name[strspn(r.name, name_chars)] == '\0');
	if (r.kind == HTTP_ROUTE_WHIP || r.kind == HTTP_ROUTE_WHEP ||
	    r.kind == HTTP_ROUTE_PAGE_FILE)
		assert(r.name[0] != '\0');
	if (r.kind == HTTP_ROUTE_SESSION || r.kind == HTTP_ROUTE_SESSION_STATUS ||
	    whep_is_route(r.kind))
		assert(strlen(r.name) == 22);
}

static void check_fields(const char *text)
{
	const char *token = NULL;
	size_t len = 0;
	uint64_t n;

	if (http_bearer(text, &token, &len))
		assert(len > 0 && token > text && token + len <= text + strlen(text));
	if (http_length_of(&n, text) == 0)
		assert(n < 1000000000000000000ull);
	if (http_is_type(text, "application/sdp"))
		assert(strlen(text) >= strlen("application/sdp"));
	if (http_is_loopback_host(text))
		assert(strlen(text) <= 21 && !strchr(text, '/'));
}

static void check_client(const char *text)
{
	static const uint8_t peer[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 };
	struct config_network ten = { .ip = { [10] = 0xff, [11] = 0xff, 10 }, .prefix_bits = 104 };
	const struct config_networks trusted = { &ten, 1 };
	const struct config_networks nobody = { NULL, 0 };
	uint8_t ip[16];

	http_client_ip(ip, peer, text, &nobody);
	assert(memcmp(ip, peer, 16) == 0);
	http_client_ip(ip, peer, text, &trusted);
}

static void check_number(int number, int max, int none)
{
	assert(number == none || (number >= 0 && number <= max));
}

static void check_bodies(const char *body, size_t len)
{
	char reason[REGISTRY_REASON_BYTES] = "";
	uint32_t wanted = whep_read_events(body, len, reason);
	struct registry_layer layer;

	assert((wanted & ~(uint32_t)EVENTS_ALL) == 0 && (wanted || reason[0]));
	reason[0] = '\0';
	if (!whep_read_layer(body, len, &layer, reason)) {
		assert(reason[0]);
		return;
	}
	check_number(layer.spatial, REGISTRY_LAYER_MAX, REGISTRY_LAYER_ANY);
	check_number(layer.temporal, REGISTRY_LAYER_MAX, REGISTRY_LAYER_ANY);
	check_number(layer.max_spatial, REGISTRY_LAYER_MAX, REGISTRY_LAYER_ANY);
	check_number(layer.max_temporal, REGISTRY_LAYER_MAX, REGISTRY_LAYER_ANY);
	check_number(layer.max_width, UINT16_MAX, 0);
	check_number(layer.max_height, UINT16_MAX, 0);
	assert(memchr(layer.rid, '\0', sizeof(layer.rid)));
	assert(memchr(layer.media, '\0', sizeof(layer.media)));
}

/* Whatever a reason or a name holds, the answer is JSON and the log stays one line. */
static void check_written(const char *text)
{
	char problem[PROBLEM_BYTES];
	char line[LOG_LINE_BYTES];
	const struct log_field fields[] = { log_text("a", text), log_text("b", text) };
	const struct log_head head = { .event = "e", .suppressed = 1 };
	size_t n = problem_write(problem, 400, text);
	json_t *json = json_loadb(problem, n, 0, NULL);

	assert(json);
	json_decref(json);
	n = log_format_line(line, CONFIG_LOG_JSON, &head, fields, 2);
	assert(n < LOG_LINE_BYTES && strchr(line, '\n') == line + n - 1);
	json = json_loadb(line, n, 0, NULL);
	assert(json);
	json_decref(json);
	n = log_format_line(line, CONFIG_LOG_TEXT, &head, fields, 2);
	assert(n < LOG_LINE_BYTES && strchr(line, '\n') == line + n - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 1)
		return 0;
	text = malloc(size);
	assert(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 5) {
	case 0:
		check_route(text);
		break;
	case 1:
		check_fields(text);
		break;
	case 2:
		check_client(text);
		break;
	case 3:
		check_bodies(text, size - 1);
		break;
	default:
		check_written(text);
	}
	free(text);
	return 0;
}
