/* config/config.h - every setting of the relay, from its defaults, a YAML file and the flags.
 *
 * Source:  config/schema.c is the one list of keys: it drives the YAML loader, the flags, the
 *          defaults, the range checks, --help and docs/config.md.
 * Thread:  written once by config_from_args() or config_parse(), then read only; any thread
 *          may read it. A reload makes a second object.
 * Memory:  one struct config and what its lists hold, released by config_destroy().
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	CONFIG_ERROR_BYTES = 1024,   /* one line, terminated, without the newline */
	CONFIG_TEXT_BYTES = 64,      /* longest address with its port, as written, terminated */
	CONFIG_URL_BYTES = 256,      /* longest URL of our own, terminated */
	CONFIG_FILE_BYTES = 1 << 20, /* larger files are refused */
	CONFIG_LIST_MAX = 256,       /* entries of one list */
};

/* An address to bind or to advertise. */
struct config_address {
	uint8_t ip[16]; /* IPv6, or IPv4 mapped: the layout of struct net_addr */
	uint16_t port;  /* host order; 0 = any free port (listen), the bound port (advertise) */
	bool is_both;   /* written ":port": IPv4 and IPv6 wildcard; ip is :: */
	bool is_v4;     /* ip is IPv4 mapped */
	char text[CONFIG_TEXT_BYTES]; /* as written */
};

struct config_addresses {
	struct config_address *items;
	size_t count;
};

struct config_network {
	uint8_t ip[16];      /* IPv6, or IPv4 mapped; bits behind the prefix are zero */
	uint8_t prefix_bits; /* 0..128; an IPv4 /8 is 104 */
};

struct config_networks {
	struct config_network *items;
	size_t count;
};

struct config_strings {
	char **items;
	size_t count;
};

/* An ICE server for clients, sent to them in Link header fields. The relay never uses it. */
struct config_ice_server {
	char *url;        /* "stun:host:port", "turn:host:port?transport=udp", "turns:..." */
	char *username;   /* NULL when absent */
	char *credential; /* NULL when absent */
	char *secret;     /* shared with the TURN server: credentials are made anew for each client,
			   * as draft-uberti-behave-turn-rest has it; NULL when absent */
};

struct config_ice_servers {
	struct config_ice_server *items;
	size_t count;
};

enum config_srtp_engine {
	CONFIG_SRTP_AUTO, /* ipsecmb where it runs, else evp */
	CONFIG_SRTP_IPSECMB,
	CONFIG_SRTP_EVP,
	CONFIG_SRTP_LIBSRTP2,
};

enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JSON };
enum config_log_level { CONFIG_LOG_DEBUG, CONFIG_LOG_INFO, CONFIG_LOG_WARN, CONFIG_LOG_ERROR };

/* Member names follow the key names; what each means, its range and default: config/schema.c.
 * Counts and times are uint32_t, so a value of the schema's range always fits. */
