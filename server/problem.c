#include "server/problem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { DETAIL_BYTES = 640 }; /* escaped; leaves room for the rest in PROBLEM_BYTES */

const char *problem_title(unsigned status)
{
	static const struct {
		unsigned status;
		const char *title;
	} titles[] = {
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 409, "Conflict" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 415, "Unsupported Media Type" },
		{ 422, "Unprocessable Content" },
		{ 428, "Precondition Required" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 503, "Service Unavailable" },
	};

	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (titles[i].status == status)
			return titles[i].title;
	return "Error";
}

/* Reasons quote what the client sent, so they are ASCII here whatever came in: half a UTF-8
 * sequence would make the whole answer unreadable. */
static size_t escape(char *out, size_t bytes, const char *text)
{
	size_t n = 0;

	for (; *text && n + 2 < bytes; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			out[n++] = '\\';
		out[n++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
	}
	out[n] = '\0';
	return n;
}

size_t problem_write(char out[PROBLEM_BYTES], unsigned status, const char *detail)
{
	char text[DETAIL_BYTES];
	int n;

	escape(text, sizeof(text), detail);
	n = snprintf(
	    out, PROBLEM_BYTES,
	    "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u,\"detail\":\"%s\"}\n",
	    problem_title(status), status, text);
	assert(n > 0 && n < PROBLEM_BYTES);
	return (size_t)n;
}

unsigned problem_status(enum registry_status status)
{
	static const unsigned codes[] = {
		[REGISTRY_UNPARSABLE] = 400,
		[REGISTRY_UNACCEPTABLE] = 422,
		[REGISTRY_NO_COMMON_CODEC] = 406,
		[REGISTRY_NO_PUBLISHER] = 409,
		[REGISTRY_FULL] = 503,
		[REGISTRY_DRAINING] = 503,
		[REGISTRY_NOT_FOUND] = 404,
		[REGISTRY_FORBIDDEN] = 403,
		[REGISTRY_TAKEN] = 409,
		[REGISTRY_STALE] = 412,
		[REGISTRY_TAG_MISSING] = 428,
	};

	assert(status != REGISTRY_OK && status < sizeof(codes) / sizeof(codes[0]));
	return codes[status];
}
