/* config/schema.h - the one list of keys, and how a value's text becomes a member.
 *
 * Thread:  the table is constant; any thread.
 * Memory:  config_value_set() allocates what lists and texts hold; config_destroy() frees it.
 */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

#include "config/config.h"

enum config_type {
	CONFIG_TYPE_BOOL,
	CONFIG_TYPE_COUNT,     /* uint32_t between min and max */
	CONFIG_TYPE_WORD,      /* an enum, one of words[], in the enum's order */
	CONFIG_TYPE_PATH,      /* char *, not empty */
	CONFIG_TYPE_URL,       /* char *, http[s]://HOST[:PORT][/PATH] without a / at its end */
	CONFIG_TYPE_ADDRESS,   /* ADDR:PORT */
	CONFIG_TYPE_ADDRESSES, /* list of [ADDR]:PORT */
	CONFIG_TYPE_HOSTS,     /* list of IP[:PORT] */
	CONFIG_TYPE_NETWORKS,  /* list of IP[/BITS] */
	CONFIG_TYPE_SECRETS,   /* list of tokens */
	CONFIG_TYPE_ICE,       /* list of mappings url, username, credential, secret */
};

struct config_key {
	const char *name; /* "section.key", or "key" at the top level */
	enum config_type type;
	size_t offset;          /* into struct config */
	const char *by_default; /* as it would be written; NULL: none, or an empty list */
	uint32_t min, max;      /* CONFIG_TYPE_COUNT */
	const char *words[6];   /* CONFIG_TYPE_WORD, ends with NULL */
	bool is_power;          /* CONFIG_TYPE_COUNT: 0 or a power of two only */
	const char *zero;       /* what 0 stands for, NULL when it is just a number */
	const char *help;       /* one sentence; names the unit when the key's name does not */
};

enum { CONFIG_KEYS_MAX = 80 }; /* asserted against the table */

/** The table, keys of one section next to each other. Sets *count. */
const struct config_key *config_schema(size_t *count);

/** NULL when there is no such key. */
const struct config_key *config_schema_find(const char *name);

/** Length of the section in a key's name; 0 for a key at the top level. */
size_t config_key_section(const struct config_key *key);

bool config_type_is_list(enum config_type type);

/** What a value of this key may be, for error lines, --help and the reference:
 *  "true or false", "1 to 65535", "text or json". Returns `text`. */
const char *config_key_allowed(const struct config_key *key, char *text, size_t bytes);

/**
 * Set the member, or append to the list, that `key` names.
 *
 * @return 0, -EINVAL (not a value that config_key_allowed() names), -E2BIG (list is full) or
 *         -ENOMEM
 */
int config_value_set(struct config *c, const struct config_key *key, const char *text);

/** Append a copy to ice.servers: a url alone; with username and credential; or with a secret, with or
 *  without username.
 *  @return as config_value_set() */
int config_ice_server_add(struct config *c, const struct config_ice_server *server);

/** Empty the list that `key` names. */
void config_list_clear(struct config *c, const struct config_key *key);

/** Every key that has a default. @return 0 or -ENOMEM */
int config_set_defaults(struct config *c);

/**
 * Read a YAML text over what *c holds. A list in the text replaces the list in *c.
 *
 * @return 0, -EINVAL or -ENOMEM; error names the key, the line and what is allowed
 */
int config_yaml_load(struct config *c, const char *yaml, size_t bytes, const char *name,
		     char error[CONFIG_ERROR_BYTES]);

/** The flags of the command line, for --help. */
struct config_flag {
	const char *name;
	const char *value; /* placeholder, NULL when the flag takes none */
	const char *key;   /* NULL: not a key of the file */
	const char *help;
};
const struct config_flag *config_flags(size_t *count);

#endif
