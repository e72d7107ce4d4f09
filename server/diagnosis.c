#include "server/diagnosis.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* --- which ------------------------------------------------------------------------------- */

static enum diagnosis before_check(const struct diagnosis_facts *f)
{
	return f->seen.bad_checks ? DIAGNOSIS_BAD_CREDENTIALS : DIAGNOSIS_NO_CHECK;
}

/* An address is validated; media does not flow. */
static enum diagnosis before_media(const struct diagnosis_facts *f)
{
	const struct diagnosis_seen *s = &f->seen;

	if (s->mismatches)
		return DIAGNOSIS_FINGERPRINT;
	if (s->has_alert)
		return DIAGNOSIS_DTLS_ALERT;
	if (s->progress == DTLS_PROGRESS_DONE)
		return DIAGNOSIS_ANSWERS_LOST;
	/* The relay's own ClientHello says nothing of the peer. */
	if (s->has_handshake && !(f->is_dtls_client && s->progress <= DTLS_PROGRESS_ANSWERED))
		return DIAGNOSIS_HANDSHAKE_UNFINISHED;
	return s->is_proven ? DIAGNOSIS_NO_HELLO : DIAGNOSIS_ANSWERS_LOST;
}

static enum diagnosis not_connected(const struct diagnosis_facts *f)
{
	return f->seen.checks == 0 ? before_check(f) : before_media(f);
}

static enum diagnosis without_media(const struct diagnosis_facts *f)
{
	return f->srtp_failures && f->packets == 0 ? DIAGNOSIS_SRTP_FAILURES : DIAGNOSIS_NO_MEDIA;
}

static enum diagnosis connected(const struct diagnosis_facts *f)
{
	if (f->is_publisher && f->idle_us >= DIAGNOSIS_PATIENCE_US)
		return without_media(f);
	if (!f->is_publisher && f->packets == 0 && f->age_us >= DIAGNOSIS_PATIENCE_US)
		return f->has_publisher ? DIAGNOSIS_NO_MEDIA : DIAGNOSIS_NO_PUBLISHER;
	return f->seen.is_over_tcp ? DIAGNOSIS_TCP_ONLY : DIAGNOSIS_NONE;
}

static enum diagnosis of_open(const struct diagnosis_facts *f)
{
	if (f->is_connected)
		return connected(f);
	return f->age_us < DIAGNOSIS_PATIENCE_US ? DIAGNOSIS_NONE : not_connected(f);
}

enum diagnosis diagnosis_of(const struct diagnosis_facts *f)
{
	switch (f->reason) {
	case TRANSPORT_OPEN:
		return of_open(f);
	case TRANSPORT_CLOSED_NO_ICE:
	case TRANSPORT_CLOSED_NO_DTLS:
		return not_connected(f);
	case TRANSPORT_CLOSED_FINGERPRINT:
		return DIAGNOSIS_FINGERPRINT;
	case TRANSPORT_CLOSED_NO_PROFILE:
		return DIAGNOSIS_NO_PROFILE;
	case TRANSPORT_CLOSED_ALERT:
		return DIAGNOSIS_DTLS_ALERT;
	case TRANSPORT_CLOSED_NO_MEDIA:
		return without_media(f);
	case TRANSPORT_CLOSED_SILENT:
		return DIAGNOSIS_SILENT;
	case TRANSPORT_CLOSED_STUCK:
		return DIAGNOSIS_STUCK;
	case TRANSPORT_CLOSED_REPLACED:
		return DIAGNOSIS_REPLACED;
	case TRANSPORT_CLOSED_CODEC:
		return DIAGNOSIS_OTHER_CODEC;
	case TRANSPORT_CLOSED_NO_MEMORY:
		return DIAGNOSIS_NO_MEMORY;
	case TRANSPORT_CLOSED_BY_CLIENT:
	case TRANSPORT_CLOSED_BY_PEER:
		/* Clients give up too; those that change their mind do so sooner. */
		return f->is_connected ? DIAGNOSIS_NONE : of_open(f);
	default:
		return DIAGNOSIS_NONE;
	}
}

