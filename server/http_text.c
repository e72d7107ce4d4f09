#include "server/http_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <strings.h>

enum {
	SESSION_ID_CHARS = 22, /* 128 bits as base64url */
	NUMBER_DIGITS_MAX = 18,
};

static const char digits[] = "0123456789";
static const char name_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				 "._~-";
static const char id_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
static const char token_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "-._~+/=";

enum http_method http_method_of(const char *text)
{
	static const struct {
		const char *text;
		enum http_method method;
	} methods[] = {
		{ "GET", HTTP_GET },     { "HEAD", HTTP_HEAD },     { "POST", HTTP_POST },
		{ "PATCH", HTTP_PATCH }, { "DELETE", HTTP_DELETE }, { "OPTIONS", HTTP_OPTIONS },
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(methods[i].text, text) == 0)
			return methods[i].method;
	return HTTP_OTHER;
}

static const struct {
	const char *prefix;
	enum http_route_kind kind;
} named_routes[] = {
	{ "/whip/", HTTP_ROUTE_WHIP },
	{ "/whep/", HTTP_ROUTE_WHEP },
	{ "/publish/", HTTP_ROUTE_PAGE_PUBLISH },
	{ "/watch/", HTTP_ROUTE_PAGE_WATCH },
	{ "/pages/", HTTP_ROUTE_PAGE_FILE },
};

static const struct {
	const char *path;
	enum http_route_kind kind;
} plain_routes[] = {
	{ "/", HTTP_ROUTE_PAGE_DASHBOARD },         { "/api/info", HTTP_ROUTE_API_INFO },
	{ "/api/streams", HTTP_ROUTE_API_STREAMS }, { "/api/sessions", HTTP_ROUTE_API_SESSIONS },
	{ "/metrics", HTTP_ROUTE_METRICS },         { "/healthz", HTTP_ROUTE_HEALTHZ },
	{ "/readyz", HTTP_ROUTE_READYZ },
};

