/* loadgen/picture.h - the picture that a loop shows: a moving ground, a clock, a title, a number.
 *
 * The ground's waves move evenly and come back after one loop; its grain costs an encoder bits, as a
 * camera's does. The number at the lower edge, light and dark blocks, lets a program tell which frame
 * it has decoded: each bit stands above its opposite, so that a damaged picture is noticed.
 *
 * Sans-IO: the same moment gives the same picture.
 * Thread:  any; no shared state.
 * Memory:  none; the planes are the caller's.
 */
#ifndef LOADGEN_PICTURE_H
#define LOADGEN_PICTURE_H

#include <stddef.h>
#include <stdint.h>

enum {
	PICTURE_PLANES = 3, /* Y, U, V; 4:2:0, video range */
	PICTURE_MIN_WIDTH = 128,
	PICTURE_MIN_HEIGHT = 96,
	PICTURE_NUMBER_BITS = 12, /* of the frame's number that are drawn */
};

struct picture {
	uint32_t width, height; /* pixels, even, not below the minimum */
	uint8_t *plane[PICTURE_PLANES];
	size_t stride_bytes[PICTURE_PLANES];
};

struct picture_moment {
	uint32_t frame;  /* within the loop */
	uint32_t frames; /* of the loop, above `frame` */
	uint32_t fps;
	const char *title; /* what is too long for the width is cut */
};

/** Overwrite the whole picture. The clock says MM:SS.ff, ff the frame within the second. */
void picture_draw(const struct picture *p, const struct picture_moment *m);

/** The drawn number, its low PICTURE_NUMBER_BITS; -1 when the blocks contradict each other. */
int picture_read_number(const struct picture *p);

#endif