struct config {
	struct {
		struct config_address listen;
		struct config_address admin; /* text[0] == '\0': no listener of its own */
		char *cert;                  /* path, NULL: plain HTTP */
		char *key;                   /* path, NULL exactly when cert is */
		char *public_url;            /* what stands before our paths, NULL: nothing */
		struct config_networks trusted_proxies;
		bool open;
		uint32_t idle_timeout_ms;
	} http;
	struct {
		struct config_addresses listen;
		uint32_t receive_buffer_bytes; /* a socket */
		uint32_t send_buffer_bytes;    /* a socket */
		bool gso;
	} udp;
	struct {
		bool enabled;
		struct config_addresses listen; /* empty: as udp.listen */
		uint32_t connections;           /* all; 0: a quarter of RLIMIT_NOFILE */
	} tcp;
	struct config_addresses advertise; /* empty: the bound addresses are the candidates */
	uint32_t workers;                  /* 0: one a CPU */
	bool pin;
	struct {
		struct config_strings publish;
		struct config_strings watch;
		struct config_strings admin;
	} tokens;
	struct {
		bool wait_for_publisher;
		uint32_t max;
	} streams;
	struct {
		uint32_t max_codecs; /* of each kind in a publisher's answer; 0: all */
		bool audio_only;     /* viewers without the video's codec get the audio */
	} policy;
	struct {
		uint32_t hold_min_viewers;
		uint32_t hold_us;
		uint32_t slice_us;
		uint32_t pad_bytes; /* 0, or a power of two */
		uint32_t history_ms;
		uint32_t history_bytes;        /* a stream on a worker */
		uint32_t keyframe_interval_ms; /* least time between two requests to a source */
		bool fast_start;
		uint32_t fast_start_ms;          /* oldest key frame a viewer may start with */
		uint32_t keyframe_share_percent; /* of what a source sends; 100: no bound */
	} media;
	struct {
		uint32_t packets; /* slabs a worker */
		uint32_t trim_ms;
	} pool;
	struct {
		enum config_srtp_engine engine;
	} srtp;
	struct {
		uint32_t port_min, port_max;
		uint32_t inputs, outputs;
		bool latch;
		struct config_networks allow_out;
	} rtp;
	struct {
		uint32_t threads; /* 0: half the CPUs, at least one */
	} crypto;
	struct {
		struct config_networks trusted;
		uint32_t posts_per_s;           /* one address */
		uint32_t posts_burst;           /* one address */
		uint32_t node_posts_per_s;      /* all addresses together */
		uint32_t node_posts_burst;      /* all addresses together */
		uint32_t patches_per_s;         /* one session */
		uint32_t connections_per_ip;    /* HTTP */
		uint32_t connections;           /* HTTP, all; 0: RLIMIT_NOFILE - 1024 */
		uint32_t half_open_per_ip;      /* sessions before their first authentic media */
		uint32_t unclaimed_plans;       /* sessions no STUN request has asked for yet */
		uint32_t tcp_half_open_per_ip;  /* on each worker, before a valid STUN request */
		uint32_t handshakes_per_worker; /* DTLS, in progress */
		uint32_t
		    stun_failures_per_s; /* one address, failed look-ups and integrity checks */
		uint32_t stun_failures_burst;
		uint32_t sessions; /* all; 0: as many as memory holds */
		uint32_t sdp_bytes;
		uint32_t sdpfrag_bytes;
	} limits;
	struct {
		struct config_ice_servers servers;
		uint32_t credentials_ttl_s; /* of those made from a secret */
	} ice;
	struct {
		uint32_t plan_timeout_ms;  /* POST to first valid STUN request */
		uint32_t media_timeout_ms; /* a publisher without media */
	} session;
	uint32_t drain_ms; /* SIGTERM to the end of the last session */
	struct {
		enum config_log_format format;
		enum config_log_level level;
	} log;
	struct {
		bool strict_etags;
	} whip;

	/* Found out while loading; no keys. */
	bool is_secret_readable; /* the file holds secrets and others than its owner may read it */
};

enum config_action {
	CONFIG_RUN,
	CONFIG_CHECK,   /* --check: the configuration is good, do not start */
	CONFIG_HELP,    /* --help: call config_print_help() */
	CONFIG_VERSION, /* --version: call config_print_version() */
};

/**
 * Defaults, then the file named by -c, then the flags; then what concerns several keys at once
 * (certificate without key, an open listener without tokens, ...).
 *
 * @param out     NULL on failure and for CONFIG_HELP and CONFIG_VERSION; the caller destroys it
 * @param argv    as main() has it: argv[0] is skipped, argv[argc] is NULL
 * @param error   one line that names the flag or the key and line, and what is allowed
 * @return 0, -EINVAL (flag, key or value), -ENOMEM, or the errno of reading the file;
 *         error is set for each of them (exit status 2)
 */
int config_from_args(struct config **out, enum config_action *action, int argc, char *const argv[],
		     char error[CONFIG_ERROR_BYTES]);

/**
 * Defaults, then `yaml`, then the checks between keys. For tests and tools; an empty text
 * gives the defaults.
 *
 * @param name  of the file, for the error line
 * @return as config_from_args()
 */
int config_parse(struct config **out, const char *yaml, size_t bytes, const char *name,
		 char error[CONFIG_ERROR_BYTES]);

/** Accepts NULL. Secrets are overwritten before their memory is released. */
void config_destroy(struct config *c);

/** Usage, flags, and every key with its type, default and meaning. */
void config_print_help(FILE *out);
/** "sluice 0.1.0" */
void config_print_version(FILE *out);
/** The text of docs/config.md. */
void config_print_reference(FILE *out);

/** 127.0.0.0/8 or ::1. The wildcard is not. */
bool config_address_is_loopback(const struct config_address *a);
/** 0.0.0.0, :: or ":port". */
bool config_address_is_wildcard(const struct config_address *a);
/** Whether `ip` (the layout of struct net_addr) lies in one of the networks. */
bool config_networks_have(const struct config_networks *n, const uint8_t ip[16]);

#endif
