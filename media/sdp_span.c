#include "media/sdp_span.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>

enum {
	SPAN_PRINT_BYTES = 40,
	HOST_TYPE_PREFERENCE = 126, /* RFC 8445 section 5.1.2.2 */
	/* RFC 6544 section 4.2: TCP below UDP of whatever type but relayed, and passive is 4 of its
	 * three bits of direction. */
	TCP_TYPE_PREFERENCE = 90,
	TCP_PASSIVE = 4 << 13,
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

bool sdp_span_is(struct sdp_span span, const char *text)
{
	size_t len = strlen(text);

	return span.at && span.len == len && memcmp(span.at, text, len) == 0;
}

bool sdp_span_is_nocase(struct sdp_span span, const char *text)
{
	if (!span.at || span.len != strlen(text))
		return false;
	for (uint32_t i = 0; i < span.len; i++) {
		if (lower(span.at[i]) != lower(text[i]))
			return false;
	}
	return true;
}

bool sdp_span_equal(struct sdp_span a, struct sdp_span b)
{
	return a.at && b.at && a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

bool sdp_span_copy(struct sdp_span span, char *out, size_t cap)
{
	out[0] = '\0';
	if (!span.at || span.len >= cap)
		return false;
	memcpy(out, span.at, span.len);
	out[span.len] = '\0';
	return true;
}

struct sdp_span sdp_span_cut(struct sdp_span *rest, char end)
{
	struct sdp_span head = *rest;
	const char *stop = rest->len ? memchr(rest->at, end, rest->len) : NULL;

	if (!stop) {
		rest->at += rest->len;
		rest->len = 0;
		return head;
	}
	head.len = (uint32_t)(stop - head.at);
	rest->at = stop + 1;
	rest->len -= head.len + 1;
	return head;
}

struct sdp_span sdp_span_word(struct sdp_span *rest)
{
	struct sdp_span word = { NULL, 0 };

	while (rest->len && is_blank(rest->at[0])) {
		rest->at++;
		rest->len--;
	}
	if (!rest->len)
		return word;
	word.at = rest->at;
	while (word.len < rest->len && !is_blank(word.at[word.len]))
		word.len++;
	rest->at += word.len;
	rest->len -= word.len;
	return word;
}

struct sdp_span sdp_span_trim(struct sdp_span span)
{
	while (span.len && is_blank(span.at[0])) {
		span.at++;
		span.len--;
	}
	while (span.len && is_blank(span.at[span.len - 1]))
		span.len--;
	return span;
}

bool sdp_span_is_digits(struct sdp_span span)
{
	for (uint32_t i = 0; i < span.len; i++) {
		if (span.at[i] < '0' || span.at[i] > '9')
			return false;
	}
	return span.len > 0;
}

bool sdp_span_number(struct sdp_span span, uint32_t max, uint32_t *out)
{
	uint64_t value = 0;

	if (!sdp_span_is_digits(span))
		return false;
	for (uint32_t i = 0; i < span.len; i++) {
		value = value * 10 + (uint64_t)(span.at[i] - '0');
		if (value > max)
			return false;
	}
	*out = (uint32_t)value;
	return true;
}

int sdp_span_print(struct sdp_span span)
{
	return span.len < SPAN_PRINT_BYTES ? (int)span.len : SPAN_PRINT_BYTES;
}

void sdp_address_parse(struct sdp_address *out, struct sdp_span text)
{
	char copy[INET6_ADDRSTRLEN];

	out->family = 0;
	memset(out->ip, 0, sizeof(out->ip));
	if (text.len > 2 && text.at[0] == '[' && text.at[text.len - 1] == ']') {
		text.at++;
		text.len -= 2;
	}
	if (!sdp_span_copy(text, copy, sizeof(copy)))
		return;
	if (inet_pton(AF_INET, copy, out->ip) == 1)
		out->family = 4;
	else if (inet_pton(AF_INET6, copy, out->ip) == 1)
		out->family = 6;
}

bool sdp_address_equal(const struct sdp_address *a, const struct sdp_address *b)
{
	size_t bytes = a->family == 4 ? 4 : sizeof(a->ip);

	return a->family == b->family && a->transport == b->transport && a->port == b->port &&
	       memcmp(a->ip, b->ip, bytes) == 0;
}

void sdp_writer_init(struct sdp_writer *w, char *out, size_t cap)
{
	*w = (struct sdp_writer){ .out = out, .cap = cap };
	if (cap)
		out[0] = '\0';
}

void sdp_put(struct sdp_writer *w, const char *format, ...)
{
	va_list args;
	int n;

	if (w->overflow)
		return;
	va_start(args, format);
	n = vsnprintf(w->out + w->len, w->cap - w->len, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= w->cap - w->len)
		w->overflow = true;
	else
		w->len += (size_t)n;
}

static void put_candidate(struct sdp_writer *w, const struct sdp_address *a, unsigned number)
{
	bool is_tcp = a->transport == SDP_TCP;
	uint32_t type = is_tcp ? TCP_TYPE_PREFERENCE : HOST_TYPE_PREFERENCE;
	uint32_t local = is_tcp ? TCP_PASSIVE + 8191u - number : 65535u - number;
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->ip, text, sizeof(text));
	sdp_put(w, "a=candidate:%u 1 %s %u %s %u typ host%s\r\n", number + 1,
		is_tcp ? "tcp" : "udp", type << 24 | local << 8 | 255u, text, (unsigned)a->port,
		is_tcp ? " tcptype passive" : "");
}

void sdp_put_candidates(struct sdp_writer *w, const struct sdp_address *candidates, size_t count)
{
	static const struct {
		uint8_t transport, family;
	} order[] = { { SDP_UDP, 4 }, { SDP_UDP, 6 }, { SDP_TCP, 4 }, { SDP_TCP, 6 } };
	unsigned number = 0;

	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
		for (size_t i = 0; i < count; i++) {
			if (candidates[i].transport == order[k].transport &&
			    candidates[i].family == order[k].family)
				put_candidate(w, &candidates[i], number++);
		}
	}
}

int sdp_writer_finish(struct sdp_writer *w)
{
	if (w->overflow || w->len >= w->cap)
		return -ENOSPC;
	return (int)w->len;
}