/* `text` up to its end, or up to `end` when that follows the name. */
static bool take_name(char out[HTTP_STREAM_BYTES], const char *text, const char *chars,
		      const char *end)
{
	size_t len = strspn(text, chars);

	if (len == 0 || len >= HTTP_STREAM_BYTES || strcmp(text + len, end) != 0)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* All of it is one number. */
static bool take_number(uint64_t *out, const char *text)
{
	size_t len = strspn(text, digits);

	if (len == 0 || len > NUMBER_DIGITS_MAX || text[len] != '\0')
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

static struct http_route session_route(const char *id)
{
	static const char events[] = "/events/";
	struct http_route r = { .kind = HTTP_ROUTE_NONE };

	if (strspn(id, id_chars) != SESSION_ID_CHARS)
		return r;
	if (take_name(r.name, id, id_chars, ""))
		r.kind = HTTP_ROUTE_SESSION;
	else if (take_name(r.name, id, id_chars, "/status"))
		r.kind = HTTP_ROUTE_SESSION_STATUS;
	else if (take_name(r.name, id, id_chars, "/events"))
		r.kind = HTTP_ROUTE_SESSION_EVENTS;
	else if (take_name(r.name, id, id_chars, "/layer"))
		r.kind = HTTP_ROUTE_SESSION_LAYER;
	else if (strncmp(id + SESSION_ID_CHARS, events, strlen(events)) == 0 &&
		 take_number(&r.number, id + SESSION_ID_CHARS + strlen(events)) &&
		 take_name(r.name, id, id_chars, id + SESSION_ID_CHARS))
		r.kind = HTTP_ROUTE_EVENT_STREAM;
	return r;
}

static struct http_route api_session_route(const char *number)
{
	struct http_route r = { .kind = HTTP_ROUTE_NONE };

	if (take_number(&r.number, number))
		r.kind = HTTP_ROUTE_API_SESSION;
	return r;
}

static struct http_route api_stream_route(const char *name)
{
	static const char out[] = "/rtp-out/";
	struct http_route r = { .kind = HTTP_ROUTE_NONE };
	size_t len = strspn(name, name_chars);

	if (take_name(r.name, name, name_chars, "/rtp-in"))
		r.kind = HTTP_ROUTE_RTP_IN;
	else if (take_name(r.name, name, name_chars, "/rtp-out"))
		r.kind = HTTP_ROUTE_RTP_OUTS;
	else if (strncmp(name + len, out, strlen(out)) == 0 &&
		 take_number(&r.number, name + len + strlen(out)) &&
		 take_name(r.name, name, name_chars, name + len))
		r.kind = HTTP_ROUTE_RTP_OUT;
	return r;
}

/* RFC 9112 section 3.2.2: a server accepts "http://host/path" too. */
static const char *path_of(const char *target)
{
	size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
			: strncasecmp(target, "https://", 8) == 0 ? 8
								  : 0;
	const char *slash;

	if (scheme == 0)
		return target;
	slash = strchr(target + scheme, '/');
	return slash ? slash : "/";
}

struct http_route http_route_of(const char *target)
{
	static const char session[] = "/session/";
	static const char api_session[] = "/api/sessions/";
	static const char api_stream[] = "/api/streams/";
	const char *path = path_of(target);
	struct http_route r = { .kind = HTTP_ROUTE_NONE };

	for (size_t i = 0; i < sizeof(plain_routes) / sizeof(plain_routes[0]); i++) {
		if (strcmp(plain_routes[i].path, path) == 0) {
			r.kind = plain_routes[i].kind;
			return r;
		}
	}
	for (size_t i = 0; i < sizeof(named_routes) / sizeof(named_routes[0]); i++) {
		size_t len = strlen(named_routes[i].prefix);

		if (strncmp(path, named_routes[i].prefix, len) != 0)
			continue;
		if (take_name(r.name, path + len, name_chars, ""))
			r.kind = named_routes[i].kind;
		return r;
	}
	if (strncmp(path, session, strlen(session)) == 0)
		return session_route(path + strlen(session));
	if (strncmp(path, api_session, strlen(api_session)) == 0)
		return api_session_route(path + strlen(api_session));
	if (strncmp(path, api_stream, strlen(api_stream)) == 0)
		return api_stream_route(path + strlen(api_stream));
	return r;
}

const char *http_route_name(enum http_route_kind kind)
{
	static const char *const names[HTTP_ROUTES] = {
		[HTTP_ROUTE_NONE] = "none",
		[HTTP_ROUTE_WHIP] = "whip",
		[HTTP_ROUTE_WHEP] = "whep",
		[HTTP_ROUTE_SESSION] = "session",
		[HTTP_ROUTE_SESSION_STATUS] = "session_status",
		[HTTP_ROUTE_SESSION_EVENTS] = "session_events",
		[HTTP_ROUTE_EVENT_STREAM] = "event_stream",
		[HTTP_ROUTE_SESSION_LAYER] = "session_layer",
		[HTTP_ROUTE_PAGE_DASHBOARD] = "page_dashboard",
		[HTTP_ROUTE_PAGE_PUBLISH] = "page_publish",
		[HTTP_ROUTE_PAGE_WATCH] = "page_watch",
		[HTTP_ROUTE_PAGE_FILE] = "page_file",
		[HTTP_ROUTE_API_INFO] = "api_info",
		[HTTP_ROUTE_API_STREAMS] = "api_streams",
		[HTTP_ROUTE_API_SESSIONS] = "api_sessions",
		[HTTP_ROUTE_API_SESSION] = "api_session",
		[HTTP_ROUTE_RTP_IN] = "rtp_in",
		[HTTP_ROUTE_RTP_OUTS] = "rtp_outs",
		[HTTP_ROUTE_RTP_OUT] = "rtp_out",
		[HTTP_ROUTE_METRICS] = "metrics",
		[HTTP_ROUTE_HEALTHZ] = "healthz",
		[HTTP_ROUTE_READYZ] = "readyz",
	};

	return names[kind];
}

bool http_is_type(const char *field, const char *type)
{
	size_t len = strlen(type);

	field += strspn(field, " \t");
	if (strncasecmp(field, type, len) != 0)
		return false;
	field += len;
	field += strspn(field, " \t");
	return *field == '\0' || *field == ';';
}

static bool is_port(const char *text)
{
	size_t len = strspn(text, digits);

	return len <= 5 && text[len] == '\0';
}

bool http_is_loopback_host(const char *host)
{
	static const char localhost[] = "localhost";
	static const char v6[] = "[::1]";
	struct in_addr v4;
	char name[16];
	size_t len = strcspn(host, ":");
	const char *rest = host + len;

	if (strncmp(host, v6, strlen(v6)) == 0) {
		rest = host + strlen(v6);
	} else if (len >= sizeof(name)) {
		return false;
	} else {
		memcpy(name, host, len);
		name[len] = '\0';
		if (strcasecmp(name, localhost) != 0 &&
		    (inet_pton(AF_INET, name, &v4) != 1 || ntohl(v4.s_addr) >> 24 != 127))
			return false;
	}
	return *rest == '\0' || (*rest == ':' && is_port(rest + 1));
}

bool http_bearer(const char *authorization, const char **token, size_t *len)
{
	static const char scheme[] = "bearer";
	const char *p = authorization + strlen(scheme);

	if (strncasecmp(authorization, scheme, strlen(scheme)) != 0 || *p != ' ')
		return false;
	p += strspn(p, " ");
	*token = p;
	*len = strspn(p, token_chars);
	p += *len;
	return *len > 0 && p[strspn(p, " \t")] == '\0';
}

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1" or "[2001:db8::1]:80". */
static bool ip_parse(uint8_t ip[16], const char *text, size_t len)
{
	char copy[INET6_ADDRSTRLEN + 8];
	char *start = copy;
	char *colon;

	if (len == 0 || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	colon = strchr(copy, ':');
	if (copy[0] == '[') {
		start = copy + 1;
		start[strcspn(start, "]")] = '\0';
	} else if (colon && !strchr(colon + 1, ':')) {
		*colon = '\0';
	}
	memset(ip, 0, 16);
	if (inet_pton(AF_INET, start, ip + 12) == 1) {
		memset(ip + 10, 0xff, 2);
		return true;
	}
	return inet_pton(AF_INET6, start, ip) == 1;
}

void http_client_ip(uint8_t out[16], const uint8_t peer[16], const char *field,
		    const struct config_networks *trusted)
{
	const char *end = field ? field + strlen(field) : NULL;

	memcpy(out, peer, 16);
	while (end && end > field && config_networks_have(trusted, out)) {
		const char *start = end;
		uint8_t ip[16];

		while (start > field && start[-1] != ',')
			start--;
		for (const char *p = start; p < end && (*p == ' ' || *p == '\t'); p++)
			start++;
		while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		if (!ip_parse(ip, start, (size_t)(end - start)))
			return;
		memcpy(out, ip, 16);
		while (start > field && start[-1] != ',')
			start--;
		end = start > field ? start - 1 : field;
	}
}

int http_length_of(uint64_t *out, const char *field)
{
	size_t len = strspn(field, digits);

	if (len == 0 || len > NUMBER_DIGITS_MAX || field[len] != '\0')
		return -EINVAL;
	*out = strtoull(field, NULL, 10);
	return 0;
}
