/* The YAML loader. libcyaml's schema is built from ours, with every value taken as text, so
 * that one place (config/value.c) knows ranges and forms, whether the text comes from the file,
 * a flag or the defaults. libcyaml names no line for a value and the previous value's line for
 * an unknown key, hence the second pass with libyaml when there is something to complain about. */
#include "config/schema.h"

#include <assert.h>
#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdarg.h>
#include <yaml.h>

enum {
	SECTIONS_MAX = 16,
	PATH_BYTES = 96,
	SHOWN_BYTES = 40, /* of a wrong value in an error line */
	TEXT_MAX = CONFIG_FILE_BYTES,
};

/* One key as the file has it; all zero when absent. */
struct raw_value {
	char *scalar;
	void *list; /* char ** or struct config_ice_server *, by the key's type */
	unsigned count;
};

struct raw_file {
	struct raw_value values[CONFIG_KEYS_MAX];
};

struct loader {
	const struct config_key *keys;
	size_t key_count;
	const char *yaml;
	size_t bytes;
	const char *name;
	char *error;
	char path[PATH_BYTES];   /* from libcyaml's backtrace: where it stopped */
	char reason[PATH_BYTES]; /* libcyaml's first line */
	cyaml_schema_field_t top[CONFIG_KEYS_MAX + 1];
	cyaml_schema_field_t nested[CONFIG_KEYS_MAX + SECTIONS_MAX];
	char sections[SECTIONS_MAX][16];
};

static const cyaml_schema_value_t text_entry = { CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0,
								    TEXT_MAX) };
