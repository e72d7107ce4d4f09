/* server/log.h - one line an event on standard error, as logfmt or JSON.
 *
 * Never a password, token, SDP or session id: callers log names, numbers, addresses, reasons.
 * Thread:  any; a mutex around the rate limiter. Not for the packet path.
 * Memory:  none but a fixed table of event names.
 *
 * Each event name is a class of its own: LOG_BURST lines at once, then one a second; the next
 * line that passes says how many did not ("suppressed"). A reader that does not keep up costs
 * lines, counted, never time.
 */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

enum {
	LOG_LINE_BYTES = 1024, /* longer lines are cut; below PIPE_BUF, so a line never blocks */
	LOG_BURST = 8,
	LOG_CLASSES = 128, /* further event names share one class */
};

struct log_field {
	const char *key;  /* lower case and "_" */
	const char *text; /* NULL: number */
	int64_t number;
};

static inline struct log_field log_text(const char *key, const char *text)
{
	return (struct log_field){ .key = key, .text = text ? text : "" };
}

static inline struct log_field log_number(const char *key, int64_t number)
{
	return (struct log_field){ .key = key, .number = number };
}

/** Once, before other threads start. Before it: text, info, standard error. */
void log_open(enum config_log_format format, enum config_log_level level);

/** `event` must live as long as the process (a literal). */
void log_write(enum config_log_level level, const char *event, const struct log_field *fields,
	       size_t count);

/* A macro because only the preprocessor counts arguments:
 *   log_event(CONFIG_LOG_INFO, "session_end", log_text("stream", name), log_number("bytes", n)); */
#define log_event(level, event, ...)                                                               \
	log_write(level, event, (const struct log_field[]){ __VA_ARGS__ },                         \
		  sizeof((const struct log_field[]){ __VA_ARGS__ }) / sizeof(struct log_field))

/** Lines lost because the reader did not keep up, since start. */
uint64_t log_dropped_lines(void);

/* ---- the parts, for tests -------------------------------------------------------------- */

struct log_head {
	uint64_t wall_us; /* since 1970 */
	enum config_log_level level;
	const char *event;
	uint64_t suppressed; /* lines of this class before this one; 0 is not written */
};

/** Write one line with its newline; text values are quoted where needed and escaped.
 *  @return its length, at most LOG_LINE_BYTES - 1 */
size_t log_format_line(char out[LOG_LINE_BYTES], enum config_log_format format,
		       const struct log_head *head, const struct log_field *fields, size_t count);

struct log_class {
	const char *event;
	uint64_t last_us;
	uint64_t suppressed;
	uint32_t left; /* lines that may be written at once */
};

struct log_limiter {
	struct log_class classes[LOG_CLASSES];
};

/** Whether this line may be written; *suppressed is how many of its class were not since the
 *  last that was. */
bool log_limiter_take(struct log_limiter *l, const char *event, uint64_t now_us,
		      uint64_t *suppressed);

#endif
