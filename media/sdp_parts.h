/* media/sdp_parts.h - what sdp.c and sdp_attribute.c share: the state of one parse.
 *
 * Source:  RFC 8866.
 * Sans-IO: text in, struct out.
 * Thread:  a reader lives for one call of sdp_parse().
 * Memory:  none.
 */
#ifndef MEDIA_SDP_PARTS_H
#define MEDIA_SDP_PARTS_H

#include "media/sdp.h"

struct sdp_reader {
	struct sdp *s;
	struct sdp_media *m; /* NULL before the first m-line */
	unsigned line;       /* being read, from 1 */
	unsigned candidate_lines;
	struct sdp_error *error; /* may be NULL */
};

/** Note what is wrong with the current line, and pass the verdict on. */
__attribute__((format(printf, 3, 4))) enum sdp_verdict
sdp_refuse(struct sdp_reader *r, enum sdp_verdict verdict, const char *format, ...);

/** A payload type of the current m-line's formats; NULL when the m-line does not list it. */
struct sdp_format *sdp_reader_format(struct sdp_reader *r, uint32_t pt);

/** Read a payload type (0..127), or refuse. */
enum sdp_verdict sdp_reader_pt(struct sdp_reader *r, struct sdp_span text, uint32_t *pt);

/** "IN IP4 192.0.2.1[/ttl]": what is no address of ours has family 0. */
struct sdp_address sdp_read_connection(struct sdp_span text);

/** One line's text behind "a=". */
enum sdp_verdict sdp_on_attribute(struct sdp_reader *r, struct sdp_span text);

#endif