static const cyaml_schema_field_t ice_fields[] = {
	CYAML_FIELD_STRING_PTR("url", CYAML_FLAG_POINTER, struct config_ice_server, url, 0,
			       TEXT_MAX),
	CYAML_FIELD_STRING_PTR("username", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct config_ice_server, username, 0, TEXT_MAX),
	CYAML_FIELD_STRING_PTR("credential", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct config_ice_server, credential, 0, TEXT_MAX),
	CYAML_FIELD_STRING_PTR("secret", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct config_ice_server, secret, 0, TEXT_MAX),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t ice_entry = { CYAML_VALUE_MAPPING(
    CYAML_FLAG_DEFAULT, struct config_ice_server, ice_fields) };

/* ---- where a key or a list entry stands in the text ------------------------------------- */

struct finder {
	yaml_document_t *doc;
	yaml_node_t *node;
	size_t line;
};

/* Into a list, by an entry's number from 1. */
static bool finder_enter(struct finder *f, const char *number)
{
	size_t n = strtoul(number, NULL, 10);
	size_t count =
	    (size_t)(f->node->data.sequence.items.top - f->node->data.sequence.items.start);

	if (n == 0 || n > count)
		return false;
	f->node = yaml_document_get_node(f->doc, f->node->data.sequence.items.start[n - 1]);
	if (f->node)
		f->line = f->node->start_mark.line + 1;
	return f->node != NULL;
}

/* Follow one step of a path: the last pair with this key, since of two the second is wrong. */
static bool finder_step(struct finder *f, const char *key, size_t len)
{
	yaml_node_pair_t *pair;
	yaml_node_t *found = NULL;

	if (f->node && f->node->type == YAML_SEQUENCE_NODE)
		return finder_enter(f, key);
	if (!f->node || f->node->type != YAML_MAPPING_NODE)
		return false;
	for (pair = f->node->data.mapping.pairs.start; pair < f->node->data.mapping.pairs.top;
	     pair++) {
		yaml_node_t *k = yaml_document_get_node(f->doc, pair->key);

		if (!k || k->type != YAML_SCALAR_NODE || k->data.scalar.length != len ||
		    memcmp(k->data.scalar.value, key, len) != 0)
			continue;
		f->line = k->start_mark.line + 1;
		found = yaml_document_get_node(f->doc, pair->value);
	}
	if (found)
		f->node = found;
	return found != NULL;
}

/* Line of "a.b" or of the second entry of its list, "a.b.2"; as far as the path can be followed,
 * or where the text stops being YAML. */
static size_t line_of(const struct loader *l, const char *path)
{
	yaml_parser_t parser;
	yaml_document_t doc;
	struct finder f = { .line = 0 };

	if (!yaml_parser_initialize(&parser))
		return 0;
	yaml_parser_set_input_string(&parser, (const unsigned char *)l->yaml, l->bytes);
	if (!yaml_parser_load(&parser, &doc)) {
		f.line = parser.problem_mark.line + 1;
		yaml_parser_delete(&parser);
		return f.line;
	}
	f.doc = &doc;
	f.node = yaml_document_get_root_node(&doc);
	f.line = f.node ? f.node->start_mark.line + 1 : 1;
	while (*path) {
		size_t len = strcspn(path, ".");

		if (!finder_step(&f, path, len))
			break;
		path += len + (path[len] == '.');
	}
	yaml_document_delete(&doc);
	yaml_parser_delete(&parser);
	return f.line;
}

/* Line of a second document, which libcyaml would not read; 0: there is none. */
static size_t second_document(const char *yaml, size_t bytes)
{
	yaml_parser_t parser;
	yaml_event_t event = { .type = YAML_NO_EVENT };
	unsigned documents = 0;
	size_t line = 0;

	if (!yaml_parser_initialize(&parser))
		return 0;
	yaml_parser_set_input_string(&parser, (const unsigned char *)yaml, bytes);
	while (line == 0 && event.type != YAML_STREAM_END_EVENT) {
		yaml_event_delete(&event);
		if (!yaml_parser_parse(&parser, &event))
			break; /* libcyaml has said so, or it is behind a document's end */
		if (event.type == YAML_DOCUMENT_START_EVENT && ++documents == 2)
			line = event.start_mark.line + 1;
	}
	yaml_event_delete(&event);
	yaml_parser_delete(&parser);
	return line;
}

/* ---- libcyaml's schema from ours -------------------------------------------------------- */

static cyaml_schema_field_t field_of(const struct config_key *key, const char *name, size_t index)
{
	size_t at = offsetof(struct raw_file, values) + index * sizeof(struct raw_value);
	cyaml_schema_field_t f = { .key = name, .count_size = sizeof(unsigned) };

	f.value.flags = CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL;
	if (!config_type_is_list(key->type)) {
		f.data_offset = (uint32_t)(at + offsetof(struct raw_value, scalar));
		f.value.type = CYAML_STRING;
		f.value.data_size = sizeof(char);
		f.value.string.max = TEXT_MAX;
		return f;
	}
	f.data_offset = (uint32_t)(at + offsetof(struct raw_value, list));
	f.count_offset = (uint32_t)(at + offsetof(struct raw_value, count));
	f.value.type = CYAML_SEQUENCE;
	f.value.sequence.entry = key->type == CONFIG_TYPE_ICE ? &ice_entry : &text_entry;
	/* An empty list looks like an absent one, so where that would leave a default in force it
	 * has to be refused. */
	f.value.sequence.min = key->by_default ? 1 : 0;
	f.value.sequence.max = CONFIG_LIST_MAX;
	f.value.data_size =
	    key->type == CONFIG_TYPE_ICE ? sizeof(struct config_ice_server) : sizeof(char *);
	return f;
}

static void schema_build(struct loader *l)
{
	size_t top = 0;
	size_t nested = 0;
	size_t section = 0;

	for (size_t i = 0; i < l->key_count;) {
		size_t len = config_key_section(&l->keys[i]);
		cyaml_schema_field_t *map = &l->top[top++];
		size_t first = i;

		if (len == 0) {
			*map = field_of(&l->keys[i], l->keys[i].name, i);
			i++;
			continue;
		}
		assert(section < SECTIONS_MAX && len < sizeof(l->sections[0]));
		memcpy(l->sections[section], l->keys[i].name, len);
		map->key = l->sections[section++];
		map->value.type = CYAML_MAPPING;
		map->value.flags = CYAML_FLAG_OPTIONAL;
		map->value.data_size = sizeof(struct raw_file);
		map->value.mapping.fields = &l->nested[nested];
		for (; i < l->key_count && config_key_section(&l->keys[i]) == len &&
		       memcmp(l->keys[i].name, l->keys[first].name, len + 1) == 0;
		     i++)
			l->nested[nested++] = field_of(&l->keys[i], l->keys[i].name + len + 1, i);
		nested++; /* the zeroed field that ends the section */
	}
}

/* ---- what libcyaml says, as one line of ours -------------------------------------------- */

/* "Unexpected key: x" and "Mapping field already seen: x" come before a backtrace of
 * "in mapping field 'x'" and "in sequence entry '2'" lines, innermost first. */
__attribute__((format(printf, 3, 0))) static void on_cyaml_log(cyaml_log_t level, void *ctx,
							       const char *fmt, va_list args)
{
	struct loader *l = ctx;
	char line[256];
	const char *field = "  in mapping field '";
	const char *entry = "  in sequence entry '";

	(void)level;
	vsnprintf(line, sizeof(line), fmt, args);
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, field, strlen(field)) == 0 || strncmp(line, entry, strlen(entry)) == 0) {
		char *name = strchr(line, '\'') + 1;
		char joined[PATH_BYTES];

		name[strcspn(name, "'")] = '\0';
		snprintf(joined, sizeof(joined), "%.40s%s%.50s", name, l->path[0] ? "." : "",
			 l->path);
		memcpy(l->path, joined, sizeof(joined));
	} else if (l->reason[0] == '\0' && !strstr(line, "Backtrace")) {
		const char *text = strncmp(line, "Load: ", 6) == 0 ? line + 6 : line;

		snprintf(l->reason, sizeof(l->reason), "%.90s", text);
	}
}

