#include "loadgen/options.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char help[] =
    "usage: sluice-load bench (--url http://HOST:PORT | --whip URL --whep URL) [options]\n"
    "       sluice-load publish URL [options]\n"
    "       sluice-load subscribe URL [-n N] [options]\n"
    "\n"
    "bench publishes generated streams (VP8 640x360 at 30 frames/s, Opus) and watches them with\n"
    "many WebRTC clients; publish and subscribe do one of the two until interrupted.\n"
    "\n"
    "  --url URL            relay with /whip/STREAM and /whep/STREAM\n"
    "  --whip URL           where to publish; {stream} is replaced by the stream's name\n"
    "  --whep URL           where to watch, likewise\n"
    "  --token TOKEN        sent as Authorization: Bearer\n"
    "  --streams S          streams to publish (1)\n"
    "  --subscribers N, -n  viewers in all, dealt over the streams in turn (100; subscribe: 1)\n"
    "  --rate J             joins per second (200)\n"
    "  --join-timeout SEC   viewers who have not joined by then have failed (60)\n"
    "  --duration SEC       how long to measure once all have joined (10); publish and subscribe\n"
    "                       run until interrupted without it\n"
    "  --verify K           authenticate and decrypt all packets of every K-th viewer with\n"
    "                       libsrtp2 (50; 0: none). Of the others only the RTP header is read,\n"
    "                       and what they get by retransmission is opened.\n"
    "  --keyframe-interval SEC  key frames that nobody asked for (4, up to 60); asked for, one\n"
    "                       is sent at the next frame's time\n"
    "  --temporal-layers N  of the video, so that there is something to choose from (1, up to 3)\n"
    "  --pacing frame|browser  send frames at once, or in bursts every 5 ms (browser)\n"
    "  --srtp gcm128|gcm256|cm80  agree with the server on this SRTP profile only (any)\n"
    "  --tcp                publish and watch over TCP alone (ICE-TCP); up to the number of local\n"
    "                       ports, some 28,000, towards one server\n"
    "  --transport-cc       viewers offer transport-wide feedback and send it, as browsers do\n"
    "  --no-gro             receive without UDP_GRO, one datagram at a time\n"
    "  --max-loss PCT       loss that is still good (0)\n"
    "  --pid PID            process of the server: its CPU time and memory are shown\n"
    "  --json               one JSON object on stdout\n"
    "  --help, --version\n"
    "\n"
    "exit status: 0 all viewers joined and got everything, 1 not so, 2 wrong usage,\n"
    "             3 the server cannot be reached\n";

const char *options_help(void)
{
	return help;
}

struct parsing {
	struct options *out;
	const char *url, *whip, *whep, *target;
	char *error;
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct parsing *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->error, OPTIONS_ERROR_BYTES, format, args);
	va_end(args);
	return false;
}

static bool take_number(struct parsing *p, const char *flag, const char *text, uint32_t max,
			uint32_t *out)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || n > max)
		return wrong(p, "%s: %s is not a number from 0 to %u", flag, text, max);
	*out = (uint32_t)n;
	return true;
}

static bool take_percent(struct parsing *p, const char *flag, const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (text[0] < '0' || text[0] > '9' || *end || !(*out >= 0 && *out <= 100))
		return wrong(p, "%s: %s is not a percentage", flag, text);
	return true;
}

static bool take_pacing(struct parsing *p, const char *text)
{
	if (strcmp(text, "frame") == 0)
		p->out->pacing = PUBLISHER_PACING_FRAME;
	else if (strcmp(text, "browser") == 0)
		p->out->pacing = PUBLISHER_PACING_BROWSER;
	else
		return wrong(p, "--pacing: %s is neither frame nor browser", text);
	return true;
}

static bool take_srtp(struct parsing *p, const char *text)
{
	if (strcmp(text, "gcm128") == 0)
		p->out->srtp = SEAL_AEAD_AES_128_GCM;
	else if (strcmp(text, "gcm256") == 0)
		p->out->srtp = SEAL_AEAD_AES_256_GCM;
	else if (strcmp(text, "cm80") == 0)
		p->out->srtp = SEAL_AES_CM_128_HMAC_SHA1_80;
	else
		return wrong(p, "--srtp: %s is none of gcm128, gcm256 and cm80", text);
	return true;
}

