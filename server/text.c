/* server/text.c - see text.h for the contract. */
#include "server/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_FIRST_BYTES = 1024 };

static bool make_room(struct text *t, size_t more)
{
	size_t cap = t->cap ? t->cap : TEXT_FIRST_BYTES;
	char *bytes;

	if (t->failed)
		return false;
	if (t->len + more < t->cap)
		return true;
	while (cap <= t->len + more)
		cap *= 2;
	bytes = realloc(t->bytes, cap);
	if (!bytes) {
		t->failed = true;
		return false;
	}
	t->bytes = bytes;
	t->cap = cap;
	return true;
}

void text_append(struct text *t, const char *bytes, size_t len)
{
	if (!make_room(t, len))
		return;
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	t->bytes[t->len] = '\0';
}

void text_printf(struct text *t, const char *format, ...)
{
	va_list args, again;
	int need;

	va_start(args, format);
	va_copy(again, args);
	need = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (need >= 0 && make_room(t, (size_t)need)) {
		vsnprintf(t->bytes + t->len, (size_t)need + 1, format, again);
		t->len += (size_t)need;
	}
	va_end(again);
}

char *text_take(struct text *t, size_t *len)
{
	char *bytes = NULL;

	if (!t->failed) {
		text_append(t, "", 0);
		bytes = t->failed ? NULL : t->bytes;
	}
	if (!bytes)
		free(t->bytes);
	if (len)
		*len = bytes ? t->len : 0;
	*t = (struct text){ 0 };
	return bytes;
}

void text_free(struct text *t)
{
	free(t->bytes);
	*t = (struct text){ 0 };
}