static const char *const codes[DIAGNOSES] = {
	[DIAGNOSIS_NO_CHECK] = "no_check",
	[DIAGNOSIS_BAD_CREDENTIALS] = "bad_credentials",
	[DIAGNOSIS_ANSWERS_LOST] = "answers_lost",
	[DIAGNOSIS_NO_HELLO] = "no_client_hello",
	[DIAGNOSIS_HANDSHAKE_UNFINISHED] = "handshake_unfinished",
	[DIAGNOSIS_DTLS_ALERT] = "dtls_alert",
	[DIAGNOSIS_FINGERPRINT] = "fingerprint_mismatch",
	[DIAGNOSIS_NO_PROFILE] = "no_srtp_profile",
	[DIAGNOSIS_SRTP_FAILURES] = "srtp_failures",
	[DIAGNOSIS_NO_MEDIA] = "no_media",
	[DIAGNOSIS_NO_PUBLISHER] = "no_publisher",
	[DIAGNOSIS_TCP_ONLY] = "tcp_only",
	[DIAGNOSIS_SILENT] = "silent",
	[DIAGNOSIS_STUCK] = "stuck",
	[DIAGNOSIS_REPLACED] = "replaced",
	[DIAGNOSIS_OTHER_CODEC] = "other_codec",
	[DIAGNOSIS_NO_MEMORY] = "out_of_memory",
};

const char *diagnosis_code(enum diagnosis d)
{
	return codes[d];
}

/* --- in words ---------------------------------------------------------------------------- */

struct words {
	char *out;
	const struct diagnosis_facts *facts;
	const char *peer; /* where it is, in words */
};

__attribute__((format(printf, 2, 3))) static void say(const struct words *w, const char *format,
						      ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->out, DIAGNOSIS_BYTES, format, args);
	va_end(args);
}

static unsigned seconds(uint64_t us)
{
	return (unsigned)(us / 1000000);
}

static void say_no_check(const struct words *w)
{
	const struct diagnosis_facts *f = w->facts;

	say(w, "No connectivity check arrived within %u s. Addresses the answer named: %s. %s",
	    seconds(f->age_us), f->addresses,
	    f->is_private_only
		? "They are private: clients elsewhere cannot reach them; name the public address "
		  "with --advertise."
		: "Open these ports in the firewall (UDP, and TCP where it is named), and check "
		  "that the client can reach these addresses; others are named with --advertise.");
}

static void say_bad_credentials(const struct words *w)
{
	say(w,
	    "%" PRIu64 " connectivity checks arrived, none under the credentials of the answer: "
	    "the client uses another session's answer, or something changed it on the way.",
	    w->facts->seen.bad_checks);
}

static void say_answers_lost(const struct words *w)
{
	say(w,
	    "%" PRIu64 " connectivity checks arrived from %s, but the relay's own check to that "
	    "address got no answer: what the relay sends seems not to reach the client. Let its "
	    "packets out (firewall, NAT), from the very address that the client sends to.",
	    w->facts->seen.checks, w->peer);
}

static void say_no_hello(const struct words *w)
{
	if (w->facts->is_dtls_client)
		say(w,
		    "The relay's DTLS ClientHello to %s got no answer, though connectivity checks "
		    "pass: the client offered setup:passive and does not act as a DTLS server.",
		    w->peer);
	else
		say(w,
		    "Connectivity checks with %s pass, but the client began no DTLS handshake: it "
		    "must act on a=setup:passive of the answer; packets larger than checks may be "
		    "lost on the way.",
		    w->peer);
}

static void say_unfinished(const struct words *w)
{
	static const char *const where[] = {
		[DTLS_PROGRESS_NONE] = "the ClientHello did not arrive whole",
		[DTLS_PROGRESS_ANSWERED] = "the relay's flight got no answer",
		[DTLS_PROGRESS_BEGUN] = "the client's last flight did not arrive whole",
		[DTLS_PROGRESS_DONE] = "",
	};
	const struct diagnosis_seen *s = &w->facts->seen;

	if (s->error && s->error[0])
		say(w,
		    "The DTLS handshake with %s failed (%s): client and relay share no version, "
		    "cipher or certificate type, or something else answers at that address.",
		    w->peer, s->error);
	else
		say(w,
		    "The DTLS handshake with %s began and never finished: %s. Packets are lost on "
		    "the way; where large ones are, the path carries less than 1,200 bytes.",
		    w->peer, where[s->progress]);
}

