/* server/problem.h - error answers: application/problem+json with a reason for a person.
 *
 * Source: RFC 9457. "type" is about:blank, so "title" is the status phrase; what a person needs
 *         is in "detail".
 * Thread: any.
 */
#ifndef SERVER_PROBLEM_H
#define SERVER_PROBLEM_H

#include <stddef.h>

#include "server/registry.h"

enum { PROBLEM_BYTES = 1024 };

/** The status phrase of RFC 9110 ("Not Found"), or "Error" for one this server never sends. */
const char *problem_title(unsigned status);

/** Write the JSON text; control characters and what is not UTF-8 in `detail` become "?".
 *  @return its length; a long detail is cut, the JSON stays whole */
size_t problem_write(char out[PROBLEM_BYTES], unsigned status, const char *detail);

/** The HTTP status of a registry's verdict. REGISTRY_OK is the caller's business (asserts). */
unsigned problem_status(enum registry_status status);

#endif