/* l->path without the numbers of list entries. */
static void path_shown(const struct loader *l, char out[PATH_BYTES])
{
	size_t n = 0;

	for (const char *step = l->path; *step;) {
		size_t len = strcspn(step, ".");

		if (strspn(step, "0123456789") < len) {
			if (n > 0)
				out[n++] = '.';
			memcpy(out + n, step, len);
			n += len;
		}
		step += len + (step[len] == '.');
	}
	out[n] = '\0';
}

/* A wrong value as the error line may show it: short, and without control characters. */
static void shown(char out[SHOWN_BYTES + 4], const char *text)
{
	size_t n = 0;

	for (; n < SHOWN_BYTES && text[n]; n++)
		out[n] = (unsigned char)text[n] < ' ' || text[n] == 0x7f ? '?' : text[n];
	out[n] = '\0';
	if (text[n])
		memcpy(out + n, "...", 4);
}

/* The keys one may write at the place where `unknown` stands. */
static void allowed_names(const struct loader *l, const char *section, char *text, size_t bytes)
{
	size_t len = strlen(section);
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < l->key_count && used < bytes; i++) {
		const char *name = l->keys[i].name;
		size_t in = config_key_section(&l->keys[i]);
		bool is_first = i == 0 || in == 0 || config_key_section(&l->keys[i - 1]) != in ||
				memcmp(l->keys[i - 1].name, name, in) != 0;

		if (len > 0 && (in != len || memcmp(name, section, len) != 0))
			continue;
		if (len == 0 && !is_first)
			continue;
		name += len > 0 ? in + 1 : 0;
		in = len == 0 && in > 0 ? in : strlen(name);
		used += (size_t)snprintf(text + used, bytes - used, "%s%.*s", used ? ", " : "",
					 (int)in, name);
	}
}

