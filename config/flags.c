/* From argv to a checked configuration: flags, the file that -c names, and the rules that
 * concern several keys at once. */
#include "config/schema.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

enum { FLAGS_MAX = 16 };

static const struct config_flag flags[] = {
	{ "-c", "FILE", NULL, "Read this YAML file first; flags win over it." },
	{ "--http", "ADDR:PORT", "http.listen", NULL },
	{ "--udp", "[ADDR]:PORT", "udp.listen", NULL },
	{ "--tcp", "[ADDR]:PORT", "tcp.listen", NULL },
	{ "--advertise", "IP[:PORT]", "advertise", NULL },
	{ "--workers", "N", "workers", NULL },
	{ "--admin", "ADDR:PORT", "http.admin", NULL },
	{ "--open", NULL, "http.open", NULL },
	{ "--log", "text|json", "log.format", NULL },
	{ "--check", NULL, NULL, "Check the configuration and exit: 0 good, 2 not." },
	{ "--version", NULL, NULL, "Print the version and exit." },
	{ "--help", NULL, NULL, "Print this text and exit." },
};

_Static_assert(sizeof(flags) / sizeof(flags[0]) <= FLAGS_MAX, "raise FLAGS_MAX");

struct args {
	int argc;
	char *const *argv;
	const char *file;
	enum config_action action;
	char *error;
};

__attribute__((format(printf, 2, 3))) static int fail(char *error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, CONFIG_ERROR_BYTES, fmt, ap);
	va_end(ap);
	for (char *p = error; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '?';
	return -EINVAL;
}

const struct config_flag *config_flags(size_t *count)
{
	*count = sizeof(flags) / sizeof(flags[0]);
	return flags;
}

/* The flag at argv[*at] and its value ("--flag value" or "--flag=value"); *at moves on. */
static int flag_next(const struct args *a, int *at, const struct config_flag **out,
		     const char **value)
{
	const char *arg = a->argv[(*at)++];
	size_t len = strncmp(arg, "--", 2) == 0 ? strcspn(arg, "=") : strlen(arg);

	*value = NULL;
	*out = NULL;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strlen(flags[i].name) == len && memcmp(flags[i].name, arg, len) == 0)
			*out = &flags[i];
	if (!*out && arg[0] != '-')
		return fail(a->error, "%.80s: not a flag; see sluice --help", arg);
	if (!*out)
		return fail(a->error, "%.80s: unknown flag; see sluice --help", arg);
	if (arg[len] == '=')
		*value = arg + len + 1;
	if (*value && !(*out)->value)
		return fail(a->error, "%s takes no value", (*out)->name);
	if (!*value && (*out)->value && *at < a->argc)
		*value = a->argv[(*at)++];
	if (!*value && (*out)->value)
		return fail(a->error, "%s needs a value: %s", (*out)->name, (*out)->value);
	return 0;
}

/* What has to be known before the file is read. */
static int flags_scan(struct args *a)
{
	for (int at = 1; at < a->argc;) {
		const struct config_flag *flag;
		const char *value;
		int err = flag_next(a, &at, &flag, &value);

		if (err)
			return err;
		if (strcmp(flag->name, "--help") == 0)
			a->action = CONFIG_HELP;
		else if (strcmp(flag->name, "--version") == 0)
			a->action = CONFIG_VERSION;
		else if (strcmp(flag->name, "--check") == 0)
			a->action = CONFIG_CHECK;
		else if (strcmp(flag->name, "-c") == 0 && a->file)
			return fail(a->error, "-c is given twice");
		else if (strcmp(flag->name, "-c") == 0)
			a->file = value;
		if (a->action == CONFIG_HELP || a->action == CONFIG_VERSION)
			break;
	}
	return 0;
}

static int flags_apply(struct args *a, struct config *c)
{
	bool seen[FLAGS_MAX] = { false };

	for (int at = 1; at < a->argc;) {
		const struct config_flag *flag;
		const struct config_key *key;
		const char *value;
		int err = flag_next(a, &at, &flag, &value);

		if (err)
			return err;
		if (!flag->key)
			continue;
		key = config_schema_find(flag->key);
		assert(key);
		if (config_type_is_list(key->type) && !seen[flag - flags])
			config_list_clear(c, key);
		seen[flag - flags] = true;
		err = config_value_set(c, key, value ? value : "true");
		if (err == -ENOMEM)
			return err;
		if (err) {
			char text[200];

			return fail(a->error, "%s: wrong value \"%.60s\": must be %s", flag->name,
				    value,
				    flag->value && config_type_is_list(key->type)
					? flag->value
					: config_key_allowed(key, text, sizeof(text)));
		}
	}
	return 0;
}

