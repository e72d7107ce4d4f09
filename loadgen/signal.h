/* loadgen/signal.h - WHIP and WHEP requests: POST an offer, DELETE a session.
 *
 * Source:  RFC 9725 (WHIP), draft-ietf-wish-whep; RFC 9110 (Location, Retry-After).
 * Thread:  the loop's.
 * Memory:  a request is freed after its callback.
 */
#ifndef LOADGEN_SIGNAL_H
#define LOADGEN_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

enum {
	SIGNAL_CONNECTIONS = 64,        /* at once; further requests wait for one */
	SIGNAL_TIMEOUT_MS = 30000,      /* of one request */
	SIGNAL_URL_BYTES = 2048,        /* a longer Location is refused */
	SIGNAL_ANSWER_BYTES = 64 << 10, /* a longer body is refused */
};

struct signal_client;

/** @return 0 or -ENOMEM */
int signal_create(struct signal_client **out, struct loop *loop);
/** Requests under way end without their callbacks. */
void signal_destroy(struct signal_client *c);

struct signal_result {
	long status;         /* HTTP status; 0: no response */
	const char *error;   /* without a response: why, for a person */
	bool is_unreachable; /* no connection could be made at all */
	const char *body;    /* terminated; valid during the callback, as is the next */
	size_t body_bytes;
	const char *location;   /* absolute; "" when there is none */
	unsigned retry_after_s; /* 0: not said */
};

typedef void signal_on_result(void *arg, const struct signal_result *result);

/** @param token NULL: no Authorization. Strings are copied.
 *  @return 0 or -ENOMEM (no callback follows) */
int signal_post(struct signal_client *c, const char *url, const char *token, const char *offer,
		signal_on_result *on_result, void *arg);
int signal_delete(struct signal_client *c, const char *url, const char *token,
		  signal_on_result *on_result, void *arg);

/** No callback for whatever is under way with this arg. */
void signal_forget(struct signal_client *c, const void *arg);

/** A Location as received, made absolute by the URL it answers.
 *  @return false: it is no URL reference, another scheme than http and https, or too long */
bool signal_resolve(const char *base, const char *location, char out[SIGNAL_URL_BYTES]);

/** Host and port of an http or https URL; brackets of IPv6 are taken off.
 *  @return 0 or -EINVAL: it is none */
int signal_split(const char *url, char *host, size_t host_cap, char port[8]);

#endif