static int fail_unknown(struct loader *l, const char *unknown)
{
	char full[2 * PATH_BYTES];
	char path[PATH_BYTES];
	char name[SHOWN_BYTES + 4];
	char names[320];

	shown(name, unknown);
	path_shown(l, path);
	if (strcmp(path, "ice.servers") == 0)
		snprintf(names, sizeof(names), "url, username, credential, secret");
	else
		allowed_names(l, path, names, sizeof(names));
	snprintf(full, sizeof(full), "%s%s%s", l->path, l->path[0] ? "." : "", unknown);
	snprintf(l->error, CONFIG_ERROR_BYTES,
		 "%.100s: line %zu: unknown key %s%s%s: allowed are %s", l->name, line_of(l, full),
		 path, path[0] ? "." : "", name, names);
	return -EINVAL;
}

static int fail_twice(struct loader *l)
{
	char path[PATH_BYTES];

	path_shown(l, path);
	snprintf(l->error, CONFIG_ERROR_BYTES, "%.100s: line %zu: %s is set twice", l->name,
		 line_of(l, l->path), path);
	return -EINVAL;
}

/* A scalar where a list belongs, and the like; or a mapping of ice.servers without url. */
static int fail_kind(struct loader *l)
{
	char allowed[200];
	char path[PATH_BYTES];
	const struct config_key *key;

	path_shown(l, path);
	key = config_schema_find(path);
	if (!key && strncmp(path, "ice.servers", strlen("ice.servers")) == 0)
		key = config_schema_find("ice.servers");
	if (key)
		config_key_allowed(key, allowed, sizeof(allowed));
	else
		snprintf(allowed, sizeof(allowed), "a mapping of keys to values");
	snprintf(l->error, CONFIG_ERROR_BYTES, "%.100s: line %zu: %s must be %s", l->name,
		 line_of(l, l->path),
		 key       ? key->name
		 : path[0] ? path
			   : "the file",
		 allowed);
	return -EINVAL;
}

static int fail_load(struct loader *l, cyaml_err_t err)
{
	static const char unknown[] = "Unexpected key: ";
	static const char twice[] = "Mapping field already seen: ";
	static const char missing[] = "Missing required mapping field: ";

	if (err == CYAML_ERR_OOM) {
		snprintf(l->error, CONFIG_ERROR_BYTES, "%s: out of memory", l->name);
		return -ENOMEM;
	}
	if (strncmp(l->reason, unknown, strlen(unknown)) == 0)
		return fail_unknown(l, l->reason + strlen(unknown));
	if (strncmp(l->reason, twice, strlen(twice)) == 0)
		return fail_twice(l);
	if (err == CYAML_ERR_INVALID_VALUE || err == CYAML_ERR_SEQUENCE_ENTRIES_MIN ||
	    strncmp(l->reason, missing, strlen(missing)) == 0)
		return fail_kind(l);
	if (err == CYAML_ERR_ALIAS)
		snprintf(l->reason, sizeof(l->reason), "aliases are not supported");
	else if (err == CYAML_ERR_SEQUENCE_ENTRIES_MAX)
		snprintf(l->reason, sizeof(l->reason), "more than %d entries", CONFIG_LIST_MAX);
	else if (strncmp(l->reason, "libyaml: ", 9) == 0)
		memmove(l->reason, l->reason + 9, strlen(l->reason + 9) + 1);
	else if (l->reason[0] == '\0')
		snprintf(l->reason, sizeof(l->reason), "%s", cyaml_strerror(err));
	snprintf(l->error, CONFIG_ERROR_BYTES, "%.100s: line %zu: %s%s%s", l->name,
		 line_of(l, l->path), l->path, l->path[0] ? ": " : "", l->reason);
	return -EINVAL;
}

