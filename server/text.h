/* server/text.h - a growing text buffer, for answers of a size known only once written.
 *
 * Memory: text_free() releases it. After a failed allocation further text is ignored and
 *         text_take() gives NULL, so a writer checks once, at the end.
 */
#ifndef SERVER_TEXT_H
#define SERVER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
	char *bytes; /* terminated; NULL while empty */
	size_t len;
	size_t cap;
	bool failed;
};

__attribute__((format(printf, 2, 3))) void text_printf(struct text *t, const char *format, ...);
void text_append(struct text *t, const char *bytes, size_t len);

/** The text, owned by the caller (free()), or NULL when memory ran out. The buffer is empty after. */
char *text_take(struct text *t, size_t *len);
void text_free(struct text *t);

#endif
