#include "config/schema.h"

#include <assert.h>
#include <stddef.h>

#define AT(member) offsetof(struct config, member)

enum { MINUTE_MS = 60 * 1000, HOUR_MS = 60 * MINUTE_MS, MIB = 1 << 20 };

static const struct config_key keys[] = {
	{ "http.listen", CONFIG_TYPE_ADDRESS, AT(http.listen), "127.0.0.1:8080",
	  .help = "Where WHIP, WHEP, the pages, the API and the metrics are served." },
	{ "http.cert", CONFIG_TYPE_PATH, AT(http.cert),
	  .help = "PEM file of the certificate chain; with http.key it turns HTTPS on." },
	{ "http.key", CONFIG_TYPE_PATH, AT(http.key), .help = "PEM file of the private key." },
	{ "http.admin", CONFIG_TYPE_ADDRESS, AT(http.admin),
	  .help = "A listener of their own for the API and the metrics, which then leave "
		  "http.listen." },
	{ "http.public_url", CONFIG_TYPE_URL, AT(http.public_url),
	  .help = "How clients reach this relay: Location and Link are then whole URLs, which "
		  "clients need that were redirected here." },
	{ "http.trusted_proxies", CONFIG_TYPE_NETWORKS, AT(http.trusted_proxies),
	  .help = "Reverse proxies whose X-Forwarded-For names the client." },
	{ "http.open", CONFIG_TYPE_BOOL, AT(http.open), "false",
	  .help = "Let anyone publish or watch where no token is set, also from other hosts." },
	{ "http.idle_timeout_ms", CONFIG_TYPE_COUNT, AT(http.idle_timeout_ms), "30000", 1000,
	  HOUR_MS, .help = "An HTTP connection without traffic is closed after this time." },

	{ "udp.listen", CONFIG_TYPE_ADDRESSES, AT(udp.listen), ":8189",
	  .help = "Where media arrives and leaves; \":PORT\" is every IPv4 and IPv6 address." },
	{ "udp.receive_buffer_bytes", CONFIG_TYPE_COUNT, AT(udp.receive_buffer_bytes), "8388608",
	  65536, 1024 * MIB, .help = "Kernel receive buffer of each worker's socket." },
	{ "udp.send_buffer_bytes", CONFIG_TYPE_COUNT, AT(udp.send_buffer_bytes), "8388608", 65536,
	  1024 * MIB, .help = "Kernel send buffer of each worker's socket." },
	{ "udp.gso", CONFIG_TYPE_BOOL, AT(udp.gso), "true",
	  .help = "Let the kernel cut messages into datagrams (UDP_SEGMENT); false: one by one, at "
		  "about twice the CPU time." },

	{ "tcp.enabled", CONFIG_TYPE_BOOL, AT(tcp.enabled), "true",
	  .help = "Take media over TCP too (ICE-TCP), for networks that let no UDP through." },
	{ "tcp.listen", CONFIG_TYPE_ADDRESSES, AT(tcp.listen),
	  .help = "Where; none: the addresses and ports of udp.listen, as far as they are free." },
	{ "tcp.connections", CONFIG_TYPE_COUNT, AT(tcp.connections), "0", 0, 1 << 20,
	  .zero = "a quarter of the open files allowed", .help = "Such connections at a time." },

	{ "advertise", CONFIG_TYPE_HOSTS, AT(advertise),
	  .help = "Addresses told to clients instead of the bound ones (behind NAT: the public "
		  "one)." },
	{ "workers", CONFIG_TYPE_COUNT, AT(workers), "0", 0, 64, .zero = "one a CPU",
	  .help = "Threads that forward media." },
	{ "pin", CONFIG_TYPE_BOOL, AT(pin), "false", .help = "Bind each worker to one CPU." },
	{ "drain_ms", CONFIG_TYPE_COUNT, AT(drain_ms), "1800000", 0, 24 * HOUR_MS,
	  .help = "After SIGTERM sessions may go on for this long." },

	{ "tokens.publish", CONFIG_TYPE_SECRETS, AT(tokens.publish),
	  .help = "Bearer tokens that may publish." },
	{ "tokens.watch", CONFIG_TYPE_SECRETS, AT(tokens.watch),
	  .help = "Bearer tokens that may watch." },
	{ "tokens.admin", CONFIG_TYPE_SECRETS, AT(tokens.admin),
	  .help = "Bearer tokens that may use the API and read the metrics from other hosts." },

	{ "streams.wait_for_publisher", CONFIG_TYPE_BOOL, AT(streams.wait_for_publisher), "false",
	  .help = "Accept viewers of a stream nobody publishes yet, instead of answering 409." },
	{ "streams.max", CONFIG_TYPE_COUNT, AT(streams.max), "4096", 1, 65536,
	  .help = "Streams at a time." },

	{ "policy.max_codecs", CONFIG_TYPE_COUNT, AT(policy.max_codecs), "0", 0, 20, .zero = "all",
	  .help =
	      "Codecs of each kind that a publisher is answered, its preferred ones first; what "
	      "it then sends is the stream's codec." },
	{ "policy.audio_only", CONFIG_TYPE_BOOL, AT(policy.audio_only), "false",
	  .help = "A viewer that cannot take the video's codec gets the audio alone, instead of "
		  "406." },

	{ "media.hold_min_viewers", CONFIG_TYPE_COUNT, AT(media.hold_min_viewers), "200", 1,
	  1000000,
	  .help = "From this many viewers of a stream on a worker, a frame is sent when it is "
		  "whole." },
	{ "media.hold_us", CONFIG_TYPE_COUNT, AT(media.hold_us), "15000", 0, 100000,
	  .help = "Longest wait for the rest of a frame." },
	{ "media.slice_us", CONFIG_TYPE_COUNT, AT(media.slice_us), "1000", 100, 100000,
	  .help = "Sending pauses after this time to read what arrived." },
	{ "media.pad_bytes", CONFIG_TYPE_COUNT, AT(media.pad_bytes), "16", 0, 128, .is_power = true,
	  .zero = "off",
	  .help = "Video payloads are padded to a multiple of this, so that the "
		  "packets of a frame share one size." },
	{ "media.history_ms", CONFIG_TYPE_COUNT, AT(media.history_ms), "2000", 50, 10000,
	  .help = "Packets stay available for retransmission for this long." },
	{ "media.history_bytes", CONFIG_TYPE_COUNT, AT(media.history_bytes), "4194304", 65536,
	  256 * MIB, .help = "The same bound in bytes, for a stream on a worker." },
	{ "media.keyframe_interval_ms", CONFIG_TYPE_COUNT, AT(media.keyframe_interval_ms), "500",
	  100, 10000, .help = "Least time between two key frame requests to a publisher." },
	{ "media.fast_start", CONFIG_TYPE_BOOL, AT(media.fast_start), "true",
	  .help = "A viewer starts with the last key frame and what followed it, instead of "
		  "waiting for the next one." },
	{ "media.fast_start_ms", CONFIG_TYPE_COUNT, AT(media.fast_start_ms), "2000", 100, 10000,
	  .help = "A key frame older than this is not started with. History and memory grow with "
		  "it." },
	{ "media.keyframe_share_percent", CONFIG_TYPE_COUNT, AT(media.keyframe_share_percent), "25",
	  1, 100,
	  .help = "No key frames are asked for while they take more than this of what a publisher "
		  "sends, but for viewers who have no picture yet." },

	{ "pool.packets", CONFIG_TYPE_COUNT, AT(pool.packets), "16384", 1024, 1 << 22,
	  .help = "Packet buffers of each worker (about 2 KB each, taken from the system when "
		  "used)." },
	{ "pool.trim_ms", CONFIG_TYPE_COUNT, AT(pool.trim_ms), "10000", 1000, HOUR_MS,
	  .help = "How often unused packet buffers go back to the system." },

	{ "srtp.engine", CONFIG_TYPE_WORD, AT(srtp.engine), "auto",
	  .words = { "auto", "ipsecmb", "evp", "libsrtp2" },
	  .help = "Library that encrypts media; auto is ipsecmb where it runs, else evp." },
	{ "rtp.port_min", CONFIG_TYPE_COUNT, AT(rtp.port_min), "20000", 1024, 65535,
	  .help =
	      "First of the UDP ports on which plain RTP is received and sent, where the API asks "
	      "for it." },
	{ "rtp.port_max", CONFIG_TYPE_COUNT, AT(rtp.port_max), "20199", 1024, 65535,
	  .help = "Last of them." },
	{ "rtp.inputs", CONFIG_TYPE_COUNT, AT(rtp.inputs), "64", 0, 4096,
	  .help = "Streams fed by plain RTP at a time." },
	{ "rtp.outputs", CONFIG_TYPE_COUNT, AT(rtp.outputs), "64", 0, 4096,
	  .help = "Targets that streams are sent to as plain RTP at a time." },
	{ "rtp.allow_out", CONFIG_TYPE_NETWORKS, AT(rtp.allow_out),
	  .help = "Addresses that plain RTP may be sent to; none: none." },
	{ "rtp.latch", CONFIG_TYPE_BOOL, AT(rtp.latch), "false",
	  .help =
	      "Where nothing says from which address plain RTP comes, take it from the first that "
	      "sends some." },

	{ "crypto.threads", CONFIG_TYPE_COUNT, AT(crypto.threads), "0", 0, 64,
	  .zero = "half the CPUs, at least one", .help = "Threads for DTLS handshakes." },

	{ "limits.trusted", CONFIG_TYPE_NETWORKS, AT(limits.trusted),
	  .help = "Networks without limits per address; loopback never has any." },
	{ "limits.posts_per_s", CONFIG_TYPE_COUNT, AT(limits.posts_per_s), "50", 1, 1000000,
	  .help = "New sessions a second from one address (IPv6: one /64)." },
	{ "limits.posts_burst", CONFIG_TYPE_COUNT, AT(limits.posts_burst), "1000", 1, 1000000,
	  .help = "New sessions at once from one address." },
	{ "limits.node_posts_per_s", CONFIG_TYPE_COUNT, AT(limits.node_posts_per_s), "2000", 1,
	  1000000, .help = "New sessions a second from all addresses together." },
	{ "limits.node_posts_burst", CONFIG_TYPE_COUNT, AT(limits.node_posts_burst), "4000", 1,
	  1000000, .help = "New sessions at once from all addresses together." },
	{ "limits.patches_per_s", CONFIG_TYPE_COUNT, AT(limits.patches_per_s), "5", 1, 1000,
	  .help = "PATCH requests a second to one session; four seconds' worth at once." },
	{ "limits.connections_per_ip", CONFIG_TYPE_COUNT, AT(limits.connections_per_ip), "256", 1,
	  1000000, .help = "HTTP connections of one address." },
	{ "limits.connections", CONFIG_TYPE_COUNT, AT(limits.connections), "0", 0, 1000000,
	  .zero = "open files allowed, less 1024", .help = "HTTP connections of all addresses." },
	{ "limits.half_open_per_ip", CONFIG_TYPE_COUNT, AT(limits.half_open_per_ip), "256", 1,
	  1000000, .help = "Sessions of one address that are not connected yet." },
	{ "limits.unclaimed_plans", CONFIG_TYPE_COUNT, AT(limits.unclaimed_plans), "16384", 16,
	  1 << 20, .help = "Sessions that were answered but sent no STUN request yet." },
	{ "limits.tcp_half_open_per_ip", CONFIG_TYPE_COUNT, AT(limits.tcp_half_open_per_ip), "64",
	  1, 1000000,
	  .help = "ICE-TCP connections of one address, on each worker, that have not named a "
		  "session yet." },
	{ "limits.handshakes_per_worker", CONFIG_TYPE_COUNT, AT(limits.handshakes_per_worker),
	  "512", 1, 65536, .help = "DTLS handshakes in progress on each worker." },
	{ "limits.stun_failures_per_s", CONFIG_TYPE_COUNT, AT(limits.stun_failures_per_s), "20", 1,
	  1000000, .help = "Failed STUN look-ups a second from one address, then it is ignored." },
	{ "limits.stun_failures_burst", CONFIG_TYPE_COUNT, AT(limits.stun_failures_burst), "50", 1,
	  1000000, .help = "Failed STUN look-ups at once from one address." },
	{ "limits.sessions", CONFIG_TYPE_COUNT, AT(limits.sessions), "0", 0, 1 << 20,
	  .zero = "as many as memory holds", .help = "Sessions at a time." },
	{ "limits.sdp_bytes", CONFIG_TYPE_COUNT, AT(limits.sdp_bytes), "65536", 4096, MIB,
	  .help = "Largest offer." },
	{ "limits.sdpfrag_bytes", CONFIG_TYPE_COUNT, AT(limits.sdpfrag_bytes), "16384", 1024, MIB,
	  .help = "Largest body of a PATCH request." },

	{ "ice.servers", CONFIG_TYPE_ICE, AT(ice.servers),
	  .help = "STUN and TURN servers named to clients in Link header fields. A secret, shared "
		  "with the TURN server, makes credentials that expire, for each client anew: the "
		  "user name is EXPIRY:NAME, without username EXPIRY:STREAM." },
	{ "ice.credentials_ttl_s", CONFIG_TYPE_COUNT, AT(ice.credentials_ttl_s), "86400", 60,
	  30 * 86400, .help = "How long credentials made from a secret are valid, in seconds." },

	{ "session.plan_timeout_ms", CONFIG_TYPE_COUNT, AT(session.plan_timeout_ms), "10000", 1000,
	  5 * MINUTE_MS, .help = "From the answer to the first valid STUN request." },
	{ "session.media_timeout_ms", CONFIG_TYPE_COUNT, AT(session.media_timeout_ms), "15000",
	  1000, HOUR_MS, .help = "A publisher that sends no media ends." },

	{ "log.format", CONFIG_TYPE_WORD, AT(log.format), "text", .words = { "text", "json" },
	  .help = "One line an event on standard error: logfmt or JSON." },
	{ "log.level", CONFIG_TYPE_WORD, AT(log.level), "info",
	  .words = { "debug", "info", "warn", "error" },
	  .help = "Events below this level are not logged." },

	{ "whip.strict_etags", CONFIG_TYPE_BOOL, AT(whip.strict_etags), "false",
	  .help = "Answer PATCH without If-Match by 428 and with an old one by 412." },
};