static bool take_number_flag(struct parsing *p, const char *flag, const char *value, bool *is_one)
{
	struct options *o = p->out;
	uint32_t pid = 0;
	const struct {
		const char *flag;
		uint32_t *to, max;
	} numbers[] = {
		{ "--streams", &o->streams, OPTIONS_MAX_STREAMS },
		{ "--subscribers", &o->subscribers, OPTIONS_MAX_SUBSCRIBERS },
		{ "-n", &o->subscribers, OPTIONS_MAX_SUBSCRIBERS },
		{ "--rate", &o->rate_per_s, 100000 },
		{ "--join-timeout", &o->join_timeout_s, 86400 },
		{ "--duration", &o->duration_s, 86400 * 30 },
		{ "--verify", &o->verify, OPTIONS_MAX_SUBSCRIBERS },
		{ "--keyframe-interval", &o->keyframe_interval_s, OPTIONS_MAX_KEYFRAME_INTERVAL_S },
		{ "--temporal-layers", &o->temporal_layers, SOURCE_MAX_TEMPORAL_LAYERS },
		{ "--pid", &pid, INT_MAX },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(flag, numbers[i].flag) != 0)
			continue;
		*is_one = true;
		if (!take_number(p, flag, value, numbers[i].max, numbers[i].to))
			return false;
		if (pid)
			o->pid = (int)pid;
		return true;
	}
	*is_one = false;
	return true;
}

static bool take_value_flag(struct parsing *p, const char *flag, const char *value)
{
	bool is_number;

	if (!take_number_flag(p, flag, value, &is_number) || is_number)
		return p->error[0] == '\0';
	if (strcmp(flag, "--pacing") == 0)
		return take_pacing(p, value);
	if (strcmp(flag, "--srtp") == 0)
		return take_srtp(p, value);
	if (strcmp(flag, "--max-loss") == 0)
		return take_percent(p, flag, value, &p->out->max_loss_percent);
	if (strcmp(flag, "--url") == 0)
		p->url = value;
	else if (strcmp(flag, "--whip") == 0)
		p->whip = value;
	else if (strcmp(flag, "--whep") == 0)
		p->whep = value;
	else if (strcmp(flag, "--token") == 0)
		p->out->token = value;
	else
		return wrong(p, "there is no flag %s (--help lists them)", flag);
	return true;
}

static bool take_argument(struct parsing *p, int argc, char *const *argv, int *at)
{
	const char *arg = argv[(*at)++];

	if (strcmp(arg, "--json") == 0) {
		p->out->json = true;
	} else if (strcmp(arg, "--tcp") == 0) {
		p->out->tcp = true;
	} else if (strcmp(arg, "--no-gro") == 0) {
		p->out->gro = false;
	} else if (strcmp(arg, "--transport-cc") == 0) {
		p->out->transport_cc = true;
	} else if (arg[0] != '-') {
		if (p->target || p->out->mode == OPTIONS_BENCH)
			return wrong(p, "%s: what is this for?", arg);
		p->target = arg;
	} else if (*at >= argc) {
		return wrong(p, "%s needs a value, or is no flag (--help lists them)", arg);
	} else {
		return take_value_flag(p, arg, argv[(*at)++]);
	}
	return true;
}

static bool set_url(struct parsing *p, const char *from, const char *tail, char *out)
{
	size_t len = strlen(from);

	if (strncasecmp(from, "http://", 7) != 0 && strncasecmp(from, "https://", 8) != 0)
		return wrong(p, "%.100s is not an http or https URL", from);
	if (tail[0])
		while (len > 0 && from[len - 1] == '/')
			len--;
	/* Room for the longest name in the place of {stream}. */
	if (len + strlen(tail) + 32 > OPTIONS_URL_BYTES)
		return wrong(p, "a URL is longer than %d characters", OPTIONS_URL_BYTES - 32);
	snprintf(out, OPTIONS_URL_BYTES, "%.*s%s", (int)len, from, tail);
	return true;
}

