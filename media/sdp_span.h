/* media/sdp_span.h - cutting spans of text apart, and a bounded writer. For the SDP files of media/.
 *
 * Source:  the token grammar of RFC 8866 section 9.
 * Sans-IO: text in, text out.
 * Thread:  any.
 * Memory:  spans borrow; the writer writes into the caller's buffer.
 */
#ifndef MEDIA_SDP_SPAN_H
#define MEDIA_SDP_SPAN_H

#include "media/sdp.h"

/** Cut the text before the first `end` off *rest and step behind it; all of it when there is none. */
struct sdp_span sdp_span_cut(struct sdp_span *rest, char end);

/** The next word of *rest; blanks (space, tab) before it are skipped. NULL at the end. */
struct sdp_span sdp_span_word(struct sdp_span *rest);

/** Without blanks at both ends. */
struct sdp_span sdp_span_trim(struct sdp_span span);

/** Decimal digits only, at most max. @return false: not a number, or above */
bool sdp_span_number(struct sdp_span span, uint32_t max, uint32_t *out);

/** Decimal digits only, of any value. */
bool sdp_span_is_digits(struct sdp_span span);

/** "1.2.3.4", "2001:db8::1" or "[2001:db8::1]". Anything else leaves family 0. port is untouched. */
void sdp_address_parse(struct sdp_address *out, struct sdp_span text);

/** What precision of "%.*s" takes; error texts quote at most this much. */
int sdp_span_print(struct sdp_span span);

bool sdp_address_equal(const struct sdp_address *a, const struct sdp_address *b);

/** Text that stops growing, and remembers it, when the buffer is full. */
struct sdp_writer {
	char *out;
	size_t cap;
	size_t len;
	bool overflow;
};

void sdp_writer_init(struct sdp_writer *w, char *out, size_t cap);
__attribute__((format(printf, 2, 3))) void sdp_put(struct sdp_writer *w, const char *format, ...);

/** a=candidate lines of host candidates, best first: UDP before TCP, IPv4 before IPv6 (FFmpeg takes the
 *  first it finds). */
void sdp_put_candidates(struct sdp_writer *w, const struct sdp_address *candidates, size_t count);

/** @return length without the terminator, or -ENOSPC */
int sdp_writer_finish(struct sdp_writer *w);

#endif