_Static_assert(sizeof(keys) / sizeof(keys[0]) <= CONFIG_KEYS_MAX, "raise CONFIG_KEYS_MAX");

const struct config_key *config_schema(size_t *count)
{
	*count = sizeof(keys) / sizeof(keys[0]);
	return keys;
}

const struct config_key *config_schema_find(const char *name)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

size_t config_key_section(const struct config_key *key)
{
	const char *dot = strchr(key->name, '.');

	return dot ? (size_t)(dot - key->name) : 0;
}

bool config_type_is_list(enum config_type type)
{
	return type >= CONFIG_TYPE_ADDRESSES;
}

static void words_join(const struct config_key *key, char *text, size_t bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; key->words[i] && used < bytes; i++) {
		const char *between = i == 0 ? "" : key->words[i + 1] ? ", " : " or ";
		int n = snprintf(text + used, bytes - used, "%s%s", between, key->words[i]);

		assert(n >= 0);
		used += (size_t)n;
	}
}

const char *config_key_allowed(const struct config_key *key, char *text, size_t bytes)
{
	static const char *const fixed[] = {
		[CONFIG_TYPE_BOOL] = "true or false",
		[CONFIG_TYPE_PATH] = "a file's path",
		[CONFIG_TYPE_URL] = "http[s]://HOST[:PORT][/PATH] without a / at the end",
		[CONFIG_TYPE_ADDRESS] = "ADDR:PORT, as 127.0.0.1:8080, [::1]:8080 or :8080",
		[CONFIG_TYPE_ADDRESSES] = "a list of [ADDR]:PORT, as 192.0.2.1:8189 or :8189",
		[CONFIG_TYPE_HOSTS] = "a list of IP[:PORT], as 192.0.2.1 or [2001:db8::1]:8189",
		[CONFIG_TYPE_NETWORKS] = "a list of IP[/BITS], as 10.0.0.0/8 or 2001:db8::/32",
		[CONFIG_TYPE_SECRETS] = "a list of tokens: 1 to 256 of A-Z a-z 0-9 - . _ ~ + / =",
		[CONFIG_TYPE_ICE] = "a list of {url: stun:HOST[:PORT]} or {url: "
				    "turn[s]:HOST[:PORT], username: NAME, credential: SECRET} or "
				    "{url: turn[s]:HOST[:PORT], secret: SHARED}",
	};

	if (key->type == CONFIG_TYPE_WORD)
		words_join(key, text, bytes);
	else if (key->is_power)
		snprintf(text, bytes, "0 or a power of two, at most %u", key->max);
	else if (key->type == CONFIG_TYPE_COUNT)
		snprintf(text, bytes, "%u to %u", key->min, key->max);
	else
		snprintf(text, bytes, "%s", fixed[key->type]);
	return text;
}