static bool set_bench_urls(struct parsing *p)
{
	struct options *o = p->out;

	if (p->url && (p->whip || p->whep))
		return wrong(p, "--url and --whip, --whep exclude each other");
	if (p->url)
		return set_url(p, p->url, "/whip/{stream}", o->whip) &&
		       set_url(p, p->url, "/whep/{stream}", o->whep);
	if (!p->whip || !p->whep)
		return wrong(p, "bench needs --url, or --whip and --whep");
	if (o->streams > 1 && (!strstr(p->whip, "{stream}") || !strstr(p->whep, "{stream}")))
		return wrong(p, "--streams above 1 needs {stream} in --whip and --whep");
	return set_url(p, p->whip, "", o->whip) && set_url(p, p->whep, "", o->whep);
}

static bool check(struct parsing *p)
{
	struct options *o = p->out;

	if (o->streams == 0 || o->rate_per_s == 0)
		return wrong(p, "--streams and --rate are at least 1");
	if (o->keyframe_interval_s == 0)
		return wrong(p, "--keyframe-interval is at least 1");
	if (o->temporal_layers == 0)
		return wrong(p, "--temporal-layers is at least 1");
	if (o->mode == OPTIONS_BENCH) {
		if (o->duration_s == 0)
			return wrong(p, "--duration is at least 1");
		return set_bench_urls(p);
	}
	if (!p->target || p->url || p->whip || p->whep)
		return wrong(p, "%s needs a URL and no --url, --whip or --whep",
			     o->mode == OPTIONS_PUBLISH ? "publish" : "subscribe");
	if (o->streams > 1)
		return wrong(p, "--streams belongs to bench");
	if (o->mode == OPTIONS_PUBLISH) {
		o->subscribers = 0;
		return set_url(p, p->target, "", o->whip);
	}
	return set_url(p, p->target, "", o->whep);
}

static bool set_mode(struct parsing *p, const char *word)
{
	struct options *o = p->out;

	*o = (struct options){ .streams = 1,
			       .subscribers = 100,
			       .rate_per_s = 200,
			       .join_timeout_s = 60,
			       .duration_s = 10,
			       .verify = 50,
			       .keyframe_interval_s = 4,
			       .temporal_layers = 1,
			       .pacing = PUBLISHER_PACING_BROWSER,
			       .gro = true };
	if (strcmp(word, "bench") == 0)
		return true;
	o->duration_s = 0;
	o->subscribers = 1;
	if (strcmp(word, "publish") == 0)
		o->mode = OPTIONS_PUBLISH;
	else if (strcmp(word, "subscribe") == 0)
		o->mode = OPTIONS_SUBSCRIBE;
	else
		return wrong(p, "%.50s: not one of bench, publish and subscribe", word);
	return true;
}

enum options_verdict options_parse(struct options *out, int argc, char *const *argv,
				   char error[OPTIONS_ERROR_BYTES])
{
	struct parsing p = { .out = out, .error = error };
	int at = 2;

	error[0] = '\0';
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0)
			return OPTIONS_HELP;
		if (strcmp(argv[i], "--version") == 0)
			return OPTIONS_VERSION;
	}
	if (argc < 2) {
		wrong(&p, "one of bench, publish and subscribe is needed (--help)");
		return OPTIONS_WRONG;
	}
	if (!set_mode(&p, argv[1]))
		return OPTIONS_WRONG;
	while (at < argc)
		if (!take_argument(&p, argc, argv, &at))
			return OPTIONS_WRONG;
	return check(&p) ? OPTIONS_RUN : OPTIONS_WRONG;
}

bool options_url(const char *pattern, uint32_t i, char out[OPTIONS_URL_BYTES])
{
	static const char mark[] = "{stream}";
	const char *at = strstr(pattern, mark);
	int n;

	if (at)
		n = snprintf(out, OPTIONS_URL_BYTES, "%.*sload-%u%s", (int)(at - pattern), pattern,
			     i + 1, at + sizeof(mark) - 1);
	else
		n = snprintf(out, OPTIONS_URL_BYTES, "%s", pattern);
	return n >= 0 && n < OPTIONS_URL_BYTES;
}
