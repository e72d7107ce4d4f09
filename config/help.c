/* --help, --version and docs/config.md: the schema, printed. */
#include "config/schema.h"

enum { HELP_COLUMN = 28, HELP_WIDTH = 96 };

void config_print_version(FILE *out)
{
	fprintf(out, "sluice %s\n", SLUICE_VERSION);
}

/* `text` broken at spaces, every line but the first indented to the column. */
static void print_wrapped(FILE *out, const char *text)
{
	size_t room = HELP_WIDTH - HELP_COLUMN;
	size_t used = 0;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (used > 0 && used + 1 + word > room) {
			fprintf(out, "\n%*s", HELP_COLUMN, "");
			used = 0;
		} else if (used > 0) {
			fputc(' ', out);
			used++;
		}
		fprintf(out, "%.*s", (int)word, text);
		used += word;
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_entry(FILE *out, const char *name, const char *text)
{
	int n = fprintf(out, "  %s", name);

	if (n >= HELP_COLUMN - 1)
		fprintf(out, "\n%*s", HELP_COLUMN, "");
	else
		fprintf(out, "%*s", HELP_COLUMN - n, "");
	print_wrapped(out, text);
}

static const char *default_text(const struct config_key *key, char *text, size_t bytes)
{
	if (key->zero && strcmp(key->by_default, "0") == 0)
		snprintf(text, bytes, "0 (%s)", key->zero);
	else
		snprintf(text, bytes, "%s", key->by_default ? key->by_default : "none");
	return text;
}

static const char *allowed_text(const struct config_key *key, char *text, size_t bytes)
{
	size_t len;

	config_key_allowed(key, text, bytes);
	len = strlen(text);
	if (key->zero)
		snprintf(text + len, bytes - len, "; 0: %s", key->zero);
	return text;
}

static void print_flags(FILE *out)
{
	size_t count;
	const struct config_flag *flags = config_flags(&count);

	for (size_t i = 0; i < count; i++) {
		char name[64];
		char text[256];

		snprintf(name, sizeof(name), "%s%s%s", flags[i].name, flags[i].value ? " " : "",
			 flags[i].value ? flags[i].value : "");
		if (flags[i].key)
			snprintf(text, sizeof(text), "Sets %s%s.", flags[i].key,
				 config_type_is_list(config_schema_find(flags[i].key)->type)
				     ? "; may be repeated"
				     : "");
		print_entry(out, name, flags[i].key ? text : flags[i].help);
	}
}

void config_print_help(FILE *out)
{
	size_t count;
	const struct config_key *keys = config_schema(&count);

	fputs(
	    "sluice: a WebRTC relay. One publisher's stream in by WHIP, out by WHEP to its "
	    "viewers.\n"
	    "\n"
	    "Usage: sluice [-c FILE] [--http ADDR:PORT] [--udp [ADDR]:PORT]...\n"
	    "              [--advertise IP[:PORT]]... [--workers N] [--admin ADDR:PORT] [--open]\n"
	    "              [--log text|json] [--check] [--version] [--help]\n"
	    "       sluice doctor [--json] [the same flags]\n"
	    "\n"
	    "doctor tries what the relay would need here: ports, addresses, kernel buffers, "
	    "segmented\n"
	    "sending, crypto. A line each says ok, warn or FAIL, and what to change; it exits with "
	    "1\n"
	    "if something would not work.\n"
	    "\n"
	    "Flags:\n",
	    out);
	print_flags(out);
	fputs("\nKeys of the file (http.listen is the key listen of the mapping http):\n", out);
	for (size_t i = 0; i < count; i++) {
		char by_default[80];
		char allowed[256];
		char text[512];

		snprintf(text, sizeof(text), "%s Value: %s. Default: %s.", keys[i].help,
			 allowed_text(&keys[i], allowed, sizeof(allowed)),
			 default_text(&keys[i], by_default, sizeof(by_default)));
		print_entry(out, keys[i].name, text);
	}
	fputs("\nExit status: 0 after a drain, 1 cannot start or stopped twice, 2 wrong flags or "
	      "file.\n",
	      out);
}

/* A cell of a Markdown table: "|" would end it. */
static void print_cell(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '<')
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void print_reference_keys(FILE *out)
{
	size_t count;
	const struct config_key *keys = config_schema(&count);

	for (size_t i = 0; i < count; i++) {
		char text[256];

		fprintf(out, "| `%s` | ", keys[i].name);
		print_cell(out, allowed_text(&keys[i], text, sizeof(text)));
		fputs(" | ", out);
		print_cell(out, default_text(&keys[i], text, sizeof(text)));
		fputs(" | ", out);
		print_cell(out, keys[i].help);
		fputs(" |\n", out);
	}
}

static const char reference_intro[] =
    "# Configuration\n"
    "\n"
    "This page is printed from the schema (`make docs/config.md`); a test keeps the two "
    "equal.\n"
    "\n"
    "Settings come from the defaults, then the YAML file that `-c` names, then the "
    "flags. A wrong\n"
    "or unknown key or flag is refused with exit status 2 and one line that names it, "
    "its line and\n"
    "what is allowed; `sluice --check` does only that, and `sluice doctor` tries what the "
    "relay would\n"
    "need on this machine. SIGHUP has them read again: tokens, limits of requests and ICE "
    "servers\n"
    "change, what is bound and what workers were given stays. A file with tokens or secrets\n"
    "should be readable by its owner alone; a warning says so.\n"
    "\n"
    "```yaml\n"
    "http:\n"
    "  listen: 0.0.0.0:8443\n"
    "  cert: /etc/sluice/cert.pem\n"
    "  key: /etc/sluice/key.pem\n"
    "  admin: 127.0.0.1:9090\n"
    "advertise: [203.0.113.7]\n"
    "tokens:\n"
    "  publish: [a-long-secret]\n"
    "  watch: [another-long-secret]\n"
    "ice:\n"
    "  servers:\n"
    "    - url: stun:stun.example.org:3478\n"
    "    - url: turn:turn.example.org:3478?transport=udp\n"
    "      username: relay\n"
    "      credential: turn-secret\n"
    "    - url: turns:turn.example.org:5349    # or credentials that expire\n"
    "      secret: shared-with-the-turn-server\n"
    "```\n"
    "\n"
    "## Flags\n"
    "\n"
    "| flag | key | meaning |\n"
    "| --- | --- | --- |\n";

static void print_reference_flags(FILE *out)
{
	size_t count;
	const struct config_flag *flags = config_flags(&count);

	for (size_t i = 0; i < count; i++) {
		const struct config_key *key =
		    flags[i].key ? config_schema_find(flags[i].key) : NULL;

		fprintf(out, "| `%s%s", flags[i].name, flags[i].value ? " " : "");
		print_cell(out, flags[i].value ? flags[i].value : "");
		fprintf(out, "` | %s%s%s | ", key ? "`" : "", key ? key->name : "", key ? "`" : "");
		print_cell(out, key ? key->help : flags[i].help);
		fputs(" |\n", out);
	}
}

void config_print_reference(FILE *out)
{
	fputs(reference_intro, out);
	print_reference_flags(out);
	fputs("\n"
	      "## Keys\n"
	      "\n"
	      "`http.listen` is the key `listen` of the mapping `http`. A list in the file or on "
	      "the command\n"
	      "line replaces the one before it.\n"
	      "\n"
	      "| key | value | default | meaning |\n"
	      "| --- | --- | --- | --- |\n",
	      out);
	print_reference_keys(out);
}
