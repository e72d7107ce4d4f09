/* pool/lines.h - memory in whole cache lines, for objects of which a pass reads a few lines each.
 *
 * An object that starts anywhere needs a line more than its size says, and asking for its first line
 * ahead asks for a part of what is read.
 *
 * Memory: the caller's, given back with free().
 */
#ifndef POOL_LINES_H
#define POOL_LINES_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_BYTES = 64 };

/** Zeroed memory that starts a line. @return NULL without memory */
static inline void *lines_calloc(size_t bytes)
{
	size_t whole = (bytes + LINES_BYTES - 1) / LINES_BYTES * LINES_BYTES;
	void *lines = aligned_alloc(LINES_BYTES, whole);

	return lines ? memset(lines, 0, whole) : NULL;
}

#endif