static void say_alert(const struct words *w)
{
	const struct diagnosis_seen *s = &w->facts->seen;

	say(w, "The client ended the DTLS handshake with alert %u (%s%s).%s", s->alert,
	    dtls_alert_text(s->alert), s->is_alert_authentic ? "" : ", unauthenticated",
	    s->alert == 42 || s->alert == 46 || s->alert == 48
		? " It refuses the relay's certificate: it looks at another answer's fingerprint."
		: "");
}

static void say_srtp_failures(const struct words *w)
{
	say(w,
	    "%" PRIu64 " media packets arrived from the client and none could be authenticated: "
	    "its SRTP keys are not those of this handshake.",
	    w->facts->srtp_failures);
}

static void say_no_media(const struct words *w)
{
	const struct diagnosis_facts *f = w->facts;

	if (!f->is_publisher)
		say(w, "Connected, but nothing was sent yet: the publisher sends no media, or no "
		       "key frame that a viewer can begin with.");
	else if (f->packets == 0)
		say(w,
		    "Connected, but no media arrived for %u s: the source is not running, or "
		    "sends payload types that the answer did not agree to.",
		    seconds(f->idle_us));
	else
		say(w,
		    "No media arrived for %u s, after %" PRIu64 " packets: the source has stopped "
		    "or lost its network.",
		    seconds(f->idle_us), f->packets);
}

/* Those that are the same for everybody. */
static const char *const fixed[DIAGNOSES] = {
	[DIAGNOSIS_FINGERPRINT] =
	    "The client's certificate is not the one whose fingerprint its offer names: the offer "
	    "was changed on the way, or is another connection's.",
	[DIAGNOSIS_NO_PROFILE] =
	    "The client and the relay have no SRTP protection profile in common.",
	[DIAGNOSIS_NO_PUBLISHER] = "Connected; nobody publishes the stream.",
	[DIAGNOSIS_TCP_ONLY] =
	    "Media goes over TCP, since no check came over UDP: it may lag where packets are "
	    "lost. Open the UDP port to avoid that.",
	[DIAGNOSIS_SILENT] =
	    "Nothing authentic came from the client for 30 s: it is gone, or its network is.",
	[DIAGNOSIS_STUCK] = "The client took nothing from its TCP connection for 10 s.",
	[DIAGNOSIS_REPLACED] = "A newer publisher took the stream over.",
	[DIAGNOSIS_OTHER_CODEC] =
	    "The stream goes on in a codec that this viewer did not agree to: watch it anew.",
	[DIAGNOSIS_NO_MEMORY] = "The relay ran out of memory.",
};

static void say_one(const struct words *w, enum diagnosis d)
{
	static void (*const sayings[DIAGNOSES])(const struct words *w) = {
		[DIAGNOSIS_NO_CHECK] = say_no_check,
		[DIAGNOSIS_BAD_CREDENTIALS] = say_bad_credentials,
		[DIAGNOSIS_ANSWERS_LOST] = say_answers_lost,
		[DIAGNOSIS_NO_HELLO] = say_no_hello,
		[DIAGNOSIS_HANDSHAKE_UNFINISHED] = say_unfinished,
		[DIAGNOSIS_DTLS_ALERT] = say_alert,
		[DIAGNOSIS_SRTP_FAILURES] = say_srtp_failures,
		[DIAGNOSIS_NO_MEDIA] = say_no_media,
	};

	if (sayings[d])
		sayings[d](w);
	else
		say(w, "%s", fixed[d] ? fixed[d] : "");
}

const char *diagnosis_write(char out[DIAGNOSIS_BYTES], enum diagnosis d,
			    const struct diagnosis_facts *facts)
{
	const struct net_addr *peer = &facts->seen.peer;
	char at[NET_ADDR_TEXT_BYTES], text[NET_ADDR_TEXT_BYTES + 32];

	snprintf(text, sizeof(text), "%s%s", peer->port ? net_addr_format(peer, at) : "the client",
		 facts->seen.is_over_tcp ? " (over TCP only)" : "");
	say_one(&(struct words){ out, facts, text }, d);
	return out;
}