/* `entry` counts from 1; 0 for a key that is no list. Secrets are never shown. */
static int fail_value(struct loader *l, const struct config_key *key, size_t entry,
		      const char *text, int err)
{
	char allowed[200];
	char value[SHOWN_BYTES + 4] = "";
	bool is_secret = key->type == CONFIG_TYPE_SECRETS || key->type == CONFIG_TYPE_ICE;
	char path[PATH_BYTES];

	if (err == -ENOMEM) {
		snprintf(l->error, CONFIG_ERROR_BYTES, "%s: out of memory", l->name);
		return err;
	}
	if (entry)
		snprintf(path, sizeof(path), "%s.%zu", key->name, entry);
	else
		snprintf(path, sizeof(path), "%s", key->name);
	config_key_allowed(key, allowed, sizeof(allowed));
	if (!is_secret)
		shown(value, text);
	snprintf(l->error, CONFIG_ERROR_BYTES,
		 "%.100s: line %zu: %s: wrong value%s%s%s: must be %s", l->name, line_of(l, path),
		 key->name, is_secret ? "" : " \"", value, is_secret ? "" : "\"", allowed);
	return -EINVAL;
}

static int take_entry(struct config *c, const struct config_key *key, const struct raw_value *v,
		      size_t i, const char **text)
{
	if (key->type == CONFIG_TYPE_ICE) {
		const struct config_ice_server *s = (const struct config_ice_server *)v->list + i;

		*text = s->url;
		return config_ice_server_add(c, s);
	}
	*text = ((char **)v->list)[i];
	return config_value_set(c, key, *text);
}

static int take(struct loader *l, struct config *c, const struct config_key *key,
		const struct raw_value *v)
{
	int err;

	if (v->scalar) {
		err = config_value_set(c, key, v->scalar);
		return err ? fail_value(l, key, 0, v->scalar, err) : 0;
	}
	if (!v->list)
		return 0;
	config_list_clear(c, key);
	for (size_t i = 0; i < v->count; i++) {
		const char *text = NULL;

		err = take_entry(c, key, v, i, &text);
		if (err)
			return fail_value(l, key, i + 1, text ? text : "", err);
	}
	return 0;
}

int config_yaml_load(struct config *c, const char *yaml, size_t bytes, const char *name,
		     char error[CONFIG_ERROR_BYTES])
{
	struct loader l = { .yaml = yaml, .bytes = bytes, .name = name, .error = error };
	const cyaml_config_t cyaml = { .log_fn = on_cyaml_log,
				       .log_ctx = &l,
				       .log_level = CYAML_LOG_ERROR,
				       .mem_fn = cyaml_mem,
				       .flags = CYAML_CFG_NO_ALIAS };
	const cyaml_schema_value_t top = { .type = CYAML_MAPPING,
					   .flags = CYAML_FLAG_POINTER,
					   .data_size = sizeof(struct raw_file),
					   .mapping.fields = l.top };
	struct raw_file *raw = NULL;
	cyaml_err_t bad;
	size_t second;
	int err = 0;

	if (memchr(yaml, '\0', bytes)) {
		snprintf(error, CONFIG_ERROR_BYTES, "%s: not a text file", name);
		return -EINVAL;
	}
	l.keys = config_schema(&l.key_count);
	schema_build(&l);
	error[0] = '\0';
	bad = cyaml_load_data((const uint8_t *)yaml, bytes, &cyaml, &top, (cyaml_data_t **)&raw,
			      NULL);
	if (bad != CYAML_OK) {
		err = fail_load(&l, bad);
	} else if ((second = second_document(yaml, bytes)) != 0) {
		snprintf(error, CONFIG_ERROR_BYTES,
			 "%.100s: line %zu: a second YAML document, where one is read", name,
			 second);
		err = -EINVAL;
	}
	for (size_t i = 0; raw && i < l.key_count && err == 0; i++)
		err = take(&l, c, &l.keys[i], &raw->values[i]);
	if (raw)
		cyaml_free(&cyaml, &top, raw, 0);
	for (char *p = error; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '?';
	return err;
}
