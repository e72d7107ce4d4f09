#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "server/log.h"

TestSuite(log, .timeout = 10);

enum { SECOND_US = 1000000 };

static char line[LOG_LINE_BYTES];

static const char *text_of(enum config_log_format format, const struct log_field *fields, size_t n)
{
	const struct log_head head = { .wall_us = 1700000000123456ull,
				       .level = CONFIG_LOG_WARN,
				       .event = "event_name" };
	size_t len = log_format_line(line, format, &head, fields, n);

	cr_expect_eq(len, strlen(line));
	cr_expect_eq(line[len - 1], '\n');
	cr_expect_eq(strchr(line, '\n'), line + len - 1, "one line");
	return line;
}

Test(log, text_lines_are_logfmt)
{
	const struct log_field fields[] = { log_text("stream", "cam-1"),
					    log_number("bytes", -5),
					    log_text("reason", "no \"route\"\nhere"),
					    log_text("empty", ""),
					    log_text("none", NULL),
					    log_text("pair", "a=b") };

	cr_expect_str_eq(
	    text_of(CONFIG_LOG_TEXT, fields, 6),
	    "time=2023-11-14T22:13:20.123456Z level=warn event=event_name stream=cam-1 "
	    "bytes=-5 reason=\"no \\\"route\\\"\\nhere\" empty=\"\" none=\"\" "
	    "pair=\"a=b\"\n");
}

Test(log, json_lines_are_json_whatever_the_values)
{
	for (int c = 1; c < 256; c++) {
		char value[LOG_LINE_BYTES * 2];
		const struct log_field fields[] = { log_text("value", value),
						    log_number("number", INT64_MIN),
						    log_text("again", value) };
		json_t *json;

		memset(value, c, sizeof(value) - 1);
		value[c % 2 ? 20 : sizeof(value) - 1] = '\0';
		text_of(CONFIG_LOG_TEXT, fields, 3);
		json = json_loads(text_of(CONFIG_LOG_JSON, fields, 3), 0, NULL);
		cr_expect_not_null(json, "byte %d: %s", c, line);
		cr_expect_str_eq(json_string_value(json_object_get(json, "event")), "event_name");
		json_decref(json);
	}
}

Test(log, a_class_has_a_burst_then_a_line_a_second_and_counts_the_rest)
{
	static struct log_limiter limiter;
	uint64_t suppressed;
	unsigned written = 0;

	for (int i = 0; i < 1000; i++)
		written += log_limiter_take(&limiter, "flood", 5 * SECOND_US, &suppressed);
	cr_expect_eq(written, LOG_BURST);
	cr_expect(log_limiter_take(&limiter, "other", 5 * SECOND_US, &suppressed));
	cr_expect_eq(suppressed, 0);
	cr_expect_not(log_limiter_take(&limiter, "flood", 6 * SECOND_US - 1, &suppressed));
	cr_expect(log_limiter_take(&limiter, "flood", 6 * SECOND_US, &suppressed));
	cr_expect_eq(suppressed, 1000 - LOG_BURST + 1);
	cr_expect_not(log_limiter_take(&limiter, "flood", 6 * SECOND_US, &suppressed));
}

Test(log, more_event_names_than_classes_share_the_last)
{
	static struct log_limiter limiter;
	static char names[LOG_CLASSES + 64][16];
	uint64_t suppressed;
	unsigned written = 0;

	for (int i = 0; i < LOG_CLASSES + 64; i++) {
		snprintf(names[i], sizeof(names[i]), "e%d", i);
		written += log_limiter_take(&limiter, names[i], 100 * SECOND_US, &suppressed);
	}
	cr_expect_eq(written, LOG_CLASSES - 1 + LOG_BURST);
}

Test(log, a_reader_that_stands_still_costs_lines_and_no_time)
{
	static const char *const events[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	char filler[4096];
	int pipe_fds[2];
	int saved = dup(STDERR_FILENO);
	uint64_t lost;

	cr_assert_eq(pipe(pipe_fds), 0);
	cr_assert_eq(dup2(pipe_fds[1], STDERR_FILENO), STDERR_FILENO);
	memset(filler, 'x', sizeof(filler));
	fcntl(pipe_fds[1], F_SETFL, O_NONBLOCK);
	while (write(pipe_fds[1], filler, sizeof(filler)) > 0)
		;
	fcntl(pipe_fds[1], F_SETFL, 0);
	for (int i = 0; i < 8; i++)
		log_event(CONFIG_LOG_ERROR, events[i], log_number("i", i));
	lost = log_dropped_lines();
	dup2(saved, STDERR_FILENO);
	cr_expect_eq(lost, 8, "%lu", (unsigned long)lost);
}
