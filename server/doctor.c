#include "server/doctor.h"

#include <assert.h>
#include <jansson.h>
#include <stdarg.h>

#include "server/http.h"

static const char *const level_words[] = { "ok", "warn", "FAIL" };
static const char *const level_keys[] = { "ok", "warn", "fail" };

void doctor_say(struct doctor *d, const char *name, enum doctor_level level, const char *advice,
		const char *found, ...)
{
	struct doctor_line *line = &d->lines[d->count];
	va_list args;

	assert(d->count < DOCTOR_MAX);
	d->count++;
	line->name = name;
	line->level = level;
	snprintf(line->advice, sizeof(line->advice), "%s", advice);
	va_start(args, found);
	vsnprintf(line->found, sizeof(line->found), found, args);
	va_end(args);
}

static void examine_config(struct doctor *d, const struct config *c)
{
	char error[HTTP_ERROR_BYTES] = "";

	if (c->is_secret_readable)
		doctor_say(d, "configuration", DOCTOR_WARN, "chmod 600 the file",
			   "it holds secrets and others than its owner may read it");
	else
		doctor_say(d, "configuration", DOCTOR_OK, "", "valid");
	if (http_check(c, error))
		doctor_say(d, "certificate", DOCTOR_FAIL, "mend http.cert and http.key", "%s",
			   error);
	else if (c->http.cert)
		doctor_say(d, "certificate", DOCTOR_OK, "", "%.150s and its key match",
			   c->http.cert);
	else if (config_address_is_loopback(&c->http.listen))
		doctor_say(d, "certificate", DOCTOR_OK, "",
			   "none; plain HTTP on loopback needs none");
	else
		doctor_say(d, "certificate", DOCTOR_WARN,
			   "set http.cert and http.key, or put a TLS proxy in front",
			   "none: tokens travel in the clear, and browsers give no camera to plain "
			   "HTTP pages");
}

void doctor_examine(struct doctor *d, const struct config *config)
{
	*d = (struct doctor){ .count = 0 };
	examine_config(d, config);
	doctor_examine_net(d, config);
	doctor_examine_host(d, config);
}

static void print_json(const struct doctor *d, FILE *out)
{
	json_t *checks = json_array();
	json_t *json;

	for (unsigned i = 0; i < d->count; i++) {
		const struct doctor_line *line = &d->lines[i];

		json_array_append_new(checks, json_pack("{s:s, s:s, s:s, s:s?}", "name", line->name,
							"level", level_keys[line->level], "found",
							line->found, "advice",
							line->advice[0] ? line->advice : NULL));
	}
	json = json_pack("{s:b, s:o}", "ok", !doctor_has_failed(d), "checks", checks);
	if (json)
		json_dumpf(json, out, JSON_COMPACT);
	json_decref(json);
	fputc('\n', out);
}

void doctor_print(const struct doctor *d, bool as_json, FILE *out)
{
	if (as_json) {
		print_json(d, out);
		return;
	}
	for (unsigned i = 0; i < d->count; i++) {
		const struct doctor_line *line = &d->lines[i];

		fprintf(out, "%-4s  %-15s %s%s%s\n", level_words[line->level], line->name,
			line->found, line->advice[0] ? ": " : "", line->advice);
	}
}

bool doctor_has_failed(const struct doctor *d)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->lines[i].level == DOCTOR_FAIL)
			return true;
	return false;
}