static bool is_same_address(const struct config_address *a, const struct config_address *b)
{
	return a->port != 0 && a->port == b->port && a->is_both == b->is_both &&
	       memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

static int check_tokens(const struct config *c, char *error)
{
	const char *missing = c->tokens.publish.count == 0 ? "tokens.publish"
			      : c->tokens.watch.count == 0 ? "tokens.watch"
							   : NULL;

	if (!missing || c->http.open || config_address_is_loopback(&c->http.listen))
		return 0;
	return fail(error,
		    "http.listen %s can be reached from other hosts and %s is empty: set it, or "
		    "give --open (http.open) to let anyone in",
		    c->http.listen.text, missing);
}

static int check_once(const struct config_addresses *list, const char *key, char *error)
{
	for (size_t i = 0; i < list->count; i++)
		for (size_t j = 0; j < i; j++)
			if (is_same_address(&list->items[i], &list->items[j]))
				return fail(error, "%s names %s twice", key, list->items[i].text);
	return 0;
}

static int check_ports(const struct config *c, char *error)
{
	int err;

	if (c->udp.listen.count == 0)
		return fail(error, "udp.listen is empty: at least one [ADDR]:PORT is needed");
	err = check_once(&c->udp.listen, "udp.listen", error);
	if (!err)
		err = check_once(&c->tcp.listen, "tcp.listen", error);
	if (!err && c->tcp.listen.count && !c->tcp.enabled)
		err = fail(error, "tcp.listen is set and tcp.enabled is false");
	return err;
}

/* Rules between keys. */
static int config_check(const struct config *c, char *error)
{
	int err;

	if (!c->http.cert != !c->http.key)
		return fail(error, "%s is set and %s is not: HTTPS needs both",
			    c->http.cert ? "http.cert" : "http.key",
			    c->http.cert ? "http.key" : "http.cert");
	if (c->http.admin.text[0] && is_same_address(&c->http.admin, &c->http.listen))
		return fail(error, "http.admin and http.listen are the same address: %s",
			    c->http.listen.text);
	err = check_ports(c, error);
	return err ? err : check_tokens(c, error);
}

static bool has_secrets(const struct config *c)
{
	bool found = c->tokens.publish.count || c->tokens.watch.count || c->tokens.admin.count;

	for (size_t i = 0; i < c->ice.servers.count; i++)
		found =
		    found || c->ice.servers.items[i].credential || c->ice.servers.items[i].secret;
	return found;
}

/* The whole file, terminated; NULL and *err set on failure. */
static char *file_read(FILE *f, size_t *bytes, int *err)
{
	char *text = malloc(CONFIG_FILE_BYTES + 1);

	*err = -ENOMEM;
	if (!text)
		return NULL;
	*bytes = fread(text, 1, CONFIG_FILE_BYTES + 1, f);
	*err = ferror(f) ? (errno ? -errno : -EIO) : *bytes > CONFIG_FILE_BYTES ? -EFBIG : 0;
	if (*err) {
		free(text);
		return NULL;
	}
	text[*bytes] = '\0';
	return text;
}

static int file_load(struct config *c, const char *name, char *error)
{
	FILE *f = fopen(name, "re");
	struct stat st;
	char *text = NULL;
	size_t bytes = 0;
	int err = f ? 0 : -errno;

	if (f)
		text = file_read(f, &bytes, &err);
	if (err) {
		fail(error, "%.200s: %s", name, strerror(-err));
		goto out;
	}
	assert(text);
	err = config_yaml_load(c, text, bytes, name, error);
	c->is_secret_readable =
	    !err && has_secrets(c) && fstat(fileno(f), &st) == 0 && (st.st_mode & 077) != 0;
	explicit_bzero(text, bytes);
out:
	free(text);
	if (f)
		fclose(f);
	return err;
}

static int load(struct config *c, struct args *a)
{
	int err = config_set_defaults(c);

	if (!err && a->file)
		err = file_load(c, a->file, a->error);
	if (!err)
		err = flags_apply(a, c);
	if (!err)
		err = config_check(c, a->error);
	return err;
}

int config_from_args(struct config **out, enum config_action *action, int argc, char *const argv[],
		     char error[CONFIG_ERROR_BYTES])
{
	struct args a = { .argc = argc, .argv = argv, .error = error };
	struct config *c;
	int err;

	*out = NULL;
	*action = CONFIG_RUN;
	fail(error, "out of memory"); /* until something better is known */
	err = flags_scan(&a);
	if (err)
		return err;
	*action = a.action;
	if (a.action == CONFIG_HELP || a.action == CONFIG_VERSION)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	err = load(c, &a);
	if (err) {
		config_destroy(c);
		return err;
	}
	error[0] = '\0';
	*out = c;
	return 0;
}

int config_parse(struct config **out, const char *yaml, size_t bytes, const char *name,
		 char error[CONFIG_ERROR_BYTES])
{
	struct config *c = calloc(1, sizeof(*c));
	int err = c ? config_set_defaults(c) : -ENOMEM;

	*out = NULL;
	fail(error, "out of memory");
	if (!err)
		err = config_yaml_load(c, yaml, bytes, name, error);
	if (!err)
		err = config_check(c, error);
	if (err) {
		config_destroy(c);
		return err;
	}
	error[0] = '\0';
	*out = c;
	return 0;
}
