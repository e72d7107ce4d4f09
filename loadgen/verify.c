#include "loadgen/verify.h"

#include <errno.h>
#include <srtp2/srtp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_PKTS = 2048 };

struct verify {
	srtp_t session;
};

/* The library refuses to be started twice. */
static bool start_library(void)
{
	static bool is_started;

	if (!is_started)
		is_started = srtp_init() == srtp_err_status_ok;
	return is_started;
}

int verify_create(struct verify **out, const struct seal_keys *keys)
{
	size_t key_bytes = seal_key_bytes(keys->profile);
	uint8_t key[SEAL_MAX_KEY_BYTES + SEAL_MAX_SALT_BYTES];
	srtp_policy_t policy;
	struct verify *v;

	*out = NULL;
	if (!start_library())
		return -ENOMEM;
	memset(&policy, 0, sizeof(policy));
	/* libsrtp2 numbers the profiles as IANA does, too. */
	if (srtp_crypto_policy_set_from_profile_for_rtp(
		&policy.rtp, (srtp_profile_t)keys->profile) != srtp_err_status_ok ||
	    srtp_crypto_policy_set_from_profile_for_rtcp(
		&policy.rtcp, (srtp_profile_t)keys->profile) != srtp_err_status_ok)
		return -EINVAL;
	memcpy(key, keys->key, key_bytes);
	memcpy(key + key_bytes, keys->salt, seal_salt_bytes(keys->profile));
	policy.ssrc.type = ssrc_any_inbound;
	policy.key = key;
	policy.window_size = WINDOW_PKTS;
	v = calloc(1, sizeof(*v));
	if (v && srtp_create(&v->session, &policy) != srtp_err_status_ok) {
		free(v);
		v = NULL;
	}
	memset(key, 0, sizeof(key));
	*out = v;
	return v ? 0 : -ENOMEM;
}

void verify_destroy(struct verify *v)
{
	if (!v)
		return;
	srtp_dealloc(v->session);
	free(v);
}

enum verify_verdict verify_open(struct verify *v, uint8_t *bytes, size_t *len)
{
	int n = (int)*len;

	switch (srtp_unprotect(v->session, bytes, &n)) {
	case srtp_err_status_ok:
		*len = (size_t)n;
		return VERIFY_OK;
	case srtp_err_status_replay_fail:
	case srtp_err_status_replay_old:
		return VERIFY_REPEATED;
	default:
		return VERIFY_BAD;
	}
}
