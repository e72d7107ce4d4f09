#include "net/transport.h"

static const char *const reasons[TRANSPORT_REASONS] = {
	[TRANSPORT_OPEN] = "open",
	[TRANSPORT_CLOSED_BY_CLIENT] = "closed by client",
	[TRANSPORT_CLOSED_BY_ADMIN] = "closed by administrator",
	[TRANSPORT_CLOSED_BY_PEER] = "closed by peer",
	[TRANSPORT_CLOSED_REPLACED] = "replaced by a newer publisher",
	[TRANSPORT_CLOSED_STREAM_ENDED] = "stream ended",
	[TRANSPORT_CLOSED_CODEC] = "stream goes on in another codec",
	[TRANSPORT_CLOSED_SHUTDOWN] = "server shut down",
	[TRANSPORT_CLOSED_SILENT] = "peer fell silent",
	[TRANSPORT_CLOSED_NO_ICE] = "no valid connectivity check in time",
	[TRANSPORT_CLOSED_NO_DTLS] = "no complete handshake in time",
	[TRANSPORT_CLOSED_FINGERPRINT] = "certificate does not match the fingerprint",
	[TRANSPORT_CLOSED_NO_PROFILE] = "no protection profile in common",
	[TRANSPORT_CLOSED_ALERT] = "peer sent a fatal alert",
	[TRANSPORT_CLOSED_NO_MEDIA] = "no media in time",
	[TRANSPORT_CLOSED_NO_MEMORY] = "out of memory",
	[TRANSPORT_CLOSED_STUCK] = "peer does not read",
};

const char *transport_reason_text(uint32_t reason)
{
	return reason < TRANSPORT_REASONS ? reasons[reason] : "unknown";
}

static const char *const verdicts[TRANSPORT_VERDICTS] = {
	[TRANSPORT_RTP] = "rtp",
	[TRANSPORT_RTCP] = "rtcp",
	[TRANSPORT_CONSUMED] = "consumed",
	[TRANSPORT_DROP_CLOSED] = "closed",
	[TRANSPORT_DROP_UNKNOWN_PROTOCOL] = "unknown_protocol",
	[TRANSPORT_DROP_UNVALIDATED] = "unvalidated",
	[TRANSPORT_DROP_STUN_MALFORMED] = "stun_malformed",
	[TRANSPORT_DROP_STUN_CREDENTIALS] = "stun_credentials",
	[TRANSPORT_DROP_STUN_OTHER] = "stun_other",
	[TRANSPORT_DROP_DTLS_MALFORMED] = "dtls_malformed",
	[TRANSPORT_DROP_DTLS_PLAIN_ALERT] = "dtls_plain_alert",
	[TRANSPORT_DROP_DTLS_STRAY] = "dtls_stray",
	[TRANSPORT_DROP_DTLS_QUEUE_FULL] = "dtls_queue_full",
	[TRANSPORT_DROP_SRTP_EARLY] = "srtp_early",
	[TRANSPORT_DROP_SRTP_MALFORMED] = "srtp_malformed",
	[TRANSPORT_DROP_SRTP_AUTH] = "srtp_auth",
	[TRANSPORT_DROP_SRTP_REPLAYED] = "srtp_replayed",
	[TRANSPORT_DROP_SRTP_SSRCS] = "srtp_ssrcs",
	[TRANSPORT_DROP_WRONG_SOURCE] = "wrong_source",
};

const char *transport_verdict_text(enum transport_verdict v)
{
	return v < TRANSPORT_VERDICTS ? verdicts[v] : "unknown";
}

static const char *const states[] = {
	[TRANSPORT_STATE_NEW] = "new",
	[TRANSPORT_STATE_CHECKED] = "checked",
	[TRANSPORT_STATE_HANDSHAKE] = "handshake",
	[TRANSPORT_STATE_CONNECTED] = "connected",
	[TRANSPORT_STATE_CLOSED] = "closed",
};

const char *transport_state_text(enum transport_state s)
{
	return s <= TRANSPORT_STATE_CLOSED ? states[s] : "unknown";
}
