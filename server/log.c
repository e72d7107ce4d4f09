#include "server/log.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "net/loop.h"

static const char *const level_names[] = { "debug", "info", "warn", "error" };

static enum config_log_format log_format = CONFIG_LOG_TEXT;
static enum config_log_level log_level = CONFIG_LOG_INFO;
static struct log_limiter limiter;
static pthread_mutex_t limiter_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t dropped; /* relaxed: a counter nothing else depends on */

struct line {
	char *bytes;
	size_t len;
};

/* Room for the newline and what closes a JSON object is kept. */
enum { LINE_TAIL = 4 };

static void put(struct line *l, const char *text, size_t len)
{
	size_t room = LOG_LINE_BYTES - LINE_TAIL - l->len;

	if (len > room)
		len = room;
	memcpy(l->bytes + l->len, text, len);
	l->len += len;
}

static void put_text(struct line *l, const char *text)
{
	put(l, text, strlen(text));
}

/* Quoted, in the escapes that JSON and logfmt share. Bytes outside ASCII become "?". An escape
 * is written whole or not at all, so that a cut line still ends in a closed string. */
static void put_quoted(struct line *l, const char *text)
{
	put_text(l, "\"");
	for (; *text && l->len + LINE_TAIL + 2 < LOG_LINE_BYTES; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			put_text(l, "\\");
		if (c == '\n')
			put_text(l, "\\n");
		else
			put(l, c < 0x20 || c >= 0x7f ? "?" : text, 1);
	}
	l->bytes[l->len++] = '"';
}

static bool is_bare(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || strchr("\"\\=", *p))
			return false;
	return text[0] != '\0';
}

static void put_field(struct line *l, enum config_log_format format, const struct log_field *f)
{
	char number[24];

	/* A field that does not fit is left out whole: half a key would break the line. */
	if (strlen(f->key) + 32 > LOG_LINE_BYTES - LINE_TAIL - l->len)
		return;
	put_text(l, format == CONFIG_LOG_JSON ? ",\"" : " ");
	put_text(l, f->key);
	put_text(l, format == CONFIG_LOG_JSON ? "\":" : "=");
	if (!f->text) {
		snprintf(number, sizeof(number), "%lld", (long long)f->number);
		put_text(l, number);
	} else if (format == CONFIG_LOG_TEXT && is_bare(f->text) &&
		   strlen(f->text) < LOG_LINE_BYTES - LINE_TAIL - l->len) {
		put_text(l, f->text);
	} else {
		put_quoted(l, f->text);
	}
}

size_t log_format_line(char out[LOG_LINE_BYTES], enum config_log_format format,
		       const struct log_head *head, const struct log_field *fields, size_t count)
{
	const struct log_field suppressed = log_number("suppressed", (int64_t)head->suppressed);
	struct line l = { out, 0 };
	time_t seconds = (time_t)(head->wall_us / 1000000);
	struct tm tm;
	char time_text[40];
	char text[160];
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(time_text + n, sizeof(time_text) - n, ".%06uZ",
		 (unsigned)(head->wall_us % 1000000));
	snprintf(text, sizeof(text),
		 format == CONFIG_LOG_JSON ? "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%.64s\""
					   : "time=%s level=%s event=%.64s",
		 time_text, level_names[head->level], head->event);
	put_text(&l, text);
	if (head->suppressed)
		put_field(&l, format, &suppressed);
	for (size_t i = 0; i < count; i++)
		put_field(&l, format, &fields[i]);
	if (format == CONFIG_LOG_JSON)
		l.bytes[l.len++] = '}';
	l.bytes[l.len++] = '\n';
	l.bytes[l.len] = '\0';
	return l.len;
}

static struct log_class *class_of(struct log_limiter *l, const char *event)
{
	for (size_t i = 0; i < LOG_CLASSES - 1; i++) {
		if (!l->classes[i].event) {
			l->classes[i].event = event;
			l->classes[i].left = LOG_BURST;
			return &l->classes[i];
		}
		if (strcmp(l->classes[i].event, event) == 0)
			return &l->classes[i];
	}
	return &l->classes[LOG_CLASSES - 1];
}

bool log_limiter_take(struct log_limiter *l, const char *event, uint64_t now_us,
		      uint64_t *suppressed)
{
	struct log_class *c = class_of(l, event);
	uint64_t seconds = (now_us - c->last_us) / 1000000;

	*suppressed = 0;
	if (seconds > 0) {
		c->left = seconds + c->left > LOG_BURST ? LOG_BURST : c->left + (uint32_t)seconds;
		c->last_us = now_us;
	}
	if (c->left == 0) {
		c->suppressed++;
		return false;
	}
	c->left--;
	*suppressed = c->suppressed;
	c->suppressed = 0;
	return true;
}

void log_open(enum config_log_format format, enum config_log_level level)
{
	log_format = format;
	log_level = level;
}

void log_write(enum config_log_level level, const char *event, const struct log_field *fields,
	       size_t count)
{
	struct pollfd pfd = { .fd = STDERR_FILENO, .events = POLLOUT };
	char text[LOG_LINE_BYTES];
	struct log_head head = { .level = level, .event = event };
	struct timespec ts;
	size_t len;
	bool is_due;

	if (level < log_level)
		return;
	pthread_mutex_lock(&limiter_lock);
	is_due = log_limiter_take(&limiter, event, clock_now_us(), &head.suppressed);
	pthread_mutex_unlock(&limiter_lock);
	if (!is_due)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	head.wall_us = (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
	len = log_format_line(text, log_format, &head, fields, count);
	/* A pipe that is ready takes PIPE_BUF bytes at once; one that is not is never waited for. */
	if (poll(&pfd, 1, 0) != 1 || !(pfd.revents & POLLOUT) ||
	    write(STDERR_FILENO, text, len) != (ssize_t)len)
		atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

uint64_t log_dropped_lines(void)
{
	return atomic_load_explicit(&dropped, memory_order_relaxed);
}
